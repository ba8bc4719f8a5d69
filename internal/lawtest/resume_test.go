package lawtest

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/agentevents/agentevents"
)

// A replay offers the payloads of a run again, to emitters that share a clock and ids.
type replay struct {
	t      tester
	r      *Run
	clock  Clock
	ids    IDs
	events []agentevents.Event
}

func (p *replay) emitter() *agentevents.Emitter {
	return NewEmitter(p.t.(rapid.TB), p.r.Lifecycle, agentevents.ModeEnforce, &p.clock, &p.ids, p.r.Redaction, func(ev agentevents.Event) {
		p.events = append(p.events, ev)
	})
}

// offer repeats some of the run's offers, and requires the same verdict for each.
func (p *replay) offer(run *agentevents.Run, offers []Offer) {
	for _, o := range offers {
		_, err := run.Record(context.Background(), o.Event)
		if (err == nil) != (o.Refused == nil) {
			p.t.Logf("%s: %#v", o.Event.Kind(), o.Event.Payload)
			p.t.Fatalf("without interruption: %v\nnow: %v", o.Refused, err)
		}
		if err != nil {
			require.Equal(p.t, ruleOf(p.t, o.Refused), ruleOf(p.t, err))
		}
	}
}

func ruleOf(t require.TestingT, err error) agentevents.Rule {
	var broken *agentevents.RuleError
	require.ErrorAs(t, err, &broken)
	return broken.Rule
}

// The emitter is a function of its input. It does not change payloads, so they make the
// same log again.
func TestSameOffersSameLog(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := &replay{t: t, r: anyRun(t)}
		run, err := p.emitter().Run(p.r.ID)
		require.NoError(t, err)
		p.offer(run, p.r.Offers)
		require.Equal(t, string(encode(t, p.r.Events)), string(encode(t, p.events)))
	})
}

// A run that is cut anywhere and resumed by another emitter, from a snapshot that went through
// JSON, continues as without the cut: the verdicts and the log are the same.
//
// The law excepts two facts that no line has. One is the redaction step's memory of earlier deltas,
// so that it may hold back another end of a delta. The other is the number of events that were
// refused before.
func TestResumedEmitterGoesOn(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := &replay{t: t, r: anyRun(t)}
		if slices.ContainsFunc(p.r.Events, maskedDelta) {
			return
		}
		run, err := p.emitter().Run(p.r.ID)
		require.NoError(t, err)
		rest := p.r.Offers
		for range rapid.IntRange(1, 3).Draw(t, "cuts") {
			n := rapid.IntRange(0, len(rest)).Draw(t, "cut")
			p.offer(run, rest[:n])
			rest = rest[n:]
			if len(p.events) == 0 {
				continue // nothing to resume from
			}
			n = len(p.events)
			require.NoError(t, run.Close())
			if len(p.events) > n {
				return // Close has recorded the held-back rest of a block
			}
			s := throughJSON(t, fold(p.events, agentevents.FoldOptions{Lifecycle: p.r.Lifecycle}))
			run, err = p.emitter().Resume(s)
			require.NoError(t, err)
		}
		p.offer(run, rest)

		if slices.ContainsFunc(p.events, maskedDelta) {
			return // the rest of a block was held back that its beginning would have explained
		}
		n := len(p.events)
		require.NoError(t, run.Close())
		if len(p.events) > n {
			return // the same, of a block that has not ended
		}
		p.r.Events, p.events = unrefused(p.r.Events), unrefused(p.events)
		wantTexts, want := apart(p.r.Events)
		gotTexts, got := apart(p.events)
		require.Equal(t, string(encode(t, want)), string(encode(t, got)), "the log")
		require.Equal(t, wantTexts, gotTexts, "the texts of the blocks")
		o := agentevents.FoldOptions{Lifecycle: p.r.Lifecycle}
		s := fold(p.events, o)
		require.Zero(t, s.ViolationCount, "violations: %v", s.Violations)
		requireSame(t, fold(p.r.Events, o), s, "the snapshot")
	})
}

