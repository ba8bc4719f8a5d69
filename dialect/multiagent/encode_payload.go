package multiagent

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect"
	"github.com/agentevents/agentevents/internal/jsonwire"
)

// unknown appends the type and the payload of an event of an unknown type.
func (e *Encoder) unknown(dst []byte, ev *agentevents.Event) []byte {
	u := ev.Payload.(*agentevents.Unknown)
	typ, prefixed := strings.CutPrefix(string(u.Type), unknownPrefix)
	if prefixed && dialect.UnknownKind(Name, typ) != u.Type {
		typ = string(u.Type) // the prefix is part of the type
		e.lose(loss{what: dialect.Altered, pointer: "/type", detail: "readers add another prefix"})
	} else if shapeOf(typ) != sUnknown {
		e.lose(loss{what: dialect.Altered, pointer: "", detail: "read as the document's type of this name"})
	}
	dst = jsonwire.AppendString(dst, typ)
	if u.Raw != "" {
		raw, err := jsonwire.Compact(string(u.Raw))
		if err != nil {
			e.damaged = true
		}
		dst = append(append(dst, `,"payload":`...), raw...)
	} else if !e.own {
		e.lose(loss{what: dialect.Made, pointer: "/payload", detail: "an empty object"})
		dst = append(dst, `,"payload":{}`...)
	}
	e.drop("/workflowId", ev.WorkflowID != "")
	e.drop("/phase", ev.Phase != "")
	e.drop("/nodeId", ev.NodeID != "")
	e.drop("/nodeRunId", ev.NodeRunID != "")
	e.drop("/parentAgentId", ev.ParentAgentID != "")
	e.drop("/parentCallId", ev.ParentCallID != "")
	e.drop("/causationId", ev.CausationID != "")
	e.drop("/step", ev.Step.OK)
	e.drop("/marks", ev.Marks != 0)
	return dst
}

// payload appends the payload of a known shape.
func (e *Encoder) payload(dst []byte, ev *agentevents.Event, shape int, agentInPayload bool) []byte {
	sh := &shapes[shape]
	c := &e.c
	c.agentID = ""
	if agentInPayload {
		c.agentID = ev.AgentID
	}
	if some := len(ev.WorkflowID)|len(ev.Phase)|len(ev.NodeID)|len(ev.NodeRunID)|len(ev.ParentAgentID)|len(ev.ParentCallID) != 0; some || c.some {
		c.workflowID, c.phase, c.nodeID, c.nodeRunID = ev.WorkflowID, ev.Phase, ev.NodeID, ev.NodeRunID
		c.parentAgentID, c.parentCallID, c.some = ev.ParentAgentID, ev.ParentCallID, some
	}
	c.causationID, c.step, c.marks, c.tokens = ev.CausationID, ev.Step, ev.Marks, agentevents.Opt[int64]{}
	if c.phase != "" && c.workflowID == "" && sh.lists&(1<<cPhase) == 0 {
		e.drop("/phase", true)
		c.phase = ""
	}
	if e.own && c.phase == "" && c.workflowID != "" && sh.lists&(1<<cPhase) == 0 && jsonwire.Text(e.peek("/payload/phase")) != "" {
		e.drop("/"+string(Name)+"/~1payload~1phase", true)
		e.lose(loss{what: dialect.Made, pointer: "/phase", detail: "the payload's own phase, because the event has a workflow now"})
	}
	if c.step.OK && (c.step.V < 0 || stepless(shape)) {
		e.drop("/step", true)
		c.step.OK = false
	}
	p := ev.Payload
	if shape == sNodeEnter && c.nodeID == "" {
		c.nodeID, _ = made(ofEvent, ev, &e.open)
		c.some = true
		e.lose(loss{what: dialect.Made, pointer: "/nodeId", detail: "derived from the event's id"})
	}
	if e.own {
		e.fields = e.visitor.collect(sh, p, c)
	}
	var hidden uint32 // set of fields that are not written
	switch p := p.(type) {
	case *agentevents.AgentEnded:
		c.tokens = tokensOf(p)
		if u := p.Usage; u.OK && u.V.TotalTokens.OK && u.V == (agentevents.Usage{TotalTokens: u.V.TotalTokens}) && !e.keptUnder("/payload/usage") {
			hidden |= 1 << slices.Index(sh.names, `"usage":`)
		}
		if e.madeUp("tokens") {
			hidden |= 1 << fieldCompletedTokens
		}
		if e.madeUp("agentId") && ev.Actor == "" && !nonAgent(ev.AgentID) {
			hidden |= 1 << 0
		}
	case *agentevents.AgentStarted:
		if e.madeUp("parentSpanId") || e.peek("/payload/parentSpanId") != "" { // only the envelope has the parent
			hidden |= 1 << 3
		}
	case *agentevents.MessageCreated:
		hidden |= 1 << fieldMessage
	case *agentevents.ToolReturned:
		if status, other := statusOf(string(p.Status)); other {
			e.lose(loss{what: dialect.Altered, pointer: "/payload/status", detail: "read as " + string(status)})
		}
	}
	if e.own {
		hidden |= e.hide(ev, sh)
	}

	mark := len(dst)
	dst = append(dst, '{')
	inner := shape == sMessageCreated && !e.madeUp("message")
	if inner {
		dst = append(dst, `"message":{`...)
	}
	if !e.own {
		v := &e.visitor
		dst = v.write(dst, e, sh, p, c, hidden)
		if inner {
			dst = append(dst, '}')
		}
		if v.lacking != 0 {
			for _, m := range sh.made {
				if v.lacking&(1<<m.field) != 0 {
					e.madeByReaders(ev, sh, m, v.refs&(1<<m.field) != 0)
				}
			}
		}
		if c.any(sh.lists) {
			dst = e.commonMembers(dst, sh.lists)
		}
		return append(dst, '}')
	}
	return e.ownPayload(dst, sh, mark, hidden, inner)
}

