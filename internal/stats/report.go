package stats

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/findings"
	"github.com/agentevents/agentevents/internal/view"
)

// A Report has the figures of all runs, and the figures of groups.
type Report struct {
	Figures
	Statuses    map[agentevents.RunStatus]int `json:"statuses"`            // runs by status
	MadeUp      int                           `json:"endsMadeUp,omitzero"` // runs with RunSnapshot.EndMadeUp; Statuses has them too
	RunDuration *Spread                       `json:"runDurationMs"`       // of runs that are over; null without any
	Sessions    int                           `json:"sessions"`            // a run that names none is one
	Agents      int                           `json:"agents"`              // agents of all runs
	CostRuns    int                           `json:"costRuns"`            // runs whose cost is known
	Undecided   int                           `json:"tasksUndecided"`      // tasks that may go on, or ended with an unknown word
	EndWords    map[string]int                `json:"endWords,omitzero"`   // the number of runs by such a word; at most 32 words
	Unanswered  int                           `json:"approvalsUnanswered"` // requests that nobody answered
	Handoffs    int                           `json:"handoffs"`            // handoffs and requests for them
	Issues      int                           `json:"issues"`              // issues that verifiers found
	// StatedAudits is the number of audits that agents state in their totals beyond those in the
	// log. No other figure has them.
	StatedAudits int64                 `json:"statedAudits,omitzero"`
	Compactions  int                   `json:"compactions"`       // of contexts; some may not state tokens
	Events       int                   `json:"events"`            // events of the log
	Repeated     int                   `json:"eventsRepeated"`    // events left out: their sequence does not follow their run's
	FindingRate  Metric                `json:"findingRate"`       // runs with a finding of package findings / runs
	Findings     map[findings.Kind]int `json:"findings,omitzero"` // number of findings by kind

	// Table is the one by the first thing, and Tables has those by the others.
	Table
	Tables []Table `json:"tables,omitzero"`
}

// A Table has the figures of the groups by one thing.
type Table struct {
	By     By      `json:"by,omitzero"`
	Groups []Group `json:"groups,omitzero"` // the most expensive first, else those with the most tokens or calls
}

// A Group has the figures about one agent, tool or model, or about a pair of them. Metrics that do
// not apply to it have no value. An agent succeeds in a run if it ended there, without an error,
// and converged or states no outcome. An agent that states the usage of its sub-agents includes it.
type Group struct {
	Name  string `json:"name"`
	Model string `json:"model,omitzero"` // of a group by agent and model; may be empty
	Tool  string `json:"tool,omitzero"`  // of a group by a pair with a tool; may be empty
	Figures
}

// Unnamed returns the number of tokens of answers that name no model. No group by model has them.
func (r *Report) Unnamed(t *Table) (n int64) {
	if t.By != ByModel || r.Tokens == nil {
		return 0
	}
	n = r.Tokens.All()
	for i := range t.Groups {
		if g := t.Groups[i].Tokens; g != nil {
			n -= g.All()
		}
	}
	return max(0, n)
}

// Figures are the figures of many runs, or of one subject in them. Costs are in US dollars. A
// figure is null if no event of the log has it, but a log without tool calls has 0 calls.
type Figures struct {
	Runs       int     `json:"runs"`       // in a group: runs in which it appears
	ToolCalls  *Calls  `json:"toolCalls"`  // tool calls
	ModelCalls *Calls  `json:"modelCalls"` // model calls
	Tokens     *Tokens `json:"tokens"`     // see agentevents.RunUsage
	CostUSD    number  `json:"costUsd"`    // the cost that is known
	Metrics    Metrics `json:"metrics"`
}

// Metrics are the eight metrics of the wiki: see the package's comment.
type Metrics struct {
	TaskSuccessRate       Metric  `json:"taskSuccessRate"`
	HandoffLoopRate       Metric  `json:"handoffLoopRate"`
	VerifierRejectionRate Metric  `json:"verifierRejectionRate"`
	AverageAgentDepth     Metric  `json:"averageAgentDepth"`
	ToolFailureRate       Metric  `json:"toolFailureRate"`
	CostPerSuccessfulTask Metric  `json:"costPerSuccessfulTaskUsd"`
	HumanApprovalLatency  Latency `json:"humanApprovalLatencyMs"`
	ContextCompression    Metric  `json:"contextCompressionRatio"`
}

