package spans_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	ae "github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/internal/spans"
)

// This file has logs like those that other systems write: agents without an id, runs without a
// start or an end, usage that no model call has.

// in feeds the events of a node.
func (r *recording) in(node, execution string, payloads ...ae.Payload) *spans.Span {
	var at *spans.Span
	for _, p := range payloads {
		at = r.event(ae.Event{Scope: ae.Scope{NodeID: node, NodeRunID: execution}, Payload: p})
	}
	return at
}

// flow feeds the events of a workflow.
func (r *recording) flow(id, phase, agent string, payloads ...ae.Payload) {
	for _, p := range payloads {
		r.event(ae.Event{Scope: ae.Scope{WorkflowID: id, Phase: phase}, AgentID: agent, Payload: p})
	}
}

func tool(id string) *ae.ToolReturned {
	return &ae.ToolReturned{CallID: id, ToolID: "Read", Status: ae.ToolStatusOK, OneEvent: true, Duration: ae.Some(time.Second)}
}

func TestAgentsWithoutAnIDAreToldApartByTheirNodes(t *testing.T) {
	r := record(spans.Options{})
	r.feed("", &ae.RunStarted{Name: "release"})
	r.in("write", "x1", &ae.NodeStarted{}, &ae.AgentStarted{})
	r.in("check", "x2", &ae.NodeStarted{}, &ae.AgentStarted{}, &ae.ToolCalled{CallID: "c", ToolID: "Bash"})
	call := r.in("write", "x1", tool("c"))
	r.in("write", "x1", &ae.AgentEnded{})
	r.feed("", &ae.EdgeFired{From: "write", To: "check"}, &ae.RunPaused{}, &ae.RunResumed{})
	r.in("write", "x1", &ae.NodeCompleted{})
	r.in("check", "x2", &ae.AgentErrored{ErrorType: "error_max_turns"}, &ae.NodeFailed{Error: ae.ErrorInfo{Code: "broken"}})
	r.feed("", &ae.RunFailed{})
	r.want(t, lines(
		"invoke_workflow release 0-14 error=error_max_turns +edge.fired +run.paused +run.resumed",
		"  run_step write 1-11",
		"    invoke_agent write 2-7",
		"      execute_tool Read 5-6",
		"  run_step check 3-13 error=broken",
		"    invoke_agent check 4-12 error=error_max_turns closed=parent_ended +error",
		"      execute_tool Bash 5-5 error=agentevents.incomplete closed=parent_ended"))
	require.Equal(t, "write", attr(call, "gen_ai.agent.name"))
	require.Equal(t, "x1", attr(call, "agentevents.agent.id"))
	require.Zero(t, r.m.Unmatched)
}

// An attempt that had an error and is followed by another one has failed with that.
func TestAnAgentThatTriesAgain(t *testing.T) {
	r := record(spans.Options{})
	r.feed("", &ae.RunStarted{Name: "release"})
	r.in("check", "x1", &ae.NodeStarted{}, &ae.AgentStarted{}, &ae.AgentErrored{ErrorType: "rate_limit"}, &ae.AgentStarted{}, tool("c"), &ae.AgentEnded{}, &ae.NodeCompleted{})
	r.feed("", &ae.RunCompleted{})
	r.want(t, lines(
		"invoke_workflow release 0-8",
		"  run_step check 1-7",
		"    invoke_agent check 2-3 error=rate_limit closed=restarted +error",
		"    invoke_agent check 4-6 ->",
		"      execute_tool Read 4-5"))
}

// An agent whose start has no agentId and no node is known by its span.
func TestAgentsWithoutAnIDAreToldApartByTheirSpans(t *testing.T) {
	r := record(spans.Options{})
	r.feed("", &ae.RunStarted{Name: "n"})
	for _, id := range []string{"0a", "0b"} {
		r.event(ae.Event{SpanID: id, Payload: &ae.AgentStarted{Agent: ae.Some(ae.AgentRef{AgentID: "reader"})}})
	}
	r.event(ae.Event{SpanID: "0c", ParentSpanID: "0a", Payload: tool("c")})
	r.event(ae.Event{SpanID: "0a", Payload: &ae.AgentEnded{}})
	r.event(ae.Event{SpanID: "0b", Payload: &ae.AgentEnded{}})
	r.feed("", &ae.RunCompleted{})
	r.want(t, lines("invoke_workflow n 0-6", "  invoke_agent reader 1-4", "    execute_tool Read 2-3", "  invoke_agent reader 2-5"))
}

// An event names such an agent. An agent that starts within its span is below it.
func TestAnAgentIsNamedByItsSpan(t *testing.T) {
	r := record(spans.Options{})
	r.feed("", &ae.RunStarted{Name: "n"})
	r.event(ae.Event{SpanID: "0a", Payload: &ae.AgentStarted{}})
	r.event(ae.Event{SpanID: "0b", ParentSpanID: "0a", Payload: &ae.AgentStarted{}})
	r.event(ae.Event{AgentID: "inner", SpanID: "0c", ParentSpanID: "0b", Payload: tool("c")})
	r.event(ae.Event{AgentID: "inner", Payload: &ae.AgentEnded{}})
	r.event(ae.Event{AgentID: "outer", SpanID: "0a", Payload: &ae.AgentEnded{}})
	r.feed("", &ae.RunCompleted{})
	r.want(t, lines("invoke_workflow n 0-6", "  invoke_agent 1-5", "    invoke_agent 2-4", "      execute_tool Read 2-3"))
}

