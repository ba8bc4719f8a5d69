package agui

import (
	"slices"
	"strings"
	"time"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect/internal/engine"
	"github.com/agentevents/agentevents/internal/endword"
	"github.com/agentevents/agentevents/internal/jsonwire"
)

// The rules of the protocol that a strict decoder checks.
const (
	// RuleRequired: the members that the protocol requires are there.
	RuleRequired agentevents.Rule = "agui-required"
	// RuleType: the protocol has the type of the line.
	RuleType agentevents.Rule = "agui-type"
	// RuleValue: a member has the JSON type, or is one of the words, that the protocol requires.
	RuleValue agentevents.Rule = "agui-value"
	// RuleOrder: a run begins with RUN_STARTED, has each thing started before it goes on,
	// ends it once, and nothing follows its end.
	RuleOrder agentevents.Rule = "agui-order"
	// RuleState: a JSON Patch can be applied to the state that the lines before have told.
	RuleState agentevents.Rule = "agui-state"
)

// custom is in front of the kind in the name of a CUSTOM line.
const custom = "agentevents."

// The rows of kinds that are mostly written as another one.
const (
	typeSubagentError = "SUBAGENT_ERROR"
	typeSnapshot      = "STATE_SNAPSHOT"
)

// The outcomes of RUN_FINISHED that are no success.
const (
	outcomeInterrupt = "interrupt"
	outcomeCancelled = "cancelled"
	caseFailed       = "failed" // not a word of the document: RUN_ERROR stands for it
)

// The cases of rows that only a decoder's state tells apart.
const (
	caseResumed = "resumed" // RUN_STARTED of a run that the log had before
	casePatch   = "patch"   // a STATE_DELTA written as patches
	caseMessage = "message" // TEXT_MESSAGE_END of another role than assistant
)

// opens is the type of a message or call by the type of the line that opens it.
var opens = map[string]blockType{
	"TEXT_MESSAGE_START": text, "REASONING_MESSAGE_START": reasoning, "TOOL_CALL_START": call, "THINKING_TEXT_MESSAGE_START": reasoning,
}

// others are the types without a row, with the members that they need.
var others = map[string]string{
	"MESSAGES_SNAPSHOT": "messages", "ACTIVITY_SNAPSHOT": "messageId activityType content", "ACTIVITY_DELTA": "messageId activityType patch",
	"RAW": "event", "CUSTOM": "name value", "STATE_DELTA": "delta", "REASONING_START": "messageId", "REASONING_END": "messageId",
	"REASONING_ENCRYPTED_VALUE": "subtype entityId encryptedValue", "THINKING_START": "", "THINKING_END": "",
}

// inputNeeds are the members that the input of a run needs.
var inputNeeds = [...]string{"threadId", "runId", "messages"}

// otherInput reports whether the inputs of a run are not the protocol's: they are in the
// metadata.
func otherInput(inputs string) bool {
	return slices.ContainsFunc(inputNeeds[:], func(name string) bool { return !jsonwire.HasMember(inputs, name) })
}

