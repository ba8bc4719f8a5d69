package kaos_test

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect"
	"github.com/agentevents/agentevents/dialect/kaos"
	"github.com/agentevents/agentevents/hooks"
	"github.com/agentevents/agentevents/live"
	"github.com/agentevents/agentevents/logfile"
	"github.com/agentevents/agentevents/otlpjson"
	"github.com/agentevents/agentevents/playback"
	"github.com/agentevents/agentevents/tree"
)

// The requirements of document 002, one subtest for each that more than a row of the dialect's
// table meets.
func TestDocument(t *testing.T) {
	for name, test := range map[string]func(t *testing.T){
		"a run is watched while it goes on":                                watched,
		"a turn is aggregated without a summary":                           aggregated,
		"written spans have parents and durations":                         nested,
		"attributes that no field has are kept":                            attributes,
		"counts may be written with a point":                               counts,
		"a wrong word names the right ones":                                words,
		"a turn is drawn as a trace":                                       drawn,
		"the end of the turn is the end of the run":                        over,
		"the root agent says, uses and fails":                              root,
		"facts are in the snapshot":                                        facts,
		"turns, steps and calls are OpenTelemetry spans":                   otel,
		"tokens, calls and citations stream, also after a lost connection": streamed,
		"an audit trail is on disk":                                        durable,
		"an audit trail has no secrets":                                    redacted,
		"a log is played again":                                            played,
		"hooks log, and count the cost":                                    hooked,
		"a circuit breaks":                                                 broken,
		"a span may end whose start was kept out":                          unbegun,
		"a repeated line counts once":                                      repeated,
		"overlapping turns and steps are told apart":                       overlapping,
	} {
		t.Run(name, test)
	}
}

// A wireLog is the lines of a run.
type wireLog struct {
	n     int
	lines []string
}

func (l *wireLog) add(agent, members, typ string) {
	if agent != "null" {
		agent = `"` + agent + `"`
	}
	l.lines = append(l.lines, fmt.Sprintf(`{"timestamp":%d.5,"sequence":%d,"session_id":"s-1","run_id":"run_1f2e3d4c5b6a","agent_id":%s,%s,"type":"%s"}`, 1000+l.n, l.n, agent, members, typ))
	l.n++
}

func (l *wireLog) span(subject, phase, span, name, duration, errType, attributes string) {
	l.add("null", fmt.Sprintf(`"subject":"%s","phase":"%s","span_id":"%s","parent_span_id":null,"name":"%s","duration_ms":%s,"error_type":%s,"error_message":%s,"attributes":%s`,
		subject, phase, span, name, duration, errType, errType, attributes), "span")
}

func (l *wireLog) String() string { return strings.Join(l.lines, "\n") + "\n" }

// flow is the turn that the document draws, and the facts that it names.
func flow() *wireLog {
	l := &wireLog{}
	l.span("turn", "start", "t", "turn.1", "null", "null", `{"turn_number":1}`)
	l.add("null", `"intent":"research","confidence":0.9,"reasoning":""`, "intent_classified")
	l.add("null", `"steps":[{"step_id":"s001","description":"search","tool_name":"search"}],"strategy":"direct"`, "plan_proposed")
	l.span("step", "start", "b", "step.s001", "null", "null", `{"step_id":"s001","description":"search"}`)
	l.span("tool_call", "start", "c", "tool.search", "null", "null", `{"tool_name":"search","call_id":"c1","arguments":[["q","x"]]}`)
	l.span("tool_call", "complete", "c", "tool.search", "250.5", "null", `{"tool_name":"search","call_id":"c1","result_summary":"3 hits","is_error":false,"cached":true}`)
	l.add("null", `"claim":"blue","source_uri":"https://example.com/a","confidence":0.8,"verified":true`, "citation_found")
	l.add("null", `"reason":"one source","what_would_resolve":"another"`, "evidence_insufficient")
	l.add("null", `"kind":"added","section":"facts","item_count":1,"attributes":{}`, "memory_event")
	l.span("judge", "complete", "j", "judge.s001", "1.5", "null", `{"step_id":"s001","matched":true}`)
	l.span("step", "complete", "b", "step.s001", "400.0", "null", `{"step_id":"s001","result_summary":"done","is_error":false}`)
	l.add("null", `"content":"It is "`, "text_delta")
	l.add("null", `"content":"blue."`, "text_delta")
	l.add("null", `"input_tokens":10,"output_tokens":4,"total_tokens":14,"cost_usd":0.25,"source":"respond"`, "usage_observed")
	l.span("turn", "complete", "t", "turn.1", "1500.0", "null", `{"turn_number":1}`)
	return l
}

