package lawtest

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/report"
	"github.com/agentevents/agentevents/tree"
)

// A telling is a thing that a person must be told: the events that record it, each with words that
// stand in no other event, and which of the words a list of urgent things must have while the
// run goes on.
type telling struct {
	events func(id, word string) []agentevents.Payload
	words  int  // number of words: word1, word2, …
	urgent int  // number of them that stand in the list
	asks   bool // it waits for a person until somebody answers
}

var tellings = map[string]telling{
	"approval": {func(id, w string) []agentevents.Payload {
		return []agentevents.Payload{&agentevents.ApprovalRequested{ApprovalID: id, Action: w + "1", Reason: w + "2"}}
	}, 2, 2, true},
	"approval granted": {func(id, w string) []agentevents.Payload {
		return []agentevents.Payload{&agentevents.ApprovalRequested{ApprovalID: id, Action: w + "1"}, &agentevents.ApprovalGranted{ApprovalID: id, ApprovedBy: w + "2", Feedback: w + "3"}}
	}, 3, 0, false},
	"questions": {func(id, w string) []agentevents.Payload {
		return []agentevents.Payload{&agentevents.ClarificationRequested{InterruptID: id, Questions: []agentevents.Question{{ID: "a", Question: w + "1"}, {ID: "b", Question: w + "2"}}}}
	}, 2, 2, true},
	"question answered": {func(id, w string) []agentevents.Payload {
		return []agentevents.Payload{
			&agentevents.ClarificationRequested{InterruptID: id, Questions: []agentevents.Question{{ID: "a", Question: w + "1"}}},
			&agentevents.ClarificationResolved{InterruptID: id, Answers: agentevents.JSON(`{"a":"` + w + `2"}`), AnsweredBy: w + "3"},
		}
	}, 3, 0, false},
	"failed call": {func(id, w string) []agentevents.Payload {
		return []agentevents.Payload{
			&agentevents.ToolCalled{CallID: id, ToolID: w + "1", Arguments: agentevents.JSON(`{"path":"` + w + `2"}`)},
			&agentevents.ToolReturned{CallID: id, ToolID: w + "1", Status: agentevents.ToolStatusError, Error: agentevents.Some(agentevents.ErrorInfo{Message: w + "3"})},
		}
	}, 3, 3, false},
	"call failed with a summary": {func(id, w string) []agentevents.Payload {
		return []agentevents.Payload{&agentevents.ToolReturned{CallID: id, ToolID: w + "1", OneEvent: true, Status: agentevents.ToolStatusError, ResultSummary: w + "2"}}
	}, 2, 2, false},
	"call failed with a result": {func(id, w string) []agentevents.Payload {
		return []agentevents.Payload{
			&agentevents.ToolCalled{CallID: id, ToolID: w + "1"},
			&agentevents.ToolReturned{CallID: id, ToolID: w + "1", Status: agentevents.ToolStatusCancelled, Result: agentevents.JSONString(w + "2")},
		}
	}, 2, 2, false},
	"issue": {func(_, w string) []agentevents.Payload {
		return []agentevents.Payload{&agentevents.IssueFound{Issue: w + "1", Severity: w + "2"}}
	}, 2, 2, false},
	"evidence": {func(_, w string) []agentevents.Payload {
		return []agentevents.Payload{&agentevents.EvidenceInsufficient{Reason: w + "1", WhatWouldResolve: w + "2"}}
	}, 2, 2, false},
	"handoff": {func(id, w string) []agentevents.Payload {
		return []agentevents.Payload{&agentevents.HandoffRequested{HandoffID: id, From: agentevents.AgentRef{AgentID: "host:" + w + "1"}, To: agentevents.AgentRef{AgentID: "host:" + w + "2"}, Reason: w + "3"}}
	}, 3, 3, false},
	"claim": {func(_, w string) []agentevents.Payload {
		return []agentevents.Payload{&agentevents.ClaimVerified{FindingID: w + "1", VerifierAgentID: "host:v", Verdict: "rejected"}}
	}, 1, 1, false},
	"audit": {func(_, w string) []agentevents.Payload {
		return []agentevents.Payload{&agentevents.AuditChecked{CheckpointID: "audit:" + w + "1", Result: agentevents.AuditFail}}
	}, 1, 1, false},
	"rejected command": {func(_, w string) []agentevents.Payload {
		return []agentevents.Payload{&agentevents.CommandReceived{Command: agentevents.Command{Type: agentevents.CommandSend, RunID: "x", Message: w + "1"}, Rejected: w + "2"}}
	}, 2, 2, false},
	"command": {func(_, w string) []agentevents.Payload {
		return []agentevents.Payload{&agentevents.CommandReceived{Command: agentevents.Command{Type: agentevents.CommandSend, RunID: "x", Message: w + "1"}}}
	}, 1, 0, false},
	"message": {func(id, w string) []agentevents.Payload {
		return []agentevents.Payload{&agentevents.MessageCreated{Message: agentevents.ConversationMessage{MessageID: id, From: "user", To: "host:" + w + "1", Content: agentevents.JSONString(w + "2")}}}
	}, 2, 0, false},
	"decision": {func(_, w string) []agentevents.Payload {
		return []agentevents.Payload{&agentevents.AgentDecided{Decision: agentevents.JSONString(w + "1"), Confidence: agentevents.Some(0.9), Reasoning: w + "2"}}
	}, 2, 0, false},
	"unsure decision": {func(_, w string) []agentevents.Payload {
		return []agentevents.Payload{&agentevents.AgentDecided{Decision: agentevents.JSONString(w + "1"), Confidence: agentevents.Some(0.65), Reasoning: w + "2"}}
	}, 2, 2, false},
	"ask-user": {func(_, w string) []agentevents.Payload {
		return []agentevents.Payload{&agentevents.OrchestratorDecided{Decision: agentevents.JSON(`{"kind":"ask-user","question":"` + w + `1"}`)}}
	}, 1, 1, false},
	"budget": {func(_, w string) []agentevents.Payload {
		return []agentevents.Payload{&agentevents.BudgetExceeded{Budget: w + "1", Limit: 1, Actual: 2, Reason: w + "2"}}
	}, 2, 2, false},
	"error": {func(_, w string) []agentevents.Payload {
		return []agentevents.Payload{&agentevents.AgentErrored{ErrorType: w + "1", Message: w + "2"}}
	}, 2, 0, false},
	"failed node": {func(id, w string) []agentevents.Payload {
		return []agentevents.Payload{&agentevents.NodeFailed{Error: agentevents.ErrorInfo{Message: w + "1"}}}
	}, 1, 1, false},
}

