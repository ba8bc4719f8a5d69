package resume_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	ae "github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/internal/scale"
	"github.com/agentevents/agentevents/resume"
)

// all yields events without errors.
func all(log []ae.Event) iter.Seq2[ae.Event, error] {
	return func(yield func(ae.Event, error) bool) {
		for _, ev := range log {
			if !yield(ev, nil) {
				return
			}
		}
	}
}

// conversation returns the messages of an agent, a line for each message and result.
func conversation(t *testing.T, log []ae.Event, agent string) []string {
	t.Helper()
	messages, err := resume.Conversation(all(log), "r", agent)
	require.NoError(t, err)
	return lines(t, messages)
}

func lines(t *testing.T, messages []resume.Message) (out []string) {
	t.Helper()
	for i, m := range messages {
		if m.Role == resume.RoleTool {
			calls := messages[i-1].Calls
			require.Len(t, m.Results, len(calls), "a result for each call")
			require.Equal(t, messages[i-1].Open, m.Open)
			for n, r := range m.Results {
				require.Equal(t, calls[n].ID, r.CallID)
				require.Equal(t, calls[n].Tool, r.Tool)
				line := fmt.Sprintf("  %s=%s", r.CallID, r.Status)
				if v := shown(r.Value); v != "" {
					line += " " + v
				}
				if r.Error.OK {
					line += " (" + r.Error.V.Message + ")"
				}
				out = append(out, line+suffix(r.Marks, false))
			}
			continue
		}
		line := string(m.Role) + ":"
		if m.Summary {
			line = "summary:"
		}
		for _, part := range []string{m.Text, string(m.JSON)} {
			if part != "" {
				line += " " + part
			}
		}
		if m.Reasoning != "" {
			line += " <" + m.Reasoning + ">"
		}
		for _, c := range m.Calls {
			line += fmt.Sprintf(" %s=%s(%s)%s", c.ID, c.Tool, shown(c.Arguments), suffix(c.Marks, false))
		}
		out = append(out, line+suffix(m.Marks, m.Open))
	}
	return out
}

// shown quotes texts with single quotes, so that they differ from JSON.
func shown(v resume.Value) string {
	if v.Text != "" {
		return "'" + v.Text + "'"
	}
	return string(v.JSON)
}

func suffix(m ae.Marks, open bool) (s string) {
	if m != 0 {
		s = " #" + m.String()
	}
	if open {
		s += " ..."
	}
	return s
}

// A script records the events of run r.
type script struct {
	t   *testing.T
	ctx context.Context
	run *ae.Run
	a   *ae.Agent // agent a, started
	log *[]ae.Event
}

func (s *script) emit(payloads ...ae.Payload) {
	s.t.Helper()
	for _, p := range payloads {
		require.NoError(s.t, s.a.Emit(s.ctx, p))
	}
}

// answer is a model call that answers with a text.
func (s *script) answer(text string) {
	s.t.Helper()
	call, err := s.a.Model(s.ctx, nil)
	require.NoError(s.t, err)
	require.NoError(s.t, call.Text(s.ctx, text))
	require.NoError(s.t, call.Return(s.ctx, nil))
}

func (s *script) call(id string, args ae.JSON) *ae.Call {
	s.t.Helper()
	call, err := s.a.Call(s.ctx, &ae.ToolCalled{CallID: id, ToolID: "t", Arguments: args})
	require.NoError(s.t, err)
	return call
}

func (s *script) returns(id string, result ae.JSON) {
	s.t.Helper()
	call := s.a.OpenCall(id)
	require.True(s.t, call.Recorded())
	require.NoError(s.t, call.Return(s.ctx, result))
}

func (s *script) says(text string) {
	s.t.Helper()
	content, err := ae.ToJSON(text)
	require.NoError(s.t, err)
	s.emit(&ae.MessageCreated{Message: ae.ConversationMessage{From: "user", Content: content}})
}

func perform(t *testing.T, play func(*script)) []ae.Event {
	t.Helper()
	var log []ae.Event
	run, err := newHost(t, &log).em.Run("r")
	require.NoError(t, err)
	s := &script{t, t.Context(), run, run.Agent("a"), &log}
	s.emit(&ae.AgentStarted{Task: "Fix it"})
	play(s)
	require.Empty(t, snapshot(t, log).Violations)
	return log
}

