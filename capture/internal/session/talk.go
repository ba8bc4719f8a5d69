package session

import (
	"cmp"
	"strings"
	"time"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/internal/jsonwire"
)

// A Talk is the conversation of one agent. Its lines are held until the agent starts.
type Talk struct {
	R      *Recorder
	*Agent        // nil before the start
	Model  string // that is asked next
	Prompt string // of the agent, JSON
	First  *Line
	Said   []string                       // ids of the events of messages
	Stated agentevents.Opt[int64]         // tokens that the end of the agent states, beside those that count
	Took   agentevents.Opt[time.Duration] // by the agent, where lines have no times
	// Ends means that lines tell the ends of turns: one without was cut. Else words may be the end.
	Ends    bool
	held    []*Line
	size    int
	seen    *Line // the latest one
	turns   int
	answers int
	turn    *turn
	last    turn // the latest turn that ended
	of      *Line
	ids     int // number of ids that were made of the line
}

// A turn is one exchange with the user.
type turn struct {
	number int
	err    agentevents.Opt[agentevents.ErrorInfo]
	end    ending
	words  string // the last text of the agent
	spoken bool   // it is the last of the turn
	// cancelled means that somebody stopped the call that returned last.
	cancelled bool
}

type ending uint8

const (
	none      ending = iota // no turn has ended
	completed               // with or without an error
	stopped                 // somebody stopped it
	cut                     // the program ended within it
)

const maxHeld, maxHeldBytes = 64, 4 << 20

// Hold keeps a line for the start of the agent. It reports whether there are too many.
func (t *Talk) Hold(l *Line) (full bool) {
	if t.First == nil {
		t.First = l
	}
	t.held = append(t.held, l)
	t.size += len(l.Text)
	return len(t.held) >= maxHeld || t.size >= maxHeldBytes
}

// Held returns the texts of the lines that are held.
func (t *Talk) Held() (texts []string) {
	for _, l := range t.held {
		texts = append(texts, l.Text)
	}
	return texts
}

// Release gives the lines that are held to read, each at its place.
func (t *Talk) Release(read func(*Line)) {
	held := t.held
	t.held = nil
	for _, l := range held {
		t.R.At(l, func() { read(l) })
		t.seen = l
	}
}

// StartRun starts the run and its main agent.
func (t *Talk) StartRun(main, runID, sessionID string, inputs agentevents.JSON) {
	main = cmp.Or(t.R.Options.AgentID, main)
	t.R.Begin(runID)
	t.R.Emit(nil, &agentevents.RunStarted{Inputs: inputs, Agent: agentevents.Some(agentevents.AgentRef{AgentID: main})}, 0)
	t.Agent = t.R.NewAgent(main, nil, "", sessionID)
	t.R.Start(t.Agent, "", &agentevents.AgentStarted{
		Model: t.Model, ProviderSessionID: sessionID, Prompt: cmp.Or(agentevents.JSON(t.Prompt), t.R.Options.Prompt),
	})
}

// StartSub starts a sub-agent, by a call of its parent if that is known.
func (t *Talk) StartSub(parent *Agent, kind, thread, call string) {
	main := parent
	for main.Parent != nil {
		main = main.Parent
	}
	t.Agent = t.R.NewAgent(main.ID, parent, kind, thread)
	t.R.Start(t.Agent, call, &agentevents.AgentStarted{
		Name: kind, Model: t.Model, ProviderSessionID: thread,
		Prompt: agentevents.JSON(t.Prompt), Task: jsonwire.Text(t.Prompt),
	})
}

// See notes the line that is read.
func (t *Talk) See() { t.seen = t.R.Here() }

// Ask records a text of the user, or of the parent for a sub-agent, which begins a turn.
func (t *Talk) Ask(id, text string) {
	if t.turn != nil {
		t.R.At(cmp.Or(t.seen, t.R.Here()), func() { t.lapse("the turn ended before the call returned") })
	}
	t.begin()
	t.Add(id, text)
}

// Begin begins a turn. One that is open has no end.
func (t *Talk) Begin() {
	t.CutTurn()
	t.begin()
}

