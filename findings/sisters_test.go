package findings_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/findings"
	"github.com/agentevents/agentevents/internal/effort"
)

func (s *script) errored(agent string, severity agentevents.Severity, message string) {
	s.emit(agent, &agentevents.AgentErrored{ErrorType: "overloaded", Severity: severity, Message: message})
}

// gone ends an agent and its run with an error.
func (s *script) gone(agent, message string) {
	failed := agentevents.ErrorInfo{Message: message}
	s.emit(agent, &agentevents.AgentEnded{Outcome: agentevents.OutcomeAborted, Error: agentevents.Some(failed)})
	s.emit("", &agentevents.RunFailed{Error: agentevents.Some(failed)})
}

// sisters are runs in which requests to a model fail, and calls whose ids come again.
var sisters = []struct {
	name string
	want string // the text of the only finding
	run  func(*script)
}{
	{"a program that tries again and gives up", "a had 3 errors in a row without an answer of the model between, the last one: high demand", func(s *script) {
		s.start("a")
		s.errored("a", agentevents.SeverityWarning, "again, 1/2 (high demand)")
		s.errored("a", agentevents.SeverityWarning, "again, 2/2 (high demand)")
		s.gone("a", "high demand")
	}},
	{"a program that finds a loop itself", "the program stopped a because it went round in circles: the same answer again", func(s *script) {
		s.start("a")
		s.emit("a", &agentevents.AgentErrored{ErrorType: findings.LoopDetected, Message: "the same answer again"})
		s.gone("a", "the same answer again")
	}},
	{"the end repeats the last error", "", func(s *script) {
		s.start("a")
		s.errored("a", "", "the request took 20 s")
		s.errored("a", "", "out of memory")
		s.gone("a", "out of memory")
	}},
	{"one request that fails", "", func(s *script) {
		s.start("a")
		s.errored("a", "", "no such model")
		s.gone("a", "the model cannot be reached")
	}},
	{"a program that tries again seven times, and is answered", "", func(s *script) {
		s.start("a")
		for i := range 7 {
			s.errored("a", agentevents.SeverityWarning, fmt.Sprintf("overloaded, attempt %d", i))
		}
		s.model("a", 10)
		s.done("a")
	}},
	{"a program that tries again and again", "a had 9 errors in a row without an answer of the model between, the last one: overloaded, attempt 8", func(s *script) {
		s.start("a")
		for i := range 9 {
			s.errored("a", agentevents.SeverityWarning, fmt.Sprintf("overloaded, attempt %d", i))
		}
		s.emit("a", &agentevents.TextCompleted{Text: "an answer"})
		s.errored("a", agentevents.SeverityWarning, "overloaded")
		s.done("a")
	}},
	{"errors that are no warnings", "a had 4 errors in a row without an answer of the model between, the last one: error e", func(s *script) {
		s.start("a")
		s.errored("a", "", "error a")
		s.call("a", "Read", `{"path":"f"}`, "text")
		for _, word := range []string{"b", "c", "d", "e"} {
			s.errored("a", agentevents.SeverityError, "error "+word)
		}
		s.done("a")
	}},
	{"an error between each of many answers", "", func(s *script) {
		s.start("a")
		for i := range 12 {
			s.errored("a", agentevents.SeverityWarning, "the limit is near")
			s.emit("a", &agentevents.TextCompleted{Text: fmt.Sprintf("answer %d", i)})
		}
		s.gone("a", "the limit is reached")
	}},
	{"the agent repeats the errors of its model calls", "3 model calls of a failed in a row, the last one: overloaded", func(s *script) {
		s.start("a")
		for range 3 {
			s.modelFails("a", "overloaded")
			s.errored("a", "", "the model failed: overloaded")
		}
		s.gone("a", "no answer of the model")
	}},
	{"two model calls that fail, and the end", "", func(s *script) {
		s.start("a")
		s.modelFails("a", "overloaded")
		s.modelFails("a", "overloaded")
		s.gone("a", "overloaded")
	}},
	{"a user who stops it", "", func(s *script) {
		s.start("a")
		s.errored("a", agentevents.SeverityWarning, "again")
		s.errored("a", agentevents.SeverityWarning, "again")
		stopped := agentevents.ErrorInfo{Code: "cancelled", Message: "stopped"}
		s.emit("a", &agentevents.AgentEnded{Outcome: agentevents.OutcomeAborted, Error: agentevents.Some(stopped)})
	}},
	{"a transition before the message of a user", "", func(s *script) {
		s.start("a")
		s.model("a", 10)
		s.emit("a", &agentevents.TextCompleted{Text: "Shall I go on?"})
		s.wait(90 * time.Minute)
		s.emit("a", &agentevents.AgentTransition{From: "response", To: "thinking"})
		s.events[len(s.events)-1].Marks = agentevents.MarkSynthetic
		s.emit("a", &agentevents.MessageCreated{Message: agentevents.ConversationMessage{MessageID: "m1", From: "user", Role: "user", Content: `"yes"`}})
		s.done("a")
	}},
	{"a transition before an act of the agent", "nothing happened for 1h30m, and nothing was waited for", func(s *script) {
		s.start("a")
		s.model("a", 10)
		s.wait(90 * time.Minute)
		s.emit("a", &agentevents.AgentTransition{From: "thinking", To: "tool_call"})
		s.events[len(s.events)-1].Marks = agentevents.MarkSynthetic
		s.at = s.at.Add(-time.Second)
		s.call("a", "Read", `{"path":"f"}`, "text")
		s.done("a")
	}},
	{"calls that share an id, one after the other", "", func(s *script) {
		s.start("a")
		for i := range 8 {
			s.emit("a", &agentevents.ToolCalled{CallID: "same", ToolID: "Read", Arguments: agentevents.JSON(fmt.Sprintf(`{"path":"f%d"}`, i))})
			s.close("a", "Read", "same", "text")
		}
		s.done("a")
	}},
	{"a loop of calls that share an id", "a made the same call of Read (f) 3 times in a row and got the same result", func(s *script) {
		s.start("a")
		for range 3 {
			s.emit("a", &agentevents.ToolCalled{CallID: "same", ToolID: "Read", Arguments: `{"path":"f"}`})
			s.close("a", "Read", "same", "text")
		}
		s.done("a")
	}},
}

