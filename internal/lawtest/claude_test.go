package lawtest

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/capture/claude"
)

// TestClaudeCaptures generates captures of the Claude CLI with known events, and reads them.
func TestClaudeCaptures(t *testing.T) {
	n := uint64(300)
	if os.Getenv("AGENTEVENTS_LONG") != "" {
		n = 5000
	}
	for seed := range n {
		g := newCapture(seed)
		g.session()
		stream := strings.Join(g.lines, "\n") + "\n"
		require.Equal(t, g.want.text(), readCapture(t, stream).text(), "seed %d:\n%s", seed, stream)
	}
}

// A captureTruth has the facts of a run in its capture.
type captureTruth struct {
	status   agentevents.RunStatus
	attempts int
	steps    int // of the last attempt
	models   int // calls of models
	in, out  int64
	cost     float64
	priced   bool
	errors   int
	said     int // texts of the main agent
	agents   int
	calls    map[agentevents.ToolStatus]int
}

func (c *captureTruth) text() string {
	return fmt.Sprintf("%s, %d attempts, %d steps, %d model calls, %d in, %d out, cost %v %v, %d errors, %d texts, %d agents, calls %v",
		c.status, c.attempts, c.steps, c.models, c.in, c.out, c.cost, c.priced, c.errors, c.said, c.agents, c.calls)
}

// readCapture reads the events that the decoder makes from a capture. It counts events itself, not
// from the snapshot, where that is possible.
func readCapture(t *testing.T, stream string) *captureTruth {
	t.Helper()
	at := time.Date(2026, 5, 6, 7, 8, 9, 0, time.UTC)
	fold := agentevents.NewFold(agentevents.FoldOptions{})
	got := &captureTruth{calls: map[agentevents.ToolStatus]int{}}
	returned, called := map[string]int{}, map[string]int{}
	steps := map[int]bool{}
	decoder := claude.NewDecoder(claude.Options{Time: func() time.Time { return at }})
	for ev, err := range agentevents.NewReader(strings.NewReader(stream), agentevents.ReaderOptions{Decoder: decoder}).All() {
		require.NoError(t, err, stream)
		fold.Apply(ev)
		if ev.AgentID == "claude" && ev.Step.OK {
			steps[ev.Step.V] = true
		}
		switch p := ev.Payload.(type) {
		case *agentevents.AgentStarted:
			if ev.AgentID == "claude" {
				got.attempts++
				clear(steps)
			}
		case *agentevents.ToolCalled:
			called[p.CallID]++
		case *agentevents.ToolReturned:
			returned[p.CallID]++
			got.calls[p.Status]++
		case *agentevents.AgentErrored:
			if p.Severity != agentevents.SeverityWarning {
				got.errors++
			}
		case *agentevents.TextCompleted:
			if ev.AgentID == "claude" {
				got.said++
			}
		}
	}
	require.Equal(t, called, returned, stream)
	s := fold.Snapshot()
	for _, a := range s.Agents {
		got.models += a.ModelCalls
	}
	require.Zero(t, s.ViolationCount, "%v\n%s", s.Violations, stream)
	got.status, got.steps, got.agents = s.Status, len(steps), len(s.Agents)
	got.in, got.out = s.Usage.Usage.InputTokens, s.Usage.Usage.OutputTokens
	got.cost, got.priced = s.Usage.CostUSD.V, s.Usage.CostUSD.OK
	require.Equal(t, got.attempts, s.Agents["claude"].Attempts, stream)
	return got
}

// A spent is the usage of a model.
type spent struct {
	in, out int64
	cost    float64 // in parts of which sums are exact
}

// A captureMaker writes a capture.
type captureMaker struct {
	*rand.Rand
	lines []string
	want  captureTruth

	modern bool             // results state the usage since the last one
	totals map[string]spent // of the session
	since  map[string]spent // since the last result
	stated spent            // the main agent's part of since
	index  int              // of the next result
	ids    int
	denied []string // ids of the calls that this turn's result lists
	failed bool     // the last turn failed
	before struct { // the cost of the attempts before
		cost   float64
		priced bool
	}
}

