package agui_test

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
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

// nodes assigns the events to two executions of nodes, in turn.
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
		&agentevents.ToolReturned{Status: "ok", OneEvent: true}, &agentevents.ToolReturned{CallID: "d", Status: "ok"},
		&agentevents.ToolCalled{CallID: "e"}, &agentevents.ToolReturned{CallID: "e", ToolID: "A", Status: "ok", OneEvent: true}),
	"lenient: another run's type": then(run("", &agentevents.RunStarted{}, &agentevents.RunCompleted{}), run("", &agentevents.Unknown{Type: "NEW_THING", Raw: "{}"}, &agentevents.RunCompleted{})),
	"lenient: a type before all":  run("", &agentevents.Unknown{Type: "NEW_THING", Raw: "{}"}, &agentevents.RunStarted{}, &agentevents.Unknown{Type: "x"}, &agentevents.RunCompleted{}),
	"lenient: usage first":        with(run("planner", &agentevents.UsageObserved{Usage: agentevents.Usage{InputTokens: 1}}, "", &agentevents.RunCompleted{}), 0, `{"usage":{"inputTokens":1}}`),
	"a message of ours":           run("", message("user"), &agentevents.RunCompleted{}),
	"a message":                   with(run("", message("user"), &agentevents.RunCompleted{}), 0, `{"/start":{"type":"TEXT_MESSAGE_START","messageId":"m","role":"user"}}`),
	"a message of a robot":        with(run("", message("robot"), &agentevents.RunCompleted{}), 0, `{"/start":{"type":"TEXT_MESSAGE_START","messageId":"m","role":"user"}}`),
	"a message and a block":       with(run("", text("m", "I "), message("user"), text("m", "am"), &agentevents.RunCompleted{}), 1, `{"/start":{"type":"TEXT_MESSAGE_START","messageId":"m","role":"user"}}`),
	"a start of another type":     with(run("", &agentevents.TextCompleted{BlockID: "m", Text: "x"}, &agentevents.AgentReasoned{BlockID: "m", Reasoning: "x"}), 1, `{"/start":{"type":"TEXT_MESSAGE_START","messageId":"m","role":"user"}}`),
	"an error with open work": run("", &agentevents.RunStarted{}, "planner", &agentevents.AgentStarted{}, text("b", "I "), &agentevents.StepStarted{StepID: "p"}, "coder", &agentevents.AgentStarted{}, text("b", "We "), &agentevents.StepStarted{StepID: "s"},
		&agentevents.AgentReasoningDelta{BlockID: "r", Delta: "?"}, &agentevents.ToolCalled{CallID: "c", ToolID: "A"}, &agentevents.AgentEnded{Outcome: "aborted", Error: agentevents.Some(agentevents.ErrorInfo{Message: "no disk", Code: "io"})},
		"planner", text("b", "am"), "", &agentevents.RunFailed{Error: agentevents.Some(agentevents.ErrorInfo{Message: "no disk"})}),
	"a start twice": with(with(run("", text("m", "I "), text("m", "am")), 0, `{"/start":{"type":"TEXT_MESSAGE_START","messageId":"m"}}`), 1, `{"/start":{"type":"TEXT_MESSAGE_START","messageId":"m"}}`),
	"a return in the next run": then(run("planner", &agentevents.ToolCalled{CallID: "c", ToolID: "A"}, &agentevents.ToolReturned{CallID: "c", ToolID: "A", Status: "ok"}, &agentevents.ToolCalled{CallID: "d", ToolID: "B"}, "", &agentevents.RunCompleted{}),
		run("planner", &agentevents.TextCompleted{BlockID: "d", Text: "x"}, &agentevents.ToolReturned{CallID: "c", ToolID: "A", Status: "ok"}, &agentevents.ToolReturned{CallID: "d", ToolID: "B", Status: "ok"})),
	"a message and a call": run("planner", &agentevents.TextCompleted{BlockID: "b", Text: "x"}, &agentevents.ToolCalled{CallID: "b", ToolID: "A"}),
	"a sub-agent twice":    run("", &agentevents.RunStarted{}, "planner", &agentevents.AgentStarted{}, "coder", &agentevents.AgentStarted{}, &agentevents.AgentEnded{Outcome: "partial"}, &agentevents.AgentStarted{}, &agentevents.AgentEnded{Outcome: "partial"}),
}

var update = flag.Bool("update", false, "write testdata/order.txt; read the diff")

// A strict decoder reads the encoder's lines as the original runs, except for the listed losses.
// They are then written again.
func TestOrder(t *testing.T) {
	var all strings.Builder
	for _, name := range slices.Sorted(maps.Keys(hard)) {
		events := hard[name]
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
			dec := agui.NewDecoder(agui.Options{Strict: !strings.HasPrefix(name, "lenient: ")})
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
			fmt.Fprintf(&all, "-- %s --\n%s", name, trip.Text)
			for _, l := range trip.Losses {
				fmt.Fprintln(&all, l)
			}
			require.Empty(t, trip.Compare())
			trip.Unlisted(func(_ int, what string) { t.Errorf("%s\n%s", what, trip.Text) })
			trip.Unreal(func(what string) { t.Errorf("%s\n%s", what, trip.Text) })
		})
	}
	const file = "testdata/order.txt"
	if *update {
		require.NoError(t, os.WriteFile(file, []byte(all.String()), 0o644))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, string(want), all.String())
}

// with returns events of which the i-th has an extra member of the dialect.
func with(events []agentevents.Event, i int, extra agentevents.JSON) []agentevents.Event {
	if err := events[i].SetExtra(string(agui.Name), extra); err != nil {
		panic(err)
	}
	return events
}

// then returns events of one run, followed by events of another run of its thread.
func then(events, next []agentevents.Event) []agentevents.Event {
	for i := range next {
		next[i].RunID = "run-2"
	}
	events = append(events, next...)
	for i := range events {
		events[i].SessionID = "s"
	}
	return events
}

func message(from string) agentevents.Payload {
	return &agentevents.MessageCreated{Message: agentevents.ConversationMessage{MessageID: "m", From: from, Role: from, TS: 1777971600000, Content: `"Go"`}}
}
