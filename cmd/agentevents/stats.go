package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/capture"
	"github.com/agentevents/agentevents/findings"
	"github.com/agentevents/agentevents/internal/stats"
)

func statsCommand() command {
	return command{
		name:    "stats",
		args:    "[flags] FILE...",
		purpose: "count the results of all runs: success, failures, tokens, cost, times",
		about: `
The figures are sums over all runs of all FILEs. A repeated event counts once. An event with
a lower sequence than an earlier event of its run does not count: give the files of a run
in their order, or --order sequence. Each metric is a quotient, followed by its two
numbers. A metric whose divisor is 0 has no data: null in JSON.

  task success rate          tasks that succeeded, of those that are decided
  handoff loop rate          sessions in which an agent hands over to the same agent
                             once more, of all sessions; a request counts, accepted or
                             not; no data without a handoff
  verifier rejection rate    claims with the verdict "rejected" (or refuted, failed,
                             invalid, …) and failed audits, of all claims with a
                             verdict and all audits; issues have no verdict
  average agent depth        parents above the agents, by the number of agents
  tool failure rate          calls that failed, of those that succeeded or failed; calls
                             that were refused, cancelled or interrupted do not count
  cost per successful task   the known cost of all runs, also of those that failed, by
                             the tasks that succeeded
  human approval latency     mean time from the requests of approvals to the answers
                             of people; a request that expires or that is made again
                             is unanswered, and so is one with the answer "timeout"
  context compression ratio  tokens before the context was compacted, by those after, of
                             the compactions that state both
  finding rate               runs with a loop, a stall or waste, of all runs: see
                             'agentevents help findings'

A taskId names a task of its session, or of its run if the run has no session. A run
without a taskId is one task. A run that failed or was cancelled fails. A run that completed
succeeds or fails by the status of its session.completed (success, ok, done; failed,
timeout, aborted, partial; …); an unknown status decides nothing. Without a status, a run
with a run.completed succeeds, unless it has agents without a parent and none of them
succeeded. A run without a run.completed has the result of the agent without a parent that
ended last. An agent succeeds if it ended without an error, and converged or states no
outcome. If a run has several tasks, each is decided by its agent that ended last. A task of
several runs succeeds if it succeeds in one of them; otherwise the last run decides. A task
that may go on is undecided. A run without a session counts as one session.

With --by a table follows, or one for each name; the log is read once. agent+model has a row
for each model of each agent, with the calls, tokens and cost. agent+tool has a row for each
tool of each agent. model+tool has a row for each tool and the model of the agent that calls
it: the model that the agent called last, else the model of its start. In the table by agent,
an agent has one task in each run in which it started, and its end there decides the task.
The usage of an agent includes its sub-agents if the agent states it so.

Tokens with ≥ are a minimum: a process that was killed stated no more, or the tokens of a
sub-agent are not in the files.

With --tokens stats prints only the model calls and their tokens. From sessions of agent
programs, such as ~/.claude/projects, it reads only the lines with these figures, in an
eighth of the time if the format of the program allows it. It then reports neither faults of
other lines nor missing files of sub-agents.

A mean covers the calls whose duration is known: the return states it, or the clock of the
log advances between the call and the return. A percentile is a value that occurs: the least
value that so many percent do not exceed. Percentiles of calls are exact to 0.8 %, in at most
30 kB of memory for each row; the maximum is exact.`,
		examples: []string{
			"agentevents stats --by agent,model,tool *.jsonl",
			"agentevents stats --json run.jsonl | jq .metrics.toolFailureRate.value",
		},
		flags: func(fs *flag.FlagSet) action {
			var l logReader
			l.flags(fs)
			var by groupings
			var m memory
			fs.Var(&by, "by", "add a table by `THING`: agent, tool, model, agent+tool, or several: agent,tool")
			m.flags(fs)
			asJSON := fs.Bool("json", false, "print JSON; durations are in milliseconds, costs in US dollars")
			tokens := fs.Bool("tokens", false, "count only model calls and tokens, and read no other lines of sessions")
			return func(in *invocation) error {
				if *tokens {
					if len(by) > 0 {
						return usageError("--tokens prints no table: leave out --by")
					}
					return l.tokens(in, *asJSON)
				}
				return l.stats(in, &m, by, *asJSON)
			}
		},
	}
}

