package eventtest_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/eventtest"
)

// A fakeT is a test that keeps its failures.
type fakeT struct {
	testing.TB // nil: methods that the package does not call
	failures   []string
	cleanups   []func()
}

func (f *fakeT) Helper()           {}
func (f *fakeT) Cleanup(do func()) { f.cleanups = append(f.cleanups, do) }
func (f *fakeT) Errorf(format string, args ...any) {
	f.failures = append(f.failures, fmt.Sprintf(format, args...))
}
func (f *fakeT) Fatalf(format string, args ...any) { f.Errorf(format, args...); runtime.Goexit() }

// The part of a long log that a failure shows.
const around, maxShown = 20, 100

// failures returns the failures of a test.
func failures(test func(testing.TB)) []string {
	f := new(fakeT)
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() {
			for _, do := range slices.Backward(f.cleanups) {
				do()
			}
		}()
		test(f)
	}()
	<-done
	return f.failures
}

// failure returns the only failure of a test.
func failure(t *testing.T, test func(testing.TB)) string {
	t.Helper()
	all := failures(test)
	require.Len(t, all, 1)
	return all[0]
}

// recorded is a log of a run with two calls.
func recorded(t testing.TB) *eventtest.Recorder {
	t.Helper()
	em, rec := strict(t)
	run, err := em.Run("r1")
	require.NoError(t, err)
	a := run.Agent("main")
	for _, p := range []agentevents.Payload{
		&agentevents.AgentStarted{Task: "Add /v2/health"},
		&agentevents.AgentTransition{To: agentevents.StatusToolCall},
		&agentevents.ToolCalled{CallID: "c1", ToolID: "read", Arguments: `{"path": "a b"}`},
		&agentevents.TextDelta{Delta: "It"},
		&agentevents.ToolReturned{CallID: "c1", ToolID: "read", Status: agentevents.ToolStatusOK, Result: `{"n": 1}`},
		&agentevents.ToolCalled{CallID: "c2", ToolID: "read"},
		&agentevents.ToolReturned{CallID: "c2", ToolID: "read", Status: agentevents.ToolStatusError, Error: agentevents.Some(agentevents.ErrorInfo{Code: "timeout"})},
		&agentevents.AgentEnded{Outcome: agentevents.OutcomePartial},
	} {
		require.NoError(t, a.Emit(t.Context(), p))
	}
	require.NoError(t, run.Emit(t.Context(), &agentevents.RunCompleted{}))
	return rec
}

var lines = []string{
	`main agent.started "Add /v2/health"`,
	"main agent.transition thinking tool_call",
	"main agent.toolCalled read c1",
	"main agent.toolReturned read c1 ok",
	"main agent.toolCalled read c2",
	"main agent.toolReturned read c2 error timeout",
	"main agent.ended partial",
	"run.completed",
}

func TestLogIsRepeatable(t *testing.T) {
	t.Parallel()
	rec := recorded(t)
	events := rec.Events()
	require.Equal(t, "id1", events[0].ID)
	for i, ev := range events {
		require.Equal(t, time.Date(2026, 5, 5, 9, 0, i, 0, time.UTC), ev.Time)
	}
	require.Equal(t, events, recorded(t).Events())

	s := rec.Snapshot("")
	require.Equal(t, "r1", s.RunID)
	require.Equal(t, agentevents.RunStatusCompleted, s.Status)
	require.Equal(t, 2, s.Agents["main"].ToolCalls)
	require.Equal(t, s, rec.Snapshot("r1"))
	require.Nil(t, rec.Snapshot("r2"))
	require.Nil(t, new(eventtest.Recorder).Snapshot(""))
}

func TestLines(t *testing.T) {
	t.Parallel()
	rec := recorded(t)
	rec.Want(t)
	rec.Want(t, lines)
	rec.WantExactly(t, lines)
	for i := range lines {
		rec.Want(t, lines[i])
		rec.WantExactly(t, slices.Concat(lines[:i], []string{"runId=r1"}, lines[i+1:]))
	}
	for want, n := range map[string]int{
		"main":                                    8,
		"agent.toolCalled":                        2,
		"  agent.toolCalled   c2 ":                1,
		"agent.toolReturned error":                1,
		"agent.started Add…":                      1,
		`agent.started "Add /v2…"`:                1,
		"agent.started Add":                       0,
		"c1 read":                                 0, // not in this order
		"agent.started task=Add…":                 1,
		`agent.started task="Add /v2/health"`:     1,
		"step=0 toolId=read":                      4,
		"error=":                                  8,
		"agent.toolReturned error=":               1,
		"error.code=timeout":                      1,
		`agent.toolReturned result={"n":1}`:       1,
		`agent.toolReturned result={"n":2}`:       0,
		`arguments={"path":"a b"}`:                1,
		"agent.text.delta":                        1,
		"sequence=8":                              1,
		"agentId= run.completed":                  1,
		"thinking->tool_call":                     0,
		"agent.transition from=thinking thinking": 1,
	} {
		require.Len(t, rec.Find(t, want), n, want)
	}
	rec.WantNone(t, "agent.toolCalled bash", "c3")
	rec.Filter(func(ev agentevents.Event) bool { return ev.AgentID == "" }).WantExactly(t, "run.completed")
	rec.WantExactly(t, slices.Insert(slices.Clone(lines), 3, "agent.text.delta It"))
}

