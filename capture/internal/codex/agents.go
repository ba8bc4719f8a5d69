package codex

import (
	"cmp"
	"path"
	"strings"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/capture/internal/session"
	"github.com/agentevents/agentevents/internal/jsonwire"
)

// collab reads an item about sub-agents: the id of a thread that was spawned, and how those that
// the agent waited for are.
func (c *rollout) collab(t *thread, i *session.Object) {
	if i.Str("tool") == "spawn_agent" {
		s := spawn{by: t, call: strings.Clone(i.Str("id")), prompt: strings.Clone(i.Raw("prompt"))}
		for agent := range jsonwire.Elements(i.Raw("receiver_agents")) {
			o := session.ParseObject(agent)
			s.name = strings.Clone(o.Str("agent_nickname"))
			c.spawn(o.Str("thread_id"), s)
		}
		s.name = ""
		for id := range jsonwire.Elements(i.Raw("receiver_thread_ids")) {
			c.spawn(jsonwire.Text(id), s)
		}
	}
	for id, state := range jsonwire.Members(i.Raw("agents_states")) {
		c.ghostState(id, state)
	}
	i.SkipAll()
}

// activity reads an item about a sub-agent of a team: it has the id of the call that spawned it.
func (c *rollout) activity(t *thread, i *session.Object) {
	id := i.Str("agent_thread_id")
	switch i.Str("kind") {
	case "started":
		s := spawn{by: t, call: strings.Clone(i.Str("id")), name: strings.Clone(path.Base(i.Str("agent_path")))}
		if open := t.agent.OpenCall(s.call); open != nil {
			s.prompt = spawnCall(open).prompt
		}
		c.spawn(id, s)
	default:
		c.ghostState(id, i.Raw("kind"))
	}
	i.SkipAll()
}

func (c *rollout) activityEvent(t *thread) {
	c.p.Skip("type", "event_id", "occurred_at_ms")
	i := session.ParseObject(c.p.Text)
	c.p.SkipAll()
	switch id := i.Str("agent_thread_id"); i.Str("kind") {
	case "started":
		s := spawn{by: t, call: strings.Clone(i.Str("event_id")), name: strings.Clone(path.Base(i.Str("agent_path")))}
		if open := t.agent.OpenCall(s.call); open != nil {
			s.prompt = spawnCall(open).prompt
		}
		c.spawn(id, s)
	default:
		c.ghostState(id, i.Raw("kind"))
	}
}

// spawnEnd and waitEnd read events of older versions.
func (c *rollout) spawnEnd(t *thread) {
	c.spawn(c.p.Str("new_thread_id"), spawn{
		by: t, call: strings.Clone(c.p.Str("call_id")),
		name: strings.Clone(c.p.Str("new_agent_nickname")), prompt: strings.Clone(c.p.Raw("prompt")),
	})
	c.p.SkipAll()
}

func (c *rollout) waitEnd(*thread) {
	for id, state := range jsonwire.Members(c.p.Raw("statuses")) {
		c.ghostState(id, state)
	}
	c.p.SkipAll()
}

// spawnedBy reads the return of a call that spawned a sub-agent.
func (c *rollout) spawnedBy(t *thread, call, text string) {
	open := t.agent.OpenCall(call)
	if open == nil || open.Tool != "spawn_agent" || !jsonwire.IsObject(text) || jsonwire.Valid(text) != nil {
		return
	}
	o := session.ParseObject(text)
	s := spawnCall(open)
	s.by, s.name = t, strings.Clone(o.Str("nickname"))
	c.spawn(o.Str("agent_id"), *s)
}

// spawnCall returns the facts that an open call tells of the sub-agent that it spawns.
func spawnCall(open *session.Call) *spawn {
	s := &spawn{call: open.ID}
	if jsonwire.Valid(open.Arguments) == nil {
		s.prompt = strings.Clone(session.ParseObject(open.Arguments).Raw("message"))
	}
	return s
}

// spawn notes that a thread has spawned another one. If the file of that one is missing, an
// agent stands for it that has the facts of its parent.
func (c *rollout) spawn(id string, s spawn) {
	if id == "" || c.spawned[id] != nil {
		return
	}
	id = strings.Clone(id)
	c.spawned[id] = &s
	if c.r.Has(id) {
		return
	}
	c.r.Note("the file of the sub-agent %s is not here (rollout-*-%s.jsonl): "+
		"its calls and tokens are missing; put it beside the session's file", cmp.Or(s.name, id), id)
	s.ghost = c.r.NewAgent(c.mainID(), s.by.agent, s.name, id)
	c.spawned[id] = &s
	c.r.Start(s.ghost, s.call, &agentevents.AgentStarted{
		Name: s.name, ProviderSessionID: id, Prompt: agentevents.JSON(s.prompt), Task: jsonwire.Text(s.prompt),
	})
	c.r.Unseen(s.ghost)
}

// ghostState ends a sub-agent whose file is missing, by the state that its parent was told: a word,
// or {"completed": "its last words"}.
func (c *rollout) ghostState(id, state string) {
	s := c.spawned[id]
	if s == nil || s.ghost == nil {
		return
	}
	word, words := jsonwire.Text(state), ""
	for name, text := range jsonwire.Members(state) {
		word, words = name, jsonwire.Text(text)
	}
	if end := subEnd(word, words); end != nil {
		c.r.End(s.ghost, end, 0)
	}
}