func newCapture(seed uint64) *captureMaker {
	g := &captureMaker{Rand: rand.New(rand.NewPCG(seed, 38)), totals: map[string]spent{}, since: map[string]spent{}}
	g.want.calls = map[agentevents.ToolStatus]int{}
	g.modern = g.IntN(4) > 0
	g.want.agents = 1
	if g.modern && g.IntN(2) == 0 { // the session has a past in another capture
		g.totals["model-a"] = spent{int64(g.IntN(9000)), int64(g.IntN(900)), float64(g.IntN(64)) / 64}
	}
	return g
}

func (g *captureMaker) chance(n int) bool { return g.IntN(n) == 0 }

func (g *captureMaker) id(kind string) string {
	g.ids++
	return fmt.Sprintf("%s-%d", kind, g.ids)
}

func (g *captureMaker) line(format string, args ...any) {
	g.lines = append(g.lines, fmt.Sprintf(format, args...))
}

func (g *captureMaker) init() {
	g.line(`{"type":"system","subtype":"init","session_id":"s","uuid":%q,"model":"model-a"}`, g.id("init"))
}

// session writes one to three processes, of one to four turns each.
func (g *captureMaker) session() {
	processes := 1 + g.IntN(3)
	if !g.modern { // the totals begin again in each process, which not every one shows
		processes = 1
	}
	for p := range processes {
		g.index = 0
		turns := 1 + g.IntN(4)
		for i := range turns {
			g.turn(i == turns-1, p == processes-1 && i == turns-1)
		}
	}
}

// begin counts an attempt where a turn begins one.
func (g *captureMaker) begin() {
	if g.want.attempts == 0 || g.failed {
		g.want.attempts++
		g.want.steps = 0
		g.before.cost, g.before.priced = g.want.cost, g.want.priced
	}
	g.failed = false
}

// turn writes a turn, up to its result.
func (g *captureMaker) turn(lastOfProcess, last bool) {
	g.init()
	g.begin()
	if g.chance(3) {
		g.line(`{"type":"user","session_id":"s","uuid":%q,"isReplay":true,"message":{"role":"user","content":"Go on."}}`, g.id("user"))
	}
	if g.chance(8) {
		g.command()
		return
	}
	for range 1 + g.IntN(3) {
		g.step("")
	}
	if g.chance(8) {
		g.compact()
	}
	switch end := g.IntN(12); {
	case end == 0:
		g.interrupt()
	case end == 1:
		g.fail("error_max_turns", "", `"errors":["too many"]`)
	case end == 2:
		text := "API Error: " + g.id("gone")
		g.line(`{"type":"assistant","session_id":"s","message":{"id":%q,"model":"<synthetic>","content":[{"type":"text","text":%q}]},"error":"server_error","is_api_error_message":true}`, g.id("note"), text)
		g.fail("success", text, `"is_error":true,"api_error_status":529,"terminal_reason":"api_error"`)
	case end == 3 && last:
		g.kill()
	case end <= 5 && g.modern && !lastOfProcess:
		g.late()
	default:
		g.say("")
		g.succeed()
	}
}

// use counts the tokens of a model call.
func (g *captureMaker) use(model string, main bool) (in, out int64) {
	in, out = int64(1+g.IntN(500)), int64(1+g.IntN(90))
	u := g.since[model]
	g.want.models++
	g.since[model] = spent{u.in + in, u.out + out, u.cost + float64(in)/1024}
	if main {
		g.stated.in, g.stated.out = g.stated.in+in, g.stated.out+out
		g.want.steps++
	}
	return in, out
}

