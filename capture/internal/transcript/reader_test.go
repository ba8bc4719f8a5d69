package transcript

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/capture/internal/session"
	"github.com/agentevents/agentevents/internal/jsonwire"
)

const main1 = "11111111-1111-4111-8111-111111111111"

// A script writes the lines of a file. Each has a uuid, u1, u2, …, and the line before as parent.
type script struct {
	strings.Builder
	n     int
	more  string // members of every line
	uuids string // begins the uuids
}

// line writes a line with members.
func (s *script) line(members string) *script {
	s.n++
	parent := "null"
	if s.n > 1 {
		parent = fmt.Sprintf(`"%su%d"`, s.uuids, s.n-1)
	}
	return s.child(parent, members)
}

// child writes a line with another parent, as JSON.
func (s *script) child(parent, members string) *script {
	at := time.Date(2026, 11, 28, 10, 0, s.n, 0, time.UTC).Format(time.RFC3339)
	fmt.Fprintf(s, `{"parentUuid":%s,"sessionId":"%s","version":"2.1.328","uuid":"%su%d","timestamp":"%s",%s%s}`+"\n", parent, main1, s.uuids, s.n, at, s.more, members)
	return s
}

func (s *script) ask(text string) *script {
	return s.line(`"type":"user","message":{"role":"user","content":"` + text + `"}`)
}

// answer writes a block of an answer with its tokens. stop is JSON.
func (s *script) answer(id, block, stop string, in, out int) *script {
	return s.line(fmt.Sprintf(`"type":"assistant","message":{"id":"%s","model":"m","role":"assistant","content":[%s],"stop_reason":%s,"usage":{"input_tokens":%d,"output_tokens":%d}}`, id, block, stop, in, out))
}

func text(text string) string { return `{"type":"text","text":"` + text + `"}` }

func call(id, tool, input string) string {
	return `{"type":"tool_use","id":"` + id + `","name":"` + tool + `","input":` + input + `}`
}

func (s *script) result(id, content, more string) *script {
	return s.line(`"type":"user","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"` + id + `","content":"` + content + `"` + more)
}

const good, bad = `}]}`, `,"is_error":true}]}`

const rejected = "The user doesn't want to proceed with this tool use. The tool use was rejected"

// A reading is what a folder was read as.
type reading struct {
	*agentevents.RunSnapshot
	events []*agentevents.Event
	errs   []error
	source *session.Source
}

// read reads files as one session, without violations.
func read(t *testing.T, files map[string]string) reading {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
	return readDir(t, dir)
}

func readDir(t *testing.T, dir string) (r reading) {
	t.Helper()
	sources, err := session.Open([]*session.Program{Program()}, dir)
	require.NoError(t, err)
	require.Len(t, sources, 1)
	fold := agentevents.NewFold(agentevents.FoldOptions{})
	for item := range sources[0].Read(session.Options{}) {
		if item.Err != nil {
			r.errs = append(r.errs, item.Err)
			continue
		}
		fold.Apply(*item.Event)
		r.events = append(r.events, item.Event)
	}
	r.RunSnapshot, r.source = fold.Snapshot(), sources[0]
	require.Empty(t, r.Violations)
	return r
}

// returns are the statuses of the calls, by id.
func (r *reading) returns() map[string]agentevents.ToolStatus {
	out := map[string]agentevents.ToolStatus{}
	for _, ev := range r.events {
		if p, ok := ev.Payload.(*agentevents.ToolReturned); ok {
			out[p.CallID] = p.Status
		}
	}
	return out
}

// count counts the events of a kind.
func count[P agentevents.Payload](r *reading) (n int) {
	for _, ev := range r.events {
		if _, ok := ev.Payload.(P); ok {
			n++
		}
	}
	return n
}

func one(s *script) map[string]string { return map[string]string{main1 + ".jsonl": s.String()} }