// A line that a failure shows of an event matches the event.
func TestEveryLineMatchesItsEvent(t *testing.T) {
	file, err := os.Open("../testdata/kinds.jsonl")
	require.NoError(t, err)
	defer file.Close()
	rec := new(eventtest.Recorder)
	for ev, err := range agentevents.NewReader(file, agentevents.ReaderOptions{}).All() {
		require.NoError(t, err)
		require.NoError(t, rec.WriteEvent(t.Context(), ev))
		require.Contains(t, rec.Find(t, eventtest.Describe(ev)), ev)
	}
}

func FuzzLine(f *testing.F) {
	for _, text := range []string{"plain", "a b", `"`, "a=b", "…", "", "\\", "`", "\u00a0\xff", "[late]", strings.Repeat("é ", 50)} {
		f.Add(text, text)
	}
	f.Fuzz(func(t *testing.T, agent, text string) {
		ev := agentevents.Event{ID: "1", RunID: "r", AgentID: agent, Marks: agentevents.MarkLate, Payload: &agentevents.TextCompleted{BlockID: "b", Text: text}}
		if _, err := ev.AppendJSON(nil); err != nil {
			t.Skip("no line can carry it")
		}
		rec := new(eventtest.Recorder)
		require.NoError(t, rec.WriteEvent(t.Context(), ev))
		rec.WantExactly(t, eventtest.Describe(ev))
	})
}

// sourceLine is the place of a function, which moves.
var sourceLine = regexp.MustCompile(`\.go:[0-9]+`)

