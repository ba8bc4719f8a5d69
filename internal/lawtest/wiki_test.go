package lawtest

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/internal/effort"
	"github.com/agentevents/agentevents/report"
	"github.com/agentevents/agentevents/tree"
)

// A wikiTwin is an agent of a drawn log that is known by its span.
type wikiTwin struct {
	name, span, task string
	calls, tokens    int
	how              int // as the lists of ends_test.go have it
	word             string
}

// TestTwinsAndVisits draws wiki logs in which agents of few names work at once, each in a span of
// its own, enter nodes again and again, and end in all words; the session ends in a word, a flag
// or a reason. The generator counts by the spans alone. The snapshot has each agent once with its
// own task, calls and tokens, and the visits and the reason are told in the log's order.
func TestTwinsAndVisits(t *testing.T) {
	rng := rand.New(rand.NewPCG(effort.Seed(t), 381))
	for range effort.Of(50, 300, 5000) {
		var text strings.Builder
		n := 0
		line := func(span, parent, actor, typ, payload string) {
			n++
			fmt.Fprintf(&text, `{"id":"e%d","traceId":"T","spanId":%q,"parentSpanId":%q,"sessionId":"S","runId":"R","actor":%q,"type":%q,"payload":%s,"timestamp":"2026-03-01T08:%02d:%02dZ","schemaVersion":"1.0"}`+"\n",
				n, span, parent, actor, typ, payload, n/60, n%60)
		}
		line("root", "", "user", "session.started", `{"goal":"g"}`)
		var all, open []*wikiTwin
		var visits []string
		tokens := 0
		for range 4 + rng.IntN(16) {
			switch act := rng.IntN(5); {
			case act == 0 && len(all) < 5 || len(open) == 0 && len(all) < 5:
				a := &wikiTwin{name: oneOf(rng, []string{"w", "x"}), span: fmt.Sprintf("u%d", len(all)), task: fmt.Sprintf("task %d", len(all))}
				if again := len(open) == 0; again { // else it may be another attempt of an agent that has ended
					a.name = fmt.Sprintf("n%d", len(all))
				}
				for _, b := range all {
					if b.name == a.name && b.word != "" {
						a.name = fmt.Sprintf("n%d", len(all))
					}
				}
				line(a.span, "root", "orchestrator", "agent.spawned", fmt.Sprintf(`{"agentTask":%q,"agentId":%q}`, a.task, a.name))
				all, open = append(all, a), append(open, a)
			case len(open) == 0:
			case act == 1:
				a := oneOf(rng, open)
				node := oneOf(rng, []string{"plan", "code", "test"})
				line(a.span, "root", a.name, "workflow.node.enter", fmt.Sprintf(`{"nodeId":%q}`, node))
				visits = append(visits, node)
			case act < 4:
				a := oneOf(rng, open)
				a.calls++
				span := fmt.Sprintf("%s-%d", a.span, a.calls)
				line(span, a.span, a.name, "tool.call.started", fmt.Sprintf(`{"callId":"c-%s","toolId":"x"}`, span))
				line(span, a.span, a.name, "tool.call.completed", fmt.Sprintf(`{"callId":"c-%s","status":"ok"}`, span))
			case len(all) > 1:
				i := rng.IntN(len(open))
				a := open[i]
				open = append(open[:i:i], open[i+1:]...)
				a.how, a.tokens = rng.IntN(len(endWords)), 1+rng.IntN(99)
				a.word = oneOf(rng, endWords[a.how])
				tokens += a.tokens
				line(a.span, "root", a.name, "agent.completed", fmt.Sprintf(`{"agentId":%q,"tokens":%d,"status":%q}`, a.name, a.tokens, a.word))
			}
		}
		how := rng.IntN(len(endWords))
		member := oneOf(rng, []string{"status", "outcome"})
		reason := oneOf(rng, []string{"reason", "message"})
		line("root", "", "user", "session.completed", fmt.Sprintf(`{%q:%q,%q:"why it ended"}`, member, oneOf(rng, endWords[how]), reason))

		log := text.String()
		events := readWiki(t, log)
		details, fold := new(report.Details), agentevents.NewFold(agentevents.FoldOptions{})
		for i := range events {
			details.Add(&events[i])
			fold.Apply(events[i])
		}
		s := fold.Snapshot()
		require.Len(t, s.Agents, len(all), log)
		require.Empty(t, s.Violations, log)
		byTask := map[string]*agentevents.AgentSnapshot{}
		for _, a := range s.Agents {
			byTask[a.Task] = a
		}
		for _, want := range all {
			a := byTask[want.task]
			require.NotNil(t, a, "%s\n%s", want.task, log)
			got, _ := a.Usage.Total()
			require.Equal(t, [4]any{want.calls, int64(want.tokens), 1, want.word}, [4]any{a.ToolCalls, got.TotalTokens.V, a.Attempts, a.EndStatus}, "%s\n%s", want.span, log)
		}
		require.Equal(t, int64(tokens), s.Usage.Usage.TotalTokens.V, log)
		status := map[int]agentevents.RunStatus{
			well: agentevents.RunStatusCompleted, badly: agentevents.RunStatusFailed, refusedEnd: agentevents.RunStatusFailed, stopped: agentevents.RunStatusCancelled,
			inPart: agentevents.RunStatusEnded, nobodyKnows: agentevents.RunStatusEnded,
		}[how]
		require.Equal(t, status, s.Status, log)
		require.Equal(t, "why it ended", s.Facts.V.SessionReason, log)
		var entered []string
		for _, i := range report.Of(s, details) {
			if i.Topic == report.Visit {
				entered = append(entered, strings.TrimPrefix(i.Subject, "enters node "))
			}
		}
		require.Equal(t, visits, entered, log)
		var b strings.Builder
		require.NoError(t, tree.Write(&b, s, tree.Options{Details: details}))
		require.NotContains(t, b.String(), "attempt", log)
	}
}
