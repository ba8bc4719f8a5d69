package dialecttest

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect"
)

// The plain dialect is the native format: it loses nothing.

type plainDecoder struct{}

func (plainDecoder) Decode(dst []agentevents.Event, line []byte) ([]agentevents.Event, error) {
	var ev agentevents.Event
	if err := ev.UnmarshalJSON(line); err != nil {
		return dst, err
	}
	return append(dst, ev), nil
}

func (plainDecoder) End(dst []agentevents.Event) ([]agentevents.Event, error) { return dst, nil }

type plainEncoder struct{ losses dialect.Losses }

func (e *plainEncoder) Append(dst []byte, ev agentevents.Event) ([]byte, error) {
	out, err := ev.AppendJSON(dst)
	if err != nil {
		return dst, err
	}
	return append(out, '\n'), nil
}

func (e *plainEncoder) End(dst []byte) ([]byte, error) { return dst, nil }

func (e *plainEncoder) Losses() []dialect.Loss { return e.losses.List() }

// envelope is the envelope of the plain dialect's golden lines.
func envelope(agentID string, p agentevents.Payload) agentevents.Event {
	return agentevents.Event{ID: "e1", Sequence: 3, Time: time.Date(2026, 5, 5, 9, 0, 1, 2e8, time.UTC), RunID: "r1", AgentID: agentID,
		SchemaVersion: agentevents.SchemaVersion, Payload: p}
}

func plain() Dialect {
	return Dialect{
		Name:    dialect.Native,
		Decoder: func() agentevents.Decoder { return plainDecoder{} },
		Encoder: func() dialect.Encoder { return &plainEncoder{} },
		Golden: []Golden{
			{
				Name:   "start",
				Lines:  `{"id":"e1","sequence":3,"timestamp":"2026-05-05T09:00:01.200Z","type":"agent.started","runId":"r1","agentId":"coder","schemaVersion":"1.0","payload":{"task":"Add","model":"m"}}`,
				Events: []agentevents.Event{envelope("coder", &agentevents.AgentStarted{Task: "Add", Model: "m"})},
				Build:  true,
			},
			{
				Name:   "usage",
				Lines:  `{"id":"e1","sequence":3,"timestamp":"2026-05-05T09:00:01.200Z","type":"usage.observed","runId":"r1","schemaVersion":"1.0","payload":{"usage":{"inputTokens":1,"outputTokens":2}}}`,
				Events: []agentevents.Event{envelope("", &agentevents.UsageObserved{Usage: agentevents.Usage{InputTokens: 1, OutputTokens: 2}})},
				Build:  true,
			},
			{
				Name:    "other spelling",
				Lines:   `{"sequence":3, "id":"e1","timestamp":"2026-05-05T09:00:01.200Z","type":"run.paused","runId":"r1","schemaVersion":"1.0","payload":{}}`,
				Written: `{"id":"e1","sequence":3,"timestamp":"2026-05-05T09:00:01.200Z","type":"run.paused","runId":"r1","schemaVersion":"1.0","payload":{}}`,
			},
			{
				Name: "two lines",
				Lines: `{"id":"e1","sequence":3,"timestamp":"2026-05-05T09:00:01.200Z","type":"agent.toolCalled","runId":"r1","schemaVersion":"1.0","payload":{"callId":"c","toolId":"t","arguments":{"a":1.50}}}
{"id":"e2","sequence":4,"timestamp":"2026-05-05T09:00:01.300Z","type":"agent.toolReturned","runId":"r1","causationId":"e1","schemaVersion":"1.0","payload":{"callId":"c","toolId":"t","status":"ok"}}`,
			},
		},
	}
}

// The foreign dialect is the plain one with another name for a member of the
// envelope, so that dialect.Detect does not recognise it.

const native, toy = `"type"`, `"what"`

type foreignDecoder struct{ plainDecoder }

