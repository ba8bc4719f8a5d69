// Command quickstart is a small agent runtime that records its own work, under the
// strict lifecycle of KAHN. Two agents look at the files of this repository in parallel.
// A tool call fails and is tried again. A question waits for a person. One agent hands
// its work over to the other. Each agent passes an audit and ends as converged.
//
// The command writes run.jsonl, folds the log, and prints the run as a tree with a
// summary of the snapshot.
//
//	go run ./examples/quickstart [-dir .] [-out run.jsonl]
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"sync"

	ae "github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/tree"
)

func main() {
	dir := flag.String("dir", ".", "folder to look at")
	out := flag.String("out", "run.jsonl", "log to write")
	flag.Parse()
	if err := record(context.Background(), *dir, *out); err != nil {
		fmt.Fprintln(os.Stderr, "quickstart:", err)
		os.Exit(1)
	}
	if err := show(os.Stdout, *out); err != nil {
		fmt.Fprintln(os.Stderr, "quickstart:", err)
		os.Exit(1)
	}
}

// record runs the agents and writes the log.
func record(ctx context.Context, dir, out string) (err error) {
	f, err := os.OpenFile(out, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600) // a log is confidential
	if err != nil {
		return err
	}
	defer f.Close()
	em, err := ae.NewEmitter(ae.EmitterOptions{Lifecycle: ae.LifecycleStrict,
		Sinks: []ae.Sink{ae.NewWriter(f, ae.WriterOptions{})}})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, em.Close(ctx)) }()
	run, err := em.Run("")
	if err != nil {
		return err
	}
	run = run.With(ae.Scope{SessionID: "quickstart"})
	if err := run.Emit(ctx, &ae.SessionStarted{Goal: "Know this repository"}); err != nil {
		return err
	}
	if err := run.Emit(ctx, &ae.RunStarted{Name: "survey"}); err != nil {
		return err
	}
	if err := work(ctx, run, os.DirFS(dir)); err != nil {
		return errors.Join(err, run.Emit(ctx, &ae.RunFailed{Error: ae.Some(ae.ErrorInfo{Message: err.Error()})}))
	}
	return errors.Join(
		run.Emit(ctx, &ae.AuditChecked{CheckpointID: "run:log.complete", Result: ae.AuditPass}),
		run.Emit(ctx, &ae.RunCompleted{}),
		run.Emit(ctx, &ae.SessionCompleted{Status: "done"}))
}

// work runs the two agents and waits for both. Each works in a goroutine, with its
// own handle. The run puts their events into one order.
func work(ctx context.Context, run *ae.Run, files fs.FS) error {
	tools := toolbox()
	surveyor := &worker{agent: run.Agent("surveyor"), tools: tools, files: files}
	reviewer := &worker{agent: run.Agent("reviewer"), tools: tools, files: files}
	findings := make(chan total, 1)
	operator := make(chan chan string) // who asks waits for the answer there

	var wg sync.WaitGroup
	var surveyErr, reviewErr error
	wg.Go(func() { defer close(findings); surveyErr = survey(ctx, surveyor, reviewer, findings, operator) })
	wg.Go(func() { reviewErr = review(ctx, reviewer, findings) })
	done := make(chan struct{})
	go func() { wg.Wait(); close(done) }()
	for {
		select {
		case reply := <-operator: // a real runtime asks a person
			reply <- "no"
		case <-done:
			return errors.Join(surveyErr, reviewErr)
		}
	}
}

// survey counts files and lines, and hands its figures to the reviewer.
func survey(ctx context.Context, w, to *worker, findings chan<- total, operator chan<- chan string) error {
	ref := ae.AgentRef{AgentID: w.agent.ID(), ModelClass: ae.ModelResearch}
	if err := w.start(ctx, ref, "Count the Go code"); err != nil {
		return err
	}
	found, err := func() (t total, err error) {
		var head struct{ Head string }
		if err := w.use(ctx, "read", query{Path: "go.mod"}, &head); err != nil {
			return t, err
		}
		tests, err := w.ask(ctx, "Should tests count?", operator)
		if err != nil {
			return t, err
		}
		q := query{Suffix: ".go"}
		if tests == "no" {
			q.Exclude = "_test.go"
		}
		var names []string
		if err := w.use(ctx, "list", q, &names); err != nil {
			return t, err
		}
		if err := w.use(ctx, "count", q, &t); err != nil {
			return t, err
		}
		err = w.audit(ctx, "audit:survey.files", func() (bool, any) { return t.Files == len(names), t })
		return t, err
	}()
	if err != nil {
		return errors.Join(err, w.finish(ctx, "", err))
	}
	handoff := &ae.AgentHandoff{From: ref, To: ae.AgentRef{AgentID: to.agent.ID()}, Reason: "figures are ready"}
	if err := w.agent.Emit(ctx, handoff); err != nil {
		return err
	}
	if err := w.tell(ctx, to.agent.ID(), found); err != nil {
		return err
	}
	findings <- found
	return w.finish(ctx, fmt.Sprintf("%s with %s", plural(found.Files, "file"), plural(found.Lines, "line")), nil)
}

// review looks for loose ends, and then reports the surveyor's figures.
func review(ctx context.Context, w *worker, findings <-chan total) error {
	if err := w.start(ctx, ae.AgentRef{AgentID: w.agent.ID(), ModelClass: ae.ModelReasoning},
		"Find loose ends"); err != nil {
		return err
	}
	var ends []hit
	// The text is in two parts so that the search does not find this line.
	if err := w.use(ctx, "search", query{Suffix: ".go", Text: "TO" + "DO"}, &ends); err != nil {
		return errors.Join(err, w.finish(ctx, "", err))
	}
	if err := w.audit(ctx, "audit:review.loose-ends",
		func() (bool, any) { return len(ends) == 0, len(ends) }); err != nil {
		return err
	}
	found, ok := <-findings
	if !ok {
		err := errors.New("the surveyor has no figures")
		return errors.Join(err, w.finish(ctx, "", err))
	}
	answer := fmt.Sprintf("%s in %s of code", plural(len(ends), "loose end"), plural(found.Lines, "line"))
	if err := w.tell(ctx, "user", answer); err != nil {
		return err
	}
	return w.finish(ctx, answer, nil)
}

// show folds the log and prints the run.
func show(w io.Writer, path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	runs, err := ae.FoldLog(ae.NewReader(f, ae.ReaderOptions{}), ae.FoldOptions{})
	if err != nil {
		return err
	}
	for s := range runs.Drain() {
		if err := tree.Write(w, s, tree.Options{Ended: true}); err != nil {
			return err
		}
		fmt.Fprintf(w, "\n%s: %s, %s recorded, %s\n",
			path, s.Status, plural(int(s.NextSequence), "event"), plural(s.ViolationCount, "violation"))
		for _, a := range s.AgentsInOrder() {
			fmt.Fprintf(w, "  %-9s %-10s %s, %s, %s: %s\n", a.AgentID, a.Outcome, plural(a.Counted.Steps, "step"),
				plural(a.ToolCalls, "tool call"), plural(a.Counted.AuditCheckpoints, "audit"), a.Result)
		}
		for _, m := range s.Messages {
			fmt.Fprintf(w, "  message from %s to %s: %s\n", m.From, m.To, m.Content)
		}
	}
	return nil
}
