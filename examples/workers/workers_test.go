//go:build unix

package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/stretchr/testify/require"

	ae "github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/internal/effort"
	"github.com/agentevents/agentevents/runstore"
)

// The test binary is also the program and the NATS server: an environment variable selects them.
const roleEnv = "AGENTEVENTS_WORKERS"

func TestMain(m *testing.M) {
	switch os.Getenv(roleEnv) {
	case "worker":
		main()
	case "nats":
		fmt.Println(serve(os.Args[1:]))
		os.Exit(1)
	default:
		_ = os.Setenv(roleEnv, "worker") // of the processes that the program starts
		os.Exit(m.Run())
	}
}

func serve(args []string) error {
	fs := flag.NewFlagSet("nats-server", flag.ContinueOnError)
	o, err := server.ConfigureOptions(fs, args, func() {}, fs.Usage, func() {})
	if err != nil {
		return err
	}
	s, err := server.NewServer(o)
	if err != nil {
		return err
	}
	if err := server.Run(s); err != nil {
		return err
	}
	s.WaitForShutdown()
	return nil
}

// stores start the servers, and return the addresses of empty stores.
var stores = map[string]func(testing.TB) string{
	"file":       func(t testing.TB) string { return filepath.Join(t.TempDir(), "runs") },
	"PostgreSQL": postgres,
	"NATS":       natsServer,
}

func natsServer(t testing.TB) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := l.Addr().String()
	require.NoError(t, l.Close())
	self, err := os.Executable()
	require.NoError(t, err)
	_, port, _ := net.SplitHostPort(address)
	c := exec.Command(self, "-a", "127.0.0.1", "-p", port, "-js", "-sd", t.TempDir())
	c.Env = append(os.Environ(), roleEnv+"=nats")
	require.NoError(t, c.Start())
	t.Cleanup(func() { _ = c.Process.Kill(); _ = c.Wait() })
	require.Eventually(t, func() bool {
		_, end, err := open(t.Context(), "nats://"+address)
		return err == nil && end() == nil
	}, time.Minute, 50*time.Millisecond)
	return "nats://" + address
}

func postgres(t testing.TB) string {
	initdb, err := exec.LookPath("initdb")
	if programs, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb"); err != nil && len(programs) > 0 {
		initdb, err = programs[len(programs)-1], nil
	}
	if err != nil {
		t.Skip("needs initdb: install the server of PostgreSQL")
	}
	dir, err := os.MkdirTemp("", "workers") // a short path, for the socket
	require.NoError(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	var as *syscall.SysProcAttr
	if os.Getuid() == 0 { // for which the server does not run
		u, err := user.Lookup("nobody")
		require.NoError(t, err)
		uid, _ := strconv.Atoi(u.Uid)
		gid, _ := strconv.Atoi(u.Gid)
		require.NoError(t, os.Chown(dir, uid, gid))
		as = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}
	}
	pg := func(program string, args ...string) error {
		c := exec.Command(filepath.Join(filepath.Dir(initdb), program), args...)
		c.SysProcAttr, c.Dir = as, dir
		out, err := c.CombinedOutput()
		if err != nil {
			return fmt.Errorf("%s: %w\n%s", program, err, out)
		}
		return nil
	}
	data := filepath.Join(dir, "data")
	require.NoError(t, pg("initdb", "--username=test", "--auth=trust", "--encoding=UTF8", "--no-locale", "-D", data))
	require.NoError(t, pg("pg_ctl", "start", "-w", "-D", data, "-l", filepath.Join(dir, "log"), "-o", "-c listen_addresses= -k "+dir))
	t.Cleanup(func() { _ = pg("pg_ctl", "stop", "-w", "-m", "immediate", "-D", data) })
	address := "postgres:///postgres?user=test&host=" + dir
	db, err := sql.Open("pgx", address)
	require.NoError(t, err)
	require.NoError(t, errors.Join(db.Ping(), db.Close()))
	return address
}

