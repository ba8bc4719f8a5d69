package lawtest

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect/multiagent"
	"github.com/agentevents/agentevents/internal/effort"
	"github.com/agentevents/agentevents/internal/stats"
	"github.com/agentevents/agentevents/tree"
)

// How something ended, as this file knows it: by lists of its own.
const (
	well = iota
	badly
	refusedEnd
	stopped
	inPart
	nobodyKnows
)

var endWords = [...][]string{
	well:        {"success", "ok", "done", "completed", "succeeded", "passed"},
	badly:       {"failed", "error", "timeout", "timed_out", "failure", "crashed", "max_turns", "exhausted"},
	refusedEnd:  {"denied", "rejected", "refused", "forbidden", "blocked"},
	stopped:     {"cancelled", "canceled", "aborted", "interrupted", "killed"},
	inPart:      {"partial", "incomplete"},
	nobodyKnows: {"shelved", "weird", "later", "42", "ok?"},
}

// spell writes a word in another case, and with other separators.
func spell(rng *rand.Rand, word string) string {
	switch rng.IntN(4) {
	case 0:
		return strings.ToUpper(word)
	case 1:
		return strings.ToUpper(word[:1]) + word[1:]
	case 2:
		return strings.ReplaceAll(word, "_", "-")
	}
	return word
}

// A wikiLog writes lines of the wiki.
type wikiLog struct {
	strings.Builder
	n int
}

func (l *wikiLog) line(run, actor, typ, payload, time string) {
	l.n++
	if time != "" {
		time = `"timestamp":` + time + `,`
	}
	fmt.Fprintf(l, `{"id":"e%d","traceId":"T","spanId":"s%d","sessionId":"S-%s","runId":%q,"actor":%q,"type":%q,"payload":%s,%s"schemaVersion":"1.0"}`+"\n", l.n, l.n, run, run, actor, typ, payload, time)
}

func readWiki(t *testing.T, text string) (events []agentevents.Event) {
	t.Helper()
	for ev, err := range agentevents.NewReader(strings.NewReader(text), agentevents.ReaderOptions{Decoder: multiagent.NewDecoder(multiagent.Options{})}).All() {
		require.NoError(t, err, text)
		events = append(events, ev)
	}
	return events
}

// figures folds the log and computes its figures.
func figures(events []agentevents.Event) (map[string]*agentevents.RunSnapshot, *stats.Report) {
	folds, c := map[string]*agentevents.Fold{}, stats.New("")
	for _, ev := range events {
		if folds[ev.RunID] == nil {
			folds[ev.RunID] = agentevents.NewFold(agentevents.FoldOptions{})
		}
		folds[ev.RunID].Apply(ev)
		c.Event(ev)
	}
	runs := map[string]*agentevents.RunSnapshot{}
	for id, f := range folds {
		runs[id] = f.Snapshot()
	}
	return runs, c.Report()
}

