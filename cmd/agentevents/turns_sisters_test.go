package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents/internal/effort"
)

// drawLogs calls f for many seeds.
func drawLogs(t *testing.T, f func(t *testing.T, rnd *rand.Rand)) {
	t.Helper()
	first := effort.Seed(t)
	for i := range effort.Of(uint64(100), 300, 5000) {
		seed := first + i
		if !t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) { f(t, rand.New(rand.NewPCG(seed, 7))) }) {
			return
		}
	}
}

// object writes a JSON object of names and values in turn.
func object(members ...any) string {
	var b strings.Builder
	for i := 0; i < len(members); i += 2 {
		raw, _ := json.Marshal(members[i+1])
		fmt.Fprintf(&b, `,%q:%s`, members[i], raw)
	}
	return "{" + strings.TrimPrefix(b.String(), ",") + "}"
}

// A drawnTurn is the expected turn of a log.
type drawnTurn struct {
	asked, text string
	died        bool // the flow was resumed before its end
	failed      bool
}

// drawTurn draws a turn, and the pieces of its text: none for a text that comes whole.
func drawTurn(rnd *rand.Rand, n int) (d drawnTurn, pieces []string) {
	d.asked = fmt.Sprintf("question %d", n)
	for i := range 1 + rnd.IntN(3) {
		pieces = append(pieces, fmt.Sprintf("w%d-%d ", n, i))
	}
	pieces[len(pieces)-1] = strings.TrimSpace(pieces[len(pieces)-1])
	d.text = strings.Join(pieces, "")
	if rnd.IntN(3) == 0 {
		pieces = nil
	}
	return d, pieces
}

// TestSisterTurnsOpenHarness draws flows of several nodes, each with turns of one session or with
// attempts before and after resumptions. Each keeps its question and its text.
func TestSisterTurnsOpenHarness(t *testing.T) {
	drawLogs(t, func(t *testing.T, rnd *rand.Rand) {
		var log []string
		at := int64(1777100000000)
		add := func(typ string, members ...any) {
			at += 1000
			log = append(log, object(append([]any{"type", typ, "timestamp", at}, members...)...))
		}
		add("flow:start", "flowName", "f")
		want := map[string][]drawnTurn{}
		for n := range 1 + rnd.IntN(3) {
			node, run := fmt.Sprint("n", n), fmt.Sprint("r", n)
			of := []any{"nodeId", node, "runId", run}
			add("node:start", of...)
			for i := range 1 + rnd.IntN(4) {
				d, pieces := drawTurn(rnd, 10*n+i)
				add("agent:start", append([]any{"sessionId", "s", "prompt", d.asked}, of...)...)
				for _, p := range pieces {
					add("agent:text:delta", append([]any{"content", p}, of...)...)
				}
				if pieces == nil {
					add("agent:text", append([]any{"content", d.text}, of...)...)
				}
				switch d.died = rnd.IntN(4) == 0; {
				case d.died:
					add("flow:resumed")
					add("node:start", of...)
				default:
					add("agent:complete", append([]any{"durationMs", 5, "numTurns", 1}, of...)...)
				}
				want[run] = append(want[run], d)
			}
			if last := want[run]; last[len(last)-1].died {
				delete(want, run) // the node goes on without its agent
				continue
			}
			add("node:complete", of...)
		}
		add("flow:complete", "flowName", "f", "status", "complete")
		text := strings.Join(log, "\n") + "\n"

		var s struct {
			Agents map[string]struct {
				Text    string
				Earlier []struct {
					Text string
					Died bool
				}
			}
		}
		require.NoError(t, json.Unmarshal([]byte(exec(text, "fold", "-").out), &s))
		tree, show := exec(text, "tree", "-").out, exec(text, "show", "-").out
		for run, turns := range want {
			a := s.Agents[run]
			require.Len(t, a.Earlier, len(turns)-1)
			for i, d := range turns {
				got, died := a.Text, false
				if i < len(a.Earlier) {
					got, died = a.Earlier[i].Text, a.Earlier[i].Died
				}
				require.Equal(t, d.text, got, text)
				require.Equal(t, d.died, died, text)
				word := "answer: "
				if d.died {
					word = "last text: "
				}
				inOrder(t, tree, "prompt: "+d.asked+"\n", word+d.text+"\n")
				require.Regexp(t, `(?m)^asked .*`+d.asked+`$`, show)
				require.Regexp(t, `(?m)^(answered|said) .*`+d.text+`$`, show)
			}
		}
	})
}

