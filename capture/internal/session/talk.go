package session

import (
	"strings"
	"time"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/internal/jsonwire"
)

// A Talk is the conversation of one agent, of which each turn begins with a text of its user.
type Talk struct {
	*Agent
	Model   string // that is asked next
	r       *Recorder
	turns   int
	answers int
	turn    *turn // nil between turns
	last    turn  // the latest turn that ended
}

// A turn is one exchange with the user.
type turn struct {
	err   agentevents.Opt[agentevents.ErrorInfo]
	end   Ending
	words string // the last text of the agent
}

// An Ending is how a turn ended.
type Ending uint8

// The endings of turns. Without a turn, a session is complete.
const (
	Completed Ending = iota // with or without an error
	Stopped                 // somebody stopped it
	Cut                     // the program ended within it
)

// NewTalk returns the conversation of an agent.
func NewTalk(r *Recorder, a *Agent, model string) *Talk {
	return &Talk{Agent: a, Model: strings.Clone(model), r: r}
}

// InTurn reports whether a turn is open.
func (t *Talk) InTurn() bool { return t.turn != nil }

// Begin begins a turn. One that is open was cut.
func (t *Talk) Begin() {
	t.CutTurn()
	t.turns++
	t.turn = &turn{}
	t.r.Emit(t.Agent, &agentevents.TurnStarted{Turn: agentevents.Some(t.turns)}, 0)
}

// Fail notes the error that the open turn ends with, unless the agent goes on. Without a turn the
// agent has it.
func (t *Talk) Fail(code, message string) {
	err := agentevents.ErrorInfo{Code: strings.Clone(code), Message: strings.Clone(message)}
	if t.turn == nil {
		t.r.Emit(t.Agent, &agentevents.AgentErrored{ErrorType: err.Code, Message: err.Message}, 0)
		return
	}
	t.turn.err = agentevents.Some(err)
}

// Complete ends the turn. Its open calls did not return.
func (t *Talk) Complete(marks agentevents.Marks) {
	if t.turn != nil {
		t.r.Interrupt(t.Agent, agentevents.ToolStatusInterrupted, "the turn ended before the call returned", false)
		t.endTurn(Completed, marks)
	}
}

// Stop ends the turn, which somebody stopped.
func (t *Talk) Stop(reason string) {
	if t.turn != nil {
		t.Fail("cancelled", "the turn was stopped: "+reason)
		t.r.Interrupt(t.Agent, agentevents.ToolStatusCancelled, "the turn was stopped", false)
		t.endTurn(Stopped, 0)
	}
}

// CutTurn ends a turn whose end the program did not tell.
func (t *Talk) CutTurn() {
	if t.turn != nil {
		t.r.Interrupt(t.Agent, agentevents.ToolStatusInterrupted, "the program ended before the call returned", true)
		if !t.turn.err.OK {
			t.Fail("interrupted", "the turn has no end: the program was killed, or is still at work")
		}
		t.endTurn(Cut, agentevents.MarkSynthetic)
	}
}

func (t *Talk) endTurn(end Ending, marks agentevents.Marks) {
	t.turn.end = end
	t.r.Emit(t.Agent, &agentevents.TurnEnded{Turn: agentevents.Some(t.turns), Error: t.turn.err}, marks)
	t.last, t.turn = *t.turn, nil
}

// Ask records a text of the user, or of the parent for a sub-agent. It returns the event's id.
func (t *Talk) Ask(id, text string) string {
	m := agentevents.ConversationMessage{MessageID: id, From: "user", To: t.ID, Role: "user"}
	actor := "user"
	if t.Parent != nil {
		m.From, actor = t.Parent.ID, "parent"
	}
	return t.send(actor, m, text)
}

// Told records a text that the program itself wrote for the model.
func (t *Talk) Told(id, text string) string {
	return t.send("orchestrator", agentevents.ConversationMessage{MessageID: id, From: System, To: t.ID, Role: "system"}, text)
}

