package agui

import (
	"slices"
	"strconv"
	"strings"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/internal/jsonwire"
)

// texts are the members that are texts on each line that has one.
var texts = strings.Fields(`name source code description protocolVersion threadId runId parentRunId
	parentMessageId subagentRunId parentSubagentRunId parentToolCallId messageId toolCallId toolCallName
	activityType subtype entityId encryptedValue role message delta stepName`)

// shape returns the first character of the value of a member: " { or [, ! for any value but null,
// and 0 for any value.
func shape(typ, name string) byte {
	switch {
	case name == "messages", name == "patch", name == "usage", name == "delta" && typ == "STATE_DELTA":
		return '['
	case slices.Contains(texts, name):
		return '"'
	case name == "metadata", name == "input", name == "outcome", name == "content" && typ == "ACTIVITY_SNAPSHOT":
		return '{'
	case name == "result":
		return '!'
	}
	return 0
}

// check checks a line against the rules of the protocol.
func (d *Decoder) check(ev *agentevents.Event, line string) error {
	r := &d.r
	refuse := func(rule agentevents.Rule, pointer, detail string) error {
		return r.Refused(&agentevents.RuleError{Rule: rule, Pointer: pointer, Detail: detail})
	}
	if err := r.Check(); err != nil {
		return err
	}
	if !types[r.Type] {
		return refuse(RuleType, "/type", jsonwire.Word(r.Type)+" is not a type of the protocol")
	}
	needs := others[r.Type]
	if strings.HasPrefix(r.Type, "SUBAGENT") {
		needs = "subagentRunId"
	}
	for name := range strings.FieldsSeq(needs) {
		if !jsonwire.HasMember(line, name) {
			return refuse(RuleRequired, "/"+name, "is required")
		}
	}
	for name, raw := range jsonwire.Members(line) {
		if want := shape(r.Type, name); want == '!' && raw == "null" || want != 0 && want != '!' && raw[0] != want {
			return refuse(RuleValue, "/"+name, "is "+jsonwire.Describe(raw))
		}
		if name == "role" && r.Type == "TOOL_CALL_RESULT" && raw != `"tool"` {
			return refuse(RuleValue, "/role", jsonwire.Word(jsonwire.Text(raw))+" is not tool")
		}
		if name == patchOn[r.Type] {
			if at, detail := badPatch(raw); detail != "" {
				return refuse(RuleValue, "/"+name+at, detail)
			}
		}
		for _, need := range inputNeeds {
			if name == "input" && !jsonwire.HasMember(raw, need) {
				return refuse(RuleRequired, "/input/"+need, "is required")
			}
		}
	}
	if raw := jsonwire.Member(line, "outcome"); raw != "" && strings.HasPrefix(r.Type, "RUN") {
		word := jsonwire.Text(jsonwire.Member(raw, "type"))
		if !slices.Contains([]string{"success", outcomeInterrupt, outcomeCancelled}, word) {
			return refuse(RuleValue, "/outcome/type", jsonwire.Word(word)+" is not one of success, interrupt, cancelled")
		}
		if word == outcomeInterrupt && !strings.HasPrefix(jsonwire.Member(raw, "interrupts"), "[{") {
			return refuse(RuleRequired, "/outcome/interrupts", "has none")
		}
	}
	if detail := d.order(ev, line); detail != "" {
		return refuse(RuleOrder, "/type", detail)
	}
	if d.patch.refused {
		return refuse(RuleState, "/delta"+d.patch.at, d.patch.fault)
	}
	return nil
}

// patchOn has the member with a JSON Patch by the type of the line, and operations the words
// of RFC 6902.
var (
	patchOn    = map[string]string{"STATE_DELTA": "delta", "ACTIVITY_DELTA": "patch"}
	operations = []string{"add", "remove", "replace", "move", "copy", "test"}
)

