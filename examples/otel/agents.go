package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	ae "github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/otelhook"
)

// A team is two agents with the tasks of examples/quickstart: the surveyor counts the Go
// code and hands over to the reviewer, who looks for loose ends. They record events, and the hook
// makes spans from them. Only the client of a tool begins a span itself.
type team struct {
	run    *ae.Run
	files  fs.FS
	hook   *otelhook.Hook
	tracer trace.Tracer // for the client
}

// work is the run.
func (t *team) work(ctx context.Context) error {
	if err := t.run.Emit(ctx, &ae.RunStarted{Name: "survey"}); err != nil {
		return err
	}
	if err := errors.Join(t.agent(ctx, "surveyor", "Count the Go code", t.survey),
		t.agent(ctx, "reviewer", "Find loose ends", t.review)); err != nil {
		return errors.Join(err, t.run.Emit(ctx, &ae.RunFailed{Error: ae.Some(ae.ErrorInfo{Message: err.Error()})}))
	}
	return t.run.Emit(ctx, &ae.RunCompleted{})
}

// agent starts an agent, asks its model, lets it work, and ends it.
func (t *team) agent(ctx context.Context, id, task string, work func(context.Context, *ae.Agent) error) error {
	a := t.run.Agent(id)
	if err := a.Emit(ctx, &ae.AgentStarted{Task: task}); err != nil {
		return err
	}
	model, err := a.Model(ctx, &ae.ModelCalled{Provider: "example", Model: "scripted-1"})
	if err != nil {
		return err
	}
	err = model.Return(ctx, &ae.ModelReturned{FinishReasons: []string{"tool_calls"},
		Usage: ae.Some(ae.Usage{InputTokens: 310, OutputTokens: 24})})
	if err = errors.Join(err, work(ctx, a)); err != nil {
		return errors.Join(err,
			a.Emit(ctx, &ae.AgentEnded{Outcome: ae.OutcomeAborted, Error: ae.Some(ae.ErrorInfo{Message: err.Error()})}))
	}
	return a.Emit(ctx, &ae.AgentEnded{Outcome: ae.OutcomeConverged})
}

func (t *team) survey(ctx context.Context, a *ae.Agent) error {
	if _, err := a.Do(ctx, &ae.ToolCalled{ToolID: "read", Arguments: `{"path":"go.mod"}`}, t.read); err != nil {
		return err
	}
	// A person is asked. No span is open meanwhile; the answer makes one.
	if err := a.Emit(ctx, &ae.ClarificationRequested{InterruptID: "tests",
		Questions: []ae.Question{{ID: "q1", Question: "Should tests count?"}}}); err != nil {
		return err
	}
	if err := a.Emit(ctx, &ae.ClarificationResolved{
		InterruptID: "tests", Answers: `{"q1":"no"}`, AnsweredBy: "operator",
	}); err != nil {
		return err
	}
	// The tool fails once, as real ones do, and the agent tries again.
	_, err := a.Do(ctx, &ae.ToolCalled{CallID: "count-1", ToolID: "count"}, func(context.Context) (ae.JSON, error) {
		return "", &ae.ToolError{Code: "not_ready", Err: errors.New("the index is not ready")}
	})
	if err == nil {
		return errors.New("the index is ready too early")
	}
	found, err := a.Do(ctx,
		&ae.ToolCalled{CallID: "count-2", ToolID: "count", Attempt: ae.Some(2), RetryOf: "count-1"}, t.count("\n"))
	if err != nil {
		return err
	}
	return errors.Join(
		a.Emit(ctx, &ae.AuditChecked{CheckpointID: "survey.lines", Result: verdict(found != "0")}),
		a.Emit(ctx, &ae.AgentHandoff{
			From: ae.AgentRef{AgentID: a.ID()}, To: ae.AgentRef{AgentID: "reviewer"}, Reason: "the figures are ready",
		}))
}

func (t *team) review(ctx context.Context, a *ae.Agent) error {
	// The text is in two parts so that the search does not find this line.
	ends, err := a.Do(ctx, &ae.ToolCalled{ToolID: "search"}, t.count("// TO"+"DO"))
	if err != nil {
		return err
	}
	return a.Emit(ctx, &ae.AuditChecked{CheckpointID: "review.loose-ends", Result: verdict(ends == "0")})
}

func verdict(ok bool) ae.AuditResult {
	if ok {
		return ae.AuditPass
	}
	return ae.AuditFail
}

// read is a tool with a client that makes a span of its own, as instrumented HTTP clients
// do. Context puts that span below the one of the call. A subprocess would be told by its
// environment: cmd.Env = append(os.Environ(), otelhook.Environ(ctx)...).
func (t *team) read(ctx context.Context) (ae.JSON, error) {
	ctx = t.hook.Context(ctx, t.run.ID())
	_, span := t.tracer.Start(ctx, "GET", trace.WithSpanKind(trace.SpanKindClient),
		trace.WithAttributes(attribute.String("url.path", "go.mod")))
	defer span.End()
	text, err := fs.ReadFile(t.files, "go.mod")
	if err != nil {
		return "", err
	}
	return ae.ToJSON(strings.ToValidUTF8(string(text[:min(len(text), 200)]), ""))
}

// count is a tool that counts a text in the Go files, outside of tests and hidden folders.
func (t *team) count(text string) func(context.Context) (ae.JSON, error) {
	return func(context.Context) (ae.JSON, error) {
		n := 0
		err := fs.WalkDir(t.files, ".", func(name string, d fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case d.IsDir() && name != "." && strings.HasPrefix(path.Base(name), "."):
				return fs.SkipDir
			case d.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go"):
				return nil
			}
			file, err := fs.ReadFile(t.files, name)
			n += bytes.Count(file, []byte(text))
			return err
		})
		return ae.JSON(fmt.Sprint(n)), err
	}
}