func TestAnAgentThatANodeNames(t *testing.T) {
	node := &ae.NodeStarted{Agent: ae.Some(ae.AgentRef{AgentID: "host:planner"})}
	by := func(r *recording, node string, payloads ...ae.Payload) {
		for _, p := range payloads {
			r.event(ae.Event{Scope: ae.Scope{NodeID: node}, AgentID: "host:planner", Payload: p})
		}
	}
	for _, c := range []struct {
		name string
		feed func(*recording)
		want []string
	}{
		{"works for the node", func(r *recording) {
			r.in("n1", "", node)
			by(r, "n1", tool("c"))
			r.in("n1", "", &ae.NodeCompleted{})
		}, []string{"invoke_workflow refunds 0-4", "  run_step n1 1-3", "    invoke_agent host:planner 1-3", "      execute_tool Read 1-2"}},
		{"works for two at once", func(r *recording) {
			r.in("n1", "", node)
			r.in("n2", "", node)
			by(r, "n1", tool("c"))
			by(r, "n2", &ae.ToolCalled{CallID: "d", ToolID: "Bash"})
			r.in("n1", "", &ae.NodeCompleted{})
			by(r, "n2", &ae.ToolReturned{CallID: "d", ToolID: "Bash", Status: ae.ToolStatusOK})
			r.in("n2", "", &ae.NodeFailed{Error: ae.ErrorInfo{Code: "broken"}})
		}, []string{"invoke_workflow refunds 0-8",
			"  run_step n1 1-5", "    invoke_agent host:planner 1-5", "      execute_tool Read 2-3",
			"  run_step n2 2-7 error=broken", "    invoke_agent host:planner 2-7 error=broken", "      execute_tool Bash 4-6"}},
		{"starts itself", func(r *recording) {
			r.in("n1", "", node)
			by(r, "n1", &ae.AgentStarted{}, tool("c"), &ae.AgentEnded{})
			r.in("n1", "", &ae.NodeCompleted{})
		}, []string{"invoke_workflow refunds 0-6", "  run_step n1 1-5", "    invoke_agent host:planner 1-4", "      execute_tool Read 2-3"}},
		{"was at work before", func(r *recording) {
			r.feed("host:planner", &ae.AgentStarted{})
			r.in("n1", "", node)
			by(r, "n1", tool("c"))
			r.in("n1", "", &ae.NodeCompleted{})
			r.feed("host:planner", &ae.AgentEnded{})
		}, []string{"invoke_workflow refunds 0-6", "  invoke_agent host:planner 1-5", "    execute_tool Read 2-3", "  run_step n1 2-4"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := record(spans.Options{})
			r.event(ae.Event{Scope: ae.Scope{WorkflowID: "refunds"}, Payload: &ae.RunStarted{}})
			require.Equal(t, "refunds", attr(r.begun[0], "gen_ai.workflow.name"))
			c.feed(r)
			r.feed("", &ae.RunCompleted{})
			r.want(t, lines(c.want...))
			require.Zero(t, r.m.Unmatched)
		})
	}
}

