package tree

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/agentevents/agentevents/internal/view"
)

// join makes one line of successive calls of one tool that succeeded and have nothing below them:
// two or more with the same text, or four or more with different texts.
func join(nodes []*node) []*node {
	var out []*node
	for i := 0; i < len(nodes); {
		first := nodes[i]
		n, alike := 1, true
		for i+n < len(nodes) && first.tool != "" && nodes[i+n].tool == first.tool && len(nodes[i+n].children) == 0 {
			alike = alike && nodes[i+n].line.detail == first.line.detail
			n++
		}
		if len(first.children) > 0 || n < 2 || !alike && n < 4 {
			out = append(out, nodes[i])
			i++
			continue
		}
		out = append(out, joined(nodes[i:i+n]))
		i += n
	}
	return out
}

func times(n int) string { return " ×" + strconv.Itoa(n) }

// joined returns the line of several calls of one tool.
func joined(calls []*node) *node {
	l := calls[0].line
	l.head += times(len(calls))
	l.facts = nil
	var took time.Duration
	var notes []string
	for _, c := range calls {
		took += c.took
		if d := c.line.detail; d != "" && !slices.Contains(notes, d) {
			notes = append(notes, d)
		}
	}
	l.fact(view.Duration(took))
	l.detail = strings.Join(notes, ", ")
	return &node{line: l, seq: calls[0].seq}
}
