package openharness

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect"
	"github.com/agentevents/agentevents/internal/jsonwire"
)

func (e *Encoder) refuse(ev *agentevents.Event, rule agentevents.Rule, pointer, detail string) error {
	return &agentevents.RuleError{Rule: rule, Kind: ev.Kind(), RunID: ev.RunID, AgentID: ev.AgentID, EventID: ev.ID, Sequence: ev.Sequence,
		Pointer: pointer, Detail: detail}
}

// outOfRange returns the pointer of a number that the document does not allow on a line
// of variant v, and what is wrong with it.
func outOfRange(payload agentevents.Payload, v int) (pointer, detail string) {
	const below = "is below 0"
	switch p := payload.(type) {
	case *agentevents.AgentReasoningDelta:
		if p.TokenCount.OK && p.TokenCount.V < 0 {
			return "/payload/tokenCount", below
		}
	case *agentevents.AgentReasoned:
		if p.TokenCount.OK && p.TokenCount.V < 0 {
			return "/payload/tokenCount", below
		}
	case *agentevents.ToolReturned:
		if p.Duration.OK && p.Duration.V < 0 {
			return "/payload/durationMs", below
		}
	case *agentevents.LoopIterated:
		if p.Iteration < 1 {
			return "/payload/iteration", "is below 1"
		}
	case *agentevents.AgentEnded:
		if v != vComplete {
			return "", "" // agent:error has no numbers
		}
		switch u := &p.Usage.V; {
		case p.Duration.OK && p.Duration.V < 0:
			return "/payload/durationMs", below
		case p.NumTurns.OK && p.NumTurns.V < 0:
			return "/payload/numTurns", below
		case p.TotalCostUSD.OK && p.TotalCostUSD.V < 0:
			return "/payload/totalCostUsd", below
		case !p.Usage.OK:
		case u.InputTokens < 0:
			return "/payload/usage/inputTokens", below
		case u.OutputTokens < 0:
			return "/payload/usage/outputTokens", below
		case u.CacheCreationInputTokens.OK && u.CacheCreationInputTokens.V < 0:
			return "/payload/usage/cacheCreationInputTokens", below
		case u.CacheReadInputTokens.OK && u.CacheReadInputTokens.V < 0:
			return "/payload/usage/cacheReadInputTokens", below
		}
		for m, u := range p.ModelUsage {
			if u.InputTokens < 0 || u.OutputTokens < 0 {
				return "/payload/modelUsage/" + jsonwire.Token(m), "a count " + below
			}
		}
	}
	return "", ""
}

// prompt appends the prompt: a string or a list of messages.
func (e *Encoder) prompt(dst []byte, ev *agentevents.Event, p *agentevents.AgentStarted) ([]byte, error) {
	if p.Prompt == "" {
		e.lose(dialect.Made, "/payload/prompt", "")
		if p.Task != "" {
			e.lose(dialect.Dropped, "/payload/task", "written as the prompt")
		}
		return jsonwire.AppendString(dst, p.Task), nil
	}
	e.drop("/payload/task", p.Task != "")
	mark := len(dst)
	dst, err := e.json(dst, "", ev, p.Prompt, "/payload/prompt")
	if err == nil && dst[mark] != '"' && dst[mark] != '[' {
		e.lose(dialect.Altered, "/payload/prompt", "written as a list of one message")
		dst = append(slices.Insert(dst, mark, '['), ']')
	}
	return dst, err
}

// called counts what the line of a return does not say of its call ev.
func (e *Encoder) called(ev, ret *agentevents.Event, returned *agentevents.ToolReturned) {
	p := ev.Payload.(*agentevents.ToolCalled)
	e.pend.Reset()
	e.common.Set, e.kept = 0, string(ev.Extra(string(Name)))
	e.lose(dialect.Altered, "", "joined with its return")
	e.envelope(ev)
	e.drop("/"+string(Name), e.kept != "" && e.kept[0] == '{')
	e.drop("/agentId", ev.AgentID != "")
	e.drop("/nodeId", ev.NodeID != "" && ev.NodeID != nodeOf(ret))
	e.drop("/nodeRunId", ev.NodeRunID != "" && ev.NodeRunID != execution(ret))
	e.drop("/payload/callId", p.CallID != "")
	e.drop("/payload/toolId", p.ToolID != "" && p.ToolID != returned.ToolID)
	e.drop("/payload/attempt", p.Attempt.OK)
	e.drop("/payload/retryOf", p.RetryOf != "")
	e.drop("/payload/argsHash", p.ArgsHash != "")
	e.drop("/payload/principal", p.Principal != "")
	e.drop("/payload/transport", p.Transport != "")
	e.drop("/payload/attributes", p.Attributes != "")
	e.pend.Count(&e.losses, ev, false)
	e.everywhere(ev)
	e.common.Count(&e.losses, ev, false)
}

