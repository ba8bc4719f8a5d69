package openwop

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect"
	"github.com/agentevents/agentevents/dialect/internal/wire"
	"github.com/agentevents/agentevents/internal/jsonwire"
)

// The rules that a strict decoder checks. SchemaV1 and SchemaV2 have the rules of
// the published schemas, RFC0002 those of its text. The payloads of types that
// the vocabulary does not have are not checked. Four rules concern several lines
// of a run: causation, escalation, sequence and terminal.
const (
	RuleRequired  agentevents.Rule = "openwop-required"     // a required member is missing
	RuleID        agentevents.Rule = "openwop-id"           // an id that does not have the length or the grammar of the profile
	RuleType      agentevents.Rule = "openwop-type"         // a type that is neither registered nor a vendor's
	RuleEnum      agentevents.Rule = "openwop-enum"         // a word outside a closed list
	RuleRange     agentevents.Rule = "openwop-range"        // a number outside its range or with a fraction, a text that is too short or too long
	RuleForm      agentevents.Rule = "openwop-form"         // a value of another type or form: not an object, text or time, or a decision or question of another form
	RuleClosed    agentevents.Rule = "openwop-closed"       // an extra member of a closed object
	RuleResult    agentevents.Rule = "openwop-result-error" // a tool result beside an error
	RuleDuration  agentevents.Rule = "openwop-duration"     // a duration of a call that never began (schemas)
	RuleCausation agentevents.Rule = "openwop-causation"    // agent.toolReturned whose causationId is not the eventId of the call
	RuleEscalate  agentevents.Rule = "openwop-escalation"   // the end of a node or run after a decision below the threshold that was not escalated
	RuleSequence  agentevents.Rule = "openwop-sequence"     // a sequence that does not rise within the run
	RuleTerminal  agentevents.Rule = "openwop-terminal"     // an event after the run's terminal event
)

// check returns the first rule that a line breaks.
func (d *Decoder) check() error {
	r, p := &d.r, d.o.Profile
	err := r.Check()
	broken, _ := err.(*agentevents.RuleError)
	lacking := broken != nil && broken.Rule == RuleRequired
	switch {
	case !knownType(p, r.Type):
		broken = &agentevents.RuleError{Rule: RuleType, Pointer: "/type", Detail: strconv.Quote(r.Type) + " is neither a registered type nor a vendor's"}
	case lacking && strings.Contains(broken.Pointer, "/questions/"):
		broken = &agentevents.RuleError{Rule: RuleForm, Pointer: broken.Pointer[:strings.LastIndexByte(broken.Pointer, '/')], Detail: "has no id or no text"}
	case lacking:
	case p == SchemaV2 && d.row != nil && d.row.legacy:
		broken = &agentevents.RuleError{Rule: RuleRequired, Pointer: "/payload/kind", Detail: "is required: SchemaV2 has an interrupt's payload here"}
	case broken != nil:
	case d.extra != "":
		broken = &agentevents.RuleError{Rule: RuleClosed, Pointer: d.extra, Detail: "is an extra member of a closed object"}
	default:
		broken = d.checkValues()
	}
	if broken == nil {
		broken = d.odd
	}
	if broken == nil {
		broken = d.checkRun()
	}
	if broken == nil {
		return nil
	}
	_ = r.Refused(broken)
	broken.EventID, broken.Sequence = r.Ev.ID, r.Ev.Sequence
	return broken
}

