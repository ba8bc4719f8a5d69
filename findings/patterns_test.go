package findings_test

import (
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/findings"
)

// A script writes the events of a run.
type script struct {
	at     time.Time
	events []agentevents.Event
	calls  int
	models bool // a model call stands in front of each tool call
}

func newScript() *script { return &script{at: time.Date(2026, 5, 5, 9, 0, 0, 0, time.UTC)} }

func (s *script) emit(agent string, p agentevents.Payload) {
	s.at = s.at.Add(time.Second)
	n := uint64(len(s.events))
	s.events = append(s.events, agentevents.Event{ID: "e" + strconv.FormatUint(n, 10), Sequence: n, Time: s.at, RunID: "r", AgentID: agent, Payload: p})
}

func (s *script) wait(d time.Duration) { s.at = s.at.Add(d) }

func (s *script) start(agent string) { s.emit(agent, &agentevents.AgentStarted{Task: "a task"}) }

func (s *script) open(agent, tool, arguments string) (id string) {
	s.calls++
	id = fmt.Sprintf("c%d", s.calls)
	s.emit(agent, &agentevents.ToolCalled{CallID: id, ToolID: tool, Arguments: agentevents.JSON(arguments)})
	return id
}

func (s *script) close(agent, tool, id, result string) {
	s.emit(agent, &agentevents.ToolReturned{CallID: id, ToolID: tool, Status: agentevents.ToolStatusOK, Result: agentevents.JSONString(result)})
}

func (s *script) fail(agent, tool, id, message string) {
	s.emit(agent, &agentevents.ToolReturned{CallID: id, ToolID: tool, Status: agentevents.ToolStatusError, Error: agentevents.Some(agentevents.ErrorInfo{Message: message})})
}

// model writes a model call that uses so many tokens.
func (s *script) model(agent string, tokens int64) {
	s.calls++
	id := fmt.Sprintf("m%d", s.calls)
	s.emit(agent, &agentevents.ModelCalled{ModelCallID: id, Model: "m"})
	s.emit(agent, &agentevents.ModelReturned{ModelCallID: id, Usage: agentevents.Some(agentevents.Usage{InputTokens: tokens}), CostUSD: agentevents.Some(float64(tokens) / 100_000)})
}

func (s *script) call(agent, tool, arguments, result string) {
	if s.models {
		s.model(agent, 1000)
	}
	s.close(agent, tool, s.open(agent, tool, arguments), result)
}

func (s *script) failing(agent, tool, arguments, message string) {
	if s.models {
		s.model(agent, 1000)
	}
	s.fail(agent, tool, s.open(agent, tool, arguments), message)
}

func (s *script) modelFails(agent, message string) {
	s.calls++
	id := fmt.Sprintf("m%d", s.calls)
	s.emit(agent, &agentevents.ModelCalled{ModelCallID: id, Model: "m"})
	s.emit(agent, &agentevents.ModelReturned{ModelCallID: id, Error: agentevents.Some(agentevents.ErrorInfo{Message: message})})
}

func (s *script) done(agent string) {
	s.emit(agent, &agentevents.AgentEnded{Outcome: agentevents.OutcomeConverged})
	s.emit("", &agentevents.RunCompleted{})
}

// A pattern is a run with the kinds that are to be found in it, in their order.
type pattern struct {
	name string
	want []findings.Kind
	o    findings.Options
	run  func(*script)
}

