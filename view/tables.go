package view

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/internal/endword"
	"github.com/agentevents/agentevents/internal/spans"
	"github.com/agentevents/agentevents/internal/view"
	"github.com/agentevents/agentevents/report"
)

// agents returns the agents and their attempts, each after the agent that spawned it.
func agents(s *agentevents.RunSnapshot) (rows []agentHead) {
	all, order := view.Of(s), s.AgentsInOrder()
	names := report.Names(order)
	below := map[string][]*agentevents.AgentSnapshot{}
	for _, a := range order {
		parent := a.ParentAgentID
		if s.Agents[parent] == nil || parent == a.AgentID {
			parent = ""
		}
		below[parent] = append(below[parent], a)
	}
	seen := map[string]bool{}
	var walk func(parent string, depth int)
	walk = func(parent string, depth int) {
		for _, a := range below[parent] {
			if seen[a.AgentID] {
				continue
			}
			seen[a.AgentID] = true
			for _, t := range view.Attempts(a) {
				word, mark := all.Status(a.AgentID, t.AgentSnapshot)
				u, cost := t.Usage.Total()
				row := agentHead{
					ID: a.AgentID, Name: brief(names[a.AgentID], maxName), Depth: depth, Status: word,
					Mark: int(mark), Model: view.Model(t.AgentSnapshot), Task: brief(t.Task, maxText),
					Calls: t.ToolCalls, Failed: t.ToolFailures, Tokens: tokens(u, t.Usage.Partial()),
					Cost: dollars(cost), Took: ms(view.Took(t.AgentSnapshot)), At: t.Sequence,
				}
				if t.Several {
					row.Attempt = t.Attempts
				}
				if t.Dropped > 0 {
					row.Status, row.Mark = view.Count(t.Dropped, "attempt")+" not kept", int(view.None)
				}
				rows = append(rows, row)
			}
			walk(a.AgentID, depth+1)
		}
	}
	walk("", 0)
	for _, a := range order { // agents that are below each other
		if !seen[a.AgentID] {
			below[""] = []*agentevents.AgentSnapshot{a}
			walk("", 0)
		}
	}
	return rows
}

// calls returns the tool calls in the order of their first events.
func (r *run) calls(s *agentevents.RunSnapshot) (rows []callHead) {
	used := map[[2]string]int{}
	list := slices.Concat(s.ClosedCalls, s.OpenCalls)
	slices.SortStableFunc(list,
		func(a, b *agentevents.ToolCallSnapshot) int { return cmp.Compare(a.Sequence, b.Sequence) })
	for _, c := range list {
		row := callHead{
			At: c.Sequence, End: -1, Tool: brief(c.ToolID, maxName), Text: r.details.Call(s.RunID, c.AgentID, c.Sequence),
			Status: cmp.Or(brief(c.Word, maxName), string(c.Status)),
			Mark:   int(view.None), Took: -1, Error: brief(c.Error, maxText),
		}
		switch {
		case c.Status != "":
			row.Mark = int(view.MarkOf(endword.Of(string(c.Status))))
		case view.Over(s):
			row.Status, row.Mark = "without a return", int(view.Warn)
		default:
			row.Status = "open"
		}
		if c.Duration.OK {
			row.Took = ms(c.Duration.V)
		}
		key := [2]string{c.AgentID, c.CallID}
		if n := used[key]; c.Status != "" && n < len(r.returns[key]) {
			row.End = int64(r.returns[key][n])
			used[key]++
		}
		rows = append(rows, row)
	}
	return rows
}

// timeline returns the bars in the order of their begins.
func (r *run) timeline() (bars []bar) {
	for _, s := range r.bars {
		operation, agent := operationOf(s), ""
		for top := s; top != nil && agent == ""; top = top.Parent {
			agent = cmp.Or(text(top, "agentevents.agent.id"), text(top, "gen_ai.agent.id"), text(top, "gen_ai.agent.name"))
		}
		name := strings.TrimPrefix(s.Name, text(s, "gen_ai.operation.name")+" ")
		b := bar{
			Agent: agent, Type: operation, Name: brief(name, maxName), From: r.since(s.Start), To: r.since(s.End),
			First: s.First, Bad: s.Status == spans.StatusError,
		}
		if b.From < 0 || b.To < b.From {
			continue
		}
		bars = append(bars, b)
	}
	slices.SortStableFunc(bars, func(a, b bar) int { return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(b.To, a.To)) })
	return bars
}

// operationOf returns the type of a span's bar.
func operationOf(s *spans.Span) string {
	switch op := text(s, "gen_ai.operation.name"); op {
	case "invoke_agent", "create_agent":
		return "agent"
	case "execute_tool":
		return "tool"
	case "chat", "text_completion", "generate_content":
		return "model"
	}
	if s.Name == "agentevents.approval" || s.Name == "agentevents.clarification" {
		return "wait"
	}
	return "other"
}

