package spans_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	ae "github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/internal/spans"
)

var t0 = time.Date(2026, 5, 5, 9, 0, 0, 0, time.UTC)

// A recording maps events one second apart.
type recording struct {
	m     *spans.Mapper
	begun []*spans.Span // in the order in which they began
	ended int
	noted []string
	n     uint64
}

func record(o spans.Options) *recording {
	r := &recording{}
	o.Started = func(s *spans.Span) { r.begun = append(r.begun, s) }
	o.Ended = func(*spans.Span) { r.ended++ }
	o.Noted = func(_ *spans.Span, p *spans.Point) { r.noted = append(r.noted, p.Name) }
	r.m = spans.New("r", o)
	return r
}

func (r *recording) feed(agent string, payloads ...ae.Payload) *spans.Span {
	var at *spans.Span
	for _, p := range payloads {
		at = r.event(ae.Event{AgentID: agent, Payload: p})
	}
	return at
}

func (r *recording) event(ev ae.Event) *spans.Span {
	ev.RunID, ev.Sequence = "r", r.n
	if ev.Time.IsZero() {
		ev.Time = t0.Add(time.Duration(r.n) * time.Second)
	}
	r.n++
	return r.m.Feed(&ev)
}

// tree writes the spans with their times in seconds, children below parents.
func (r *recording) tree() string {
	var b strings.Builder
	var write func(parent *spans.Span, depth int)
	write = func(parent *spans.Span, depth int) {
		for _, s := range r.begun {
			if s.Parent != parent {
				continue
			}
			fmt.Fprintf(&b, "%s%s %v-%v", strings.Repeat("  ", depth), s.Name, s.Start.Sub(t0).Seconds(), s.End.Sub(t0).Seconds())
			if s.Status == spans.StatusError {
				fmt.Fprintf(&b, " error=%v", attr(s, "error.type"))
			}
			if s.ClosedReason != "" {
				b.WriteString(" closed=" + s.ClosedReason)
			}
			for _, p := range s.Points {
				b.WriteString(" +" + strings.TrimPrefix(p.Name, "agentevents."))
			}
			for range s.Links {
				b.WriteString(" ->")
			}
			b.WriteString("\n")
			write(s, depth+1)
		}
	}
	write(nil, 0)
	return b.String()
}

func attr(s *spans.Span, key string) any {
	i := slices.IndexFunc(s.Attributes, func(a spans.Attr) bool { return a.Key == key })
	if i < 0 {
		return nil
	}
	return s.Attributes[i].Any()
}

func (r *recording) want(t *testing.T, tree string) {
	t.Helper()
	require.Equal(t, tree, r.tree())
	require.Equal(t, len(r.begun), r.ended, "every span is told of once when it begins and once when it ends")
	require.Zero(t, r.m.Open())
}

func TestTreeOfARunWithAgents(t *testing.T) {
	r := record(spans.Options{})
	r.feed("", &ae.SessionStarted{}, &ae.RunStarted{Name: "release"})
	r.feed("lead", &ae.AgentStarted{Task: "x"}, &ae.ModelCalled{ModelCallID: "m1", Model: "claude", Provider: "anthropic"})
	r.feed("lead", &ae.ModelReturned{ModelCallID: "m1", Usage: ae.Some(ae.Usage{InputTokens: 5, OutputTokens: 7, CacheReadInputTokens: ae.Some(int64(100))})})
	r.feed("lead", &ae.ToolCalled{CallID: "c1", ToolID: "Task"})
	r.event(ae.Event{AgentID: "sub", ParentAgentID: "lead", ParentCallID: "c1", Payload: &ae.AgentStarted{}})
	r.feed("sub", &ae.ToolCalled{CallID: "c1", ToolID: "Read"}, &ae.ToolReturned{CallID: "c1", ToolID: "Read", Status: ae.ToolStatusError}, &ae.AgentEnded{Outcome: ae.OutcomeConverged})
	r.feed("lead", &ae.ToolReturned{CallID: "c1", ToolID: "Task", Status: ae.ToolStatusOK}, &ae.AuditChecked{CheckpointID: "a", Result: ae.AuditPass}, &ae.AgentEnded{Outcome: ae.OutcomeConverged})
	r.feed("", &ae.RunCompleted{})
	r.want(t, lines(
		"invoke_workflow release 1-13 +session.started",
		"  invoke_agent lead 2-12 +gen_ai.evaluation.result",
		"    chat claude 3-4",
		"    execute_tool Task 5-10",
		"      invoke_agent sub 6-9",
		"        execute_tool Read 7-8 error=_OTHER"))
	chat := r.begun[2]
	require.Equal(t, spans.KindClient, chat.Kind)
	require.EqualValues(t, 105, attr(chat, "gen_ai.usage.input_tokens"), "cached tokens are counted in")
	require.Equal(t, "completed", attr(r.begun[0], "agentevents.run.outcome"))
}