func TestConversation(t *testing.T) {
	for name, test := range map[string]struct {
		play func(*script)
		want []string // after the task
	}{
		"text comes before the return": {func(s *script) {
			m, _ := s.a.Model(s.ctx, nil)
			_ = m.Reason(s.ctx, "Hm.")
			_ = m.Text(s.ctx, "I ")
			_ = m.Text(s.ctx, "look.")
			_ = m.Arguments(s.ctx, "c1", `{"p"`)
			_ = m.Text(s.ctx, " Now.")
			_ = m.Return(s.ctx, nil)
			s.call("c1", `{"p": 1}`)
			s.returns("c1", `{"ok":true}`)
			s.answer("Done.")
		}, []string{`assistant: I look. Now. <Hm.> c1=t({"p":1})`, `  c1=ok {"ok":true}`, "assistant: Done."}},

		"a broken attempt is left out": {func(s *script) {
			m, _ := s.a.Model(s.ctx, nil)
			_ = m.Text(s.ctx, "I think th")
			s.call("c0", "0")
			s.returns("c0", "0")
			_ = m.Fail(s.ctx, errors.New("overloaded"))
			m, _ = m.Retry(s.ctx)
			_ = m.Text(s.ctx, "I think this.")
			_ = m.Return(s.ctx, nil)
		}, []string{"assistant: I think this."}},

		"an unanswered model call is left out": {func(s *script) {
			s.answer("One.")
			m, _ := s.a.Model(s.ctx, nil)
			_ = m.Text(s.ctx, "Tw")
			s.call("c1", "1")
		}, []string{"assistant: One."}},

		"an answer whose calls are not recorded is left out": {func(s *script) {
			for _, reasons := range [][]string{{"tool_calls"}, {"stop"}, {"TOOL_USE"}} {
				m, _ := s.a.Model(s.ctx, nil)
				_ = m.Text(s.ctx, "I stop: "+reasons[0])
				_ = m.Return(s.ctx, &ae.ModelReturned{FinishReasons: reasons})
				s.emit(&ae.AgentEnded{Outcome: ae.OutcomeAborted}, &ae.AgentStarted{Resumed: true})
			}
			m, _ := s.a.Model(s.ctx, nil)
			_ = m.Text(s.ctx, "Now.")
			_ = m.Return(s.ctx, &ae.ModelReturned{FinishReasons: []string{"tool_calls"}})
			s.call("c1", "1")
		}, []string{"assistant: I stop: stop", "assistant: Now. c1=t(1) ...", "  c1="}},

		"block ids repeat": {func(s *script) {
			s.emit(&ae.ModelCalled{ModelCallID: "m"}, &ae.TextDelta{BlockID: "b", Delta: "br"}, &ae.ModelReturned{ModelCallID: "m", Error: ae.Some(ae.ErrorInfo{Message: "cut"})})
			s.emit(&ae.ModelCalled{ModelCallID: "m"}, &ae.TextCompleted{BlockID: "b", Text: "whole"}, &ae.ModelReturned{ModelCallID: "m"})
			s.emit(&ae.ModelCalled{ModelCallID: "m"}, &ae.TextDelta{BlockID: "b", Delta: "de"}, &ae.TextDelta{BlockID: "b", Delta: "lta"}, &ae.ModelReturned{ModelCallID: "m"})
		}, []string{"assistant: whole", "assistant: delta"}},

		"a retry is folded into the first attempt": {func(s *script) {
			s.answer("Try.")
			first := s.call("call_0", `{"n":1}`)
			other := s.call("call_1", "2")
			_ = first.Fail(s.ctx, errors.New("busy"))
			second, _ := first.Retry(s.ctx)
			_ = second.Fail(s.ctx, errors.New("busy"))
			_ = other.Return(s.ctx, "4")
			third, _ := second.Retry(s.ctx)
			_ = third.Return(s.ctx, "3")
		}, []string{`assistant: Try. call_0=t({"n":1}) call_1=t(2)`, "  call_0=ok 3", "  call_1=ok 4"}},

		"the last attempt counts, also if it is open": {func(s *script) {
			first := s.call("c", "1")
			_ = first.Fail(s.ctx, errors.New("busy"))
			_, _ = first.Retry(s.ctx)
		}, []string{"assistant: c=t(1) ...", "  c="}},

		"a retry with the same id": {func(s *script) {
			_ = s.call("c", "1").Fail(s.ctx, errors.New("busy"))
			s.emit(&ae.ToolCalled{CallID: "c", ToolID: "t", Arguments: "1", Attempt: ae.Some(2)})
			s.returns("c", "7")
		}, []string{"assistant: c=t(1)", "  c=ok 7"}},

		"call ids repeat, and returns come in any order": {func(s *script) {
			for n := range 2 {
				s.answer(fmt.Sprint("Turn ", n))
				for i := range 3 {
					s.call(fmt.Sprint("call_", i), ae.JSON(fmt.Sprint(n, i)))
				}
				for _, i := range []int{2, 0, 1} {
					s.returns(fmt.Sprint("call_", i), ae.JSON(fmt.Sprintf(`"%d%d"`, n, i)))
				}
			}
		}, []string{
			"assistant: Turn 0 call_0=t('0 0') call_1=t('0 1') call_2=t('0 2')", `  call_0=ok "00"`, `  call_1=ok "01"`, `  call_2=ok "02"`,
			"assistant: Turn 1 call_0=t('1 0') call_1=t('1 1') call_2=t('1 2')", `  call_0=ok "10"`, `  call_1=ok "11"`, `  call_2=ok "12"`,
		}},

		"calls one after the other are of one answer": {func(s *script) {
			s.answer("Both.")
			s.call("c1", "1")
			s.returns("c1", "1")
			s.call("c2", "2")
			s.returns("c2", "2")
		}, []string{"assistant: Both. c1=t(1) c2=t(2)", "  c1=ok 1", "  c2=ok 2"}},

		"how calls end": {func(s *script) {
			s.answer("All.")
			_ = s.call("e", "1").Fail(s.ctx, &ae.ToolError{Result: `"half"`, Err: errors.New("no file")})
			_ = s.call("c", "1").Fail(s.ctx, context.Canceled)
			_ = s.call("i", "1").End(s.ctx, &ae.ToolReturned{Status: ae.ToolStatusInterrupted})
			s.emit(&ae.ToolReturned{CallID: "f", ToolID: "t", Status: ae.ToolStatusForbidden, Error: ae.Some(ae.ErrorInfo{Message: "no"})})
			s.emit(&ae.ToolReturned{CallID: "w", ToolID: "t", Status: ae.ToolStatusOK, OneEvent: true, Arguments: "1", Result: "one event"})
			s.call("o", "1")
		}, []string{
			"assistant: All. e=t(1) c=t(1) i=t(1) f=t() w=t(1) o=t(1) ...",
			`  e=error "half" (no file)`, "  c=cancelled (context canceled)", "  i=interrupted", "  f=forbidden (no)", "  w=ok 'one event'", "  o=",
		}},

		"text and JSON": {func(s *script) {
			for i, v := range []ae.JSON{"package main", `"package main"`, `{"a": 1}`, ae.JSONOrString("package main"), "null", ""} {
				s.call(fmt.Sprint(i), v)
				s.returns(fmt.Sprint(i), v)
			}
		}, []string{
			"assistant: 0=t('package main')", "  0=ok 'package main'", `assistant: 1=t("package main")`, `  1=ok "package main"`,
			`assistant: 2=t({"a":1})`, `  2=ok {"a":1}`, `assistant: 3=t("package main")`, `  3=ok "package main"`,
			"assistant: 4=t(null)", "  4=ok null", "assistant: 5=t()", "  5=ok",
		}},

		"masked": {func(s *script) {
			s.says("my password=hunter22")
			s.call("c", `{"password":"hunter22"}`)
			s.returns("c", "token: ghp_0123456789abcdefghijABCDEFGHIJ012345")
		}, []string{
			"user: my password=[REDACTED:key] #redacted", `assistant: c=t({"password":"[REDACTED:key]"}) #redacted`, "  c=ok 'token: [REDACTED:key]' #redacted",
		}},

		"a compaction": {func(s *script) {
			s.answer("Old.")
			s.call("c1", "1")
			s.returns("c1", "1")
			m, _ := s.a.Model(s.ctx, nil)
			_ = m.Text(s.ctx, "They did it.")
			_ = m.Return(s.ctx, nil)
			s.emit(&ae.ContextCompacted{Summary: "They did it."})
			s.says("Go on")
			s.answer("New.")
			s.call("c1", "2")
			s.returns("c1", "2")
		}, []string{"summary: They did it.", "user: Go on", "assistant: New. c1=t(2)", "  c1=ok 2"}},

		"a compaction without a summary": {func(s *script) {
			s.answer("Old.")
			s.emit(&ae.ContextCompacted{})
			s.answer("New.")
		}, []string{"assistant: Old.", "assistant: New."}},

		"a compaction beside an open call": {func(s *script) {
			s.answer("Old.")
			s.answer("Both.")
			s.call("c1", "1")
			failed := s.call("c2", "2")
			s.emit(&ae.ContextCompacted{Summary: "Sum."})
			s.returns("c1", "1")
			_ = failed.Fail(s.ctx, errors.New("no"))
			s.answer("New.")
		}, []string{"summary: Sum.", "assistant: Both. c1=t(1) c2=t(2)", "  c1=ok 1", "  c2=error (no)", "assistant: New."}},

		"two compactions beside an open call": {func(s *script) {
			s.answer("One.")
			s.call("c1", "1")
			s.answer("Two.")
			failed := s.call("c2", "2")
			s.emit(&ae.ContextCompacted{Summary: "Sum 1."})
			_ = failed.Fail(s.ctx, errors.New("no"))
			s.answer("Three.")
			s.emit(&ae.ContextCompacted{Summary: "Sum 2."})
			again, _ := failed.Retry(s.ctx)
			_ = again.Return(s.ctx, "2")
			s.returns("c1", "1")
		}, []string{"summary: Sum 2.", "assistant: One. c1=t(1)", "  c1=ok 1"}},

		"a compaction in the middle of an answer": {func(s *script) {
			m, _ := s.a.Model(s.ctx, nil)
			_ = m.Text(s.ctx, "Sum.")
			_ = m.Reason(s.ctx, "That was it.")
			s.emit(&ae.ContextCompacted{Summary: "Sum."})
			_ = m.Text(s.ctx, "New.")
			_ = m.Return(s.ctx, nil)
		}, []string{"summary: Sum.", "assistant: New."}},

		"a model call for something else": {func(s *script) {
			s.answer("One.")
			s.call("c1", "1")
			m, _ := s.a.Model(s.ctx, &ae.ModelCalled{Operation: "compaction"})
			_ = m.Text(s.ctx, "They did it.")
			s.call("c2", "2")
			_ = m.Return(s.ctx, nil)
		}, []string{"assistant: One. c1=t(1) c2=t(2) ...", "  c1=", "  c2="}},

		"prompts of people": {func(s *script) {
			s.answer("One.")
			s.says("Faster")
			s.emit(&ae.MessageCreated{Message: ae.ConversationMessage{MessageID: "m1", From: "user", Role: "system", Content: `{"be":"brief"}`}})
			require.NoError(s.t, s.run.Emit(s.ctx, &ae.MessageCreated{Message: ae.ConversationMessage{MessageID: "m1", From: "user", Role: "system", Content: `{"be":"brief"}`}}))
			require.NoError(s.t, s.run.Emit(s.ctx, &ae.MessageCreated{Message: ae.ConversationMessage{From: "user", Content: `"All of you"`}}))
			require.NoError(s.t, s.run.Emit(s.ctx, &ae.MessageCreated{Message: ae.ConversationMessage{From: "b", To: "a", Content: `"From b"`}}))
			require.NoError(s.t, s.run.Emit(s.ctx, &ae.MessageCreated{Message: ae.ConversationMessage{From: "b", To: "c", Content: `"To c"`}}))
			s.emit(&ae.MessageCreated{Message: ae.ConversationMessage{To: "user", Content: `"From a"`}})
			for _, id := range []string{"x1", "x2"} {
				_, err := s.a.Record(s.ctx, ae.Event{ID: id, Payload: &ae.CommandReceived{Command: ae.Command{Type: ae.CommandSend, RunID: "n", Message: "send " + id}}})
				require.NoError(s.t, err)
			}
			s.emit(&ae.CommandConsumed{EventID: "x2"})
			for _, call := range []string{"", "c"} {
				id := "q" + call
				s.emit(&ae.ClarificationRequested{InterruptID: id, CallID: call})
				require.NoError(s.t, s.run.Emit(s.ctx, &ae.ClarificationResolved{InterruptID: id, Answers: ae.JSON(`{"x":"` + id + `"}`)}))
			}
		}, []string{"assistant: One.", "user: Faster", `system: {"be":"brief"}`, "user: All of you", "user: From b", "user: send x2", `user: {"x":"q"}`}},

		"a prompt during an answer": {func(s *script) {
			m, _ := s.a.Model(s.ctx, nil)
			_ = m.Text(s.ctx, "One.")
			s.says("Faster")
			_ = m.Return(s.ctx, nil)
			m, _ = s.a.Model(s.ctx, nil)
			s.says("Stop")
			_ = m.Text(s.ctx, "Tw")
		}, []string{"assistant: One.", "user: Faster", "user: Stop ..."}},

		"without model calls": {func(s *script) {
			s.emit(&ae.AgentReasoned{Reasoning: "Hm."}, &ae.TextCompleted{Text: "One."})
			s.call("c1", "1")
			s.call("c2", "2")
			s.returns("c2", "2")
			s.returns("c1", "1")
			s.call("c3", "3")
			s.returns("c3", "3")
			s.emit(&ae.TextDelta{BlockID: "x", Delta: "Tw"}, &ae.TextDelta{BlockID: "x", Delta: "o."})
			s.emit(&ae.TextDelta{BlockID: "y", Delta: "Thr"}, &ae.TextCompleted{BlockID: "y", Text: "Three."})
			s.says("More")
			s.emit(&ae.TextDelta{Delta: "Four."}, &ae.TextCompleted{Text: "Four."}, &ae.TextDelta{Delta: "Fi"})
		}, []string{"assistant: One. <Hm.> c1=t(1) c2=t(2)", "  c1=ok 1", "  c2=ok 2", "assistant: c3=t(3)", "  c3=ok 3", "assistant: Two.", "assistant: Three.", "user: More", "assistant: Four."}},

		"deltas that something else follows": {func(s *script) {
			s.emit(&ae.TextDelta{BlockID: "x", Delta: "One."})
			s.call("c", "1")
			s.emit(&ae.TextCompleted{BlockID: "x", Text: "One."}, &ae.ModelCalled{ModelCallID: "m"}, &ae.TextDelta{BlockID: "y", Delta: "Two."}, &ae.ModelReturned{ModelCallID: "m"})
			s.emit(&ae.TextCompleted{BlockID: "y", Text: "Two."}, &ae.AgentReasoningDelta{Delta: "Hm."}, &ae.TextDelta{BlockID: "z", Delta: "Th"})
		}, []string{"assistant: One. c=t(1) ...", "  c=", "assistant: Two.", "assistant: <Hm.>"}},

		"text after the return of its model call": {func(s *script) {
			s.emit(&ae.ModelCalled{ModelCallID: "m"}, &ae.ModelReturned{ModelCallID: "m"}, &ae.TextCompleted{Text: "Both."})
			for range 2 {
				s.call("c", "1")
				s.returns("c", "1")
			}
		}, []string{"assistant: Both. c=t(1) c=t(1)", "  c=ok 1", "  c=ok 1"}},

		"a compaction in the middle of a block": {func(s *script) {
			m, _ := s.a.Model(s.ctx, nil)
			_ = m.Text(s.ctx, "Old.")
			s.call("c1", "1")
			s.call("c2", "2")
			s.returns("c1", "1")
			s.emit(&ae.ContextCompacted{Summary: "Sum."})
			_ = m.Text(s.ctx, "New.")
			_ = m.Return(s.ctx, nil)
		}, []string{"summary: Sum.", "assistant: New. c1=t(1) c2=t(2) ...", "  c1=ok 1", "  c2="}},

		"model calls that are one event": {func(s *script) {
			s.emit(&ae.TextCompleted{Text: "One."}, &ae.ModelReturned{OneEvent: true})
			s.call("c1", "1")
			s.returns("c1", "1")
			s.call("c2", "2")
			s.returns("c2", "2")
			s.emit(&ae.ModelReturned{OneEvent: true})
			s.call("c3", "3")
			s.returns("c3", "3")
		}, []string{"assistant: One. c1=t(1) c2=t(2)", "  c1=ok 1", "  c2=ok 2", "assistant: c3=t(3)", "  c3=ok 3"}},

		"model calls overlap": {func(s *script) {
			first, _ := s.a.Model(s.ctx, nil)
			_ = first.Text(s.ctx, "One.")
			s.says("And?")
			second, _ := s.a.Model(s.ctx, nil)
			_ = second.Text(s.ctx, "Two.")
			_ = second.Return(s.ctx, nil)
			_ = first.Return(s.ctx, nil)
		}, []string{"user: And?", "assistant: Two.", "assistant: One."}},

		"retracted": {func(s *script) {
			s.answer("One.")
			_, err := s.a.Record(s.ctx, ae.Event{ID: "e1", Payload: &ae.TextCompleted{Text: "Refused."}})
			require.NoError(s.t, err)
			_, err = s.a.Record(s.ctx, ae.Event{ID: "e2", Payload: &ae.ToolReturned{CallID: "c", ToolID: "t", OneEvent: true, Status: ae.ToolStatusOK}})
			require.NoError(s.t, err)
			_, err = s.a.Record(s.ctx, ae.Event{ID: "e3", Payload: &ae.MessageCreated{Message: ae.ConversationMessage{From: "user", Content: "1"}}})
			require.NoError(s.t, err)
			s.emit(&ae.EventRetracted{EventIDs: []string{"e1", "e2", "e3"}})
		}, []string{"assistant: One."}},
	} {
		t.Run(name, func(t *testing.T) {
			got := conversation(t, perform(t, test.play), "a")
			if len(test.want) == 0 || !strings.HasPrefix(test.want[0], "summary:") {
				test.want = append([]string{"user: Fix it"}, test.want...)
			}
			require.Equal(t, test.want, got)
		})
	}
}