func TestFailures(t *testing.T) {
	t.Parallel()
	rec := recorded(t)
	for name, tt := range map[string]struct {
		fails func(testing.TB)
		want  string
	}{
		"a line is missing": {func(t testing.TB) {
			rec.Want(t, "main agent.started", "main agent.toolCalled read c1", "agent.toolReturned c2 ok", "main agent.ended")
		}, `
eventtest: wanted line 3 of 4 is missing: agent.toolReturned c2 ok
recorded (= wanted, ~ near):
  = 0  main agent.started "Add /v2/health"
    1  main agent.transition thinking tool_call
  = 2  main agent.toolCalled read c1
  →    agent.toolReturned c2 ok
  ~ 4  main agent.toolReturned read c1 ok              <- no c2
    5  main agent.toolCalled read c2
  ~ 6  main agent.toolReturned read c2 error timeout   <- no ok
    7  main agent.ended partial
    8  run.completed`},
		"a line comes too early": {func(t testing.TB) { rec.Want(t, "agent.ended", "agent.toolCalled step=0 c1") }, `
eventtest: wanted line 2 of 2 is missing: agent.toolCalled step=0 c1
recorded (= wanted, ~ near):
    0  main agent.started "Add /v2/health"
    1  main agent.transition thinking tool_call
  ~ 2  main agent.toolCalled read c1                   <- too early
    4  main agent.toolReturned read c1 ok
  ~ 5  main agent.toolCalled read c2                   <- no c1
    6  main agent.toolReturned read c2 error timeout
  = 7  main agent.ended partial
  →    agent.toolCalled step=0 c1
    8  run.completed`},
		"a member has another value": {func(t testing.TB) {
			rec.Filter(func(ev agentevents.Event) bool { return ev.Kind() == agentevents.KindToolReturned }).
				Want(t, `agent.toolReturned step=1 result={"n":2} status=ok arguments=1`)
		}, `
eventtest: wanted line 1 of 1 is missing: agent.toolReturned step=1 result={"n":2} status=ok arguments=1
recorded (= wanted, ~ near):
  →    agent.toolReturned step=1 result={"n":2} status=ok arguments=1
  ~ 4  main agent.toolReturned read c1 ok                               <- step is 0, result is {"n":1}, no arguments
  ~ 6  main agent.toolReturned read c2 error timeout                    <- step is 0, no result, status is error, no arguments`},
		"a kind is misspelt": {func(t testing.TB) {
			rec.Filter(func(ev agentevents.Event) bool { return ev.Kind() == agentevents.KindToolCalled }).Want(t, "main agent.toolcalled c1")
		}, `
eventtest: wanted line 1 of 1 is missing: main agent.toolcalled c1 (agent.toolcalled is not a kind; agent.toolCalled is)
recorded (= wanted, ~ near):
  →    main agent.toolcalled c1
  ~ 2  main agent.toolCalled read c1   <- no agent.toolcalled
    5  main agent.toolCalled read c2`},
		"deltas are shown if one is wanted": {func(t testing.TB) {
			rec.Filter(func(ev agentevents.Event) bool { return ev.Sequence > 2 && ev.Sequence < 5 }).Want(t, "agent.text.delta is")
		}, `
eventtest: wanted line 1 of 1 is missing: agent.text.delta is
recorded (= wanted, ~ near):
  →    agent.text.delta is
  ~ 3  main agent.text.delta It             <- no is
    4  main agent.toolReturned read c1 ok`},
		"nothing is recorded": {func(t testing.TB) { new(eventtest.Recorder).Want(t, "main") }, `
eventtest: wanted line 1 of 1 is missing: main
recorded (= wanted, ~ near):
  →   main`},
		"not exactly": {func(t testing.TB) {
			rec.WantExactly(t, lines[0], "main agent.toolCalled read c1", "agent.toolReturned c1 error", "agent.toolcalled grep", "agent.ended", "run.completed", "run.failed")
		}, `
eventtest: 8 events recorded, 7 wanted (+ not wanted, - not recorded):
    0  main agent.started "Add /v2/health"
→ + 1  main agent.transition thinking tool_call
    2  main agent.toolCalled read c1
  -    agent.toolReturned c1 error
  -    agent.toolcalled grep                           <- agent.toolcalled is not a kind; agent.toolCalled is
  + 4  main agent.toolReturned read c1 ok              <- no error
  + 5  main agent.toolCalled read c2
  + 6  main agent.toolReturned read c2 error timeout   <- no c1
    7  main agent.ended partial
    8  run.completed
  -    run.failed`},
		"what was recorded as Go source": {func(t testing.TB) {
			rec.Filter(func(ev agentevents.Event) bool { return ev.Sequence < 2 }).WantExactly(t)
		}, "\neventtest: 2 events recorded, no line is wanted:\n" +
			"\t`main agent.started \"Add /v2/health\"`,\n\t\"main agent.transition thinking tool_call\","},
		"forbidden": {func(t testing.TB) {
			rec.Filter(func(ev agentevents.Event) bool { return ev.Sequence < 3 }).WantNone(t, "agent.toolCalled bash", "agent.toolCalled read")
		}, `
eventtest: a line that must not be recorded is: agent.toolCalled read
recorded (! it is this):
    0  main agent.started "Add /v2/health"
    1  main agent.transition thinking tool_call
  ! 2  main agent.toolCalled read c1`},
		"a function says no": {func(t testing.TB) {
			rec.Filter(func(ev agentevents.Event) bool { return ev.Sequence > 3 && ev.Sequence < 7 }).
				Want(t, "agent.toolReturned", eventtest.Match("main", func(p *agentevents.ToolCalled) bool { return p.CallID == "c7" }))
		}, `
eventtest: wanted line 2 of 2 is missing: main func(*ToolCalled) at eventtest_test.go:LINE
recorded (= wanted, ~ near):
  = 4  main agent.toolReturned read c1 ok
  →    main func(*ToolCalled) at eventtest_test.go:LINE
  ~ 5  main agent.toolCalled read c2                     <- the function returns false
    6  main agent.toolReturned read c2 error timeout`},
		"a function is not asked": {func(t testing.TB) {
			rec.Filter(func(ev agentevents.Event) bool { return ev.Sequence > 6 }).WantExactly(t,
				eventtest.Match("main", func(p *agentevents.AgentEnded) bool { return p.Outcome == agentevents.OutcomePartial }),
				eventtest.Match("", func(p *agentevents.RunFailed) bool { return true }))
		}, `
eventtest: 2 events recorded, 2 wanted (+ not wanted, - not recorded):
    7  main agent.ended partial
→ -    func(*RunFailed) at eventtest_test.go:LINE
  + 8  run.completed`},
		"forbidden and misspelt": {func(t testing.TB) { rec.WantNone(t, "agent.toolcalled bash") },
			"\neventtest: a line that must not be recorded never is: agent.toolcalled bash (agent.toolcalled is not a kind; agent.toolCalled is); put the word in quotes if it is right"},
		"no function": {func(t testing.TB) { rec.WantNone(t, eventtest.Match[*agentevents.ToolCalled]("c1", nil)) },
			"\neventtest: wanted line 1, c1 func(*ToolCalled) at nil: it has no function"},
		"neither":      {func(t testing.TB) { rec.Want(t, lines, 7) }, "\neventtest: wanted line 9, a int: it is neither a line nor a Matcher"},
		"no line":      {func(t testing.TB) { rec.Want(t, "main", " ") }, "\neventtest: wanted line 2, \" \": it has no words"},
		"open quote":   {func(t testing.TB) { rec.WantExactly(t, `a "b`) }, "\neventtest: wanted line 1, \"a \\\"b\": a quote is not closed"},
		"bad quote":    {func(t testing.TB) { rec.WantNone(t, `"a"b`) }, "\neventtest: wanted line 1, \"\\\"a\\\"b\": \"a\"b is not a quoted word"},
		"Find no line": {func(t testing.TB) { rec.Find(t, "") }, "\neventtest: wanted line \"\": it has no words"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, tt.want, sourceLine.ReplaceAllString("\n"+failure(t, tt.fails), ".go:LINE"))
		})
	}
}

