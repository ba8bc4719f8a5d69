package lawtest_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	ae "github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/logfile"
	"github.com/agentevents/agentevents/resume"
	"github.com/agentevents/agentevents/runstore"
)

// lifeEnv has the life that a child leads, and its disk and folder.
const lifeEnv = "AGENTEVENTS_APPROVAL_LIFE"

// approvalCases are runs in which a call is approved and then made, or another one.
var approvalCases = []struct {
	name     string
	approved ae.JSON // arguments
	tool     string
	called   ae.JSON
	wait     time.Duration // from the grant to the call
	again    bool          // a resume asks the open question again
	used     bool          // a process made the call before it was killed
	state    string        // of the refusal; "" if the call is accepted
}{
	{name: "the same", tool: "git", approved: `{"to":"main","n":1.50}`, called: `{"n":15e-1,"to":"main"}`},
	{name: "in time", tool: "git", approved: `{"to":"main"}`, called: `{"to":"main"}`, wait: time.Minute},
	{name: "masked", tool: "git", approved: token("abcdefghijklmnopqrstuvwxyz0123456789"), called: token("9876543210zyxwvutsrqponmlkjihgfedcba")},
	{name: "made before", tool: "git", approved: `{"to":"main"}`, called: `{"to":"main"}`, used: true, state: "not granted, or used"},
	{name: "changed", tool: "git", approved: `{"to":"main"}`, called: `{"to":"prod"}`, state: "for other arguments"},
	{name: "changed beside a mask", tool: "git", approved: `{"to":"main"}`, called: token("9876543210zyxwvutsrqponmlkjihgfedcba"), state: "for other arguments"},
	{name: "without arguments", tool: "git", approved: `{"to":"main"}`, state: "for other arguments"},
	{name: "another tool", tool: "rm", approved: `{"to":"main"}`, called: `{"to":"main"}`, state: "for another tool"},
	{name: "late", tool: "git", approved: `{"to":"main"}`, called: `{"to":"main"}`, wait: time.Minute + time.Millisecond, state: "too old"},

	{name: "asked again, the same", tool: "git", approved: `{"to":"main"}`, called: `{"to":"main"}`, again: true},
	{name: "asked again, changed", tool: "git", approved: `{"to":"main"}`, called: `{"to":"prod"}`, again: true, state: "for other arguments"},
	{name: "asked again, another tool", tool: "rm", approved: `{"to":"main"}`, called: `{"to":"main"}`, again: true, state: "for another tool"},
	{name: "asked again, late", tool: "git", approved: `{"to":"main"}`, called: `{"to":"main"}`, wait: time.Minute + time.Millisecond, again: true, state: "too old"},
	{name: "asked again, made before", tool: "git", approved: `{"to":"main"}`, called: `{"to":"main"}`, again: true, used: true, state: "not granted, or used"},
}

func token(secret string) ae.JSON { return ae.JSON(`{"key":"ghp_` + secret + `"}`) }

// A disk is where a process leaves its runs for the next one.
type disk struct {
	sink    ae.Sink
	restore func(run string) (*ae.RunSnapshot, error)
	close   func() error
}

// disks open the disk in a folder.
var disks = map[string]func(dir string) (*disk, error){
	"store": func(dir string) (*disk, error) { return openStore(dir, false) },
	"saved": func(dir string) (*disk, error) { return openStore(dir, true) },
	"log": func(dir string) (*disk, error) {
		path := filepath.Join(dir, "log.jsonl")
		log, err := logfile.Open(path, logfile.Options{})
		if err != nil {
			return nil, err
		}
		return &disk{log, func(run string) (*ae.RunSnapshot, error) {
			f, err := os.Open(path)
			if err != nil {
				return nil, err
			}
			defer f.Close()
			runs, err := ae.FoldLog(ae.NewReader(f, ae.ReaderOptions{}), ae.FoldOptions{})
			if err != nil {
				return nil, err
			}
			return runs.Snapshot(run), nil
		}, log.Close}, nil
	},
}

