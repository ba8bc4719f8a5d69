package lawtest

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect"
	"github.com/agentevents/agentevents/dialect/kahn"
	"github.com/agentevents/agentevents/dialect/kaos"
	"github.com/agentevents/agentevents/dialect/multiagent"
	"github.com/agentevents/agentevents/findings"
	"github.com/agentevents/agentevents/internal/effort"
	"github.com/agentevents/agentevents/internal/stats"
	"github.com/agentevents/agentevents/internal/view"
	"github.com/agentevents/agentevents/report"
	"github.com/agentevents/agentevents/tree"
)

// TestManyOfAThing draws logs with several workflows, turns, runs of a session, attempts of an
// agent and agents of one name at once, in four formats and in any order that the formats allow.
// The generator knows of each thing where it belongs; it does not use the code under test. The
// snapshot, the rows of agents, the tree and the figures must agree with it.
func TestManyOfAThing(t *testing.T) {
	for seed := range effort.Of(200, 400, 5000) {
		form := manyForms[seed%len(manyForms)]
		m := &many{Rand: rand.New(rand.NewPCG(uint64(seed), 38)), runs: map[string]*manyRun{}}
		form.draw(m)
		if !m.check(t) {
			t.Fatalf("%s, seed %d:\n%s", form.name, seed, strings.Join(m.lines, "\n"))
		}
	}
}

var manyForms = []struct {
	name string
	draw func(*many)
}{{"multiagent", drawWiki}, {"kaos", drawKAOS}, {"kahn", drawKAHN}, {"native", drawNative}}

// many is a drawn log, with the known facts about it.
type many struct {
	*rand.Rand
	lines []string
	runs  map[string]*manyRun
	tries []*try
	next  int // number of the next thing with an own name
	line  int // number of the next line
}

type manyRun struct {
	status agentevents.RunStatus
	flows  map[string]*flow
	agents map[string]*try // the last attempt of an agent, by a key of the generator
	others int             // number of agents that have no attempts
}

// A flow is a workflow.
type flow struct {
	finalized bool
	tokens    int64
}

// A try is an attempt of an agent. Its task has a name that no other has.
type try struct {
	run, name, task    string
	flow, phase        string
	above              string // task of the attempt that spawned it
	second             bool   // in the second of two passages at once
	failed, died       bool
	calls, failedCalls int
	tokens             int64
	tools              []string
}

// A strand is lines in their order; strands may mix.
type strand []func()

// mix runs the strands in a drawn order.
func (m *many) mix(strands []strand) {
	for len(strands) > 0 {
		i := m.IntN(len(strands))
		strands[i][0]()
		if strands[i] = strands[i][1:]; len(strands[i]) == 0 {
			strands = slices.Delete(strands, i, i+1)
		}
	}
}

func (m *many) fresh(what string) string {
	m.next++
	return fmt.Sprintf("%s%d_", what, m.next)
}

func (m *many) chance(percent int) bool { return m.IntN(100) < percent }

func (m *many) run(id string) *manyRun {
	r := m.runs[id]
	if r == nil {
		r = &manyRun{flows: map[string]*flow{}, agents: map[string]*try{}}
		m.runs[id] = r
	}
	return r
}

func (m *many) write(members map[string]any) {
	text, err := json.Marshal(members)
	if err != nil {
		panic(err)
	}
	m.lines = append(m.lines, string(text))
	m.line++
}

// try draws an attempt. key tells the agent apart from others of the run.
func (m *many) try(run, name, key string) *try {
	a := &try{run: run, name: name, task: m.fresh("job"), failed: m.chance(30)}
	m.tries = append(m.tries, a)
	m.run(run).agents[key] = a
	return a
}

func (m *many) tool(a *try) (tool string, failed bool) {
	tool, failed = m.fresh("tool"), m.chance(25)
	a.tools = append(a.tools, tool)
	if a.calls++; failed {
		a.failedCalls++
	}
	return tool, failed
}

// byAgents is the status of a run that follows its agents.
func (r *manyRun) byAgents() agentevents.RunStatus {
	for _, a := range r.agents {
		if a.failed {
			return agentevents.RunStatusFailed
		}
	}
	return agentevents.RunStatusCompleted
}

