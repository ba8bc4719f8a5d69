package openharness

import (
	"bytes"
	"cmp"
	"math"
	"math/bits"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect"
	"github.com/agentevents/agentevents/internal/jsonwire"
)

// An Encoder writes events as lines of the document; it implements
// [dialect.Encoder]. It is for the events of one log, in order, and not for
// concurrent use.
//
// A tool call is written when it returns. Node and agent events without a node
// or an execution of it get the agent's id for both, or else the run's. An
// agent that ended with an error or was aborted is written as agent:error:
// agent:complete is for success. Numbers that [RuleRange] does not allow are
// refused, unless they were read like that; words that the document does not
// list are written: later versions may list them.
type Encoder struct {
	losses  dialect.Losses
	counted [numCommon]*dialect.Loss // the common ones
	common  uint16                   // those of the event at hand, by bit
	run     string                   // that a reader takes lines to be of, but the first of a flow
	over    bool                     // it has ended
	begun   bool                     // there is a line
	pend    dialect.Pending          // losses of the event at hand
	kept    string                   // the members that the decoder kept of its line

	calls  dialect.Calls     // open ones
	flows  map[string]string // names of runs
	starts starts            // of agents
	blocks blocks            // as a reader of the lines sees them

	check   Decoder // of origin lines
	scratch []byte
	events  []agentevents.Event
}

var _ dialect.Encoder = (*Encoder)(nil)

// NewEncoder returns an encoder.
func NewEncoder() *Encoder { return &Encoder{} }

// Losses that events of every kind may have, and most have.
const (
	lostID = iota
	lostRun
	lostSequence
	lostSession
	lostStep
	lostAgent
	madeNode
	madeExecution
	mixedRuns
	numCommon
)

var commonLosses = [numCommon]struct {
	what            dialect.Change
	pointer, detail string
}{
	lostID:        {dialect.Dropped, "/id", "events have none"},
	lostRun:       {dialect.Dropped, "/runId", "a log is of one run"},
	lostSequence:  {dialect.Dropped, "/sequence", "the order is that of the lines"},
	lostSession:   {dialect.Dropped, "/sessionId", ""},
	lostStep:      {dialect.Dropped, "/step", ""},
	lostAgent:     {dialect.Dropped, "/agentId", "written as the execution of a node"},
	madeNode:      {dialect.Made, "/nodeId", ""},
	madeExecution: {dialect.Made, "/nodeRunId", ""},
	mixedRuns:     {dialect.Altered, "/runId", "runs are mixed: readers take them for one"},
}

// vCalled is the variant of an event that waits: it has no line.
const vCalled = numVariants

// Append appends the event's line; see [dialect.Encoder].
func (e *Encoder) Append(dst []byte, ev agentevents.Event) ([]byte, error) {
	e.pend.Reset()
	e.common = 0
	mark := len(dst)
	dst, v, err := e.line(dst, &ev)
	if err == dialect.ErrNoCounterpart {
		err = e.losses.Refuse(&ev)
	}
	if err != nil {
		return dst[:mark], err
	}
	if bytes.IndexByte(dst[mark:], 0xef) >= 0 {
		// Damaged text comes out as U+FFFD, which begins with this byte. The
		// native format knows what is damaged.
		if e.scratch, err = ev.AppendJSON(e.scratch[:0]); err != nil {
			return dst[:mark], err
		}
	}
	verbatim, on := false, execution(&ev)
	if origin := ev.Origin(); origin != "" && len(dst) > mark {
		if verbatim = string(dst[mark:len(dst)-1]) == origin; !verbatim && e.says(origin, ev.RunID, dst[mark:], v) {
			verbatim, on = true, ev.NodeRunID // which the line may lack
			dst = append(append(dst[:mark], origin...), '\n')
		}
	}
	if pointer, detail := outOfRange(ev.Payload, v); pointer != "" && !verbatim {
		return dst[:mark], e.refuse(&ev, RuleRange, pointer, detail)
	}
	e.block(&ev, v, on, verbatim)
	e.pend.Count(&e.losses, &ev, verbatim)
	if v != vCalled {
		if !verbatim { // what was read of the line is read of it again
			e.everywhere(&ev)
		}
		e.runs(&ev, v, verbatim)
		e.count(&ev, verbatim)
	}
	e.remember(&ev, len(dst)-mark)
	return dst, nil
}

// says reports whether origin, a line of that run, says what written, a line of
// variant v with its newline, says.
func (e *Encoder) says(origin, run string, written []byte, v int) bool {
	e.check = Decoder{o: Options{RunID: run}, run: run, after: e.check.after}
	var err error
	e.events, err = e.check.Decode(e.events[:0], []byte(origin))
	if err != nil || len(e.events) != 1 {
		return false
	}
	n, common, kept := e.pend.Len(), e.common, e.kept
	was, wasV, err := e.line(e.scratch[:0], &e.events[0])
	e.scratch, e.common, e.kept = was, common, kept
	e.pend.Cut(n)
	return err == nil && wasV == v && bytes.Equal(was, written)
}

// End counts the calls that did not return: the document has no line for them.
func (e *Encoder) End(dst []byte) ([]byte, error) {
	e.forget()
	return dst, nil
}

// forget gives up the open calls.
func (e *Encoder) forget() {
	for _, call := range e.calls.Clear() {
		e.losses.Add(call, dialect.Dropped, "", unreturned)
	}
}

const unreturned = "the call did not return"

// Losses returns what the lines do not say of the events, and what they say
// beyond them.
func (e *Encoder) Losses() []dialect.Loss { return e.losses.List() }