// How a call went follows from the words of its result and of the line after it. In a terminal, a
// refusal and a stop have the same words, and only a stop names the message that it stopped.
func TestRefusedOrStopped(t *testing.T) {
	kind := func(kind string) string { return bad + `,"toolDenialKind":"` + kind + `"` }
	stop := func(more string) string {
		return `"type":"user","message":{"role":"user","content":[{"type":"text","text":"[Request interrupted by user for tool use]"}]}` + more
	}
	for name, test := range map[string]struct {
		entry, content, result, next string
		status                       agentevents.ToolStatus
		end                          agentevents.RunStatus
	}{
		"SIGINT":           {"sdk-cli", rejected, kind("user-rejected"), stop(""), "cancelled", agentevents.RunStatusCancelled},
		"stop in terminal": {"cli", rejected, kind("user-rejected"), stop(`,"interruptedMessageId":"m1"`), "cancelled", agentevents.RunStatusCancelled},
		"refused":          {"cli", rejected, kind("user-rejected"), stop(""), "forbidden", agentevents.RunStatusCancelled},
		"nobody asked":     {"sdk-cli", rejected, kind("user-rejected"), "", "forbidden", agentevents.RunStatusCompleted},
		"by a rule":        {"sdk-cli", "Permission to use Bash has been denied", kind("permission-rule"), "", "forbidden", agentevents.RunStatusCompleted},
		"process ended":    {"sdk-cli", "[Tool call interrupted: the session ended", kind("interrupted"), "", "interrupted", agentevents.RunStatusCompleted},
		"failed":           {"cli", "Exit code 3", bad, "", "error", agentevents.RunStatusCompleted},
		"old stop":         {"cli", "Permission prompt was aborted.", bad, stop(""), "cancelled", agentevents.RunStatusCancelled},
	} {
		t.Run(name, func(t *testing.T) {
			s := &script{more: `"entrypoint":"` + test.entry + `",`}
			s.ask("go").answer("m1", call("c1", "Bash", `{}`), `"tool_use"`, 1, 2).result("c1", test.content, test.result)
			if test.next != "" {
				s.line(test.next)
			} else {
				s.answer("m2", text("done"), `"end_turn"`, 1, 2)
			}
			r := read(t, one(s))
			require.Equal(t, test.status, r.returns()["c1"])
			require.Equal(t, test.end, r.Status)
		})
	}
}

// The end of a session follows from its last lines.
func TestEnds(t *testing.T) {
	begun := func() *script { return new(script).ask("go") }
	used := func() *script {
		return begun().answer("m1", call("c1", "Bash", `{}`), `"tool_use"`, 1, 2)
	}
	done := func(s *script) *script { return s.answer("m9", text("done"), `"end_turn"`, 1, 2) }
	apiError := `"type":"assistant","message":{"id":"x","model":"<synthetic>","role":"assistant","content":[{"type":"text","text":"API Error: 529"}]},"isApiErrorMessage":true,"error":"overloaded"`
	for name, test := range map[string]struct {
		s      *script
		status agentevents.RunStatus
		code   string
	}{
		"answer":            {done(begun()), agentevents.RunStatusCompleted, ""},
		"no answer":         {begun(), agentevents.RunStatusFailed, "interrupted"},
		"open call":         {used(), agentevents.RunStatusFailed, "interrupted"},
		"a result is last":  {used().result("c1", "Exit code 137", bad), agentevents.RunStatusFailed, "interrupted"},
		"API error":         {begun().line(apiError), agentevents.RunStatusFailed, "overloaded"},
		"overcome":          {done(begun().line(apiError)), agentevents.RunStatusCompleted, ""},
		"turn limit":        {used().result("c1", "1", good).line(`"type":"attachment","attachment":{"type":"max_turns_reached","maxTurns":1}`), agentevents.RunStatusFailed, "max_turns"},
		"killed, resumed":   {done(used().ask("again")), agentevents.RunStatusCompleted, ""},
		"stopped in a text": {begun().line(`"type":"assistant","message":{"id":"m1","model":"m","content":[` + text("I be") + `],"stop_reason":null},"isAbortedMidStream":true`), agentevents.RunStatusCancelled, ""},
		"local command":     {new(script).ask("<command-name>/clear</command-name>"), agentevents.RunStatusCompleted, ""},
		"budget": {new(script).line(`"type":"attachment","attachment":{"type":"budget_usd","total":0.5}`).ask("go").answer("m1", call("c1", "Bash", `{}`), `"tool_use"`, 1, 2).
			line(`"type":"cost-state","totalCostUSD":0.6,"modelUsage":{"m":{"inputTokens":1,"outputTokens":2,"costUSD":0.6}}`), agentevents.RunStatusFailed, "budget_exceeded"},
	} {
		t.Run(name, func(t *testing.T) {
			r := read(t, one(test.s))
			require.Equal(t, test.status, r.Status)
			if test.code != "" {
				require.Equal(t, test.code, r.Error.V.Code)
			}
		})
	}
}

