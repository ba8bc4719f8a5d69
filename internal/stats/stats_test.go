package stats

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	ae "github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/internal/scale"
)

// An entry is an event of a log. Its run is r, and its second equals its place, unless they are
// given.
type entry struct {
	run, session, task, agent, parent string
	second                            int // 0 means the place of the entry
	p                                 ae.Payload
}

// log returns the events of the entries, with sequences.
func log(entries ...entry) (events []ae.Event) {
	next := map[string]uint64{}
	for i, e := range entries {
		if e.run == "" {
			e.run = "r"
		}
		if e.second == 0 {
			e.second = i
		}
		ev := ae.Event{
			ID: fmt.Sprint(e.run, "-", i), Sequence: next[e.run], RunID: e.run, AgentID: e.agent, ParentAgentID: e.parent,
			Time: time.Date(2026, 5, 5, 9, 0, 0, 0, time.UTC).Add(time.Duration(e.second) * time.Second), Payload: e.p,
		}
		ev.SessionID, ev.TaskID = e.session, e.task
		next[e.run]++
		events = append(events, ev)
	}
	return events
}

func report(by By, events []ae.Event) *Report {
	c := New(by)
	for _, ev := range events {
		c.Event(ev)
	}
	return c.Report()
}

// works returns the start and the end of an agent.
func works(run, agent, parent, task string, end ae.AgentEnded) []entry {
	return []entry{{run: run, agent: agent, parent: parent, task: task, p: &ae.AgentStarted{}}, {run: run, agent: agent, task: task, p: &end}}
}

func done(run string, p ae.Payload) []entry {
	return []entry{{run: run, p: &ae.RunStarted{}}, {run: run, p: p}}
}

func with(session string, entries []entry) []entry {
	for i := range entries {
		entries[i].session = session
	}
	return entries
}

var (
	converged = ae.AgentEnded{Outcome: ae.OutcomeConverged}
	partial   = ae.AgentEnded{Outcome: ae.OutcomePartial}
)

func ref(id string) ae.AgentRef { return ae.AgentRef{AgentID: id} }

func some(v float64) number { return ae.Some(v) }

var none number

