package runstore_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	ae "github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/runstore"
)

// startOrResume returns the run of that id: a new one, or one that goes on where the store
// ends. The snapshot says what was open then; it is nil for a new run.
func startOrResume(ctx context.Context, em *ae.Emitter, store runstore.Store, id string) (*ae.Run, *ae.RunSnapshot, error) {
	restored, err := runstore.Restore(ctx, store, id, ae.FoldOptions{})
	if errors.Is(err, runstore.ErrNoRun) {
		run, err := em.Run(id)
		if err == nil {
			err = run.Emit(ctx, &ae.RunStarted{})
		}
		return run, nil, err
	}
	if err != nil {
		return nil, nil, err
	}
	if restored.Snapshot.Status.Terminal() {
		return nil, restored.Snapshot, fmt.Errorf("run %s is %s", id, restored.Snapshot.Status)
	}
	// The next time there is less to fold. If this fails, nothing is lost.
	_ = store.SaveSnapshot(ctx, restored.Snapshot)
	run, err := em.Resume(restored.Snapshot)
	if err == nil {
		err = run.Emit(ctx, &ae.RunResumed{})
	}
	return run, restored.Snapshot, err
}

// A process works on a run, and ends in the middle of a tool call. The next one finds what
// is open and goes on. The first one comes back, and is stopped.
func Example() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "runs")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	store, err := runstore.Open(dir, runstore.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer store.Close()

	// The store comes first: the mirrors behind it get no event that it refuses.
	emitter := func() *ae.Emitter {
		em, err := ae.NewEmitter(ae.EmitterOptions{Sinks: []ae.Sink{runstore.NewSink(store)}})
		if err != nil {
			panic(err)
		}
		return em
	}

	first, _, err := startOrResume(ctx, emitter(), store, "release-7")
	if err != nil {
		fmt.Println(err)
		return
	}
	coder := first.Agent("coder")
	_ = coder.Emit(ctx, &ae.AgentStarted{Task: "Add /v2/health"})
	call, err := coder.Call(ctx, &ae.ToolCalled{CallID: "c1", ToolID: "Bash", Arguments: `{"command":"go test ./..."}`})
	if err != nil {
		fmt.Println(err)
		return
	}

	second, snapshot, err := startOrResume(ctx, emitter(), store, "release-7")
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, open := range snapshot.OpenCalls {
		fmt.Printf("%s of %s is open\n", open.ToolID, open.AgentID)
		err = errors.Join(err, second.Agent(open.AgentID).OpenCall(open.CallID).End(ctx, &ae.ToolReturned{Status: ae.ToolStatusInterrupted}))
	}
	coder = second.Agent("coder")
	err = errors.Join(err,
		coder.Emit(ctx, &ae.AgentStarted{Task: "Add /v2/health", Resumed: true}),
		coder.Emit(ctx, &ae.AgentEnded{Outcome: ae.OutcomeConverged}))

	late := call.End(ctx, &ae.ToolReturned{Status: ae.ToolStatusOK})
	var conflict *runstore.ConflictError
	fmt.Println("the first one is stopped:", errors.As(late, &conflict), errors.Is(first.Emit(ctx, &ae.RunCompleted{}), ae.ErrClosed))

	if err := errors.Join(err, second.Emit(ctx, &ae.RunCompleted{})); err != nil {
		fmt.Println(err)
		return
	}
	for info, err := range store.Runs(ctx, "") {
		fmt.Println(info.RunID, info.Next, info.Terminal, err)
	}
	_, _, err = startOrResume(ctx, emitter(), store, "release-7")
	fmt.Println(err)
	// Output:
	// Bash of coder is open
	// the first one is stopped: true true
	// release-7 11 run.completed <nil>
	// run release-7 is completed
}

// Two workers share a store. One of them has a run until it gives it back.
func ExampleWorker() {
	ctx := context.Background()
	store := new(runstore.Memory)
	a, err := runstore.NewWorker(store, "a", time.Minute)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer a.Close()
	b, err := runstore.NewWorker(store, "b", time.Minute)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer b.Close()

	_, err = a.Claim(ctx, "release-7")
	fmt.Println("a:", err)
	_, err = b.Claim(ctx, "release-7")
	var claimed *runstore.ClaimError
	if errors.As(err, &claimed) {
		fmt.Println("b: worker", claimed.Worker, "has it")
	}
	if err := a.Release(ctx, "release-7"); err != nil {
		fmt.Println(err)
	}
	_, err = b.Claim(ctx, "release-7")
	fmt.Println("b:", err)
	// Output:
	// a: <nil>
	// b: worker a has it
	// b: <nil>
}
