package dialect

import (
	"cmp"
	"maps"
	"slices"

	"github.com/agentevents/agentevents"
)

// Calls remembers tool calls until they return, for documents that write a call
// and its return as one line. It holds at most [MaxCalls]. The zero Calls is
// empty.
type Calls struct {
	recent []*openCall // the latest calls, in order; mostly there are no others
	older  map[callKey]*openCall
	free   []*openCall
}

// A callKey names a call. Call ids are unique to an agent.
type callKey struct{ run, agent, call string }

type openCall struct {
	key callKey
	ev  agentevents.Event
}

// MaxCalls is the highest number of open calls.
const MaxCalls = 1 << 14

// maxRecent is the number of calls that find compares one by one.
const maxRecent = 16

// Put adds ev as an open call of the agent. It returns the open call with the
// same id that ev replaces, or nil. That event is valid until the next Put. Put
// adds nothing and reports false when [MaxCalls] calls are open.
func (c *Calls) Put(ev *agentevents.Event, agent, call string) (old *agentevents.Event, ok bool) {
	key := callKey{ev.RunID, agent, call}
	o := c.remove(key)
	if o != nil {
		before := o.ev
		old = &before
	} else if len(c.recent)+len(c.older) >= MaxCalls {
		return nil, false
	} else if n := len(c.free); n > 0 {
		o, c.free = c.free[n-1], c.free[:n-1]
	} else {
		o = new(openCall)
	}
	if len(c.recent) == maxRecent {
		if c.older == nil {
			c.older = map[callKey]*openCall{}
		}
		c.older[c.recent[0].key] = c.recent[0]
		c.recent = slices.Delete(c.recent, 0, 1)
	}
	o.key, o.ev = key, *ev
	c.recent = append(c.recent, o)
	return old, true
}

// Get returns an open call, or nil.
func (c *Calls) Get(run, agent, call string) *agentevents.Event {
	key := callKey{run, agent, call}
	if i := c.find(key); i >= 0 {
		return &c.recent[i].ev
	}
	if o := c.older[key]; o != nil {
		return &o.ev
	}
	return nil
}

// Remove forgets a call. An event that Get returned stays valid until the next
// Put.
func (c *Calls) Remove(run, agent, call string) {
	if o := c.remove(callKey{run, agent, call}); o != nil && len(c.free) < maxRecent {
		c.free = append(c.free, o)
	}
}

// Clear forgets all calls and returns them, ordered by run and sequence.
func (c *Calls) Clear() []*agentevents.Event {
	var open []*agentevents.Event
	for _, o := range append(c.recent, slices.Collect(maps.Values(c.older))...) {
		open = append(open, &o.ev)
	}
	slices.SortFunc(open, func(a, b *agentevents.Event) int {
		return cmp.Or(cmp.Compare(a.RunID, b.RunID), cmp.Compare(a.Sequence, b.Sequence))
	})
	*c = Calls{}
	return open
}

// find returns the index of a recent call, or -1.
func (c *Calls) find(key callKey) int {
	for i := len(c.recent) - 1; i >= 0; i-- {
		if k := &c.recent[i].key; k.call == key.call && k.agent == key.agent && k.run == key.run {
			return i
		}
	}
	return -1
}

func (c *Calls) remove(key callKey) *openCall {
	if i := c.find(key); i >= 0 {
		o := c.recent[i]
		c.recent = slices.Delete(c.recent, i, i+1)
		return o
	}
	o := c.older[key]
	if o != nil {
		delete(c.older, key)
	}
	return o
}
