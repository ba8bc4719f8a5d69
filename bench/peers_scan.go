package main

import (
	"bytes"
	"errors"
	"iter"
	"time"
	"unsafe"

	"github.com/minio/simdjson-go"
	"github.com/valyala/fastjson"

	ae "github.com/agentevents/agentevents"
)

// These peers parse a line into a structure of their own, from which the fold takes
// single members.

// text converts bytes to a string without a copy. The hand fold keeps no such string.
func text(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

func simdjsonSupported() error {
	if !simdjson.SupportedCPU() {
		return errors.New("simdjson-go needs amd64 with AVX2")
	}
	return nil
}

// foldSimdjson is the hand fold of ParseND's result.
func foldSimdjson(log []byte) (handFold, error) {
	pj, err := simdjson.ParseND(log, nil)
	if err != nil {
		return nil, err
	}
	f := handFold{}
	var object, inner simdjson.Object
	err = pj.ForEach(func(it simdjson.Iter) error {
		o, err := it.Object(&object)
		if err != nil {
			return err
		}
		v := view{step: -1}
		var member, payload simdjson.Iter
		for {
			name, t, err := o.NextElementBytes(&member)
			if err != nil {
				return err
			}
			if t == simdjson.TypeNone {
				break
			}
			switch string(name) {
			case "type":
				err = simdText(&v.kind, &member)
			case "runId":
				err = simdText(&v.run, &member)
			case "agentId":
				err = simdText(&v.agent, &member)
			case "step":
				var step int64
				step, err = member.Int()
				v.step = int(step)
			case "payload":
				payload = member
			}
			if err != nil {
				return err
			}
		}
		switch ae.Kind(v.kind) {
		case ae.KindAgentTransition, ae.KindToolReturned, ae.KindTextDelta:
			if o, err = payload.Object(&inner); err != nil {
				return err
			}
			for {
				name, t, err := o.NextElementBytes(&member)
				if err != nil {
					return err
				}
				if t == simdjson.TypeNone {
					break
				}
				switch string(name) {
				case "from":
					err = simdText(&v.from, &member)
				case "to":
					err = simdText(&v.to, &member)
				case "status":
					err = simdText(&v.status, &member)
				case "delta":
					err = simdText(&v.text, &member)
				case "durationMs":
					v.durationMs, err = member.Float()
				case "oneEvent":
					v.oneEvent, err = member.Bool()
				}
				if err != nil {
					return err
				}
			}
		}
		f.add(&v)
		return nil
	})
	return f, err
}

func simdText(dst *string, it *simdjson.Iter) error {
	b, err := it.StringBytes()
	*dst = text(b)
	return err
}

// simdjsonEvents yields the library's events for the library's fold, made from the
// structure of ParseND. As with the reflecting decoders, kinds without code here go
// through the library's UnmarshalJSON.
func simdjsonEvents(log []byte) iter.Seq2[ae.Event, error] {
	return func(yield func(ae.Event, error) bool) {
		pj, err := simdjson.ParseND(log, nil)
		if err != nil {
			yield(ae.Event{}, err)
			return
		}
		rest := log
		done := errors.New("done")
		err = pj.ForEach(func(it simdjson.Iter) error {
			line, tail, _ := bytes.Cut(rest, []byte("\n"))
			rest = tail
			ev, err := simdEvent(&it, line)
			if !yield(ev, err) {
				return done
			}
			return nil
		})
		if err != nil && err != done {
			yield(ae.Event{}, err)
		}
	}
}

func simdEvent(it *simdjson.Iter, line []byte) (ev ae.Event, err error) {
	o, err := it.Object(nil)
	if err != nil {
		return ev, err
	}
	var member, payload simdjson.Iter
	var kind string
	for {
		name, t, err := o.NextElementBytes(&member)
		if err != nil {
			return ev, err
		}
		if t == simdjson.TypeNone {
			break
		}
		switch string(name) {
		case "id":
			ev.ID, err = member.String()
		case "sequence":
			ev.Sequence, err = member.Uint()
		case "timestamp":
			var s string
			if err = simdText(&s, &member); err == nil {
				ev.Time, err = time.Parse(time.RFC3339Nano, s)
			}
		case "type":
			err = simdText(&kind, &member)
		case "runId":
			ev.RunID, err = member.String()
		case "sessionId":
			ev.SessionID, err = member.String()
		case "workflowId":
			ev.WorkflowID, err = member.String()
		case "nodeId":
			ev.NodeID, err = member.String()
		case "agentId":
			ev.AgentID, err = member.String()
		case "causationId":
			ev.CausationID, err = member.String()
		case "schemaVersion":
			ev.SchemaVersion, err = member.String()
		case "step":
			var step int64
			step, err = member.Int()
			ev.Step = ae.Some(int(step))
		case "payload":
			payload = member
		}
		if err != nil {
			return ev, err
		}
	}
	if known, err := simdPayload(&ev, ae.Kind(kind), &payload); known {
		return ev, err
	}
	ev = ae.Event{}
	return ev, ev.UnmarshalJSON(line)
}

// simdPayload reads a payload of the kinds that the log has most of, and reports whether it is one.
func simdPayload(ev *ae.Event, kind ae.Kind, payload *simdjson.Iter) (known bool, err error) {
	switch kind {
	case ae.KindAgentTransition:
		p := &ae.AgentTransition{}
		ev.Payload = p
		return true, simdMembers(payload, func(name string, it *simdjson.Iter) (err error) {
			switch name {
			case "from":
				err = simdString(&p.From, it)
			case "to":
				err = simdString(&p.To, it)
			case "reason":
				err = simdString(&p.Reason, it)
			}
			return err
		})
	case ae.KindTextDelta:
		p := &ae.TextDelta{}
		ev.Payload = p
		return true, simdMembers(payload, func(name string, it *simdjson.Iter) (err error) {
			switch name {
			case "blockId":
				err = simdString(&p.BlockID, it)
			case "delta":
				err = simdString(&p.Delta, it)
			}
			return err
		})
	case ae.KindTextCompleted:
		p := &ae.TextCompleted{}
		ev.Payload = p
		return true, simdMembers(payload, func(name string, it *simdjson.Iter) (err error) {
			switch name {
			case "blockId":
				err = simdString(&p.BlockID, it)
			case "text":
				err = simdString(&p.Text, it)
			}
			return err
		})
	case ae.KindToolCalled:
		p := &ae.ToolCalled{}
		ev.Payload = p
		return true, simdMembers(payload, func(name string, it *simdjson.Iter) (err error) {
			switch name {
			case "callId":
				err = simdString(&p.CallID, it)
			case "toolId":
				err = simdString(&p.ToolID, it)
			case "arguments":
				err = simdRaw(&p.Arguments, it)
			}
			return err
		})
	case ae.KindToolReturned:
		p := &ae.ToolReturned{}
		ev.Payload = p
		return true, simdMembers(payload, func(name string, it *simdjson.Iter) (err error) {
			switch name {
			case "callId":
				err = simdString(&p.CallID, it)
			case "toolId":
				err = simdString(&p.ToolID, it)
			case "status":
				err = simdString(&p.Status, it)
			case "result":
				err = simdRaw(&p.Result, it)
			case "resultSummary":
				err = simdString(&p.ResultSummary, it)
			case "argumentsSummary":
				err = simdString(&p.ArgumentsSummary, it)
			case "durationMs":
				var ms float64
				ms, err = it.Float()
				p.Duration = ae.Some(milliseconds(ms))
			case "oneEvent":
				p.OneEvent, err = it.Bool()
			case "error":
				p.Error.OK = true
				err = simdMembers(it, func(name string, it *simdjson.Iter) (err error) {
					switch name {
					case "code":
						err = simdString(&p.Error.V.Code, it)
					case "message":
						err = simdString(&p.Error.V.Message, it)
					}
					return err
				})
			}
			return err
		})
	}
	return false, nil
}

func simdMembers(it *simdjson.Iter, f func(name string, it *simdjson.Iter) error) error {
	var object simdjson.Object
	o, err := it.Object(&object)
	if err != nil {
		return err
	}
	var member simdjson.Iter
	for {
		name, t, err := o.NextElementBytes(&member)
		if err != nil || t == simdjson.TypeNone {
			return err
		}
		if err := f(text(name), &member); err != nil {
			return err
		}
	}
}

func simdString[S ~string](dst *S, it *simdjson.Iter) error {
	s, err := it.String()
	*dst = S(s)
	return err
}

func simdRaw(dst *ae.JSON, it *simdjson.Iter) error {
	b, err := it.MarshalJSON()
	*dst = ae.JSON(text(b))
	return err
}

// foldFastjson is the hand fold of fastjson's result.
func foldFastjson(log []byte) (handFold, error) {
	f := handFold{}
	var parser fastjson.Parser
	var v view
	var payload *fastjson.Value
	envelope := func(name []byte, m *fastjson.Value) {
		switch string(name) {
		case "type":
			v.kind = text(m.GetStringBytes())
		case "runId":
			v.run = text(m.GetStringBytes())
		case "agentId":
			v.agent = text(m.GetStringBytes())
		case "step":
			v.step = m.GetInt()
		case "payload":
			payload = m
		}
	}
	members := func(name []byte, m *fastjson.Value) {
		switch string(name) {
		case "from":
			v.from = text(m.GetStringBytes())
		case "to":
			v.to = text(m.GetStringBytes())
		case "status":
			v.status = text(m.GetStringBytes())
		case "delta":
			v.text = text(m.GetStringBytes())
		case "durationMs":
			v.durationMs = m.GetFloat64()
		case "oneEvent":
			v.oneEvent = m.GetBool()
		}
	}
	for line, err := range lines(log) {
		if err != nil {
			return nil, err
		}
		root, err := parser.ParseBytes(line)
		if err != nil {
			return nil, err
		}
		object, err := root.Object()
		if err != nil {
			return nil, err
		}
		v, payload = view{step: -1}, nil
		object.Visit(envelope)
		switch ae.Kind(v.kind) {
		case ae.KindAgentTransition, ae.KindToolReturned, ae.KindTextDelta:
			if object, err = payload.Object(); err != nil {
				return nil, err
			}
			object.Visit(members)
		}
		f.add(&v)
	}
	return f, nil
}
