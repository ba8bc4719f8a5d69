package codex

import (
	"cmp"
	"strings"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/capture/internal/session"
	"github.com/agentevents/agentevents/internal/jsonwire"
)

// Exec returns the reader of the output of codex exec --json: one process. Times, prompt, model,
// the work of sub-agents and some calls are not in it. Its usage is the sum over the thread with
// all processes before, so it is a running total.
func Exec() *session.Program {
	return &session.Program{
		Name:   "Codex",
		Tested: "0.169.0",
		Files:  []string{"a stream of codex exec --json"},
		Facts: func(first []string) (session.Facts, bool) {
			id := processID(first)
			return session.Facts{Session: id, Thread: id, Copies: true, Of: threadOf(first)}, true
		},
		Time:    noTime,
		Untimed: true,
		New:     newExec,
	}
}

// processID is made of the lines of a process up to its first item: a process that resumes a
// thread prints the same thread id.
func processID(lines []string) string {
	for i, line := range lines {
		if i > 0 && startsThread(line) {
			lines = lines[:i]
			break
		}
		if i+1 == maxOpening || !opening(line) {
			lines = lines[:i+1]
			break
		}
	}
	return session.ID(lines...)
}

// threadOf returns the thread that a process tells first.
func threadOf(lines []string) string {
	for _, line := range lines {
		if jsonwire.Valid(line) == nil {
			if id := jsonwire.Text(jsonwire.Member(line, "thread_id")); id != "" {
				return id
			}
		}
	}
	return ""
}

// maxOpening bounds the lines before the first item.
const maxOpening = 8

// startsThread reports whether a line is the first one of a process.
func startsThread(line string) bool {
	return jsonwire.Text(jsonwire.Member(line, "type")) == "thread.started"
}

// opening reports whether a line comes before the work of a turn.
func opening(line string) bool {
	kind := jsonwire.Text(jsonwire.Member(line, "type"))
	return kind == "thread.started" || kind == "turn.started"
}

// An exec is the state of the reader of one process.
type exec struct {
	r        *session.Recorder
	kinds    map[string]func(*exec)
	items    map[string]func(*exec, *session.Object, string)
	held     []*session.Line
	agent    *session.Agent
	thread   string
	line     session.Object
	begun    bool
	turns    int
	turn     *turn
	last     turn
	plan     string
	subs     map[string]*session.Agent // by thread
	pending  *session.Line             // an error that the end of the turn may repeat
	returned bool                      // a call has returned since the latest text
	carried  *tokens                   // the total of the thread before this process, once it is known
}

func newExec(r *session.Recorder) session.Reader {
	return &exec{r: r, subs: map[string]*session.Agent{}, kinds: map[string]func(*exec){
		"thread.started": (*exec).threadStarted,
		"turn.started":   (*exec).turnStarted,
		"turn.completed": (*exec).turnCompleted,
		"turn.failed":    (*exec).turnFailed,
		"error":          (*exec).failed,
		"item.started":   (*exec).item,
		"item.updated":   (*exec).item,
		"item.completed": (*exec).item,
	}, items: map[string]func(*exec, *session.Object, string){
		"agent_message":     (*exec).said,
		"reasoning":         (*exec).reasoned,
		"command_execution": (*exec).command,
		"file_change":       (*exec).patch,
		"mcp_tool_call":     (*exec).mcp,
		"web_search":        (*exec).search,
		"collab_tool_call":  (*exec).collab,
		"todo_list":         (*exec).todo,
		"error":             (*exec).warned,
	}}
}

// Line reads a line.
func (e *exec) Line(l *session.Line) {
	if e.begun && startsThread(l.Text) {
		e.r.Another()
		return
	}
	e.begun = true
	if e.agent == nil {
		copied := *l
		e.held = append(e.held, &copied)
		if !opening(l.Text) || len(e.held) >= maxOpening {
			e.start()
		}
		return
	}
	e.read(l)
}

// start starts the run, and reads the lines that were held.
func (e *exec) start() {
	held := e.held
	e.held = nil
	texts := make([]string, len(held))
	for i, l := range held {
		texts[i] = l.Text
	}
	e.thread = strings.Clone(threadOf(texts))
	e.r.At(held[0], func() {
		main := cmp.Or(e.r.Options.AgentID, mainAgent)
		e.r.Begin(cmp.Or(held[0].Thread, processID(texts)))
		e.r.Emit(nil, &agentevents.RunStarted{Agent: agentevents.Some(agentevents.AgentRef{AgentID: main})}, 0)
		e.agent = e.r.NewAgent(main, nil, "", e.thread)
		e.r.Start(e.agent, "", &agentevents.AgentStarted{ProviderSessionID: e.thread, Prompt: e.r.Options.Prompt})
	})
	for _, l := range held {
		e.r.At(l, func() { e.read(l) })
	}
}