// openStore opens a store, which has saved snapshots or none.
func openStore(dir string, save bool) (*disk, error) {
	store, err := runstore.Open(dir, runstore.Options{})
	if err != nil {
		return nil, err
	}
	return &disk{runstore.NewSink(store), func(run string) (*ae.RunSnapshot, error) {
		r, err := runstore.Restore(context.Background(), store, run, ae.FoldOptions{})
		if err != nil {
			return nil, err
		}
		if err := r.Distrust; err != nil {
			return nil, err
		}
		if save {
			err = store.SaveSnapshot(context.Background(), r.Snapshot)
		}
		return r.Snapshot, err
	}, store.Close}, nil
}

// openDisk opens a disk whose process was killed: the system may take a moment to let go of
// its lock.
func openDisk(kind, dir string, clock func() time.Time) (*disk, *ae.Emitter, error) {
	d, err := disks[kind](dir)
	for ; errors.Is(err, logfile.ErrLocked); d, err = disks[kind](dir) {
		time.Sleep(time.Millisecond)
	}
	if err != nil {
		return nil, nil, err
	}
	em, err := ae.NewEmitter(ae.EmitterOptions{Clock: clock, OnViolation: func(*ae.RuleError) {}, Sinks: []ae.Sink{d.sink}})
	return d, em, err
}

// goOn resumes a run by a plan, and its agent.
func (d *disk) goOn(ctx context.Context, em *ae.Emitter, id string, again bool) (*ae.Run, *ae.Agent, error) {
	snapshot, err := d.restore(id)
	if err != nil {
		return nil, nil, err
	}
	open := resume.Wait
	if again {
		open = resume.AskAgain
	}
	plan, err := resume.New(snapshot, resume.Options{Approval: func(*ae.ApprovalSnapshot) resume.Action { return open }})
	if err != nil {
		return nil, nil, err
	}
	run, err := em.Resume(plan.Snapshot)
	if err != nil {
		return nil, nil, err
	}
	_, err = plan.Apply(ctx, run)
	for _, a := range plan.Agents { // none while a question is open
		err = errors.Join(err, run.Agent(a.AgentID).Emit(ctx, &ae.AgentStarted{Resumed: true}))
	}
	return run, run.Agent("coder"), err
}

var (
	asks   = time.Date(2026, 5, 5, 9, 0, 0, 0, time.UTC)
	grants = asks.Add(10 * time.Second)
)

// lives are the processes that are killed, one after another: each has done its part of all runs
// by then.
var lives = []struct {
	name string
	now  time.Time
	do   func(ctx context.Context, d *disk, em *ae.Emitter) error
}{
	{"asks", asks, func(ctx context.Context, d *disk, em *ae.Emitter) (errs error) {
		for _, c := range approvalCases {
			run, err := em.Run(c.name)
			if err != nil {
				return err
			}
			coder := run.Agent("coder")
			errs = errors.Join(errs, run.Emit(ctx, &ae.RunStarted{}), coder.Emit(ctx, &ae.AgentStarted{}))
			answer, err := coder.Model(ctx, nil)
			errs = errors.Join(errs, err, answer.Text(ctx, "I push "), answer.Text(ctx, "to main."), answer.Return(ctx, nil))
			errs = errors.Join(errs, coder.Emit(ctx, &ae.ApprovalRequested{
				ApprovalID: "ap", Action: "push", ToolID: "git", Arguments: c.approved, Timeout: ae.Some(time.Minute),
			}))
		}
		return errs
	}},
	{"grants", grants, func(ctx context.Context, d *disk, em *ae.Emitter) (errs error) {
		for _, c := range approvalCases {
			run, _, err := d.goOn(ctx, em, c.name, c.again)
			if err != nil {
				return err
			}
			errs = errors.Join(errs, run.Answer(ctx, &ae.ApprovalGranted{ApprovalID: "ap", ApprovedBy: "ann"}))
		}
		return errs
	}},
	{"calls", grants, func(ctx context.Context, d *disk, em *ae.Emitter) (errs error) {
		for _, c := range approvalCases {
			if !c.used {
				continue
			}
			_, coder, err := d.goOn(ctx, em, c.name, c.again)
			if err != nil {
				return err
			}
			_, err = coder.Call(ctx, &ae.ToolCalled{CallID: "first", ToolID: c.tool, Arguments: c.called, ApprovalID: "ap"})
			errs = errors.Join(errs, err)
		}
		return errs
	}},
}