// Add records a text of the user within a turn. It returns the event's id.
func (t *Talk) Add(id, text string) string {
	from, actor := "user", "user"
	if t.Parent != nil {
		from, actor = t.Parent.ID, "parent"
	}
	return t.send(actor, agentevents.ConversationMessage{MessageID: id, From: from, To: t.ID, Role: "user"}, text)
}

// Told records a text that the program wrote for the model.
func (t *Talk) Told(id, text string) string {
	return t.send("orchestrator",
		agentevents.ConversationMessage{MessageID: id, From: System, To: t.ID, Role: "system"}, text)
}

// Spoke records a text of the agent.
func (t *Talk) Spoke(id, text string) string {
	if text == "" {
		return ""
	}
	if t.turn != nil {
		t.turn.words, t.turn.spoken = strings.Clone(text), true
	}
	id = cmp.Or(id, t.LineID())
	t.Wrote(id, text)
	to := "user"
	if t.Parent != nil {
		to = t.Parent.ID
	}
	return t.send("", agentevents.ConversationMessage{MessageID: id, From: t.ID, To: to, Role: "agent"}, text)
}

// Concludes takes words with which a call ends the turn as the answer.
func (t *Talk) Concludes(words string) {
	if t.turn != nil {
		t.turn.words = strings.Clone(words)
	}
}

// Wrote records a text that did not become a message.
func (t *Talk) Wrote(id, text string) {
	if text != "" {
		t.R.Emit(t.Agent, &agentevents.TextCompleted{BlockID: cmp.Or(id, t.LineID()), Text: text}, 0)
	}
}

// Thought records a thought of the agent.
func (t *Talk) Thought(id, text string) {
	if text != "" {
		t.R.Emit(t.Agent, &agentevents.AgentReasoned{
			BlockID: cmp.Or(id, t.LineID()), Reasoning: text, Verbosity: agentevents.VerbosityFull,
		}, 0)
	}
}

func (t *Talk) send(actor string, m agentevents.ConversationMessage, text string) string {
	m.MessageID = cmp.Or(m.MessageID, t.LineID())
	m.Content = agentevents.JSON(jsonwire.Quote(text))
	m.TS = t.R.Here().At.UnixMilli()
	t.Said = append(t.Said,
		t.R.Record(t.Agent, agentevents.Event{Actor: actor, Payload: &agentevents.MessageCreated{Message: m}}))
	return t.Said[len(t.Said)-1]
}

// LineID is an id made of the place of the line, another one each time.
func (t *Talk) LineID() string {
	l := t.R.Here()
	if t.of != l {
		t.of, t.ids = l, 0
	}
	t.ids++
	number := string(jsonwire.AppendInt(nil, int64(l.Number)))
	return ID(t.R.RunID(), cmp.Or(l.Thread, t.R.thread), number, string(jsonwire.AppendInt(nil, int64(t.ids))))
}

// Answer records a call of the model, and that errors before it were overcome.
func (t *Talk) Answer(p *agentevents.ModelReturned) {
	t.Step()
	if !p.Error.OK && t.turn != nil {
		t.turn.err = agentevents.Opt[agentevents.ErrorInfo]{}
	}
	p.OneEvent, p.Model = true, cmp.Or(p.Model, t.Model)
	p.ModelCallID = cmp.Or(p.ModelCallID, t.LineID())
	t.R.Emit(t.Agent, p, 0)
}

// Step notes that a new answer of the model begins. Words before it are not the last ones. It begins a
// turn, unless lines tell that.
func (t *Talk) Step() {
	if t.turn == nil && !t.Ends {
		t.begin()
	}
	if t.answers++; t.answers > 1 {
		t.Answers()
	}
	t.after(false)
}

// after notes that there is more after the last text of the agent, which is not its answer.
func (t *Talk) after(cancelled bool) {
	if t.turn != nil {
		t.turn.words, t.turn.spoken, t.turn.cancelled = "", false, cancelled
	}
}

// Fail records an error of the agent, with which the turn fails unless another answer follows.
func (t *Talk) Fail(code, message string) {
	if code = cmp.Or(code, "error"); t.turn == nil {
		t.begin()
	}
	t.Fails(code, message)
	t.Warn(code, message)
}

