package kaos

import (
	"strconv"
	"strings"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/internal/jsonwire"
)

// newPayload returns an empty payload for a variant, or nil for those whose
// payload depends on the line.
func newPayload(v int) agentevents.Payload {
	switch v {
	case vIntent:
		return new(agentevents.IntentClassified)
	case vPlan:
		return &agentevents.PlanProposed{Steps: []agentevents.PlanStep{}}
	case vCitation:
		return new(agentevents.CitationFound)
	case vUsage:
		return new(agentevents.UsageObserved)
	case vEvidence:
		return new(agentevents.EvidenceInsufficient)
	case vSummary:
		return &agentevents.TurnSummarized{ToolCalls: []agentevents.ToolCallSummary{}}
	case vMemory:
		return new(agentevents.MemoryChanged)
	case vError:
		return new(agentevents.AgentErrored)
	case vBudget:
		return new(agentevents.BudgetExceeded)
	case vText:
		return new(agentevents.TextDelta)
	case vThinking:
		return new(agentevents.AgentReasoningDelta)
	case vArgs:
		return new(agentevents.ToolArgumentsDelta)
	case vApproval:
		return new(agentevents.ApprovalRequested)
	}
	return nil
}

// member reads member n of a variant, which is beyond the base.
func (d *Decoder) member(s *jsonwire.Scanner, l *line, n int) (err error) {
	m := n - numBase
	switch l.v {
	case vText:
		l.payload.(*agentevents.TextDelta).Delta, err = s.String()
	case vThinking:
		l.payload.(*agentevents.AgentReasoningDelta).Delta, err = s.String()
	case vArgs:
		p := l.payload.(*agentevents.ToolArgumentsDelta)
		if m == 1 {
			p.CallID, err = s.String()
		} else {
			p.Delta, err = s.String()
		}
	case vIntent:
		p := l.payload.(*agentevents.IntentClassified)
		switch m {
		case 1:
			p.Intent, err = s.String()
		case 2:
			p.Confidence, err = float(s)
		default:
			p.Reasoning, err = s.String()
		}
	case vPlan:
		p := l.payload.(*agentevents.PlanProposed)
		if m == 1 {
			p.Steps, err = d.planSteps(s)
		} else {
			p.Strategy, err = s.String()
		}
	case vCitation:
		p := l.payload.(*agentevents.CitationFound)
		switch m {
		case 1:
			p.Claim, err = s.String()
		case 2:
			p.SourceURI, err = s.String()
		case 3:
			p.Confidence, err = float(s)
		default:
			p.Verified.V, err = s.Bool()
			p.Verified.OK = true
		}
	case vUsage:
		p := l.payload.(*agentevents.UsageObserved)
		switch m {
		case 1:
			p.Usage.InputTokens, err = s.Int()
		case 2:
			p.Usage.OutputTokens, err = s.Int()
		case 3:
			p.Usage.TotalTokens, err = integer(s)
		case 4:
			p.CostUSD, err = float(s)
		default:
			p.Source, err = s.String()
		}
	case vEvidence:
		p := l.payload.(*agentevents.EvidenceInsufficient)
		if m == 1 {
			p.Reason, err = s.String()
		} else {
			p.WhatWouldResolve, err = s.String()
		}
	case vSummary:
		p := l.payload.(*agentevents.TurnSummarized)
		switch m {
		case 1:
			p.Text, err = s.String()
		case 2:
			p.Intent, err = s.String()
		case 3:
			p.ToolCalls, err = d.toolCalls(s)
		case 4:
			p.Usage.TotalTokens, err = integer(s)
		case 5:
			p.CostUSD, err = float(s)
		case 6:
			p.Usage.InputTokens, err = s.Int()
		default:
			p.Usage.OutputTokens, err = s.Int()
		}
	case vMemory:
		p := l.payload.(*agentevents.MemoryChanged)
		switch m {
		case 1:
			var kind string
			kind, err = s.String()
			p.Change = agentevents.MemoryChange(kind)
		case 2:
			p.Section, err = s.String()
		case 3:
			p.ItemCount.V, err = s.SmallInt()
			p.ItemCount.OK = true
		default:
			p.Attributes, err = object(s)
		}
	case vError:
		p := l.payload.(*agentevents.AgentErrored)
		switch m {
		case 1:
			p.ErrorType, err = s.String()
		case 2:
			p.Message, err = s.String()
		default:
			p.RecoveryHint, err = s.String()
		}
	case vBudget:
		p := l.payload.(*agentevents.BudgetExceeded)
		switch m {
		case 1:
			p.Budget, err = s.String()
		case 2:
			p.Limit, err = s.Float()
		case 3:
			p.Actual, err = s.Float()
		default:
			p.Reason, err = s.String()
		}
	case vApproval:
		p := l.payload.(*agentevents.ApprovalRequested)
		switch m {
		case 1:
			p.CallID, err = s.String()
		case 2:
			p.ToolID, err = s.String()
		case 3:
			var raw string
			raw, err = pairs(s)
			p.Arguments = agentevents.JSON(raw)
		case 4:
			p.Reason, err = s.String()
		default:
			var ref string
			if ref, err = s.String(); ref != "" {
				d.unknown.Add("run_state_ref", jsonwire.Quote(ref))
			}
		}
	case vEscalation:
		switch m {
		case 1:
			l.esc.kind, err = s.String()
		case 2:
			l.esc.reason, err = s.String()
		case 3:
			var details agentevents.JSON
			details, err = object(s)
			l.esc.details = string(details)
		case 4:
			l.esc.token, err = s.String()
		default:
			l.esc.id, err = s.String()
		}
	}
	return err
}

