package main

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"github.com/agentevents/agentevents/internal/effort"
)

// A closing is a kind of thing that begins and ends in a format. The lines have $n for the
// number of the line ($0n with two digits), $name for the name of the thing and $id for an id
// that is its own.
type closing struct {
	format, kind string
	begin        string
	ends         []string // one for each way to end; several lines are joined by newlines
}

// closings are the things of every format, with every way to end that its document has.
var closings = func() (all []closing) {
	const kaosSpan = `{"timestamp":17779716$0n.0,"sequence":$n,"session_id":"s","run_id":"run_0123456789ab","agent_id":null,"subject":%q,"phase":%q,"span_id":"$name","parent_span_id":null,"name":%q,"duration_ms":%s,"error_type":%s,"error_message":%s,"attributes":%s,"type":"span"}`
	kaos := func(subject, name, attributes string) {
		line := func(phase, took, failure string) string {
			return fmt.Sprintf(kaosSpan, subject, phase, name, took, failure, failure, attributes)
		}
		c := closing{"kaos", subject, line("start", "null", "null"), nil}
		for _, phase := range []string{"complete", "error", "cancelled"} {
			failure := "null"
			if phase == "error" {
				failure = `"Broken"`
			}
			c.ends = append(c.ends, line(phase, "1.0", failure))
		}
		all = append(all, c)
	}
	kaos("step", "step.$name", `{"step_id":"$name"}`)
	kaos("tool_call", "tool.$name", `{"tool_name":"$name","call_id":"$id"}`)
	kaos("subagent", "subagent.$name", `{"agent":"$name"}`)
	kaos("handoff", "handoff.$name", `{"from_agent":"lead","to_agent":"$name"}`)

	wiki := func(typ, payload string) string {
		return `{"id":"e$n","traceId":"T","spanId":"sp$id","sessionId":"S","runId":"R","actor":"$name","type":"` + typ + `","payload":{` + payload + `},"timestamp":"2026-04-01T07:20:$0nZ","schemaVersion":"1.0"}`
	}
	all = append(all,
		closing{"multiagent", "tool call", wiki("tool.call.started", `"callId":"$id","toolName":"$name"`), []string{
			wiki("tool.call.completed", `"callId":"$id","output":1`), wiki("tool.call.completed", `"callId":"$id","success":false`),
			wiki("tool.call.completed", `"callId":"$id","error":"broken"`), wiki("tool.call.completed", `"callId":"$id","status":"cancelled"`),
		}},
		closing{"multiagent", "approval", wiki("approval.requested", `"approvalId":"$name","action":"go"`), []string{wiki("approval.granted", `"approvalId":"$name","approvedBy":"ada"`)}},
		closing{"multiagent", "handoff", wiki("handoff.requested", `"fromAgent":"$name","toAgent":"other"`), []string{wiki("handoff.accepted", `"fromAgent":"$name","toAgent":"other"`)}},
		closing{"multiagent", "agent", wiki("agent.spawned", `"agentId":"$name","agentTask":"t"`), []string{
			wiki("agent.completed", `"agentId":"$name"`), wiki("agent.completed", `"agentId":"$name","error":"broken"`),
		}})

	kahn := func(event, members string) string {
		return `{"ts":"2026-05-05T09:00:$0n.000Z","run_id":"fleet-1","event":"` + event + `","agent_id":"$name",` + members + `}`
	}
	agent := closing{"kahn", "agent", kahn("agent_run_start", `"task":"t"`), nil}
	for _, outcome := range []string{"converged", "escaped", "partial", "aborted"} {
		agent.ends = append(agent.ends, kahn("agent_run_end", `"outcome":"`+outcome+`","total_steps":0,"total_tool_calls":0,"total_audit_checkpoints":0,"audits_passed":0,"audits_failed":0,"total_duration_s":1.0`))
	}
	all = append(all, agent)

	harness := func(typ, members string) string {
		return `{"type":"` + typ + `","nodeId":"$name","runId":"$id",` + members + `"timestamp":17675173220$0n}`
	}
	begin := harness("agent:start", `"sessionId":"s$id","prompt":"p",`)
	all = append(all,
		closing{"openharness", "node", harness("node:start", ""), []string{harness("node:complete", `"output":1,`), harness("node:error", `"error":"broken",`)}},
		closing{"openharness", "agent", harness("node:start", "") + "\n" + begin, []string{
			harness("agent:complete", `"result":"r","usage":{"inputTokens":1,"outputTokens":1},"durationMs":1,"numTurns":1,`) + "\n" + harness("node:complete", `"output":1,`),
			harness("agent:error", `"errorType":"exception","message":"broken",`) + "\n" + harness("node:error", `"error":"broken",`),
			harness("agent:aborted", `"reason":"abort",`) + "\n" + harness("node:error", `"error":"aborted",`),
		}})

	wop := func(typ, payload string) string {
		return `{"eventId":"e$n","runId":"r","nodeId":"n","type":"` + typ + `","payload":{` + payload + `},"timestamp":"2026-05-19T10:00:$0nZ","sequence":$n}`
	}
	node := func(typ, members string) string {
		return strings.Replace(wop(typ, `"nodeId":"$name"`+members), `"nodeId":"n"`, `"nodeId":"$name"`, 1)
	}
	call := func(members string) string {
		return wop("agent.toolReturned", `"agentId":"host:a","toolId":"$name","callId":"$id",`+members)
	}
	all = append(all,
		closing{"openwop", "call", wop("agent.toolCalled", `"agentId":"host:a","toolId":"$name","callId":"$id","arguments":{}`), []string{
			call(`"result":1`), call(`"error":{"error":"x","message":"broken"}`), call(`"status":"timeout"`), call(`"status":"cancelled"`), call(`"status":"error"`),
		}},
		closing{"openwop", "node", node("node.started", `,"typeId":"core.llm"`), []string{node("node.completed", ""), node("node.failed", `,"error":{"code":"x","message":"broken"}`), node("node.skipped", ""), node("node.cancelled", "")}},
		closing{"openwop", "approval", node("approval.requested", `,"interruptId":"$name","artifactId":"a","artifactType":"t","actions":["accept"]`), []string{
			node("approval.granted", `,"gateId":"$name","principal":"ada"`), node("approval.rejected", `,"gateId":"$name","principal":"ada"`), node("approval.received", `,"action":"timeout"`),
			node("interrupt.resolved", `,"interruptId":"$name","resumeValue":{"action":"refine"}`),
		}},
		closing{"openwop", "clarification", node("interrupt.requested", `,"kind":"clarification","key":"$name","data":{"questions":[{"id":"q","question":"?"}]}`), []string{
			node("interrupt.resolved", `,"interruptId":"i$id","resumeValue":{"q":1}`), node("clarification.resolved", `,"answers":{"q":1}`),
		}})

	agui := func(typ, members string) string {
		return `{"type":"` + typ + `","timestamp":17675173220$0n,` + members + `}`
	}
	return append(all,
		closing{"agui", "step", agui("STEP_STARTED", `"stepName":"$name"`), []string{agui("STEP_FINISHED", `"stepName":"$name"`)}},
		closing{"agui", "call", agui("TOOL_CALL_START", `"toolCallId":"$id","toolCallName":"$name"`), []string{
			agui("TOOL_CALL_END", `"toolCallId":"$id"`) + "\n" + agui("TOOL_CALL_RESULT", `"messageId":"m$id","toolCallId":"$id","content":"1"`),
			agui("TOOL_CALL_RESULT", `"messageId":"m$id","toolCallId":"$id","content":"1"`) + "\n" + agui("TOOL_CALL_END", `"toolCallId":"$id"`),
		}})
}()

