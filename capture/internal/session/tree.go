package session

import "strings"

// A Tree has the lines of a session that name the line that they follow. The zero Tree is empty.
type Tree struct {
	nodes map[string]*node
	last  *node
}

type node struct {
	parent *node
	said   []string // ids of the events of its messages
}

// Add adds a line, and reports whether it is new. If it follows an earlier line than the last one,
// it branches, and left are the events of the messages between. A parent that is not known is the
// last line.
func (t *Tree) Add(id, parent string) (left []string, branches, isNew bool) {
	if t.nodes[id] != nil {
		return nil, false, false
	}
	if t.nodes == nil {
		t.nodes = map[string]*node{}
	}
	from := t.nodes[parent]
	if from == nil && parent != "" {
		from = t.last
	}
	if branches = from != t.last; branches {
		left = t.leave(from)
	}
	t.last = &node{parent: from}
	if id != "" {
		t.nodes[strings.Clone(id)] = t.last
	}
	return left, branches, true
}

// leave returns the events of the lines before the last one that are not before another one.
func (t *Tree) leave(to *node) (left []string) {
	kept := map[*node]bool{nil: true}
	for n := to; n != nil; n = n.parent {
		kept[n] = true
	}
	for n := t.last; !kept[n]; n = n.parent {
		left = append(n.said, left...)
		n.said = nil
	}
	return left
}

// Said notes the events of messages of the last line.
func (t *Tree) Said(events []string) {
	if t.last != nil {
		t.last.said = append(t.last.said, events...)
	}
}
