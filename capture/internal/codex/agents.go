package codex

import (
	"strings"

	"github.com/agentevents/agentevents/capture/internal/session"
	"github.com/agentevents/agentevents/internal/jsonwire"
)

// collab reads an item about sub-agents: the id of a thread that was spawned, and how those that
// the agent waited for are.
func (c *rollout) collab(t *thread, i *session.Object) {
	call, prompt := i.Str("id"), i.Str("prompt")
	if i.Str("tool") == "spawn_agent" {
		for agent := range jsonwire.Elements(i.Raw("receiver_agents")) {
			o := session.ParseObject(agent)
			c.spawn(t, o.Str("thread_id"), call, o.Str("agent_nickname"), prompt)
		}
		for id := range jsonwire.Elements(i.Raw("receiver_thread_ids")) {
			c.spawn(t, jsonwire.Text(id), call, "", prompt)
		}
	}
	i.SkipAll()
}

// spawnedBy reads the return of a call that spawned a sub-agent.
func (c *rollout) spawnedBy(t *thread, call, text string) {
	open := t.agent.OpenCall(call)
	if open == nil || open.Tool != "spawn_agent" || !jsonwire.IsObject(text) || jsonwire.Valid(text) != nil {
		return
	}
	o := session.ParseObject(text)
	c.spawn(t, o.Str("agent_id"), call, o.Str("nickname"), session.ParseObject(open.Arguments).Str("message"))
}

// spawn notes that a thread has spawned another one.
func (c *rollout) spawn(t *thread, id, call, name, prompt string) {
	if id == "" || c.spawned[id] != nil {
		return
	}
	c.spawned[strings.Clone(id)] = &spawn{by: t, call: strings.Clone(call), name: strings.Clone(name), prompt: strings.Clone(prompt)}
}

func (c *rollout) endGhosts() {}
