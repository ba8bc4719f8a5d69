package kaos

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect"
	"github.com/agentevents/agentevents/internal/jsonwire"
)

// TestSpansBeginInOthers writes the spans of events that name none.
func TestSpansBeginInOthers(t *testing.T) {
	type act struct {
		agent   string
		payload agentevents.Payload
		in      string // name of the span that it begins in
		took    string // duration_ms
		set     func(ev *agentevents.Event)
	}
	below := func(parent, call string) func(ev *agentevents.Event) {
		return func(ev *agentevents.Event) { ev.ParentAgentID, ev.ParentCallID = parent, call }
	}
	called := func(id string) *agentevents.ToolCalled { return &agentevents.ToolCalled{CallID: id, ToolID: id} }
	returned := func(id string) *agentevents.ToolReturned {
		return &agentevents.ToolReturned{CallID: id, ToolID: id, Status: agentevents.ToolStatusOK}
	}
	acts := []act{
		{"", &agentevents.TurnStarted{Turn: agentevents.Some(1), Name: "turn.1"}, "", "null", nil},
		{"", &agentevents.StepStarted{StepID: "s1", Name: "step.s1"}, "turn.1", "null", nil},
		{"", called("a"), "step.s1", "null", nil},
		{"reader", &agentevents.AgentStarted{}, "tool.a", "null", below("", "a")},
		{"reader", called("b"), "subagent.reader", "null", nil},
		{"writer", &agentevents.AgentStarted{}, "subagent.reader", "null", below("reader", "")},
		{"writer", &agentevents.StepStarted{StepID: "s1", Name: "step.w"}, "subagent.writer", "null", nil},
		{"writer", &agentevents.ModelCalled{ModelCallID: "m", Model: "m-1"}, "step.w", "null", nil},
		{"", &agentevents.StepEnded{StepID: "s1", Name: "step.s1"}, "", "7000.0", nil},
		{"", called("c"), "turn.1", "null", nil},
		{"reader", &agentevents.AgentEnded{}, "", "7000.0", nil},
		{"reader", called("d"), "", "null", nil}, // of a span that has ended
		{"", returned("c"), "", "2000.0", func(ev *agentevents.Event) { ev.Time = ev.Time.Add(-time.Second) }},
		{"", returned("a"), "", "null", func(ev *agentevents.Event) { ev.Time = anchor }}, // a clock that went back
		{"", &agentevents.TurnEnded{Turn: agentevents.Some(1), Name: "turn.1", Duration: agentevents.Some(time.Second)}, "", "1000.0", nil},
		{"", called("e"), "", "null", nil},
	}
	for _, traced := range []bool{false, true} {
		e := NewEncoder(encoderOptions)
		names := map[string]string{} // by span id
		for i, a := range acts {
			ev := native(a.payload)
			ev.AgentID, ev.SpanID, ev.ParentAgentID, ev.Sequence, ev.Time = a.agent, "", "", uint64(i), anchor.Add(time.Duration(i)*time.Second)
			if a.set != nil {
				a.set(&ev)
			}
			if traced {
				ev.SpanID = strings.Repeat("0", i+1)
			}
			line, err := e.Append(nil, ev)
			require.NoError(t, err)
			name := jsonwire.Text(jsonwire.Member(string(line), "name"))
			if strings.Contains(string(line), `"phase":"start"`) {
				names[jsonwire.Text(jsonwire.Member(string(line), "span_id"))] = name
			}
			if traced { // who has given it an id has given it a parent
				require.Contains(t, string(line), `"parent_span_id":null,`)
				continue
			}
			require.Equal(t, a.in, names[jsonwire.Text(jsonwire.Member(string(line), "parent_span_id"))], "%d %s", i, line)
			require.Contains(t, string(line), `"duration_ms":`+a.took+`,`, i)
		}
		made := map[string]int{}
		for _, l := range e.Losses() {
			if l.What == dialect.Made {
				made[l.Pointer] += l.Count
			}
		}
		if !traced {
			require.Equal(t, 8, made["/parentSpanId"])
			require.Equal(t, 3, made["/payload/durationMs"])
		}
	}
}

// TestManyOpenSpans remembers in how many agents spans begin.
func TestManyOpenSpans(t *testing.T) {
	e := NewEncoder(encoderOptions)
	for i := range 3 * maxRecent {
		ev := native(&agentevents.StepStarted{StepID: strings.Repeat("s", i+1)})
		ev.SpanID = ""
		_, err := e.Append(nil, ev)
		require.NoError(t, err)
	}
	require.Len(t, e.scopes.Of(scope{"r", "a"}), maxRecent)
}
