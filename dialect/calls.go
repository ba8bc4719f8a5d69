package dialect

import (
	"cmp"
	"maps"
	"slices"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect/internal/recent"
)

// Calls remembers tool calls until they return, for documents that write a call
// and its return as one line. It holds at most [MaxCalls]. The zero Calls is
// empty.
type Calls struct {
	open map[callKey]*agentevents.Event
	free []*agentevents.Event // of calls that returned
}

// A callKey names a call. Call ids are unique to an agent.
type callKey struct{ run, agent, call string }

// MaxCalls is the highest number of open calls.
const MaxCalls = recent.Max

const maxFree = 16

// Put adds ev as an open call of the agent. It returns the open call with the
// same id that ev replaces, or nil. Put adds nothing and reports false when
// [MaxCalls] calls are open.
func (c *Calls) Put(ev *agentevents.Event, agent, call string) (old *agentevents.Event, ok bool) {
	if c.open == nil {
		c.open = map[callKey]*agentevents.Event{}
	}
	key := callKey{ev.RunID, agent, call}
	if old = c.open[key]; old == nil && len(c.open) >= MaxCalls {
		return nil, false
	}
	if len(c.free) == 0 {
		c.free = append(c.free, new(agentevents.Event))
	}
	last := len(c.free) - 1
	kept := c.free[last]
	*kept, c.free = *ev, c.free[:last]
	delete(c.open, key) // its texts would stay in memory
	c.open[key] = kept
	return old, true
}

// Get returns an open call, or nil.
func (c *Calls) Get(run, agent, call string) *agentevents.Event {
	return c.open[callKey{run, agent, call}]
}

// Joined returns the open call that ev, a [agentevents.ToolReturned], closes: the call with its call
// id of the same agent or, if ev has no agent, of the same execution of a node. It returns nil if no
// call has this id, if ev has OneEvent set, and for events of other kinds.
func (c *Calls) Joined(ev *agentevents.Event) *agentevents.Event {
	p, ok := ev.Payload.(*agentevents.ToolReturned)
	if !ok || p.OneEvent {
		return nil
	}
	return c.Get(ev.RunID, cmp.Or(ev.AgentID, ev.NodeRunID), p.CallID)
}

// Remove forgets a call. An event that Get returned stays valid until the next
// Put.
func (c *Calls) Remove(run, agent, call string) {
	key := callKey{run, agent, call}
	if ev := c.open[key]; ev != nil && len(c.free) < maxFree {
		c.free = append(c.free, ev)
	}
	delete(c.open, key)
}

// Clear forgets all calls and returns them, ordered by run and sequence.
func (c *Calls) Clear() []*agentevents.Event {
	open := slices.SortedFunc(maps.Values(c.open), func(a, b *agentevents.Event) int {
		return cmp.Or(cmp.Compare(a.RunID, b.RunID), cmp.Compare(a.Sequence, b.Sequence))
	})
	*c = Calls{}
	return open
}
