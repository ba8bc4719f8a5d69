package openwop

import (
	"cmp"
	"slices"
	"strings"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect/internal/wire"
	"github.com/agentevents/agentevents/internal/jsonwire"
)

// Members of the event's extra member that are not extra members of the line. See
// the package comment.
const (
	keptSpelled = "~spelled"
	keptAbsent  = "~absent"
	keptType    = "~type"
	keptProfile = "~profile"
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
		return
	}
	*k = remarks{raw: raw}
	for name, value := range jsonwire.Members(raw) {
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
func (e *Encoder) same() bool { return e.k.profile != "" && e.k.profile == e.p.String() }

// lenient reports whether required members may be left out because the line
// lacked them. Only RFC0002 allows that: no schema describes it. Under the
// schemas the event does not say whether the line was read under the same
// profile.
func (e *Encoder) lenient() bool { return e.p == RFC0002 && e.k.profile == "" }

// spelled reports whether the line had the member although it could be left out.
func (e *Encoder) spelled(w *wire.Writer, m *wire.Member) bool {
	return len(e.k.spelled) > 0 && slices.Contains(e.k.spelled, w.At()+"/"+m.Name)
}

// lacked reports whether the line lacked the member and may do so again.
func (e *Encoder) lacked(w *wire.Writer, m *wire.Member) bool {
	if len(e.k.absent) == 0 {
		return false
	}
	at := w.At()
	if at == "" && m.Name != "timestamp" && m.Name != "payload" {
		return false
	}
	return slices.Contains(e.k.absent, at+"/"+cmp.Or(rfcNames[m.Name], m.Name)) && (e.lenient() || !m.Need && at != "/payload/error")
}

// lack decides what stands for a member that the event does not say, where the line
// decides that.
func lack(w *wire.Writer, dst []byte, m *wire.Member) ([]byte, bool) {
	e := encoderOf(w)
	if e.k.raw == "" {
		return dst, false // as mostly
	}
	if e.spelled(w, m) && (e.p == RFC0002 || !m.Need && w.At() != "" && w.At() != "/payload/error") {
		// A schema that does not allow an empty text has it left out or made up.
		if f, _ := m.Form.(textForm); e.p == RFC0002 || m.Loose || f.rule.fits(e.p, `""`) {
			return append(dst, `""`...), true
		}
	}
	return dst, m.Name == "schemaVersion" || e.lacked(w, m) // the form of the version has decided
}

// place reports whether an extra member has a place in the object that is written.
func place(w *wire.Writer, m *wire.Member, from, name, raw string) bool {
	e, at, r := encoderOf(w), w.At(), encoderOf(w).row
	same := e.same()
	switch {
	case !same && closedAt(e.p, r, at, name),
		at == "/payload/data" && from == "/payload" && (same || !r.refuses(name) || slices.Contains(besideData, name)):
		return false
	case at == "":
		return m == nil
	case m != nil && !m.Loose:
		return e.readable(m, raw)
	case m != nil && at == "/payload/error" && name == "error":
		return e.p != RFC0002 || isText(raw)
	}
	inside := strings.TrimPrefix(strings.TrimPrefix(at, "/payload")+"/", "/") + name
	return e.p == RFC0002 || same || r.form(inside).fits(e.p, raw)
}

// closedAt reports whether the object at a pointer must not have an extra member. r is
// nil on a line whose type the vocabulary does not have.
func closedAt(p Profile, r *row, at, name string) bool {
	switch {
	case at == "":
		return p == SchemaV2
	case at == "/payload":
		return r.refuses(name)
	case at == "/payload/error":
		return p == SchemaV2 && !hatch(name)
	}
	return r.of == "clarification" && p != RFC0002 && (at != "/payload/data" || name != "contextType")
}

// besideData are members of a payload that never stand in its data.
var besideData = []string{"nodeId", "kind", "key", "data"}

// readable reports whether a decoder of the profile reads a kept value as the
// member m of the vocabulary. Only texts are kept like that.
func (e *Encoder) readable(m *wire.Member, raw string) bool {
	f, ok := m.Form.(textForm)
	return ok && isText(raw) && (e.same() || f.rule.fits(e.p, raw))
}

// elsewhere returns the object of the other form of an interrupt whose extra members
// may stand in the one that is written.
func elsewhere(w *wire.Writer) string {
	e, at := encoderOf(w), w.At()
	rest, data := strings.CutPrefix(at, "/payload/data")
	switch {
	case data && (rest == "" || strings.HasPrefix(rest, "/questions/")):
		return "/payload" + rest
	case strings.HasPrefix(at, "/payload/questions/"),
		at == "/payload" && e.row.legacy && (e.row.kind == agentevents.KindClarificationRequested || e.row.kind == agentevents.KindApprovalRequested):
		return "/payload/data" + strings.TrimPrefix(at, "/payload")
	}
	return ""
}
