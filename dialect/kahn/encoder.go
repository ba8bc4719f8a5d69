package kahn

import (
	"bytes"
	"cmp"
	"math/bits"
	"strconv"
	"strings"
	"time"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect"
	"github.com/agentevents/agentevents/internal/jsonwire"
)

// An Encoder writes events as KAHN lines. It implements [dialect.Encoder]. It is
// not for concurrent use.
//
// It refuses an event with a status, an outcome or a result that the document
// does not list, or with a number outside its range. The error is a
// [*agentevents.RuleError] with a rule of this package. An unchanged event that
// was read with Verbatim is not refused: its line is written as it was read.
//
// A ToolCalled writes nothing: its ToolReturned writes the line for both. A call
// that never returns is dropped and listed. Where an event lacks a required
// member, the encoder makes it up from the log so far and lists it: the agent's
// current step, its totals, the time since its start. It tells agents without an
// id apart by their node. It keeps a few numbers for every agent of every run.
type Encoder struct {
	losses  dialect.Losses
	pend    dialect.Pending  // losses of the current event
	counted [2]*dialect.Loss // two losses that most events have
	times   jsonwire.TimeCache
	runs    map[string]*runState
	agents  map[agentKey]*agentState
	last    *agentState
	lines   int              // written so far
	calls   dialect.Calls    // the calls that have not returned
	ids     map[idKey]string // the normalised ids

	kept    string  // the extra member with the dialect's name
	used    set     // members of the line that come from kept
	damaged bool    // a word of the event is not valid UTF-8
	whole   bool    // set while lines are compared: nothing is cut
	check   Decoder // reads origin lines
	events  []agentevents.Event
	scratch [2][]byte
}

type agentKey struct{ run, agent string }

type idKey struct {
	p  *pattern
	id string
}

type runState struct {
	id      string
	matches bool   // id matches the document's pattern
	count   uint64 // the number of lines so far
}

// agentState is what the encoder knows of an agent: its end needs most of it.
type agentState struct {
	key     agentKey
	matches bool // key.agent matches the document's pattern
	run     *runState
	step    int
	stepped bool // a line of the agent had a step
	from    int  // the first step of this attempt
	totals  agentevents.Totals
	refused int // refusals without a call in totals.ToolCalls: their lines look like calls
	started time.Time
}

// NewEncoder returns an encoder.
func NewEncoder() *Encoder { return &Encoder{} }

// maxIDs is the number of normalised ids that are remembered.
const maxIDs = 1 << 14

// Append appends the line of an event. See [dialect.Encoder].
func (e *Encoder) Append(dst []byte, ev agentevents.Event) ([]byte, error) {
	if ev.Kind() == "" {
		_, err := ev.AppendJSON(nil) // its error says what is wrong with the payload
		return dst, err
	}
	origin := ev.Origin()
	broken := breaks(&ev)
	if broken != nil && origin == "" {
		return dst, broken
	}
	e.pend.Reset()
	mark := len(dst)
	a := e.agent(&ev)
	dst, err := e.line(dst, &ev, a)
	if err == dialect.ErrNoCounterpart {
		err = e.losses.Refuse(&ev)
	}
	if err == nil && e.damaged {
		e.scratch[0], err = ev.AppendJSON(e.scratch[0][:0]) // its error says what is damaged
	}
	if err != nil {
		return dst[:mark], err
	}
	if bytes.IndexByte(dst[mark:], 0xef) >= 0 { // the first byte of U+FFFD
		e.replaced(&ev, a, dst[mark:])
	}
	verbatim := false
	if origin != "" && len(dst) > mark {
		if verbatim = e.says(origin, &ev, a); verbatim {
			dst = append(append(dst[:mark], origin...), '\n')
		}
	}
	if broken != nil && !verbatim { // a verbatim line was like that when it was read
		return dst[:mark], broken
	}
	e.pend.Count(&e.losses, &ev, verbatim)
	if len(dst) > mark {
		e.lines++
		e.everywhere(&ev, a.run, verbatim)
	}
	e.remember(&ev, a)
	return dst, nil
}