// drawWiki draws a session of runs: of workflows with phases, of agents with attempts, or of calls
// alone.
func drawWiki(m *many) {
	var strands []strand
	var runs []string
	for range m.IntN(3) + 1 {
		run := m.fresh("run")
		runs = append(runs, run)
		r := m.run(run)
		switch m.IntN(3) {
		case 0:
			r.status = agentevents.RunStatusCompleted
			for range m.IntN(3) + 1 {
				strands = append(strands, m.wikiFlow(r, run))
			}
		case 1:
			for range m.IntN(2) + 1 {
				name := m.fresh("agent")
				var lines strand
				for range m.IntN(3) + 1 {
					lines = append(lines, m.wikiWork(run, name, "", "", "")...)
				}
				strands = append(strands, lines)
			}
			r.status = r.byAgents()
		default:
			r.status, r.others = agentevents.RunStatusRunning, 1
			strands = append(strands, strand{func() {
				m.wikiLine(run, "agent.message.created", "top", "", "Talker", map[string]any{"content": "hello"})
			}})
		}
	}
	m.mix(strands)
	if m.chance(70) {
		last := runs[m.IntN(len(runs))]
		m.wikiLine(last, "session.completed", "top", "", "lead", map[string]any{"status": "completed"})
		for _, id := range runs {
			if r := m.run(id); id == last || r.status == agentevents.RunStatusRunning {
				r.status = agentevents.RunStatusCompleted
			}
		}
	}
}

func (m *many) wikiLine(run, kind, span, parent, actor string, payload map[string]any) {
	line := map[string]any{
		"id": fmt.Sprint("w", m.line), "traceId": "t", "spanId": span, "sessionId": "s", "runId": run, "actor": actor,
		"type":    kind,
		"payload": payload, "timestamp": fmt.Sprintf("2026-08-03T07:%02d:%02d.000Z", m.line/60, m.line%60),
		"schemaVersion": "1.0",
	}
	if parent != "" {
		line["parentSpanId"] = parent
	}
	m.write(line)
}

// wikiWork returns the lines of an attempt of an agent, with its calls.
func (m *many) wikiWork(run, name, flow, phase, parent string) (lines strand) {
	a, span := m.try(run, name, name), m.fresh("span")
	a.flow, a.phase, a.tokens = flow, phase, int64(m.IntN(50)+1)
	of := func(payload map[string]any) map[string]any {
		if flow != "" {
			payload["workflowId"], payload["phase"] = flow, phase
		}
		return payload
	}
	lines = append(lines, func() {
		m.wikiLine(run, "agent.spawned", span, parent, "lead", of(map[string]any{"agentTask": a.task, "agentId": name}))
	})
	for range m.IntN(3) {
		tool, failed := m.tool(a)
		call, in := m.fresh("call"), m.fresh("span")
		lines = append(lines,
			func() {
				m.wikiLine(run, "tool.call.started", in, span, name, map[string]any{"callId": call, "toolName": tool})
			},
			func() {
				payload := map[string]any{"callId": call, "output": 1}
				if failed {
					payload["error"] = "broke"
				}
				m.wikiLine(run, "tool.call.completed", in, "", name, payload)
			})
	}
	return append(lines, func() {
		payload := of(map[string]any{"agentId": name, "tokens": a.tokens})
		if a.failed {
			payload["error"] = "lost " + a.task
		}
		m.wikiLine(run, "agent.completed", span, "", "lead", payload)
	})
}

