package agentevents

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/agentevents/agentevents/internal/foreign"
	"github.com/agentevents/agentevents/internal/jsonwire"
	"github.com/agentevents/agentevents/internal/option"
)

// Errors of the emitter's state, for errors.Is.
var (
	// ErrClosed means that the emitter or the run was closed before the call, or that
	// the model call of a [ModelCall] has returned. Nothing was recorded.
	ErrClosed = errors.New("agentevents: closed")
	// ErrTooManyRuns means that EmitterOptions.MaxRuns runs are open already.
	ErrTooManyRuns = errors.New("agentevents: too many open runs")
	// ErrRunReleased means that the emitter had a run with this id, which ended or was closed. Its
	// sequences must not begin again: [Emitter.Resume] continues it from a snapshot. A run that has
	// ended then takes only the events that may follow an end (rule terminal-last).
	ErrRunReleased = errors.New("agentevents: the run was released: continue a closed run with Emitter.Resume; " +
		"an ended run takes only events that may follow its end")
	// ErrFenced is for sinks: it means that the run cannot go on here, as when another writer has
	// gone on with it in a store. When the error of a required sink wraps it, the later sinks do
	// not get the event, and the run is closed. It has no effect in [BestEffort] and [Buffered].
	ErrFenced = errors.New("agentevents: the run is closed: it cannot go on in this emitter")
)

// A RuleError reports that an event breaks a rule of the log. When a method of an emitter or its
// handles returns one, nothing was recorded. In a snapshot it is data.
//
// The text is for people and may change; match the fields. It shows no content, and
// up to 64 bytes of an id; the fields have ids whole.
type RuleError struct {
	Rule     Rule   `json:"rule"`             // the rule; its name is stable
	Kind     Kind   `json:"kind,omitzero"`    // the event's kind
	RunID    string `json:"runId,omitzero"`   // the event's run
	AgentID  string `json:"agentId,omitzero"` // the event's agent
	EventID  string `json:"eventId,omitzero"` // the event's id; empty when a refused event has none yet
	Sequence uint64 `json:"sequence"`         // the event's sequence; of a refused event the one it would have got
	Pointer  string `json:"pointer,omitzero"` // JSON pointer of the field, with rules about one field
	Subject  string `json:"subject,omitzero"` // what the rule is about, such as: call "c7"
	State    string `json:"state,omitzero"`   // the subject's state, such as: open
	Detail   string `json:"detail"`           // the fault, and the legal alternatives
	Refused  bool   `json:"refused,omitzero"` // an emitter refused the event: it is in no log
}