// Words before a call are not the answer, and neither are words of an earlier turn.
func TestWordsBeforeACall(t *testing.T) {
	const thought = `{"type":"thinking","thinking":"all pass"}`
	s := new(script).ask("one").answer("m1", text("first"), `"end_turn"`, 1, 1).ask("two")
	s.answer("m2", thought, `"end_turn"`, 1, 1)
	r := read(t, one(s))
	require.Empty(t, r.Agents["claude"].Result)

	s = new(script).ask("one").answer("m1", text("I run the tests:"), "null", 1, 1).answer("m1", call("c1", "Bash", `{}`), "null", 1, 1)
	s.result("c1", "ok", good).answer("m2", thought, `"end_turn"`, 1, 1)
	r = read(t, one(s))
	require.Equal(t, agentevents.RunStatusCompleted, r.Status)
	require.Empty(t, r.Agents["claude"].Result)
}

// A stopped turn ends with the stop. A command of the user and a note of the next process are not of it.
func TestStoppedTurn(t *testing.T) {
	for _, later := range []string{
		`"type":"system","subtype":"local_command","content":"<command-name>/model</command-name>"`,
		`"type":"user","message":{"role":"user","content":"<command-name>/mcp</command-name>"}`,
		`"type":"assistant","message":{"id":"x","model":"<synthetic>","role":"assistant","content":[{"type":"text","text":"No response requested."}]}`,
	} {
		s := new(script).ask("go").answer("m1", call("c1", "Bash", `{}`), `"tool_use"`, 1, 2).result("c1", rejected, bad)
		s.line(`"type":"user","message":{"role":"user","content":[` + text("[Request interrupted by user for tool use]") + `]}`)
		s.n += 30
		s.line(later)
		r := read(t, one(s))
		require.Equal(t, agentevents.RunStatusCancelled, r.Status, later)
		require.Len(t, r.Turns, 1)
		require.Equal(t, 3*time.Second, r.Turns[0].EndedAt.Sub(r.Turns[0].StartedAt), later)
	}
}

// Lines of an answer that was not whole when they were written have tokens that grow. The
// last line counts, also when results of its calls or a request of the user stand between.
func TestGrowingTokens(t *testing.T) {
	s := new(script).ask("go")
	s.answer("m1", text("a"), "null", 10, 1).answer("m1", call("c1", "Bash", `{}`), "null", 10, 2).result("c1", "1", good).answer("m1", call("c2", "Bash", `{}`), "null", 10, 30)
	s.result("c2", "2", good).answer("m2", text("b"), "null", 5, 1).answer("m2", text("c"), "null", 5, 7)
	r := read(t, one(s))
	require.EqualValues(t, 15, r.Usage.Usage.InputTokens)
	require.EqualValues(t, 37, r.Usage.Usage.OutputTokens)
	require.Equal(t, 2, count[*agentevents.ModelReturned](&r))
	require.Equal(t, agentevents.RunStatusCompleted, r.Status)

	require.True(t, r.Usage.Partial, "no line has the reason of the end of m1")

	s = new(script).ask("go").answer("m1", text("a"), "null", 10, 1).answer("m1", text("b"), `"end_turn"`, 10, 30)
	r = read(t, one(s))
	require.EqualValues(t, 30, r.Usage.Usage.OutputTokens)
	require.False(t, r.Usage.Partial)

	s = new(script).ask("go").answer("m1", text("a"), "null", 10, 1).ask("and more").answer("m1", text("b"), "null", 10, 30)
	r = read(t, one(s))
	require.EqualValues(t, 30, r.Usage.Usage.OutputTokens)
	require.Equal(t, 1, count[*agentevents.ModelReturned](&r))
}