// Fails is Fail for an error that is recorded already, or that the end of the turn tells. Without a
// turn the agent has it.
func (t *Talk) Fails(code, message string) {
	if t.turn == nil {
		t.R.Emit(t.Agent, &agentevents.AgentErrored{ErrorType: code, Message: message}, 0)
		return
	}
	t.turn.err = agentevents.Some(agentevents.ErrorInfo{Code: strings.Clone(code), Message: strings.Clone(message)})
}

// Warn records an error that the program goes on after.
func (t *Talk) Warn(code, message string) {
	t.R.Emit(t.Agent, &agentevents.AgentErrored{
		ErrorType: code, Message: message, Severity: agentevents.SeverityWarning,
	}, 0)
}

// Back records the return of a call.
func (t *Talk) Back(p *agentevents.ToolReturned) {
	if p.Status != agentevents.ToolStatusOK {
		if p.Error.V.Code == "" {
			p.Error.V.Code = string(p.Status)
		}
		if p.Error.V.Message == "" {
			p.Error.V.Message = "the call ended with status " + string(p.Status)
		}
		p.Error.OK = true
	}
	t.after(p.Status == agentevents.ToolStatusCancelled)
	t.R.Return(t.Agent, p, 0)
}

// InTurn reports whether a turn is open.
func (t *Talk) InTurn() bool { return t.turn != nil }

// Failed records an error that the turn fails with unless the agent goes on, or has given its answer already.
func (t *Talk) Failed(code, message string) {
	if t.turn == nil || t.turn.spoken && len(t.Calls()) == 0 {
		t.Warn(code, message)
		return
	}
	t.Fail(code, message)
}

func (t *Talk) begin() {
	t.turns++
	t.turn = &turn{number: t.turns}
	t.R.Emit(t.Agent, &agentevents.TurnStarted{Turn: agentevents.Some(t.turns)}, 0)
}

// Complete ends the turn. marks tell whether its end is on disk.
func (t *Talk) Complete(marks agentevents.Marks) {
	t.CompleteAfter(agentevents.Opt[time.Duration]{}, marks)
}

// CompleteAfter is Complete for a turn of which it is known how long it took.
func (t *Talk) CompleteAfter(took agentevents.Opt[time.Duration], marks agentevents.Marks) {
	if t.turn == nil {
		return
	}
	t.turn.end = completed
	t.R.Interrupt(t.Agent, agentevents.ToolStatusInterrupted, "the turn ended before the call returned", false)
	t.endTurn(took, marks)
}

// Stop ends the turn, which somebody stopped.
func (t *Talk) Stop(message string) {
	if t.turn == nil {
		return
	}
	t.turn.end = stopped
	t.turn.err = agentevents.Some(agentevents.ErrorInfo{Code: "cancelled",
		Message: "the turn was stopped: " + strings.Clone(message)})
	t.R.Interrupt(t.Agent, agentevents.ToolStatusCancelled, "the turn was stopped", false)
	t.endTurn(agentevents.Opt[time.Duration]{}, 0)
}

// CutTurn ends a turn of which no line tells the end.
func (t *Talk) CutTurn() {
	if t.turn != nil {
		t.lapse("the program ended before the call returned")
	}
}

// lapse ends a turn whose end is not on disk. Unless lines tell ends, it is complete if the agent has
// spoken last, before no part of a line, or failed, and was stopped with the last call. Else the
// program was stopped in it.
func (t *Talk) lapse(message string) {
	switch {
	case !t.Ends && (t.turn.spoken && len(t.Calls()) == 0 && !t.R.Torn() || t.turn.err.OK):
		t.turn.end = completed
	case !t.Ends && t.turn.cancelled:
		t.turn.end = stopped
		t.turn.err = agentevents.Some(agentevents.ErrorInfo{Code: "cancelled",
			Message: "the turn was stopped: its last call was cancelled"})
	default:
		if t.turn.end = cut; !t.turn.err.OK {
			t.turn.err = agentevents.Some(agentevents.ErrorInfo{Code: "interrupted",
				Message: "the turn has no end: the program was killed, or is still at work"})
		}
	}
	t.R.Interrupt(t.Agent, agentevents.ToolStatusInterrupted, message, t.turn.end == cut)
	t.endTurn(agentevents.Opt[time.Duration]{}, agentevents.MarkSynthetic)
}