func TestMistakes(t *testing.T) {
	t.Parallel()
	rec := recorded(t)
	host := agentevents.Event{ID: "h", RunID: "r1", Payload: &agentevents.Unknown{Type: "run.checked", Raw: `{"score":1}`}}
	require.NoError(t, rec.WriteEvent(t.Context(), host))
	for line, want := range map[string]string{
		"agent.toolCalled toolID=read":           "no event of this kind has a member toolID; there is toolId",
		"agent.toolReturned c2 eror=":            "no event of this kind has a member eror; there is error",
		"agent.toolReturned error.cod=":          "no event of this kind has a member error.cod; there is error.code",
		"agent.toolReturned error.code.x=":       "no event of this kind has a member error.code.x; there is error.code",
		"agent.toolReturned model=m":             "no event of this kind has a member model",
		"toolID=read":                            "no event of this kind has a member toolID; there is toolId",
		"agent.toolCaled read":                   "agent.toolCaled is not a kind; agent.toolCalled is",
		"agnt.started":                           "agnt.started is not a kind; agent.started is",
		"main agent.toolCall":                    "agent.toolCall is not a kind; agent.toolCalled is",
		"run.tests":                              "run.tests is not a kind; run.paused is",
		`"run.tests"`:                            "",
		"agent.toolCalled run.tests":             "",
		"main.go":                                "",
		"tool.error.code=":                       "no event of this kind has a member tool.error.code",
		"agent.toolCalled arguments.any.thing=1": "",
		"agent.ended modelUsage.m.inputTokens=1": "",
		"run.checked score=2":                    "",
		"vendor.kind score.of=1":                 "",
		"agent.toolCalled sequence=99 phase=x":   "",
	} {
		all := failures(func(t testing.TB) { rec.WantNone(t, line) })
		require.Equal(t, want != "", len(all) == 1, "%s: %v", line, all)
		require.Contains(t, strings.Join(all, ""), want)
	}
	matched := eventtest.Match("toolID=read", func(*agentevents.ToolCalled) bool { return true })
	require.Contains(t, failure(t, func(t testing.TB) { rec.Want(t, matched) }), "has a member toolID; there is toolId")
	require.Contains(t, failure(t, func(t testing.TB) { rec.Find(t, "run.completed eror=") }), "has a member eror")
}

// Every member of the golden lines can be wanted of its kind, by path.
func TestEveryMemberIsKnown(t *testing.T) {
	log, err := os.ReadFile("../testdata/kinds.jsonl")
	require.NoError(t, err)
	var walk func(kind, path string, value any)
	walk = func(kind, path string, value any) {
		new(eventtest.Recorder).WantNone(t, kind+" "+path+"=1")
		if object, ok := value.(map[string]any); ok {
			for name, value := range object {
				walk(kind, path+"."+name, value)
			}
		}
	}
	for line := range strings.Lines(string(log)) {
		var ev map[string]any
		require.NoError(t, json.Unmarshal([]byte(line), &ev))
		kind := ev["type"].(string)
		for name, value := range ev {
			walk(kind, name, value)
		}
		payload, _ := ev["payload"].(map[string]any)
		for name, value := range payload {
			walk(kind, name, value)
		}
	}
}

