package agentevents_test

import (
	"context"
	"errors"
	"testing"

	ae "github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/eventtest"
)

// runAgent is the program under test: an agent that reads a file.
func runAgent(ctx context.Context, em *ae.Emitter) error {
	run, err := em.Run("")
	if err != nil {
		return err
	}
	coder := run.Agent("coder")
	err = errors.Join(run.Emit(ctx, &ae.RunStarted{Name: "release"}), coder.Emit(ctx, &ae.AgentStarted{Task: "Add /v2/health"}))
	_, failed := coder.Do(ctx, &ae.ToolCalled{ToolID: "Read", Arguments: `{"path":"main.go"}`}, func(context.Context) (ae.JSON, error) {
		return `{"lines":120}`, nil
	})
	return errors.Join(err, failed, coder.Emit(ctx, &ae.AgentEnded{Outcome: ae.OutcomeConverged}), run.Emit(ctx, &ae.RunCompleted{}))
}

// README:
func TestAgent(t *testing.T) {
	em, rec := eventtest.Record(t)
	if err := runAgent(t.Context(), em); err != nil { // your agent
		t.Fatal(err)
	}
	called := eventtest.Match("coder", func(p *ae.ToolCalled) bool { return p.ToolID == "Read" && p.Arguments != "" })
	rec.Want(t, "coder agent.started Add…", called, "agent.toolReturned Read ok", "agent.ended converged")
	rec.WantNone(t, "agent.toolCalled Write", "agent.error")
	rec.WantLaws(t, eventtest.LawOptions{}) // no rule is broken, nothing is open
	rec.Golden(t, "testdata/agent.jsonl")   // all of it; AGENTEVENTS_UPDATE=1 writes the file
}

// end
