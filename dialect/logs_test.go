package dialect_test

import (
	"bytes"
	"cmp"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/capture/claude"
	"github.com/agentevents/agentevents/dialect"
	"github.com/agentevents/agentevents/dialect/agui"
	"github.com/agentevents/agentevents/dialect/dialecttest"
	"github.com/agentevents/agentevents/dialect/kaos"
	"github.com/agentevents/agentevents/dialect/multiagent"
	"github.com/agentevents/agentevents/dialect/openharness"
	"github.com/agentevents/agentevents/dialect/openwop"
)

// A format is one way to write the lines of a document. The command line has the
// same names.
type format struct {
	name  string
	suite dialecttest.Dialect
}

// formats lists the formats of all documents. The lines of kaos:sse have the times
// that a program without an anchor writes.
func formats() []format {
	var list []format
	add := func(name string, s dialecttest.Dialect, d func() agentevents.Decoder, e func() dialect.Encoder) {
		s.Decoder, s.Encoder = d, e
		list = append(list, format{name, s})
	}
	for _, d := range documents {
		s := d.suite
		s.Name = d.name
		add(string(d.name), s, d.lenient, d.encoder)
		switch d.name {
		case dialect.KAOS:
			s.Ignore = append(slices.Clone(s.Ignore), "/kaos/~1timestamp")
			add("kaos:sse", s, func() agentevents.Decoder { return kaos.NewDecoder(kaos.Options{}) },
				func() dialect.Encoder { return kaos.NewEncoder(kaos.EncoderOptions{SSE: true}) })
		case dialect.OpenWOP:
			for name, profile := range map[string]openwop.Profile{"openwop:v1": openwop.SchemaV1, "openwop:v2": openwop.SchemaV2} {
				add(name, s, func() agentevents.Decoder { return openwop.NewDecoder(openwop.Options{Profile: profile}) },
					func() dialect.Encoder { return openwop.NewEncoder(openwop.EncoderOptions{Profile: profile}) })
			}
		}
	}
	add("agui", dialecttest.Dialect{Name: dialect.AGUI}, func() agentevents.Decoder { return agui.NewDecoder(agui.Options{}) },
		func() dialect.Encoder { return agui.NewEncoder(agui.EncoderOptions{}) })
	slices.SortFunc(list, func(a, b format) int { return cmp.Compare(a.name, b.name) })
	return list
}

// The quickstart's log goes to every dialect and back. Every difference is
// listed, and the fold gives the same snapshot.
func TestQuickstartThereAndBack(t *testing.T) { thereAndBack(t, quickstart(t)) }

// The same holds for a session of Claude Code.
func TestCaptureThereAndBack(t *testing.T) { thereAndBack(t, capture(t)) }

// quickstart returns the events of the quickstart's log.
func quickstart(t testing.TB) []agentevents.Event {
	t.Helper()
	golden := readGolden(t, "quickstart")
	return readAll(t, golden.Get("native"), nil)
}

// capture returns the events of a session of Claude Code.
func capture(t testing.TB) []agentevents.Event {
	t.Helper()
	log, err := os.ReadFile("../capture/claude/testdata/sessions/skill.stream.jsonl")
	require.NoError(t, err)
	now := time.Date(2026, 5, 5, 9, 0, 0, 0, time.UTC)
	return readAll(t, string(log), claude.NewDecoder(claude.Options{Time: func() time.Time { now = now.Add(time.Millisecond); return now }}))
}

func readAll(t testing.TB, log string, d agentevents.Decoder) []agentevents.Event {
	t.Helper()
	events := readLog(t, log, d)
	require.Greater(t, len(events), 40)
	return events
}