func text(s *spans.Span, key string) string {
	for _, a := range s.Attributes {
		if a.Key == key && a.Value == nil {
			return a.Text
		}
	}
	return ""
}

// gaps returns the times without an event that are long for this run. The reason is the bar that
// goes on meanwhile: a wait for a person, a call, a model call; without one the run is idle.
func (r *run) gaps() (gaps []gap) {
	const share, short, least = 20, 5 * time.Second, 4
	var times []float64
	for i := range r.rows {
		if t := r.rows[i].at; t >= 0 {
			times = append(times, t)
		}
	}
	slices.Sort(times)
	if times = slices.Compact(times); len(times) < least {
		return nil // the log has hardly any times: a fold would leave nothing to see
	}
	long := max(ms(short), (times[len(times)-1]-times[0])/share)
	for i := 1; i < len(times); i++ {
		if from, to := times[i-1], times[i]; to-from >= long {
			gaps = append(gaps, gap{from, to, r.meanwhile(from, to)})
		}
	}
	return gaps
}

// meanwhile names the thing that goes on during a gap.
func (r *run) meanwhile(from, to float64) string {
	rank, name := 0, "idle"
	for i := range r.head.Bars {
		b := &r.head.Bars[i]
		if b.From > from || b.To < to {
			continue
		}
		if n := slices.Index([]string{"other", "agent", "model", "tool", "wait"}, b.Type); n > rank && n > 1 {
			rank, name = n, b.Name
			if b.Type == "wait" {
				name = "waits for a person"
			}
		}
	}
	return name
}

// tables returns where the time and the tokens went.
func tables(s *agentevents.RunSnapshot, h *runHead) []table {
	tools := table{Name: "Tools", Columns: []string{"tool", "calls", "failed", "refused", "time"}}
	for _, name := range slices.SortedFunc(maps.Keys(s.Tools), func(a, b string) int {
		return cmp.Or(cmp.Compare(s.Tools[b].Duration, s.Tools[a].Duration), strings.Compare(a, b))
	}) {
		if t := s.Tools[name]; t.Calls+t.Refused+t.Undecided > 0 {
			tools.Rows = append(tools.Rows,
				[]string{name, number(t.Calls), number(t.Failed), number(t.Refused), view.Duration(t.Duration)})
		}
	}
	least := func(n int64) string { // of which of the models, the snapshot leaves open
		text := number(n)
		if text != "" && s.Usage.Partial {
			text = "≥" + text
		}
		return text
	}
	models := table{Name: "Models", Columns: []string{"model", "tokens in", "from caches", "tokens out"}}
	for _, name := range slices.Sorted(maps.Keys(s.Usage.Models)) {
		u := s.Usage.Models[name]
		models.Rows = append(models.Rows,
			[]string{name, least(u.InputTokens), least(view.Cached(u)), least(u.OutputTokens)})
	}
	who := table{Name: "Agents", Columns: []string{"agent", "status", "time", "calls", "tokens", "cost"}}
	for i := range h.Agents {
		a := &h.Agents[i]
		who.Rows = append(who.Rows, []string{a.Name, a.Status,
			view.Duration(time.Duration(a.Took * float64(time.Millisecond))), number(a.Calls), a.Tokens, a.Cost})
	}
	waits := table{Name: "Waits and gaps", Columns: []string{"for", "time"}}
	var people, idle float64
	for i := range h.Bars {
		if h.Bars[i].Type == "wait" {
			people += h.Bars[i].To - h.Bars[i].From
		}
	}
	for _, g := range h.Gaps {
		if g.Why == "idle" {
			idle += g.To - g.From
		}
	}
	for _, w := range []struct {
		name string
		ms   float64
	}{{"people", people}, {"nothing (idle)", idle}} {
		if w.ms > 0 {
			waits.Rows = append(waits.Rows, []string{w.name, view.Duration(time.Duration(w.ms * float64(time.Millisecond)))})
		}
	}
	bill := table{Name: "Bill",
		Columns: []string{"agent", "source", "model", "tokens stated", "tokens counted", "cost counted", "why not"}}
	for _, u := range s.UsageSources() {
		bill.Rows = append(bill.Rows, []string{u.AgentID, u.Source, u.Model,
			number(view.Tokens(u.Usage)), number(view.Tokens(u.Counted)), dollars(u.CountedCost), u.Why})
	}
	return slices.DeleteFunc([]table{who, tools, models, waits, bill}, func(t table) bool { return len(t.Rows) == 0 })
}

// number returns a count for a table: empty for 0.
func number[T int | int64](n T) string {
	if n == 0 {
		return ""
	}
	return strconv.FormatInt(int64(n), 10)
}

// The numbers of bytes of a text that a list shows. The event's line has all of it.
const maxName, maxText = 200, 1000

// brief returns the beginning of a text.
func brief(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}