// replaced lists the texts of an event that have U+FFFD on its line.
func (e *Encoder) replaced(ev *agentevents.Event, a *agentState, line []byte) {
	list := dialect.Damaged(ev, line)
	if p, ok := ev.Payload.(*agentevents.ToolReturned); ok && !p.OneEvent {
		if call := e.calls.Get(ev.RunID, a.key.agent, p.CallID); call != nil {
			list = append(list, dialect.Damaged(call, line)...) // the line also has the texts of the call
		}
	}
	for _, at := range list {
		e.pend.Add(dialect.Altered, at, dialect.DamagedText)
	}
}

// says reports whether origin, written as the next line, says what ev says, as
// far as the document can. e.events[0] is then the event that a reader makes of
// origin.
func (e *Encoder) says(origin string, ev *agentevents.Event, a *agentState) bool {
	var err error
	e.check = Decoder{after: e.check.after, lines: e.lines}
	e.events, err = e.check.Decode(e.events[:0], []byte(origin))
	if err != nil || len(e.events) != 1 {
		return false
	}
	e.whole = true
	n := e.pend.Len()
	now, err := e.line(e.scratch[0][:0], ev, a)
	m := e.pend.Len()
	was, wasErr := e.line(e.scratch[1][:0], &e.events[0], a)
	e.scratch = [...][]byte{now, was}
	made := e.pend.SameMade(n, m) // equal lines are not enough: one event may have a fact that is made up for the other
	e.pend.Cut(n)
	e.whole = false
	return err == nil && wasErr == nil && made && bytes.Equal(now, was)
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

// agentOf returns the agent's id, or the id of the node's execution, or of the
// node: agents without an id stay apart.
func agentOf(ev *agentevents.Event) string {
	return cmp.Or(ev.AgentID, ev.NodeRunID, ev.NodeID)
}

// agent returns the state of the event's agent.
func (e *Encoder) agent(ev *agentevents.Event) *agentState {
	key := agentKey{ev.RunID, agentOf(ev)}
	if e.last != nil && e.last.key == key {
		return e.last
	}
	a := e.agents[key]
	if a == nil {
		run := e.runs[key.run]
		if run == nil {
			run = &runState{id: strings.Clone(key.run), matches: runPattern.matches(key.run)} // a copy: do not keep the line alive
			if e.runs == nil {
				e.runs = map[string]*runState{}
			}
			e.runs[run.id] = run
		}
		key = agentKey{run.id, strings.Clone(key.agent)}
		a = &agentState{key: key, run: run, matches: agentPattern.matches(key.agent)}
		if e.agents == nil {
			e.agents = map[agentKey]*agentState{}
		}
		e.agents[key] = a
	}
	e.last = a
	return a
}

// remember notes what later lines need to know of ev.
func (e *Encoder) remember(ev *agentevents.Event, a *agentState) {
	switch p := ev.Payload.(type) {
	case *agentevents.ToolCalled:
		e.open(ev, p, a)
	case *agentevents.ToolReturned:
		if p.Status == agentevents.ToolStatusForbidden || p.Status == agentevents.ToolStatusRateLimited {
			if p.OneEvent || e.calls.Get(ev.RunID, a.key.agent, p.CallID) == nil {
				a.refused++
			}
		}
		if !p.OneEvent {
			e.returned(ev, p, a)
		}
	}
	if ev.Step.OK && ev.Step.V >= 0 && (!a.stepped || ev.Step.V > a.step) {
		a.step, a.stepped = ev.Step.V, true
	}
	switch p := ev.Payload.(type) {
	case *agentevents.AgentStarted:
		a.totals, a.refused, a.started = agentevents.Totals{}, 0, ev.Time
		if a.stepped {
			a.from = a.step + 1
		}
	case *agentevents.AgentTransition:
		a.steppedAt(ev)
	case *agentevents.ToolReturned:
		a.steppedAt(ev)
		a.totals.ToolCalls++
	case *agentevents.AuditChecked:
		if ev.AgentID == "" {
			break // it is of the run
		}
		a.totals.AuditCheckpoints++
		switch p.Result {
		case agentevents.AuditPass:
			a.totals.AuditsPassed++
		case agentevents.AuditFail:
			a.totals.AuditsFailed++
		}
	}
}

// at returns the agent's current step in this attempt.
func (a *agentState) at() int { return max(a.step, a.from) }

// steppedAt notes a step that the line made up.
func (a *agentState) steppedAt(ev *agentevents.Event) {
	if !ev.Step.OK {
		a.step, a.stepped = a.at(), true
	}
}

// everywhere counts the members that no line has: event ids, call ids, sequence
// numbers. They are not lost where a reader derives the same ones.
func (e *Encoder) everywhere(ev *agentevents.Event, run *runState, verbatim bool) {
	next := run.count
	run.count++
	if p, ok := ev.Payload.(*agentevents.ToolReturned); ok && !(verbatim && e.derived(p)) {
		e.losses.Add(ev, dialect.Dropped, "/payload/callId", "the document has no call ids")
	}
	if ev.ID != "" && !(verbatim && ev.ID == e.events[0].ID) {
		e.every(ev, 0, "/id", noIDs)
	}
	if ev.Sequence != next {
		e.every(ev, 1, "/sequence", "readers count lines")
	}
}

// derived reports whether a reader derives the call's id from the original line.
func (e *Encoder) derived(p *agentevents.ToolReturned) bool {
	read, ok := e.events[0].Payload.(*agentevents.ToolReturned)
	return ok && read.CallID == p.CallID
}

const noIDs = "the document has no event ids"

// every counts a dropped member over all kinds. n is its index in e.counted.
func (e *Encoder) every(ev *agentevents.Event, n int, pointer, detail string) {
	if e.counted[n] == nil {
		e.counted[n] = e.losses.Every(ev, dialect.Dropped, pointer, detail)
		return
	}
	e.counted[n].Count++
}

// line appends the event's line, if it has one, and adds the losses to e.pend. It
// changes no other state.
func (e *Encoder) line(dst []byte, ev *agentevents.Event, a *agentState) ([]byte, error) {
	l := &e.pend
	if y := ev.Time.Unix(); y < minTime || y > maxTime {
		return dst, refused(ev, agentevents.RuleFieldRange, "/timestamp", "is outside the years 0 to 9999")
	}
	e.damaged = false
	stepped := false // the line has a step
	v := vUnknown
	switch p := ev.Payload.(type) {
	case *agentevents.AgentStarted:
		v = vStart
		dst = e.begin(dst, ev, v, a)
		dst = jsonwire.AppendString(append(dst, `,"task":`...), p.Task)
		if p.Task == "" && !e.wasEmpty(mTask) {
			l.Add(dialect.Made, "/"+string(Name)+"/task", "written as an empty text")
		}
		if p.Model != "" || e.wasEmpty(mModel) {
			dst = e.word(append(dst, `,"model":`...), p.Model)
		}
		l.Drop("/payload/agent", p.Agent.OK)
		l.Drop("/payload/providerSessionId", p.ProviderSessionID != "")
		l.Drop("/payload/prompt", p.Prompt != "")
		l.Drop("/payload/attempt", p.Attempt.OK)
		l.Drop("/payload/resumed", p.Resumed)
	case *agentevents.AgentTransition:
		v = vTransition
		dst = e.begin(dst, ev, v, a)
		dst, stepped = e.step(dst, ev, a), true
		dst = e.word(append(dst, `,"from":`...), string(p.From))
		dst = e.word(append(dst, `,"to":`...), string(p.To))
		if p.Reason != "" || e.wasEmpty(mReason) {
			dst = jsonwire.AppendString(append(dst, `,"reason":`...), p.Reason)
		}
	case *agentevents.ToolCalled:
		return dst, nil
	case *agentevents.ToolReturned:
		v = vTool
		dst = e.begin(dst, ev, v, a)
		dst, stepped = e.step(dst, ev, a), true
		dst = e.tool(dst, ev, p, a)
	case *agentevents.AuditChecked:
		v = vAudit
		dst = e.begin(dst, ev, v, a)
		dst = e.id(append(dst, `,"checkpoint_id":`...), ev, &checkpointPattern, "/payload/checkpointId", p.CheckpointID)
		dst = e.word(append(dst, `,"result":`...), string(p.Result))
		dst = appendSeconds(append(dst, `,"duration_s":`...), p.Duration)
		if p.Evidence != "" {
			raw, err := jsonwire.Compact(string(p.Evidence))
			if err != nil {
				return dst, refused(ev, agentevents.RuleFieldJSON, "/payload/evidence", err.Error())
			}
			if raw[0] == '{' {
				dst = append(append(dst, `,"evidence":`...), raw...)
			} else {
				l.Add(dialect.Dropped, "/payload/evidence", "the document allows only an object")
			}
		}
	case *agentevents.AgentEnded:
		v = vEnd
		dst = e.begin(dst, ev, v, a)
		dst = e.ended(dst, ev, p, a)
	case *agentevents.Unknown:
		var err error
		if dst, err = e.foreign(dst, ev, p, a); err != nil {
			return dst, err
		}
		stepped = true
	default:
		return dst, dialect.ErrNoCounterpart
	}
	if v != vUnknown {
		dst = e.extra(dst, v)
	}
	e.envelope(ev, stepped)
	return append(dst, '}', '\n'), nil
}

// The first and the last time that a line can say, in Unix seconds.
const (
	minTime = -62167219200
	maxTime = 253402300799
)

// refused returns the error of an event that the document cannot say.
func refused(ev *agentevents.Event, rule agentevents.Rule, pointer, detail string) error {
	return &agentevents.RuleError{
		Rule: rule, Kind: ev.Kind(), RunID: ev.RunID, AgentID: ev.AgentID, EventID: ev.ID, Sequence: ev.Sequence, Pointer: pointer, Detail: detail,
	}
}

// extra appends the extra members of a line of variant v, except those that
// already have their place on it.
func (e *Encoder) extra(dst []byte, v int) []byte {
	if e.kept == "" {
		return dst
	}
	if e.kept[0] != '{' {
		e.pend.Add(dialect.Dropped, "/"+string(Name), "it is not an object")
		return dst
	}
	members := base | variants[v].members
	for name, raw := range jsonwire.Members(e.kept) {
		if m := members.number(name); m > 0 {
			if !e.used.has(m) {
				e.pend.Add(dialect.Dropped, "/"+string(Name)+"/"+jsonwire.Token(name), "the line has a member of that name")
			}
			continue
		}
		dst = jsonwire.AppendString(append(dst, ','), name)
		dst = append(append(dst, ':'), raw...)
	}
	return dst
}

// number returns the member of s with that name, or 0.
func (s set) number(name string) int {
	for ; s != 0; s &= s - 1 {
		if m := bits.TrailingZeros32(uint32(s)); memberName(m) == name {
			return m
		}
	}
	return 0
}

// keptMember returns the value of a member that the decoder kept, or "".
func (e *Encoder) keptMember(m int) string {
	for name, raw := range jsonwire.Members(e.kept) {
		if name == memberName(m) {
			return raw
		}
	}
	return ""
}

// wasEmpty reports whether the member was present and empty on the line: then it
// is written again.
func (e *Encoder) wasEmpty(m int) bool { return e.kept != "" && e.keptEmpty(m) }

func (e *Encoder) keptEmpty(m int) bool {
	if e.keptMember(m) != `""` {
		return false
	}
	e.used |= 1 << m
	return true
}

// begin appends the members at the start of a line, up to the agent.
func (e *Encoder) begin(dst []byte, ev *agentevents.Event, v int, a *agentState) []byte {
	e.used, e.kept = 0, string(ev.Extra(string(Name)))
	dst = e.base(dst, ev, variants[v].event, a)
	if v == vAudit && ev.AgentID == "" {
		if e.wasEmpty(mAgentID) {
			return append(dst, `,"agent_id":""`...)
		}
		return append(dst, `,"agent_id":null`...)
	}
	dst = append(dst, `,"agent_id":`...)
	if ev.AgentID == "" && a.key.agent != "" {
		e.pend.Add(dialect.Made, "/agentId", "the node's execution, or the node")
		return append(append(append(dst, '"'), agentPattern.normalize(a.key.agent)...), '"')
	}
	if a.matches && ev.AgentID == a.key.agent {
		return append(append(append(dst, '"'), ev.AgentID...), '"') // nothing to escape
	}
	return e.id(dst, ev, &agentPattern, "/agentId", ev.AgentID)
}

func (e *Encoder) base(dst []byte, ev *agentevents.Event, event string, a *agentState) []byte {
	at := ev.Time
	if at.IsZero() {
		e.pend.Add(dialect.Made, "/timestamp", "the first moment of the year 1")
	}
	if at.Nanosecond()%1e6 != 0 && !e.whole {
		e.pend.Add(dialect.Altered, "/timestamp", "cut to milliseconds")
		at = at.Truncate(time.Millisecond)
	}
	dst = e.times.Append(append(dst, `{"ts":`...), at)
	dst = append(dst, `,"run_id":`...)
	if a.run.matches && ev.RunID == a.run.id {
		dst = append(append(append(dst, '"'), ev.RunID...), '"')
	} else {
		dst = e.id(dst, ev, &runPattern, "/runId", ev.RunID)
	}
	return jsonwire.AppendString(append(dst, `,"event":`...), event)
}

// word appends a text that must be valid UTF-8.
func (e *Encoder) word(dst []byte, s string) []byte {
	e.damaged = e.damaged || !jsonwire.ValidUTF8(s)
	return jsonwire.AppendString(dst, s)
}

// id appends an id, normalised where it does not match its pattern.
func (e *Encoder) id(dst []byte, ev *agentevents.Event, p *pattern, pointer, id string) []byte {
	if p.matches(id) {
		return append(append(append(dst, '"'), id...), '"') // nothing to escape
	}
	what, detail := dialect.Altered, "normalised: it does not match "+p.syntax
	if id == "" {
		what, detail = dialect.Made, "required"
	}
	e.pend.Add(what, pointer, detail)
	key := idKey{p, id}
	n, ok := e.ids[key]
	if !ok {
		n = p.normalize(id)
		if e.ids == nil {
			e.ids = map[idKey]string{}
		}
		if len(e.ids) < maxIDs {
			e.ids[idKey{p, strings.Clone(id)}] = n
		}
	}
	return jsonwire.AppendString(dst, n)
}

// step appends the step: transitions and tool invocations require it.
func (e *Encoder) step(dst []byte, ev *agentevents.Event, a *agentState) []byte {
	step := ev.Step.V
	if !ev.Step.OK {
		step = a.at()
		e.pend.Add(dialect.Made, "/step", "the step the agent is at")
	}
	return jsonwire.AppendInt(append(dst, `,"step":`...), int64(step))
}

// open keeps a call until it returns.
func (e *Encoder) open(ev *agentevents.Event, p *agentevents.ToolCalled, a *agentState) {
	old, ok := e.calls.Put(ev, a.key.agent, p.CallID)
	if old != nil {
		e.losses.Add(old, dialect.Dropped, "", unreturned)
	}
	if !ok {
		e.losses.Add(ev, dialect.Dropped, "", "too many calls are open")
	}
}

const unreturned = "the call never returned"

// returned forgets the call of p, and lists what the line does not say of it.
func (e *Encoder) returned(ev *agentevents.Event, p *agentevents.ToolReturned, a *agentState) {
	call := e.calls.Get(ev.RunID, a.key.agent, p.CallID)
	if call == nil {
		return
	}
	e.calls.Remove(ev.RunID, a.key.agent, p.CallID)
	called, l := call.Payload.(*agentevents.ToolCalled), &e.pend
	e.losses.Add(call, dialect.Altered, "", "written with its return")
	if call.ID != "" {
		e.every(call, 0, "/id", noIDs)
	}
	l.Reset()
	e.envelope(call, !call.Step.OK || call.Step == ev.Step)
	l.Drop("/"+string(Name), call.Extra(string(Name)) != "")
	l.Drop("/payload/toolId", called.ToolID != p.ToolID)
	l.Drop("/payload/attempt", called.Attempt.OK)
	l.Drop("/payload/retryOf", called.RetryOf != "")
	l.Drop("/payload/argsHash", called.ArgsHash != "")
	l.Drop("/payload/principal", called.Principal != "")
	l.Drop("/payload/transport", called.Transport != "")
	l.Drop("/payload/attributes", called.Attributes != "")
	l.Count(&e.losses, call, false)
}

// tool appends the members of a tool_invocation.
func (e *Encoder) tool(dst []byte, ev *agentevents.Event, p *agentevents.ToolReturned, a *agentState) []byte {
	l := &e.pend
	input, args, duration := p.ArgumentsSummary, p.Arguments, p.Duration
	since := "0: no call came before"
	if !p.OneEvent {
		if call := e.calls.Get(ev.RunID, a.key.agent, p.CallID); call != nil {
			called := call.Payload.(*agentevents.ToolCalled)
			l.Drop("/payload/arguments", p.Arguments != "" && p.Arguments != called.Arguments)
			l.Drop("/payload/argumentsSummary", p.ArgumentsSummary != "" && p.ArgumentsSummary != called.ArgumentsSummary)
			input, args = called.ArgumentsSummary, called.Arguments
			if !duration.OK {
				duration.V, since = max(0, ev.Time.Sub(call.Time)), "the time since the call"
			}
		}
		l.Add(dialect.Altered, "/payload/oneEvent", "the call and its return are one line")
	}
	dst = e.word(append(dst, `,"tool_name":`...), p.ToolID)
	if p.ToolID == "" && !e.wasEmpty(mToolName) {
		l.Add(dialect.Made, "/"+string(Name)+"/tool_name", "written as an empty text")
	}
	if !p.Duration.OK {
		l.Add(dialect.Made, "/payload/durationMs", since)
	}
	dst = appendSeconds(append(dst, `,"duration_s":`...), duration.V)
	dst = strconv.AppendBool(append(dst, `,"ok":`...), p.Status == agentevents.ToolStatusOK)
	switch p.Status {
	case agentevents.ToolStatusOK, agentevents.ToolStatusError:
	case "":
		l.Add(dialect.Made, "/payload/status", "written as not ok")
	default:
		l.Add(dialect.Altered, "/payload/status", "the document has only ok and not ok")
	}
	dst = e.summary(dst, mInputSummary, "/payload/arguments", "/payload/argumentsSummary", input, args)
	dst = e.summary(dst, mOutputSummary, "/payload/result", "/payload/resultSummary", p.ResultSummary, p.Result)
	if p.Error.OK {
		dst = jsonwire.AppendString(append(dst, `,"error":`...), p.Error.V.Message)
		l.Drop("/payload/error/code", p.Error.V.Code != "")
		l.Drop("/payload/error/details", p.Error.V.Details != "")
		l.Drop("/payload/error/retryable", p.Error.V.Retryable.OK)
	}
	return dst
}

// cut is the detail of a summary that was too long.
var cut = "cut to " + strconv.Itoa(MaxSummary) + " characters"

// summary appends a text of at most MaxSummary characters. If the event has only
// the whole value, its JSON text is the summary.
func (e *Encoder) summary(dst []byte, m int, pointer, summary, text string, value agentevents.JSON) []byte {
	if value != "" {
		if text == "" {
			text = string(value)
			e.pend.Add(dialect.Altered, pointer, "written as a summary")
			e.pend.Add(dialect.Made, summary, "the value's text")
		} else {
			e.pend.Add(dialect.Dropped, pointer, "the line has its summary")
		}
	}
	if text == "" && !e.wasEmpty(m) {
		return dst
	}
	if len(text) > MaxSummary && !e.whole {
		if n := jsonwire.FirstCharacters(text, MaxSummary); n < len(text) {
			text = text[:n]
			e.pend.Add(dialect.Altered, summary, cut)
		}
	}
	return jsonwire.AppendString(append(append(dst, ','), memberNames[m-1]...), text)
}

// ended appends the members of an agent_run_end.
func (e *Encoder) ended(dst []byte, ev *agentevents.Event, p *agentevents.AgentEnded, a *agentState) []byte {
	l := &e.pend
	outcome := p.Outcome
	if outcome == "" {
		outcome = agentevents.OutcomePartial
		if p.Error.OK {
			outcome = agentevents.OutcomeAborted
		}
		l.Add(dialect.Made, "/payload/outcome", "aborted with an error, partial otherwise")
	}
	dst = e.word(append(dst, `,"outcome":`...), string(outcome))
	dst = e.totals(dst, p, a)
	duration := p.Duration.V
	if !p.Duration.OK {
		since := "0: no start came before"
		if !a.started.IsZero() {
			duration, since = max(0, ev.Time.Sub(a.started)), "the time since the start"
		}
		l.Add(dialect.Made, "/payload/durationMs", since)
	}
	dst = appendSeconds(append(dst, `,"total_duration_s":`...), duration)
	if p.ConvergenceScore.OK {
		dst = appendFloat(append(dst, `,"convergence_score":`...), p.ConvergenceScore.V)
	}
	l.Drop("/payload/error", p.Error.OK)
	l.Drop("/payload/result", p.Result != "")
	l.Drop("/payload/structuredOutput", p.StructuredOutput != "")
	l.Drop("/payload/usage", p.Usage.OK)
	l.Drop("/payload/modelUsage", p.ModelUsage != nil)
	l.Drop("/payload/totalCostUsd", p.TotalCostUSD.OK)
	l.Drop("/payload/numTurns", p.NumTurns.OK)
	l.Drop("/payload/resultSchema", p.ResultSchema != "")
	return dst
}

// totals appends the totals of an end. If the event has none, it takes those that
// the decoder kept of the line, and counts the others.
func (e *Encoder) totals(dst []byte, p *agentevents.AgentEnded, a *agentState) []byte {
	t := p.Totals.V
	if !p.Totals.OK {
		t = a.totals
		if a.stepped {
			t.Steps = a.step + 1 - a.from
		}
		e.pend.Add(dialect.Made, "/payload/totals", "counted by the encoder")
	} else if short := a.totals.ToolCalls - t.ToolCalls; short > 0 && short <= a.refused {
		e.pend.Add(dialect.Altered, "/payload/totals/toolCalls", "refused calls have a line and are counted")
		t.ToolCalls += short
	}
	for i, n := range [...]int{t.Steps, t.ToolCalls, t.AuditCheckpoints, t.AuditsPassed, t.AuditsFailed} {
		m := mTotalSteps + i
		dst = append(append(dst, ','), memberNames[m-1]...)
		if e.kept != "" && !p.Totals.OK {
			if raw := e.keptCount(m); raw != "" {
				e.used |= 1 << m
				e.pend.Add(dialect.Altered, "/"+string(Name)+"/"+memberName(m), "written with totals that are made up")
				dst = append(dst, raw...)
				continue
			}
		}
		dst = jsonwire.AppendInt(dst, int64(n))
	}
	return dst
}

// keptCount returns a total that someTotals kept, or "".
func (e *Encoder) keptCount(m int) string {
	raw := e.keptMember(m)
	if n, err := strconv.Atoi(raw); err == nil && strconv.Itoa(n) == raw {
		return raw
	}
	return ""
}

// foreign appends the line of an event with an unknown type. The payload must be
// an object: its members stand on the line.
func (e *Encoder) foreign(dst []byte, ev *agentevents.Event, p *agentevents.Unknown, a *agentState) ([]byte, error) {
	raw, err := "{}", error(nil)
	if p.Raw != "" {
		raw, err = jsonwire.Compact(string(p.Raw))
	} else {
		e.pend.Add(dialect.Made, "/payload", "an empty object")
	}
	typ := strings.TrimPrefix(string(p.Type), unknownPrefix)
	if err != nil || raw[0] != '{' || typ == "" || variantOf(typ) != vUnknown {
		return dst, dialect.ErrNoCounterpart
	}
	if dialect.UnknownKind(Name, typ) != p.Type {
		e.pend.Add(dialect.Altered, "/type", "gets another prefix")
	}
	e.pend.Drop("/"+string(Name), ev.Extra(string(Name)) != "")
	reserved := base
	dst = e.base(dst, ev, typ, a)
	if ev.AgentID != "" {
		reserved |= 1 << mAgentID
		dst = e.id(append(dst, `,"agent_id":`...), ev, &agentPattern, "/agentId", ev.AgentID)
	}
	if ev.Step.OK {
		reserved |= 1 << mStep
		dst = jsonwire.AppendInt(append(dst, `,"step":`...), int64(ev.Step.V))
	}
	for name, value := range jsonwire.Members(raw) {
		m := membersOf(vUnknown).number(name)
		switch {
		case m == 0:
		case reserved.has(m):
			e.pend.Add(dialect.Dropped, "/payload/"+name, "the line has a member of that name")
			continue
		case e.taken(m, value):
			dst = e.takenMember(dst, ev, m, value)
			continue
		}
		dst = jsonwire.AppendString(append(dst, ','), name)
		dst = append(append(dst, ':'), value...)
	}
	return dst, nil
}

// taken reports whether a reader takes this member of the payload as the agent or
// the step of the event.
func (e *Encoder) taken(m int, value string) bool {
	e.check.scanner.Reset(value)
	return e.check.fits(m)
}

func (e *Encoder) takenMember(dst []byte, ev *agentevents.Event, m int, value string) []byte {
	dst = append(append(dst, ','), memberNames[m-1]...)
	if m == mAgentID {
		e.pend.Add(dialect.Dropped, "/payload/agent_id", "read as the agent")
		e.pend.Add(dialect.Made, "/agentId", "a member of the payload is read as the agent")
		return e.id(dst, ev, &agentPattern, "/agentId", jsonwire.Text(value))
	}
	e.pend.Add(dialect.Dropped, "/payload/step", "read as the step")
	e.pend.Add(dialect.Made, "/step", "a member of the payload is read as the step")
	return append(dst, value...)
}

// envelope lists what the line does not say of the envelope.
func (e *Encoder) envelope(ev *agentevents.Event, stepped bool) {
	l := &e.pend
	l.Drop("/step", ev.Step.OK && !stepped)
	if s := &ev.Scope; len(s.SessionID)|len(s.TaskID)|len(s.WorkflowID)|len(s.Phase)|len(s.NodeID)|len(s.NodeRunID) != 0 {
		l.Drop("/sessionId", s.SessionID != "")
		l.Drop("/taskId", s.TaskID != "")
		l.Drop("/workflowId", s.WorkflowID != "")
		l.Drop("/phase", s.Phase != "")
		l.Drop("/nodeId", s.NodeID != "")
		l.Drop("/nodeRunId", s.NodeRunID != "")
	}
	l.Drop("/actor", ev.Actor != "")
	l.Drop("/parentAgentId", ev.ParentAgentID != "")
	l.Drop("/parentCallId", ev.ParentCallID != "")
	l.Drop("/traceId", ev.TraceID != "")
	l.Drop("/spanId", ev.SpanID != "")
	l.Drop("/parentSpanId", ev.ParentSpanID != "")
	l.Drop("/causationId", ev.CausationID != "")
	l.Drop("/marks", ev.Marks != 0)
	if ev.SchemaVersion != agentevents.SchemaVersion {
		what := dialect.Dropped
		if ev.SchemaVersion == "" {
			what = dialect.Made
		}
		l.Add(what, "/schemaVersion", "readers give the native version")
	}
	for name := range ev.Extras() {
		l.Drop("/"+jsonwire.Token(name), name != string(Name))
	}
	if ev.PayloadExtra() {
		l.Add(dialect.Dropped, "/payload", "members that no field has")
	}
}

// appendSeconds appends a duration in seconds, always with a point, as the
// document does: 65.0, 0.04.
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
