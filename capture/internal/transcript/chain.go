package transcript

import (
	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/internal/jsonwire"
)

// A chain is the tree of the lines of a session. A line is known by a hash of its uuid.
type chain struct {
	nodes   map[uint64]node
	marks   int32 // number of answers and prompts of the main agent
	mark    string
	sayings []saying
}

// A node is a line.
type node struct {
	parent uint64
	mark   int32 // number of its answer or prompt; 0 for other lines
}

// A saying is the event of a message of the main conversation.
type saying struct {
	line  uint64
	mark  int32
	event string
}

func newChain() chain { return chain{nodes: map[uint64]node{}} }

func (c *chain) has(uuid string) bool {
	_, ok := c.nodes[jsonwire.Hash(uuid)]
	return ok
}

// add adds a line. mark names the answer or the prompt that it is a part of, or is empty.
func (c *chain) add(uuid, parent, mark string) {
	if uuid == "" {
		return
	}
	n := node{}
	if parent != "" {
		n.parent = jsonwire.Hash(parent)
	}
	if mark != "" {
		if mark != c.mark {
			c.marks++
			c.mark = mark
		}
		n.mark = c.marks
	}
	c.nodes[jsonwire.Hash(uuid)] = n
}

// said notes the event of a message of a line.
func (c *chain) said(uuid, event string) {
	c.sayings = append(c.sayings, saying{jsonwire.Hash(uuid), c.marks, event})
}

// events returns the events of the messages of a line.
func (c *chain) events(uuid string) (ids []string) {
	for _, s := range c.sayings {
		if s.line == jsonwire.Hash(uuid) {
			ids = append(ids, s.event)
		}
	}
	return ids
}

// maxWalk bounds the way from a prompt to the answer before it.
const maxWalk = 10000

// left returns the events of the messages that a prompt with a parent leaves out, because it
// goes on from an earlier line.
func (c *chain) left(parent string) (ids []string) {
	from := int32(0)
	if parent != "" {
		at := jsonwire.Hash(parent)
		for range maxWalk {
			n, ok := c.nodes[at]
			if !ok {
				return nil
			}
			if from = n.mark; from != 0 {
				break
			}
			at = n.parent
		}
		if from == 0 {
			return nil
		}
	}
	keep := c.sayings[:0]
	for _, s := range c.sayings {
		if s.mark > from {
			ids = append(ids, s.event)
		} else {
			keep = append(keep, s)
		}
	}
	c.sayings = keep
	return ids
}

// chainKey names the answer or the prompt that a line of the main agent is a part of.
func (c *reader) chainKey(t *thread, kind string) string {
	switch {
	case t.sub:
	case kind == "assistant" && c.message.Str("model") != Synthetic:
		return c.message.Str("id")
	case kind == "user" && c.isRequest():
		return c.line.Str("uuid")
	}
	return ""
}

// rewind records that a prompt takes the conversation back to an earlier line.
func (c *reader) rewind(t *thread) {
	if ids := c.chain.left(c.line.Str("parentUuid")); len(ids) > 0 {
		c.endTurn(t)
		c.r.Emit(t.agent, &agentevents.EventRetracted{EventIDs: ids,
			Reason: "the conversation goes on from an earlier message"}, 0)
	}
}