func (e *exec) read(l *session.Line) {
	e.line.Parse(l.Text)
	kind := e.line.Str("type")
	if e.pending != nil && kind != "turn.failed" {
		e.tellPending()
		e.line.Parse(l.Text)
		e.line.Skip("type")
	}
	f, ok := e.kinds[kind]
	if !ok {
		e.r.Unread(kind, "")
		return
	}
	f(e)
	e.r.Rest(kind, "", &e.line)
}

func (e *exec) threadStarted() {
	if id := e.line.Str("thread_id"); id != e.thread && id != "" {
		e.thread = strings.Clone(id)
		e.r.Emit(e.agent, &agentevents.AgentSessionChanged{ProviderSessionID: e.thread}, 0)
	}
}

func (e *exec) turnStarted() {
	e.cutTurn()
	e.turns++
	e.turn = &turn{number: e.turns}
	e.r.Emit(e.agent, &agentevents.TurnStarted{Turn: agentevents.Some(e.turns)}, 0)
}

// cutTurn ends a turn that the program was stopped in.
func (e *exec) cutTurn() {
	if e.turn == nil {
		return
	}
	e.turn.end = cut
	e.turn.err = agentevents.Some(agentevents.ErrorInfo{Code: "interrupted",
		Message: "the stream ends within the turn: the program was stopped, or is still at work"})
	e.r.Interrupt(e.agent, agentevents.ToolStatusInterrupted, "the program ended before the call returned", true)
	e.endTurn(agentevents.MarkSynthetic)
}

func (e *exec) endTurn(marks agentevents.Marks) {
	e.r.Emit(e.agent, &agentevents.TurnEnded{Turn: agentevents.Some(e.turn.number), Error: e.turn.err}, marks)
	e.turn.marks = marks
	e.last, e.turn = *e.turn, nil
}

func (e *exec) turnCompleted() {
	if used := e.line.Object("usage"); used.Text != "" {
		t, source := tokensOf(used), "total of the thread"
		e.r.Keep(e.thread)
		if e.carried == nil {
			e.carried = e.before(t)
		}
		if *e.carried != (tokens{}) {
			source += " without its earlier processes"
		}
		e.r.Emit(e.agent, &agentevents.UsageObserved{Usage: t.minus(*e.carried).usage(), Cumulative: true, Source: source}, 0)
		e.r.Rest("turn.completed", "/usage", used)
	}
	if e.turn == nil {
		return
	}
	e.turn.end = completed
	e.r.Interrupt(e.agent, agentevents.ToolStatusInterrupted, "the turn ended before the call returned", true)
	e.endTurn(0)
}

// before returns the total of the thread at the end of the process before this one: the greatest
// of other processes that is below the first one of this process.
func (e *exec) before(first tokens) *tokens {
	var ends []tokens
	e.r.Others(e.thread, func(process int, line string) {
		if jsonwire.Valid(line) != nil || jsonwire.Text(jsonwire.Member(line, "type")) != "turn.completed" {
			return
		}
		ends = append(ends, make([]tokens, max(0, process+1-len(ends)))...)
		ends[process] = tokensOf(session.ParseObject(jsonwire.Member(line, "usage")))
	})
	before := &tokens{}
	for _, end := range ends {
		if end != first && !first.below(end) && !end.below(*before) {
			*before = end
		}
	}
	return before
}

func (e *exec) turnFailed() {
	err := e.line.Object("error")
	message := err.Str("message")
	if e.pending != nil && jsonwire.Text(jsonwire.Member(e.pending.Text, "message")) == message {
		e.pending = nil // the end of the turn tells it
	}
	e.tellPending()
	e.r.Rest("turn.failed", "/error", err)
	if e.turn == nil {
		return
	}
	e.turn.end = completed
	e.turn.err = agentevents.Some(agentevents.ErrorInfo{Code: "error", Message: errorText(message)})
	e.r.Interrupt(e.agent, agentevents.ToolStatusInterrupted, "the turn failed before the call returned", true)
	e.endTurn(0)
}

// failed notes an error, which the failure of the turn may repeat. If it does not, the program
// goes on.
func (e *exec) failed() {
	e.line.Skip("message")
	l := *e.r.Here()
	e.pending = &l
}

