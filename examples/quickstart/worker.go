package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"time"

	ae "github.com/agentevents/agentevents"
)

// A worker is an agent of this runtime: it decides, uses tools, answers, and judges its
// answer. It records every move through its handle, and the strict lifecycle checks the
// move.
type worker struct {
	agent    *ae.Agent
	tools    map[string]tool
	files    fs.FS
	thinking bool // false after the agent has reflected on its last answer
}

// start opens the agent. It begins thinking.
func (w *worker) start(ctx context.Context, ref ae.AgentRef, task string) error {
	w.thinking = true
	return w.agent.Emit(ctx, &ae.AgentStarted{Agent: ae.Some(ref), Task: task})
}

// think begins a step, unless the agent is already thinking.
func (w *worker) think(ctx context.Context) error {
	if w.thinking {
		return nil
	}
	w.thinking = true
	return w.agent.To(ctx, ae.StatusThinking)
}

// reach moves the agent from thinking to a tool call.
func (w *worker) reach(ctx context.Context) error {
	if err := w.think(ctx); err != nil {
		return err
	}
	w.thinking = false
	return w.agent.To(ctx, ae.StatusToolCall)
}

// use is one step of the agent: it thinks, calls a tool, answers, and reflects on its
// answer. If the tool is not ready, the agent tries once more, in another step.
func (w *worker) use(ctx context.Context, name string, args, into any) error {
	in, err := ae.ToJSON(args)
	if err != nil {
		return err
	}
	if err := w.reach(ctx); err != nil {
		return err
	}
	call, err := w.agent.Call(ctx, &ae.ToolCalled{ToolID: name, Arguments: in})
	if err != nil {
		return err
	}
	out, toolErr := w.run(name, in)
	if toolErr != nil {
		if err := call.Fail(ctx, toolErr); err != nil {
			return err
		}
		if err := w.conclude(ctx, name+" failed: "+toolErr.Error()); err != nil {
			return err
		}
		if !errors.Is(toolErr, errNotReady) {
			return toolErr
		}
		if err := w.reach(ctx); err != nil {
			return err
		}
		if call, err = call.Retry(ctx); err != nil {
			return err
		}
		if out, toolErr = w.run(name, in); toolErr != nil {
			return errors.Join(toolErr, call.Fail(ctx, toolErr))
		}
	}
	if err := call.Return(ctx, out); err != nil {
		return err
	}
	if err := w.conclude(ctx, name+" is done"); err != nil {
		return err
	}
	return json.Unmarshal([]byte(out), into)
}

// conclude moves the agent from a tool's result to an answer, and then to reflection.
func (w *worker) conclude(ctx context.Context, text string) error {
	if err := w.agent.To(ctx, ae.StatusToolResult, ae.StatusResponse); err != nil {
		return err
	}
	if err := w.agent.Emit(ctx, &ae.TextCompleted{Text: text}); err != nil {
		return err
	}
	return w.agent.To(ctx, ae.StatusReflect)
}

// ask blocks the agent until a person has answered.
func (w *worker) ask(ctx context.Context, question string, operator chan<- chan string) (string, error) {
	if err := w.think(ctx); err != nil {
		return "", err
	}
	id := w.agent.ID() + "-question"
	err := w.agent.Emit(ctx,
		&ae.ClarificationRequested{InterruptID: id, Questions: []ae.Question{{ID: "q1", Question: question}}})
	if err != nil {
		return "", err
	}
	if err := w.agent.To(ctx, ae.StatusBlockedOnClarification); err != nil {
		return "", err
	}
	reply := make(chan string, 1)
	operator <- reply
	answer := <-reply
	err = w.agent.Emit(ctx,
		&ae.ClarificationResolved{InterruptID: id, Answers: `{"q1":` + ae.JSONString(answer) + `}`, AnsweredBy: "operator"})
	if err != nil {
		return "", err
	}
	return answer, w.agent.Emit(ctx, &ae.AgentTransition{To: ae.StatusThinking, Reason: "operator response"})
}

// tell sends a message to another agent.
func (w *worker) tell(ctx context.Context, to string, content any) error {
	text, err := ae.ToJSON(content)
	if err != nil {
		return err
	}
	return w.agent.Emit(ctx, &ae.MessageCreated{Message: ae.ConversationMessage{To: to, Role: "agent", Content: text}})
}

// audit records a check of the agent's work.
func (w *worker) audit(ctx context.Context, checkpoint string, check func() (bool, any)) error {
	start := time.Now()
	ok, seen := check()
	evidence, err := ae.ToJSON(map[string]any{"seen": seen})
	if err != nil {
		return err
	}
	result := ae.AuditPass
	if !ok {
		result = ae.AuditFail
	}
	return w.agent.Emit(ctx,
		&ae.AuditChecked{CheckpointID: checkpoint, Result: result, Duration: time.Since(start), Evidence: evidence})
}

// finish ends the agent: converged, or aborted with err. Ending is legal in any status.
func (w *worker) finish(ctx context.Context, answer string, err error) error {
	if err != nil {
		return w.agent.Emit(ctx,
			&ae.AgentEnded{Outcome: ae.OutcomeAborted, Error: ae.Some(ae.ErrorInfo{Message: err.Error()})})
	}
	if err := w.agent.To(ctx, ae.StatusConverged); err != nil {
		return err
	}
	return w.agent.Emit(ctx, &ae.AgentEnded{Outcome: ae.OutcomeConverged, Result: answer, ConvergenceScore: ae.Some(1.0)})
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