// inOrder requires that a text has each of the pieces once, one after the other.
func inOrder(t *testing.T, text string, pieces ...string) {
	t.Helper()
	from := 0
	for _, p := range pieces {
		require.Equal(t, 1, strings.Count(text, p), "%q in\n%s", p, text)
		at := strings.Index(text, p)
		require.GreaterOrEqual(t, at, from, "%q in\n%s", p, text)
		from = at
	}
}

// A kaosLine is a line of KAOS.
type kaosLine struct {
	sequence int
	text     string
}

func kaosSpan(sequence int, subject, phase, span, parent, name string, members ...any) kaosLine {
	var around any
	if parent != "" {
		around = parent
	}
	return kaosOf(sequence, append([]any{"type", "span", "subject", subject, "phase", phase, "span_id", span, "parent_span_id", around, "name", name}, members...)...)
}

func kaosOf(sequence int, members ...any) kaosLine {
	return kaosLine{sequence, object(append([]any{"timestamp", 1777100000 + float64(sequence), "sequence", sequence, "session_id", "k", "run_id", "run_k", "agent_id", nil}, members...)...)}
}

// TestSisterTurnsKAOS draws runs of turns whose texts are deltas, with and without a summary, and
// with calls between. Some turns fail.
func TestSisterTurnsKAOS(t *testing.T) {
	drawLogs(t, func(t *testing.T, rnd *rand.Rand) {
		var log []string
		n := 0
		add := func(l kaosLine) { log, n = append(log, l.text), n+1 }
		var want []drawnTurn
		for i := range 1 + rnd.IntN(5) {
			d, pieces := drawTurn(rnd, i)
			if pieces == nil {
				pieces = []string{d.text}
			}
			if d.failed = rnd.IntN(4) == 0; rnd.IntN(4) == 0 {
				d.asked = ""
			}
			span, name := fmt.Sprint("t", i), fmt.Sprint("turn.", i)
			attributes := map[string]any{"turn_number": i}
			if d.asked != "" {
				attributes["user_input"] = d.asked
			}
			add(kaosSpan(n, "turn", "start", span, "", name, "attributes", attributes))
			if rnd.IntN(3) == 0 { // a text before a call is not the last one
				add(kaosOf(n, "type", "text_delta", "content", "hm"))
				call := map[string]any{"tool_name": "look", "call_id": "same"}
				add(kaosSpan(n, "tool_call", "start", "c"+span, span, "tool.look", "attributes", call))
				add(kaosSpan(n, "tool_call", "complete", "c"+span, "", "tool.look", "attributes", call))
			}
			for _, p := range pieces {
				add(kaosOf(n, "type", "text_delta", "content", p))
			}
			if d.failed {
				add(kaosSpan(n, "turn", "error", span, "", name, "duration_ms", 5.0, "error_type", "E", "error_message", "broke "+name))
			} else {
				add(kaosSpan(n, "turn", "complete", span, "", name, "duration_ms", 5.0))
			}
			want = append(want, d)
		}
		text := strings.Join(log, "\n") + "\n"
		var s struct {
			Turns []struct{ Asked, Said string }
		}
		require.NoError(t, json.Unmarshal([]byte(exec(text, "fold", "-").out), &s))
		require.Len(t, s.Turns, len(want))
		tree, show := exec(text, "tree", "-").out, exec(text, "show", "-").out
		for i, d := range want {
			require.Equal(t, d.asked, s.Turns[i].Asked, text)
			require.Equal(t, d.text, s.Turns[i].Said, text)
			detail := d.text
			if d.failed {
				detail = "broke turn." + strconv.Itoa(i)
			}
			if d.asked != "" {
				detail = d.asked + " — " + detail
			}
			require.Regexp(t, fmt.Sprintf(`(?m)─ turn\.%d . \w+ · 5ms: %s$`, i, detail), tree)
			require.Regexp(t, `(?m)^(answered|said) .*`+d.text+`$`, show)
			require.Equal(t, d.failed, strings.Contains(show, fmt.Sprintf("turn.%d of root failed: broke turn.%d\n", i, i)), show)
		}
	})
}

