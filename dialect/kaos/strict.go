package kaos

import (
	"strconv"
	"time"

	"github.com/agentevents/agentevents"
)

// check checks a line against the rules of the document.
func (d *Decoder) check(l *line) error {
	fail := func(rule agentevents.Rule, pointer, detail string) error {
		return &agentevents.RuleError{
			Rule: rule, Kind: agentevents.Kind(l.typ), RunID: l.run, AgentID: l.agent, Sequence: uint64(max(0, l.sequence)), Pointer: pointer, Detail: detail,
		}
	}
	required := func(m int, text bool, value string) error {
		name := variants[l.v].names[m-1]
		if !l.has(m) {
			return fail(RuleRequired, "/"+name[1:len(name)-2], "is required")
		}
		if text && value == "" {
			return fail(RuleRequired, "/"+name[1:len(name)-2], "must not be empty")
		}
		return nil
	}
	for _, r := range [...]struct {
		m     int
		text  bool
		value string
		only  bool // only for spans
	}{
		{mTimestamp, false, "", false}, {mSequence, false, "", false}, {mSessionID, true, l.session, false}, {mRunID, true, l.run, false},
		{mSubject, true, l.subject, true}, {mPhase, true, l.phase, true}, {mSpanID, true, l.span, true},
	} {
		if r.only && l.v != vSpan {
			break
		}
		if err := required(r.m, r.text, r.value); err != nil {
			return err
		}
	}
	if l.sequence < 0 {
		return fail(RuleRange, "/sequence", strconv.FormatInt(l.sequence, 10)+" is below 0")
	}
	if d.frame.named && d.frame.event != l.typ {
		return fail(RuleFrame, "/type", "the event line of the frame says "+strconv.Quote(d.frame.event))
	}
	unit := func(pointer string, f agentevents.Opt[float64]) error {
		if f.V < 0 || f.V > 1 {
			return fail(RuleRange, pointer, "is not in [0, 1]")
		}
		return nil
	}
	below := func(pointer string, negative bool) error {
		if negative {
			return fail(RuleRange, pointer, "is below 0")
		}
		return nil
	}
	switch p := l.payload.(type) {
	case *agentevents.IntentClassified:
		return unit("/confidence", p.Confidence)
	case *agentevents.CitationFound:
		return unit("/confidence", p.Confidence)
	case *agentevents.PlanProposed:
		for i, step := range p.Steps {
			if step.StepID == "" {
				return fail(RuleRequired, "/steps/"+strconv.Itoa(i)+"/step_id", "is missing or empty")
			}
		}
		if d.lacks != "" {
			return fail(RuleRequired, d.lacks, "is required")
		}
	case *agentevents.UsageObserved:
		return first(below("/input_tokens", p.Usage.InputTokens < 0), below("/output_tokens", p.Usage.OutputTokens < 0),
			below("/total_tokens", p.Usage.TotalTokens.V < 0), below("/cost_usd", p.CostUSD.V < 0))
	case *agentevents.TurnSummarized:
		for i, call := range p.ToolCalls {
			at := "/tool_calls/" + strconv.Itoa(i)
			if call.ToolName == "" {
				return fail(RuleRequired, at+"/tool_name", "is missing or empty")
			}
			if call.CallID == "" {
				return fail(RuleRequired, at+"/call_id", "is missing or empty")
			}
			if err := first(below(at+"/duration_ms", call.Duration.V < 0), below(at+"/cost_usd", call.CostUSD.V < 0),
				below(at+"/input_tokens", call.InputTokens.V < 0), below(at+"/output_tokens", call.OutputTokens.V < 0)); err != nil {
				return err
			}
		}
		return first(below("/tokens_used", p.Usage.TotalTokens.V < 0), below("/cost_usd", p.CostUSD.V < 0),
			below("/input_tokens", p.Usage.InputTokens < 0), below("/output_tokens", p.Usage.OutputTokens < 0))
	case *agentevents.MemoryChanged:
		switch p.Change {
		case agentevents.MemoryAdded, agentevents.MemoryEvicted, agentevents.MemorySummarized, agentevents.MemoryHydrated,
			agentevents.MemoryPersisted, agentevents.MemorySearched:
		case "":
			return fail(RuleRequired, "/kind", "is required")
		default:
			return fail(RuleEnum, "/kind", strconv.Quote(string(p.Change))+" is not one of added, evicted, summarized, hydrated, persisted, searched")
		}
		return below("/item_count", p.ItemCount.V < 0)
	}
	if l.v != vSpan {
		return nil
	}
	switch l.subject {
	case "run", "turn", "step", "tool_call", "subagent", "handoff", "llm_call", "judge", "route":
	default:
		return fail(RuleEnum, "/subject", strconv.Quote(l.subject)+" is not one of run, turn, step, tool_call, subagent, handoff, llm_call, judge, route")
	}
	switch l.phase {
	case "start", "progress":
		if l.duration.OK {
			return fail(RulePhase, "/duration_ms", "must be null in phase "+l.phase)
		}
	case "complete", "error", "cancelled":
	default:
		return fail(RuleEnum, "/phase", strconv.Quote(l.phase)+" is not one of start, progress, complete, error, cancelled")
	}
	if l.phase != "error" && l.errType.OK {
		return fail(RulePhase, "/error_type", "must be null in phase "+l.phase)
	}
	if l.phase != "error" && l.errText.OK {
		return fail(RulePhase, "/error_message", "must be null in phase "+l.phase)
	}
	return below("/duration_ms", l.duration.V < time.Duration(0))
}

// first returns the first error that is not nil.
func first(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
