package spans

import (
	"encoding/json"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/agentevents/agentevents"
)

// This file has the content that users have written: its place in spans, its bounds and its form.

// captures reports whether the text goes anywhere.
func (m *Mapper) captures(text string) bool { return text != "" && m.o.Content&(OnSpans|Details) != 0 }

// say adds a text to a span, as the message of a role.
func (m *Mapper) say(s *Span, k, role, text string) {
	if m.captures(text) {
		text = cut(m.o.redact(k, text), m.o.ContentBytes/2)
		m.keep(s, k, m.o.fit(message(role, part{"text", text}, ""), true))
	}
}

// show gives a span a value of JSON.
func (m *Mapper) show(s *Span, k, value string) {
	if m.captures(value) {
		m.keep(s, k, m.o.fit(m.o.redact(k, value), true))
	}
}

// either gives a span a value of JSON, or the short text that stands for it.
func (m *Mapper) either(s *Span, k string, value agentevents.JSON, summary string) {
	if value == "" && m.captures(summary) {
		value = agentevents.JSONString(summary)
	}
	m.show(s, k, string(value))
}

// tells gives a span a text, or JSON, as it is.
func (m *Mapper) tells(s *Span, k, text string) {
	if m.captures(text) {
		m.keep(s, k, m.o.fit(m.o.redact(k, text), false))
	}
}

// prompt adds the agent's instructions to its span: the prompt, else the task.
func (m *Mapper) prompt(s *Span, p *agentevents.AgentStarted) {
	switch {
	case p.Prompt == "" || !m.captures(string(p.Prompt)):
		m.say(s, AttrInput, "user", p.Task)
	case p.Prompt[0] == '"':
		m.say(s, AttrInput, "user", unquoted(p.Prompt))
	default:
		m.exchange(s, AttrInput, "user", "prompt", string(p.Prompt), "")
	}
}

// unquoted returns the text of a JSON string.
func unquoted(value agentevents.JSON) (text string) {
	if json.Unmarshal([]byte(value), &text) != nil {
		return string(value)
	}
	return text
}

// exchange adds the input or output of a model to a span. Messages in the form of the conventions
// stay unchanged; any other value becomes a part of one message.
func (m *Mapper) exchange(s *Span, k, role, kind, value, finish string) {
	if !m.captures(value) {
		return
	}
	value = m.o.redact(k, value)
	list := value
	if !areMessages(value) {
		list = message(role, part{kind, json.RawMessage(value)}, finish)
	}
	if list == "" || len(list) > m.o.ContentBytes {
		list = message(role, part{"text", cut(value, m.o.ContentBytes/2)}, finish)
	}
	m.keep(s, k, m.o.fit(list, true))
}

func (m *Mapper) keep(s *Span, k string, v Content) {
	if m.o.Content&OnSpans != 0 {
		s.set(val(k, v))
	}
	if m.o.Content&Details != 0 {
		s.content = append(s.content, val(k, v))
	}
}

// details makes the point that has the content of a span.
func (m *Mapper) details(s *Span) {
	p := Point{Name: EventSpanDetails, Time: s.End, Severity: SeverityDebug, Sequence: s.Last, AgentID: s.key.agent}
	if s.Kind == KindClient {
		p.Name = EventDetails
	}
	for _, a := range s.Attributes {
		if _, is := a.Value.(Content); !is {
			p.Attributes = append(p.Attributes, a)
		}
	}
	p.Attributes = append(p.Attributes, s.content...)
	s.content = nil
	m.add(s, &p)
}

// text is an attribute of a point, or none if content does not go there.
func (m *Mapper) text(k, value string) Attr { return m.value(k, value, false) }

// json is text for a value of JSON.
func (m *Mapper) json(k string, value agentevents.JSON) Attr { return m.value(k, string(value), true) }

// list is text for values that become JSON.
func list[T any](m *Mapper, k string, values []T) Attr {
	if len(values) == 0 || m.o.Content&OnPoints == 0 {
		return Attr{}
	}
	text, err := json.Marshal(values)
	if err != nil { // a value that is not JSON
		return Attr{}
	}
	return m.value(k, string(text), true)
}

func (m *Mapper) value(k, value string, isJSON bool) Attr {
	if value == "" || m.o.Content&OnPoints == 0 {
		return Attr{}
	}
	return val(k, m.o.fit(m.o.redact(k, value), isJSON))
}

