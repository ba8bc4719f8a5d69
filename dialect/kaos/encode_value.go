package kaos

import (
	"strconv"
	"strings"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect"
	"github.com/agentevents/agentevents/internal/jsonwire"
)

// value appends the members of a value event. It leaves out optional numbers that
// the event does not have, because the defaults of the document state a fact.
func (e *Encoder) value(dst []byte, ev *agentevents.Event) []byte {
	text := jsonwire.AppendString
	switch p := ev.Payload.(type) {
	case *agentevents.TextDelta:
		dst = text(append(dst, `,"content":`...), p.Delta)
		e.drop("/payload/blockId", p.BlockID != "")
		e.drop("/payload/index", p.Index.OK)
	case *agentevents.AgentReasoningDelta:
		dst = text(append(dst, `,"content":`...), p.Delta)
		e.drop("/payload/blockId", p.BlockID != "")
		e.drop("/payload/index", p.Index.OK)
		e.drop("/payload/verbosity", p.Verbosity != "")
		e.drop("/payload/tokenCount", p.TokenCount.OK)
	case *agentevents.ToolArgumentsDelta:
		dst = text(append(dst, `,"call_id":`...), p.CallID)
		dst = text(append(dst, `,"content":`...), p.Delta)
		e.drop("/payload/index", p.Index.OK)
	case *agentevents.IntentClassified:
		dst = text(append(dst, `,"intent":`...), p.Intent)
		dst = e.optFloat(dst, ev, `,"confidence":`, "/payload/confidence", p.Confidence)
		dst = text(append(dst, `,"reasoning":`...), p.Reasoning)
	case *agentevents.PlanProposed:
		dst = append(dst, `,"steps":[`...)
		for i, step := range p.Steps {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = text(append(dst, `{"step_id":`...), step.StepID)
			dst = text(append(dst, `,"description":`...), step.Description)
			dst = appendText(append(dst, `,"tool_name":`...), step.ToolName)
			if len(e.kept) > 0 {
				dst = e.keptUnder(dst, ev, "/steps/"+strconv.Itoa(i)+"/")
			}
			dst = append(dst, '}')
		}
		dst = text(append(dst, `],"strategy":`...), p.Strategy)
	case *agentevents.CitationFound:
		dst = text(append(dst, `,"claim":`...), p.Claim)
		dst = text(append(dst, `,"source_uri":`...), p.SourceURI)
		dst = e.optFloat(dst, ev, `,"confidence":`, "/payload/confidence", p.Confidence)
		if p.Verified.OK {
			dst = strconv.AppendBool(append(dst, `,"verified":`...), p.Verified.V)
		}
	case *agentevents.UsageObserved:
		dst = jsonwire.AppendInt(append(dst, `,"input_tokens":`...), p.Usage.InputTokens)
		dst = jsonwire.AppendInt(append(dst, `,"output_tokens":`...), p.Usage.OutputTokens)
		dst = optInt(dst, `,"total_tokens":`, p.Usage.TotalTokens)
		dst = e.optFloat(dst, ev, `,"cost_usd":`, "/payload/costUsd", p.CostUSD)
		dst = text(append(dst, `,"source":`...), p.Source)
		e.drop("/payload/model", p.Model != "")
		e.drop("/payload/cumulative", p.Cumulative)
		e.usage(&p.Usage)
	case *agentevents.EvidenceInsufficient:
		dst = text(append(dst, `,"reason":`...), p.Reason)
		dst = text(append(dst, `,"what_would_resolve":`...), p.WhatWouldResolve)
	case *agentevents.TurnSummarized:
		dst = e.summary(dst, ev, p)
	case *agentevents.MemoryChanged:
		dst = text(append(dst, `,"kind":`...), string(p.Change))
		dst = text(append(dst, `,"section":`...), p.Section)
		if p.ItemCount.OK {
			dst = jsonwire.AppendInt(append(dst, `,"item_count":`...), int64(p.ItemCount.V))
		}
		dst = e.object(append(dst, `,"attributes":`...), ev, "/payload/attributes", p.Attributes)
		if p.Change == agentevents.MemorySummarized && strings.Contains(string(p.Attributes), `"tokens_`) {
			if _, same := new(Decoder).memory(&line{payload: p}).(*agentevents.MemoryChanged); !same {
				e.lose(dialect.Altered, "", "a memory summary that counts tokens is read as context.compacted")
			}
		}
	case *agentevents.ContextCompacted:
		dst = e.compacted(dst, ev, p)
	case *agentevents.AgentErrored:
		dst = text(append(dst, `,"error_type":`...), p.ErrorType)
		dst = text(append(dst, `,"message":`...), p.Message)
		dst = text(append(dst, `,"recovery_hint":`...), p.RecoveryHint)
		e.drop("/payload/severity", p.Severity != "")
		e.drop("/payload/details", p.Details != "")
	case *agentevents.BudgetExceeded:
		dst = text(append(dst, `,"kind":`...), p.Budget)
		dst = e.float(dst, ev, `,"limit":`, "/payload/limit", p.Limit)
		dst = e.float(dst, ev, `,"actual":`, "/payload/actual", p.Actual)
		dst = text(append(dst, `,"reason":`...), p.Reason)
	case *agentevents.ApprovalRequested:
		dst = e.approval(dst, ev, p)
	case *agentevents.ClarificationRequested:
		dst = e.clarification(dst, ev, p)
	}
	return dst
}

