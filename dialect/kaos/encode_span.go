package kaos

import (
	"bytes"
	"strconv"
	"time"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect"
	"github.com/agentevents/agentevents/internal/jsonwire"
)

// boundary is what a span says outside its attributes.
type boundary struct {
	subject, phase   string
	open             bool   // subject and phase come from the event, and may need escapes
	prefix, name     string // two parts of the span's name
	duration         agentevents.Opt[time.Duration]
	errType, errText string
}

// span appends the members of a span.
func (e *Encoder) span(dst []byte, ev *agentevents.Event) []byte {
	text := jsonwire.AppendString
	switch p := ev.Payload.(type) {
	case *agentevents.TurnStarted:
		dst = e.boundary(dst, ev, e.opened(ev, sTurn, turnID(p.Turn)), &boundary{subject: "turn", phase: "start", name: p.Name})
		return e.free(turnNumber(dst, p.Turn), ev, p.Attributes, wanted[sTurn][pStart])
	case *agentevents.TurnEnded:
		b := &boundary{subject: "turn", phase: "complete", name: p.Name, duration: p.Duration}
		e.ended(ev, b, p.Error, false)
		dst = e.boundary(dst, ev, e.closed(ev, sTurn, turnID(p.Turn)), b)
		return e.free(turnNumber(dst, p.Turn), ev, p.Attributes, wanted[sTurn][pComplete])
	case *agentevents.StepStarted:
		dst = e.boundary(dst, ev, e.opened(ev, sStep, p.StepID), &boundary{subject: "step", phase: "start", name: p.Name})
		dst = text(append(dst, `"step_id":`...), p.StepID)
		if p.Description != "" || !e.odd(aDescription, p.Attributes) {
			dst = text(append(dst, `,"description":`...), p.Description)
		}
		e.made(p.StepID == "", "/payload/stepId")
		return e.free(dst, ev, p.Attributes, wanted[sStep][pStart])
	case *agentevents.StepEnded:
		b := &boundary{subject: "step", phase: "complete", name: p.Name, duration: p.Duration}
		failed := p.Error.OK && p.Error.V.Code == "" && p.Error.V.Message == p.ResultSummary && (p.ResultSummary != "" || e.peek("phase") == `"complete"`)
		e.ended(ev, b, p.Error, failed)
		dst = e.boundary(dst, ev, e.closed(ev, sStep, p.StepID), b)
		dst = text(append(dst, `"step_id":`...), p.StepID)
		if p.ResultSummary != "" || b.phase == "complete" && !e.odd(aResultSummary, p.Attributes) {
			dst = text(append(dst, `,"result_summary":`...), p.ResultSummary)
		}
		if b.phase == "complete" && (failed || !e.odd(aIsError, p.Attributes)) {
			dst = strconv.AppendBool(append(dst, `,"is_error":`...), failed)
		}
		e.made(p.StepID == "", "/payload/stepId")
		return e.free(dst, ev, p.Attributes, wanted[sStep][phaseOf(b.phase)])
	case *agentevents.ToolCalled:
		dst = e.called(dst, ev, p)
		return e.free(dst, ev, p.Attributes, wanted[sTool][pStart])
	case *agentevents.ToolReturned:
		dst = e.returned(dst, ev, p)
	case *agentevents.AgentStarted:
		dst = e.agentStarted(dst, ev, p)
	case *agentevents.AgentEnded:
		dst = e.agentEnded(dst, ev, p)
	case *agentevents.HandoffRequested:
		dst = e.boundary(dst, ev, e.opened(ev, sHandoff, p.From.AgentID+"\x00"+p.To.AgentID), e.named(&boundary{subject: "handoff", phase: "start"}, "handoff.", p.To.AgentID))
		dst = e.handoff(dst, ev, &p.From, &p.To, p.Reason)
		e.drop("/payload/handoffId", p.HandoffID != "")
		e.drop("/payload/contextDigest", p.ContextDigest != "")
	case *agentevents.HandoffAccepted:
		dst = e.boundary(dst, ev, e.closed(ev, sHandoff, p.From.AgentID+"\x00"+p.To.AgentID), e.named(&boundary{subject: "handoff", phase: "complete"}, "handoff.", p.To.AgentID))
		dst = e.handoff(dst, ev, &p.From, &p.To, p.Reason)
		e.drop("/payload/handoffId", p.HandoffID != "")
		e.drop("/payload/contextDigest", p.ContextDigest != "")
	case *agentevents.SpanRecorded:
		return e.recorded(dst, ev, p)
	}
	return append(e.keptUnder(dst, ev, "/attributes/"), '}')
}