// everywhere counts what no line says of its event.
func (e *Encoder) everywhere(ev *agentevents.Event) {
	if p, ok := ev.Payload.(*agentevents.ToolReturned); ok && p.CallID != "" {
		e.losses.Add(ev, dialect.Dropped, "/payload/callId", "")
	}
	if ev.ID != "" {
		e.common |= 1 << lostID
	}
	if ev.RunID != "" {
		e.common |= 1 << lostRun
	}
	if ev.Sequence != 0 {
		e.common |= 1 << lostSequence
	}
}

// runs counts an event of another run than a reader takes it to be of: only
// flow:start begins one. A log that was read has runs of flows that never ended.
func (e *Encoder) runs(ev *agentevents.Event, v int, verbatim bool) {
	switch {
	case v == vFlowStart || !e.begun:
		if e.begun && !e.over && !verbatim && ev.RunID != e.run {
			e.common |= 1 << mixedRuns
		}
		e.run, e.over, e.begun = strings.Clone(ev.RunID), false, true // and not its line
	case ev.RunID != e.run:
		e.common |= 1 << mixedRuns
		return
	}
	if v == vFlowComplete || v == vFlowAborted {
		e.over = true
	}
}

// count counts the common losses of an event. Of one whose line is written as it
// was read nothing was made up.
func (e *Encoder) count(ev *agentevents.Event, verbatim bool) {
	for common := e.common; common != 0; common &= common - 1 {
		i := bits.TrailingZeros16(common)
		l := &commonLosses[i]
		if verbatim && l.what == dialect.Made {
			continue
		}
		if e.counted[i] == nil {
			e.counted[i] = e.losses.Every(ev, l.what, l.pointer, l.detail)
		} else {
			e.counted[i].Count++
		}
	}
}

func (e *Encoder) lose(what dialect.Change, pointer, detail string) {
	e.pend.Add(what, pointer, detail)
}

func (e *Encoder) drop(pointer string, present bool) { e.pend.Drop(pointer, present) }

// remember keeps what later lines need of the event, whose line is that long.
func (e *Encoder) remember(ev *agentevents.Event, size int) {
	switch p := ev.Payload.(type) {
	case *agentevents.RunStarted:
		if e.flows == nil || len(e.flows) >= dialect.MaxCalls { // runs that end nowhere
			e.flows = map[string]string{}
		}
		e.flows[strings.Clone(ev.RunID)] = strings.Clone(p.Name) // and not their line
	case *agentevents.RunCompleted, *agentevents.RunFailed, *agentevents.RunCancelled:
		delete(e.flows, ev.RunID)
		e.starts.endRun(ev.RunID)
	case *agentevents.NodeCompleted, *agentevents.NodeFailed:
		e.starts.end(ev)
	case *agentevents.AgentStarted:
		e.starts.begin(ev, size)
	case *agentevents.AgentEnded:
		e.starts.end(ev)
	case *agentevents.ToolCalled:
		old, ok := e.calls.Put(ev, agentOf(ev), p.CallID)
		if old != nil {
			e.losses.Add(old, dialect.Dropped, "", unreturned)
		}
		if !ok {
			e.forget()
			e.calls.Put(ev, agentOf(ev), p.CallID)
		}
	case *agentevents.ToolReturned:
		if p.OneEvent {
			break
		}
		if call := e.calls.Get(ev.RunID, agentOf(ev), p.CallID); call != nil {
			e.called(call, ev, p)
			e.calls.Remove(ev.RunID, agentOf(ev), p.CallID)
		}
	}
}

// block notes the event's line, which is of variant v and of that node run, and
// counts what becomes of a block's id: the reader numbers blocks, those that
// have deltas.
func (e *Encoder) block(ev *agentevents.Event, v int, run string, verbatim bool) {
	var id, content string
	switch p := ev.Payload.(type) {
	case *agentevents.TextDelta:
		id, content = p.BlockID, p.Delta
	case *agentevents.TextCompleted:
		id, content = p.BlockID, p.Text
	case *agentevents.AgentReasoningDelta:
		id, content = p.BlockID, p.Delta
	case *agentevents.AgentReasoned:
		id, content = p.BlockID, p.Reasoning
	}
	read := e.blocks.line(v, run, content)
	if read == id {
		return
	}
	what, detail := dialect.Altered, "blocks are numbered"
	if id == "" {
		what, detail = dialect.Made, ""
	} else if read == "" {
		what, detail = dialect.Dropped, ""
	}
	if verbatim { // also then: blocks before it may not be on lines
		e.losses.Add(ev, what, "/payload/blockId", detail)
	} else {
		e.pend.Add(what, "/payload/blockId", detail)
	}
}

// execution is the execution of a node that the event's line names.
func execution(ev *agentevents.Event) string { return cmp.Or(ev.NodeRunID, ev.AgentID, ev.RunID) }

// nodeOf is the node that the event's line names.
func nodeOf(ev *agentevents.Event) string {
	return cmp.Or(ev.NodeID, ev.AgentID, ev.NodeRunID, ev.RunID)
}

// agentOf says who the agent of an event is.
func agentOf(ev *agentevents.Event) string { return cmp.Or(ev.AgentID, ev.NodeRunID) }