func TestSistersOfThePatterns(t *testing.T) {
	for _, one := range sisters {
		t.Run(one.name, func(t *testing.T) {
			s := newScript()
			one.run(s)
			f := findings.New(findings.Options{})
			for i := range s.events {
				f.Add(&s.events[i])
			}
			var texts []string
			for _, one := range f.Findings() {
				texts = append(texts, one.Text)
				require.Len(t, one.Sequences, one.Count)
			}
			if one.want == "" {
				require.Empty(t, texts)
				return
			}
			require.Equal(t, []string{one.want}, texts)
		})
	}
}

// A disguise adds events to a pattern that make no difference to it. Without after, calls are one event.
type disguise struct {
	name  string
	after func(r *rand.Rand, ev *agentevents.Event, n int) []agentevents.Event // n counts the events
	but   string                                                               // pattern that it makes another
}

var disguises = []disguise{
	{"pieces and transitions", func(r *rand.Rand, ev *agentevents.Event, n int) []agentevents.Event {
		return []agentevents.Event{
			{AgentID: ev.AgentID, Payload: &agentevents.TextDelta{BlockID: fmt.Sprint(n), Delta: "piece"}},
			{AgentID: ev.AgentID, Payload: &agentevents.AgentTransition{From: "thinking", To: "tool_call"}},
			{AgentID: ev.AgentID, Payload: &agentevents.AgentReasoned{Reasoning: fmt.Sprint("thought ", r.Int())}},
		}[:r.IntN(4)]
	}, ""},
	{"events that come again", func(r *rand.Rand, ev *agentevents.Event, _ int) []agentevents.Event {
		return slices.Repeat([]agentevents.Event{*ev}, r.IntN(3))
	}, ""},
	{"another agent that gets on", func(_ *rand.Rand, ev *agentevents.Event, n int) []agentevents.Event {
		if ev.AgentID == "" {
			return nil
		}
		id := fmt.Sprintf("x%d", n)
		return []agentevents.Event{
			{AgentID: "x", Payload: &agentevents.ToolCalled{CallID: id, ToolID: "Read", Arguments: agentevents.JSON(fmt.Sprintf(`{"path":"x%d"}`, n))}},
			{AgentID: "x", Payload: &agentevents.ToolReturned{CallID: id, ToolID: "Read", Status: "ok", Result: agentevents.JSON(fmt.Sprint(n))}},
		}
	}, "two agents hand over in turn"}, // the run gets on
	{"calls of one event", nil, ""},
}

// Each pattern is told apart in any disguise.
func TestPatternsInDisguise(t *testing.T) {
	seed := effort.Seed(t)
	for _, d := range disguises {
		for _, p := range patterns {
			if p.name == d.but {
				continue
			}
			for n := range effort.Of(1, 5, 200) {
				s := newScript()
				p.run(s)
				events := s.events
				if d.after == nil {
					events = oneEvents(events)
				} else {
					r := rand.New(rand.NewPCG(seed, uint64(n)))
					events = nil
					for i := range s.events {
						events = append(events, d.put(r, &s.events[i], i)...)
					}
				}
				f := findings.New(p.o)
				for i := range events {
					ev := events[i]
					f.Add(&ev)
				}
				var kinds []findings.Kind
				for _, one := range f.Findings() {
					kinds = append(kinds, one.Kind)
				}
				require.Equal(t, p.want, kinds, "%s with %s, %d", p.name, d.name, n)
			}
		}
	}
}

// put returns an event and after it the events of the disguise.
func (d *disguise) put(r *rand.Rand, ev *agentevents.Event, n int) []agentevents.Event {
	const room = 10 // sequences for each event
	own := *ev
	own.Sequence = uint64(n * room)
	added := d.after(r, &own, n)
	for i := range added {
		if added[i].RunID == "" { // else it comes again
			added[i].RunID, added[i].Time, added[i].Sequence = ev.RunID, ev.Time, own.Sequence+1+uint64(i)
		}
	}
	return append([]agentevents.Event{own}, added...)
}

// oneEvents writes each call that returns before the next event as one event.
func oneEvents(events []agentevents.Event) (all []agentevents.Event) {
	for i := 0; i < len(events); i++ {
		called, ok := events[i].Payload.(*agentevents.ToolCalled)
		if ok && i+1 < len(events) {
			if returned, ok := events[i+1].Payload.(*agentevents.ToolReturned); ok && returned.CallID == called.CallID {
				i++
				one := *returned
				one.OneEvent, one.Arguments = true, called.Arguments
				one.Duration = agentevents.Some(max(0, events[i].Time.Sub(events[i-1].Time)-time.Millisecond))
				ev := events[i]
				ev.Payload = &one
				all = append(all, ev)
				continue
			}
		}
		all = append(all, events[i])
	}
	return all
}