func float(s *jsonwire.Scanner) (agentevents.Opt[float64], error) {
	f, err := s.Float()
	return agentevents.Some(f), err
}

func integer(s *jsonwire.Scanner) (agentevents.Opt[int64], error) {
	n, err := s.Int()
	return agentevents.Some(n), err
}

// object reads a free object. It returns "" for the empty one.
func object(s *jsonwire.Scanner) (agentevents.JSON, error) {
	if s.Kind() != '{' {
		return "", s.Object() // the error says what is there instead
	}
	raw, err := s.Raw()
	if raw == "{}" {
		raw = ""
	}
	return agentevents.JSON(raw), err
}

// pairs reads arguments: a list of pairs of texts, or the object that some
// producers write. It returns "" for the empty list.
func pairs(s *jsonwire.Scanner) (string, error) {
	if k := s.Kind(); k != '[' && k != '{' {
		return "", s.Array() // the error says what is there instead
	}
	raw, err := s.Raw()
	if raw == "[]" {
		raw = ""
	}
	return raw, err
}

// members reads one object of a list. field reads member n of names. All others
// become extra members under the object's pointer.
func (d *Decoder) members(s *jsonwire.Scanner, names []string, list string, index int, field func(n int) error) error {
	if err := s.Object(); err != nil {
		return err
	}
	seen := uint32(0)
	for last := 0; ; {
		n, name, err := s.Field(names, last)
		if err != nil {
			return err
		}
		if n < 0 {
			return nil
		}
		if n == 0 {
			at := s.Offset()
			raw, err := s.Raw()
			if err != nil {
				return err
			}
			if !d.unknown.Add("/"+list+"/"+strconv.Itoa(index)+"/"+jsonwire.Token(name), raw) {
				return duplicate(at, name)
			}
			continue
		}
		if seen&(1<<n) != 0 {
			return s.Duplicate(name)
		}
		seen |= 1 << n
		last = n
		if err := field(n); err != nil {
			return err
		}
	}
}

func (d *Decoder) planSteps(s *jsonwire.Scanner) ([]agentevents.PlanStep, error) {
	steps := []agentevents.PlanStep{}
	if err := s.Array(); err != nil {
		return nil, err
	}
	for {
		ok, err := s.Elem()
		if !ok || err != nil {
			return steps, err
		}
		var step agentevents.PlanStep
		described := false
		err = d.members(s, planStepNames, "steps", len(steps), func(n int) (err error) {
			switch n {
			case 1:
				step.StepID, err = s.String()
			case 2:
				described = true
				step.Description, err = s.String()
			default:
				if !s.Null() {
					step.ToolName, err = s.String()
				}
			}
			return err
		})
		if err != nil {
			return nil, err
		}
		if !described && d.lacks == "" {
			d.lacks = "/steps/" + strconv.Itoa(len(steps)) + "/description"
		}
		steps = append(steps, step)
	}
}

