package openwop

import (
	"github.com/agentevents/agentevents/dialect"
	"github.com/agentevents/agentevents/internal/jsonwire"
)

// MessageID returns the id of a message (section G). It is the same in every
// replay of the run: it derives from the run, the sender, the number of the
// sender's earlier messages and the content. content is the message's JSON text
// as it was sent.
func MessageID(runID, from string, number int, content string) string {
	text := jsonwire.AppendString(nil, runID)
	text = jsonwire.AppendString(text, from)
	text = append(jsonwire.AppendInt(text, int64(number)), content...)
	return dialect.DerivedID(string(text), number, 0)
}