// line appends the event's line and changes nothing but e.pend and e.kept. For
// a call, which waits for its return, it appends nothing.
func (e *Encoder) line(dst []byte, ev *agentevents.Event) ([]byte, int, error) {
	if ev.Kind() == "" {
		return dst, vUnknown, &agentevents.InvariantError{Rule: agentevents.RulePayload, RunID: ev.RunID, AgentID: ev.AgentID, EventID: ev.ID,
			Sequence: ev.Sequence, Detail: "the payload is nil or not of package agentevents"}
	}
	if ms := ev.Time.UnixMilli(); ms < minMillis || ms > maxMillis {
		return dst, vUnknown, e.refuse(ev, agentevents.RuleFieldRange, "/timestamp", "is outside the years 0 to 9999")
	}
	e.kept = string(ev.Extra(string(Name)))
	var (
		v   int
		err error
	)
	switch p := ev.Payload.(type) {
	case *agentevents.AgentStarted:
		v = vAgentStart
		dst = e.head(dst, `{"type":"agent:start"`, ev, v)
		if p.ProviderSessionID == "" {
			e.lose(dialect.Made, "/payload/providerSessionId", "")
		}
		dst = text(dst, `,"sessionId":`, p.ProviderSessionID)
		dst = optional(dst, `,"model":`, p.Model)
		dst, err = e.prompt(append(dst, `,"prompt":`...), ev, p)
		e.drop("/payload/agent", p.Agent.OK)
		e.drop("/payload/attempt", p.Attempt.OK)
		e.drop("/payload/resumed", p.Resumed)
	case *agentevents.AgentReasoningDelta:
		v = vThinkingDelta
		dst = e.head(dst, `{"type":"agent:thinking:delta"`, ev, v)
		dst = text(dst, `,"content":`, p.Delta)
		dst = count(dst, `,"tokenCount":`, p.TokenCount)
		e.drop("/payload/index", p.Index.OK)
		e.drop("/payload/verbosity", p.Verbosity != "")
	case *agentevents.AgentReasoned:
		v = vThinking
		dst = e.head(dst, `{"type":"agent:thinking"`, ev, v)
		dst = text(dst, `,"content":`, p.Reasoning)
		dst = count(dst, `,"tokenCount":`, p.TokenCount)
		e.drop("/payload/verbosity", p.Verbosity != "")
	case *agentevents.TextDelta:
		v = vTextDelta
		dst = e.head(dst, `{"type":"agent:text:delta"`, ev, v)
		dst = text(dst, `,"content":`, p.Delta)
		e.drop("/payload/index", p.Index.OK)
	case *agentevents.TextCompleted:
		v = vText
		dst = e.head(dst, `{"type":"agent:text"`, ev, v)
		dst = text(dst, `,"content":`, p.Text)
	case *agentevents.ToolCalled: // it waits for its return
		return dst, vCalled, nil
	case *agentevents.ToolReturned:
		v = vTool
		dst, err = e.returned(e.head(dst, `{"type":"agent:tool"`, ev, v), ev, p)
	case *agentevents.AgentErrored:
		v = vError
		dst = e.head(dst, `{"type":"agent:error"`, ev, v)
		dst = text(dst, `,"errorType":`, p.ErrorType)
		dst = text(dst, `,"message":`, p.Message)
		dst, err = e.json(dst, `,"details":`, ev, p.Details, "/payload/details")
		e.drop("/payload/severity", p.Severity != "")
		e.drop("/payload/recoveryHint", p.RecoveryHint != "")
	case *agentevents.AgentEnded:
		if p.Error.OK || p.Outcome == agentevents.OutcomeAborted {
			v = vError
			dst, err = e.failed(e.head(dst, `{"type":"agent:error"`, ev, v), ev, p)
			break
		}
		v = vComplete
		dst, err = e.complete(e.head(dst, `{"type":"agent:complete"`, ev, v), ev, p)
	case *agentevents.RunStarted:
		v = vFlowStart
		dst = e.head(dst, `{"type":"flow:start"`, ev, v)
		if p.Name == "" {
			e.lose(dialect.Made, "/payload/name", "")
		}
		dst = text(dst, `,"flowName":`, p.Name)
		e.drop("/payload/inputs", p.Inputs != "")
		e.drop("/payload/agent", p.Agent.OK)
		e.drop("/payload/definition", p.Definition != "")
	case *agentevents.RunCompleted:
		v = vFlowComplete
		dst = e.flowName(e.head(dst, `{"type":"flow:complete"`, ev, v), ev)
		dst = append(dst, `,"status":"complete"`...)
		e.drop("/payload/outputs", p.Outputs != "")
	case *agentevents.RunFailed:
		v = vFlowComplete
		dst = e.flowName(e.head(dst, `{"type":"flow:complete"`, ev, v), ev)
		dst = append(dst, `,"status":"failed"`...)
		e.drop("/payload/error", p.Error.OK)
	case *agentevents.RunPaused:
		v = vFlowPaused
		dst = e.head(dst, `{"type":"flow:paused"`, ev, v)
		e.drop("/payload/reason", p.Reason != "")
	case *agentevents.RunResumed:
		v = vFlowResumed
		dst = e.head(dst, `{"type":"flow:resumed"`, ev, v)
		e.drop("/payload/message", p.Message != "")
	case *agentevents.RunCancelled:
		v = vFlowAborted
		dst = e.head(dst, `{"type":"flow:aborted"`, ev, v)
		e.drop("/payload/reason", p.Reason != "")
	case *agentevents.NodeStarted:
		v = vNodeStart
		dst = e.head(dst, `{"type":"node:start"`, ev, v)
		e.drop("/payload/agent", p.Agent.OK)
		e.drop("/payload/typeId", p.TypeID != "")
		e.drop("/payload/attempt", p.Attempt.OK)
	case *agentevents.NodeCompleted:
		v = vNodeComplete
		dst, err = e.json(e.head(dst, `{"type":"node:complete"`, ev, v), `,"output":`, ev, p.Outputs, "/payload/outputs")
		e.drop("/payload/agent", p.Agent.OK)
		e.drop("/payload/durationMs", p.Duration.OK)
	case *agentevents.NodeFailed:
		v = vNodeError
		dst = text(e.head(dst, `{"type":"node:error"`, ev, v), `,"error":`, p.Error.Message)
		e.errorInfo("/payload/error", &p.Error)
	case *agentevents.NodeSkipped:
		v = vNodeSkipped
		dst = e.head(dst, `{"type":"node:skipped"`, ev, v)
		if p.Reason == "" {
			e.lose(dialect.Made, "/payload/reason", "")
		}
		dst = text(dst, `,"reason":`, p.Reason)
	case *agentevents.EdgeFired:
		v = vEdgeFire
		dst = e.head(dst, `{"type":"edge:fire"`, ev, v)
		dst = optional(dst, `,"edgeId":`, p.EdgeID)
		dst = text(dst, `,"from":`, p.From)
		dst = text(dst, `,"to":`, p.To)
	case *agentevents.LoopIterated:
		v = vLoopIterate
		dst = e.head(dst, `{"type":"loop:iterate"`, ev, v)
		dst = optional(dst, `,"edgeId":`, p.EdgeID)
		dst = jsonwire.AppendInt(append(dst, `,"iteration":`...), int64(p.Iteration))
	case *agentevents.StatePatched:
		v = vStatePatch
		dst = e.head(dst, `{"type":"state:patch"`, ev, v)
		dst = text(dst, `,"patch":{"op":`, string(p.Op))
		dst = text(dst, `,"path":`, p.Path)
		dst, err = e.json(dst, `,"value":`, ev, p.Value, "/payload/value")
		dst = append(e.nested(dst, "/patch/", patchNames[:]), '}')
	case *agentevents.CommandReceived:
		v = vCommand
		dst = e.head(dst, `{"type":"command:received"`, ev, v)
		dst = e.command(append(dst, `,"command":`...), p)
	case *agentevents.Unknown:
		return e.unknown(dst, ev, p)
	default:
		return dst, vUnknown, dialect.ErrNoCounterpart
	}
	if err != nil {
		return dst, v, err
	}
	if e.kept != "" {
		dst = e.rest(dst, ev, v)
	}
	return append(dst, "}\n"...), v, nil
}

