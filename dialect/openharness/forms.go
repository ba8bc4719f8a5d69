package openharness

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect"
	"github.com/agentevents/agentevents/dialect/internal/engine"
	"github.com/agentevents/agentevents/internal/endword"
	"github.com/agentevents/agentevents/internal/jsonwire"
)

// The forms of values that the document has and the engine does not.

// A timeForm is a time in milliseconds since the epoch, which may have fractions.
type timeForm struct{}

func (timeForm) Append(w *engine.Writer, dst []byte, _ *engine.Member, _ any) ([]byte, bool) {
	t := w.Time()
	if t.Nanosecond()%1e6 == 0 {
		return jsonwire.AppendInt(dst, t.UnixMilli()), true
	}
	if y := t.Year(); y > 1700 && y < 2200 { // its nanoseconds are an int64
		return jsonwire.AppendMillis(dst, time.Duration(t.UnixNano())), true
	}
	return jsonwire.AppendInt(dst, t.UnixMilli()), true
}

func (timeForm) Parse(r *engine.Reader, at any) (err error) {
	*at.(*time.Time), err = r.Millis()
	return err
}

// An openForm is a form whose rule writers do not check: later versions of the
// document may list other words.
type openForm struct{ engine.Form }

func (openForm) Append(w *engine.Writer, dst []byte, m *engine.Member, at any) ([]byte, bool) {
	return engine.Full{}.Append(w, dst, m, at)
}

// Nodes and their executions.

// madeNode stands for a node that the event does not have.
func madeNode(w *engine.Writer, dst []byte, _ *engine.Member) []byte {
	return jsonwire.AppendString(dst, encoderOf(w).nodeOf(w.Ev))
}

// An executionForm is the execution of a node. It stands for the agent, too.
type executionForm struct{ engine.Form }

func (executionForm) Append(w *engine.Writer, dst []byte, _ *engine.Member, _ any) ([]byte, bool) {
	return jsonwire.AppendString(dst, encoderOf(w).runID(w.Ev)), true
}

// sharedRun is the detail of an execution with the runId of another node.
const sharedRun = "another node has started with this runId"

// Members that lines of other types may have with the same meaning.

// A nodeOfOther is a node. An empty one stays in the payload.
type nodeOfOther struct{ engine.Value }

func (f nodeOfOther) Parse(r *engine.Reader, at any) error {
	err := f.Value.Parse(r, at)
	if err != nil {
		r.Break(RuleNode, "is not a string")
	} else if *at.(*string) == "" {
		err = engine.ErrMisfit
	}
	return err
}

// A runOfOther is the execution of a node. Without a node it may be the run, and stays
// in the payload.
type runOfOther struct{ nodeOfOther }

func (f runOfOther) Append(w *engine.Writer, dst []byte, m *engine.Member, at any) ([]byte, bool) {
	if w.Ev.NodeID == "" || w.Ev.NodeRunID == "" {
		return dst, false
	}
	return jsonwire.AppendString(dst, encoderOf(w).runID(w.Ev)), true
}

func (f runOfOther) Parse(r *engine.Reader, at any) error {
	err := f.nodeOfOther.Parse(r, at)
	if err == nil && jsonwire.Text(jsonwire.Member(r.S.Text(), "nodeId")) == "" {
		*at.(*string) = ""
		err = engine.ErrMisfit
	}
	return err
}

// A timeOfOther is a time, unless the payload has a member of that name.
type timeOfOther struct{ timeForm }

func (f timeOfOther) Append(w *engine.Writer, dst []byte, m *engine.Member, at any) ([]byte, bool) {
	if p, ok := w.Ev.Payload.(*agentevents.Unknown); ok && jsonwire.HasMember(string(p.Raw), m.Name) {
		return dst, false
	}
	return f.timeForm.Append(w, dst, m, at)
}

// Agents.

// A promptForm is a string or a list of messages.
type promptForm struct{ engine.Value }

func (f promptForm) Append(w *engine.Writer, dst []byte, m *engine.Member, at any) ([]byte, bool) {
	mark := len(dst)
	dst, said := f.Value.Append(w, dst, m, at)
	switch {
	case len(dst) == mark || notAPrompt(string(dst[mark:])) == "":
	case dst[mark] == '{':
		dst = append(slices.Insert(dst, mark, '['), ']')
	default:
		dst = jsonwire.AppendString(dst[:mark], string(dst[mark:]))
	}
	return dst, said
}