func read(t *testing.T, log string) (events []agentevents.Event) {
	t.Helper()
	for ev, err := range agentevents.NewReader(strings.NewReader(log), agentevents.ReaderOptions{Decoder: kaos.NewDecoder(kaos.Options{})}).All() {
		require.NoError(t, err)
		events = append(events, ev)
	}
	return events
}

func fold(t *testing.T, log string) *agentevents.RunSnapshot {
	t.Helper()
	f := agentevents.NewFold(agentevents.FoldOptions{})
	for _, ev := range read(t, log) {
		f.Apply(ev)
	}
	s := f.Snapshot()
	require.Empty(t, s.Violations)
	return s
}

// emit records with an emitter that has a sink.
func emit(t *testing.T, o agentevents.EmitterOptions, act func(ctx context.Context, run *agentevents.Run)) {
	t.Helper()
	o.Lifecycle = cmp.Or(o.Lifecycle, agentevents.LifecycleStrict)
	emitter, err := agentevents.NewEmitter(o)
	require.NoError(t, err)
	run, err := emitter.Run("run_1f2e3d4c5b6a")
	require.NoError(t, err)
	act(context.Background(), run)
	require.NoError(t, emitter.Close(context.Background()))
}

func watched(t *testing.T) {
	log := live.New(live.Options{Linger: -1})
	var seen []string
	emit(t, agentevents.EmitterOptions{Sinks: []agentevents.Sink{log}}, func(ctx context.Context, run *agentevents.Run) {
		require.NoError(t, run.Emit(ctx, &agentevents.TurnStarted{}))
		events := log.Events(ctx, "run_1f2e3d4c5b6a", 0)
		for ev, err := range events {
			require.NoError(t, err)
			if seen = append(seen, string(ev.Kind())); len(seen) == 2 {
				break
			}
			require.NoError(t, run.Emit(ctx, &agentevents.TurnEnded{})) // it is seen although it came later
		}
	})
	require.Equal(t, []string{"turn.started", "turn.ended"}, seen)
}

func aggregated(t *testing.T) {
	s := fold(t, flow().String())
	require.Equal(t, "It is blue.", s.Agents[kaos.Root].Text)
	require.Equal(t, "research", s.Facts.V.Intents[0].Intent)
	require.Equal(t, "search", s.ClosedCalls[0].ToolID)
	tokens, cost := s.Agents[kaos.Root].Usage.Total()
	require.Equal(t, int64(10), tokens.InputTokens)
	require.Equal(t, 0.25, cost.V)
}