func TestMetrics(t *testing.T) {
	success := func(m *Metrics) Metric { return m.TaskSuccessRate }
	loops := func(m *Metrics) Metric { return m.HandoffLoopRate }
	rejections := func(m *Metrics) Metric { return m.VerifierRejectionRate }
	depth := func(m *Metrics) Metric { return m.AverageAgentDepth }
	failures := func(m *Metrics) Metric { return m.ToolFailureRate }
	cost := func(m *Metrics) Metric { return m.CostPerSuccessfulTask }
	latency := func(m *Metrics) Metric { return m.HumanApprovalLatency.Metric }
	compression := func(m *Metrics) Metric { return m.ContextCompression }

	handoff := func(session, run, from, to string) entry {
		return entry{session: session, run: run, p: &ae.AgentHandoff{From: ref(from), To: ref(to)}}
	}
	call := func(id string, s ae.ToolStatus) []entry {
		return []entry{{agent: "a", p: &ae.ToolCalled{CallID: id, ToolID: "t"}}, {agent: "a", p: &ae.ToolReturned{CallID: id, ToolID: "t", Status: s}}}
	}
	ask := func(id string, second int) entry {
		return entry{agent: "a", second: second, p: &ae.ApprovalRequested{ApprovalID: id}}
	}

	for _, test := range []struct {
		name    string
		metric  func(*Metrics) Metric
		want    Metric
		entries []entry
	}{
		{"success: nothing", success, Metric{none, some(0), 0}, nil},
		{"success: runs are tasks", success, Metric{some(1.0 / 3), some(1), 3}, slices.Concat(
			done("r1", &ae.RunCompleted{}), done("r2", &ae.RunFailed{}), done("r3", &ae.RunCancelled{}), []entry{{run: "r4", p: &ae.RunStarted{}}})},
		{"success: outcomes of agents decide runs without an end", success, Metric{some(0.4), some(2), 5}, slices.Concat(
			works("r1", "a", "", "", converged), works("r2", "a", "", "", partial), works("r3", "a", "", "", ae.AgentEnded{}),
			works("r4", "a", "", "", ae.AgentEnded{Outcome: ae.OutcomeAborted}), works("r5", "a", "", "", ae.AgentEnded{Error: ae.Some(ae.ErrorInfo{})}))},
		{"success: the agent that ended last, without a parent", success, Metric{some(1), some(1), 1}, slices.Concat(
			works("r", "a", "", "", partial), works("r", "b", "", "", converged), works("r", "c", "b", "", partial))},
		{"success: a run whose agents all gave up says that it completed", success, Metric{some(0), some(0), 1}, slices.Concat(
			[]entry{{p: &ae.RunStarted{}}}, works("r", "a", "", "", partial), works("r", "b", "a", "", converged), []entry{{p: &ae.RunCompleted{}}})},
		{"success: and one of which one did not", success, Metric{some(1), some(1), 1}, slices.Concat(
			[]entry{{p: &ae.RunStarted{}}}, works("r", "a", "", "", converged), works("r", "b", "", "", partial), []entry{{p: &ae.RunCompleted{}}})},
		{"success: a run that failed has a good agent", success, Metric{some(0), some(0), 1}, slices.Concat(
			[]entry{{p: &ae.RunStarted{}}}, works("r", "a", "", "", converged), []entry{{p: &ae.RunFailed{}}})},
		{"success: an agent tries again", success, Metric{some(1), some(1), 1}, slices.Concat(
			works("r", "a", "", "t1", partial), works("r", "a", "", "t1", converged))},
		{"success: status of the session", success, Metric{some(0.5), some(1), 2}, slices.Concat(
			done("r1", &ae.RunCompleted{}), []entry{{run: "r1", p: &ae.SessionCompleted{Status: "Partial"}}},
			works("r2", "a", "", "", partial), []entry{{run: "r2", p: &ae.SessionCompleted{Status: "success"}}})},
		{"success: an unknown word of a session says nothing", success, Metric{some(1), some(1), 1}, slices.Concat(
			done("r1", &ae.RunCompleted{}), []entry{{run: "r1", p: &ae.SessionCompleted{Status: "archived"}}})},
		{"success: two tasks in a run", success, Metric{some(0.5), some(1), 2}, slices.Concat(
			works("r", "a", "", "t1", converged), works("r", "b", "", "t2", partial))},
		{"success: a task is assigned", success, Metric{some(0.5), some(1), 2}, slices.Concat(
			[]entry{{task: "t1", p: &ae.TaskAssigned{AssignedAgent: "a"}}, {task: "t2", p: &ae.TaskAssigned{AssignedAgent: "b"}}},
			works("r", "a", "", "", partial), works("r", "b", "", "", converged))},
		{"success: a task of a session is tried again", success, Metric{some(1), some(1), 1}, slices.Concat(
			with("s", works("r1", "a", "", "t1", partial)), with("s", works("r2", "a", "", "t1", converged)))},
		{"success: and does not matter when it has succeeded", success, Metric{some(1), some(1), 1}, slices.Concat(
			with("s", works("r1", "a", "", "t1", converged)), with("s", works("r2", "a", "", "t1", partial)))},
		{"success: a task that failed is tried again and may go on", success, Metric{none, some(0), 0}, slices.Concat(
			with("s", works("r1", "a", "", "t1", partial)), with("s", works("r2", "a", "", "t1", converged)[:1]))},
		{"success: a try that has no end, and one that failed", success, Metric{some(0), some(0), 1}, slices.Concat(
			with("s", works("r1", "a", "", "t1", converged)[:1]), with("s", works("r2", "a", "", "t1", partial)))},
		{"success: two sessions in a log, whose runs take turns", success, Metric{some(0.5), some(1), 2}, func() []entry {
			one, two := with("s1", works("r1", "a", "", "t1", converged)), with("s2", works("r2", "a", "", "t1", partial))
			return []entry{one[0], two[0], one[1], two[1]}
		}()},
		{"success: the session goes on", success, Metric{some(1), some(1), 1}, slices.Concat(
			done("r1", &ae.RunCompleted{}), []entry{{run: "r1", p: &ae.SessionCompleted{Status: "failed"}}, {run: "r1", p: &ae.SessionStarted{}}})},
		{"success: a task of another session is another", success, Metric{some(0.5), some(1), 2}, slices.Concat(
			with("s1", works("r1", "a", "", "t1", partial)), with("s2", works("r2", "a", "", "t1", converged)))},

		{"loops: no handoff", loops, Metric{none, some(0), 1}, done("r", &ae.RunCompleted{})},
		{"loops: there and back is none", loops, Metric{some(0), some(0), 1}, []entry{handoff("", "r", "a", "b"), handoff("", "r", "b", "a")}},
		{"loops: a pair again", loops, Metric{some(1), some(1), 1}, []entry{handoff("", "r", "a", "b"), handoff("", "r", "b", "a"), handoff("", "r", "a", "b")}},
		{"loops: in another run of the session", loops, Metric{some(0.5), some(1), 2},
			[]entry{handoff("s1", "r1", "a", "b"), handoff("s1", "r2", "a", "b"), handoff("s2", "r3", "a", "b")}},
		{"loops: of no session", loops, Metric{some(0), some(0), 2}, []entry{handoff("", "r1", "a", "b"), handoff("", "r2", "a", "b")}},
		{"loops: a request and its acceptance are one", loops, Metric{some(0), some(0), 1}, []entry{
			{p: &ae.HandoffRequested{From: ref("a"), To: ref("b")}}, {p: &ae.HandoffAccepted{From: ref("a"), To: ref("b")}}}},

		{"rejections: no verdict", rejections, Metric{none, some(0), 0}, []entry{{p: &ae.IssueFound{Issue: "i"}}}},
		{"rejections: other words", rejections, Metric{some(0.5), some(2), 4}, []entry{
			{p: &ae.ClaimVerified{FindingID: "f1", VerifierAgentID: "v", Verdict: "Rejected"}}, {p: &ae.ClaimVerified{FindingID: "f2", VerifierAgentID: "v", Verdict: "refuted"}},
			{p: &ae.ClaimVerified{FindingID: "f3", VerifierAgentID: "v", Verdict: "unsure"}}, {p: &ae.ClaimVerified{FindingID: "f4", VerifierAgentID: "v", Verdict: "accepted"}}}},
		{"rejections: claims and audits", rejections, Metric{some(0.4), some(2), 5}, []entry{
			{p: &ae.ClaimVerified{FindingID: "f1", VerifierAgentID: "v", Verdict: "accepted"}}, {p: &ae.ClaimVerified{FindingID: "f2", VerifierAgentID: "v", Verdict: "rejected"}},
			{p: &ae.AuditChecked{CheckpointID: "c", Result: ae.AuditPass}}, {p: &ae.AuditChecked{CheckpointID: "c", Result: ae.AuditFail}}, {p: &ae.AuditChecked{CheckpointID: "c", Result: ae.AuditWarn}}}},

		{"depth: no agent", depth, Metric{none, some(0), 0}, done("r", &ae.RunCompleted{})},
		{"depth: 0, 1, 2 and 1", depth, Metric{some(1), some(4), 4}, slices.Concat(
			works("r", "a", "", "", converged), works("r", "b", "a", "", converged), works("r", "c", "b", "", converged), works("r", "d", "a", "", converged))},
		{"depth: the parent has no events", depth, Metric{some(1), some(1), 1}, works("r", "b", "a", "", converged)},
		{"depth: a circle", depth, Metric{some(1.5), some(3), 2}, slices.Concat(works("r", "a", "b", "", converged), works("r", "b", "a", "", converged))},

		{"failures: no call", failures, Metric{none, some(0), 0}, done("r", &ae.RunCompleted{})},
		{"failures: open, refused and cancelled calls do not count", failures, Metric{some(0.25), some(1), 4}, slices.Concat(
			[]entry{{agent: "a", p: &ae.AgentStarted{}}}, call("1", ae.ToolStatusOK), call("2", ae.ToolStatusError), call("3", ae.ToolStatusOK), call("4", ae.ToolStatusCancelled), call("7", ae.ToolStatusInterrupted), call("8", ae.ToolStatusForbidden), call("9", ae.ToolStatusOK),
			[]entry{{agent: "a", p: &ae.ToolReturned{CallID: "5", ToolID: "t", Status: ae.ToolStatusForbidden}}, {agent: "a", p: &ae.ToolCalled{CallID: "6", ToolID: "t"}}})},

		{"cost: none known", cost, Metric{none, none, 1}, done("r", &ae.RunCompleted{})},
		{"cost: no success", cost, Metric{none, some(0.5), 0}, works("r", "a", "", "", ae.AgentEnded{Outcome: ae.OutcomePartial, TotalCostUSD: some(0.5)})},
		{"cost: failures cost, too", cost, Metric{some(1), some(2), 2}, slices.Concat(
			works("r1", "a", "", "", ae.AgentEnded{TotalCostUSD: some(0.5)}), works("r2", "a", "", "", ae.AgentEnded{Outcome: ae.OutcomePartial, TotalCostUSD: some(1.5)}),
			works("r3", "a", "", "", converged))},

		{"latency: no answer", latency, Metric{none, some(0), 0}, []entry{ask("1", 1)}},
		{"latency: mean of 10 s and 30 s", latency, Metric{some(20000), some(40000), 2}, []entry{
			{agent: "a", p: &ae.AgentStarted{}}, ask("1", 10), {agent: "a", second: 20, p: &ae.ApprovalGranted{ApprovalID: "1"}},
			ask("2", 30), {agent: "a", second: 60, p: &ae.ApprovalRejected{ApprovalID: "2"}}, ask("3", 61),
			{agent: "a", second: 70, p: &ae.ApprovalGranted{ApprovalID: "never asked"}}}},

		{"latency: expired, asked again, answered before it was asked", latency, Metric{some(5000), some(5000), 1}, []entry{
			{agent: "a", p: &ae.AgentStarted{}}, ask("1", 10), ask("1", 20), {agent: "a", second: 25, p: &ae.ApprovalGranted{ApprovalID: "1"}},
			ask("2", 30), {agent: "a", second: 29, p: &ae.ApprovalGranted{ApprovalID: "2"}},
			ask("3", 40), {agent: "a", second: 90, p: &ae.AgentEnded{Outcome: ae.OutcomeAborted}}}},
		{"latency: the answers timeout and expired are nobody's, refine is a person's", latency, Metric{some(7000), some(7000), 1}, []entry{
			{agent: "a", p: &ae.AgentStarted{}}, ask("1", 10), {agent: "a", second: 20, p: &ae.ApprovalRejected{ApprovalID: "1", Answer: "timeout"}},
			ask("2", 30), {agent: "a", second: 90, p: &ae.ApprovalRejected{ApprovalID: "2", Answer: "expired"}},
			ask("3", 91), {agent: "a", second: 98, p: &ae.ApprovalRejected{ApprovalID: "3", Answer: "refine"}}}},

		{"compression: no tokens", compression, Metric{none, some(0), 0}, []entry{{agent: "a", p: &ae.ContextCompacted{TokensBefore: ae.Some[int64](9)}}}},
		{"compression: 100 to 20 and 20 to 10", compression, Metric{some(4), some(120), 30}, []entry{
			{agent: "a", p: &ae.ContextCompacted{TokensBefore: ae.Some[int64](100), TokensAfter: ae.Some[int64](20)}},
			{agent: "a", p: &ae.ContextCompacted{}},
			{agent: "a", p: &ae.ContextCompacted{TokensBefore: ae.Some[int64](20), TokensAfter: ae.Some[int64](10)}}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			events := log(test.entries...)
			require.Equal(t, test.want, test.metric(&report("", events).Metrics))
			twice := report(ByAgent, append(events, events...))
			require.Equal(t, test.want, test.metric(&twice.Metrics), "events that come again")
		})
	}
}

