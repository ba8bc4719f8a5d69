package openharness

import (
	"strings"
	"time"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect"
	"github.com/agentevents/agentevents/internal/jsonwire"
)

// head appends the start of a line and its envelope, and notes what the line does not
// say of the event's envelope.
func (e *Encoder) head(dst []byte, start string, ev *agentevents.Event, v int) []byte {
	dst = append(dst, start...)
	switch {
	case v == vNodeSkipped:
		dst = e.nodeID(dst, ev)
		dst = optional(dst, `,"runId":`, ev.NodeRunID)
		e.drop("/agentId", ev.AgentID != "")
	case variants[v].members&node != 0:
		dst = e.nodeID(dst, ev)
		run := ev.NodeRunID
		if run == "" {
			run = execution(ev)
			e.common.Set |= 1 << madeExecution
			if ev.AgentID != "" {
				e.common.Set |= 1 << lostAgent
			}
		} else {
			e.drop("/agentId", ev.AgentID != "")
		}
		dst = text(dst, `,"runId":`, run)
	default:
		e.drop("/agentId", ev.AgentID != "")
		e.drop("/nodeId", ev.NodeID != "")
		e.drop("/nodeRunId", ev.NodeRunID != "")
	}
	dst = e.appendTime(append(dst, `,"timestamp":`...), ev.Time)
	e.envelope(ev)
	return dst
}

func (e *Encoder) nodeID(dst []byte, ev *agentevents.Event) []byte {
	if ev.NodeID == "" {
		e.common.Set |= 1 << madeNode
	}
	return text(dst, `,"nodeId":`, nodeOf(ev))
}

// envelope notes the losses of members that no line has.
func (e *Encoder) envelope(ev *agentevents.Event) {
	if len(ev.SessionID)|len(ev.TaskID)|len(ev.WorkflowID)|len(ev.Phase) != 0 {
		if ev.SessionID != "" {
			e.common.Set |= 1 << lostSession
		}
		e.drop("/taskId", ev.TaskID != "")
		e.drop("/workflowId", ev.WorkflowID != "")
		e.drop("/phase", ev.Phase != "")
	}
	if len(ev.Actor)|len(ev.ParentAgentID)|len(ev.ParentCallID) != 0 {
		e.drop("/actor", ev.Actor != "")
		e.drop("/parentAgentId", ev.ParentAgentID != "")
		e.drop("/parentCallId", ev.ParentCallID != "")
	}
	if len(ev.TraceID)|len(ev.SpanID)|len(ev.ParentSpanID)|len(ev.CausationID) != 0 {
		e.drop("/traceId", ev.TraceID != "")
		e.drop("/spanId", ev.SpanID != "")
		e.drop("/parentSpanId", ev.ParentSpanID != "")
		e.drop("/causationId", ev.CausationID != "")
	}
	if ev.Step.OK {
		e.common.Set |= 1 << lostStep
	}
	e.drop("/marks", ev.Marks != 0)
	if ev.SchemaVersion != agentevents.SchemaVersion {
		e.drop("/schemaVersion", ev.SchemaVersion != "")
	}
	for name := range ev.Extras() {
		if name != string(Name) {
			e.drop("/"+jsonwire.Token(name), true)
		}
	}
	if ev.PayloadExtra() {
		e.lose(dialect.Dropped, "/payload", "members that no field has")
	}
	if e.kept != "" && e.kept[0] != '{' {
		e.drop("/"+string(Name), true)
	}
}

func (e *Encoder) appendTime(dst []byte, t time.Time) []byte {
	if t.IsZero() {
		e.lose(dialect.Made, "/timestamp", "the first moment of the year 1")
	}
	if t.Nanosecond()%1e6 == 0 {
		return jsonwire.AppendInt(dst, t.UnixMilli())
	}
	if y := t.Year(); y > 1700 && y < 2200 {
		return jsonwire.AppendMillis(dst, time.Duration(t.UnixNano()))
	}
	e.lose(dialect.Altered, "/timestamp", "written in whole milliseconds")
	return jsonwire.AppendInt(dst, t.UnixMilli())
}

func text(dst []byte, name, value string) []byte {
	return jsonwire.AppendString(append(dst, name...), value)
}

func optional(dst []byte, name, value string) []byte {
	if value == "" {
		return dst
	}
	return jsonwire.AppendString(append(dst, name...), value)
}

func count(dst []byte, name string, n agentevents.Opt[int64]) []byte {
	if !n.OK {
		return dst
	}
	return jsonwire.AppendInt(append(dst, name...), n.V)
}

