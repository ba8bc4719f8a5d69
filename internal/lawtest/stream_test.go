package lawtest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/capture/claude"
	"github.com/agentevents/agentevents/internal/effort"
	"github.com/agentevents/agentevents/internal/secret"
	"github.com/agentevents/agentevents/internal/secret/corpus"
)

// secretPieces are pieces of texts with secrets.
var secretPieces = sync.OnceValue(func() (list []string) {
	read, err := corpus.Read(plantedFile)
	if err != nil {
		panic(err)
	}
	for i, s := range read {
		list = append(list, pieces(s.Text, 5+i%40, 3+i%7)...)
	}
	return append(list, values()...)
})

// A voice streams a text in one block.
type voice struct {
	agent    string // may be empty
	kind     agentevents.Kind
	block    string // of arguments the call; empty has an unnamed block
	numbered bool
	marks    agentevents.Marks
	next     int // index
}

func (v *voice) unnamed() bool { return v.block == "" }
func (v *voice) args() bool    { return v.kind == agentevents.KindToolArgumentsDelta }

// say emits a piece.
func (v *voice) say(t testing.TB, run *agentevents.Run, text string) {
	var index agentevents.Opt[int]
	if v.numbered {
		index = agentevents.Some(v.next)
		v.next++
	}
	var p agentevents.Payload = &agentevents.ToolArgumentsDelta{CallID: v.block, Delta: text, Index: index}
	switch v.kind {
	case agentevents.KindTextDelta:
		p = &agentevents.TextDelta{BlockID: v.block, Delta: text, Index: index}
	case agentevents.KindAgentReasoningDelta:
		p = &agentevents.AgentReasoningDelta{BlockID: v.block, Delta: text, Index: index}
	}
	require.NoError(t, errOf(run.Record(t.Context(), agentevents.Event{AgentID: v.agent, Marks: v.marks, Payload: p})))
}

// act emits an event of the voice's agent.
func (v *voice) act(t testing.TB, run *agentevents.Run, p agentevents.Payload) error {
	return errOf(run.Record(t.Context(), agentevents.Event{AgentID: v.agent, Marks: v.marks, Payload: p}))
}

// whole emits the event that has the whole of the block.
func (v *voice) whole(t testing.TB, run *agentevents.Run) error {
	switch v.kind {
	case agentevents.KindTextDelta:
		return v.act(t, run, &agentevents.TextCompleted{BlockID: v.block, Text: "whole"})
	case agentevents.KindAgentReasoningDelta:
		return v.act(t, run, &agentevents.AgentReasoned{BlockID: v.block, Reasoning: "whole"})
	}
	return v.act(t, run, &agentevents.ToolReturned{CallID: v.block, ToolID: "x", Status: agentevents.ToolStatusForbidden})
}

// A blockKey identifies the deltas of one block in tests, in which no name of a block is used
// twice.
type blockKey struct {
	run, agent string
	kind       agentevents.Kind
	block      string
}

func (v *voice) key(run *agentevents.Run) blockKey {
	return blockKey{run.ID(), v.agent, v.kind, v.block}
}

// deltaOf returns the block and the text of a delta.
func deltaOf(ev *agentevents.Event) (key blockKey, text string, ok bool) {
	key = blockKey{run: ev.RunID, agent: ev.AgentID, kind: ev.Kind()}
	switch p := ev.Payload.(type) {
	case *agentevents.TextDelta:
		key.block, text = p.BlockID, p.Delta
	case *agentevents.AgentReasoningDelta:
		key.block, text = p.BlockID, p.Delta
	case *agentevents.ToolArgumentsDelta:
		key.block, text = p.CallID, p.Delta
	default:
		return key, "", false
	}
	return key, text, true
}

// deltas returns the recorded deltas by block.
func deltas(events []agentevents.Event) map[blockKey][]string {
	all := map[blockKey][]string{}
	for i := range events {
		if key, text, ok := deltaOf(&events[i]); ok {
			all[key] = append(all[key], text)
		}
	}
	return all
}