// sample is a log with something of everything.
func sample() []ae.Event {
	cost := ae.Some(0.25)
	return log(slices.Concat(
		with("s", []entry{
			{p: &ae.RunStarted{}},
			{agent: "lead", p: &ae.AgentStarted{Model: "big"}},
			{agent: "lead", p: &ae.ModelCalled{ModelCallID: "m1", Model: "big"}},
			{agent: "lead", p: &ae.ModelReturned{ModelCallID: "m1", Usage: ae.Some(ae.Usage{InputTokens: 10, OutputTokens: 2}), CostUSD: cost}},
			{agent: "lead", p: &ae.ToolCalled{CallID: "c1", ToolID: "read"}},
			{agent: "lead", p: &ae.ToolReturned{CallID: "c1", ToolID: "read", Status: ae.ToolStatusError}},
			{agent: "help", parent: "lead", p: &ae.AgentStarted{}},
			{agent: "help", p: &ae.ModelReturned{ModelCallID: "m2", Model: "small", OneEvent: true, Duration: ae.Some(500 * time.Millisecond), Error: ae.Some(ae.ErrorInfo{})}},
			{agent: "help", p: &ae.ToolCalled{CallID: "c2", ToolID: "read"}},
			{agent: "help", p: &ae.ToolReturned{CallID: "c2", ToolID: "read", Status: ae.ToolStatusOK}},
			{agent: "help", p: &ae.ToolCalled{CallID: "c3", ToolID: "write"}},
			{agent: "help", p: &ae.ContextCompacted{TokensBefore: ae.Some[int64](30), TokensAfter: ae.Some[int64](10)}},
			{agent: "help", p: &ae.AgentEnded{Outcome: ae.OutcomePartial}},
			{agent: "lead", p: &ae.AuditChecked{CheckpointID: "c", Result: ae.AuditFail}},
			{agent: "lead", p: &ae.AgentEnded{Outcome: ae.OutcomeConverged}},
			{p: &ae.RunCompleted{}},
		}),
	)...)
}

