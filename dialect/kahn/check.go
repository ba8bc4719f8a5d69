package kahn

import (
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect"
)

// check applies the document's rules to a line of variant v.
func (f *fields) check(v int) *agentevents.RuleError {
	fail := func(rule agentevents.Rule, member int, detail string) *agentevents.RuleError {
		return &agentevents.RuleError{
			Rule: rule, Kind: agentevents.Kind(f.event), RunID: f.runID, AgentID: f.agentID, Pointer: "/" + memberName(member), Detail: detail,
		}
	}
	required := base
	if v != vUnknown {
		required |= variants[v].members &^ variants[v].optional
	}
	if missing := required &^ f.seen; missing != 0 {
		for m := 1; m <= numMembers; m++ {
			if missing.has(m) {
				return fail(RuleRequired, m, "is required")
			}
		}
	}
	if !runPattern.matches(f.runID) {
		return fail(RuleID, mRunID, strconv.Quote(f.runID)+" does not match "+PatternRunID)
	}
	if f.sloppy {
		return fail(RuleTime, mTS, "is not a time in UTC with milliseconds, such as 2026-05-05T09:00:00.000Z")
	}
	if f.seen.has(mAgentID) && !agentPattern.matches(f.agentID) && !f.ofRun {
		return fail(RuleID, mAgentID, strconv.Quote(f.agentID)+" does not match "+PatternAgentID)
	}
	if f.seen.has(mStep) && f.step < 0 {
		return fail(RuleRange, mStep, strconv.Itoa(f.step)+" is below 0")
	}
	if f.duration < 0 {
		m := mDuration
		if v == vEnd {
			m = mTotalDuration
		}
		return fail(RuleRange, m, "must not be below 0")
	}
	word := func(member int, s string, known []string) *agentevents.RuleError {
		if slices.Contains(known, s) {
			return nil
		}
		return fail(RuleEnum, member, strconv.Quote(s)+" is not one of "+strings.Join(known, ", "))
	}
	switch v {
	case vTransition:
		if err := word(mFrom, f.from, statuses); err != nil {
			return err
		}
		return word(mTo, f.to, statuses)
	case vTool:
		for i, s := range [...]string{f.input, f.output} {
			if len(s) > MaxSummary && utf8.RuneCountInString(s) > MaxSummary {
				return fail(RuleSummary, mInputSummary+i, "has "+strconv.Itoa(utf8.RuneCountInString(s))+" characters, the limit is "+strconv.Itoa(MaxSummary))
			}
		}
	case vAudit:
		if !checkpointPattern.matches(f.checkpoint) {
			return fail(RuleID, mCheckpointID, strconv.Quote(f.checkpoint)+" does not match "+PatternCheckpointID)
		}
		return word(mResult, f.result, results)
	case vEnd:
		for m, n := range [...]int{mTotalSteps: f.steps, mTotalToolCalls: f.calls, mTotalAudits: f.audits, mAuditsPassed: f.pass, mAuditsFailed: f.fail} {
			if n < 0 {
				return fail(RuleRange, m, strconv.Itoa(n)+" is below 0")
			}
		}
		if f.score < 0 || f.score > 1 {
			return fail(RuleRange, mScore, strconv.FormatFloat(f.score, 'g', -1, 64)+" is not in [0, 1]")
		}
		return word(mOutcome, f.outcome, outcomes)
	}
	return nil
}

// breaks returns the error of an event with a word that the document does not
// list, or a number outside its range. Otherwise it returns nil.
func breaks(ev *agentevents.Event) error {
	switch p := ev.Payload.(type) {
	case *agentevents.AgentTransition:
		if !isStatus(p.From) {
			return unlisted(ev, "/payload/from", string(p.From), statuses)
		}
		if !isStatus(p.To) {
			return unlisted(ev, "/payload/to", string(p.To), statuses)
		}
	case *agentevents.ToolReturned:
		if p.Duration.OK && p.Duration.V < 0 {
			return below0(ev, "/payload/durationMs")
		}
	case *agentevents.Unknown:
	case *agentevents.AuditChecked:
		if !slices.Contains(results, string(p.Result)) {
			return unlisted(ev, "/payload/result", string(p.Result), results)
		}
		if p.Duration < 0 {
			return below0(ev, "/payload/durationMs")
		}
		return nil
	case *agentevents.AgentEnded:
		return endBreaks(ev, p)
	default:
		return nil
	}
	if ev.Step.OK && ev.Step.V < 0 {
		return below0(ev, "/step")
	}
	return nil
}

func endBreaks(ev *agentevents.Event, p *agentevents.AgentEnded) error {
	if p.Outcome != "" && !slices.Contains(outcomes, string(p.Outcome)) { // an empty one is made up
		return unlisted(ev, "/payload/outcome", string(p.Outcome), outcomes)
	}
	if s := p.ConvergenceScore; s.OK && !(s.V >= 0 && s.V <= 1) {
		return refused(ev, RuleRange, "/payload/convergenceScore", strconv.FormatFloat(s.V, 'g', -1, 64)+" is not in [0, 1]")
	}
	t := &p.Totals.V
	for i, n := range [...]int{t.Steps, t.ToolCalls, t.AuditCheckpoints, t.AuditsPassed, t.AuditsFailed} {
		if p.Totals.OK && n < 0 {
			return below0(ev, "/payload/totals/"+totalsNames[i])
		}
	}
	if !p.Totals.OK && ev.Extra(string(Name)) != "" {
		for m := mTotalSteps; m <= mAuditsFailed; m++ { // kept of a line with only some totals
			if strings.HasPrefix(string(dialect.Unknown(ev, Name, memberName(m))), "-") {
				return below0(ev, "/"+string(Name)+"/"+memberName(m))
			}
		}
	}
	if p.Duration.OK && p.Duration.V < 0 {
		return below0(ev, "/payload/durationMs")
	}
	return nil
}

// totalsNames are the members of Totals in the native format.
var totalsNames = [...]string{"steps", "toolCalls", "auditCheckpoints", "auditsPassed", "auditsFailed"}

func below0(ev *agentevents.Event, pointer string) error {
	return refused(ev, RuleRange, pointer, "must not be below 0")
}

func unlisted(ev *agentevents.Event, pointer, word string, known []string) error {
	return refused(ev, RuleEnum, pointer, strconv.Quote(word)+" is not one of "+strings.Join(known, ", "))
}

// isStatus reports whether s is in statuses. It is a switch because transitions
// need it twice.
func isStatus(s agentevents.AgentStatus) bool {
	switch s {
	case agentevents.StatusThinking, agentevents.StatusToolCall, agentevents.StatusToolResult, agentevents.StatusResponse, agentevents.StatusReflect, agentevents.StatusBlockedOnClarification,
		agentevents.StatusConverged, agentevents.StatusFailed:
		return true
	}
	return false
}

// The document's enums.
var (
	statuses = []string{"thinking", "tool_call", "tool_result", "response", "reflect", "blocked-on-clarification", "converged", "failed"}
	outcomes = []string{"converged", "partial", "escaped", "aborted"}
	results  = []string{"pass", "fail", "warn"}
)