func TestRunsWithoutAnEnd(t *testing.T) {
	span := func(subject, phase string) *ae.SpanRecorded { return &ae.SpanRecorded{Subject: subject, Phase: phase} }
	turn := func(n int) *ae.TurnStarted { return &ae.TurnStarted{Turn: ae.Some(n)} }
	workflow := func(r *recording) {
		r.flow("w", "", "planner", &ae.WorkflowCreated{Phases: []string{"audit"}})
		r.flow("w", "audit", "planner", &ae.PhaseStarted{})
		r.flow("w", "audit", "auditor", &ae.AgentStarted{}, &ae.AgentEnded{})
		r.flow("w", "audit", "planner", &ae.PhaseCompleted{})
	}
	const tree = "    run_step audit 1-4\n      invoke_agent auditor 2-3"
	for _, c := range []struct {
		name    string
		feed    func(*recording)
		want    []string
		outcome any
	}{
		{"a workflow", func(r *recording) {
			workflow(r)
			r.flow("w", "", "planner", &ae.WorkflowFinalized{})
			r.feed("", &ae.SessionCompleted{Status: "done"})
		}, []string{"invoke_workflow 0-6 +session.completed", "  invoke_workflow w 0-5 +plan.proposed +workflow.finalized", tree}, "completed"},
		{"a workflow with two ends", func(r *recording) {
			workflow(r)
			r.flow("w", "", "planner", &ae.WorkflowFinalized{})
			r.feed("", &ae.RunCompleted{})
		}, []string{"invoke_workflow 0-6", "  invoke_workflow w 0-5 +plan.proposed +workflow.finalized", tree}, "completed"},
		{"a workflow in a run", func(r *recording) {
			r.feed("", &ae.RunStarted{Name: "n"})
			r.flow("w", "", "", &ae.WorkflowCreated{}, &ae.WorkflowFinalized{})
			r.feed("", &ae.SessionCompleted{}, &ae.RunFailed{})
		}, []string{"invoke_workflow n 0-4 error=_OTHER +session.completed", "  invoke_workflow w 1-2 +plan.proposed +workflow.finalized"}, "failed"},
		{"a workflow that is the run", func(r *recording) {
			r.feed("", &ae.RunStarted{Name: "w"})
			r.flow("w", "audit", "", &ae.PhaseStarted{}, &ae.PhaseCompleted{})
			r.flow("w", "", "", &ae.WorkflowFinalized{})
			r.feed("", &ae.RunCompleted{})
		}, []string{"invoke_workflow w 0-4 +workflow.finalized", "  run_step audit 1-2"}, "completed"},
		{"a workflow of an agent", func(r *recording) {
			r.feed("a", &ae.AgentStarted{})
			r.flow("w", "", "a", &ae.WorkflowCreated{}, &ae.WorkflowFinalized{})
			r.feed("a", tool("c"), &ae.AgentEnded{})
		}, []string{"invoke_workflow 0-4", "  invoke_agent a 0-4", "    invoke_workflow w 1-2 +plan.proposed +workflow.finalized", "    execute_tool Read 2-3"}, "completed"},
		{"a session", func(r *recording) {
			r.feed("a", &ae.AgentStarted{})
			r.feed("", &ae.SessionCompleted{Status: "done"})
		}, []string{"invoke_workflow 0-1 +session.completed", "  invoke_agent a 0-0 closed=run_ended"}, "completed"},
		{"a session that failed", func(r *recording) {
			r.feed("a", &ae.AgentStarted{}, &ae.AgentErrored{ErrorType: "overloaded"})
			r.feed("", &ae.SessionCompleted{Status: "failed"})
		}, []string{"invoke_workflow 0-2 error=overloaded +session.completed", "  invoke_agent a 0-1 error=agentevents.incomplete closed=run_ended +error"}, "failed"},
		{"a session with another word for it", func(r *recording) {
			r.feed("a", &ae.AgentStarted{})
			r.feed("", &ae.SessionCompleted{Status: "Timed_Out"})
		}, []string{"invoke_workflow 0-1 error=_OTHER +session.completed", "  invoke_agent a 0-0 error=agentevents.incomplete closed=run_ended"}, "failed"},
		{"a session with an unknown word", func(r *recording) {
			r.feed("a", &ae.AgentStarted{})
			r.feed("", &ae.SessionCompleted{Status: "shelved"})
		}, []string{"invoke_workflow 0-1 +session.completed", "  invoke_agent a 0-0 closed=run_ended"}, "shelved"},
		{"agents without starts are below a root that is none of them", func(r *recording) {
			r.feed("a", tool("c"))
			r.feed("b", tool("d"))
			r.feed("", &ae.SessionCompleted{Status: "done"})
		}, []string{"invoke_workflow -1-2 +session.completed", "  invoke_agent a -1-0", "    execute_tool Read -1-0", "  invoke_agent b 0-1", "    execute_tool Read 0-1"}, "completed"},
		{"two workflows at once", func(r *recording) {
			r.flow("w", "", "", &ae.WorkflowCreated{})
			r.flow("v", "", "", &ae.WorkflowCreated{})
			r.flow("w", "audit", "", &ae.PhaseStarted{})
			r.flow("v", "audit", "", &ae.PhaseStarted{})
			r.flow("w", "audit", "a", &ae.AgentStarted{}, &ae.AgentEnded{})
			r.flow("v", "audit", "b", &ae.AgentStarted{}, &ae.AgentEnded{})
			r.flow("w", "audit", "", &ae.PhaseCompleted{}, &ae.WorkflowFinalized{})
			r.flow("v", "audit", "", &ae.PhaseCompleted{}, &ae.WorkflowFinalized{})
		}, []string{"invoke_workflow 0-11",
			"  invoke_workflow w 0-9 +plan.proposed +workflow.finalized", "    run_step audit 2-8", "      invoke_agent a 4-5",
			"  invoke_workflow v 1-11 +plan.proposed +workflow.finalized", "    run_step audit 3-10", "      invoke_agent b 6-7"}, "completed"},
		{"two workflows, one after the other", func(r *recording) {
			r.feed("", &ae.SessionStarted{})
			r.flow("w", "", "", &ae.WorkflowCreated{}, &ae.WorkflowFinalized{})
			r.flow("v", "", "", &ae.WorkflowCreated{}, &ae.WorkflowFinalized{})
			r.flow("v", "", "", &ae.WorkflowCreated{}, &ae.WorkflowFinalized{})
		}, []string{"invoke_workflow 0-6 +session.started", "  invoke_workflow w 1-2 +plan.proposed +workflow.finalized",
			"  invoke_workflow v 3-4 +plan.proposed +workflow.finalized", "  invoke_workflow v 5-6 +plan.proposed +workflow.finalized"}, "completed"},
		{"peers that start", func(r *recording) {
			r.feed("", &ae.SessionStarted{})
			r.feed("a", &ae.AgentStarted{}, tool("c"))
			r.feed("b", &ae.AgentStarted{}, tool("d"), &ae.AgentEnded{})
			r.feed("a", &ae.AgentEnded{})
		}, []string{"invoke_workflow 0-6 +session.started", "  invoke_agent a 1-6", "    execute_tool Read 1-2", "  invoke_agent b 3-5", "    execute_tool Read 3-4"}, "completed"},
		{"attempts", func(r *recording) {
			r.feed("a", &ae.AgentStarted{}, &ae.AgentEnded{}, &ae.AgentStarted{}, tool("c"), &ae.AgentEnded{})
		}, []string{"invoke_workflow 0-4", "  invoke_agent a 0-1", "  invoke_agent a 2-4 ->", "    execute_tool Read 2-3"}, "completed"},
		{"an agent that failed", func(r *recording) {
			r.feed("a", &ae.AgentStarted{}, &ae.AgentEnded{Error: ae.Some(ae.ErrorInfo{Code: "broken"})})
			r.feed("b", &ae.AgentStarted{}, &ae.AgentEnded{Status: "interrupted"})
		}, []string{"invoke_workflow 0-3 error=_OTHER", "  invoke_agent a 0-1 error=broken", "  invoke_agent b 2-3 error=interrupted"}, "failed"},
		{"an agent that was stopped", func(r *recording) {
			r.feed("a", &ae.AgentStarted{}, &ae.AgentEnded{Status: "interrupted"})
		}, []string{"invoke_workflow 0-1 error=cancelled", "  invoke_agent a 0-1 error=interrupted"}, "cancelled"},
		{"an agent that failed first", func(r *recording) {
			r.feed("a", &ae.AgentStarted{}, &ae.AgentEnded{Outcome: ae.OutcomeAborted}, &ae.AgentStarted{}, &ae.AgentEnded{})
		}, []string{"invoke_workflow 0-3", "  invoke_agent a 0-1 error=aborted", "  invoke_agent a 2-3 ->"}, "completed"},
		{"a session without a word, of an agent that failed", func(r *recording) {
			r.feed("a", &ae.AgentStarted{}, &ae.AgentErrored{ErrorType: "broken"}, &ae.AgentEnded{Status: "timed out"})
			r.feed("", &ae.SessionCompleted{})
		}, []string{"invoke_workflow 0-3 error=broken +session.completed", "  invoke_agent a 0-2 error=broken +error"}, "failed"},
		{"a session with an error and without a word", func(r *recording) {
			r.feed("", &ae.SessionCompleted{Error: ae.Some(ae.ErrorInfo{Message: "no"})})
		}, []string{"invoke_workflow 0-0 error=_OTHER +session.completed"}, "failed"},
		{"a call that is returned twice", func(r *recording) {
			done := &ae.ToolReturned{CallID: "c", ToolID: "Read", Status: ae.ToolStatusOK, Duration: ae.Some(2 * time.Second)}
			r.feed("a", &ae.TextCompleted{}, &ae.TextCompleted{}, done, done)
			r.m.Unmatched--
		}, []string{"invoke_workflow 0-3 +text +text", "  invoke_agent a 0-3 +late_end", "    execute_tool Read 0-2"}, nil},
		{"ends alone", func(r *recording) {
			r.n = 10
			r.feed("a", &ae.ToolReturned{CallID: "c", ToolID: "Read", Status: ae.ToolStatusOK, Duration: ae.Some(2 * time.Second)}, &ae.ModelReturned{ModelCallID: "m", Model: "m"})
			r.feed("a", &ae.AgentEnded{Duration: ae.Some(9 * time.Second)})
			r.feed("b", &ae.AgentEnded{Duration: ae.Some(4 * time.Second)})
			r.flow("w", "", "", &ae.WorkflowFinalized{Duration: 3 * time.Second})
			r.feed("", &ae.StepEnded{StepID: "s"}, &ae.RunCompleted{})
		}, []string{"invoke_workflow 3-16", "  invoke_agent a 3-12", "    execute_tool Read 8-10", "    chat m 11-11", "  invoke_agent b 9-13",
			"  invoke_workflow w 11-14 +workflow.finalized", "  run_step s 15-15"}, "completed"},
		{"the end of a run alone", func(r *recording) { r.feed("", &ae.RunFailed{}) }, []string{"invoke_workflow 0-0 error=_OTHER"}, "failed"},
		{"the end of a session alone", func(r *recording) { r.feed("o", &ae.SessionCompleted{}) }, []string{"invoke_workflow 0-0 +session.completed"}, "completed"},
		{"the end of a turn alone", func(r *recording) {
			r.n = 10
			r.feed("", &ae.TurnEnded{Turn: ae.Some(1), Duration: ae.Some(4 * time.Second)}, &ae.TurnSummarized{})
			r.feed("", &ae.TurnEnded{Turn: ae.Some(2), Duration: ae.Some(time.Second)})
		}, []string{"invoke_workflow turn 6-11 +turn.summarized", "invoke_workflow turn 11-12 ->"}, "completed"},
		{"a start that is flushed after its end", func(r *recording) {
			r.feed("a", &ae.AgentStarted{}, &ae.TextCompleted{}, &ae.ToolReturned{CallID: "c", ToolID: "Read", Status: ae.ToolStatusOK, Duration: ae.Some(time.Second)})
			r.event(ae.Event{AgentID: "a", Time: t0.Add(time.Second), Payload: &ae.ToolCalled{CallID: "c", ToolID: "Read"}})
			r.feed("a", &ae.AgentEnded{})
		}, []string{"invoke_workflow 0-4", "  invoke_agent a 0-4 +text", "    execute_tool Read 1-2"}, "completed"},
		{"a turn", func(r *recording) {
			r.feed("", turn(1), &ae.StepStarted{StepID: "s"}, &ae.ModelReturned{ModelCallID: "m", Model: "m", OneEvent: true}, tool("c"), &ae.MemoryChanged{})
			r.feed("reader", &ae.AgentStarted{}, &ae.AgentEnded{})
			r.feed("", &ae.StepEnded{StepID: "s"}, &ae.EvidenceInsufficient{}, &ae.TurnEnded{Turn: ae.Some(1)}, &ae.TurnSummarized{})
		}, []string{"invoke_workflow turn 0-10 +refusal +turn.summarized", "  run_step s 1-7 +memory", "    chat m 2-2", "    execute_tool Read 2-3", "    invoke_agent reader 5-6"}, "completed"},
		{"a turn that is summed up before its end", func(r *recording) {
			r.feed("", turn(1), &ae.TurnSummarized{}, &ae.TurnEnded{Turn: ae.Some(1)}, &ae.MemoryChanged{})
		}, []string{"invoke_workflow turn 0-2 +turn.summarized"}, "completed"},
		{"a turn that is summed up after the end of its session", func(r *recording) {
			r.feed("", turn(1), &ae.TurnEnded{Error: ae.Some(ae.ErrorInfo{Code: "refused"})}, &ae.SessionCompleted{}, &ae.TurnSummarized{})
		}, []string{"invoke_workflow turn 0-2 error=refused +session.completed"}, "failed"},
		{"a turn that failed", func(r *recording) {
			r.feed("", turn(1), &ae.TurnEnded{Error: ae.Some(ae.ErrorInfo{Code: "refused"})})
		}, []string{"invoke_workflow turn 0-1 error=refused"}, "failed"},
		{"a turn that was cancelled", func(r *recording) {
			r.feed("", turn(1), &ae.TurnEnded{Turn: ae.Some(1), Error: ae.Some(ae.ErrorInfo{Code: "cancelled"})})
		}, []string{"invoke_workflow turn 0-1 error=cancelled"}, "cancelled"},
		{"two turns", func(r *recording) {
			r.feed("", turn(1), &ae.TurnEnded{}, turn(2), tool("c"), &ae.TurnEnded{})
		}, []string{"invoke_workflow turn 0-1", "invoke_workflow turn 2-4 ->", "  execute_tool Read 2-3"}, "completed"},
		{"a turn of a run that is a span", func(r *recording) {
			r.feed("", span("run", "start"), turn(1), tool("c"), &ae.TurnEnded{Turn: ae.Some(1)}, span("run", "complete"))
		}, []string{"invoke_workflow run 0-4", "  run_step turn 1-3", "    execute_tool Read 1-2"}, "completed"},
		{"a turn that never ends", func(r *recording) { r.feed("", turn(1), tool("c")) },
			[]string{"invoke_workflow turn 0-1 error=agentevents.incomplete closed=shutdown", "  execute_tool Read 0-1"}, nil},
		{"a turn of a run that says when it ends", func(r *recording) {
			r.feed("", &ae.RunStarted{Name: "n"}, turn(1), tool("c"), &ae.TurnEnded{Turn: ae.Some(1)}, &ae.RunCompleted{})
		}, []string{"invoke_workflow n 0-4", "  run_step turn 1-3", "    execute_tool Read 1-2"}, "completed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := record(spans.Options{})
			c.feed(r)
			r.m.Close(spans.ReasonShutdown)
			r.want(t, lines(c.want...))
			require.Equal(t, c.outcome, attr(r.begun[0], "agentevents.run.outcome"))
			require.Zero(t, r.m.Unmatched)
		})
	}
}