// alone is the tree of a run without a start: the agent's spans below a root that is made up.
func alone(agent ...string) string {
	first, _, _ := strings.Cut(strings.Replace(agent[0], "invoke_agent a", "invoke_workflow", 1), " +")
	all := first + "\n"
	for _, l := range agent {
		all += "  " + l + "\n"
	}
	return all
}

func lines(l ...string) string { return strings.Join(append(l, ""), "\n") }

func TestARunOfOneAgent(t *testing.T) {
	for name, started := range map[string][]ae.Payload{
		"no run.started":          nil,
		"the run names its agent": {&ae.RunStarted{Agent: ae.Some(ae.AgentRef{AgentID: "a"})}},
	} {
		t.Run(name, func(t *testing.T) {
			r := record(spans.Options{})
			r.feed("", started...)
			n := len(started)
			r.feed("a", &ae.AgentStarted{}, &ae.ToolCalled{CallID: "c", ToolID: "Read"}, &ae.ToolReturned{CallID: "c", ToolID: "Read", Status: ae.ToolStatusOK}, &ae.AgentEnded{Outcome: ae.OutcomeConverged})
			r.m.Close(spans.ReasonShutdown)
			r.want(t, alone(fmt.Sprintf("invoke_agent a 0-%d", 3+n), fmt.Sprintf("  execute_tool Read %d-%d", 1+n, 2+n)))
			require.Equal(t, n == 0, attr(r.begun[0], "agentevents.made_up") == true)
		})
	}
}

func TestOpenSpansEndAtTheirLastEvent(t *testing.T) {
	start := func(o spans.Options) *recording {
		r := record(o)
		r.feed("", &ae.RunStarted{Name: "n"})
		r.feed("a", &ae.AgentStarted{}, &ae.ToolCalled{CallID: "c", ToolID: "Read"})
		r.feed("b", &ae.AgentStarted{}, &ae.TextDelta{Delta: "x"})
		return r
	}
	for _, c := range []struct {
		name string
		end  func(*recording)
		want string
	}{
		{"shutdown", func(r *recording) { r.m.Close(spans.ReasonShutdown) }, lines(
			"invoke_workflow n 0-4 error=agentevents.incomplete closed=shutdown",
			"  invoke_agent a 1-2 error=agentevents.incomplete closed=shutdown",
			"    execute_tool Read 2-2 error=agentevents.incomplete closed=shutdown",
			"  invoke_agent b 3-4 error=agentevents.incomplete closed=shutdown")},
		{"run completed", func(r *recording) { r.feed("", &ae.RunCompleted{}) }, lines(
			"invoke_workflow n 0-5",
			"  invoke_agent a 1-2 closed=run_ended",
			"    execute_tool Read 2-2 closed=run_ended",
			"  invoke_agent b 3-4 closed=run_ended")},
		{"run failed", func(r *recording) {
			r.feed("a", &ae.AgentErrored{ErrorType: "overloaded"})
			r.feed("", &ae.RunFailed{})
		}, lines(
			"invoke_workflow n 0-6 error=overloaded",
			"  invoke_agent a 1-5 error=agentevents.incomplete closed=run_ended +error",
			"    execute_tool Read 2-2 error=agentevents.incomplete closed=run_ended",
			"  invoke_agent b 3-4 error=agentevents.incomplete closed=run_ended")},
		{"agent ended, late return", func(r *recording) {
			r.feed("a", &ae.AgentEnded{}, &ae.ToolReturned{CallID: "c", ToolID: "Read", Status: ae.ToolStatusOK})
			r.feed("b", &ae.AgentEnded{})
			r.feed("", &ae.RunCompleted{})
		}, lines(
			"invoke_workflow n 0-8",
			"  invoke_agent a 1-5",
			"    execute_tool Read 2-6",
			"  invoke_agent b 3-7")},
		{"agent ended, no return", func(r *recording) {
			r.feed("a", &ae.AgentEnded{}, &ae.TextCompleted{})
			r.feed("b", &ae.AgentEnded{})
			r.feed("", &ae.RunCompleted{})
		}, lines(
			"invoke_workflow n 0-8 +text",
			"  invoke_agent a 1-5",
			"    execute_tool Read 2-2 closed=run_ended",
			"  invoke_agent b 3-7")},
		{"agent failed, no return", func(r *recording) {
			r.feed("a", &ae.AgentEnded{Outcome: ae.OutcomeAborted})
			r.feed("b", &ae.AgentEnded{})
			r.feed("", &ae.RunCompleted{})
		}, lines(
			"invoke_workflow n 0-7",
			"  invoke_agent a 1-5 error=aborted",
			"    execute_tool Read 2-2 error=agentevents.incomplete closed=run_ended",
			"  invoke_agent b 3-6")},
		{"agent ended, return twice", func(r *recording) {
			done := &ae.ToolReturned{CallID: "c", ToolID: "Read", Status: ae.ToolStatusOK}
			r.feed("a", &ae.AgentEnded{}, done, done)
			r.m.Unmatched--
			r.feed("b", &ae.AgentEnded{})
			r.feed("", &ae.RunCompleted{})
		}, lines(
			"invoke_workflow n 0-9 +late_end",
			"  invoke_agent a 1-5",
			"    execute_tool Read 2-6",
			"  invoke_agent b 3-8")},
		{"paused and released", func(r *recording) { r.feed("", &ae.RunPaused{}); r.m.Release() }, lines(
			"invoke_workflow n 0-5 closed=paused +run.paused",
			"  invoke_agent a 1-2 closed=paused",
			"    execute_tool Read 2-2 closed=paused",
			"  invoke_agent b 3-4 closed=paused")},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := start(spans.Options{})
			c.end(r)
			r.want(t, c.want)
		})
	}
}