// pieces cuts a text into pieces of at least these lengths, over and over, and of whole
// characters.
func pieces(text string, sizes ...int) (list []string) {
	for i := 0; text != ""; i++ {
		n := min(sizes[i%len(sizes)], len(text))
		for n < len(text) && !utf8.RuneStart(text[n]) {
			n++
		}
		list = append(list, text[:n])
		text = text[n:]
	}
	return list
}

// streamed returns the deltas to be recorded for pieces: each at once, except an end that may be
// the beginning of a secret.
func streamed(s *secret.Scanner, pieces []string) (list []string) {
	st := s.Stream()
	for _, piece := range pieces {
		list = append(list, st.Write(piece))
	}
	if rest := st.Close(); rest != "" {
		list = append(list, rest)
	}
	return list
}

// wrong describes the fault of the deltas of a text, or returns "".
func wrong(s *secret.Scanner, pieces, got []string) string {
	for n := len(got); n > len(pieces) && got[n-1] == ""; n-- {
		got = got[:n-1] // of a new block
	}
	text, said := strings.Join(pieces, ""), strings.Join(got, "")
	want := streamed(s, pieces)
	switch {
	case said != s.Mask(text):
		return fmt.Sprintf("the deltas join to\n%q, the masked whole is\n%q", said, s.Mask(text))
	case fmt.Sprintf("%q", got) != fmt.Sprintf("%q", want):
		return fmt.Sprintf("recorded in the deltas\n%q, can be recorded in\n%q", got, want)
	}
	return ""
}

// endings are the events that end blocks.
var endings = []struct {
	name string
	ends func(*voice) bool
	do   func(testing.TB, *agentevents.Run, *voice) error
}{
	{"the whole", func(*voice) bool { return true }, func(t testing.TB, run *agentevents.Run, v *voice) error { return v.whole(t, run) }},
	{"a call", (*voice).unnamed, func(t testing.TB, run *agentevents.Run, v *voice) error {
		return v.act(t, run, &agentevents.ToolCalled{CallID: "b", ToolID: "x", Arguments: "{}"}) // of arguments the same
	}},
	{"a transition", (*voice).unnamed, func(t testing.TB, run *agentevents.Run, v *voice) error {
		return v.act(t, run, &agentevents.AgentTransition{To: agentevents.StatusToolCall})
	}},
	{"a turn", (*voice).unnamed, func(t testing.TB, run *agentevents.Run, v *voice) error {
		return v.act(t, run, &agentevents.TurnStarted{})
	}},
	{"a failure", func(*voice) bool { return true }, func(t testing.TB, run *agentevents.Run, v *voice) error {
		return v.act(t, run, &agentevents.AgentTransition{To: agentevents.StatusFailed})
	}},
	{"a new block", func(v *voice) bool { return v.unnamed() && v.numbered }, func(t testing.TB, run *agentevents.Run, v *voice) error {
		return v.act(t, run, deltaOfKind(v.kind, "", agentevents.Some(0)))
	}},
	{"256 new blocks", func(v *voice) bool { return !v.unnamed() }, func(t testing.TB, run *agentevents.Run, v *voice) (err error) {
		for i := range 256 {
			err = errors.Join(err, v.act(t, run, deltaOfKind(v.kind, fmt.Sprint("other-", i), agentevents.Opt[int]{})))
		}
		return err
	}},
	{"the agent's end", func(*voice) bool { return true }, func(t testing.TB, run *agentevents.Run, v *voice) error {
		return v.act(t, run, &agentevents.AgentEnded{Outcome: agentevents.OutcomeConverged})
	}},
	{"the agent's new start", func(*voice) bool { return true }, func(t testing.TB, run *agentevents.Run, v *voice) error {
		return v.act(t, run, &agentevents.AgentStarted{Resumed: true})
	}},
	{"the run's end", func(*voice) bool { return true }, func(t testing.TB, run *agentevents.Run, v *voice) error {
		return run.Emit(t.Context(), &agentevents.RunCompleted{})
	}},
	{"closing the run", func(*voice) bool { return true }, func(_ testing.TB, run *agentevents.Run, _ *voice) error { return run.Close() }},
	{"closing the emitter", func(*voice) bool { return false }, func(testing.TB, *agentevents.Run, *voice) error { return nil }},
}

