package kaos

import (
	"strings"
	"unicode/utf8"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/internal/jsonwire"
)

// boundary is a fast path that reads subject and phase in one go from rest, the
// text after another member. It takes only subjects and phases with kinds of their
// own, written without blanks. It returns the size of what it read. With 0 the
// caller must read the members one by one, which overwrites what is set here.
func (l *line) boundary(rest string) (size int) {
	const (
		before  = `,"subject":"`
		between = `","phase":"`
		longest = len(before + "tool_call" + between + `cancelled"`)
	)
	if len(rest) < longest || rest[:len(before)] != before {
		return 0
	}
	at := rest[len(before):]
	switch at[:2] {
	case "to":
		l.sub, l.subject = sTool, "tool_call"
	case "su":
		l.sub, l.subject = sSubagent, "subagent"
	case "st":
		l.sub, l.subject = sStep, "step"
	case "tu":
		l.sub, l.subject = sTurn, "turn"
	default:
		l.sub, l.subject = sHandoff, "handoff"
	}
	n := len(l.subject)
	if at[:n] != l.subject || at[n:n+len(between)] != between {
		return 0
	}
	at = at[n+len(between):]
	switch at[:2] {
	case "st":
		l.ph, l.phase = pStart, "start"
	case "co":
		l.ph, l.phase = pComplete, "complete"
	case "er":
		l.ph, l.phase = pError, "error"
	default:
		l.ph, l.phase = pCancelled, "cancelled"
	}
	m := len(l.phase)
	if at[:m] != l.phase || at[m] != '"' {
		return 0
	}
	return len(before) + n + len(between) + m + 1
}

// spanHead is a fast path for the members that follow subject and phase in most
// spans. It stops at the first one that is not written as expected, and returns
// the last member that it read.
func (l *line) spanHead(s *jsonwire.Scanner) (last int, err error) {
	const (
		id   = `,"span_id":`
		name = `,"parent_span_id":null,"name":`
	)
	if l.has(mSpanID) || !strings.HasPrefix(s.Rest(), id) {
		return mPhase, nil
	}
	s.Pass(len(id))
	l.seen |= 1 << mSpanID
	l.span, err = s.String()
	if err != nil || l.seen&(1<<mParentSpanID|1<<mName) != 0 || !strings.HasPrefix(s.Rest(), name) {
		return mSpanID, err
	}
	s.Pass(len(name))
	l.seen |= 1<<mParentSpanID | 1<<mName
	if l.name, err = s.String(); err != nil {
		return mName, err
	}
	return l.nulls(s, mName), nil
}

// nulls is a fast path for the members after member n that mostly are all null. It
// returns the last member that it read, or n.
func (l *line) nulls(s *jsonwire.Scanner, n int) (last int) {
	nulls := &spanNulls[n]
	if nulls.members == 0 || nulls.members&l.seen != 0 || !strings.HasPrefix(s.Rest(), nulls.lit) {
		return n
	}
	s.Pass(len(nulls.lit))
	l.seen |= nulls.members
	return nulls.last
}

// spanMember reads a member of a span.
func (d *Decoder) spanMember(s *jsonwire.Scanner, l *line, n int) (err error) {
	switch n {
	case mSubject:
		l.subject, err = s.String()
		l.sub = subjectOf(l.subject)
	case mPhase:
		l.phase, err = s.String()
		l.ph = phaseOf(l.phase)
	case mSpanID:
		l.span, err = s.String()
	case mParentSpanID:
		if !s.Null() {
			l.parent, err = s.String()
		}
	case mName:
		l.name, err = s.String()
	case mDuration:
		if !s.Null() {
			l.duration.V, err = s.Millis()
			l.duration.OK = true
		}
	case mErrorType:
		if !s.Null() {
			l.errType.V, err = s.String()
			l.errType.OK = true
		}
	case mErrorMessage:
		if !s.Null() {
			l.errText.V, err = s.String()
			l.errText.OK = true
		}
	case mAttributes:
		if s.Kind() != '{' {
			return s.Object() // the error says what is there instead
		}
		l.attrsAt = s.Offset()
		if l.has(mSubject) && l.has(mPhase) {
			if want := wanted[l.sub][l.ph]; want != 0 {
				return d.attributes(s, l, want)
			}
		}
		err = s.Skip() // spanPayload reads them once subject and phase are known
	}
	return err
}