// A prompt that hangs on an earlier line takes back the messages after that line. Their tokens
// stay spent.
func TestRewind(t *testing.T) {
	s := new(script).ask("one").answer("m1", text("first"), `"end_turn"`, 1, 1).ask("two").answer("m2", text("second"), `"end_turn"`, 10, 10)
	s.n++
	s.child(`"u2"`, `"type":"user","message":{"role":"user","content":"three"}`).answer("m3", text("third"), `"end_turn"`, 100, 100)
	r := read(t, one(s))
	var left, taken []string
	for _, m := range r.Messages {
		left = append(left, jsonwire.Text(string(m.Content)))
	}
	for _, m := range r.RetractedMessages {
		taken = append(taken, jsonwire.Text(string(m.Content)))
	}
	require.Equal(t, []string{"one", "first", "three", "third"}, left)
	require.Equal(t, []string{"two", "second"}, taken)
	require.EqualValues(t, 111, r.Usage.Usage.OutputTokens)
}

// Results of parallel calls hang on their own calls. Nothing is taken back for it.
func TestParallelCallsAreNoRewind(t *testing.T) {
	s := new(script).ask("one").answer("m1", call("c1", "Bash", `{}`), `"tool_use"`, 1, 1).answer("m1", call("c2", "Bash", `{}`), `"tool_use"`, 1, 1).result("c2", "2", good)
	s.n++
	s.child(`"u2"`, `"type":"user","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":"1"}]}`)
	s.answer("m2", text("done"), `"end_turn"`, 1, 1).ask("two").answer("m3", text("done"), `"end_turn"`, 1, 1)
	r := read(t, one(s))
	require.Empty(t, r.Retracted)
	require.Equal(t, 2, count[*agentevents.TurnEnded](&r))
}

// A fork begins with lines of another session, which are no work of this one.
func TestFork(t *testing.T) {
	s := new(script).ask("old").
		line(`"requestSessionId":"other","type":"assistant","message":{"id":"m1","model":"m","content":[`+call("c1", "Bash", `{}`)+`],"stop_reason":"tool_use","usage":{"input_tokens":7,"output_tokens":7}}`).
		result("c1", "1", good).ask("new").answer("m2", text("done"), `"end_turn"`, 1, 2)
	s.line(`"type":"cost-state","totalCostUSD":5,"modelUsage":{"m":{"inputTokens":8,"outputTokens":9,"costUSD":5}}`)
	r := read(t, one(s))
	require.EqualValues(t, 2, r.Usage.Usage.OutputTokens)
	require.Empty(t, r.returns())
	require.False(t, r.Usage.CostUSD.OK, "the program's total has the cost of the other session")
	require.Equal(t, 1, count[*agentevents.AgentErrored](&r))
}