// deltaOfKind returns a delta without text.
func deltaOfKind(k agentevents.Kind, block string, index agentevents.Opt[int]) agentevents.Payload {
	switch k {
	case agentevents.KindTextDelta:
		return &agentevents.TextDelta{BlockID: block, Index: index}
	case agentevents.KindAgentReasoningDelta:
		return &agentevents.AgentReasoningDelta{BlockID: block, Index: index}
	}
	return &agentevents.ToolArgumentsDelta{CallID: block, Index: index}
}

var deltaKinds = []agentevents.Kind{agentevents.KindTextDelta, agentevents.KindAgentReasoningDelta, agentevents.KindToolArgumentsDelta}

// A stream is the text of a block.
type stream struct {
	sample corpus.Sample
	pieces []string
	how    string
}

// converse streams samples in pieces of 1 to 17 bytes, every step of them, to runs that
// begin calls: in blocks of all kinds, with ids and without, of several agents in turns.
func converse(t *testing.T, begin func() *agentevents.Run, list []corpus.Sample, step int) map[blockKey]stream {
	const voices = 6
	all := map[blockKey]stream{}
	for size := 1; size <= 17; size += step {
		for first := 0; first < len(list); first += voices {
			run := begin()
			n := first/voices + size
			end := endings[n%len(endings)]
			var vs []*voice
			var texts [][]string
			for i := range voices {
				v := &voice{agent: fmt.Sprint("agent-", i/2), kind: deltaKinds[(n/len(endings)+i)%3], block: fmt.Sprint("block-", i), numbered: i%2 == 0}
				if !v.args() && n%2 == 0 {
					v.block = ""
				}
				if i%2 == 0 {
					require.NoError(t, v.act(t, run, &agentevents.AgentStarted{}))
				}
				sample := list[(first+i)%len(list)]
				vs, texts = append(vs, v), append(texts, pieces(sample.Text, size))
				all[v.key(run)] = stream{sample, texts[i], fmt.Sprintf("%s by %d to %s", v.kind, size, end.name)}
			}
			for k, going := 0, true; going; k++ {
				going = false
				for i, v := range vs {
					if k < len(texts[i]) {
						v.say(t, run, texts[i][k])
						going = true
					}
				}
			}
			for _, v := range vs {
				_ = end.do(t, run, v) // one ending may end other blocks
			}
		}
	}
	return all
}

// Secrets in streams do not get out, whole or in pieces.
func TestNoSecretGetsOutInPieces(t *testing.T) {
	t.Parallel()
	list := planted(t)
	f, s := newFinder(t, list), scanner()
	out := emitter(t, agentevents.EmitterOptions{Redaction: policy()})
	step := effort.Of(7, 3, 1)
	all := converse(t, func() *agentevents.Run { return out.run("") }, list, step)
	out.each(f.look)
	got := deltas(out.events)
	for key, is := range all {
		what := wrong(s, is.pieces, got[key])
		if is.sample.GotOut(strings.Join(got[key], "")) != "" {
			what = "a secret got out: " + what
		}
		if what != "" {
			f.add(is.how, is.sample.Line, what)
		}
	}
	t.Logf("%d streams, %d events", len(all), len(out.events))
}

// So it is in a log that is redacted later.
func TestNoSecretGetsOutOfARedactedLog(t *testing.T) {
	list := planted(t)
	f, s := newFinder(t, list), scanner()
	for part := range slices.Chunk(list, 100) { // of 65,536 events, beyond which a log may lose held-back text
		var log, redacted []agentevents.Event
		em := NewEmitter(t, agentevents.LifecycleStrict, agentevents.ModeEnforce, &Clock{}, &IDs{}, &agentevents.Policy{Off: true}, func(ev agentevents.Event) { log = append(log, ev) })
		all := converse(t, func() *agentevents.Run {
			run, err := em.Run("")
			require.NoError(t, err)
			return run
		}, part, 7)
		for ev, err := range policy().Redact(func(yield func(agentevents.Event, error) bool) {
			for i := 0; i < len(log) && yield(log[i], nil); i++ {
			}
		}) {
			require.NoError(t, err)
			redacted = append(redacted, ev)
		}
		require.Len(t, redacted, len(log))
		got := deltas(redacted)
		for key, is := range all {
			said, want := strings.Join(got[key], ""), s.Mask(strings.Join(is.pieces, ""))
			if is.sample.GotOut(said) != "" || said != want {
				f.add(is.how, is.sample.Line, fmt.Sprintf("%q is not\n%q", said, want))
			}
		}
	}
}

