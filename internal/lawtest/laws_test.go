package lawtest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/agentevents/agentevents"
)

// The tests below are named after the numbers of the laws in the design document. Law 6,
// about redaction, has its tests in leak_test.go, stream_test.go and the root package.

// anyRun draws a run that may stop anywhere and may have odd events.
func anyRun(t *rapid.T) *Run { return show(t, Generate(t, withSecrets(t, anyConfig(t)))) }

func anyConfig(t *rapid.T) Config {
	return Config{Lifecycle: Lifecycles().Draw(t, "lifecycle"), Wild: rapid.Bool().Draw(t, "wild")}
}

// withSecrets plants secrets in the deltas of half of the runs. Wild runs are left out: they number
// deltas that have no agent, and the held-back rest then has a number that no delta may have.
func withSecrets(t *rapid.T, c Config) Config {
	if rapid.Bool().Draw(t, "secrets") {
		c.Redaction, c.Texts = policy(), secretPieces()
	}
	return c
}

// show prints the log of a run if its test fails.
func show(t *rapid.T, r *Run) *Run {
	t.Cleanup(func() {
		if !t.Failed() {
			return
		}
		for _, ev := range r.Events {
			line, err := ev.AppendJSON(nil)
			t.Logf("%s %v", line, err)
		}
	})
	return r
}

// foldOptions draws options. The laws hold for all of them.
func foldOptions(t *rapid.T, r *Run) agentevents.FoldOptions {
	return agentevents.FoldOptions{
		Lifecycle:     r.Lifecycle,
		KeepCalls:     rapid.SampledFrom([]int{0, -1, 2}).Draw(t, "keepCalls"),
		MaxViolations: rapid.SampledFrom([]int{0, -1, 2}).Draw(t, "maxViolations"),
	}
}

func fold(events []agentevents.Event, o agentevents.FoldOptions) *agentevents.RunSnapshot {
	f := agentevents.NewFold(o)
	apply(f, events)
	return f.Snapshot()
}

func apply(f *agentevents.Fold, events []agentevents.Event) {
	for _, ev := range events {
		f.Apply(ev)
	}
}

func text(s *agentevents.RunSnapshot) string { return string(s.AppendJSON(nil)) }

// requireSame requires that two snapshots are equal as values and as text. It prints only
// the members that differ, because a whole snapshot is too long to read.
func requireSame(t tester, want, got *agentevents.RunSnapshot, msg string) {
	if w, g := text(want), text(got); w != g {
		for _, d := range differences(w, g) {
			t.Logf("%s", d)
		}
		t.Fatalf("%s: the snapshots differ", msg)
	}
	if !reflect.DeepEqual(want, got) { // require.Equal is slow
		require.Equal(t, want, got, msg)
	}
}

// tester is an interface of testing.T and rapid.T.
type tester interface {
	require.TestingT
	Logf(format string, args ...any)
	Fatalf(format string, args ...any)
}

func differences(want, got string) []string {
	var w, g map[string]json.RawMessage
	if json.Unmarshal([]byte(want), &w) != nil || json.Unmarshal([]byte(got), &g) != nil {
		return []string{want, got}
	}
	var out []string
	for _, name := range slices.Sorted(maps.Keys(w)) {
		if string(w[name]) != string(g[name]) {
			out = append(out, fmt.Sprintf("%s\n\twant %s\n\tgot  %s", name, w[name], g[name]))
		}
		delete(g, name)
	}
	for _, name := range slices.Sorted(maps.Keys(g)) {
		out = append(out, fmt.Sprintf("%s\n\twant none\n\tgot  %s", name, g[name]))
	}
	return out
}

// throughJSON writes a snapshot and reads it back. It does not use json.Marshal, which
// escapes characters such as < in the result of MarshalJSON.
func throughJSON(t require.TestingT, s *agentevents.RunSnapshot) *agentevents.RunSnapshot {
	b, err := s.MarshalJSON()
	require.NoError(t, err)
	var out agentevents.RunSnapshot
	require.NoError(t, out.UnmarshalJSON(b))
	return &out
}