func (d foreignDecoder) Decode(dst []agentevents.Event, line []byte) ([]agentevents.Event, error) {
	out, err := d.plainDecoder.Decode(dst, []byte(strings.Replace(string(line), toy, native, 1)))
	if err == nil && out[len(out)-1].Extra("what") != "" {
		return dst, fmt.Errorf("a member is there twice")
	}
	return out, err
}

type foreignEncoder struct{ plainEncoder }

func (e *foreignEncoder) Append(dst []byte, ev agentevents.Event) ([]byte, error) {
	line, err := e.plainEncoder.Append(nil, ev)
	if was, derr := (foreignDecoder{}).Decode(nil, []byte(ev.Origin())); derr == nil {
		if same, werr := e.plainEncoder.Append(nil, was[0]); werr == nil && string(same) == string(line) {
			return append(append(dst, ev.Origin()...), '\n'), nil
		}
	}
	return append(dst, strings.Replace(string(line), native, toy, 1)...), err
}

func foreign() Dialect {
	d := plain()
	d.Name = "toy"
	d.Decoder = func() agentevents.Decoder { return foreignDecoder{} }
	d.Encoder = func() dialect.Encoder { return &foreignEncoder{} }
	d.Golden = slices.Clone(d.Golden[:2])
	for i := range d.Golden {
		d.Golden[i].Lines = strings.Replace(d.Golden[i].Lines, native, toy, 1)
	}
	d.Unknown = strings.Replace(d.Golden[0].Lines, "agent.started", "toy.other", 1)
	return d
}

// The small dialect is the foreign one with only two kinds. The standard run has
// neither.

type smallEncoder struct{ foreignEncoder }

func (e *smallEncoder) Append(dst []byte, ev agentevents.Event) ([]byte, error) {
	switch ev.Payload.(type) {
	case *agentevents.RunPaused, *agentevents.RunResumed, *agentevents.Unknown:
		return e.foreignEncoder.Append(dst, ev)
	}
	return dst, e.losses.Refuse(&ev)
}

func small() Dialect {
	d := foreign()
	d.Encoder = func() dialect.Encoder { return &smallEncoder{} }
	paused := envelope("", &agentevents.RunPaused{Reason: "lunch"})
	d.Golden = []Golden{{
		Name:   "paused",
		Lines:  `{"id":"e1","sequence":3,"timestamp":"2026-05-05T09:00:01.200Z","what":"run.paused","runId":"r1","schemaVersion":"1.0","payload":{"reason":"lunch"}}`,
		Events: []agentevents.Event{paused},
		Build:  true,
	}}
	d.Unknown = strings.Replace(d.Golden[0].Lines, "run.paused", "toy.other", 1)
	d.Story = func(runID string) []agentevents.Event {
		resumed := paused
		resumed.ID, resumed.Sequence, resumed.Payload = "e2", 4, &agentevents.RunResumed{}
		events := []agentevents.Event{paused, resumed}
		for i := range events {
			events[i].RunID = runID
			events[i].ID += runID
		}
		return events
	}
	return d
}

// The joining dialect has few kinds and no ids, numbers, marks or traces. A call
// and its return are one line. Its lines are native ones with a word of its own
// in place of the id.

const lineID = "line"

type joiningDecoder struct {
	numbers dialect.Numbers
	count   int
}

func (d *joiningDecoder) Decode(dst []agentevents.Event, line []byte) ([]agentevents.Event, error) {
	d.count++
	var ev agentevents.Event
	if err := ev.UnmarshalJSON(line); err != nil {
		return dst, err
	}
	if ev.ID != lineID {
		return dst, fmt.Errorf("not a line of this dialect")
	}
	ev = kept(&ev)
	ev.ID = dialect.DerivedID(string(line), d.count, 0)
	ev.Sequence = d.numbers.Next(ev.RunID)
	ev.SchemaVersion = agentevents.SchemaVersion
	if p, ok := ev.Payload.(*agentevents.ToolReturned); ok {
		p.CallID = dialect.DerivedID(string(line), d.count, 1)
	}
	return append(dst, ev), nil
}