// returned appends a tool's input and output, and its error.
func (e *Encoder) returned(dst []byte, ev *agentevents.Event, p *agentevents.ToolReturned) ([]byte, error) {
	arguments, summary, duration := p.Arguments, p.ArgumentsSummary, p.Duration
	if !p.OneEvent {
		if call := e.calls.Get(ev.RunID, agentOf(ev), p.CallID); call != nil {
			c := call.Payload.(*agentevents.ToolCalled)
			// What the call says goes before what the return says.
			arguments, summary = cmp.Or(c.Arguments, arguments), cmp.Or(c.ArgumentsSummary, summary)
			e.drop("/payload/arguments", p.Arguments != "" && p.Arguments != arguments)
			if p.ArgumentsSummary != summary { // otherwise e.value notes the loss
				e.drop("/payload/argumentsSummary", p.ArgumentsSummary != "")
			}
			if d := ev.Time.Sub(call.Time); !duration.OK && d >= 0 {
				duration = agentevents.Some(d)
				e.lose(dialect.Made, "/payload/durationMs", "measured from the call")
			}
		} else {
			e.lose(dialect.Made, "/payload/oneEvent", "readers take the line for the whole call")
		}
	}
	dst = text(dst, `,"toolName":`, p.ToolID)
	dst, err := e.value(dst, `,"toolInput":`, ev, arguments, summary, "/payload/arguments")
	if err != nil {
		return dst, err
	}
	if dst, err = e.value(dst, `,"toolOutput":`, ev, p.Result, p.ResultSummary, "/payload/result"); err != nil {
		return dst, err
	}
	if duration.OK {
		dst = jsonwire.AppendMillis(append(dst, `,"durationMs":`...), duration.V)
	}
	switch {
	case p.Error.OK:
		dst = text(dst, `,"error":`, p.Error.V.Message)
		e.errorInfo("/payload/error", &p.Error.V)
	case p.Status != agentevents.ToolStatusOK:
		e.lose(dialect.Made, "/payload/error", "")
		dst = text(dst, `,"error":`, string(p.Status))
	}
	switch {
	case p.Error.OK && p.Status == agentevents.ToolStatusOK:
		e.lose(dialect.Altered, "/payload/status", "readers take a call with an error for a failed one")
	case p.Status != agentevents.ToolStatusOK && p.Status != agentevents.ToolStatusError:
		e.lose(dialect.Altered, "/payload/status", "written as an error")
	}
	return dst, nil
}

// value appends a member with a value, or with its summary if there is no value.
func (e *Encoder) value(dst []byte, name string, ev *agentevents.Event, j agentevents.JSON, summary, pointer string) ([]byte, error) {
	if summary != "" {
		if j == "" {
			e.lose(dialect.Dropped, pointer+"Summary", "written as the value")
			e.lose(dialect.Made, pointer, "the summary")
			return text(dst, name, summary), nil
		}
		e.drop(pointer+"Summary", true)
	}
	return e.json(dst, name, ev, j, pointer)
}

// errorInfo notes what the line, which has only the message, does not say of an error.
func (e *Encoder) errorInfo(pointer string, info *agentevents.ErrorInfo) {
	if len(info.Code)|len(info.Details) != 0 {
		e.drop(pointer+"/code", info.Code != "")
		e.drop(pointer+"/details", info.Details != "")
	}
	if info.Retryable.OK {
		e.drop(pointer+"/retryable", true)
	}
}

// failed appends the end of an agent that did not succeed, as agent:error.
func (e *Encoder) failed(dst []byte, ev *agentevents.Event, p *agentevents.AgentEnded) ([]byte, error) {
	e.lose(dialect.Altered, "", "written as agent:error, because agent:complete means success")
	info := p.Error.V
	if info.Code == "" && p.Outcome == "" {
		e.lose(dialect.Made, "/payload/errorType", "")
	}
	if info.Message == "" && p.Result == "" {
		e.lose(dialect.Made, "/payload/message", "")
	}
	dst = text(dst, `,"errorType":`, cmp.Or(info.Code, string(p.Outcome), string(agentevents.ToolStatusError)))
	dst = text(dst, `,"message":`, cmp.Or(info.Message, p.Result))
	dst, err := e.json(dst, `,"details":`, ev, info.Details, "/payload/error/details")
	e.drop("/payload/error/retryable", info.Retryable.OK)
	e.drop("/payload/outcome", p.Outcome != "")
	e.drop("/payload/result", p.Result != "" && info.Message != "")
	e.drop("/payload/structuredOutput", p.StructuredOutput != "")
	e.drop("/payload/usage", p.Usage.OK)
	e.drop("/payload/modelUsage", p.ModelUsage != nil)
	e.drop("/payload/totalCostUsd", p.TotalCostUSD.OK)
	e.drop("/payload/durationMs", p.Duration.OK)
	e.drop("/payload/numTurns", p.NumTurns.OK)
	e.endDropped(p)
	return dst, err
}