// Error returns one line: the kind, the field, the fault, the subject and its state, the rule, the
// run and the sequence.
func (e *RuleError) Error() string {
	var b strings.Builder
	b.WriteString("agentevents: ")
	if e.Kind != "" {
		b.WriteString(jsonwire.BriefName(string(e.Kind)))
		b.WriteString(": ")
	}
	b.WriteString(e.text())
	b.WriteString(" (rule ")
	b.WriteString(string(e.Rule))
	if e.RunID != "" {
		b.WriteString(", run ")
		b.WriteString(jsonwire.Brief(e.RunID))
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
		b.WriteString(jsonwire.BriefPointer(e.Pointer))
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

// A SinkError reports that a sink failed. The event was recorded all the same, unless Err wraps
// [ErrFenced]: emitting it again would record it twice. An emit returns the errors of required
// sinks; errors of other sinks go to EmitterOptions.OnError.
type SinkError struct {
	Sink     string // the sink's type, such as *agentevents.Writer
	RunID    string // the event's run; empty when Flush or Close failed
	Sequence uint64 // the event's sequence
	Err      error  // the sink's error, or a *PanicError
}

// Error names the sink, the event and the cause.
func (e *SinkError) Error() string {
	if e.RunID == "" {
		return fmt.Sprintf("agentevents: sink %s: %v", e.Sink, e.Err)
	}
	what := "recorded, do not retry"
	if errors.Is(e.Err, ErrFenced) {
		what = "not recorded"
	}
	return fmt.Sprintf("agentevents: sink %s: run %s, sequence %d (%s): %v",
		e.Sink, jsonwire.Brief(e.RunID), e.Sequence, what, e.Err)
}

// Unwrap returns the cause.
func (e *SinkError) Unwrap() error { return e.Err }

// A BudgetError is the cause of work that a budget stopped: the error that a program, as in
// the Stop of a breaker of package hooks, cancels the work's context with. [Run.Finish] then
// ends the run as failed, and not as cancelled, also when it gets the context's error.
// Agents end as aborted, calls as cancelled; all three have the code "budget_exceeded".
type BudgetError struct {
	Exceeded BudgetExceeded // the budget, its limit and the use
	Err      error          // the program's own error; may be nil
}

// codeBudget is the ErrorInfo.Code of work that a budget stopped.
const codeBudget = "budget_exceeded"

// Error names the budget, its limit and the use.
func (e *BudgetError) Error() string {
	return fmt.Sprintf("budget %s exceeded: %v used of %v",
		jsonwire.Brief(e.Exceeded.Budget), e.Exceeded.Actual, e.Exceeded.Limit)
}

// Unwrap returns the program's own error.
func (e *BudgetError) Unwrap() error { return e.Err }

// budgetOf returns the budget that stopped work which ended with err, or nil.
func budgetOf(ctx context.Context, err error) (budget *BudgetError) {
	if !errors.As(err, &budget) && (errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)) {
		errors.As(context.Cause(ctx), &budget)
	}
	return budget
}

// A PanicError is a panic of the user's code, such as a sink, a tracer or a
// redactor. The library recovers it.
type PanicError struct {
	Value any    // the argument of panic
	Stack []byte // the stack of the goroutine, as debug.Stack prints it
}

// Error returns the value as text, without the stack.
func (e *PanicError) Error() string { return fmt.Sprintf("panic: %v", e.Value) }

// Unwrap returns the value if it is an error, else nil.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// An OptionError is the error of an option whose value makes no sense, such as a number below 0
// or a word that is none of the constants. Constructors return it; where one returns no error,
// the first call of the new value does.
type OptionError = option.Error

// A LineError reports a line of a log that cannot be read. Reading goes on with the next line.
//
// The last line is torn when it is incomplete and has no newline. Then the error
// wraps [io.ErrUnexpectedEOF]: all lines before it were delivered, and the log
// can safely be cut at Offset.
type LineError struct {
	Line    int    // number of the line, from 1
	Offset  int64  // byte offset of the line in the input, from 0
	Column  int    // byte offset of the fault in the line, from 0
	Pointer string // JSON pointer of the fault, such as /payload/step; may be empty
	Err     error  // the cause
}

// Error names the line, the byte offset of the fault, the pointer and the cause.
func (e *LineError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "line %d (byte %d)", e.Line, e.Offset+int64(e.Column))
	if e.Pointer != "" {
		b.WriteString(": ")
		b.WriteString(jsonwire.BriefPointer(e.Pointer))
	}
	b.WriteString(": ")
	b.WriteString(e.Err.Error())
	return b.String()
}

// Unwrap returns the cause.
func (e *LineError) Unwrap() error { return e.Err }

// A ForeignError means that a line does not belong to a log: another program wrote it, or the
// input has another form than lines of JSON. It is the Err of a [*LineError].
//
// Before the first event of its input a [Reader] reports the first line of a program or form that
// it knows, and no line from there up to that event. So the file of another program has one error
// and no run.
type ForeignError struct {
	// Program is the program that writes such files, such as "pi". It is empty for a form, such
	// as gzip data, and for a program that is not known.
	Program string
	// Name is the kind of input, such as "a session of pi".
	Name string
	// Hint is the way to go on, such as "decompress it first".
	Hint string
}

// Error has the name of the input and the way to go on.
func (e *ForeignError) Error() string { return "this is " + e.Name + ": " + e.Hint }

// unknown reports whether neither the program nor the form has a name.
func (e *ForeignError) unknown() bool { return e.Name == foreign.Unknown.Name }

// foreignError returns the error for a file.
func foreignError(f foreign.File) *ForeignError { e := ForeignError(f); return &e }

// A fieldError is a broken rule about one field. asError adds the event.
type fieldError struct {
	rule    Rule
	pointer string
	detail  string
}

// in puts name in front of the pointer: e is about a field inside the member
// name.
func (e *fieldError) in(name string) *fieldError {
	e.pointer = "/" + name + e.pointer
	return e
}
