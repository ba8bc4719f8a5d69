package openwop

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect"
	"github.com/agentevents/agentevents/dialect/internal/wire"
	"github.com/agentevents/agentevents/internal/jsonwire"
)

// The rules that a strict decoder checks. SchemaV1 and SchemaV2 have the rules of
// the published schemas, RFC0002 those of its text. The payloads of types that
// the vocabulary does not have are checked as far as their schemas are known here. Those
// from RuleCausation on concern several lines of a run. Strict also has three rules of
// package agentevents that the document has: see Options.Folded. A line that was read
// before, with its sequence and what it says, breaks no rule: it is read again.
const (
	RuleRequired     agentevents.Rule = "openwop-required"     // a required member is missing
	RuleID           agentevents.Rule = "openwop-id"           // an id that does not have the length or the grammar of the profile
	RuleType         agentevents.Rule = "openwop-type"         // a type that is neither registered nor a vendor's
	RuleEnum         agentevents.Rule = "openwop-enum"         // a word outside a closed list
	RuleRange        agentevents.Rule = "openwop-range"        // a number outside its range or with a fraction, a text that is too short or too long
	RuleForm         agentevents.Rule = "openwop-form"         // a value of another type or form: not an object, text or time, or a decision of another form
	RuleClosed       agentevents.Rule = "openwop-closed"       // an extra member of a closed object
	RuleResult       agentevents.Rule = "openwop-result-error" // a tool result, or the status ok, beside an error
	RuleDuration     agentevents.Rule = "openwop-duration"     // a duration of a call that never began (schemas)
	RuleNode         agentevents.Rule = "openwop-node"         // the events of a node are not in order, or name two nodes
	RuleCausation    agentevents.Rule = "openwop-causation"    // agent.toolReturned whose causationId is not the eventId of the call
	RuleTool         agentevents.Rule = "openwop-tool"         // agent.toolReturned of another tool than its call
	RuleBlock        agentevents.Rule = "openwop-block"        // agent.reasoned that closes a block of another agent
	RuleInvocation   agentevents.Rule = "openwop-invocation"   // an invocation that completes unopened, or whose lines have content
	RuleMemory       agentevents.Rule = "openwop-memory"       // a memory that has more after its consolidation
	RuleOrchestrator agentevents.Rule = "openwop-orchestrator" // a decision of another orchestrator than the run's
	RuleEscalate     agentevents.Rule = "openwop-escalation"   // not exactly one action after a decision below the threshold, before its node or the run ends
	RuleSequence     agentevents.Rule = "openwop-sequence"     // a sequence that does not rise within the run
	RuleTerminal     agentevents.Rule = "openwop-terminal"     // an event after the end of the run or of its conversation
)

func breaks(rule agentevents.Rule, pointer, detail string) *agentevents.RuleError {
	return &agentevents.RuleError{Rule: rule, Pointer: pointer, Detail: detail}
}

// check returns the first rule that a line breaks.
func (d *Decoder) check(line string) error {
	r, p := &d.r, d.o.Profile
	broken, _ := r.Check().(*agentevents.RuleError)
	switch {
	case !knownType(p, r.Type):
		broken = breaks(RuleType, "/type", jsonwire.Brief(r.Type)+" is neither a registered type nor a vendor's")
	case p == SchemaV2 && d.row != nil && d.row.legacy:
		broken = breaks(RuleRequired, "/payload/kind", "is required: SchemaV2 has an interrupt's payload here")
	case p != RFC0002 && len(r.Spelled) > 0:
		broken = breaks(RuleRequired, inError+"code", "is required")
	case broken != nil:
	case d.row == nil:
		broken = cmp.Or(d.checkOther(), d.odd)
	default:
		broken = cmp.Or(d.checkValues(), d.odd)
		if broken == nil && d.node != "" && d.node != r.Ev.NodeID {
			broken = breaks(RuleNode, "/payload/nodeId", "is not the nodeId of the envelope")
		}
	}
	if broken == nil && !d.alone {
		broken = d.checkRun(line)
	}
	if broken == nil {
		return nil
	}
	_ = r.Refused(broken)
	broken.Sequence = r.Ev.Sequence
	return broken
}

// checkOther checks a line without a row that may be meant as another one: a message that
// lacks its id.
func (d *Decoder) checkOther() *agentevents.RuleError {
	r := &d.r
	says := func(name, word string) bool { return jsonwire.Text(jsonwire.Member(r.Body, name)) == word }
	if r.Type == "channel.written" && says("channel", MessageChannel) && (says("reducer", "") || says("reducer", reducerRFC)) {
		return breaks(RuleRequired, "/payload/value/messageId", "is required of a message, as a text")
	}
	return nil
}