func TestMatch(t *testing.T) {
	t.Parallel()
	rec := recorded(t)
	failed := eventtest.Match("main", func(p *agentevents.ToolReturned) bool { return p.Status == agentevents.ToolStatusError })
	require.Equal(t, uint64(6), rec.Find(t, failed)[0].Sequence)
	require.Len(t, rec.Find(t, failed), 1)
	rec.Want(t, "agent.started", eventtest.Match("c1", func(*agentevents.ToolCalled) bool { return true }), failed, "run.completed")
	rec.WantNone(t, eventtest.Match("", func(p *agentevents.ToolCalled) bool { return p.ToolID == "bash" }))
	rec.WantExactly(t, lines[:5], failed, lines[6:])
	require.Len(t, rec.Find(t, eventtest.Match("", func(agentevents.Payload) bool { return true })), 9, "of any type")
	delta := eventtest.Match("", func(p *agentevents.TextDelta) bool { return p.Delta == "It" })
	rec.WantExactly(t, lines[:3], delta, lines[3:]) // one wants deltas

	calls := eventtest.Payloads[*agentevents.ToolCalled](rec.Events())
	require.Len(t, calls, 2)
	require.Equal(t, "c2", calls[1].CallID)

	require.NoError(t, rec.WriteEvent(t.Context(), agentevents.Event{RunID: "r1", Payload: &agentevents.Unknown{Type: "acme.note", Raw: "7"}}))
	rec.Want(t, eventtest.Match("acme.note", func(p *agentevents.Unknown) bool { return p.Raw == "7" }))
}

func TestLongLogsAreCut(t *testing.T) {
	t.Parallel()
	em, rec := strict(t)
	for _, id := range []string{"r1", "r 2"} {
		run, err := em.Run(id)
		require.NoError(t, err)
		for i := range 50 {
			require.NoError(t, run.With(agentevents.Scope{NodeID: "n"}).Agent("a").Emit(t.Context(), &agentevents.TextCompleted{Text: fmt.Sprint("t", i)}))
		}
	}
	got := failure(t, func(t testing.TB) { rec.Want(t, "t30", "runId=r1 t40", "agent.text t99") })
	require.Equal(t, 1+1+1+20+1+20+1, strings.Count(got, "\n")+1, got)
	require.Contains(t, got, "… 21 more\n       r1/21")
	require.Contains(t, got, "  =    r1/40  a agent.text t40\n  →           agent.text t99\n")
	require.Contains(t, got, "… 39 more")
	require.Contains(t, failure(t, func(t testing.TB) { rec.Want(t, "t49", "t49", "t9…", "x") }), `"r 2"/49`)

	// An alignment that would take too long is none, and shows where it begins.
	many := slices.Repeat([]string{"y"}, 1<<14)
	got = failure(t, func(t testing.TB) { rec.WantExactly(t, append([]string{"t0", "t1"}, many...)) })
	require.Contains(t, got, "100 events recorded, 16386 wanted (+ not wanted, - not recorded):\n        r1/0  a agent.text t0\n")
	require.Equal(t, 1+2+1+around+maxShown+1, strings.Count(got, "\n")+1)
}

func TestGolden(t *testing.T) {
	rec := recorded(t)
	path := filepath.Join(t.TempDir(), "new", "log.jsonl")
	const how = "\nTo write the file, run the test with AGENTEVENTS_UPDATE=1, and read the difference."
	t.Setenv("AGENTEVENTS_UPDATE", "")
	require.Equal(t, "eventtest: the golden log "+path+" does not exist yet"+how, failure(t, func(t testing.TB) { rec.Golden(t, path) }))
	t.Setenv("AGENTEVENTS_UPDATE", "1")
	rec.Golden(t, path)
	t.Setenv("AGENTEVENTS_UPDATE", "")
	rec.Golden(t, path)
	log, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NotContains(t, string(log), "delta")
	all := strings.SplitAfter(strings.TrimSuffix(string(log), "\n"), "\n")
	require.Len(t, all, len(lines))

	write := func(text string) { require.NoError(t, os.WriteFile(path, []byte(text), 0o644)) }
	write(strings.ReplaceAll(string(log), "\n", "\r\n"))
	rec.Golden(t, path)
	for want, text := range map[string]string{
		"line 3 differs:\n  - main agent.toolCalled grep c1\n  + main agent.toolCalled read c1\n      /payload/toolId: \"read\", was \"grep\"": strings.Replace(string(log), `"read"`, `"grep"`, 1),
		"line 8 differs:\n  - run.completed [late]\n  + run.completed\n      /marks: absent, was [\"late\"]":                                   strings.Replace(string(log), `"payload":{}`, `"marks":["late"],"payload":{}`, 1),
		"line 1 differs:\n  - no JSON\n  + main agent.started \"Add /v2/health\"\n      : ":                                                    "no JSON\n",
		"2 events more, from line 7:\n  + main agent.ended partial":                                                                            strings.Join(all[:6], ""),
		"1 event fewer, from line 9:\n  - run.completed":                                                                                       string(log) + all[7],
	} {
		write(text)
		got := failure(t, func(t testing.TB) { rec.Golden(t, path) })
		require.True(t, strings.HasPrefix(got, "eventtest: the log differs from "+path+": "+want), got)
		require.True(t, strings.HasSuffix(got, how), got)
	}
	require.Len(t, failures(func(t testing.TB) { rec.Golden(t, filepath.Dir(path)) }), 1)
	t.Setenv("AGENTEVENTS_UPDATE", "1")
	require.Len(t, failures(func(t testing.TB) { rec.Golden(t, filepath.Dir(path)) }), 1)
}

