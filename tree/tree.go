package tree

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/internal/view"
	"github.com/agentevents/agentevents/report"
)

// Options configure [Write]. The zero Options are usable.
type Options struct {
	// Color marks outcomes with ANSI colours.
	Color bool
	// Width is how many characters a line may have. Details that do not fit, such
	// as error messages, are cut, but not below 24 characters, and on the line of a failure
	// not below half a line. 0 means 100, negative cuts nothing.
	Width int
	// Ended means that nothing will be added to the log. A run that is not over, and the agents at
	// work in it, are then shown as interrupted.
	Ended bool
	// Details are the details of the run's events: effects of calls, prompts, answers, decisions,
	// reasons, errors, commands of people, items of the blackboard, events of unknown kinds, times
	// of the day, and the working time of agents beside their duration. Nil shows none.
	Details *report.Details
}

const (
	defaultWidth = 100
	minDetail    = 24 // characters that a detail gets on any line
	maxDepth     = 24 // levels that are drawn; deeper nodes are drawn on the last one
)

// Write draws the run of s to w, every line ended by a newline. It returns the
// error of w, or an error when s is nil.
func Write(w io.Writer, s *agentevents.RunSnapshot, o Options) error {
	if s == nil {
		return errors.New("tree: no snapshot")
	}
	if o.Width == 0 {
		o.Width = defaultWidth
	}
	b := builder{s: s, o: o, details: o.Details, items: report.Of(s, o.Details), taken: view.Retracted(s)}
	p := printer{w: w, o: o}
	root := b.run()
	p.line("", &root.line)
	p.children("", root)
	total := b.totals()
	p.line("", &total)
	return p.flush()
}

// A node is a line with the nodes below it.
type node struct {
	line     line
	seq      uint64 // its place among its siblings
	children []*node

	tool string        // of a call that went well and that no other line refers to
	took time.Duration // of such a call

	// For a turn or a step, which has the actions of its agent below it until it ends:
	level level
	until uint64 // sequence of its end
}

// A level decides which nodes a node may have below it: a turn has steps and everything else, a
// step everything else.
type level uint8

const (
	other level = iota
	step
	turn
)

func (n *node) add(child *node) { n.children = append(n.children, child) }

const (
	none = view.None
	good = view.Good
	bad  = view.Bad
	warn = view.Warn
)

var marks = [...]struct{ text, color string }{
	good: {"✓", "\x1b[32m"},
	bad:  {"✗", "\x1b[31m"},
	warn: {"!", "\x1b[33m"},
}

const (
	boldOn   = "\x1b[1m"
	colorOff = "\x1b[0m"
)

// A line is: head mark word · fact · fact: detail. Its texts come from the log; the printer escapes
// them.
type line struct {
	head   string
	bold   bool
	mark   view.Mark
	word   string
	facts  []string
	detail string
}

// fact adds a fact unless it is empty.
func (l *line) fact(text string) {
	if text != "" {
		l.facts = append(l.facts, text)
	}
}

// A printer collects lines and writes them in large pieces. Once a write has
// failed it writes no more.
type printer struct {
	w   io.Writer
	o   Options
	buf []byte
	err error
}

const pieceSize = 4 << 10

func (p *printer) flush() error {
	if p.err == nil {
		_, p.err = p.w.Write(p.buf)
	}
	p.buf = p.buf[:0]
	return p.err
}

// children draws the nodes below n.
func (p *printer) children(prefix string, n *node) {
	for i, child := range n.children {
		branch, below := "├─ ", "│  "
		if i == len(n.children)-1 {
			branch, below = "└─ ", "   "
		}
		p.line(prefix+branch, &child.line)
		p.children(prefix+below, child)
	}
}

func (p *printer) line(prefix string, l *line) {
	size := 0 // in characters, without colours
	put := func(text, color string) {
		size += utf8.RuneCountInString(text)
		if p.o.Color && color != "" {
			text = color + text + colorOff
		}
		p.buf = append(p.buf, text...)
	}
	put(prefix, "")
	style := ""
	if l.bold {
		style = boldOn
	}
	put(view.Visible(l.head, p.o.Width), style)
	outcome := marks[l.mark].text
	if word := view.Visible(l.word, p.o.Width); word != "" {
		outcome = strings.TrimPrefix(outcome+" "+word, " ")
	}
	if outcome != "" {
		put(" ", "")
		put(outcome, marks[l.mark].color)
	}
	for i, fact := range l.facts {
		switch {
		case i == 0 && l.head == "":
		case i == 0 && l.word == "" && (outcome != "" || !l.bold): // a bold head may be a name
			put(" ", "")
		default:
			put(" · ", "")
		}
		put(view.Visible(fact, p.o.Width), "")
	}
	if l.detail != "" {
		put(": ", "")
		room := -1
		if p.o.Width > 0 {
			room = max(p.o.Width-size, minDetail)
			if l.mark == bad {
				room = max(room, p.o.Width/2)
			}
		}
		put(view.Visible(l.detail, room), "")
	}
	p.buf = append(bytes.TrimRight(p.buf, " "), '\n')
	if len(p.buf) >= pieceSize {
		p.flush()
	}
}