func TestStartsOfAConversation(t *testing.T) {
	log := perform(t, func(s *script) {
		s.answer("One.")
		m, _ := s.a.Model(s.ctx, nil)
		_ = m.Text(s.ctx, "Tw")
		s.emit(&ae.AgentStarted{Task: "Fix it", Resumed: true})
		s.answer("Two.")
		require.NoError(s.t, s.run.Emit(s.ctx, &ae.RunPaused{}))
		require.NoError(s.t, s.run.Emit(s.ctx, &ae.RunResumed{Message: "go on"}))
		s.emit(&ae.AgentStarted{Task: "Fix it"})
		s.answer("Three.")
		s.emit(&ae.AgentEnded{})
		s.emit(&ae.AgentStarted{Task: "more", Prompt: `"Do more"`}, &ae.AgentEnded{})
		s.emit(&ae.AgentStarted{Task: "more", Prompt: `[{"role":"user"}]`})
	})
	require.Equal(t, []string{
		"user: Fix it", "assistant: One.", "assistant: Two.", "user: go on", "assistant: Three.", "user: Do more", `user: [{"role":"user"}]`,
	}, conversation(t, log, "a"))
}

// A process dies, and the next one goes on by a plan.
func TestConversationAfterAPlan(t *testing.T) {
	log := perform(t, func(s *script) {
		s.answer("Both.")
		s.call("c1", "1")
		s.call("c2", "2")
		s.returns("c1", "1")
		_, _ = s.a.Call(s.ctx, &ae.ToolCalled{CallID: "c3", ToolID: "t"})
	})
	require.Equal(t, []string{"user: Fix it", "assistant: Both. c1=t(1) c2=t(2) c3=t() ...", "  c1=ok 1", "  c2=", "  c3="}, conversation(t, log, "a"))
	p, err := resume.New(snapshot(t, log), resume.Options{Message: "go on"})
	require.NoError(t, err)
	run, err := newHost(t, &log).em.Resume(p.Snapshot)
	require.NoError(t, err)
	_, err = p.Apply(t.Context(), run)
	require.NoError(t, err)
	require.NoError(t, run.Agent("a").Emit(t.Context(), &ae.AgentStarted{Task: "Fix it", Resumed: true}))
	require.Equal(t, []string{
		"user: Fix it", "assistant: Both. c1=t(1) c2=t(2) c3=t()", "  c1=ok 1", "  c2=interrupted", "  c3=interrupted", "user: go on",
	}, conversation(t, log, "a"))
}

