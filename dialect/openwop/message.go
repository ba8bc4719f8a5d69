package openwop

import (
	"cmp"
	"errors"
	"slices"
	"strings"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect"
	"github.com/agentevents/agentevents/dialect/internal/wire"
	"github.com/agentevents/agentevents/internal/jsonwire"
)

// OpenWOP also uses a ConversationMessage outside of events, in channels and
// snapshots (RFC 0002, section G).

// ParseMessage reads a ConversationMessage or a ConversationTurn. It keeps extra
// members and checks only the types of the others.
func ParseMessage(text []byte) (agentevents.ConversationMessage, error) {
	var m agentevents.ConversationMessage
	var le *agentevents.LineError
	if err := m.UnmarshalJSON(text); errors.As(err, &le) { // as every error of it
		return m, &jsonwire.SyntaxError{Offset: le.Column, Msg: le.Err.Error()}
	}
	return m, nil
}

// AppendMessage appends a ConversationMessage as one JSON object. Members are in
// the order of the RFC, and the extra members that were read follow. If the
// message cannot be written, it appends nothing and returns an error.
func AppendMessage(dst []byte, m agentevents.ConversationMessage) ([]byte, error) {
	m.Content = cmp.Or(m.Content, "null")
	return m.AppendJSON(dst)
}

// MessageChannel is the channel of messages ([agentevents.MessageCreated]): RFC
// 0002, section G.
const MessageChannel = "messages"

// Reducers of a channel.written that appends a message. The schemas do not have
// the RFC's.
const (
	reducerRFC    = "applyMessage"
	reducerSchema = "append"
)

// A messageForm is a message. The schemas change the ids of its agents.
type messageForm struct{}

func (messageForm) Append(w *wire.Writer, dst []byte, _ *wire.Member, at any) ([]byte, bool) {
	e, was := encoderOf(w), at.(*agentevents.ConversationMessage)
	e.msg = *was
	m := &e.msg
	m.From, m.To = e.agentID(w, "/payload/message/from", m.From), e.agentID(w, "/payload/message/to", m.To)
	if m.Agent.OK {
		m.Agent.V.AgentID = e.agentID(w, "/payload/message/agent/agentId", m.Agent.V.AgentID)
	}
	dst, err := m.AppendJSON(dst)
	var inner *agentevents.RuleError
	if errors.As(err, &inner) { // as every error of it
		w.Fail(inner.Rule, inner.Pointer, inner.Detail)
	}
	return dst, true
}

func (messageForm) Parse(r *wire.Reader, at any) error {
	start := r.S.Offset()
	raw, err := r.S.Raw()
	if err != nil {
		return err
	}
	*at.(*agentevents.ConversationMessage), err = ParseMessage([]byte(raw))
	if syntax, ok := err.(*jsonwire.SyntaxError); ok {
		syntax.Offset += start
	}
	return err
}

// reducerForm is how the message is applied.
var reducerForm = apart{aReducer, func(d *Decoder) *string { return &d.reducer }, func(w *wire.Writer, dst []byte, kept string) []byte {
	if encoderOf(w).p == RFC0002 {
		return jsonwire.AppendString(dst, reducerRFC)
	}
	if kept == "" {
		w.Lose(dialect.Made, "/openwop/~1payload~1reducer", "append: the schemas have no reducer that applies messages by id")
	}
	return jsonwire.AppendString(dst, reducerSchema)
}}

// writtenAt is the time of the message, mostly that of the event.
var writtenAt = apart{aTime, func(d *Decoder) *string { return &d.writtenAt }, func(w *wire.Writer, dst []byte, _ string) []byte {
	return jsonwire.AppendTime(dst, w.EventTime())
}}

// aReducer requires a reducer of the schemas or of a vendor.
func aReducer(p Profile, raw string) (agentevents.Rule, string) {
	name := jsonwire.Text(raw)
	rest, vendor := strings.CutPrefix(name, "vendor.")
	org, own, _ := strings.Cut(rest, ".")
	if p == RFC0002 || slices.Contains(reducers, name) || vendor && isWord(org, "_") && isWord(own, "_") {
		return "", ""
	}
	return RuleEnum, unlisted(name, reducers) + ", and not vendor.<org>.<name>"
}

func aTime(_ Profile, raw string) (agentevents.Rule, string) {
	var s jsonwire.Scanner
	s.Reset(raw)
	if upper, ok := upperTime(s); ok {
		s = upper
	}
	if _, err := s.Time(); err != nil {
		return RuleForm, "is not a time"
	}
	return "", ""
}

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