// A number is null in JSON when it is not known.
type number = agentevents.Opt[float64]

// A Metric is a quotient.
type Metric struct {
	Value       number  `json:"value"` // null without data
	Numerator   number  `json:"numerator"`
	Denominator float64 `json:"denominator"`
}

// A Latency is the mean of some durations, and how they spread; in milliseconds.
type Latency struct {
	Metric
	Spread *Spread `json:"spread"` // null without data
}

// A Spread has percentiles of durations, in milliseconds. A percentile is the least duration that
// so many percent of the durations do not exceed.
type Spread struct {
	P50 float64 `json:"p50"`
	P95 float64 `json:"p95"`
	Max float64 `json:"max"`
}

// Calls counts calls.
type Calls struct {
	Calls     int    `json:"calls"`              // calls that began
	Returned  int    `json:"returned"`           // calls that returned with a success or a failure
	Failed    int    `json:"failed"`             // returned calls that failed
	Open      int    `json:"open"`               // calls that have not returned
	Refused   int    `json:"refused"`            // calls that were refused, whether they had begun or not
	Undecided int    `json:"undecided,omitzero"` // calls that were cut short, or returned with an unknown status
	MeanMS    number `json:"meanMs"`             // mean duration; null when none is known
	// Spread is the distribution of the durations; null if none is known. Its percentiles are
	// within 0.8 % of a duration that occurs, and its maximum is exact.
	Spread *Spread `json:"spreadMs"`
	// Unlogged is the number of tool calls that agents state in their totals beyond those in the
	// log. No other figure has them.
	Unlogged int64 `json:"unlogged,omitzero"`
}

// Tokens counts tokens, as [agentevents.Usage] does.
type Tokens struct {
	Input      int64 `json:"input"`
	Output     int64 `json:"output"`
	CacheWrite int64 `json:"cacheWrite"`
	CacheRead  int64 `json:"cacheRead"`
	Reasoning  int64 `json:"reasoning"`
	Rest       int64 `json:"rest"` // the part of stated totals that the other members do not have
	// Partial means that more was used: a report that counts is partial.
	Partial bool `json:"partial"`
}

// All returns the number of all tokens.
func (t Tokens) All() int64 {
	return view.Plus(view.Plus(view.Plus(t.Input, t.Output), view.Plus(t.CacheWrite, t.CacheRead)), t.Rest)
}

func (t *Tokens) add(u agentevents.Usage) {
	t.Input, t.Output = view.Plus(t.Input, u.InputTokens), view.Plus(t.Output, u.OutputTokens)
	t.CacheWrite, t.CacheRead = view.Plus(t.CacheWrite, u.CacheCreationInputTokens.V),
		view.Plus(t.CacheRead, u.CacheReadInputTokens.V)
	t.Reasoning = view.Plus(t.Reasoning, u.ReasoningOutputTokens.V)
	all := view.Tokens(u)
	u.TotalTokens.V = 0
	t.Rest = view.Plus(t.Rest, all-view.Tokens(u))
}

// Report returns the figures of all events. It empties the collector.
func (c *Collector) Report() *Report {
	for s := range c.log.Drain() {
		c.snapshot(c.runs[s.RunID], s)
	}
	for _, one := range c.sessions {
		c.total.session(one)
	}
	t := &c.total
	r := &Report{
		Figures: t.figures(), Statuses: c.statuses, MadeUp: c.madeUp, RunDuration: spread(c.lasted), Sessions: t.sessions,
		Agents: t.agents, CostRuns: t.costRuns,
		Undecided: t.tasks[undecided], EndWords: c.endWords, Unanswered: t.unanswered, Handoffs: t.handoffs,
		Issues: c.issues, StatedAudits: c.audits, Compactions: t.compactions,
		Events: c.events, Repeated: c.repeated,
	}
	r.ToolCalls = cmp.Or(r.ToolCalls, &Calls{})
	r.findings(c.found)
	var by []By
	for i, t := range c.tables {
		if by = append(by, t.by); i == 0 {
			r.Table = t.figures()
		} else {
			r.Tables = append(r.Tables, t.figures())
		}
	}
	*c = *New(by...)
	return r
}