// live does the work of one process, and waits to be killed.
func live(name, kind, dir string) error {
	for _, l := range lives {
		if l.name != name {
			continue
		}
		d, em, err := openDisk(kind, dir, func() time.Time { return l.now })
		if err == nil {
			err = l.do(context.Background(), d, em)
		}
		if err != nil {
			return err
		}
		fmt.Println("done")
		select {}
	}
	return fmt.Errorf("no life %q", name)
}

// Processes are killed after a person was asked, after the grant and after the call. The one
// that comes after them finds on disk which call is allowed: the one that was approved, once
// and in its time.
func TestApprovalBindsAcrossKilledProcesses(t *testing.T) {
	if life := strings.SplitN(os.Getenv(lifeEnv), " ", 3); len(life) == 3 {
		fmt.Println(live(life[0], life[1], life[2]))
		os.Exit(3)
	}
	if runtime.GOOS == "windows" {
		t.Skip("no SIGKILL")
	}
	for kind := range disks {
		t.Run(kind, func(t *testing.T) {
			dir := t.TempDir()
			for _, l := range lives {
				killLife(t, l.name, kind, dir)
			}
			now := grants
			d, em, err := openDisk(kind, dir, func() time.Time { return now })
			require.NoError(t, err)
			defer d.close()
			for _, c := range approvalCases {
				t.Run(c.name, func(t *testing.T) {
					now = grants
					run, coder, err := d.goOn(t.Context(), em, c.name, c.again)
					require.NoError(t, err)
					now = grants.Add(c.wait)
					ran := 0
					call := func(id string) error {
						_, err := coder.Do(t.Context(), &ae.ToolCalled{CallID: id, ToolID: c.tool, Arguments: c.called, ApprovalID: "ap"}, func(context.Context) (ae.JSON, error) {
							ran++
							return `"pushed"`, nil
						})
						return err
					}
					refused := func(err error, state string) {
						var broken *ae.RuleError
						require.ErrorAs(t, err, &broken)
						require.Equal(t, ae.RuleApprovalBinds, broken.Rule)
						require.Equal(t, state, broken.State)
					}
					if c.state == "" {
						require.NoError(t, call("c1"))
						refused(call("c2"), "not granted, or used")
					} else {
						refused(call("c1"), c.state)
					}
					require.Equal(t, c.state == "", ran == 1)
					require.NoError(t, run.Finish(t.Context(), nil))
					s, err := d.restore(c.name)
					require.NoError(t, err)
					require.Zero(t, s.ViolationCount)
				})
			}
		})
	}
}

// killLife leads a life in a process of its own, and kills it.
func killLife(t *testing.T, life, kind, dir string) {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^TestApprovalBindsAcrossKilledProcesses$")
	cmd.Env = append(os.Environ(), lifeEnv+"="+life+" "+kind+" "+dir)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	line, err := bufio.NewReader(out).ReadString('\n')
	killed := cmd.Process.Kill()
	_ = cmd.Wait() // it was killed
	require.NoError(t, err)
	require.Equal(t, "done\n", line, life)
	require.NoError(t, killed)
	require.Equal(t, -1, cmd.ProcessState.ExitCode(), "it was killed, and did not end by itself")
}