// checkValues checks what one member says of another.
func (d *Decoder) checkValues() *agentevents.RuleError {
	r, p := &d.r, d.o.Profile
	switch v := r.Ev.Payload.(type) {
	case *agentevents.ToolCalled:
		if p == RFC0002 && !r.BodyHas("arguments") && !r.BodyHas("argsHash") {
			return breaks(RuleRequired, "/payload/arguments", "is required, unless there is argsHash")
		}
	case *agentevents.ToolReturned:
		switch {
		case r.Has("error") && (r.Has("result") || r.Has("outcome")):
			return breaks(RuleResult, "/payload/error", "must not stand beside a result")
		case r.Has("error") && v.Status == agentevents.ToolStatusOK:
			return breaks(RuleResult, "/payload/status", "must not be ok beside an error")
		case r.Has("durationMs") && p != RFC0002 && refused(v.Status):
			return breaks(RuleDuration, "/payload/durationMs", "a refused call must not have a duration")
		}
	case *agentevents.ClarificationRequested:
		if d.row.of != "" && p != RFC0002 && len(v.Questions) == 0 {
			return breaks(RuleRange, "/payload/data/questions", "is empty")
		}
	case *agentevents.NodeSuspended:
		if p != RFC0002 && !jsonwire.HasMember(string(v.Details), "interruptId") {
			return breaks(RuleRequired, "/payload/interruptId", "is required")
		}
	}
	return nil
}

// hatch reports whether a name is an extension. SchemaV2 allows extensions in
// most closed payloads.
func hatch(name string) bool {
	return strings.HasPrefix(name, "openwop-") || strings.HasPrefix(name, "x-") || strings.HasPrefix(name, "vendor.")
}

// decisions are the members of an orchestrator's decision under the schemas, by its
// kind.
var decisions = map[string][]part{
	"next-worker": {
		aKind, must("nextWorkerIds", listOf(shortText(aName, 256), 1, false)), may("nextWorkerInputs", listOf(anObject, 0, false)).in(SchemaV2),
		may("confidence", numberIn(0, 1, "in [0, 1]")),
	},
	"ask-user": {aKind, must("prompt", aName)},
	"terminate": {
		aKind, may("reason", aName), may("successCriteria", listOf(closedObject(criterion...), 0, false)).in(SchemaV2),
		may("confidence", numberIn(0, 1, "in [0, 1]")),
	},
}

var (
	aKind     = must("kind", oneOf("next-worker", "ask-user", "terminate"))
	criterion = []part{must("key", aName), must("met", aBool)}
)

func decisionParts(raw string) []part {
	if parts := decisions[jsonwire.Text(jsonwire.Member(raw, "kind"))]; parts != nil {
		return parts
	}
	return []part{aKind}
}

// aDecision requires one of the three decisions of an orchestrator that the schemas
// have.
func aDecision(p Profile, raw string) (agentevents.Rule, string) {
	_, detail := closedObject(decisionParts(raw)...)(p, raw)
	ids, inputs := jsonwire.Member(raw, "nextWorkerIds"), jsonwire.Member(raw, "nextWorkerInputs")
	if inputs != "" && len(slices.Collect(jsonwire.Elements(ids))) != len(slices.Collect(jsonwire.Elements(inputs))) {
		detail = "has nextWorkerInputs that are not one object for each worker"
	}
	return RuleForm, detail
}

// A decisionForm is the decision of an orchestrator under the schemas.
type decisionForm struct{ wire.Value }

func (f decisionForm) Append(w *wire.Writer, dst []byte, m *wire.Member, at any) ([]byte, bool) {
	mark := len(dst)
	dst, said := f.Value.Append(w, dst, m, at)
	if !said {
		return dst, false
	}
	closed := f.closed(w, string(dst[mark:]))
	if rule, why := aDecision(encoderOf(w).p, closed); why != "" {
		w.Fail(rule, w.Pointer(m), why)
	}
	return append(dst[:mark], closed...), true
}

// closed returns a decision without the members that its form does not have. Its
// agents have the same ids as elsewhere.
func (f decisionForm) closed(w *wire.Writer, decision string) string {
	const at = "/payload/decision/"
	only := func(at, object string, parts []part) string {
		return declared(object, parts, encoderOf(w).p, func(name string) { w.Lose(dialect.Dropped, at+jsonwire.Token(name), "") })
	}
	return edited(only(at, decision, decisionParts(decision)), func(name, raw string) (string, bool) {
		return editedList(raw, func(i int, raw string) string {
			at := at + name + "/" + strconv.Itoa(i)
			switch name {
			case "successCriteria":
				return only(at+"/", raw, criterion)
			case "nextWorkerIds":
				return jsonwire.Quote(encoderOf(w).agentID(w, at, jsonwire.Text(raw)))
			}
			return raw
		}), true
	})
}
