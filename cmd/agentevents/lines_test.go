package main

import (
	"bytes"
	"fmt"
	"iter"
	"maps"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/internal/chain"
)

// The reader of most commands yields and reports the same as the slow one, also for damaged logs
// and for logs with lines of several formats.
func TestLinesAgreeWithEvents(t *testing.T) {
	logs := logsOfTheTree(t)
	names := slices.Sorted(maps.Keys(logs))
	var strange []string // lines of all formats, and some of none
	for i := 0; i < len(names); i += 7 {
		line, _, _ := strings.Cut(logs[names[i]], "\n")
		strange = append(strange, line)
	}
	strange = append(strange, `{"a":1}`, "id: 7", `data: {"type":"RUN_STARTED","threadId":"t","runId":"r"}`, ": note", "text", "\x00\x00", `{"level":"info","msg":"x"}`)
	quick := 0
	for i, name := range names {
		rng := rand.New(rand.NewPCG(uint64(i), 1))
		for damage, text := range withDamage(logs[name], strange, rng) {
			for _, verb := range []bool{false, true} {
				want, _ := readLog(t, text, logReader{kept: true, verb: verb, maxLine: 5000})
				got, n := readLog(t, text, logReader{verb: verb, maxLine: 5000})
				require.Equal(t, want, got, "%s, %s", name, damage)
				quick += n
			}
		}
	}
	require.Greater(t, quick, 10_000, "events of the quick reader")
}

// withDamage yields a log, and the log after accidents.
func withDamage(log string, strange []string, rng *rand.Rand) iter.Seq2[string, string] {
	const most = 40 << 10
	if len(log) > most {
		log = log[:most]
	}
	lines := strings.SplitAfter(log, "\n")
	at := func(lines []string) int { return rng.IntN(len(lines)) }
	change := func(act func(lines []string) []string) string {
		l := slices.Clone(lines)
		for range 1 + len(l)/20 {
			l = act(l)
		}
		return strings.Join(l, "")
	}
	accidents := map[string]func(l []string) []string{
		"torn": func(l []string) []string {
			i := at(l)
			l[i] = l[i][:rng.IntN(len(l[i])+1)]
			return l
		},
		"a byte": func(l []string) []string {
			i := at(l)
			if b := []byte(l[i]); len(b) > 0 {
				b[rng.IntN(len(b))] = byte(rng.IntN(256))
				l[i] = string(b)
			}
			return l
		},
		"again": func(l []string) []string { i := at(l); return slices.Insert(l, at(l), l[i]) },
		"gone":  func(l []string) []string { i := at(l); return slices.Delete(l, i, i+min(1, len(l)-1)) },
		"strange": func(l []string) []string {
			return slices.Insert(l, at(l), strange[rng.IntN(len(strange))]+"\n")
		},
		"CRLF":  func(l []string) []string { i := at(l); l[i] = strings.TrimSuffix(l[i], "\n") + "\r\n"; return l },
		"mark":  func(l []string) []string { i := at(l); l[i] = "\ufeff" + l[i]; return l },
		"blank": func(l []string) []string { return slices.Insert(l, at(l), " \n") },
		"long": func(l []string) []string {
			i := at(l)
			l[i] = strings.Replace(l[i], "{", "{"+strings.Repeat(" ", 6000), 1)
			return l
		},
		"chained": func(l []string) []string {
			i := at(l)
			if text := strings.TrimSuffix(l[i], "\n"); len(text) > 2 {
				linked, _ := chain.Append(nil, []byte(text), chain.Hash{})
				l[i] = string(linked) + "\n"
			}
			return l
		},
	}
	return func(yield func(string, string) bool) {
		if !yield("sound", log) {
			return
		}
		all := lines
		for _, name := range slices.Sorted(maps.Keys(accidents)) {
			if !yield(name, change(accidents[name])) {
				return
			}
		}
		for _, name := range slices.Sorted(maps.Keys(accidents)) {
			lines = strings.SplitAfter(change(accidents[name]), "\n")
		}
		if !yield("all", strings.Join(lines, "")) {
			return
		}
		lines = all
	}
}