// boundary appends the members of a span up to the first brace of its
// attributes.
func (e *Encoder) boundary(dst []byte, ev *agentevents.Event, span spanID, b *boundary) []byte {
	if b.open {
		dst = jsonwire.AppendString(append(dst, `,"subject":`...), b.subject)
		dst = jsonwire.AppendString(append(dst, `,"phase":`...), b.phase)
	} else {
		dst = append(append(append(dst, `,"subject":"`...), b.subject...), `","phase":"`...)
		dst = append(append(dst, b.phase...), '"')
	}
	if ev.SpanID == "" && ev.Origin() != "" {
		e.written = span
	}
	dst = span.append(append(dst, `,"span_id":`...))
	dst = appendText(append(dst, `,"parent_span_id":`...), ev.ParentSpanID)
	dst = append(dst, `,"name":`...)
	dst = appendName(dst, b.prefix, b.name)
	dst = append(dst, `,"duration_ms":`...)
	switch kept := ""; {
	case b.duration.OK:
		dst = appendMillis(dst, b.duration.V)
	default:
		if len(e.kept) > 0 {
			kept = e.take("duration_ms")
		}
		dst = append(dst, orElse(kept, "null")...)
	}
	switch {
	case b.errType != "" || b.errText != "":
		dst = appendText(append(dst, `,"error_type":`...), b.errType)
		dst = appendText(append(dst, `,"error_message":`...), b.errText)
	case len(e.kept) > 0:
		dst = append(append(dst, `,"error_type":`...), orElse(e.take("error_type"), "null")...)
		dst = append(append(dst, `,"error_message":`...), orElse(e.take("error_message"), "null")...)
	default:
		return append(dst, `,"error_type":null,"error_message":null,"attributes":{`...)
	}
	return append(dst, `,"attributes":{`...)
}

// appendName appends a text of two parts. The prefix needs no escapes.
func appendName(dst []byte, prefix, name string) []byte {
	if prefix == "" {
		return jsonwire.AppendString(dst, name)
	}
	dst = append(append(dst, '"'), prefix...)
	last := len(dst) - 1
	dst = jsonwire.AppendString(dst[:last], name) // the quote of name overwrites the end of prefix
	dst[last] = prefix[len(prefix)-1]
	return dst
}

// ended sets in b how a turn or step ended. failed means that the attributes say
// the error.
func (e *Encoder) ended(ev *agentevents.Event, b *boundary, err agentevents.Opt[agentevents.ErrorInfo], failed bool) {
	kept := e.take("phase")
	if !err.OK {
		return
	}
	switch {
	case failed:
	case kept == `"cancelled"` && err.V.Code == "cancelled" && err.V.Message == "":
		b.phase = "cancelled"
	default:
		b.phase, b.errType, b.errText = "error", err.V.Code, err.V.Message
	}
	e.errorInfo(&err.V)
}

// errorInfo notes what a span does not say of an error.
func (e *Encoder) errorInfo(err *agentevents.ErrorInfo) {
	e.drop("/payload/error/details", err.Details != "")
	e.drop("/payload/error/retryable", err.Retryable.OK)
}

// named sets the span's name for a kind without a name: the one that was read, or
// prefix and id.
func (e *Encoder) named(b *boundary, prefix, id string) *boundary {
	b.prefix, b.name = prefix, id
	if len(e.kept) > 0 {
		if kept := e.take("name"); kept != "" {
			b.prefix, b.name = "", jsonwire.Text(kept)
		}
	}
	return b
}