// badPatch returns the place and the description of the first part of a JSON Patch that RFC 6902
// does not allow, or "".
func badPatch(list string) (at, detail string) {
	i := 0
	for raw := range jsonwire.Elements(list) {
		place := "/" + strconv.Itoa(i)
		if i++; !jsonwire.IsObject(raw) {
			return place, "is " + jsonwire.Describe(raw)
		}
		if op := jsonwire.Member(raw, "op"); !strings.HasPrefix(op, `"`) || !slices.Contains(operations, jsonwire.Text(op)) {
			return place + "/op", jsonwire.Word(jsonwire.Text(op)) + " is not one of " + strings.Join(operations, ", ")
		}
		if path := jsonwire.Member(raw, "path"); !strings.HasPrefix(path, `"`) {
			return place + "/path", "is not a text"
		}
	}
	return "", ""
}

// order returns the error of a line that stands in the wrong place, or "".
func (d *Decoder) order(ev *agentevents.Event, line string) string {
	r, s := &d.r, &d.s
	switch {
	case r.Type == "RUN_STARTED" && s.run != "" && !s.over:
		return "the run " + jsonwire.BriefName(s.run) + " has not ended"
	case r.Type == "RUN_STARTED", r.Type == "RUN_ERROR" && !s.over:
		return ""
	case s.run == "":
		return "a stream begins with RUN_STARTED"
	case s.over:
		return "the run has ended; only RUN_STARTED may follow"
	}
	going := func(key string) (open, known bool) { open, known = s.going[key]; return }
	switch {
	case r.Type == "RUN_FINISHED":
		if ev.RunID != s.run {
			return "names another run than RUN_STARTED"
		}
		for _, b := range s.open {
			return "the block " + jsonwire.BriefName(b.id) + " is open"
		}
		for _, open := range s.steps {
			for name := range open {
				return "the step " + jsonwire.BriefName(name) + " is open"
			}
		}
		for key, open := range s.going {
			if open {
				return "the sub-agent or reasoning " + jsonwire.BriefName(strings.TrimPrefix(key, "span \x00")) + " is open"
			}
		}
	case strings.HasPrefix(r.Type, "STEP_"):
		name := jsonwire.Text(jsonwire.Member(line, "stepName"))
		if open := s.steps[ev.AgentID][name]; open == (r.Type == "STEP_STARTED") {
			return "the step " + jsonwire.BriefName(name) + is(open)
		}
	case r.Type == "REASONING_START", r.Type == "REASONING_END":
		name := jsonwire.Text(jsonwire.Member(line, "messageId"))
		if open, _ := going("span \x00" + name); open == (r.Type == "REASONING_START") {
			return "the reasoning " + jsonwire.BriefName(name) + is(open)
		}
		s.going["span \x00"+name] = r.Type == "REASONING_START"
	case strings.HasPrefix(r.Type, "SUBAGENT_"):
		if open, known := going(ev.AgentID); (r.Type == "SUBAGENT_STARTED") == known || known && !open {
			return "the sub-agent " + jsonwire.BriefName(ev.AgentID) + is(open)
		}
		if _, known := going(ev.ParentAgentID); ev.ParentAgentID != "" && !known {
			return "the parent " + jsonwire.BriefName(ev.ParentAgentID) + " has not started"
		}
	case strings.HasSuffix(r.Type, "_CHUNK"):
		if typ, id, _ := blockOf(ev.Payload); d.chunk == nil && (*id == "" || typ == call && d.tool == "") {
			return "the first chunk does not name the message or call that it begins"
		}
	case r.Row != nil && r.Type != "CUSTOM":
		typ, id, _ := blockOf(ev.Payload)
		if id == nil {
			break
		}
		_, starts := opens[r.Type]
		b := s.open[string(typ)+*id]
		tag := jsonwire.Member(line, "subagentRunId")
		switch {
		case starts == (b != nil):
			return "the block " + jsonwire.BriefName(*id) + is(b != nil)
		case b != nil && tag != "" && tag != b.agent:
			return "the block " + jsonwire.BriefName(*id) + " is another agent's"
		}
	}
	return ""
}

func is(open bool) string {
	if open {
		return " is open"
	}
	return " is not open"
}
