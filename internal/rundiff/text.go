package rundiff

import (
	"cmp"
	"io"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/internal/endword"
	"github.com/agentevents/agentevents/internal/jsonwire"
	"github.com/agentevents/agentevents/internal/textdiff"
	"github.com/agentevents/agentevents/internal/view"
)

// An Act is an act as people see it.
type Act struct {
	Sequence uint64           `json:"sequence"`        // of its first event
	Kind     agentevents.Kind `json:"type"`            // of its first event
	What     string           `json:"what"`            // the act and its object: tool.Read
	Status   string           `json:"status,omitzero"` // how it went
	Detail   string           `json:"detail,omitzero"` // its most telling member
	Error    string           `json:"error,omitzero"`
}

// heads are the words for kinds, where they are not the kind without "agent.".
var heads = map[agentevents.Kind]string{
	agentevents.KindToolCalled: "tool", agentevents.KindModelCalled: "model", agentevents.KindMessageCreated: "message",
	agentevents.KindTextCompleted: "text", agentevents.KindTaskAssigned: "task", agentevents.KindAgentTransition: "status",
}

// details are the most telling members of acts, the best first.
var details = strings.Fields(`argumentsSummary text task prompt goal question issue claim message content
	decision intent action questions answers command reasoning feedback reason result value outputs evidence inputs
	definition name description limit model`)

// describe returns an act as people see it.
func describe(e *act) *Act {
	d := &Act{Sequence: e.sequence, Kind: e.kind,
		What: cmp.Or(heads[e.kind], strings.TrimPrefix(string(e.kind), "agent."))}
	if _, known := e.kind.Info(); !known {
		d.Detail = view.Argument(agentevents.JSON(e.payload))
		return d
	}
	members := map[string]string{}
	for name, raw := range jsonwire.Members(e.payload) {
		members[name] = raw
	}
	about := func(sep, raw string) {
		if text := word(raw); text != "" {
			d.What += sep + text
		}
	}
	if strings.HasPrefix(d.What, "workflow.") {
		d.What += " " + e.phase
	}
	inner := cmp.Or(members["message"], members["command"])
	if content := jsonwire.Member(inner, "content"); content != "" {
		members["message"] = content
	}
	about(" ", cmp.Or(members["from"], jsonwire.Member(inner, "from")))
	about(" → ", cmp.Or(members["to"], jsonwire.Member(inner, "to")))
	about(map[bool]string{true: ".", false: " "}[e.kind == agentevents.KindToolCalled], members["toolId"])
	for name, raw := range jsonwire.Members(e.payload) {
		if subjects[name] && name != "toolId" && name != "from" && name != "to" {
			about(" ", raw)
		}
	}
	d.Status = word(cmp.Or(members["status"], members["outcome"], members["verdict"]))
	if e.kind == agentevents.KindAuditChecked {
		d.Status = word(members["result"])
		delete(members, "result")
	}
	d.Detail = view.Argument(agentevents.JSON(members["arguments"]))
	for _, name := range details {
		d.Detail = cmp.Or(d.Detail, word(members[name]))
	}
	d.Error = word(members["error"])
	return d
}

// word returns a value as text: a string as it is, an object by its most telling member.
func word(raw string) string {
	if strings.HasPrefix(raw, `"`) {
		return jsonwire.Text(raw)
	}
	for _, name := range [...]string{"agentId", "message", "content", "type", "code"} {
		if text := jsonwire.Text(jsonwire.Member(raw, name)); text != "" {
			return text
		}
	}
	return raw
}

// Options select the form of a report. The zero Options are usable.
type Options struct {
	A, B  string // names of the logs; default A and B
	Color bool
	Width int  // how many characters a line may have; 0 means 100, negative cuts nothing
	All   bool // every act, change and agent, however many there are
}

// How much is written without Options.All.
const (
	mostInRow = 10 // acts in a row that differ in the same way, changes of an act, agents that are the same
	mostLines = 60 // lines of an agent
)

// minRepeat is the length in bytes, of two values together, from which they are not shown again:
// one answer is the text's, the message's, the agent's and the run's.
const minRepeat = 20

// Write writes the report as text: the differences, and the number of equal acts.
func (r *Report) Write(w io.Writer, o Options) error {
	o.A, o.B, o.Width = cmp.Or(o.A, "A"), cmp.Or(o.B, "B"), cmp.Or(o.Width, 100)
	if o.Width < 0 {
		o.Width = 1 << 30
	}
	p := &printer{o: o, told: map[[2]agentevents.JSON]bool{}}
	same := 0
	for i := range r.Runs {
		if run := &r.Runs[i]; run.Same && len(r.Runs) > 1 {
			same++
		} else {
			p.run(run)
		}
	}
	if same > 0 {
		p.line("", "", count(same, "run")+" the same")
	}
	_, err := io.WriteString(w, p.out.String())
	return err
}

