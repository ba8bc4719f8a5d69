package logfile

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	ae "github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/internal/effort"
)

const crashEnv = "AGENTEVENTS_CRASH_LOG"

var crashOptions = Options{Sync: SyncEvery, Chain: true, MaxBytes: 30_000, Compress: true}

func TestMain(m *testing.M) {
	if path := os.Getenv(crashEnv); path != "" {
		fmt.Println("error", crashChild(path, os.Getenv(crashEnv+"_RUN")))
		os.Exit(3)
	}
	os.Exit(m.Run())
}

// crashChild waits for the log and emits into it from four runs, as fast as it can. It
// prints every event after Emit returned for it. It is killed.
func crashChild(path, run string) error {
	l, err := Open(path, crashOptions)
	for ; errors.Is(err, ErrLocked); l, err = Open(path, crashOptions) {
		time.Sleep(100 * time.Microsecond)
	}
	if err != nil {
		return err
	}
	fmt.Println("open", 0)
	e, err := ae.NewEmitter(ae.EmitterOptions{Sinks: []ae.Sink{l}})
	if err != nil {
		return err
	}
	errs := make(chan error)
	for n := range 4 {
		id := fmt.Sprintf("%s-%d", run, n)
		r, err := e.Run(id)
		if err != nil {
			return err
		}
		go func() {
			for seq := 0; ; seq++ {
				value := fmt.Sprintf("\"%0*d\"", 1+seq*7919%900, seq)
				if err := r.Emit(context.Background(), &ae.StatePatched{Path: "x", Op: "set", Value: ae.JSON(value)}); err != nil {
					errs <- err
					return
				}
				fmt.Println(id, seq)
			}
		}()
	}
	return <-errs
}

// A child is a process that writes the log.
type child struct {
	*exec.Cmd
	opened chan struct{}
	acked  map[string]int // sequences that were acknowledged in a run
	done   sync.WaitGroup
	wanted int           // kill it then
	full   chan struct{} // so many were acknowledged
	failed string
}

func startChild(t *testing.T, path, run string, kill int) *child {
	c := &child{Cmd: exec.Command(os.Args[0]), opened: make(chan struct{}), full: make(chan struct{}), acked: map[string]int{}, wanted: kill}
	c.Env = append(os.Environ(), crashEnv+"="+path, crashEnv+"_RUN="+run)
	out, err := c.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, c.Start())
	c.done.Go(func() { c.read(out) })
	return c
}

func (c *child) read(out io.Reader) {
	lines := bufio.NewScanner(out)
	opened, n := false, 0
	for lines.Scan() {
		var run string
		var seq int
		if k, err := fmt.Sscan(lines.Text(), &run, &seq); run == "error" {
			c.failed = lines.Text()
			break
		} else if k != 2 || err != nil {
			break // cut by the kill
		}
		if run == "open" {
			opened = true
			close(c.opened)
			continue
		}
		c.acked[run] = seq + 1
		if n++; n == c.wanted {
			close(c.full)
		}
	}
	if !opened {
		close(c.opened)
	}
	if n < c.wanted {
		close(c.full)
	}
}

// kill kills the child, and returns the acknowledged events.
func (c *child) kill(t *testing.T) map[string]int {
	require.NoError(t, c.Process.Kill())
	c.done.Wait()
	_ = c.Wait() // it was killed
	require.Empty(t, c.failed)
	require.Equal(t, -1, c.ProcessState.ExitCode(), "it was killed, and did not end by itself")
	return c.acked
}

// Processes are killed while they write, rotate and compress, and others wait for the
// lock: every event that Emit returned for is there once, and in order.
func TestKilledProcesses(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no SIGKILL")
	}
	rounds, every := effort.Of(10, 25, 1000), effort.Of(5, 5, 100)
	path := filepath.Join(t.TempDir(), "log")
	seed := uint64(time.Now().UnixNano())
	t.Log("seed", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	acked := map[string]int{}
	c := startChild(t, path, "0", 1)
	for round := range rounds {
		<-c.opened
		check := (round+1)%every == 0
		var next *child
		if !check {
			next = startChild(t, path, fmt.Sprint(round+1), random.IntN(200)+1)
		}
		if round%8 == 7 { // before it has written much, or is even open
			time.Sleep(time.Duration(random.IntN(2000)) * time.Microsecond)
		} else {
			<-c.full
		}
		for run, n := range c.kill(t) {
			acked[run] = n
		}
		if check {
			checkAcked(t, path, acked)
			next = startChild(t, path, fmt.Sprint(round+1), random.IntN(200)+1)
		}
		c = next
	}
	for run, n := range c.kill(t) {
		acked[run] = n
	}
	l := opened(t, path, crashOptions)
	require.NoError(t, l.WriteEvent(t.Context(), event("after", 0)))
	require.NoError(t, l.Close())
	acked["after"] = 1
	events := checkAcked(t, path, acked)
	total := 0
	for _, n := range acked {
		total += n
	}
	t.Logf("%d kills, %d events acknowledged, %d in the log", rounds+1, total, events)
}

// checkAcked requires that the log has every acknowledged event once and in order. Its
// last line may be torn.
func checkAcked(t *testing.T, path string, acked map[string]int) (events int) {
	next := map[string]int{}
	for _, ev := range readAll(t, path, tornTail) {
		require.EqualValues(t, next[ev.RunID], ev.Sequence, "run %s", ev.RunID)
		next[ev.RunID]++
		events++
	}
	for run, n := range acked {
		require.GreaterOrEqual(t, next[run], n, "run %s", run)
	}
	return events
}
