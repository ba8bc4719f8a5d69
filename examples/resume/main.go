// Resume runs a workflow of three nodes in a process that is killed in the middle of the second,
// and goes on with it in another process:
//
//	go run ./examples/resume
//
// The processes share nothing but a directory with a store of runs. The second one reads from it
// the agent that was at work, its session at the provider, and the open calls. At the end the run
// is compared with a run that was not killed.
package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	ae "github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/query"
	"github.com/agentevents/agentevents/resume"
	"github.com/agentevents/agentevents/runstore"
	"github.com/agentevents/agentevents/tree"
)

// childEnv has the directory of the store, for the process that is killed.
const childEnv = "AGENTEVENTS_EXAMPLE_RESUME"

func main() {
	ctx := context.Background()
	var err error
	if dir := os.Getenv(childEnv); dir != "" {
		err = work(ctx, dir, func() { // the parent kills this process here
			fmt.Println("working")
			select {}
		})
	} else {
		err = demonstrate(ctx, os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "resume:", err)
		os.Exit(1)
	}
}

// demonstrate kills a process that works on a run, and goes on with the run.
func demonstrate(ctx context.Context, out io.Writer) error {
	dir, err := os.MkdirTemp("", "resume-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	killed, whole := filepath.Join(dir, "killed"), filepath.Join(dir, "whole")

	if err := startAndKill(killed); err != nil {
		return err
	}
	fmt.Fprintln(out, "A process was killed while the writer called a tool.")
	if err := goOn(ctx, killed, "Keep it short.", out); err != nil {
		return err
	}
	if err := work(ctx, whole, func() {}); err != nil {
		return err
	}

	was, err := restore(ctx, killed)
	if err != nil {
		return err
	}
	want, err := restore(ctx, whole)
	if err != nil {
		return err
	}
	fmt.Fprintln(out)
	if err := tree.Write(out, was, tree.Options{}); err != nil {
		return err
	}
	fmt.Fprintf(out, "\nIt ended as a run that nobody has killed: %v\n", result(was) == result(want))
	return nil
}

// startAndKill starts this program as a child, and kills it once the child reports that it works.
func startAndKill(dir string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), childEnv+"="+dir)
	cmd.Stderr = os.Stderr
	said, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	line, err := bufio.NewReader(said).ReadString('\n')
	if err == nil && line != "working\n" {
		err = fmt.Errorf("the child prints %q", line)
	}
	err = errors.Join(err, cmd.Process.Kill())
	_ = cmd.Wait() // it was killed
	return err
}

const runID = "report-1"

// nodes are the workflow: each node has one agent, and they run one after another.
var nodes = []struct{ id, task, tool, answer string }{
	{"plan", "Plan the report", "List", "three sections"},
	{"write", "Write the report", "Draft", "a draft of three sections"},
	{"check", "Check the report", "Lint", "no mistakes"},
}

// open opens the store, and returns an emitter that records into it.
func open(dir string) (*runstore.File, *ae.Emitter, error) {
	store, err := runstore.Open(dir, runstore.Options{})
	if err != nil {
		return nil, nil, err
	}
	em, err := ae.NewEmitter(ae.EmitterOptions{Sinks: []ae.Sink{runstore.NewSink(store)}})
	return store, em, err
}

// work runs the workflow from its beginning. middle is called while the writer calls its
// tool.
func work(ctx context.Context, dir string, middle func()) error {
	store, em, err := open(dir)
	if err != nil {
		return err
	}
	defer store.Close()
	run, err := em.Run(runID)
	if err != nil {
		return err
	}
	if err := run.Emit(ctx, &ae.RunStarted{Name: "report"}); err != nil {
		return err
	}
	for i, n := range nodes {
		if err := node(ctx, run, i, query.Request{Prompt: ae.JSONString(n.task)}, middle); err != nil {
			return err
		}
	}
	return errors.Join(run.Emit(ctx, &ae.RunCompleted{}), em.Close(ctx))
}

