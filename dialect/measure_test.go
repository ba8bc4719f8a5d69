package dialect_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect"
	"github.com/agentevents/agentevents/dialect/dialecttest"
	"github.com/agentevents/agentevents/dialect/kaos"
)

// A careless encoder writes native lines in which a text is another one, and lists nothing.
type careless struct{ was, is string }

func (c careless) Append(dst []byte, ev agentevents.Event) ([]byte, error) {
	line, err := dialect.NativeEncoder{}.Append(nil, ev)
	return append(dst, bytes.ReplaceAll(line, []byte(c.was), []byte(c.is))...), err
}

func (careless) End(dst []byte) ([]byte, error) { return dst, nil }
func (careless) Losses() []dialect.Loss         { return nil }

// What a careless encoder does to a line is found, whatever it is.
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

// The lines do not depend on whether their losses are measured.
func TestFastEncoderWritesTheSameLines(t *testing.T) {
	for _, sse := range []bool{false, true} {
		measured, fast := kaos.NewEncoder(kaos.EncoderOptions{SSE: sse}), kaos.NewEncoder(kaos.EncoderOptions{SSE: sse, Fast: true})
		events := append(quickstart(t), capture(t)...)
		golden := readGolden(t, "quickstart")
		for ev, err := range agentevents.NewReader(strings.NewReader(golden.Get("kaos")), agentevents.ReaderOptions{Decoder: kaos.NewDecoder(kaos.Options{}), Verbatim: true}).All() {
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
			require.Equal(t, string(want), string(got))
			require.Equal(t, wantErr, err)
		}
		require.NotEmpty(t, measured.Losses())
		require.Nil(t, fast.Losses())
	}
}