type printer struct {
	o    Options
	out  strings.Builder
	told map[[2]agentevents.JSON]bool // changes that were shown
}

var colors = map[string]string{"-": "\x1b[31m", "+": "\x1b[32m", "~": "\x1b[33m"}

// line writes a line, cut to the width.
func (p *printer) line(prefix, mark, text string) {
	text = cut(visible(strings.TrimLeft(mark+" "+text, " ")), max(p.o.Width-utf8.RuneCountInString(prefix), 24))
	if color := colors[mark]; p.o.Color && color != "" {
		text = color + text + "\x1b[0m"
	}
	p.out.WriteString(prefix + text + "\n")
}

// A node is a line and the lines below it.
type node struct {
	mark  string // -, +, ~ or nothing
	text  string
	below []*node
}

func (n *node) add(mark, text string) *node {
	child := &node{mark: mark, text: text}
	n.below = append(n.below, child)
	return child
}

func (p *printer) below(prefix string, n *node) {
	for i, child := range n.below {
		branch, bar := "├─ ", "│  "
		if i == len(n.below)-1 {
			branch, bar = "└─ ", "   "
		}
		p.line(prefix+branch, child.mark, child.text)
		p.below(prefix+bar, child)
	}
}

func (p *printer) run(r *Run) {
	if p.out.Len() > 0 {
		p.out.WriteByte('\n')
	}
	head := func(mark, log string, run *Party) {
		if run == nil {
			p.line("", mark, log+": no run like it")
			return
		}
		text := log + ": run " + run.ID
		if run.Name != "" {
			text += " (" + run.Name + ")"
		}
		p.line("", mark, text+" "+run.went()+" · "+count(run.Acts, "act"))
	}
	head("-", p.o.A, r.A)
	head("+", p.o.B, r.B)
	if r.A == nil || r.B == nil {
		return
	}
	var root node
	var same []string
	for _, itself := range [...]bool{false, true} { // the acts of agents tell more than the run's own members
		for i := range r.Agents {
			a := &r.Agents[i]
			mark := ""
			switch {
			case (cmp.Or(a.A, a.B).ID == "") != itself:
				continue
			case a.Same:
				same = append(same, both(a.A.name(), a.B.name())+" ("+count(a.A.Acts, "act")+")")
				continue
			case a.A == nil:
				mark = "+"
			case a.B == nil:
				mark = "-"
			}
			p.steps(root.add(mark, title(cmp.Or(a.A, a.B), cmp.Or(a.B, a.A))), a.Acts)
		}
	}
	if n := len(same); n > mostInRow && !p.o.All {
		root.add("", count(n, "agent")+" the same: "+strings.Join(same[:mostInRow], ", ")+", …")
	} else if n > 0 {
		root.add("", "the same: "+strings.Join(same, ", "))
	}
	p.below("", &root)
	var totals []string
	for _, t := range r.Totals {
		if t.A != t.B {
			totals = append(totals, t.String())
		}
	}
	if len(totals) > 0 {
		p.out.WriteString(strings.Join(totals, " · ") + "\n")
	}
}

// mark returns the sign before a step.
func (s *Step) mark() string {
	switch {
	case s.Same > 0:
		return ""
	case s.B == nil:
		return "-"
	case s.A == nil:
		return "+"
	}
	return "~"
}

// steps adds the acts of two agents. Rows of acts that differ in the same way are cut, and so is
// the whole.
func (p *printer) steps(n *node, steps []Step) {
	for i := 0; i < len(steps); {
		mark, end := steps[i].mark(), i+1
		for mark != "" && end < len(steps) && steps[end].mark() == mark {
			end++
		}
		for k := i; k < end; k++ {
			if k == i+mostInRow && !p.o.All {
				n.add(mark, "… and "+count(end-k, "more act"))
				break
			}
			p.step(n, mark, &steps[k])
		}
		if i = end; len(n.below) < mostLines || p.o.All {
			continue
		}
		rest := 0
		for ; i < len(steps); i++ {
			if steps[i].Same == 0 {
				rest++
			}
		}
		if rest > 0 {
			n.add("", "… and "+count(rest, "more act")+" not the same")
		}
	}
}

