package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"iter"
	"time"

	"github.com/bytedance/sonic"
	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	goccy "github.com/goccy/go-json"
	segmentio "github.com/segmentio/encoding/json"

	ae "github.com/agentevents/agentevents"
)

// These peers work by reflection.

// A marshaler encodes the mirror of a sample.
type marshaler struct {
	name    string
	marshal func(v any) ([]byte, error)
	mirror  func(s *sample) *envelope
}

var marshalers = []marshaler{
	{"encoding/json Marshal", json.Marshal, stdMirror},
	{"json/v2 Marshal", func(v any) ([]byte, error) { return jsonv2.Marshal(v) }, textMirror},
	{"segmentio Append", appendSegmentio(), stdMirror},
	{"goccy Marshal", goccy.Marshal, stdMirror},
	{"sonic Marshal", sonic.Marshal, stdMirror},
}

func stdMirror(s *sample) *envelope { return s.mirror }

// textMirror returns the mirror with raw JSON in the type of json/v2, with which json/v2
// is fastest.
func textMirror(s *sample) *envelope {
	e := *s.mirror
	switch p := e.Payload.(type) {
	case *toolCalled[json.RawMessage]:
		e.Payload = &toolCalled[jsontext.Value]{CallID: p.CallID, ToolID: p.ToolID, Arguments: jsontext.Value(p.Arguments)}
	case *toolReturned[json.RawMessage]:
		e.Payload = &toolReturned[jsontext.Value]{
			CallID: p.CallID, ToolID: p.ToolID, Status: p.Status,
			ResultSummary: p.ResultSummary, DurationMs: p.DurationMs, OneEvent: p.OneEvent,
		}
	}
	return &e
}

// appendSegmentio encodes into one buffer, and checks raw JSON.
func appendSegmentio() func(v any) ([]byte, error) {
	var buf []byte
	return func(v any) (_ []byte, err error) {
		buf, err = segmentio.Append(buf[:0], v, 0)
		return buf, err
	}
}

// A decoder reads a line in two passes: the envelope with the payload as raw JSON, and
// then the payload.
type decoder struct {
	name   string
	decode func(line []byte) (decoded, error)
}

var decoders = []decoder{
	{"encoding/json", twoPass[json.RawMessage](json.Unmarshal)},
	{"json/v2", twoPass[jsontext.Value](func(b []byte, v any) error { return jsonv2.Unmarshal(b, v) })},
	{"segmentio", twoPass[json.RawMessage](segmentio.Unmarshal)},
	{"goccy", twoPass[json.RawMessage](goccy.Unmarshal)},
	{"sonic", twoPass[json.RawMessage](sonic.Unmarshal)},
}

// decoded is the result of the two passes.
type decoded struct {
	header  header
	payload any // *transition, *textDelta, *textCompleted, *toolCalled, *toolReturned or *other
}

func twoPass[R ~[]byte](unmarshal func([]byte, any) error) func([]byte) (decoded, error) {
	return func(line []byte) (decoded, error) {
		var env rawEnvelope[R]
		if err := unmarshal(line, &env); err != nil {
			return decoded{}, err
		}
		out := decoded{header: env.header}
		var err error
		switch ae.Kind(env.Type) {
		case ae.KindAgentTransition:
			out.payload, err = payload[transition](unmarshal, env.Payload)
		case ae.KindTextDelta:
			out.payload, err = payload[textDelta](unmarshal, env.Payload)
		case ae.KindTextCompleted:
			out.payload, err = payload[textCompleted](unmarshal, env.Payload)
		case ae.KindToolCalled:
			out.payload, err = payload[toolCalled[R]](unmarshal, env.Payload)
		case ae.KindToolReturned:
			out.payload, err = payload[toolReturned[R]](unmarshal, env.Payload)
		default:
			out.payload, err = payload[other](unmarshal, env.Payload)
		}
		return out, err
	}
}