// opened returns the id of a span that begins, and notes the change. A subject that
// begins again before it has ended keeps its span.
func (e *Encoder) opened(ev *agentevents.Event, subject int, id string) spanID {
	c := &e.change
	c.opens, c.subject, c.id = true, subject, id
	span, open := e.isOpen(ev)
	c.closes = open
	if ev.SpanID != "" && paired(subject) && !(open && span.is(ev.SpanID)) {
		_, c.replaces = e.openSpan(ev.RunID, ev.SpanID, &c.replaced)
	}
	switch before := span; {
	case !open:
		span = e.spanID(ev, subject, id)
	case ev.SpanID == "":
		e.common.Set |= 1 << spanOfStart
	default:
		if span = e.spanID(ev, subject, id); !span.same(before) {
			span.other = true
			e.renamed(ev, subject, id, span)
		}
	}
	c.span.id, c.span.made, c.span.other = span.id, span.made, span.other
	return span
}

// isOpen returns the open span of the subject of e.change, and notes in e.change
// where its entry is.
func (e *Encoder) isOpen(ev *agentevents.Event) (span spanID, open bool) {
	var key openKey
	key.set(e.change.subject, e.change.id, ev)
	i := e.open.index(&key)
	if e.change.at = i; i >= 0 {
		return e.open.recent[i].value, true
	}
	if e.open.unlisted() {
		if span, open = e.open.get(&key); open {
			e.change.key = key
		}
	}
	return span, open
}

// renamed notes that readers know a call or an agent by its span, because another
// one of the same id is open.
func (e *Encoder) renamed(ev *agentevents.Event, subject int, id string, span spanID) {
	switch {
	case span.is(id):
	case subject == sTool:
		e.lose(dialect.Altered, "/payload/callId", "another call with this id is open: readers take the span's id")
		e.lose(dialect.Made, "/"+string(Name), "call_id")
	case subject == sSubagent && ev.AgentID != "":
		if e.change.opens {
			e.lose(dialect.Made, "/payload/agent", "the agent's id")
		} else {
			e.lose(dialect.Made, "/"+string(Name), "subagent_name")
		}
		e.lose(dialect.Altered, "/agentId", "another agent with this id is open: readers know this one by its span")
	}
}

// closed returns the id of a span that ends, and notes the change.
func (e *Encoder) closed(ev *agentevents.Event, subject int, id string) spanID {
	span, _ := e.close(ev, subject, id)
	return span
}

// close is like closed, and reports whether the span is open.
func (e *Encoder) close(ev *agentevents.Event, subject int, id string) (span spanID, open bool) {
	c := &e.change
	c.subject, c.id = subject, id
	span, open = e.isOpen(ev)
	if ev.SpanID != "" && paired(subject) && !(open && span.is(ev.SpanID)) {
		if span, open = e.openSpan(ev.RunID, ev.SpanID, &c.key); open {
			c.at, open = -1, c.key.subject == subject
		}
		if open {
			e.otherID(subject, id, &c.key)
		}
	}
	if !open {
		return e.spanID(ev, subject, id), false
	}
	e.known, c.closes = true, true
	if span.other {
		e.renamed(ev, subject, id, span)
	}
	if ev.SpanID != "" {
		return spanID{id: ev.SpanID}, true
	}
	e.common.Set |= 1 << spanOfStart
	return span, true
}

// paired reports whether readers find the start of a span of this subject by
// span_id.
func paired(subject int) bool { return subject >= sStep }

// openSpan finds an open span by the SpanID of the event that opened it.
func (e *Encoder) openSpan(run, id string, key *openKey) (span spanID, open bool) {
	for i := range e.open.recent {
		if o := &e.open.recent[i]; o.value.id == id && o.key.run == run && paired(o.key.subject) {
			*key = o.key
			return o.value, true
		}
	}
	if len(e.bySpan) == 0 {
		return span, false
	}
	if *key, open = e.bySpan[spanKey{id, run}]; open && paired(key.subject) {
		return e.open.get(key)
	}
	return span, false
}

// otherID notes that readers take the id of the start for what ends, if the ids
// differ.
func (e *Encoder) otherID(subject int, id string, start *openKey) {
	switch {
	case start.id == id:
	case subject == sTool:
		e.lose(dialect.Altered, "/payload/callId", "readers take the id of the span's start")
		e.lose(dialect.Made, "/"+string(Name), "call_id")
	case subject == sSubagent:
		e.lose(dialect.Altered, "/agentId", "readers take the id of the span's start")
		e.lose(dialect.Made, "/"+string(Name), "subagent_name")
	}
}