// Each agent has its own conversation. A message to a run is for the agents that no other agent has
// started.
func TestConversationsOfSubAgents(t *testing.T) {
	var log []ae.Event
	run, err := newHost(t, &log).em.Run("r")
	require.NoError(t, err)
	hello := func(text string) {
		content, _ := ae.ToJSON(text)
		require.NoError(t, run.Emit(t.Context(), &ae.MessageCreated{Message: ae.ConversationMessage{From: "user", Content: content}}))
	}
	hello("Hello")
	to := &ae.MessageCreated{Message: ae.ConversationMessage{From: "user", To: "b", Content: `"To b"`}}
	require.NoError(t, run.Emit(t.Context(), to))
	s := &script{t, t.Context(), run, run.Agent("a"), &log}
	s.emit(&ae.AgentStarted{Task: "Fix it"}, &ae.ModelCalled{ModelCallID: "m"}, &ae.TextCompleted{Text: "I ask b."}, &ae.ModelReturned{ModelCallID: "m"})
	call := s.call("c", "1")
	b := &script{t, t.Context(), run, call.Agent("b"), &log}
	b.emit(&ae.AgentStarted{Task: "Help"}, &ae.ContextCompacted{Summary: "Nothing yet."})
	hello("Faster")
	b.answer("Helped.")
	b.call("c", "2")
	b.returns("c", "3")
	s.returns("c", "4")
	require.Equal(t, []string{"user: Hello", "user: Fix it", "assistant: I ask b. c=t(1)", "  c=ok 4", "user: Faster"}, conversation(t, log, "a"))
	require.Equal(t, []string{"summary: Nothing yet.", "assistant: Helped. c=t(2)", "  c=ok 3"}, conversation(t, log, "b"))
	require.Equal(t, []string{"user: To b", "user: Help"}, conversation(t, log[:slices.IndexFunc(log, func(ev ae.Event) bool { return ev.Kind() == ae.KindContextCompacted })], "b"))
	require.Empty(t, conversation(t, log, "c"))
}