// goesOn matches the line of a thing that has not ended. In a run that waits it is not interrupted.
var goesOn = regexp.MustCompile(`\(interrupted\)|without an end|\b(?:open|running|thinking)\b`)

// A subject that begins is drawn as going unless it ends, in whatever way and order.
func TestEndedSubjectsAreNotOpen(t *testing.T) {
	byFormat := map[string][]closing{}
	for _, c := range closings {
		byFormat[c.format] = append(byFormat[c.format], c)
	}
	r := rand.New(rand.NewPCG(effort.Seed(t), 38))
	for i := range effort.Of(20, 60, 1000) {
		for format, kinds := range byFormat {
			var lines []string
			say := func(template, name, id string) {
				for line := range strings.SplitSeq(template, "\n") {
					n := len(lines)
					lines = append(lines, strings.NewReplacer("$0n", fmt.Sprintf("%02d", n), "$name", name, "$n", fmt.Sprint(n), "$id", id).Replace(line))
				}
			}
			if format == "agui" {
				say(`{"type":"RUN_STARTED","threadId":"t","runId":"r"}`, "", "")
			}
			type thing struct {
				closing
				name, id, ended string
			}
			var things, open []*thing
			for total := 1 + r.IntN(8); len(things) < total || len(open) > 3; {
				if len(open) > 0 && (r.IntN(2) == 0 || len(things) == total) {
					at := r.IntN(len(open))
					x := open[at]
					open = append(open[:at], open[at+1:]...)
					x.ended = x.ends[r.IntN(len(x.ends))]
					say(x.ended, x.name, x.id)
					continue
				}
				x := &thing{closing: kinds[r.IntN(len(kinds))], name: fmt.Sprintf("zz%dq", len(things)), id: fmt.Sprintf("id%d", len(things))}
				things, open = append(things, x), append(open, x)
				say(x.begin, x.name, x.id)
			}
			log := strings.Join(lines, "\n") + "\n"
			tree := exec(log, "tree", "--width", "-1", "-").out
			for _, x := range things {
				drawn, going := false, false
				for line := range strings.Lines(tree) {
					if strings.Contains(line, x.name) {
						drawn = true
						going = going || goesOn.MatchString(line)
					}
				}
				if !drawn || going != (x.ended == "") {
					t.Fatalf("log %d: %s %s %s: drawn %v, goes on %v, ended by %s\n%s%s", i, format, x.kind, x.name, drawn, going, x.ended, log, tree)
				}
			}
		}
	}
}
