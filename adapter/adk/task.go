package adk

import (
	"context"
	"sync/atomic"

	"google.golang.org/adk/v2/platform"

	"github.com/agentevents/agentevents"
)

// A task is the context of a tool. A callback cannot give the tool another one, but it can add
// values to this one.
type task struct {
	context.Context
	inside atomic.Pointer[inside]
}

type inside struct {
	context.Context
	call *agentevents.Call
}

type taskKey struct{}

func taskOf(ctx context.Context) *task {
	t, _ := ctx.Value(taskKey{}).(*task)
	return t
}

// callOf returns the call of the tool that ctx is in, or nil.
func callOf(ctx context.Context) *agentevents.Call {
	if t := taskOf(ctx); t != nil && t.inside.Load() != nil {
		return t.inside.Load().call
	}
	return nil
}

func (t *task) Value(key any) any {
	if key == (taskKey{}) {
		return t
	}
	if in := t.inside.Load(); in != nil {
		return in.Value(key)
	}
	return t.Context.Value(key)
}

// withTasks gives each tool a task. Who runs them is up to ctx, as without.
func withTasks(ctx context.Context) context.Context {
	return platform.WithTaskRunner(ctx, func(c context.Context, tasks []func(context.Context)) {
		for i, run := range tasks {
			tasks[i] = func(c context.Context) { run(&task{Context: withTasks(c)}) }
		}
		platform.RunTasks(within{c, ctx}, tasks)
	})
}

// within is a context with the task runner of another one.
type within struct {
	context.Context
	runner context.Context
}

func (w within) Value(key any) any {
	v := w.Context.Value(key)
	if _, ok := v.(platform.TaskRunner); ok {
		return w.runner.Value(key)
	}
	return v
}