// message writes a message of the main agent or of the one that a call spawned.
func (g *captureMaker) message(parent string, blocks ...string) {
	model, of := "model-a", ""
	if parent != "" {
		model, of = "model-b", fmt.Sprintf(`,"parent_tool_use_id":%q`, parent)
	} else if g.chance(9) {
		model = "model-c"
	}
	in, out := g.use(model, parent == "")
	id := g.id("msg")
	streamed := g.chance(3)
	event := func(format string, args ...any) {
		if streamed {
			g.line(`{"type":"stream_event","session_id":"s"%s,"event":%s}`, of, fmt.Sprintf(format, args...))
		}
	}
	event(`{"type":"message_start","message":{"id":%q,"model":%q,"usage":{"input_tokens":%d,"output_tokens":1}}}`, id, model, in)
	for _, block := range blocks {
		g.line(`{"type":"assistant","session_id":"s","uuid":%q%s,"message":{"id":%q,"model":%q,"content":[%s],"usage":{"input_tokens":%d,"output_tokens":1}}}`, g.id("line"), of, id, model, block, in)
	}
	event(`{"type":"message_delta","delta":{},"usage":{"output_tokens":%d}}`, out)
	event(`{"type":"message_stop"}`)
}

// say writes a message with one text.
func (g *captureMaker) say(parent string) {
	if parent == "" {
		g.want.said++
	}
	g.message(parent, `{"type":"text","text":"So be it."}`)
}

func callText(id, tool, input string) string {
	return fmt.Sprintf(`{"type":"tool_use","id":%q,"name":%q,"input":%s}`, id, tool, input)
}

// answer writes the result of a call.
func (g *captureMaker) answer(parent, id, content string, failed bool, more string) {
	of := ""
	if parent != "" {
		of = fmt.Sprintf(`,"parent_tool_use_id":%q`, parent)
	}
	g.line(`{"type":"user","session_id":"s","uuid":%q%s,"message":{"role":"user","content":[{"type":"tool_result","tool_use_id":%q,"is_error":%v,"content":%q}]}%s}`, g.id("line"), of, id, failed, content, more)
}

// step writes a message with calls, and their results.
func (g *captureMaker) step(parent string) {
	if g.chance(6) && parent == "" {
		g.subAgent()
		return
	}
	ids := []string{g.id("call")}
	if g.chance(2) {
		ids = append(ids, g.id("call"))
	}
	var blocks []string
	for _, id := range ids {
		blocks = append(blocks, callText(id, "Bash", `{"command":"x"}`))
	}
	g.message(parent, blocks...)
	g.Shuffle(len(ids), func(i, j int) { ids[i], ids[j] = ids[j], ids[i] })
	for _, id := range ids {
		g.outcome(parent, id)
	}
}

// outcome writes how a call went.
func (g *captureMaker) outcome(parent, id string) {
	meta := func(text string) string { return fmt.Sprintf(`,"tool_result_meta":[{"id":%q,%s}]`, id, text) }
	kind := g.IntN(9)
	switch kind {
	case 0, 1:
		g.answer(parent, id, "Exit code 3", true, "")
		g.want.calls[agentevents.ToolStatusError]++
	case 2:
		g.answer(parent, id, "Exit code 4", true, meta(`"permission_decision":{"decision":"accept","source":"config"}`))
		g.want.calls[agentevents.ToolStatusError]++
	case 3:
		g.answer(parent, id, "Ask first.", true, meta(`"non_execution_kind":"permission-rule","permission_decision":{"decision":"reject","source":"hook"}`))
	case 4:
		g.answer(parent, id, "PreToolUse:Bash hook error: no", true, "")
	case 5:
		g.line(`{"type":"system","subtype":"permission_denied","session_id":"s","tool_name":"Bash","tool_use_id":%q}`, id)
		g.answer(parent, id, "Not now.", true, meta(`"non_execution_kind":"user-rejected","permission_decision":{"decision":"reject","source":"config"}`))
	case 6: // as for an interrupt, but the agent goes on or the result lists the call
		g.answer(parent, id, "The user doesn't want to proceed with this tool use.", true, meta(`"non_execution_kind":"user-rejected"`))
	default:
		g.answer(parent, id, "fine", false, "")
		g.want.calls[agentevents.ToolStatusOK]++
	}
	if kind >= 3 && kind <= 6 {
		g.want.calls[agentevents.ToolStatusForbidden]++
		g.denied = append(g.denied, id)
	}
}