// stats prints the figures of all files.
func (l *logReader) stats(in *invocation, m *memory, by groupings, asJSON bool) error {
	l.reuse = true
	lines, err := l.each(in)
	if err != nil {
		return err
	}
	r := remembered(in, m, l, func() *stats.Report {
		c := stats.New(by...)
		for _, line := range lines {
			c.Line(line)
		}
		return c.Report()
	}, by)
	if r.Events == 0 && (l.failed || l.bad > 0) {
		return l.result() // no figures of a log that nobody has read
	}
	if !asJSON {
		writeStats(in.stdout, r)
	} else if err := writeJSON(in.stdout, r); err != nil {
		return err
	}
	return l.result()
}

func writeJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

// A bill is the tokens of sessions and runs.
type bill struct {
	Sessions   int          `json:"sessions"`
	ModelCalls int          `json:"modelCalls"`
	Tokens     stats.Tokens `json:"tokens"`
}

// tokens prints the tokens of all files. Those of sessions are counted without their events.
func (l *logReader) tokens(in *invocation, asJSON bool) error {
	if len(in.args) == 0 {
		_, err := l.each(in)
		return err
	}
	sessions := l.allSessions(in)
	var b bill
	l.report = func(at position, what string) { l.print(in, at, what) }
	for _, of := range sessions {
		for s := range capture.Spent(of) {
			b.Sessions++
			b.ModelCalls += s.Calls
			b.Tokens.Input += s.Usage.InputTokens
			b.Tokens.Output += s.Usage.OutputTokens
			b.Tokens.CacheRead += s.Usage.CacheReadInputTokens.V
			b.Tokens.CacheWrite += s.Usage.CacheCreationInputTokens.V
			b.Tokens.Reasoning += s.Usage.ReasoningOutputTokens.V
			b.Tokens.Partial = b.Tokens.Partial || s.Partial
			if s.Err != nil { // reading it again names the file and line of each fault
				l.session(in, s.Session, func(position, agentevents.Line) bool { return true })
			}
		}
	}
	in.args = slices.DeleteFunc(slices.Clone(in.args), func(name string) bool { _, ok := sessions[name]; return ok })
	if len(in.args) > 0 {
		l.reuse = true
		lines, err := l.each(in)
		if err != nil {
			return err
		}
		c := stats.New()
		for _, line := range lines {
			c.Line(line)
		}
		b.add(c.Report())
	}
	if b.Sessions == 0 && (l.failed || l.bad > 0) {
		return l.result()
	}
	if asJSON {
		if err := writeJSON(in.stdout, b); err != nil {
			return err
		}
		return l.result()
	}
	value, of := tokensText(&b.Tokens)
	fmt.Fprintf(in.stdout, "sessions     %d\nmodel calls  %d\ntokens       %s  (%s)\n", b.Sessions, b.ModelCalls, value, of)
	return l.result()
}

// add adds the runs of logs.
func (b *bill) add(r *stats.Report) {
	b.Sessions += r.Sessions
	if r.ModelCalls != nil {
		b.ModelCalls += r.ModelCalls.Calls
	}
	if t := r.Tokens; t != nil {
		b.Tokens.Input += t.Input
		b.Tokens.Output += t.Output
		b.Tokens.CacheRead += t.CacheRead
		b.Tokens.CacheWrite += t.CacheWrite
		b.Tokens.Reasoning += t.Reasoning
		b.Tokens.Rest += t.Rest
		b.Tokens.Partial = b.Tokens.Partial || t.Partial
	}
}

// groupings is a flag that names the tables.
type groupings []stats.By

func (g *groupings) String() string { return "" }

func (g *groupings) Set(s string) error {
	for name := range strings.SplitSeq(s, ",") {
		by := stats.By(strings.Join(slices.Sorted(strings.SplitSeq(name, "+")), "+")) // a pair has no order
		if !slices.Contains(stats.Groupings(), by) {
			return errors.New("want agent, tool, model, a pair as agent+tool, or several of them with commas between them")
		}
		if !slices.Contains(*g, by) {
			*g = append(*g, by)
		}
	}
	return nil
}