// format is the protocol.
var format = func() *engine.Format {
	need := engine.Need
	// A member that may be absent is kept if it has another type: some writers put null.
	may := func(name, says string, form ...engine.Form) engine.Member {
		m := engine.May(name, says, form...)
		m.Loose = true
		return m
	}
	word := func(says string) engine.Member { return need("delta", says, engine.Full{}) }
	rest := engine.May("metadata", "", restForm{})
	row := func(typ string, kind agentevents.Kind, members ...engine.Member) engine.Row {
		return engine.Row{Type: typ, Kind: kind, Members: append(members, rest)}
	}
	// read is a row of a line that is written as another one, or as none.
	read := func(typ string, kind agentevents.Kind, members ...engine.Member) engine.Row {
		r := row(typ, kind, members...)
		r.Reads = true
		return r
	}
	when := func(name string, r engine.Row) engine.Row {
		r.Case = name
		return r
	}
	var (
		message = func(says string) engine.Member { return need("messageId", says, idForm{}) }
		callID  = need("toolCallId", "callId", idForm{})
		thread  = need("threadId", "",
			sideForm{func(d *Decoder) *string { return &d.thread }, func(e *Encoder) string { return e.s.thread }, nil})
		runID = need("runId", "/runId")
		role  = func(words ...string) engine.Form {
			return sideForm{func(d *Decoder) *string { return &d.role }, nil, words}
		}
		roles = role(append([]string{assistant}, people...)...)
		tool  = sideForm{func(d *Decoder) *string { return &d.tool }, nil, nil}
		usual = func(name string, value func(s *stream, ev *agentevents.Event) string) engine.Member {
			return need(name, "", keptForm{value})
		}
		outcome = may("outcome", "", keptForm{func(*stream, *agentevents.Event) string { return "" }})
		usage   = may("usage", "", usageForm{})
		cancel  = usual("outcome", func(*stream, *agentevents.Event) string { return `{"type":"cancelled"}` })
		waits   = need("outcome", "",
			waitsForm{keptForm{func(s *stream, _ *agentevents.Event) string { return s.outcome() }}})
		name = need("name", "name").Or(func(w *engine.Writer, dst []byte, _ *engine.Member) []byte {
			return jsonwire.AppendString(dst, w.Ev.AgentID) // the metadata tell that the event has none
		})
		result   = need("messageId", "", replyForm{})
		noReason = func(_ *engine.Writer, dst []byte, _ *engine.Member) []byte {
			return append(dst, `"no reason given"`...) // the metadata record that the event has no error
		}
		fails = need("message", "error/message", engine.Full{}).Or(noReason)
		code  = may("code", "error/code")
	)
	elsewhere := func(w *engine.Writer) bool { return otherInput(string(w.Ev.Payload.(*agentevents.RunStarted).Inputs)) }
	ofMain := func(w *engine.Writer) bool { return w.Ev.ParentAgentID == encoderOf(w).s.main }
	const deltaKind, thinkKind, argsKind = agentevents.KindTextDelta,
		agentevents.KindAgentReasoningDelta, agentevents.KindToolArgumentsDelta
	failedAtEnd := when(caseFailed, row("RUN_FINISHED", agentevents.KindRunFailed, thread, runID, outcome, usage))
	failedAtEnd.Reads = true
	rows := []engine.Row{
		row("RUN_STARTED", agentevents.KindRunStarted, thread, runID, may("input", "inputs").Unless(elsewhere)),
		when(caseResumed, row("RUN_STARTED", agentevents.KindRunResumed, thread, runID)),
		row("RUN_FINISHED", agentevents.KindRunCompleted, thread, runID, may("result", "outputs", resultForm{}), outcome, usage),
		when(outcomeInterrupt, row("RUN_FINISHED", agentevents.KindRunPaused, thread, runID, waits, usage)),
		when(outcomeCancelled, row("RUN_FINISHED", agentevents.KindRunCancelled, thread, runID, cancel, usage)),
		row("RUN_ERROR", agentevents.KindRunFailed, fails, code, usage),
		failedAtEnd,
		row("STEP_STARTED", agentevents.KindStepStarted, need("stepName", "stepId", engine.Full{})),
		row("STEP_FINISHED", agentevents.KindStepEnded, need("stepName", "stepId", engine.Full{})),
		row(typeSnapshot, agentevents.KindStatePatched, need("snapshot", "value", snapshotForm{})),
		when(casePatch, row("STATE_DELTA", agentevents.KindStatePatched, need("delta", "", patchForm{}))),
		row("SUBAGENT_STARTED", agentevents.KindAgentStarted, name, may("description", "task"),
			may("parentSubagentRunId", "/parentAgentId").Unless(ofMain), may("parentToolCallId", "/parentCallId")),
		row(typeSubagentError, agentevents.KindAgentEnded, fails, code),
		row("SUBAGENT_FINISHED", agentevents.KindAgentEnded, may("result", "structuredOutput", resultForm{})),
		read("TEXT_MESSAGE_START", deltaKind, message("blockId"), may("role", "", roles)),
		row("TEXT_MESSAGE_CONTENT", deltaKind, message("blockId"), word("delta")),
		read("TEXT_MESSAGE_CHUNK", deltaKind, may("messageId", "blockId"), may("role", "", roles), may("delta", "delta")),
		row("TEXT_MESSAGE_END", agentevents.KindTextCompleted, message("blockId")),
		when(caseMessage, row("TEXT_MESSAGE_END", agentevents.KindMessageCreated, message("message/messageId"))),
		read("REASONING_MESSAGE_START", thinkKind, message("blockId"), need("role", "", role("reasoning"))),
		row("REASONING_MESSAGE_CONTENT", thinkKind, message("blockId"), word("delta")),
		read("REASONING_MESSAGE_CHUNK", thinkKind, may("messageId", "blockId"), may("delta", "delta")),
		row("REASONING_MESSAGE_END", agentevents.KindAgentReasoned, message("blockId")),
		read("THINKING_TEXT_MESSAGE_START", thinkKind),
		read("THINKING_TEXT_MESSAGE_CONTENT", thinkKind, word("delta")),
		read("THINKING_TEXT_MESSAGE_END", agentevents.KindAgentReasoned),
		read("TOOL_CALL_START", argsKind, callID, need("toolCallName", "", tool)),
		row("TOOL_CALL_ARGS", argsKind, callID, word("delta")),
		read("TOOL_CALL_CHUNK", argsKind, may("toolCallId", "callId"), may("toolCallName", "", tool), may("delta", "delta")),
		row("TOOL_CALL_END", agentevents.KindToolCalled, callID),
		row("TOOL_CALL_RESULT", agentevents.KindToolReturned, callID, result, need("content", "result", contentForm{})),
	}
	head := []engine.Member{need("type", "", engine.Type),
		engine.May("timestamp", "/timestamp", engine.AnyTime(timeForm{}, time.Millisecond)),
		may("subagentRunId", "/agentId /sessionId", tagForm{}),
		may("workflowId", "/workflowId"), may("phase", "/phase"), may("nodeId", "/nodeId"), may("nodeRunId", "/nodeRunId"),
		may("spanId", "/spanId", spanForm{}), may("parentSpanId", "/parentSpanId", spanForm{})}
	own := len(rows)
	for info := range agentevents.Kinds() {
		r := when(string(info.Kind), row("CUSTOM", info.Kind, usual("name", func(_ *stream, ev *agentevents.Event) string {
			return jsonwire.Quote(custom + string(ev.Kind()))
		}), need("value", "", valueForm{})))
		if info.Kind == agentevents.KindCommandReceived { // the command.consumed names it
			r.Members = append(r.Members, may("commandId", "/id"))
		}
		for i := range rows[:own] {
			r.Reads = r.Reads || rows[i].Kind == info.Kind
		}
		rows = append(rows, r)
	}
	engine.AddLate(rows)
	return engine.New(engine.Format{
		Name:       Name,
		Required:   RuleRequired,
		Remarks:    []string{remarkStart, remarkTime, remarkRun},
		OtherExtra: true,
		Case:       caseOf,
		Pick:       func(r *engine.Reader) *engine.Row { return decoderOf(r).pick() },
		Head:       head,
		Rows:       rows,
	})
}()

// caseOf tells the rows of a type apart by the line.
func caseOf(typ, line string) string {
	switch typ {
	case "CUSTOM":
		kind, ours := strings.CutPrefix(jsonwire.Text(jsonwire.Member(line, "name")), custom)
		if _, known := agentevents.Kind(kind).Info(); ours && known {
			return kind
		}
	case "RUN_FINISHED":
		word := jsonwire.Text(jsonwire.Member(jsonwire.Member(line, "outcome"), "type"))
		switch endword.Of(word) {
		case endword.Cancelled:
			return outcomeCancelled
		case endword.Failed, endword.Refused:
			return caseFailed
		}
		return word
	}
	return ""
}

// isDelta reports whether the lines of the kind hold pieces of a block.
func isDelta(kind agentevents.Kind) bool {
	info, _ := kind.Info()
	return info.Role == agentevents.RoleDelta
}