// spanID returns the event's span id, or makes one up of its subject, number, run
// and agent.
func (e *Encoder) spanID(ev *agentevents.Event, subject int, id string) spanID {
	if ev.SpanID != "" {
		return spanID{id: ev.SpanID}
	}
	e.common.Set |= 1 << madeSpan
	if e.given != (spanID{}) {
		return e.given
	}
	h := jsonwire.Mix(uint64(subject), ev.Sequence)
	return spanID{made: jsonwire.Mix(h, jsonwire.Mix(e.owner.hash, jsonwire.Hash(id)))}
}

func turnID(turn agentevents.Opt[int]) string {
	if !turn.OK {
		return ""
	}
	return strconv.Itoa(turn.V)
}

func turnNumber(dst []byte, turn agentevents.Opt[int]) []byte {
	if !turn.OK {
		return dst
	}
	return jsonwire.AppendInt(append(dst, `"turn_number":`...), int64(turn.V))
}

// free appends the members of the event's free attributes after those of its
// fields, and the closing brace. fields are the attributes that the decoder reads
// as fields; it leaves them out.
func (e *Encoder) free(dst []byte, ev *agentevents.Event, raw agentevents.JSON, fields attrSet) []byte {
	const pointer = "/payload/attributes"
	if len(e.kept) > 0 {
		dst = e.keptUnder(dst, ev, "/attributes/")
	}
	if raw == "" {
		return append(dst, '}')
	}
	text := e.json(ev, pointer, raw)
	s := &e.scanner
	s.Reset(text)
	if len(text) < 3 || s.Object() != nil {
		e.lose(dialect.Dropped, pointer, "it is not an object with members")
		return append(dst, '}')
	}
	for {
		n, name, err := s.Field(attrNames, len(attrNames))
		if n < 0 || err != nil {
			return append(dst, '}')
		}
		start := s.Offset()
		if s.Skip() != nil {
			return append(dst, '}')
		}
		value := text[start:s.Offset()]
		if n > 0 && fields.has(n) && (becomesField(n, value) || hasAttribute(dst, name)) {
			e.lose(dialect.Dropped, pointer+"/"+name, "the name of an attribute that is a field")
			continue
		}
		if dst[len(dst)-1] != '{' {
			dst = append(dst, ',')
		}
		dst = jsonwire.AppendString(dst, name)
		dst = append(append(dst, ':'), value...)
	}
}

// hasAttribute reports whether an unfinished line, which ends inside its
// attributes, has one of that name.
func hasAttribute(line []byte, name string) bool {
	const start = `"attributes":{` // not part of a string, in which quotes are escaped
	line = line[bytes.LastIndexByte(line, '\n')+1:]
	i := bytes.Index(line, []byte(start))
	return i >= 0 && jsonwire.HasMember(string(line[i+len(start)-1:])+"}", name)
}

// becomesField reports whether the decoder reads attribute n of that value as a
// field.
func becomesField(n int, value string) bool {
	var (
		a attrs
		s jsonwire.Scanner
	)
	s.Reset(value)
	taken, err := a.read(&s, n)
	return taken && err == nil
}

func (e *Encoder) called(dst []byte, ev *agentevents.Event, p *agentevents.ToolCalled) []byte {
	span := e.opened(ev, sTool, p.CallID)
	dst = e.boundary(dst, ev, span, e.named(&boundary{subject: "tool_call", phase: "start"}, "tool.", p.ToolID))
	dst = e.call(dst, ev, p.CallID, p.ToolID, span)
	if p.Arguments != "" {
		dst = append(append(dst, `,"arguments":`...), e.json(ev, "/payload/arguments", p.Arguments)...)
	}
	e.drop("/payload/argumentsSummary", p.ArgumentsSummary != "")
	e.drop("/payload/attempt", p.Attempt.OK)
	e.drop("/payload/retryOf", p.RetryOf != "")
	e.drop("/payload/argsHash", p.ArgsHash != "")
	e.drop("/payload/principal", p.Principal != "")
	e.drop("/payload/transport", p.Transport != "")
	return dst
}

