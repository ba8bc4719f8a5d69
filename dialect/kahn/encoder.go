package kahn

import (
	"strconv"
	"strings"
	"time"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect"
	"github.com/agentevents/agentevents/internal/jsonwire"
)

// An Encoder writes events as KAHN lines; it implements [dialect.Encoder]. It
// is not for concurrent use.
//
// A ToolCalled writes nothing: the line is written with its ToolReturned, and
// a call that never returns is dropped (and listed). Required members that an
// event does not say are made up of what the log said so far: the step the
// agent is at, its totals, the time since it started; and listed.
type Encoder struct {
	losses dialect.Losses
	times  jsonwire.TimeCache
	agents map[agentKey]*agentState
	calls  dialect.Calls // that wait for their return
	last   *agentState
	ids    map[idKey]string // normalised ones
}

type agentKey struct{ run, agent string }

type idKey struct {
	p  *pattern
	id string
}

// agentState is what the document wants to know at an agent's end.
type agentState struct {
	key     agentKey
	step    int
	stepped bool
	totals  agentevents.Totals
	started time.Time
}

// NewEncoder returns an encoder.
func NewEncoder() *Encoder { return &Encoder{} }

// maxIDs bounds the normalised ids that are remembered.
const maxIDs = 1 << 14

// Append appends the line of an event. See [dialect.Encoder].
func (e *Encoder) Append(dst []byte, ev agentevents.Event) ([]byte, error) {
	if ev.Payload == nil {
		return dst, &agentevents.InvariantError{Rule: agentevents.RulePayload, Detail: "the payload is nil"}
	}
	a := e.agent(&ev)
	if a != nil && ev.Step.OK && (!a.stepped || ev.Step.V > a.step) {
		a.step, a.stepped = ev.Step.V, true
	}
	if line, ok := e.verbatim(&ev); ok {
		e.count(&ev, a)
		return append(append(dst, line...), '\n'), nil
	}
	mark := len(dst)
	dst, err := e.line(dst, &ev, a)
	if err != nil {
		return dst[:mark], err
	}
	e.count(&ev, a)
	return dst, nil
}

// End lists the calls that never returned.
func (e *Encoder) End(dst []byte) ([]byte, error) {
	for _, call := range e.calls.Clear() {
		e.losses.Add(call, dialect.Dropped, "", unreturned)
	}
	return dst, nil
}

// Losses returns what the lines so far do not say. See [dialect.Encoder].
func (e *Encoder) Losses() []dialect.Loss { return e.losses.List() }

// agent returns the state of the event's agent, or nil.
func (e *Encoder) agent(ev *agentevents.Event) *agentState {
	key := agentKey{ev.RunID, ev.AgentID}
	if key.agent == "" {
		return nil
	}
	if e.last != nil && e.last.key == key {
		return e.last
	}
	a := e.agents[key]
	if a == nil {
		a = &agentState{key: key}
		if e.agents == nil {
			e.agents = map[agentKey]*agentState{}
		}
		e.agents[key] = a
	}
	e.last = a
	return a
}

// count notes what an end will have to tell.
func (e *Encoder) count(ev *agentevents.Event, a *agentState) {
	if a == nil {
		return
	}
	switch p := ev.Payload.(type) {
	case *agentevents.AgentStarted:
		*a = agentState{key: a.key, started: ev.Time}
	case *agentevents.ToolReturned:
		a.totals.ToolCalls++
	case *agentevents.AuditChecked:
		a.totals.AuditCheckpoints++
		switch p.Result {
		case agentevents.AuditPass:
			a.totals.AuditsPassed++
		case agentevents.AuditFail:
			a.totals.AuditsFailed++
		}
	}
}

// verbatim returns the line that the event was read from, if it still says what
// the event says.
func (e *Encoder) verbatim(ev *agentevents.Event) (string, bool) {
	origin := ev.Origin()
	if origin == "" {
		return "", false
	}
	was, err := NewDecoder(Options{}).Decode(nil, []byte(origin))
	if err != nil || len(was) != 1 {
		return "", false
	}
	// Compared as lines: what the document has no place for, such as the id,
	// is not on the line either way.
	now, err := NewEncoder().Append(nil, plain(*ev))
	if err != nil {
		return "", false
	}
	then, err := NewEncoder().Append(nil, plain(was[0]))
	return origin, err == nil && string(now) == string(then)
}

