package transcript

import (
	"cmp"
	"slices"
	"strings"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/capture/internal/session"
	"github.com/agentevents/agentevents/internal/jsonwire"
)

// flowTool is the tool that begins a workflow, the agents of which have no calls of their own.
const flowTool = "Workflow"

// place finds the call that spawned a sub-agent, and its parent: by its description on disk, by
// the result of the call, or for older versions by the prompt.
func (c *reader) place(t *thread) {
	if t.parent != nil {
		return
	}
	if s := c.spawns[t.about.Str("toolUseId")]; s != nil {
		t.spawn = s
	}
	if t.spawn == nil {
		i := slices.IndexFunc(c.spawned, func(s *spawn) bool {
			return s.id == t.id || s.thread == nil && s.prompt != "" && jsonwire.Text(s.prompt) == jsonwire.Text(t.prompt)
		})
		if t.group != "" {
			i = c.flow(t.group)
		}
		if i >= 0 {
			t.spawn = c.spawned[i]
		}
	}
	if t.spawn != nil {
		t.parent = t.spawn.by
		if t.group == "" {
			t.spawn.thread, t.spawn.id = t, t.id
		}
	}
	if id := t.about.Str("parentAgentId"); id != "" && t.parent == nil {
		if i := slices.IndexFunc(c.spawned, func(s *spawn) bool { return s.id == id }); i >= 0 && c.agents[id] == nil {
			c.startGhost(c.spawned[i])
		}
		t.parent = c.agents[id]
	}
	if t.parent == nil {
		if i := slices.IndexFunc(c.order, func(s *thread) bool { return !s.sub }); i >= 0 {
			t.parent = c.order[i]
		}
	}
	for p := t.parent; p != nil; p = p.parent {
		if p == t {
			t.parent = nil // the descriptions form a ring
			break
		}
	}
}

// flow returns the index of the call that began a workflow, or -1.
func (c *reader) flow(id string) int {
	for i, s := range slices.Backward(c.spawned) {
		if s.call.Tool == flowTool && (s.id == "" || s.id == id) {
			s.id = id
			return i
		}
	}
	return -1
}

// startAgent records the start of the agent of a thread.
func (c *reader) startAgent(t *thread) {
	p := &agentevents.AgentStarted{Model: t.model, ProviderSessionID: t.id, Prompt: agentevents.JSON(t.prompt)}
	if t.parent == nil {
		t.agent = c.r.NewAgent(c.mainID(), nil, "", t.id)
		if p.ProviderSessionID = c.sessionID(t); t.sub {
			p.Name = t.about.Str("agentType")
		}
		c.r.Start(t.agent, "", p)
		return
	}
	s := t.spawn
	if s == nil {
		s = &spawn{}
	}
	call := ""
	if s.call != nil {
		call = s.call.ID
	}
	kind := t.about.Str("agentType")
	if t.group == "" {
		kind = cmp.Or(kind, s.kind)
	}
	p.Name = kind
	p.Task = cmp.Or(t.about.Str("description"), s.task)
	if t.group != "" {
		p.Task = t.about.Str("description")
	}
	p.Task = cmp.Or(p.Task, jsonwire.Text(t.prompt))
	p.Model = cmp.Or(p.Model, s.model)
	if t.prompt == "" {
		p.Prompt = agentevents.JSON(s.prompt)
	}
	t.agent = c.r.NewAgent(c.mainID(), t.parent.agent, kind, t.id)
	c.r.Start(t.agent, call, p)
}

// spawnReturned reads the return of a call that spawned a sub-agent. One in the background goes
// on.
func (c *reader) spawnReturned(p *agentevents.ToolReturned, output *session.Object, text string) {
	s := c.spawns[p.CallID]
	if s == nil {
		return
	}
	if id := output.Str("agentId"); id != "" && s.call.Tool != flowTool {
		s.id = strings.Clone(id)
	}
	status := output.Str("status")
	if status == "async_launched" || output.Flag("isAsync") {
		return
	}
	err := StatusError(status)
	if p.Error.OK {
		err = p.Error
	}
	c.hear(s, text, err)
}