// step adds an act, or that some are the same.
func (p *printer) step(n *node, mark string, s *Step) {
	switch mark {
	case "":
		n.add(mark, count(s.Same, "act")+" the same")
		return
	case "-":
		n.add(mark, s.A.String())
		return
	case "+":
		n.add(mark, s.B.String())
		return
	}
	text := both(s.A.What, s.B.What)
	if s.A.Detail == s.B.Detail && s.A.Detail != "" {
		text += ": " + s.A.Detail
	}
	n = n.add(mark, text)
	for i, c := range s.Changes {
		values := [2]agentevents.JSON{c.A, c.B}
		switch {
		case i == mostInRow && !p.o.All:
			n.add("", "… and "+count(len(s.Changes)-i, "more change"))
			return
		case len(c.A)+len(c.B) > minRepeat && p.told[values]:
			n.add("", c.At+": the same change")
		default:
			p.told[values] = true
			n.add("", c.text(p.o.Width/3))
		}
	}
}

// String returns the act on a line.
func (a *Act) String() string {
	text := strings.TrimSpace(a.What + " " + marked(a.Status))
	switch {
	case a.Detail != "" && a.Error != "":
		return text + ": " + a.Detail + " — " + a.Error
	case a.Detail != "" || a.Error != "":
		return text + ": " + a.Detail + a.Error
	}
	return text
}

// text returns the change on a line. Of long texts it has only the difference.
func (c *Change) text(room int) string {
	a, b := cmp.Or(string(c.A), "absent"), cmp.Or(string(c.B), "absent")
	if a[0] == '"' && b[0] == '"' && max(len(a), len(b)) > room {
		_, a, b = textdiff.Excerpts(jsonwire.Text(a), jsonwire.Text(b))
	}
	return cmp.Or(c.At, "payload") + ": " + both(cut(a, room), cut(b, room))
}

var totalWords = map[string]string{"durationMs": "time", "costUsd": "cost", "toolCalls": "tool calls",
	"failedToolCalls": "failed tool calls",
	"modelCalls":      "model calls", "refused": "refused events"}

// String returns the figure on both sides.
func (t Total) String() string {
	text := func(v agentevents.Opt[float64], least bool) string {
		switch {
		case !v.OK:
			return "unknown"
		case t.Name == "durationMs":
			return time.Duration(v.V * float64(time.Millisecond)).Round(time.Millisecond).String()
		case t.Name == "costUsd":
			return "$" + strconv.FormatFloat(v.V, 'f', 4, 64)
		}
		sign := ""
		if least {
			sign = "≥"
		}
		return sign + strconv.FormatFloat(v.V, 'f', -1, 64)
	}
	return cmp.Or(totalWords[t.Name], t.Name) + " " + both(text(t.A, t.LeastA), text(t.B, t.LeastB))
}

func (p *Party) name() string { return cmp.Or(p.Name, p.ID, "the run itself") }

func (p *Party) went() string { return marked(p.Status) + view.MadeUp(p.EndMadeUp) }

// title returns the line of an agent. A task that changed is a change of its start.
func title(a, b *Party) string {
	text := both(a.name(), b.name())
	if a.Status != "" || b.Status != "" {
		text += " " + both(cmp.Or(a.went(), "no status"), cmp.Or(b.went(), "no status"))
	}
	if task := cmp.Or(a.Task, b.Task); task != "" && (a.Task == b.Task || a.Task == "" || b.Task == "") {
		text += ": " + task
	}
	return text
}

// both returns the shared part of two sides.
func both(a, b string) string {
	if a == b {
		return a
	}
	return a + " → " + b
}

// marks are the marks of a tree before the words for how something went.
var marks = map[view.Mark]string{view.Good: "✓", view.Warn: "!", view.Bad: "✗"}

// markOf returns the mark of a word.
func markOf(word string) string {
	switch word {
	case "ended": // the word for an end without one
		return marks[view.Good]
	case string(agentevents.AuditWarn):
		return marks[view.Warn]
	}
	return marks[view.MarkOf(endword.Of(word))]
}

// marked returns the word for a status as a tree shows it.
func marked(status string) string {
	if status == string(agentevents.ToolStatusOK) {
		return "✓"
	}
	return strings.TrimLeft(markOf(status)+" "+status, " ")
}

func count(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return strconv.Itoa(n) + " " + thing + "s"
}

// cut returns at most limit characters of a text.
func cut(text string, limit int) string {
	last := 0
	for i := range text {
		switch limit--; limit {
		case 0:
			last = i
		case -1:
			return text[:last] + "…"
		}
	}
	return text
}

// visible returns a text on a line, with everything escaped that is not printable: a log must not
// control a terminal.
func visible(text string) string {
	return view.Visible(strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) {
			return ' '
		}
		return r
	}, text), -1)
}
