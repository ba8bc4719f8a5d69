package transcript

import (
	"cmp"
	"slices"
	"strings"
	"sync"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/capture/internal/session"
	"github.com/agentevents/agentevents/internal/jsonwire"
)

// mainAgent is the id of the main agent unless the caller names one. Package claude has the same.
const mainAgent = "claude"

// A reader reads the files of one session.
type reader struct {
	r       *session.Recorder
	kinds   map[string]func(*reader, *thread)
	line    session.Object // the line that is read
	message session.Object // its message
	files   map[int]*thread
	order   []*thread
	agents  map[string]*thread // by the program's id of the agent
	inline  map[string]*thread // of older versions, whose sub-agents are in the main file: by uuid of a line
	spawns  map[string]*spawn  // calls that spawn sub-agents, by id
	spawned []*spawn           // the same, in their order
	ledger  ledger
	chain   chain
	ghosts  []string // sub-agents without a file
}

// A spawn is a call that spawns a sub-agent.
type spawn struct {
	call   *session.Call
	line   *session.Line
	by     *thread
	kind   string
	task   string
	prompt string // JSON
	model  string
	id     string  // of the sub-agent, once a result has told it
	thread *thread // of the sub-agent

	told  bool // the return of the call, or a notice, has told how the sub-agent ended
	words string
	err   agentevents.Opt[agentevents.ErrorInfo]
}

// A thread is the conversation of one agent.
type thread struct {
	id            string
	sub           bool
	ghost         bool // it has no file
	about         *session.Object
	group         string
	parent        *thread
	spawn         *spawn
	agent         *session.Agent
	model, prompt string // prompt is JSON
	command       string // JSON of a local command, which is the prompt if the user has not written one
	inputs        agentevents.JSON
	first         *session.Line
	latest        *session.Line // the last line of the conversation
	held          []*session.Line
	heldBytes     int
	started       bool
	over          *session.Line   // the end of its file
	finished      bool            // its last line was read, and its parent has told how it ended
	copying       bool            // the lines are a copied history
	own           int             // number of lines of the session's own
	leaf          string          // the last line of it, in old versions
	copied        map[string]bool // calls of it
	doubts        []doubt
	boundary      *session.Line // a compaction, of which the summary is not read
	answer        answer
	parts         []*session.Line // lines of an answer that is not whole
	partsID       string
	conversation
}

// A conversation is how far an agent has come.
type conversation struct {
	state   state
	err     agentevents.Opt[agentevents.ErrorInfo] // of the states failed and stopped
	turns   int
	turn    *turn
	last    turn          // the latest turn that ended
	pending string        // id of a prompt that came after the turn
	woken   *session.Line // its line
	words   string        // the last text
	said    bool          // the model has answered
	budget  float64
	output  agentevents.JSON
	mode    string // of permission
}

// A turn is one exchange with the user.
type turn struct {
	number   int
	prompt   string // the program's id of the prompt
	duration *agentevents.Opt[int64]
	err      agentevents.Opt[agentevents.ErrorInfo]
	stopped  bool
	cut      bool
	output   bool // the output that was asked for is there
}

// A state is the point that a conversation has reached.
type state uint8

const (
	idle     state = iota
	asked          // the model
	working        // tools are called, or have returned
	answered       // the model has nothing to add
	failed         // an error is the last word
	stopped        // by the user
	limited        // by a limit, of turns or money
)

func newReader(r *session.Recorder) session.Reader {
	return &reader{
		r: r, kinds: kinds(), files: map[int]*thread{}, agents: map[string]*thread{},
		inline: map[string]*thread{}, spawns: map[string]*spawn{},
		chain: newChain(),
	}
}

// kinds are the kinds of lines: the type, and the subtype of a system line. Readers share them.
var kinds = sync.OnceValue(func() map[string]func(*reader, *thread) {
	table := map[string]func(*reader, *thread){
		"user":                          (*reader).user,
		"assistant":                     (*reader).assistant,
		"attachment":                    (*reader).attachment,
		"cost-state":                    (*reader).costState,
		"system/api_error":              (*reader).apiRetry,
		"system/error":                  (*reader).apiRetry,
		"system/compact_boundary":       (*reader).compacted,
		"system/microcompact_boundary":  (*reader).compacted,
		"system/turn_duration":          (*reader).turnDuration,
		"system/model_fallback":         (*reader).warning,
		"system/api_refusal":            (*reader).warning,
		"system/model_refusal_fallback": (*reader).refusal,
		"system/informational":          (*reader).notice,
		"system/local_command":          (*reader).notice,
		"summary":                       func(*reader, *thread) {},
		"progress":                      func(*reader, *thread) {},
	}
	for _, kind := range skipped {
		table[kind] = nil
	}
	return table
})