// A golden log is the same for every run of a program, whatever its ids, its clock and the
// pieces in which a model says its text.
func TestGoldenIsPlain(t *testing.T) {
	t.Parallel()
	run := func(rec *eventtest.Recorder, text ...string) {
		em, err := agentevents.NewEmitter(agentevents.EmitterOptions{Lifecycle: agentevents.LifecycleDerived, Sinks: []agentevents.Sink{rec}})
		require.NoError(t, err)
		defer func() { require.NoError(t, em.Close(t.Context())) }()
		run, err := em.Run("")
		require.NoError(t, err)
		a := run.Agent("main")
		require.NoError(t, a.Emit(t.Context(), &agentevents.AgentStarted{Task: "Add"}))
		for _, delta := range text {
			require.NoError(t, a.Emit(t.Context(), &agentevents.TextDelta{Delta: delta}))
		}
		require.NoError(t, a.Emit(t.Context(), &agentevents.TextCompleted{Text: strings.Join(text, "")}))
		call, err := a.Call(t.Context(), &agentevents.ToolCalled{ToolID: "read"})
		require.NoError(t, err)
		require.NoError(t, call.End(t.Context(), &agentevents.ToolReturned{Status: agentevents.ToolStatusOK, Duration: agentevents.Some(time.Duration(len(text)) * time.Second)}))
		require.NoError(t, a.Emit(t.Context(), &agentevents.MessageCreated{Message: agentevents.ConversationMessage{MessageID: "m7", To: "user", Content: `"Hi"`}}))
		require.NoError(t, a.Emit(t.Context(), &agentevents.AgentEnded{Outcome: agentevents.OutcomeConverged, Duration: agentevents.Some(time.Since(time.Unix(0, 0)))}))
	}
	var one, other eventtest.Recorder
	run(&one, "It", " is", " there")
	run(&other, "It is there")
	before := slices.Clone(one.Events())
	one.Golden(t, "testdata/plain.jsonl")
	other.Golden(t, "testdata/plain.jsonl")
	require.Equal(t, before, one.Events(), "the recorded events stay")

	path := filepath.Join(t.TempDir(), "log.jsonl")
	for _, o := range []eventtest.GoldenOptions{{Deltas: true}, {Exact: true}} {
		one.GoldenWith(t, path, eventtest.GoldenOptions{Update: true, Deltas: o.Deltas, Exact: o.Exact})
		one.GoldenWith(t, path, o)
		if os.Getenv("AGENTEVENTS_UPDATE") == "" { // else all are written
			require.Len(t, failures(func(t testing.TB) { other.GoldenWith(t, path, o) }), 1)
		}
	}
}

// Agents that work at the same time do what the golden log says in any order.
// Ids that the program chose stay, also one that an event or a span has, too.
func TestGoldenKeepsChosenIDs(t *testing.T) {
	em, rec := eventtest.Record(t)
	run, err := em.Run("r")
	require.NoError(t, err)
	coder := run.Agent("coder")
	_, err = coder.Record(t.Context(), agentevents.Event{ID: "e", SpanID: "s", TraceID: "t", Payload: &agentevents.AgentStarted{}})
	require.NoError(t, err)
	for _, id := range []string{"e", "s", "t"} {
		_, err := coder.Do(t.Context(), &agentevents.ToolCalled{CallID: id, ToolID: id}, func(context.Context) (agentevents.JSON, error) { return "", nil })
		require.NoError(t, err)
	}
	require.NoError(t, coder.Emit(t.Context(), &agentevents.ClarificationRequested{InterruptID: "i", Questions: []agentevents.Question{
		{ID: "q", Question: "Which day?"}, {ID: "e", Question: "Which hour?"}, {ID: "8c5f4a0e-6a53-4d6e-9a43-0a4a3b9c2b1d", Question: "Who?"},
	}}))
	require.NoError(t, run.Answer(t.Context(), &agentevents.ClarificationResolved{InterruptID: "i", Answers: `{"q":"Sunday"}`, AnsweredBy: "ann"}))
	require.NoError(t, run.Finish(t.Context(), nil))
	path := filepath.Join(t.TempDir(), "log.jsonl")
	rec.GoldenWith(t, path, eventtest.GoldenOptions{Update: true})
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	log := string(text)
	require.Regexp(t, `"id":"id1".*"traceId":"trace1","spanId":"span1"`, log)
	for _, id := range []string{"e", "s", "t"} {
		require.Equal(t, 2, strings.Count(log, `"callId":"`+id+`","toolId":"`+id+`"`), log)
	}
	require.Regexp(t, `"questions":\[\{"id":"q",.*\{"id":"e",.*\{"id":"id[0-9]+",`, log)
}