// A lateThing is a thing with two lines: its start, and its end at a later time.
type lateThing struct {
	kind       string
	start, end string
	from, to   int // their times
}

// TestSisterLateLines draws logs of the wiki's event model and of KAOS in which some starts are
// written after their ends, and others have no end. Each thing is one, and open if it has no end.
func TestSisterLateLines(t *testing.T) {
	drawLogs(t, func(t *testing.T, rnd *rand.Rand) {
		for name, draw := range map[string]func(kind string, i, from, to int) lateThing{"multiagent": wikiThing, "kaos": kaosThing} {
			kinds := map[string][]string{"multiagent": {"call", "agent", "approval", "handoff"}, "kaos": {"call", "agent", "turn", "step", "model"}}[name]
			type line struct {
				at, place int
				text      string
			}
			var lines []line
			all, open, times := map[string]int{}, map[string]int{}, rnd.Perm(40)
			late := 0
			for i := range 1 + rnd.IntN(8) {
				from, to := 1+min(times[2*i], times[2*i+1]), 1+max(times[2*i], times[2*i+1])
				x := draw(kinds[rnd.IntN(len(kinds))], i, from, to)
				all[x.kind]++
				switch rnd.IntN(4) {
				case 0: // it has not ended
					lines = append(lines, line{from, 10 * from, x.start})
					open[x.kind]++
					continue
				case 1: // its start is written late
					lines = append(lines, line{from, 10*to + 1 + rnd.IntN(60), x.start})
					late++
				default:
					lines = append(lines, line{from, 10 * from, x.start})
				}
				lines = append(lines, line{to, 10 * to, x.end})
			}
			slices.SortStableFunc(lines, func(a, b line) int { return a.place - b.place })
			var b strings.Builder
			if name == "multiagent" {
				b.WriteString(wikiLine(0, "user", "root", "session.started", map[string]any{"goal": "g"}) + "\n")
			} else {
				b.WriteString(kaosOf(0, "type", "text_delta", "content", "x").text + "\n")
			}
			for _, l := range lines {
				b.WriteString(l.text + "\n")
			}
			orders := [][]string{nil}
			if name == "kaos" {
				orders = append(orders, []string{"--order", "sequence"})
			}
			for _, order := range orders {
				got, gotOpen := countThings(t, exec(b.String(), append(append([]string{"fold"}, order...), "-")...).out)
				for _, kind := range kinds {
					require.Equal(t, all[kind], got[kind], "%s %v: all %ss of\n%s", name, order, kind, b.String())
					require.Equal(t, open[kind], gotOpen[kind], "%s %v: open %ss of\n%s", name, order, kind, b.String())
				}
			}
			check := exec(b.String(), "check", "-")
			require.Equal(t, exitOK, check.code, check.out)
			if name == "kaos" {
				require.Equal(t, late > 0 && backwards(b.String()), strings.Contains(check.out, "goes back to "), "%s\n%s", check.out, b.String())
			}
		}
	})
}

// backwards reports whether a number of the lines is below one before it.
func backwards(log string) bool {
	highest := -1
	for text := range strings.Lines(log) {
		var l struct{ Sequence int }
		if json.Unmarshal([]byte(text), &l) == nil && l.Sequence < highest {
			return true
		}
		highest = max(highest, l.Sequence)
	}
	return false
}