// endDropped notes the losses that both ends of an agent have.
func (e *Encoder) endDropped(p *agentevents.AgentEnded) {
	e.drop("/payload/totals", p.Totals.OK)
	e.drop("/payload/convergenceScore", p.ConvergenceScore.OK)
	e.drop("/payload/resultSchema", p.ResultSchema != "")
}

// complete appends the end of an agent that succeeded.
func (e *Encoder) complete(dst []byte, ev *agentevents.Event, p *agentevents.AgentEnded) ([]byte, error) {
	if p.Result == "" {
		e.lose(dialect.Made, "/payload/result", "")
	}
	dst = text(dst, `,"result":`, p.Result)
	dst, err := e.json(dst, `,"structuredOutput":`, ev, p.StructuredOutput, "/payload/structuredOutput")
	if err != nil {
		return dst, err
	}
	if !p.Usage.OK {
		e.lose(dialect.Made, "/payload/usage", "")
	}
	dst = e.tokens(append(dst, `,"usage":`...), &p.Usage.V, "/payload/usage", true)
	dst = append(e.nested(dst, "/usage/", usageNames[:]), '}')
	if p.ModelUsage != nil {
		var buf [8]string
		models := buf[:0]
		for m := range p.ModelUsage {
			models = append(models, m)
		}
		slices.Sort(models)
		kept := e.ofModels()
		dst = append(dst, `,"modelUsage":{`...)
		for i, m := range models {
			if i > 0 {
				dst = append(dst, ',')
			}
			u := p.ModelUsage[m]
			dst = append(jsonwire.AppendString(dst, m), ':')
			token := jsonwire.Token(m)
			dst = e.tokens(dst, &u, "/payload"+modelUsage+token, false)
			for _, k := range kept[token] {
				dst = e.nestedMember(dst, k.key, k.token, k.raw, usageNames[:2])
			}
			dst = append(dst, '}')
		}
		dst = append(dst, '}')
	}
	if p.TotalCostUSD.OK {
		if math.IsNaN(p.TotalCostUSD.V) || math.IsInf(p.TotalCostUSD.V, 0) {
			return dst, e.refuse(ev, agentevents.RuleFieldRange, "/payload/totalCostUsd", "is not a finite number")
		}
		dst = jsonwire.AppendFloat(append(dst, `,"totalCostUsd":`...), p.TotalCostUSD.V)
	}
	duration := p.Duration.V
	if !p.Duration.OK {
		detail := ""
		if started, ok := e.starts.of(ev); ok && !ev.Time.Before(started) {
			duration, detail = ev.Time.Sub(started), "measured from the start"
		}
		e.lose(dialect.Made, "/payload/durationMs", detail)
	}
	dst = jsonwire.AppendMillis(append(dst, `,"durationMs":`...), duration)
	if !p.NumTurns.OK {
		e.lose(dialect.Made, "/payload/numTurns", "")
	}
	dst = jsonwire.AppendInt(append(dst, `,"numTurns":`...), int64(p.NumTurns.V))
	e.drop("/payload/outcome", p.Outcome != "")
	e.endDropped(p)
	return dst, nil
}

// tokens appends token counts as an object without its closing brace. With cache they
// include the counts of the cache.
func (e *Encoder) tokens(dst []byte, u *agentevents.Usage, pointer string, cache bool) []byte {
	dst = jsonwire.AppendInt(append(dst, `{"inputTokens":`...), u.InputTokens)
	dst = jsonwire.AppendInt(append(dst, `,"outputTokens":`...), u.OutputTokens)
	if cache {
		dst = count(dst, `,"cacheCreationInputTokens":`, u.CacheCreationInputTokens)
		dst = count(dst, `,"cacheReadInputTokens":`, u.CacheReadInputTokens)
	} else if u.CacheCreationInputTokens.OK || u.CacheReadInputTokens.OK {
		e.drop(pointer+"/cacheCreationInputTokens", u.CacheCreationInputTokens.OK)
		e.drop(pointer+"/cacheReadInputTokens", u.CacheReadInputTokens.OK)
	}
	if u.TotalTokens.OK || u.CostUSD.OK {
		e.drop(pointer+"/totalTokens", u.TotalTokens.OK)
		e.drop(pointer+"/costUsd", u.CostUSD.OK)
	}
	return dst
}