func (e *Encoder) optFloat(dst []byte, ev *agentevents.Event, name, pointer string, f agentevents.Opt[float64]) []byte {
	if !f.OK {
		return dst
	}
	return e.float(dst, ev, name, pointer, f.V)
}

func optInt(dst []byte, name string, n agentevents.Opt[int64]) []byte {
	if !n.OK {
		return dst
	}
	return jsonwire.AppendInt(append(dst, name...), n.V)
}

// usage notes the figures that the document does not have.
func (e *Encoder) usage(u *agentevents.Usage) {
	e.drop("/payload/usage/cacheCreationInputTokens", u.CacheCreationInputTokens.OK)
	e.drop("/payload/usage/cacheReadInputTokens", u.CacheReadInputTokens.OK)
	e.drop("/payload/usage/costUsd", u.CostUSD.OK)
}

// object appends a free object, or {} for a value that is not an object.
func (e *Encoder) object(dst []byte, ev *agentevents.Event, pointer string, raw agentevents.JSON) []byte {
	if raw == "" {
		return append(dst, "{}"...)
	}
	text := e.json(ev, pointer, raw)
	if len(text) < 3 || text[0] != '{' {
		e.lose(dialect.Dropped, pointer, "it is not an object with members")
		return append(dst, "{}"...)
	}
	return append(dst, text...)
}

func (e *Encoder) summary(dst []byte, ev *agentevents.Event, p *agentevents.TurnSummarized) []byte {
	text := jsonwire.AppendString
	dst = text(append(dst, `,"text":`...), p.Text)
	dst = text(append(dst, `,"intent":`...), p.Intent)
	dst = append(dst, `,"tool_calls":[`...)
	for i, call := range p.ToolCalls {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = text(append(dst, `{"tool_name":`...), call.ToolName)
		dst = text(append(dst, `,"call_id":`...), call.CallID)
		dst = strconv.AppendBool(append(dst, `,"is_error":`...), call.IsError)
		if call.Duration.OK {
			dst = appendMillis(append(dst, `,"duration_ms":`...), call.Duration.V)
		}
		dst = e.optFloat(dst, ev, `,"cost_usd":`, "/payload/toolCalls", call.CostUSD)
		dst = optInt(dst, `,"input_tokens":`, call.InputTokens)
		dst = optInt(dst, `,"output_tokens":`, call.OutputTokens)
		if len(e.kept) > 0 {
			dst = e.keptUnder(dst, ev, "/tool_calls/"+strconv.Itoa(i)+"/")
		}
		dst = append(dst, '}')
	}
	dst = append(dst, ']')
	dst = optInt(dst, `,"tokens_used":`, p.Usage.TotalTokens)
	dst = e.optFloat(dst, ev, `,"cost_usd":`, "/payload/costUsd", p.CostUSD)
	dst = jsonwire.AppendInt(append(dst, `,"input_tokens":`...), p.Usage.InputTokens)
	dst = jsonwire.AppendInt(append(dst, `,"output_tokens":`...), p.Usage.OutputTokens)
	e.usage(&p.Usage)
	return dst
}

func (e *Encoder) compacted(dst []byte, ev *agentevents.Event, p *agentevents.ContextCompacted) []byte {
	dst = append(dst, `,"kind":"summarized","section":`...)
	dst = append(dst, orElse(e.take("section"), `""`)...)
	dst = append(append(dst, `,"item_count":`...), orElse(e.take("item_count"), "0")...)
	dst = append(dst, `,"attributes":{`...)
	mark := len(dst)
	dst = optInt(dst, `,"tokens_before":`, p.TokensBefore)
	dst = optInt(dst, `,"tokens_after":`, p.TokensAfter)
	if p.Trigger != "" {
		dst = jsonwire.AppendString(append(dst, `,"trigger":`...), p.Trigger)
	}
	if len(dst) > mark { // remove the first comma
		dst = append(dst[:mark], dst[mark+1:]...)
	}
	dst = e.keptUnder(dst, ev, "/attributes/")
	if !p.TokensBefore.OK && !p.TokensAfter.OK {
		e.lose(dialect.Altered, "", "without token counts it is read as memory.changed")
	}
	return append(dst, '}')
}

func orElse(s, other string) string {
	if s == "" {
		return other
	}
	return s
}

