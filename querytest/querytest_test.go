package querytest_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/eventtest"
	"github.com/agentevents/agentevents/query"
	"github.com/agentevents/agentevents/querytest"
)

// provider returns a query whose answers are its events, in turn. An answer without an end
// fails.
func provider(answers ...[]agentevents.Event) query.Func {
	var mu sync.Mutex
	return func(context.Context, query.Request) iter.Seq2[agentevents.Event, error] {
		mu.Lock()
		defer mu.Unlock()
		answer := answers[0]
		answers = answers[1:]
		return func(yield func(agentevents.Event, error) bool) {
			for _, ev := range answer {
				if !yield(ev, nil) {
					return
				}
			}
			if _, ok := answer[len(answer)-1].Payload.(*agentevents.AgentEnded); !ok {
				yield(agentevents.Event{}, errors.New("the line is busy: API_KEY=hunter2secretX99"))
			}
		}
	}
}

// rich is an answer with most acts of agents.
func rich() []agentevents.Event {
	return []agentevents.Event{
		{Payload: &agentevents.AgentStarted{ProviderSessionID: "s1", Model: "m"}},
		{Payload: &agentevents.AgentReasoningDelta{BlockID: "b0", Index: agentevents.Some(0), Delta: "hm"}},
		{Payload: &agentevents.AgentReasoned{BlockID: "b0", Reasoning: "hm"}},
		{Payload: &agentevents.ToolCalled{CallID: "c1", ToolID: "Task", Arguments: `{"n":9007199254740993}`}},
		{AgentID: "helper", ParentCallID: "c1", Payload: &agentevents.AgentStarted{Task: "look"}},
		{AgentID: "helper", Payload: &agentevents.TextCompleted{BlockID: "b1", Text: "found"}},
		{AgentID: "helper", Payload: &agentevents.AgentEnded{Outcome: agentevents.OutcomeConverged, Result: "found"}},
		{Payload: &agentevents.ToolReturned{CallID: "c1", ToolID: "Task", Status: agentevents.ToolStatusOK, Result: `"found"`}},
		{Payload: &agentevents.AgentSessionChanged{ProviderSessionID: "s2", Reason: "fork"}},
		{Payload: &agentevents.TextDelta{BlockID: "b2", Index: agentevents.Some(0), Delta: "do"}},
		{Payload: &agentevents.TextDelta{BlockID: "b2", Index: agentevents.Some(1), Delta: "ne"}},
		{Payload: &agentevents.TextCompleted{BlockID: "b2", Text: "done"}},
		{Actor: "user", Payload: &agentevents.MessageCreated{Message: agentevents.ConversationMessage{MessageID: "m1", Content: `"thanks"`}}},
		{Payload: &agentevents.AgentEnded{Outcome: agentevents.OutcomePartial, Result: "done", NumTurns: agentevents.Some(2),
			Usage:        agentevents.Some(agentevents.Usage{InputTokens: 5, OutputTokens: 7}),
			ModelUsage:   map[string]agentevents.Usage{"m": {InputTokens: 5, OutputTokens: 7, CostUSD: agentevents.Some(0.5)}},
			TotalCostUSD: agentevents.Some(0.5)}},
	}
}

// ask records the answers to prompts of agent a, and returns the lines of the log.
func ask(t *testing.T, ask query.Func, prompts ...string) (lines []string, errs []error) {
	em, rec := eventtest.RecordWith(t, agentevents.EmitterOptions{Lifecycle: agentevents.LifecycleDerived})
	run, err := em.Run("r")
	require.NoError(t, err)
	for i, prompt := range prompts {
		_, err := query.Do(t.Context(), run.Agent(fmt.Sprint("a", i)), ask, query.Request{
			NodeID: "node", Prompt: agentevents.JSONString(prompt),
		})
		errs = append(errs, err)
	}
	for _, ev := range rec.Events() {
		text, err := ev.MarshalJSON()
		require.NoError(t, err)
		lines = append(lines, string(text))
	}
	return lines, errs
}

// The answer of a mock is recorded like the original: the logs are the same, byte for byte.
func TestRecord(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "fixtures")
	failing := rich()[:3]
	live := querytest.Record(provider(rich(), failing), dir, querytest.RecordOptions{})
	lines, errs := ask(t, live, "Do it", "Again")
	require.NoError(t, errs[0])
	require.ErrorContains(t, errs[1], "the line is busy")

	again, errs := ask(t, querytest.MockQuery(t, dir), "Do it", "Again")
	require.NoError(t, errs[0])
	require.EqualError(t, errs[1], "query: node: the line is busy: API_KEY=[REDACTED:key]")
	last := len(lines) - 1 // records that the log redacted the error; the mock's answer is redacted
	require.Equal(t, strings.Replace(lines[last], `"marks":["redacted"],`, "", 1), again[last])
	require.Equal(t, lines[:last], again[:last])

	f, err := querytest.Load(dir)
	require.NoError(t, err)
	require.Equal(t, []string{"node"}, f.Nodes())
	call := f["node"].Calls[0]
	require.Equal(t, querytest.Input{Prompt: `"Do it"`}, call.Input)
	require.Equal(t, "done", call.Output.Text)
	require.Equal(t, "s2", call.Output.SessionID)
	require.Equal(t, 0.5, call.Output.ModelUsage["m"].CostUSD.V)
}