const noData = "no data"

// writeStats prints a report as text.
func writeStats(w io.Writer, r *stats.Report) {
	line := func(name, value, of string) {
		if of != "" {
			value = fmt.Sprintf("%-9s  (%s)", value, of)
		}
		fmt.Fprintf(w, "%-25s  %s\n", name, value)
	}
	var statuses []string
	for _, s := range runStatuses {
		if n := r.Statuses[s]; n > 0 {
			statuses = append(statuses, fmt.Sprintf("%d %s", n, s))
		}
	}
	for _, word := range slices.Sorted(maps.Keys(r.EndWords)) {
		statuses = append(statuses, fmt.Sprintf("%d %s", r.EndWords[word], clip(visible(word))))
	}
	if n := r.Statuses[agentevents.RunStatusEnded] - total(r.EndWords); n > 0 {
		statuses = append(statuses, fmt.Sprintf("%d ended", n))
	}
	if r.MadeUp > 0 {
		statuses = append(statuses, plural(r.MadeUp, "end")+" made up")
	}
	line("runs", strconv.Itoa(r.Runs), strings.Join(statuses, ", "))
	if r.Repeated > 0 {
		line("events", strconv.Itoa(r.Events), fmt.Sprintf("%d left out: they repeat a sequence of their run, or go back", r.Repeated))
	}
	if d := r.RunDuration; d != nil {
		line("run duration", milliseconds(d.P50), spread(d))
	} else {
		line("run duration", noData, "")
	}
	line("agents", strconv.Itoa(r.Agents), "in "+plural(r.Sessions, "session"))
	for _, c := range [...]struct {
		name  string
		calls *stats.Calls
	}{{"tool calls", r.ToolCalls}, {"model calls", r.ModelCalls}} {
		value, of := callsText(c.calls)
		line(c.name, value, of)
	}
	value, of := tokensText(r.Tokens)
	line("tokens", value, of)
	if !r.CostUSD.OK {
		line("cost", noData, "")
	} else {
		line("cost", dollars(r.CostUSD.V), fmt.Sprintf("known of %d of %s", r.CostRuns, plural(r.Runs, "run")))
	}
	fmt.Fprintln(w)
	m := &r.Metrics
	share := func(name string, m stats.Metric, thing, more string) {
		line(name, percent(m), fmt.Sprintf("%.0f of %s%s", m.Numerator.V, plural(int(m.Denominator), thing), more))
	}
	share("task success rate", m.TaskSuccessRate, "task", also(r.Undecided, "undecided"))
	share("handoff loop rate", m.HandoffLoopRate, "session", fmt.Sprintf("; %s", plural(r.Handoffs, "handoff")))
	share("verifier rejection rate", m.VerifierRejectionRate, "verdict", also(r.Issues, one(r.Issues, "issue", "issues")+" found")+also(int(r.StatedAudits), one(int(r.StatedAudits), "audit", "audits")+" stated by agents"))
	line("average agent depth", number(m.AverageAgentDepth, 2), fmt.Sprintf("%.0f above %s", m.AverageAgentDepth.Numerator.V, plural(int(m.AverageAgentDepth.Denominator), "agent")))
	share("tool failure rate", m.ToolFailureRate, "call", "")
	cost, spent := noData, "no cost known"
	if v := m.CostPerSuccessfulTask.Value; v.OK {
		cost = dollars(v.V)
	}
	if r.CostUSD.OK {
		spent = dollars(r.CostUSD.V)
	}
	line("cost per successful task", cost, spent+" for "+plural(int(m.CostPerSuccessfulTask.Denominator), "task"))
	wait := noData
	of = plural(int(m.HumanApprovalLatency.Denominator), "answer")
	if l := m.HumanApprovalLatency; l.Value.OK {
		wait, of = milliseconds(l.Value.V), fmt.Sprintf("%s for %s; %s", milliseconds(l.Numerator.V), of, spread(l.Spread))
	}
	line("human approval latency", wait, of+also(r.Unanswered, "unanswered"))
	of = plural(r.Compactions, "compaction")
	if c := m.ContextCompression; c.Value.OK {
		of = fmt.Sprintf("%.0f tokens to %.0f in %s", c.Numerator.V, c.Denominator, of)
	}
	line("context compression ratio", number(m.ContextCompression, 2), of)
	var kinds strings.Builder
	for _, kind := range findings.Kinds() {
		kinds.WriteString(also(r.Findings[kind], string(kind)))
	}
	share("finding rate", r.FindingRate, "run", kinds.String())
	for _, t := range append([]stats.Table{r.Table}, r.Tables...) {
		if t.By != "" {
			fmt.Fprintln(w)
			writeTable(w, t.Groups, groupColumns(t.By))
			if n := r.Unnamed(&t); n > 0 {
				fmt.Fprintf(w, "%s of answers that name no model\n", plural(int(n), "token"))
			}
		}
	}
}