// unrefused returns the events without the counts of refused ones.
func unrefused(events []agentevents.Event) []agentevents.Event {
	return without(events, "Refused", func(*agentevents.Event, reflect.Value) {})
}

// apart returns the events without the texts of deltas, and the text of each block.
func apart(events []agentevents.Event) (texts map[string]string, rest []agentevents.Event) {
	texts = map[string]string{}
	return texts, without(events, "Delta", func(ev *agentevents.Event, text reflect.Value) {
		block := reflect.ValueOf(ev.Payload).Elem().FieldByName("BlockID")
		texts[fmt.Sprint(ev.Kind(), ev.AgentID, ev.NodeRunID, ev.ParentSpanID, block)] += text.String()
	})
}

// without returns the events without a field of their payloads, which it gives to found.
func without(events []agentevents.Event, field string, found func(*agentevents.Event, reflect.Value)) []agentevents.Event {
	events = slices.Clone(events)
	for i := range events {
		p := reflect.ValueOf(events[i].Payload).Elem()
		if v := p.FieldByName(field); v.IsValid() {
			found(&events[i], v)
			out := reflect.New(p.Type())
			out.Elem().Set(p)
			out.Elem().FieldByName(field).SetZero()
			events[i].Payload = out.Interface().(agentevents.Payload)
		}
	}
	return events
}

func maskedDelta(ev agentevents.Event) bool {
	info, _ := ev.Kind().Info()
	return info.Role == agentevents.RoleDelta && ev.Marks&(agentevents.MarkRedacted|agentevents.MarkSynthetic) != 0
}

// Everything open before a resumption is open after it: both emitters accept the same closing
// events, and also agree when the events come a second time.
func TestResumedEmitterHasTheSameOpen(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := &replay{t: t, r: anyRun(t)}
		run, err := p.emitter().Run(p.r.ID)
		require.NoError(t, err)
		p.offer(run, p.r.Offers)
		if len(p.events) == 0 {
			return
		}
		s := throughJSON(t, fold(p.events, agentevents.FoldOptions{Lifecycle: p.r.Lifecycle}))
		resumed, err := p.emitter().Resume(s)
		require.NoError(t, err)
		for _, ev := range p.r.Events {
			closer := closerOf(ev)
			if closer.Payload == nil {
				continue
			}
			for range 2 {
				_, want := run.Record(context.Background(), closer)
				_, got := resumed.Record(context.Background(), closer)
				if (want == nil) != (got == nil) {
					t.Fatalf("%T %+v\nwithout interruption: %v\nresumed: %v", closer.Payload, closer.Payload, want, got)
				}
			}
		}
	})
}

// closerOf returns an event that closes the subject that ev opens. It is marked late, so that it
// does not matter whether the run or the agent has ended.
func closerOf(ev agentevents.Event) agentevents.Event {
	out := agentevents.Event{Scope: ev.Scope, AgentID: ev.AgentID, ParentSpanID: ev.ParentSpanID, Marks: agentevents.MarkLate}
	switch p := ev.Payload.(type) {
	case *agentevents.ToolCalled:
		out.Payload = &agentevents.ToolReturned{CallID: p.CallID, ToolID: p.ToolID, Status: agentevents.ToolStatusOK}
	case *agentevents.PhaseStarted:
		out.Payload = &agentevents.PhaseCompleted{}
	case *agentevents.ApprovalRequested:
		out.Payload = &agentevents.ApprovalGranted{ApprovalID: p.ApprovalID}
	case *agentevents.HandoffRequested:
		out.Payload = &agentevents.HandoffAccepted{HandoffID: p.HandoffID, From: p.From, To: p.To}
	case *agentevents.TextDelta:
		if p.Index.OK {
			out.Payload = &agentevents.TextDelta{BlockID: p.BlockID, Index: agentevents.Some(p.Index.V + 1)}
		}
	}
	return out
}