func (e *Encoder) refuse(ev *agentevents.Event, rule agentevents.Rule, pointer, detail string) error {
	return &agentevents.InvariantError{Rule: rule, Kind: ev.Kind(), RunID: ev.RunID, AgentID: ev.AgentID, EventID: ev.ID, Sequence: ev.Sequence,
		Pointer: pointer, Detail: detail}
}

// outOfRange returns where the line of variant v says a number that the document
// does not allow, and why.
func outOfRange(payload agentevents.Payload, v int) (pointer, detail string) {
	const below = "is below 0"
	switch p := payload.(type) {
	case *agentevents.AgentReasoningDelta:
		if p.TokenCount.OK && p.TokenCount.V < 0 {
			return "/payload/tokenCount", below
		}
	case *agentevents.AgentReasoned:
		if p.TokenCount.OK && p.TokenCount.V < 0 {
			return "/payload/tokenCount", below
		}
	case *agentevents.ToolReturned:
		if p.Duration.OK && p.Duration.V < 0 {
			return "/payload/durationMs", below
		}
	case *agentevents.LoopIterated:
		if p.Iteration < 1 {
			return "/payload/iteration", "is below 1"
		}
	case *agentevents.AgentEnded:
		if v != vComplete {
			return "", "" // the line has none of them
		}
		switch u := &p.Usage.V; {
		case p.Duration.OK && p.Duration.V < 0:
			return "/payload/durationMs", below
		case p.NumTurns.OK && p.NumTurns.V < 0:
			return "/payload/numTurns", below
		case p.TotalCostUSD.OK && p.TotalCostUSD.V < 0:
			return "/payload/totalCostUsd", below
		case !p.Usage.OK:
		case u.InputTokens < 0:
			return "/payload/usage/inputTokens", below
		case u.OutputTokens < 0:
			return "/payload/usage/outputTokens", below
		case u.CacheCreationInputTokens.OK && u.CacheCreationInputTokens.V < 0:
			return "/payload/usage/cacheCreationInputTokens", below
		case u.CacheReadInputTokens.OK && u.CacheReadInputTokens.V < 0:
			return "/payload/usage/cacheReadInputTokens", below
		}
		for m, u := range p.ModelUsage {
			if u.InputTokens < 0 || u.OutputTokens < 0 {
				return "/payload/modelUsage/" + jsonwire.Token(m), "a count " + below
			}
		}
	}
	return "", ""
}

// head appends the envelope after the line's start, and counts what of the
// event's envelope it does not say.
func (e *Encoder) head(dst []byte, start string, ev *agentevents.Event, v int) []byte {
	dst = append(dst, start...)
	switch {
	case v == vNodeSkipped:
		dst = e.nodeID(dst, ev)
		dst = optional(dst, `,"runId":`, ev.NodeRunID)
		e.drop("/agentId", ev.AgentID != "")
	case variants[v].members&node != 0:
		dst = e.nodeID(dst, ev)
		run := ev.NodeRunID
		if run == "" {
			run = execution(ev)
			e.common |= 1 << madeExecution
			if ev.AgentID != "" {
				e.common |= 1 << lostAgent
			}
		} else {
			e.drop("/agentId", ev.AgentID != "")
		}
		dst = text(dst, `,"runId":`, run)
	default:
		e.drop("/agentId", ev.AgentID != "")
		e.drop("/nodeId", ev.NodeID != "")
		e.drop("/nodeRunId", ev.NodeRunID != "")
	}
	dst = e.appendTime(append(dst, `,"timestamp":`...), ev.Time)
	e.envelope(ev)
	return dst
}

