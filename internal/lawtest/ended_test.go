package lawtest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect/multiagent"
	"github.com/agentevents/agentevents/internal/effort"
	"github.com/agentevents/agentevents/report"
	"github.com/agentevents/agentevents/tree"
)

// typeWords are last words of types that the wiki does not list, by how their subject ended.
var typeWords = [...][]string{
	well:        {"done", "succeeded", "finished", "success"},
	badly:       {"failed", "timeout", "timed_out", "crashed", "exhausted", "expired"},
	refusedEnd:  {"refused", "forbidden", "vetoed"},
	stopped:     {"cancelled", "aborted", "interrupted", "killed"},
	inPart:      {"partial", "incomplete", "partially"},
	nobodyKnows: {"progress", "shelved", "updated", "paused"},
}

// grantWords answer a request with yes; after them anything else goes on.
var grantWords = []string{"approved", "accept", "confirmed"}

// onTheWay are words of trouble that an agent, a session or a workflow may get over.
var onTheWay = []string{"error", "blocked", "stuck"}

// A subject is a thing that an event of a drawn log may end.
type subject struct {
	domain, id, span string
	typ, word, why   string
	how              int
	grants, hurdle   bool
}

// ends reports whether the last event of the subject ends it, by the generator's own lists.
func (x *subject) ends() bool {
	asks := x.domain == "approval." || x.domain == "handoff."
	switch {
	case x.grants:
		return asks
	case x.hurdle:
		return x.domain == "tool.call." || asks
	case x.how == well:
		return x.domain != "approval."
	}
	return x.how != inPart && x.how != nobodyKnows
}

// TestTypesOfEnds draws wiki logs in which calls, agents, phases, workflows, handoffs, approvals
// and the session end by a type that the document does not list, in all words, in any order, with
// and without ids and reasons. The generator's own lists have the ended subjects, with result and
// reason; the fold, the tree and the log that is written from the events agree.
func TestTypesOfEnds(t *testing.T) {
	rng := rand.New(rand.NewPCG(effort.Seed(t), 382))
	opens := map[string]string{
		"tool.call.":      `tool.call.started {"callId":%q,"toolId":"x"}`,
		"agent.":          `agent.spawned {"agentId":%q,"agentTask":"t"}`,
		"workflow.phase.": `workflow.phase.started {"workflowId":"base","phase":%q,"inputCount":1}`,
		"workflow.":       `workflow.created {"workflowId":%q,"script":"s","phases":[],"estimatedTokens":1}`,
		"handoff.":        `handoff.requested {"handoffId":%q,"from":{"agentId":"boss"},"to":{"agentId":"aide"}}`,
		"approval.":       `approval.requested {"approvalId":%q,"action":"act"}`,
	}
	ids := map[string]string{
		"tool.call.": `"callId":%q`, "agent.": `"agentId":%q`, "workflow.phase.": `"workflowId":"base","phase":%q`,
		"workflow.": `"workflowId":%q`, "handoff.": `"handoffId":%q`, "approval.": `"approvalId":%q`,
	}
	domains := []string{"tool.call.", "agent.", "workflow.phase.", "workflow.", "handoff.", "approval."}
	for range effort.Of(60, 400, 5000) {
		var text strings.Builder
		n := 0
		line := func(span, actor, typ, payload string) {
			n++
			fmt.Fprintf(&text, `{"id":"e%d","traceId":"T","spanId":%q,"sessionId":"S","runId":"R","actor":%q,"type":%q,"payload":%s,"timestamp":"2026-03-01T08:%02d:%02d.000Z","schemaVersion":"1.0"}`+"\n",
				n, span, actor, typ, payload, n/60, n%60)
		}
		draw := func(x *subject) {
			x.how = rng.IntN(len(typeWords))
			switch word := oneOf(rng, typeWords[x.how]); {
			case rng.IntN(8) == 0:
				x.grants, x.how, x.word = true, well, oneOf(rng, grantWords)
			case rng.IntN(8) == 0:
				x.hurdle, x.how, x.word = true, badly, oneOf(rng, onTheWay)
				if x.word == "blocked" {
					x.how = refusedEnd
				}
			default:
				x.word = spell(rng, word)
			}
			if x.domain == "workflow." && x.word == "approved" || x.domain == "handoff." && x.word == "accepted" { // the document's
				x.word = "confirmed"
			}
			x.typ = x.domain + x.word
		}
		line("root", "user", "session.started", `{"goal":"g"}`)
		var all, open []*subject
		for i := range 3 + rng.IntN(8) {
			x := &subject{domain: oneOf(rng, domains), id: fmt.Sprintf("i%d", i), span: fmt.Sprintf("s%d", i)}
			typ, payload, _ := strings.Cut(opens[x.domain], " ")
			line(x.span, "boss", typ, fmt.Sprintf(payload, x.id))
			all, open = append(all, x), append(open, x)
			for len(open) > 0 && rng.IntN(2) == 0 {
				k := rng.IntN(len(open))
				x := open[k]
				open = append(open[:k:k], open[k+1:]...)
				draw(x)
				var members []string
				if x.domain == "workflow." || x.domain == "workflow.phase." || rng.IntN(3) > 0 {
					members = append(members, fmt.Sprintf(ids[x.domain], x.id))
				}
				if rng.IntN(2) == 0 {
					x.why = "why " + x.id
					member := oneOf(rng, []string{`"reason":%q`, `"message":%q`, `"error":{"message":%q}`})
					if x.domain == "approval." {
						member = `"reason":%q`
					}
					members = append(members, fmt.Sprintf(member, x.why))
				}
				actor := "boss"
				if x.domain == "handoff." {
					actor = "aide"
				}
				line(x.span, actor, x.typ, "{"+strings.Join(members, ",")+"}")
			}
		}
		end := &subject{domain: "session."}
		draw(end)
		line("root", "user", end.typ, `{}`)
		requireTypesOfEnds(t, text.String(), all, end)
	}
}

