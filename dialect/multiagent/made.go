package multiagent

import (
	"cmp"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect"
	"github.com/agentevents/agentevents/dialect/internal/engine"
	"github.com/agentevents/agentevents/internal/endword"
	"github.com/agentevents/agentevents/internal/jsonwire"
)

// A madeUp is a member that the decoder makes up if a line lacks it, because its field,
// a text or an agent, is never empty.
type madeUp struct {
	name    string
	from    source
	member  *engine.Member
	agent   bool   // the field is an agent
	inside  string // the agent's id, as in /made
	pointer string // native, of the text
}

// A source is the origin of the value of a madeUp.
type source uint8

const (
	ofEvent    source = iota // derived from the event's id
	ofCall                   // the open call of the span; else derived from the event's id
	ofTool                   // the tool of the open call; else the word unknown
	ofApproval               // the open approval; else derived from the event's id
	ofHandoff                // the id of the open handoff; else nothing
	ofSender                 // who hands over in the open handoff; else the word unknown
	ofAgent                  // the agent, or the actor; else the word unknown
	ofError                  // the type's word; else the payload's success, ok or isError; else error if it has one, or ok
	ofFlag                   // the word of the type; else success or failed, by the same members; else nothing
	nobody                   // the word unknown
)

// unknownWord stands for a required word that the line lacks.
const unknownWord = "unknown"

// madeUps are the members of each kind, in the order in which they are made up.
var madeUps = map[agentevents.Kind][]madeUp{
	agentevents.KindNodeStarted:    {{name: "nodeId", from: ofEvent}},
	agentevents.KindMessageCreated: {{name: "messageId", from: ofEvent}, {name: "from", from: ofAgent}},
	agentevents.KindToolCalled:     {{name: "callId", from: ofEvent}, {name: "toolId", from: nobody}},
	agentevents.KindToolReturned: {{name: "callId", from: ofCall}, {name: "toolId", from: ofTool},
		{name: "status", from: ofError}},
	agentevents.KindHandoffRequested: {{name: "from", from: ofAgent}, {name: "to", from: nobody}},
	agentevents.KindHandoffAccepted: {{name: "handoffId", from: ofHandoff}, {name: "from", from: ofSender},
		{name: "to", from: ofAgent}},
	agentevents.KindBlackboardItemCreated: {{name: "itemId", from: ofEvent}, {name: "itemType", from: nobody}},
	agentevents.KindApprovalRequested:     {{name: "approvalId", from: ofEvent}},
	agentevents.KindApprovalGranted:       {{name: "approvalId", from: ofApproval}},
	agentevents.KindApprovalRejected:      {{name: "approvalId", from: ofApproval}},
	agentevents.KindBudgetExceeded:        {{name: "budget", from: nobody}},
	agentevents.KindAgentEnded:            {{name: "status", from: ofFlag}},
	agentevents.KindSessionCompleted:      {{name: "status", from: ofFlag}},
}

// madeIn returns the members of a row that the decoder makes up.
func madeIn(row *engine.Row) []madeUp {
	list := madeUps[row.Kind]
	for i := range list {
		f := &list[i]
		f.member = row.Member(f.name)
		f.inside, f.pointer = f.name+"/agentId", f.member.Pointer()
		field := f.member.Field(&agentevents.Event{Payload: agentevents.NewPayload(row.Kind)})
		if _, f.agent = field.(*agentevents.AgentRef); f.agent {
			f.pointer += "/agentId"
		}
	}
	return list
}

// text returns the text that is never empty: the field, or the id of the agent.
func (f *madeUp) text(ev *agentevents.Event) *string {
	at := f.member.Field(ev)
	if agent, ok := at.(*agentevents.AgentRef); ok {
		return &agent.AgentID
	}
	return at.(*string)
}

// made returns the value of a field that the line of ev lacks. alone reports that no
// open call matches. extra are the members of the line that no field has, as they are kept, and
// word is the word for an end that its type has: see wordOf.
func made(from source, ev *agentevents.Event, open *openThings, extra, word string) (value string, alone bool) {
	p, _ := ev.Payload.(*agentevents.ToolReturned)
	switch from {
	case ofCall:
		if t := open.call(ev, p.ToolID); t != nil {
			return t.id, false
		}
		return dialect.DerivedID(ev.ID, 0, 0), true
	case ofApproval:
		if t := open.approval(ev); t != nil {
			return t.id, false
		}
		return dialect.DerivedID(ev.ID, 0, 0), false
	case ofEvent:
		return dialect.DerivedID(ev.ID, 0, 0), false
	case ofHandoff:
		if t := open.handoff(ev); t != nil {
			value = t.id
		}
		return value, false
	case ofSender:
		if t := open.handoff(ev); t != nil {
			value = t.agent
		}
	case ofTool:
		if t := open.find(aCall, ev.RunID, p.CallID, ev.AgentID); t != nil {
			value = t.other
		}
	case ofAgent:
		value = cmp.Or(ev.AgentID, ev.Actor)
	case ofError:
		value = string(agentevents.ToolStatusOK)
		if p.Error.OK {
			value = string(agentevents.ToolStatusError)
		}
		if success, said := succeeded(extra); said {
			value = string(statuses[success])
		}
		if word != "" {
			value = statusOf(word)
		}
	case ofFlag:
		if word != "" {
			return word, false
		}
		if success, said := succeeded(extra); said {
			value = endWords[success]
		}
		return value, false
	}
	return cmp.Or(value, unknownWord), false
}

// endWords are the words for an end that a flag tells.
var endWords = map[endword.Meaning]string{endword.Succeeded: "success", endword.Failed: "failed"}

// succeeded returns how a payload ended by its members without a field, if one of these tells it.
func succeeded(extra string) (how endword.Meaning, said bool) {
	for name, raw := range jsonwire.Members(extra) {
		for _, m := range [...]struct{ name, ok, failed string }{
			{"/payload/success", "true", "false"}, {"/payload/ok", "true", "false"}, {"/payload/succeeded", "true", "false"}, {"/payload/failed", "false", "true"}, {"/payload/isError", "false", "true"}, {"/payload/is_error", "false", "true"},
		} {
			switch {
			case name != m.name:
			case raw == m.failed:
				return endword.Failed, true
			case raw == m.ok:
				return endword.Succeeded, true
			}
		}
	}
	return endword.Unknown, false
}
