package main

import (
	crand "crypto/rand"
	"encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
	"strconv"
	"sync"
	"time"

	ae "github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/internal/jsonwire"
)

// The floor is a lower bound for Emit: the same stamp, the same encoding and the same
// write under one mutex, without any check of rules. It is written by hand for the
// payloads of the loads, with the primitives of the library's encoder. It does check raw
// JSON, because the encoder must: a damaged value breaks the line.

// A stamp has the fields that an emitter adds to an event.
type stamp struct {
	id, cause  [36]byte
	caused     bool
	sequence   uint64
	time       time.Time
	run, agent string
	step       int

	rng  *rand.ChaCha8
	last int64
	seq  uint16
}

func newStamp() *stamp {
	var seed [32]byte
	_, _ = crand.Read(seed[:])
	return &stamp{rng: rand.NewChaCha8(seed), run: "run-00042", agent: "coder", sequence: 1} // the state after startAgent
}

// next stamps the next event: id, time, sequence, step, cause.
func (st *stamp) next(p ae.Payload) {
	st.caused = false
	switch p := p.(type) {
	case *ae.AgentTransition:
		if p.To == ae.StatusThinking {
			st.step++
		}
	case *ae.ToolReturned:
		if !p.OneEvent {
			st.caused, st.cause = true, st.id // the event before is the call
		}
	}
	st.sequence++
	st.time = time.Now().UTC().Truncate(time.Millisecond)
	st.newID()
}

// newID makes a UUIDv7 as the library does.
func (st *stamp) newID() {
	if ms := st.time.UnixMilli(); ms > st.last {
		st.last, st.seq = ms, uint16(st.rng.Uint64())&0x7ff
	} else if st.seq++; st.seq > 0xfff {
		st.last++
		st.seq = 0
	}
	var u [16]byte
	binary.BigEndian.PutUint64(u[0:], uint64(st.last)<<16|0x7000|uint64(st.seq))
	binary.BigEndian.PutUint64(u[8:], st.rng.Uint64()&^(3<<62)|2<<62)
	const digits = "0123456789abcdef"
	at := 0
	for i, b := range u {
		switch i {
		case 4, 6, 8, 10:
			st.id[at] = '-'
			at++
		}
		st.id[at], st.id[at+1] = digits[b>>4], digits[b&15]
		at += 2
	}
}

// appendLine appends the line of the payload, without a newline.
func (st *stamp) appendLine(dst []byte, p ae.Payload) ([]byte, error) {
	dst = append(append(append(dst, `{"id":"`...), st.id[:]...), `","sequence":`...)
	dst = strconv.AppendUint(dst, st.sequence, 10)
	dst = append(dst, `,"timestamp":`...)
	dst = jsonwire.AppendTime(dst, st.time)
	switch p.(type) {
	case *ae.AgentTransition:
		dst = append(dst, `,"type":"agent.transition","runId":`...)
	case *ae.ToolReturned:
		dst = append(dst, `,"type":"agent.toolReturned","runId":`...)
	case *ae.ToolCalled:
		dst = append(dst, `,"type":"agent.toolCalled","runId":`...)
	case *ae.TextDelta:
		dst = append(dst, `,"type":"agent.text.delta","runId":`...)
	default:
		return dst, fmt.Errorf("the floor does not know %T", p)
	}
	dst = jsonwire.AppendString(dst, st.run)
	dst = append(dst, `,"agentId":`...)
	dst = jsonwire.AppendString(dst, st.agent)
	dst = append(dst, `,"step":`...)
	dst = strconv.AppendInt(dst, int64(st.step), 10)
	if st.caused {
		dst = append(append(append(dst, `,"causationId":"`...), st.cause[:]...), '"')
	}
	dst = append(dst, `,"schemaVersion":"1.0","payload":{`...)
	switch p := p.(type) {
	case *ae.AgentTransition:
		dst = jsonwire.AppendString(append(dst, `"from":`...), string(p.From))
		dst = jsonwire.AppendString(append(dst, `,"to":`...), string(p.To))
		dst = jsonwire.AppendString(append(dst, `,"reason":`...), p.Reason)
	case *ae.ToolReturned:
		dst = jsonwire.AppendString(append(dst, `"callId":`...), p.CallID)
		dst = jsonwire.AppendString(append(dst, `,"toolId":`...), p.ToolID)
		dst = jsonwire.AppendString(append(dst, `,"status":`...), string(p.Status))
		if p.Result != "" {
			raw, err := jsonwire.Compact(string(p.Result))
			if err != nil {
				return dst, err
			}
			dst = append(append(dst, `,"result":`...), raw...)
		}
		if p.ResultSummary != "" {
			dst = jsonwire.AppendString(append(dst, `,"resultSummary":`...), p.ResultSummary)
		}
		dst = jsonwire.AppendMillis(append(dst, `,"durationMs":`...), p.Duration.V)
		if p.OneEvent {
			dst = append(dst, `,"oneEvent":true`...)
		}
	case *ae.ToolCalled:
		raw, err := jsonwire.Compact(string(p.Arguments))
		if err != nil {
			return dst, err
		}
		dst = jsonwire.AppendString(append(dst, `"callId":`...), p.CallID)
		dst = jsonwire.AppendString(append(dst, `,"toolId":`...), p.ToolID)
		dst = append(append(dst, `,"arguments":`...), raw...)
	case *ae.TextDelta:
		dst = jsonwire.AppendString(append(dst, `"blockId":`...), p.BlockID)
		dst = jsonwire.AppendString(append(dst, `,"delta":`...), p.Delta)
	}
	return append(dst, '}', '}'), nil
}

// floor returns the floor's emit.
func (l load) floor() (func(int) error, error) {
	f, err := newOverwriter()
	if err != nil {
		return nil, err
	}
	var (
		mu   sync.Mutex
		st   = newStamp()
		w    = &lineBuffer{w: f}
		line []byte
	)
	return func(i int) error {
		mu.Lock()
		defer mu.Unlock()
		p := l.payloads[i]
		st.next(p)
		line, err = st.appendLine(line[:0], p)
		if err != nil {
			return err
		}
		line = append(line, '\n')
		_, err := w.Write(line)
		return err
	}, nil
}

func kindOf(p ae.Payload) ae.Kind {
	switch p.(type) {
	case *ae.AgentTransition:
		return ae.KindAgentTransition
	case *ae.ToolReturned:
		return ae.KindToolReturned
	case *ae.ToolCalled:
		return ae.KindToolCalled
	}
	return ae.KindTextDelta
}

// A lineBuffer writes in blocks, as the library's buffered Writer does.
type lineBuffer struct {
	w   io.Writer
	buf []byte
}

func (b *lineBuffer) Write(p []byte) (int, error) {
	b.buf = append(b.buf, p...)
	if len(b.buf) < bufferSize {
		return len(p), nil
	}
	_, err := b.w.Write(b.buf)
	b.buf = b.buf[:0]
	return len(p), err
}