// The call of the model that compacts a conversation has no line: its tokens are those that the
// program's totals have more.
func TestCompaction(t *testing.T) {
	s := new(script).ask("go").answer("m1", text("done"), `"end_turn"`, 10, 5)
	s.line(`"type":"cost-state","totalCostUSD":1,"modelUsage":{"m":{"inputTokens":10,"outputTokens":5,"costUSD":1}}`)
	s.line(`"type":"system","subtype":"compact_boundary","compactMetadata":{"trigger":"manual","preTokens":100,"postTokens":20}`)
	s.line(`"type":"user","isCompactSummary":true,"message":{"role":"user","content":"in short"}`)
	s.line(`"type":"cost-state","totalCostUSD":3,"modelUsage":{"m":{"inputTokens":910,"outputTokens":82,"costUSD":3}}`)
	r := read(t, one(s))
	require.EqualValues(t, 910, r.Usage.Usage.InputTokens)
	require.EqualValues(t, 82, r.Usage.Usage.OutputTokens)
	require.InDelta(t, 3, r.Usage.CostUSD.V, 1e-9)
	require.Len(t, r.Messages, 2)
	for _, ev := range r.events {
		if p, ok := ev.Payload.(*agentevents.ContextCompacted); ok {
			require.Equal(t, "in short", p.Summary)
			require.EqualValues(t, 100, p.TokensBefore.V)
		}
	}
}

// agent is the file of a sub-agent.
func agent(id, prompt string) *script {
	s := &script{more: `"isSidechain":true,"agentId":"` + id + `",`, uuids: id, n: 4}
	return s.ask(prompt).answer(id+"m", text("done by "+id), `"end_turn"`, 100, 50)
}

// spawning is a session with a sub-agent in the foreground, x1, and one in the background, x2.
func spawning() *script {
	s := new(script).ask("go")
	s.answer("m1", call("c1", "Agent", `{"prompt":"do one","subagent_type":"worker"}`), `"tool_use"`, 1, 1)
	s.answer("m1", call("c2", "Agent", `{"prompt":"do two","subagent_type":"worker"}`), `"tool_use"`, 1, 1)
	s.result("c2", "launched", good+`,"toolUseResult":{"isAsync":true,"status":"async_launched","agentId":"x2"}`)
	s.n += 5
	s.result("c1", "done by x1", good+`,"toolUseResult":{"status":"completed","agentId":"x1","content":[]}`)
	s.ask(`<task-notification><task-id>x2</task-id><status>completed</status><result>done by x2</result></task-notification>`)
	return s.answer("m2", text("done"), `"end_turn"`, 1, 1)
}

// The files of sub-agents are in the folder of the session, or beside it in older versions. They
// hang on the call that their description names, or that has their prompt.
func TestSubAgents(t *testing.T) {
	const subagents = main1 + "/subagents/agent-"
	for name, files := range map[string]map[string]string{
		"described": {subagents + "x1.jsonl": agent("x1", "p").String(), subagents + "x1.meta.json": `{"agentType":"worker","toolUseId":"c1"}`,
			subagents + "x2.jsonl": agent("x2", "p").String(), subagents + "x2.meta.json": `{"agentType":"worker","toolUseId":"c2"}`},
		"by prompt": {subagents + "x1.jsonl": agent("x1", "do one").String(), subagents + "x2.jsonl": agent("x2", "do two").String()},
		"beside":    {"agent-x1.jsonl": agent("x1", "do one").String(), "agent-x2.jsonl": agent("x2", "do two").String()},
		"missing":   {},
	} {
		t.Run(name, func(t *testing.T) {
			files[main1+".jsonl"] = spawning().String()
			r := read(t, files)
			require.Equal(t, agentevents.RunStatusCompleted, r.Status)
			calls := map[string]string{}
			for _, ev := range r.events {
				if p, ok := ev.Payload.(*agentevents.AgentStarted); ok && ev.ParentCallID != "" {
					calls[p.ProviderSessionID] = ev.ParentCallID
					require.Equal(t, "worker", p.Name)
				}
			}
			require.Equal(t, map[string]string{"x1": "c1", "x2": "c2"}, calls)
			for _, a := range r.Agents {
				require.Equal(t, agentevents.OutcomeConverged, a.Outcome)
			}
			if name == "missing" {
				require.Len(t, r.source.Notes, 1)
				require.Contains(t, r.source.Notes[0], "Claude Code: files of sub-agents are missing (x1, x2)")
				return
			}
			require.Empty(t, r.source.Notes)
			require.EqualValues(t, 202, r.Usage.Usage.InputTokens)
		})
	}
}

