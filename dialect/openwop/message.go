package openwop

import (
	"cmp"
	"errors"
	"strings"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect"
	"github.com/agentevents/agentevents/dialect/internal/engine"
	"github.com/agentevents/agentevents/dialect/openwop/internal/schemas"
	"github.com/agentevents/agentevents/internal/facts"
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

// exchanged is the type of a line with a turn of a conversation: a message with more members.
// begins is the type of a line that begins a conversation, and may have the first turn. The other
// constants are the names of their rows.
const (
	exchanged = "conversation.exchanged"
	begins    = "conversation.opened"
	ofTurn    = "turn"
	ofOpening = "initial turn"
)

// A keptForm is a member that the vocabulary has no field for, and that has a place among
// the others.
type keptForm struct{}

func (keptForm) Append(w *engine.Writer, dst []byte, m *engine.Member, _ any) ([]byte, bool) {
	raw, e := w.Use(m.Name), encoderOf(w)
	if raw != "" && e.p != RFC0002 && !e.same() && !demand(w, m).Fits(raw) {
		raw = ""
	}
	return append(dst, raw...), raw != ""
}

func (keptForm) Parse(r *engine.Reader, _ any) error {
	raw, err := r.S.Raw()
	if err == nil {
		r.KeepAs(raw)
		decoderOf(r).see(r, raw)
	}
	return err
}

// see notes a member without a field whose form is not the one that a schema declares.
func (d *Decoder) see(r *engine.Reader, raw string) {
	p, at := d.o.Profile, r.Pointer()
	if d.odd != nil || p == RFC0002 {
		return
	}
	of, _, _ := d.row.object(p, at[:strings.LastIndexByte(at, '/')]).Member(r.Name())
	if fault := of.Check(raw); fault != nil {
		d.odd = breach(p, at, fault)
	}
}

// A messageForm is a message. The schemas change the ids of its agents.
type messageForm struct{}

func (messageForm) Append(w *engine.Writer, dst []byte, _ *engine.Member, at any) ([]byte, bool) {
	e, was := encoderOf(w), at.(*agentevents.ConversationMessage)
	e.msg = *was
	m := &e.msg
	m.From, m.To = e.agentID(w, m.From), e.agentID(w, m.To)
	if m.Agent.OK {
		m.Agent.V.AgentID = e.agentID(w, m.Agent.V.AgentID)
	}
	dst, err := m.AppendJSON(dst)
	var inner *agentevents.RuleError
	if errors.As(err, &inner) { // as every error of it
		w.Fail(inner.Rule, inner.Pointer, inner.Detail)
	}
	return dst, true
}

func (messageForm) Parse(r *engine.Reader, at any) error {
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

// A turnForm is a message that is the turn of a conversation.
type turnForm struct{ messageForm }

func (f turnForm) Append(w *engine.Writer, dst []byte, m *engine.Member, at any) ([]byte, bool) {
	mark := len(dst)
	dst, said := f.messageForm.Append(w, dst, m, at)
	e := encoderOf(w)
	if e.p != SchemaV2 || e.same() {
		return dst, said
	}
	turn := demand(w, m)
	dst = append(dst[:mark], shapedTurn(w, turn, string(dst[mark:]))...)
	if fault := turn.Check(string(dst[mark:])); fault != nil {
		broken := breach(e.p, w.Pointer(m), fault)
		w.Break(broken.Rule, broken.Pointer, broken.Detail)
	}
	return dst, said
}

// shapedTurn returns a turn in the form of SchemaV2: without the members that it has no place
// for, and with those that it requires.
func shapedTurn(w *engine.Writer, turn *facts.Schema, raw string) string {
	e := encoderOf(w)
	if !jsonwire.IsObject(raw) {
		return raw
	}
	raw = schemas.Fitted(turn, raw)
	have := func(name string) bool { return jsonwire.HasMember(raw, name) }
	add := func(name, value string) {
		raw = raw[:len(raw)-1] + `,"` + name + `":` + value + "}"
	}
	if !have("role") {
		role := roleAgent
		if e.msg.From == "user" || e.msg.From == "system" {
			role = e.msg.From
		}
		add("role", jsonwire.Quote(role))
	}
	if !have("turnIndex") {
		add("turnIndex", cmp.Or(w.KeptAt("/payload", "turnIndex", false), "0"))
	}
	if jsonwire.Text(jsonwire.Member(raw, "role")) == roleAgent && !have(speaker) {
		add(speaker, jsonwire.Quote(e.msg.From))
	}
	return raw
}

func (f turnForm) Parse(r *engine.Reader, at any) error {
	s := r.S
	err := f.messageForm.Parse(r, at)
	if err == nil {
		raw, _ := s.Raw() // never fails
		decoderOf(r).see(r, raw)
	}
	return err
}

// Under SchemaV2 the turn of an agent names the speaker.
const (
	roleAgent = "agent"
	speaker   = "speakerId"
)

// reducerForm is how the message is applied.
var reducerForm = apart{func(d *Decoder) *string { return &d.reducer }, func(w *engine.Writer, dst []byte) []byte {
	if encoderOf(w).p == RFC0002 {
		return jsonwire.AppendString(dst, reducerRFC)
	}
	return jsonwire.AppendString(dst, reducerSchema)
}}

// writtenAt is the time of the message, usually equal to the event's.
var writtenAt = apart{func(d *Decoder) *string { return &d.writtenAt }, func(w *engine.Writer, dst []byte) []byte {
	return jsonwire.AppendTime(dst, w.Time())
}}

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