func TestGroups(t *testing.T) {
	groups := func(by By) map[string]Group {
		r := report(by, sample())
		require.Equal(t, by, r.By)
		all := map[string]Group{}
		for _, g := range r.Groups {
			all[g.Name] = g
		}
		require.Len(t, all, 2)
		return all
	}
	agents := groups(ByAgent)
	lead, help := agents["lead"], agents["help"]
	require.Equal(t, Metric{some(1), some(1), 1}, lead.Metrics.TaskSuccessRate)
	require.Equal(t, Metric{some(0), some(0), 1}, help.Metrics.TaskSuccessRate)
	require.Equal(t, Metric{some(1), some(1), 1}, help.Metrics.AverageAgentDepth)
	require.Equal(t, Metric{some(1), some(1), 1}, lead.Metrics.ToolFailureRate)
	require.Equal(t, Metric{some(0), some(0), 1}, help.Metrics.ToolFailureRate)
	require.Equal(t, 1, help.ToolCalls.Open)
	refused := report(ByAgent, log(entry{agent: "a", p: &ae.ToolReturned{CallID: "1", ToolID: "t", Status: ae.ToolStatusForbidden}}))
	require.Equal(t, refused.Metrics.ToolFailureRate, refused.Groups[0].Metrics.ToolFailureRate)
	require.Equal(t, &Calls{Refused: 1}, refused.ToolCalls)
	require.Equal(t, &Calls{Refused: 1}, refused.Groups[0].ToolCalls)
	require.Equal(t, Metric{some(0.25), some(0.25), 1}, lead.Metrics.CostPerSuccessfulTask)
	require.Equal(t, Metric{none, none, 0}, help.Metrics.CostPerSuccessfulTask)
	require.Equal(t, Metric{some(1), some(1), 1}, lead.Metrics.VerifierRejectionRate)
	require.Equal(t, Metric{some(3), some(30), 10}, help.Metrics.ContextCompression)
	require.Equal(t, &Calls{Calls: 1, Returned: 1, Failed: 1, MeanMS: some(500), Spread: &Spread{500, 500, 500}}, help.ModelCalls)

	tools := groups(ByTool)
	require.Equal(t, Group{"read", "", "", Figures{
		Runs: 1, ToolCalls: &Calls{Calls: 2, Returned: 2, Failed: 1, MeanMS: some(1000), Spread: &Spread{1000, 1000, 1000}},
		Metrics: onlyTools(Metric{some(0.5), some(1), 2}),
	}}, tools["read"])

	models := groups(ByModel)
	require.Equal(t, &Calls{Calls: 1, Returned: 1, MeanMS: some(1000), Spread: &Spread{1000, 1000, 1000}}, models["big"].ModelCalls)
	require.Equal(t, &Tokens{Input: 10, Output: 2}, models["big"].Tokens)
	require.Equal(t, some(0.25), models["big"].CostUSD)
	require.Equal(t, none, models["small"].CostUSD)
	require.Equal(t, "big", report(ByModel, sample()).Groups[0].Name, "the more expensive group comes first")
	both := report("", sample()).ModelCalls
	require.InEpsilon(t, 500, both.Spread.P50, 1.0/128)
	require.Equal(t, &Calls{Calls: 2, Returned: 2, Failed: 1, MeanMS: some(750), Spread: &Spread{both.Spread.P50, 1000, 1000}}, both)
}

