package eventtest_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/eventtest"
)

func TestSinkTestOfRecorder(t *testing.T) {
	eventtest.SinkTest{
		New:    func(testing.TB) agentevents.Sink { return new(eventtest.Recorder) },
		Events: func(_ testing.TB, s agentevents.Sink) []agentevents.Event { return s.(*eventtest.Recorder).Events() },
	}.Run(t)
}

// A faulty is a sink with all optional interfaces that keeps their contracts, except for the faults
// that a test gives it. Its lines are parsed when it is flushed, committed or closed.
type faulty struct {
	mu      sync.Mutex
	lines   []string
	pending []string
	kept    [][]byte
	closed  bool
	done    chan struct{}

	write  func(f *faulty, ev *agentevents.Event, line []byte) (string, error)
	flush  func(f *faulty)
	commit func(f *faulty)
	shut   func(f *faulty) error
	resume error
	trace  agentevents.TraceContext
}

func (f *faulty) WriteEvent(ctx context.Context, ev agentevents.Event) error {
	line, err := ev.AppendJSON(nil)
	if err != nil {
		return err
	}
	return f.WriteLine(ctx, ev, line)
}

func (f *faulty) WriteLine(_ context.Context, ev agentevents.Event, line []byte) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return agentevents.ErrClosed
	}
	text, err := string(line), error(nil)
	if f.write != nil {
		text, err = f.write(f, &ev, line)
	}
	if text != "" {
		f.pending = append(f.pending, text)
	}
	return err
}

func (f *faulty) deliver() { f.lines, f.pending = append(f.lines, f.pending...), nil }

func (f *faulty) Flush(context.Context) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.flush != nil {
		f.flush(f)
		return nil
	}
	f.deliver()
	return nil
}

func (f *faulty) Commit(context.Context) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.commit != nil {
		f.commit(f)
		return nil
	}
	f.deliver()
	return nil
}

func (f *faulty) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.shut != nil {
		return f.shut(f)
	}
	f.deliver()
	f.closed = true
	return nil
}

func (f *faulty) ResumeRun(context.Context, *agentevents.RunSnapshot) error { return f.resume }

func (f *faulty) Trace(context.Context, agentevents.Event) agentevents.TraceContext { return f.trace }

func (f *faulty) events() (events []agentevents.Event) {
	for ev, err := range agentevents.NewReader(strings.NewReader(strings.Join(f.lines, "\n")), agentevents.ReaderOptions{}).All() {
		if err == nil {
			events = append(events, ev)
		}
	}
	return events
}

func kitOf(f *faulty) eventtest.SinkTest {
	return eventtest.SinkTest{
		New:    func(testing.TB) agentevents.Sink { return f },
		Events: func(_ testing.TB, s agentevents.Sink) []agentevents.Event { return s.(*faulty).events() },
		Broken: func(testing.TB) agentevents.Sink { return f },
	}
}

func TestSinkTestOfGoodSink(t *testing.T) {
	kit := kitOf(nil)
	kit.New = func(testing.TB) agentevents.Sink { return new(faulty) }
	kit.Broken = func(testing.TB) agentevents.Sink {
		return &faulty{shut: func(*faulty) error { return errors.New("the disk is full") }}
	}
	kit.Run(t)
}