// wikiFlow returns the lines of a workflow. The run goes on if the workflow is not finalized.
func (m *many) wikiFlow(r *manyRun, run string) strand {
	id := m.fresh("flow")
	f := &flow{finalized: m.chance(85), tokens: int64(m.IntN(500) + 1)}
	r.flows[id] = f
	lines := strand{func() {
		m.wikiLine(run, "workflow.created", "top", "", "lead", map[string]any{"workflowId": id, "script": "x",
			"phases": []string{"same"}, "estimatedTokens": 1})
	}}
	names := []string{m.fresh("agent"), m.fresh("agent")}
	for _, phase := range []string{"same", m.fresh("phase")}[:m.IntN(2)+1] {
		span := m.fresh("span")
		lines = append(lines, func() {
			m.wikiLine(run, "workflow.phase.started", span, "", "lead", map[string]any{"workflowId": id,
				"phase": phase, "inputCount": 1})
		})
		twin := ""
		if m.chance(30) { // a passage through the same phase at once
			twin = m.fresh("span")
			lines = append(lines, func() {
				m.wikiLine(run, "workflow.phase.started", twin, "", "lead", map[string]any{"workflowId": id,
					"phase": phase, "inputCount": 2})
			})
		}
		for range m.IntN(3) {
			in := span
			if twin != "" && m.chance(50) {
				in = twin
			}
			lines = append(lines, m.wikiWork(run, names[m.IntN(2)], id, phase, in)...)
			m.tries[len(m.tries)-1].second = in == twin
		}
		if twin != "" {
			lines = append(lines, func() {
				m.wikiLine(run, "workflow.phase.completed", twin, "", "lead", map[string]any{"workflowId": id,
					"phase": phase, "outputCount": 7, "tokens": 1})
			})
		}
		lines = append(lines, func() {
			m.wikiLine(run, "workflow.phase.completed", span, "", "lead", map[string]any{"workflowId": id,
				"phase": phase, "outputCount": 1, "tokens": 1})
		})
	}
	if f.finalized {
		lines = append(lines, func() {
			m.wikiLine(run, "workflow.finalized", "top", "", "lead", map[string]any{"workflowId": id,
				"totalTokens": f.tokens, "totalAgents": 1, "durationMs": 5})
		})
	} else {
		r.status = agentevents.RunStatusRunning
	}
	return lines
}

// drawKAOS draws a chat of turns, and sub-agents of few names one after the other and at once.
func drawKAOS(m *many) {
	run := m.fresh("run")
	r := m.run(run)
	add := func(subject, phase, span, parent, agent, name string, attributes map[string]any, failure string) {
		line := map[string]any{
			"timestamp": 1785740400.0 + float64(m.line), "sequence": m.line, "session_id": "chat", "run_id": run, "agent_id": nil, "subject": subject, "phase": phase,
			"span_id": span, "parent_span_id": nil, "name": name, "duration_ms": nil, "error_type": nil, "error_message": nil, "attributes": attributes, "type": "span",
		}
		if agent != "" {
			line["agent_id"] = agent
		}
		if parent != "" {
			line["parent_span_id"] = parent
		}
		if failure != "" {
			line["error_type"], line["error_message"] = "E", failure
		}
		if phase != "start" {
			line["duration_ms"] = 5.0
		}
		m.write(line)
	}
	var strands []strand
	turns := m.IntN(4)
	open, bad := m.chance(25), m.chance(25)
	var lines strand
	for i := range turns {
		span, last := m.fresh("span"), i == turns-1
		lines = append(lines, func() { add("turn", "start", span, "", "", "turn", map[string]any{"turn_number": i + 1}, "") })
		switch {
		case last && open:
		case last && bad:
			lines = append(lines, func() { add("turn", "error", span, "", "", "turn", map[string]any{}, "bad") })
		default:
			lines = append(lines, func() { add("turn", "complete", span, "", "", "turn", map[string]any{}, "") })
		}
	}
	if turns > 0 {
		r.others = 1 // the root
		strands = append(strands, lines)
	}
	// Of agents with one name that work at once, the first has the name; another one has its span.
	holds := map[string]string{}
	names := []string{m.fresh("scout"), m.fresh("scout")}
	for range m.IntN(4) + 1 {
		name, span := names[m.IntN(2)], m.fresh("span")
		a := m.try(run, name, span)
		delete(r.agents, span) // who it is, its start decides
		lines := strand{func() {
			key := name
			if holds[name] != "" {
				key = span
			} else {
				holds[name] = span
			}
			r.agents[key] = a
			add("subagent", "start", span, "", "", "subagent."+name, map[string]any{"subagent_name": name, "task": a.task}, "")
		}}
		for range m.IntN(3) {
			tool, failed := m.tool(a)
			in := m.fresh("span")
			about := map[string]any{"tool_name": tool, "call_id": fmt.Sprint("c", m.IntN(2), m.next)}
			lines = append(lines,
				func() { add("tool_call", "start", in, span, name, "tool."+tool, about, "") },
				func() {
					if failed {
						add("tool_call", "error", in, "", name, "tool."+tool, about, "broke")
					} else {
						add("tool_call", "complete", in, "", name, "tool."+tool, about, "")
					}
				})
		}
		strands = append(strands, append(lines, func() {
			if holds[name] == span {
				delete(holds, name)
			}
			phase, failure := "complete", ""
			if a.failed {
				phase, failure = "error", "lost "+a.task
			}
			add("subagent", phase, span, "", "", "subagent."+name, map[string]any{"subagent_name": name}, failure)
		}))
	}
	m.mix(strands)
	switch {
	case turns == 0:
		r.status = r.byAgents()
	case open:
		r.status = agentevents.RunStatusRunning
	case bad:
		r.status = agentevents.RunStatusFailed
	default:
		r.status = agentevents.RunStatusCompleted
	}
}

