package capture

import (
	"cmp"
	"iter"
	"slices"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/capture/internal/session"
)

// A Spending is the tokens of a session.
type Spending struct {
	Session *Session          // which was counted
	Calls   int               // answered calls of the model; programs that do not print them have none
	Usage   agentevents.Usage // of all its calls, and of compactions
	// Partial means that the tokens are the least that it used: its program was killed, wrote them before
	// its answers were whole, or keeps the tokens of a sub-agent elsewhere.
	Partial bool
	Err     error // of the first line that could not be read, if there is one; the others count
}

// Spent counts the tokens of sessions, in the order of their paths. The events have the same sums.
// Where the lines with tokens tell them, as for Claude Code, counting takes an eighth of the time.
// A file of a sub-agent that is missing is not noticed then.
func Spent(sessions []*Session) iter.Seq[Spending] {
	return func(yield func(Spending) bool) {
		if len(sessions) == 0 {
			return
		}
		byPath := slices.SortedFunc(slices.Values(sessions),
			func(a, b *Session) int { return cmp.Compare(a.path(), b.path()) })
		adder := session.NewAdder(session.Options(*cmp.Or(sessions[0].o, &Options{})))
		defer adder.Close() // it was only read
		for _, s := range byPath {
			if s.source == nil {
				continue
			}
			out := Spending{Session: s}
			if total, ok := adder.Total(s.source); ok {
				out.Calls, out.Usage, out.Partial = total.Calls, total.Usage, total.Partial
			} else {
				out.fold()
			}
			if !yield(out) {
				return
			}
		}
	}
}

func (s *Session) path() string {
	if s.source == nil {
		return ""
	}
	return s.source.Files[0].Path
}

// fold counts the tokens of the events.
func (p *Spending) fold() {
	fold, of := agentevents.NewFold(agentevents.FoldOptions{}), ""
	sum := func() {
		run := fold.Snapshot().Usage
		p.Partial = p.Partial || run.Partial
		u := &p.Usage
		if *u == (agentevents.Usage{}) {
			*u = run.Usage
			return
		}
		u.InputTokens, u.OutputTokens = u.InputTokens+run.Usage.InputTokens, u.OutputTokens+run.Usage.OutputTokens
		add(&u.CacheReadInputTokens, run.Usage.CacheReadInputTokens)
		add(&u.CacheCreationInputTokens, run.Usage.CacheCreationInputTokens)
		add(&u.ReasoningOutputTokens, run.Usage.ReasoningOutputTokens)
	}
	for line, err := range p.Session.Lines() {
		if err != nil {
			p.Err = cmp.Or(p.Err, err)
			continue
		}
		if _, ok := line.Event.Payload.(*agentevents.ModelReturned); ok {
			p.Calls++
		}
		if id := line.Event.RunID; of != id { // a file may have several runs
			if of != "" {
				sum()
			}
			fold, of = agentevents.NewFold(agentevents.FoldOptions{}), id
		}
		fold.Apply(*line.Event)
	}
	sum()
}

func add(to *agentevents.Opt[int64], n agentevents.Opt[int64]) {
	to.V, to.OK = to.V+n.V, to.OK || n.OK
}
