package openwop

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect"
	"github.com/agentevents/agentevents/internal/jsonwire"
)

// The members of a payload.

func (w *writer) name(m int) {
	head := memberHeads[m-1]
	if w.open {
		w.open, head = false, head[1:]
	}
	w.dst = append(w.dst, head...)
	w.has |= 1 << m
}

// absent reports whether the line lacked the member and the encoder may leave it
// out. A required member may be left out only on a lenient line.
func (w *writer) absent(m int) bool {
	if w.k.absent == 0 {
		return false
	}
	required := variants[w.v].required(w.p)
	return w.k.absent.has(slot(m)) && (!required.has(m) || w.lenient())
}

// lenient reports whether required members may be left out because the line
// lacked them. Only RFC0002 allows that: no schema describes it. Under the
// schemas the event does not say whether the line was read under the same
// profile.
func (w *writer) lenient() bool { return w.p == RFC0002 && w.k.profile == "" }

// str appends a text.
func (w *writer) str(pointer, s string) {
	w.dst = jsonwire.AppendString(w.dst, s)
	if w.careful && !jsonwire.ValidUTF8(s) {
		w.lose(dialect.Altered, pointer, dialect.DamagedText)
	}
}

// text writes an optional text.
func (w *writer) text(m int, pointer, s string) {
	if s == "" && !w.k.spelled.has(m) {
		return
	}
	w.name(m)
	w.str(pointer, s)
}

// short writes an optional text that must have 1 to 64 characters under SchemaV2.
func (w *writer) short(m int, pointer, s string) {
	if w.p == SchemaV2 {
		if s == "" {
			return // even if the line had an empty one
		}
		if r := []rune(s); len(r) > 64 {
			w.lose(dialect.Altered, pointer, "cut after 64 characters")
			s = string(r[:64])
		}
	}
	w.text(m, pointer, s)
}

// content writes a required text that may be empty.
func (w *writer) content(m int, pointer, s string) {
	if s == "" && w.absent(m) {
		return
	}
	w.name(m)
	w.str(pointer, s)
}

// required writes a required id or name. made replaces an empty one.
func (w *writer) required(m int, form IDForm, pointer, s, made string) {
	if s == "" {
		if w.absent(m) {
			return
		}
		if !w.k.spelled.has(m) || w.p != RFC0002 {
			s = made
			w.lose(dialect.Made, pointer, made)
		}
	}
	w.name(m)
	w.dst = w.id(w.dst, form, pointer, s)
}

// word writes an optional word. The schemas allow only the given words.
func (w *writer) word(m int, pointer, s string, words []string) {
	if w.p != RFC0002 && !slices.Contains(words, s) {
		if s != "" { // an empty one is dropped without a loss
			w.lose(dialect.Dropped, pointer, "not one of the schema's words")
		}
		return
	}
	w.text(m, pointer, s)
}

// json writes an optional value. With object set, the schemas require an object.
func (w *writer) json(m int, pointer string, v agentevents.JSON, object bool) {
	if v == "" {
		return
	}
	w.name(m)
	w.raw(pointer, v, object)
}

func (w *writer) raw(pointer string, v agentevents.JSON, object bool) {
	c, err := jsonwire.Compact(string(v))
	if err != nil {
		w.fail(agentevents.RuleFieldJSON, pointer, err.Error())
		return
	}
	if object && w.p != RFC0002 && c[0] != '{' {
		w.lose(dialect.Altered, pointer, `is not an object: written as the member "value" of one`)
		w.dst = append(append(append(w.dst, `{"value":`...), c...), '}')
		return
	}
	w.dst = append(w.dst, c...)
}

// must writes a required value. made replaces an absent one.
func (w *writer) must(m int, pointer string, v, made agentevents.JSON, object bool) {
	if v == "" {
		if w.absent(m) {
			return
		}
		v = made
		w.lose(dialect.Made, pointer, string(made))
	}
	w.json(m, pointer, v, object)
}

func (w *writer) integer(m int, pointer string, v agentevents.Opt[int], low int) {
	if !v.OK {
		return
	}
	if v.V < low {
		w.fail(RuleRange, pointer, strconv.Itoa(v.V)+" is below "+strconv.Itoa(low))
	}
	w.name(m)
	w.dst = jsonwire.AppendInt(w.dst, int64(v.V))
}

func (w *writer) float(m int, pointer string, v agentevents.Opt[float64], high float64) {
	if !v.OK {
		return
	}
	if math.IsNaN(v.V) || math.IsInf(v.V, 0) || v.V > high || v.V < 0 && (w.p != RFC0002 || high == 1) {
		w.fail(RuleRange, pointer, rangeDetail(high))
	}
	w.name(m)
	w.dst = jsonwire.AppendFloat(w.dst, v.V)
}