// skipped are the kinds of lines that tell nothing of the work, or repeat it.
var skipped = []string{
	"api-request", "api-request-shape", "api-request-blob", "queue-operation", "last-prompt", "mode", "permission-mode", "atis-latch",
	"tools-used", "file-history-snapshot", "custom-title", "ai-title", "tag", "agent-name", "pr-link", "frame-link",
	"worktree-state", "relocated", "bridge-session", "system/stop_hook_summary",
}

// kindOf parses a line and returns its kind, and false for one that is not read.
func (c *reader) kindOf(l *session.Line) (kind string, f func(*reader, *thread), read bool) {
	c.message.Parse("")
	if strings.HasPrefix(l.Text, `{"type":`) { // lines that are not read begin so, and may be long
		c.line.Parse("")
		if f, known := c.kinds[jsonwire.Text(jsonwire.Member(l.Text, "type"))]; known && f == nil {
			return "", nil, false
		}
	}
	c.line.Parse(l.Text)
	kind = c.line.Str("type")
	if kind == "system" {
		kind += "/" + c.line.Str("subtype")
	}
	f, known := c.kinds[kind]
	if !known {
		c.r.Unread(kind, "")
	}
	if kind == "user" || kind == "assistant" {
		c.message.Parse(c.line.Raw("message"))
	}
	return kind, f, f != nil
}

// Line reads a line.
func (c *reader) Line(l *session.Line) {
	kind, f, read := c.kindOf(l)
	t := c.file(l)
	if !read {
		if l.Stamped && (t.own > 0 || t.sub) && c.begins(t, "", jsonwire.Text(jsonwire.Member(l.Text, "sessionId"))) {
			c.r.Another()
		}
		return
	}
	if c.begins(t, kind, c.line.Str("sessionId")) {
		c.r.Another()
		return
	}
	switch kind {
	case "summary":
		t.leaf = strings.Clone(c.line.Str("leafUuid"))
		return
	case "progress":
		c.progress(t, l)
		return
	}
	if v := c.line.Str("version"); v != "" && v != c.r.Version {
		c.r.SetVersion(v)
	}
	if t = c.threadOf(t, l); !t.started && c.hold(t, kind, l) {
		return
	}
	c.read(t, kind, f)
}

// begins reports whether a line begins another session: a copied history stands before the lines of a
// session's own, and the lines of a sub-agent's file are its own. In a stream, which has no name with
// the session, only the first line may be copied.
func (c *reader) begins(t *thread, kind, id string) bool {
	switch by := c.line.Str("requestSessionId"); {
	case t.sub:
		return id != "" && !c.line.Flag("isSidechain") && c.line.Str("agentId") == "" && (kind != "" || id != c.sessionID(t))
	case id == "" || kind == "cost-state" || by != "" && by != id || c.line.Raw("forkedFrom") != "":
		return false
	case t.id == "":
		t.id = strings.Clone(id)
	}
	switch {
	case id == t.id:
		t.own++
		return false
	case t.own == 1 && !t.started && t.first.Facts == nil:
		c.copying(t)
		t.id, t.own = strings.Clone(id), 1
	}
	return t.own > 0 && id != t.id
}

// progress reads a line of a sub-agent that stands in the file of its session, in versions that
// repeat them there, if the sub-agent has no file. Hooks of the kind Stop run when the model has
// nothing to add, also if the file ends before its last words.
func (c *reader) progress(t *thread, l *session.Line) {
	data := c.line.Object("data")
	if data.Str("hookEvent") == "Stop" && t.started && t.state == working && len(t.agent.Calls()) == 0 {
		c.flushParts(t)
		t.set(answered, "", "")
	}
	id, inner := data.Str("agentId"), data.Raw("message")
	if data.Str("type") != "agent_progress" || id == "" || !jsonwire.IsObject(inner) || c.r.Has(id) {
		return
	}
	call := c.line.Str("parentToolUseID")
	copied := *l
	copied.Text = inner
	in := c.agents[id]
	if in == nil {
		in = c.newThread(&copied, id)
		in.sub, in.spawn = true, c.spawns[call]
		c.agents[in.id] = in
	}
	c.r.At(&copied, func() {
		if kind, f, read := c.kindOf(&copied); read && (in.started || !c.hold(in, kind, &copied)) {
			c.read(in, kind, f)
		}
	})
}