// attributes reads the attributes: those in want become fields if they have the
// types of the document, and all others go to d.rest.
func (d *Decoder) attributes(s *jsonwire.Scanner, l *line, want attrSet) error {
	if err := s.Object(); err != nil {
		return err
	}
	a := &l.attrs
	a.has |= 1 // marks the attributes as read: numbers of attributes begin with 1
	after := &d.after[l.sub][l.ph]
	seen := attrSet(0) // includes attributes of a wrong type
	for last := 0; ; {
		n, name, err := s.Field(attrNames, int(after[last]))
		if err != nil {
			return err
		}
		if n < 0 {
			return nil
		}
		at := s.Offset()
		if n > 0 {
			after[last], last = uint8(n-1), n
			if seen.has(n) {
				return s.Duplicate(name)
			}
			seen |= 1 << n
			if want.has(n) {
				var taken bool
				if n == aResultSummary && l.sub == sTool && s.Kind() == '"' {
					a.summary, err = s.Raw() // raw, because it mostly repeats the result
					taken = true
				} else {
					taken, err = a.read(s, n)
				}
				if err != nil {
					return err
				}
				if taken {
					a.has |= 1 << n
					continue
				}
			}
		}
		raw, err := s.Raw()
		if err != nil {
			return err
		}
		if !d.rest.Add(name, raw) {
			return duplicate(at, name)
		}
	}
}

// read reads attribute n. It reports false, and reads nothing, if the attribute
// has another type than the document's.
func (a *attrs) read(s *jsonwire.Scanner, n int) (taken bool, err error) {
	kind := s.Kind()
	switch n {
	case aArguments:
		a.arguments, err = s.Raw()
		return true, err
	case aResult:
		a.value, err = s.Raw()
		return true, err
	case aIsError:
		if kind == 't' || kind == 'f' {
			a.isError, err = s.Bool()
			return true, err
		}
		return false, nil
	case aTurnNumber:
		if kind != '0' {
			return false, nil
		}
		turn, err := s.SmallInt()
		if err != nil {
			return false, nil // not an int: the generic reader takes it, or reports the error
		}
		a.turn = turn
		return true, nil
	}
	if kind != '"' {
		return false, nil
	}
	to := &a.tool
	switch n {
	case aCallID:
		to = &a.call
	case aResultSummary:
		to = &a.result
	case aStepID:
		to = &a.step
	case aDescription:
		to = &a.description
	case aSubagentName:
		to = &a.subagent
	case aTask:
		to = &a.task
	case aFromAgent:
		to = &a.from
	case aToAgent:
		to = &a.to
	case aReason:
		to = &a.reason
	}
	*to, err = s.String()
	return true, err
}

// spanPayload makes the payload of a span, and updates the open spans.
func (d *Decoder) spanPayload(l *line, ev *agentevents.Event) agentevents.Payload {
	subject, phase := l.sub, l.ph
	want := wanted[subject][phase]
	if want == 0 {
		if subject != sOther && phase >= pComplete {
			d.close(l, subject, new(openSpan)) // a handoff with phase error or cancelled
		}
		return d.recorded(l)
	}
	if d.record {
		return d.recorded(l)
	}
	if l.has(mAttributes) && l.attrs.has == 0 {
		s := &d.scanner
		s.Reset(l.text[l.attrsAt:])
		if d.attributes(s, l, want) != nil {
			return d.recorded(l) // unreachable: Skip has checked the syntax
		}
	}
	if phase == pStart {
		d.restart(l)
	}
	var p agentevents.Payload
	switch subject {
	case sTurn:
		p = d.turn(l, phase)
	case sStep:
		p = d.step(l, phase)
	case sTool:
		p = d.tool(l, phase)
	case sSubagent:
		p = d.subagent(l, phase, ev)
	default:
		p = d.handoff(l, phase)
	}
	if p == nil {
		return d.recorded(l)
	}
	return p
}

