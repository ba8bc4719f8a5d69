package openharness

import (
	"bytes"
	"cmp"
	"strings"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect"
	"github.com/agentevents/agentevents/internal/jsonwire"
)

// An Encoder writes events as lines of the document. It implements
// [dialect.Encoder]. It is for the events of one log, in order, and must not be used
// concurrently.
//
// A tool call is written with its return. Node and agent events without a node or
// its execution get the agent's id for both, or else the run's id. An agent that
// ended with an error or was aborted is written as agent:error, because
// agent:complete means success. The encoder refuses numbers that break [RuleRange],
// unless it writes a line verbatim. It writes words that the document does not list,
// because later versions may list them.
type Encoder struct {
	losses dialect.Losses
	common dialect.Common
	run    string          // the run that readers assume for a line other than flow:start
	over   bool            // run has ended
	begun  bool            // a line has been written
	pend   dialect.Pending // the losses of the current event
	kept   string          // the event's extra member "openharness"

	calls  dialect.Calls     // open calls
	flows  map[string]string // flow names by run
	starts starts            // start times of agents
	blocks blocks            // the blocks that readers see

	check   Decoder // reads origins
	scratch []byte
	events  []agentevents.Event
}

var _ dialect.Encoder = (*Encoder)(nil)

// NewEncoder returns an encoder.
func NewEncoder() *Encoder {
	return &Encoder{common: dialect.Common{Of: commonLosses[:]}}
}

// The losses that most events of every kind have.
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

var commonLosses = [numCommon]dialect.CommonLoss{
	lostID:        {What: dialect.Dropped, Pointer: "/id", Detail: "the document has no ids of events"},
	lostRun:       {What: dialect.Dropped, Pointer: "/runId", Detail: "a log has one run, which no line names"},
	lostSequence:  {What: dialect.Dropped, Pointer: "/sequence", Detail: "readers count lines"},
	lostSession:   {What: dialect.Dropped, Pointer: "/sessionId", Detail: ""},
	lostStep:      {What: dialect.Dropped, Pointer: "/step", Detail: ""},
	lostAgent:     {What: dialect.Dropped, Pointer: "/agentId", Detail: "written as the execution of a node"},
	madeNode:      {What: dialect.Made, Pointer: "/nodeId", Detail: ""},
	madeExecution: {What: dialect.Made, Pointer: "/nodeRunId", Detail: ""},
	mixedRuns:     {What: dialect.Altered, Pointer: "/runId", Detail: "the log mixes runs, and readers take them for one"},
}

// vCalled is the variant of a call, which has no line of its own.
const vCalled = numVariants

// Append appends the event's line; see [dialect.Encoder].
func (e *Encoder) Append(dst []byte, ev agentevents.Event) ([]byte, error) {
	e.pend.Reset()
	e.common.Set = 0
	mark := len(dst)
	dst, v, err := e.line(dst, &ev)
	if err == dialect.ErrNoCounterpart {
		err = e.losses.Refuse(&ev)
	}
	if err != nil {
		return dst[:mark], err
	}
	if bytes.IndexByte(dst[mark:], 0xef) >= 0 {
		// Damaged text becomes U+FFFD, which begins with this byte. The native format
		// tells whether an id is damaged.
		if e.scratch, err = ev.AppendJSON(e.scratch[:0]); err != nil {
			return dst[:mark], err
		}
		for _, at := range dialect.Damaged(&ev, dst[mark:]) {
			e.pend.Add(dialect.Altered, at, dialect.DamagedText)
		}
	}
	verbatim, on := false, execution(&ev)
	if origin := ev.Origin(); origin != "" && len(dst) > mark {
		if verbatim = string(dst[mark:len(dst)-1]) == origin; !verbatim && e.says(origin, ev.RunID, dst[mark:], v) {
			verbatim, on = true, ev.NodeRunID // the line may lack an execution
			dst = append(append(dst[:mark], origin...), '\n')
		}
	}
	if pointer, detail := outOfRange(ev.Payload, v); pointer != "" && !verbatim {
		return dst[:mark], e.refuse(&ev, RuleRange, pointer, detail)
	}
	e.block(&ev, v, on, verbatim)
	e.pend.Count(&e.losses, &ev, verbatim)
	if v != vCalled {
		if !verbatim { // readers of a verbatim line read the same again
			e.everywhere(&ev)
		}
		e.runs(&ev, v, verbatim)
		e.common.Count(&e.losses, &ev, verbatim)
	}
	e.remember(&ev, len(dst)-mark)
	return dst, nil
}

