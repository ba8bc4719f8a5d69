package agentevents_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/agentevents/agentevents"
)

// A webhook is a slow sink: it answers when the far end does.
type webhook struct {
	called  chan struct{}
	answers chan struct{}
}

func (w webhook) WriteEvent(_ context.Context, ev agentevents.Event) error {
	w.called <- struct{}{}
	<-w.answers
	fmt.Println("sent:", ev.Payload.(*agentevents.MessageCreated).Message.Content)
	return nil
}

// Buffered keeps a slow sink from slowing the run. When its buffer is full this one drops the
// newest event, and reports it.
func ExampleBuffered() {
	ctx := context.Background()
	slow := webhook{make(chan struct{}, 3), make(chan struct{})}
	buffered := agentevents.Buffered(slow, 2, agentevents.OverflowDropNewest)
	emitter, err := agentevents.NewEmitter(agentevents.EmitterOptions{
		Sinks: []agentevents.Sink{agentevents.BestEffort(buffered)},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	run, err := emitter.Run("")
	if err != nil {
		fmt.Println(err)
		return
	}

	say := func(text string) {
		message := agentevents.ConversationMessage{From: "user", Content: agentevents.JSONString(text)}
		if err := run.Emit(ctx, &agentevents.MessageCreated{Message: message}); err != nil {
			fmt.Println(err)
		}
	}
	say("one")
	<-slow.called // the sink is busy with it
	say("two")
	say("three")
	say("four") // two are waiting: the buffer is full
	fmt.Println("recorded four, dropped", buffered.Dropped())

	close(slow.answers)
	stop, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	err = emitter.Close(stop)
	fmt.Println("Close tells:", errors.Is(err, agentevents.ErrDropped))
	// Output:
	// recorded four, dropped 1
	// sent: "one"
	// sent: "two"
	// sent: "three"
	// Close tells: true
}

// A perRun sink keeps the log of every run apart. It is called by the
// goroutines of several runs at the same time.
type perRun struct {
	mu   sync.Mutex
	logs map[string]*strings.Builder
}

// WriteEvent is for callers that have no line. The emitter calls WriteLine.
func (p *perRun) WriteEvent(ctx context.Context, ev agentevents.Event) error {
	line, err := ev.AppendJSON(nil)
	if err != nil {
		return err
	}
	return p.WriteLine(ctx, ev, line)
}

// WriteLine copies the line: its memory is used again after the call.
func (p *perRun) WriteLine(_ context.Context, ev agentevents.Event, line []byte) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	log := p.logs[ev.RunID]
	if log == nil {
		log = new(strings.Builder)
		p.logs[ev.RunID] = log
	}
	log.Write(line)
	log.WriteByte('\n')
	return nil
}

// A LineSink gets the event's line as well. The emitter encodes an event once
// for all sinks that want its line.
func ExampleLineSink() {
	ctx := context.Background()
	sink := &perRun{logs: map[string]*strings.Builder{}}
	emitter, err := agentevents.NewEmitter(agentevents.EmitterOptions{
		Sinks: []agentevents.Sink{sink},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, id := range []string{"a", "b"} {
		run, err := emitter.Run(id)
		if err != nil {
			fmt.Println(err)
			return
		}
		err = errors.Join(
			run.Emit(ctx, &agentevents.RunStarted{Name: "run " + id}),
			run.Emit(ctx, &agentevents.RunCompleted{}))
		if err != nil {
			fmt.Println(err)
			return
		}
	}
	if err := emitter.Close(ctx); err != nil {
		fmt.Println(err)
		return
	}

	fold := agentevents.NewFold(agentevents.FoldOptions{})
	for ev, err := range agentevents.NewReader(strings.NewReader(sink.logs["b"].String()), agentevents.ReaderOptions{}).All() {
		if err != nil {
			fmt.Println(err)
			return
		}
		fold.Apply(ev)
	}
	fmt.Println(len(sink.logs), "logs")
	fmt.Println(fold.Snapshot().Name, fold.Snapshot().Status)
	// Output:
	// 2 logs
	// run b completed
}

// A durableLog is on the disk when Emit returns, also if the machine loses its power. The
// Writer appends the lines; the second handle of the file is for Sync.
type durableLog struct {
	*agentevents.Writer
	file *os.File
}

func openDurable(path string) (*durableLog, error) {
	writer, err := agentevents.OpenFile(path, agentevents.WriterOptions{})
	if err != nil {
		return nil, err
	}
	file, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return nil, errors.Join(err, writer.Close())
	}
	return &durableLog{writer, file}, nil
}

// Commit is called after each event, by the goroutine that emits it, and delays no other event of
// the run.
func (d *durableLog) Commit(context.Context) error { return d.file.Sync() }

func (d *durableLog) Close() error { return errors.Join(d.Writer.Close(), d.file.Close()) }

// A sink that is a Committer makes events durable: Emit returns when the log's file is
// synced.
func ExampleCommitter() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "durable")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	log, err := openDurable(filepath.Join(dir, "run.jsonl"))
	if err != nil {
		fmt.Println(err)
		return
	}
	emitter, err := agentevents.NewEmitter(agentevents.EmitterOptions{
		Sinks: []agentevents.Sink{log},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	run, err := emitter.Run("")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("on the disk:", run.Emit(ctx, &agentevents.RunStarted{Name: "release"}) == nil)
	fmt.Println("closed:", emitter.Close(ctx) == nil)
	// Output:
	// on the disk: true
	// closed: true
}

// A spans tracer gives a run a trace, and the run, its agents and their calls a span each. It keeps
// nothing: an id is a hash of its subject's id.
type spans struct{}

// WriteEvent does nothing: the tracer is a sink only to be found.
func (spans) WriteEvent(context.Context, agentevents.Event) error { return nil }

func (spans) Trace(_ context.Context, ev agentevents.Event) agentevents.TraceContext {
	id := func(bytes int, of ...string) string {
		sum := sha256.Sum256([]byte(strings.Join(of, "\n")))
		return hex.EncodeToString(sum[:bytes])
	}
	place := agentevents.TraceContext{TraceID: id(16, ev.RunID), SpanID: id(8, ev.RunID)}
	if ev.AgentID != "" {
		place.SpanID, place.ParentSpanID = id(8, ev.RunID, ev.AgentID), place.SpanID
	}
	call := ""
	switch p := ev.Payload.(type) {
	case *agentevents.ToolCalled:
		call = p.CallID
	case *agentevents.ToolReturned:
		call = p.CallID
	}
	if call != "" {
		place.SpanID, place.ParentSpanID = id(8, ev.RunID, ev.AgentID, call), place.SpanID
	}
	return place
}

// A sink that is a Tracer is asked for the place of every event in a trace, before any
// sink gets the event.
func ExampleTracer() {
	ctx := context.Background()
	emitter, err := agentevents.NewEmitter(agentevents.EmitterOptions{
		Sinks: []agentevents.Sink{spans{}, agentevents.SinkFunc(func(_ context.Context, ev agentevents.Event) error {
			fmt.Printf("span %4.4s below %4.4s: %s\n", ev.SpanID, ev.ParentSpanID, ev.Kind())
			return nil
		})},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	run, err := emitter.Run("r1")
	if err != nil {
		fmt.Println(err)
		return
	}
	coder := run.Agent("coder")
	err = errors.Join(
		run.Emit(ctx, &agentevents.RunStarted{}),
		coder.Emit(ctx, &agentevents.AgentStarted{}))
	call, callErr := coder.Call(ctx, &agentevents.ToolCalled{CallID: "toolu_1", ToolID: "Read"})
	if err := errors.Join(err, callErr, call.Return(ctx, `"package main"`)); err != nil {
		fmt.Println(err)
	}
	// Output:
	// span 82f3 below     : run.started
	// span 5f89 below 82f3: agent.started
	// span 5f89 below 82f3: agent.transition
	// span e241 below 5f89: agent.toolCalled
	// span 5f89 below 82f3: agent.transition
	// span e241 below 5f89: agent.toolReturned
}

// A host has a rule of its own: agents do not use the shell. Do runs no tool that the
// rule refuses.
func ExampleEmitterOptions_guard() {
	ctx := context.Background()
	agent := derivedRun(agentevents.EmitterOptions{
		Guard: func(ev agentevents.Event) *agentevents.RuleError {
			call, ok := ev.Payload.(*agentevents.ToolCalled)
			if !ok || call.ToolID != "shell" {
				return nil
			}
			return &agentevents.RuleError{Rule: "acme-no-shell", Subject: "tool shell", State: "forbidden", Detail: "agents have no shell; legal: another tool"}
		},
	}).Agent("coder")
	agent.Emit(ctx, &agentevents.AgentStarted{})

	_, err := agent.Do(ctx, &agentevents.ToolCalled{CallID: "toolu_1", ToolID: "shell"}, func(context.Context) (agentevents.JSON, error) {
		fmt.Println("the tool runs")
		return "", nil
	})
	fmt.Println(err)
	// Output:
	// coder: agent.started
	// agentevents: agent.toolCalled: agents have no shell; legal: another tool; tool shell is forbidden (rule acme-no-shell, run "r1", sequence 2)
}

// Follow records an event directly after another one, with nothing of the run in between: here,
// that the budget is used up.
func ExampleEmitterOptions_follow() {
	ctx := context.Background()
	var calls atomic.Int64
	agent := derivedRun(agentevents.EmitterOptions{
		Follow: func(ev agentevents.Event) []agentevents.Event {
			if ev.Kind() != agentevents.KindToolCalled || calls.Add(1) != 2 {
				return nil
			}
			return []agentevents.Event{{AgentID: ev.AgentID, Payload: &agentevents.BudgetExceeded{Budget: "tool_calls", Limit: 1, Actual: 2}}}
		},
	}).Agent("coder")
	agent.Emit(ctx, &agentevents.AgentStarted{})
	for _, id := range []string{"toolu_1", "toolu_2"} {
		call, _ := agent.Call(ctx, &agentevents.ToolCalled{CallID: id, ToolID: "Read"})
		call.Return(ctx, "")
	}
	// Output:
	// coder: agent.started
	// coder: thinking → tool_call
	// coder calls Read
	// coder: tool_call → tool_result
	// Read: ok
	// coder: tool_result → tool_call
	// coder calls Read
	// coder: budget.exceeded
	// coder: tool_call → tool_result
	// Read: ok
}

// Every violation is told in one place. The program's own log gets the fields of the
// error, and no content.
func ExampleEmitterOptions_onViolation() {
	ctx := context.Background()
	logger := slog.New(slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{
		ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{} // so that the output is the same every time
			}
			return a
		},
	}))
	agent := derivedRun(agentevents.EmitterOptions{
		OnViolation: func(err *agentevents.RuleError) { logger.Warn("agent log", "violation", err) },
	}).Agent("coder")
	agent.Emit(ctx, &agentevents.AgentStarted{})
	agent.Emit(ctx, &agentevents.ToolReturned{CallID: "toolu_1", ToolID: "Read", Status: agentevents.ToolStatusOK})
	agent.Emit(ctx, &agentevents.AgentEnded{Outcome: agentevents.OutcomePartial}) // reports that an event is missing
	// Output:
	// coder: agent.started
	// level=WARN msg="agent log" violation.rule=tool-call-open violation.kind=agent.toolReturned violation.run=r1 violation.sequence=2 violation.agent=coder violation.subject="call \"toolu_1\"" violation.state="not open" violation.detail="agent \"coder\" has no open call with this id; legal: agent.toolCalled first, or oneEvent" violation.refused=true
	// coder: agent.ended
}

// A page asks for the state of open runs. Lookup opens none: the id may come from anywhere. When
// the program stops, it pauses the open runs.
func ExampleEmitter_Lookup() {
	ctx := context.Background()
	emitter, err := agentevents.NewEmitter(agentevents.EmitterOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/runs/{run}", func(w http.ResponseWriter, r *http.Request) {
		run, ok := emitter.Lookup(r.PathValue("run"))
		if !ok {
			http.NotFound(w, r)
			return
		}
		state := run.State() // waits for no sink
		fmt.Fprintf(w, "%s is %s\n", state.RunID, state.Status)
		for _, a := range state.Agents {
			fmt.Fprintf(w, "%s is in %s, open calls: %v\n", a.AgentID, a.Status, a.OpenCalls)
		}
	})

	run, err := emitter.Run("r1")
	if err != nil {
		fmt.Println(err)
		return
	}
	agent := run.Agent("coder")
	agent.Emit(ctx, &agentevents.AgentStarted{})
	agent.Call(ctx, &agentevents.ToolCalled{CallID: "toolu_1", ToolID: "Read"})
	for _, id := range []string{"r1", "r2"} {
		page := httptest.NewRecorder()
		mux.ServeHTTP(page, httptest.NewRequest("GET", "/runs/"+id, nil))
		fmt.Print(page.Code, " ", page.Body)
	}

	for run := range emitter.Runs() {
		if err := run.Emit(ctx, &agentevents.RunPaused{Reason: "shutdown"}); err != nil {
			fmt.Println(err)
		}
		fmt.Println(run.ID(), "is", run.State().Status)
	}
	// Output:
	// 200 r1 is running
	// coder is in tool_call, open calls: [toolu_1]
	// 404 404 page not found
	// r1 is paused
}