// cut draws a position between the events of a run.
func cut(t *rapid.T, r *Run, label string) int {
	return rapid.IntRange(0, len(r.Events)).Draw(t, label)
}

// Law 1: fold(fold(s, xs), ys) = fold(s, xs+ys), also across JSON.
func TestLaw1ResumedFoldEqualsWhole(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := anyRun(t)
		o := foldOptions(t, r)
		at := cut(t, r, "cut")
		whole, first := fold(r.Events, o), fold(r.Events[:at], o)

		for _, s := range []*agentevents.RunSnapshot{first, throughJSON(t, first)} {
			f, err := agentevents.ResumeFold(s, o)
			require.NoError(t, err)
			requireSame(t, first, f.Snapshot(), "resumed, before the rest")
			apply(f, r.Events[at:])
			requireSame(t, whole, f.Snapshot(), "resumed")
		}
	})
}

// Law 1 with a cut after every event.
func TestLaw1ResumedAfterEveryEvent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := anyRun(t)
		o := foldOptions(t, r)
		s := agentevents.NewFold(o).Snapshot()
		for _, ev := range r.Events {
			f, err := agentevents.ResumeFold(s, o)
			require.NoError(t, err)
			f.Apply(ev)
			s = f.Snapshot()
		}
		requireSame(t, fold(r.Events, o), s, "resumed after every event")
	})
}

// Law 2: the fold accepts every event that the emitter accepts.
func TestLaw2AcceptedByEmitterIsAcceptedByFold(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := anyRun(t)
		s := fold(r.Events, agentevents.FoldOptions{Lifecycle: r.Lifecycle})
		require.Zero(t, s.ViolationCount, "violations: %v", s.Violations)
		untold := fold(r.Events, agentevents.FoldOptions{})
		require.Zero(t, untold.ViolationCount, "violations of the table that the log names: %v", untold.Violations)
		require.EqualValues(t, len(r.Events), s.NextSequence)
		for i, ev := range r.Events {
			require.EqualValues(t, i, ev.Sequence, "gap in the accepted log")
		}
	})
}

// Law 3: applying an event again changes nothing, however much later.
func TestLaw3RepeatedEventChangesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := anyRun(t)
		o := agentevents.FoldOptions{Lifecycle: r.Lifecycle}
		f := agentevents.NewFold(o)
		for i, ev := range r.Events {
			f.Apply(ev)
			if i%7 != 0 {
				continue
			}
			before := f.Snapshot()
			again := rapid.IntRange(0, i).Draw(t, "again")
			f.Apply(r.Events[again])
			requireSame(t, before, f.Snapshot(), "an event was applied again")
		}
		for _, ev := range r.Events { // every event again, at any distance
			f.Apply(ev)
		}
		requireSame(t, fold(r.Events, o), f.Snapshot(), "the log was applied again")
	})
}

// Law 3: another event with a taken sequence is reported, and changes nothing else.
func TestLaw3TakenSequenceIsReported(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := anyRun(t)
		f := agentevents.NewFold(agentevents.FoldOptions{Lifecycle: r.Lifecycle})
		apply(f, r.Events)
		before := f.Snapshot()
		var lasting []agentevents.Event // the memory of a fold: the last 64 of them
		for _, ev := range r.Events {
			if info, _ := ev.Kind().Info(); !info.Droppable {
				lasting = append(lasting, ev)
			}
		}
		if len(lasting) == 0 {
			return
		}
		other := rapid.SampledFrom(lasting[max(0, len(lasting)-64):]).Draw(t, "taken")
		other.ID += "-other"
		f.Apply(other)
		requireOnlyReported(t, before, f.Snapshot(), agentevents.RuleSequence)
	})
}

