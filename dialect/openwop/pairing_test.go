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
	d := questionDrawer{Rand: r, parallel: r.IntN(3) == 0, open: map[string]bool{}}
	for range 4 + d.IntN(12) {
		if len(d.waiting) == 0 || d.coin() {
			d.ask()
		} else {
			d.answer()
		}
	}
	return strings.Join(d.lines, "\n") + "\n", d.asked
}

type questionDrawer struct {
	*rand.Rand
	parallel       bool // a node may ask a second question before the first one is answered
	open           map[string]bool
	lines          []string
	asked, waiting []*drawnQuestion
}

func (d *questionDrawer) say(node, typ, payload string, args ...any) {
	n := len(d.lines)
	envelope := ""
	if node != "" {
		envelope = `"nodeId":"` + node + `",`
	}
	d.lines = append(d.lines, fmt.Sprintf(`{"eventId":"e%d","runId":"r",%s"type":"%s","payload":%s,`+
		`"timestamp":"2026-05-19T10:00:00.%03dZ","sequence":%d}`,
		n, envelope, typ, fmt.Sprintf(payload, args...), n%1000, n))
}

func (d *questionDrawer) coin() bool { return d.IntN(2) == 0 }

func (d *questionDrawer) shuffled(steps ...func()) {
	d.Shuffle(len(steps), func(i, j int) { steps[i], steps[j] = steps[j], steps[i] })
	for _, step := range steps {
		step()
	}
}

func (d *questionDrawer) ask() {
	q := &drawnQuestion{node: fmt.Sprint("n", d.IntN(3)), kind: kindApproval, key: fmt.Sprint("k", len(d.asked)),
		id: fmt.Sprint("i", len(d.asked))}
	if d.coin() {
		q.kind = kindClarification
	}
	if d.open[q.node] && !d.parallel {
		return
	}
	d.open[q.node] = true
	data, older := `{"artifactId":"a","artifactType":"t","title":"T","actions":["accept"]}`,
		`"artifactId":"a","artifactType":"t","actions":["accept"]`
	if q.kind == kindClarification {
		data = `{"questions":[{"id":"q","question":"?"}]}`
		older = data[1 : len(data)-1]
	}
	suspend := func() {
		d.say(q.node, "node.suspended", `{"nodeId":%q,"interruptId":%q,"kind":%q,"key":%q}`, q.node, q.id, q.kind,
			q.key)
	}
	published := func() { d.say(q.node, "interrupt.requested", `{"kind":%q,"key":%q,"data":%s}`, q.kind, q.key, data) }
	twin := func() { d.say(q.node, q.kind+".requested", `{"nodeId":%q,%s,"interruptId":%q}`, q.node, older, q.id) }
	switch {
	case d.parallel:
		suspend()
		published()
	case d.coin():
		d.shuffled(suspend, published)
	case d.coin():
		d.shuffled(suspend, published, twin)
	case d.coin():
		d.shuffled(published, twin)
	case d.coin():
		twin()
	default:
		published()
	}
	d.asked, d.waiting = append(d.asked, q), append(d.waiting, q)
}

func (d *questionDrawer) answer() {
	i := d.IntN(len(d.waiting))
	q := d.waiting[i]
	d.waiting = append(d.waiting[:i], d.waiting[i+1:]...)
	d.open[q.node] = false
	for _, other := range d.waiting {
		d.open[other.node] = true
	}
	kind := ""
	if d.coin() {
		kind = `"kind":"` + q.kind + `",`
	}
	if q.kind == kindClarification {
		q.answer = fmt.Sprint("answer to ", q.key)
		published := func() {
			d.say(q.node, "interrupt.resolved", `{"nodeId":%q,"interruptId":%q,%s"resumeValue":{"q":%q}}`, q.node,
				q.id, kind, q.answer)
		}
		older := func() {
			d.say(q.node, "clarification.resolved", `{"nodeId":%q,"answers":{"q":%q}}`, q.node,
				q.answer)
		}
		switch {
		case d.parallel || d.coin():
			published()
		case d.coin():
			older()
		default:
			d.shuffled(published, older)
		}
		return
	}
	words := []string{"accept", "edit-accept", "reject", "refine", "timeout"}
	n := d.IntN(len(words))
	q.answer = []string{"granted", "granted", "rejected", "rejected", "rejected"}[n]
	steps := []func(){
		func() {
			d.say(q.node, "interrupt.resolved", `{"nodeId":%q,"interruptId":%q,%s"resumeValue":{"action":%q}}`,
				q.node, q.id, kind, words[n])
		},
		func() { d.say(q.node, "approval.received", `{"nodeId":%q,"action":%q}`, q.node, words[n]) },
		func() { d.say("", "approval."+q.answer, `{"gateId":%q,"principal":"ada"}`, q.node) },
	}
	if d.parallel {
		steps[0]()
		return
	}
	d.Shuffle(len(steps), func(i, j int) { steps[i], steps[j] = steps[j], steps[i] })
	d.shuffled(steps[:1+d.IntN(len(steps))]...)
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