// plain returns ev without its origin.
func plain(ev agentevents.Event) agentevents.Event {
	out := agentevents.Event{
		ID: ev.ID, Sequence: ev.Sequence, Time: ev.Time, RunID: ev.RunID, Scope: ev.Scope, AgentID: ev.AgentID, Step: ev.Step, Payload: ev.Payload,
	}
	for name, value := range ev.Extras() {
		_ = out.SetExtra(name, value) // it was one before
	}
	return out
}

// line appends the event's line and lists what it does not say.
func (e *Encoder) line(dst []byte, ev *agentevents.Event, a *agentState) ([]byte, error) {
	l := &e.losses
	stepped := false // the line has a step
	var members set
	switch p := ev.Payload.(type) {
	case *agentevents.AgentStarted:
		dst = e.begin(dst, ev, vStart)
		dst = jsonwire.AppendString(append(dst, `,"task":`...), p.Task)
		if p.Task == "" {
			l.Add(ev, dialect.Made, "/payload/task", "written as an empty text")
		}
		if p.Model != "" {
			dst = jsonwire.AppendString(append(dst, `,"model":`...), p.Model)
		}
		l.Drop(ev, "/payload/agent", p.Agent.OK)
		l.Drop(ev, "/payload/providerSessionId", p.ProviderSessionID != "")
		l.Drop(ev, "/payload/prompt", p.Prompt != "")
		l.Drop(ev, "/payload/attempt", p.Attempt.OK)
		l.Drop(ev, "/payload/resumed", p.Resumed)
		members = variants[vStart].members
	case *agentevents.AgentTransition:
		dst = e.begin(dst, ev, vTransition)
		dst, stepped = e.step(dst, ev, a), true
		dst = jsonwire.AppendString(append(dst, `,"from":`...), string(p.From))
		dst = jsonwire.AppendString(append(dst, `,"to":`...), string(p.To))
		if p.Reason != "" {
			dst = jsonwire.AppendString(append(dst, `,"reason":`...), p.Reason)
		}
		members = variants[vTransition].members
	case *agentevents.ToolCalled:
		e.open(ev, p)
		return dst, nil
	case *agentevents.ToolReturned:
		dst = e.begin(dst, ev, vTool)
		dst, stepped = e.step(dst, ev, a), true
		dst = e.tool(dst, ev, p)
		members = variants[vTool].members
	case *agentevents.AuditChecked:
		dst = e.begin(dst, ev, vAudit)
		dst = e.id(append(dst, `,"checkpoint_id":`...), ev, &checkpointPattern, "/payload/checkpointId", p.CheckpointID)
		dst = jsonwire.AppendString(append(dst, `,"result":`...), string(p.Result))
		dst = appendSeconds(append(dst, `,"duration_s":`...), p.Duration)
		if p.Evidence != "" {
			raw, err := jsonwire.Compact(string(p.Evidence))
			if err != nil {
				return dst, &agentevents.InvariantError{Rule: agentevents.RuleFieldJSON, Kind: ev.Kind(), RunID: ev.RunID, Pointer: "/payload/evidence", Detail: err.Error()}
			}
			dst = append(append(dst, `,"evidence":`...), raw...)
		}
		members = variants[vAudit].members
	case *agentevents.AgentEnded:
		dst = e.begin(dst, ev, vEnd)
		dst = e.ended(dst, ev, p, a)
		members = variants[vEnd].members
	case *agentevents.Unknown:
		var err error
		if dst, stepped, err = e.foreign(dst, ev, p); err != nil {
			return dst, err
		}
	default:
		return dst, l.Refuse(ev)
	}
	if _, unknown := ev.Payload.(*agentevents.Unknown); !unknown {
		members |= base
		dst = dialect.AppendUnknowns(dst, ev, Name, func(name string) bool { return members.named(name) })
	}
	e.envelope(ev, stepped)
	return append(dst, '}', '\n'), nil
}

// named reports whether a member of that name is in s.
func (s set) named(name string) bool {
	for m := 1; m <= numMembers; m++ {
		if s.has(m) && memberName(m) == name {
			return true
		}
	}
	return false
}

