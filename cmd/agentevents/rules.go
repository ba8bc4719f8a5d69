package main

import (
	"flag"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect"
	"github.com/agentevents/agentevents/dialect/agui"
	"github.com/agentevents/agentevents/dialect/kahn"
	"github.com/agentevents/agentevents/dialect/kaos"
	"github.com/agentevents/agentevents/dialect/multiagent"
	"github.com/agentevents/agentevents/dialect/openharness"
	"github.com/agentevents/agentevents/dialect/openwop"
	"github.com/agentevents/agentevents/dialect/openwop/host"
	"github.com/agentevents/agentevents/internal/endword"
)

// A documentRule is a rule of a document. The package of its dialect names it.
type documentRule struct {
	dialect   dialect.Name
	rule      agentevents.Rule
	statement string
}

var documentRules = []documentRule{
	{kahn.Name, kahn.RuleType, "an event is one of the five, or has other characters than small letters and underscores"},
	{kahn.Name, kahn.RuleRequired, "required members are there"},
	{kahn.Name, kahn.RuleID, "ids match the pattern of their member"},
	{kahn.Name, kahn.RuleEnum, "statuses, outcomes and results are words that the document lists"},
	{kahn.Name, kahn.RuleRange, "numbers are in their range"},
	{kahn.Name, kahn.RuleSummary, fmt.Sprintf("a summary has at most %d characters", kahn.MaxSummary)},
	{kahn.Name, kahn.RuleTime, "times are in UTC with milliseconds"},
	{multiagent.Name, multiagent.RuleEnvelope, "the required members of the envelope are there and not empty"},
	{multiagent.Name, multiagent.RuleTimestamp, "timestamp is an RFC 3339 time"},
	{multiagent.Name, multiagent.RuleWorkflow, "a workflow event has a workflowId"},
	{multiagent.Name, multiagent.RulePhase, "agent events of a workflow, phases and checkpoints name their phase"},
	{multiagent.Name, multiagent.RuleField, "a key field of a workflow type has the type of its native field"},
	{kaos.Name, kaos.RuleType, "a type is one of KAOS, or has other characters than small letters and underscores"},
	{kaos.Name, kaos.RuleRequired, "required members are there, ids are not empty"},
	{kaos.Name, kaos.RuleEnum, "subjects, phases and kinds of memory_event are words that the document lists"},
	{kaos.Name, kaos.RuleRange, "numbers are not negative, a confidence is in [0, 1]"},
	{kaos.Name, kaos.RulePhase, "start and progress have no duration, only error has an error"},
	{kaos.Name, kaos.RuleFrame, "event and id of a frame are type and sequence of its data"},
	{openharness.Name, openharness.RuleType, "a type that begins with agent:, flow:, node:, edge:, loop:, state: or command: is one of the document or of its later versions"},
	{openharness.Name, openharness.RuleNode, "node and agent events name their node and its execution; node:skipped names no execution"},
	{openharness.Name, openharness.RuleRequired, "required members are there"},
	{openharness.Name, openharness.RuleEnum, "words are among those that the document lists"},
	{openharness.Name, openharness.RuleRange, "numbers are in their range"},
	{openharness.Name, openharness.RuleForm, "a prompt is a string or a list of messages; members of commands have their types"},
	{openharness.Name, openharness.RuleOrder, "agents act between agent:start and the end of their node, if the log has its start"},
	{openwop.Name, openwop.RuleRequired, "required members are there"},
	{openwop.Name, openwop.RuleID, "an id has the length and the grammar of the profile"},
	{openwop.Name, openwop.RuleType, "a type is registered or a vendor's"},
	{openwop.Name, openwop.RuleEnum, "words of closed lists are in their list"},
	{openwop.Name, openwop.RuleRange, "numbers are in their range, and whole where they must be; texts are neither too short nor too long"},
	{openwop.Name, openwop.RuleForm, "members that must be objects are objects; decisions and questions have their form"},
	{openwop.Name, openwop.RuleClosed, "a closed object has no members but its own"},
	{openwop.Name, openwop.RuleResult, "an error of a tool comes neither with a result nor with the status ok"},
	{openwop.Name, openwop.RuleDuration, "a call that never began has no duration (v1, v2)"},
	{openwop.Name, openwop.RuleCausation, "the causationId of agent.toolReturned is the eventId of the call"},
	{openwop.Name, openwop.RuleNode, "a node starts before its agents act, and starts and completes once an attempt; payload and envelope name the same node"},
	{openwop.Name, openwop.RuleTool, "agent.toolReturned names the tool of the call"},
	{openwop.Name, openwop.RuleBlock, "an agent closes no block of reasoning of another agent"},
	{openwop.Name, openwop.RuleInvocation, "an invocation starts before it completes, and its lines have identifiers and counts only"},
	{openwop.Name, openwop.RuleMemory, "a consolidated memory has no more parts than before"},
	{openwop.Name, openwop.RuleOrchestrator, "a run has one orchestrator"},
	{openwop.Name, openwop.RuleEscalate, "exactly one action follows a decision below the threshold before its node or the run completes"},
	{openwop.Name, openwop.RuleSequence, "sequence rises within the run; an event that is delivered again is none"},
	{openwop.Name, openwop.RuleTerminal, "nothing follows the end of the run, and no message the end of its conversation"},
	{openwop.Name, host.RuleCapability, "a host emits no event of a capability that it does not declare (refused by host.Host, not by check)"},
	{openwop.Name, host.RuleToolAllowed, "an agent calls the tools of its allowlist (refused by host.Host, not by check)"},
	{agui.Name, agui.RuleRequired, "required members are there"},
	{agui.Name, agui.RuleType, "a type is one of the protocol"},
	{agui.Name, agui.RuleValue, "members have the JSON type that the protocol requires, roles are in their list, times are whole milliseconds"},
	{agui.Name, agui.RuleOrder, "RUN_STARTED comes first; messages, calls, steps and sub-agents begin before they go on, and end before their run; nothing follows its end"},
	{agui.Name, agui.RuleState, "a JSON Patch can be applied to the state that the lines before have told"},
}

