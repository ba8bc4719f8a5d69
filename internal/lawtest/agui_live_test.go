package lawtest

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect/agui"
	"github.com/agentevents/agentevents/live"
)

// A host serves runs to a front end of AG-UI, as package live documents it: every POST begins the
// next run of a thread, or goes on with the one that waits for an answer.
type host struct {
	t       *testing.T
	page    *live.Feed
	emitter *agentevents.Emitter
	handler *http.ServeMux

	mu      sync.Mutex
	threads map[string]*hosted
	log     map[string][]agentevents.Event // by thread
	working sync.WaitGroup
}

// A hosted thread has the events of runs that are still to come.
type hosted struct {
	id  string
	run *agentevents.Run // that is under way

	working sync.Mutex // a run's end is seen before its worker is done
	runs    [][]agentevents.Payload
}

func newHost(t *testing.T) *host {
	h := &host{t: t, page: live.New(live.Options{Linger: -1}), handler: http.NewServeMux(), threads: map[string]*hosted{}, log: map[string][]agentevents.Event{}}
	keep := agentevents.SinkFunc(func(_ context.Context, ev agentevents.Event) error {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.log[ev.SessionID] = append(h.log[ev.SessionID], ev)
		return nil
	})
	var err error
	h.emitter, err = agentevents.NewEmitter(agentevents.EmitterOptions{Lifecycle: agentevents.LifecycleDerived, Sinks: []agentevents.Sink{keep, h.page}})
	require.NoError(t, err)
	h.handler.Handle("/runs/{run}/agui", h.page.EncodedHandler(func() live.Encoder { return agui.NewEncoder(agui.EncoderOptions{}) }))
	h.handler.HandleFunc("/agent", h.serve)
	return h
}

// serve takes the input of a run, records it, lets the agent work, and streams the run.
func (h *host) serve(w http.ResponseWriter, r *http.Request) {
	var in struct {
		ThreadID, RunID string
		Resume          []struct{ InterruptID string }
	}
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	h.mu.Lock()
	thread := h.threads[in.ThreadID]
	h.mu.Unlock()
	from := uint64(0)
	if len(in.Resume) > 0 && thread.run.State().Status == agentevents.RunStatusPaused {
		from = thread.run.State().NextSequence
		h.emit(thread.run, &agentevents.RunResumed{})
		for _, answer := range in.Resume {
			h.emit(thread.run, &agentevents.ApprovalGranted{ApprovalID: answer.InterruptID})
		}
	} else {
		run, err := h.emitter.Run(in.RunID)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		thread.id, thread.run = in.RunID, run.With(agentevents.Scope{SessionID: in.ThreadID})
		h.emit(thread.run, &agentevents.RunStarted{})
	}
	h.working.Go(func() { h.work(thread) })
	r.URL.Path, r.URL.RawQuery = "/runs/"+thread.id+"/agui", fmt.Sprint("from=", from)
	h.handler.ServeHTTP(w, r)
}

// work emits the events of a run up to its pause or its end.
func (h *host) work(thread *hosted) {
	thread.working.Lock()
	defer thread.working.Unlock()
	for agent := thread.run.Agent("helper"); len(thread.runs[0]) > 0; {
		p := thread.runs[0][0]
		thread.runs[0] = thread.runs[0][1:]
		switch p.(type) {
		case *agentevents.RunPaused:
			h.emit(thread.run, p)
			return
		case *agentevents.StatePatched, *agentevents.ApprovalRequested, *agentevents.RunCompleted, *agentevents.RunFailed:
			h.emit(thread.run, p)
		default:
			if err := agent.Emit(h.t.Context(), p); err != nil {
				h.t.Error(err)
			}
		}
	}
	thread.runs = thread.runs[1:]
}

func (h *host) emit(run *agentevents.Run, p agentevents.Payload) {
	if err := run.Emit(h.t.Context(), p); err != nil {
		h.t.Error(err)
	}
}

