package openwop

import (
	"github.com/agentevents/agentevents/dialect"
	"github.com/agentevents/agentevents/internal/jsonwire"
)

// MessageID returns the id of a message (section G), the same for the same
// message in every replay of the run: it is made of the run, the sender, the
// number of the sender's messages before it, and the content. content is the
// message's JSON text as it was sent.
func MessageID(runID, from string, number int, content string) string {
	text := jsonwire.AppendString(nil, runID)
	text = jsonwire.AppendString(text, from)
	text = append(jsonwire.AppendInt(text, int64(number)), content...)
	return dialect.DerivedID(string(text), number, 0)
}