// file returns the thread of a file.
func (c *reader) file(l *session.Line) *thread {
	t := c.files[l.File]
	if t == nil {
		t = c.newThread(l, cmp.Or(l.Thread, jsonwire.Text(jsonwire.Member(l.Text, "sessionId"))))
		if t.sub = l.Facts != nil && l.Facts.Thread != l.Facts.Session; t.sub {
			t.about, t.group = session.ParseObject(l.Facts.About), l.Facts.Group
		} else if l.Facts == nil && jsonwire.Member(l.Text, "isSidechain") == "true" {
			t.id = cmp.Or(jsonwire.Text(jsonwire.Member(l.Text, "agentId")), t.id)
			t.sub = true
		}
		c.files[l.File] = t
		c.agents[t.id] = t
	}
	return t
}

func (c *reader) newThread(l *session.Line, id string) *thread {
	t := &thread{id: strings.Clone(id), first: l, about: session.ParseObject("")}
	c.order = append(c.order, t)
	return t
}

// threadOf returns the thread of a line: the file's, or in older versions a sub-agent's, which
// have their lines in the file of the main agent.
func (c *reader) threadOf(t *thread, l *session.Line) *thread {
	if t.sub || !c.line.Flag("isSidechain") {
		return t
	}
	uuid, parent := c.line.Str("uuid"), c.line.Str("parentUuid")
	in := c.inline[parent]
	if agent := c.line.Str("agentId"); agent != "" {
		in = c.agents[agent]
	}
	if in == nil {
		in = c.newThread(l, cmp.Or(c.line.Str("agentId"), uuid))
		in.sub = true
		c.agents[in.id] = in
	}
	c.inline[strings.Clone(uuid)] = in
	return in
}

const maxHeld, maxHeldBytes = 256, 4 << 20

// hold holds back the first lines of a thread until its model is known, and tells a copied
// history, which it leaves out. It returns false for a line that is to be read.
func (c *reader) hold(t *thread, kind string, l *session.Line) bool {
	if c.isCopied(t, kind) {
		c.leaveOut(t)
		return true
	}
	own := kind == "assistant" && c.message.Str("model") != Synthetic
	if own {
		t.model = strings.Clone(c.message.Str("model"))
	}
	c.foresee(t, kind)
	t.held = append(t.held, l)
	t.heldBytes += len(l.Text)
	if !own && len(t.held) < maxHeld && t.heldBytes < maxHeldBytes {
		return true
	}
	c.start(t)
	return true
}

// isCopied reports whether a line belongs to another session, from which a fork has copied it.
func (c *reader) isCopied(t *thread, kind string) bool {
	if t.sub {
		return false
	}
	own := c.line.Str("sessionId")
	if by := c.line.Str("requestSessionId"); by != "" && by != own {
		return true
	}
	return c.line.Raw("forkedFrom") != "" || t.leaf != "" && c.line.Str("uuid") == t.leaf ||
		own != "" && own != t.id && kind != "cost-state"
}

// copying notes that the lines of a thread so far are copied, and leaves them out.
func (c *reader) copying(t *thread) {
	t.copying, c.ledger.foreign = true, true
	t.held, t.heldBytes = nil, 0
	t.prompt, t.command, t.inputs = "", "", ""
}

// leaveOut leaves out a line of a copied history, and those before it. Calls that it holds have
// no return later.
func (c *reader) leaveOut(t *thread) {
	c.copying(t)
	if t.copied == nil {
		t.copied = map[string]bool{}
	}
	for block := range jsonwire.Elements(c.message.Raw("content")) {
		if id := jsonwire.Text(jsonwire.Member(block, "id")); id != "" {
			t.copied[strings.Clone(id)] = true
		}
	}
	c.chain.add(c.line.Str("uuid"), c.line.Str("parentUuid"), "")
	c.line.SkipAll()
}