// goOn continues the run of a process that was killed.
func goOn(ctx context.Context, dir, message string, out io.Writer) error {
	store, em, err := open(dir)
	if err != nil {
		return err
	}
	defer store.Close()
	restored, err := runstore.Restore(ctx, store, runID, ae.FoldOptions{})
	if err != nil {
		return err
	}
	plan, err := resume.New(restored.Snapshot, resume.Options{Message: message})
	if err != nil {
		return err
	}
	run, err := em.Resume(plan.Snapshot)
	if err != nil {
		return err
	}
	receipt, err := plan.Apply(ctx, run)
	if err != nil {
		return err
	}
	sessions := map[string]resume.Agent{}
	for _, a := range receipt.Resumed {
		fmt.Fprintf(out, "Agent %s goes on in session %s, and is told %q.\n", a.AgentID, a.SessionID, a.Prompt)
		sessions[a.AgentID] = a
	}
	for _, id := range receipt.Calls {
		fmt.Fprintf(out, "Its call %s is interrupted.\n", id)
	}
	for i, n := range nodes {
		if restored.Snapshot.NodeStatus[n.id] == ae.NodeStatusDone {
			continue
		}
		ask := query.Request{Prompt: ae.JSONString(n.task)}
		if a, resumed := sessions[n.id]; resumed {
			ask = query.Request{Prompt: ae.JSONString(a.Prompt), SessionID: a.SessionID, Resume: true}
		}
		if err := node(ctx, run, i, ask, func() {}); err != nil {
			return err
		}
	}
	return errors.Join(run.Emit(ctx, &ae.RunCompleted{}), em.Close(ctx))
}

// node runs one node of the workflow. In its middle the agent calls a tool.
func node(ctx context.Context, run *ae.Run, i int, ask query.Request, middle func()) error {
	n := nodes[i]
	at := run.With(ae.Scope{NodeID: n.id, NodeRunID: n.id + "-1"})
	if err := at.Emit(ctx, &ae.NodeStarted{}); err != nil {
		return err
	}
	ask.Task = n.task
	if ask.SessionID == "" {
		// A session id from the caller is in the store before the provider works, and the next
		// process needs it.
		ask.SessionID = "s-" + n.id
	}
	end, err := query.Do(ctx, at.Agent(n.id), provider(i, middle), ask)
	if err != nil {
		return err
	}
	return at.Emit(ctx, &ae.NodeCompleted{Outputs: ae.JSONString(end.Result)})
}

// provider stands for a program that asks a model: its agent calls a tool, and answers. A
// test would use querytest.MockQuery.
func provider(i int, middle func()) query.Func {
	n := nodes[i]
	return func(_ context.Context, r query.Request) iter.Seq2[ae.Event, error] {
		call := n.tool + " in " + r.SessionID
		if r.Resume {
			call += ", again"
		}
		return func(yield func(ae.Event, error) bool) {
			say := func(p ae.Payload) bool { return yield(ae.Event{Payload: p}, nil) }
			if !say(&ae.ToolCalled{CallID: call, ToolID: n.tool}) {
				return
			}
			if n.id == "write" {
				middle()
			}
			_ = say(&ae.ToolReturned{CallID: call, ToolID: n.tool, Status: ae.ToolStatusOK, Result: ae.JSONString(n.answer)}) &&
				say(&ae.TextCompleted{Text: n.answer}) &&
				say(&ae.AgentEnded{Outcome: ae.OutcomeConverged, Result: n.answer})
		}
	}
}

// restore returns the snapshot of the run.
func restore(ctx context.Context, dir string) (*ae.RunSnapshot, error) {
	store, err := runstore.Open(dir, runstore.Options{})
	if err != nil {
		return nil, err
	}
	defer store.Close()
	restored, err := runstore.Restore(ctx, store, runID, ae.FoldOptions{})
	if err != nil {
		return nil, err
	}
	return restored.Snapshot, nil
}

// result is the final state of a run, without its ids, times and interruptions.
func result(s *ae.RunSnapshot) string {
	var b strings.Builder
	fmt.Fprintln(&b, s.RunID, s.Status, s.ViolationCount, len(s.OpenCalls))
	for _, n := range nodes {
		a := s.Agents[n.id]
		fmt.Fprintln(&b, n.id, s.NodeStatus[n.id], s.Outputs[n.id],
			s.AgentSessions[n.id], a.Status, a.Outcome, a.Result, a.Text)
	}
	return b.String()
}