// recorded makes a SpanRecorded.
func (d *Decoder) recorded(l *line) agentevents.Payload {
	p := &agentevents.SpanRecorded{
		Subject: l.subject, Phase: l.phase, Name: l.name, Duration: l.duration, ErrorType: l.errType.V, ErrorMessage: l.errText.V,
	}
	if l.has(mAttributes) {
		s := &d.scanner
		s.Reset(l.text[l.attrsAt:])
		if raw, err := s.Raw(); err == nil && raw != "{}" {
			p.Attributes = agentevents.JSON(raw)
		}
	}
	return p
}

// restart removes an open span with the line's span_id.
func (d *Decoder) restart(l *line) {
	var key spanKey
	key.span, key.run = l.span, l.run
	if i := d.open.index(&key); i >= 0 {
		d.open.removeAt(i)
	} else if d.open.unlisted() {
		if old, ok := d.open.take(&key); ok {
			d.forget(old.idKey())
		}
	}
}

// begin notes an open span. id is the subject's id, and agent the agent in whose
// name it is unique.
func (d *Decoder) begin(l *line, subject int, agent, id, tool string) {
	if l.span == "" {
		return
	}
	var key spanKey
	key.span, key.run = l.span, l.run
	if len(l.text) > longLine {
		key.run, key.span, id, tool = cloned(l.run, l.span, id, tool)
		agent = strings.Clone(agent)
	}
	o, left, forgotten := d.open.put(&key)
	o.subject, o.run, o.agent, o.id, o.tool = subject, key.run, agent, id, tool
	if left != nil && left.value.id != "" {
		if d.taken == nil {
			d.taken = map[idKey]int{}
		}
		d.taken[left.value.idKey()]++
	}
	for _, old := range forgotten {
		d.forget(old.idKey())
	}
}

// longLine is the size up to which the entries in the list of open spans may keep
// a whole line alive. There are at most maxRecent of them.
const longLine = 4096

// ownOpen copies the texts of an entry, which otherwise keep whole lines alive.
func ownOpen(k spanKey, o openSpan) (spanKey, openSpan) {
	k.run, k.span, o.id, o.tool = cloned(k.run, k.span, o.id, o.tool)
	o.run, o.agent = k.run, strings.Clone(o.agent)
	return k, o
}

// close removes the open span of the line from the open spans and stores it in o.
// It reports false if there is none of that subject.
func (d *Decoder) close(l *line, subject int, o *openSpan) bool {
	var key spanKey
	key.span, key.run = l.span, l.run
	if i := d.open.index(&key); i >= 0 {
		if d.open.recent[i].value.subject != subject {
			return false
		}
		*o = d.open.recent[i].value
		d.open.removeAt(i)
		return true
	}
	if !d.open.unlisted() {
		return false
	}
	old, ok := d.open.get(&key)
	if !ok || old.subject != subject {
		return false
	}
	*o = old
	d.open.take(&key)
	d.forget(old.idKey())
	return true
}

// forget decrements the count of an id in d.taken.
func (d *Decoder) forget(key idKey) {
	if n := d.taken[key]; n > 1 {
		d.taken[key] = n - 1
	} else {
		delete(d.taken, key)
	}
}

// isTaken reports whether another open span of the agent has the id.
func (d *Decoder) isTaken(subject int, run, agent, id string) bool {
	for i := range d.open.recent {
		if o := &d.open.recent[i].value; o.id == id && o.subject == subject && o.agent == agent && o.run == run {
			return true
		}
	}
	return len(d.taken) > 0 && d.taken[idKey{subject, run, agent, id}] > 0
}

func (o *openSpan) idKey() idKey { return idKey{o.subject, o.run, o.agent, o.id} }

// keepName keeps the span's name as an extra member, for kinds without a name. It
// does not keep the name that the encoder makes of prefix and id.
func (d *Decoder) keepName(l *line, prefix, id string) {
	if rest, ok := strings.CutPrefix(l.name, prefix); ok && rest == id || !l.has(mName) {
		return
	}
	d.unknown.Add("name", jsonwire.Quote(l.name))
}

// keepAttributes keeps the attributes in d.rest as extra members, for kinds
// without free attributes.
func (d *Decoder) keepAttributes() {
	for name, value := range jsonwire.Members(string(d.rest.Object())) {
		d.unknown.Add("/attributes/"+jsonwire.Token(name), value)
	}
}

// keepError keeps the error members of a phase that should have none as extra
// members.
func (d *Decoder) keepError(l *line) {
	if l.errType.OK {
		d.unknown.Add("error_type", jsonwire.Quote(l.errType.V))
	}
	if l.errText.OK {
		d.unknown.Add("error_message", jsonwire.Quote(l.errText.V))
	}
}

