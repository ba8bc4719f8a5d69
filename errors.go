package agentevents

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Errors of the emitter's state, for errors.Is.
var (
	// ErrClosed means that the emitter or run was closed before the call.
	ErrClosed = errors.New("agentevents: closed")
	// ErrTooManyRuns means that EmitterOptions.MaxRuns runs are open.
	ErrTooManyRuns = errors.New("agentevents: too many open runs")
	// ErrRunReleased means that a run of this id ended or was closed here
	// before. Its sequence must not begin again: continue it with
	// Emitter.Resume.
	ErrRunReleased = errors.New("agentevents: run was released; continue it with Resume")
)

// A RuleError says that an event breaks a rule of the log. From the
// emitter it means that nothing was recorded; in a snapshot it is data.
//
// The text is for people and may change; match the fields.
type RuleError struct {
	Rule     Rule   `json:"rule"`             // which rule; stable
	Kind     Kind   `json:"kind,omitzero"`    // of the event
	RunID    string `json:"runId,omitzero"`   // of the event
	AgentID  string `json:"agentId,omitzero"` // of the event
	EventID  string `json:"eventId,omitzero"` // of the event, when it has one already
	Sequence uint64 `json:"sequence"`         // of the event, or the one it would have got
	Pointer  string `json:"pointer,omitzero"` // JSON pointer of the field, for field rules
	Subject  string `json:"subject,omitzero"` // what the rule is about, such as: call "c7"
	State    string `json:"state,omitzero"`   // the state it is in
	Detail   string `json:"detail"`           // what is wrong, and what would be legal
}

// Error names the kind, what is wrong, the subject, its state, the position
// and the rule.
func (e *RuleError) Error() string {
	var b strings.Builder
	b.WriteString("agentevents: ")
	if e.Kind != "" {
		b.WriteString(string(e.Kind))
		b.WriteString(": ")
	}
	b.WriteString(e.text())
	b.WriteString(" (rule ")
	b.WriteString(string(e.Rule))
	if e.RunID != "" {
		b.WriteString(", run ")
		b.WriteString(strconv.Quote(e.RunID))
	}
	b.WriteString(", sequence ")
	b.WriteString(strconv.FormatUint(e.Sequence, 10))
	b.WriteString(")")
	return b.String()
}

// text is the error without its position.
func (e *RuleError) text() string {
	var b strings.Builder
	if e.Pointer != "" {
		b.WriteString(e.Pointer)
		b.WriteString(": ")
	}
	b.WriteString(e.Detail)
	if e.Subject != "" {
		b.WriteString("; ")
		b.WriteString(e.Subject)
	}
	if e.State != "" {
		b.WriteString(" is ")
		b.WriteString(e.State)
	}
	return b.String()
}

// A SinkError says that an event was recorded, but a required sink failed on
// it. Emitting it again would record it twice.
type SinkError struct {
	Sink     string // the sink's type, such as *agentevents.Writer
	RunID    string // of the event; empty for Flush and Close
	Sequence uint64 // of the event
	Err      error  // the sink's error, or a *PanicError
}

// Error names the sink, the event and the cause.
func (e *SinkError) Error() string {
	if e.RunID == "" {
		return fmt.Sprintf("agentevents: sink %s: %v", e.Sink, e.Err)
	}
	return fmt.Sprintf("agentevents: sink %s: run %q, sequence %d (recorded, do not retry): %v", e.Sink, e.RunID, e.Sequence, e.Err)
}

// Unwrap returns the cause.
func (e *SinkError) Unwrap() error { return e.Err }

// A PanicError is a panic of somebody else's code (a sink, a tracer, a
// redactor) that was contained.
type PanicError struct {
	Value any    // what was passed to panic
	Stack []byte // where
}

// Error gives the value; the stack is in the field.
func (e *PanicError) Error() string { return fmt.Sprintf("panic: %v", e.Value) }

// Unwrap returns the value when it is an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// A LineError says that a line of a log could not be read. Reading goes on
// with the next line.
//
// A torn last line (one without a newline that is not whole) wraps
// [io.ErrUnexpectedEOF]; everything before it was delivered, and a log can
// safely be cut at Offset.
type LineError struct {
	Line    int    // from 1
	Offset  int64  // byte offset of the line's first byte in the input
	Column  int    // byte offset of the fault within the line, from 0
	Pointer string // JSON pointer of the fault, such as /payload/step; may be empty
	Err     error  // the cause
}

// Error gives line, offset, pointer and cause.
func (e *LineError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "line %d (byte %d)", e.Line, e.Offset+int64(e.Column))
	if e.Pointer != "" {
		b.WriteString(": ")
		b.WriteString(e.Pointer)
	}
	b.WriteString(": ")
	b.WriteString(e.Err.Error())
	return b.String()
}

// Unwrap returns the cause.
func (e *LineError) Unwrap() error { return e.Err }

// A fieldError is a broken field rule before it is known which event it is in.
type fieldError struct {
	rule    Rule
	pointer string
	detail  string
}

// in returns e for the same field seen from one level further out.
func (e *fieldError) in(name string) *fieldError {
	e.pointer = "/" + name + e.pointer
	return e
}
