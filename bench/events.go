package main

import (
	"encoding/json"
	"strings"
	"time"

	ae "github.com/agentevents/agentevents"
)

// samples are four events that stress different things: T a short line, U a text of 500
// bytes with some escapes, W nested raw JSON of about 330 bytes, D a delta.
var samples = []*sample{
	newSample("T", &ae.AgentTransition{From: ae.StatusThinking, To: ae.StatusToolCall, Reason: "tool_call:Read"},
		&transition{From: "thinking", To: "tool_call", Reason: "tool_call:Read"}),
	newSample("U", &ae.ToolReturned{
		CallID: "toolu_01A09q90qw90lq917835lq9", ToolID: "Bash", Status: ae.ToolStatusOK,
		ResultSummary: outputText, Duration: ae.Some(412 * time.Millisecond), OneEvent: true},
		&toolReturned[json.RawMessage]{
			CallID: "toolu_01A09q90qw90lq917835lq9", ToolID: "Bash", Status: "ok",
			ResultSummary: outputText, DurationMs: ptr(412.0), OneEvent: true,
		}),
	newSample("W", &ae.ToolCalled{CallID: "toolu_01A09q90qw90lq917835lqA", ToolID: "db:query", Arguments: argumentsText},
		&toolCalled[json.RawMessage]{
			CallID: "toolu_01A09q90qw90lq917835lqA", ToolID: "db:query", Arguments: json.RawMessage(argumentsText),
		}),
	newSample("D", &ae.TextDelta{BlockID: "msg_1:0", Delta: "and then the next few words"},
		&textDelta{BlockID: "msg_1:0", Delta: "and then the next few words"}),
}

var outputText = strings.Repeat("ok  \texample.com/agentevents/internal/wire (cached)  coverage: "+
	"91.2% of \"statements\"\n", 6)[:500]

const argumentsText = `{"query":"select id, title from docs where title match ?","params":["agent events",42,true,null],` +
	`"options":{"limit":50,"offset":0,"order":[{"by":"score","dir":"desc"},{"by":"id","dir":"asc"}],"timeoutMs":1500.5},` +
	`"context":{"repo":"example/agentevents","ref":"refs/heads/main","paths":["internal/wire","cmd"],"depth":3}}`

// A sample is one of the four events, as the library's event and as a struct from which
// reflecting encoders write the same line.
type sample struct {
	name   string
	event  ae.Event
	mirror *envelope
}

func newSample(name string, p ae.Payload, mirror any) *sample {
	ev := ae.Event{
		ID: "01a1ffa6-3d64-76a9-bd6f-2c3e675e0fd2", Sequence: 4217,
		Time: time.Date(2026, 5, 5, 9, 0, 1, 412e6, time.UTC), RunID: "run-00042",
		AgentID: "coder", Step: ae.Some(3), SchemaVersion: ae.SchemaVersion, Payload: p,
	}
	return &sample{name: name, event: ev, mirror: &envelope{
		ID: ev.ID, Sequence: ev.Sequence, Timestamp: ev.Time, Type: string(ev.Kind()), RunID: ev.RunID,
		AgentID: ev.AgentID, Step: ptr(3), SchemaVersion: ev.SchemaVersion, Payload: mirror,
	}}
}

func ptr[T any](v T) *T { return &v }

// The structs below are the native line for reflecting encoders and decoders. Times are whole
// milliseconds, so time.Time writes the same text as the library.

// An envelope is a line with any payload, for encoders.
type envelope struct {
	ID            string    `json:"id"`
	Sequence      uint64    `json:"sequence"`
	Timestamp     time.Time `json:"timestamp"`
	Type          string    `json:"type"`
	RunID         string    `json:"runId"`
	AgentID       string    `json:"agentId,omitempty"`
	Step          *int      `json:"step,omitempty"`
	CausationID   string    `json:"causationId,omitempty"`
	SchemaVersion string    `json:"schemaVersion,omitempty"`
	Payload       any       `json:"payload"`
}

// A rawEnvelope is the result of the first of two passes. R is the decoder's type for
// raw JSON.
type rawEnvelope[R ~[]byte] struct {
	header
	Payload R `json:"payload"`
}

type header struct {
	ID            string    `json:"id"`
	Sequence      uint64    `json:"sequence"`
	Timestamp     time.Time `json:"timestamp"`
	Type          string    `json:"type"`
	RunID         string    `json:"runId"`
	SessionID     string    `json:"sessionId"`
	WorkflowID    string    `json:"workflowId"`
	NodeID        string    `json:"nodeId"`
	AgentID       string    `json:"agentId"`
	Step          *int      `json:"step"`
	CausationID   string    `json:"causationId"`
	SchemaVersion string    `json:"schemaVersion"`
	Marks         []string  `json:"marks"`
}

type transition struct {
	From   string `json:"from"`
	To     string `json:"to"`
	Reason string `json:"reason,omitempty"`
}

type textDelta struct {
	BlockID string `json:"blockId,omitempty"`
	Delta   string `json:"delta"`
	Index   *int   `json:"index,omitempty"`
}

type textCompleted struct {
	BlockID string `json:"blockId,omitempty"`
	Text    string `json:"text"`
}

type toolCalled[R ~[]byte] struct {
	CallID           string `json:"callId"`
	ToolID           string `json:"toolId"`
	Arguments        R      `json:"arguments,omitempty"`
	ArgumentsSummary string `json:"argumentsSummary,omitempty"`
	Attempt          *int   `json:"attempt,omitempty"`
	RetryOf          string `json:"retryOf,omitempty"`
}

type toolReturned[R ~[]byte] struct {
	CallID           string     `json:"callId"`
	ToolID           string     `json:"toolId"`
	Status           string     `json:"status"`
	Result           R          `json:"result,omitempty"`
	ResultSummary    string     `json:"resultSummary,omitempty"`
	Error            *errorInfo `json:"error,omitempty"`
	DurationMs       *float64   `json:"durationMs,omitempty"`
	OneEvent         bool       `json:"oneEvent,omitempty"`
	Arguments        R          `json:"arguments,omitempty"`
	ArgumentsSummary string     `json:"argumentsSummary,omitempty"`
}

type errorInfo struct {
	Code    string `json:"code,omitempty"`
	Message string `json:"message"`
}

// other stands for the kinds without a struct here, 3 % of the log. It has a few members
// that many of them have.
type other struct {
	Name       string   `json:"name"`
	Reason     string   `json:"reason"`
	Status     string   `json:"status"`
	Message    any      `json:"message"`
	Result     any      `json:"result"`
	DurationMs *float64 `json:"durationMs"`
}