// drawKAHN draws agents with attempts, some of which were cut off. The log may begin after starts.
func drawKAHN(m *many) {
	var strands []strand
	for range m.IntN(2) + 1 {
		run := m.fresh("run")
		add := func(event, agent string, members map[string]any) {
			members["ts"] = fmt.Sprintf("2026-08-03T07:%02d:%02d.000Z", m.line/60, m.line%60)
			members["run_id"], members["event"], members["agent_id"] = run, event, agent
			m.write(members)
		}
		for range m.IntN(3) + 1 {
			name, step := m.fresh("coder"), 0
			var lines strand
			tries := m.IntN(3) + 1
			for i := range tries {
				a := m.try(run, name, name)
				if cut := i == 0 && m.chance(30); cut {
					a.task = ""
				} else {
					lines = append(lines, func() { add("agent_run_start", name, map[string]any{"task": a.task}) })
					if a.died = i < tries-1 && m.chance(30); a.died {
						a.failed = false
					}
				}
				calls := m.IntN(3)
				for range calls {
					tool, failed := m.tool(a)
					at := step
					step++
					lines = append(lines, func() {
						add("tool_invocation", name, map[string]any{"step": at, "tool_name": tool, "duration_s": 0.5, "ok": !failed})
					})
				}
				if !a.died {
					lines = append(lines, func() {
						outcome := "converged"
						if a.failed {
							outcome = "aborted"
						}
						add("agent_run_end", name, map[string]any{
							"outcome": outcome, "total_steps": calls, "total_tool_calls": calls, "total_audit_checkpoints": 0, "audits_passed": 0, "audits_failed": 0, "total_duration_s": 1.0,
						})
					})
				}
			}
			strands = append(strands, lines)
		}
		r := m.run(run)
		r.status = r.byAgents()
	}
	m.mix(strands)
}

// drawNative draws agents with attempts and figures; now and then one agent has very many.
func drawNative(m *many) {
	run := m.fresh("run")
	addBelow := func(parent, kind, agent string, payload map[string]any) {
		line := map[string]any{
			"id": fmt.Sprint("n", m.line), "sequence": m.line, "timestamp": fmt.Sprintf("2026-08-03T07:%02d:%02d.000Z", m.line/60%60, m.line%60), "type": kind,
			"runId": run, "agentId": agent, "schemaVersion": "1.0", "payload": payload,
		}
		if parent != "" {
			line["parentAgentId"] = parent
		}
		m.write(line)
	}
	add := func(kind, agent string, payload map[string]any) { addBelow("", kind, agent, payload) }
	var strands []strand
	for range m.IntN(3) + 1 {
		name := m.fresh("cook")
		var lines strand
		tries, helper := m.IntN(4)+1, m.fresh("helper")
		if m.chance(5) {
			tries = m.IntN(60) + 20
		}
		for i := range tries {
			a := m.try(run, name, name)
			if a.died = i < tries-1 && m.chance(20); a.died {
				a.failed = false
			}
			a.tokens = int64(m.IntN(50) + 1)
			lines = append(lines, func() { add("agent.started", name, map[string]any{"task": a.task, "resumed": true}) })
			for range m.IntN(3) {
				tool, failed := m.tool(a)
				lines = append(lines, func() {
					status := "ok"
					if failed {
						status = "error"
					}
					add("agent.toolReturned", name, map[string]any{"callId": tool, "toolId": tool, "status": status, "oneEvent": true})
				})
			}
			if m.chance(25) {
				b := m.try(run, helper, helper)
				b.above = a.task
				lines = append(lines,
					func() {
						addBelow(name, "agent.started", helper, map[string]any{"task": b.task, "resumed": true})
					},
					func() {
						outcome := "converged"
						if b.failed {
							outcome = "aborted"
						}
						add("agent.ended", helper, map[string]any{"outcome": outcome})
					})
			}
			if a.died {
				lines = append(lines, func() {
					add("usage.observed", name, map[string]any{"usage": map[string]any{"inputTokens": a.tokens, "outputTokens": 0}})
				})
				continue
			}
			lines = append(lines, func() {
				payload := map[string]any{"outcome": "converged", "usage": map[string]any{"inputTokens": a.tokens, "outputTokens": 0}}
				if a.failed {
					payload["outcome"], payload["error"] = "aborted", map[string]any{"message": "lost " + a.task}
				}
				add("agent.ended", name, payload)
			})
		}
		strands = append(strands, lines)
	}
	m.mix(strands)
	r := m.run(run)
	r.status = r.byAgents()
}