func (f promptForm) Parse(r *engine.Reader, at any) error {
	err := f.Value.Parse(r, at)
	if err == nil {
		if detail := notAPrompt(string(*at.(*agentevents.JSON))); detail != "" {
			r.Break(RuleForm, detail)
		}
	}
	return err
}

// notAPrompt returns the reason why a value is not a prompt, or "". A message is an object, or its
// text.
func notAPrompt(prompt string) string {
	switch prompt[0] {
	case '"':
		return ""
	case '[':
		n := 0
		for message := range jsonwire.Elements(prompt) {
			if n++; message[0] != '{' && message[0] != '"' {
				return fmt.Sprintf("element %d of the list is not a message", n)
			}
		}
		return ""
	}
	return "is not a string or a list of messages"
}

// executionAsSession stands for a session that the event does not have.
func executionAsSession(w *engine.Writer, dst []byte, m *engine.Member) []byte {
	return jsonwire.AppendString(dst, encoderOf(w).execution(w.Ev))
}

func taskAsPrompt(w *engine.Writer, dst []byte, m *engine.Member) []byte {
	return jsonwire.AppendString(dst, w.Ev.Payload.(*agentevents.AgentStarted).Task)
}

// A parentForm is the execution of the agent that an agent works for.
type parentForm struct{ engine.Value }

func (f parentForm) Append(w *engine.Writer, dst []byte, m *engine.Member, at any) ([]byte, bool) {
	e, id := encoderOf(w), *at.(*string)
	if id == "" || dialect.Unknown(w.Ev, Name, parentMember) != "" {
		return dst, false
	}
	if start := e.started.Of(agent{w.Ev.RunID, e.names.Named(w.Ev.RunID, id)}); start != nil && start.run != id {
		id = start.run
	}
	return jsonwire.AppendString(dst, id), true
}

// sinceStart makes up the duration of an event without one.
func sinceStart(w *engine.Writer, dst []byte, m *engine.Member) []byte {
	var d time.Duration
	if start := encoderOf(w).start(w.Ev); start != nil && agentevents.TimeKnown(start.at) &&
		agentevents.TimeKnown(w.Ev.Time) && !w.Ev.Time.Before(start.at) {
		d = w.Ev.Time.Sub(start.at)
	}
	return jsonwire.AppendMillis(dst, d)
}

// lastText stands for the result of an agent that ended: its final text.
func lastText(w *engine.Writer, dst []byte, m *engine.Member) []byte {
	text := ""
	if start := encoderOf(w).start(w.Ev); start != nil {
		text = start.text
	}
	return jsonwire.AppendString(dst, text)
}

// failed reports whether an agent ended without success.
func failed(p *agentevents.AgentEnded) bool {
	switch engine.Ending(p) {
	case endword.Failed, endword.Refused, endword.Cancelled:
		return true
	}
	return false
}

func outcomeAsType(w *engine.Writer, dst []byte, _ *engine.Member) []byte {
	return jsonwire.AppendString(dst, cmp.Or(string(w.Ev.Payload.(*agentevents.AgentEnded).Outcome), "error"))
}

func resultAsMessage(w *engine.Writer, dst []byte, _ *engine.Member) []byte {
	return jsonwire.AppendString(dst, w.Ev.Payload.(*agentevents.AgentEnded).Result)
}

// summary stands for a value of a call that the event does not have.
func summary(w *engine.Writer, dst []byte, m *engine.Member) []byte {
	p := w.Ev.Payload.(*agentevents.ToolReturned)
	text := p.ArgumentsSummary
	if m.Name == "toolOutput" {
		text = p.ResultSummary
	}
	if text == "" {
		return nil
	}
	return jsonwire.AppendString(dst, text)
}

// statusAsError stands for the error of a call that failed, because a line without an error records
// a success.
func statusAsError(w *engine.Writer, dst []byte, _ *engine.Member) []byte {
	status := w.Ev.Payload.(*agentevents.ToolReturned).Status
	if status == agentevents.ToolStatusOK {
		return nil
	}
	return jsonwire.AppendString(dst, string(status))
}

