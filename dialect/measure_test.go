package dialect_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect"
	"github.com/agentevents/agentevents/dialect/agui"
	"github.com/agentevents/agentevents/dialect/dialecttest"
	"github.com/agentevents/agentevents/dialect/kahn"
	"github.com/agentevents/agentevents/dialect/kaos"
	"github.com/agentevents/agentevents/dialect/multiagent"
	"github.com/agentevents/agentevents/dialect/openharness"
)

// A careless encoder writes native lines in which a text is another one, and lists nothing.
type careless struct{ was, is string }

func (c careless) Append(dst []byte, ev agentevents.Event) ([]byte, error) {
	line, err := dialect.NativeEncoder{}.Append(nil, ev)
	return append(dst, bytes.ReplaceAll(line, []byte(c.was), []byte(c.is))...), err
}

func (careless) End(dst []byte) ([]byte, error) { return dst, nil }
func (careless) Losses() []dialect.Loss         { return nil }

// Every difference that a careless encoder makes is found.
func TestMeasuredLossesNeedNoList(t *testing.T) {
	words := dialect.Words{
		Why: map[string]string{"/payload/error/*": "below", "dropped agent.toolReturned /payload/error/code": "exact", "altered run.paused": "the kind",
			"/payload/result": "the value", "dropped agent.text": "left out"},
		Derived: []string{"/id", "/payload/index"}, Every: []string{"/id", "made up /sessionId"},
	}
	returned := &agentevents.ToolReturned{CallID: "c", ToolID: "t", Status: agentevents.ToolStatusError, Result: `{"a":[1,{"b":"x"}]}`,
		Error: agentevents.Some(agentevents.ErrorInfo{Code: "code", Message: "m"})}
	for _, c := range []struct {
		was, is string
		payload agentevents.Payload
		want    string
	}{
		{"nowhere", "", returned, ""},
		{`"id":"e"`, `"id":"f"`, returned, "dropped: every kind /id (once, in run r at sequence 3)"},
		{`"runId"`, `"sessionId":"s","runId"`, returned, "made up: every kind /sessionId (once, in run r at sequence 3)"},
		{`"b":"x"`, `"b":"y"`, returned, "altered: agent.toolReturned /payload/result: the value (once, in run r at sequence 3)"},
		{`"b":"x"`, `"\u0062" : "x"`, returned, ""},
		{`"code":"code"`, `"code":""`, returned, "dropped: agent.toolReturned /payload/error/code: exact (once, in run r at sequence 3)"},
		{`"message":"m"`, `"message":"n"`, returned, "altered: agent.toolReturned /payload/error/message: below (once, in run r at sequence 3)"},
		{`"marks":["late"]`, `"marks":["synthetic"]`, returned, "dropped: agent.toolReturned /marks (once, in run r at sequence 3)\nmade up: agent.toolReturned /marks (once, in run r at sequence 3)"},
		{`"payload":{`, `"payload":{"more":1,`, returned, "made up: agent.toolReturned /payload: members that no field has (once, in run r at sequence 3)"},
		{`"type":"run.paused"`, `"type":"run.resumed"`, &agentevents.RunPaused{Reason: "why"}, "altered: run.paused the event: the kind (once, in run r at sequence 3)"},
		{`"a":1`, `"a":2`, &agentevents.Unknown{Type: "x.y", Raw: `{"a":1,"b":2}`}, "altered: x.y /payload/a (once, in run r at sequence 3)"},
		{`"stepId":"2"`, `"stepId":"3"`, &agentevents.PlanProposed{Steps: []agentevents.PlanStep{{StepID: "1"}, {StepID: "2"}}}, "altered: plan.proposed /payload/steps/*/stepId (once, in run r at sequence 3)"},
		{`"index":0`, `"index":1`, &agentevents.TextDelta{Index: agentevents.Some(0)}, "dropped: agent.text.delta /payload/index (once, in run r at sequence 3)"}, // 0 is a value
		{`"delta":""`, `"delta":"","index":1`, &agentevents.TextDelta{}, ""},
		{"{", "[", &agentevents.RunPaused{}, "dropped: run.paused the event: readers refuse its line (once, in run r at sequence 3)"},
		{"\n", "\n\n", &agentevents.RunPaused{}, ""},
		{"damaged \ufffd", "damaged \ufffd", &agentevents.RunPaused{Reason: "damaged \xff"}, "altered: run.paused /payload/reason: damaged characters were replaced (once, in run r at sequence 3)"},
	} {
		e := dialect.Measured(careless{c.was, c.is}, dialect.NewMeasure("toy", agentevents.NewDecoder(), words))
		_, err := e.Append([]byte("before"), agentevents.Event{ID: "e", RunID: "r", Sequence: 3, SchemaVersion: agentevents.SchemaVersion, Marks: agentevents.MarkLate, Payload: c.payload})
		require.NoError(t, err)
		var list []string
		for _, l := range e.Losses() {
			list = append(list, l.String())
		}
		require.Equal(t, c.want, strings.Join(list, "\n"), "%s became %s", c.was, c.is)
	}

	m := dialect.NewMeasure("toy", agentevents.NewDecoder(), words)
	text := &agentevents.Event{RunID: "r", Payload: &agentevents.TextCompleted{}}
	m.Wrote(text, nil, nil)
	m.Wrote(text, nil, errors.New("refused"))
	m.Wrote(&agentevents.Event{RunID: "r", Payload: &agentevents.RunPaused{}}, nil, dialect.ErrNoCounterpart)
	require.Equal(t, "[dropped: agent.text the event: left out (once, in run r at sequence 0) dropped: run.paused the event: no counterpart (once, in run r at sequence 0)]",
		fmt.Sprint(m.Losses()))
}