// hear notes how a sub-agent ended as the return of its call or a notice tells. It ends now,
// unless its file has more lines.
func (c *reader) hear(s *spawn, text string, err agentevents.Opt[agentevents.ErrorInfo]) {
	s.told, s.words, s.err = true, strings.Clone(text), err
	switch t := s.thread; {
	case t == nil || t.ghost:
		if g := c.startGhost(s); g != nil {
			g.latest, g.words = c.r.Here(), s.words
			c.finish(g)
		}
	case t.over != nil || c.files[s.line.File] == s.by && t.first.File == s.line.File:
		c.finish(t)
	}
}

// decide decides how a sub-agent ended. The parent knows more than a file that breaks off, and an
// error that the file itself has is the more exact one.
func (c *reader) decide(t *thread) {
	s := t.spawn
	if s == nil || !s.told || t.group != "" || t.last.err.OK && !t.last.cut {
		return
	}
	if t.last.cut && !s.err.OK {
		t.words = cmp.Or(s.words, t.words)
		c.r.Unseen(t.agent)
	}
	t.last = turn{err: s.err}
}

// startGhost starts a sub-agent that has no file, at the call that spawned it. It returns nil for
// one that has a file, or has ended.
func (c *reader) startGhost(s *spawn) *thread {
	if s.id == "" {
		return nil
	}
	if t := c.agents[s.id]; t != nil {
		if t.ghost && !t.finished {
			return t
		}
		return nil
	}
	c.ghosts = append(c.ghosts, s.id)
	g := c.newThread(s.line, s.id)
	g.ghost, g.sub, g.spawn, g.parent, g.prompt = true, true, s, s.by, s.prompt
	c.agents[s.id], s.thread = g, g
	line, message := c.line, c.message
	c.line, c.message = session.Object{}, session.Object{}
	c.start(g)
	c.r.Unseen(g.agent)
	c.line, c.message = line, message
	return g
}

// notified reads the notice of the end of a sub-agent in the background.
func (c *reader) notified(_ *thread, text string) {
	if !strings.HasPrefix(text, "<task-notification>") {
		return
	}
	id := tag(text, "task-id")
	for _, s := range c.spawned {
		if s.id == id && id != "" && s.call.Tool != flowTool {
			c.hear(s, tag(text, "result"), StatusError(tag(text, "status")))
			return
		}
	}
}

// tag returns the text of an element.
func tag(text, name string) string {
	_, rest, _ := strings.Cut(text, "<"+name+">")
	inner, _, ok := strings.Cut(rest, "</"+name+">")
	if !ok {
		return ""
	}
	return inner
}

// command returns the text of a local command as the user has typed it.
func command(text string) string {
	if name := tag(text, "command-name"); name != "" {
		return strings.TrimSpace(name + " " + tag(text, "command-args"))
	}
	return text
}

// endGhosts ends the sub-agents that have neither a file nor an end, and tells of all without a
// file.
func (c *reader) endGhosts() {
	for _, s := range slices.Clone(c.spawned) {
		if s.call.Tool == flowTool {
			continue
		}
		if g := c.startGhost(s); g != nil {
			g.latest = c.r.Here()
			g.last = turn{cut: true, err: agentevents.Some(agentevents.ErrorInfo{
				Code: "interrupted", Message: "the files do not have the end of the sub-agent",
			})}
			c.finish(g)
		}
	}
	if n := len(c.ghosts); n > 0 {
		c.r.Note("files of sub-agents are missing (%s): their calls and tokens are not counted; "+
			"put the folder SESSION/subagents beside the file of the session",
			strings.Join(c.ghosts[:min(n, 3)], ", "))
	}
}