// ownPayload appends the rest of a payload that this package has read: its members
// and the closing brace. The payload begins at mark. With inner the fields are
// members of message.
func (e *Encoder) ownPayload(dst []byte, sh *shape, mark int, hidden uint32, inner bool) []byte {
	c := &e.c
	e.place = append(e.place[:0], "/payload"...)
	if inner {
		e.place = append(e.place, "/message"...)
	}
	var empty uint32 // set of fields that append nothing
	for i, field := range e.fields {
		if i == fieldMessage && sh.kind == agentevents.KindMessageCreated {
			continue // its members are the other fields
		}
		name, start := sh.names[i], len(dst)
		if len(e.kept.as) > 0 {
			if as := e.kept.spelledAs(bare(name)); as != "" && !(as == "message" && isObject(field)) { // readers take an object named message for the message
				name = jsonwire.Quote(as) + ":"
			}
		}
		// Made-up fields are listed by name, also inside message.
		hide := hidden&(1<<i) != 0 || inner && zero(field) && e.madeUp(bare(sh.names[i]))
		dst = e.member(dst, name, field, hide)
		if len(dst) == start && !hide {
			empty |= 1 << i
		}
	}
	e.dropOthers(sh, empty, inner)
	if inner {
		dst = append(e.rest(dst), '}')
		e.place = e.place[:len("/payload")]
		e.dropOthers(sh, empty, false)
	}
	if e.kept.deep || c.any(sh.lists) {
		for i, name := range commonNames {
			if sh.lists&(1<<i) == 0 {
				dst = e.member(dst, name, c.field(i), false)
			}
		}
	}
	dst = e.rest(dst)
	if raw := e.keptRaw("/payload"); raw != "" {
		if whole := string(dst[mark:]); whole == "{" || whole == `{"message":{}` {
			return append(dst[:mark], raw...)
		}
		e.drop("/"+string(Name)+"/~1payload", true) // the event has fields now
	}
	return append(dst, '}')
}

// dropOthers drops extra members at e.place that have a name of an empty field. The
// field had its value from another member of the line, and readers would now take
// the extra member for it. With inner it looks at members of message.
func (e *Encoder) dropOthers(sh *shape, empty uint32, inner bool) {
	if !e.kept.deep {
		return
	}
	for i, name := range sh.names {
		field := i
		if i >= sh.own() {
			field = int(sh.other[i-sh.own()])
		} else if i == fieldMessage && sh.kind == agentevents.KindMessageCreated {
			if inner {
				continue
			}
			field = fieldMessageContent // readers take a message that is not an object for the content
		}
		if empty&(1<<field) == 0 {
			continue
		}
		token := jsonwire.Token(bare(name))
		if m := e.memberHere(token); m >= 0 && !e.used[m] && takes(e.fields[field], e.kept.members[m].raw) {
			e.used[m] = true
			e.drop("/"+string(Name)+"/"+jsonwire.Token(string(e.place)+"/"+token), true)
		}
	}
}

