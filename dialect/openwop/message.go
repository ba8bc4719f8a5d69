package openwop

import (
	"errors"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/internal/jsonwire"
)

// ConversationMessage is a record of its own in OpenWOP (RFC 0002, section G),
// which stands in channels and snapshots.

// ParseMessage reads a ConversationMessage, or a ConversationTurn. Members
// that it does not know are kept. Nothing but the types of members is checked.
func ParseMessage(text []byte) (agentevents.ConversationMessage, error) {
	var m agentevents.ConversationMessage
	if err := m.UnmarshalJSON(text); err != nil {
		var le *agentevents.LineError
		if errors.As(err, &le) {
			return agentevents.ConversationMessage{}, &jsonwire.SyntaxError{Offset: le.Column, Msg: le.Err.Error()}
		}
		return agentevents.ConversationMessage{}, err
	}
	return m, nil
}

// AppendMessage appends a ConversationMessage as one JSON object, with the
// members in the order of the RFC and the members it was read with. It appends
// nothing and returns an error when the message cannot be written.
func AppendMessage(dst []byte, m agentevents.ConversationMessage) ([]byte, error) {
	if m.Content == "" {
		m.Content = "null"
	}
	return m.AppendJSON(dst)
}