// A command to the execution of a node is for the agent of the node.
func TestCommandsOfANode(t *testing.T) {
	var log []ae.Event
	run, err := newHost(t, &log).em.Run("r")
	require.NoError(t, err)
	_, err = run.Record(t.Context(), ae.Event{ID: "x1", Payload: &ae.CommandReceived{Command: ae.Command{Type: ae.CommandSend, RunID: "n-1", Message: "early"}}})
	require.NoError(t, err)
	_, err = run.Record(t.Context(), ae.Event{ID: "x2", Payload: &ae.CommandReceived{Command: ae.Command{Type: ae.CommandSend, RunID: "n-2", Message: "other"}}})
	require.NoError(t, err)
	require.NoError(t, run.With(ae.Scope{NodeID: "n", NodeRunID: "n-1"}).Agent("a").Emit(t.Context(), &ae.AgentStarted{}))
	for _, id := range []string{"x1", "x2", "x1"} {
		require.NoError(t, run.Emit(t.Context(), &ae.CommandConsumed{EventID: id}))
	}
	require.Equal(t, []string{"user: early"}, conversation(t, log, "a"))
}

func TestConversationPassesOver(t *testing.T) {
	log := perform(t, func(s *script) { s.answer("One.") })
	other := slices.Clone(log)
	for i := range other {
		other[i].RunID = "s"
	}
	twice := slices.Concat(log[:3], other, log, log)
	require.Equal(t, []string{"user: Fix it", "assistant: One."}, conversation(t, twice, "a"))

	torn := errors.New("torn")
	messages, err := resume.Conversation(func(yield func(ae.Event, error) bool) {
		for _, ev := range log {
			_ = yield(ae.Event{}, torn) && yield(ev, nil)
		}
	}, "r", "a")
	require.ErrorIs(t, err, torn)
	require.Equal(t, []string{"user: Fix it", "assistant: One."}, lines(t, messages))
}