func (e *Encoder) nodeID(dst []byte, ev *agentevents.Event) []byte {
	if ev.NodeID == "" {
		e.common |= 1 << madeNode
	}
	return text(dst, `,"nodeId":`, nodeOf(ev))
}

// envelope counts the members that no line has.
func (e *Encoder) envelope(ev *agentevents.Event) {
	if len(ev.SessionID)|len(ev.TaskID)|len(ev.WorkflowID)|len(ev.Phase) != 0 {
		if ev.SessionID != "" {
			e.common |= 1 << lostSession
		}
		e.drop("/taskId", ev.TaskID != "")
		e.drop("/workflowId", ev.WorkflowID != "")
		e.drop("/phase", ev.Phase != "")
	}
	if len(ev.Actor)|len(ev.ParentAgentID)|len(ev.ParentCallID) != 0 {
		e.drop("/actor", ev.Actor != "")
		e.drop("/parentAgentId", ev.ParentAgentID != "")
		e.drop("/parentCallId", ev.ParentCallID != "")
	}
	if len(ev.TraceID)|len(ev.SpanID)|len(ev.ParentSpanID)|len(ev.CausationID) != 0 {
		e.drop("/traceId", ev.TraceID != "")
		e.drop("/spanId", ev.SpanID != "")
		e.drop("/parentSpanId", ev.ParentSpanID != "")
		e.drop("/causationId", ev.CausationID != "")
	}
	if ev.Step.OK {
		e.common |= 1 << lostStep
	}
	e.drop("/marks", ev.Marks != 0)
	if ev.SchemaVersion != agentevents.SchemaVersion {
		e.drop("/schemaVersion", ev.SchemaVersion != "")
	}
	for name := range ev.Extras() {
		if name != string(Name) {
			e.drop("/"+jsonwire.Token(name), true)
		}
	}
	if ev.PayloadExtra() {
		e.lose(dialect.Dropped, "/payload", "members that no field has")
	}
	if e.kept != "" && e.kept[0] != '{' {
		e.drop("/"+string(Name), true)
	}
}

func (e *Encoder) appendTime(dst []byte, t time.Time) []byte {
	if t.IsZero() {
		e.lose(dialect.Made, "/timestamp", "the first moment of the year 1")
	}
	if t.Nanosecond()%1e6 == 0 {
		return jsonwire.AppendInt(dst, t.UnixMilli())
	}
	if y := t.Year(); y > 1700 && y < 2200 {
		return jsonwire.AppendMillis(dst, time.Duration(t.UnixNano()))
	}
	e.lose(dialect.Altered, "/timestamp", "in whole milliseconds")
	return jsonwire.AppendInt(dst, t.UnixMilli())
}

func text(dst []byte, name, value string) []byte {
	return jsonwire.AppendString(append(dst, name...), value)
}

func optional(dst []byte, name, value string) []byte {
	if value == "" {
		return dst
	}
	return jsonwire.AppendString(append(dst, name...), value)
}

func count(dst []byte, name string, n agentevents.Opt[int64]) []byte {
	if !n.OK {
		return dst
	}
	return jsonwire.AppendInt(append(dst, name...), n.V)
}

// json appends a member of raw JSON, if there is a value.
func (e *Encoder) json(dst []byte, name string, ev *agentevents.Event, j agentevents.JSON, pointer string) ([]byte, error) {
	if j == "" {
		return dst, nil
	}
	raw, err := jsonwire.Compact(string(j))
	if err != nil {
		return dst, e.refuse(ev, agentevents.RuleFieldJSON, pointer, err.Error())
	}
	return append(append(dst, name...), raw...), nil
}

// prompt appends what the agent was asked: a string or a list of messages.
func (e *Encoder) prompt(dst []byte, ev *agentevents.Event, p *agentevents.AgentStarted) ([]byte, error) {
	if p.Prompt == "" {
		e.lose(dialect.Made, "/payload/prompt", "")
		if p.Task != "" {
			e.lose(dialect.Dropped, "/payload/task", "written as the prompt")
		}
		return jsonwire.AppendString(dst, p.Task), nil
	}
	e.drop("/payload/task", p.Task != "")
	mark := len(dst)
	dst, err := e.json(dst, "", ev, p.Prompt, "/payload/prompt")
	if err == nil && dst[mark] != '"' && dst[mark] != '[' {
		e.lose(dialect.Altered, "/payload/prompt", "written as a list of one message")
		dst = append(slices.Insert(dst, mark, '['), ']')
	}
	return dst, err
}

// called counts what the line of a call's return, the event ret, does not say of
// the call.
func (e *Encoder) called(ev, ret *agentevents.Event, returned *agentevents.ToolReturned) {
	p := ev.Payload.(*agentevents.ToolCalled)
	e.pend.Reset()
	e.common, e.kept = 0, string(ev.Extra(string(Name)))
	e.lose(dialect.Altered, "", "joined with its return")
	e.envelope(ev)
	e.drop("/"+string(Name), e.kept != "" && e.kept[0] == '{')
	e.drop("/agentId", ev.AgentID != "")
	e.drop("/nodeId", ev.NodeID != "" && ev.NodeID != nodeOf(ret))
	e.drop("/nodeRunId", ev.NodeRunID != "" && ev.NodeRunID != execution(ret))
	e.drop("/payload/callId", p.CallID != "")
	e.drop("/payload/toolId", p.ToolID != "" && p.ToolID != returned.ToolID)
	e.drop("/payload/attempt", p.Attempt.OK)
	e.drop("/payload/retryOf", p.RetryOf != "")
	e.drop("/payload/argsHash", p.ArgsHash != "")
	e.drop("/payload/principal", p.Principal != "")
	e.drop("/payload/transport", p.Transport != "")
	e.drop("/payload/attributes", p.Attributes != "")
	e.pend.Count(&e.losses, ev, false)
	e.everywhere(ev)
	e.count(ev, false)
}

