package querytest

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/capture/claude"
	"github.com/agentevents/agentevents/dialect/openharness"
	"github.com/agentevents/agentevents/internal/jsonwire"
)

// A form is how the events of a call are written.
type form struct {
	decoder func(c *Call, agentID string) agentevents.Decoder
	// fill adds to an event the members that its decoder needs and a fixture leaves out. The
	// execution is the node's.
	fill func(i int, execution string, members map[string]json.RawMessage)
}

var (
	native = form{
		decoder: func(*Call, string) agentevents.Decoder { return agentevents.NewDecoder() },
		fill: func(i int, _ string, members map[string]json.RawMessage) {
			add(members, "id", fmt.Sprintf("e%d", i))
			add(members, "sequence", i)
			add(members, "timestamp", "2026-01-02T15:04:05.000Z")
			add(members, "runId", "r")
		},
	}
	document = form{
		decoder: func(*Call, string) agentevents.Decoder {
			return openharness.NewDecoder(openharness.Options{RunID: "r"})
		},
		fill: func(_ int, execution string, members map[string]json.RawMessage) {
			add(members, "timestamp", int64(1767366245000))
			add(members, "nodeId", "n")
			add(members, "runId", execution)
		},
	}
	provider = form{
		decoder: func(c *Call, agentID string) agentevents.Decoder {
			return claude.NewDecoder(claude.Options{
				RunID: "r", AgentID: agentID, Prompt: c.Input.asked(), NoTransitions: true,
				Time: func() time.Time { return time.UnixMilli(1767366245000) },
			})
		},
		fill: func(int, string, map[string]json.RawMessage) {},
	}
)

// add adds a member that is absent. value has a type that can be encoded.
func add(members map[string]json.RawMessage, name string, value any) {
	if members[name] == nil {
		members[name], _ = json.Marshal(value)
	}
}

// asked returns the prompt or the messages.
func (in *Input) asked() agentevents.JSON { return cmp.Or(in.Prompt, in.Messages) }

// formOf returns the form of an event.
func formOf(members map[string]json.RawMessage) form {
	var typ string
	_ = json.Unmarshal(members["type"], &typ)
	switch {
	case strings.Contains(typ, ":"):
		return document
	case members["payload"] != nil:
		return native
	}
	return provider
}

// answer returns the acts of the agent of a call, for a query about an agent with an id. The events
// have the form that a [query.Func] yields, and belong to the caller. The index is the call's: ids
// that are derived from it differ from call to call.
func (c *Call) answer(agentID string, index int) ([]agentevents.Event, error) {
	agentID = cmp.Or(agentID, "agent")
	execution := fmt.Sprintf("%s-%d", agentID, index+1)
	var of form
	var log bytes.Buffer
	var frames frames
	var at []int // events by line
	ended := false
	for i, text := range c.Events {
		var members map[string]json.RawMessage
		if err := json.Unmarshal([]byte(text), &members); err != nil || members == nil {
			return nil, fmt.Errorf("event %d: want an object", i+1)
		}
		if i == 0 {
			of = formOf(members)
		}
		of.fill(i, execution, members)
		ended = ended || string(members["type"]) == `"result"`
		line, err := json.Marshal(members)
		if err != nil {
			return nil, fmt.Errorf("event %d: %w", i+1, err)
		}
		text := frames.before(line, execution) + string(line) + "\n"
		log.WriteString(text)
		for range strings.Count(text, "\n") {
			at = append(at, i+1)
		}
	}
	var events []agentevents.Event
	if of.decoder != nil {
		decoder := of.decoder(c, agentID)
		if _, ok := decoder.(*claude.Decoder); ok && !ended && !c.Output.Error.OK {
			log.Write(append(c.result(), '\n')) // recordings may lack the last message
		}
		for ev, err := range agentevents.NewReader(&log,
			agentevents.ReaderOptions{Decoder: decoder, MaxLine: math.MaxInt}).All() {
			if err != nil {
				return nil, inEvent(err, at)
			}
			events = append(events, ev)
		}
	}
	return c.complete(events, agentID), nil
}

// frames are the frames of a streamed message of the Claude SDK. Fixtures that were cut down by
// hand have its deltas only.
type frames struct {
	message bool
	blocks  map[int]bool
}

// before returns the lines that are missing before a line: the beginnings of the message and
// of the block that it belongs to.
func (f *frames) before(line []byte, message string) (missing string) {
	var m struct {
		Type  string
		Event struct {
			Type  string
			Index int
			Delta struct{ Type string }
		}
	}
	if json.Unmarshal(line, &m) != nil || m.Type != "stream_event" {
		return ""
	}
	switch m.Event.Type {
	case "message_start":
		*f = frames{message: true}
		return ""
	case "message_stop":
		*f = frames{}
		return ""
	case "content_block_delta", "content_block_start":
	default:
		return ""
	}
	if !f.message {
		*f = frames{message: true}
		missing = fmt.Sprintf(`{"type":"stream_event","event":{"type":"message_start","message":{"id":%q}}}`+"\n", message)
	}
	if f.blocks == nil {
		f.blocks = map[int]bool{}
	}
	if kind := strings.TrimSuffix(m.Event.Delta.Type, "_delta"); !f.blocks[m.Event.Index] &&
		(kind == "text" || kind == "thinking") {
		missing += fmt.Sprintf(`{"type":"stream_event",`+
			`"event":{"type":"content_block_start","index":%d,"content_block":{"type":%q}}}`+"\n", m.Event.Index, kind)
	}
	f.blocks[m.Event.Index] = true
	return missing
}