// A value that was cut is marked.
func TestConversationOfCutValues(t *testing.T) {
	var log []ae.Event
	em, err := ae.NewEmitter(ae.EmitterOptions{MaxLine: 8192, Sinks: []ae.Sink{ae.SinkFunc(func(_ context.Context, ev ae.Event) error {
		log = append(log, ev)
		return nil
	})}})
	require.NoError(t, err)
	run, err := em.Run("r")
	require.NoError(t, err)
	s := &script{t, t.Context(), run, run.Agent("a"), &log}
	long := strings.Repeat("x ", 9000)
	s.emit(&ae.AgentStarted{})
	s.answer(long)
	s.call("c", ae.JSON(long))
	s.returns("c", "1")
	messages, err := resume.Conversation(all(log), "r", "a")
	require.NoError(t, err)
	require.Len(t, messages, 2)
	require.Equal(t, ae.MarkSanitized, messages[0].Marks)
	require.Contains(t, messages[0].Text, "[TRUNCATED:")
	args := messages[0].Calls[0]
	require.Equal(t, ae.MarkSanitized, args.Marks)
	require.Contains(t, args.Arguments.JSON, "truncated")
	require.Zero(t, messages[1].Results[0].Marks)
	require.Equal(t, string(args.Arguments.JSON), args.Arguments.String())
}

