package servertest

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/runstore"
	"github.com/agentevents/agentevents/runstore/natsstore"
	"github.com/agentevents/agentevents/runstore/runstoretest"
)

var names atomic.Int64

// newStore returns an empty store with a stream of its own.
func newStore(t testing.TB, js jetstream.JetStream, o natsstore.Options) (*natsstore.Store, natsstore.Options) {
	o.Name = fmt.Sprintf("test-%d", names.Add(1))
	require.NoError(t, natsstore.Create(t.Context(), js, o))
	return open(t, js, o), o
}

func open(t testing.TB, js jetstream.JetStream, o natsstore.Options) *natsstore.Store {
	s, err := natsstore.Open(t.Context(), js, o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

func TestStore(t *testing.T) {
	js := connect(t, cluster(t, 1, "")...)
	options := map[runstore.Store]natsstore.Options{}
	again := func(t testing.TB, s runstore.Store) runstore.Store {
		o := options[s]
		other := open(t, js, o)
		options[other] = o
		return other
	}
	f := runstoretest.Features{
		Open: func(t testing.TB) runstore.Store {
			s, o := newStore(t, js, natsstore.Options{})
			options[s] = o
			return s
		},
		Reopen: again, Second: again, MaxRunID: 1500, MaxLine: 1<<20 - 1024,
	}
	runstoretest.Run(t, f)
	runstoretest.Claims(t, f)
}

func event(t testing.TB, runID string, seq uint64, size int) runstore.Entry {
	e, err := runstore.NewEntry(agentevents.Event{
		ID: fmt.Sprintf("%s-%d", runID, seq), RunID: runID, Sequence: seq, Time: time.Date(2026, 5, 5, 9, 0, int(seq), 0, time.UTC),
		SchemaVersion: agentevents.SchemaVersion, Payload: &agentevents.StatePatched{Path: "n", Op: "set", Value: agentevents.JSONString(strings.Repeat("x", size))},
	})
	require.NoError(t, err)
	return e
}

func sequences(t testing.TB, s runstore.Store, runID string, from uint64) (all []uint64) {
	for e, err := range s.Load(t.Context(), runID, from) {
		require.NoError(t, err)
		all = append(all, e.Event.Sequence)
	}
	return all
}

// An append that does not fit into one message is stored whole or not at all.
func TestLargeAppendsAreAtomic(t *testing.T) {
	js := connect(t, cluster(t, 1, "max_payload: 65536")...)
	s, _ := newStore(t, js, natsstore.Options{})
	var entries []runstore.Entry
	for seq := range uint64(20) {
		entries = append(entries, event(t, "r", seq, 20_000))
	}
	require.NoError(t, s.Append(t.Context(), "r", 0, entries...))
	require.Len(t, sequences(t, s, "r", 0), 20)
	require.Equal(t, []uint64{13, 14, 15, 16, 17, 18, 19}, sequences(t, s, "r", 13))

	other, _ := newStore(t, js, natsstore.Options{})
	require.NoError(t, other.Append(t.Context(), "r", 0, event(t, "r", 0, 1)))
	err := other.Append(t.Context(), "r", 0, entries...)
	require.ErrorIs(t, err, agentevents.ErrFenced)
	require.Equal(t, []uint64{0}, sequences(t, other, "r", 0))

	require.NoError(t, s.Append(t.Context(), "r", 0, entries...), "the same append again")
	require.Len(t, sequences(t, s, "r", 0), 20)
	err = s.Append(t.Context(), "r", 20, event(t, "r", 20, 70_000))
	require.ErrorIs(t, err, runstore.ErrRefused)
	require.ErrorContains(t, err, "max_payload")
}

// A Load that has ended, and a Watch, leave no consumer in the server, which has a limit for them, and
// the limit of the stream is above the server's default of 1,000.
func TestReadersLeaveNoConsumers(t *testing.T) {
	js := connect(t, cluster(t, 1, "")...)
	_, err := js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "old", Subjects: []string{"old.*"}})
	require.NoError(t, err)
	require.NoError(t, natsstore.Create(t.Context(), js, natsstore.Options{Name: "old"}), "a stream of before")
	s, err := natsstore.Open(t.Context(), js, natsstore.Options{Name: "old"})
	require.NoError(t, err)
	require.NoError(t, s.Append(t.Context(), "r", 0, event(t, "r", 0, 5), event(t, "r", 1, 5)))
	stream, err := js.Stream(t.Context(), "old")
	require.NoError(t, err)
	require.Equal(t, 100_000, stream.CachedInfo().Config.MaxConsumers)
	consumers := func() int {
		info, err := stream.Info(t.Context())
		require.NoError(t, err)
		return info.State.Consumers
	}
	for range 10 {
		require.Len(t, sequences(t, s, "r", 0), 2)
	}
	for range s.Load(t.Context(), "r", 0) {
		break
	}
	require.Zero(t, consumers())
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	for range s.Watch(ctx, "r", 1) {
		require.Equal(t, 1, consumers())
		stop()
	}
	require.Zero(t, consumers())
}

// Load and Watch find the place of an event among the messages of other runs.
func TestPlacesAmongManyRuns(t *testing.T) {
	js := connect(t, cluster(t, 1, "")...)
	s, _ := newStore(t, js, natsstore.Options{})
	for seq := range uint64(40) {
		for _, run := range []string{"a", "b", "c"} {
			if seq%2 == 0 { // two events in a message
				require.NoError(t, s.Append(t.Context(), run, seq, event(t, run, seq, 5), event(t, run, seq+1, 5)))
			}
		}
	}
	for from := range uint64(42) {
		got := sequences(t, s, "b", from)
		require.Len(t, got, max(0, 40-int(from)))
		if len(got) > 0 {
			require.Equal(t, from, got[0])
			require.True(t, slices.IsSorted(got))
		}
	}
}

