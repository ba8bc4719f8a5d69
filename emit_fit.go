package agentevents

import (
	"crypto/sha256"
	"encoding/hex"
	"math"
	"slices"
	"strconv"

	"github.com/agentevents/agentevents/internal/extra"
	"github.com/agentevents/agentevents/internal/jsonwire"
)

// This file makes events fit on a line of EmitterOptions.MaxLine bytes, so that a Reader takes
// every accepted event.

// RuleLineLength: a line has at most EmitterOptions.MaxLine bytes; content is cut to
// that, ids, names and numbers are not.
const RuleLineLength Rule = "line-length"

// mostEscaped is the length of the longest escape that a byte becomes.
const mostEscaped = len(`\u0000`)

// mostEnvelope is an upper bound of an envelope's length on a line without its texts, with an id
// and a place in a trace.
const mostEnvelope = 1024

// fit cuts the content of an event whose line would be too long. It comes before the event is
// applied, so that a fold of the log sees the same event as the machine. size is at least the
// length of the payload and the extra members on the line.
func (s *runState) fit(ev *Event, sub *subject, head string, size int) *RuleError {
	if s.fits(ev, head, size) {
		return nil // the usual case
	}
	return s.cut(ev, sub)
}

// fits reports that the line is short enough, as far as one look shows it.
func (s *runState) fits(ev *Event, head string, size int) bool {
	texts := len(head)
	if head == "" {
		for n := envRunID; n < envPayload; n++ {
			if text := ev.text(n); text != nil {
				texts += mostEscaped * len(*text)
			}
		}
	}
	texts += mostEscaped * (len(ev.ID) + len(ev.CausationID) + len(ev.TraceID) + len(ev.SpanID) + len(ev.ParentSpanID))
	return mostEnvelope+texts+size <= s.e.opts.MaxLine
}

// fitDelta is fitWithout for a delta, at little cost.
func (s *runState) fitDelta(ev *Event, sub *subject, head string) *RuleError {
	if s.fits(ev, head, mostEnvelope+mostEscaped*len(pieceOf(ev, sub).id)) {
		return nil
	}
	return s.fitWithout(*ev)
}

// fitWithout refuses an event that is too long without its content. It comes before the
// redaction step ends blocks for the event: half a secret could be recorded if it were
// refused then.
func (s *runState) fitWithout(ev Event) *RuleError {
	c := cleaner{cut: &cutter{level: leastCut}}
	ev.Payload, _ = cleanPayload(ev.Payload, &c)
	ev.extra, _ = c.extras(ev.extra)
	return s.tooLong(&ev, s.length(ev, ops(ev.Payload))+mostEscaped*leastCut) // redaction may make short texts longer
}

// cut measures the line, and cuts the longest content to one length if it is too long.
func (s *runState) cut(ev *Event, sub *subject) *RuleError {
	if ev.ID == "" {
		ev.ID = s.e.givenID() // of any length
	}
	over := s.length(*ev, sub.payload) - s.e.opts.MaxLine
	if over <= 0 {
		return nil
	}
	var cut cutter
	c := cleaner{cut: &cut}
	cleanPayload(ev.Payload, &c)
	c.extras(ev.extra)
	cut.level = levelOf(cut.sizes, over)
	if step := s.e.opts.MaxLine / 16; step > leastCut {
		cut.level = max(cut.level-cut.level%step, leastCut) // a message that is repeated in another envelope is cut alike
	}
	ev.Payload, _ = cleanPayload(ev.Payload, &c)
	ev.extra, _ = c.extras(ev.extra)
	sub.payload = ops(ev.Payload)
	ev.Marks |= MarkSanitized
	return s.tooLong(ev, s.length(*ev, sub.payload))
}

func (s *runState) tooLong(ev *Event, n int) *RuleError {
	if n <= s.e.opts.MaxLine {
		return nil
	}
	err := &fieldError{RuleLineLength, "",
		"the line may get " + strconv.Itoa(n) + " bytes without the content that can be cut; at most " +
			strconv.Itoa(s.e.opts.MaxLine) + " are allowed (EmitterOptions.MaxLine)"}
	return err.asError(ev)
}

// length returns the length of the event's line with all that it may get before it is
// written, also when it is emitted again from a log: else it would be cut again then.
func (s *runState) length(ev Event, p payloadOps) int {
	const digits = "0123456789abcdef0123456789abcdef"
	fillText(&ev.ID, digits+"----")
	fillText(&ev.TraceID, digits)
	fillText(&ev.SpanID, digits[:16])
	fillText(&ev.ParentSpanID, digits[:16])
	ev.Sequence = math.MaxUint64
	ev.Marks = 1<<numMarks - 1
	s.line = ev.appendWith(s.line[:0], p, nil, "")
	return len(s.line)
}

// levelOf returns the length to which texts of these sizes are cut in order to save
// so many bytes.
func levelOf(sizes []int, save int) int {
	slices.Sort(sizes)
	sum := -save
	for i, size := range slices.Backward(sizes) {
		sum += size
		longer := len(sizes) - i
		if i == 0 || sum/longer >= sizes[i-1] {
			return max(sum/longer, leastCut)
		}
	}
	return leastCut
}

// leastCut is an upper bound of the length of a cut text without its beginning.
const leastCut = 160

// A cutter cuts content to a length. A cleaner calls it for every text, JSON value and extra
// member. A text keeps its beginning, and JSON becomes an object with the beginning of its text;
// both have its length and its hash.
type cutter struct {
	level int   // bytes on the line that a value may have; 0 while they are only measured
	sizes []int // of all values
	buf   []byte
}

// fits notes the size of a value, and reports whether it stays as it is.
func (c *cutter) fits(size int) bool {
	if c.level == 0 {
		c.sizes = append(c.sizes, size)
		return true
	}
	return size <= c.level
}

func (c *cutter) text(s string) (string, bool) {
	c.buf = jsonwire.AppendString(c.buf[:0], s)
	if c.fits(len(c.buf)) {
		return s, false
	}
	tail := "[TRUNCATED:" + strconv.Itoa(len(s)) + " bytes, sha256 " + hashOf(s) + "]"
	return s[:jsonwire.FirstBytes(s, c.level-len(tail)-len(`""`))] + tail, true
}

func (c *cutter) json(j JSON) (JSON, bool) {
	if c.fits(len(j)) {
		return j, false
	}
	open := `{"truncated":{"bytes":` + strconv.Itoa(len(j)) + `,"sha256":"` + hashOf(string(j)) + `","head":`
	head := jsonwire.FirstBytes(string(j), c.level-len(open)-len(`""}}`))
	return JSON(open + jsonwire.Quote(string(j[:head])) + "}}"), true
}

func (c *cutter) extras(x extras) (extras, bool) {
	out := x.Map(func(e extra.Entry) string {
		if e.What != extra.Unknown {
			return e.Text
		}
		value := e.Value()
		short, _ := c.json(JSON(value))
		return e.Text[:len(e.Text)-len(value)] + string(short)
	})
	return out, out != x
}

// hashOf returns the SHA-256 of a text in hex.
func hashOf(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:])
}