// A converted log tells of the same agents, and keeps the rules that the log kept.
func TestConvertedLogsFold(t *testing.T) {
	for name, c := range map[string]struct {
		from   agentevents.Decoder
		log    string
		agents int
	}{
		"agents that the span of their start identifies": {
			multiagent.NewDecoder(multiagent.Options{}), wiki("agent.spawned", "s1", "p", "script", `"agentTask":"a"`) + wiki("agent.spawned", "s2", "p", "script", `"agentTask":"a"`) +
				wiki("tool.call.started", "t1", "s2", "x2", `"callId":"c","toolId":"t"`) + wiki("agent.spawned", "s3", "s2", "x2", `"agentTask":"b"`) +
				wiki("tool.call.completed", "t1", "s2", "x2", `"callId":"c","toolId":"t","status":"ok"`) + wiki("agent.completed", "s3", "s2", "x2", `"agentId":"same","tokens":1`) +
				wiki("agent.completed", "s1", "p", "same", `"agentId":"same","tokens":10`) + wiki("agent.completed", "s2", "p", "x2", `"agentId":"x2","tokens":100`), 3},
		"starts after run.resumed": {
			openharness.NewDecoder(openharness.Options{}), `{"type":"flow:start","timestamp":1,"flowName":"f"}` + "\n" + harness("agent:start", `"sessionId":"s","prompt":"p"`) +
				`{"type":"flow:paused","timestamp":2}` + "\n" + `{"type":"flow:resumed","timestamp":2}` + "\n" + harness("agent:start", `"sessionId":"s","prompt":"p"`) +
				harness("agent:complete", `"result":"","usage":{"inputTokens":3,"outputTokens":4},"durationMs":1,"numTurns":1`), 1},
	} {
		events := readLog(t, c.log, c.from)
		for _, f := range formats() {
			if strings.HasPrefix(f.name, "openwop") || f.name == "agui" {
				continue // they have no start of an agent, or sub-agents of a run
			}
			t.Run(name+" "+f.name, func(t *testing.T) {
				e, log := f.suite.Encoder(), []byte(nil)
				for i := range events {
					log, _ = e.Append(log, events[i]) // without the kinds that the document does not have
				}
				folded, err := agentevents.FoldLog(agentevents.NewReader(bytes.NewReader(log), agentevents.ReaderOptions{Decoder: f.suite.Decoder()}), agentevents.FoldOptions{})
				require.NoError(t, err)
				for s := range folded.Drain() {
					require.Empty(t, s.Violations, "%s", log)
					require.Len(t, s.Agents, c.agents, "%s", log)
					for id, a := range s.Agents {
						require.True(t, a.Started && a.Ended, "%s: %s", id, log)
					}
				}
			})
		}
	}
}

func wiki(typ, span, parent, actor, payload string) string {
	return `{"id":"` + typ + span + `","traceId":"t","spanId":"` + span + `","parentSpanId":"` + parent + `","sessionId":"s","runId":"r","actor":"` + actor +
		`","type":"` + typ + `","payload":{"workflowId":"w","phase":"p",` + payload + `},"timestamp":"2026-05-05T09:00:00.000Z","schemaVersion":"1.0"}` + "\n"
}

func harness(typ, members string) string {
	return `{"type":"` + typ + `","nodeId":"n","runId":"x","timestamp":1,` + members + "}\n"
}

// A strict decoder refuses a type that looks like one of its document but is not in it. It takes
// types of other producers, and a lenient decoder takes all.
func TestUnlistedTypes(t *testing.T) {
	for name, c := range map[string]struct{ line, refused, taken string }{
		"kahn":        {`{"ts":"2026-05-05T09:00:00.000Z","run_id":"r","event":"%s"}`, "agent_trasition foo", "agent.trasition x-vendor.thing REASONING_START"},
		"kaos":        {`{"timestamp":1,"sequence":1,"session_id":"s","run_id":"r","agent_id":null,"type":"%s"}`, "foo text_dleta", "loop_terminated escalation_required vendor.foo agent:paused"},
		"openharness": {`{"type":"%s","timestamp":1,"nodeId":"n","runId":"x"}`, "agent:foo flow:pausedX", "agent:paused agent:aborted recording:linked foo"},
	} {
		for _, typ := range strings.Fields(c.refused + " " + c.taken) {
			line := []byte(strings.Replace(c.line, "%s", typ, 1))
			_, err := strict[name]().Decode(nil, line)
			if strings.Contains(" "+c.refused+" ", " "+typ+" ") {
				var rule *agentevents.RuleError
				require.ErrorAs(t, err, &rule, typ)
				require.Equal(t, agentevents.Rule(name+"-type"), rule.Rule)
				require.Contains(t, rule.Detail, typ)
			} else {
				require.NoError(t, err, "%s: %s", name, typ)
			}
			for _, f := range formats() {
				if f.name == name {
					_, err := f.suite.Decoder().Decode(nil, line)
					require.NoError(t, err, "%s: %s", name, typ)
				}
			}
		}
	}
}

// It measures converting whole logs in every dialect beside the native format.
// Each dialect's package measures its cheapest and its dearest lines.
func BenchmarkQuickstart(b *testing.B) { benchmarkLog(b, quickstart(b)) }

func BenchmarkCapture(b *testing.B) { benchmarkLog(b, capture(b)) }

func benchmarkLog(b *testing.B, events []agentevents.Event) {
	for _, f := range formats() {
		b.Run(f.name, func(b *testing.B) { dialecttest.BenchmarkLog(b, f.suite, events) })
	}
}

func thereAndBack(t *testing.T, events []agentevents.Event) {
	for _, f := range formats() {
		t.Run(f.name, func(t *testing.T) { dialecttest.RunLog(t, f.suite, events) })
	}
}