// requireTypesOfEnds checks the snapshot and the tree of a log, and that it is written without a loss.
func requireTypesOfEnds(t *testing.T, log string, all []*subject, end *subject) {
	t.Helper()
	events := readWiki(t, log)
	s, details := foldWiki(events)
	unknown := map[string]int{}
	for _, x := range append(all, end) {
		if x.typ == "" {
			continue
		}
		decoded := map[string]bool{"tool.call.": true, "agent.": true, "session.": true, "approval.": true,
			"handoff.": x.grants}[x.domain]
		if !x.ends() || !decoded {
			unknown["multiagent:"+x.typ]++
		}
	}
	got := map[string]int{}
	for kind, n := range s.Unknown {
		got["multiagent:"+strings.TrimPrefix(kind, "multiagent:")] += n
	}
	require.Equal(t, unknown, got, log)
	for _, x := range all {
		x.check(t, s, log)
	}
	if end.ends() {
		require.Equal(t, end.word, s.SessionStatus, log)
		require.Equal(t, map[int]agentevents.RunStatus{
			well: agentevents.RunStatusCompleted, badly: agentevents.RunStatusFailed,
			refusedEnd: agentevents.RunStatusFailed, stopped: agentevents.RunStatusCancelled,
		}[end.how], s.Status, log)
	} else {
		require.True(t, s.SessionEndedAt.IsZero(), log)
	}
	var b strings.Builder
	require.NoError(t, tree.Write(&b, s, tree.Options{Details: details}))
	for typ := range unknown { // an end is told on the line of its subject, by the last word of its type
		typ = strings.TrimPrefix(typ, "multiagent:")
		if slices.ContainsFunc(all, func(x *subject) bool { return x.typ == typ && x.ends() }) {
			if typ = typ[strings.LastIndexByte(typ, '.')+1:]; strings.EqualFold(typ, "error") {
				typ = "failed"
			}
		}
		require.Contains(t, b.String(), typ, log)
	}

	var again []byte
	enc := multiagent.NewEncoder(multiagent.EncoderOptions{})
	for i := range events {
		var err error
		again, err = enc.Append(again, events[i])
		require.NoError(t, err, log)
	}
	back, _ := foldWiki(readWiki(t, string(again)))
	require.Equal(t, string(s.AppendJSON(nil)), string(back.AppendJSON(nil)), "%s\n%s", log, again)
}

// foldWiki folds the events of a drawn log.
func foldWiki(events []agentevents.Event) (*agentevents.RunSnapshot, *report.Details) {
	details, fold := new(report.Details), agentevents.NewFold(agentevents.FoldOptions{})
	for i := range events {
		details.Add(&events[i])
		fold.Apply(events[i])
	}
	return fold.Snapshot(), details
}

// check compares the snapshot with the generator's record of the subject.
func (x *subject) check(t *testing.T, s *agentevents.RunSnapshot, log string) {
	ended, found := x.typ != "" && x.ends(), false
	same := func(open bool, word, why string) {
		require.False(t, found, log)
		found = true
		require.Equal(t, ended, !open, "%s of %s\n%s", x.typ, x.id, log)
		if !ended {
			return
		}
		if !x.grants {
			require.Equal(t, x.word, word, "%s\n%s", x.typ, log)
		}
		require.Equal(t, x.why, why, "%s\n%s", x.typ, log)
	}
	switch x.domain {
	case "tool.call.":
		for _, c := range append(append([]*agentevents.ToolCallSnapshot{}, s.OpenCalls...), s.ClosedCalls...) {
			if c.CallID != x.id {
				continue
			}
			word := c.Word
			if word == "" {
				word = string(c.Status)
			}
			why := c.Error
			if x.how == well {
				why = x.why // a call that went well needs none
			}
			same(c.Status == "", word, why)
			require.True(t, !ended || map[int]bool{
				well: c.Status == "ok", badly: c.Status == "error", refusedEnd: c.Status == "forbidden", stopped: c.Status == "cancelled" || c.Status == "interrupted",
			}[x.how], "%s %s\n%s", x.typ, c.Status, log)
		}
	case "agent.":
		if a := s.Agents[x.id]; a != nil {
			why := a.EndReason
			if a.Error.OK {
				why = a.Error.V.Message
			}
			same(!a.Ended, a.EndStatus, why)
			require.LessOrEqual(t, a.Attempts, 1, log)
		}
	case "workflow.phase.":
		for _, p := range s.Phases {
			if p.Phase == x.id {
				same(p.Open, p.Ended, p.Error.V.Message)
			}
		}
	case "workflow.":
		for _, w := range s.Workflows {
			if w.WorkflowID == x.id {
				same(!w.Finalized, w.Ended, w.Error.V.Message)
			}
		}
	case "handoff.":
		for _, h := range s.Handoffs {
			if h.HandoffID != x.id {
				continue
			}
			why := h.Error.V.Message
			if x.grants {
				why = x.why
			}
			same(h.Open, h.Ended, why)
		}
	case "approval.":
		for _, a := range s.Approvals {
			if a.ApprovalID != x.id {
				continue
			}
			word, why := a.Answer, a.Feedback
			if x.how == refusedEnd {
				word = x.word // it tells no more than the rejection
			}
			if x.grants {
				why = x.why
			}
			same(a.Open, word, why)
			require.Equal(t, ended && x.grants, a.Granted, log)
		}
	}
	require.True(t, found, "%s of %s\n%s", x.typ, x.id, log)
}
