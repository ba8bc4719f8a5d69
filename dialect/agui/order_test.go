package agui_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect/agui"
	"github.com/agentevents/agentevents/internal/readback"
)

// run returns the events of a run, by agents whose names stand before the payloads.
func run(list ...any) (events []agentevents.Event) {
	agent := ""
	for _, v := range list {
		p, ok := v.(agentevents.Payload)
		if !ok {
			agent = v.(string)
			continue
		}
		ev := agentevents.Event{ID: "e", RunID: "run-1", AgentID: agent, Time: time.UnixMilli(1777971600000 + int64(len(events))).UTC(), Sequence: uint64(len(events)), Payload: p, SchemaVersion: "1.0"}
		if _, starts := p.(*agentevents.AgentStarted); starts && agent == "coder" {
			ev.ParentAgentID = "planner"
		}
		events = append(events, ev)
	}
	return events
}

// nodes makes the events those of two executions of nodes, in turn.
func nodes(events []agentevents.Event) []agentevents.Event {
	for i := range events {
		events[i].NodeRunID = []string{"x-1", "x-2"}[i%2]
	}
	return events
}

func text(block, delta string) agentevents.Payload {
	return &agentevents.TextDelta{BlockID: block, Delta: delta}
}

// hard are runs that do not keep the order of the protocol by themselves.
var hard = map[string][]agentevents.Event{
	"several agents": run("", &agentevents.RunStarted{}, "planner", &agentevents.AgentStarted{}, text("b", "I "), "coder", &agentevents.AgentStarted{}, text("b", "We "),
		"planner", text("b", "am"), &agentevents.TextCompleted{BlockID: "b", Text: "I am"}, &agentevents.ToolCalled{CallID: "c", ToolID: "Read"},
		"coder", &agentevents.ToolCalled{CallID: "c", ToolID: "Bash", Arguments: `{"a":1}`}, &agentevents.ToolReturned{CallID: "c", ToolID: "Bash", Status: "ok"},
		&agentevents.StepStarted{StepID: "s"}, &agentevents.StepStarted{StepID: "s"}, "", &agentevents.RunCompleted{}),
	"two nodes":      nodes(run("", text("b", "1"), text("b", "2"), &agentevents.TextCompleted{BlockID: "b", Text: "1"}, &agentevents.TextCompleted{BlockID: "b", Text: "2"})),
	"blocks in turn": run("planner", text("a", "1"), text("b", "2"), text("a", "3"), &agentevents.AgentReasoningDelta{BlockID: "a", Delta: "4"}, "", &agentevents.RunFailed{}),
	"null": run("", &agentevents.RunStarted{Inputs: "null"}, "planner", &agentevents.AgentStarted{}, "coder", &agentevents.AgentStarted{},
		&agentevents.AgentEnded{Outcome: "converged", StructuredOutput: "null"}, "", &agentevents.StatePatched{Op: "set", Value: "null"}, &agentevents.RunCompleted{Outputs: "null"}),
	"no end":        run("planner", text("a", "1"), &agentevents.StepStarted{StepID: "s"}),
	"after the end": run("", &agentevents.RunStarted{}, &agentevents.RunCancelled{}, &agentevents.SessionCompleted{}, &agentevents.RunResumed{}, &agentevents.RunCompleted{}),
	"no names":      run("planner", text("", "1"), &agentevents.TextCompleted{Text: "1"}, text("", "2"), &agentevents.TextCompleted{Text: "3"}),
	"questions": run("", &agentevents.RunStarted{}, "planner", &agentevents.AgentStarted{}, "coder", &agentevents.AgentStarted{}, &agentevents.ToolCalled{CallID: "c", ToolID: "Bash"},
		&agentevents.ApprovalRequested{ApprovalID: "a", CallID: "c", Action: "Deploy", Reason: "it is late"}, "planner",
		&agentevents.ClarificationRequested{InterruptID: "q", Questions: []agentevents.Question{{ID: "1", Question: "Where?", Schema: `{"type":"string"}`}, {ID: "2", Question: "When?"}}},
		text("b", "I wait"), "", &agentevents.RunPaused{Reason: "asks"}, &agentevents.ApprovalGranted{ApprovalID: "a"}, &agentevents.RunResumed{Message: "go on"},
		"planner", text("b", "."), "coder", &agentevents.ToolReturned{CallID: "c", ToolID: "Bash", Status: "ok"}, "", &agentevents.RunPaused{}, &agentevents.RunResumed{},
		&agentevents.ClarificationResolved{InterruptID: "q"}, &agentevents.RunPaused{Reason: "by hand"}, &agentevents.RunResumed{}, "coder", &agentevents.AgentEnded{Outcome: "converged"}, "", &agentevents.RunCompleted{}),
	"arguments first": run("planner", &agentevents.ToolArgumentsDelta{CallID: "c", Delta: "{"}, &agentevents.ToolArgumentsDelta{CallID: "c", Delta: "}"}, &agentevents.ToolCalled{CallID: "c", ToolID: "Read", Arguments: "{}"}),
	"arguments before others": run("planner", &agentevents.ToolArgumentsDelta{CallID: "c", Delta: "{}"}, &agentevents.ModelReturned{ModelCallID: "m"}, &agentevents.ToolCalled{CallID: "c", ToolID: "A", Arguments: "{}"},
		&agentevents.ToolArgumentsDelta{CallID: "c", Delta: "late"}, text("b", "")),
	"arguments only":         run("planner", &agentevents.ToolArgumentsDelta{CallID: "c", Delta: "{"}, "", &agentevents.RunCompleted{}),
	"arguments and a return": run("planner", &agentevents.ToolArgumentsDelta{CallID: "c", Delta: "{"}, &agentevents.ToolReturned{CallID: "c", ToolID: "A", Status: "ok"}, "", &agentevents.RunCompleted{}),
	"a call id again":        run("planner", &agentevents.ToolCalled{CallID: "c", ToolID: "A"}, &agentevents.ToolReturned{CallID: "c", ToolID: "A", Status: "ok"}, &agentevents.ToolCalled{CallID: "c", ToolID: "A"}, &agentevents.ToolReturned{CallID: "c", ToolID: "A", Status: "ok"}),
	"a call that is open":    run("planner", &agentevents.ToolCalled{CallID: "c", ToolID: "A"}, &agentevents.ToolCalled{CallID: "c", ToolID: "B"}),
	"an end without a start": run("planner", &agentevents.ToolReturned{CallID: "c", ToolID: "A", Status: "ok"}, &agentevents.StepEnded{StepID: "s"}, &agentevents.AgentEnded{Outcome: "converged"},
		&agentevents.ToolReturned{CallID: "d", ToolID: "A", Status: "ok", OneEvent: true, Arguments: "[1]"}),
	"calls without an id or a tool": run("planner", &agentevents.ToolCalled{}, &agentevents.ToolReturned{Status: "ok", OneEvent: true}, &agentevents.ToolCalled{CallID: "c"}, &agentevents.ToolReturned{CallID: "c", ToolID: "A", Status: "ok"},
		&agentevents.ToolReturned{Status: "ok", OneEvent: true}, &agentevents.ToolReturned{CallID: "d", Status: "ok"}),
	"a sub-agent twice": run("", &agentevents.RunStarted{}, "planner", &agentevents.AgentStarted{}, "coder", &agentevents.AgentStarted{}, &agentevents.AgentEnded{Outcome: "partial"}, &agentevents.AgentStarted{}, &agentevents.AgentEnded{Outcome: "partial"}),
}

