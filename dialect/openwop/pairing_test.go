package openwop

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents/dialect"
	"github.com/agentevents/agentevents/internal/effort"
)

// A drawnQuestion is a question of a drawn log, and the answer that its lines give.
type drawnQuestion struct {
	node, kind, key, id string
	answer              string // of a clarification its text; granted or rejected; "" for none
}

// drawQuestions returns a log of questions and answers as a host writes them, in the forms that
// the published contract has, and the questions in their order. Each question of a node
// comes after the answer of the one before, unless suspensions tell them apart.
func drawQuestions(r *rand.Rand) (log string, asked []*drawnQuestion) {
	var lines []string
	say := func(node, typ, payload string, args ...any) {
		n := len(lines)
		envelope := ""
		if node != "" {
			envelope = `"nodeId":"` + node + `",`
		}
		lines = append(lines, fmt.Sprintf(`{"eventId":"e%d","runId":"r",%s"type":"%s","payload":%s,"timestamp":"2026-05-19T10:00:00.%03dZ","sequence":%d}`,
			n, envelope, typ, fmt.Sprintf(payload, args...), n%1000, n))
	}
	coin := func() bool { return r.IntN(2) == 0 }
	shuffled := func(steps ...func()) {
		r.Shuffle(len(steps), func(i, j int) { steps[i], steps[j] = steps[j], steps[i] })
		for _, step := range steps {
			step()
		}
	}
	parallel := r.IntN(3) == 0 // a node may ask a second question before the first one is answered
	open := map[string]bool{}
	var waiting []*drawnQuestion
	ask := func() {
		q := &drawnQuestion{node: fmt.Sprint("n", r.IntN(3)), kind: kindApproval, key: fmt.Sprint("k", len(asked)), id: fmt.Sprint("i", len(asked))}
		if coin() {
			q.kind = kindClarification
		}
		if open[q.node] && !parallel {
			return
		}
		open[q.node] = true
		data, older := `{"artifactId":"a","artifactType":"t","title":"T","actions":["accept"]}`, `"artifactId":"a","artifactType":"t","actions":["accept"]`
		if q.kind == kindClarification {
			data = `{"questions":[{"id":"q","question":"?"}]}`
			older = data[1 : len(data)-1]
		}
		suspend := func() {
			say(q.node, "node.suspended", `{"nodeId":%q,"interruptId":%q,"kind":%q,"key":%q}`, q.node, q.id, q.kind, q.key)
		}
		published := func() { say(q.node, "interrupt.requested", `{"kind":%q,"key":%q,"data":%s}`, q.kind, q.key, data) }
		twin := func() { say(q.node, q.kind+".requested", `{"nodeId":%q,%s,"interruptId":%q}`, q.node, older, q.id) }
		switch {
		case parallel:
			suspend()
			published()
		case coin():
			shuffled(suspend, published)
		case coin():
			shuffled(suspend, published, twin)
		case coin():
			shuffled(published, twin)
		case coin():
			twin()
		default:
			published()
		}
		asked, waiting = append(asked, q), append(waiting, q)
	}
	answer := func() {
		i := r.IntN(len(waiting))
		q := waiting[i]
		waiting = append(waiting[:i], waiting[i+1:]...)
		open[q.node] = false
		for _, other := range waiting {
			open[other.node] = true
		}
		kind := ""
		if coin() {
			kind = `"kind":"` + q.kind + `",`
		}
		if q.kind == kindClarification {
			q.answer = fmt.Sprint("answer to ", q.key)
			published := func() {
				say(q.node, "interrupt.resolved", `{"nodeId":%q,"interruptId":%q,%s"resumeValue":{"q":%q}}`, q.node, q.id, kind, q.answer)
			}
			older := func() { say(q.node, "clarification.resolved", `{"nodeId":%q,"answers":{"q":%q}}`, q.node, q.answer) }
			switch {
			case parallel || coin():
				published()
			case coin():
				older()
			default:
				shuffled(published, older)
			}
			return
		}
		words := []string{"accept", "edit-accept", "reject", "refine", "timeout"}
		n := r.IntN(len(words))
		q.answer = []string{"granted", "granted", "rejected", "rejected", "rejected"}[n]
		steps := []func(){
			func() {
				say(q.node, "interrupt.resolved", `{"nodeId":%q,"interruptId":%q,%s"resumeValue":{"action":%q}}`, q.node, q.id, kind, words[n])
			},
			func() { say(q.node, "approval.received", `{"nodeId":%q,"action":%q}`, q.node, words[n]) },
			func() { say("", "approval."+q.answer, `{"gateId":%q,"principal":"ada"}`, q.node) },
		}
		if parallel {
			steps[0]()
			return
		}
		r.Shuffle(len(steps), func(i, j int) { steps[i], steps[j] = steps[j], steps[i] })
		shuffled(steps[:1+r.IntN(len(steps))]...)
	}
	for range 4 + r.IntN(12) {
		if len(waiting) == 0 || coin() {
			ask()
		} else {
			answer()
		}
	}
	return strings.Join(lines, "\n") + "\n", asked
}

// Each question of a drawn log is one record, and has the answer that its lines give and no
// other.
func TestQuestionsAreAnsweredAsDrawn(t *testing.T) {
	r := rand.New(rand.NewPCG(effort.Seed(t), 38))
	for range effort.Of(100, 500, 5000) {
		log, asked := drawQuestions(r)
		check := func(p Profile, log string) {
			s := foldOf(t, decodeAll(t, Options{Profile: p}, log))
			require.Empty(t, s.Violations, log)
			var approvals, clarifications int
			for _, q := range asked {
				if q.kind == kindClarification {
					require.Greater(t, len(s.Clarifications), clarifications, log)
					c := s.Clarifications[clarifications]
					clarifications++
					require.Equal(t, q.answer == "", c.Open, "%s of\n%s", q.key, log)
					if q.answer != "" {
						require.JSONEq(t, `{"q":"`+q.answer+`"}`, string(c.Answers), log)
					}
					continue
				}
				require.Greater(t, len(s.Approvals), approvals, log)
				a := s.Approvals[approvals]
				approvals++
				require.Equal(t, q.answer == "", a.Open, "%s of\n%s", q.key, log)
				require.Equal(t, q.answer == "granted", a.Granted, "%s of\n%s", q.key, log)
			}
			require.Len(t, s.Clarifications, clarifications, log)
			require.Len(t, s.Approvals, approvals, log)
		}
		check(SchemaV1, log)
		for _, p := range []Profile{RFC0002, SchemaV1, SchemaV2} {
			var out string
			enc := NewEncoder(EncoderOptions{Profile: p})
			for _, ev := range decodeAll(t, Options{Profile: SchemaV1}, log) {
				line, err := enc.Append(nil, ev)
				if !errors.Is(err, dialect.ErrNoCounterpart) { // the twin of another line
					require.NoError(t, err)
					out += string(line)
				}
			}
			check(p, out)
			if p == SchemaV1 {
				require.Equal(t, strings.Count(log, "\n"), strings.Count(out, "\n"))
			}
		}
	}
}