// call appends the first attributes of a tool call. If the span's id is the call's
// id, call_id is absent, or it is what the line said that was read: the id of
// another open call.
func (e *Encoder) call(dst []byte, ev *agentevents.Event, call, tool string, span spanID) []byte {
	dst = jsonwire.AppendString(append(dst, `"tool_name":`...), tool)
	if tool == "" {
		e.lose(dialect.Altered, "", "a call without a tool is read as span.recorded")
	} else if call == "" {
		e.lose(dialect.Made, "/payload/callId", "readers take the span's id")
	}
	if !span.is(call) {
		return jsonwire.AppendString(append(dst, `,"call_id":`...), call)
	}
	if kept := e.take("/attributes/call_id"); kept != "" {
		dst = append(append(dst, `,"call_id":`...), kept...)
	}
	return dst
}

func (e *Encoder) returned(dst []byte, ev *agentevents.Event, p *agentevents.ToolReturned) []byte {
	b := e.named(&boundary{subject: "tool_call", phase: "complete", duration: p.Duration}, "tool.", p.ToolID)
	failed := false
	switch p.Status {
	case agentevents.ToolStatusOK:
	case agentevents.ToolStatusError:
		failed = true
	case agentevents.ToolStatusCancelled:
		b.phase = "cancelled"
	case agentevents.ToolStatusInterrupted:
		b.phase = "cancelled"
		e.lose(dialect.Altered, "/payload/status", "cancelled")
	case agentevents.ToolStatusForbidden, agentevents.ToolStatusRateLimited:
		failed = true
		e.lose(dialect.Altered, "/payload/status", "error")
		if !p.Error.OK || p.Error.V.Code == "" {
			b.errType = string(p.Status)
			e.lose(dialect.Made, orElse(map[bool]string{true: "/payload/error/code"}[p.Error.OK], "/payload/error"), "the status")
		}
	default:
		e.lose(dialect.Altered, "/payload/status", "ok")
	}
	if failed && (p.Error.OK || b.errType != "") {
		b.phase, failed = "error", false
		b.errType, b.errText = orElse(p.Error.V.Code, b.errType), p.Error.V.Message
		e.errorInfo(&p.Error.V)
	} else {
		e.drop("/payload/error", p.Error.OK)
	}
	var span spanID
	open := false
	if p.OneEvent && ev.SpanID == "" {
		span = e.spanID(ev, sTool, p.CallID)
	} else {
		span, open = e.close(ev, sTool, p.CallID)
	}
	switch {
	case open && p.OneEvent:
		e.drop("/payload/oneEvent", true)
		if p.Arguments != "" {
			e.drop("/payload/arguments", true)
			e.lose(dialect.Made, "/"+string(Name), "arguments")
		}
	case !open && !p.OneEvent:
		e.lose(dialect.Made, "/payload/oneEvent", "the log has no start of its span")
	}
	dst = e.boundary(dst, ev, span, b)
	dst = e.call(dst, ev, p.CallID, p.ToolID, span)
	summary, result := p.ResultSummary, ""
	if p.Result != "" {
		result = e.json(ev, "/payload/result", p.Result)
		made := summaryOf(result)
		if summary != "" && summary == made {
			e.lose(dialect.Dropped, "/payload/resultSummary", "readers take the beginning of a result for a made-up summary")
		}
		summary = orElse(summary, made)
	}
	if summary != "" || b.phase == "complete" && !e.odd(aResultSummary, "") {
		dst = jsonwire.AppendString(append(dst, `,"result_summary":`...), summary)
	}
	if b.phase == "complete" && (failed || !e.odd(aIsError, "")) {
		dst = strconv.AppendBool(append(dst, `,"is_error":`...), failed)
	}
	if p.Arguments != "" {
		if p.OneEvent {
			dst = append(append(dst, `,"arguments":`...), e.json(ev, "/payload/arguments", p.Arguments)...)
		} else {
			e.lose(dialect.Dropped, "/payload/arguments", "the start has them")
		}
	}
	if result != "" {
		dst = append(append(dst, `,"result":`...), result...)
	}
	e.drop("/payload/argumentsSummary", p.ArgumentsSummary != "")
	return dst
}