// TestSeveralTables makes all tables in one pass. They equal the tables of a pass for each.
func TestSeveralTables(t *testing.T) {
	all := []By{ByAgentModel, ByTool, ByAgent, ByModel}
	c := New(all...)
	events := append(sample(), log(
		entry{run: "x", agent: "lead", p: &ae.AgentStarted{Model: "small"}},
		entry{run: "x", agent: "lead", p: &ae.ModelCalled{ModelCallID: "1"}},
		entry{run: "x", agent: "lead", p: &ae.ModelReturned{ModelCallID: "1", Usage: ae.Some(ae.Usage{InputTokens: 3}), CostUSD: some(0.5)}},
		entry{run: "x", agent: "lead", p: &ae.ModelCalled{ModelCallID: "2", Model: "big"}},
	)...)
	for _, ev := range events {
		c.Event(ev)
	}
	r := c.Report()
	tables := append([]Table{r.Table}, r.Tables...)
	require.Len(t, tables, len(all))
	tokens := map[string]int64{}
	for i, by := range all {
		one := report(by, events)
		require.Equal(t, one.Table, tables[i])
		require.Equal(t, one.Figures, r.Figures)
		require.Empty(t, one.Tables)
		sign := map[By]int64{ByAgentModel: 1, ByModel: -1}[by]
		for _, g := range tables[i].Groups {
			if name := map[By]string{ByAgentModel: g.Model, ByModel: g.Name}[by]; name != "" {
				tokens[name] += sign * or(g.Tokens).All()
			}
		}
	}
	require.Equal(t, map[string]int64{"big": 0, "small": 0}, tokens, "the models of all agents have the figures of each model")
	pair := tables[0].Groups[slices.IndexFunc(tables[0].Groups, func(g Group) bool { return g.Name == "lead" && g.Model == "small" })]
	require.Equal(t, int64(3), pair.Tokens.Input)
	require.Equal(t, some(0.5), pair.CostUSD)
	require.NotNil(t, tables[0].Groups[slices.IndexFunc(tables[0].Groups, func(g Group) bool { return g.Name == "lead" && g.Model == "big" })].ModelCalls)
}

// TestUnknownDurations: the mean covers the calls whose duration is known.
func TestUnknownDurations(t *testing.T) {
	r := report(ByAgent, log(
		entry{second: 1, agent: "a", p: &ae.AgentStarted{}},
		entry{second: 1, agent: "a", p: &ae.ToolCalled{CallID: "1", ToolID: "t"}}, // the log has no clock
		entry{second: 1, agent: "a", p: &ae.ToolReturned{CallID: "1", ToolID: "t", Status: ae.ToolStatusOK}},
		entry{second: 1, agent: "a", p: &ae.ModelCalled{ModelCallID: "1", Model: "m"}},
		entry{second: 1, agent: "a", p: &ae.ModelReturned{ModelCallID: "1"}},
		entry{second: 1, agent: "a", p: &ae.ToolReturned{CallID: "2", ToolID: "t", Status: ae.ToolStatusForbidden, Duration: ae.Some(time.Hour)}}, // it never began
		entry{second: 1, agent: "a", p: &ae.ToolReturned{CallID: "3", ToolID: "t", Status: ae.ToolStatusOK, OneEvent: true, Duration: ae.Some(4 * time.Second)}},
	))
	require.Equal(t, &Calls{Calls: 2, Returned: 2, Refused: 1, MeanMS: some(4000), Spread: &Spread{4000, 4000, 4000}}, r.ToolCalls)
	require.Equal(t, &Calls{Calls: 1, Returned: 1}, r.ModelCalls)
	require.Equal(t, some(4000), r.Groups[0].ToolCalls.MeanMS)
}

// TestUnanswered counts requests without an answer, and no answers without a time.
func TestUnanswered(t *testing.T) {
	r := report("", log(
		entry{agent: "a", second: 9, p: &ae.ApprovalRequested{ApprovalID: "1"}},
		entry{agent: "a", second: 8, p: &ae.ApprovalGranted{ApprovalID: "1"}},
		entry{agent: "a", p: &ae.ApprovalRequested{ApprovalID: "2"}},
		entry{p: &ae.RunFailed{}},
	))
	require.Equal(t, 1, r.Unanswered)
}

// TestRepeatedEvents: left-out events are counted.
func TestRepeatedEvents(t *testing.T) {
	events := sample()
	r := report("", append(events, events[3:]...))
	require.Equal(t, [2]int{2*len(events) - 3, len(events) - 3}, [2]int{r.Events, r.Repeated})
	for i := range events {
		events[i].Sequence = 0 // a writer without sequences
	}
	r = report("", events)
	require.Equal(t, len(events)-1, r.Repeated)
}

