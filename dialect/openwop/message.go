package openwop

import (
	"bytes"
	"errors"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/internal/jsonwire"
)

// ConversationMessage is a record of its own in OpenWOP (RFC 0002, section G),
// which stands in channels and snapshots.

const (
	messageStart = `"payload":{"message":`
	messageTail  = `}}`
)

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
	return appendMessage(dst, &agentevents.MessageCreated{Message: m})
}

// appendMessage is AppendMessage for a payload that has nothing but a message,
// whose content it may set.
func appendMessage(dst []byte, p *agentevents.MessageCreated) ([]byte, error) {
	if p.Message.Content == "" {
		p.Message.Content = "null"
	}
	start := len(dst)
	ev := agentevents.Event{Payload: p}
	line, err := ev.AppendJSON(dst)
	if err != nil {
		return dst, err
	}
	head := bytes.Index(line[start:], []byte(messageStart))
	if head < 0 || !bytes.HasSuffix(line, []byte(messageTail)) {
		return dst, errors.New("openwop: not a message")
	}
	n := copy(line[start:], line[start+head+len(messageStart):len(line)-len(messageTail)])
	return line[:start+n], nil
}