// Results of the tools of the API's server tell of a failure in their content.
func TestServerTools(t *testing.T) {
	s := new(script).ask("go")
	for i, c := range []struct{ kind, content string }{
		{"web_search", `{"type":"web_search_tool_result_error","error_code":"max_uses_exceeded"}`},
		{"web_search", `[{"type":"web_search_result","url":"u"}]`},
		{"code_execution", `{"type":"code_execution_result","stdout":"","stderr":"boom","return_code":1}`},
		{"code_execution", `{"type":"code_execution_result","stdout":"2","stderr":"","return_code":0}`},
	} {
		id := fmt.Sprintf("c%d", i+1)
		s.answer("m1", `{"type":"server_tool_use","id":"`+id+`","name":"`+c.kind+`","input":{}}`, "null", 1, 1)
		s.answer("m1", `{"type":"`+c.kind+`_tool_result","tool_use_id":"`+id+`","content":`+c.content+`}`, "null", 1, 1)
	}
	r := read(t, one(s.answer("m1", text("done"), `"end_turn"`, 1, 1)))
	require.Equal(t, map[string]agentevents.ToolStatus{"c1": agentevents.ToolStatusError, "c2": agentevents.ToolStatusOK,
		"c3": agentevents.ToolStatusError, "c4": agentevents.ToolStatusOK}, r.returns())
	var words []string
	for _, ev := range r.events {
		if p, ok := ev.Payload.(*agentevents.ToolReturned); ok && p.Error.OK {
			words = append(words, p.Error.V.Message)
		}
	}
	require.Equal(t, []string{"max_uses_exceeded", "boom"}, words)
}

// A sub-agent ends as the return of its call or the latest notice tells, with a file of its own and
// without one. A file that tells of an error itself knows better.
func TestVerdicts(t *testing.T) {
	const notice = `<task-notification><task-id>x2</task-id><status>%s</status><result>r</result></task-notification>`
	session := func(status, end string) *script {
		s := new(script).ask("go")
		s.answer("m1", call("c1", "Agent", `{"prompt":"do one"}`), `"tool_use"`, 1, 1)
		s.answer("m1", call("c2", "Agent", `{"prompt":"do two"}`), `"tool_use"`, 1, 1)
		s.result("c2", "launched", good+`,"toolUseResult":{"isAsync":true,"agentId":"x2"}`)
		s.n += 20
		s.result("c1", "r", end+`,"toolUseResult":{"agentId":"x1"}`)
		if status != "" {
			s.ask(fmt.Sprintf(notice, status))
		}
		return s.answer("m2", text("done"), `"end_turn"`, 1, 1)
	}
	broken := func(id, prompt string) *script {
		s := &script{more: `"isSidechain":true,"agentId":"` + id + `",`, uuids: id, n: 4}
		return s.ask(prompt).answer(id+"m", call(id+"c", "Bash", "{}"), `"tool_use"`, 100, 50)
	}
	stopped := func(id, prompt string) *script { return broken(id, prompt).ask("[Request interrupted by user]") }
	sentOn := func(id, prompt string) *script {
		s := agent(id, prompt)
		s.n += 30
		return s.ask("more").answer(id+"n", text("done by "+id), `"end_turn"`, 100, 50)
	}
	for name, c := range map[string]struct {
		status, end string
		file        func(id, prompt string) *script
		want        string // of c1 and c2, by code of the error
	}{
		"completed":          {"completed", good, agent, ", "},
		"killed and failed":  {"killed", bad, agent, "error_tool_use, killed"},
		"breaks off":         {"killed", bad, broken, "error_tool_use, killed"},
		"only the file":      {"completed", good, broken, ", "},
		"the file's error":   {"killed", bad, stopped, "cancelled, cancelled"},
		"no notice":          {"", good, agent, ", "},
		"no notice, broken":  {"", good, broken, ", interrupted"},
		"sent on":            {"killed", bad, sentOn, ", "},
		"no file":            {"killed", bad, nil, "error_tool_use, killed"},
		"no file, no notice": {"", good, nil, ", interrupted"},
	} {
		t.Run(name, func(t *testing.T) {
			files := one(session(c.status, c.end))
			if c.file != nil {
				files["agent-x1.jsonl"], files["agent-x2.jsonl"] = c.file("x1", "do one").String(), c.file("x2", "do two").String()
			}
			r := read(t, files)
			codes := map[string]string{}
			for _, a := range r.Agents {
				codes[a.ParentCallID] = a.Error.V.Code
				require.Equal(t, a.Error.OK, a.Outcome == agentevents.OutcomeAborted)
			}
			require.Equal(t, c.want, codes["c1"]+", "+codes["c2"])
		})
	}
}