func TestSinkTestFindsFaults(t *testing.T) {
	t.Parallel()
	drops := func(kind agentevents.Kind) func(*faulty, *agentevents.Event, []byte) (string, error) {
		return func(_ *faulty, ev *agentevents.Event, line []byte) (string, error) {
			if ev.Kind() == kind {
				return "", nil
			}
			return string(line), nil
		}
	}
	found := map[string]bool{}
	var mu sync.Mutex
	t.Run("faults", func(t *testing.T) {
		for _, tt := range []struct {
			name, of string
			sink     *faulty
			want     string
		}{
			{"an event is lost", "run", &faulty{write: drops(agentevents.KindToolReturned)}, `
eventtest: run r1: sequence 10 (main agent.toolReturned read c1 error timeout) did not arrive
a sink takes each event of a run, in the order in which they come.`},
			{"the order is another", "run", &faulty{shut: func(f *faulty) error {
				f.deliver()
				f.lines[0], f.lines[1] = f.lines[1], f.lines[0]
				return nil
			}}, `
eventtest: run r1: sequence 1 (main agent.started "Add \u2028 \"x\"") arrived before sequence 0 (run.started conformance derived)
a sink takes each event of a run, in the order in which they come.`},
			{"events come twice", "run", &faulty{shut: func(f *faulty) error {
				f.deliver()
				f.lines = append(f.lines, f.lines[3])
				return nil
			}}, `
eventtest: run r1: sequence 3 (main agent.text.delta b1 "It ") arrived twice
a sink takes each event of a run, in the order in which they come.`},
			{"members are another", "run", &faulty{write: func(_ *faulty, _ *agentevents.Event, line []byte) (string, error) {
				return strings.Replace(string(line), `"read"`, `"Read"`, 1), nil
			}}, `
eventtest: run r1: sequence 8 (main agent.toolCalled read c1) arrived changed: /payload/toolId: "Read", was "read"
a sink takes each event of a run, in the order in which they come.`},
			{"an event is changed", "run", &faulty{write: func(_ *faulty, ev *agentevents.Event, line []byte) (string, error) {
				if p, ok := ev.Payload.(*agentevents.AgentStarted); ok {
					p.Task = "mine"
				}
				return string(line), nil
			}}, "\neventtest: the sink changes the event of sequence 1 (main agent.started \"Add \\u2028 \\\"x\\\"\"), which other sinks share: /payload/task: \"mine\", was"},
			{"Flush fails without events", "nothing", &faulty{shut: func(f *faulty) error { return errors.New("no file") }},
				"\neventtest: the sink fails: agentevents: sink *eventtest_test.faulty: no file\na sink that gets no event is flushed and closed like others."},
			{"events of other runs are lost", "concurrent-runs", &faulty{write: func(_ *faulty, ev *agentevents.Event, line []byte) (string, error) {
				if ev.RunID == "r7" {
					return "", nil
				}
				return string(line), nil
			}}, "\neventtest: run r7: the last 15 events did not arrive, from sequence 0 (run.started conformance derived)\n"},
			{"an error is returned", "cancelled-context", &faulty{write: func(*faulty, *agentevents.Event, []byte) (string, error) { return "", context.Canceled }},
				"\neventtest: the sink fails: agentevents: sink *eventtest_test.faulty"},
			{"it panics", "context", &faulty{write: func(*faulty, *agentevents.Event, []byte) (string, error) { panic("no deadline") }},
				"\neventtest: the sink panics: no deadline\na sink needs no deadline, no values and no emitter in its context.\ngoroutine "},
			{"it panics in an emitter", "run", &faulty{write: func(*faulty, *agentevents.Event, []byte) (string, error) { panic("no deadline") }},
				"\neventtest: the sink panics: no deadline\n"},
			{"long texts are cut", "unknown", &faulty{write: func(_ *faulty, ev *agentevents.Event, line []byte) (string, error) {
				return string(line)[:min(len(line), 1<<20)], nil
			}}, "\neventtest: "},
			{"lines are kept", "line", &faulty{write: func(f *faulty, _ *agentevents.Event, line []byte) (string, error) {
				f.kept = append(f.kept, line)
				return "", nil
			}, shut: func(f *faulty) error {
				for _, line := range f.kept {
					f.lines = append(f.lines, string(line))
				}
				return nil
			}}, "\neventtest: run r1: the last 15 events did not arrive"},
			{"lines are changed", "line", &faulty{write: func(_ *faulty, _ *agentevents.Event, line []byte) (string, error) {
				text := string(line)
				line[0] = '['
				return text, nil
			}}, "\neventtest: the line of sequence 0 is changed by WriteLine\nWriteLine must not keep or change the line, whose memory is used again."},
			{"WriteEvent is left out", "WriteEvent-of-LineSink", &faulty{write: drops(agentevents.KindRunStarted)}, "\neventtest: run r1: "},
			{"Flush does nothing", "Flush", &faulty{flush: func(*faulty) {}, commit: func(*faulty) {}},
				"\neventtest: before Close: run r1: the last 15 events did not arrive, from sequence 0"},
			{"Flush of an ended context loses events", "Flush-ended-context", &faulty{flush: func(f *faulty) { f.lines, f.pending = nil, nil }, commit: func(*faulty) {}},
				"\neventtest: run r1: "},
			{"Commit does nothing", "Commit", &faulty{flush: func(*faulty) {}, commit: func(*faulty) {}}, "\neventtest: before Close: run r1: the last 15 events did not arrive"},
			{"ids of traces are upper-case", "Trace", &faulty{trace: agentevents.TraceContext{TraceID: "0AF7651916CD43DD8448EB211C80319C"}},
				"\neventtest: the event of sequence 0 (run.started conformance derived) has trace \"0AF7651916CD43DD8448EB211C80319C\", span \"\" and parent \"\"\n"},
			{"snapshots are refused", "ResumeRun", &faulty{resume: errors.New("no such run")}, "\neventtest: the sink fails: "},
			{"ended runs are refused", "after-ReleaseRun", &faulty{write: func(_ *faulty, ev *agentevents.Event, line []byte) (string, error) {
				if ev.Kind() == agentevents.KindSessionCompleted {
					return "", errors.New("the run has ended")
				}
				return string(line), nil
			}}, "\neventtest: the sink fails: "},
			{"Close twice panics", "Close-twice", &faulty{done: make(chan struct{}), shut: func(f *faulty) error { close(f.done); f.deliver(); return nil }},
				"\neventtest: the sink panics: close of closed channel\n"},
			{"late events are lost", "after-Close", &faulty{shut: func(f *faulty) error { f.deliver(); return nil }},
				"\neventtest: run late: the last 1 event did not arrive, from sequence 0 (run.started conformance derived)\nan event that comes after Close is refused"},
			{"a goroutine is left", "goroutines", &faulty{write: func(f *faulty, _ *agentevents.Event, line []byte) (string, error) {
				if f.done == nil {
					f.done = make(chan struct{})
					go func() { <-f.done }()
				}
				return string(line), nil
			}}, "\neventtest: a goroutine that the sink began is left:\n"},
			{"errors are swallowed", "broken", &faulty{write: func(*faulty, *agentevents.Event, []byte) (string, error) { return "", nil }},
				"\neventtest: 15 events are lost, and no call returns an error\na sink reports an undelivered event with an error: of WriteEvent, Commit, Flush or Close."},
		} {
			mu.Lock()
			found[tt.of] = true
			mu.Unlock()
			t.Run(tt.name, func(t *testing.T) {
				t.Parallel()
				all := failures(func(t testing.TB) { kitOf(tt.sink).Case(t, tt.of) })
				if tt.sink.done != nil && tt.of == "goroutines" {
					close(tt.sink.done)
				}
				require.NotEmpty(t, all)
				got := "\n" + all[0]
				if strings.HasSuffix(tt.want, ".") {
					require.Equal(t, tt.want, got)
				} else {
					require.True(t, strings.HasPrefix(got, tt.want), got)
				}
			})
		}
	})
	require.ElementsMatch(t, eventtest.SinkCases(), slices.Collect(func(yield func(string) bool) {
		for name := range found {
			if !yield(name) {
				return
			}
		}
	}), "each case finds a fault")
}