// patterns are ten runs that loop, stall or waste in different ways, and then runs that only
// look so.
var patterns = []pattern{
	{"the same read again and again", []findings.Kind{findings.Repeat}, findings.Options{}, func(s *script) {
		s.start("a")
		s.call("a", "Read", `{"path":"main.go"}`, "package main")
		s.call("a", "Read", `{"path":"go.mod","limit":10}`, "module m")
		s.call("a", "Read", `{"limit":10,"path":"go.mod"}`, "module m")
		s.call("a", "Read", `{"path": "go.mod", "limit": 1e1}`, "module m")
		s.done("a")
	}},
	{"two calls in turn", []findings.Kind{findings.PingPong}, findings.Options{}, func(s *script) {
		s.start("a")
		s.models = true
		for range 3 {
			s.call("a", "Search", `{"q":"x"}`, "nothing")
			s.call("a", "List", `{"dir":"."}`, "main.go")
		}
		s.done("a")
	}},
	{"three calls in turn, one of which fails", []findings.Kind{findings.PingPong}, findings.Options{}, func(s *script) {
		s.start("a")
		for range 4 {
			s.call("a", "Search", `{"q":"x"}`, "nothing")
			s.call("a", "List", `{"dir":"."}`, "main.go")
			s.failing("a", "Build", `{}`, "no such target")
		}
		s.done("a")
	}},
	{"few sorts of calls without an order", []findings.Kind{findings.Repeat}, findings.Options{}, func(s *script) {
		s.start("a")
		for _, q := range []string{"x", "y", "z", "x", "z", "y", "x", "y", "z", "y", "x", "z", "x"} {
			s.call("a", "Search", `{"q":"`+q+`"}`, "nothing about "+q)
		}
		s.done("a")
	}},
	{"two agents hand over in turn", []findings.Kind{findings.PingPong}, findings.Options{}, func(s *script) {
		s.start("writer")
		s.start("critic")
		for range 3 {
			s.emit("writer", &agentevents.AgentHandoff{From: agentevents.AgentRef{AgentID: "writer"}, To: agentevents.AgentRef{AgentID: "critic"}})
			s.emit("critic", &agentevents.AgentHandoff{From: agentevents.AgentRef{AgentID: "critic"}, To: agentevents.AgentRef{AgentID: "writer"}})
		}
		s.done("writer")
	}},
	{"a tool that always fails", []findings.Kind{findings.FailureStreak}, findings.Options{}, func(s *script) {
		s.start("a")
		for i := range 6 {
			s.call("a", "Read", fmt.Sprintf(`{"path":"f%d"}`, i), fmt.Sprintf("text %d", i))
			s.failing("a", "Edit", fmt.Sprintf(`{"path":"f%d"}`, i), "error "+string(rune('a'+i)))
		}
		s.done("a")
	}},
	{"a retry without a change", []findings.Kind{findings.Retry}, findings.Options{}, func(s *script) {
		s.start("a")
		for range 3 {
			s.failing("a", "Bash", `{"command":"make"}`, "no rule")
		}
		s.done("a")
	}},
	{"nothing happens between two model calls", []findings.Kind{findings.Stall}, findings.Options{}, func(s *script) {
		s.start("a")
		s.model("a", 10)
		s.call("a", "Read", `{"path":"f"}`, "text")
		s.wait(6 * time.Minute)
		s.model("a", 10)
		s.done("a")
	}},
	{"a full context that is compacted again and again", []findings.Kind{findings.Context, findings.Context}, findings.Options{ContextTokens: 100_000}, func(s *script) {
		s.start("a")
		s.model("a", 60_000)
		s.model("a", 85_000)
		for range 3 {
			s.emit("a", &agentevents.ContextCompacted{Trigger: "auto"})
			s.model("a", 70_000)
		}
		s.done("a")
	}},
	{"a loop that burns money, and an answer after the end", []findings.Kind{findings.Repeat, findings.Waste, findings.AskedTooLate}, findings.Options{}, func(s *script) {
		s.start("a")
		s.emit("a", &agentevents.ApprovalRequested{ApprovalID: "ap", Action: "deploy"})
		for range 5 {
			s.model("a", 20_000)
			s.call("a", "Search", `{"q":"x"}`, "nothing")
		}
		s.done("a")
		s.emit("a", &agentevents.ApprovalGranted{ApprovalID: "ap"})
	}},

	{"polling with progress", nil, findings.Options{}, func(s *script) {
		s.start("a")
		for i := range 20 {
			s.call("a", "job_status", `{"job":7}`, fmt.Sprintf("%d %%", 5*i))
		}
		s.done("a")
	}},
	{"polling by a tool that the host names, and after one", nil, findings.Options{Polls: []string{"job_wait"}}, func(s *script) {
		s.start("a")
		for range 10 {
			s.call("a", "job_wait", `{"job":7}`, "running")
			s.call("a", "job_status", `{"job":7}`, "running")
		}
		s.call("a", "job_wait", `{"job":7}`, "done")
		s.done("a")
	}},
	{"paging through a list", nil, findings.Options{}, func(s *script) {
		s.start("a")
		for i := range 30 {
			s.call("a", "list", fmt.Sprintf(`{"page":%d}`, i), "ten rows")
		}
		s.done("a")
	}},
	{"a retry with back-off that succeeds", nil, findings.Options{}, func(s *script) {
		s.start("a")
		for i := range 5 {
			s.wait(time.Second << i)
			s.failing("a", "fetch", `{"url":"u"}`, "503")
		}
		s.call("a", "fetch", `{"url":"u"}`, "text")
		for i := range 4 {
			s.wait(time.Second << i)
			s.modelFails("a", "overloaded")
		}
		s.model("a", 10)
		s.done("a")
	}},
	{"a long tool", nil, findings.Options{}, func(s *script) {
		s.start("a")
		s.model("a", 10)
		id := s.open("a", "Bash", `{"command":"make all"}`)
		s.wait(5 * time.Hour)
		s.close("a", "Bash", id, "ok")
		s.model("a", 10)
		s.done("a")
	}},
	{"a person's lunch break", nil, findings.Options{}, func(s *script) {
		s.start("a")
		s.model("a", 10)
		s.emit("a", &agentevents.ApprovalRequested{ApprovalID: "nobody", Timeout: agentevents.Some(time.Minute)})
		s.wait(time.Minute + time.Millisecond)
		s.emit("a", &agentevents.ApprovalRejected{ApprovalID: "nobody", Answer: "timeout"})
		s.emit("a", &agentevents.ApprovalRequested{ApprovalID: "ap", Action: "deploy"})
		s.wait(90 * time.Minute)
		s.emit("a", &agentevents.ApprovalGranted{ApprovalID: "ap", ApprovedBy: "ann"})
		s.model("a", 10)
		s.emit("a", &agentevents.TextCompleted{Text: "Shall I go on?"})
		s.wait(90 * time.Minute)
		s.emit("a", &agentevents.MessageCreated{Message: agentevents.ConversationMessage{MessageID: "m1", From: "user", Role: "user", Content: `"yes"`}})
		s.done("a")
	}},
	{"a fan-out of equal tasks", nil, findings.Options{}, func(s *script) {
		s.start("a")
		var ids []string
		for range 8 {
			ids = append(ids, s.open("a", "Task", `{"prompt":"judge the draft"}`))
		}
		for _, id := range slices.Backward(ids) {
			s.close("a", "Task", id, "good")
		}
		s.model("a", 10)
		for range 4 { // a runtime that runs the calls of one answer one by one
			s.close("a", "Task", s.open("a", "Task", `{"prompt":"judge it once more"}`), "good")
		}
		s.done("a")
	}},
	{"a test that is run after each of many changes", nil, findings.Options{}, func(s *script) {
		s.start("a")
		for i := range 10 {
			s.call("a", "Edit", fmt.Sprintf(`{"path":"f","line":%d}`, i), "ok")
			s.call("a", "Bash", `{"command":"go vet ./..."}`, "")
			if i%4 > 0 {
				s.failing("a", "test", `{}`, fmt.Sprintf("wrong: %c", 'a'+i))
			} else {
				s.call("a", "test", `{}`, "ok")
			}
		}
		s.done("a")
	}},
	{"the same question in several turns of a conversation", nil, findings.Options{}, func(s *script) {
		for range 6 {
			s.wait(20 * time.Minute)
			s.start("a")
			s.call("a", "weather", `{"city":"Ulm"}`, "rain")
			s.emit("a", &agentevents.TextCompleted{Text: "rain"})
			s.emit("a", &agentevents.AgentEnded{Outcome: agentevents.OutcomeConverged})
		}
		s.done("a")
	}},
	{"a writer and a critic with a new draft each time", nil, findings.Options{ContextTokens: 100_000}, func(s *script) {
		s.start("writer")
		s.start("critic")
		for i := range 6 {
			s.call("writer", "Write", fmt.Sprintf(`{"text":"draft %d"}`, i), "ok")
			s.emit("writer", &agentevents.AgentHandoff{From: agentevents.AgentRef{AgentID: "writer"}, To: agentevents.AgentRef{AgentID: "critic"}})
			s.emit("critic", &agentevents.AgentHandoff{From: agentevents.AgentRef{AgentID: "critic"}, To: agentevents.AgentRef{AgentID: "writer"}})
			s.model("critic", 5_000)
		}
		s.emit("writer", &agentevents.ContextCompacted{Trigger: "manual"})
		s.done("writer")
	}},
}

func TestPatternsAreToldApart(t *testing.T) {
	require.Len(t, patterns, 20)
	for i, p := range patterns {
		require.Equal(t, i < 10, len(p.want) > 0, p.name)
		t.Run(p.name, func(t *testing.T) {
			s := newScript()
			p.run(s)
			f := findings.New(p.o)
			for i := range s.events {
				f.Add(&s.events[i])
			}
			var kinds []findings.Kind
			for _, one := range f.Findings() {
				kinds = append(kinds, one.Kind)
				t.Log(one.Text, one.Sequences, one.Cost)
				require.Equal(t, "r", one.RunID)
				require.NotZero(t, one.Count)
				require.True(t, slices.IsSorted(one.Sequences), one.Sequences)
				require.False(t, one.Since.After(one.Until), "since %s until %s", one.Since, one.Until)
			}
			require.Equal(t, p.want, kinds)
		})
	}
}
