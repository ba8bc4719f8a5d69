package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	ae "github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/bench/internal/measure"
)

// A load is a sequence of events that is emitted again and again, and is legal every
// time.
type load struct {
	name     string
	payloads []ae.Payload
	mirrors  []any // the same payloads, for peers
	perOp    int   // the number of events that one operation emits
}

// loads are the four samples in a form that an agent may repeat: T goes round the
// lifecycle, and the operation of W includes its return.
var loads = func() []load {
	var out []load
	for _, s := range samples {
		l := load{name: s.name, payloads: []ae.Payload{s.event.Payload}, mirrors: []any{s.mirror.Payload}, perOp: 1}
		switch s.name {
		case "T":
			l.payloads, l.mirrors = nil, nil
			path := []ae.AgentStatus{ae.StatusToolCall, ae.StatusToolResult,
				ae.StatusResponse, ae.StatusReflect, ae.StatusThinking, ae.StatusToolCall}
			for i := range path[1:] {
				l.payloads = append(l.payloads, &ae.AgentTransition{From: path[i], To: path[i+1], Reason: "tool_call:Read"})
				l.mirrors = append(l.mirrors, &transition{From: string(path[i]), To: string(path[i+1]), Reason: "tool_call:Read"})
			}
		case "W":
			call := s.event.Payload.(*ae.ToolCalled)
			p := &ae.ToolReturned{
				CallID: call.CallID, ToolID: call.ToolID, Status: ae.ToolStatusOK,
				Result: `{"rows":12}`, Duration: ae.Some(milliseconds(20)),
			}
			l.payloads = append(l.payloads, p)
			l.mirrors = append(l.mirrors, &toolReturned[json.RawMessage]{
				CallID: p.CallID, ToolID: p.ToolID, Status: "ok", Result: json.RawMessage(p.Result), DurationMs: ptr(20.0),
			})
			l.perOp = 2
		}
		out = append(out, l)
	}
	return out
}()

func (l load) label() string {
	if l.perOp > 1 {
		return l.name + " and its return"
	}
	return l.name
}

// cell returns a cell whose operation emits events of the load. emit takes the number
// of an event.
func (l load) cell(name string, setup func() (emit func(i int) error, err error)) *cell {
	return &cell{Name: l.name + ": " + name, Setup: func(*cell) (func(int) error, error) {
		op, err := l.op(setup)
		if err != nil {
			return nil, err
		}
		return measure.Repeat(op), nil
	}}
}

func (l load) op(setup func() (func(int) error, error)) (func() error, error) {
	emit, err := setup()
	i := 0
	return func() error {
		for range l.perOp {
			if err := emit(i); err != nil {
				return err
			}
			if i++; i == len(l.payloads) {
				i = 0
			}
		}
		return nil
	}, err
}

// emitter returns the library's Emit, for one agent in a run of its own.
func (l load) emitter(o ae.EmitterOptions, sinks ...func() (ae.Sink, error)) func() (func(int) error, error) {
	return func() (func(int) error, error) {
		for _, open := range sinks {
			s, err := open()
			if err != nil {
				return nil, err
			}
			o.Sinks = append(o.Sinks, s)
		}
		o.Lifecycle = ae.LifecycleStrict // the loads have the transitions
		em, err := ae.NewEmitter(o)
		if err != nil {
			return nil, err
		}
		a, err := startAgent(em, "run-00042")
		if err != nil {
			return nil, err
		}
		return func(i int) error { return a.Emit(context.Background(), l.payloads[i]) }, nil
	}
}

func startAgent(em *ae.Emitter, run string) (*ae.Agent, error) {
	r, err := em.Run(run)
	if err != nil {
		return nil, err
	}
	a := r.Agent("coder")
	ctx := context.Background()
	return a, errors.Join(a.Emit(ctx, &ae.AgentStarted{}), a.To(ctx, ae.StatusToolCall))
}

const bufferSize = 64 << 10

func fileSink() (ae.Sink, error) {
	f, err := newOverwriter()
	return ae.NewWriter(f, ae.WriterOptions{BufferSize: bufferSize}), err
}

