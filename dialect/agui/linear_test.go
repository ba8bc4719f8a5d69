package agui_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect/agui"
	"github.com/agentevents/agentevents/eventtest"
	"github.com/agentevents/agentevents/internal/scale"
)

// many expands a text: $ is a number, # 400 bytes, and <text> the text with each number below n.
func many(text string, i, n int) string {
	if before, rest, found := strings.Cut(text, "<"); found {
		item, after, _ := strings.Cut(rest, ">")
		list := make([]string, n)
		for i := range list {
			list[i] = many(item, i, n)
		}
		text = before + strings.Join(list, ",") + after
	}
	return strings.NewReplacer("$", fmt.Sprint(i), "#", strings.Repeat("word", 100)).Replace(text)
}

// native returns a log of events, each its kind and its payload: the first one, then the others n
// times.
func native(kinds ...string) func(n int) string {
	return func(n int) string {
		var log strings.Builder
		number := 0
		add := func(line string, i int) {
			kind, payload, _ := strings.Cut(line, " ")
			fmt.Fprintf(&log, `{"id":"e","sequence":%d,"timestamp":"2026-05-05T09:00:00.000Z","type":%q,"runId":"r","agentId":"a","payload":%s}`+"\n", number, kind, many(payload, i, n))
			number++
		}
		add(kinds[0], 0)
		for i := range n {
			for _, line := range kinds[1:] {
				add(line, i)
			}
		}
		return log.String()
	}
}

// protocol returns a log of AG-UI: a call under way, n times a line, and one more line.
func protocol(line, last string) func(n int) string {
	return func(n int) string {
		var log strings.Builder
		log.WriteString(head + `{"type":"TOOL_CALL_START","toolCallId":"c","toolCallName":"t"}` + "\n")
		for i := range n {
			log.WriteString(many(line, i, n) + "\n")
		}
		return log.String() + many(last, 0, n)
	}
}

// One more of many things costs the encoder no more than the others. The numbers are high enough
// to tell quadratic code from linear code.
func TestLinear(t *testing.T) {
	const start = `agent.started {}`
	for name, c := range map[string]struct {
		n   int // an eighth of them
		log func(n int) string
	}{
		"keys of one merge":       {500, native(`state.patched {"op":"merge","path":"s","value":{<"k$":"#">}}`)},
		"open approvals":          {2000, native(start, `approval.requested {"approvalId":"#p$"}`)},
		"deltas of a text":        {500, native(start, `agent.text.delta {"blockId":"b","delta":"#"}`)},
		"deltas of a reasoning":   {500, native(start, `agent.reasoning.delta {"blockId":"b","delta":"#"}`)},
		"deltas of arguments":     {500, protocol(`{"type":"TOOL_CALL_ARGS","toolCallId":"c","delta":"#"}`, "")},
		"texts without an id":     {500, native(start, `agent.text {"text":"#"}`)},
		"blocks that pauses cut":  {500, native(`approval.requested {"approvalId":"p"}`, `agent.text.delta {"blockId":"b$","delta":"x"}`, `run.paused {}`, `run.resumed {}`)},
		"members of a payload":    {500, native(`agent.toolReturned {"callId":"c","toolId":"t","status":"error",<"x$":"#">}`)},
		"questions of one event":  {500, native(`clarification.requested {"interruptId":"i","questions":[<{"question":"#"}>]}`)},
		"patches of one place":    {500, native(start, `state.patched {"op":"set","path":"s.k$.k","value":"#"}`)},
		"elements of a list":      {500, native(`state.patched {"op":"set","path":"l","value":[]}`, `state.patched {"op":"set","path":"l.$.k","value":"#"}`)},
		"operations of one delta": {500, protocol("", `{"type":"STATE_DELTA","delta":[<{"op":"add","path":"/k$","value":"#"}>]}`)},
		"reports of usage":        {500, protocol(`{"type":"CUSTOM","name":"agentevents.usage.observed","value":{"usage":{"inputTokens":1,"outputTokens":0}},"usage":{"inputTokens":1,"model":"#"}}`, "")},
	} {
		t.Run(name, func(t *testing.T) {
			n := c.n
			if os.Getenv("AGENTEVENTS_LONG") != "" {
				n = 12_500
			}
			scale.Linear(t, n, func(n int) func() {
				log, o := c.log(n), agentevents.ReaderOptions{Verbatim: true, MaxLine: 1 << 30}
				if strings.HasPrefix(log, head) {
					o.Decoder = agui.NewDecoder(agui.Options{})
				}
				events := eventtest.ReadLog(t, strings.NewReader(log), o).Events()
				require.NotEmpty(t, events)
				return func() { encode(t, agui.EncoderOptions{}, events) }
			})
		})
	}
}