// readLog returns the events and reports of a reader, as text, and the number of events that have a
// line.
func readLog(t *testing.T, text string, l logReader) (_ string, quick int) {
	var b strings.Builder
	var stderr bytes.Buffer
	in := &invocation{name: "cat", args: []string{"log"}, stdout: newOutput(&b), stderr: &stderr}
	l.open = func(string) iter.Seq2[input, error] {
		return func(yield func(input, error) bool) {
			for i, part := range []string{text[:len(text)/2], text[len(text)/2:]} {
				if !yield(input{Reader: strings.NewReader(part), name: fmt.Sprint("part", i)}, nil) {
					return
				}
			}
		}
	}
	l.report = func(at position, what string) { fmt.Fprintf(&b, "%s: %s\n", l.place(at), what) }
	l.sorted.value = "file"
	lines, err := l.each(in)
	require.NoError(t, err)
	var buf []byte
	for at, line := range lines {
		ev := *line.Event
		origin := ev.Origin()
		if buf, err = ev.AppendJSON(buf[:0]); origin == "" && line.Text != "" {
			require.Equal(t, string(buf), line.Text)
			quick++
		}
		fmt.Fprintf(&b, "%s: %s %v\n%s\n", l.place(at), buf, err, origin)
	}
	fmt.Fprint(&b, l.notes, l.bad, l.lines, l.failed, l.result(), stderr.String())
	return b.String(), quick
}

// An early end of the loop leaves the rest to be read.
func TestLinesGoOn(t *testing.T) {
	log, _, _ := strings.Cut(logsOfTheTree(t)["../../testdata/kinds.jsonl"], "\n\n")
	all := func(r *agentevents.Reader) (ids []string) {
		for ev, err := range r.All() {
			ids = append(ids, fmt.Sprint(ev.ID, err))
		}
		return ids
	}
	lines := strings.SplitAfter(log, "\n")
	log = strings.Join(slices.Insert(lines, 2, "{\"a\":1}\n"), "")
	want := all(agentevents.NewReader(strings.NewReader(log), agentevents.ReaderOptions{Decoder: anyDecoder("")}))
	require.Greater(t, len(want), 10)
	for stop := range want {
		r := agentevents.NewReader(strings.NewReader(log), agentevents.ReaderOptions{Decoder: anyDecoder("")})
		var got []string
		for line, err := range r.Lines() {
			id := ""
			if line.Event != nil {
				id = line.Event.ID
			}
			if got = append(got, fmt.Sprint(id, err)); len(got) > stop {
				break
			}
		}
		require.Equal(t, want, append(got, all(r)...))
	}
}

// The observers of the order and the gaps of many runs keep no line of them.
func TestLinesAreNotKept(t *testing.T) {
	var log strings.Builder
	text := strings.Repeat("x", 7000)
	const runs = 4000
	for i := range runs {
		fmt.Fprintf(&log, `{"id":"e%d","sequence":0,"timestamp":"2026-05-05T09:00:00Z","type":"run.started","runId":"r%d","schemaVersion":"2.0","payload":{"inputs":%q}}`+"\n", i, i, text)
	}
	l := logReader{maxLine: 1 << 20}
	l.sorted.value = "file"
	in := &invocation{name: "check", args: []string{"-"}, stdin: strings.NewReader(log.String()), stdout: newOutput(new(bytes.Buffer))}
	lines, err := l.each(in)
	require.NoError(t, err)
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	cuts, n := gaps{}, 0
	before := heap()
	for _, line := range lines {
		require.NotEmpty(t, line.Text)
		cuts.see(line.Event)
		if n++; n == runs {
			require.Less(t, heap(), before+4<<20)
		}
	}
	require.Equal(t, runs, n)
}