func TestATurnIsTheRunWithoutSteps(t *testing.T) {
	r := record(spans.Options{NoSteps: true})
	r.feed("", &ae.TurnStarted{Turn: ae.Some(1)}, &ae.StepStarted{StepID: "s"}, tool("c"), &ae.StepEnded{StepID: "s"}, &ae.TurnEnded{Turn: ae.Some(1)}, &ae.TurnSummarized{})
	r.want(t, lines("invoke_workflow turn 0-5 +event +event +turn.summarized", "  execute_tool Read 1-2"))
}

// A node of the wiki is entered and never left: it makes no span.
func TestANodeThatIsOnlyEntered(t *testing.T) {
	r := record(spans.Options{})
	r.feed("", &ae.RunStarted{Name: "n"})
	ev := ae.Event{Scope: ae.Scope{NodeID: "plan"}, Payload: &ae.NodeStarted{}}
	require.NoError(t, ev.SetExtra("multiagent", `{"schemaVersion":"1.0"}`))
	r.event(ev)
	r.feed("", &ae.RunCompleted{})
	r.want(t, lines("invoke_workflow n 0-2 +node.started"))
}

func TestUsageIsCountedOnce(t *testing.T) {
	usage := func(in, out int64) ae.Usage { return ae.Usage{InputTokens: in, OutputTokens: out} }
	seen := func(in, out int64) *ae.UsageObserved {
		return &ae.UsageObserved{Usage: usage(in, out), CostUSD: ae.Some(0.5)}
	}
	call := &ae.ModelCalled{ModelCallID: "m", Model: "m"}
	ends := &ae.AgentEnded{}
	for _, c := range []struct {
		name string
		feed func(*recording)
		want []string // input tokens by the span's name: gen_ai.usage, usage.total
	}{
		{"of the agent, reported", func(r *recording) { r.feed("a", seen(5, 1), seen(7, 2), ends) }, []string{"invoke_agent a 12 12"}},
		{"of the agent, stated", func(r *recording) {
			r.feed("a", seen(5, 1), &ae.AgentEnded{Usage: ae.Some(usage(9, 1))})
		}, []string{"invoke_agent a 9 9"}},
		{"a running total", func(r *recording) {
			p := seen(7, 2)
			p.Cumulative = true
			r.feed("a", seen(5, 1), p, ends)
		}, []string{"invoke_agent a 7 7"}},
		{"of the agent, which has no end", func(r *recording) { r.feed("a", seen(5, 1)) }, []string{"invoke_agent a 5 5"}},
		{"of the run", func(r *recording) { r.feed("", seen(5, 1), seen(7, 2)); r.feed("a", ends) }, []string{"invoke_workflow n 12 12"}},
		{"of the model call", func(r *recording) {
			r.feed("a", call, &ae.ModelReturned{ModelCallID: "m", Usage: ae.Some(usage(5, 1))}, ends)
		}, []string{"chat m 5 <nil>"}},
		{"of the model call, and stated by the agent", func(r *recording) {
			r.feed("a", call, &ae.ModelReturned{ModelCallID: "m", Usage: ae.Some(usage(5, 1))}, &ae.AgentEnded{Usage: ae.Some(usage(5, 1))})
		}, []string{"invoke_agent a <nil> 5", "chat m 5 <nil>"}},
		{"of the model call, reported", func(r *recording) {
			p := seen(5, 1)
			p.ModelCallID = "m"
			r.feed("a", call, p, &ae.ModelReturned{ModelCallID: "m"}, ends)
		}, []string{"chat m 5 <nil>"}},
		{"of the model call, reported once more later", func(r *recording) {
			p := seen(5, 1)
			p.ModelCallID = "m"
			r.feed("a", call, &ae.ModelReturned{ModelCallID: "m", Usage: ae.Some(usage(5, 1))}, p, ends)
		}, []string{"chat m 5 <nil>"}},
		{"of a model call, and more of the agent", func(r *recording) {
			r.feed("a", call, &ae.ModelReturned{ModelCallID: "m", Usage: ae.Some(usage(5, 1))}, seen(7, 1), ends)
		}, []string{"invoke_agent a <nil> 12", "chat m 5 <nil>"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := record(spans.Options{})
			r.feed("", &ae.RunStarted{Name: "n"})
			r.feed("a", &ae.AgentStarted{})
			c.feed(r)
			r.feed("", &ae.RunCompleted{})
			var got []string
			for _, s := range r.begun {
				own, total := attr(s, "gen_ai.usage.input_tokens"), attr(s, "agentevents.usage.total.input_tokens")
				if own != nil || total != nil {
					got = append(got, fmt.Sprint(s.Name, " ", own, " ", total))
				}
			}
			require.Equal(t, c.want, got)
		})
	}
}