// A call that waits for its return is compared with the return's line, and the return with the
// line's other members.
func TestMeasuredCallsOfTheirReturns(t *testing.T) {
	words := dialect.Words{Why: map[string]string{"altered agent.toolCalled": "with its return", "dropped agent.toolCalled": "no return"}, Derived: []string{"/id"}}
	at := time.Date(2026, 5, 5, 9, 0, 0, 0, time.UTC)
	event := func(n uint64, p agentevents.Payload) *agentevents.Event {
		return &agentevents.Event{ID: fmt.Sprint("e", n), RunID: "r", Sequence: n, Time: at.Add(time.Duration(n) * time.Second), SchemaVersion: "1.0", Payload: p}
	}
	call := event(1, &agentevents.ToolCalled{CallID: "c", ToolID: "t", Arguments: `{"a":1}`, Attempt: agentevents.Some(2)})
	call.Step = agentevents.Some(7)
	ret := event(2, &agentevents.ToolReturned{CallID: "c", ToolID: "t", Status: agentevents.ToolStatusOK, ArgumentsSummary: "s"})
	line := event(2, &agentevents.ToolReturned{CallID: "c", ToolID: "u", Status: agentevents.ToolStatusOK, OneEvent: true, Arguments: `{"a":1}`, Duration: agentevents.Some(time.Second)})
	text, err := line.AppendJSON(nil)
	require.NoError(t, err)
	m := dialect.NewMeasure("toy", agentevents.NewDecoder(), words)
	m.Joined(ret, call, append(text, '\n'), nil)
	m.Wrote(call, nil, nil)
	var list []string
	for _, l := range m.Losses() {
		list = append(list, fmt.Sprint(l.What, " ", l.Kind, " ", l.Pointer, " ", l.Detail))
	}
	require.Equal(t, []string{
		"dropped agent.toolCalled  no return", "altered agent.toolCalled  with its return", "dropped agent.toolCalled /id ", "dropped agent.toolCalled /payload/attempt ",
		"dropped agent.toolCalled /payload/toolId ", "dropped agent.toolCalled /sequence ", "dropped agent.toolCalled /step ",
		"dropped agent.toolReturned /payload/argumentsSummary ", "made up agent.toolReturned /payload/durationMs ", "altered agent.toolReturned /payload/toolId ",
	}, list)
}