// checkValues checks what one member says of another.
func (d *Decoder) checkValues() *agentevents.RuleError {
	r, p := &d.r, d.o.Profile
	broken := func(rule agentevents.Rule, pointer, detail string) *agentevents.RuleError {
		return &agentevents.RuleError{Rule: rule, Pointer: "/payload/" + pointer, Detail: detail}
	}
	switch v := r.Ev.Payload.(type) {
	case *agentevents.ToolCalled:
		if p == RFC0002 && !r.BodyHas("arguments") && !r.BodyHas("argsHash") {
			return broken(RuleRequired, "arguments", "is required, unless there is argsHash")
		}
	case *agentevents.ToolReturned:
		switch {
		case r.Has("error") && (r.Has("result") || r.Has("outcome")):
			return broken(RuleResult, "error", "must not stand beside a result")
		case r.Has("durationMs") && p != RFC0002 && refused(string(v.Status)):
			return broken(RuleDuration, "durationMs", "a refused call must not have a duration")
		}
	case *agentevents.ClarificationRequested:
		if d.row.of != "" && p != RFC0002 && len(v.Questions) == 0 {
			return broken(RuleRange, "data/questions", "is empty")
		}
	case *agentevents.NodeSuspended:
		if p == RFC0002 {
			break
		}
		if !hasText(string(v.Details), "interruptId") {
			return broken(RuleRequired, "interruptId", "is required")
		}
		for name, raw := range jsonwire.Members(string(v.Details)) {
			text := jsonwire.Text(raw)
			switch {
			case name == "kind":
				if rule, detail := anInterruptKind(p, raw); detail != "" {
					return broken(rule, name, detail)
				}
			case name == "interruptId" && (text == "" || p == SchemaV2 && !ValidID(p, InterruptID, text)):
				return broken(RuleID, name, badID(text))
			case name == "key" && text == "":
				return broken(RuleID, name, "must be a text that is not empty")
			}
		}
	}
	if !r.BodyHas("error") {
		return nil
	}
	switch {
	case d.errorSeen&hasMessage == 0:
		return broken(RuleRequired, "error/message", "is required")
	case d.errorSeen&hasCode == 0 && (p != RFC0002 || d.errorSeen&hasWord == 0):
		return broken(RuleRequired, "error/code", "is required")
	}
	return nil
}

// badID returns what is wrong with an id that ValidID rejects.
func badID(id string) string {
	if id == "" {
		return "is empty"
	}
	return strconv.Quote(id) + " does not have the profile's form for this id"
}

// hatch reports whether a name is an extension. SchemaV2 allows extensions in
// most closed payloads.
func hatch(name string) bool {
	return strings.HasPrefix(name, "openwop-") || strings.HasPrefix(name, "x-") || strings.HasPrefix(name, "vendor.")
}

// A decisionForm is the decision of an orchestrator. The schemas have three closed
// forms.
type decisionForm struct{ p Profile }

func (f decisionForm) Append(w *wire.Writer, dst []byte, m *wire.Member, at any) ([]byte, bool) {
	decision := *at.(*agentevents.JSON)
	if decision != "" && f.p != RFC0002 {
		if why := decisionError(string(decision), f.p, true); why != "" {
			w.Fail(RuleForm, w.Pointer(m), why)
		} else if !encoderOf(w).same() {
			decision = f.closed(w, decision)
		}
	}
	return wire.Value{}.Append(w, dst, m, &decision)
}

func (f decisionForm) Parse(r *wire.Reader, at any) error {
	err := wire.Value{}.Parse(r, at)
	if err == nil && r.Strict && f.p != RFC0002 {
		if why := decisionError(string(*at.(*agentevents.JSON)), f.p, false); why != "" {
			r.Break(RuleForm, why)
		}
	}
	return err
}

// closed returns a decision without the members that its form does not have. Its
// agents have the same ids as elsewhere.
func (f decisionForm) closed(w *wire.Writer, decision agentevents.JSON) agentevents.JSON {
	const at = "/payload/decision/"
	kind := memberText(string(decision), "kind")
	drop := func(at, name string) (string, bool) {
		w.Lose(dialect.Dropped, at+jsonwire.Token(name), "")
		return "", false
	}
	return agentevents.JSON(edited(string(decision), func(name, raw string) (string, bool) {
		switch {
		case !mayDecide(f.p, kind, name):
			return drop(at, name)
		case name == "successCriteria":
			return editedList(raw, func(i int, raw string) string {
				return edited(raw, func(name, raw string) (string, bool) {
					if name != "key" && name != "met" {
						return drop(at+"successCriteria/"+strconv.Itoa(i)+"/", name)
					}
					return raw, true
				})
			}), true
		case name == "nextWorkerIds":
			return editedList(raw, func(i int, raw string) string {
				id := jsonwire.Text(raw)
				if n := encoderOf(w).agentID(w, at+"nextWorkerIds/"+strconv.Itoa(i), id); n != id {
					return jsonwire.Quote(n)
				}
				return raw
			}), true
		}
		return raw, true
	}))
}

