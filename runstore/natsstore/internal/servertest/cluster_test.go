package servertest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	ae "github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/runstore"
	"github.com/agentevents/agentevents/runstore/natsstore"
	"github.com/agentevents/agentevents/runstore/runstoretest"
)

// The writers of the cluster tests.
const (
	writers    = 3  // processes
	runsEach   = 22 // runs of a process at the same time
	eventsEach = 60 // events of a run
)

// write is a writer process: its arguments are the servers, the store and its own name. It writes
// its runs at the same time, and prints "run sequence" for each event that Emit has acknowledged.
func write(ctx context.Context, args []string) error {
	nc, err := nats.Connect(args[0], nats.RetryOnFailedConnect(true), nats.MaxReconnects(-1), nats.ReconnectWait(50*time.Millisecond))
	if err != nil {
		return err
	}
	defer nc.Close()
	js, err := jetstream.New(nc, jetstream.WithDefaultTimeout(2*time.Second))
	if err != nil {
		return err
	}
	s, err := natsstore.Open(ctx, js, natsstore.Options{Name: args[1]})
	for tries := 0; err != nil && tries < 60; tries++ { // the leader may be killed just now
		s, err = natsstore.Open(ctx, js, natsstore.Options{Name: args[1]})
	}
	if err != nil {
		return err
	}
	quiet := func(error) {}
	em, err := ae.NewEmitter(ae.EmitterOptions{Sinks: []ae.Sink{runstore.NewSink(s)}, OnError: quiet})
	if err != nil {
		return err
	}
	var all sync.WaitGroup
	errs := make([]error, runsEach)
	for i := range runsEach {
		all.Go(func() {
			run, err := em.Run(fmt.Sprintf("%s-%d", args[2], i))
			if err != nil {
				errs[i] = err
				return
			}
			errs[i] = work(ctx, run)
		})
	}
	all.Wait()
	for { // events that the servers did not take while no leader was there
		again, cancel := context.WithTimeout(ctx, time.Minute)
		err := em.Flush(again)
		cancel()
		if err == nil {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	fmt.Println("done")
	return errors.Join(errs...)
}

// work emits the events of a run, at a pace that a leader's death falls into.
func work(ctx context.Context, run *ae.Run) error {
	for seq := range eventsEach {
		var p ae.Payload = &ae.StatePatched{Path: "n", Op: "set", Value: ae.JSON(strconv.Itoa(seq))}
		switch seq {
		case 0:
			p = &ae.RunStarted{Name: "cluster"}
		case eventsEach - 1:
			p = &ae.RunCompleted{}
		}
		err := run.Emit(ctx, p)
		var sink *ae.SinkError
		switch {
		case err == nil:
			fmt.Println(run.ID(), seq) // one write, which other goroutines do not cut
		case !errors.As(err, &sink) || errors.Is(err, ae.ErrFenced):
			return err // the run is lost; a SinkError only means that the sink tries again
		}
		time.Sleep(time.Duration(rand.IntN(30)) * time.Millisecond)
	}
	return nil
}

// acks has the acknowledged sequences of the runs.
type acks struct {
	sync.Mutex
	runs map[string]int // the highest acknowledged sequence
}

// startWriter starts a writer. The channel has its last error.
func startWriter(t testing.TB, nodes []*node, store, name string, got *acks) (kill func(), ended <-chan error) {
	cmd := program(t, "writer", urls(nodes), store, name)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	done := make(chan error, 1)
	go func() {
		lines, last := bufio.NewScanner(out), ""
		for lines.Scan() {
			last = lines.Text()
			if id, seq, ok := strings.Cut(last, " "); ok && !strings.HasPrefix(last, "error") {
				n, _ := strconv.Atoi(seq)
				got.Lock()
				got.runs[id] = max(got.runs[id], n)
				got.Unlock()
			}
		}
		err := cmd.Wait()
		if err == nil && last != "done" {
			err = errors.New(last)
		}
		if err != nil {
			err = fmt.Errorf("%w: %s", err, last)
		}
		done <- err
	}()
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	return func() { _ = cmd.Process.Kill() }, done
}

// newCluster starts three servers with a store of three replicas.
func newCluster(t testing.TB) ([]*node, jetstream.JetStream, *natsstore.Store, string) {
	nodes := cluster(t, 3, "")
	js := connect(t, nodes...)
	o := natsstore.Options{Name: fmt.Sprintf("cluster-%d", names.Add(1)), Replicas: 3}
	require.Eventually(t, func() bool { return natsstore.Create(t.Context(), js, o) == nil }, time.Minute, 100*time.Millisecond)
	return nodes, js, open(t, js, o), o.Name
}

// leader returns the server that leads a stream.
func leader(t testing.TB, nodes []*node, js jetstream.JetStream, stream string) *node {
	var found *node
	require.Eventually(t, func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		s, err := js.Stream(ctx, stream)
		if err != nil || s.CachedInfo().Cluster == nil {
			return false
		}
		for _, n := range nodes {
			if n.name == s.CachedInfo().Cluster.Leader && n.cmd != nil {
				found = n
			}
		}
		return found != nil
	}, time.Minute, 20*time.Millisecond, "no server leads the stream")
	return found
}

// requireWhole requires that the store has every event of each run once, and every acknowledged one.
func requireWhole(t testing.TB, s *natsstore.Store, got *acks) {
	got.Lock()
	defer got.Unlock()
	for id, highest := range got.runs {
		next := uint64(0)
		for e, err := range s.Load(t.Context(), id, 0) {
			require.NoError(t, err, id)
			require.Equal(t, next, e.Event.Sequence, "run %s: a gap, or an event twice", id)
			next++
		}
		require.Greater(t, next, uint64(highest), "run %s: acknowledged events are lost", id)
		restored, err := runstore.Restore(t.Context(), s, id, ae.FoldOptions{})
		require.NoError(t, err)
		require.Equal(t, ae.RunStatusCompleted, restored.Snapshot.Status, id)
		require.Empty(t, restored.Snapshot.Violations, id)
	}
}

// The leader of the stream is killed while 66 runs of three processes go on.
func TestLeadersAreKilled(t *testing.T) {
	if testing.Short() {
		t.Skip("it makes a server of its own")
	}
	kills := 3
	if os.Getenv("AGENTEVENTS_LONG") != "" {
		kills = 50
	}
	nodes, js, s, name := newCluster(t)
	got := &acks{runs: map[string]int{}}
	for killed, round := 0, 0; killed < kills; round++ {
		var ends []<-chan error
		for w := range writers {
			_, ended := startWriter(t, nodes, name, fmt.Sprintf("r%d-w%d", round, w), got)
			ends = append(ends, ended)
		}
		for range min(3, kills-killed) {
			time.Sleep(300 * time.Millisecond)
			down := leader(t, nodes, js, name)
			down.kill()
			killed++
			time.Sleep(500 * time.Millisecond)
			down.start()
			require.Eventually(t, func() bool { return healthy(t, js, name) }, time.Minute, 50*time.Millisecond, "the cluster is not whole again")
		}
		for _, ended := range ends {
			require.NoError(t, <-ended)
		}
	}
	require.GreaterOrEqual(t, len(got.runs), writers*runsEach)
	requireWhole(t, s, got)
}

// healthy reports whether all replicas of the stream are current: then another server may be killed.
func healthy(t testing.TB, js jetstream.JetStream, stream string) bool {
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	s, err := js.Stream(ctx, stream)
	if err != nil || s.CachedInfo().Cluster == nil || len(s.CachedInfo().Cluster.Replicas) != 2 {
		return false
	}
	for _, r := range s.CachedInfo().Cluster.Replicas {
		if !r.Current || r.Offline {
			return false
		}
	}
	return s.CachedInfo().Cluster.Leader != ""
}

// A writer is killed, and another process goes on with its runs.
func TestWritersAreKilled(t *testing.T) {
	if testing.Short() {
		t.Skip("it makes a server of its own")
	}
	nodes, _, s, name := newCluster(t)
	got := &acks{runs: map[string]int{}}
	kill, ended := startWriter(t, nodes, name, "w", got)
	require.Eventually(t, func() bool { got.Lock(); defer got.Unlock(); return len(got.runs) == runsEach }, time.Minute, 10*time.Millisecond)
	kill()
	require.Error(t, <-ended)

	em, err := ae.NewEmitter(ae.EmitterOptions{Sinks: []ae.Sink{runstore.NewSink(s)}})
	require.NoError(t, err)
	for info, err := range s.Runs(t.Context(), "") {
		require.NoError(t, err)
		if info.Terminal != "" {
			continue
		}
		restored, err := runstore.Restore(t.Context(), s, info.RunID, ae.FoldOptions{})
		require.NoError(t, err)
		run, err := em.Resume(restored.Snapshot)
		require.NoError(t, err)
		require.NoError(t, run.Emit(t.Context(), &ae.RunCompleted{}))
	}
	require.NoError(t, em.Close(t.Context()))
	requireWhole(t, s, got)
}

// The claims of a store with three replicas keep the same promises.
func TestClaimsInACluster(t *testing.T) {
	if testing.Short() {
		t.Skip("it makes a server of its own")
	}
	js := connect(t, cluster(t, 3, "")...)
	options := map[runstore.Store]natsstore.Options{}
	runstoretest.Claims(t, runstoretest.Features{
		Open: func(t testing.TB) runstore.Store {
			o := natsstore.Options{Name: fmt.Sprintf("claims-%d", names.Add(1)), Replicas: 3}
			require.Eventually(t, func() bool { return natsstore.Create(t.Context(), js, o) == nil }, time.Minute, 100*time.Millisecond)
			s := open(t, js, o)
			options[s] = o
			return s
		},
		Second: func(t testing.TB, s runstore.Store) runstore.Store { return open(t, js, options[s]) },
	})
}