// Say records a text of the agent. The agent has overcome an error before it.
func (t *Talk) Say(id, text string) string {
	if t.turn != nil {
		t.turn.words, t.turn.err = strings.Clone(text), agentevents.Opt[agentevents.ErrorInfo]{}
	}
	t.r.Emit(t.Agent, &agentevents.TextCompleted{BlockID: id, Text: text}, 0)
	to := "user"
	if t.Parent != nil {
		to = t.Parent.ID
	}
	return t.send("", agentevents.ConversationMessage{MessageID: id, From: t.ID, To: to, Role: "agent"}, text)
}

// Reason records thoughts of the model.
func (t *Talk) Reason(id, text string) {
	t.r.Emit(t.Agent, &agentevents.AgentReasoned{BlockID: id, Reasoning: text, Verbosity: agentevents.VerbosityFull}, 0)
}

func (t *Talk) send(actor string, m agentevents.ConversationMessage, text string) string {
	m.Content, m.TS = agentevents.JSON(jsonwire.Quote(text)), t.r.Here().At.UnixMilli()
	return t.r.Record(t.Agent, agentevents.Event{Actor: actor, Payload: &agentevents.MessageCreated{Message: m}})
}

// Answered records a call of the model that was answered: the event is the whole call.
func (t *Talk) Answered(p *agentevents.ModelReturned) {
	if t.answers++; t.answers > 1 {
		t.Answers()
	}
	if p.Model == "" {
		p.Model = t.Model
	}
	p.OneEvent = true
	t.r.Emit(t.Agent, p, 0)
}

// End ends the agent as its last turn ended.
func (t *Talk) End() {
	var marks agentevents.Marks
	if t.turn != nil {
		t.CutTurn()
		marks = agentevents.MarkSynthetic
	}
	p := &agentevents.AgentEnded{Outcome: agentevents.OutcomeConverged, Result: t.last.words, Error: t.last.err}
	if p.Error.OK {
		p.Outcome, p.Result = agentevents.OutcomeAborted, ""
	}
	t.r.End(t.Agent, p, marks)
}

// EndRun ends the run as the last turn of its main agent ended, which End has ended.
func (t *Talk) EndRun() {
	switch {
	case t.last.end == Stopped:
		t.r.Emit(nil, &agentevents.RunCancelled{Reason: t.last.err.V.Message}, 0)
	case t.last.end == Cut:
		t.r.Emit(nil, &agentevents.RunFailed{Error: t.last.err}, agentevents.MarkSynthetic)
	case t.last.err.OK:
		t.r.Emit(nil, &agentevents.RunFailed{Error: t.last.err}, 0)
	default:
		t.r.Emit(nil, &agentevents.RunCompleted{}, 0)
	}
}

// Failed is the error of a call: its code is exit_ and the number for a command that ended with it.
func Failed(status agentevents.ToolStatus, exit agentevents.Opt[int64], message string) agentevents.Opt[agentevents.ErrorInfo] {
	e := agentevents.ErrorInfo{Code: string(status), Message: strings.TrimSpace(message)}
	if exit.OK {
		e.Code = "exit_" + string(jsonwire.AppendInt(nil, exit.V))
	}
	if e.Message == "" {
		e.Message = "the call ended with " + e.Code
	}
	return agentevents.Some(e)
}

// LineID is an id made of the place of the line, for what a program gives no id.
func (r *Recorder) LineID() string {
	l := r.Here()
	return ID(r.RunID(), l.Thread, string(jsonwire.AppendInt(nil, int64(l.Number))))
}

// MillisTime is a time in milliseconds since 1970. It reports false for years that a time is not written with.
func MillisTime(ms agentevents.Opt[int64]) (at time.Time, ok bool) {
	const least, most = -62167219200000, 253402300799999 // the years 0 to 9999
	if !ms.OK || ms.V < least || ms.V > most {
		return at, false
	}
	return time.UnixMilli(ms.V).UTC(), true
}