// agentKey returns what identifies the agent of a subagent span.
func agentKey(ev *agentevents.Event) string { return orElse(ev.AgentID, ev.SpanID) }

func (e *Encoder) agentStarted(dst []byte, ev *agentevents.Event, p *agentevents.AgentStarted) []byte {
	name := ev.AgentID
	if ref := &p.Agent.V; p.Agent.OK {
		if name == "" && ref.AgentID != "" {
			name = ref.AgentID
			if _, open := e.open.get(&openKey{sSubagent, name, name, ev.RunID}); !open || ev.SpanID == "" {
				e.lose(dialect.Made, "/agentId", "the agent's id")
				e.lose(dialect.Dropped, "/payload/agent", "")
			} else {
				e.ref("/payload/agent", ref)
			}
		} else {
			e.lose(dialect.Dropped, "/payload/agent", "the document has only the agent's name")
		}
	}
	dst = e.boundary(dst, ev, e.opened(ev, sSubagent, agentKey(ev)), e.named(&boundary{subject: "subagent", phase: "start"}, "subagent.", name))
	if name != "" {
		dst = jsonwire.AppendString(append(dst, `"subagent_name":`...), name)
		dst = append(dst, ',')
	}
	if p.Task != "" || !e.odd(aTask, "") {
		dst = jsonwire.AppendString(append(dst, `"task":`...), p.Task)
	} else if name != "" {
		dst = dst[:len(dst)-1] // the comma
	}
	e.parent(ev, name)
	e.drop("/payload/model", p.Model != "")
	e.drop("/payload/providerSessionId", p.ProviderSessionID != "")
	e.drop("/payload/prompt", p.Prompt != "")
	e.drop("/payload/attempt", p.Attempt.OK)
	e.drop("/payload/resumed", p.Resumed)
	return dst
}

// parent notes the loss of a parent that has the agent's own name.
func (e *Encoder) parent(ev *agentevents.Event, name string) {
	if name != "" && ev.ParentAgentID == name {
		e.drop("/parentAgentId", true)
		e.lose(dialect.Made, "/"+string(Name), "agent_id")
	}
}

// made notes that readers make up a required id, if it is empty.
func (e *Encoder) made(empty bool, pointer string) {
	if empty {
		e.lose(dialect.Made, pointer, "readers take the name or the span's id")
	}
}

func (e *Encoder) agentEnded(dst []byte, ev *agentevents.Event, p *agentevents.AgentEnded) []byte {
	b := &boundary{subject: "subagent", phase: "complete", duration: p.Duration}
	switch {
	case p.Error.OK:
		b.phase, b.errType, b.errText = "error", p.Error.V.Code, p.Error.V.Message
		e.errorInfo(&p.Error.V)
		e.drop("/payload/outcome", p.Outcome != "")
	case p.Outcome == agentevents.OutcomeAborted:
		b.phase = "cancelled"
	default:
		e.drop("/payload/outcome", p.Outcome != "")
	}
	// If readers know the agent by its span, the line has a name that another open
	// agent has, too.
	name, kept := ev.AgentID, e.take("/attributes/subagent_name")
	if kept != "" {
		name = jsonwire.Text(kept)
	}
	e.named(b, "subagent.", name)
	dst = e.boundary(dst, ev, e.closed(ev, sSubagent, agentKey(ev)), b)
	switch {
	case kept != "":
		dst = append(append(append(dst, `"subagent_name":`...), kept...), ',')
	case name != "":
		dst = append(jsonwire.AppendString(append(dst, `"subagent_name":`...), name), ',')
	}
	if p.Result != "" || p.Usage.OK || !e.odd(aResultSummary, "") {
		dst = jsonwire.AppendString(append(dst, `"result_summary":`...), p.Result)
	} else if dst[len(dst)-1] == ',' {
		dst = dst[:len(dst)-1]
	}
	e.parent(ev, name)
	if p.Usage.OK {
		u := &p.Usage.V
		e.take("/attributes/tokens_used")
		dst = jsonwire.AppendInt(append(dst, `,"tokens_used":`...), u.TotalTokens.Or(u.InputTokens+u.OutputTokens))
		e.lose(dialect.Dropped, "/payload/usage", "only its total is written, as tokens_used, which is read as an extra member")
		e.lose(dialect.Made, "/"+string(Name), "tokens_used")
	}
	e.drop("/payload/structuredOutput", p.StructuredOutput != "")
	e.drop("/payload/modelUsage", p.ModelUsage != nil)
	e.drop("/payload/totalCostUsd", p.TotalCostUSD.OK)
	e.drop("/payload/numTurns", p.NumTurns.OK)
	e.drop("/payload/totals", p.Totals.OK)
	e.drop("/payload/convergenceScore", p.ConvergenceScore.OK)
	e.drop("/payload/resultSchema", p.ResultSchema != "")
	return dst
}