func total(counts map[string]int) (n int) {
	for _, v := range counts {
		n += v
	}
	return n
}

// runStatuses has the statuses in the order in which they are printed. A run with status ended is
// printed by its word.
var runStatuses = []agentevents.RunStatus{
	agentevents.RunStatusCompleted, agentevents.RunStatusFailed, agentevents.RunStatusCancelled, agentevents.RunStatusRunning, agentevents.RunStatusWaiting,
	agentevents.RunStatusPaused, agentevents.RunStatusCancelling, agentevents.RunStatusPending,
}

// groupColumns are the columns of the table of groups.
func groupColumns(by stats.By) []column[stats.Group] {
	share := func(m stats.Metric) string {
		if !m.Value.OK {
			return ""
		}
		return fmt.Sprintf("%s (%.0f of %.0f)", percent(m), m.Numerator.V, m.Denominator)
	}
	mean := func(c *stats.Calls) string {
		if c == nil || !c.MeanMS.OK {
			return ""
		}
		return milliseconds(c.MeanMS.V)
	}
	at := func(c *stats.Calls, figure func(*stats.Spread) float64) string {
		if c == nil || c.Spread == nil {
			return ""
		}
		return milliseconds(figure(c.Spread))
	}
	p50 := func(s *stats.Spread) float64 { return s.P50 }
	p95 := func(s *stats.Spread) float64 { return s.P95 }
	longest := func(s *stats.Spread) float64 { return s.Max }
	first, _, _ := strings.Cut(string(by), "+")
	value := func(m stats.Metric, text func(float64) string) string {
		if !m.Value.OK {
			return ""
		}
		return text(m.Value.V)
	}
	twoPlaces := func(v float64) string { return strconv.FormatFloat(v, 'f', 2, 64) }
	return []column[stats.Group]{
		{first, false, func(g stats.Group) string { return clip(visible(g.Name)) }},
		{"model", false, func(g stats.Group) string { return clip(visible(g.Model)) }},
		{"tool", false, func(g stats.Group) string { return clip(visible(g.Tool)) }},
		{"runs", false, func(g stats.Group) string { return strconv.Itoa(g.Runs) }},
		{"success", false, func(g stats.Group) string { return share(g.Metrics.TaskSuccessRate) }},
		{"depth", false, func(g stats.Group) string { return value(g.Metrics.AverageAgentDepth, twoPlaces) }},
		{"tool failures", false, func(g stats.Group) string { return share(g.Metrics.ToolFailureRate) }},
		{"tool mean", false, func(g stats.Group) string { return mean(g.ToolCalls) }},
		{"tool p50", false, func(g stats.Group) string { return at(g.ToolCalls, p50) }},
		{"tool p95", false, func(g stats.Group) string { return at(g.ToolCalls, p95) }},
		{"tool max", false, func(g stats.Group) string { return at(g.ToolCalls, longest) }},
		{"model calls", false, func(g stats.Group) string {
			if g.ModelCalls == nil {
				return ""
			}
			return strconv.Itoa(g.ModelCalls.Calls) + failedOf(g.ModelCalls)
		}},
		{"model mean", false, func(g stats.Group) string { return mean(g.ModelCalls) }},
		{"model p50", false, func(g stats.Group) string { return at(g.ModelCalls, p50) }},
		{"model p95", false, func(g stats.Group) string { return at(g.ModelCalls, p95) }},
		{"model max", false, func(g stats.Group) string { return at(g.ModelCalls, longest) }},
		{"tokens in", false, func(g stats.Group) string {
			if g.Tokens == nil {
				return ""
			}
			return atLeast(g.Tokens.Partial) + strconv.FormatInt(g.Tokens.Input, 10)
		}},
		{"tokens out", false, func(g stats.Group) string {
			if g.Tokens == nil {
				return ""
			}
			return atLeast(g.Tokens.Partial) + strconv.FormatInt(g.Tokens.Output, 10)
		}},
		{"cost", false, func(g stats.Group) string { return value(stats.Metric{Value: g.CostUSD}, dollars) }},
		{"per success", false, func(g stats.Group) string { return value(g.Metrics.CostPerSuccessfulTask, dollars) }},
		{"rejected", false, func(g stats.Group) string { return share(g.Metrics.VerifierRejectionRate) }},
		{"approval", false, func(g stats.Group) string { return value(g.Metrics.HumanApprovalLatency.Metric, milliseconds) }},
		{"compression", false, func(g stats.Group) string { return value(g.Metrics.ContextCompression, twoPlaces) }},
	}
}