// Logs that end in every word, flag and order: the snapshot, the tree and the figures follow the
// meanings of the words, and never differ.
func TestWordsOfEnds(t *testing.T) {
	rng := rand.New(rand.NewPCG(effort.Seed(t), 38))
	stamp := func(n int) string {
		return strconv.Quote(time.Date(2026, 3, 1, 8, 0, n, 0, time.UTC).Format(time.RFC3339))
	}
	for range effort.Of(50, 300, 5000) {
		var l wikiLog
		want := map[string]wantedRun{}
		won, lost, open := 0, 0, 0
		calls := [6]int{}
		for r := range 1 + rng.IntN(5) {
			run := "r" + strconv.Itoa(r)
			l.line(run, "user", "session.started", `{"goal":"g"}`, stamp(l.n))
			anyFailed, anyStopped, last := false, false, well
			for a := range rng.IntN(4) {
				agent, how, end := "a"+strconv.Itoa(a), rng.IntN(len(endWords)), ""
				l.line(run, "orchestrator", "agent.spawned", fmt.Sprintf(`{"agentTask":"t","agentId":%q}`, agent), stamp(l.n))
				for c := range rng.IntN(3) {
					id, how := agent+"-c"+strconv.Itoa(c), rng.IntN(len(endWords))
					l.line(run, agent, "tool.call.started", fmt.Sprintf(`{"callId":%q,"toolName":"x"}`, id), stamp(l.n))
					end := fmt.Sprintf(`"status":%q`, spell(rng, oneOf(rng, endWords[how])))
					switch {
					case how == well && rng.IntN(3) == 0:
						end = `"success":true`
					case how == badly && rng.IntN(3) == 0:
						end = `"success":false`
					}
					l.line(run, agent, "tool.call.completed", fmt.Sprintf(`{"callId":%q,%s}`, id, end), stamp(l.n))
					calls[how]++
				}
				switch rng.IntN(4) {
				case 0:
					how = []int{well, badly}[rng.IntN(2)]
					end = fmt.Sprintf(`,"success":%t`, how == well)
				case 1:
					how, end = badly, `,"error":"boom"`
				case 2:
					how = well
				default:
					end = fmt.Sprintf(`,"status":%q`, spell(rng, oneOf(rng, endWords[how])))
				}
				l.line(run, "orchestrator", "agent.completed", fmt.Sprintf(`{"agentId":%q%s}`, agent, end), stamp(l.n))
				anyFailed, anyStopped, last = anyFailed || how == badly || how == refusedEnd, anyStopped || how == stopped, how
			}
			l.line(run, "planner", "agent.message.created", fmt.Sprintf(`{"messageId":"m-%s","content":"hello"}`, run), stamp(l.n))
			how, word, end := rng.IntN(len(endWords)), "", "{}"
			switch rng.IntN(5) {
			case 0: // as its agents ended
				switch {
				case anyFailed:
					how = badly
				case anyStopped:
					how = stopped
				default:
					how = well
				}
			case 1:
				how = []int{well, badly}[rng.IntN(2)]
				end, last = fmt.Sprintf(`{"success":%t}`, how == well), well
			default:
				word = spell(rng, oneOf(rng, endWords[how]))
				end, last = fmt.Sprintf(`{"status":%q}`, word), how
			}
			l.line(run, "orchestrator", "session.completed", end, stamp(l.n))
			want[run] = wantedOf(run, how, word)
			switch {
			case how == well && last == well:
				won++
			case how == nobodyKnows || how == well && last == nobodyKnows:
				open++
			default:
				lost++
			}
		}
		log := l.String()
		runs, report := figures(readWiki(t, log))
		for run, w := range want {
			require.Equal(t, w.status, runs[run].Status, "%s\n%s", run, log)
			var b strings.Builder
			require.NoError(t, tree.Write(&b, runs[run], tree.Options{Ended: true}))
			require.Contains(t, b.String(), w.line, log)
			require.NotContains(t, b.String(), "interrupted)", log)
		}
		require.Equal(t, [2]float64{float64(won), float64(won + lost)}, [2]float64{report.Metrics.TaskSuccessRate.Numerator.V, report.Metrics.TaskSuccessRate.Denominator}, log)
		require.Equal(t, open, report.Undecided, log)
		require.Equal(t, [4]int{calls[well] + calls[badly], calls[badly], calls[refusedEnd], calls[stopped] + calls[inPart] + calls[nobodyKnows]},
			[4]int{report.ToolCalls.Returned, report.ToolCalls.Failed, report.ToolCalls.Refused, report.ToolCalls.Undecided}, log)
	}
}

type wantedRun struct {
	status agentevents.RunStatus
	line   string // of the tree
}

// wantedOf returns the status and line of a run by the meaning of its end.
func wantedOf(run string, how int, word string) wantedRun {
	switch how {
	case well:
		return wantedRun{agentevents.RunStatusCompleted, "run " + run + " ✓ completed"}
	case badly, refusedEnd:
		return wantedRun{agentevents.RunStatusFailed, "run " + run + " ✗ failed"}
	case stopped:
		return wantedRun{agentevents.RunStatusCancelled, "run " + run + " ✗ cancelled"}
	case inPart:
		return wantedRun{agentevents.RunStatusEnded, "run " + run + " ! " + word}
	default:
		return wantedRun{agentevents.RunStatusEnded, "run " + run + " " + word}
	}
}

func oneOf[T any](rng *rand.Rand, list []T) T { return list[rng.IntN(len(list))] }