// settings are the events before a stream.
var settings = []struct {
	name string
	fits func(*voice) bool
	do   func(testing.TB, *agentevents.Run, *voice)
}{
	{"an agent works", func(*voice) bool { return true }, func(t testing.TB, run *agentevents.Run, v *voice) {
		require.NoError(t, v.act(t, run, &agentevents.AgentStarted{}))
	}},
	{"nothing", func(*voice) bool { return true }, func(testing.TB, *agentevents.Run, *voice) {}},
	{"no agent", func(*voice) bool { return true }, func(_ testing.TB, _ *agentevents.Run, v *voice) { v.agent, v.numbered = "", false }},
	{"the agent has ended", func(*voice) bool { return true }, func(t testing.TB, run *agentevents.Run, v *voice) {
		require.NoError(t, v.act(t, run, &agentevents.AgentStarted{}))
		require.NoError(t, v.act(t, run, &agentevents.AgentEnded{Outcome: agentevents.OutcomeConverged}))
		v.marks = agentevents.MarkLate
	}},
	{"the whole is there", func(v *voice) bool { return !v.unnamed() }, func(t testing.TB, run *agentevents.Run, v *voice) {
		require.NoError(t, v.act(t, run, &agentevents.AgentStarted{}))
		require.NoError(t, v.whole(t, run))
	}},
}

// cutLaw: the deltas of a text join to the masked whole, in all cuts and with all endings of the
// block. The rest of the text is recorded before the ending. how chooses between all cases.
func cutLaw(t testing.TB, text string, sizes []int, how int) {
	t.Helper()
	choose := func(n int) int { i := how % n; how /= n; return i }
	v := &voice{agent: "a", block: "b", numbered: choose(2) == 0, kind: deltaKinds[choose(3)]}
	if choose(2) == 0 && !v.args() {
		v.block = ""
	}
	end := endings[choose(len(endings))]
	mode := agentevents.Mode(choose(2))
	usual := choose(2) == 0
	before := settings[0]
	if i := choose(len(settings)); !usual && settings[i].fits(v) {
		before = settings[i]
		usual = i < 2
	}
	var events []agentevents.Event
	em := NewEmitter(t, agentevents.LifecycleStrict, mode, &Clock{}, &IDs{}, policy(), func(ev agentevents.Event) { events = append(events, ev) })
	run, err := em.Run("")
	require.NoError(t, err)
	before.do(t, run, v)
	list := pieces(text, sizes...)
	for _, piece := range list {
		v.say(t, run, piece)
	}
	key := v.key(run)
	require.Len(t, deltas(events)[key], len(list), "each delta is one event")
	recorded := len(events)
	err = end.do(t, run, v)
	what := fmt.Sprintf("%s of %+v after %s to %s by %v", v.kind, *v, before.name, end.name, sizes)
	if usual && end.ends(v) {
		require.NoError(t, err, what)
		require.Empty(t, wrong(scanner(), list, deltas(events)[key]), what)
		if end.name != "closing the run" && len(events) > recorded {
			_, text, ok := deltaOf(&events[len(events)-1])
			require.True(t, !ok || text == "", "%s: the rest comes after the event that ends the block", what)
		}
	}
	if usual && err == nil && v.unnamed() && slices.Contains([]string{"a call", "a transition", "a turn"}, end.name) {
		v.say(t, run, "") // it goes on counting
	}
	require.NoError(t, em.Close(t.Context()))
	require.Empty(t, wrong(scanner(), list, deltas(events)[key]), what)
	if snapshot := fold(events, agentevents.FoldOptions{}); mode == agentevents.ModeEnforce && snapshot.ViolationCount > 0 {
		require.Fail(t, "a violation", "%s: %v", what, snapshot.Violations)
	}
}

