package openwop

import (
	"cmp"
	"slices"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect/internal/engine"
	"github.com/agentevents/agentevents/dialect/openwop/internal/schemas"
	"github.com/agentevents/agentevents/internal/facts"
	"github.com/agentevents/agentevents/internal/jsonwire"
)

// The rules that a strict decoder checks. SchemaV1 and SchemaV2 have the rules of the published
// schemas, RFC0002 the rules of its text. The payloads of types that the vocabulary does not have
// are checked as far as this package knows their schemas. The rules from RuleCausation on concern
// several lines of a run. Strict also has three rules of package agentevents that the document has:
// see Options.Folded. A line that was read before, with the same sequence and content, breaks no
// rule: it is read again.
const (
	RuleRequired     agentevents.Rule = schemas.RuleRequired   // a required member is missing
	RuleID           agentevents.Rule = schemas.RuleID         // an id without the length or the grammar of the profile
	RuleType         agentevents.Rule = "openwop-type"         // a type that is neither registered nor a vendor's
	RuleEnum         agentevents.Rule = schemas.RuleEnum       // a word outside a closed list
	RuleRange        agentevents.Rule = schemas.RuleRange      // a number out of range or with a fraction; a text too short or long
	RuleForm         agentevents.Rule = schemas.RuleForm       // another type than the profile's, or another form of a time or a decision
	RuleClosed       agentevents.Rule = schemas.RuleClosed     // an extra member of a closed object
	RuleResult       agentevents.Rule = "openwop-result-error" // a tool result, or the status ok, beside an error
	RuleDuration     agentevents.Rule = "openwop-duration"     // a duration of a call that never began (schemas)
	RuleNode         agentevents.Rule = "openwop-node"         // the events of a node are not in order, or name two nodes
	RuleCausation    agentevents.Rule = "openwop-causation"    // agent.toolReturned whose causationId is not the eventId of the call
	RuleTool         agentevents.Rule = "openwop-tool"         // agent.toolReturned of another tool than its call
	RuleBlock        agentevents.Rule = "openwop-block"        // agent.reasoned that closes a block of another agent
	RuleInvocation   agentevents.Rule = "openwop-invocation"   // an invocation ends unopened, or its lines have content
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
		broken = cmp.Or(d.checkOther(), d.checkDemands(line))
	default:
		broken = cmp.Or(d.checkDemands(line), d.checkValues(), d.checkLetter())
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

// checkDemands checks the line and its payload by the schemas of the profile.
func (d *Decoder) checkDemands(line string) *agentevents.RuleError {
	p := d.o.Profile
	if fault := envelopeOf(p).Check(line); fault != nil {
		return breach(p, "", fault)
	}
	of := payloadOf(p, d.r.Type)
	switch {
	case d.row == nil && p == RFC0002:
		return nil
	case d.row != nil && (of == nil || p == RFC0002):
		of = d.row.payload
	}
	payload := jsonwire.Member(line, "payload")
	broken := brokenPayload(p, of, payload)
	if broken == nil && d.row != nil && d.row.data != "" {
		if fault := d.row.object(p, "/payload/data").Check(jsonwire.Member(payload, "data")); fault != nil {
			broken = breach(p, "/payload/data", fault)
		}
	}
	return broken
}

// checkOther checks a line without a row that may be meant as another one: a message that
// lacks its id.
func (d *Decoder) checkOther() *agentevents.RuleError {
	r := &d.r
	says := func(name, word string) bool { return jsonwire.Text(jsonwire.Member(r.Body, name)) == word }
	if r.Type == "channel.written" && says("channel", MessageChannel) &&
		(says("reducer", "") || says("reducer", reducerRFC)) {
		return breaks(RuleRequired, "/payload/value/messageId", "is required of a message, as a text")
	}
	return nil
}

// checkValues checks members against one another.
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
	case *agentevents.OrchestratorDecided:
		if why := unequal(string(v.Decision)); why != "" && p != RFC0002 {
			return breaks(RuleForm, "/payload/decision", why)
		}
	}
	return nil
}

// unequal tells that a decision of an orchestrator has inputs that are not one for each worker,
// or returns "".
func unequal(decision string) string {
	ids, inputs := jsonwire.Member(decision, "nextWorkerIds"), jsonwire.Member(decision, "nextWorkerInputs")
	if inputs != "" && len(slices.Collect(jsonwire.Elements(ids))) != len(slices.Collect(jsonwire.Elements(inputs))) {
		return "has nextWorkerInputs that are not one object for each worker"
	}
	return ""
}

// A decisionForm is the decision of an orchestrator under the schemas.
type decisionForm struct{ engine.Value }

func (f decisionForm) Append(w *engine.Writer, dst []byte, m *engine.Member, at any) ([]byte, bool) {
	mark := len(dst)
	dst, said := f.Value.Append(w, dst, m, at)
	if !said {
		return dst, false
	}
	of := demand(w, m)
	decision := f.closed(w, of, string(dst[mark:]))
	if fault := of.Check(decision); fault != nil {
		broken := breach(encoderOf(w).p, w.Pointer(m), fault)
		w.Fail(broken.Rule, broken.Pointer, broken.Detail)
	} else if why := unequal(decision); why != "" {
		w.Fail(RuleForm, w.Pointer(m), why)
	}
	return append(dst[:mark], decision...), true
}

// closed returns a decision without the members that its form does not have. Its
// agents have the same ids as elsewhere.
func (f decisionForm) closed(w *engine.Writer, of *facts.Schema, decision string) string {
	decision = schemas.Declared(of, "", decision, nil)
	return schemas.Edited(decision, func(name, raw string) (string, bool) {
		if name != "nextWorkerIds" {
			return raw, true
		}
		return schemas.EditedList(raw, func(_ int, raw string) string {
			return jsonwire.Quote(encoderOf(w).agentID(w, jsonwire.Text(raw)))
		}), true
	})
}