func TestHostileOrder(t *testing.T) {
	call := &ae.ToolCalled{CallID: "c", ToolID: "Read"}
	done := &ae.ToolReturned{CallID: "c", ToolID: "Read", Status: ae.ToolStatusOK}
	for _, c := range []struct {
		name string
		feed func(*recording)
		want string
	}{
		{"end without a start", func(r *recording) { r.feed("a", done) },
			alone("invoke_agent a 0-1", "  execute_tool Read 1-1")},
		{"end before the start", func(r *recording) { r.feed("a", done, call) },
			alone("invoke_agent a 0-2 error=agentevents.incomplete closed=shutdown", "  execute_tool Read 1-1",
				"  execute_tool Read 2-2 error=agentevents.incomplete closed=shutdown")},
		{"start twice", func(r *recording) { r.feed("a", call, call, done) },
			alone("invoke_agent a 0-3 closed=",
				"  execute_tool Read 1-1 error=agentevents.incomplete closed=restarted",
				"  execute_tool Read 2-3")},
		{"time runs backwards", func(r *recording) {
			r.feed("a", call)
			r.event(ae.Event{AgentID: "a", Time: t0, Payload: done})
		}, alone("invoke_agent a 0-2", "  execute_tool Read 1-1")},
		{"child after its parent's end", func(r *recording) {
			r.event(ae.Event{AgentID: "b", ParentAgentID: "a", Payload: &ae.AgentStarted{}})
			r.feed("b", &ae.AgentEnded{})
			r.event(ae.Event{AgentID: "d", ParentAgentID: "b", Payload: &ae.AgentStarted{}})
			r.feed("d", call, done, &ae.AgentEnded{})
		}, alone("invoke_agent a 0-6", "  invoke_agent b 1-2", "    invoke_agent d 3-6", "      execute_tool Read 4-5")},
		{"a call is refused before it began", func(r *recording) {
			r.feed("a", &ae.ToolReturned{CallID: "c", ToolID: "Bash", Status: ae.ToolStatusForbidden})
		}, alone("invoke_agent a 0-1", "  execute_tool Bash 1-1 error=forbidden")},
		{"a call in one event", func(r *recording) {
			r.feed("a", &ae.TextCompleted{}, &ae.TextCompleted{}, &ae.ToolReturned{CallID: "c", ToolID: "Bash", Status: ae.ToolStatusOK, OneEvent: true, Duration: ae.Some(2 * time.Second)})
		}, alone("invoke_agent a 0-3 +text +text", "  execute_tool Bash 1-3")},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := record(spans.Options{})
			r.feed("a", &ae.AgentStarted{})
			c.feed(r)
			incomplete := strings.Contains(strings.Split(c.want, "\n")[0], "closed=shutdown")
			if !incomplete {
				r.n-- // at the time of the last event
				r.feed("a", &ae.AgentEnded{})
			}
			r.m.Close(spans.ReasonShutdown)
			r.want(t, strings.Replace(c.want, " closed=\n", "\n", 2))
			for _, s := range r.begun {
				require.False(t, s.End.Before(s.Start))
			}
		})
	}
}