// A row is an attempt as a view has it, and as it should.
type row struct {
	name, task, flow, phase string
	how                     string
	calls, failed           int
	tokens                  int64
}

// check compares the known facts about the log with the views.
func (m *many) check(t *testing.T) bool {
	set := agentevents.NewFoldSet(agentevents.FoldOptions{KeepCalls: 1 << 20})
	var details report.Details
	figures := stats.New("")
	events := map[string][]agentevents.Event{}
	reader := agentevents.NewReader(strings.NewReader(strings.Join(m.lines, "\n")+"\n"), agentevents.ReaderOptions{Decoder: &dialect.Auto{Decoders: map[dialect.Name]agentevents.Decoder{
		dialect.KAHN: kahn.NewDecoder(kahn.Options{}), dialect.KAOS: kaos.NewDecoder(kaos.Options{}), dialect.MultiAgent: multiagent.NewDecoder(multiagent.Options{}),
	}}})
	for ev, err := range reader.All() {
		require.NoError(t, err)
		set.Apply(ev)
		details.Add(&ev)
		figures.Event(ev)
		events[ev.RunID] = append(events[ev.RunID], ev)
	}
	ok := true
	equal := func(want, got any, about string) {
		if fmt.Sprint(want) != fmt.Sprint(got) {
			t.Errorf("%s:\nwant %v\ngot  %v", about, want, got)
			ok = false
		}
	}
	statuses := map[agentevents.RunStatus]int{}
	agents, calls, failed, tokens := 0, 0, 0, int64(0)
	for id, r := range m.runs {
		m.resumed(t, events[id])
		s := set.Snapshot(id)
		equal(r.status, s.Status, "status of "+id)
		statuses[r.status]++
		flows := map[string]string{}
		for flow, f := range r.flows {
			text := "open"
			if f.finalized {
				text = fmt.Sprint(f.tokens)
			}
			flows[flow] = text
		}
		got := map[string]string{}
		for i := range s.Workflows {
			w := &s.Workflows[i]
			got[w.WorkflowID] = "open"
			if w.Finalized {
				got[w.WorkflowID] = fmt.Sprint(w.TotalTokens.V)
			}
		}
		equal(flows, got, "workflows of "+id)

		var want []row
		for _, a := range m.tries {
			if a.run != id {
				continue
			}
			how := "good"
			switch {
			case a.died:
				how = "cut off"
			case a.failed:
				how = "bad"
			}
			want = append(want, row{a.name, a.task, a.flow, a.phase, how, a.calls, a.failedCalls, a.tokens})
			calls, failed, tokens = calls+a.calls, failed+a.failedCalls, tokens+a.tokens
		}
		agents += len(r.agents) + r.others
		m.rows(s, want, equal)
		var text strings.Builder
		require.NoError(t, tree.Write(&text, s, tree.Options{Width: -1, Ended: true, Details: &details}))
		m.drawn(id, text.String(), equal)
	}
	report := figures.Report()
	equal(statuses, report.Statuses, "runs by status in the figures")
	equal(agents, report.Agents, "agents in the figures")
	equal([]int{calls, failed, 0}, []int{report.ToolCalls.Returned, report.ToolCalls.Failed, report.ToolCalls.Open}, "calls in the figures")
	var all int64
	if report.Tokens != nil {
		all = report.Tokens.All()
	}
	equal(tokens, all, "tokens in the figures")
	return ok
}