func payload[P any](unmarshal func([]byte, any) error, raw []byte) (*P, error) {
	p := new(P)
	return p, unmarshal(raw, p)
}

func (p *toolCalled[R]) event() ae.Payload {
	out := &ae.ToolCalled{
		CallID: p.CallID, ToolID: p.ToolID, Arguments: ae.JSON(p.Arguments),
		ArgumentsSummary: p.ArgumentsSummary, RetryOf: p.RetryOf,
	}
	if p.Attempt != nil {
		out.Attempt = ae.Some(*p.Attempt)
	}
	return out
}

func (p *toolReturned[R]) event() ae.Payload {
	out := &ae.ToolReturned{
		CallID: p.CallID, ToolID: p.ToolID, Status: ae.ToolStatus(p.Status),
		Result: ae.JSON(p.Result), ResultSummary: p.ResultSummary,
		OneEvent: p.OneEvent, Arguments: ae.JSON(p.Arguments), ArgumentsSummary: p.ArgumentsSummary,
	}
	if p.Error != nil {
		out.Error = ae.Some(ae.ErrorInfo{Code: p.Error.Code, Message: p.Error.Message})
	}
	if p.DurationMs != nil {
		out.Duration = ae.Some(milliseconds(*p.DurationMs))
	}
	return out
}

func (p *toolReturned[R]) outcome() (status string, durationMs float64, oneEvent bool) {
	if p.DurationMs != nil {
		durationMs = *p.DurationMs
	}
	return p.Status, durationMs, p.OneEvent
}

func milliseconds(ms float64) time.Duration {
	return time.Duration(ms*1e6 + 0.5)
}

// lines yields the lines of a log, read by a bufio.Scanner.
func lines(log []byte) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		s := bufio.NewScanner(bytes.NewReader(log))
		s.Buffer(make([]byte, 256<<10), 16<<20)
		for s.Scan() {
			if !yield(s.Bytes(), nil) {
				return
			}
		}
		if err := s.Err(); err != nil {
			yield(nil, err)
		}
	}
}

// events yields the library's events for the library's fold, decoded in two passes. The
// 5 % without a struct here go through the library's UnmarshalJSON, which favors the
// peer.
func (d decoder) events(log []byte) iter.Seq2[ae.Event, error] {
	return func(yield func(ae.Event, error) bool) {
		for line, err := range lines(log) {
			var ev ae.Event
			if err == nil {
				ev, err = d.event(line)
			}
			if !yield(ev, err) {
				return
			}
		}
	}
}

func (d decoder) event(line []byte) (ae.Event, error) {
	v, err := d.decode(line)
	if err != nil {
		return ae.Event{}, err
	}
	h := &v.header
	ev := ae.Event{
		ID: h.ID, Sequence: h.Sequence, Time: h.Timestamp, RunID: h.RunID,
		AgentID: h.AgentID, CausationID: h.CausationID, SchemaVersion: h.SchemaVersion,
		Scope: ae.Scope{SessionID: h.SessionID, WorkflowID: h.WorkflowID, NodeID: h.NodeID},
	}
	if h.Step != nil {
		ev.Step = ae.Some(*h.Step)
	}
	switch p := v.payload.(type) {
	case *transition:
		ev.Payload = &ae.AgentTransition{From: ae.AgentStatus(p.From), To: ae.AgentStatus(p.To), Reason: p.Reason}
	case *textDelta:
		d := &ae.TextDelta{BlockID: p.BlockID, Delta: p.Delta}
		if p.Index != nil {
			d.Index = ae.Some(*p.Index)
		}
		ev.Payload = d
	case *textCompleted:
		ev.Payload = &ae.TextCompleted{BlockID: p.BlockID, Text: p.Text}
	case interface{ event() ae.Payload }:
		ev.Payload = p.event()
	case *other:
		ev = ae.Event{}
		err = ev.UnmarshalJSON(line)
	default:
		err = fmt.Errorf("no payload %T", p)
	}
	return ev, err
}