// returned appends what a tool was called with and what came of it.
func (e *Encoder) returned(dst []byte, ev *agentevents.Event, p *agentevents.ToolReturned) ([]byte, error) {
	arguments, summary, duration := p.Arguments, p.ArgumentsSummary, p.Duration
	if !p.OneEvent {
		if call := e.calls.Get(ev.RunID, agentOf(ev), p.CallID); call != nil {
			c := call.Payload.(*agentevents.ToolCalled)
			// The call says it; the return's is what the call lacks.
			arguments, summary = cmp.Or(c.Arguments, arguments), cmp.Or(c.ArgumentsSummary, summary)
			e.drop("/payload/arguments", p.Arguments != "" && p.Arguments != arguments)
			if p.ArgumentsSummary != summary { // otherwise value lists it
				e.drop("/payload/argumentsSummary", p.ArgumentsSummary != "")
			}
			if d := ev.Time.Sub(call.Time); !duration.OK && d >= 0 {
				duration = agentevents.Some(d)
				e.lose(dialect.Made, "/payload/durationMs", "measured from the call")
			}
		} else {
			e.lose(dialect.Made, "/payload/oneEvent", "the line is a whole call")
		}
	}
	dst = text(dst, `,"toolName":`, p.ToolID)
	dst, err := e.value(dst, `,"toolInput":`, ev, arguments, summary, "/payload/arguments")
	if err != nil {
		return dst, err
	}
	if dst, err = e.value(dst, `,"toolOutput":`, ev, p.Result, p.ResultSummary, "/payload/result"); err != nil {
		return dst, err
	}
	if duration.OK {
		dst = jsonwire.AppendMillis(append(dst, `,"durationMs":`...), duration.V)
	}
	switch {
	case p.Error.OK:
		dst = text(dst, `,"error":`, p.Error.V.Message)
		e.errorInfo("/payload/error", &p.Error.V)
	case p.Status != agentevents.ToolOK:
		e.lose(dialect.Made, "/payload/error", "")
		dst = text(dst, `,"error":`, string(p.Status))
	}
	switch {
	case p.Error.OK && p.Status == agentevents.ToolOK:
		e.lose(dialect.Altered, "/payload/status", "an error says that the call failed")
	case p.Status != agentevents.ToolOK && p.Status != agentevents.ToolError:
		e.lose(dialect.Altered, "/payload/status", "written as an error")
	}
	return dst, nil
}

// value appends a value, or the summary of it where there is nothing else.
func (e *Encoder) value(dst []byte, name string, ev *agentevents.Event, j agentevents.JSON, summary, pointer string) ([]byte, error) {
	if summary != "" {
		if j == "" {
			e.lose(dialect.Dropped, pointer+"Summary", "written as the value itself")
			e.lose(dialect.Made, pointer, "the summary")
			return text(dst, name, summary), nil
		}
		e.drop(pointer+"Summary", true)
	}
	return e.json(dst, name, ev, j, pointer)
}

// errorInfo counts what a message alone does not say of an error.
func (e *Encoder) errorInfo(pointer string, info *agentevents.ErrorInfo) {
	if len(info.Code)|len(info.Details) != 0 {
		e.drop(pointer+"/code", info.Code != "")
		e.drop(pointer+"/details", info.Details != "")
	}
	if info.Retryable.OK {
		e.drop(pointer+"/retryable", true)
	}
}

// failed appends the end of an agent that did not succeed.
func (e *Encoder) failed(dst []byte, ev *agentevents.Event, p *agentevents.AgentEnded) ([]byte, error) {
	e.lose(dialect.Altered, "", "written as agent:error: agent:complete is for success")
	info := p.Error.V
	if info.Code == "" && p.Outcome == "" {
		e.lose(dialect.Made, "/payload/errorType", "")
	}
	if info.Message == "" && p.Result == "" {
		e.lose(dialect.Made, "/payload/message", "")
	}
	dst = text(dst, `,"errorType":`, cmp.Or(info.Code, string(p.Outcome), string(agentevents.ToolError)))
	dst = text(dst, `,"message":`, cmp.Or(info.Message, p.Result))
	dst, err := e.json(dst, `,"details":`, ev, info.Details, "/payload/error/details")
	e.drop("/payload/error/retryable", info.Retryable.OK)
	e.drop("/payload/outcome", p.Outcome != "")
	e.drop("/payload/result", p.Result != "" && info.Message != "")
	e.drop("/payload/structuredOutput", p.StructuredOutput != "")
	e.drop("/payload/usage", p.Usage.OK)
	e.drop("/payload/modelUsage", p.ModelUsage != nil)
	e.drop("/payload/totalCostUsd", p.TotalCostUSD.OK)
	e.drop("/payload/durationMs", p.Duration.OK)
	e.drop("/payload/numTurns", p.NumTurns.OK)
	e.endDropped(p)
	return dst, err
}

func (e *Encoder) endDropped(p *agentevents.AgentEnded) {
	e.drop("/payload/totals", p.Totals.OK)
	e.drop("/payload/convergenceScore", p.ConvergenceScore.OK)
	e.drop("/payload/resultSchema", p.ResultSchema != "")
}