func (e *Encoder) approval(dst []byte, ev *agentevents.Event, p *agentevents.ApprovalRequested) []byte {
	dst = jsonwire.AppendString(append(dst, `,"call_id":`...), p.CallID)
	dst = jsonwire.AppendString(append(dst, `,"tool_name":`...), p.ToolID)
	dst = e.pairs(append(dst, `,"arguments":`...), ev, p.Arguments)
	dst = jsonwire.AppendString(append(dst, `,"reason":`...), p.Reason)
	dst = append(append(dst, `,"run_state_ref":`...), orElse(e.take("run_state_ref"), `""`)...)
	if read := orElse(p.CallID, ev.RunID); p.ApprovalID != read {
		e.lose(dialect.Altered, "/payload/approvalId", "readers take the call's id, or without one the run's id")
	}
	e.drop("/payload/action", p.Action != "")
	e.drop("/payload/scope", p.Scope != "")
	e.drop("/payload/risk", p.Risk != "")
	e.drop("/payload/timeoutMs", p.Timeout.OK)
	return dst
}

// pairs appends arguments as a list of pairs of texts.
func (e *Encoder) pairs(dst []byte, ev *agentevents.Event, raw agentevents.JSON) []byte {
	const pointer = "/payload/arguments"
	if raw == "" {
		return append(dst, "[]"...)
	}
	text := e.json(ev, pointer, raw)
	if text == "[]" || text == "{}" {
		e.lose(dialect.Dropped, pointer, "an empty list is read as absent")
		return append(dst, "[]"...)
	}
	s := &e.scanner
	s.Reset(text)
	if s.Kind() == '[' && arePairs(s) {
		return append(dst, text...)
	}
	e.lose(dialect.Altered, pointer, "written as a list of pairs of texts")
	if text[0] != '{' {
		dst = jsonwire.AppendString(append(dst, `[["arguments",`...), text)
		return append(dst, "]]"...)
	}
	dst = append(dst, '[')
	for name, value := range jsonwire.Members(text) {
		if dst[len(dst)-1] == ']' {
			dst = append(dst, ',')
		}
		dst = append(jsonwire.AppendString(append(dst, '['), name), ',')
		if value[0] == '"' {
			dst = append(dst, value...)
		} else {
			dst = jsonwire.AppendString(dst, value)
		}
		dst = append(dst, ']')
	}
	return append(dst, ']')
}

// arePairs reports whether every element of a list is a list of two texts.
func arePairs(s *jsonwire.Scanner) bool {
	if s.Array() != nil {
		return false
	}
	for {
		if ok, err := s.Elem(); !ok {
			return err == nil
		}
		if s.Array() != nil {
			return false
		}
		for n := 0; ; n++ {
			ok, err := s.Elem()
			if err != nil || ok != (n < 2) {
				return false
			}
			if !ok {
				break
			}
			if s.Kind() != '"' || s.Skip() != nil {
				return false
			}
		}
	}
}

func (e *Encoder) clarification(dst []byte, ev *agentevents.Event, p *agentevents.ClarificationRequested) []byte {
	dst = append(dst, `,"kind":"`+clarification+`","reason":`...)
	if p.InterruptID == "" {
		e.lose(dialect.Made, "/payload/interruptId", "readers take the run's id")
	}
	switch {
	case len(p.Questions) == 1:
		q := &p.Questions[0]
		dst = jsonwire.AppendString(dst, q.Question)
		if q.ID != p.InterruptID {
			e.lose(dialect.Altered, "/payload/questions/0/id", "readers take the interrupt's id")
		}
		e.drop("/payload/questions/0/schema", q.Schema != "")
	case len(p.Questions) == 0:
		dst = append(dst, `""`...)
		e.lose(dialect.Made, "/payload/questions", "one empty question")
	default:
		texts := make([]string, len(p.Questions))
		for i := range p.Questions {
			texts[i] = p.Questions[i].Question
		}
		dst = jsonwire.AppendString(dst, strings.Join(texts, "\n"))
		e.lose(dialect.Altered, "/payload/questions", "joined to one question")
		e.lose(dialect.Dropped, "/payload/questions", "joined to one question")
	}
	dst = append(append(dst, `,"details":`...), orElse(e.take("details"), "{}")...)
	token := orElse(e.take("resume_token"), `""`)
	dst = append(append(dst, `,"resume_token":`...), token...)
	dst = append(dst, `,"escalation_id":`...)
	empty := e.take("escalation_id") == `""`
	if empty && (jsonwire.Quote(p.InterruptID) == token || token == `""` && p.InterruptID == ev.RunID) {
		return append(dst, `""`...)
	}
	if p.InterruptID == "" && !empty {
		e.lose(dialect.Made, "/"+string(Name), "escalation_id")
	}
	return jsonwire.AppendString(dst, p.InterruptID)
}