// madeByReaders notes that readers make up an empty field. ref says that the field
// is an AgentRef.
func (e *Encoder) madeByReaders(ev *agentevents.Event, sh *shape, m madeUp, ref bool) {
	if m.from == ofTime {
		return
	}
	if p, ok := ev.Payload.(*agentevents.ToolReturned); ok && m.from == ofCall && !p.OneEvent {
		e.lose(loss{what: dialect.Made, pointer: "/payload/oneEvent", detail: "made up by readers, unless a call of the span is open"})
	}
	pointer := "/payload/" + bare(sh.names[m.field])
	if sh.kind == agentevents.KindMessageCreated {
		pointer = "/payload/message/" + bare(sh.names[m.field])
	}
	if ref {
		pointer += "/agentId"
	}
	e.lose(loss{what: dialect.Made, pointer: pointer, detail: "made up by readers"})
}

// commonMembers appends the common fields, except those in lists.
func (e *Encoder) commonMembers(dst []byte, lists uint16) []byte {
	c := &e.c
	dst = commonText(dst, cAgentID, c.agentID, lists)
	if c.some {
		dst = commonText(dst, cWorkflowID, c.workflowID, lists)
		dst = commonText(dst, cPhase, c.phase, lists)
		dst = commonText(dst, cNodeID, c.nodeID, lists)
		dst = commonText(dst, cNodeRunID, c.nodeRunID, lists)
	}
	if c.step.OK {
		dst = jsonwire.AppendInt(head(dst, commonNames[cStep]), int64(c.step.V))
	}
	if c.some {
		dst = commonText(dst, cParentAgentID, c.parentAgentID, lists)
		dst = commonText(dst, cParentCallID, c.parentCallID, lists)
	}
	dst = commonText(dst, cCausationID, c.causationID, lists)
	if c.marks != 0 {
		dst = e.value(dst, commonNames[cMarks], &c.marks)
	}
	return dst
}

func commonText(dst []byte, i int, text string, lists uint16) []byte {
	if lists&(1<<i) != 0 {
		return dst
	}
	return appendText(dst, commonNames[i], text)
}

// hide returns the set of fields that the encoder leaves out again, because the line
// lacked them and readers make up the same. It notes the empty fields that readers
// make up.
func (e *Encoder) hide(ev *agentevents.Event, sh *shape) (hidden uint32) {
	for i, m := range sh.made {
		field := e.fields[m.field]
		name := bare(sh.names[m.field])
		ref, isRef := field.(*agentevents.AgentRef)
		if lacks(field) {
			e.madeByReaders(ev, sh, m, isRef)
			continue
		}
		if e.guessed(m.from) {
			if e.peek("/payload") == "" {
				continue
			}
			e.madeByReaders(ev, sh, m, isRef) // a payload that is not an object has no place for the field
		}
		if isRef && e.madeUp(name+"/agentId") {
			if value, _ := made(m.from, ev, &e.open); ref.AgentID == value {
				e.hiddenRefs[i&1] = &ref.AgentID
			}
			continue
		}
		if !e.madeUp(name) {
			continue
		}
		switch p := ev.Payload.(type) {
		case *agentevents.ToolReturned:
			tool := p.ToolID
			if m.from == ofCall && e.madeUp("toolId") {
				tool = "" // the decoder found the call without it
			}
			v := *p
			v.ToolID = tool
			as := agentevents.Event{ID: ev.ID, RunID: ev.RunID, SpanID: ev.SpanID, Payload: &v}
			value, alone := made(m.from, &as, &e.open)
			if m.from == ofCall && alone != p.OneEvent {
				continue
			}
			if same(field, value) {
				hidden |= 1 << m.field
				if m.from == ofCall && alone && e.madeUp("oneEvent") {
					hidden |= 1 << slices.Index(sh.names, `"oneEvent":`)
				}
			}
		default:
			if value, _ := made(m.from, ev, &e.open); same(field, value) {
				hidden |= 1 << m.field
			}
		}
	}
	return hidden
}