// cases is the number of cases of cutLaw.
var cases = 2 * 2 * len(deltaKinds) * 2 * len(endings) * 2 * len(settings)

// Any text, cut anywhere.
func TestAnyCutGivesTheMaskedWhole(t *testing.T) {
	list := append(planted(t), samples(t, harmlessFile)...)
	rapid.Check(t, func(r *rapid.T) {
		text := ""
		for range rapid.IntRange(1, 3).Draw(r, "parts") {
			s := rapid.SampledFrom(list).Draw(r, "sample")
			part := s.InString(rapid.IntRange(0, 2).Draw(r, "strings")).Text
			if rapid.Bool().Draw(r, "part") {
				part = part[:rapid.IntRange(0, len(part)).Draw(r, "length")]
			}
			text += strings.ToValidUTF8(part, "")
		}
		sizes := rapid.SliceOfN(rapid.IntRange(1, 40), 1, 8).Draw(r, "sizes")
		cutLaw(tb{t, r}, text, sizes, rapid.IntRange(0, cases-1).Draw(r, "case"))
	})
}

// tb is a testing.TB that fails a rapid test.
type tb struct {
	testing.TB
	r *rapid.T
}

func (t tb) Helper()                           {}
func (t tb) Errorf(format string, args ...any) { t.r.Errorf(format, args...) }
func (t tb) Fatalf(format string, args ...any) { t.r.Fatalf(format, args...) }
func (t tb) FailNow()                          { t.r.FailNow() }

func FuzzCut(f *testing.F) {
	for i, s := range append(planted(f), samples(f, harmlessFile)...) {
		if i%8 == 0 { // each seed takes a while
			f.Add(s.InString(i/8%3).Text, []byte{byte(i % 3), 6, 0, 30}, uint16(i*11))
		}
	}
	f.Fuzz(func(t *testing.T, text string, sizes []byte, how uint16) {
		cut := []int{1}
		for i, n := range sizes {
			cut = append(cut[:i], 1+int(n)%64)
		}
		cutLaw(t, strings.ToValidUTF8(text[:min(len(text), 4<<10)], "?"), cut, int(how))
	})
}

// Characters may be cut, too.
func TestNoSecretGetsOutInPartsOfCharacters(t *testing.T) {
	s := scanner()
	for _, value := range values() {
		for size := 1; size <= 7; size++ {
			var events []agentevents.Event
			em := NewEmitter(t, agentevents.LifecycleStrict, agentevents.ModeEnforce, &Clock{}, &IDs{}, policy(), func(ev agentevents.Event) { events = append(events, ev) })
			run, err := em.Run("")
			require.NoError(t, err)
			v := &voice{agent: "a", kind: agentevents.KindTextDelta, block: "b"}
			text := "x " + value + " y"
			for rest := text; rest != ""; {
				n := min(size, len(rest))
				v.say(t, run, rest[:n])
				rest = rest[n:]
			}
			require.NoError(t, em.Close(t.Context()))
			require.Equal(t, s.Mask(text), strings.Join(deltas(events)[v.key(run)], ""), "by %d bytes", size)
		}
	}
}

// A run or its emitter is closed while agents stream: the accepted pieces give the masked text up
// to there, and the held-back end is not lost.
func TestConcurrentSafeStreamsAreClosed(t *testing.T) {
	s, list := scanner(), planted(t)
	for n := range 60 {
		var mu sync.Mutex
		var events []agentevents.Event
		em := NewEmitter(t, agentevents.LifecycleStrict, agentevents.ModeEnforce, &Clock{}, &IDs{}, policy(), func(ev agentevents.Event) {
			mu.Lock()
			defer mu.Unlock()
			events = append(events, ev)
		})
		run, err := em.Run("")
		require.NoError(t, err)
		var wg sync.WaitGroup
		said, enough := make([][]string, 8), make(chan struct{}, 16)
		for i := range said {
			wg.Go(func() {
				defer func() { enough <- struct{}{} }()
				for _, piece := range pieces(list[(n*8+i)*7%len(list)].Text, 1+i) {
					if _, err := run.Agent(fmt.Sprint("agent-", i)).Record(t.Context(), agentevents.Event{Payload: &agentevents.TextDelta{Delta: piece}}); err != nil {
						return
					}
					if said[i] = append(said[i], piece); len(said[i]) == n%9+1 {
						enough <- struct{}{}
					}
				}
			})
		}
		<-enough
		if n%2 == 0 {
			require.NoError(t, run.Close())
		}
		require.NoError(t, em.Close(t.Context()))
		wg.Wait()
		all := deltas(events)
		for i, pieces := range said {
			require.Empty(t, wrong(s, pieces, all[blockKey{run.ID(), fmt.Sprint("agent-", i), agentevents.KindTextDelta, ""}]), "%d", n)
		}
	}
}