// subAgent writes a call that spawns an agent, the agent's acts, and its end.
func (g *captureMaker) subAgent() {
	id := g.id("call")
	g.message("", callText(id, "Agent", `{"subagent_type":"scout","description":"look"}`))
	g.want.agents++
	for range g.IntN(3) {
		g.step(id)
	}
	g.say(id)
	g.answer("", id, "found", false, "")
	g.want.calls[agentevents.ToolStatusOK]++
}

// compact writes a compaction, the model call of which has no line.
func (g *captureMaker) compact() {
	g.line(`{"type":"system","subtype":"compact_boundary","session_id":"s","compact_metadata":{"trigger":"auto","pre_tokens":900,"post_tokens":90}}`)
	if g.modern {
		u := g.since["model-a"]
		g.since["model-a"] = spent{u.in + 800, u.out + 80, u.cost + 0.5}
	}
}

func usageText(models map[string]spent) string {
	var members []string
	for _, model := range []string{"model-a", "model-b", "model-c"} {
		if u, ok := models[model]; ok {
			members = append(members, fmt.Sprintf(`%q:{"inputTokens":%d,"outputTokens":%d,"costUSD":%v}`, model, u.in, u.out, u.cost))
		}
	}
	return "{" + strings.Join(members, ",") + "}"
}

// result writes a result, and counts the figures that it states.
func (g *captureMaker) result(subtype string, turns int, text, more string) {
	own := usageText(g.since)
	var cost float64
	for model, u := range g.since {
		t := g.totals[model]
		g.totals[model] = spent{t.in + u.in, t.out + u.out, t.cost + u.cost}
		g.want.in, g.want.out, g.want.cost = g.want.in+u.in, g.want.out+u.out, g.want.cost+u.cost
	}
	for _, u := range g.totals {
		cost += u.cost
	}
	g.want.priced = true
	if g.modern {
		more += fmt.Sprintf(`,"result_index":%d,"model_usage_since_last_result":%s`, g.index, own)
	}
	g.index++
	var denials []string
	for _, id := range g.denied {
		denials = append(denials, fmt.Sprintf(`{"tool_name":"Bash","tool_use_id":%q}`, id))
	}
	g.line(`{"type":"result","subtype":%q,"session_id":"s","uuid":%q,"num_turns":%d,"result":%q,"duration_ms":5,"total_cost_usd":%v,"usage":{"input_tokens":%d,"output_tokens":%d},"modelUsage":%s,"permission_denials":[%s]%s}`,
		subtype, g.id("result"), turns, text, cost, g.stated.in, g.stated.out, usageText(g.totals), strings.Join(denials, ","), more)
	g.since, g.stated, g.denied = map[string]spent{}, spent{}, nil
}

func (g *captureMaker) succeed() {
	g.result("success", 2, "So be it.", `,"is_error":false`)
	g.want.status = agentevents.RunStatusCompleted
	if g.modern && g.chance(4) {
		g.notice()
	}
}

// notice writes the result of a notice, with or without an init line of its own.
func (g *captureMaker) notice() {
	if g.chance(2) {
		g.init()
	}
	g.result("success", 0, "", `,"is_error":false,"origin":{"kind":"task-notification"}`)
}

// late writes the result of a turn after the beginning of the next one, which then ends.
func (g *captureMaker) late() {
	g.say("")
	g.init()
	since, stated := g.since, g.stated
	denied := g.denied
	g.since, g.stated, g.denied = map[string]spent{}, spent{}, nil
	id := g.id("call")
	g.message("", callText(id, "Read", `{}`))
	next, used := g.since, g.stated
	g.since, g.stated, g.denied = since, stated, denied
	g.result("success", 2, "So be it.", `,"is_error":false`)
	g.since, g.stated = next, used
	g.answer("", id, "fine", false, "")
	g.want.calls[agentevents.ToolStatusOK]++
	g.say("")
	g.succeed()
}