// keepDuration keeps the duration of a start as an extra member.
func (d *Decoder) keepDuration(l *line) {
	if l.duration.OK {
		d.unknown.Add("duration_ms", string(appendMillis(nil, l.duration.V)))
	}
}

// failed returns the error of a closing phase, if that is error or cancelled.
func (d *Decoder) failed(l *line, phase int) agentevents.Opt[agentevents.ErrorInfo] {
	switch phase {
	case pError:
		return agentevents.Some(agentevents.ErrorInfo{Code: l.errType.V, Message: l.errText.V})
	case pCancelled:
		d.unknown.Add("phase", `"cancelled"`)
		d.keepError(l)
		return agentevents.Some(agentevents.ErrorInfo{Code: "cancelled"})
	}
	d.keepError(l)
	return agentevents.Opt[agentevents.ErrorInfo]{}
}

func (d *Decoder) turn(l *line, phase int) agentevents.Payload {
	turn := agentevents.Opt[int]{V: l.attrs.turn, OK: l.attrs.has.has(aTurnNumber)}
	if phase == pStart {
		d.keepDuration(l)
		d.keepError(l)
		return &agentevents.TurnStarted{Turn: turn, Name: l.name, Attributes: d.rest.Object()}
	}
	return &agentevents.TurnEnded{Turn: turn, Name: l.name, Duration: l.duration, Error: d.failed(l, phase), Attributes: d.rest.Object()}
}

func (d *Decoder) step(l *line, phase int) agentevents.Payload {
	id := l.attrs.step
	if phase != pStart {
		var o openSpan
		if d.close(l, sStep, &o) && id == "" {
			id = o.id
		}
	}
	if id == "" {
		if id = strings.TrimPrefix(l.name, "step."); id == l.name || id == "" {
			if id = l.span; id == "" {
				return nil
			}
		}
	}
	if phase == pStart {
		d.begin(l, sStep, "", id, "")
		d.keepDuration(l)
		d.keepError(l)
		return &agentevents.StepStarted{StepID: id, Name: l.name, Description: l.attrs.description, Attributes: d.rest.Object()}
	}
	p := &agentevents.StepEnded{
		StepID: id, Name: l.name, Duration: l.duration, ResultSummary: l.attrs.result, Error: d.failed(l, phase), Attributes: d.rest.Object(),
	}
	if l.attrs.isError { // the phase is complete, the step has failed
		p.Error = agentevents.Some(agentevents.ErrorInfo{Message: l.attrs.result})
		if l.attrs.result == "" {
			d.unknown.Add("phase", `"complete"`)
		}
	}
	return p
}

func (d *Decoder) tool(l *line, phase int) agentevents.Payload {
	a := &l.attrs
	call, tool := a.call, a.tool
	var o openSpan
	open := false
	if phase != pStart {
		open = d.close(l, sTool, &o)
	}
	if tool == "" {
		if open {
			tool = o.tool
		} else if rest, ok := strings.CutPrefix(l.name, "tool."); ok {
			tool = rest
		}
	}
	switch {
	case phase == pStart:
		if call == "" || d.isTaken(sTool, l.run, l.agent, call) {
			call = l.span // some producers write the tool's name as the call id
		}
	case open:
		call = o.id
	case call == "":
		call = l.span
	}
	if tool == "" || call == "" {
		return nil
	}
	if a.call != "" && a.call != call {
		d.unknown.Add("/attributes/call_id", jsonwire.Quote(a.call))
	}
	d.keepName(l, "tool.", tool)
	if phase == pStart {
		d.begin(l, sTool, l.agent, call, tool)
		d.keepDuration(l)
		d.keepError(l)
		return &agentevents.ToolCalled{CallID: call, ToolID: tool, Arguments: agentevents.JSON(a.arguments), Attributes: d.rest.Object()}
	}
	d.keepAttributes()
	p := &agentevents.ToolReturned{
		CallID: call, ToolID: tool, Status: agentevents.ToolStatusOK, Result: agentevents.JSON(a.value), Duration: l.duration, OneEvent: !open,
	}
	if a.summary != "" && !isSummary(a.summary, a.value) {
		p.ResultSummary = jsonwire.Text(a.summary)
	}
	if !open {
		p.Arguments = agentevents.JSON(a.arguments)
	} else if a.arguments != "" {
		d.unknown.Add("/attributes/arguments", a.arguments)
	}
	switch {
	case phase == pError:
		p.Status = agentevents.ToolStatusError
		p.Error = agentevents.Some(agentevents.ErrorInfo{Code: l.errType.V, Message: l.errText.V})
		return p
	case phase == pCancelled:
		p.Status = agentevents.ToolStatusCancelled
	case a.isError:
		p.Status = agentevents.ToolStatusError
	}
	d.keepError(l)
	return p
}

