package cline

import (
	"cmp"
	"strings"
	"time"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/capture/internal/session"
	"github.com/agentevents/agentevents/internal/jsonwire"
	"github.com/agentevents/agentevents/internal/lines"
)

// Stream returns the reader of the output of cline --json: one process. Prompt and session are not
// in it.
func Stream() *session.Program {
	return &session.Program{
		Name: name, Tested: tested,
		Files: []string{"a stream of cline --json"},
		Facts: func(first []string) (session.Facts, bool) {
			for _, line := range first {
				if at, ok := streamTime(line); ok && jsonwire.Valid(line) == nil {
					id := processID(line)
					return session.Facts{Session: id, Thread: id, At: at, Copies: true}, true
				}
			}
			return session.Facts{}, false
		},
		Describe: markStream,
		Time:     streamTime,
		New:      newStream,
	}
}

// markStream takes the time of the first answer: the message of it has the same one on disk.
func markStream(f *session.Folder, name string, facts *session.Facts) {
	in, err := f.Open(name)
	if err != nil {
		return // reading it tells the fault
	}
	defer in.Close() // it was only read
	for from := lines.NewReader(in, agentevents.DefaultMaxLine); !from.Ended(); {
		line, _ := from.Next()
		text := string(line)
		if jsonwire.Text(jsonwire.Member(jsonwire.Member(text, "event"), "type")) != "usage" {
			continue
		}
		if at, ok := streamTime(text); ok {
			facts.Mark = string(jsonwire.AppendInt(nil, at.UnixMilli()))
		}
		return
	}
}

func processID(first string) string { return session.ID(strings.TrimSpace(first)) }

func streamTime(line string) (time.Time, bool) {
	return session.ParseTime(jsonwire.Text(jsonwire.Member(line, "ts")))
}

// A stream is the reader of the output of a process.
type stream struct {
	agent
	kinds       map[string]func(*stream)
	line, event session.Object
	ended       bool
	printed     bool          // the process has printed its last line
	counts      bool          // the steps of the turn are counted from 1, and the first one was counted
	text        *session.Line // a text: the thoughts before it end after it
}

func newStream(r *session.Recorder) session.Reader {
	return &stream{agent: agent{r: r}, kinds: map[string]func(*stream){
		"iteration_start":          nothing,
		"iteration_end":            (*stream).iterationEnded,
		"usage":                    (*stream).usage,
		"content_start/text":       nothing, // pieces of it
		"content_start/reasoning":  nothing,
		"content_start/tool":       (*stream).toolStarted,
		"content_update/text":      nothing,
		"content_update/reasoning": nothing,
		"content_update/tool":      nothing,
		"content_end/text":         (*stream).said,
		"content_end/reasoning":    (*stream).reasoned,
		"content_end/tool":         (*stream).toolEnded,
		"error":                    (*stream).failed,
		"done":                     (*stream).done,
	}}
}

func nothing(c *stream) { c.event.SkipAll() }

// Line reads a line.
func (c *stream) Line(l *session.Line) {
	if c.Agent == nil {
		c.start(cmp.Or(l.Thread, processID(l.Text)), "", "", "", "")
		c.Begin()
	}
	c.line.Parse(l.Text)
	c.line.Skip("ts")
	kind := c.line.Str("type")
	c.event.Parse("")
	if kind == "agent_event" {
		c.event.Parse(c.line.Raw("event"))
	}
	if c.begins() {
		c.r.Another()
		return
	}
	switch kind {
	case "agent_event":
		kind = c.event.Str("type")
		if content := c.event.Str("contentType"); content != "" {
			kind += "/" + content
		}
		f, ok := c.kinds[kind]
		if !ok {
			c.r.Unread(kind, "")
			return
		}
		if kind != "content_end/reasoning" {
			c.tell()
		}
		f(c)
		c.r.Rest(kind, "/event", &c.event)
	case "run_result":
		c.tell()
		c.printed = true
		c.line.Skip("iterations", "usage", "aggregateUsage", "durationMs", "model", "messages")
		c.end(c.line.Str("finishReason"), c.line.Str("text"))
	default:
		c.r.Unread(kind, "")
		return
	}
	c.r.Rest(kind, "", &c.line)
}

// begins reports whether a line begins the output of another process: the one before has printed its last
// line, or was killed in a turn, of which the steps are counted from 1 on.
func (c *stream) begins() bool {
	first := c.event.Str("type") == "iteration_start" && c.event.Raw("iteration") == "1"
	if c.printed || first && c.counts && !c.ended {
		return true
	}
	c.counts = c.counts || first
	return false
}

// usage reads the tokens of one call of the model, and the totals so far.
func (c *stream) usage() {
	c.again()
	c.Answer(&agentevents.ModelReturned{ModelCallID: c.r.LineID(), Usage: agentevents.Some(usageOf(&c.event))})
	c.event.Skip("cost", "totalInputTokens", "totalOutputTokens",
		"totalCacheReadTokens", "totalCacheWriteTokens", "totalCost")
}

// again begins a turn in a process that goes on after the end of one.
func (c *stream) again() {
	if !c.InTurn() {
		c.Begin()
		c.ended = false
	}
}

func (c *stream) said() {
	if c.event.Str("text") != "" {
		c.again()
		copied := *c.r.Here()
		c.text = &copied
	}
}

// tell records the text that is held.
func (c *stream) tell() {
	l := c.text
	if c.text = nil; l == nil {
		return
	}
	c.r.At(l, func() {
		c.Spoke(c.r.LineID(), jsonwire.Text(jsonwire.Member(jsonwire.Member(l.Text, "event"), "text")))
	})
}

func (c *stream) reasoned() {
	c.event.Skip("redacted")
	if text := c.event.Str("reasoning"); text != "" {
		c.again()
		c.Thought(c.r.LineID(), text)
	}
	c.tell()
}

func (c *stream) toolStarted() {
	c.again()
	c.call(c.event.Str("toolCallId"), c.event.Str("toolName"), c.event.Raw("input"))
}

func (c *stream) toolEnded() {
	c.event.Skip("contentType", "input")
	failure := cmp.Or(c.event.Str("error"), c.event.Object("error").Str("message"))
	c.back(c.event.Str("toolCallId"), c.event.Str("toolName"), c.event.Raw("output"),
		c.event.Raw("error") != "", c.event.Millis("durationMs"), failure)
}

func (c *stream) iterationEnded() {
	called := c.event.Raw("hadToolCalls")
	c.final = c.final || called == "false"
	c.event.Skip("iteration", "toolCallCount")
}

func (c *stream) failed() {
	message := cmp.Or(c.event.Str("message"), c.event.Str("error"), c.event.Object("error").Str("message"))
	c.event.Skip("recoverable", "iteration")
	c.Fails("error", message)
}

func (c *stream) done() {
	c.event.Skip("iterations", "usage")
	c.end(c.event.Str("reason"), c.event.Str("text"))
}

// end ends the turn. The result of the process repeats the end of its agent.
func (c *stream) end(reason, text string) {
	if c.ended || !c.InTurn() {
		return
	}
	c.ended = true
	switch reason {
	case "completed", "":
	case "aborted", "cancelled":
		c.Stop(reason)
		return
	default:
		c.Fails(reason, cmp.Or(text, "the run ended: "+reason))
	}
	c.Complete(0)
}

// End ends the run.
func (c *stream) End(*session.Line) {
	if c.Agent == nil {
		return
	}
	c.tell()
	if c.final && c.InTurn() {
		c.Complete(agentevents.MarkSynthetic)
	}
	c.FinishRun()
}