// A total without parts is not a number of tokens that were sent.
func TestATotalOfTokens(t *testing.T) {
	r := record(spans.Options{})
	r.feed("a", &ae.AgentStarted{}, &ae.AgentEnded{Usage: ae.Some(ae.Usage{TotalTokens: ae.Some(int64(64))})})
	r.m.Close(spans.ReasonShutdown)
	require.EqualValues(t, 64, attr(r.begun[1], "agentevents.usage.total.tokens"))
	require.Nil(t, attr(r.begun[0], "gen_ai.usage.input_tokens"))
	require.Nil(t, attr(r.begun[0], "agentevents.usage.total.input_tokens"))
}

// TestContentThatIsAskedFor: each of these is in the trace if content is wanted, and only then.
func TestContentThatIsAskedFor(t *testing.T) {
	const secret = "s3cr3t"
	for name, p := range map[string][]ae.Payload{
		"prompt":               {&ae.AgentStarted{Prompt: ae.JSONString(secret)}},
		"prompt of messages":   {&ae.AgentStarted{Prompt: `[{"role":"user","content":"` + secret + `"}]`}},
		"task":                 {&ae.AgentStarted{Task: secret}},
		"reason":               {&ae.AgentTransition{To: ae.StatusReflect, Reason: secret}},
		"evidence of an audit": {&ae.AuditChecked{CheckpointID: "c", Result: ae.AuditFail, Evidence: `{"e":"` + secret + `"}`}},
		"evidence of a claim":  {&ae.ClaimVerified{Verdict: "rejected", Evidence: ae.JSONString(secret)}},
		"claim":                {&ae.CitationFound{Claim: secret}},
		"yes":                  {&ae.ApprovalRequested{ApprovalID: "p"}, &ae.ApprovalGranted{ApprovalID: "p", Feedback: secret}},
		"no":                   {&ae.ApprovalRequested{ApprovalID: "p"}, &ae.ApprovalRejected{ApprovalID: "p", Feedback: secret}},
		"answers":              {&ae.ClarificationRequested{InterruptID: "i"}, &ae.ClarificationResolved{InterruptID: "i", Answers: `{"q":"` + secret + `"}`}},
		"input summary":        {&ae.ToolReturned{CallID: "c", ToolID: "Read", OneEvent: true, Status: ae.ToolStatusOK, ArgumentsSummary: secret}},
		"output summary":       {&ae.ToolReturned{CallID: "c", ToolID: "Read", OneEvent: true, Status: ae.ToolStatusOK, ResultSummary: secret}},
		"answer":               {&ae.TurnStarted{}, &ae.TurnEnded{}, &ae.TurnSummarized{Text: secret}},
		"goal":                 {&ae.SessionStarted{Goal: secret}},
		"result":               {&ae.SessionCompleted{Result: ae.JSONString(secret)}},
	} {
		for content, want := range map[bool]bool{false: false, true: true} {
			r := record(spans.Options{Content: spans.InTrace(content)})
			r.feed("a", append([]ae.Payload{&ae.TextCompleted{}, &ae.ToolReturned{CallID: "0", ToolID: "Bash", OneEvent: true, Status: ae.ToolStatusOK}}, p...)...)
			r.m.Close(spans.ReasonShutdown)
			var b strings.Builder
			for _, s := range r.begun {
				fmt.Fprintf(&b, "%s %s %v %v\n", s.Name, s.Description, s.Attributes, s.Points)
			}
			require.Equal(t, want, strings.Contains(b.String(), secret), "%s, content %v", name, content)
		}
	}
}

