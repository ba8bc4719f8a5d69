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

	ae "github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/resume"
)

// crash is the first process: it is killed while a tool runs and a line is
// being written.
func crash(ctx context.Context, path string) error {
	log, err := ae.OpenFile(path, ae.WriterOptions{})
	if err != nil {
		return err
	}
	defer log.Close()
	emitter, err := ae.NewEmitter(ae.EmitterOptions{
		Sinks: []ae.Sink{log},
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
		run.Emit(ctx, &ae.RunStarted{Name: "release"}),
		coder.Emit(ctx, &ae.AgentStarted{Task: "Add /v2/health"}),
		coder.Emit(ctx, &ae.ModelCalled{ModelCallID: "m1"}),
	); err != nil {
		return err
	}
	if _, err := coder.Call(ctx, &ae.ToolCalled{ToolID: "Bash", Arguments: `{"command":"go test ./..."}`}); err != nil {
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
func readRun(path string) (*ae.RunSnapshot, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	fold := ae.NewFold(ae.FoldOptions{})
	for ev, err := range ae.NewReader(file, ae.ReaderOptions{}).All() {
		var bad *ae.LineError
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

// README:
// revive goes on with a run that a crash has cut off: it closes what is open, and starts
// the agents again.
func revive(ctx context.Context, em *ae.Emitter, snapshot *ae.RunSnapshot) (*ae.Run, error) {
	plan, err := resume.New(snapshot, resume.Options{})
	if err != nil {
		return nil, err
	}
	run, err := em.Resume(plan.Snapshot)
	if err != nil {
		return nil, err
	}
	_, err = plan.Apply(ctx, run)
	for _, a := range plan.Agents { // call the provider with a.SessionID and a.Prompt, too
		err = errors.Join(err, run.Agent(a.AgentID).Emit(ctx, &ae.AgentStarted{Task: a.Task, Resumed: true}))
	}
	return run, err
}

// end

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

	live, err := ae.ResumeFold(snapshot, ae.FoldOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	log, err := ae.OpenFile(path, ae.WriterOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	emitter, err := ae.NewEmitter(ae.EmitterOptions{
		Sinks: []ae.Sink{log, ae.SinkFunc(func(_ context.Context, ev ae.Event) error {
			live.Apply(ev) // the events of a run come one at a time
			return nil
		})},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	run, err := revive(ctx, emitter, snapshot)
	if err != nil {
		fmt.Println(err)
		return
	}

	coder := run.Agent("coder")
	_, err = coder.Do(ctx, &ae.ToolCalled{ToolID: "Bash", Arguments: `{"command":"go test ./..."}`}, func(context.Context) (ae.JSON, error) {
		return `"ok"`, nil
	})
	err = errors.Join(err,
		coder.Emit(ctx, &ae.AgentEnded{Outcome: ae.OutcomeConverged}),
		run.Emit(ctx, &ae.RunCompleted{}),
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
	fmt.Printf("Bash: %d calls, %d ok; %d open; %d violations\n", bash.Calls, bash.OK, len(whole.OpenCalls)+len(whole.OpenModelCalls), whole.ViolationCount)
	fmt.Println("the live fold says the same:", string(live.Snapshot().AppendJSON(nil)) == string(whole.AppendJSON(nil)))
	// Output:
	// line 6 is torn
	// release-7 is running, the next sequence is 5
	// release-7 is completed, the next sequence is 17
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
	fold := ae.NewFold(ae.FoldOptions{})
	for ev, err := range ae.NewReader(log, ae.ReaderOptions{}).All() {
		if err != nil {
			fmt.Println(err)
			return
		}
		fold.Apply(ev)

		// After each event it is stored, and another fold goes on from there.
		stored := fold.Snapshot().AppendJSON(nil)
		var snapshot ae.RunSnapshot
		if err := json.Unmarshal(stored, &snapshot); err != nil {
			fmt.Println(err)
			return
		}
		if fold, err = ae.ResumeFold(&snapshot, ae.FoldOptions{}); err != nil {
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