func nested(t *testing.T) {
	var out []byte
	e := kaos.NewEncoder(kaos.EncoderOptions{})
	sink := agentevents.SinkFunc(func(_ context.Context, ev agentevents.Event) (err error) {
		if out, err = e.Append(out, ev); errors.Is(err, dialect.ErrNoCounterpart) {
			return nil
		}
		return err
	})
	now := time.Unix(0, 0)
	clock := func() time.Time { now = now.Add(time.Second); return now }
	emit(t, agentevents.EmitterOptions{Sinks: []agentevents.Sink{sink}, Clock: clock, Lifecycle: agentevents.LifecycleDerived}, func(ctx context.Context, run *agentevents.Run) {
		main := run.Agent("main")
		require.NoError(t, main.Emit(ctx, &agentevents.AgentStarted{}))
		require.NoError(t, main.Emit(ctx, &agentevents.TurnStarted{Name: "turn.1"}))
		require.NoError(t, main.Emit(ctx, &agentevents.StepStarted{StepID: "s1", Name: "step.s1"}))
		_, err := main.Do(ctx, &agentevents.ToolCalled{ToolID: "search"}, func(context.Context) (agentevents.JSON, error) { return "", nil })
		require.NoError(t, err)
		require.NoError(t, main.Emit(ctx, &agentevents.StepEnded{StepID: "s1", Name: "step.s1"}))
		require.NoError(t, main.Emit(ctx, &agentevents.TurnEnded{Name: "turn.1"}))
		require.NoError(t, main.Emit(ctx, &agentevents.AgentEnded{}))
	})
	type line struct {
		Phase, Name string
		Span        string   `json:"span_id"`
		Parent      string   `json:"parent_span_id"`
		Duration    *float64 `json:"duration_ms"`
	}
	names, ends := map[string]string{"": ""}, 0
	parents := map[string]string{}
	for text := range strings.Lines(string(out)) {
		var l line
		require.NoError(t, json.Unmarshal([]byte(text), &l))
		if l.Phase == "start" {
			names[l.Span], parents[l.Name] = l.Name, names[l.Parent]
			continue
		}
		ends++
		require.Greater(t, *l.Duration, 0.0, text)
	}
	require.Equal(t, map[string]string{"subagent.main": "", "turn.1": "subagent.main", "step.s1": "turn.1", "tool.search": "step.s1"}, parents)
	require.Equal(t, 4, ends)
}

func attributes(t *testing.T) {
	log := flow().String()
	var native, back []byte
	e := kaos.NewEncoder(kaos.EncoderOptions{})
	for _, ev := range read(t, log) {
		if ev.Kind() == agentevents.KindToolReturned {
			require.Equal(t, "true", string(dialect.Unknown(&ev, kaos.Name, "/attributes/cached")))
		}
		var err error
		native, err = ev.AppendJSON(native[:0])
		require.NoError(t, err)
		var again agentevents.Event
		require.NoError(t, again.UnmarshalJSON(native))
		back, err = e.Append(back, again)
		require.NoError(t, err)
	}
	require.Equal(t, log, string(back))
}

func counts(t *testing.T) {
	l := &wireLog{}
	l.add("null", `"input_tokens":10.0,"output_tokens":4,"total_tokens":1.4e1,"cost_usd":0.25,"source":""`, "usage_observed")
	require.Equal(t, int64(14), fold(t, l.String()).Usage.Usage.TotalTokens.V)
}

func words(t *testing.T) {
	l := &wireLog{}
	l.add("null", `"kind":"lost","section":"","item_count":0,"attributes":{}`, "memory_event")
	_, err := kaos.NewDecoder(kaos.Options{Strict: true}).Decode(nil, []byte(l.lines[0]))
	require.ErrorContains(t, err, "added, evicted, summarized")
}

func drawn(t *testing.T) {
	var b bytes.Buffer
	require.NoError(t, tree.Write(&b, fold(t, flow().String()), tree.Options{Ended: true}))
	require.Equal(t, `session s-1 · run run_1f2e3d4c5b6a ✓ completed · 14s
└─ root ✓ completed · 1 tool call · $0.2500
   └─ turn.1 ✓ completed · 1.5s: It is blue.
      ├─ intent research · confidence 0.9
      ├─ plan direct · 1 step: search
      └─ step.s001 ✓ completed · 400ms: search
         ├─ tool.search ✓ 250ms
         ├─ citation https://example.com/a ✓ verified · confidence 0.8: blue
         └─ evidence ! insufficient: one source — would resolve it: another
1 agent · 1 tool call · 10 tokens in, 4 out · $0.2500
`, b.String())
}