// The attributes of an event of KAOS become the attributes of its span; texts are content.
func TestFreeAttributes(t *testing.T) {
	for content, want := range map[bool]any{false: nil, true: spans.Content{Text: "a note"}} {
		r := record(spans.Options{Content: spans.InTrace(content)})
		r.feed("", &ae.RunStarted{Name: "n"})
		r.feed("a", &ae.ToolCalled{CallID: "c", ToolID: "Read", Attributes: `{"cached":true,"note":"a note","rate":0.5,"none":null}`})
		ev := ae.Event{AgentID: "a", Payload: &ae.ToolReturned{CallID: "c", ToolID: "Read", Status: ae.ToolStatusOK}}
		require.NoError(t, ev.SetExtra("kaos", `{"/attributes/tokens_used":55,"name":"x"}`))
		s := r.event(ev)
		require.Equal(t, true, attr(s, "agentevents.attribute.cached"))
		require.Equal(t, 0.5, attr(s, "agentevents.attribute.rate"))
		require.EqualValues(t, 55, attr(s, "agentevents.attribute.tokens_used"))
		require.Equal(t, want, attr(s, "agentevents.attribute.note"))
		require.Nil(t, attr(s, "agentevents.attribute.name"))
		require.Nil(t, attr(s, "agentevents.attribute.none"))
	}
}

// A node is linked to the nodes whose edges lead to it.
func TestEdgesAreLinks(t *testing.T) {
	r := record(spans.Options{})
	r.feed("", &ae.RunStarted{Name: "n"})
	first := r.in("dig", "", &ae.NodeStarted{}, &ae.NodeCompleted{})
	r.feed("", &ae.EdgeFired{From: "dig", To: "fill"}, &ae.EdgeSkipped{From: "dig", To: "stop"})
	fill := r.in("fill", "", &ae.NodeStarted{}, &ae.NodeCompleted{})
	stop := r.in("stop", "", &ae.NodeStarted{}, &ae.NodeCompleted{})
	r.feed("", &ae.RunCompleted{})
	require.Len(t, fill.Links, 1)
	require.Equal(t, first.ID, fill.Links[0].SpanID)
	require.Equal(t, "edge", fill.Links[0].Attributes[0].Text)
	require.Empty(t, stop.Links)
}