// Events that wait are found by their run and kind, in their order, whenever their lines come.
func TestMeasuredEventsThatWait(t *testing.T) {
	event := func(run string, n uint64, p agentevents.Payload) agentevents.Event {
		return agentevents.Event{ID: fmt.Sprint("e", n), RunID: run, Sequence: n, SchemaVersion: "1.0", Payload: p}
	}
	lines := func(events ...agentevents.Event) (text []byte) {
		for _, ev := range events {
			line, err := ev.AppendJSON(text)
			require.NoError(t, err)
			text = append(line, '\n')
		}
		return text
	}
	delta := func(text string) agentevents.Payload { return &agentevents.TextDelta{Delta: text} }
	a1, a2, b1, b2 := event("a", 1, delta("x")), event("a", 2, delta("y")), event("b", 3, delta("z")), event("b", 4, &agentevents.RunPaused{})
	m := dialect.NewMeasure("toy", agentevents.NewDecoder(), dialect.Words{})
	for _, ev := range []agentevents.Event{a1, b1, a2, b2} {
		m.Waits(&ev)
		m.Came(nil)
	}
	m.Came(lines(b2, b1))
	m.Came(lines(a1, event("a", 2, delta("other")), event("a", 5, &agentevents.RunStarted{})))
	require.Equal(t, "[altered: agent.text.delta /payload/delta (once, in run a at sequence 2) made up: run.started the event: read as run.started (once, in run a at sequence 5)]", fmt.Sprint(m.Losses()))
	m.Waits(&a1)
	m.Came([]byte("{\n"))
	m.Ends()
	require.Equal(t, "dropped: agent.text.delta the event: readers refuse its line (once, in run a at sequence 1)", m.Losses()[0].String())
}

// The lines do not depend on whether their losses are measured.
func TestFastEncodersWriteTheSameLines(t *testing.T) {
	for name, c := range map[string]struct {
		encoder func(fast bool) dialect.Encoder
		decoder agentevents.Decoder
	}{
		"kahn":        {func(fast bool) dialect.Encoder { return kahn.NewEncoder(kahn.EncoderOptions{Fast: fast}) }, kahn.NewDecoder(kahn.Options{})},
		"multiagent":  {func(fast bool) dialect.Encoder { return multiagent.NewEncoder(multiagent.EncoderOptions{Fast: fast}) }, multiagent.NewDecoder(multiagent.Options{})},
		"kaos":        {func(fast bool) dialect.Encoder { return kaos.NewEncoder(kaos.EncoderOptions{Fast: fast}) }, kaos.NewDecoder(kaos.Options{})},
		"kaos:sse":    {func(fast bool) dialect.Encoder { return kaos.NewEncoder(kaos.EncoderOptions{SSE: true, Fast: fast}) }, kaos.NewDecoder(kaos.Options{})},
		"openharness": {func(fast bool) dialect.Encoder { return openharness.NewEncoder(openharness.EncoderOptions{Fast: fast}) }, openharness.NewDecoder(openharness.Options{})},
		"agui":        {func(fast bool) dialect.Encoder { return agui.NewEncoder(agui.EncoderOptions{Fast: fast}) }, agui.NewDecoder(agui.Options{})},
		"agui:sse":    {func(fast bool) dialect.Encoder { return agui.NewEncoder(agui.EncoderOptions{SSE: true, Fast: fast}) }, agui.NewDecoder(agui.Options{})},
	} {
		measured, fast := c.encoder(false), c.encoder(true)
		events := append(quickstart(t), capture(t)...)
		document, _, _ := strings.Cut(name, ":")
		golden := readGolden(t, "quickstart")
		log := golden.Get(document)
		for ev, err := range agentevents.NewReader(strings.NewReader(log), agentevents.ReaderOptions{Decoder: c.decoder, Verbatim: true}).All() {
			require.NoError(t, err)
			again := ev
			if p, ok := ev.Payload.(*agentevents.ToolReturned); ok { // a changed event, and the same line again
				changed := *p
				changed.OneEvent, again.Payload = !p.OneEvent, &changed
			}
			events = append(events, ev, again)
		}
		for info := range agentevents.Kinds() {
			events = append(events, dialecttest.Minimal(info.Kind), dialecttest.Filled(info.Kind))
		}
		for _, ev := range events {
			want, wantErr := measured.Append(nil, ev)
			got, err := fast.Append(nil, ev)
			require.Equal(t, string(want), string(got), name)
			require.Equal(t, wantErr, err, name)
		}
		want, _ := measured.End(nil)
		got, _ := fast.End(nil)
		require.Equal(t, string(want), string(got), name)
		require.NotEmpty(t, measured.Losses(), name)
		require.Nil(t, fast.Losses(), name)
	}
}