func callsText(c *stats.Calls) (value, of string) {
	if c == nil {
		return noData, ""
	}
	of = strings.TrimPrefix(also(c.Failed, "failed")+also(c.Open, "open")+also(c.Refused, "refused")+also(c.Undecided, "undecided")+also(int(c.Unlogged), "more stated by agents"), "; ")
	if c.MeanMS.OK {
		of = strings.TrimPrefix(of+"; mean "+milliseconds(c.MeanMS.V), "; ")
	}
	return strconv.Itoa(c.Calls), of
}

func failedOf(c *stats.Calls) string {
	if c.Failed == 0 {
		return ""
	}
	return fmt.Sprintf(" (%d failed)", c.Failed)
}

func tokensText(t *stats.Tokens) (value, of string) {
	if t == nil {
		return noData, ""
	}
	of = fmt.Sprintf("%d in, %d out", t.Input, t.Output)
	for _, part := range [...]struct {
		n    int64
		what string
	}{{t.CacheRead, "read from the cache"}, {t.CacheWrite, "written to it"}, {t.Rest, "of totals alone"}, {t.Reasoning, "of the output reasoning"}} {
		if part.n > 0 {
			of += fmt.Sprintf(", %d %s", part.n, part.what)
		}
	}
	return atLeast(t.Partial) + strconv.FormatInt(t.All(), 10), of
}

// also returns the text for a number of further things.
func also(n int, what string) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("; %d %s", n, what)
}

// one returns the word for one thing or for several.
func one(n int, thing, things string) string {
	if n == 1 {
		return thing
	}
	return things
}

func plural(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return strconv.Itoa(n) + " " + thing + "s"
}

func percent(m stats.Metric) string {
	if !m.Value.OK {
		return noData
	}
	return strconv.FormatFloat(m.Value.V*100, 'f', 1, 64) + " %"
}

func number(m stats.Metric, places int) string {
	if !m.Value.OK {
		return noData
	}
	return strconv.FormatFloat(m.Value.V, 'f', places, 64)
}

func dollars(v float64) string { return "$" + strconv.FormatFloat(v, 'f', 4, 64) }

// milliseconds returns a duration as text: to a tenth of a second above one, and from a
// minute on as a tree shows it.
func milliseconds(ms float64) string {
	d := time.Duration(ms * float64(time.Millisecond))
	switch seconds, minutes := int64(d.Round(time.Second).Seconds()), int64(d.Round(time.Minute).Minutes()); {
	case seconds >= 3600:
		return fmt.Sprintf("%dh%02dm", minutes/60, minutes%60)
	case d.Round(100*time.Millisecond) >= time.Minute:
		return fmt.Sprintf("%dm%02ds", seconds/60, seconds%60)
	case d >= time.Second:
		return d.Round(100 * time.Millisecond).String()
	}
	return d.Round(10 * time.Microsecond).String()
}

func spread(s *stats.Spread) string {
	return fmt.Sprintf("p50 %s, p95 %s, max %s", milliseconds(s.P50), milliseconds(s.P95), milliseconds(s.Max))
}