func TestWaitsAreSpansWhenTheyAreOver(t *testing.T) {
	r := record(spans.Options{})
	r.feed("a", &ae.AgentStarted{}, &ae.ToolCalled{CallID: "c", ToolID: "Bash"}, &ae.ApprovalRequested{ApprovalID: "p", CallID: "c"})
	require.Equal(t, 3, r.m.Open(), "no span is open for the approval")
	r.n += 3 * 3600
	at := r.feed("", &ae.ApprovalGranted{ApprovalID: "p", ApprovedBy: "ann"})
	require.Equal(t, "agentevents.approval", at.Name)
	r.feed("a", &ae.ToolReturned{CallID: "c", ToolID: "Bash", Status: ae.ToolStatusOK}, &ae.AgentEnded{})
	r.m.Close(spans.ReasonShutdown)
	r.want(t, alone("invoke_agent a 0-10805", "  execute_tool Bash 1-10804 +approval.requested", "    agentevents.approval 2-10803"))
	require.Equal(t, "granted", attr(at, "agentevents.approval.decision"))
	for _, s := range r.begun {
		for _, a := range s.Attributes {
			require.NotEqual(t, "ann", a.Any(), "no names of people")
		}
	}
}

// TestAnAnswerMayBeFirst: the run is resumed elsewhere, and goes on with the answer.
func TestAnAnswerMayBeFirst(t *testing.T) {
	for _, c := range []struct {
		kind   string
		answer ae.Payload
	}{
		{"approval", &ae.ApprovalGranted{ApprovalID: "p"}},
		{"clarification", &ae.ClarificationResolved{InterruptID: "p"}},
	} {
		r := record(spans.Options{})
		r.m.Resume(8, "", "n", &spans.Link{})
		r.m.Await(c.kind, "p", t0.Add(-3*time.Hour), 7)
		r.m.Await(c.kind, "q", time.Time{}, 6)
		require.Equal(t, "agentevents."+c.kind, r.feed("a", c.answer).Name)
		r.feed("", &ae.RunCompleted{})
		r.want(t, lines("invoke_workflow n 0-1 ->", "  agentevents."+c.kind+" -10800-0"))
	}
}

func TestAHandoffLinksTheAgentThatTakesOver(t *testing.T) {
	r := record(spans.Options{})
	r.feed("", &ae.RunStarted{Name: "n"})
	from := r.feed("a", &ae.AgentStarted{}, &ae.HandoffRequested{From: ae.AgentRef{AgentID: "a"}, To: ae.AgentRef{AgentID: "b"}})
	r.feed("a", &ae.AgentEnded{})
	r.feed("b", &ae.AgentStarted{}, &ae.HandoffAccepted{From: ae.AgentRef{AgentID: "a"}, To: ae.AgentRef{AgentID: "b"}}, &ae.AgentEnded{})
	r.feed("", &ae.RunCompleted{})
	r.want(t, lines("invoke_workflow n 0-7", "  invoke_agent a 1-3 +handoff.requested", "  invoke_agent b 4-6 +handoff.accepted ->", "  agentevents.handoff 2-5"))
	b := r.begun[2]
	require.Equal(t, from.ID, b.Links[0].SpanID)
	require.Equal(t, 3.0, b.Points[0].Attributes[2].Value, "seconds that the handoff took")
}