// Nothing secret is in a recording: not of the prompt, the options, the answer or the error.
func TestRecordRedacts(t *testing.T) {
	dir := t.TempDir()
	secrets := &agentevents.Secrets{}
	require.NoError(t, secrets.Add("hunter2secret"))
	live := querytest.Record(provider([]agentevents.Event{
		{Payload: &agentevents.AgentStarted{}},
		{Payload: &agentevents.TextDelta{BlockID: "b", Index: agentevents.Some(0), Delta: "It is hunter2"}},
		{Payload: &agentevents.TextDelta{BlockID: "b", Index: agentevents.Some(1), Delta: "secret."}},
		{Payload: &agentevents.AgentEnded{Result: "hunter2secret"}},
	}), dir, querytest.RecordOptions{Redaction: &agentevents.Policy{Secrets: secrets}})
	var seen strings.Builder
	for ev, err := range live(t.Context(), query.Request{
		NodeID: "n", Prompt: `"use hunter2secret"`, Options: `{"env":{"X":"hunter2secret"}}`,
	}) {
		require.NoError(t, err)
		if d, ok := ev.Payload.(*agentevents.TextDelta); ok {
			seen.WriteString(d.Delta)
		}
	}
	require.Equal(t, "It is hunter2secret.", seen.String(), "the caller sees the answer as it is")
	text, err := os.ReadFile(filepath.Join(dir, "n.json"))
	require.NoError(t, err)
	require.NotContains(t, string(text), "hunter2")
	require.Contains(t, string(text), `"delta": "[REDACTED:secret]."`)
}

// An answer that nobody reads to its end is recorded as far as it was read.
func TestRecordStopped(t *testing.T) {
	dir := t.TempDir()
	for range querytest.Record(provider(rich()), dir, querytest.RecordOptions{})(t.Context(), query.Request{NodeID: "a/b"}) {
		break
	}
	f, err := querytest.Load(dir)
	require.NoError(t, err)
	call := f["a/b"].Calls[0]
	require.Len(t, call.Events, 1)
	require.Equal(t, "the answer was not read to its end", call.Output.Error.V.Message)
}

// A recording that cannot be written is reported after the answer.
func TestRecordFails(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	_, errs := ask(t, querytest.Record(provider(rich()), file, querytest.RecordOptions{}), "Do it")
	require.ErrorContains(t, errs[0], `querytest: recording call 1 of node "node"`)
}

// A session that the caller chooses is the caller's in a mock, too, and one that the
// provider has is the provider's.
func TestSessions(t *testing.T) {
	dir := t.TempDir()
	answer := func(session string) []agentevents.Event {
		return []agentevents.Event{{Payload: &agentevents.AgentStarted{ProviderSessionID: session}}, {Payload: &agentevents.AgentEnded{}}}
	}
	live := querytest.Record(provider(answer("mine"), answer("mine"), answer("forked")), dir, querytest.RecordOptions{})
	requests := []query.Request{{SessionID: "mine"}, {SessionID: "mine", Resume: true}, {SessionID: "mine", Resume: true}}
	sessions := func(ask query.Func, as string) (got []string) {
		for _, r := range requests {
			r.NodeID, r.SessionID = "n", as
			for ev, err := range ask(t.Context(), r) {
				require.NoError(t, err)
				if p, ok := ev.Payload.(*agentevents.AgentStarted); ok {
					got = append(got, p.ProviderSessionID)
				}
			}
		}
		return got
	}
	require.Equal(t, []string{"mine", "mine", "forked"}, sessions(live, "mine"))
	require.Equal(t, []string{"other", "other", "forked"}, sessions(querytest.MockQuery(t, dir), "other"))
}

func mock(o querytest.MockOptions) *querytest.Mock {
	call := func(prompt string) querytest.Call {
		return querytest.Call{Input: querytest.Input{Prompt: agentevents.JSONString(prompt)}, Output: querytest.Output{Text: "ok"}}
	}
	return querytest.NewMock(querytest.Fixtures{
		"task-agent": {Calls: []querytest.Call{call("Analyze the task list of today"), call("And now?")}},
		"verifier":   {Calls: []querytest.Call{call("Verify: two tasks")}},
	}, o)
}

