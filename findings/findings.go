package findings

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/internal/option"
)

// A Kind names the pattern that a finding is about. Its value is stable.
type Kind string

// The kinds.
const (
	Repeat        Kind = "repeat"
	PingPong      Kind = "ping-pong"
	FailureStreak Kind = "failure-streak"
	Retry         Kind = "retry-without-change"
	Stall         Kind = "stall"
	Context       Kind = "context"
	Waste         Kind = "waste"
	AskedTooLate  Kind = "asked-too-late"
)

// Kinds returns all kinds, in the order of the package comment.
func Kinds() []Kind {
	return []Kind{Repeat, PingPong, FailureStreak, Retry, Stall, Context, Waste, AskedTooLate}
}

// A Severity tells how bad a finding is.
type Severity string

// The severities.
const (
	Warning Severity = "warning" // somebody may want to look
	Serious Severity = "serious" // it has grown tenfold since it began, or the limit is all but reached
)

// Options are the numbers from which on a pattern is a finding. A number of 0 stands for the one in
// [Defaults]; one below 0 is refused by [Options.Check].
type Options struct {
	Repeats     int `least:"2"` // equal calls in a row with equal results
	Unseen      int `least:"2"` // the same where the log has no results
	Window      int `least:"4"` // calls in a row, at most 16, of three or fewer sorts, without any other
	Rounds      int `least:"2"` // rounds of two to four calls in turn, and of two agents that hand over
	Failures    int `least:"2"` // failures of one tool in a row, or of all calls of an agent
	SameError   int `least:"2"` // failures in a row with one error text, of any calls
	Retries     int `least:"2"` // failures of one call with the same arguments in a row
	ModelErrors int `least:"2"` // failures of model calls in a row; errors of an agent without an answer between; twice as many warnings
	Attempts    int `least:"2"` // ends of one agent with an error in a row

	Stall      time.Duration `least:"0"` // a gap in which the log has nothing open
	ModelStall time.Duration `least:"0"` // a gap with an open model call, or in a log without model calls

	// ContextTokens is the limit of a model's input in tokens, with the tokens
	// that are read from and written to caches. ContextOf has it by model, and 0 of one that it does not
	// know. Without either, only compactions are looked at.
	ContextTokens int64 `least:"0"`
	ContextOf     func(model string) int64
	ContextShare  float64 `least:"0"` // share of that limit
	Compactions   int     `least:"2"` // compactions with CompactionCalls calls or fewer between them
	// CompactionCalls is the number of tool calls and model calls after which a compaction is
	// worth its price.
	CompactionCalls int `least:"1"`

	WasteTokens  int64   `least:"0"` // tokens of all loops and failures of a run
	WasteCostUSD float64 `least:"0"` // their cost in US dollars

	Wait time.Duration `least:"0"` // time for which a person was waited for

	Polls []string // tools that may get one result many times; nil means the list in Defaults
	Off   []Kind   // kinds that are not looked for
}

// Defaults returns the numbers of all kinds.
func Defaults() Options {
	return Options{
		Repeats: 3, Unseen: 6, Window: 12, Rounds: 3,
		Failures: 5, SameError: 4, Retries: 3, ModelErrors: 4, Attempts: 3,
		Stall: 5 * time.Minute, ModelStall: 15 * time.Minute,
		ContextShare: 0.8, Compactions: 3, CompactionCalls: 10,
		WasteTokens: 50_000, WasteCostUSD: 1,
		Wait:  2 * time.Hour,
		Polls: []string{"BashOutput", "TaskOutput", "AgentOutputTool", "write_stdin", "wait", "wait_agent", "sleep"},
	}
}

// Check returns an [*agentevents.OptionError] for a number that makes no sense.
func (o *Options) Check() error { return option.Check("findings.Options", o) }