// onlyTools returns the metrics of a tool.
func onlyTools(m Metric) Metrics {
	zero := Metric{none, some(0), 0}
	return Metrics{zero, zero, zero, zero, m, Metric{none, none, 0}, Latency{zero, nil}, zero}
}

// TestManyRuns has so many runs that most are put away, and some of them go on.
func TestManyRuns(t *testing.T) {
	const n = 100
	one := sample()
	var runs []ae.Event
	for i := range n {
		for _, ev := range one {
			ev.RunID, ev.SessionID = fmt.Sprint("r", i), fmt.Sprint("s", i)
			runs = append(runs, ev)
		}
	}
	want, got := report("", one), report("", runs)
	require.Equal(t, n*want.Runs, got.Runs)
	require.Equal(t, map[ae.RunStatus]int{ae.RunStatusCompleted: n}, got.Statuses)
	require.Equal(t, n*want.ToolCalls.Returned, got.ToolCalls.Returned)
	require.Equal(t, n*want.Tokens.Input, got.Tokens.Input)
	require.InDelta(t, n*want.CostUSD.V, got.CostUSD.V, 1e-9)
	require.Equal(t, want.Metrics.AverageAgentDepth.Value, got.Metrics.AverageAgentDepth.Value)
	require.Equal(t, n*want.Metrics.TaskSuccessRate.Denominator, got.Metrics.TaskSuccessRate.Denominator)

	// The order in which runs take turns makes no difference.
	byTurns := slices.Clone(runs)
	slices.SortStableFunc(byTurns, func(a, b ae.Event) int { return int(a.Sequence) - int(b.Sequence) })
	require.Equal(t, got, report("", byTurns))
	// Nor does a file that repeats them.
	twice := report("", slices.Concat(runs, runs))
	require.Equal(t, len(runs), twice.Repeated)
	twice.Events, twice.Repeated = got.Events, 0
	require.Equal(t, got, twice)

	c := New("")
	for _, ev := range runs {
		c.Event(ev)
	}
	late := func(p ae.Payload) {
		c.Event(ae.Event{ID: "x", Sequence: c.runs["r0"].seen.Next, RunID: "r0", Time: one[0].Time, Payload: p})
	}
	late(&ae.AuditChecked{CheckpointID: "late", Result: ae.AuditPass})
	late(&ae.SessionCompleted{Status: "failed"})
	r := c.Report()
	require.Equal(t, n, r.Runs)
	require.Equal(t, Metric{some(float64(n) / (n + 1)), some(n), n + 1}, r.Metrics.VerifierRejectionRate)
	require.Equal(t, Metric{some(0.99), some(99), 100}, r.Metrics.TaskSuccessRate)
}

// The outcomes of agents decide, also after the run has gone on.
func TestRunGoesOn(t *testing.T) {
	r := report("", log(slices.Concat(works("r", "a", "", "", partial), works("r", "b", "", "", converged))...))
	require.Equal(t, map[ae.RunStatus]int{ae.RunStatusCompleted: 1}, r.Statuses)
	require.Equal(t, 1.0, r.Metrics.TaskSuccessRate.Value.V)
}

// TestFalseSequence has an event whose sequence is far too high: those after it count.
func TestFalseSequence(t *testing.T) {
	events := sample()
	want := report(ByModel, events)
	events[1].Sequence = 1 << 40
	require.Equal(t, want, report(ByModel, events))
	again := report(ByModel, slices.Concat(sample(), sample()[5:]))
	again.Events, again.Repeated = want.Events, 0
	require.Equal(t, want, again)
}

func TestManyGroups(t *testing.T) {
	var entries []entry
	for i := range maxGroups + 50 {
		entries = append(entries, entry{run: fmt.Sprint("r", i), agent: fmt.Sprint("a", i), p: &ae.AgentStarted{}})
	}
	r := report(ByAgent, log(entries...))
	require.Len(t, r.Groups, maxGroups+1)
	i := slices.IndexFunc(r.Groups, func(g Group) bool { return g.Name == Others })
	require.Equal(t, 50, r.Groups[i].Runs)
}

func TestDeepAgents(t *testing.T) {
	const n = 10_000
	var entries []entry
	for i := range n {
		entries = append(entries, entry{agent: fmt.Sprint(i), parent: fmt.Sprint(i + 1), p: &ae.AgentStarted{}})
	}
	// The depths are 1 to n: the parent of the highest has no events.
	require.Equal(t, Metric{some((n + 1) / 2.0), some(n * (n + 1) / 2), n}, report("", log(entries...)).Metrics.AverageAgentDepth)
}

func TestSpread(t *testing.T) {
	require.Nil(t, spread(nil))
	var all []time.Duration
	for i := range 20 {
		all = append(all, time.Duration(20-i)*time.Millisecond)
	}
	require.Equal(t, &Spread{P50: 10, P95: 19, Max: 20}, spread(all))
	require.Equal(t, &Spread{P50: 1, P95: 1, Max: 1}, spread([]time.Duration{time.Millisecond}))
}