// libraryRules are the rules of the library that a document states, beside those that the
// package of its dialect names. Field rules are of every document, and all rules are of a
// native log.
var libraryRules = map[dialect.Name][]agentevents.Rule{
	kahn.Name:        {agentevents.RuleTransitionFromCurrent, agentevents.RuleTransitionLegal, agentevents.RuleStepMonotonic, agentevents.RuleEndedTotals},
	multiagent.Name:  {agentevents.RuleWorkflowContext},
	openharness.Name: {agentevents.RuleTerminalLast},
	openwop.Name:     {agentevents.RuleToolCallOpen, agentevents.RuleDeltaIndex, agentevents.RuleMessageGroup},
	kaos.Name:        {},
	agui.Name:        {agentevents.RuleToolCallOpen},
}

// stated reports whether a document states a rule.
func stated(in dialect.Name, rule agentevents.Rule) bool {
	rules, document := libraryRules[in]
	return !document || rule == agentevents.RuleRun ||
		strings.HasPrefix(string(rule), "field-") || slices.Contains(rules, rule)
}

// readable reports whether a word that is none of its list has a meaning all the same, in a
// document without that list.
func readable(in dialect.Name, ev *agentevents.Event, v *agentevents.RuleError) bool {
	if v.Rule != agentevents.RuleFieldEnum || !openWords[in] {
		return false
	}
	var word string
	switch p := ev.Payload.(type) {
	case *agentevents.ToolReturned:
		word = string(p.Status)
	case *agentevents.AgentEnded:
		word = string(p.Outcome)
	}
	return endword.Of(word) != endword.Unknown
}

// openWords are the documents that list no words for how calls and agents end.
var openWords = map[dialect.Name]bool{multiagent.Name: true, kaos.Name: true, openharness.Name: true, agui.Name: true}

func rulesCommand() command {
	return command{
		name:    "rules",
		purpose: "list the rules that 'agentevents check' applies",
		about: `
The rules of the library come first: 'agentevents check' always applies them. The rules of
the documents follow: it applies them with --dialect FORMAT.`,
		examples: []string{
			"agentevents rules",
			"agentevents rules | grep step",
		},
		flags: func(*flag.FlagSet) action {
			return func(in *invocation) error {
				tw := tabwriter.NewWriter(in.stdout, 0, 0, 2, ' ', 0)
				for rule, statement := range agentevents.Rules() {
					fmt.Fprintf(tw, "%s\t%s\n", rule, statement)
				}
				fmt.Fprintf(tw, "%s\t%s\n", ruleUnreadable, "every line is one event: a JSON object with the members of an event")
				fmt.Fprintf(tw, "%s\t%s\n", ruleChain, "every line of a chained log continues the chain (with check --chain)")
				var of dialect.Name
				for _, r := range documentRules {
					if r.dialect != of {
						of = r.dialect
						fmt.Fprintf(tw, "\nwith --dialect %s:\n", of)
					}
					fmt.Fprintf(tw, "%s\t%s\n", r.rule, r.statement)
				}
				return tw.Flush()
			}
		},
	}
}