// countThings counts the things of a snapshot, and those that are open.
func countThings(t *testing.T, out string) (all, open map[string]int) {
	t.Helper()
	type ending struct {
		Open    bool
		EndedAt string
	}
	var s struct {
		Agents map[string]struct {
			Open, Ended, Started bool
			Attempts, ModelCalls int
			ToolCalls            int
			Earlier              []any
		}
		OpenCalls, OpenModelCalls []any
		Approvals, Handoffs       []ending
		Turns, Steps              []ending
	}
	require.NoError(t, json.Unmarshal([]byte(out), &s))
	all, open = map[string]int{"approval": len(s.Approvals), "handoff": len(s.Handoffs), "turn": len(s.Turns), "step": len(s.Steps)}, map[string]int{}
	for _, a := range s.Agents {
		all["call"] += a.ToolCalls
		all["model"] += a.ModelCalls
		if a.Started || a.Ended {
			all["agent"] += 1 + len(a.Earlier)
		}
		if a.Open {
			open["agent"]++
		}
	}
	open["call"], open["model"] = len(s.OpenCalls), len(s.OpenModelCalls)
	for kind, list := range map[string][]ending{"approval": s.Approvals, "handoff": s.Handoffs} {
		for _, e := range list {
			if e.Open {
				open[kind]++
			}
		}
	}
	for kind, list := range map[string][]ending{"turn": s.Turns, "step": s.Steps} {
		for _, e := range list {
			if e.EndedAt == "" {
				open[kind]++
			}
		}
	}
	return all, open
}

func wikiLine(at int, actor, span, typ string, payload map[string]any) string {
	return object("id", fmt.Sprint(typ, "-", span, "-", at), "traceId", "T", "spanId", span, "sessionId", "S", "runId", "R", "actor", actor, "type", typ,
		"payload", payload, "timestamp", fmt.Sprintf("2026-04-03T09:00:%02d.000Z", at), "schemaVersion", "1.0")
}

func wikiThing(kind string, i, from, to int) lateThing {
	id, span := fmt.Sprint("id", i), fmt.Sprint("s", i)
	type half struct {
		typ     string
		payload map[string]any
	}
	pair := map[string][2]half{
		"call":     {{"tool.call.started", map[string]any{"callId": id, "toolName": "look"}}, {"tool.call.completed", map[string]any{"callId": id, "output": 1}}},
		"agent":    {{"agent.spawned", map[string]any{"agentId": id, "agentTask": "dig"}}, {"agent.completed", map[string]any{"agentId": id}}},
		"approval": {{"approval.requested", map[string]any{"approvalId": id, "action": "go"}}, {"approval.granted", map[string]any{"approvalId": id}}},
		"handoff":  {{"handoff.requested", map[string]any{"from": id, "to": "to " + id}}, {"handoff.accepted", map[string]any{"from": id, "to": "to " + id}}},
	}[kind]
	actors := [2]string{"boss", "boss"}
	switch kind {
	case "handoff":
		actors = [2]string{id, "to " + id}
	case "approval":
		actors[1] = "user"
	}
	return lateThing{kind, wikiLine(from, actors[0], span, pair[0].typ, pair[0].payload), wikiLine(to, actors[1], span, pair[1].typ, pair[1].payload), from, to}
}

func kaosThing(kind string, i, from, to int) lateThing {
	span := fmt.Sprint("s", i)
	subject := map[string]string{"call": "tool_call", "agent": "subagent", "model": "llm_call"}[kind]
	if subject == "" {
		subject = kind
	}
	attributes := map[string]map[string]any{
		"call": {"tool_name": "look", "call_id": fmt.Sprint("c", i)}, "agent": {"subagent_name": fmt.Sprint("a", i)}, "model": {"model": "m"},
		"turn": {"turn_number": i}, "step": {"step_id": fmt.Sprint("p", i)},
	}[kind]
	name := map[string]string{"call": "tool.look", "agent": "subagent." + fmt.Sprint("a", i), "model": "llm_call.m", "turn": fmt.Sprint("turn.", i), "step": fmt.Sprint("step.", i)}[kind]
	end := kaosSpan(to, subject, "complete", span, "", name)
	if i%2 == 0 || kind == "turn" { // ends often repeat the attributes; without a number the latest turn ends
		end = kaosSpan(to, subject, "complete", span, "", name, "attributes", attributes)
	}
	return lateThing{kind, kaosSpan(from, subject, "start", span, "", name, "attributes", attributes).text, end.text, from, to}
}
