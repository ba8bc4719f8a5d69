package agentevents

import (
	"context"
	"fmt"
)

// WrapTool returns fn as a function whose calls are recorded as calls of the tool by the agent of
// their context ([AgentFromContext]): the arguments and the result as JSON, an error as [Call.Fail]
// records it, a panic and the end of the goroutine as [Agent.Do] does, which also describes the
// effect on the agent's status. It is for runtimes whose tools are plain functions.
//
// The result and the error are fn's, unchanged: errors of recording go to
// EmitterOptions.OnViolation and OnError only. Only a call that EmitterOptions.Guard forbids does
// not run (see [Agent.Do]), and has that error. Without an agent in the context fn just runs. It
// also just runs for a call of this tool that the context carries already ([ContextWithCall]),
// which somebody else records.
//
// Arguments and results are recorded as [JSONOf] writes them. The functions may be called
// concurrently if fn may be.
func WrapTool[In, Out any](toolID string, fn func(context.Context, In) (Out, error)) func(context.Context, In) (Out, error) {
	return func(ctx context.Context, in In) (out Out, err error) {
		ctx = orBackground(ctx)
		w := workingOf(ctx)
		if !w.taken && w.call.ok() && w.call.ToolID == toolID && w.agent.OpenCall(w.call.ID).ok() {
			w.taken = true
			return fn(context.WithValue(ctx, workingKey{}, w), in)
		}
		if !w.agent.ok() {
			return fn(ctx, in)
		}
		ran := false
		_, recordErr := w.agent.Do(ctx, &ToolCalled{ToolID: toolID, Arguments: JSONOf(in)}, func(ctx context.Context) (JSON, error) {
			ran = true
			w := workingOf(ctx)
			w.taken = true
			if out, err = fn(context.WithValue(ctx, workingKey{}, w), in); err != nil {
				return "", err
			}
			return JSONOf(out), nil
		})
		if !ran {
			err = recordErr
		}
		return out, err
	}
}

// JSONOf returns v as JSON text, as [ToJSON] does, and the object {"unwritable":"its Go type"} for
// a value that encoding/json cannot write, or whose methods panic. It is for adapters, which must
// not fail because of a value that a program passes to its tools.
func JSONOf(v any) (j JSON) {
	if j, ok := v.(JSON); ok {
		return j // the emitter mends text that is not JSON
	}
	failed := true
	defer func() {
		if failed {
			_ = recover()
			j = JSON(`{"unwritable":` + string(JSONString(fmt.Sprintf("%T", v))) + `}`)
		}
	}()
	j, err := ToJSON(v)
	failed = err != nil
	return j
}
