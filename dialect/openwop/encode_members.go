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

// absent reports whether the line lacked a member that may be missing. One that
// the profile requires mostly may not.
func (w *writer) absent(m int) bool {
	if w.k.absent == 0 {
		return false
	}
	required := variants[w.v].required(w.p)
	return w.k.absent.has(slot(m)) && (!required.has(m) || w.lenient())
}

// lenient reports whether members that are required may be missing where the line
// lacked them. No schema describes RFC0002; of the others the event does not say
// whether they are the profile that the line was read under.
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

// short writes an optional text that has 1 to 64 characters under SchemaV2.
func (w *writer) short(m int, pointer, s string) {
	if w.p == SchemaV2 {
		if s == "" {
			return // also where the line spelled it
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

// required writes a required id or name; made stands in its place.
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

// word writes an optional word of a list, which binds under the schemas.
func (w *writer) word(m int, pointer, s string, words []string) {
	if w.p != RFC0002 && !slices.Contains(words, s) {
		if s != "" { // an empty one is none, also where the line spelled it
			w.lose(dialect.Dropped, pointer, "not a word of the schema")
		}
		return
	}
	w.text(m, pointer, s)
}

// json writes an optional value. Under the schemas it may have to be an object.
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
		w.lose(dialect.Altered, pointer, `is no object, and stands as "value" in one`)
		w.dst = append(append(append(w.dst, `{"value":`...), c...), '}')
		return
	}
	w.dst = append(w.dst, c...)
}

// must is json for a required value.
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
		w.fail(RuleRange, pointer, "is outside its range")
	}
	w.name(m)
	w.dst = jsonwire.AppendFloat(w.dst, v.V)
}

// millis writes a duration, of which the document has whole milliseconds.
func (w *writer) millis(m int, pointer string, v agentevents.Opt[time.Duration]) {
	if !v.OK {
		return
	}
	if v.V < 0 {
		w.fail(RuleRange, pointer, "is below 0")
	}
	w.name(m)
	if v.V%time.Millisecond != 0 {
		w.lose(dialect.Altered, pointer, "whole milliseconds")
	}
	w.dst = jsonwire.AppendInt(w.dst, v.V.Milliseconds())
}

// agent writes the acting agent, which the type requires.
func (w *writer) agent() {
	w.required(mAgentID, AgentID, "/agentId", w.ev.AgentID, CoreSystem)
}

// anyAgent writes the acting agent where the type has no member for it.
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

// node writes the node, which stands in the envelope too.
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
		case (n == "code" || n == "retryable") && w.p != RFC0002: // of another type
			return closed
		case w.p == SchemaV2 && !hatch(n) && !w.k.same(w.p):
			return closed
		}
		return free
	})
	w.dst = append(w.dst, '}')
}

// A place is what an object has for a member that was kept.
type place uint8

const (
	free   place = iota
	taken        // it has a member of that name
	closed       // it cannot have the member
	other        // the member may stand in another object
)

// more writes the kept members below a pointer into the object that begins at
// start. into is what the names in it have before them in the table of declared
// members.
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

// fits reports whether a member has the form that the profile declares for it, if it
// does.
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

// readable reports whether the decoder of the profile takes a value that was kept for
// that of a member of the vocabulary: a text, as others are not kept.
func (w *writer) readable(m int, raw string) bool {
	return textMembers.has(m) && isText(raw) && (!idMembers.has(m) || w.k.same(w.p) || ValidID(w.p, idForm(m), jsonwire.Text(raw)))
}

// member writes a member of any name into the object that begins at start.
func (w *writer) member(start int, name, raw string) {
	if len(w.dst) > start+1 {
		w.dst = append(w.dst, ',')
	}
	w.open = false
	w.dst = jsonwire.AppendString(w.dst, name)
	w.dst = append(append(w.dst, ':'), raw...)
}

// written returns what the object that begins at start has under a name.
func (w *writer) written(start int, name string) string {
	for n, raw := range jsonwire.Members(string(w.dst[start:]) + "}") {
		if n == name {
			return raw
		}
	}
	return ""
}

// unplaced lists a member that was kept.
func (w *writer) unplaced(key string) {
	w.lose(dialect.Dropped, "/openwop/"+jsonwire.Token(key), "the profile has no place for it")
}

// ref writes an AgentRef.
func (w *writer) ref(m int, pointer string, v agentevents.AgentRef, made string) {
	if v.AgentID == "" && made != "" && !w.absent(m) {
		v.AgentID = made
		w.lose(dialect.Made, pointer+"/agentId", made)
	}
	if w.p != RFC0002 { // or the pointer would be put together for nothing
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

// refID writes an AgentRef of which there is only place for the id.
func (w *writer) refID(m int, pointer string, v agentevents.AgentRef, made string) {
	w.required(m, HandoffID, pointer+"/agentId", v.AgentID, made)
	raw, _ := v.MarshalJSON() // never fails
	for name := range jsonwire.Members(string(raw)) {
		w.drop(pointer+"/"+jsonwire.Token(name), name != "agentId")
	}
}