// complete appends the end of an agent that did.
func (e *Encoder) complete(dst []byte, ev *agentevents.Event, p *agentevents.AgentEnded) ([]byte, error) {
	if p.Result == "" {
		e.lose(dialect.Made, "/payload/result", "")
	}
	dst = text(dst, `,"result":`, p.Result)
	dst, err := e.json(dst, `,"structuredOutput":`, ev, p.StructuredOutput, "/payload/structuredOutput")
	if err != nil {
		return dst, err
	}
	if !p.Usage.OK {
		e.lose(dialect.Made, "/payload/usage", "")
	}
	dst = e.tokens(append(dst, `,"usage":`...), &p.Usage.V, "/payload/usage", true)
	dst = append(e.nested(dst, "/usage/", usageNames[:]), '}')
	if p.ModelUsage != nil {
		var buf [8]string
		models := buf[:0]
		for m := range p.ModelUsage {
			models = append(models, m)
		}
		slices.Sort(models)
		dst = append(dst, `,"modelUsage":{`...)
		for i, m := range models {
			if i > 0 {
				dst = append(dst, ',')
			}
			u := p.ModelUsage[m]
			dst = append(jsonwire.AppendString(dst, m), ':')
			dst = e.tokens(dst, &u, "/payload/modelUsage/"+jsonwire.Token(m), false)
			if e.kept != "" {
				dst = e.nested(dst, "/modelUsage/"+jsonwire.Token(m)+"/", usageNames[:2])
			}
			dst = append(dst, '}')
		}
		dst = append(dst, '}')
	}
	if p.TotalCostUSD.OK {
		if math.IsNaN(p.TotalCostUSD.V) || math.IsInf(p.TotalCostUSD.V, 0) {
			return dst, e.refuse(ev, agentevents.RuleFieldRange, "/payload/totalCostUsd", "is not finite")
		}
		dst = jsonwire.AppendFloat(append(dst, `,"totalCostUsd":`...), p.TotalCostUSD.V)
	}
	duration := p.Duration.V
	if !p.Duration.OK {
		detail := ""
		if started, ok := e.starts.of(ev); ok && !ev.Time.Before(started) {
			duration, detail = ev.Time.Sub(started), "measured from the start"
		}
		e.lose(dialect.Made, "/payload/durationMs", detail)
	}
	dst = jsonwire.AppendMillis(append(dst, `,"durationMs":`...), duration)
	if !p.NumTurns.OK {
		e.lose(dialect.Made, "/payload/numTurns", "")
	}
	dst = jsonwire.AppendInt(append(dst, `,"numTurns":`...), int64(p.NumTurns.V))
	e.drop("/payload/outcome", p.Outcome != "")
	e.endDropped(p)
	return dst, nil
}

// tokens appends a count of tokens without its closing brace.
func (e *Encoder) tokens(dst []byte, u *agentevents.Usage, pointer string, cache bool) []byte {
	dst = jsonwire.AppendInt(append(dst, `{"inputTokens":`...), u.InputTokens)
	dst = jsonwire.AppendInt(append(dst, `,"outputTokens":`...), u.OutputTokens)
	if cache {
		dst = count(dst, `,"cacheCreationInputTokens":`, u.CacheCreationInputTokens)
		dst = count(dst, `,"cacheReadInputTokens":`, u.CacheReadInputTokens)
	} else if u.CacheCreationInputTokens.OK || u.CacheReadInputTokens.OK {
		e.drop(pointer+"/cacheCreationInputTokens", u.CacheCreationInputTokens.OK)
		e.drop(pointer+"/cacheReadInputTokens", u.CacheReadInputTokens.OK)
	}
	if u.TotalTokens.OK || u.CostUSD.OK {
		e.drop(pointer+"/totalTokens", u.TotalTokens.OK)
		e.drop(pointer+"/costUsd", u.CostUSD.OK)
	}
	return dst
}

// flowName appends the name of the flow that ended: as the line had it, else
// that of its start.
func (e *Encoder) flowName(dst []byte, ev *agentevents.Event) []byte {
	dst = append(dst, `,"flowName":`...)
	if e.kept != "" {
		if name := dialect.Unknown(ev, Name, memberName(mFlowName)); strings.HasPrefix(string(name), `"`) {
			return append(dst, name...)
		}
	}
	name, ok := e.flows[ev.RunID]
	detail := ""
	if ok {
		detail = "as the run started"
	}
	e.lose(dialect.Made, "/"+string(Name)+"/"+memberName(mFlowName), detail)
	return jsonwire.AppendString(dst, name)
}

func (e *Encoder) command(dst []byte, p *agentevents.CommandReceived) []byte {
	c := &p.Command
	switch {
	case !misrouted(c):
		e.drop("/payload/rejected", p.Rejected != "")
	case p.Rejected == "":
		e.lose(dialect.Made, "/payload/rejected", "a command without runId is rejected")
	case p.Rejected != Rejected:
		e.lose(dialect.Altered, "/payload/rejected", "a command without runId is rejected")
	}
	made := func(pointer, value string) {
		if value == "" {
			e.lose(dialect.Made, pointer, "")
		}
	}
	switch c.Type {
	case agentevents.CommandSend:
		made("/payload/command/message", c.Message)
	case agentevents.CommandReply:
		made("/payload/command/promptId", c.PromptID)
		made("/payload/command/content", c.Content)
	}
	return append(e.nested(appendCommand(dst, c), "/command/", commandNames[:]), '}')
}

// appendCommand appends a RuntimeCommand without its closing brace.
func appendCommand(dst []byte, c *agentevents.Command) []byte {
	member := func(name, value string, required bool) {
		if value != "" || required {
			dst = text(dst, name, value)
		}
	}
	send, reply := c.Type == agentevents.CommandSend, c.Type == agentevents.CommandReply
	dst = text(dst, `{"type":`, string(c.Type))
	member(`,"message":`, c.Message, send)
	member(`,"promptId":`, c.PromptID, reply)
	member(`,"content":`, c.Content, reply)
	member(`,"runId":`, c.RunID, false)
	if c.Resumable.OK {
		dst = strconv.AppendBool(append(dst, `,"resumable":`...), c.Resumable.V)
	}
	member(`,"reason":`, c.Reason, false)
	return dst
}