func TestGoldenOfActs(t *testing.T) {
	t.Setenv("AGENTEVENTS_UPDATE", "")
	run := func(tool string, agents ...string) *eventtest.Recorder {
		em, rec := eventtest.RecordWith(t, agentevents.EmitterOptions{Lifecycle: agentevents.LifecycleDerived})
		run, err := em.Run("")
		require.NoError(t, err)
		for _, name := range agents {
			require.NoError(t, run.Agent(name).Emit(t.Context(), &agentevents.AgentStarted{Task: "Read " + name}))
		}
		for _, name := range agents {
			_, err := run.Agent(name).Do(t.Context(), &agentevents.ToolCalled{ToolID: tool}, func(context.Context) (agentevents.JSON, error) { return `1`, nil })
			require.NoError(t, err)
		}
		return rec
	}
	path := filepath.Join(t.TempDir(), "acts.jsonl")
	acts := eventtest.GoldenOptions{Acts: true}
	run("read", "a", "b").GoldenWith(t, path, eventtest.GoldenOptions{Update: true})
	other := run("read", "b", "a")
	require.Len(t, failures(func(t testing.TB) { other.Golden(t, path) }), 1)
	other.GoldenWith(t, path, acts)
	require.Equal(t, "eventtest: the agents act differently from "+path+`:
- `+path+`: run run1 running · 4 acts
+ this test: run run1 running · 4 acts
├─ - a tool_result: Read a
│  ├─ - started: Read a
│  └─ - tool.read ✓: 1
├─ b tool_result: Read b
│  ├─ 1 act the same
│  ├─ - tool.read ✓: 1
│  └─ + tool.list ✓: 1
└─ + c tool_result: Read c
   ├─ + started: Read c
   └─ + tool.list ✓: 1
To write the file, run the test with AGENTEVENTS_UPDATE=1, and read the difference.`,
		failure(t, func(t testing.TB) { run("list", "b", "c").GoldenWith(t, path, acts) }))

	require.NoError(t, os.WriteFile(path, []byte("no log\n"), 0o644))
	require.Contains(t, failure(t, func(t testing.TB) { other.GoldenWith(t, path, acts) }), "bare word")
}

type badSink struct{ eventtest.Recorder }

func (*badSink) Close() error { return errors.New("the disk is full") }

func TestRecordWith(t *testing.T) {
	t.Parallel()
	require.Equal(t, "eventtest: closing the emitter: agentevents: sink *eventtest_test.badSink: the disk is full", failure(t, func(t testing.TB) {
		eventtest.RecordWith(t, agentevents.EmitterOptions{Sinks: []agentevents.Sink{new(badSink)}})
	}))
	require.Contains(t, failure(t, func(t testing.TB) { eventtest.RecordWith(t, agentevents.EmitterOptions{Mode: 9}) }), "eventtest: agentevents: EmitterOptions.Mode")
	illegal := func(o agentevents.EmitterOptions) func(testing.TB) {
		return func(t testing.TB) {
			em, rec := eventtest.RecordWith(t, o)
			run, _ := em.Run("r1")
			run.Agent("a").Emit(context.Background(), &agentevents.ToolReturned{CallID: "c", ToolID: "t", Status: agentevents.ToolStatusOK})
			if o.Mode == agentevents.ModeObserve {
				rec.Want(t, "a agent.toolReturned t c ok")
			}
			em.Close(context.Background())
		}
	}
	place := func(text string) string { return sourceLine.ReplaceAllString(text, ".go:LINE") }
	require.Contains(t, place(failure(t, illegal(agentevents.EmitterOptions{Lifecycle: agentevents.LifecycleStrict, Mode: agentevents.ModeObserve}))), "eventtest: an event was recorded in spite of a rule at eventtest_test.go:LINE: agentevents: agent.toolReturned")
	require.Contains(t, place(failure(t, illegal(agentevents.EmitterOptions{Lifecycle: agentevents.LifecycleStrict}))), "eventtest: an event was refused at eventtest_test.go:LINE: agentevents: agent.toolReturned")
	var told []*agentevents.RuleError
	require.Empty(t, failures(illegal(agentevents.EmitterOptions{Lifecycle: agentevents.LifecycleStrict, Mode: agentevents.ModeObserve, OnViolation: func(err *agentevents.RuleError) { told = append(told, err) }})))
	require.Len(t, told, 1)

	em, rec := eventtest.RecordWith(t, agentevents.EmitterOptions{
		Lifecycle: agentevents.LifecycleRelaxed,
		Clock:     func() time.Time { return time.Unix(7, 0) }, NewID: func() string { return "x" },
	})
	run, err := em.Run("")
	require.NoError(t, err)
	require.NoError(t, run.Agent("a").Emit(t.Context(), &agentevents.AgentStarted{}))
	require.NoError(t, run.Agent("a").To(t.Context(), agentevents.StatusResponse))
	_, err = run.Record(t.Context(), agentevents.Event{AgentID: "a", Marks: agentevents.MarkSynthetic, Payload: &agentevents.AgentTransition{To: agentevents.StatusThinking}})
	require.NoError(t, err)
	require.Zero(t, rec.Snapshot("").ViolationCount, "the fold has the lifecycle of the emitter")
	require.Equal(t, "x", rec.Events()[0].ID)
	require.Equal(t, time.Unix(7, 0).UTC(), rec.Events()[0].Time)
	rec.Want(t, "a agent.transition response thinking [synthetic]")
	rec.Filter(eventtest.NotSynthetic).WantExactly(t, "a agent.started", "agent.transition thinking response")
}