// first returns the error that a query begins with.
func first(m *querytest.Mock, node, prompt string) error {
	for _, err := range m.Query(context.Background(), query.Request{NodeID: node, Prompt: agentevents.JSONString(prompt)}) {
		return err
	}
	return nil
}

func TestMissing(t *testing.T) {
	for _, test := range []struct{ name, node, prompt, want string }{
		{"another node", "verifyer", "Verify: three tasks",
			`querytest: no fixture for call 1 of node "verifyer"; the nearest is call 1 of node "verifier": its prompt differs at character 10: "Verify: three tasks", recorded as "Verify: two tasks"`},
		{"the same prompt", "verifyer", "Verify: two tasks",
			`querytest: no fixture for call 1 of node "verifyer"; the nearest is call 1 of node "verifier": its prompt is the same`},
		{"no prompt", "x", "", `querytest: no fixture for call 1 of node "x"; the nearest is call 2 of node "task-agent": its prompt is missing`},
	} {
		t.Run(test.name, func(t *testing.T) {
			require.EqualError(t, first(mock(querytest.MockOptions{}), test.node, test.prompt), test.want)
		})
	}
	m := mock(querytest.MockOptions{})
	require.NoError(t, first(m, "verifier", "Verify: two tasks"))
	err := first(m, "verifier", "Verify: two tasks")
	require.EqualError(t, err, `querytest: no fixture for call 2 of node "verifier"; the nearest is call 1 of node "verifier": its prompt is the same`)
	var missing *querytest.MissingError
	require.ErrorAs(t, err, &missing)
	require.Equal(t, querytest.CallID{Node: "verifier", Number: 1}, missing.Nearest)
	require.EqualError(t, first(querytest.NewMock(nil, querytest.MockOptions{}), "n", "p"),
		`querytest: no fixture for call 1 of node "n": there are no calls at all`)
}

func TestDifference(t *testing.T) {
	var got []string
	m := mock(querytest.MockOptions{OnDifference: func(d *querytest.Difference) { got = append(got, d.String()) }})
	require.NoError(t, first(m, "task-agent", "Analyze the task liſt of today"))
	require.NoError(t, first(m, "task-agent", "And now?"))
	require.Equal(t, []string{
		`call 1 of node "task-agent": its prompt differs at character 20: "… the task liſt of today", recorded as "… the task list of today"`,
	}, got)
	require.Equal(t, []querytest.CallID{{Node: "verifier", Number: 1}}, m.Unused())

	err := first(mock(querytest.MockOptions{Strict: true}), "task-agent", strings.Repeat("x", 100))
	var d *querytest.Difference
	require.ErrorAs(t, err, &d)
	require.EqualError(t, err, `querytest: call 1 of node "task-agent": its prompt differs at character 1: "`+strings.Repeat("x", 40)+`…", recorded as "Analyze the task list of today"`)
}

// Prompts are compared as JSON.
func TestMessages(t *testing.T) {
	f, err := querytest.Parse([]byte(`{"calls":[{"input":{"messages":[{"role":"user","content":"hi"}]},"output":{"text":"ok"},"events":[]}]}`))
	require.NoError(t, err)
	m := querytest.NewMock(querytest.Fixtures{"n": f}, querytest.MockOptions{Strict: true})
	for _, err := range m.Query(t.Context(), query.Request{NodeID: "n", Prompt: `[ {"content":"hi", "role":"user"} ]`}) {
		require.NoError(t, err)
	}
}

// tb is a test that notes how it fails.
type tb struct {
	testing.TB
	failed   []string
	cleanups []func()
}

func (t *tb) Helper()           {}
func (t *tb) Cleanup(fn func()) { t.cleanups = append(t.cleanups, fn) }
func (t *tb) Log(args ...any)   { t.failed = append(t.failed, "log: "+fmt.Sprint(args...)) }
func (t *tb) Fatal(args ...any) {
	t.failed = append(t.failed, fmt.Sprint(args...))
	runtime.Goexit()
}
func (t *tb) Errorf(format string, args ...any) {
	t.failed = append(t.failed, fmt.Sprintf(format, args...))
}

func TestMockQueryTells(t *testing.T) {
	var inner tb
	ask := querytest.MockQuery(&inner, "testdata/my-workflow")
	for _, err := range ask(t.Context(), query.Request{NodeID: "task-agent", Prompt: `"Analyze"`}) {
		require.NoError(t, err)
	}
	for _, fn := range inner.cleanups {
		fn()
	}
	require.Equal(t, []string{
		`log: querytest: call 1 of node "task-agent": its prompt differs at character 8: "Analyze", recorded as "Analyze the task list"`,
		`querytest: call 1 of node "verifier-agent" was not made`,
	}, inner.failed)

	var broken tb
	done := make(chan struct{})
	go func() {
		defer close(done)
		querytest.MockQuery(&broken, "testdata/nowhere")
	}()
	<-done
	require.Len(t, broken.failed, 1)
	require.Contains(t, broken.failed[0], "testdata/nowhere")
}