// begin appends what every line begins with, the agent included.
func (e *Encoder) begin(dst []byte, ev *agentevents.Event, v int) []byte {
	dst = e.base(dst, ev, variants[v].event)
	if v == vAudit && ev.AgentID == "" {
		return append(dst, `,"agent_id":null`...)
	}
	return e.id(append(dst, `,"agent_id":`...), ev, &agentPattern, "/agentId", ev.AgentID)
}

func (e *Encoder) base(dst []byte, ev *agentevents.Event, event string) []byte {
	at := ev.Time
	if at.Nanosecond()%1e6 != 0 {
		e.losses.Add(ev, dialect.Altered, "/timestamp", "cut to milliseconds")
		at = at.Truncate(time.Millisecond)
	}
	dst = e.times.Append(append(dst, `{"ts":`...), at)
	dst = e.id(append(dst, `,"run_id":`...), ev, &runPattern, "/runId", ev.RunID)
	return jsonwire.AppendString(append(dst, `,"event":`...), event)
}

// id appends an id in the document's form.
func (e *Encoder) id(dst []byte, ev *agentevents.Event, p *pattern, pointer, id string) []byte {
	if p.matches(id) {
		return append(append(append(dst, '"'), id...), '"') // nothing to escape
	}
	what, detail := dialect.Altered, "normalised: it does not match "+p.syntax
	if id == "" {
		what, detail = dialect.Made, "required"
	}
	e.losses.Add(ev, what, pointer, detail)
	key := idKey{p, id}
	n, ok := e.ids[key]
	if !ok {
		n = p.normalize(id)
		if e.ids == nil {
			e.ids = map[idKey]string{}
		}
		if len(e.ids) < maxIDs {
			e.ids[key] = n
		}
	}
	return jsonwire.AppendString(dst, n)
}

// step appends the step, which transitions and tool invocations must have.
func (e *Encoder) step(dst []byte, ev *agentevents.Event, a *agentState) []byte {
	step := ev.Step.V
	if !ev.Step.OK {
		if a != nil {
			step = a.step
		}
		e.losses.Add(ev, dialect.Made, "/step", "the step the agent is at")
	}
	return jsonwire.AppendInt(append(dst, `,"step":`...), int64(step))
}

// open keeps a call until it returns.
func (e *Encoder) open(ev *agentevents.Event, p *agentevents.ToolCalled) {
	old, ok := e.calls.Put(ev, ev.AgentID, p.CallID)
	if old != nil {
		e.losses.Add(old, dialect.Dropped, "", unreturned)
	}
	if !ok {
		e.losses.Add(ev, dialect.Dropped, "", "too many calls are open")
	}
}

const unreturned = "the call never returned"

// joined lists what the line of a return does not say of its call.
func (e *Encoder) joined(ev *agentevents.Event, p *agentevents.ToolCalled) {
	l := &e.losses
	l.Add(ev, dialect.Altered, "", "written with its return")
	l.Drop(ev, "/payload/attempt", p.Attempt.OK)
	l.Drop(ev, "/payload/retryOf", p.RetryOf != "")
	l.Drop(ev, "/payload/argsHash", p.ArgsHash != "")
	l.Drop(ev, "/payload/principal", p.Principal != "")
	l.Drop(ev, "/payload/transport", p.Transport != "")
	l.Drop(ev, "/payload/attributes", p.Attributes != "")
}