func (d *joiningDecoder) End(dst []agentevents.Event) ([]agentevents.Event, error) { return dst, nil }

type joiningEncoder struct {
	losses dialect.Losses
	open   map[[3]string]*agentevents.Event
	reader joiningDecoder // of the lines so far
}

func callKey(ev *agentevents.Event, call string) [3]string {
	return [3]string{ev.RunID, ev.AgentID, call}
}

func (e *joiningEncoder) Append(dst []byte, ev agentevents.Event) ([]byte, error) {
	if text := ev.Origin(); text != "" && saysSame(ev, text) {
		_, _ = e.reader.Decode(nil, []byte(text))
		return append(append(dst, text...), '\n'), nil // nothing is lost
	}
	if _, err := ev.AppendJSON(nil); err != nil {
		return dst, err
	}
	callID := ""
	switch p := ev.Payload.(type) {
	case *agentevents.AgentStarted, *agentevents.AgentEnded, *agentevents.AuditChecked, *agentevents.AgentTransition, *agentevents.Unknown:
	case *agentevents.ToolCalled:
		if e.open == nil {
			e.open = map[[3]string]*agentevents.Event{}
		}
		e.open[callKey(&ev, p.CallID)] = &ev
		return dst, nil
	case *agentevents.ToolReturned:
		out := *p
		callID = p.CallID
		key := callKey(&ev, callID)
		if call := e.open[key]; call != nil && !p.OneEvent {
			delete(e.open, key)
			called := call.Payload.(*agentevents.ToolCalled)
			out.OneEvent, out.Arguments, out.ArgumentsSummary = true, called.Arguments, called.ArgumentsSummary
			e.lose(call, &agentevents.Event{Payload: called})
			e.losses.Drop(call, "/causationId", call.CausationID != "")
			e.losses.Drop(call, "/timestamp", !p.Duration.OK || !ev.Time.Add(-p.Duration.V).Equal(call.Time))
			e.losses.Drop(call, "/payload/callId", true)
			e.losses.Drop(call, "/payload/attempt", called.Attempt.OK)
			e.losses.Drop(call, "/payload/retryOf", called.RetryOf != "")
			e.losses.Drop(call, "/payload/approvalId", called.ApprovalID != "")
			e.losses.Drop(call, "/payload/argumentsText", called.ArgumentsText)
			e.losses.Drop(call, "/payload/argsHash", called.ArgsHash != "")
			e.losses.Drop(call, "/payload/principal", called.Principal != "")
			e.losses.Drop(call, "/payload/transport", called.Transport != "")
			e.losses.Drop(call, "/payload/attributes", called.Attributes != "")
			e.losses.DropExtras(call, "")
		} else if !p.OneEvent {
			out.OneEvent = true
			e.losses.Add(&ev, dialect.Made, "/payload/oneEvent", "there is no call")
		}
		out.CallID = "none"
		ev.Payload = &out
	default:
		return dst, e.losses.Refuse(&ev)
	}
	if _, ok := ev.Payload.(*agentevents.ToolReturned); ok {
		e.losses.Drop(&ev, "/causationId", ev.CausationID != "")
		ev.CausationID = ""
	}
	return e.line(dst, ev, callID)
}

// lose lists as dropped the facts that no line has. A reader may make up the same id or number.
func (e *joiningEncoder) lose(ev, back *agentevents.Event) {
	e.losses.Drop(ev, "/id", back.ID != ev.ID)
	e.losses.Drop(ev, "/sequence", back.Sequence != ev.Sequence)
	e.losses.Drop(ev, "/schemaVersion", ev.SchemaVersion != "")
	e.losses.Drop(ev, "/marks", ev.Marks != 0)
	e.losses.Drop(ev, "/traceId", ev.TraceID != "")
	e.losses.Drop(ev, "/spanId", ev.SpanID != "")
	e.losses.Drop(ev, "/parentSpanId", ev.ParentSpanID != "")
}