// What the encoder writes is read by a strict decoder, as the runs that it was but for the
// listed losses, and written again.
func TestOrder(t *testing.T) {
	for name, events := range hard {
		t.Run(name, func(t *testing.T) {
			trip := &readback.Trip{}
			enc := agui.NewEncoder(agui.EncoderOptions{})
			for _, ev := range events {
				lines, err := enc.Append(nil, ev)
				require.NoError(t, err)
				trip.Wrote(ev, lines, nil)
			}
			lines, err := enc.End(nil)
			require.NoError(t, err)
			trip.Wrote(agentevents.Event{}, lines, nil)
			dec := agui.NewDecoder(agui.Options{Strict: true})
			require.Empty(t, trip.Read(agentevents.ReaderOptions{Decoder: dec, Verbatim: true}), string(trip.Text))
			var kinds, back []agentevents.Kind
			for _, ev := range events {
				if ev.Kind() != agentevents.KindSessionCompleted { // it is after the end
					kinds = append(kinds, ev.Kind())
				}
			}
			for _, ev := range trip.Back {
				back = append(back, ev.Kind())
			}
			require.Equal(t, kinds, back, string(trip.Text))
			again, _ := encode(t, agui.EncoderOptions{}, trip.Back)
			require.Equal(t, string(trip.Text), again)
			trip.Losses = enc.Losses()
			for _, l := range dec.Losses() {
				trip.Derived = append(trip.Derived, l.Pointer)
			}
			require.Empty(t, trip.Compare())
			trip.Unlisted(func(_ int, what string) { t.Errorf("%s\n%s", what, trip.Text) })
			trip.Unreal(func(what string) { t.Errorf("%s\n%s", what, trip.Text) })
		})
	}
}
