package transcript

import (
	"bytes"
	"strings"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/capture/internal/session"
	"github.com/agentevents/agentevents/internal/jsonwire"
)

// A counter counts the tokens of a session without its events. It reads the lines with answers of
// the model, and of other lines only their kind. The reader of events has the same sum, or the
// counter gives up: at a summary, at sub-agents in the lines of another agent, at answers of which
// two lines differ otherwise than by growing, and at a compaction in a session of several files.
type counter struct {
	total   session.Total
	ledger  ledger
	stated  []byte // the latest line with totals of the program, which the ledger has not read
	line    session.Object
	files   int
	thread  string // of the file
	sub     bool   // the file is a sub-agent's
	own     bool   // it had a line of its own session
	compact bool   // there was a compaction
	latest  string // id of the latest answer of the file
	used    string // JSON of its tokens
	least   bool   // more than its tokens was used: no line has the reason of its end
	seen    map[string]agentevents.Usage
	scan    jsonwire.Scanner
}

func newCounter() session.Counter { return &counter{seen: map[string]agentevents.Usage{}} }

// Begin begins a session.
func (c *counter) Begin() {
	clear(c.seen)
	*c = counter{stated: c.stated[:0], line: c.line, seen: c.seen}
}

// File begins a file.
func (c *counter) File(facts *session.Facts) {
	c.close()
	c.files++
	c.thread, c.sub, c.own, c.latest = facts.Thread, facts.Thread != facts.Session, false, ""
}

// Total returns the tokens of the session.
func (c *counter) Total() (session.Total, bool) {
	c.close()
	return c.total, !c.compact || c.files == 1
}

// close ends the latest answer of a file.
func (c *counter) close() {
	c.total.Partial = c.total.Partial || c.least && tokens(c.seen[c.latest]) > 0
	c.least = false
}

// A billed line is as much of a line as decides which tokens it has.
type billed struct {
	session, by     string // JSON
	id, model, used string // JSON, of the message
	ended           bool   // it has the reason of its end
	forked, side    bool
}

// Line counts a line.
func (c *counter) Line(line []byte) bool {
	name, value := lead(line)
	switch {
	case string(name) == "attachment":
		return true
	case string(value) == "cost-state":
		c.state(line)
		return true
	case value != nil:
		if ok, known := plain[string(value)]; known && ok {
			return true
		}
	}
	var b billed
	answer, ok := c.read(&b, string(line))
	own := jsonwire.Text(b.session)
	other := own != "" && own != c.thread
	copied := b.by != "" && jsonwire.Text(b.by) != own || b.forked || other
	c.own = c.own || own != "" && !other
	switch {
	case !ok, other && c.own && !c.sub:
		return false
	case copied && !c.sub && !b.side:
		c.ledger.foreign = true
		return true
	}
	return !answer || c.answer(&b)
}

// lead returns the name of the first member that decides how a line is read: its type, with the
// value, or the first list or object.
func lead(line []byte) (name, value []byte) {
	rest, ok := bytes.CutPrefix(line, []byte(`{"`))
	for ok {
		if name, rest, ok = bytes.Cut(rest, []byte(`":`)); !ok || len(rest) == 0 {
			return nil, nil
		}
		switch rest[0] {
		case '{', '[':
			return name, nil
		case '"':
			if value, rest, ok = bytes.Cut(rest[1:], []byte(`"`)); !ok || bytes.IndexByte(value, '\\') >= 0 {
				return nil, nil
			}
			if string(name) == "type" {
				return name, value
			}
			rest, ok = bytes.CutPrefix(rest, []byte(`,"`))
		default:
			_, rest, ok = bytes.Cut(rest, []byte(`,"`))
		}
	}
	return nil, nil
}

// state notes totals of the program. They are read where there was a compaction before them, or is
// one after them.
func (c *counter) state(line []byte) {
	c.close()
	if !c.ledger.compacted {
		c.stated = append(c.stated[:0], line...)
		c.ledger.counted, c.ledger.foreign = agentevents.Usage{}, false
		return
	}
	c.line.Parse(string(c.stated))
	c.ledger.stated, _ = readTotals(&c.line)
	c.line.Parse(string(line))
	c.total.Usage = plus(c.total.Usage, c.ledger.compaction(readTotals(&c.line)))
	c.stated = append(c.stated[:0], line...)
}

// plain are the kinds of lines that have no answer, and whether the counter may go on.
var plain = func() map[string]bool {
	table := map[string]bool{"user": true, "attachment": true, "system": false, "summary": false, "progress": false}
	for _, kind := range skipped {
		table[kind] = true
	}
	return table
}()

// read reads the members of a line up to one that tells another kind.
func (c *counter) read(b *billed, line string) (answer, ok bool) {
	s := &c.scan
	s.Reset(line)
	if s.Object() != nil {
		return false, false
	}
	for {
		name, more, err := s.Member()
		if err != nil {
			return false, false
		}
		if !more {
			return answer, s.End() == nil && (answer || b.id == "")
		}
		switch name {
		case "attachment":
			return false, true
		case "message":
			if s.Kind() == '{' {
				if !b.read(s) {
					return false, false
				}
				continue
			}
		}
		raw, err := s.Raw()
		if err != nil {
			return false, false
		}
		switch name {
		case "type":
			switch raw {
			case `"assistant"`:
				answer = true
			case `"system"`:
				if strings.Contains(line, `"compact_boundary"`) || strings.Contains(line, `"microcompact_boundary"`) {
					c.compact, c.ledger.compacted = true, true
				}
				return false, true
			case `"progress"`:
				return false, !strings.Contains(line, "agent_progress")
			default:
				return false, plain[jsonwire.Text(raw)]
			}
		case "sessionId":
			b.session = raw
		case "requestSessionId":
			b.by = raw
		case "forkedFrom":
			b.forked = raw != "null"
		case "isSidechain":
			b.side = raw == "true"
		}
	}
}

// read reads the message of a line.
func (b *billed) read(s *jsonwire.Scanner) bool {
	if s.Object() != nil {
		return false
	}
	for {
		name, more, err := s.Member()
		if err != nil || !more {
			return err == nil
		}
		raw, err := s.Raw()
		if err != nil {
			return false
		}
		switch name {
		case "id":
			b.id = raw
		case "model":
			b.model = raw
		case "usage":
			b.used = raw
		case "stop_reason":
			b.ended = raw != "null" && raw != `""`
		}
	}
}

// answer counts the tokens of a line with a block of an answer.
func (c *counter) answer(b *billed) bool {
	id := jsonwire.Text(b.id)
	switch {
	case b.model == `"`+Synthetic+`"`:
		return true
	case id == "":
		return false
	case id == c.latest && b.used == c.used:
		c.least = c.least && !b.ended
		return true
	}
	u := agentevents.Usage{}
	if b.used != "" {
		c.line.Parse(b.used)
		u = usageOf(&c.line)
	}
	before, known := c.seen[id]
	more := minus(u, before)
	if known && (tokens(u) < tokens(before) || tokens(minus(before, u)) > 0 || c.latest != id && tokens(more) > 0) {
		return false
	}
	switch {
	case !known:
		c.close()
		c.least = !b.ended
	case id != c.latest:
		c.close()
	default:
		c.least = c.least && !b.ended
	}
	if !known {
		c.total.Calls++
		more, id = u, strings.Clone(id)
	}
	c.latest, c.used, c.seen[id] = id, b.used, u
	c.total.Usage = plus(c.total.Usage, more)
	c.ledger.count("", more)
	return true
}