func over(t *testing.T) {
	for phase, want := range map[string]agentevents.RunStatus{"complete": agentevents.RunStatusCompleted, "error": agentevents.RunStatusFailed, "cancelled": agentevents.RunStatusCancelled, "": agentevents.RunStatusRunning} {
		l := &wireLog{}
		l.span("turn", "start", "t", "turn.1", "null", "null", `{}`)
		l.span("subagent", "start", "a", "subagent.reader", "null", "null", `{"subagent_name":"reader","task":""}`)
		l.span("subagent", "error", "a", "subagent.reader", "1.0", `"E"`, `{"subagent_name":"reader"}`)
		if phase != "" {
			errType := "null"
			if phase == "error" {
				errType = `"boom"`
			}
			l.span("turn", phase, "t", "turn.1", "1.0", errType, `{}`)
		}
		s := fold(t, l.String())
		require.Equal(t, want, s.Status, phase)
		require.Equal(t, want == agentevents.RunStatusFailed, s.Error.OK, phase)
	}
}

func root(t *testing.T) {
	l := &wireLog{}
	l.span("turn", "start", "t", "turn.1", "null", "null", `{}`)
	l.add("null", `"content":"Hello"`, "text_delta")
	l.add("root", `"content":"Goodbye"`, "text_delta")
	l.add("null", `"error_type":"E","message":"boom","recovery_hint":""`, "run_error")
	l.span("turn", "error", "t", "turn.1", "1.0", `"boom"`, `{}`)
	s := fold(t, l.String())
	require.Equal(t, "Hello", s.Agents[kaos.Root].Text)
	require.Equal(t, "boom", s.Agents[kaos.Root].LastError.V.Message)
	require.Equal(t, "Goodbye", s.Agents["root'"].Text, "another agent")
	require.Equal(t, "boom", s.Error.V.Message)
	require.Equal(t, kaos.Root, s.Turns[0].AgentID)
}

func facts(t *testing.T) {
	f := fold(t, flow().String()).Facts.V
	require.Equal(t, "direct", f.Plans[0].Strategy)
	require.Equal(t, "search", f.Plans[0].Steps[0].Description)
	require.Equal(t, "https://example.com/a", f.Citations[0].SourceURI)
	require.Equal(t, "one source", f.Insufficiencies[0].Reason)
	require.Equal(t, map[string]int{"added": 1}, f.Memory)
	require.Equal(t, map[string]int{"judge complete": 1}, f.Spans)
}

func otel(t *testing.T) {
	var b bytes.Buffer
	x := otlpjson.NewExporter(otlpjson.Lines(&b), otlpjson.Options{})
	for _, ev := range read(t, flow().String()) {
		require.NoError(t, x.Export(t.Context(), &ev))
	}
	require.NoError(t, x.Close(t.Context()))
	for _, span := range []string{`"invoke_workflow turn"`, `"run_step step.s001"`, `"execute_tool search"`} {
		require.Contains(t, b.String(), span)
	}
	require.NotContains(t, b.String(), `"name":"invoke_agent`, "the turn is the root agent's")
}

