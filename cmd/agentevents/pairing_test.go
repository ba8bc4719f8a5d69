package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/internal/effort"
	"github.com/agentevents/agentevents/internal/spans"
	"github.com/agentevents/agentevents/report"
)

// A pairing has the attempts of agents and the calls of one run as one reader pairs them: the starts
// of attempts with their ends, and calls with the attempts that made them.
type pairing struct {
	snapshot *agentevents.RunSnapshot
	details  *report.Details
	spans    map[uint64]*spans.Span // by the sequence of the first event
	ends     map[time.Time]struct{} // the times of the ends of agents
}

// pairings reads the events of a log with the three readers that tell agents apart.
func pairings(events []agentevents.Event) map[string]*pairing {
	runs, folds, mappers, seen := map[string]*pairing{}, map[string]*agentevents.Fold{}, map[string]*spans.Mapper{}, map[string]bool{}
	for i := range events {
		ev := &events[i]
		if seen[ev.RunID+"\x00"+ev.ID] {
			continue // it is delivered again
		}
		seen[ev.RunID+"\x00"+ev.ID] = true
		p := runs[ev.RunID]
		if p == nil {
			p = &pairing{details: &report.Details{}, spans: map[uint64]*spans.Span{}, ends: map[time.Time]struct{}{}}
			runs[ev.RunID] = p
			folds[ev.RunID] = agentevents.NewFold(agentevents.FoldOptions{KeepCalls: 1 << 20})
			mappers[ev.RunID] = spans.New(ev.RunID, spans.Options{Ended: func(s *spans.Span) { p.spans[s.First] = cmp.Or(p.spans[s.First], s) }, MaxOpen: math.MaxInt})
		}
		if ev.Kind() == agentevents.KindAgentEnded {
			p.ends[ev.Time] = struct{}{}
		}
		folds[ev.RunID].Apply(*ev)
		p.details.Add(ev)
		mappers[ev.RunID].Feed(ev)
	}
	for id, p := range runs {
		mappers[id].Close(spans.ReasonShutdown)
		p.snapshot = folds[id].Snapshot()
	}
	return runs
}

// invoked returns the span of the agent around a span, or nil.
func invoked(s *spans.Span) *spans.Span {
	for s != nil && !strings.HasPrefix(s.Name, spans.OpAgent) {
		s = s.Parent
	}
	return s
}

// differences returns where the readers of a run disagree on the attempt that made a call, and on the
// end of an attempt. It compares attempts whose start the log has, and returns the number of calls and ends.
func (p *pairing) differences(events map[uint64]*agentevents.Event) (compared int, out []string) {
	starts := func(sequence uint64) bool {
		ev := events[sequence]
		return ev != nil && ev.Kind() == agentevents.KindAgentStarted
	}
	for _, c := range slices.Concat(p.snapshot.ClosedCalls, p.snapshot.OpenCalls) {
		a, ev := p.snapshot.Agents[c.AgentID], events[c.Sequence]
		if a == nil || c.Within != "" || ev == nil || ev.Kind() != agentevents.KindToolCalled {
			continue
		}
		for id := range p.snapshot.Agents {
			if id != c.AgentID && p.details.Call(p.snapshot.RunID, id, c.Sequence) != "" {
				out = append(out, fmt.Sprintf("call %s at %d is of %s in the fold, of %s in the report", c.CallID, c.Sequence, c.AgentID, id))
			}
		}
		at, by := uint64(0), invoked(p.spans[c.Sequence])
		for _, t := range a.AttemptsInOrder() {
			if t.Sequence <= c.Sequence {
				at = t.Sequence
			}
		}
		if by == nil || !a.Started || !starts(at) {
			continue
		}
		run, owned := events[by.First].Payload.(*agentevents.RunStarted) // which begins its agent
		owned = owned && run.Agent.V.AgentID == c.AgentID
		if compared++; by.First != at && !owned {
			out = append(out, fmt.Sprintf("call %s at %d is of the attempt of %s from %d in the fold, of that from %d in the spans", c.CallID, c.Sequence, c.AgentID, at, by.First))
		}
	}
	for id, a := range p.snapshot.Agents {
		if !a.Started {
			continue
		}
		for _, t := range a.AttemptsInOrder() {
			s := p.spans[t.Sequence]
			if s == nil || !starts(t.Sequence) || !agentevents.TimeKnown(t.EndedAt) {
				continue
			}
			if _, told := p.ends[t.EndedAt]; !told {
				continue // the end of its node is the end, which an export tells as such
			}
			if over := p.snapshot.CompletedAt; !over.IsZero() && !t.EndedAt.Before(over) {
				continue // an export ends all with the run
			}
			if compared++; s.ClosedReason != "" || !s.End.Equal(t.EndedAt) {
				out = append(out, fmt.Sprintf("the attempt of %s from %d ends at %s in the fold, at %s in the spans (%s)", id, t.Sequence, t.EndedAt.Format(time.TimeOnly), s.End.Format(time.TimeOnly), s.ClosedReason))
			}
		}
	}
	return compared, out
}

