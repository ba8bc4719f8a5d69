package agentevents

import "slices"

// Cuts are the blocks of which a delta was dropped, by run. They take no more deltas,
// until they end.
type cuts struct {
	runs  map[string]*runCuts
	rules machine // without a run: it knows which events end a block
}

// runCuts has the cut blocks of a run.
type runCuts struct {
	blocks []blockName
	all    bool // there were too many: the run gets no deltas
}

// A blockName is a block in its run.
type blockName struct{ agent, subject, id string }

// maxCuts bounds the blocks of a run that are cut at the same time.
const maxCuts = 1024

// cut reports whether an event is a delta that is to be dropped: its block is cut, or full means
// that there is no room for the delta, which cuts the block. cut is called for each event of a run,
// in order, because it may end blocks.
func (c *cuts) cut(ev *Event, full bool) bool {
	droppable := ev.droppable()
	run := c.runs[ev.RunID]
	if run == nil && !(full && droppable) {
		return false
	}
	var sub subject
	p := ops(ev.Payload)
	if p == nil {
		return false
	}
	c.rules.resolve(&sub, ev, p)
	agent := sub.key
	if agent == "" {
		agent = ev.ParentSpanID // perhaps an agent's: no agents are known here
	}
	c.end(run, ev, &sub, agent)
	if !droppable {
		return false
	}
	piece := pieceOf(ev, &sub)
	name := blockName{agent, piece.subject, piece.id}
	if run.has(name) {
		return true
	}
	if full {
		c.add(ev.RunID, name)
	}
	return full
}

// end removes the blocks that an event ends.
func (c *cuts) end(run *runCuts, ev *Event, sub *subject, agent string) {
	if run == nil || sub.kind.traits&endsBlocks == 0 {
		return
	}
	if sub.kind.Subject == "run" {
		c.release(ev.RunID)
		return
	}
	run.blocks = slices.DeleteFunc(run.blocks, func(b blockName) bool {
		return b.agent == agent && c.rules.endsBlock(ev, sub, b.subject, b.id)
	})
	if len(run.blocks) == 0 && !run.all {
		c.release(ev.RunID)
	}
}

// add cuts a block that is not cut.
func (c *cuts) add(id string, name blockName) {
	run := c.runs[id]
	if run == nil {
		run = &runCuts{}
		put(&c.runs, id, run)
	}
	if len(run.blocks) == maxCuts {
		*run = runCuts{all: true}
	}
	if !run.all {
		run.blocks = append(run.blocks, name)
	}
}

// addAll cuts the blocks of another one as well.
func (c *cuts) addAll(other *cuts) {
	for id, run := range other.runs {
		if run.all {
			put(&c.runs, id, run)
			continue
		}
		for _, name := range run.blocks {
			if !c.runs[id].has(name) {
				c.add(id, name)
			}
		}
	}
}

// has reports whether a block is cut.
func (r *runCuts) has(name blockName) bool {
	return r != nil && (r.all || slices.Contains(r.blocks, name))
}

// release forgets a run.
func (c *cuts) release(run string) { delete(c.runs, run) }