// maxSummary is the length in bytes of a summary that the encoder makes up.
const maxSummary = 200

// summaryOf returns the summary that the encoder makes up for a result: the
// beginning of its text. The result is JSON without blanks.
func summaryOf(result string) string {
	if strings.HasPrefix(result, `"`) {
		result = jsonwire.Text(result)
	}
	if len(result) <= maxSummary {
		return result
	}
	n := maxSummary
	for !utf8.RuneStart(result[n]) {
		n--
	}
	return result[:n]
}

// isSummary reports whether a text, in its JSON spelling, is the summary that the
// encoder makes up for the result.
func isSummary(spelled, result string) bool {
	return result != "" && (spelled == result && len(result) <= maxSummary || jsonwire.Spells(spelled, summaryOf(result)))
}

func (d *Decoder) subagent(l *line, phase int, ev *agentevents.Event) agentevents.Payload {
	a := &l.attrs
	// The line's agent delegates; the event's agent does the work.
	ev.AgentID, ev.ParentAgentID = a.subagent, l.agent
	if l.agent != "" && l.agent == a.subagent {
		ev.ParentAgentID = ""
		d.unknown.Add("agent_id", jsonwire.Quote(l.agent))
	}
	if phase == pStart {
		p := &agentevents.AgentStarted{Task: a.task}
		if a.subagent != "" && d.isTaken(sSubagent, l.run, "", a.subagent) && l.span != "" {
			// Another agent of that name is open: readers know this one by its span.
			p.Agent = agentevents.Some(agentevents.AgentRef{AgentID: a.subagent})
			ev.AgentID = ""
		}
		d.begin(l, sSubagent, "", ev.AgentID, "")
		d.keepName(l, "subagent.", a.subagent)
		d.keepDuration(l)
		d.keepError(l)
		d.keepAttributes()
		return p
	}
	var o openSpan
	if d.close(l, sSubagent, &o) {
		if ev.AgentID = o.id; o.id != a.subagent && a.subagent != "" {
			d.unknown.Add("/attributes/subagent_name", jsonwire.Quote(a.subagent))
		}
	}
	name := a.subagent
	if name == "" {
		name = ev.AgentID
	}
	d.keepName(l, "subagent.", name)
	d.keepAttributes()
	p := &agentevents.AgentEnded{Result: a.result, Duration: l.duration}
	switch phase {
	case pError:
		p.Error = agentevents.Some(agentevents.ErrorInfo{Code: l.errType.V, Message: l.errText.V})
		return p
	case pCancelled:
		p.Outcome = agentevents.OutcomeAborted
	}
	d.keepError(l)
	return p
}

func (d *Decoder) handoff(l *line, phase int) agentevents.Payload {
	a := &l.attrs
	from, to := a.from, a.to
	if phase != pStart {
		var o openSpan
		if d.close(l, sHandoff, &o) {
			if from == "" {
				from = o.id
			}
			if to == "" {
				to = o.tool
			}
		}
	}
	if from == "" || to == "" {
		return nil
	}
	d.keepName(l, "handoff.", to)
	d.keepDuration(l)
	d.keepError(l)
	d.keepAttributes()
	if phase == pStart {
		d.begin(l, sHandoff, "", from, to)
		return &agentevents.HandoffRequested{From: agentevents.AgentRef{AgentID: from}, To: agentevents.AgentRef{AgentID: to}, Reason: a.reason}
	}
	return &agentevents.HandoffAccepted{From: agentevents.AgentRef{AgentID: from}, To: agentevents.AgentRef{AgentID: to}, Reason: a.reason}
}