// streamAll emits texts in deltas, each in a block of its own, and returns the recorded deltas.
func streamAll(t testing.TB, texts [][]string) [][]string {
	var events []agentevents.Event
	em := NewEmitter(t, agentevents.LifecycleStrict, agentevents.ModeEnforce, &Clock{}, &IDs{}, nil, func(ev agentevents.Event) { events = append(events, ev) })
	run, err := em.Run("")
	require.NoError(t, err)
	for i, text := range texts {
		v := &voice{agent: "a", kind: deltaKinds[i%3], block: fmt.Sprint("block-", i), numbered: i%2 == 0}
		for _, piece := range text {
			v.say(t, run, piece)
		}
	}
	require.NoError(t, em.Close(t.Context()))
	all := deltas(events)
	got := make([][]string, len(texts))
	for i := range texts {
		got[i] = all[blockKey{run.ID(), "a", deltaKinds[i%3], fmt.Sprint("block-", i)}]
	}
	return got
}

// Text that only looks like a secret streams unchanged, and without delay if it has none of the
// bytes that rules look at.
func TestHarmlessTextStreams(t *testing.T) {
	var texts [][]string
	list := samples(t, harmlessFile)
	for _, s := range list {
		for depth := range 2 {
			text := s.InString(depth).Text
			for size := 1; size <= 17; size++ {
				texts = append(texts, pieces(text, size))
			}
		}
	}
	s := secret.New(secret.NewNames(nil, nil), nil)
	held, plain := 0, 0
	for i, got := range streamAll(t, texts) {
		text := strings.Join(texts[i], "")
		require.Equal(t, text, strings.Join(got, ""))
		require.Empty(t, wrong(s, texts[i], got))
		same := fmt.Sprint(got) == fmt.Sprint(texts[i])
		if !same {
			held++
		}
		if strings.Trim(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ ,;!?()[]{}<>\"'+*/\\&|#%\n\t") == "" && !strings.ContainsAny(text, "IJz") {
			plain++
			require.True(t, same, "%q\n%q", texts[i], got)
		}
	}
	t.Logf("%d of %d streams are held back somewhere, %d have nothing to look at", held, len(texts), plain)
	require.Positive(t, plain)
}

// Prose, code and the texts of sessions stream without delay, by words and by parts of them:
// of a thousand deltas ten may wait for the next one.
func TestPlainTextsStreamAtOnce(t *testing.T) {
	var texts [][]string
	for _, pattern := range []string{"*.md", "docs/*.md", "capture/claude/testdata/sessions/*.jsonl", "dialect/*/*.go", "live/*.go", "logfile/*.go", "otelhook/*.go", "query/*.go", "resume/*.go", "runstore/*.go", "tree/*.go"} {
		paths, err := filepath.Glob(filepath.Join("..", "..", pattern))
		require.NoError(t, err)
		require.NotEmpty(t, paths)
		for _, path := range paths {
			if strings.HasSuffix(path, "_test.go") {
				continue // they have secrets
			}
			data, err := os.ReadFile(path)
			require.NoError(t, err)
			list := strings.SplitAfter(string(data), "\n\n")
			if filepath.Ext(path) == ".jsonl" {
				list = stringsOf(data)
			}
			for _, text := range list {
				texts = append(texts, strings.SplitAfter(text, " "), pieces(text, 3, 4, 7, 2, 5))
			}
		}
	}
	s := secret.New(secret.NewNames(nil, nil), nil)
	n, held, masked := 0, 0, map[string]bool{}
	var list []string
	for i, got := range streamAll(t, texts) {
		require.Empty(t, wrong(s, texts[i], got))
		if text := strings.Join(got, ""); text != strings.Join(texts[i], "") {
			masked[text] = true
			continue
		}
		behind := 0
		for k, piece := range texts[i] {
			n++
			if behind += len(piece) - len(got[k]); behind > 0 {
				held++
				list = append(list, fmt.Sprintf("%d bytes are held at %q", behind, piece))
			}
		}
	}
	t.Logf("%d deltas, %d held; %d texts masked", n, held, len(masked))
	if held*100 > n || len(masked) > 10 {
		t.Errorf("too much is held back or masked:\n%s\n%v", strings.Join(list, "\n"), masked)
	}
}

