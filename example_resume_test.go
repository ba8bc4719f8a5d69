package agentevents_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

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
	emitter, err := agentevents.NewEmitter(agentevents.EmitterOptions{Sinks: []agentevents.Sink{log}})
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
		coder.To(ctx, agentevents.StatusToolCall),
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

// A process goes on with the run of another one that was killed. It folds the
// log, resumes the run, closes the open calls and starts the agent again. A
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
	emitter, err := agentevents.NewEmitter(agentevents.EmitterOptions{Sinks: []agentevents.Sink{
		log,
		agentevents.SinkFunc(func(_ context.Context, ev agentevents.Event) error {
			live.Apply(ev) // the events of a run come one at a time
			return nil
		}),
	}})
	if err != nil {
		fmt.Println(err)
		return
	}
	run, err := emitter.Resume(snapshot)
	if err != nil {
		fmt.Println(err)
		return
	}

	err = run.Emit(ctx, &agentevents.RunResumed{Message: "the process was killed"})
	for _, call := range snapshot.OpenCalls {
		fmt.Printf("%s of %s is interrupted\n", call.ToolID, call.AgentID)
		err = errors.Join(err, run.Agent(call.AgentID).Emit(ctx, &agentevents.ToolReturned{
			CallID: call.CallID, ToolID: call.ToolID, Status: agentevents.ToolStatusInterrupted,
		}))
	}
	coder := run.Agent("coder")
	err = errors.Join(err,
		coder.Emit(ctx, &agentevents.AgentStarted{Task: "Add /v2/health", Resumed: true}),
		coder.To(ctx, agentevents.StatusToolCall))
	_, doErr := coder.Do(ctx, &agentevents.ToolCalled{ToolID: "Bash", Arguments: `{"command":"go test ./..."}`}, func(context.Context) (agentevents.JSON, error) {
		return `"ok"`, nil
	})
	err = errors.Join(err, doErr,
		coder.To(ctx, agentevents.StatusToolResult, agentevents.StatusResponse, agentevents.StatusReflect, agentevents.StatusConverged),
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
	// release-7 is completed, the next sequence is 16
	// Bash: 2 calls, 1 ok; 0 open; 0 violations
	// the live fold says the same: true
}