// Every run is listed once, page after page.
func TestRunsInPages(t *testing.T) {
	js := connect(t, cluster(t, 1, "")...)
	s, _ := newStore(t, js, natsstore.Options{})
	const n = 500
	for i := range n {
		require.NoError(t, s.Append(t.Context(), fmt.Sprintf("run %03d", i), 0, event(t, fmt.Sprintf("run %03d", i), 0, 1)))
	}
	var got []string
	for after, more := "", true; more; {
		more = false
		page := 0
		for info, err := range s.Runs(t.Context(), after) {
			require.NoError(t, err)
			require.EqualValues(t, 1, info.Next)
			got, after, more = append(got, info.RunID), info.RunID, true
			if page++; page == 70 {
				break
			}
		}
	}
	require.Len(t, got, n)
	require.True(t, slices.IsSorted(got))
	require.NoError(t, s.Delete(t.Context(), "run 007"))
	require.NoError(t, s.Delete(t.Context(), "unknown"))
	_, err := s.Run(t.Context(), "run 007")
	require.ErrorIs(t, err, runstore.ErrNoRun)
	require.NoError(t, s.Append(t.Context(), "run 007", 0, event(t, "run 007", 0, 1)), "a deleted run begins anew")
}

// A server that is away, full or without the stream is a clear error, and the append goes on later.
func TestServersThatFail(t *testing.T) {
	nodes := cluster(t, 1, "")
	js := connect(t, nodes...)
	_, err := natsstore.Open(t.Context(), js, natsstore.Options{Name: "none"})
	require.ErrorContains(t, err, "Create makes it")
	require.ErrorIs(t, err, jetstream.ErrStreamNotFound)

	s, _ := newStore(t, js, natsstore.Options{})
	require.NoError(t, s.Append(t.Context(), "r", 0, event(t, "r", 0, 1)))
	watched := make(chan uint64, 10)
	go func() {
		defer close(watched)
		for e, err := range s.Watch(t.Context(), "r", 0) {
			if err != nil {
				return
			}
			watched <- e.Event.Sequence
		}
	}()
	require.EqualValues(t, 0, <-watched)
	nodes[0].kill()
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(300*time.Millisecond, cancel)
	err = s.Append(ctx, "r", 1, event(t, "r", 1, 1))
	require.Error(t, err)
	require.ErrorContains(t, err, `appending to run "r"`)
	require.True(t, errors.Is(err, context.Canceled) || errors.Is(err, nats.ErrTimeout), err)
	nodes[0].start()
	require.Eventually(t, func() bool { return s.Append(t.Context(), "r", 1, event(t, "r", 1, 1)) == nil }, 30*time.Second, 50*time.Millisecond)
	require.EqualValues(t, 1, <-watched, "a watch goes on when the server is back")
	require.Equal(t, []uint64{0, 1}, sequences(t, s, "r", 0))

	full, o := newStore(t, js, natsstore.Options{MaxBytes: 4096})
	err = nil
	seq := uint64(0)
	for ; err == nil && seq < 10; seq++ {
		err = full.Append(t.Context(), "r", seq, event(t, "r", seq, 1000))
	}
	want := fmt.Sprintf(`natsstore: appending to run "r": stream %q is full, its limit is max_bytes (Options.MaxBytes): `+
		`nats: API error: code=503 err_code=10077 description=maximum bytes exceeded`, o.Name)
	require.EqualError(t, err, want)
	require.False(t, errors.Is(err, agentevents.ErrFenced), err)
	var batch []runstore.Entry // of several messages
	for i := range uint64(3) {
		batch = append(batch, event(t, "r", seq-1+i, 900_000))
	}
	require.EqualError(t, full.Append(t.Context(), "r", seq-1, batch...), want)
}

// A message that is damaged, or has another run's event, is named in the error.
func TestDamagedMessages(t *testing.T) {
	js := connect(t, cluster(t, 1, "")...)
	s, o := newStore(t, js, natsstore.Options{})
	for id, bad := range map[string]struct{ data, err string }{
		"a": {"no event", ""},
		"b": {event(t, "r", 1, 1).Line, `it has an event of run "r"`},
	} {
		require.NoError(t, s.Append(t.Context(), id, 0, event(t, id, 0, 1)))
		ack, err := js.PublishMsg(t.Context(), &nats.Msg{
			Subject: o.Name + "." + base64.RawURLEncoding.EncodeToString([]byte(id)), Data: []byte(bad.data),
			Header: nats.Header{"Agentevents-First": {"1"}, "Agentevents-Next": {"2"}},
		})
		require.NoError(t, err)
		var last error
		n := 0
		for _, err := range s.Load(t.Context(), id, 0) {
			last = err
			n++
		}
		require.Equal(t, 2, n)
		require.ErrorContains(t, last, fmt.Sprintf("natsstore: loading run %q: message %d of the stream: ", id, ack.Sequence))
		require.ErrorContains(t, last, bad.err)
	}
}

// Credentials that the server refuses are an error of the connection or of Create, not a hang.
func TestRefusedPermission(t *testing.T) {
	nodes := cluster(t, 1, `authorization { users = [{user: a, password: b}, {user: r, password: r, permissions: {publish: ["$JS.API.INFO", "$JS.API.STREAM.INFO.*", "_INBOX.>"]}}] }`)
	nodes[0].url = strings.Replace(nodes[0].url, "nats://", "nats://a:b@", 1)
	js := connect(t, nodes...)
	_, o := newStore(t, js, natsstore.Options{})
	limited := dial(t, strings.Replace(nodes[0].url, "a:b@", "r:r@", 1))
	require.Error(t, natsstore.Create(t.Context(), limited, o))
}