// A process that works on all runs is killed. Of two others exactly one goes on with each run, and
// the run comes to what it would have come to.
func TestRunsOfAKilledWorker(t *testing.T) {
	n := effort.Of(20, 200, 200)
	for name, address := range stores {
		t.Run(name, func(t *testing.T) {
			o := options{store: address(t), runs: n, most: n, lease: 10 * time.Second, pace: 2 * time.Second}
			began := map[string]bool{}
			all, ended := make(chan bool), make(chan error, 1)
			var kill func()
			go func() {
				ended <- start(t.Context(), o.args("victim"), func(line string, k func()) {
					if id, _, _ := strings.Cut(line, " "); !began[id] {
						if began[id] = true; len(began) == n {
							kill = k
							close(all)
						}
					}
				})
			}()
			select {
			case <-all:
			case err := <-ended:
				t.Fatalf("the worker ends after it has begun %d runs: %v", len(began), err)
			}
			o.pace = 50 * time.Millisecond
			var mu sync.Mutex
			resumed := map[string][]string{}
			var others sync.WaitGroup
			var killed, last time.Time
			for _, worker := range []string{"b", "c"} {
				others.Go(func() {
					err := start(context.WithoutCancel(t.Context()), o.args(worker), func(line string, _ func()) {
						if id, ok := strings.CutSuffix(line, " goes on"); ok {
							mu.Lock()
							resumed[id], last = append(resumed[id], worker), time.Now()
							mu.Unlock()
						}
					})
					if err != nil {
						t.Errorf("worker %s: %v", worker, err)
					}
				})
			}
			time.Sleep(time.Second) // in which they want the runs
			mu.Lock()
			require.Empty(t, resumed, "a run of a living worker is taken")
			killed = time.Now()
			mu.Unlock()
			kill()
			require.ErrorContains(t, <-ended, "killed")
			others.Wait()
			require.Len(t, resumed, n)
			t.Logf("the last of %d runs went on %v after the kill, with leases of %v", n, last.Sub(killed).Round(10*time.Millisecond), o.lease)

			store, end, err := open(t.Context(), o.store)
			require.NoError(t, err)
			defer end()
			for id, workers := range resumed {
				require.Len(t, workers, 1, id)
				kinds := map[ae.Kind]int{}
				next := uint64(0)
				for e, err := range store.Load(t.Context(), id, 0) {
					require.NoError(t, err)
					require.Equal(t, next, e.Event.Sequence)
					kinds[e.Event.Kind()]++
					next++
				}
				require.Equal(t, 1, kinds[ae.KindRunResumed], "resumptions of %s", id)
				require.Equal(t, 1, kinds[ae.KindRunStarted], id)
				require.Equal(t, 1, kinds[ae.KindRunCompleted], id)
				require.Equal(t, undisturbed(t, id), result(t, store, id))
			}
		})
	}
}

// undisturbed is the result of a run that nobody kills.
func undisturbed(t *testing.T, id string) map[string]any {
	store := new(runstore.Memory)
	em, err := ae.NewEmitter(ae.EmitterOptions{Sinks: []ae.Sink{runstore.NewSink(store)}})
	require.NoError(t, err)
	run, status, err := begin(t.Context(), store, em, id, os.Stderr)
	require.NoError(t, err)
	require.NoError(t, steps(t.Context(), run, status, func(string) {}))
	return result(t, store, id)
}

// result returns the snapshot without ids, times and the resume.
func result(t *testing.T, store runstore.Store, id string) map[string]any {
	restored, err := runstore.Restore(t.Context(), store, id, ae.FoldOptions{})
	require.NoError(t, err)
	require.Empty(t, restored.Snapshot.Violations)
	var all map[string]any
	require.NoError(t, json.Unmarshal(restored.Snapshot.AppendJSON(nil), &all))
	strip(all)
	return all
}

// strip removes the members that differ between any two runs, and the members of the resume.
func strip(all map[string]any) {
	maps.DeleteFunc(all, func(name string, value any) bool {
		if inner, ok := value.(map[string]any); ok {
			strip(inner)
		}
		return name == "nextSequence" || name == "resume" || strings.HasSuffix(name, "At") || strings.HasSuffix(name, "Ms")
	})
}

// The program itself: three workers, of which one is killed.
func TestDemonstration(t *testing.T) {
	var out strings.Builder
	require.NoError(t, run(t.Context(), []string{"-pace", "20ms", "-lease", "3s"}, &out))
	require.Contains(t, out.String(), " is killed\n")
	require.Contains(t, out.String(), " goes on\n")
}