func streamed(t *testing.T) {
	log := live.New(live.Options{Linger: -1})
	emit(t, agentevents.EmitterOptions{Sinks: []agentevents.Sink{log}}, func(ctx context.Context, run *agentevents.Run) {
		for _, p := range []agentevents.Payload{&agentevents.TurnStarted{}, &agentevents.TextDelta{Delta: "a"}, &agentevents.CitationFound{Claim: "c", SourceURI: "u"}, &agentevents.TurnEnded{}} {
			require.NoError(t, run.Emit(ctx, p))
		}
	})
	server := httptest.NewServer(log.EventsHandler())
	defer server.Close()
	get := func(after string) (ids []string) {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+"?run=run_1f2e3d4c5b6a", nil)
		require.NoError(t, err)
		if after != "" {
			req.Header.Set("Last-Event-ID", after)
		}
		answer, err := http.DefaultClient.Do(req)
		require.NoError(t, err)
		defer answer.Body.Close()
		for in := bufio.NewScanner(answer.Body); in.Scan(); {
			if id, ok := strings.CutPrefix(in.Text(), "id: "); ok {
				ids = append(ids, id)
			}
		}
		return slices.Compact(ids) // the end of the stream has the last id, too
	}
	all := get("")
	require.Len(t, all, 4)
	require.Equal(t, all[2:], get(all[1]))
}

func durable(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	log, err := logfile.Open(path, logfile.Options{Sync: logfile.SyncEvery})
	require.NoError(t, err)
	emit(t, agentevents.EmitterOptions{Sinks: []agentevents.Sink{log}}, func(ctx context.Context, run *agentevents.Run) {
		require.NoError(t, run.Emit(ctx, &agentevents.TurnStarted{}))
		require.Zero(t, log.Stats().Dirty, "it is on disk when Emit returns")
	})
	require.NoError(t, log.Close())
}

func redacted(t *testing.T) {
	secrets := &agentevents.Secrets{}
	require.NoError(t, secrets.Add("supersecret123"))
	var out []byte
	e := kaos.NewEncoder(kaos.EncoderOptions{})
	sink := agentevents.SinkFunc(func(_ context.Context, ev agentevents.Event) (err error) {
		out, err = e.Append(out, ev)
		return err
	})
	emit(t, agentevents.EmitterOptions{Sinks: []agentevents.Sink{sink}, Redaction: &agentevents.Policy{Secrets: secrets}}, func(ctx context.Context, run *agentevents.Run) {
		main := run.Agent("main")
		require.NoError(t, main.Emit(ctx, &agentevents.AgentStarted{Task: "use sk-ant-api03-" + strings.Repeat("Ab3-", 24)}))
		require.NoError(t, main.Emit(ctx, &agentevents.TextDelta{Delta: "my key is super"}))
		require.NoError(t, main.Emit(ctx, &agentevents.TextDelta{Delta: "secret123 ok"}))
		require.NoError(t, main.Emit(ctx, &agentevents.AgentEnded{}))
	})
	require.NotContains(t, string(out), "sk-ant-api03-Ab3")
	require.NotContains(t, string(out), "super")
	require.NotContains(t, string(out), "secret123")
}

func played(t *testing.T) {
	events := read(t, flow().String())
	p, err := playback.New(slices.Values(events), playback.Options{})
	require.NoError(t, err)
	require.NoError(t, p.Seek(events[4].Sequence))
	require.Equal(t, agentevents.RunStatusRunning, p.Snapshot().Status)
	var n int
	require.NoError(t, p.Play(t.Context(), playback.Timing{Speed: 1e9}, func(agentevents.Event) error { n++; return nil }))
	require.Equal(t, len(events)-4, n)
	require.Equal(t, agentevents.RunStatusCompleted, p.Snapshot().Status)
}

func hooked(t *testing.T) {
	var b bytes.Buffer
	logger := hooks.Slog{To: slog.New(slog.NewTextHandler(&b, nil))}
	log := live.New(live.Options{})
	for _, ev := range read(t, flow().String()) {
		require.NoError(t, logger.WriteEvent(t.Context(), ev))
		require.NoError(t, log.WriteEvent(t.Context(), ev))
	}
	require.Contains(t, b.String(), "msg=agent.toolCalled")
	require.Equal(t, 0.25, log.Snapshot("run_1f2e3d4c5b6a").Usage.CostUSD.V)
}