// Writing and reading a log changes no conversation.
func TestConversationOfALog(t *testing.T) {
	log := perform(t, func(s *script) {
		s.answer("One.")
		s.call("c", "package main")
		s.returns("c", "package main")
		s.emit(&ae.ContextCompacted{Summary: "Sum."})
		s.call("d", "package main")
	})
	var text []byte
	for _, ev := range log {
		var err error
		text, err = ev.AppendJSON(text)
		require.NoError(t, err)
		text = append(text, '\n')
	}
	messages, err := resume.Conversation(ae.NewReader(strings.NewReader(string(text)), ae.ReaderOptions{}).All(), "r", "a")
	require.NoError(t, err)
	require.Equal(t, conversation(t, log, "a"), lines(t, messages))
	require.Equal(t, "package main", messages[1].Calls[0].Arguments.String())
}

// A conversation takes time in proportion to the events, also if there are very many of
// one thing.
func TestConversationIsLinear(t *testing.T) {
	called := func(id string) ae.Payload { return &ae.ToolCalled{CallID: id, ToolID: "t"} }
	returned := func(id string) ae.Payload {
		return &ae.ToolReturned{CallID: id, ToolID: "t", Status: ae.ToolStatusOK, Result: "1"}
	}
	for name, test := range map[string]struct {
		round func(id, before string) []ae.Payload
		want  int // messages for each 100 rounds
	}{
		"answers": {func(id, _ string) []ae.Payload {
			return []ae.Payload{
				&ae.ModelCalled{ModelCallID: id}, &ae.TextDelta{BlockID: id, Delta: "some "}, &ae.TextDelta{BlockID: id, Delta: "words"}, &ae.ModelReturned{ModelCallID: id},
				called("c"), &ae.ToolReturned{CallID: "c", ToolID: "t", Status: ae.ToolStatusError}, &ae.ToolCalled{CallID: id, ToolID: "t", RetryOf: "c"}, returned(id),
			}
		}, 200},
		"calls of a message": {func(id, before string) []ae.Payload { return []ae.Payload{called(id), returned(before)} }, 0},
		"compactions":        {func(id, _ string) []ae.Payload { return []ae.Payload{called(id), &ae.ContextCompacted{Summary: "s"}} }, 200},
		"blocks of an answer": {func(id, _ string) []ae.Payload {
			return []ae.Payload{&ae.TextDelta{BlockID: id, Delta: "a"}, &ae.TextDelta{BlockID: "b" + id, Delta: "a"}, &ae.ContextCompacted{Summary: "s"}}
		}, 0},
		"lost model calls": {func(id, _ string) []ae.Payload { return []ae.Payload{&ae.ModelCalled{ModelCallID: id}, called(id)} }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			scale.Linear(t, 2000, func(rounds int) func() {
				var log []ae.Event
				add := func(p ae.Payload) {
					n := len(log)
					log = append(log, ae.Event{ID: fmt.Sprint("e", n), Sequence: uint64(n), RunID: "r", AgentID: "a", Payload: p})
				}
				if name == "blocks of an answer" {
					add(&ae.ModelCalled{ModelCallID: "m"})
				}
				for i := range rounds {
					for _, p := range test.round(fmt.Sprint(i), fmt.Sprint(i-1)) {
						add(p)
					}
				}
				return func() {
					messages, err := resume.Conversation(all(log), "r", "a")
					require.NoError(t, err)
					require.InDelta(t, test.want*rounds/100, len(messages), 2)
				}
			})
		})
	}
}