// rangeDetail returns what is wrong with a number that must not be above high.
func rangeDetail(high float64) string {
	if high == 1 {
		return "is not in [0, 1]"
	}
	return "is not a finite number from 0 on"
}

// millis writes a duration: the document has whole milliseconds.
func (w *writer) millis(m int, pointer string, v agentevents.Opt[time.Duration]) {
	if !v.OK {
		return
	}
	if v.V < 0 {
		w.fail(RuleRange, pointer, "must not be below 0")
	}
	w.name(m)
	if v.V%time.Millisecond != 0 {
		w.lose(dialect.Altered, pointer, "cut to whole milliseconds")
	}
	w.dst = jsonwire.AppendInt(w.dst, v.V.Milliseconds())
}

// agent writes the acting agent, which the type requires.
func (w *writer) agent() {
	w.required(mAgentID, AgentID, "/agentId", w.ev.AgentID, CoreSystem)
}

// anyAgent writes the acting agent for a type that has no member for it.
func (w *writer) anyAgent() {
	if w.ev.AgentID == "" && !w.k.spelled.has(mAgentID) {
		return
	}
	if !w.undeclared() {
		w.drop("/agentId", w.ev.AgentID != "")
		return
	}
	w.name(mAgentID)
	w.dst = w.id(w.dst, AgentID, "/agentId", w.ev.AgentID)
}

// node writes the node, which also stands in the envelope.
func (w *writer) node() {
	id := w.nodeID
	needed := variants[w.v].required(w.p).has(mNodeID)
	if other := w.k.get("/payload/nodeId"); isText(other) && (w.p == RFC0002 || w.p == SchemaV1 && other != `""` || ValidID(w.p, NodeID, jsonwire.Text(other))) {
		w.name(mNodeID)
		w.dst = append(w.dst, w.k.take("/payload/nodeId")...)
		return
	}
	switch {
	case id != "" && (needed || !w.absent(mNodeID)):
		w.name(mNodeID)
		w.dst = w.id(w.dst, NodeID, "/nodeId", id)
	case id == "" && w.k.spelled.has(mNodeID):
		w.text(mNodeID, "/nodeId", "")
	}
}

// errorInfo writes an error.
func (w *writer) errorInfo(v *agentevents.ErrorInfo) {
	w.name(mError)
	start := len(w.dst)
	w.dst = append(w.dst, '{')
	sep := ""
	member := func(name string) {
		w.dst = append(append(append(append(w.dst, sep...), '"'), name...), `":`...)
		sep = ","
	}
	code, name := v.Code, "code"
	if w.k.errWord && w.p == RFC0002 {
		name = "error"
	}
	noCode, noMessage := w.k.noCode && w.lenient(), w.k.noMessage && w.lenient()
	if code == "" && !(w.p == RFC0002 && (w.k.errCode || w.k.errWord)) && !noCode {
		code = unknownError
		w.lose(dialect.Made, "/payload/error/code", code)
	}
	coded := code != "" || !noCode
	if coded {
		member(name)
		w.str("/payload/error/code", code)
	}
	message := v.Message
	if message == "" && w.p != RFC0002 && !noMessage {
		message = code
		w.lose(dialect.Made, "/payload/error/message", message)
	}
	if message != "" || !noMessage {
		member("message")
		w.str("/payload/error/message", message)
	}
	if v.Details != "" {
		member("details")
		w.raw("/payload/error/details", v.Details, true)
	}
	if v.Retryable.OK {
		member("retryable")
		w.dst = strconv.AppendBool(w.dst, v.Retryable.V)
	}
	w.more("/payload/error/", "error/", start, func(n string) place {
		switch {
		case n == name && coded, n == "message", n == "details", n == "retryable" && v.Retryable.OK:
			return taken
		case (n == "code" || n == "retryable") && w.p != RFC0002: // the value has another type
			return closed
		case w.p == SchemaV2 && !hatch(n) && !w.k.same(w.p):
			return closed
		}
		return free
	})
	w.dst = append(w.dst, '}')
}

// A place says whether an object has room for an extra member.
type place uint8

const (
	free   place = iota
	taken        // it has a member with that name
	closed       // it must not have the member
	other        // the member may go into another object
)

