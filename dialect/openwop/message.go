package openwop

import (
	"errors"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/internal/jsonwire"
)

// OpenWOP also uses a ConversationMessage outside of events, in channels and
// snapshots (RFC 0002, section G).

// ParseMessage reads a ConversationMessage or a ConversationTurn. It keeps extra
// members and checks only the types of the others.
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

// AppendMessage appends a ConversationMessage as one JSON object. Members are in
// the order of the RFC, and the extra members that were read follow. If the
// message cannot be written, it appends nothing and returns an error.
func AppendMessage(dst []byte, m agentevents.ConversationMessage) ([]byte, error) {
	if m.Content == "" {
		m.Content = "null"
	}
	return m.AppendJSON(dst)
}