func hookSink() (ae.Sink, error) {
	return ae.SinkFunc(func(context.Context, ae.Event) error { return nil }), nil
}

// emitSection compares Emit with its floor (M1), with a logger that checks nothing (M2),
// with Emit to a second sink (M4), and with an event broker (M6). E1 counts its
// allocations.
func emitSection() []comparison {
	var out []comparison
	for _, l := range loads {
		var (
			full    = l.cell("Emit", l.emitter(ae.EmitterOptions{}, fileSink))
			plain   = l.cell("Emit without redaction", l.emitter(ae.EmitterOptions{Redaction: &ae.Policy{Off: true}}, fileSink))
			hook    = l.cell("Emit to a file and a hook", l.emitter(ae.EmitterOptions{}, fileSink, hookSink))
			two     = l.cell("Emit to two files", l.emitter(ae.EmitterOptions{}, fileSink, fileSink))
			floor   = l.cell("floor", l.floor)
			zerolog = l.cell("zerolog", l.zerolog)
			broker  = l.cell("eventlogger", l.eventlogger)
		)
		zerolog.Control, broker.Control = true, true
		name := l.label()
		out = append(out,
			comparison{goal: "E1", what: name + ", allocations of Emit to a file", direct: func() (row, error) {
				op, err := l.op(l.emitter(ae.EmitterOptions{}, fileSink))
				if err != nil {
					return row{}, err
				}
				n, err := allocations(20_000, op)
				return allocRow(n), err
			}},
			versus("M1", name+", Emit without redaction / its floor", atMost(1.15), plain, floor),
			versus("M1", name+", Emit / its floor", atMost(1.5), full, floor),
			versus("M2", name+", Emit / zerolog, the same stamped line", atMost(0.65), full, zerolog),
			versus("M4", name+", Emit to a file and a typed hook / to the file", atMost(1.08), hook, full),
			versus("M4", name+", Emit to two files / to one", atMost(1.35), two, full),
			versus("M6", name+", Emit to a file and a hook / eventlogger to a file and a no-op", atLeast(20), hook, broker),
		)
	}
	return byKind(out)
}

// byKind reorders rows by comparison, and within a comparison by load.
func byKind(in []comparison) []comparison {
	var out []comparison
	n := len(in) / len(loads)
	for i := range n {
		for j := range loads {
			out = append(out, in[j*n+i])
		}
	}
	return out
}

// concurrentSection is M5: goroutines that emit into their own runs and one shared file.
func concurrentSection() []comparison {
	for _, l := range loads {
		if l.name == "T" {
			one, many := l.goroutines(1), l.goroutines(64)
			return []comparison{
				versus("M5", "T, 64 goroutines / 1, on two cores", atMost(1.25), many, one),
				inWallTime("M5", "T, 64 goroutines / 1, on two cores", many, one),
			}
		}
	}
	return nil
}

func (l load) goroutines(count int) *cell {
	return &cell{Name: fmt.Sprint(count, " goroutines"), Procs: 2, Setup: func(*cell) (func(int) error, error) {
		file, err := fileSink()
		if err != nil {
			return nil, err
		}
		em, err := ae.NewEmitter(ae.EmitterOptions{Lifecycle: ae.LifecycleStrict, Sinks: []ae.Sink{file}})
		if err != nil {
			return nil, err
		}
		type emitter struct {
			agent *ae.Agent
			next  int
		}
		emitters := make([]emitter, count)
		for i := range emitters {
			if emitters[i].agent, err = startAgent(em, fmt.Sprint("run-", i)); err != nil {
				return nil, err
			}
		}
		return func(n int) error {
			errs := make([]error, count)
			var wg sync.WaitGroup
			for g := range emitters {
				share := n / count
				if g < n%count {
					share++
				}
				wg.Go(func() {
					e := &emitters[g]
					for range share {
						if err := e.agent.Emit(context.Background(), l.payloads[e.next]); err != nil {
							errs[g] = err
							return
						}
						if e.next++; e.next == len(l.payloads) {
							e.next = 0
						}
					}
				})
			}
			wg.Wait()
			for _, err := range errs {
				if err != nil {
					return err
				}
			}
			return nil
		}, nil
	}}
}