// flowName appends the name of the flow that ended: the one that was read, or the one of
// its start.
func (e *Encoder) flowName(dst []byte, ev *agentevents.Event) []byte {
	dst = append(dst, `,"flowName":`...)
	if e.kept != "" {
		if name := dialect.Unknown(ev, Name, memberName(mFlowName)); strings.HasPrefix(string(name), `"`) {
			return append(dst, name...)
		}
	}
	name, ok := e.flows[ev.RunID]
	detail := ""
	if ok {
		detail = "the name of the run's start"
	}
	e.lose(dialect.Made, "/"+string(Name)+"/"+memberName(mFlowName), detail)
	return jsonwire.AppendString(dst, name)
}

func (e *Encoder) command(dst []byte, p *agentevents.CommandReceived) []byte {
	c := &p.Command
	switch {
	case !misrouted(c):
		e.drop("/payload/rejected", p.Rejected != "")
	case p.Rejected == "":
		e.lose(dialect.Made, "/payload/rejected", "readers reject a command without runId")
	case p.Rejected != Rejected:
		e.lose(dialect.Altered, "/payload/rejected", "readers reject a command without runId")
	}
	made := func(pointer, value string) {
		if value == "" {
			e.lose(dialect.Made, pointer, "")
		}
	}
	switch c.Type {
	case agentevents.CommandSend:
		made("/payload/command/message", c.Message)
	case agentevents.CommandReply:
		made("/payload/command/promptId", c.PromptID)
		made("/payload/command/content", c.Content)
	}
	return append(e.nested(appendCommand(dst, c), "/command/", commandNames[:]), '}')
}

// appendCommand appends a RuntimeCommand without its closing brace.
func appendCommand(dst []byte, c *agentevents.Command) []byte {
	member := func(name, value string, required bool) {
		if value != "" || required {
			dst = text(dst, name, value)
		}
	}
	send, reply := c.Type == agentevents.CommandSend, c.Type == agentevents.CommandReply
	dst = text(dst, `{"type":`, string(c.Type))
	member(`,"message":`, c.Message, send)
	member(`,"promptId":`, c.PromptID, reply)
	member(`,"content":`, c.Content, reply)
	member(`,"runId":`, c.RunID, false)
	if c.Resumable.OK {
		dst = strconv.AppendBool(append(dst, `,"resumable":`...), c.Resumable.V)
	}
	member(`,"reason":`, c.Reason, false)
	return dst
}

// unknown appends a line of an unknown type. It refuses the event if readers do not read
// the same from the line.
func (e *Encoder) unknown(dst []byte, ev *agentevents.Event, p *agentevents.Unknown) ([]byte, int, error) {
	raw, err := jsonwire.Compact(string(cmp.Or(p.Raw, "{}")))
	if err != nil {
		return dst, vUnknown, e.refuse(ev, agentevents.RuleFieldJSON, "/payload", err.Error())
	}
	if !strings.HasPrefix(raw, "{") {
		return dst, vUnknown, dialect.ErrNoCounterpart
	}
	mark := len(dst)
	dst = text(dst, `{"type":`, strings.TrimPrefix(string(p.Type), unknownPrefix))
	dst = optional(dst, `,"nodeId":`, ev.NodeID)
	if ev.NodeID != "" {
		dst = optional(dst, `,"runId":`, ev.NodeRunID)
	} else {
		e.drop("/nodeRunId", ev.NodeRunID != "")
	}
	if jsonwire.HasMember(raw, memberName(mTimestamp)) { // the type's own, which is not a time
		e.drop("/timestamp", !ev.Time.IsZero())
	} else {
		dst = e.appendTime(append(dst, `,"timestamp":`...), ev.Time)
	}
	e.envelope(ev)
	e.drop("/agentId", ev.AgentID != "")
	e.drop("/"+string(Name), strings.HasPrefix(e.kept, "{"))
	if p.Raw == "" {
		e.lose(dialect.Made, "/payload", "")
	}
	if len(raw) > len("{}") {
		dst = append(append(dst, ','), raw[1:len(raw)-1]...)
	}
	dst = append(dst, '}')
	got, err := NewDecoder(Options{RunID: "-"}).Decode(nil, dst[mark:])
	if err != nil || len(got) != 1 || got[0].Scope != (agentevents.Scope{NodeID: ev.NodeID, NodeRunID: scopeRun(ev)}) {
		return dst, vUnknown, dialect.ErrNoCounterpart
	}
	if u, ok := got[0].Payload.(*agentevents.Unknown); !ok || u.Type != p.Type || string(u.Raw) != raw {
		return dst, vUnknown, dialect.ErrNoCounterpart
	}
	return append(dst, '\n'), vUnknown, nil
}

func scopeRun(ev *agentevents.Event) string {
	if ev.NodeID == "" {
		return ""
	}
	return ev.NodeRunID
}