// edited returns an object with the values that edit returns. It leaves out the
// members that edit rejects.
func edited(object string, edit func(name, raw string) (string, bool)) string {
	out := []byte{'{'}
	for name, raw := range jsonwire.Members(object) {
		if raw, ok := edit(name, raw); ok {
			out = appendMember(out, name, raw)
		}
	}
	return string(append(out, '}'))
}

func editedList(list string, edit func(i int, raw string) string) string {
	var out []string
	for raw := range jsonwire.Elements(list) {
		out = append(out, edit(len(out), raw))
	}
	return "[" + strings.Join(out, ",") + "]"
}

// mayDecide reports whether a decision of a kind has a member.
func mayDecide(p Profile, kind, name string) bool {
	switch kind + " " + name {
	case "next-worker nextWorkerIds", "next-worker confidence", "ask-user prompt", "terminate reason", "terminate confidence":
		return true
	case "next-worker nextWorkerInputs", "terminate successCriteria":
		return p == SchemaV2
	}
	return name == "kind"
}

// decisionError returns what is wrong with the decision of an orchestrator, or
// "". With open set, extra members are allowed.
func decisionError(raw string, p Profile, open bool) string {
	if !isObject(raw) {
		return "is not an object"
	}
	kind := memberText(raw, "kind")
	if kind != "next-worker" && kind != "ask-user" && kind != "terminate" {
		return "has a kind that is not next-worker, ask-user or terminate"
	}
	members := map[string]string{}
	for name, value := range jsonwire.Members(raw) {
		if mayDecide(p, kind, name) {
			members[name] = value
		} else if !open {
			return "has the extra member " + strconv.Quote(name) + ", but " + kind + " is closed"
		}
	}
	has := func(name string) bool { return members[name] != "" }
	switch n, err := strconv.ParseFloat(members["confidence"], 64); {
	case has("confidence") && (err != nil || n < 0 || n > 1):
		return "has a confidence that is not in [0, 1]"
	case has("successCriteria") && !validCriteria(members["successCriteria"], open):
		return "has successCriteria of another form"
	case has("reason") && jsonwire.Text(members["reason"]) == "":
		return "has an empty reason"
	case kind == "ask-user" && jsonwire.Text(members["prompt"]) == "":
		return "has no prompt"
	}
	if kind != "next-worker" {
		return ""
	}
	n, ok := count(members["nextWorkerIds"], func(v string) bool {
		id := jsonwire.Text(v)
		return id != "" && utf8.RuneCountInString(id) <= 256
	})
	if !ok || n == 0 {
		return "needs a list of nextWorkerIds"
	}
	if k, ok := count(members["nextWorkerInputs"], isObject); has("nextWorkerInputs") && (!ok || k != n) {
		return "has nextWorkerInputs that are not one object for each worker"
	}
	return ""
}

func validCriteria(list string, open bool) bool {
	_, ok := count(list, func(v string) bool {
		good, members := 0, 0
		for name, value := range jsonwire.Members(v) {
			members++
			if name == "key" && jsonwire.Text(value) != "" || name == "met" && (value == "true" || value == "false") {
				good++
			}
		}
		return good == 2 && (open || members == 2)
	})
	return ok
}

// count returns the number of elements of a JSON array. It reports whether list
// is an array whose elements are all good.
func count(list string, good func(string) bool) (n int, ok bool) {
	var s jsonwire.Scanner
	s.Reset(list)
	if s.Array() != nil {
		return 0, false
	}
	for ok = true; ; n++ {
		more, err := s.Elem()
		if err != nil || !more {
			return n, ok && err == nil
		}
		raw, err := s.Raw()
		if err != nil {
			return n, false
		}
		ok = ok && good(raw)
	}
}
