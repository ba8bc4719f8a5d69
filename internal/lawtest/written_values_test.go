package lawtest

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	ae "github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect"
)

// at returns an event of an agent, or of an execution of node n if the agent begins with a slash.
func at(agent string, step ae.Opt[int], p ae.Payload) ae.Event {
	ev := ae.Event{AgentID: agent, Step: step, Payload: p}
	if run, node := strings.CutPrefix(agent, "/"); node {
		ev.AgentID, ev.NodeID, ev.NodeRunID = "", "n", run
	}
	return ev
}

// The changes with which writers make lines that the check of their format accepts: the values on
// the lines, in order, and the loss that lists the change.
func TestWrittenValues(t *testing.T) {
	none, step, start, fails := ae.Opt[int]{}, ae.Some[int], &ae.AgentStarted{}, &ae.NodeFailed{Error: ae.ErrorInfo{Message: "m"}}
	thought := func(index int, text string) ae.Payload {
		return &ae.AgentReasoningDelta{Delta: text, Index: ae.Some(index)}
	}
	ended := &ae.AgentEnded{Outcome: ae.OutcomeConverged, Totals: ae.Some(ae.Totals{})}
	once := &ae.AgentEnded{Outcome: ae.OutcomeConverged, Totals: ae.Some(ae.Totals{Steps: 1})}
	asked := func(id, from, to string) ae.Payload {
		return &ae.HandoffRequested{HandoffID: id, From: ae.AgentRef{AgentID: from}, To: ae.AgentRef{AgentID: to}}
	}
	taken := func(id, from, to string) ae.Payload {
		return &ae.HandoffAccepted{HandoffID: id, From: ae.AgentRef{AgentID: from}, To: ae.AgentRef{AgentID: to}}
	}
	for name, c := range map[string]struct {
		formats string
		events  []ae.Event
		find    string // in the lines
		want    string // the values on the lines
		loss    string
	}{
		"an empty delta has no index": {"agui agui:sse", []ae.Event{at("a", none, start), at("a", none, thought(0, "x")), at("a", none, thought(1, ""))},
			`"index":(\d+)`, "", "dropped /payload/index"},
		"a span has no error before it ends": {"kaos kaos:sse", []ae.Event{at("a", none, &ae.SpanRecorded{Subject: "judge", Phase: "progress", ErrorType: "e", Duration: ae.Some(time.Second)})},
			`"(?:error_type|duration_ms)":([^,]*)`, "null null", "dropped /payload/errorType"},
		"the pair of a handoff with an id": {"kaos kaos:sse", []ae.Event{at("a", none, asked("h", "x", "y")), at("a", none, asked("h", "v", "w")), at("a", none, taken("h", "v", "w")), at("a", none, taken("h", "v", "w"))},
			`"from_agent":"(.)"`, "x v v x", "altered /payload/from/agentId"},
		"a handoff without an id": {"multiagent", []ae.Event{at("a", none, asked("", "x", "y")), at("a", none, asked("h", "x", "y")), at("a", none, taken("", "x", "y")), at("a", none, taken("h", "x", "y"))},
			`"handoffId":("[^"]*")`, `"h" "" "h"`, "made up /multiagent/~1payload~1handoffId"},
		"the start of an agent comes again after one that is made up": {"openharness", []ae.Event{at("", none, &ae.RunStarted{}), at("a", none, start), {AgentID: "a", Scope: ae.Scope{NodeID: "n"}, Payload: &ae.NodeStarted{}}, at("", none, &ae.RunPaused{}), at("", none, &ae.RunResumed{}),
			at("a", none, thought(0, "x")), at("a", none, start)},
			`(agent:start|"resumed":true)`, `agent:start agent:start "resumed":true agent:start "resumed":true`, "made up /payload/resumed"},
		"an agent goes on where its node has failed": {"openharness", []ae.Event{at("a", none, start), {AgentID: "a", Scope: ae.Scope{NodeID: "n"}, Payload: fails}, {AgentID: "a", Scope: ae.Scope{NodeID: "n"}, Payload: &ae.NodeStarted{}},
			at("a", none, &ae.AgentEnded{Outcome: ae.OutcomeAborted})},
			`"type":"([^"]*)"`, "agent:start node:error node:start agent:start agent:error", "made up "},
		"a step of an earlier attempt": {"kahn multiagent", []ae.Event{at("a", none, start), at("a", step(0), &ae.StepStarted{StepID: "s"}), at("a", none, once), at("a", none, start),
			at("a", step(0), &ae.ToolReturned{CallID: "c", ToolID: "t", Status: ae.ToolStatusOK, OneEvent: true}), at("a", none, &ae.AgentEnded{Outcome: ae.OutcomeConverged, Totals: ae.Some(ae.Totals{ToolCalls: 1})})},
			`"(?:total_)?steps":(\d)`, "1 1", "made up /payload/totals/steps"},
		"a wrong total remains": {"kahn multiagent", []ae.Event{at("a", none, start), at("a", step(0), &ae.ToolReturned{CallID: "c", ToolID: "t", Status: ae.ToolStatusOK, OneEvent: true}), at("a", none, ended)},
			`"(?:total_)?steps":(\d)`, "0", ""},
		"index 0 begins a block": {"openwop openwop:v1", []ae.Event{at("a", none, start), at("a", none, thought(0, "x")), at("a", none, start), at("a", none, thought(0, "y")), at("a", none, thought(1, "z"))},
			`"delta":"."[^}]*"sequence":(\d)`, "0 0 1", ""},
		"a return names the tool of its call": {"openwop openwop:v1 openwop:v2", []ae.Event{at("a", none, &ae.ToolCalled{CallID: "c", ToolID: "s:t"}), at("a", none, &ae.ToolReturned{CallID: "c", ToolID: "s:u", Status: ae.ToolStatusOK})},
			`"(s:.)"`, "s:t s:t", "altered /payload/toolId"},
		"two executions of a node are two nodes": {"openwop openwop:v1 openwop:v2", []ae.Event{at("", none, &ae.RunStarted{}), at("/x", none, &ae.NodeStarted{}), at("/y", none, &ae.NodeStarted{}), at("/x", none, &ae.NodeCompleted{}), at("/y", none, &ae.NodeCompleted{})},
			`"payload":{"nodeId":"([^"]*)"`, "n n-2 n n-2", "altered /nodeId"},
		"the end of a run ends the texts of its agents": {"agui agui:sse", []ae.Event{at("/x", none, start), at("/x", none, &ae.TextDelta{BlockID: "b", Delta: "hello"}), at("/x", none, &ae.AgentEnded{Outcome: ae.OutcomeConverged}), at("", none, &ae.RunCompleted{})},
			`"type":"((?:TEXT|RUN)[A-Z_]*)"`, "RUN_STARTED TEXT_MESSAGE_START TEXT_MESSAGE_CONTENT TEXT_MESSAGE_END RUN_FINISHED", ""},
	} {
		for as := range strings.FieldsSeq(c.formats) {
			t.Run(name+"/"+as, func(t *testing.T) {
				f, enc := formats()[as], dialect.Encoder(nil)
				enc = f.encoder()
				var text []byte
				for i, ev := range c.events {
					ev.ID, ev.RunID, ev.Sequence, ev.SchemaVersion = "e"+string(rune('a'+i)), "r", uint64(i), ae.SchemaVersion
					ev.Time = time.Unix(int64(i), 0).UTC()
					text, _ = enc.Append(text, ev) // not every format has a line for each
				}
				text, err := enc.End(text)
				require.NoError(t, err)
				var found []string
				for _, match := range regexp.MustCompile(c.find).FindAllStringSubmatch(string(text), -1) {
					found = append(found, match[1])
				}
				got := strings.Join(found, " ")
				require.Equal(t, c.want, got, "%s", text)
				var losses []string
				for _, l := range enc.Losses() {
					losses = append(losses, l.What.String()+" "+l.Pointer)
				}
				if c.loss != "" {
					require.Contains(t, losses, c.loss)
				}
				if name != "a wrong total remains" {
					f.faults(text, "", func(err error) { t.Errorf("%v\n%s", err, text) })
				}
			})
		}
	}
}