func (e *exec) tellPending() {
	l := e.pending
	if e.pending = nil; l == nil {
		return
	}
	e.r.At(l, func() {
		e.r.Emit(e.agent, &agentevents.AgentErrored{
			ErrorType: "error", Message: errorText(jsonwire.Text(jsonwire.Member(l.Text, "message"))),
			Severity: agentevents.SeverityWarning,
		}, 0)
	})
}

// item reads a line about an item. The ids of items begin anew in each process, and a call takes
// its id when it begins.
func (e *exec) item() {
	i := e.line.Object("item")
	kind, state := i.Str("type"), strings.TrimPrefix(e.line.Str("type"), "item.")
	f, ok := e.items[kind]
	if !ok {
		e.r.Unread("item."+state+"/"+kind, "")
		return
	}
	f(e, i, state)
	e.r.Rest("item."+state+"/"+kind, "/item", i)
}

func (e *exec) id(i *session.Object) string {
	return e.thread + ":" + string(jsonwire.AppendInt(nil, int64(e.turns))) + ":" + i.Str("id")
}

// answers notes that another answer of the model has begun, which a text after the return of a call
// shows. An answer of calls alone is not told apart from the one before.
func (e *exec) answers() {
	if e.returned {
		e.agent.Answers()
	}
	e.returned = false
}

func (e *exec) said(i *session.Object, state string) {
	id, text := e.id(i), i.Str("text")
	if state != "completed" {
		return
	}
	if e.turn != nil {
		e.turn.words = strings.Clone(text)
	}
	e.answers()
	e.r.Emit(e.agent, &agentevents.TextCompleted{BlockID: id, Text: text}, 0)
	e.r.Emit(e.agent, &agentevents.MessageCreated{Message: agentevents.ConversationMessage{
		MessageID: id, From: e.agent.ID, To: "user", Role: "agent",
		Content: agentevents.JSON(jsonwire.Quote(text)), TS: e.r.Here().At.UnixMilli(),
	}}, 0)
}

func (e *exec) reasoned(i *session.Object, state string) {
	id, text := e.id(i), i.Str("text")
	if state == "completed" {
		e.answers()
		e.r.Emit(e.agent, &agentevents.AgentReasoned{
			BlockID: id, Reasoning: text, Verbosity: agentevents.VerbositySummary,
		}, 0)
	}
}

// call opens the call of an item that has begun, or has completed without a beginning. It reports
// whether the item is complete.
func (e *exec) call(i *session.Object, state, tool string,
	args agentevents.JSON, transport agentevents.Transport) (id string, done bool) {
	id = e.id(i)
	i.Skip("id", "status")
	done = state == "completed"
	if e.agent.OpenCall(id) == nil && (done || state == "started") {
		if e.turn != nil {
			e.turn.words = "" // they came before the call: they are not the answer
		}
		c := e.r.Call(e.agent, &agentevents.ToolCalled{CallID: id, ToolID: tool, Arguments: args, Transport: transport}, 0)
		done = done && c != nil
	}
	return id, done
}

// back records the return of a call by its status.
func (e *exec) back(id, status, message string, exit agentevents.Opt[int64], result agentevents.JSON) {
	v := verdict{status: statusOf(status), exit: exit}
	p := &agentevents.ToolReturned{CallID: id, Status: v.status, Result: result}
	if v.status != agentevents.ToolStatusOK {
		p.Error = agentevents.Some(agentevents.ErrorInfo{Code: v.code(),
			Message: cmp.Or(v.message(message), "the call ended with status "+status)})
	}
	e.returned = true
	e.r.Return(e.agent, p, 0)
}

func (e *exec) command(i *session.Object, state string) {
	status, output, exit := i.Str("status"), i.Raw("aggregated_output"), i.Int("exit_code")
	id, done := e.call(i, state, "shell", i.Pick("command"), "")
	switch {
	case !done:
	case status == "completed" && !exit.OK: // the end of the turn closed it
		e.r.Return(e.agent, &agentevents.ToolReturned{
			CallID: id, Status: agentevents.ToolStatusInterrupted, Result: agentevents.JSON(output),
			Error: agentevents.Some(agentevents.ErrorInfo{Code: "interrupted",
				Message: "the turn ended while the command was running"}),
		}, 0)
	default:
		e.back(id, status, jsonwire.Text(output), exit, agentevents.JSON(output))
	}
}

