package agentevents_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/agentevents/agentevents"
)

// crash is the first process: it is killed while a tool runs and a line is
// being written.
func crash(ctx context.Context, path string) error {
	log, err := agentevents.OpenFile(path, agentevents.WriterOptions{})
	if err != nil {
		return err
	}
	defer log.Close()
	emitter, err := agentevents.NewEmitter(agentevents.EmitterOptions{
		Lifecycle: agentevents.LifecycleDerived,
		Sinks:     []agentevents.Sink{log},
	})
	if err != nil {
		return err
	}
	run, err := emitter.Run("release-7")
	if err != nil {
		return err
	}
	coder := run.Agent("coder")
	if err := errors.Join(
		run.Emit(ctx, &agentevents.RunStarted{Name: "release"}),
		coder.Emit(ctx, &agentevents.AgentStarted{Task: "Add /v2/health"}),
	); err != nil {
		return err
	}
	if _, err := coder.Call(ctx, &agentevents.ToolCalled{ToolID: "Bash", Arguments: `{"command":"go test ./..."}`}); err != nil {
		return err
	}
	file, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = file.WriteString(`{"id":"01a1ffa6-`)
	return errors.Join(err, file.Close())
}

// readRun folds the log of one run. It cuts a torn last line off the file, so
// that the log has no bad line once it goes on.
func readRun(path string) (*agentevents.RunSnapshot, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	fold := agentevents.NewFold(agentevents.FoldOptions{})
	for ev, err := range agentevents.NewReader(file, agentevents.ReaderOptions{}).All() {
		var bad *agentevents.LineError
		switch {
		case err == nil:
			fold.Apply(ev)
		case errors.As(err, &bad) && errors.Is(err, io.ErrUnexpectedEOF):
			fmt.Println("line", bad.Line, "is torn")
			if err := os.Truncate(path, bad.Offset); err != nil {
				return nil, err
			}
		default:
			return nil, err
		}
	}
	return fold.Snapshot(), nil
}

// revive closes what the crash left open, and starts the agents again.
func revive(ctx context.Context, run *agentevents.Run, snapshot *agentevents.RunSnapshot) error {
	err := run.Emit(ctx, &agentevents.RunResumed{Message: "the process was killed"})
	for _, call := range snapshot.OpenCalls {
		fmt.Printf("%s of %s is interrupted\n", call.ToolID, call.AgentID)
		interrupted := &agentevents.ToolReturned{Status: agentevents.ToolStatusInterrupted}
		err = errors.Join(err, run.Agent(call.AgentID).OpenCall(call.CallID).End(ctx, interrupted))
	}
	for _, agent := range snapshot.AgentsInOrder() {
		if agent.Open {
			err = errors.Join(err, run.Agent(agent.AgentID).Emit(ctx, &agentevents.AgentStarted{Task: agent.Task, Resumed: true}))
		}
	}
	return err
}

// A process goes on with the run of another one that was killed. It folds the log, resumes
// the run, closes the calls that are open and starts the agents again that had not ended. A
// second fold goes on from the same snapshot and follows the run live.
func ExampleEmitter_Resume() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "resume")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "run.jsonl")
	if err := crash(ctx, path); err != nil {
		fmt.Println(err)
		return
	}

	snapshot, err := readRun(path)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%s is %s, the next sequence is %d\n", snapshot.RunID, snapshot.Status, snapshot.NextSequence)

	live, err := agentevents.ResumeFold(snapshot, agentevents.FoldOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	log, err := agentevents.OpenFile(path, agentevents.WriterOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	emitter, err := agentevents.NewEmitter(agentevents.EmitterOptions{
		Lifecycle: agentevents.LifecycleDerived,
		Sinks: []agentevents.Sink{log, agentevents.SinkFunc(func(_ context.Context, ev agentevents.Event) error {
			live.Apply(ev) // the events of a run come one at a time
			return nil
		})},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	run, err := emitter.Resume(snapshot)
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := revive(ctx, run, snapshot); err != nil {
		fmt.Println(err)
		return
	}

	coder := run.Agent("coder")
	_, err = coder.Do(ctx, &agentevents.ToolCalled{ToolID: "Bash", Arguments: `{"command":"go test ./..."}`}, func(context.Context) (agentevents.JSON, error) {
		return `"ok"`, nil
	})
	err = errors.Join(err,
		coder.Emit(ctx, &agentevents.AgentEnded{Outcome: agentevents.OutcomeConverged}),
		run.Emit(ctx, &agentevents.RunCompleted{}),
		emitter.Close(ctx))
	if err != nil {
		fmt.Println(err)
		return
	}

	whole, err := readRun(path)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%s is %s, the next sequence is %d\n", whole.RunID, whole.Status, whole.NextSequence)
	bash := whole.Tools["Bash"]
	fmt.Printf("Bash: %d calls, %d ok; %d open; %d violations\n", bash.Calls, bash.OK, len(whole.OpenCalls), whole.ViolationCount)
	fmt.Println("the live fold says the same:", string(live.Snapshot().AppendJSON(nil)) == string(whole.AppendJSON(nil)))
	// Output:
	// line 5 is torn
	// release-7 is running, the next sequence is 4
	// Bash of coder is interrupted
	// release-7 is completed, the next sequence is 15
	// Bash: 2 calls, 1 ok; 0 open; 0 violations
	// the live fold says the same: true
}

// A snapshot is a JSON document. A fold that goes on from it needs no event before it.
func ExampleResumeFold() {
	log := strings.NewReader(`
{"id":"1","sequence":0,"timestamp":"2026-05-05T09:00:00.000Z","type":"agent.started","runId":"r1","agentId":"coder","payload":{"lifecycle":"derived"}}
{"id":"2","sequence":1,"timestamp":"2026-05-05T09:00:01.000Z","type":"agent.text","runId":"r1","agentId":"coder","step":0,"payload":{"text":"Hello"}}
{"id":"3","sequence":2,"timestamp":"2026-05-05T09:00:02.000Z","type":"agent.ended","runId":"r1","agentId":"coder","payload":{"outcome":"partial"}}
`)
	fold := agentevents.NewFold(agentevents.FoldOptions{})
	for ev, err := range agentevents.NewReader(log, agentevents.ReaderOptions{}).All() {
		if err != nil {
			fmt.Println(err)
			return
		}
		fold.Apply(ev)

		// After each event it is stored, and another fold goes on from there.
		stored := fold.Snapshot().AppendJSON(nil)
		var snapshot agentevents.RunSnapshot
		if err := json.Unmarshal(stored, &snapshot); err != nil {
			fmt.Println(err)
			return
		}
		if fold, err = agentevents.ResumeFold(&snapshot, agentevents.FoldOptions{}); err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("%d events: %s, %q\n", snapshot.NextSequence, snapshot.Status, snapshot.Agents["coder"].Text)
	}
	// Output:
	// 1 events: running, ""
	// 2 events: running, "Hello"
	// 3 events: completed, "Hello"
}
