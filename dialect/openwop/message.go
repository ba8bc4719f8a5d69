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

// exchanged is the type of a line with a turn of a conversation, which is a message with
// more members, and begins that of one which may have the first turn. The others are the
// names of their rows.
const (
	exchanged = "conversation.exchanged"
	begins    = "conversation.opened"
	ofTurn    = "turn"
	ofOpening = "initial turn"
)

// A keptForm is a member that the vocabulary has no field for, and that has a place among
// the others.
type keptForm struct{ rule form }

func (f keptForm) Append(w *wire.Writer, dst []byte, m *wire.Member, _ any) ([]byte, bool) {
	raw, e := w.Use(m.Name), encoderOf(w)
	if raw != "" && !e.same() && !f.rule.fits(e.p, raw) {
		w.Lose(dialect.Dropped, w.Pointer(m), "the profile has another form for it")
		raw = ""
	}
	return append(dst, raw...), raw != ""
}

func (f keptForm) Parse(r *wire.Reader, _ any) error {
	s := r.S
	raw, err := r.S.Raw()
	if err == nil {
		r.KeepAs(raw)
		if d := decoderOf(r); d.odd == nil {
			if rule, detail := f.rule.check(d.o.Profile, raw); detail != "" {
				d.odd = breaks(rule, r.Pointer(), detail)
			}
		}
	}
	return checked(r, &s, f.rule, err)
}

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

// A turnForm is a message that is the turn of a conversation.
type turnForm struct{ messageForm }

func (f turnForm) Append(w *wire.Writer, dst []byte, m *wire.Member, at any) ([]byte, bool) {
	mark := len(dst)
	dst, said := f.messageForm.Append(w, dst, m, at)
	e := encoderOf(w)
	if e.p != SchemaV2 || e.same() {
		return dst, said
	}
	dst = append(dst[:mark], shapedTurn(w, string(dst[mark:]))...)
	if rule, detail := aTurn(e.p, string(dst[mark:])); detail != "" {
		w.Break(rule, w.Pointer(m), detail)
	}
	return dst, said
}

// shapedTurn returns a turn in the form of SchemaV2: without the members that it has no place
// for, and with those that it requires.
func shapedTurn(w *wire.Writer, raw string) string {
	e := encoderOf(w)
	if !jsonwire.IsObject(raw) {
		return raw
	}
	raw = optional(w, "/payload/message/", raw, turn)
	have := func(name string) bool { return jsonwire.HasMember(raw, name) }
	add := func(name, value string) {
		w.Lose(dialect.Made, "/payload/message/"+name, strings.Trim(value, `"`))
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

// optional returns an object without the optional members that SchemaV2 has no place or
// another form for.
func optional(w *wire.Writer, at, raw string, parts []part) string {
	return edited(raw, func(name, value string) (string, bool) {
		i := slices.IndexFunc(parts, func(p part) bool { return p.name == name })
		why := extraMember
		if i >= 0 {
			if name == "agent" {
				value = optional(w, at+"agent/", value, turnAgent)
			}
			if _, why = parts[i].form.check(SchemaV2, value); why == "" || parts[i].need {
				return value, true
			}
		}
		w.Lose(dialect.Dropped, at+jsonwire.Token(name), why)
		return value, false
	})
}

func (f turnForm) Parse(r *wire.Reader, at any) error {
	s, d := r.S, decoderOf(r)
	err := f.messageForm.Parse(r, at)
	if err == nil && d.odd == nil {
		raw, _ := s.Raw() // never fails
		if rule, detail := aTurn(d.o.Profile, raw); detail != "" {
			d.odd = breaks(rule, r.Pointer(), detail)
		}
	}
	return err
}

// The turn of an agent says who speaks, under SchemaV2.
const (
	roleAgent = "agent"
	speaker   = "speakerId"
)

// turn are the members of a turn under SchemaV2.
var turn = []part{
	must("messageId", shortText(aName, 256)), must("from", shortText(aName, 256)), may("to", shortText(aText, 256)), may("groupId", shortText(aText, 256)),
	must("content", nil), must("ts", wholeFrom(0)), must("role", oneOf("user", roleAgent, "system")), may("agent", closedObject(turnAgent...)), must("turnIndex", wholeFrom(0)),
	may(speaker, shortText(aName, 256)), may("parts", nil),
}

var turnAgent = []part{
	may("agentId", anIDOf(AgentID)), may("agentSharing", oneOf(string(agentevents.SharingIsolated), string(agentevents.SharingShared))), may("memoryRef", aText), may("model", anObject),
}

// aTurn requires a turn of SchemaV2. The other profiles have no form for it.
var aTurn = perSchema(nil, allOf(closedObject(turn...), valueThat(func(raw string) bool {
	return jsonwire.Text(jsonwire.Member(raw, "role")) != roleAgent || jsonwire.HasMember(raw, speaker)
}, RuleRequired, "has no "+speaker+", which the turn of an agent must have")))

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
