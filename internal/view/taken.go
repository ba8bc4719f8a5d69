package view

import (
	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/internal/jsonwire"
)

// TakenBack is the word for a message, an answer or a turn that was retracted.
const TakenBack = "taken back"

// Taken is the part of a run that was taken back, by its texts. A nil Taken is empty.
type Taken struct {
	texts map[text]bool
}

// A text is one of an agent or a person.
type text struct{ from, text string }

// Retracted returns the part of a run that was taken back, or nil.
func Retracted(s *agentevents.RunSnapshot) *Taken {
	if len(s.RetractedMessages) == 0 {
		return nil
	}
	t := &Taken{texts: map[text]bool{}}
	for i := range s.RetractedMessages {
		t.texts[textOf(&s.RetractedMessages[i])] = true
	}
	for i := range s.Messages {
		delete(t.texts, textOf(&s.Messages[i]))
	}
	return t
}

func textOf(m *agentevents.ConversationMessage) text {
	return text{m.From, jsonwire.Text(string(m.Content))}
}

// Text reports whether a text of an agent or a person was taken back, and no message of the same text
// stands.
func (t *Taken) Text(from, said string) bool {
	return t != nil && said != "" && t.texts[text{from, said}]
}
