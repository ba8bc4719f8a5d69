package agentevents

import (
	"bytes"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// FoldReader and FoldAll are two ways to the same snapshots.
func TestFoldReaderIsFoldAll(t *testing.T) {
	var log []byte
	runs := 0
	for _, e := range sampleEvents() {
		for _, run := range []string{"a", "b"} {
			e.RunID, e.Sequence = run, uint64(runs/2)
			line, err := e.AppendJSON(nil)
			require.NoError(t, err)
			log = append(append(log, line...), '\n')
			runs++
		}
	}
	log = append(log, "not a line\n\n{\"type\":\"x.y\",\"runId\":\"c\"}\n{\"type\":\"run.paused\",\"runId\":\"c\",\"sequence\":1}\n{\"torn"...)
	opts := FoldOptions{KeepCalls: 2, Lifecycle: Relaxed}
	want, wantErr := FoldAll(NewReader(bytes.NewReader(log), ReaderOptions{}).All(), opts)
	require.Len(t, want, 3)
	for _, opts.Workers = range []int{0, 1, 2, 5} {
		got, gotErr := FoldReader(NewReader(bytes.NewReader(log), ReaderOptions{}), opts)
		require.Equal(t, wantErr.Error(), gotErr.Error())
		for i := range want {
			if want[i].RunID == "c" {
				// Its lines are not spelled as AppendJSON does, so their hashes differ.
				want[i].Recent, got[i].Recent = nil, nil
			}
			require.Equal(t, want[i], got[i])
		}
	}

	// A reader that was used before, in the middle of a line's events.
	r := NewReader(bytes.NewReader(log), ReaderOptions{})
	for range r.All() {
		break
	}
	rest, _ := FoldReader(r, opts)
	require.Len(t, rest, 3)
	require.Equal(t, "b", rest[0].RunID)
}

// FoldReader tells a repeated event by its line, FoldAll by what it says.
func TestFoldReaderTellsARepetitionByItsSpelling(t *testing.T) {
	line := func(member string) string {
		return `{"id":"e1","sequence":0,"timestamp":"2026-01-02T03:04:05.000Z","type":"run.paused","runId":"r",` + member + `}` + "\n"
	}
	for _, tc := range []struct {
		again           string
		byLine, byEvent int
	}{
		{line(`"payload":{}`), 0, 0},
		{line(`"payload": {}`), 1, 0},
		{line(`"payload":{"reason":"other"}`), 1, 1},
	} {
		log := line(`"payload":{}`) + tc.again
		s, err := FoldReader(NewReader(strings.NewReader(log), ReaderOptions{}), FoldOptions{})
		require.NoError(t, err)
		require.Equal(t, tc.byLine, sequenceViolations(s[0]), tc.again)
		s, err = FoldAll(NewReader(strings.NewReader(log), ReaderOptions{}).All(), FoldOptions{})
		require.NoError(t, err)
		require.Equal(t, tc.byEvent, sequenceViolations(s[0]), tc.again)
	}
}

func sequenceViolations(s *RunSnapshot) int {
	n := 0
	for _, v := range s.Violations {
		if v.Rule == RuleSequence {
			n++
		}
	}
	return n
}

// Many interleaved runs on many workers: as on one, in the same order.
func TestFoldReaderWorkers(t *testing.T) {
	var log bytes.Buffer
	em, err := NewEmitter(Options{Sinks: []Sink{NewWriter(&log, WriterOptions{})}})
	require.NoError(t, err)
	var agents []*Agent
	for n := range 60 {
		run, err := em.Run(fmt.Sprintf("run \"%d\"", n)) // ids that are escaped take the slow path
		if n%2 == 0 {
			run, err = em.Run(fmt.Sprint("run-", n))
		}
		require.NoError(t, err)
		agents = append(agents, run.Agent("a"))
		require.NoError(t, agents[n].Emit(t.Context(), &AgentStarted{Task: strings.Repeat("much text ", 500)}))
	}
	for n := range 3000 {
		a := agents[n*7%len(agents)]
		require.NoError(t, a.Emit(t.Context(), &CommandReceived{Command: Command{Type: CommandSend, RunID: "not the run", Message: fmt.Sprint(n)}}))
	}
	want, err := FoldReader(NewReader(bytes.NewReader(log.Bytes()), ReaderOptions{}), FoldOptions{})
	require.NoError(t, err)
	require.Len(t, want, 60)
	for _, workers := range []int{2, 3, 16} {
		got, err := FoldReader(NewReader(bytes.NewReader(log.Bytes()), ReaderOptions{}), FoldOptions{Workers: workers})
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
}

// What a fold keeps must not keep the log alive: long after a line was read,
// nothing of it is reachable but what the snapshot shows.
func TestFoldKeepsNoLineAlive(t *testing.T) {
	const events = 2000
	ballast := strings.Repeat("x", 10<<10)
	var log bytes.Buffer
	em, err := NewEmitter(Options{Sinks: []Sink{NewWriter(&log, WriterOptions{})}})
	require.NoError(t, err)
	run, err := em.Run("r")
	require.NoError(t, err)
	a := run.Agent("a")
	require.NoError(t, a.Emit(t.Context(), &AgentStarted{}))
	for range events {
		require.NoError(t, a.Emit(t.Context(), &AuditChecked{CheckpointID: "audit:x", Result: AuditPass, Evidence: JSON(`{"b":"` + ballast + `"}`)}))
	}
	for _, fold := range []func(*Reader) ([]*RunSnapshot, error){
		func(r *Reader) ([]*RunSnapshot, error) { return FoldReader(r, FoldOptions{}) },
		func(r *Reader) ([]*RunSnapshot, error) { return FoldAll(r.All(), FoldOptions{}) },
	} {
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		s, err := fold(NewReader(bytes.NewReader(log.Bytes()), ReaderOptions{}))
		require.NoError(t, err)
		runtime.GC()
		runtime.ReadMemStats(&after)
		require.Len(t, s[0].Audits, events)
		require.Less(t, int64(after.HeapAlloc)-int64(before.HeapAlloc), int64(4<<20), "of a log of %d bytes", log.Len())
	}
}