// An alwaysForm is the form of a field that every event of its kind has: an event whose
// line lacks it has an empty one, at the pointer of the native line.
type alwaysForm struct {
	engine.Form
	pointer string
}

func (f alwaysForm) Missed(r *engine.Reader, _ any) {
	r.Made(f.pointer, "empty, because the line lacks it")
}

// Flows and commands.

// caseOf tells apart the lines of one type: by the status of a flow that ends, and by
// the outcome of an agent that has ended.
func caseOf(typ, line string) string {
	switch typ {
	case "flow:complete":
		status := jsonwire.Text(jsonwire.Member(line, "status"))
		return cmp.Or(flowStatuses[endword.Of(status)], status)
	case "agent:error":
		if jsonwire.Text(jsonwire.Member(line, "outcome")) != "" {
			return caseEnded
		}
	}
	return ""
}

// flowStatuses has the case of flow:complete for how a run ended, whatever the word for it.
var flowStatuses = [...]string{
	endword.Succeeded: statusComplete, endword.Failed: statusFailed, endword.Refused: statusFailed,
	endword.Cancelled: caseCancelled,
}

// A statusForm is the status of a flow that ends. Another word for it is kept.
type statusForm string

func (f statusForm) Append(w *engine.Writer, dst []byte, m *engine.Member, _ any) ([]byte, bool) {
	if raw := w.Kept(m.Name); flowStatuses[endword.Of(jsonwire.Text(raw))] == string(f) {
		return append(dst, w.Use(m.Name)...), true
	}
	return jsonwire.AppendString(dst, string(f)), true
}

func (f statusForm) Parse(r *engine.Reader, _ any) error {
	raw, err := r.S.Raw()
	if jsonwire.Text(raw) != string(f) || f == caseCancelled {
		r.KeepAs(raw)
	}
	return err
}

// unsuccessful is the outcome of an end whose type means success. The line has it if it differs
// from success.
type unsuccessful struct{ engine.Value }

func (unsuccessful) Append(_ *engine.Writer, dst []byte, _ *engine.Member, at any) ([]byte, bool) {
	outcome := *at.(*string)
	return jsonwire.AppendString(dst, outcome), outcome != "" && outcome != string(agentevents.OutcomeConverged)
}

// A nameForm is the name of a flow that ends. No field has it: it is kept.
type nameForm struct{}

func (nameForm) Append(w *engine.Writer, dst []byte, m *engine.Member, _ any) ([]byte, bool) {
	raw := w.Kept(m.Name)
	if !strings.HasPrefix(raw, `"`) {
		return dst, false
	}
	w.Use(m.Name)
	return append(dst, raw...), true
}

func (nameForm) Parse(r *engine.Reader, _ any) error {
	name, err := r.S.String()
	if err == nil {
		r.KeepAs(jsonwire.Quote(name))
	}
	return err
}

// madeName is the name of the flow's start.
func madeName(w *engine.Writer, dst []byte, m *engine.Member) []byte {
	return jsonwire.AppendString(dst, encoderOf(w).flows.Of(w.Ev.RunID))
}

// commandNeeds are the members that the document requires of a command. A line without
// its runId breaks no rule: it records a rejected command.
var commandNeeds = map[agentevents.CommandType][]string{
	agentevents.CommandSend:  {"message"},
	agentevents.CommandReply: {"promptId", "content"},
}

// A partForm is a member of a command. A value of another type is kept: the document has
// commands recorded as they came.
type partForm struct{ engine.Value }

func (f partForm) Parse(r *engine.Reader, at any) error {
	if err := f.Value.Parse(r, at); err != nil {
		r.Break(RuleForm, "is of another type")
		return engine.ErrMisfit
	}
	return nil
}

func madeIfNeeded(w *engine.Writer, dst []byte, m *engine.Member) []byte {
	if !slices.Contains(commandNeeds[w.Ev.Payload.(*agentevents.CommandReceived).Command.Type], m.Name) {
		return nil
	}
	return engine.Made(`""`)(w, dst, m)
}