func (d *Decoder) toolCalls(s *jsonwire.Scanner) ([]agentevents.ToolCallSummary, error) {
	calls := []agentevents.ToolCallSummary{}
	if err := s.Array(); err != nil {
		return nil, err
	}
	for {
		ok, err := s.Elem()
		if !ok || err != nil {
			return calls, err
		}
		var call agentevents.ToolCallSummary
		err = d.members(s, callNames, "tool_calls", len(calls), func(n int) (err error) {
			switch n {
			case 1:
				call.ToolName, err = s.String()
			case 2:
				call.CallID, err = s.String()
			case 3:
				call.IsError, err = s.Bool()
			case 4:
				call.Duration.V, err = s.Millis()
				call.Duration.OK = true
			case 5:
				call.CostUSD, err = float(s)
			case 6:
				call.InputTokens, err = integer(s)
			default:
				call.OutputTokens, err = integer(s)
			}
			return err
		})
		if err != nil {
			return nil, err
		}
		calls = append(calls, call)
	}
}

// clarification makes the payload of an escalation that asks a person.
func (d *Decoder) clarification(l *line) agentevents.Payload {
	id := l.esc.id
	if id == "" {
		if l.has(numBase + 5) {
			d.unknown.Add("escalation_id", `""`)
		}
		if id = l.esc.token; id == "" {
			id = l.run // without an id of its own, the run waits
		}
	}
	if l.esc.token != "" {
		d.unknown.Add("resume_token", jsonwire.Quote(l.esc.token))
	}
	if l.esc.details != "" {
		d.unknown.Add("details", l.esc.details)
	}
	return &agentevents.ClarificationRequested{InterruptID: id, Questions: []agentevents.Question{{ID: id, Question: l.esc.reason}}}
}

// tokenNames are the attributes that make a memory_event a context.compacted.
var tokenNames = []string{`"tokens_before":`, `"tokens_after":`, `"trigger":`}

// memory returns the payload of a memory_event: a ContextCompacted for a summary
// that counts tokens, a MemoryChanged otherwise.
func (d *Decoder) memory(l *line) agentevents.Payload {
	p := l.payload.(*agentevents.MemoryChanged)
	if p.Change != agentevents.MemorySummarized || p.Attributes == "" || !strings.Contains(string(p.Attributes), `"tokens_`) {
		return p
	}
	var (
		c agentevents.ContextCompacted
		s = &d.scanner
	)
	s.Reset(string(p.Attributes))
	if s.Object() != nil {
		return p
	}
	d.rest.Reset()
	for last := 0; ; {
		n, name, err := s.Field(tokenNames, last)
		if err != nil {
			return p
		}
		if n < 0 {
			break
		}
		last = n
		taken := false
		switch {
		case n == 1:
			c.TokensBefore = counted(s)
			taken = c.TokensBefore.OK
		case n == 2:
			c.TokensAfter = counted(s)
			taken = c.TokensAfter.OK
		case n == 3 && s.Kind() == '"':
			c.Trigger, err = s.String()
			taken = true
		}
		if !taken && err == nil {
			var raw string
			raw, err = s.Raw()
			d.rest.Add(name, raw)
		}
		if err != nil {
			return p
		}
	}
	if !c.TokensBefore.OK && !c.TokensAfter.OK {
		return p
	}
	d.keepAttributes()
	if p.Section != "" {
		d.unknown.Add("section", jsonwire.Quote(p.Section))
	}
	if p.ItemCount.OK && p.ItemCount.V != 0 {
		d.unknown.Add("item_count", strconv.Itoa(p.ItemCount.V))
	}
	return &c
}

// counted reads a count. It returns the zero Opt, and reads nothing, if the value
// does not begin like one.
func counted(s *jsonwire.Scanner) agentevents.Opt[int64] {
	if s.Kind() != '0' {
		return agentevents.Opt[int64]{}
	}
	n, err := s.Int()
	return agentevents.Opt[int64]{V: n, OK: err == nil}
}