// more writes the extra members below a pointer into the object that begins at
// start. into is the prefix of their names in the table declared.
func (w *writer) more(below, into string, start int, look func(name string) place) {
	i := -1
	for key, raw := range jsonwire.Members(w.k.raw) {
		i++
		name, ok := strings.CutPrefix(key, below)
		if !ok || strings.Contains(name, "/") || w.k.done[i] {
			continue
		}
		name = jsonwire.Untoken(name)
		p := look(name)
		if p == other {
			continue
		}
		if p == free && !w.fits(into+name, raw) {
			p = closed
		}
		w.k.done[i] = true
		if p == closed || p == taken && w.written(start, name) != raw {
			w.unplaced(key)
		}
		if p == free {
			w.member(start, name, raw)
		}
	}
}

// fits reports whether a member has the form that the profile declares for it. A
// member without a declared form always fits.
func (w *writer) fits(name, raw string) bool {
	if m := numberOf(memberNames[:], name); m != 0 && variants[w.v].members.has(m) && !loose(w.p, w.v).has(m) {
		return w.readable(m, raw)
	}
	if w.p == RFC0002 && name == "error/error" {
		return isText(raw)
	}
	if w.p == RFC0002 || w.k.same(w.p) {
		return true
	}
	of := declaredForm(w.v, w.p, name)
	if of == nil {
		return true
	}
	_, detail := of(w.p, raw)
	return detail == ""
}

// readable reports whether a decoder of the profile reads a kept value as the
// member m of the vocabulary. Only texts are kept like that.
func (w *writer) readable(m int, raw string) bool {
	return textMembers.has(m) && isText(raw) && (!idMembers.has(m) || w.k.same(w.p) || ValidID(w.p, idForm(m), jsonwire.Text(raw)))
}

// member writes a member with any name into the object that begins at start.
func (w *writer) member(start int, name, raw string) {
	if len(w.dst) > start+1 {
		w.dst = append(w.dst, ',')
	}
	w.open = false
	w.dst = jsonwire.AppendString(w.dst, name)
	w.dst = append(append(w.dst, ':'), raw...)
}

// written returns the value of a member of the object that begins at start, or
// "".
func (w *writer) written(start int, name string) string {
	for n, raw := range jsonwire.Members(string(w.dst[start:]) + "}") {
		if n == name {
			return raw
		}
	}
	return ""
}

// unplaced lists an extra member as dropped.
func (w *writer) unplaced(key string) {
	w.lose(dialect.Dropped, "/openwop/"+jsonwire.Token(key), "the profile has no place for it")
}

// ref writes an AgentRef.
func (w *writer) ref(m int, pointer string, v agentevents.AgentRef, made string) {
	if v.AgentID == "" && made != "" && !w.absent(m) {
		v.AgentID = made
		w.lose(dialect.Made, pointer+"/agentId", made)
	}
	if w.p != RFC0002 { // saves joining the pointer under RFC0002
		v.AgentID = w.agentID(pointer+"/agentId", v.AgentID)
	}
	w.name(m)
	if !w.ev.PayloadExtra() {
		w.dst = w.plainID(append(w.dst, `{"agentId":`...), pointer, v.AgentID)
		if v.AgentSharing != "" {
			w.dst = append(w.dst, `,"agentSharing":`...)
			w.str(pointer+"/agentSharing", string(v.AgentSharing))
		}
		if v.MemoryRef != "" {
			w.dst = w.plainID(append(w.dst, `,"memoryRef":`...), pointer, v.MemoryRef)
		}
		if v.ModelClass != "" {
			w.dst = append(w.dst, `,"modelClass":`...)
			w.str(pointer+"/modelClass", string(v.ModelClass))
		}
		w.dst = append(w.dst, '}')
		return
	}
	raw, err := v.MarshalJSON()
	if err == nil && w.careful {
		if !jsonwire.ValidUTF8(v.AgentID) || !jsonwire.ValidUTF8(v.MemoryRef) {
			w.fail(agentevents.RuleFieldUTF8, pointer, "is not valid UTF-8")
		}
		if !jsonwire.ValidUTF8(string(v.AgentSharing)) {
			w.lose(dialect.Altered, pointer+"/agentSharing", dialect.DamagedText)
		}
		if !jsonwire.ValidUTF8(string(v.ModelClass)) {
			w.lose(dialect.Altered, pointer+"/modelClass", dialect.DamagedText)
		}
	}
	w.dst = append(w.dst, raw...)
}

// refID writes an AgentRef where there is only room for its id.
func (w *writer) refID(m int, pointer string, v agentevents.AgentRef, made string) {
	w.required(m, HandoffID, pointer+"/agentId", v.AgentID, made)
	raw, _ := v.MarshalJSON() // never fails
	for name := range jsonwire.Members(string(raw)) {
		w.drop(pointer+"/"+jsonwire.Token(name), name != "agentId")
	}
}