// stampIn writes a time in one of the forms that programs have.
func stampIn(rng *rand.Rand, at time.Time) string {
	switch rng.IntN(6) {
	case 0:
		return strconv.FormatInt(at.UnixMilli(), 10)
	case 1:
		return strconv.FormatInt(at.Unix(), 10)
	case 2:
		return strconv.Quote(strconv.FormatInt(at.UnixMilli(), 10))
	case 3:
		return strconv.FormatInt(at.Unix(), 10) + ".0"
	case 4:
		return strconv.Quote(at.In(time.FixedZone("", 2*3600)).Format(time.RFC3339))
	}
	return strconv.Quote(at.Format(time.RFC3339))
}

// Logs in which times are missing or cannot be read: durations between the others are right, and
// there are no others.
func TestUnknownTimesEnterNoDuration(t *testing.T) {
	rng := rand.New(rand.NewPCG(effort.Seed(t), 2))
	for range effort.Of(50, 300, 5000) {
		var l wikiLog
		now := time.Date(2026, 3, 1, 8, 0, 0, 0, time.UTC)
		missing := rng.Float64() * 0.6
		// line writes a line, and returns its time if it is known.
		line := func(actor, typ, payload string) (at time.Time) {
			now = now.Add(time.Duration(1+rng.IntN(100)) * time.Second)
			if rng.Float64() < missing {
				l.line("r", actor, typ, payload, oneOf(rng, []string{"", `""`, `"yesterday"`, "null", "{}", "true", `"2026-13-01T00:00:00Z"`, "1e400", "0"}))
				return at
			}
			l.line("r", actor, typ, payload, stampIn(rng, now))
			return now
		}
		began := line("user", "session.started", `{"goal":"g"}`)
		var took, waited, longest time.Duration
		timed, answers := 0, 0
		between := func(from, to time.Time) (time.Duration, bool) { return to.Sub(from), !from.IsZero() && !to.IsZero() }
		for a := range rng.IntN(3) {
			agent := "a" + strconv.Itoa(a)
			start := line("orchestrator", "agent.spawned", fmt.Sprintf(`{"agentTask":"t","agentId":%q}`, agent))
			for c := range rng.IntN(4) {
				id := agent + strconv.Itoa(c)
				called := line(agent, "tool.call.started", fmt.Sprintf(`{"callId":%q,"toolName":"x"}`, id))
				if d, ok := between(called, line(agent, "tool.call.completed", fmt.Sprintf(`{"callId":%q,"output":1}`, id))); ok {
					took, timed = took+d, timed+1
				}
			}
			if rng.IntN(2) == 0 {
				asked := line(agent, "approval.requested", fmt.Sprintf(`{"approvalId":%q,"action":"x"}`, agent))
				if d, ok := between(asked, line("user", "approval.granted", fmt.Sprintf(`{"approvalId":%q}`, agent))); ok {
					waited, answers = waited+d, answers+1
				}
			}
			if d, ok := between(start, line("orchestrator", "agent.completed", fmt.Sprintf(`{"agentId":%q}`, agent))); ok {
				longest = max(longest, d)
			}
		}
		line("planner", "agent.message.created", `{"messageId":"m","content":"hello"}`)
		whole, known := between(began, line("orchestrator", "session.completed", `{"status":"ok"}`))
		log := l.String()
		runs, report := figures(readWiki(t, log))
		var mean, wait agentevents.Opt[float64]
		if timed > 0 {
			mean = agentevents.Some(float64(took.Milliseconds()) / float64(timed))
		}
		if answers > 0 {
			wait = agentevents.Some(float64(waited.Milliseconds()) / float64(answers))
		}
		require.Equal(t, mean.OK, report.ToolCalls.MeanMS.OK, log)
		require.InDelta(t, mean.V, report.ToolCalls.MeanMS.V, 1e-6, log)
		require.Equal(t, wait.OK, report.Metrics.HumanApprovalLatency.Value.OK, log)
		require.InDelta(t, wait.V, report.Metrics.HumanApprovalLatency.Value.V, 1e-6, log)
		if !known {
			whole = longest
		}
		if whole > 0 {
			require.Equal(t, float64(whole.Milliseconds()), report.RunDuration.Max, log)
		} else {
			require.Nil(t, report.RunDuration, log)
		}
		if x := runs["r"].Tools["x"]; x != nil {
			require.Equal(t, took, x.Duration, log)
		}
	}
}