func broken(t *testing.T) {
	stopped := 0
	breaker := hooks.Breaker{Limits: hooks.Limits{Failures: 1}, Stop: func(context.Context, string, agentevents.BudgetExceeded) error {
		stopped++
		return nil
	}}
	var out []byte
	e := kaos.NewEncoder(kaos.EncoderOptions{})
	sink := agentevents.SinkFunc(func(_ context.Context, ev agentevents.Event) (err error) {
		if out, err = e.Append(out, ev); errors.Is(err, dialect.ErrNoCounterpart) {
			return nil
		}
		return err
	})
	emit(t, breaker.Install(agentevents.EmitterOptions{Sinks: []agentevents.Sink{sink}, Lifecycle: agentevents.LifecycleDerived}), func(ctx context.Context, run *agentevents.Run) {
		main := run.Agent("main")
		require.NoError(t, main.Emit(ctx, &agentevents.AgentStarted{}))
		for range 2 {
			_, _ = main.Do(ctx, &agentevents.ToolCalled{ToolID: "search"}, func(context.Context) (agentevents.JSON, error) { return "", errors.New("down") })
		}
	})
	require.Equal(t, 1, stopped)
	require.Contains(t, string(out), `"type":"budget_exceeded"`)
}

func unbegun(t *testing.T) {
	l := &wireLog{}
	l.span("step", "complete", "b", "step.s1", "1.0", "null", `{"step_id":"s1","result_summary":"","is_error":false}`)
	l.span("tool_call", "complete", "c", "tool.search", "1.0", "null", `{"tool_name":"search","call_id":"c1","result_summary":"","is_error":false}`)
	l.span("turn", "complete", "t", "turn.1", "1.0", "null", `{}`)
	s := fold(t, l.String())
	require.Equal(t, agentevents.RunStatusCompleted, s.Status)
	require.Equal(t, 1, s.Tools["search"].OK)

	var rule *agentevents.RuleError // an emitting program has begun the run that it ends
	emit(t, agentevents.EmitterOptions{}, func(ctx context.Context, run *agentevents.Run) {
		require.ErrorAs(t, run.Emit(ctx, &agentevents.TurnEnded{}), &rule)
	})
	require.Equal(t, agentevents.RuleTurnOpen, rule.Rule)
}

func repeated(t *testing.T) {
	log := flow().String()
	once, twice := fold(t, log), fold(t, log+log)
	require.Equal(t, once, twice)

	l := &wireLog{}
	for _, n := range []int{9, 2, 2} {
		l.n = n
		l.add("null", fmt.Sprintf(`"content":"%d"`, len(l.lines)), "text_delta")
	}
	require.Equal(t, "012", fold(t, l.String()).Agents[kaos.Root].Text, "another line of the same number is another event")
}

func overlapping(t *testing.T) {
	l := &wireLog{}
	l.span("turn", "start", "t", "turn.A", "null", "null", `{}`)
	l.span("turn", "start", "u", "turn.B", "null", "null", `{}`)
	l.span("step", "start", "v", "step.x", "null", "null", `{"step_id":"x"}`)
	l.span("step", "start", "w", "step.x", "null", "null", `{"step_id":"x"}`)
	l.span("turn", "error", "t", "turn.A", "1.0", `"A failed"`, `{}`)
	l.span("step", "error", "v", "step.x", "1.0", `"x failed"`, `{"step_id":"x"}`)
	l.span("turn", "complete", "u", "turn.B", "1.0", "null", `{}`)
	l.span("step", "complete", "w", "step.x", "1.0", "null", `{"step_id":"x"}`)
	s := fold(t, l.String())
	require.Equal(t, "A failed", s.Turns[0].Error.V.Message)
	require.False(t, s.Turns[1].Error.OK)
	require.False(t, s.Turns[1].EndedAt.IsZero())
	require.Equal(t, "x failed", s.Steps[0].Error.V.Message)
	require.False(t, s.Steps[1].Error.OK)
	require.False(t, s.Steps[1].EndedAt.IsZero())
}