func (g *captureMaker) fail(subtype, text, more string) {
	g.want.errors++
	g.result(subtype, 2, text, ","+more)
	g.want.status, g.failed = agentevents.RunStatusFailed, true
}

// interrupt writes a call that the user stops.
func (g *captureMaker) interrupt() {
	id := g.id("call")
	g.message("", callText(id, "Bash", `{"command":"wait"}`))
	more := ""
	if g.modern {
		more = fmt.Sprintf(`,"tool_result_meta":[{"id":%q,"non_execution_kind":"user-rejected"}]`, id)
	}
	g.answer("", id, "The user doesn't want to proceed with this tool use. Stop.", true, more)
	g.want.calls[agentevents.ToolStatusCancelled]++
	g.line(`{"type":"user","session_id":"s","uuid":%q,"message":{"role":"user","content":[{"type":"text","text":"[Request interrupted by user for tool use]"}]}}`, g.id("line"))
	g.result("error_during_execution", 2, "", `,"is_error":true,"terminal_reason":"aborted_tools","errors":["[ede_diagnostic] x"]`)
	g.want.status = agentevents.RunStatusCancelled
}

// command writes a command of the CLI itself, to which no model answers.
func (g *captureMaker) command() {
	g.line(`{"type":"assistant","session_id":"s","uuid":%q,"message":{"id":%q,"model":"<synthetic>","content":[{"type":"text","text":"Context: 9 percent"}],"usage":{"input_tokens":0,"output_tokens":0}}}`, g.id("line"), g.id("note"))
	g.result("success", 0, "Context: 9 percent", `,"is_error":false`)
	g.want.status = agentevents.RunStatusCompleted
}

// kill writes a call that does not return, and no result. The usage is the sum of the lines'
// figures, and the cost of the attempt is unknown.
func (g *captureMaker) kill() {
	g.since, g.stated = map[string]spent{}, spent{}
	from := 0
	for i, line := range g.lines {
		if strings.HasPrefix(line, `{"type":"result"`) {
			from = i
		}
	}
	id := g.id("call")
	g.message("", callText(id, "Bash", `{"command":"wait"}`))
	g.want.calls[agentevents.ToolStatusInterrupted]++
	g.want.cost, g.want.priced = g.before.cost, g.before.priced
	for _, u := range statedUsage(g.lines[from:]) {
		g.want.in, g.want.out = g.want.in+u.in, g.want.out+u.out
	}
	g.want.status = agentevents.RunStatusFailed
}

// statedUsage returns the greatest usage that lines state of each message.
func statedUsage(lines []string) map[string]spent {
	used := map[string]spent{}
	streamed := map[string]string{} // the message that is streamed, by agent
	for _, text := range lines {
		type usage struct {
			In  int64 `json:"input_tokens"`
			Out int64 `json:"output_tokens"`
		}
		type message struct {
			ID    string
			Usage usage
		}
		var l struct {
			Type    string
			Parent  string `json:"parent_tool_use_id"`
			Message message
			Event   struct {
				Type    string
				Message message
				Usage   usage
			}
		}
		if json.Unmarshal([]byte(text), &l) != nil {
			continue
		}
		id, u := l.Message.ID, l.Message.Usage
		switch l.Event.Type {
		case "message_start":
			id, u = l.Event.Message.ID, l.Event.Message.Usage
			streamed[l.Parent] = id
		case "message_delta":
			id, u = streamed[l.Parent], l.Event.Usage
		}
		if id != "" {
			used[id] = spent{in: max(used[id].in, u.In), out: max(used[id].out, u.Out)}
		}
	}
	return used
}