// nested appends the members that were kept of the object that prefix points
// into, but those that it has: names are the document's.
func (e *Encoder) nested(dst []byte, prefix string, names []string) []byte {
	for key, raw := range jsonwire.Members(e.kept) {
		token, ok := strings.CutPrefix(key, prefix)
		if !ok || !canonical(token) {
			continue
		}
		name := jsonwire.Untoken(token)
		if named(names, name) {
			e.dropKept(key)
			continue
		}
		dst = append(text(append(dst, ','), "", name), ':')
		dst = append(dst, raw...)
	}
	return dst
}

// named reports whether name is one of the document's.
func named(names []string, name string) bool {
	for _, n := range names {
		if bare(n) == name {
			return true
		}
	}
	return false
}

// canonical reports whether a decoder would write the token of a pointer like
// that: another spelling may be that of a name that is there already.
func canonical(token string) bool {
	return !strings.Contains(token, "/") && (!strings.Contains(token, "~") || jsonwire.Token(jsonwire.Untoken(token)) == token)
}

// dropKept counts a kept member that the line has no place for.
func (e *Encoder) dropKept(key string) { e.drop("/"+string(Name)+"/"+jsonwire.Token(key), true) }

// rest appends the members that were kept of the line itself.
func (e *Encoder) rest(dst []byte, ev *agentevents.Event, v int) []byte {
	for key, raw := range jsonwire.Members(e.kept) {
		name := key
		if pointer, ok := strings.CutPrefix(key, "/"); ok {
			if hasObject(pointer, ev, v) {
				continue // nested's
			}
			// Only a name that begins with a slash is kept as a pointer.
			if name = jsonwire.Untoken(pointer); !strings.HasPrefix(name, "/") || !canonical(pointer) {
				e.dropKept(key)
				continue
			}
		}
		if m := memberNamed(name); m > 0 && (base | variants[v].members).has(m) {
			if m != mFlowName || v != vFlowComplete || raw[0] != '"' { // flowName's
				e.dropKept(key)
			}
			continue
		}
		dst = append(text(append(dst, ','), "", name), ':')
		dst = append(dst, raw...)
	}
	return dst
}

// hasObject reports whether the line has the object that the pointer, without
// its first slash, goes into.
func hasObject(pointer string, ev *agentevents.Event, v int) bool {
	in, rest, inside := strings.Cut(pointer, "/")
	switch in {
	case "usage":
		return v == vComplete && inside && canonical(rest)
	case "patch":
		return v == vStatePatch && inside && canonical(rest)
	case "command":
		return v == vCommand && inside && canonical(rest)
	case "modelUsage":
		model, rest, ok := strings.Cut(rest, "/")
		if p, ended := ev.Payload.(*agentevents.AgentEnded); ok && ended && v == vComplete && canonical(model) && canonical(rest) {
			_, ok = p.ModelUsage[jsonwire.Untoken(model)]
			return ok
		}
	}
	return false
}

// unknown appends a line of a type that the document does not have. It is
// refused when it would not be read as that.
func (e *Encoder) unknown(dst []byte, ev *agentevents.Event, p *agentevents.Unknown) ([]byte, int, error) {
	raw, err := jsonwire.Compact(string(cmp.Or(p.Raw, "{}")))
	if err != nil {
		return dst, vUnknown, e.refuse(ev, agentevents.RuleFieldJSON, "/payload", err.Error())
	}
	if !strings.HasPrefix(raw, "{") {
		return dst, vUnknown, dialect.ErrNoCounterpart
	}
	mark := len(dst)
	dst = text(dst, `{"type":`, strings.TrimPrefix(string(p.Type), unknownPrefix))
	dst = optional(dst, `,"nodeId":`, ev.NodeID)
	if ev.NodeID != "" {
		dst = optional(dst, `,"runId":`, ev.NodeRunID)
	} else {
		e.drop("/nodeRunId", ev.NodeRunID != "")
	}
	if jsonwire.HasMember(raw, memberName(mTimestamp)) { // which is no time of the document's
		e.drop("/timestamp", !ev.Time.IsZero())
	} else {
		dst = e.appendTime(append(dst, `,"timestamp":`...), ev.Time)
	}
	e.envelope(ev)
	e.drop("/agentId", ev.AgentID != "")
	e.drop("/"+string(Name), strings.HasPrefix(e.kept, "{"))
	if p.Raw == "" {
		e.lose(dialect.Made, "/payload", "")
	}
	if len(raw) > len("{}") {
		dst = append(append(dst, ','), raw[1:len(raw)-1]...)
	}
	dst = append(dst, '}')
	got, err := NewDecoder(Options{RunID: "-"}).Decode(nil, dst[mark:])
	if err != nil || len(got) != 1 || got[0].Scope != (agentevents.Scope{NodeID: ev.NodeID, NodeRunID: scopeRun(ev)}) {
		return dst, vUnknown, dialect.ErrNoCounterpart
	}
	if u, ok := got[0].Payload.(*agentevents.Unknown); !ok || u.Type != p.Type || string(u.Raw) != raw {
		return dst, vUnknown, dialect.ErrNoCounterpart
	}
	return append(dst, '\n'), vUnknown, nil
}

func scopeRun(ev *agentevents.Event) string {
	if ev.NodeID == "" {
		return ""
	}
	return ev.NodeRunID
}