// filled returns the options with the defaults.
func (o Options) filled() Options {
	d := Defaults()
	for _, n := range [...]struct{ to, from *int }{
		{&o.Repeats, &d.Repeats}, {&o.Unseen, &d.Unseen}, {&o.Window, &d.Window}, {&o.Rounds, &d.Rounds}, {&o.Failures, &d.Failures},
		{&o.SameError, &d.SameError}, {&o.Retries, &d.Retries}, {&o.ModelErrors, &d.ModelErrors}, {&o.Attempts, &d.Attempts},
		{&o.Compactions, &d.Compactions}, {&o.CompactionCalls, &d.CompactionCalls},
	} {
		*n.to = cmp.Or(*n.to, *n.from)
	}
	o.Window = min(o.Window, kept)
	o.Stall, o.ModelStall, o.Wait = cmp.Or(o.Stall, d.Stall), cmp.Or(o.ModelStall, d.ModelStall), cmp.Or(o.Wait, d.Wait)
	o.ContextShare = cmp.Or(o.ContextShare, d.ContextShare)
	o.WasteTokens, o.WasteCostUSD = cmp.Or(o.WasteTokens, d.WasteTokens), cmp.Or(o.WasteCostUSD, d.WasteCostUSD)
	if o.Polls == nil {
		o.Polls = d.Polls
	}
	return o
}

// A Cost is the use of models that a finding accounts for. A figure that no event states is
// absent.
type Cost struct {
	Tokens     agentevents.Opt[int64]   `json:"tokens,omitzero"`     // sent, generated, and read from and written to caches
	CostUSD    agentevents.Opt[float64] `json:"costUsd,omitzero"`    // US dollars
	ModelCalls int                      `json:"modelCalls,omitzero"` // that returned
	// From tells where the figures come from: "model calls", of the agent between the first
	// and the last event of the finding, or "findings", as the sum of other findings.
	From string `json:"from,omitzero"`
}

// LoopDetected is the ErrorType of an agent.error in which a program reports that it has detected a
// loop itself and stops. A single such event is a [Repeat].
const LoopDetected = "loop_detected"

// A Finding is one pattern of a run. It shares no memory with the run.
type Finding struct {
	Kind      Kind      `json:"kind"`             // the pattern
	Severity  Severity  `json:"severity"`         // how bad it is
	Text      string    `json:"text"`             // one sentence for people
	RunID     string    `json:"runId"`            // its run
	AgentID   string    `json:"agentId,omitzero"` // its agent; empty when it is about the run
	ToolID    string    `json:"toolId,omitzero"`  // its tool, if it is about one
	CallID    string    `json:"callId,omitzero"`  // of the first call; of a question its id
	Count     int       `json:"count"`            // calls, handovers, failures, gaps, compactions, or questions
	Sequences []uint64  `json:"sequences"`        // of its events: the first 8 and the last 8
	Since     time.Time `json:"since,omitzero"`   // time of the first event; zero when it is not known
	Until     time.Time `json:"until,omitzero"`   // time of the last event
	Open      bool      `json:"open,omitzero"`    // the last event of the pattern has not been followed by one that ends it
	Cost      Cost      `json:"cost,omitzero"`    // so far
}

// A Change is something that a host is told: a finding that has begun, or that has grown tenfold
// since it was told last.
type Change struct {
	Finding
	Began bool // else it has grown
}

// A Fold finds in a log of any number of runs. The zero Fold has the default options. It is not for concurrent use.
type Fold struct {
	o    Options
	runs map[string]*Run
	last *Run // of the event before
}

// New returns an empty fold.
func New(o Options) *Fold { return &Fold{o: o.filled(), runs: map[string]*Run{}} }

// Add adds the next event of its run and returns the changes that it makes. The event is not kept.
func (f *Fold) Add(ev *agentevents.Event) []Change {
	if f.last != nil && f.last.id == ev.RunID {
		return f.last.Add(ev)
	}
	r := f.runs[ev.RunID]
	if r == nil {
		if f.runs == nil {
			*f = *New(f.o)
		}
		r = newRun(ev.RunID, &f.o)
		f.runs[r.id] = r
	}
	f.last = r
	return r.Add(ev)
}

// Of returns the findings of one run in the order in which they began.
func (f *Fold) Of(runID string) []Finding {
	if r := f.runs[runID]; r != nil {
		return r.Findings()
	}
	return nil
}

// More returns the number of findings of a run beyond those that are kept.
func (f *Fold) More(runID string) int {
	if r := f.runs[runID]; r != nil {
		return r.More()
	}
	return 0
}

// Runs returns the number of runs.
func (f *Fold) Runs() int { return len(f.runs) }

// Findings returns the findings of all runs, by the ids of the runs.
func (f *Fold) Findings() (all []Finding) {
	for _, id := range slices.Sorted(maps.Keys(f.runs)) {
		all = append(all, f.runs[id].Findings()...)
	}
	return all
}