// foresee takes the prompt of a thread and the inputs of the run from a line that is held.
func (c *reader) foresee(t *thread, kind string) {
	switch kind {
	case "user":
		text := c.message.Raw("content")
		if hasResult(text) {
			return
		}
		if c.isPrompt(textOf(text)) {
			t.prompt = cmp.Or(t.prompt, strings.Clone(jsonwire.Quote(textOf(text))))
		} else if !c.line.Flag("isMeta") {
			t.command = cmp.Or(t.command, strings.Clone(jsonwire.Quote(command(textOf(text)))))
		}
		if t.inputs == "" {
			t.inputs = agentevents.JSON(strings.Clone(string(c.line.Pick("cwd",
				"version", "gitBranch", "permissionMode", "entrypoint"))))
		}
	case "attachment":
		if model := c.line.Object("attachment").Object("identity").Str("modelId"); model != "" && t.model == "" {
			t.model = strings.Clone(model)
		}
	}
}

// start starts the agent of a thread, and before the first one the run. Then it reads the lines
// that were held.
func (c *reader) start(t *thread) {
	if t.started {
		return
	}
	held := t.held
	t.held, t.heldBytes, t.started = nil, 0, true
	if t.sub {
		c.place(t)
	}
	if t.parent != nil {
		c.start(t.parent)
	}
	if t.prompt == "" {
		t.prompt = t.command
	}
	first := t.first
	if len(held) > 0 && t.copying {
		first = held[0]
	}
	c.r.At(first, func() {
		if !c.r.Started() {
			c.r.Begin(c.sessionID(t))
			c.r.Emit(nil, &agentevents.RunStarted{Inputs: t.inputs,
				Agent: agentevents.Some(agentevents.AgentRef{AgentID: c.mainID()})}, 0)
		}
		c.startAgent(t)
	})
	t.held = nil
	for _, l := range held {
		c.r.At(l, func() {
			if kind, f, read := c.kindOf(l); read {
				c.read(t, kind, f)
			}
		})
	}
}

// sessionID is the id of the run.
func (c *reader) sessionID(t *thread) string {
	if f := t.first.Facts; f != nil {
		return f.Session
	}
	if t.own > 0 {
		return t.id
	}
	return cmp.Or(jsonwire.Text(jsonwire.Member(t.first.Text, "sessionId")), t.id, "claude")
}

func (c *reader) mainID() string { return cmp.Or(c.r.Options.AgentID, mainAgent) }

// read makes the events of a line, which was parsed.
func (c *reader) read(t *thread, kind string, f func(*reader, *thread)) {
	uuid := c.line.Str("uuid")
	switch {
	case uuid != "" && c.chain.has(uuid):
		return // the line stands here for the second time
	case !t.sub && kind != "cost-state" && c.isCopied(t, kind):
		c.leaveOut(t)
		return
	}
	if t.boundary != nil && kind != "attachment" && !c.line.Flag("isCompactSummary") {
		c.flushBoundary(t, "")
	}
	if len(t.doubts) > 0 {
		c.settle(t, kind)
	}
	if c.isPart(t, kind) {
		return
	}
	c.do(t, kind, f)
}

// do makes the events of a line.
func (c *reader) do(t *thread, kind string, f func(*reader, *thread)) {
	c.chain.add(c.line.Str("uuid"), cmp.Or(c.line.Str("parentUuid"), c.line.Str("logicalParentUuid")), c.chainKey(t, kind))
	f(c, t)
	if kind != "cost-state" {
		t.latest = c.r.Here()
	}
	c.rest(kind)
}

// rest counts members that nobody asked for.
func (c *reader) rest(kind string) {
	c.line.Unasked(func(name string) {
		if !envelope[name] {
			c.r.Unread(kind, "/"+jsonwire.Token(name))
		}
	})
	c.message.Unasked(func(name string) {
		if !messageMembers[name] {
			c.r.Unread(kind, "/message/"+jsonwire.Token(name))
		}
	})
}

// names returns a set of names.
func names(list string) map[string]bool {
	set := map[string]bool{}
	for name := range strings.FieldsSeq(list) {
		set[name] = true
	}
	return set
}