func TestStepsAndPhases(t *testing.T) {
	feed := func(o spans.Options) *recording {
		r := record(o)
		r.feed("", &ae.RunStarted{Name: "n"})
		w := ae.Scope{WorkflowID: "w", Phase: "find"}
		r.event(ae.Event{Scope: w, Payload: &ae.PhaseStarted{InputCount: ae.Some(3)}})
		r.event(ae.Event{Scope: w, AgentID: "a", Payload: &ae.AgentStarted{}})
		r.feed("a", &ae.StepStarted{StepID: "s"}, &ae.ToolCalled{CallID: "c", ToolID: "Read"}, &ae.ToolReturned{CallID: "c", ToolID: "Read", Status: ae.ToolStatusOK},
			&ae.StepEnded{StepID: "s", Error: ae.Some(ae.ErrorInfo{Code: "timeout"})}, &ae.AgentEnded{})
		r.event(ae.Event{Scope: w, Payload: &ae.PhaseCompleted{}})
		r.feed("", &ae.RunCompleted{})
		return r
	}
	feed(spans.Options{}).want(t, lines("invoke_workflow n 0-9", "  invoke_workflow w 1-8", "    run_step find 1-8", "      invoke_agent a 2-7", "        run_step s 3-6 error=timeout", "          execute_tool Read 4-5"))
	feed(spans.Options{NoSteps: true}).want(t, lines("invoke_workflow n 0-9 +event +event", "  invoke_agent a 2-7 +event +event", "    execute_tool Read 4-5"))
}

func TestARunThatGoesOnAfterItsEndHasAnotherTrace(t *testing.T) {
	r := record(spans.Options{})
	r.feed("", &ae.RunStarted{Name: "n"}, &ae.RunPaused{})
	r.m.Release()
	r.feed("", &ae.RunResumed{})
	r.feed("a", &ae.AgentStarted{}, &ae.AgentEnded{})
	r.feed("", &ae.RunCompleted{})
	r.want(t, lines("invoke_workflow n 0-1 closed=paused +run.paused", "invoke_workflow n 2-5 +run.resumed ->", "  invoke_agent a 3-4"))
	first, second := r.begun[0], r.begun[1]
	require.NotEqual(t, first.TraceID, second.TraceID)
	require.Equal(t, first.ID, second.Links[0].SpanID)
	require.Equal(t, second.TraceID, r.begun[2].TraceID)
}

// TestOpenSpansAreInBothTraces: a root that is an agent's span ends with its trace, the agent goes on.
func TestOpenSpansAreInBothTraces(t *testing.T) {
	r := record(spans.Options{Recorded: true})
	r.feed("a", &ae.AgentStarted{}, &ae.ToolCalled{CallID: "c", ToolID: "Task"})
	r.event(ae.Event{AgentID: "b", ParentAgentID: "a", Payload: &ae.AgentStarted{}})
	r.event(ae.Event{AgentID: "d", ParentAgentID: "a", ParentCallID: "c", Payload: &ae.AgentStarted{}})
	r.feed("d", &ae.ModelCalled{ModelCallID: "m", Model: "x"})
	r.feed("", &ae.RunPaused{})
	r.event(ae.Event{TraceID: "0af7651916cd43dd8448eb211c80319c", Payload: &ae.RunResumed{}})
	r.feed("d", &ae.ModelReturned{ModelCallID: "m"})
	r.feed("a", &ae.ToolReturned{CallID: "c", ToolID: "Task", Status: ae.ToolStatusOK}, &ae.AgentEnded{})
	r.feed("", &ae.RunCompleted{})
	r.want(t, lines(
		"invoke_workflow 0-5 closed=paused +run.paused",
		"  invoke_agent a 0-4 closed=paused",
		"    execute_tool Task 1-4 closed=paused",
		"      invoke_agent d 3-4 closed=paused",
		"        chat x 4-4 closed=paused",
		"    invoke_agent b 2-2 closed=paused",
		"invoke_workflow 6-10 +run.resumed ->",
		"  invoke_agent a 0-9",
		"    execute_tool Task 1-8",
		"      invoke_agent d 3-7 closed=run_ended",
		"        chat x 4-7",
		"    invoke_agent b 2-6 closed=run_ended"))
	require.Zero(t, r.m.Unmatched)
}

func TestOpenSpansAreBounded(t *testing.T) {
	r := record(spans.Options{MaxOpen: 10})
	r.feed("a", &ae.AgentStarted{})
	for i := range 10_000 {
		r.feed("a", &ae.ToolCalled{CallID: fmt.Sprint(i), ToolID: "Read"})
		require.LessOrEqual(t, r.m.Open(), 11)
	}
	require.Equal(t, "evicted", r.begun[2].ClosedReason, "the oldest call goes first")
	r.m.Close(spans.ReasonShutdown)
	require.Equal(t, len(r.begun), r.ended)
}