// findings counts the runs with a finding, and the findings by their kind.
func (r *Report) findings(f *findings.Fold) {
	runs, last := 0, ""
	for _, one := range f.Findings() {
		if r.Findings == nil {
			r.Findings = map[findings.Kind]int{}
		}
		if r.Findings[one.Kind]++; runs == 0 || one.RunID != last {
			runs, last = runs+1, one.RunID
		}
	}
	r.FindingRate = quotient(float64(runs), float64(r.Runs))
}

func (b *table) figures() Table {
	groups := make([]Group, 0, len(b.groups))
	for k, t := range b.groups {
		g := Group{Name: k.name, Figures: t.figures()}
		if b.by == ByAgentModel {
			g.Model = k.second
		} else {
			g.Tool = k.second
		}
		groups = append(groups, g)
	}
	slices.SortFunc(groups, func(a, b Group) int {
		return cmp.Or(a.weigh(&b.Figures), strings.Compare(a.Name, b.Name), strings.Compare(a.Model, b.Model),
			strings.Compare(a.Tool, b.Tool))
	})
	return Table{b.by, groups}
}

// weigh compares groups: the more expensive one comes first.
func (f *Figures) weigh(g *Figures) int {
	return cmp.Or(
		cmp.Compare(g.CostUSD.V, f.CostUSD.V),
		cmp.Compare(or(g.Tokens).All(), or(f.Tokens).All()),
		cmp.Compare(or(g.ToolCalls).Returned+or(g.ModelCalls).Returned, or(f.ToolCalls).Returned+or(f.ModelCalls).Returned),
	)
}

// or returns the value that v points to, or the zero value.
func or[T any](v *T) (zero T) {
	if v == nil {
		return zero
	}
	return *v
}

func (t *tally) figures() Figures {
	f := Figures{Runs: t.runs, ToolCalls: t.tools.figures(), ModelCalls: t.models.figures(), CostUSD: t.cost}
	if tokens := t.tokens; tokens != (Tokens{}) {
		f.Tokens = &tokens
	}
	won := float64(t.tasks[succeeded])
	m := &f.Metrics
	m.TaskSuccessRate = quotient(won, won+float64(t.tasks[failed]))
	m.HandoffLoopRate = quotient(float64(t.loops), float64(t.sessions))
	if t.handoffs == 0 {
		m.HandoffLoopRate.Value = number{}
	}
	m.VerifierRejectionRate = quotient(float64(t.rejections), float64(t.verdicts))
	m.AverageAgentDepth = quotient(float64(t.parents), float64(t.agents))
	m.ToolFailureRate = quotient(float64(t.tools.failed), float64(t.tools.returned))
	m.CostPerSuccessfulTask = quotient(t.cost.V, won)
	if !t.cost.OK {
		m.CostPerSuccessfulTask.Value, m.CostPerSuccessfulTask.Numerator = number{}, number{}
	}
	sum := time.Duration(0)
	for _, d := range t.waits {
		sum = view.Plus(sum, d)
	}
	m.HumanApprovalLatency = Latency{quotient(milliseconds(sum), float64(len(t.waits))), spread(t.waits)}
	m.ContextCompression = quotient(float64(t.before), float64(t.after))
	return f
}

func quotient(numerator, denominator float64) Metric {
	m := Metric{Numerator: agentevents.Some(numerator), Denominator: denominator}
	if denominator > 0 {
		m.Value = agentevents.Some(numerator / denominator)
	}
	return m
}

func (c calls) figures() *Calls {
	if c == (calls{}) {
		return nil
	}
	return &Calls{c.all, c.returned, c.failed, c.open, c.refused, c.undecided,
		quotient(milliseconds(c.last), float64(c.timed)).Value, c.times.spread(), c.unlogged}
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// spread returns nil without durations.
func spread(durations []time.Duration) *Spread {
	n := len(durations)
	if n == 0 {
		return nil
	}
	slices.Sort(durations)
	rank := func(p float64) float64 { return milliseconds(durations[int(math.Ceil(p*float64(n)))-1]) }
	return &Spread{rank(0.5), rank(0.95), milliseconds(durations[n-1])}
}