func (e *exec) patch(i *session.Object, state string) {
	status := i.Str("status")
	if id, done := e.call(i, state, "apply_patch", i.Pick("changes"), ""); done {
		e.back(id, status, "", agentevents.Opt[int64]{}, "")
	}
}

func (e *exec) mcp(i *session.Object, state string) {
	status, result, failure := i.Str("status"), i.Raw("result"), i.Object("error")
	tool := i.Str("server") + "." + i.Str("tool")
	if id, done := e.call(i, state, tool, agentevents.JSON(i.Raw("arguments")), agentevents.TransportMCP); done {
		message := cmp.Or(failure.Str("message"), textOf(jsonwire.Member(cmp.Or(result, "{}"), "content")))
		e.back(id, status, message, agentevents.Opt[int64]{}, agentevents.JSON(result))
	}
}

func (e *exec) search(i *session.Object, state string) {
	if id, done := e.call(i, state, "web_search", i.Pick("query", "action"), ""); done {
		e.back(id, "completed", "", agentevents.Opt[int64]{}, "")
	}
}

// collab reads a call about sub-agents. Of their work the stream tells their ends alone.
func (e *exec) collab(i *session.Object, state string) {
	status, tool := i.Str("status"), i.Str("tool")
	i.Skip("sender_thread_id")
	prompt := agentevents.JSON(strings.Clone(i.Raw("prompt")))
	id, done := e.call(i, state, tool, i.Pick("prompt", "receiver_thread_ids"), "")
	states := i.Object("agents_states")
	if !done {
		return
	}
	if tool == "spawn_agent" {
		for thread := range jsonwire.Elements(i.Raw("receiver_thread_ids")) {
			if thread = strings.Clone(jsonwire.Text(thread)); e.subs[thread] == nil {
				a := e.r.NewAgent(e.agent.ID, e.agent, "", thread)
				e.subs[thread] = a
				e.r.Start(a, id, &agentevents.AgentStarted{
					ProviderSessionID: thread, Prompt: prompt, Task: jsonwire.Text(string(prompt)),
				})
				e.r.Unseen(a)
			}
		}
	}
	e.back(id, status, "", agentevents.Opt[int64]{}, agentevents.JSON(states.Text))
	for thread, text := range jsonwire.Members(states.Text) {
		s := session.ParseObject(text)
		if a, p := e.subs[thread], subEnd(s.Str("status"), s.Str("message")); a != nil && p != nil {
			e.r.End(a, p, 0)
		}
	}
}

// subEnd returns the end of a sub-agent that the state of it tells, or nil if it goes on.
func subEnd(state, message string) *agentevents.AgentEnded {
	message = strings.Clone(message)
	switch state {
	case "completed":
		return &agentevents.AgentEnded{Outcome: agentevents.OutcomeConverged, Result: message}
	case "errored", "failed":
		return &agentevents.AgentEnded{Outcome: agentevents.OutcomeAborted,
			Error: agentevents.Some(agentevents.ErrorInfo{Code: "error", Message: message})}
	case "interrupted", "shutdown", "not_found":
		return &agentevents.AgentEnded{
			Outcome: agentevents.OutcomeAborted,
			Error: agentevents.Some(agentevents.ErrorInfo{Code: "interrupted",
				Message: cmp.Or(message, "the sub-agent was stopped: "+state)}),
		}
	}
	return nil
}

// todo reads a list of things to do. Its completion repeats the latest one.
func (e *exec) todo(i *session.Object, _ string) {
	raw := i.Raw("items")
	i.Skip("id")
	if raw == e.plan {
		return
	}
	e.plan = strings.Clone(raw)
	p := &agentevents.PlanProposed{}
	for step := range jsonwire.Elements(raw) {
		p.Steps = append(p.Steps, agentevents.PlanStep{
			StepID:      string(jsonwire.AppendInt(nil, int64(len(p.Steps)+1))),
			Description: jsonwire.Text(jsonwire.Member(step, "text")),
		})
	}
	e.r.Emit(e.agent, p, 0)
}

func (e *exec) warned(i *session.Object, _ string) {
	i.Skip("id")
	e.r.Emit(e.agent, &agentevents.AgentErrored{
		ErrorType: "error", Message: i.Str("message"), Severity: agentevents.SeverityWarning,
	}, 0)
}

// End ends the run.
func (e *exec) End(*session.Line) {
	if e.agent == nil {
		if len(e.held) == 0 {
			return
		}
		e.start()
	}
	e.tellPending()
	e.cutTurn()
	e.last.finish(e.r, e.agent)
	e.last.close(e.r)
}
