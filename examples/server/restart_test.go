package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	goruntime "runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	ae "github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/eventtest"
	"github.com/agentevents/agentevents/resume"
)

const logEnv = "AGENTEVENTS_SERVER_LOG"

// TestMain makes the test a server when the environment names a log.
func TestMain(m *testing.M) {
	path := os.Getenv(logEnv)
	if path == "" {
		os.Exit(m.Run())
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	go func() { // nobody would stop it when the test process is killed
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(1)
	}()
	if err := serve(ctx, os.Stdout, "127.0.0.1:0", path, 0, time.Millisecond); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// spawn starts a server in a process of its own.
func spawn(t *testing.T, path string) (*exec.Cmd, *client) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), logEnv+"="+path)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	_, err = cmd.StdinPipe() // ends with this process
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _, _ = cmd.Process.Kill(), cmd.Wait() })
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	url, ok := strings.CutPrefix(strings.TrimSpace(line), "serving ")
	require.True(t, ok)
	return cmd, &client{url: url}
}

// Processes are killed, or told to stop, in the middle of runs. The last one finishes all of
// them: nothing that a client has seen is lost, and no rule is broken.
func TestRestart(t *testing.T) {
	if goruntime.GOOS == "windows" {
		t.Skip("no signals")
	}
	for name, signal := range map[string]os.Signal{"killed": os.Kill, "stopped": syscall.SIGTERM} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "log.jsonl")
			var observers []*observer
			// The first process ends while a model streams, the second while a sub-agent
			// works, the third while a person is asked.
			ends := []func(ae.Event) bool{
				func(ev ae.Event) bool { return ev.Kind() == ae.KindTextDelta },
				func(ev ae.Event) bool { return ev.AgentID == "researcher" },
				func(ev ae.Event) bool { return ev.Kind() == ae.KindApprovalRequested },
			}
			lives := len(ends) + 1
			for life := range lives {
				cmd, c := spawn(t, path)
				last := life == lives-1
				if !last {
					for range 2 {
						observers = append(observers, &observer{id: c.start(t, 1)})
					}
				}
				var end sync.Once
				var wg sync.WaitGroup
				errs := make([]error, len(observers))
				for i, o := range observers {
					answered := map[string]bool{}
					answer := func(id string) { // only in the last life, so that no run ends before
						if last && !answered[id] {
							answered[id] = true
							c.post(t, "/runs/"+o.id+"/approvals/"+id, `{"granted":true,"by":"ada"}`)
						}
					}
					o.on = func(ev ae.Event) {
						if !last && ends[life](ev) {
							end.Do(func() { _ = cmd.Process.Signal(signal) })
						}
						if p, ok := ev.Payload.(*ae.ApprovalRequested); ok {
							answer(p.ApprovalID)
						}
					}
					o.gap = func() error {
						var s ae.RunSnapshot
						if err := call(t.Context(), "GET", c.url+"/runs/"+o.id, nil, &s); err != nil {
							return err
						}
						for _, a := range s.Approvals {
							if a.Open {
								answer(a.ApprovalID)
							}
						}
						return nil
					}
					wg.Go(func() { _, errs[i] = o.connect(t.Context(), c) })
				}
				wg.Wait()
				if !last {
					err := cmd.Wait()
					require.Equal(t, signal == os.Kill, err != nil)
					require.Equal(t, signal == os.Kill, cmd.ProcessState.ExitCode() == -1)
					if err == nil {
						for _, s := range folded(t, path) {
							require.Equal(t, ae.RunStatusPaused, s.Status)
							require.Empty(t, s.OpenCalls)
						}
					}
					continue
				}
				for _, err := range errs {
					require.NoError(t, err)
				}
				requireShown(t, c, path, len(observers))
				require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
				require.NoError(t, cmd.Wait())
			}

			// Another process still shows the runs that are over.
			_, c := spawn(t, path)
			runs, restarts := requireShown(t, c, path, len(observers)), 0
			for i, o := range observers {
				s := runs[o.id]
				require.Equal(t, ae.RunStatusCompleted, s.Status)
				require.Empty(t, s.OpenCalls)
				require.Empty(t, s.OpenModelCalls)
				attempts := s.Agents["main"].Attempts // a process may end before it has started the agent
				require.LessOrEqual(t, attempts, lives-i/2)
				restarts += attempts - 1
				for agent := range turns {
					require.Equal(t, script(agent), answers(t, path, o.id, agent), "no round that was recorded is done again")
				}
				require.Equal(t, ae.OutcomeConverged, s.Agents["researcher"].Outcome)
			}
			require.GreaterOrEqual(t, restarts, lives-1, "each life but the first goes on with a run at least")

			requireRecorded(t, path, observers)
		})
	}
}

// requireRecorded checks that the log has every event that the observers got.
func requireRecorded(t *testing.T, path string, observers []*observer) {
	recorded := map[string]string{}
	file, err := os.Open(path)
	require.NoError(t, err)
	defer file.Close()
	for _, ev := range eventtest.ReadLog(t, file, ae.ReaderOptions{}).Events() {
		recorded[fmt.Sprint(ev.RunID, ev.Sequence)] = ev.ID
	}
	for _, o := range observers {
		for _, ev := range o.events {
			require.Equal(t, ev.ID, recorded[fmt.Sprint(ev.RunID, ev.Sequence)])
		}
	}
}

// requireShown requires that a server shows each run as the log has it.
func requireShown(t *testing.T, c *client, path string, n int) map[string]*ae.RunSnapshot {
	t.Helper()
	runs := folded(t, path)
	require.Len(t, runs, n)
	for id, s := range runs {
		body, err := send(t.Context(), "GET", c.url+"/runs/"+id, nil)
		require.NoError(t, err)
		text, err := io.ReadAll(body)
		require.NoError(t, err)
		require.NoError(t, body.Close())
		require.Equal(t, string(s.AppendJSON(nil)), string(text))
	}
	return runs
}

// script returns the texts of the turns of an agent.
func script(agent string) (texts []string) {
	for _, turn := range turns[agent] {
		texts = append(texts, turn.text)
	}
	return texts
}

// answers returns the texts of the answers in an agent's conversation.
func answers(t *testing.T, path, run, agent string) (texts []string) {
	t.Helper()
	messages, err := (&runtime{path: path}).conversation(run, agent)
	require.NoError(t, err)
	for _, m := range messages {
		if m.Role == resume.RoleAssistant {
			texts = append(texts, m.Text)
		}
	}
	return texts
}