// Cut ends a turn within which the program was stopped, whatever the agent has said.
func (t *Talk) Cut() {
	if t.turn != nil && !t.turn.err.OK {
		t.turn.words, t.turn.spoken = "", false
	}
}

func (t *Talk) endTurn(took agentevents.Opt[time.Duration], marks agentevents.Marks) {
	t.R.Emit(t.Agent, &agentevents.TurnEnded{
		Turn: agentevents.Some(t.turn.number), Duration: took, Error: t.turn.err,
	}, marks)
	t.last, t.turn = *t.turn, nil
}

// Resolve ends the turn as somebody else tells: with an error, or with the last words of the agent.
func (t *Talk) Resolve(err agentevents.Opt[agentevents.ErrorInfo], words string) {
	if t.turn == nil {
		t.begin()
	}
	t.turn.err = err
	if words != "" {
		t.turn.words, t.turn.spoken = strings.Clone(words), true
	}
	t.Complete(agentevents.MarkSynthetic)
}

// Finish ends the agent as its last turn ended.
func (t *Talk) Finish() {
	var marks agentevents.Marks
	if t.turn != nil {
		t.CutTurn()
		marks = agentevents.MarkSynthetic
	}
	end := &agentevents.AgentEnded{
		Outcome: agentevents.OutcomeConverged, Result: t.last.words, Error: t.last.err, StatedTokens: t.Stated, Duration: t.Took,
	}
	if t.last.err.OK {
		end.Outcome, end.Result = agentevents.OutcomeAborted, ""
	}
	t.R.End(t.Agent, end, marks)
}

// FinishRun ends the main agent and the run.
func (t *Talk) FinishRun() {
	var marks agentevents.Marks
	if t.turn != nil {
		marks = agentevents.MarkSynthetic
	}
	if t.Finish(); t.last.end == cut {
		marks = agentevents.MarkSynthetic
	}
	switch {
	case t.last.end == stopped:
		t.R.Emit(nil, &agentevents.RunCancelled{Reason: t.last.err.V.Message}, marks)
	case t.last.err.OK:
		t.R.Emit(nil, &agentevents.RunFailed{Error: t.last.err}, marks)
	default:
		t.R.Emit(nil, &agentevents.RunCompleted{}, marks)
	}
}

// Retract takes back messages. The tokens stay spent.
func (t *Talk) Retract(events []string, reason string) {
	if t.turn != nil {
		t.R.Interrupt(t.Agent, agentevents.ToolStatusInterrupted, reason, true)
		t.lapse(reason)
	}
	if len(events) > 0 {
		t.R.Emit(t.Agent, &agentevents.EventRetracted{EventIDs: events, Reason: reason}, 0)
	}
}

// Text joins the texts of a list of parts. A string is its text.
func Text(raw string) string {
	if raw == "" || raw[0] == '"' {
		return jsonwire.Text(raw)
	}
	var parts []string
	for part := range jsonwire.Elements(raw) {
		if text := jsonwire.Text(jsonwire.Member(part, "text")); text != "" {
			parts = append(parts, text)
		}
	}
	return strings.Join(parts, "\n")
}

// Failed is the error of a call: its code is exit_ and the number for a command that ended with it.
func Failed(status agentevents.ToolStatus, exit agentevents.Opt[int64],
	message string) agentevents.Opt[agentevents.ErrorInfo] {
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
	return ID(r.RunID(), cmp.Or(l.Thread, r.thread), string(jsonwire.AppendInt(nil, int64(l.Number))))
}

// MillisTime is a time in milliseconds since 1970. It reports false for years that a time is not written with.
func MillisTime(ms agentevents.Opt[int64]) (at time.Time, ok bool) {
	const least, most = -62167219200000, 253402300799999 // the years 0 to 9999
	if !ms.OK || ms.V < least || ms.V > most {
		return at, false
	}
	return time.UnixMilli(ms.V).UTC(), true
}
