package rundiff

import (
	"cmp"
	"hash/maphash"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/internal/view"
)

// A Report has the differences between the runs of two logs, A and B.
type Report struct {
	Same bool  `json:"same"` // all agents of all runs did the same
	Runs []Run `json:"runs"` // in the order of A, and then those that only B has
}

// A Run is a run of A and the one of B that it is compared with.
type Run struct {
	A      *Party  `json:"a"` // nil if only B has the run
	B      *Party  `json:"b"`
	Same   bool    `json:"same"`
	Agents []Agent `json:"agents"` // in the order of A, and then those that only B has
	Totals []Total `json:"totals"`
}

// An Agent is an agent of A and the one of B that it is compared with.
type Agent struct {
	A    *Party `json:"a"` // nil if only B has the agent
	B    *Party `json:"b"`
	Same bool   `json:"same"`
	Acts []Step `json:"acts"`
}

// A Party is a run or an agent, on one side.
type Party struct {
	ID     string `json:"id"` // empty for an agent that is the run itself
	Name   string `json:"name,omitzero"`
	Task   string `json:"task,omitzero"` // of an agent
	Status string `json:"status,omitzero"`
	// EndMadeUp is the member of the snapshot. It makes no difference.
	EndMadeUp bool `json:"endMadeUp,omitzero"`
	Acts      int  `json:"acts"` // how many it did
}

// A Step is a number of acts that are the same, an act that only one side has, or one that
// both sides have in different forms.
type Step struct {
	Same    int      `json:"same,omitzero"`
	A       *Act     `json:"a,omitzero"`
	B       *Act     `json:"b,omitzero"`
	Changes []Change `json:"changes,omitzero"`
}

// A Total is a figure of two runs. It has no value where nobody knows it. It is the least where a part of it
// is not known.
type Total struct {
	Name   string                   `json:"name"`
	A      agentevents.Opt[float64] `json:"a"`
	B      agentevents.Opt[float64] `json:"b"`
	LeastA bool                     `json:"aLeast,omitzero"`
	LeastB bool                     `json:"bLeast,omitzero"`
}

// Compare compares the runs of two logs. They are paired by their ids, then by their names and
// tasks, and by their order if the logs have no id in common. Members of payloads with one of the
// names are left out, wherever they are.
func Compare(a, b *Log, ignore ...string) *Report {
	r := &Report{Same: true, Runs: []Run{}}
	keys := []func(*run) string{
		func(r *run) string { return "\x00" + r.id },
		func(r *run) string { return strings.TrimPrefix(strconv.FormatUint(r.asked, 36), "0") },
	}
	if !slices.ContainsFunc(a.order, func(r *run) bool { return b.runs[r.id] != nil }) {
		keys = append(keys, func(*run) string { return "any" })
	}
	pairs, others := pairUp(a.order, b.order, keys)
	add := func(a, b *run) {
		d := compareRuns(a, b, setOf(ignore...))
		r.Same = r.Same && d.Same
		r.Runs = append(r.Runs, d)
	}
	for _, one := range a.order {
		add(one, pairs[one])
	}
	for _, other := range b.order {
		if others[other] == nil {
			add(nil, other)
		}
	}
	return r
}

// pairUp pairs things of two lists that have the same key: by the first function as many as can
// be, then by the next. Those that are alike are paired in their order. An empty key pairs
// nothing.
func pairUp[T comparable](as, bs []T, keys []func(T) string) (ofA, ofB map[T]T) {
	ofA, ofB = map[T]T{}, map[T]T{}
	for _, key := range keys {
		free := map[string][]T{}
		for _, b := range bs {
			if _, paired := ofB[b]; !paired {
				k := key(b)
				free[k] = append(free[k], b)
			}
		}
		delete(free, "")
		for _, a := range as {
			if _, paired := ofA[a]; paired {
				continue
			}
			if k := key(a); len(free[k]) > 0 {
				ofA[a], ofB[free[k][0]] = free[k][0], a
				free[k] = free[k][1:]
			}
		}
	}
	return ofA, ofB
}

// A side is one of two runs that are compared.
type side struct {
	*run
	snapshot *agentevents.RunSnapshot
	views    *view.Agents
	pairs    map[*agent]*agent // the agents of the other side
	names    map[string]string // replacements for the ids of agents that have another one there
}

func newSide(r *run) *side {
	s := &side{run: r, snapshot: new(agentevents.RunSnapshot), names: map[string]string{}}
	if r == nil {
		s.run = new(run)
	} else {
		s.snapshot = r.fold.Snapshot()
	}
	s.views = view.Of(s.snapshot)
	return s
}

// whole describes the run.
func (s *side) whole() *Party {
	p := &Party{ID: s.id, Name: s.snapshot.Name, EndMadeUp: s.snapshot.EndMadeUp}
	status, _ := view.Run(s.snapshot)
	p.Status = strings.TrimSuffix(status, view.MadeUp(p.EndMadeUp))
	for _, a := range s.order {
		p.Acts += len(a.finish())
	}
	return p
}

// party describes an agent.
func (s *side) party(a *agent) *Party {
	if a == nil {
		return nil
	}
	p := &Party{ID: a.id, Task: a.task, Acts: len(a.done)}
	if shown := s.snapshot.Agents[a.id]; shown != nil {
		p.Name, p.EndMadeUp = shown.Name, shown.EndMadeUp
		status, _ := s.views.Status(a.id, shown)
		p.Status = strings.TrimSuffix(status, view.MadeUp(p.EndMadeUp))
	} else {
		p.Status, _ = view.Node(s.snapshot, a.id)
	}
	return p
}