// Several agents have one id at a time. An event in the span of one, or below it, belongs to that
// agent.
func TestAgentsThatShareAnID(t *testing.T) {
	r := record(spans.Options{})
	r.feed("", &ae.SessionStarted{})
	at := func(span, parent, id string, p ae.Payload) {
		r.event(ae.Event{AgentID: id, SpanID: span, ParentSpanID: parent, Payload: p})
	}
	twin := &ae.AgentStarted{Agent: ae.Some(ae.AgentRef{AgentID: "w"})}
	at("u1", "", "w", &ae.AgentStarted{})
	at("u2", "", "", twin)
	at("k2", "u2", "w", &ae.ToolCalled{CallID: "c", ToolID: "Read"})
	at("k1", "u1", "w", &ae.ToolCalled{CallID: "c", ToolID: "Bash"})
	at("k2", "", "w", &ae.ToolReturned{CallID: "c", ToolID: "Read", Status: ae.ToolStatusOK})
	at("k1", "", "w", &ae.ToolReturned{CallID: "c", ToolID: "Bash", Status: ae.ToolStatusOK})
	r.event(ae.Event{AgentID: "sub", ParentAgentID: "w", SpanID: "u3", ParentSpanID: "u2", Payload: &ae.AgentStarted{}})
	r.feed("sub", &ae.AgentEnded{})
	at("u4", "u1", "helper", &ae.AgentStarted{})
	at("u4", "u1", "helper", &ae.AgentEnded{})
	at("u2", "", "w", &ae.AgentEnded{})
	at("u1", "", "w", &ae.AgentEnded{Error: ae.Some(ae.ErrorInfo{Code: "broken"})})
	r.m.Close(spans.ReasonShutdown)
	r.want(t, lines("invoke_workflow 0-12 error=_OTHER +session.started",
		"  invoke_agent w 1-12 error=broken", "    execute_tool Bash 4-6", "    invoke_agent helper 9-10",
		"  invoke_agent w 2-11", "    execute_tool Read 3-5", "    invoke_agent sub 7-8"))
	require.Zero(t, r.m.Unmatched)
}

// A time that is lent to an event is in no duration. Where the end states one, the other time follows.
func TestTimesThatAreNotKnown(t *testing.T) {
	unknown := func(s *spans.Span) string {
		text := ""
		for _, k := range []string{spans.AttrNoStart, spans.AttrNoEnd, spans.AttrStated} {
			if attr(s, k) == true {
				text += " " + strings.TrimPrefix(k, "agentevents.")
			}
		}
		return text
	}
	const second = time.Second
	for _, c := range []struct {
		name        string
		start, end  ae.Payload
		from, to    int // the times that are known, or -1
		want        string
		begin, over int
	}{
		{"both known", &ae.AgentStarted{}, &ae.AgentEnded{Duration: ae.Some(9 * second)}, 20, 25, "", 20, 25},
		{"an agent's start", &ae.AgentStarted{}, &ae.AgentEnded{}, -1, 25, " start.unknown", 20, 25},
		{"an agent's start, with a duration", &ae.AgentStarted{}, &ae.AgentEnded{Duration: ae.Some(2 * second)}, -1, 25, " time.stated", 23, 25},
		{"an agent's end", &ae.AgentStarted{}, &ae.AgentEnded{}, 20, -1, " end.unknown", 20, 20},
		{"an agent's end, with a duration", &ae.AgentStarted{}, &ae.AgentEnded{Duration: ae.Some(3 * second)}, 20, -1, " time.stated", 20, 23},
		{"neither", &ae.AgentStarted{}, &ae.AgentEnded{}, -1, -1, " start.unknown end.unknown", 20, 20},
		{"neither, with a duration", &ae.AgentStarted{}, &ae.AgentEnded{Duration: ae.Some(3 * second)}, -1, -1, " start.unknown time.stated", 20, 23},
		{"a call's start", &ae.ToolCalled{CallID: "c"}, &ae.ToolReturned{CallID: "c", Status: ae.ToolStatusOK}, -1, 25, " start.unknown", 20, 25},
		{"a call's end, with a duration", &ae.ToolCalled{CallID: "c"}, &ae.ToolReturned{CallID: "c", Status: ae.ToolStatusOK, Duration: ae.Some(4 * second)}, 20, -1, " time.stated", 20, 24},
		{"a model call's start, with a duration", &ae.ModelCalled{ModelCallID: "c"}, &ae.ModelReturned{ModelCallID: "c", Duration: ae.Some(4 * second)}, -1, 25, " time.stated", 21, 25},
		{"a step's end", &ae.StepStarted{StepID: "s"}, &ae.StepEnded{StepID: "s"}, 20, -1, " end.unknown", 20, 20},
		{"an approval's question", &ae.ApprovalRequested{ApprovalID: "p"}, &ae.ApprovalGranted{ApprovalID: "p"}, -1, 25, " start.unknown", 20, 25},
		{"an approval's answer", &ae.ApprovalRequested{ApprovalID: "p"}, &ae.ApprovalGranted{ApprovalID: "p"}, 20, -1, " end.unknown", 20, 20},
		{"a handoff's request", &ae.HandoffRequested{HandoffID: "h"}, &ae.HandoffAccepted{HandoffID: "h"}, -1, 25, " start.unknown", 20, 25},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := record(spans.Options{})
			at := func(s int) time.Time { return t0.Add(time.Duration(s) * second) }
			r.m.Feed(&ae.Event{RunID: "run-1", Time: at(0), Payload: &ae.RunStarted{Name: "n"}})
			for i, p := range []ae.Payload{c.start, c.end} {
				ev := &ae.Event{RunID: "run-1", AgentID: "a", Sequence: uint64(i + 1), Payload: p}
				if known := [...]int{c.from, c.to}[i]; known >= 0 {
					ev.Time = at(known)
					r.m.Feed(ev)
				} else {
					r.m.FeedAt(ev, at(20))
				}
			}
			require.Len(t, r.begun, 2)
			require.Equal(t, 1, r.ended)
			s := r.begun[1]
			require.Equal(t, c.want, unknown(s))
			require.Equal(t, at(c.begin), s.Start)
			require.Equal(t, at(c.over), s.End)
			require.Nil(t, attr(s, spans.AttrWait))
		})
	}
}