// A path to the file of the session finds the files of its sub-agents; a path to the file of a
// sub-agent tells where the rest is.
func TestOneFile(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(dir, main1, "subagents"), 0o700))
	sub := filepath.Join(dir, main1, "subagents", "agent-x1.jsonl")
	require.NoError(t, os.WriteFile(sub, []byte(agent("x1", "do one").String()), 0o600))
	renamed := filepath.Join(dir, "renamed.log")
	require.NoError(t, os.WriteFile(renamed, []byte(spawning().String()), 0o600))
	r := readDir(t, renamed)
	require.Len(t, r.source.Files, 2)
	r = readDir(t, sub)
	require.EqualValues(t, 100, r.Usage.Usage.InputTokens)
	require.Len(t, r.source.Notes, 1)
	require.Contains(t, r.source.Notes[0], "this is the file of a sub-agent; its session "+main1)
}

// Links out of the folder are not followed.
func TestLinks(t *testing.T) {
	out, dir := t.TempDir(), t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(out, "agent-x1.jsonl"), []byte(agent("x1", "do one").String()), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, main1+".jsonl"), []byte(spawning().String()), 0o600))
	require.NoError(t, os.MkdirAll(filepath.Join(dir, main1), 0o700))
	if err := os.Symlink(out, filepath.Join(dir, main1, "subagents")); err != nil {
		t.Skip("no symbolic links: ", err)
	}
	require.Len(t, readDir(t, dir).source.Files, 1)
	r := readDir(t, filepath.Join(dir, main1+".jsonl"))
	require.Len(t, r.source.Files, 1)
}

// The agents of a workflow have no calls of their own: they hang on the call of the workflow.
func TestWorkflow(t *testing.T) {
	s := new(script).ask("go").answer("m1", call("c1", "Workflow", `{"name":"w"}`), `"tool_use"`, 1, 1).
		result("c1", "launched", good+`,"toolUseResult":{"status":"async_launched"}`)
	s.n += 9
	s.answer("m2", text("done"), `"end_turn"`, 1, 1)
	files := one(s)
	for _, id := range []string{"x1", "x2"} {
		files[main1+"/subagents/workflows/wf_1/agent-"+id+".jsonl"] = agent(id, "work").String()
	}
	files[main1+"/subagents/workflows/wf_1/journal.jsonl"] = `{"type":"started","key":"k","agentId":"x1"}` + "\n"
	r := read(t, files)
	n := 0
	for _, ev := range r.events {
		if ev.ParentCallID == "c1" {
			n++
		}
	}
	require.Equal(t, 2, n)
	require.Empty(t, r.source.Notes)
	require.EqualValues(t, 202, r.Usage.Usage.InputTokens)
}

// Old versions have the lines of sub-agents in the file of the session.
func TestInline(t *testing.T) {
	s := new(script).ask("go").answer("m1", call("c1", "Task", `{"prompt":"do one"}`), `"tool_use"`, 1, 1)
	s.more = `"isSidechain":true,`
	s.n++
	s.child("null", `"type":"user","message":{"role":"user","content":"do one"}`).answer("s1", call("c2", "Read", `{}`), `"tool_use"`, 10, 10).
		result("c2", "x", good).answer("s2", text("one is done"), `"end_turn"`, 10, 10)
	s.more = ""
	s.result("c1", "one is done", good).answer("m2", text("done"), `"end_turn"`, 1, 1)
	r := read(t, one(s))
	require.Len(t, r.Agents, 2)
	require.EqualValues(t, 22, r.Usage.Usage.InputTokens)
	require.Equal(t, map[string]agentevents.ToolStatus{"c1": "ok", "c2": "ok"}, r.returns())
}