type comparison struct {
	a, b   *side
	ignore map[string]bool
	seed   maphash.Seed
}

func compareRuns(a, b *run, ignore map[string]bool) Run {
	c := comparison{newSide(a), newSide(b), ignore, maphash.MakeSeed()}
	d := Run{Same: a != nil && b != nil, Agents: []Agent{}}
	var totalsA, totalsB [len(figures)]agentevents.Opt[float64]
	if a != nil {
		d.A, totalsA = c.a.whole(), totals(c.a.snapshot)
	}
	if b != nil {
		d.B, totalsB = c.b.whole(), totals(c.b.snapshot)
	}
	for i, name := range figures {
		tokens := name == "tokens"
		d.Totals = append(d.Totals, Total{name, totalsA[i], totalsB[i],
			tokens && a != nil && c.a.snapshot.Usage.Partial, tokens && b != nil && c.b.snapshot.Usage.Partial})
	}
	c.a.pairs, c.b.pairs = pairUp(c.a.order, c.b.order, pairings)
	for a, b := range c.a.pairs {
		if a.id != b.id {
			c.a.names[a.id] = a.id + "\x00" + b.id
			c.b.names[b.id] = a.id + "\x00" + b.id
		}
	}
	add := func(a, b *agent) {
		g := Agent{A: c.a.party(a), B: c.b.party(b), Acts: c.acts(a, b)}
		g.Same = a != nil && b != nil && g.A.Status == g.B.Status &&
			(len(g.Acts) == 0 || len(g.Acts) == 1 && g.Acts[0].Same > 0)
		d.Same = d.Same && g.Same
		d.Agents = append(d.Agents, g)
	}
	for _, one := range c.a.order {
		add(one, c.a.pairs[one])
	}
	for _, other := range c.b.order {
		if c.b.pairs[other] == nil {
			add(nil, other)
		}
	}
	return d
}

var figures = [...]string{"durationMs", "tokens", "costUsd", "toolCalls", "failedToolCalls", "modelCalls",
	"violations", "refused"}

// totals returns the figures of a run. Tokens and a time of 0 are not known.
func totals(s *agentevents.RunSnapshot) [len(figures)]agentevents.Opt[float64] {
	known := func(v float64) agentevents.Opt[float64] { return agentevents.Opt[float64]{V: v, OK: v > 0} }
	var calls, failed, models int
	for _, t := range s.Tools {
		calls, failed = calls+t.Calls, failed+t.Failed
	}
	for _, a := range s.Agents {
		models += a.ModelCalls
	}
	count := func(n int) agentevents.Opt[float64] { return agentevents.Some(float64(n)) }
	return [...]agentevents.Opt[float64]{known(float64(view.Length(s)) / float64(time.Millisecond)),
		known(float64(view.Tokens(s.Usage.Usage))),
		s.Usage.CostUSD, count(calls), count(failed), count(models), count(s.ViolationCount), count(s.Refused)}
}

// pairings are the keys by which agents are paired: the id and the task; the role, with the tasks
// of the agent and of those above it; the id; and then less and less of the second.
var pairings = []func(*agent) string{
	func(a *agent) string { return "\x00" + a.id + "\x00" + a.task },
	func(a *agent) string { return a.what(a.tasks) + "\x00" + a.task },
	func(a *agent) string { return "\x00" + a.id },
	func(a *agent) string { return a.what(a.lineage) + "\x00" + a.task },
	func(a *agent) string { return a.what(a.lineage) },
	func(a *agent) string {
		if a.task == "" {
			return ""
		}
		return a.task + "\x00" + strconv.FormatUint(a.lineage, 36)
	},
}

// what is the kind of an agent: its role and the agents above it.
func (a *agent) what(above uint64) string { return a.role + "\x00" + strconv.FormatUint(above, 36) }

// acts compares the acts of two agents, of which one may be nil. Equal acts are paired first;
// between those, acts that have less in common; and so on. So an additional act does not make all
// later ones differ.
func (c *comparison) acts(a, b *agent) (steps []Step) {
	a, b = cmp.Or(a, new(agent)), cmp.Or(b, new(agent))
	swap := slices.CompareFunc(a.done, b.done, func(a, b *act) int { return strings.Compare(a.payload, b.payload) }) > 0
	var between func(of level, as, bs []*act)
	between = func(of level, as, bs []*act) {
		if of == levels || len(as) == 0 || len(bs) == 0 {
			for _, e := range as {
				steps = append(steps, Step{A: describe(e)})
			}
			for _, e := range bs {
				steps = append(steps, Step{B: describe(e)})
			}
			return
		}
		sumsA, sumsB := make([]uint64, len(as)), make([]uint64, len(bs))
		for i, e := range as {
			sumsA[i] = c.sum(c.a, e, of)
		}
		for j, e := range bs {
			sumsB[j] = c.sum(c.b, e, of)
		}
		i, j := 0, 0
		alignSums(swap, sumsA, sumsB, func(x, y int) {
			between(of+1, as[i:x], bs[j:y])
			i, j = x+1, y+1
			last := len(steps) - 1
			switch {
			case of != all:
				s := Step{A: describe(as[x]), B: describe(bs[y])}
				_, known := as[x].kind.Info()
				c.changes(&s.Changes, "", "", as[x].payload, bs[y].payload, known, 0)
				steps = append(steps, s)
			case last >= 0 && steps[last].Same > 0:
				steps[last].Same++
			default:
				steps = append(steps, Step{Same: 1})
			}
		})
		between(of+1, as[i:], bs[j:])
	}
	between(all, a.done, b.done)
	return steps
}