// says reports whether two lines of the run say the same: origin, and written, which is
// of variant v and has its newline.
func (e *Encoder) says(origin, run string, written []byte, v int) bool {
	e.check = Decoder{o: Options{RunID: run}, run: run, after: e.check.after}
	var err error
	e.events, err = e.check.Decode(e.events[:0], []byte(origin))
	if err != nil || len(e.events) != 1 {
		return false
	}
	n, common, kept := e.pend.Len(), e.common.Set, e.kept
	was, wasV, err := e.line(e.scratch[:0], &e.events[0])
	e.scratch, e.common.Set, e.kept = was, common, kept
	e.pend.Cut(n)
	return err == nil && wasV == v && bytes.Equal(was, written)
}

// End counts the calls that did not return as losses, because the document has no line
// for them.
func (e *Encoder) End(dst []byte) ([]byte, error) {
	e.forget()
	return dst, nil
}

// forget removes the open calls and counts them as losses.
func (e *Encoder) forget() {
	for _, call := range e.calls.Clear() {
		e.losses.Add(call, dialect.Dropped, "", unreturned)
	}
}

const unreturned = "the call did not return"

// Losses returns the losses so far. See [dialect.Encoder].
func (e *Encoder) Losses() []dialect.Loss { return e.losses.List() }

// everywhere counts the losses that no line can avoid.
func (e *Encoder) everywhere(ev *agentevents.Event) {
	if p, ok := ev.Payload.(*agentevents.ToolReturned); ok {
		what := dialect.Dropped
		if p.CallID == "" {
			what = dialect.Made // readers derive one
		}
		e.losses.Add(ev, what, "/payload/callId", "")
	}
	if ev.ID != "" {
		e.common.Set |= 1 << lostID
	}
	if ev.RunID != "" {
		e.common.Set |= 1 << lostRun
	}
	if ev.Sequence != 0 {
		e.common.Set |= 1 << lostSequence
	}
}

// runs counts an event for which readers assume another run, because only flow:start
// begins a run. It accepts a verbatim flow:start after a flow that did not end.
func (e *Encoder) runs(ev *agentevents.Event, v int, verbatim bool) {
	switch {
	case v == vFlowStart || !e.begun:
		if e.begun && !e.over && !verbatim && ev.RunID != e.run {
			e.common.Set |= 1 << mixedRuns
		}
		e.run, e.over, e.begun = strings.Clone(ev.RunID), false, true // the clone does not keep the line alive
	case ev.RunID != e.run:
		e.common.Set |= 1 << mixedRuns
		return
	}
	if v == vFlowComplete || v == vFlowAborted {
		e.over = true
	}
}

func (e *Encoder) lose(what dialect.Change, pointer, detail string) {
	e.pend.Add(what, pointer, detail)
}

func (e *Encoder) drop(pointer string, present bool) { e.pend.Drop(pointer, present) }

// remember records what later lines need of the event. size is the length of its line.
func (e *Encoder) remember(ev *agentevents.Event, size int) {
	switch p := ev.Payload.(type) {
	case *agentevents.RunStarted:
		if e.flows == nil || len(e.flows) >= dialect.MaxCalls { // too many runs that never end
			e.flows = map[string]string{}
		}
		e.flows[strings.Clone(ev.RunID)] = strings.Clone(p.Name) // the clones do not keep the line alive
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

// block notes an event's line for e.blocks, and counts the loss of a block id that
// differs from the reader's. Readers number the blocks that have deltas.
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
	what, detail := dialect.Altered, "readers number blocks"
	if id == "" {
		what, detail = dialect.Made, ""
	} else if read == "" {
		what, detail = dialect.Dropped, ""
	}
	if verbatim { // blocks before a verbatim line may not be in this log
		e.losses.Add(ev, what, "/payload/blockId", detail)
	} else {
		e.pend.Add(what, "/payload/blockId", detail)
	}
}

// execution returns the execution of a node for the event's line.
func execution(ev *agentevents.Event) string { return cmp.Or(ev.NodeRunID, ev.AgentID, ev.RunID) }

// nodeOf returns the node for the event's line.
func nodeOf(ev *agentevents.Event) string {
	return cmp.Or(ev.NodeID, ev.AgentID, ev.NodeRunID, ev.RunID)
}

// agentOf returns the id that identifies the agent of an event.
func agentOf(ev *agentevents.Event) string { return cmp.Or(ev.AgentID, ev.NodeRunID) }

// line appends the event's line. It appends nothing for a call, which waits for its
// return. It changes only e.pend, e.common and e.kept.
func (e *Encoder) line(dst []byte, ev *agentevents.Event) ([]byte, int, error) {
	if ev.Kind() == "" {
		return dst, vUnknown, &agentevents.RuleError{Rule: agentevents.RulePayload, RunID: ev.RunID, AgentID: ev.AgentID, EventID: ev.ID,
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
	case *agentevents.ToolCalled:
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