// inEvent returns an error of a reader with the event that it is about, and without a position in a
// line that is not a line of the file.
func inEvent(err error, at []int) error {
	var line *agentevents.LineError
	if !errors.As(err, &line) {
		return err
	}
	out := line.Err
	var syntax *jsonwire.SyntaxError
	if errors.As(out, &syntax) {
		out = errors.New(syntax.Msg)
	}
	if line.Pointer != "" {
		out = fmt.Errorf("%s: %w", line.Pointer, out)
	}
	if line.Line < 1 || line.Line > len(at) {
		return fmt.Errorf("the end of the events: %w", out)
	}
	return fmt.Errorf("event %d: %w", at[line.Line-1], out)
}

// result returns the message of the Claude SDK that the output comes from.
func (c *Call) result() []byte {
	members := map[string]json.RawMessage{}
	add(members, "type", "result")
	add(members, "subtype", "success")
	add(members, "is_error", false)
	add(members, "result", c.Output.Text)
	add(members, "session_id", c.Output.SessionID)
	line, _ := json.Marshal(members)
	return line
}

// Answer returns the acts of an agent of a log, as a [query.Func] yields them: without the fields
// of the log and its run, and without the fields that a recorder adds. Payloads are shared with the
// log, except for ends. The agent with the id is the one that was asked; the others are its
// sub-agents.
func Answer(log []agentevents.Event, agentID string) []agentevents.Event {
	var events []agentevents.Event
	for _, ev := range log {
		own := ev.AgentID == "" || ev.AgentID == agentID || ev.NodeRunID != "" && ev.AgentID == ev.NodeRunID
		derived := ev.Kind() == agentevents.KindAgentTransition && ev.Marks.Has(agentevents.MarkSynthetic)
		if derived || strings.HasPrefix(string(ev.Kind()), "run.") {
			continue
		}
		out := agentevents.Event{Actor: ev.Actor, ParentCallID: ev.ParentCallID,
			Marks: ev.Marks &^ agentevents.MarkReplayed, Payload: ev.Payload}
		if !own {
			out.AgentID = ev.AgentID
			if ev.ParentAgentID != agentID {
				out.ParentAgentID = ev.ParentAgentID
			}
		}
		if p, ok := ev.Payload.(*agentevents.AgentEnded); ok {
			end := *p
			end.Totals = agentevents.Opt[agentevents.Totals]{}
			out.Payload = &end
		}
		events = append(events, out)
	}
	return events
}

// complete returns the events of an answer with a start and an end, and with the call's input and
// output in them.
func (c *Call) complete(decoded []agentevents.Event, agentID string) []agentevents.Event {
	var events []agentevents.Event
	var start *agentevents.AgentStarted
	var end *agentevents.AgentEnded
	for _, ev := range Answer(decoded, agentID) {
		switch p := ev.Payload.(type) {
		case *agentevents.AgentStarted:
			if ev.AgentID == "" && start == nil {
				start = p
			}
		case *agentevents.AgentEnded:
			if ev.AgentID == "" && c.Output.Error.OK {
				continue // there is none: the query fails
			}
			if ev.AgentID == "" {
				end = p
			}
		}
		events = append(events, ev)
	}
	if start == nil {
		start = &agentevents.AgentStarted{}
		events = append([]agentevents.Event{{Payload: start}}, events...)
	}
	start.ProviderSessionID = cmp.Or(start.ProviderSessionID, c.Output.SessionID)
	start.Prompt = cmp.Or(start.Prompt, c.Input.asked())
	if len(c.Output.ModelUsage) == 1 {
		for model := range c.Output.ModelUsage {
			start.Model = cmp.Or(start.Model, model)
		}
	}
	if c.Output.Error.OK {
		return events
	}
	if end == nil {
		end = &agentevents.AgentEnded{}
		events = append(events, agentevents.Event{Payload: end})
	}
	c.Output.fill(end)
	return events
}

// fill adds the output's fields that an end lacks.
func (o *Output) fill(end *agentevents.AgentEnded) {
	if !end.Error.OK {
		end.Outcome = cmp.Or(end.Outcome, agentevents.OutcomeConverged)
	}
	end.Result = cmp.Or(end.Result, o.Text)
	end.StructuredOutput = cmp.Or(end.StructuredOutput, o.StructuredOutput)
	if !end.Usage.OK && o.Usage.OK {
		end.Usage = agentevents.Some(agentevents.Usage(o.Usage.V))
	}
	if end.ModelUsage == nil && o.ModelUsage != nil {
		end.ModelUsage = map[string]agentevents.Usage{}
		for model, usage := range o.ModelUsage {
			end.ModelUsage[model] = agentevents.Usage(usage)
		}
	}
	if !end.TotalCostUSD.OK {
		end.TotalCostUSD = o.TotalCostUSD
	}
	if !end.Duration.OK && o.DurationMS.OK {
		end.Duration = agentevents.Some(time.Duration(o.DurationMS.V * float64(time.Millisecond)))
	}
	if !end.NumTurns.OK {
		end.NumTurns = o.NumTurns
	}
}