// json appends a member with raw JSON, unless it is empty.
func (e *Encoder) json(dst []byte, name string, ev *agentevents.Event, j agentevents.JSON, pointer string) ([]byte, error) {
	if j == "" {
		return dst, nil
	}
	raw, err := jsonwire.Compact(string(j))
	if err != nil {
		return dst, e.refuse(ev, agentevents.RuleFieldJSON, pointer, err.Error())
	}
	return append(append(dst, name...), raw...), nil
}

// nested appends the extra members of the inner object whose pointer, with a slash, is
// prefix. It leaves out those with one of the names of the document.
func (e *Encoder) nested(dst []byte, prefix string, names []string) []byte {
	for key, raw := range jsonwire.Members(e.kept) {
		if token, ok := strings.CutPrefix(key, prefix); ok && canonical(token) {
			dst = e.nestedMember(dst, key, token, raw, names)
		}
	}
	return dst
}

// nestedMember appends an extra member of an inner object, unless the document has its
// name in names. key is its name in e.kept, and token the last part of that.
func (e *Encoder) nestedMember(dst []byte, key, token, raw string, names []string) []byte {
	name := jsonwire.Untoken(token)
	if named(names, name) {
		e.dropKept(key)
		return dst
	}
	dst = append(text(append(dst, ','), "", name), ':')
	return append(dst, raw...)
}

// A keptMember is an extra member of an inner object: its name in e.kept, the last
// token of that, and its value.
type keptMember struct{ key, token, raw string }

const modelUsage = "/modelUsage/"

// ofModels returns the extra members of the objects in modelUsage, by the token of
// their model. It makes one pass, because a line may have many models and many extra
// members; nested makes a pass for each model.
func (e *Encoder) ofModels() map[string][]keptMember {
	if e.kept == "" {
		return nil
	}
	of := map[string][]keptMember{}
	for key, raw := range jsonwire.Members(e.kept) {
		rest, ok := strings.CutPrefix(key, modelUsage)
		if !ok {
			continue
		}
		if model, token, ok := strings.Cut(rest, "/"); ok && canonical(token) {
			of[model] = append(of[model], keptMember{key, token, raw})
		}
	}
	return of
}

// named reports whether name is one of names, which have quotes and colons.
func named(names []string, name string) bool {
	for _, n := range names {
		if bare(n) == name {
			return true
		}
	}
	return false
}

// canonical reports whether a token of a pointer has the decoder's spelling. Another
// spelling may stand for a name that is already there.
func canonical(token string) bool {
	return !strings.Contains(token, "/") && (!strings.Contains(token, "~") || jsonwire.Token(jsonwire.Untoken(token)) == token)
}

// dropKept notes that an extra member has no place on the line.
func (e *Encoder) dropKept(key string) { e.drop("/"+string(Name)+"/"+jsonwire.Token(key), true) }

// rest appends the extra members of the line itself.
func (e *Encoder) rest(dst []byte, ev *agentevents.Event, v int) []byte {
	for key, raw := range jsonwire.Members(e.kept) {
		name := key
		if pointer, ok := strings.CutPrefix(key, "/"); ok {
			if hasObject(pointer, ev, v) {
				continue // nested appends it
			}
			// Otherwise only a name that begins with a slash is a pointer.
			if name = jsonwire.Untoken(pointer); !strings.HasPrefix(name, "/") || !canonical(pointer) {
				e.dropKept(key)
				continue
			}
		}
		if m := memberNamed(name); m > 0 && (base | variants[v].members).has(m) {
			if m != mFlowName || v != vFlowComplete || raw[0] != '"' { // flowName appends the name
				e.dropKept(key)
			}
			continue
		}
		dst = append(text(append(dst, ','), "", name), ':')
		dst = append(dst, raw...)
	}
	return dst
}

// hasObject reports whether the line has the inner object that a pointer leads into. The
// pointer comes without its first slash.
func hasObject(pointer string, ev *agentevents.Event, v int) bool {
	in, rest, inside := strings.Cut(pointer, "/")
	switch in {
	case "usage":
		return v == vComplete && inside && canonical(rest)
	case "patch":
		return v == vStatePatch && inside && canonical(rest)
	case "command":
		return v == vCommand && inside && canonical(rest)
	case "modelUsage":
		model, rest, ok := strings.Cut(rest, "/")
		if p, ended := ev.Payload.(*agentevents.AgentEnded); ok && ended && v == vComplete && canonical(model) && canonical(rest) {
			_, ok = p.ModelUsage[jsonwire.Untoken(model)]
			return ok
		}
	}
	return false
}