// guessed reports whether readers would make up a field from something that the
// encoder makes up on this line.
func (e *Encoder) guessed(from source) bool {
	switch from {
	case ofAgent:
		return e.common.Set&(1<<madeActor) != 0
	case ofCall, ofApproval: // depends on the span
		return e.common.Set&(1<<madeSpan) != 0
	}
	return false
}

// same reports whether a field of a type that can be made up has the value.
func same(field any, value string) bool {
	switch v := field.(type) {
	case *agentevents.AgentRef:
		return *v == agentevents.AgentRef{AgentID: value}
	case *int64:
		var n int64
		set(&n, value)
		return *v == n
	case *string:
		return *v == value
	case *agentevents.ToolStatus:
		return string(*v) == value
	}
	return false
}

// member appends a member of the object at e.place, unless it is hidden or absent.
// It writes the spelling of the line if that still says the same.
func (e *Encoder) member(dst []byte, name string, field any, hidden bool) []byte {
	if e.own && !hidden && len(e.kept.as) > 0 {
		if ref, ok := field.(*string); ok && (ref == e.hiddenRefs[0] || ref == e.hiddenRefs[1]) {
			hidden = true
		} else if zero(field) && name != `"message":` { // the content may have this name; in /made it means the object
			hidden = e.madeUp(string(append(append(e.place, '/'), jsonwire.Token(bare(name))...)[len("/payload/"):]))
		}
	}
	if !e.own || !e.kept.deep {
		if hidden {
			return dst
		}
		return e.value(dst, name, field)
	}
	raw := e.keptMember(bare(name))
	if !hidden && (raw == "" || !says(field, raw)) {
		mark := len(dst)
		if dst = e.value(dst, name, field); len(dst) > mark {
			if raw != "" { // the field has changed
				e.drop("/"+string(Name)+"/"+jsonwire.Token(string(e.place)+"/"+jsonwire.Token(bare(name))), true)
			}
			return dst
		}
		if raw != "" && sets(field, raw) { // the field is cleared
			e.drop("/"+string(Name)+"/"+jsonwire.Token(string(e.place)+"/"+jsonwire.Token(bare(name))), true)
			return dst
		}
	}
	if raw != "" {
		dst = append(head(dst, name), raw...)
	}
	return dst
}

// zero reports whether a field is zero that the encoder writes even if it is zero.
func zero(field any) bool {
	switch v := field.(type) {
	case *int:
		return *v == 0
	case *int64:
		return *v == 0
	case *float64:
		return *v == 0
	case *time.Duration:
		return *v == 0
	case *[]string:
		return len(*v) == 0
	case *agentevents.JSON:
		return *v == "" || *v == "null" // the native format writes null for an absent value
	}
	return false
}

// object appends a member that is an object.
func (e *Encoder) object(dst []byte, name string, names []string, fields []any) []byte {
	dst = append(head(dst, name), '{')
	mark := len(e.place)
	if e.own {
		e.place = append(append(e.place, '/'), jsonwire.Token(bare(name))...)
	}
	for i, field := range fields {
		dst = e.member(dst, names[i], field, false)
	}
	if e.own {
		dst = e.rest(dst)
		e.place = e.place[:mark]
	}
	return append(dst, '}')
}

func (e *Encoder) usageMap(dst []byte, name string, m map[string]agentevents.Usage) []byte {
	dst = append(head(dst, name), '{')
	if !e.own {
		e.place = e.place[:0] // unused without extra members
	}
	mark := len(e.place)
	e.place = append(append(e.place, '/'), jsonwire.Token(bare(name))...)
	for _, model := range slices.Sorted(maps.Keys(m)) {
		u := m[model]
		f := usageFields(&u)
		at := len(e.place)
		e.place = append(append(e.place, '/'), jsonwire.Token(model)...)
		dst = append(head(dst, jsonwire.Quote(model)+":"), '{')
		for i, field := range f {
			dst = e.member(dst, usageNames[i], field, false)
		}
		if e.own {
			dst = e.rest(dst)
		}
		dst = append(dst, '}')
		e.place = e.place[:at]
	}
	e.place = e.place[:mark]
	return append(dst, '}')
}