func (e *joiningEncoder) line(dst []byte, ev agentevents.Event, callID string) ([]byte, error) {
	out, err := e.canonical(dst, ev)
	if err != nil {
		return dst, err
	}
	back, err := e.reader.Decode(nil, out[len(dst):len(out)-1])
	if err != nil {
		return dst, err
	}
	e.lose(&ev, &back[0])
	if p, ok := back[0].Payload.(*agentevents.ToolReturned); ok {
		e.losses.Drop(&ev, "/payload/callId", p.CallID != callID)
	}
	return out, nil
}

// kept returns the part of an event that lines have.
func kept(ev *agentevents.Event) agentevents.Event {
	out := agentevents.Event{Time: ev.Time, RunID: ev.RunID, Scope: ev.Scope, AgentID: ev.AgentID, Actor: ev.Actor, ParentAgentID: ev.ParentAgentID,
		ParentCallID: ev.ParentCallID, Step: ev.Step, CausationID: ev.CausationID, Payload: ev.Payload}
	for name, value := range ev.Extras() { // they stand at the end, and an event from another origin has none
		_ = out.SetExtra(name, value)
	}
	return out
}

func (e *joiningEncoder) canonical(dst []byte, ev agentevents.Event) ([]byte, error) {
	out := kept(&ev)
	out.ID = lineID
	line, err := out.AppendJSON(nil)
	if err != nil {
		return dst, err
	}
	return append(append(dst, line...), '\n'), nil
}

// saysSame reports whether the event still equals the line from which it was read.
func saysSame(ev agentevents.Event, line string) bool {
	was, err := new(joiningDecoder).Decode(nil, []byte(line))
	if err != nil || len(was) != 1 {
		return false
	}
	for _, of := range []*agentevents.Event{&was[0], &ev} { // call ids depend on the place in the log
		if p, ok := of.Payload.(*agentevents.ToolReturned); ok && p.OneEvent {
			out := *p
			out.CallID = "none"
			of.Payload = &out
		}
	}
	a, err := new(joiningEncoder).canonical(nil, was[0])
	if err != nil {
		return false
	}
	b, err := new(joiningEncoder).canonical(nil, ev)
	return err == nil && string(a) == string(b)
}

func (e *joiningEncoder) End(dst []byte) ([]byte, error) {
	for key, call := range e.open {
		e.losses.Add(call, dialect.Dropped, "", "the call never returned")
		delete(e.open, key)
	}
	return dst, nil
}

func (e *joiningEncoder) Losses() []dialect.Loss { return e.losses.List() }

func joining() Dialect {
	return Dialect{
		Name:    dialect.Native, // the result of dialect.Detect
		Decoder: func() agentevents.Decoder { return &joiningDecoder{} },
		Encoder: func() dialect.Encoder { return &joiningEncoder{} },
		Golden: []Golden{
			{Name: "audit", Lines: `{"id":"line","sequence":0,"timestamp":"2026-05-05T09:00:01.200Z","type":"audit.checked","runId":"r1","agentId":"coder","payload":{"checkpointId":"c","result":"pass","durationMs":5}}`,
				Events: []agentevents.Event{{RunID: "r1", AgentID: "coder", Payload: &agentevents.AuditChecked{CheckpointID: "c", Result: agentevents.AuditPass, Duration: 5e6}}}},
			{Name: "call", Lines: strings.ReplaceAll(`{"id":"line","sequence":0,"timestamp":"2026-05-05T09:00:01.200Z","type":"agent.toolReturned","runId":"r1","agentId":"coder","payload":
{"callId":"none","toolId":"t","status":"ok","oneEvent":true,"arguments":{"a":[1.50]}}}`, "\n", "")},
		},
	}
}