// tool appends the members of a tool_invocation.
func (e *Encoder) tool(dst []byte, ev *agentevents.Event, p *agentevents.ToolReturned) []byte {
	l := &e.losses
	input, args, duration := p.ArgumentsSummary, p.Arguments, p.Duration
	if !p.OneEvent {
		if c := e.calls.Get(ev.RunID, ev.AgentID, p.CallID); c != nil {
			e.calls.Remove(ev.RunID, ev.AgentID, p.CallID)
			called := c.Payload.(*agentevents.ToolCalled)
			e.joined(c, called)
			input, args = called.ArgumentsSummary, called.Arguments
			if !duration.OK {
				duration = agentevents.Some(max(0, ev.Time.Sub(c.Time)))
			}
		}
		l.Add(ev, dialect.Altered, "/payload/oneEvent", "the call and its return are one line")
	}
	dst = jsonwire.AppendString(append(dst, `,"tool_name":`...), p.ToolID)
	if !p.Duration.OK {
		l.Add(ev, dialect.Made, "/payload/durationMs", "the time since the call")
	}
	dst = appendSeconds(append(dst, `,"duration_s":`...), duration.V)
	dst = strconv.AppendBool(append(dst, `,"ok":`...), p.Status == agentevents.ToolOK)
	if p.Status != agentevents.ToolOK && p.Status != agentevents.ToolError {
		l.Add(ev, dialect.Altered, "/payload/status", "the document knows ok and not ok")
	}
	dst = e.summary(dst, ev, `,"input_summary":`, "/payload/arguments", "/payload/argumentsSummary", input, args)
	dst = e.summary(dst, ev, `,"output_summary":`, "/payload/result", "/payload/resultSummary", p.ResultSummary, p.Result)
	if p.Error.OK {
		dst = jsonwire.AppendString(append(dst, `,"error":`...), p.Error.V.Message)
		l.Drop(ev, "/payload/error/code", p.Error.V.Code != "")
		l.Drop(ev, "/payload/error/details", p.Error.V.Details != "")
		l.Drop(ev, "/payload/error/retryable", p.Error.V.Retryable.OK)
	}
	l.Add(ev, dialect.Dropped, "/payload/callId", "the document has no call ids")
	return dst
}

// cut is what becomes of a longer text.
var cut = "cut to " + strconv.Itoa(MaxSummary) + " characters"

// summary appends a text that may have MaxSummary characters. Where the event
// has only the whole value, its JSON text is the summary.
func (e *Encoder) summary(dst []byte, ev *agentevents.Event, member, pointer, summary, text string, value agentevents.JSON) []byte {
	if value != "" {
		if text == "" {
			text = string(value)
			e.losses.Add(ev, dialect.Altered, pointer, "written as a summary")
			e.losses.Add(ev, dialect.Made, summary, "the value's text")
		} else {
			e.losses.Add(ev, dialect.Dropped, pointer, "the line has its summary")
		}
	}
	if text == "" {
		return dst
	}
	if len(text) > MaxSummary {
		n := 0
		for i := range text {
			if n++; n > MaxSummary {
				text = text[:i]
				e.losses.Add(ev, dialect.Altered, summary, cut)
				break
			}
		}
	}
	return jsonwire.AppendString(append(dst, member...), text)
}

// ended appends the members of an agent_run_end.
func (e *Encoder) ended(dst []byte, ev *agentevents.Event, p *agentevents.AgentEnded, a *agentState) []byte {
	l := &e.losses
	outcome := p.Outcome
	if outcome == "" {
		outcome = agentevents.OutcomePartial
		if p.Error.OK {
			outcome = agentevents.OutcomeAborted
		}
		l.Add(ev, dialect.Made, "/payload/outcome", "aborted with an error, partial otherwise")
	}
	dst = jsonwire.AppendString(append(dst, `,"outcome":`...), string(outcome))
	totals := p.Totals.V
	if !p.Totals.OK {
		l.Add(ev, dialect.Made, "/payload/totals", "counted by the encoder")
		if a != nil {
			totals = a.totals
			if a.stepped {
				totals.Steps = a.step + 1
			}
		}
	}
	dst = jsonwire.AppendInt(append(dst, `,"total_steps":`...), int64(totals.Steps))
	dst = jsonwire.AppendInt(append(dst, `,"total_tool_calls":`...), int64(totals.ToolCalls))
	dst = jsonwire.AppendInt(append(dst, `,"total_audit_checkpoints":`...), int64(totals.AuditCheckpoints))
	dst = jsonwire.AppendInt(append(dst, `,"audits_passed":`...), int64(totals.AuditsPassed))
	dst = jsonwire.AppendInt(append(dst, `,"audits_failed":`...), int64(totals.AuditsFailed))
	duration := p.Duration.V
	if !p.Duration.OK {
		l.Add(ev, dialect.Made, "/payload/durationMs", "the time since the start")
		if a != nil && !a.started.IsZero() {
			duration = max(0, ev.Time.Sub(a.started))
		}
	}
	dst = appendSeconds(append(dst, `,"total_duration_s":`...), duration)
	if p.ConvergenceScore.OK {
		dst = appendFloat(append(dst, `,"convergence_score":`...), p.ConvergenceScore.V)
	}
	l.Drop(ev, "/payload/error", p.Error.OK)
	l.Drop(ev, "/payload/result", p.Result != "")
	l.Drop(ev, "/payload/structuredOutput", p.StructuredOutput != "")
	l.Drop(ev, "/payload/usage", p.Usage.OK)
	l.Drop(ev, "/payload/modelUsage", p.ModelUsage != nil)
	l.Drop(ev, "/payload/totalCostUsd", p.TotalCostUSD.OK)
	l.Drop(ev, "/payload/numTurns", p.NumTurns.OK)
	l.Drop(ev, "/payload/resultSchema", p.ResultSchema != "")
	return dst
}