// TestHugeNumbers has figures whose sums no number can hold.
func TestHugeNumbers(t *testing.T) {
	const most = 1<<63 - 1
	huge := ae.Usage{InputTokens: most, OutputTokens: most}
	end := ae.AgentEnded{Usage: ae.Some(huge), TotalCostUSD: some(1.7e308)}
	compacted := &ae.ContextCompacted{TokensBefore: ae.Some[int64](most), TokensAfter: ae.Some[int64](most)}
	r := report(ByAgent, log(slices.Concat(works("r1", "a", "", "", end), works("r2", "a", "", "", end),
		[]entry{{agent: "a", p: compacted}, {agent: "a", p: compacted}})...))
	require.Equal(t, int64(most), r.Tokens.Input)
	require.Equal(t, int64(most), r.Tokens.All())
	text, err := json.Marshal(r)
	require.NoError(t, err)
	require.True(t, strings.HasPrefix(string(text), `{"runs":3,`), string(text))
}

// TestIsLinear has logs with many of one thing.
func TestIsLinear(t *testing.T) {
	if testing.Short() {
		t.Skip("it compares times")
	}
	for _, shape := range scale.Shapes() {
		t.Run(shape.Name, func(t *testing.T) {
			scale.Linear(t, 500, func(n int) func() {
				var events []ae.Event
				for ev, err := range ae.NewReader(bytes.NewReader(shape.Log(n)), ae.ReaderOptions{}).All() {
					require.NoError(t, err)
					events = append(events, ev)
				}
				return func() { report(ByAgent, events) }
			})
		})
	}
}

// The calls of a sub-agent have an id each and one name: they are one group.
func TestNamesOfAgents(t *testing.T) {
	var entries []entry
	for i := range 1000 {
		id := fmt.Sprint("research/c", i)
		entries = append(entries, entry{agent: id, p: &ae.AgentStarted{Name: "research"}},
			entry{agent: id, p: &ae.ToolCalled{CallID: "c", ToolID: "read"}}, entry{agent: id, p: &ae.ToolReturned{CallID: "c", Status: ae.ToolStatusOK}},
			entry{agent: id, p: &ae.AgentEnded{Outcome: ae.OutcomeConverged}})
	}
	r := report(ByAgent, log(entries...))
	require.Len(t, r.Groups, 1)
	require.Equal(t, "research", r.Groups[0].Name)
	require.EqualValues(t, 1000, r.Groups[0].ToolCalls.Returned)
}

// The eight metrics of a log whose values were computed by hand: five runs in four sessions. The
// words of the ends, and two times that nobody knows, leave the other figures as they are.
func TestEightMetricsByHand(t *testing.T) {
	tokens := func(before, after int64) *ae.ContextCompacted {
		return &ae.ContextCompacted{TokensBefore: ae.Some(before), TokensAfter: ae.Some(after)}
	}
	costs := func(usd float64) ae.AgentEnded {
		return ae.AgentEnded{Outcome: ae.OutcomeConverged, TotalCostUSD: ae.Some(usd)}
	}
	tool := func(run, id string, s ae.ToolStatus) []entry {
		return []entry{{run: run, agent: "lead", p: &ae.ToolCalled{CallID: id, ToolID: "saw"}}, {run: run, agent: "lead", p: &ae.ToolReturned{CallID: id, ToolID: "saw", Status: s}}}
	}
	pass := func(run, from, to string) entry {
		return entry{run: run, agent: from, p: &ae.AgentHandoff{From: ref(from), To: ref(to)}}
	}
	asks := func(run, id string, second int) entry {
		return entry{run: run, agent: "lead", second: second, p: &ae.ApprovalRequested{ApprovalID: id, Action: "cut"}}
	}
	ends := func(run, word string) entry { return entry{run: run, p: &ae.SessionCompleted{Status: word}} }
	failed := ae.AgentEnded{Error: ae.Some(ae.ErrorInfo{Message: "dull"})}

	events := log(slices.Concat(
		// Session A has the runs 1 and 2. Run 1 succeeds though its helper failed. A loop: lead hands over to help twice.
		with("A", slices.Concat(
			[]entry{{run: "1", agent: "lead", p: &ae.AgentStarted{}}, pass("1", "lead", "help"), pass("1", "lead", "help")},
			works("1", "help", "lead", "", failed),
			tool("1", "c1", ae.ToolStatusOK), tool("1", "c2", ae.ToolStatusError), tool("1", "c3", ae.ToolStatusCancelled),
			[]entry{asks("1", "q1", 100), {run: "1", second: 112, p: &ae.ApprovalGranted{ApprovalID: "q1"}}, {run: "1", agent: "lead", p: tokens(6000, 1000)}},
			[]entry{{run: "1", agent: "lead", p: ptr(costs(0.30))}, ends("1", "OK")},
			works("2", "lead", "", "", costs(0.10)), []entry{ends("2", "timed_out")})),
		// Session B: a chain of three, one claim of two rejected, one audit of two failed.
		with("B", slices.Concat(
			[]entry{{run: "3", agent: "lead", p: &ae.AgentStarted{}}},
			works("3", "help", "lead", "", converged), works("3", "deep", "help", "", converged),
			tool("3", "c1", ae.ToolStatusOK), tool("3", "c2", ae.ToolStatusForbidden), tool("3", "c3", ae.ToolStatusOK),
			[]entry{{run: "3", p: &ae.ClaimVerified{FindingID: "f1", Verdict: "accepted"}}, {run: "3", p: &ae.ClaimVerified{FindingID: "f2", Verdict: "Refuted"}},
				{run: "3", agent: "lead", p: &ae.AuditChecked{CheckpointID: "k1", Result: ae.AuditPass}}, {run: "3", agent: "lead", p: &ae.AuditChecked{CheckpointID: "k2", Result: ae.AuditFail}},
				asks("3", "q2", 200), {run: "3", second: 208, p: &ae.ApprovalRejected{ApprovalID: "q2"}}, {run: "3", agent: "lead", p: tokens(3000, 1000)}, {run: "3", agent: "lead", p: ptr(costs(0.20))}, ends("3", "success")})),
		// Session C: a word that nobody knows decides nothing. Session D: cancelled.
		with("C", []entry{{run: "4", agent: "lead", p: &ae.AgentStarted{}}, {run: "4", agent: "lead", p: ptr(converged)}, ends("4", "shelved")}),
		with("D", []entry{{run: "5", agent: "lead", p: &ae.AgentStarted{}}, asks("5", "q3", 300), {run: "5", second: 900, p: &ae.ApprovalGranted{ApprovalID: "q3"}}, ends("5", "aborted")}),
	)...)
	for i := range events {
		if p, ok := events[i].Payload.(*ae.ApprovalRequested); ok && p.ApprovalID == "q3" {
			events[i].Time = time.Unix(0, 0).UTC()
		}
	}
	m := report("", events).Metrics
	require.Equal(t, Metric{some(0.5), some(2), 4}, m.TaskSuccessRate, "1 and 3 of 1, 2, 3, 5")
	require.Equal(t, Metric{some(0.25), some(1), 4}, m.HandoffLoopRate, "A of four sessions")
	require.Equal(t, Metric{some(0.5), some(2), 4}, m.VerifierRejectionRate)
	require.Equal(t, Metric{some(4.0 / 8), some(4), 8}, m.AverageAgentDepth, "help, help and deep twice")
	require.Equal(t, Metric{some(0.25), some(1), 4}, m.ToolFailureRate, "cancelled and forbidden calls count in neither")
	require.InDelta(t, 0.60/2, m.CostPerSuccessfulTask.Value.V, 1e-9)
	require.Equal(t, Metric{some(10_000), some(20_000), 2}, m.HumanApprovalLatency.Metric, "12 s and 8 s; nobody knows when q3 was asked")
	require.Equal(t, Metric{some(4.5), some(9000), 2000}, m.ContextCompression)
	twice := report("", slices.Concat(events, events)).Metrics
	require.Equal(t, m, twice)
}