func (e *Encoder) handoff(dst []byte, ev *agentevents.Event, from, to *agentevents.AgentRef, reason string) []byte {
	dst = jsonwire.AppendString(append(dst, `"from_agent":`...), from.AgentID)
	dst = jsonwire.AppendString(append(dst, `,"to_agent":`...), to.AgentID)
	if reason != "" || !e.odd(aReason, "") {
		dst = jsonwire.AppendString(append(dst, `,"reason":`...), reason)
	}
	e.ref("/payload/from", from)
	e.ref("/payload/to", to)
	if from.AgentID == "" || to.AgentID == "" {
		e.lose(dialect.Altered, "", "a handoff without both agents is read as span.recorded")
	}
	return dst
}

// ref notes what the line does not say of an agent.
func (e *Encoder) ref(pointer string, ref *agentevents.AgentRef) {
	if len(ref.AgentSharing)|len(ref.MemoryRef)|len(ref.ModelClass) == 0 {
		return
	}
	e.drop(pointer+"/agentSharing", ref.AgentSharing != "")
	e.drop(pointer+"/memoryRef", ref.MemoryRef != "")
	e.drop(pointer+"/modelClass", ref.ModelClass != "")
}

func (e *Encoder) recorded(dst []byte, ev *agentevents.Event, p *agentevents.SpanRecorded) []byte {
	var key openKey
	key.set(sOther, p.Subject+"\x00"+p.Name, ev)
	var span spanID
	switch phaseOf(p.Phase) {
	case pStart:
		span = e.opened(ev, sOther, key.id)
	case pOther: // neither the start nor the end of the span
		var open bool
		if span, open = e.open.get(&key); ev.SpanID != "" || !open {
			span = e.spanID(ev, key.subject, key.id)
		} else {
			e.common.Set |= 1 << spanOfStart
		}
	default:
		span = e.closed(ev, sOther, key.id)
	}
	start := len(dst)
	dst = e.boundary(dst, ev, span, &boundary{
		open:    true,
		subject: p.Subject, phase: p.Phase, name: p.Name, duration: p.Duration, errType: p.ErrorType, errText: p.ErrorMessage,
	})
	dst = e.object(dst[:len(dst)-1], ev, "/payload/attributes", p.Attributes)
	if wanted[subjectOf(p.Subject)][phaseOf(p.Phase)] != 0 {
		var d Decoder
		was, err := d.document(nil, []byte(`{"run_id":"r"`+string(dst[start:])+`,"type":"span"}`))
		if err == nil && was[0].Kind() != ev.Kind() {
			e.lose(dialect.Altered, "", "the pair of subject and phase is read as "+string(was[0].Kind()))
		}
	}
	return dst
}

// expect prepares a decoder for the line of an event that closes a span: it opens
// the span, because the line may leave out what the start says.
func (d *Decoder) expect(ev *agentevents.Event) {
	l := &line{run: ev.RunID, span: ev.SpanID}
	switch p := ev.Payload.(type) {
	case *agentevents.ToolReturned:
		if !p.OneEvent {
			d.begin(l, sTool, "", p.CallID, p.ToolID)
		}
	case *agentevents.StepEnded:
		d.begin(l, sStep, "", p.StepID, "")
	case *agentevents.AgentEnded:
		d.begin(l, sSubagent, "", ev.AgentID, "")
	case *agentevents.HandoffAccepted:
		d.begin(l, sHandoff, "", p.From.AgentID, p.To.AgentID)
	}
}