// requireOnlyReported requires one more violation and no other change.
func requireOnlyReported(t tester, before, after *agentevents.RunSnapshot, rule agentevents.Rule) {
	require.Equal(t, before.ViolationCount+1, after.ViolationCount)
	require.Equal(t, rule, after.Violations[len(after.Violations)-1].Rule)
	after.ViolationCount, after.Violations = before.ViolationCount, before.Violations
	requireSame(t, before, after, "a reported event has changed something else")
}

// Law 3: a message that comes again in another event changes nothing. With other content
// it is reported, and the first message stays.
func TestLaw3RepeatedMessage(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := anyRun(t)
		var said []agentevents.Event
		for _, ev := range r.Events {
			// The sender may have joined a group since, and then a message without a
			// group breaks the rule message-group.
			if p, ok := ev.Payload.(*agentevents.MessageCreated); ok && p.Message.GroupID != "" {
				said = append(said, ev)
			}
		}
		if len(said) == 0 {
			return
		}
		f := agentevents.NewFold(agentevents.FoldOptions{Lifecycle: r.Lifecycle})
		apply(f, r.Events)
		before := f.Snapshot()

		again := rapid.SampledFrom(said).Draw(t, "again")
		again.ID, again.Sequence = "again", before.NextSequence
		again.Marks |= agentevents.MarkLate // a late message is legal at any point of the run
		again.Step, again.Scope = agentevents.Opt[int]{}, agentevents.Scope{NodeRunID: again.NodeRunID}
		f.Apply(again)
		after := f.Snapshot()
		require.Equal(t, before.Messages, after.Messages)
		require.Zero(t, after.ViolationCount, "violations: %v", after.Violations)

		other := *again.Payload.(*agentevents.MessageCreated)
		other.Message.Content = `"other content"`
		again.ID, again.Sequence, again.Payload = "other", after.NextSequence, &other
		f.Apply(again)
		last := f.Snapshot()
		require.Equal(t, before.Messages, last.Messages)
		if known(before, other.Message.MessageID) { // not retracted
			require.Equal(t, 1, last.ViolationCount)
			require.Equal(t, agentevents.RuleMessageID, last.Violations[0].Rule)
		}
	})
}

func known(s *agentevents.RunSnapshot, messageID string) bool {
	for i := range s.Messages {
		if s.Messages[i].MessageID == messageID {
			return true
		}
	}
	return false
}

// Law 4: a finished run folds the same without its droppable events, if the log has the
// whole blocks of its deltas.
func TestLaw4DroppableEventsMayBeDropped(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := show(t, Generate(t, withSecrets(t, Config{Lifecycle: Lifecycles().Draw(t, "lifecycle"), Finish: true})))
		var kept []agentevents.Event
		for _, ev := range r.Events {
			if info, ok := ev.Kind().Info(); !ok || !info.Droppable {
				kept = append(kept, ev)
			}
		}
		o := foldOptions(t, r)
		requireSame(t, fold(r.Events, o), fold(kept, o), "without droppable events")
	})
}

// Law 5: a log folds the same after encoding and decoding, and every event comes back
// unchanged.
func TestLaw5ThroughLines(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := anyRun(t)
		log := encode(t, r.Events)
		verbatim := rapid.Bool().Draw(t, "verbatim")
		read := decode(t, log, agentevents.ReaderOptions{Verbatim: verbatim})
		if !verbatim { // with Verbatim the events also have their lines
			require.Len(t, read, len(r.Events))
			for i := range read {
				if !reflect.DeepEqual(r.Events[i], read[i]) {
					require.Equal(t, r.Events[i], read[i])
				}
			}
		}
		require.Equal(t, string(log), string(encode(t, read)), "encoded again")
		o := foldOptions(t, r)
		requireSame(t, fold(r.Events, o), fold(read, o), "folded from lines")
	})
}

func encode(t require.TestingT, events []agentevents.Event) []byte {
	var b bytes.Buffer
	w := agentevents.NewWriter(&b, agentevents.WriterOptions{})
	for _, ev := range events {
		require.NoError(t, w.WriteEvent(context.Background(), ev))
	}
	require.NoError(t, w.Close())
	return b.Bytes()
}