// differences compares the readers of a log.
func differences(log []agentevents.Event) (compared int, out []string) {
	for id, p := range pairings(log) {
		events := map[uint64]*agentevents.Event{}
		for i := range log {
			if log[i].RunID == id && events[log[i].Sequence] == nil {
				events[log[i].Sequence] = &log[i]
			}
		}
		n, found := p.differences(events)
		compared += n
		for _, text := range found {
			out = append(out, "run "+id+": "+text)
		}
	}
	return compared, out
}

// TestReadersPairAlike compares who made which call, and which end belongs to which start, in the fold,
// the spans of an export and the report, over every log of the module.
func TestReadersPairAlike(t *testing.T) {
	compared := 0
	for name, text := range logsOfTheTree(t) {
		var log []agentevents.Event
		for line := range strings.Lines(exec(text, "convert", "--quiet", "--to", "native", "-").out) {
			var ev agentevents.Event
			if json.Unmarshal([]byte(line), &ev) == nil {
				log = append(log, ev)
			}
		}
		n, found := differences(log)
		compared += n
		for _, d := range found {
			t.Errorf("%s: %s", name, d)
		}
	}
	t.Logf("%d calls and ends", compared)
	require.Greater(t, compared, 500)
}

// twinsOf returns a log of agents that share a few names, or are named by their acts only. Each starts
// in a span of its own, below another one or not, and ends there, in another span or never.
func twinsOf(r *rand.Rand) (log []agentevents.Event) {
	type worker struct {
		name, span string
		ended      bool
	}
	var workers []*worker
	at := time.Date(2026, 6, 2, 7, 0, 0, 0, time.UTC)
	add := func(agent, span, parent string, p agentevents.Payload) {
		at = at.Add(time.Second)
		n := uint64(len(log))
		log = append(log, agentevents.Event{
			ID: fmt.Sprintf("e%d", n), RunID: "r", Sequence: n, Time: at, AgentID: agent, SpanID: span, ParentSpanID: parent,
			SchemaVersion: agentevents.SchemaVersion, Payload: p,
		})
	}
	for range 5 + r.IntN(25) {
		var w *worker
		if len(workers) > 0 {
			w = workers[r.IntN(len(workers))]
		}
		switch act := r.IntN(8); {
		case w == nil || act == 0 && len(workers) < 6:
			next := &worker{name: string("xyz"[r.IntN(3)]), span: fmt.Sprintf("s%d", len(workers))}
			parent, p := "root", &agentevents.AgentStarted{Task: next.span}
			if w != nil && r.IntN(3) == 0 {
				parent = w.span
			}
			if r.IntN(3) > 0 {
				p.Agent = agentevents.Some(agentevents.AgentRef{AgentID: next.name})
			}
			add("", next.span, parent, p)
			workers = append(workers, next)
		case act <= 5 && !w.ended:
			id := fmt.Sprintf("c%d", len(log))
			add(w.name, id, w.span, &agentevents.ToolCalled{CallID: id, ToolID: "dig", Arguments: agentevents.JSON(`{"path":"` + id + `"}`)})
			if r.IntN(4) > 0 {
				add(w.name, id, w.span, &agentevents.ToolReturned{CallID: id, ToolID: "dig", Status: agentevents.ToolStatusOK})
			}
		case !w.ended:
			span := w.span
			if r.IntN(4) == 0 {
				span = "root"
			}
			add(w.name, span, "", &agentevents.AgentEnded{})
			w.ended = true
		}
	}
	return log
}

// TestReadersPairSistersAlike is TestReadersPairAlike over logs that are drawn.
func TestReadersPairSistersAlike(t *testing.T) {
	seed, compared := effort.Seed(t), 0
	for i := range effort.Of(200, 1000, 5000) {
		log := twinsOf(rand.New(rand.NewPCG(seed, uint64(i))))
		n, found := differences(log)
		compared += n
		if len(found) > 0 {
			var lines []string
			for j := range log {
				lines = append(lines, fmt.Sprintf("%d %s agent=%q span=%q parent=%q", log[j].Sequence, log[j].Kind(), log[j].AgentID, log[j].SpanID, log[j].ParentSpanID))
			}
			t.Fatalf("log %d of seed %d:\n%s\n%s", i, seed, strings.Join(found, "\n"), strings.Join(lines, "\n"))
		}
	}
	require.Greater(t, compared, 500)
}
