package multiagent

import (
	"strconv"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect"
)

// A madeUp is a field that the decoder never leaves empty: a text, an agent or a
// number.
type madeUp struct {
	name   string
	text   *string
	ref    *agentevents.AgentRef // text is its agentId
	number *int64
	from   source
}

// A source is what the value of a madeUp is made from.
type source uint8

const (
	ofEvent    source = iota // derived from the event's id
	ofCall                   // the open call of the span; else derived from the event's id
	ofTool                   // the tool of the open call; else the word unknown
	ofApproval               // the open approval of the span; else derived from the event's id
	ofAgent                  // the agent, or the actor; else the word unknown
	ofError                  // error if the payload has an error; else ok
	ofTime                   // the event's time in milliseconds
	nobody                   // the word unknown
)

// unknownWord stands for a required word that the line lacks.
const unknownWord = "unknown"

// maxMade is the highest number of fields of an event that may be made up.
const maxMade = 3

// madeIn appends the fields of an event that the decoder makes up if a line lacks
// them.
func madeIn(ev *agentevents.Event, list []madeUp) []madeUp {
	text := func(name string, field *string, from source) {
		list = append(list, madeUp{name: name, text: field, from: from})
	}
	ref := func(name string, field *agentevents.AgentRef, from source) {
		list = append(list, madeUp{name: name, text: &field.AgentID, ref: field, from: from})
	}
	switch p := ev.Payload.(type) {
	case *agentevents.NodeStarted:
		text("nodeId", &ev.NodeID, ofEvent)
	case *agentevents.MessageCreated:
		text("messageId", &p.Message.MessageID, ofEvent)
		text("from", &p.Message.From, ofAgent)
		list = append(list, madeUp{name: "ts", number: &p.Message.TS, from: ofTime})
	case *agentevents.ToolCalled:
		text("callId", &p.CallID, ofEvent)
		text("toolId", &p.ToolID, nobody)
	case *agentevents.ToolReturned:
		text("callId", &p.CallID, ofCall)
		text("toolId", &p.ToolID, ofTool)
		text("status", (*string)(&p.Status), ofError)
	case *agentevents.HandoffRequested:
		ref("from", &p.From, ofAgent)
		ref("to", &p.To, nobody)
	case *agentevents.HandoffAccepted:
		ref("from", &p.From, nobody)
		ref("to", &p.To, ofAgent)
	case *agentevents.BlackboardItemCreated:
		text("itemId", &p.ItemID, ofEvent)
		text("itemType", &p.ItemType, nobody)
	case *agentevents.ApprovalRequested:
		text("approvalId", &p.ApprovalID, ofEvent)
	case *agentevents.ApprovalGranted:
		text("approvalId", &p.ApprovalID, ofApproval)
	case *agentevents.BudgetExceeded:
		text("budget", &p.Budget, nobody)
	}
	return list
}

// empty reports whether the event does not say the field.
func (f *madeUp) empty() bool {
	if f.number != nil {
		return *f.number == 0
	}
	return *f.text == ""
}

func (f *madeUp) set(value string) {
	if f.number != nil {
		*f.number, _ = strconv.ParseInt(value, 10, 64)
		return
	}
	*f.text = value
}

// is reports whether the field says the value and no more.
func (f *madeUp) is(value string) bool {
	switch {
	case f.number != nil:
		return strconv.FormatInt(*f.number, 10) == value
	case f.ref != nil:
		return *f.ref == agentevents.AgentRef{AgentID: value}
	}
	return *f.text == value
}

// pointer returns the native pointer of the field.
func (f *madeUp) pointer(ev *agentevents.Event) string {
	switch ev.Payload.(type) {
	case *agentevents.NodeStarted:
		return "/" + f.name
	case *agentevents.MessageCreated:
		return "/payload/message/" + f.name
	}
	if f.ref != nil {
		return "/payload/" + f.name + "/agentId"
	}
	return "/payload/" + f.name
}

// made returns the value of a field that the line of ev lacks. alone reports that no
// open call matches.
func made(from source, ev *agentevents.Event, open *openThings) (value string, alone bool) {
	switch from {
	case ofCall:
		if t := open.latest(ev, false, ev.Payload.(*agentevents.ToolReturned).ToolID); t != nil {
			return t.id, false
		}
		return dialect.DerivedID(ev.ID, 0, 0), true
	case ofApproval:
		if t := open.latest(ev, true, ""); t != nil {
			return t.id, false
		}
		return dialect.DerivedID(ev.ID, 0, 0), false
	case ofEvent:
		return dialect.DerivedID(ev.ID, 0, 0), false
	case ofTool:
		if tool := open.tool(ev.RunID, ev.Payload.(*agentevents.ToolReturned).CallID); tool != "" {
			return tool, false
		}
	case ofAgent:
		if ev.AgentID != "" {
			return ev.AgentID, false
		}
		if ev.Actor != "" {
			return ev.Actor, false
		}
	case ofError:
		if ev.Payload.(*agentevents.ToolReturned).Error.OK {
			return string(agentevents.ToolStatusError), false
		}
		return string(agentevents.ToolStatusOK), false
	case ofTime:
		return strconv.FormatInt(ev.Time.UnixMilli(), 10), false
	}
	return unknownWord, false
}
