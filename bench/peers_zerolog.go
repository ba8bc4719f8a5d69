package main

import (
	"io"
	"sync"
	"time"

	"github.com/rs/zerolog"
)

// zerolog writes the library's line here. It does not check raw JSON.

func newZerolog(w io.Writer) zerolog.Logger {
	zerolog.TimeFieldFormat = time.RFC3339Nano // the fastest format of zerolog
	return zerolog.New(w)
}

// logSample writes a sample with its own stamps.
func logSample(log *zerolog.Logger, s *sample) {
	m := s.mirror
	e := log.Log().Str("id", m.ID).Uint64("sequence", m.Sequence).Time("timestamp", m.Timestamp).
		Str("type", m.Type).Str("runId", m.RunID).
		Str("agentId", m.AgentID).Int("step", *m.Step)
	if m.CausationID != "" {
		e = e.Str("causationId", m.CausationID)
	}
	e.Str("schemaVersion", m.SchemaVersion).Object("payload", m.Payload.(zerolog.LogObjectMarshaler)).Send()
}

// logStamped writes a payload with the stamps of st.
func logStamped(log *zerolog.Logger, st *stamp, kind string, payload zerolog.LogObjectMarshaler) {
	e := log.Log().Bytes("id", st.id[:]).Uint64("sequence", st.sequence).Time("timestamp", st.time).
		Str("type", kind).Str("runId", st.run).
		Str("agentId", st.agent).Int("step", st.step)
	if st.caused {
		e = e.Bytes("causationId", st.cause[:])
	}
	e.Str("schemaVersion", "1.0").Object("payload", payload).Send()
}

func (p *transition) MarshalZerologObject(e *zerolog.Event) {
	e.Str("from", p.From).Str("to", p.To).Str("reason", p.Reason)
}

func (p *textDelta) MarshalZerologObject(e *zerolog.Event) {
	e.Str("blockId", p.BlockID).Str("delta", p.Delta)
}

func (p *toolCalled[R]) MarshalZerologObject(e *zerolog.Event) {
	e.Str("callId", p.CallID).Str("toolId", p.ToolID).RawJSON("arguments", p.Arguments)
}

func (p *toolReturned[R]) MarshalZerologObject(e *zerolog.Event) {
	e.Str("callId", p.CallID).Str("toolId", p.ToolID).Str("status", p.Status)
	if p.Result != nil {
		e.RawJSON("result", p.Result)
	}
	if p.ResultSummary != "" {
		e.Str("resultSummary", p.ResultSummary)
	}
	e.Float64("durationMs", *p.DurationMs)
	if p.OneEvent {
		e.Bool("oneEvent", true)
	}
}

// zerolog returns an emit that stamps like the floor, and writes with zerolog.
func (l load) zerolog() (func(int) error, error) {
	f, err := newOverwriter()
	if err != nil {
		return nil, err
	}
	var (
		mu  sync.Mutex
		st  = newStamp()
		log = newZerolog(&lineBuffer{w: f})
	)
	return func(i int) error {
		mu.Lock()
		defer mu.Unlock()
		p := l.payloads[i]
		st.next(p)
		logStamped(&log, st, string(kindOf(p)), l.mirrors[i].(zerolog.LogObjectMarshaler))
		return nil
	}, nil
}