func ptr(e ae.AgentEnded) *ae.AgentEnded { return &e }

// A call that returns twice counts once in every table. A return of a whole call does not end an open one.
func TestReturnsTwice(t *testing.T) {
	returned := func() *ae.ToolReturned { return &ae.ToolReturned{CallID: "c", ToolID: "t", Status: ae.ToolStatusError} }
	whole := returned()
	whole.OneEvent, whole.Status = true, ae.ToolStatusOK
	answered := &ae.ModelReturned{ModelCallID: "m", Model: "x", Error: ae.Some(ae.ErrorInfo{Message: "x"})}
	c := New(ByAgent, ByTool, ByModel, ByAgentTool, ByModelTool, ByAgentModel)
	for i, p := range []ae.Payload{
		&ae.AgentStarted{Model: "x"}, &ae.ModelCalled{ModelCallID: "m", Model: "x"}, answered, answered,
		&ae.ToolCalled{CallID: "c", ToolID: "t"}, whole, returned(), returned(),
	} {
		c.Event(ae.Event{ID: fmt.Sprint(i), RunID: "r", AgentID: "a", Sequence: uint64(i), Time: time.Unix(int64(i), 0), Payload: p})
	}
	r := c.Report()
	require.Equal(t, [2]int{2, 1}, [2]int{r.ToolCalls.Calls, r.ToolCalls.Failed})
	for _, g := range append(r.Tables, r.Table) {
		for _, row := range g.Groups {
			if g.By != ByModel && g.By != ByAgentModel {
				require.Equal(t, [2]int{2, 1}, [2]int{row.ToolCalls.Calls, row.ToolCalls.Failed}, g.By)
			}
			if g.By == ByModel || g.By == ByAgent || g.By == ByAgentModel {
				require.Equal(t, [2]int{1, 1}, [2]int{row.ModelCalls.Calls, row.ModelCalls.Failed}, g.By)
			}
		}
	}
}

// An agent without an id has one row, also where its document has no starts of agents.
func TestAgentOfANode(t *testing.T) {
	c := New(ByAgent)
	c.Event(ae.Event{RunID: "r", Scope: ae.Scope{NodeID: "n", NodeRunID: "n#1"}, Payload: &ae.ToolReturned{
		CallID: "c", ToolID: "t", Status: ae.ToolStatusOK, OneEvent: true, Duration: ae.Some(time.Second),
	}})
	groups := c.Report().Groups
	require.Len(t, groups, 1)
	require.Equal(t, "n", groups[0].Name)
}