// foreign appends a line of an event that the document does not list, if it is
// an object: its members stand on the line.
func (e *Encoder) foreign(dst []byte, ev *agentevents.Event, p *agentevents.Unknown) (_ []byte, stepped bool, err error) {
	raw, err := jsonwire.Compact(string(p.Raw))
	if p.Raw == "" {
		raw, err = "{}", nil
	}
	if err != nil || raw[0] != '{' {
		return dst, false, e.losses.Refuse(ev)
	}
	reserved := base | 1<<mAgentID | 1<<mStep
	dst = e.base(dst, ev, strings.TrimPrefix(string(p.Type), unknownPrefix))
	if ev.AgentID != "" {
		dst = e.id(append(dst, `,"agent_id":`...), ev, &agentPattern, "/agentId", ev.AgentID)
	}
	if ev.Step.OK {
		dst = jsonwire.AppendInt(append(dst, `,"step":`...), int64(ev.Step.V))
	}
	for name, value := range jsonwire.Members(raw) {
		if reserved.named(name) {
			e.losses.Add(ev, dialect.Dropped, "/payload/"+name, "the line has a member of that name")
			continue
		}
		dst = jsonwire.AppendString(append(dst, ','), name)
		dst = append(append(dst, ':'), value...)
	}
	return dst, true, nil
}

// envelope lists what the line does not say of the envelope.
func (e *Encoder) envelope(ev *agentevents.Event, stepped bool) {
	l := &e.losses
	l.Every(ev, dialect.Dropped, "/id", "the document has no event ids")
	l.Every(ev, dialect.Dropped, "/sequence", "the order is that of the lines")
	l.Drop(ev, "/step", ev.Step.OK && !stepped)
	if s := &ev.Scope; len(s.SessionID)|len(s.TaskID)|len(s.WorkflowID)|len(s.Phase)|len(s.NodeID)|len(s.NodeRunID) != 0 {
		l.Drop(ev, "/sessionId", s.SessionID != "")
		l.Drop(ev, "/taskId", s.TaskID != "")
		l.Drop(ev, "/workflowId", s.WorkflowID != "")
		l.Drop(ev, "/phase", s.Phase != "")
		l.Drop(ev, "/nodeId", s.NodeID != "")
		l.Drop(ev, "/nodeRunId", s.NodeRunID != "")
	}
	l.Drop(ev, "/actor", ev.Actor != "")
	l.Drop(ev, "/parentAgentId", ev.ParentAgentID != "")
	l.Drop(ev, "/parentCallId", ev.ParentCallID != "")
	l.Drop(ev, "/traceId", ev.TraceID != "")
	l.Drop(ev, "/spanId", ev.SpanID != "")
	l.Drop(ev, "/parentSpanId", ev.ParentSpanID != "")
	l.Drop(ev, "/causationId", ev.CausationID != "")
	l.Drop(ev, "/marks", ev.Marks != 0)
	l.DropExtras(ev, Name)
}

// appendSeconds appends a duration as seconds, with a point as the document
// writes them: 65.0, 0.04.
func appendSeconds(dst []byte, d time.Duration) []byte {
	u := uint64(d)
	if d < 0 {
		dst, u = append(dst, '-'), -u
	}
	dst = append(jsonwire.AppendUint(dst, u/1e9), '.')
	frac := u % 1e9
	if frac == 0 {
		return append(dst, '0')
	}
	return jsonwire.AppendFraction(dst, frac, 9)
}

// appendFloat appends a number with a point.
func appendFloat(dst []byte, f float64) []byte {
	mark := len(dst)
	dst = jsonwire.AppendFloat(dst, f)
	for _, c := range dst[mark:] {
		if c == '.' || c == 'e' {
			return dst
		}
	}
	return append(dst, '.', '0')
}