// Some versions repeat the lines of sub-agents in the file of the session. They count if the
// sub-agent has no file, and once if it has one.
func TestProgress(t *testing.T) {
	progress := func(s *script, members string) {
		s.line(`"type":"progress","parentToolUseID":"c1","data":{"type":"agent_progress","agentId":"x1","message":{` + members + `}}`)
	}
	s := new(script).ask("go").answer("m1", call("c1", "Task", `{"prompt":"do one"}`), `"tool_use"`, 1, 1)
	progress(s, `"type":"user","uuid":"x1u5","message":{"role":"user","content":"do one"}`)
	progress(s, `"type":"assistant","uuid":"x1u6","message":{"id":"x1m","model":"m","content":[`+text("done by x1")+`],"stop_reason":"end_turn","usage":{"input_tokens":100,"output_tokens":50}}`)
	s.n += 3
	s.result("c1", "done by x1", good+`,"toolUseResult":{"status":"completed","agentId":"x1"}`).answer("m2", text("done"), `"end_turn"`, 1, 1)
	for _, files := range []map[string]string{{}, {"agent-x1.jsonl": agent("x1", "do one").String()}} {
		files[main1+".jsonl"] = s.String()
		r := read(t, files)
		require.Len(t, r.Agents, 2)
		require.EqualValues(t, 102, r.Usage.Usage.InputTokens)
		require.Equal(t, 3, count[*agentevents.ModelReturned](&r))
		require.Empty(t, r.source.Notes)
	}
}

// A line that the program was writing when it was read costs only that line.
func TestCutTail(t *testing.T) {
	s := new(script).ask("go").answer("m1", text("done"), `"end_turn"`, 1, 2)
	whole := s.String()
	s.ask("more")
	r := read(t, map[string]string{main1 + ".jsonl": s.String()[:len(whole)+40]})
	require.Len(t, r.errs, 1)
	require.ErrorIs(t, r.errs[0], io.ErrUnexpectedEOF)
	require.ErrorContains(t, r.errs[0], "Claude Code: the file ends in the middle of this line")
	require.Equal(t, agentevents.RunStatusCompleted, r.Status)
	require.EqualValues(t, 2, r.Usage.Usage.OutputTokens)
}

// Lines and members that the reader does not know are counted, and a newer version is told.
func TestUnread(t *testing.T) {
	s := new(script).ask("go").line(`"type":"novelty"`).line(`"type":"novelty"`).line(`"type":"attachment","attachment":{"type":"gadget"}`).
		line(`"type":"user","mood":1,"message":{"role":"user","content":"x","tone":1}`).answer("m1", `{"type":"dance"},`+text("done"), `"end_turn"`, 1, 1)
	r := read(t, map[string]string{main1 + ".jsonl": strings.ReplaceAll(s.String(), "2.1.328", "2.2.0")})
	var rows []string
	for _, c := range r.source.Residue.Counts() {
		rows = append(rows, fmt.Sprint(c.Program, " ", c.Version, " ", c.Kind, " ", c.Pointer, " ", c.N))
	}
	require.Equal(t, []string{
		"Claude Code 2.2.0 assistant /message/content/*/dance 1", "Claude Code 2.2.0 attachment/gadget  1", "Claude Code 2.2.0 novelty  2",
		"Claude Code 2.2.0 user /message/tone 1", "Claude Code 2.2.0 user /mood 1",
	}, rows)
	require.Len(t, r.source.Notes, 1)
	require.Contains(t, r.source.Notes[0], "version 2.2.0 is newer than 2.1.328")
}
