package openwop

import (
	"slices"
	"strings"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect/internal/engine"
	"github.com/agentevents/agentevents/internal/jsonwire"
)

// Members of the event's extra member that are not extra members of the line. See
// the package comment.
const (
	keptSpelled = "~spelled"
	keptAbsent  = "~absent"
	keptType    = "~type"
	keptProfile = "~profile"
	keptTwin    = "~twin" // of a line that asks or answers as an earlier one does: the id of the question
)

// remarks are those members.
type remarks struct {
	raw             string   // the event's extra member
	spelled, absent []string // pointers of members
	typ             string
	profile         string // the profile that the line was read under, if it breaks that profile
}

func (k *remarks) read(ev *agentevents.Event) {
	raw := string(ev.Extra(string(Name)))
	if raw == k.raw {
		return // mostly a version, or nothing
	}
	*k = remarks{raw: raw}
	for name, value := range jsonwire.Members(k.raw) {
		switch name {
		case keptType:
			k.typ = jsonwire.Text(value)
		case keptProfile:
			k.profile = jsonwire.Text(value)
		case keptSpelled:
			k.spelled = texts(value)
		case keptAbsent:
			k.absent = texts(value)
		}
	}
}

// texts returns the texts of a list.
func texts(list string) (all []string) {
	for raw := range jsonwire.Elements(list) {
		all = append(all, jsonwire.Text(raw))
	}
	return all
}

// same reports whether the event's line was read under the profile and broke it.
// Such an event is written as it was read.
func (e *Encoder) same() bool { return e.k.profile == e.p.String() }

// spelled reports whether the line had the member although it could be left out.
func (e *Encoder) spelled(w *engine.Writer, m *engine.Member) bool {
	return len(e.k.spelled) > 0 && slices.Contains(e.k.spelled, w.At()+"/"+m.Name)
}

// lacked reports whether the line lacked the member and may do so again. Only RFC0002
// allows that: no schema describes it.
func (e *Encoder) lacked(w *engine.Writer, m *engine.Member) bool {
	return e.p == RFC0002 && slices.Contains(e.k.absent, w.At()+"/"+m.Name)
}

// leaves reports whether the line lacked a usual member and the encoder leaves it out again,
// because readers make up its value.
func (e *Encoder) leaves(name string) bool {
	if !slices.Contains(e.k.absent, "/payload/"+name) {
		return false
	}
	if name != "interruptId" {
		return true
	}
	ev := e.w.Ev
	id, _ := interruptOf(ev.Payload)
	if s := saidTypes[e.row.typ]; s.answers {
		s.runID, s.nodeID = ev.RunID, ev.NodeID
		if q, twin := e.open.answered(&s); q != nil && !twin {
			return *id == q.id
		}
	}
	return *id == madeInterruptID(ev)
}

// lack appends the value of a member that the event lacks, if the line decides it.
func lack(w *engine.Writer, dst []byte, m *engine.Member) ([]byte, bool) {
	e := encoderOf(w)
	if e.k.raw == "" {
		return dst, false // as mostly
	}
	if e.spelled(w, m) {
		// A schema that does not allow an empty text has it left out or made up.
		if _, ok := m.Form.(textForm); e.p == RFC0002 || ok && demand(w, m).Fits(`""`) {
			return append(dst, `""`...), true
		}
	}
	return dst, e.lacked(w, m)
}

// place reports whether an extra member has a place in the object that is written.
func place(w *engine.Writer, m *engine.Member, from, name, raw string) bool {
	e, at, r := encoderOf(w), w.At(), encoderOf(w).row
	switch {
	case m != nil && !m.Loose, !e.same() && r.object(e.p, at).Refuses(name),
		at == "/payload/data" && from == "/payload" && (e.same() || !r.refuses(name)):
		return false
	}
	if at == "" || e.p == RFC0002 || e.same() {
		return true
	}
	of, _, _ := r.object(e.p, at).Member(name)
	return of.Fits(raw)
}

// elsewhere returns the object of the other form of an interrupt whose extra members
// may stand in the one that is written.
func elsewhere(w *engine.Writer) string {
	if rest, data := strings.CutPrefix(w.At(), "/payload/data"); data {
		return "/payload" + rest
	}
	if rest, payload := strings.CutPrefix(w.At(), "/payload"); payload {
		return "/payload/data" + rest
	}
	return ""
}