func TestNotSynthetic(t *testing.T) {
	t.Parallel()
	em, rec := eventtest.RecordWith(t, agentevents.EmitterOptions{Lifecycle: agentevents.LifecycleDerived})
	run, err := em.Run("r1")
	require.NoError(t, err)
	for _, p := range []agentevents.Payload{&agentevents.AgentStarted{}, &agentevents.TextCompleted{Text: "Hi"}, &agentevents.AgentEnded{Outcome: agentevents.OutcomeConverged}} {
		require.NoError(t, run.Agent("a").Emit(t.Context(), p))
	}
	rec.WantExactly(t, "agent.started", "agent.transition thinking response [synthetic]", "agent.text Hi", "agent.transition converged [synthetic]", "agent.ended")
	rec.Filter(eventtest.NotSynthetic).WantExactly(t, "a agent.started", "a agent.text Hi", "a agent.ended converged")
	require.Zero(t, rec.Snapshot("r1").ViolationCount)
	require.Equal(t, agentevents.StatusConverged, rec.Snapshot("r1").Agents["a"].Status)
}

// A recorder is one for all goroutines of a test.
func TestConcurrent(t *testing.T) {
	t.Parallel()
	em, rec := strict(t)
	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() {
			run, err := em.Run(fmt.Sprint("r", i))
			if err != nil {
				t.Error(err)
				return
			}
			for j := range 50 {
				if err := run.Emit(t.Context(), &agentevents.TextCompleted{Text: fmt.Sprint(j)}); err != nil {
					t.Error(err)
				}
				rec.Want(t, fmt.Sprintf("%d runId=r%d", j, i))
			}
		})
	}
	all.Wait()
	require.Len(t, rec.Events(), 200)
	require.Equal(t, uint64(50), rec.Snapshot("r3").NextSequence)
}

// strict is eventtest.Record for tests that say every transition themselves.
func strict(t testing.TB) (*agentevents.Emitter, *eventtest.Recorder) {
	t.Helper()
	return eventtest.RecordWith(t, agentevents.EmitterOptions{Lifecycle: agentevents.LifecycleStrict})
}

// A line shows the error code of every payload that has one: that is the first thing that a test
// wants of a failure.
func TestALineShowsTheErrorCode(t *testing.T) {
	kinds := 0
	for info := range agentevents.Kinds() {
		p := agentevents.NewPayload(info.Kind)
		failure := agentevents.ErrorInfo{Code: "rate_limited", Message: "slow down"}
		switch field := reflect.ValueOf(p).Elem().FieldByName("Error"); {
		case !field.IsValid():
			continue
		case field.Type() == reflect.TypeFor[agentevents.ErrorInfo]():
			field.Set(reflect.ValueOf(failure))
		case field.Type() == reflect.TypeFor[agentevents.Opt[agentevents.ErrorInfo]]():
			field.Set(reflect.ValueOf(agentevents.Some(failure)))
		default:
			continue
		}
		kinds++
		line := eventtest.Describe(agentevents.Event{RunID: "r", AgentID: "a", Payload: p})
		require.Contains(t, strings.Fields(line), "rate_limited", line)
	}
	require.Positive(t, kinds)
}