// hostedRun draws the events of a run after its start: texts and reasoning that are streamed or
// not, with ids or without, calls, state and questions, in any order.
func hostedRun(t *rapid.T, number int) (events []agentevents.Payload) {
	add := func(list ...agentevents.Payload) { events = append(events, list...) }
	pause := func(i int) {
		add(&agentevents.ApprovalRequested{ApprovalID: fmt.Sprint("approval-", number, "-", i), Action: "go on"}, &agentevents.RunPaused{})
	}
	add(&agentevents.AgentStarted{Task: "answer"})
	for i := range rapid.IntRange(1, 6).Draw(t, "acts") {
		text, id := fmt.Sprintf("text %d of run %d", i, number), ""
		if rapid.Bool().Draw(t, "named") {
			id = fmt.Sprint("block-", number, "-", i)
		}
		cut := rapid.IntRange(0, len(text)).Draw(t, "streamed")
		paused := rapid.IntRange(0, 3).Draw(t, "paused") == 0
		switch rapid.IntRange(0, 3).Draw(t, "act") {
		case 0:
			if cut > 0 {
				add(&agentevents.TextDelta{BlockID: id, Delta: text[:cut]})
			}
			if paused {
				pause(i)
			}
			add(&agentevents.TextCompleted{BlockID: id, Text: text})
		case 1:
			if cut > 0 {
				add(&agentevents.AgentReasoningDelta{BlockID: id, Delta: text[:cut]})
			}
			if paused {
				pause(i)
			}
			add(&agentevents.AgentReasoned{BlockID: id, Reasoning: text})
		case 2:
			call := fmt.Sprint("call-", number, "-", i)
			add(&agentevents.ToolCalled{CallID: call, ToolID: "Read", Arguments: `{"path":"a.go"}`})
			if paused {
				pause(i)
			}
			add(&agentevents.ToolReturned{CallID: call, ToolID: "Read", Status: "ok", Result: agentevents.JSONString(text)})
		case 3:
			add(&agentevents.StatePatched{Op: agentevents.PatchSet, Path: fmt.Sprint("run-", number, ".k", i), Value: agentevents.JSONString(text)})
		}
	}
	if rapid.IntRange(0, 4).Draw(t, "fails") == 0 {
		add(&agentevents.RunFailed{Error: agentevents.Some(agentevents.ErrorInfo{Message: "no disk"})})
	} else {
		add(&agentevents.RunCompleted{})
	}
	return events
}

// Law: the client of AG-UI that asks a server its questions, one run after the other, and answers
// the questions of the runs, ends with the messages and the state of the log, each run after its
// question.
func TestClientOfAGUIThroughTheLiveHandler(t *testing.T) {
	c, h := newClient(t), newHost(t)
	fresh(t, 60)
	server := httptest.NewServer(h.handler)
	events, number := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		number++
		name := fmt.Sprint("thread-", number)
		thread, questions := &hosted{}, []string{}
		for i := range rapid.IntRange(1, 4).Draw(t, "runs") {
			thread.runs = append(thread.runs, hostedRun(t, i))
			questions = append(questions, fmt.Sprint("question ", i))
		}
		h.mu.Lock()
		h.threads[name] = thread
		h.mu.Unlock()
		got := c.do(t, map[string]any{"url": server.URL + "/agent", "thread": name, "questions": questions})
		h.working.Wait()
		h.mu.Lock()
		log := h.log[name]
		h.mu.Unlock()
		events += len(log)
		want := asking(frontOf(log), log, questions)
		if what := want.differs(got.Messages); what != "" || len(got.Errors)+len(got.Warnings) > 0 {
			show(t, &Run{Events: log})
			t.Fatalf("%s\nerrors: %q\nwarnings: %q", what, got.Errors, got.Warnings)
		}
		require.JSONEq(t, want.state, got.State)
	})
	require.NoError(t, h.emitter.Close(t.Context()))
	server.Close()
	t.Logf("%d events", events)
}

// asking returns a front in which each run of a log follows its question.
func asking(f *front, log []agentevents.Event, questions []string) *front {
	out, runs := &front{state: f.state}, []string{}
	for _, ev := range log {
		if !slices.Contains(runs, ev.RunID) {
			runs = append(runs, ev.RunID)
		}
	}
	for i, text := range questions {
		out.add(fmt.Sprint("question-", i), "user", text)
		for _, m := range f.messages {
			if i < len(runs) && m.run == runs[i] {
				out.messages = append(out.messages, m)
			}
		}
	}
	return out
}