// resumed folds the events of a run in two parts: the snapshot equals the one that a whole fold makes.
func (m *many) resumed(t *testing.T, events []agentevents.Event) {
	whole, fold := agentevents.NewFold(agentevents.FoldOptions{}), agentevents.NewFold(agentevents.FoldOptions{})
	cut := m.IntN(len(events) + 1)
	for i := range events {
		whole.Apply(events[i])
		if i == cut {
			var s agentevents.RunSnapshot
			require.NoError(t, s.UnmarshalJSON(fold.Snapshot().AppendJSON(nil)))
			var err error
			fold, err = agentevents.ResumeFold(&s, agentevents.FoldOptions{})
			require.NoError(t, err)
		}
		fold.Apply(events[i])
	}
	require.Equal(t, string(whole.Snapshot().AppendJSON(nil)), string(fold.Snapshot().AppendJSON(nil)), "cut at %d", cut)
}

// rows compares the attempts that people see of a run. Of very many those in the middle are one.
func (m *many) rows(s *agentevents.RunSnapshot, want []row, equal func(want, got any, about string)) {
	all := view.Of(s)
	var got []row
	dropped := map[string]row{}
	for _, a := range s.AgentsInOrder() {
		if !a.Started && !a.Ended {
			continue // the root
		}
		for _, one := range view.Attempts(a) {
			word, mark := all.Status(a.AgentID, one.AgentSnapshot)
			how := map[view.Mark]string{view.Good: "good", view.Bad: "bad", view.Warn: word}[mark]
			used, _ := one.Usage.Total()
			r := row{view.Name(a.AgentID, a), one.Task, one.WorkflowID, one.Phase, how, one.ToolCalls, one.ToolFailures, view.Tokens(used)}
			if one.Dropped > 0 {
				dropped[r.name] = row{calls: r.calls, failed: r.failed, tokens: r.tokens, flow: fmt.Sprint(one.Dropped)}
				continue
			}
			got = append(got, r)
		}
	}
	// The rows that are not kept are in the middle.
	missing := map[string][]row{}
	for _, w := range want {
		if _, some := dropped[w.name]; some && !slices.Contains(got, w) {
			missing[w.name] = append(missing[w.name], w)
		}
	}
	for name, d := range dropped {
		sum := row{flow: fmt.Sprint(len(missing[name]))}
		for _, w := range missing[name] {
			sum.calls, sum.failed, sum.tokens = sum.calls+w.calls, sum.failed+w.failed, sum.tokens+w.tokens
			want = slices.DeleteFunc(want, func(r row) bool { return r == w })
		}
		equal(sum, d, "not kept of "+name)
	}
	order := func(a, b row) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) }
	slices.SortFunc(want, order)
	slices.SortFunc(got, order)
	equal(want, got, "attempts of "+s.RunID)
}

// drawn compares the places in the tree: a call is below its attempt, an attempt below its phase and that
// below its workflow.
func (m *many) drawn(run, text string, equal func(want, got any, about string)) {
	above := func(token string) (path []string, found bool) {
		for line := range strings.Lines(text) {
			name := strings.TrimLeft(line, "│├└─ ")
			depth := (len([]rune(line)) - len([]rune(name))) / 3
			path = append(path[:min(depth, len(path))], name)
			if strings.Contains(name, token) && !strings.HasPrefix(name, string(findings.FailureStreak)) { // which quotes an error
				return path[:len(path)-1], true
			}
		}
		return nil, false
	}
	has := func(path []string, token string) bool {
		return slices.ContainsFunc(path, func(line string) bool { return strings.Contains(line, token) })
	}
	for _, a := range m.tries {
		if a.run != run || a.task == "" {
			continue
		}
		path, found := above(a.task)
		if !found && strings.Contains(text, "not kept") {
			continue
		}
		equal(true, found, "the attempt at "+a.task+" in\n"+text)
		if a.flow != "" {
			equal(true, has(path, "workflow "+a.flow) && has(path, "phase "+a.phase), "the place of "+a.task+" in\n"+text)
			equal(a.second, has(path, "2 in · 7 out"), "the passage of "+a.task+" in\n"+text)
		}
		if _, kept := above(a.above); a.above != "" && kept {
			equal(true, has(path, a.above), "the attempt above "+a.task+" in\n"+text)
		}
		for _, tool := range a.tools {
			path, found := above("tool." + tool)
			equal(true, found && has(path, a.task) && has(path, a.name), "the place of "+tool+" of "+a.task+" in\n"+text)
		}
	}
}