// A question whose line comes after its answer, with an earlier time, was answered.
func TestAQuestionThatIsWrittenLate(t *testing.T) {
	r := record(spans.Options{})
	r.n = 10
	r.feed("", &ae.RunStarted{Name: "n"}, &ae.ApprovalGranted{ApprovalID: "p"}, &ae.ApprovalGranted{ApprovalID: "q"})
	r.event(ae.Event{Time: t0.Add(10500 * time.Millisecond), Payload: &ae.ApprovalRequested{ApprovalID: "p"}})
	r.feed("", &ae.ApprovalRequested{ApprovalID: "q"}, &ae.RunCompleted{})
	r.want(t, lines("invoke_workflow n 10-15 +late_end +late_end +approval.requested +approval.requested", "  agentevents.approval 10.5-11"))
	require.Equal(t, 0.5, attr(r.begun[1], spans.AttrWait))
	require.Equal(t, 1, r.m.Unmatched)
}

// A handoff is over when it is accepted, or when the log tells that it is not.
func TestHandoffsThatAreOver(t *testing.T) {
	request := ae.Event{AgentID: "a", SpanID: "h", Payload: &ae.HandoffRequested{HandoffID: "h1", From: ae.AgentRef{AgentID: "a"}, To: ae.AgentRef{AgentID: "b"}}}
	unknown := func(kind, raw string) ae.Payload { return &ae.Unknown{Type: ae.Kind(kind), Raw: ae.JSON(raw)} }
	for _, c := range []struct {
		name string
		end  ae.Event
		want string
	}{
		{"accepted", ae.Event{AgentID: "b", Payload: &ae.HandoffAccepted{HandoffID: "h1"}}, "    agentevents.handoff 2-3"},
		{"an error of its span", ae.Event{SpanID: "h", Payload: &ae.SpanRecorded{Subject: "handoff", Phase: "error", ErrorType: "gone"}}, "    agentevents.handoff 2-3 error=gone"},
		{"cancelled", ae.Event{SpanID: "h", Payload: &ae.SpanRecorded{Subject: "handoff", Phase: "cancelled"}}, "    agentevents.handoff 2-3 error=cancelled"},
		{"rejected by its id", ae.Event{AgentID: "c", Payload: unknown("handoff.rejected", `{"handoffId":"h1"}`)}, "    agentevents.handoff 2-3 error=rejected"},
		{"declined by its agent", ae.Event{AgentID: "b", Payload: unknown("handoff.declined", `{}`)}, "    agentevents.handoff 2-3 error=declined"},
		{"another one", ae.Event{AgentID: "b", Payload: unknown("handoff.declined", `{"handoffId":"h2"}`)}, ""},
		{"no end", ae.Event{AgentID: "b", Payload: unknown("handoff.noticed", `{"handoffId":"h1"}`)}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := record(spans.Options{})
			r.feed("", &ae.RunStarted{Name: "n"})
			r.feed("a", &ae.AgentStarted{})
			r.event(request)
			r.event(c.end)
			got := ""
			for line := range strings.Lines(r.tree()) {
				if strings.Contains(line, "agentevents.handoff") {
					got = strings.TrimSuffix(line, "\n")
				}
			}
			require.Equal(t, c.want, got)
		})
	}
}

// In a log whose clock stands still, spans last as long as their ends state, as the spans around them do.
func TestClockThatStandsStill(t *testing.T) {
	some := func(d time.Duration) ae.Opt[time.Duration] { return ae.Some(d * time.Second) }
	for _, c := range []struct {
		name  string
		late  bool
		began time.Duration // how long before all others the run began
		want  []string
	}{
		{"a log", true, 0, []string{
			"invoke_workflow 0-15", "  invoke_agent a 0-15", "    run_step turn 5-15", "    run_step turn 10-15", "      execute_tool x 15-15",
		}},
		{"a program", false, 0, []string{
			"invoke_workflow 15-15", "  invoke_agent a 15-15", "    run_step turn 15-15", "    run_step turn 15-15", "      execute_tool x 15-15",
		}},
		{"a run with another time", true, time.Second, []string{
			"invoke_workflow 14-15", "  invoke_agent a 15-15", "    run_step turn 15-15", "    run_step turn 15-15", "      execute_tool x 15-15",
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := record(spans.Options{Late: c.late})
			now := t0.Add(15 * time.Second)
			r.event(ae.Event{Time: now.Add(-c.began), Payload: &ae.RunStarted{}})
			for _, p := range []ae.Payload{
				&ae.AgentStarted{}, &ae.TurnStarted{Turn: ae.Some(1)}, &ae.TurnEnded{Turn: ae.Some(1), Duration: some(10)},
				&ae.TurnStarted{Turn: ae.Some(2)}, &ae.ToolCalled{CallID: "c", ToolID: "x"}, &ae.ToolReturned{CallID: "c", ToolID: "x", Status: ae.ToolStatusOK},
				&ae.TurnEnded{Turn: ae.Some(2), Duration: some(5)}, &ae.AgentEnded{Duration: some(15)},
			} {
				r.event(ae.Event{Time: now, AgentID: "a", Payload: p})
			}
			r.event(ae.Event{Time: now, Payload: &ae.RunCompleted{}})
			r.want(t, lines(c.want...))
			stated := any(true)
			if !c.late || c.began > 0 {
				stated = nil
			}
			require.Equal(t, stated, attr(r.m.Root(), spans.AttrStated))
		})
	}
}