// envelope are members of lines that are understood and left out.
var envelope = names(`agentId agentName apiBlockIndex attributionAgent attributionSkill attributionPlugin
	attributionMcpServer attributionMcpTool caller cwd effort entrypoint exitCommitted forkedFrom gitBranch
	imagePasteIds inputTokens isMeta isSidechain isVisibleInTranscriptOnly level logicalParentUuid madeBy mcpMeta
	messageCount origin parentUuid perTurnEffort permissionMode promptCacheRequested promptId promptSource
	queuePriority queueSkipAttachments rendered renderedRole requestId requestRef requestSessionId requestedModel
	sandboxed sessionId slug sourceToolAssistantUUID sourceToolUseID teamName thinkingDisplay thinkingDurationMs
	thinkingMetadata timestamp todos toolInputStreamMs turnCompanion turnOrigin turnPosition type userType uuid
	version session_id parent_tool_use_id interruptedMessageId interruptedByShutdown refusedMessageId planContent
	isCompactSummary subtype commandRun contextUsage isSnapshotUpdate`)

var messageMembers = names("id type role container context_management diagnostics stop_sequence stop_details")

// EndFile ends the sub-agent of a file.
func (c *reader) EndFile(l *session.Line) {
	t := c.files[l.File]
	if t == nil {
		return
	}
	c.start(t)
	if t.parent == nil {
		return
	}
	t.over = c.r.Here()
	if s := t.spawn; s == nil || s.told || s.thread != t {
		c.finish(t)
	}
}

// End ends the run.
func (c *reader) End(*session.Line) {
	if len(c.order) == 0 {
		return
	}
	i := max(0, slices.IndexFunc(c.order, func(t *thread) bool { return !t.sub }))
	main := c.order[i]
	for _, t := range slices.Clone(c.order) {
		c.start(t)
	}
	c.endGhosts()
	for _, t := range slices.Backward(c.order) {
		if t != main && t.parent != nil {
			c.finish(t)
		}
	}
	c.finish(main)
	for _, t := range c.order { // sub-agents without the file of their session
		if t.parent == nil {
			c.finish(t)
		}
	}
	c.endRun(main)
}

func (c *reader) endRun(main *thread) {
	switch end := main.last; {
	case end.stopped:
		c.r.Emit(nil, &agentevents.RunCancelled{Reason: end.err.V.Message}, 0)
	case end.cut:
		c.r.Emit(nil, &agentevents.RunFailed{Error: end.err}, agentevents.MarkSynthetic)
	case end.err.OK:
		c.r.Emit(nil, &agentevents.RunFailed{Error: end.err}, 0)
	default:
		c.r.Emit(nil, &agentevents.RunCompleted{}, 0)
	}
}

// finish ends the agent of a thread, or lets it wait for its sub-agents.
func (c *reader) finish(t *thread) {
	if t.finished {
		return
	}
	t.finished = true
	c.closeLine(t)
	c.at(t, func() { c.endTurn(t) })
	c.decide(t)
	c.end(t)
}

// end ends an agent whose lines and sub-agents were read, and then its parent if that waits.
func (c *reader) end(t *thread) {
	if !t.finished || !t.agent.Open ||
		t.sub && slices.ContainsFunc(c.order, func(s *thread) bool { return s.parent == t && s.started && s.agent.Open }) {
		return
	}
	var marks agentevents.Marks
	if t.last.cut {
		marks = agentevents.MarkSynthetic
	}
	end := &agentevents.AgentEnded{
		Outcome: agentevents.OutcomeConverged, Result: t.words, Error: t.last.err, StructuredOutput: t.output,
	}
	if t.last.err.OK {
		end.Outcome, end.Result = agentevents.OutcomeAborted, ""
	}
	if !t.sub {
		c.ledger.close(c, t, end)
	}
	at := c.r.Here()
	if t.over != nil {
		at = t.over
	}
	c.r.At(at, func() { c.r.End(t.agent, end, marks) })
	if t.parent != nil {
		if over := t.parent.over; over != nil && over.At.Before(at.At) {
			t.parent.over = at
		}
		c.end(t.parent)
	}
}

// closeLine records the events that wait for a next line, which does not come.
func (c *reader) closeLine(t *thread) {
	c.flushParts(t)
	c.settle(t, "")
	if t.boundary != nil {
		c.flushBoundary(t, "")
	}
	c.endAnswer(t)
}

// at records events at the last line of a conversation.
func (c *reader) at(t *thread, f func()) {
	if t.latest == nil {
		f()
		return
	}
	c.r.At(t.latest, f)
}