// Whatever people must be told of a run stands in its tree, in the list of urgent things, and in the
// lines of its events, in whatever number and order it comes.
func TestPeopleAreTold(t *testing.T) {
	names := slices.Sorted(func(yield func(string) bool) {
		for name := range tellings {
			if !yield(name) {
				return
			}
		}
	})
	rapid.Check(t, func(t *rapid.T) {
		var log []agentevents.Event
		add := func(agent, node string, p agentevents.Payload) {
			log = append(log, agentevents.Event{ID: fmt.Sprint("e", len(log)), RunID: "r", Sequence: uint64(len(log)), Time: time.Unix(int64(1e9+len(log)), 0).UTC(),
				Scope: agentevents.Scope{NodeID: node}, AgentID: agent, Payload: p})
		}
		add("", "", &agentevents.RunStarted{})
		for _, a := range []string{"a", "b"} {
			add(a, "", &agentevents.AgentStarted{Task: "task of " + a})
		}
		type piece struct {
			agent, node string
			payloads    []agentevents.Payload
		}
		var open []piece
		var words, urgent, either, asked []string
		for i := range rapid.IntRange(1, 12).Draw(t, "things") {
			name := rapid.SampledFrom(names).Draw(t, "thing")
			tell := tellings[name]
			w := fmt.Sprintf("w%dx", i)
			p := piece{agent: rapid.SampledFrom([]string{"a", "b"}).Draw(t, "agent"), payloads: tell.events(fmt.Sprint("id", i), w)}
			if name == "failed node" {
				p.agent, p.node = "", fmt.Sprint("n", i)
			}
			open = append(open, p)
			for k := range tell.words {
				word := fmt.Sprint(w, k+1)
				words = append(words, word)
				if name == "error" { // the list has the last one of an agent
					either = append(either, word)
				}
				if k < tell.urgent {
					urgent = append(urgent, word)
				}
				if tell.asks {
					asked = append(asked, word)
				}
			}
		}
		for len(open) > 0 { // the things come between each other
			i := rapid.IntRange(0, len(open)-1).Draw(t, "next")
			add(open[i].agent, open[i].node, open[i].payloads[0])
			if open[i].payloads = open[i].payloads[1:]; len(open[i].payloads) == 0 {
				open = slices.Delete(open, i, i+1)
			}
		}
		fold := agentevents.NewFold(agentevents.FoldOptions{KeepCalls: 1000})
		var details report.Details
		var events strings.Builder
		for i := range log {
			for range rapid.IntRange(1, 2).Draw(t, "times") { // an event may come again
				fold.Apply(log[i])
				details.Add(&log[i])
			}
			e := report.Event(&log[i])
			fmt.Fprintln(&events, e.Sentence(), e.AgentID)
		}
		s := fold.Snapshot()
		require.Zero(t, s.ViolationCount, s.Violations)
		var drawn strings.Builder
		require.NoError(t, tree.Write(&drawn, s, tree.Options{Width: -1, Details: &details}))
		attention := ""
		items := report.Of(s, &details)
		for _, i := range report.Attention(items) {
			attention += i.Sentence() + "\n"
		}
		for _, w := range words {
			require.Contains(t, drawn.String(), w)
			require.Contains(t, events.String(), w)
			if !slices.Contains(either, w) {
				require.Equal(t, slices.Contains(urgent, w), strings.Contains(attention, w), "%s in the list:\n%s", w, attention)
			}
		}
		lines := strings.SplitAfter(attention, "\n")
		for _, w := range asked { // questions come first
			require.Contains(t, strings.Join(lines[:min(len(asked), len(lines))], ""), w)
		}
	})
}