func TestLoadErrors(t *testing.T) {
	dir := t.TempDir()
	_, err := querytest.Load(dir)
	require.ErrorContains(t, err, "has no fixtures (NODE.json)")
	for name, text := range map[string]string{
		"array.json":   `[]`,
		"other.json":   `{"call":[]}`,
		"broken.json":  `{"calls":[`,
		"events.json":  `{"calls":[{"input":{},"output":{},"events":[{"type":"agent:text","content":"x"},{"type":"agent:text","content":5}]}]}`,
		"input.json":   `{"calls":[{"input":"hello"}]}`,
		"events2.json": `{"calls":[{"input":{},"output":{},"events":[5]}]}`,
		"good.json":    "\ufeff" + `{"calls":[],"$schema":"x"}`,
		"notes.txt":    "not looked at",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	f, err := querytest.Load(dir)
	require.Equal(t, []string{"good"}, f.Nodes())
	lines := strings.Split(strings.ReplaceAll(err.Error(), dir, "DIR"), "\n")
	require.Equal(t, []string{
		"querytest: not a fixture: found array, want an object with calls (DIR/array.json)",
		"querytest: not a fixture: unexpected end of JSON input (DIR/broken.json)",
		"querytest: call 1: event 2: /content: found a number, expected a string (DIR/events.json)",
		"querytest: call 1: event 1: want an object (DIR/events2.json)",
		"querytest: not a fixture: calls.input: found string (DIR/input.json)",
		`querytest: not a fixture: it has no "calls" (DIR/other.json)`,
	}, lines)
}

// Load reads every fixture that Save writes, also one without calls.
func TestSaveNothing(t *testing.T) {
	dir := t.TempDir()
	require.ErrorContains(t, querytest.Save(dir, "n", nil), "the fixture is nil")
	require.NoError(t, querytest.Save(dir, "n", &querytest.Fixture{}))
	f, err := querytest.Load(dir)
	require.NoError(t, err)
	require.Equal(t, []string{"n"}, f.Nodes())
	require.Empty(t, f["n"].Calls)
}

// Concurrent queries of one node get one call each.
func TestConcurrent(t *testing.T) {
	var f querytest.Fixture
	for range 64 {
		f.Calls = append(f.Calls, querytest.Call{Output: querytest.Output{Text: "ok"}})
	}
	m := querytest.NewMock(querytest.Fixtures{"n": &f}, querytest.MockOptions{})
	live := querytest.Record(m.Query, t.TempDir(), querytest.RecordOptions{})
	var wg sync.WaitGroup
	for range 64 {
		wg.Go(func() {
			for _, err := range live(context.Background(), query.Request{NodeID: "n"}) {
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	require.Empty(t, m.Unused())
}

// Fixtures that people cut down by hand still answer: with the session, the text and the
// figures of the output.
func TestShortFixtures(t *testing.T) {
	for name, events := range map[string]string{
		"no events":          `[]`,
		"an old text":        `[{"type":"agent:text","content":"## v1"}]`,
		"a piece of a reply": `[{"type":"stream_event","event":{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"## v1"}},"parent_tool_use_id":null,"uuid":"u-1","session_id":"s-1"}]`,
		"a native text":      `[{"type":"agent.text","payload":{"text":"## v1"}}]`,
	} {
		t.Run(name, func(t *testing.T) {
			f, err := querytest.Parse([]byte(`{"calls":[{"input":{"prompt":"fixture:coder"},"output":{"text":"## v1 done","usage":{"input_tokens":80,"output_tokens":40},"durationMs":400,"sessionId":"s-1","numTurns":1,"totalCostUsd":0.001},"events":` + events + `}]}`))
			require.NoError(t, err)
			em, rec := eventtest.RecordWith(t, agentevents.EmitterOptions{Lifecycle: agentevents.LifecycleDerived})
			run, err := em.Run("r")
			require.NoError(t, err)
			m := querytest.NewMock(querytest.Fixtures{"coder": f}, querytest.MockOptions{Strict: true})
			end, err := query.Do(t.Context(), run.Agent("coder"), m.Query, query.Request{Prompt: `"fixture:coder"`})
			require.NoError(t, err)
			rec.WantLaws(t, eventtest.LawOptions{Open: true})
			rec.Want(t, "coder agent.started providerSessionId=s-1", "coder agent.ended converged numTurns=1 durationMs=400 totalCostUsd=0.001")
			require.Equal(t, "## v1 done", end.Result)
			require.EqualValues(t, 80, end.Usage.V.InputTokens)
			require.Equal(t, name != "no events", rec.Snapshot("r").Agents["coder"].Text != "")
		})
	}
}