func TestTheNewestPointsAreKept(t *testing.T) {
	r := record(spans.Options{})
	r.feed("a", &ae.AgentStarted{})
	for range 1000 {
		r.feed("a", &ae.TextCompleted{})
	}
	r.m.Close(spans.ReasonShutdown)
	s := r.begun[1]
	require.Len(t, s.Points, 128)
	require.Equal(t, 1000-128, s.DroppedPoints)
	require.EqualValues(t, 1000, s.Points[127].Sequence)
	require.Len(t, r.noted, 1000)
}

func TestDeltasCreateNothingAndCostNoMemory(t *testing.T) {
	r := record(spans.Options{})
	r.feed("a", &ae.AgentStarted{}, &ae.ToolCalled{CallID: "c", ToolID: "Read"})
	for _, p := range []ae.Payload{&ae.TextDelta{Delta: "x"}, &ae.AgentReasoningDelta{Delta: "x"}, &ae.ToolArgumentsDelta{CallID: "c", Delta: "x"}} {
		ev := ae.Event{RunID: "r", AgentID: "a", Sequence: 9, Time: t0, Payload: p}
		require.Zero(t, testing.AllocsPerRun(100, func() { r.m.Feed(&ev) }))
	}
	require.Len(t, r.begun, 3)
}

func TestContentIsLeftOut(t *testing.T) {
	const secret = "s3cr3t"
	feed := func(o spans.Options) string {
		r := record(o)
		info := ae.Some(ae.ErrorInfo{Message: secret})
		json := ae.JSONString(secret)
		r.feed("", &ae.RunStarted{Name: "n", Inputs: json})
		r.feed("a", &ae.AgentStarted{Task: secret, Prompt: json}, &ae.AgentReasoned{Reasoning: secret}, &ae.TextCompleted{Text: secret},
			&ae.ModelCalled{ModelCallID: "m", Request: json}, &ae.ModelReturned{ModelCallID: "m", Response: json, Error: info},
			&ae.ToolCalled{CallID: "c", ToolID: "Read", Arguments: json}, &ae.ApprovalRequested{ApprovalID: "p", Action: secret, Arguments: json},
			&ae.ApprovalRejected{ApprovalID: "p", RejectedBy: secret, Feedback: secret},
			&ae.ToolReturned{CallID: "c", ToolID: "Read", Status: ae.ToolStatusError, Result: json, Error: info},
			&ae.AuditChecked{CheckpointID: "x", Result: ae.AuditFail, Evidence: `{"e":"` + secret + `"}`}, &ae.IssueFound{Issue: secret},
			&ae.MessageCreated{Message: ae.ConversationMessage{Content: json}}, &ae.AgentErrored{ErrorType: "e", Message: secret},
			&ae.AgentEnded{Result: secret, Error: info})
		r.feed("", &ae.RunFailed{Error: info})
		var b strings.Builder
		for _, s := range r.begun {
			fmt.Fprintf(&b, "%s %s %v %v %v\n", s.Name, s.Description, s.Attributes, s.Points, s.Links)
		}
		return b.String()
	}
	require.NotContains(t, feed(spans.Options{}), secret)
	require.Contains(t, feed(spans.Options{Content: spans.InTrace(true)}), secret)
}

func TestContentThatIsTooLongStaysJSON(t *testing.T) {
	r := record(spans.Options{Content: spans.OnSpans, ContentBytes: 200})
	r.feed("a", &ae.AgentStarted{Task: strings.Repeat("\x01", 500)}, &ae.ToolCalled{CallID: "c", ToolID: "Read", Arguments: ae.JSONString(strings.Repeat("é<", 500))})
	r.m.Close(spans.ReasonShutdown)
	for i, k := range []string{"gen_ai.input.messages", "gen_ai.tool.call.arguments"} {
		text := attr(r.begun[i+1], k).(spans.Content).Text
		require.LessOrEqual(t, len(text), 200)
		_, err := ae.ToJSON(ae.JSON(text))
		require.NoError(t, err, text)
	}
}