func decode(t require.TestingT, log []byte, o agentevents.ReaderOptions) []agentevents.Event {
	var events []agentevents.Event
	for ev, err := range agentevents.NewReader(bytes.NewReader(log), o).All() {
		require.NoError(t, err)
		events = append(events, ev)
	}
	return events
}

// Law 7: the snapshot at any position equals a fold of the events up to it. Taking it
// does not disturb the fold, and later events do not change it.
func TestLaw7SnapshotAtAnyPosition(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := anyRun(t)
		o := foldOptions(t, r)
		fresh := map[int]string{}
		for range 3 {
			at := cut(t, r, "position")
			fresh[at] = text(fold(r.Events[:at], o))
		}

		f := agentevents.NewFold(o)
		taken := make([]*agentevents.RunSnapshot, 0, len(r.Events)+1)
		texts := make([]string, 0, len(r.Events)+1)
		for i := range len(r.Events) + 1 {
			s := f.Snapshot()
			taken, texts = append(taken, s), append(texts, text(s))
			if want, ok := fresh[i]; ok {
				require.Equal(t, want, texts[i], "at position %d", i)
			}
			if i < len(r.Events) {
				f.Apply(r.Events[i])
			}
		}
		for i, s := range taken {
			if text(s) != texts[i] {
				require.Equal(t, texts[i], text(s), "the snapshot at position %d changed later", i)
			}
		}
	})
}

// Law 3: one false sequence costs one violation and no event; an event that comes again
// changes nothing, also the one with the false sequence. Law 1 holds for such a log too.
func TestLaw3OneFalseSequence(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := anyRun(t)
		events := slices.DeleteFunc(slices.Clone(r.Events), func(ev agentevents.Event) bool {
			info, _ := ev.Kind().Info()
			return info.Droppable
		})
		if len(events) < 2 {
			return
		}
		for i := range events {
			events[i].Sequence = uint64(i)
		}
		o := agentevents.FoldOptions{Lifecycle: r.Lifecycle}
		want := fold(events, o)
		at := rapid.IntRange(0, len(events)-2).Draw(t, "where")
		events[at].Sequence += uint64(rapid.SampledFrom([]int{2, 3, 20, 1000}).Draw(t, "more"))

		f := agentevents.NewFold(o)
		looked := rapid.IntRange(0, len(events)-1).Draw(t, "looked") // at each would take most of the time of all laws
		for i, ev := range events {
			f.Apply(ev)
			again := events[rapid.IntRange(0, i).Draw(t, "again")]
			if i != looked {
				f.Apply(again)
				continue
			}
			before := f.Snapshot()
			f.Apply(again)
			requireSame(t, before, f.Snapshot(), "an event was applied again")
		}
		s := f.Snapshot()
		require.Equal(t, want.ViolationCount+1, s.ViolationCount, "violations: %v", s.Violations)
		require.Equal(t, want.NextSequence, s.NextSequence)
		require.Equal(t, want.Status, s.Status)
		require.Equal(t, want.Messages, s.Messages)
		require.Equal(t, want.Tools, s.Tools)
		require.Len(t, s.Agents, len(want.Agents))
		require.Equal(t, agentevents.Coverage{Missing: 1, Gaps: []agentevents.SequenceGap{{First: uint64(at), Last: uint64(at)}}}, withoutUnproven(f.Coverage()))

		i := rapid.IntRange(0, len(events)-1).Draw(t, "resumed")
		g, err := agentevents.ResumeFold(throughJSON(t, fold(events[:i], o)), o)
		require.NoError(t, err)
		apply(g, events[i:])
		requireSame(t, s, g.Snapshot(), "resumed")
	})
}

func withoutUnproven(c agentevents.Coverage) agentevents.Coverage {
	c.Unproven = 0
	return c
}

// errOf returns the error of two results.
func errOf[T any](_ T, err error) error { return err }