// stringsOf returns the strings in JSON values that stand one after the other.
func stringsOf(data []byte) (list []string) {
	for dec := json.NewDecoder(bytes.NewReader(data)); ; {
		token, err := dec.Token()
		if err != nil {
			return list
		}
		if text, ok := token.(string); ok && text != "" {
			list = append(list, text)
		}
	}
}

// The events of an example and of captured runs come out one by one and unchanged when
// they are emitted once more.
func TestLogsComeOutAsTheyWentIn(t *testing.T) {
	if testing.Short() {
		t.Skip("runs an example")
	}
	quickstart := filepath.Join(t.TempDir(), "run.jsonl")
	ran, err := exec.Command("go", "run", "../../examples/quickstart", "-out", quickstart).CombinedOutput()
	require.NoError(t, err, "%s", ran)
	logs := map[string]agentevents.Decoder{quickstart: agentevents.NewDecoder()}
	for _, pattern := range []string{"../../capture/claude/testdata/*.stream.jsonl", "../../capture/claude/testdata/sessions/*.stream.jsonl"} {
		paths, err := filepath.Glob(pattern)
		require.NoError(t, err)
		for _, path := range paths {
			logs[path] = claude.NewDecoder(claude.Options{})
		}
	}
	for path, decoder := range logs {
		file, err := os.Open(path)
		require.NoError(t, err)
		var events []agentevents.Event
		em := NewEmitter(t, agentevents.LifecycleRelaxed, agentevents.ModeObserve, &Clock{}, &IDs{}, nil, func(ev agentevents.Event) { events = append(events, ev) })
		n, streamed := 0, 0
		var late, changed []string
		for ev, err := range agentevents.NewReader(file, agentevents.ReaderOptions{Decoder: decoder}).All() {
			require.NoError(t, err, path)
			run, err := em.Run(ev.RunID)
			if errors.Is(err, agentevents.ErrRunReleased) {
				continue // it follows the end
			}
			require.NoError(t, err)
			require.NoError(t, errOf(run.Record(t.Context(), ev)))
			n++
			require.Len(t, events, n, "%s: one event is one event", path)
			_, said, ok := deltaOf(&ev)
			if _, got, _ := deltaOf(&events[n-1]); ok {
				if streamed++; said != got {
					late = append(late, fmt.Sprintf("%q in place of %q", got, said))
				}
			}
			// The lines of unknown events have session ids, whose name is a credential's.
			if _, unknown := ev.Payload.(*agentevents.Unknown); !unknown && events[n-1].Marks != ev.Marks {
				changed = append(changed, fmt.Sprintf("%#v", events[n-1].Payload))
			}
		}
		require.NoError(t, em.Close(t.Context()))
		require.Len(t, events, n)
		require.NoError(t, file.Close())
		t.Logf("%s: %d events, %d deltas, %d late, %d events masked", filepath.Base(path), n, streamed, len(late), len(changed))
		// A member content is held back up to 253 bytes: the name of a credential may follow.
		if len(late) > 0 || len(changed) > 5 {
			t.Errorf("too much is late or masked:\n%s\n%s", strings.Join(late, "\n"), strings.Join(changed, "\n"))
		}
	}
}