// TestIdsAreTheSameEveryTime: derived ids depend on the log only, and recorded ones win.
func TestIdsAreTheSameEveryTime(t *testing.T) {
	feed := func(o spans.Options, stamp func(ev *ae.Event, s *spans.Span)) (ids []string) {
		r := record(o)
		for i, p := range []ae.Payload{&ae.RunStarted{Name: "n"}, &ae.AgentStarted{}, &ae.ToolCalled{CallID: "c", ToolID: "Read"}, &ae.ToolReturned{CallID: "c", Status: ae.ToolStatusOK},
			&ae.ToolCalled{CallID: "c", ToolID: "Read"}, &ae.ToolReturned{CallID: "c", Status: ae.ToolStatusOK}} {
			ev := ae.Event{AgentID: "a", Payload: p}
			if i == 0 {
				ev.AgentID = ""
			}
			stamp(&ev, nil)
			r.event(ev)
		}
		r.m.Close(spans.ReasonShutdown)
		for _, s := range r.begun {
			ids = append(ids, s.TraceID.String()+" "+s.ID.String())
		}
		slices.Sort(ids)
		require.Len(t, slices.Compact(slices.Clone(ids)), 4, "no two spans share an id")
		return ids
	}
	none := func(*ae.Event, *spans.Span) {}
	derived := feed(spans.Options{}, none)
	require.Equal(t, derived, feed(spans.Options{Recorded: true}, none))
	same := func(ev *ae.Event, _ *spans.Span) {
		ev.TraceID, ev.SpanID = strings.Repeat("ab", 16), strings.Repeat("cd", 8)
	}
	require.Equal(t, derived, feed(spans.Options{}, same), "not asked for")
	recorded := feed(spans.Options{Recorded: true}, same)
	for _, id := range recorded {
		require.True(t, strings.HasPrefix(id, strings.Repeat("ab", 16)))
	}
	require.Contains(t, recorded, strings.Repeat("ab", 16)+" "+strings.Repeat("cd", 8), "the first span has the recorded id, and no other")
}

// TestDerivedTraceIDsAreSampledAsOthers: a ratio sampler looks at bytes 8 to 15.
func TestDerivedTraceIDsAreSampledAsOthers(t *testing.T) {
	kept := 0
	for i := range 20_000 {
		id := spans.DeriveTraceID(fmt.Sprintf("01a1ffa6-0000-7000-8000-%012x", i), 0)
		x := uint64(0)
		for _, b := range id[8:] {
			x = x<<8 | uint64(b)
		}
		if x>>1 < (1<<63)/10 {
			kept++
		}
	}
	require.InDelta(t, 2000, kept, 400)
}

// TestAnEmittersLogIsOneTree: every log that the emitter accepts becomes one connected tree.
func TestAnEmittersLogIsOneTree(t *testing.T) {
	r := record(spans.Options{})
	em, err := ae.NewEmitter(ae.EmitterOptions{Lifecycle: ae.LifecycleDerived, Sinks: []ae.Sink{ae.SinkFunc(func(_ context.Context, ev ae.Event) error {
		r.m.Feed(&ev)
		return nil
	})}})
	require.NoError(t, err)
	run, err := em.Run("r")
	require.NoError(t, err)
	ctx := context.Background()
	a := run.Agent("a")
	require.NoError(t, a.Emit(ctx, &ae.AgentStarted{}))
	_, err = a.Do(ctx, &ae.ToolCalled{ToolID: "Read"}, func(context.Context) (ae.JSON, error) { return `"x"`, nil })
	require.NoError(t, err)
	require.NoError(t, a.Emit(ctx, &ae.AgentEnded{Outcome: ae.OutcomeConverged}))
	require.NoError(t, run.Emit(ctx, &ae.RunCompleted{}))
	require.Len(t, r.begun, 3)
	require.Zero(t, r.m.Open())
	require.Equal(t, r.begun[0], r.begun[1].Parent)
	require.Equal(t, r.begun[1], r.begun[2].Parent)
}