func (o *Options) redact(k, value string) string {
	if o.Redact == nil {
		return value
	}
	return o.Redact(k, value)
}

// fit keeps a value within the budget. JSON that is too long becomes a JSON object that records the
// cut.
func (o *Options) fit(value string, isJSON bool) Content {
	if len(value) <= o.ContentBytes {
		return Content{value, isJSON}
	}
	if !isJSON {
		return Content{cut(value, o.ContentBytes), false}
	}
	for n := o.ContentBytes / 2; ; n /= 2 { // quoting may make it longer
		whole, err := json.Marshal(map[string]any{"agentevents.cut": len(value), "text": cut(value, n)})
		if err != nil || len(whole) <= o.ContentBytes || n == 0 {
			return Content{string(whole), true}
		}
	}
}

// A part is one of a message, as the conventions shape it.
type part struct {
	Type    string `json:"type"`
	Content any    `json:"content"`
}

// message is a list with one message, or "" if the part is not JSON.
func message(role string, p part, finish string) string {
	list, err := json.Marshal([]struct {
		Role   string `json:"role"`
		Parts  []part `json:"parts"`
		Finish string `json:"finish_reason,omitempty"`
	}{{role, []part{p}, finish}})
	if err != nil {
		return ""
	}
	return string(list)
}

// areMessages reports whether the value is a list of messages as the conventions shape it.
func areMessages(value string) bool {
	var list []struct {
		Role  string            `json:"role"`
		Parts []json.RawMessage `json:"parts"`
	}
	if json.Unmarshal([]byte(value), &list) != nil || len(list) == 0 {
		return false
	}
	for _, m := range list {
		if m.Role == "" || m.Parts == nil {
			return false
		}
	}
	return true
}

// kaos is the extra member of events that are read from KAOS, whose spans each carry attributes.
// Those that no field has are members of it, named by a pointer.
const kaos, pointer = "kaos", "/attributes/"

// maxAttributes is how many attributes of events one span gets from an event.
const maxAttributes = 32

// free returns the free attributes of a payload, or "".
func free(p agentevents.Payload) agentevents.JSON {
	switch p := p.(type) {
	case *agentevents.TurnStarted:
		return p.Attributes
	case *agentevents.TurnEnded:
		return p.Attributes
	case *agentevents.StepStarted:
		return p.Attributes
	case *agentevents.StepEnded:
		return p.Attributes
	case *agentevents.ToolCalled:
		return p.Attributes
	case *agentevents.ModelCalled:
		return p.Attributes
	case *agentevents.SpanRecorded:
		return p.Attributes
	}
	return ""
}

// members yields the members of an object, by name. Any other value has none.
func members(object agentevents.JSON) iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		var all map[string]json.RawMessage
		if object == "" || json.Unmarshal([]byte(object), &all) != nil {
			return
		}
		for _, name := range slices.Sorted(maps.Keys(all)) {
			if !yield(name, string(all[name])) {
				return
			}
		}
	}
}

// attributes gives a span the attributes of the event that begins or ends it. Numbers and booleans
// are always there, all else is content.
func (m *Mapper) attributes(s *Span, ev *agentevents.Event) {
	own, kept := free(ev.Payload), ev.Extra(kaos)
	if own == "" && kept == "" || s.ended {
		return
	}
	n := 0
	add := func(name, raw string) {
		if n++; name == "" || len(name) > 64 || n > maxAttributes {
			return
		}
		k := AttrFree + name
		switch {
		case raw == "true" || raw == "false":
			s.set(val(k, raw == "true"))
		case raw == "null":
		case raw[0] == '"':
			if m.captures(raw) {
				m.keep(s, k, m.o.fit(m.o.redact(k, unquoted(agentevents.JSON(raw))), false))
			}
		case raw[0] == '{' || raw[0] == '[':
			if m.captures(raw) {
				m.keep(s, k, m.o.fit(m.o.redact(k, raw), true))
			}
		default:
			if i, err := strconv.ParseInt(raw, 10, 64); err == nil {
				s.set(val(k, i))
			} else if f, err := strconv.ParseFloat(raw, 64); err == nil {
				s.set(val(k, f))
			}
		}
	}
	for name, raw := range members(own) {
		add(name, raw)
	}
	for name, raw := range members(kept) {
		if name, ok := strings.CutPrefix(name, pointer); ok && !strings.Contains(name, "/") {
			add(name, raw)
		}
	}
}
