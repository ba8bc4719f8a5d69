package openwop

import (
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/agentevents/agentevents"
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

func broken(rule agentevents.Rule, f *fields, pointer, detail string) error {
	return &agentevents.RuleError{
		Rule: rule, Kind: agentevents.Kind(f.typ), RunID: f.runID, AgentID: f.val[mAgentID], EventID: f.eventID, Sequence: f.sequence,
		Pointer: pointer, Detail: detail,
	}
}

// check returns the first rule that a line breaks.
func (d *Decoder) check(f *fields, v int) error {
	if err := d.checkEnvelope(f); err != nil {
		return err
	}
	if v != vUnknown {
		if err := d.checkPayload(f, v); err != nil {
			return err
		}
	}
	return d.checkRun(f, v)
}

func (d *Decoder) checkEnvelope(f *fields) error {
	p := d.o.Profile
	required := envelopeRequired
	if p == SchemaV2 {
		required |= 1 << eSchemaVersion
	}
	if missing := required &^ f.env; missing != 0 {
		name := strings.Trim(envelopeNames[missing.lowest()-1], `":`)
		return broken(RuleRequired, f, "/"+name, "is required")
	}
	for _, id := range [...]struct {
		form IDForm
		m    int
		text string
	}{{EventID, eEventID, f.eventID}, {RunID, eRunID, f.runID}, {NodeID, eNodeID, f.nodeID}, {EventID, eCausationID, f.causationID}} {
		if f.env.has(id.m) && !ValidID(p, id.form, id.text) {
			return broken(RuleID, f, "/"+strings.Trim(envelopeNames[id.m-1], `":`), badID(id.text))
		}
	}
	if !knownType(p, f.typ) {
		return broken(RuleType, f, "/type", strconv.Quote(f.typ)+" is neither a registered type nor a vendor's")
	}
	if p == RFC0002 {
		return nil
	}
	for name, raw := range jsonwire.Members("{" + d.keptVersions() + "}") {
		switch {
		case name == "schemaVersion" && (!whole(raw) || p == SchemaV2 && raw == "0"):
			return broken(RuleRange, f, "/schemaVersion", raw+" is not a version")
		case name == "engineVersion" && p == SchemaV1 && !strings.HasPrefix(raw, `"`):
			return broken(RuleForm, f, "/engineVersion", "is not a text")
		case name == "engineVersion" && p == SchemaV2 && !whole(raw):
			return broken(RuleRange, f, "/engineVersion", raw+" is not a whole number from 0 on")
		}
	}
	if p == SchemaV2 && f.extra != "" {
		return broken(RuleClosed, f, f.extra, "is an extra member of a closed object")
	}
	return nil
}

// keptVersions returns schemaVersion and engineVersion of the line as members.
func (d *Decoder) keptVersions() string {
	var out []byte
	for _, name := range [...]string{"schemaVersion", "engineVersion"} {
		if raw := d.unknown.Get(name); raw != "" {
			if out != nil {
				out = append(out, ',')
			}
			out = append(append(append(append(out, '"'), name...), `":`...), raw...)
		}
	}
	return string(out)
}

// badID returns what is wrong with an id that ValidID rejects.
func badID(id string) string {
	if id == "" {
		return "is empty"
	}
	return strconv.Quote(id) + " does not have the profile's form for this id"
}

// unlisted returns what is wrong with a word that is not one of words.
func unlisted(word string, words []string) string {
	return strconv.Quote(word) + " is not one of " + strings.Join(words, ", ")
}

// whole reports whether a JSON number is whole and not below 0.
func whole(raw string) bool {
	var s jsonwire.Scanner
	s.Reset(raw)
	_, err := sequence(&s)
	return err == nil
}

func (d *Decoder) checkPayload(f *fields, v int) error {
	p := d.o.Profile
	vs := &variants[v]
	has := f.seen.has
	at := func(m int) string { return "/payload/" + memberName(m) }
	if missing := vs.required(p) &^ f.seen; missing != 0 {
		return broken(RuleRequired, f, at(missing.lowest()), "is required")
	}
	if v == vToolCalled && p == RFC0002 && !has(mArguments) && !has(mArgsHash) {
		return broken(RuleRequired, f, at(mArguments), "is required, unless there is argsHash")
	}
	switch {
	case p == RFC0002:
	case v == vNodeSuspended && !hasText(string(f.details)+"}", "interruptId"):
		return broken(RuleRequired, f, at(mInterruptID), "is required")
	case v == vApprovalRequested && p == SchemaV1:
		for _, name := range [...]string{"artifactId", "artifactType", "actions"} {
			if d.unknown.Get("/payload/"+name) == "" {
				return broken(RuleRequired, f, "/payload/"+name, "is required")
			}
		}
	}
	if err := d.checkClosed(f, v); err != nil {
		return err
	}
	for rest := f.seen & vs.members & idMembers; rest != 0; rest &= rest - 1 {
		m := rest.lowest()
		if m == mInterruptID && p != SchemaV2 || m == mNodeID && p == SchemaV1 && f.val[m] != "" {
			continue
		}
		form := idForm(m)
		if m == mCallID || m == mToolID || m == mToolName || m == mGateID || m == mPrincipal && v != vToolCalled || m == mKey {
			if f.val[m] == "" {
				return broken(RuleID, f, at(m), "is empty")
			}
			continue
		}
		if m == mPrincipal {
			continue
		}
		if !ValidID(p, form, f.val[m]) {
			return broken(RuleID, f, at(m), badID(f.val[m]))
		}
	}
	for _, w := range [...]struct {
		m     int
		words []string
	}{{mVerbosity, verbosities}, {mTransport, transports}, {mStatus, toolStatuses}} {
		if has(w.m) && !slices.Contains(w.words, f.val[w.m]) {
			return broken(RuleEnum, f, at(w.m), unlisted(f.val[w.m], w.words))
		}
	}
	for _, m := range [...]int{mFrom, mTo, mAgent} {
		if vs.members.has(m) && has(m) && p == RFC0002 {
			if err := checkRef(f, m); err != nil {
				return err
			}
		}
	}
	if has(mConfidence) && (f.number[0] < 0 || f.number[0] > 1) {
		return broken(RuleRange, f, at(mConfidence), "is not in [0, 1]")
	}
	if has(mDurationMs) || has(mTimeoutMs) {
		m := mDurationMs
		if has(mTimeoutMs) {
			m = mTimeoutMs
		}
		if f.duration < 0 || f.fraction {
			return broken(RuleRange, f, at(m), "is not a whole number of milliseconds from 0 on")
		}
	}
	if has(mIteration) && f.count[2] < 1 {
		return broken(RuleRange, f, at(mIteration), "must not be below 1")
	}
	if has(mError) {
		if err := checkError(f, p); err != nil {
			return err
		}
	}
	if v == vClarRequested || v == vAskRequested {
		if err := d.checkQuestions(f, v); err != nil {
			return err
		}
	}
	switch v {
	case vToolReturned:
		if has(mError) && (has(mResult) || has(mOutcome)) {
			return broken(RuleResult, f, at(mError), "must not stand beside a result")
		}
		if has(mDurationMs) && p != RFC0002 && refused(f.val[mStatus]) {
			return broken(RuleDuration, f, at(mDurationMs), "a refused call must not have a duration")
		}
	case vCapBreached:
		if p != RFC0002 && !slices.Contains(capKinds, f.val[mKind]) {
			return broken(RuleEnum, f, at(mKind), unlisted(f.val[mKind], capKinds))
		}
		if f.val[mKind] == "" {
			return broken(RuleEnum, f, at(mKind), "is empty")
		}
		for _, m := range [...]int{mLimit, mObserved} {
			if has(m) && p != RFC0002 && f.number[numberIndex(m)] < 0 {
				return broken(RuleRange, f, at(m), "must not be below 0")
			}
		}
	case vOrchestrator:
		if err := checkDecision(f, p); err != nil {
			return err
		}
	case vAskRequested, vPermitRequested, vAskResolved, vPermitResolved:
		switch {
		case v == vAskRequested && f.dataKeys&hasQuestions == 0:
			return broken(RuleRequired, f, "/payload/data/questions", "is required")
		case v == vPermitRequested && p != RFC0002 && f.dataKeys&hasTitle == 0:
			return broken(RuleRequired, f, "/payload/data/title", "is required")
		case v == vPermitRequested && p != RFC0002 && f.val[mTitle] == "":
			return broken(RuleRange, f, "/payload/data/title", "is empty")
		}
		if n := utf8.RuneCountInString(f.val[mKey]); n > maxKey && p != RFC0002 {
			return broken(RuleRange, f, at(mKey), "is longer than 256 characters")
		}
		if v == vPermitRequested && p != RFC0002 {
			for _, name := range [...]string{"artifactId", "artifactType", "actions"} {
				if d.unknown.Get("/payload/data/"+name) == "" {
					return broken(RuleRequired, f, "/payload/data/"+name, "is required")
				}
			}
		}
		if v == vAskRequested && p != RFC0002 && len(f.questions) == 0 {
			return broken(RuleRange, f, "/payload/data/questions", "is empty")
		}
		if n := utf8.RuneCountInString(f.val[mReason]); has(mReason) && p == SchemaV2 && (n < 1 || n > 64) {
			return broken(RuleRange, f, at(mReason), "must have 1 to 64 characters")
		}
	case vMessage:
		if p != RFC0002 && !validReducer(f.val[mReducer]) {
			return broken(RuleEnum, f, at(mReducer), unlisted(f.val[mReducer], reducers)+", and not vendor.<org>.<name>")
		}
		if has(mWrittenAt) && !validTime(f.val[mWrittenAt]) {
			return broken(RuleForm, f, at(mWrittenAt), strconv.Quote(f.val[mWrittenAt])+" is not a time")
		}
	case vNodeSuspended:
		if p == RFC0002 {
			break
		}
		if n := utf8.RuneCountInString(f.val[mReason]); has(mReason) && p == SchemaV2 && (n < 1 || n > 64) {
			return broken(RuleRange, f, at(mReason), "must have 1 to 64 characters")
		}
		kinds := interruptKinds(p)
		for name, raw := range jsonwire.Members(string(f.details) + "}") {
			switch {
			case name == "kind" && !slices.Contains(kinds, jsonwire.Text(raw)):
				return broken(RuleEnum, f, at(mKind), unlisted(jsonwire.Text(raw), kinds))
			case name == "interruptId" && (jsonwire.Text(raw) == "" || p == SchemaV2 && !ValidID(p, InterruptID, jsonwire.Text(raw))):
				return broken(RuleID, f, at(mInterruptID), badID(jsonwire.Text(raw)))
			case name == "key" && jsonwire.Text(raw) == "":
				return broken(RuleID, f, at(mKey), "must be a text that is not empty")
			}
		}
	}
	if p == RFC0002 {
		return nil
	}
	for rest := f.seen & vs.members & (1<<mOutputs | 1<<mAnswers); rest != 0; rest &= rest - 1 {
		if m := rest.lowest(); !isObject(f.val[m]) {
			return broken(RuleForm, f, at(m), "is not an object")
		}
	}
	if v == vRunStarted && has(mInputs) && !isObject(f.val[mInputs]) {
		return broken(RuleForm, f, at(mInputs), "is not an object")
	}
	return d.checkDeclared(f, v)
}

// checkQuestions checks the questions of a clarification.
func (d *Decoder) checkQuestions(f *fields, v int) error {
	p := d.o.Profile
	at := func(i int, member string) string {
		if v == vAskRequested {
			return "/payload/data/questions/" + strconv.Itoa(i) + member
		}
		return "/payload/questions/" + strconv.Itoa(i) + member
	}
	if f.badQuestion > 0 {
		return broken(RuleForm, f, at(f.badQuestion-1, ""), "has no id or no text")
	}
	if p == RFC0002 {
		return nil
	}
	for i := range f.questions {
		switch q := &f.questions[i]; {
		case v == vAskRequested && q.ID == "":
			return broken(RuleRange, f, at(i, "/id"), "is empty")
		case v == vAskRequested && q.Question == "":
			return broken(RuleRange, f, at(i, "/question"), "is empty")
		case q.Schema != "" && !isObject(string(q.Schema)):
			return broken(RuleForm, f, at(i, "/schema"), "is not an object")
		}
	}
	return nil
}

// idMembers are the members that are ids or must not be empty.
const idMembers set = 1<<mAgentID | 1<<mNodeID | 1<<mToolID | 1<<mToolName | 1<<mCallID | 1<<mFromAgentID | 1<<mToAgentID | 1<<mTypeID |
	1<<mInterruptID | 1<<mWorkflowID | 1<<mGateID | 1<<mPrincipal | 1<<mKey

// idForm returns the form of an id in a payload.
func idForm(m int) IDForm {
	switch m {
	case mNodeID:
		return NodeID
	case mFromAgentID, mToAgentID:
		return HandoffID
	case mTypeID:
		return TypeID
	case mInterruptID:
		return InterruptID
	case mWorkflowID:
		return WorkflowID
	}
	return AgentID
}

// refused reports whether a status says that the call never began.
func refused(status string) bool {
	return status == string(agentevents.ToolStatusForbidden) || status == string(agentevents.ToolStatusRateLimited)
}

// declares reports whether the schemas have a member that the vocabulary has no
// field for.
func (v *variant) declares(name string) bool { return strings.Contains(v.legal, " "+name+" ") }

// hatch reports whether a name is an extension. SchemaV2 allows extensions in
// most closed payloads.
func hatch(name string) bool {
	return strings.HasPrefix(name, "openwop-") || strings.HasPrefix(name, "x-") || strings.HasPrefix(name, "vendor.")
}

// undeclared returns the members that the decoder reads into the vocabulary, but
// SchemaV2 does not declare.
func undeclared(v int) set {
	switch v {
	case vReasoned, vDelta:
		return 1 << mBlockID
	case vToolCalled:
		return 1<<mToolID | 1<<mArguments
	case vToolReturned:
		return 1<<mToolID | 1<<mResult
	case vHandoff:
		return 1<<mAgentID | 1<<mFrom | 1<<mTo | 1<<mContext
	case vDecided:
		return 1 << mReasoning
	case vNodeStarted, vNodeCompleted:
		return 1<<mAgentID | 1<<mAgent
	case vAskResolved:
		return 1<<mAgentID | 1<<mAnsweredBy
	case vPermitResolved:
		return 1<<mAgentID | 1<<mPrincipal
	case vOrchestrator, vAskRequested, vPermitRequested, vMessage, vApprovalGranted, vApprovalRejected:
		return 0
	}
	return 1 << mAgentID
}

// loose returns the members of a variant that the decoder reads into the
// vocabulary, but the profile does not declare. If such a member has another type
// than the vocabulary's, it is an extra member.
func loose(p Profile, v int) set {
	if p > SchemaV2 {
		p = RFC0002
	}
	return looseMembers[p][v]
}

var looseMembers = func() (all [SchemaV2 + 1][numVariants]set) {
	rfc := set(1<<mToolID | 1<<mArguments | 1<<mResult | 1<<mFrom | 1<<mTo | 1<<mContext | 1<<mAgent | 1<<mReasoning)
	published := set(1<<mToolName | 1<<mInputs | 1<<mOutcome | 1<<mFromAgentID | 1<<mToAgentID)
	for v := range numVariants {
		v2 := undeclared(v)
		v1 := v2
		switch v {
		case vNodeSuspended:
			v1 |= 1 << mReason
		case vRunResumed:
			v2 |= 1 << mMessage
			v1 = v2
		case vClarResolved:
			v1 |= 1 << mInterruptID
		case vApprovalRequested:
			v1 |= 1<<mReason | 1<<mScope | 1<<mRisk | 1<<mCallID | 1<<mToolID | 1<<mArguments | 1<<mTimeoutMs
		case vPermitResolved:
			v1 |= 1<<mReason | 1<<mDecision
		}
		all[SchemaV2][v] = v2 & variants[v].members
		all[SchemaV1][v] = v1 & variants[v].members
		all[RFC0002][v] = v1 &^ rfc & variants[v].members
		switch v {
		case vToolCalled, vToolReturned, vHandoff:
			all[RFC0002][v] |= published & variants[v].members
		}
	}
	return all
}()

func (d *Decoder) checkClosed(f *fields, v int) error {
	vs := &variants[v]
	p := d.o.Profile
	if !vs.closed(p) {
		return nil
	}
	if p == SchemaV2 {
		switch v {
		case vClarRequested, vClarResolved, vApprovalRequested, vApprovalGranted, vApprovalRejected:
			return broken(RuleRequired, f, "/payload/kind", "is required: SchemaV2 has an interrupt's payload here")
		}
		if rest := f.seen & undeclared(v); rest != 0 {
			m := rest.lowest()
			return broken(RuleClosed, f, "/payload/"+memberName(m), "the profile does not declare it, and the payload is closed")
		}
	}
	if f.extra != "" {
		return broken(RuleClosed, f, f.extra, "is an extra member of a closed object")
	}
	return nil
}

// checkRef checks an AgentRef by the RFC, section A.
func checkRef(f *fields, m int) error {
	ref := &f.agent
	switch m {
	case mFrom:
		ref = &f.from
	case mTo:
		ref = &f.to
	}
	at := "/payload/" + memberName(m)
	if ref.AgentID == "" {
		return broken(RuleRequired, f, at+"/agentId", "is required")
	}
	switch s := ref.AgentSharing; s {
	case "", agentevents.SharingIsolated, agentevents.SharingShared:
	default:
		if _, ok := s.Group(); !ok {
			return broken(RuleEnum, f, at+"/agentSharing", strconv.Quote(string(s))+" is not isolated, shared or shared:<group>")
		}
	}
	switch c := ref.ModelClass; c {
	case "", agentevents.ModelReasoning, agentevents.ModelWriting, agentevents.ModelCoding, agentevents.ModelResearch,
		agentevents.ModelClassification, agentevents.ModelGeneral:
	default:
		return broken(RuleEnum, f, at+"/modelClass", strconv.Quote(string(c))+" is not reasoning, writing, coding, research, classification or general")
	}
	return nil
}

func checkError(f *fields, p Profile) error {
	if f.errHas&hasMessage == 0 {
		return broken(RuleRequired, f, "/payload/error/message", "is required")
	}
	if p == RFC0002 {
		if f.errHas&(hasCode|hasErrorWord) == 0 {
			return broken(RuleRequired, f, "/payload/error/code", "is required")
		}
		return nil
	}
	if f.errHas&hasCode == 0 {
		return broken(RuleRequired, f, "/payload/error/code", "is required")
	}
	if f.err.Code == "" {
		return broken(RuleRange, f, "/payload/error/code", "is empty")
	}
	if f.err.Message == "" {
		return broken(RuleRange, f, "/payload/error/message", "is empty")
	}
	if f.errHas&hasDetails != 0 && !isObject(string(f.err.Details)) {
		return broken(RuleForm, f, "/payload/error/details", "is not an object")
	}
	return nil
}

// checkDecision checks the decision of an orchestrator: it has one of three
// closed forms.
func checkDecision(f *fields, p Profile) error {
	if p == RFC0002 {
		return nil
	}
	if why := decisionError(f.val[mDecision], p, false); why != "" {
		return broken(RuleForm, f, "/payload/decision", why)
	}
	return nil
}

// decisionError returns what is wrong with the decision of an orchestrator, or
// "". With open set, extra members are allowed.
func decisionError(raw string, p Profile, open bool) string {
	if !isObject(raw) {
		return "is not an object"
	}
	var kind, prompt, workers, extra string
	reason, inputs, bad := true, "", ""
	allowed := " kind "
	for name, value := range jsonwire.Members(raw) {
		if name == "kind" {
			kind = jsonwire.Text(value)
		}
	}
	switch kind {
	case "next-worker":
		allowed += "nextWorkerIds confidence "
		if p == SchemaV2 {
			allowed += "nextWorkerInputs "
		}
	case "ask-user":
		allowed += "prompt "
	case "terminate":
		allowed += "reason confidence "
		if p == SchemaV2 {
			allowed += "successCriteria "
		}
	default:
		return "has a kind that is not next-worker, ask-user or terminate"
	}
	for name, value := range jsonwire.Members(raw) {
		if !strings.Contains(allowed, " "+name+" ") {
			if !open {
				extra = name
			}
			continue
		}
		switch name {
		case "nextWorkerIds":
			workers = value
		case "nextWorkerInputs":
			inputs = value
		case "prompt":
			prompt = jsonwire.Text(value)
		case "reason":
			reason = jsonwire.Text(value) != ""
		case "confidence":
			if n, err := strconv.ParseFloat(value, 64); err != nil || n < 0 || n > 1 {
				bad = "has a confidence that is not in [0, 1]"
			}
		case "successCriteria":
			if !validCriteria(value, open) {
				bad = "has successCriteria of another form"
			}
		}
	}
	switch {
	case extra != "":
		return "has the extra member " + strconv.Quote(extra) + ", but " + kind + " is closed"
	case bad != "":
		return bad
	case !reason:
		return "has an empty reason"
	case kind == "ask-user" && prompt == "":
		return "has no prompt"
	case kind == "next-worker":
		n, ok := count(workers, func(v string) bool {
			id := jsonwire.Text(v)
			return id != "" && utf8.RuneCountInString(id) <= 256
		})
		if !ok || n == 0 {
			return "needs a list of nextWorkerIds"
		}
		if inputs != "" {
			if k, ok := count(inputs, isObject); !ok || k != n {
				return "has nextWorkerInputs that are not one object for each worker"
			}
		}
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
