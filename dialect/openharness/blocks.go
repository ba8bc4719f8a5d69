package openharness

import (
	"slices"
	"strconv"
	"strings"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect/internal/engine"
)

// blocks finds the block that a line belongs to. Text and thinking come as deltas,
// as whole blocks or as both, and no line names its block:
//
//   - Deltas of one kind in a row are one block. Another act of the agent ends it.
//   - A whole block is the block whose deltas make up its text, even if other acts
//     came between. Without such a block it is the one that is still growing.
//   - A whole block without deltas has no id, because nothing refers to it.
type blocks struct {
	runs engine.Recent[string, *runBlocks] // by node run
	n    int                               // number of blocks so far
}

// runBlocks are the blocks of one node run that are not closed yet.
type runBlocks struct {
	open [2]bool // the last block of the list still grows
	list [2][]block
}

// A block is the hash of the deltas of a block.
type block struct {
	id   string
	hash uint64
}

// Kinds of blocks.
const (
	textBlock = iota
	thinkingBlock
)

// maxOpen bounds the open blocks of a node run, because a log of deltas alone closes
// none.
const maxOpen = 16

// line notes the line of an event on a node run. It returns the event's block id, nil
// for other kinds, and the id of the block that the line belongs to, or "".
func (b *blocks) line(p agentevents.Payload, run string) (id *string, block string) {
	switch p := p.(type) {
	case *agentevents.TextDelta:
		return &p.BlockID, b.delta(run, textBlock, p.Delta)
	case *agentevents.TextCompleted:
		return &p.BlockID, b.whole(run, textBlock, p.Text)
	case *agentevents.AgentReasoningDelta:
		return &p.BlockID, b.delta(run, thinkingBlock, p.Delta)
	case *agentevents.AgentReasoned:
		return &p.BlockID, b.whole(run, thinkingBlock, p.Reasoning)
	case *agentevents.AgentStarted, *agentevents.ToolReturned, *agentevents.AgentErrored:
		b.act(run)
	case *agentevents.AgentEnded, *agentevents.NodeCompleted, *agentevents.NodeFailed:
		b.runs.Delete(run)
	case *agentevents.RunStarted, *agentevents.RunCompleted, *agentevents.RunFailed, *agentevents.RunCancelled:
		b.runs = engine.Recent[string, *runBlocks]{} // the flow's open nodes never end
	}
	return nil, ""
}

// delta returns the id of a delta's block, and adds the delta to the block.
func (b *blocks) delta(run string, kind int, text string) string {
	r := b.runs.Of(run)
	if r == nil {
		r = new(runBlocks)
		b.runs.Set(strings.Clone(run), r) // the clone does not keep the line alive
	}
	if !r.open[kind] {
		list := r.list[kind]
		if len(list) == maxOpen {
			list = slices.Delete(list, 0, 1)
		}
		b.n++
		r.list[kind] = append(list, block{id: "block-" + strconv.Itoa(b.n), hash: hashStart})
		r.open[kind] = true
	}
	r.open[1-kind] = false
	list := r.list[kind]
	last := &list[len(list)-1]
	last.hash = hash(last.hash, text)
	return last.id
}

// whole returns the id of a whole block, and closes the block.
func (b *blocks) whole(run string, kind int, text string) string {
	r := b.runs.Of(run)
	if r == nil {
		return ""
	}
	list, all := r.list[kind], hash(hashStart, text)
	found := slices.IndexFunc(list, func(b block) bool { return b.hash == all })
	if found < 0 && r.open[kind] {
		found = len(list) - 1
	}
	if found < 0 {
		return ""
	}
	id := list[found].id
	if found == len(list)-1 {
		r.open[kind] = false
	}
	// Blocks close in order, so those before this one never do.
	r.list[kind] = slices.Delete(list, 0, found+1)
	return id
}

// act notes another act of the agent, which ends its growing blocks.
func (b *blocks) act(run string) {
	if r := b.runs.Of(run); r != nil {
		r.open = [2]bool{}
	}
}

// hash continues the hash h with text: FNV-1a.
func hash(h uint64, text string) uint64 {
	for i := range len(text) {
		h = (h ^ uint64(text[i])) * 1099511628211
	}
	return h
}

const hashStart = 14695981039346656037