// TestAnythingMakesATree: whatever comes in whatever order, each trace has one root, all
// spans end once and not before they begin, and no two share an id.
func TestAnythingMakesATree(t *testing.T) {
	var kinds []ae.Kind
	for info := range ae.Kinds() {
		kinds = append(kinds, info.Kind)
	}
	kinds = append(kinds, "other.kind")
	for seed := range uint64(300) {
		rnd := rand.New(rand.NewPCG(seed, 0))
		pick := func(words ...string) string { return words[rnd.IntN(len(words))] }
		r := record(spans.Options{MaxOpen: 1 + rnd.IntN(20), Recorded: rnd.IntN(2) == 0, Content: spans.Capture(rnd.IntN(16)), NoSteps: rnd.IntN(4) == 0})
		for range 200 {
			p := ae.NewPayload(kinds[rnd.IntN(len(kinds))])
			switch p := p.(type) {
			case *ae.RunStarted:
				if rnd.IntN(2) == 0 {
					p.Agent = ae.Some(ae.AgentRef{AgentID: pick("a", "b")})
				}
			case *ae.ToolCalled:
				p.CallID = pick("1", "2", "3")
			case *ae.ToolReturned:
				p.CallID, p.OneEvent, p.Status = pick("1", "2", "3"), rnd.IntN(4) == 0, ae.ToolStatus(pick("ok", "error", "forbidden"))
				p.Duration = ae.Some(time.Duration(rnd.IntN(5)) * time.Second)
			case *ae.ModelCalled:
				p.ModelCallID = pick("1", "2")
			case *ae.ModelReturned:
				p.ModelCallID, p.OneEvent = pick("1", "2"), rnd.IntN(4) == 0
			case *ae.SpanRecorded:
				p.Subject, p.Phase, p.Duration = pick("judge", "route"), pick("start", "complete", "error", "progress"), ae.Some(time.Second)
			case *ae.AgentHandoff:
				p.To.AgentID = pick("a", "b", "c")
			}
			r.event(ae.Event{
				AgentID: pick("", "a", "b", "c"), ParentAgentID: pick("", "", "a", "b"), ParentCallID: pick("", "1"), Payload: p,
				Scope: ae.Scope{WorkflowID: pick("", "w"), Phase: pick("", "p", "q"), NodeID: pick("", "n")},
				Time:  t0.Add(time.Duration(rnd.IntN(400)) * time.Second), SpanID: pick("", strings.Repeat("ab", 8), strings.Repeat("cd", 8)),
			})
			if rnd.IntN(50) == 0 {
				r.m.Close(pick(spans.ReasonIdle, spans.ReasonEvicted))
			}
		}
		r.m.Release()
		require.Zero(t, r.m.Open())
		require.Len(t, r.begun, r.ended, "seed %d", seed)
		roots, ids := map[spans.TraceID]int{}, map[string]bool{}
		known := map[*spans.Span]bool{}
		for _, s := range r.begun {
			known[s] = true
			id := s.TraceID.String() + s.ID.String()
			require.False(t, ids[id], "seed %d: %s has the id of another span", seed, s.Name)
			ids[id] = true
			require.False(t, s.End.Before(s.Start), "seed %d: %s", seed, s.Name)
			if s.Parent == nil {
				roots[s.TraceID]++
			} else {
				require.True(t, known[s.Parent], "seed %d: %s", seed, s.Name)
				require.Equal(t, s.Parent.TraceID, s.TraceID, "seed %d: %s", seed, s.Name)
			}
		}
		for _, n := range roots {
			require.Equal(t, 1, n, "seed %d", seed)
		}
	}
}

// TestRootAgent maps the lines of KAOS that name no agent: their events belong to the run.
func TestRootAgent(t *testing.T) {
	read := func(agent string) string {
		r := record(spans.Options{})
		r.feed(agent, &ae.TurnStarted{Turn: ae.Some(1)}, &ae.StepStarted{StepID: "s"}, &ae.ToolCalled{CallID: "c", ToolID: "search"})
		r.event(ae.Event{AgentID: "reader", ParentAgentID: agent, Payload: &ae.AgentStarted{}})
		r.feed("reader", &ae.AgentEnded{})
		r.feed(agent, &ae.ToolReturned{CallID: "c", ToolID: "search", Status: ae.ToolStatusOK}, &ae.StepEnded{StepID: "s"}, &ae.TurnEnded{Turn: ae.Some(1)}, &ae.TurnSummarized{Text: "x"})
		require.Equal(t, len(r.begun), r.ended)
		return r.tree()
	}
	require.Equal(t, read(""), read("root"))

	r := record(spans.Options{}) // an agent of that name with a start of its own
	r.feed("root", &ae.AgentStarted{}, &ae.TurnStarted{}, &ae.TurnEnded{}, &ae.AgentEnded{})
	require.Contains(t, r.tree(), "invoke_agent root")
}
