package openharness_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	ae "github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect"
	"github.com/agentevents/agentevents/dialect/openharness"
	"github.com/agentevents/agentevents/inbox"
	"github.com/agentevents/agentevents/playback"
	"github.com/agentevents/agentevents/resume"
)

// The requirements of the specification for programs that read, fold and write its logs, one test
// each.

// lines is a log of the document, with the run "run-1".
func lines(t *testing.T, log ...string) []ae.Event {
	t.Helper()
	var events []ae.Event
	d := openharness.NewDecoder(openharness.Options{RunID: "run-1"})
	for ev, err := range ae.NewReader(strings.NewReader(strings.Join(log, "\n")), ae.ReaderOptions{Decoder: d}).All() {
		require.NoError(t, err)
		events = append(events, ev)
	}
	return events
}

func foldOf(events []ae.Event) *ae.RunSnapshot {
	f := ae.NewFold(ae.FoldOptions{})
	for _, ev := range events {
		f.Apply(ev)
	}
	return f.Snapshot()
}

// broken returns the first rule that a strict decoder finds broken, or "".
func broken(t *testing.T, log ...string) ae.Rule {
	t.Helper()
	d := openharness.NewDecoder(openharness.Options{Strict: true})
	for _, line := range log {
		if _, err := d.Decode(nil, []byte(line)); err != nil {
			var rule *ae.RuleError
			require.ErrorAs(t, err, &rule, line)
			return rule.Rule
		}
	}
	return ""
}

// paused is a flow that pauses while its agent works.
var paused = []string{
	`{"type":"flow:start","timestamp":1767517322000,"flowName":"wf"}`,
	`{"type":"node:start","nodeId":"plan","runId":"x1","timestamp":1767517322001}`,
	`{"type":"agent:start","nodeId":"plan","runId":"x1","timestamp":1767517322002,"sessionId":"sess-1","prompt":"P"}`,
	`{"type":"command:received","timestamp":1767517322003,"command":{"type":"send","message":"hurry","runId":"x1"}}`,
	`{"type":"flow:paused","timestamp":1767517322004}`,
}

// resumed resumes a run of the document's snapshot, which was made after the lines of
// paused, and returns the log that goes on.
func resumed(t *testing.T) (plan *resume.Plan, log []ae.Event) {
	t.Helper()
	log = lines(t, paused...)
	text, err := openharness.AppendSnapshot(nil, foldOf(log))
	require.NoError(t, err)
	sn, err := openharness.ParseSnapshot(text)
	require.NoError(t, err)
	_, err = resume.New(sn.Run, resume.Options{})
	require.ErrorIs(t, err, resume.ErrNoPosition, "the document's snapshot does not have the place at which the log goes on")
	plan, err = resume.New(sn.Run, resume.Options{NextSequence: uint64(len(log)), Message: "go on"})
	require.NoError(t, err)
	e, err := ae.NewEmitter(ae.EmitterOptions{Sinks: []ae.Sink{ae.SinkFunc(func(_ context.Context, ev ae.Event) error { log = append(log, ev); return nil })}})
	require.NoError(t, err)
	run, err := e.Resume(plan.Snapshot)
	require.NoError(t, err)
	_, err = plan.Apply(t.Context(), run)
	require.NoError(t, err)
	return plan, log
}

func TestRows(t *testing.T) {
	t.Run("a paused agent goes on with its session", func(t *testing.T) {
		plan, _ := resumed(t)
		require.Len(t, plan.Agents, 1)
		require.Equal(t, "plan", plan.Agents[0].NodeID)
		require.Equal(t, "sess-1", plan.Agents[0].SessionID)
		require.Equal(t, "go on", plan.Prompt)
		own, err := resume.New(foldOf(lines(t, paused...)), resume.Options{})
		require.NoError(t, err)
		require.Len(t, own.Agents, 1, "a fold of the log has the agent")
		require.Equal(t, "sess-1", own.Agents[0].SessionID)
	})
	t.Run("the state comes from the snapshot and the log goes on after it", func(t *testing.T) {
		_, log := resumed(t)
		s := foldOf(log)
		require.Empty(t, s.Violations)
		require.EqualValues(t, len(log), s.NextSequence)
		require.Equal(t, ae.RunStatusRunning, s.Status)
	})
	t.Run("resuming records flow:resumed once", func(t *testing.T) {
		_, log := resumed(t)
		n := 0
		e := openharness.NewEncoder(openharness.EncoderOptions{})
		for _, ev := range log {
			line, err := e.Append(nil, ev)
			require.NoError(t, err)
			n += strings.Count(string(line), `"flow:resumed"`)
		}
		require.Equal(t, 1, n)
	})
	t.Run("nodes that ran are pending after the resumption, and the plan names them", func(t *testing.T) {
		plan, log := resumed(t)
		require.Equal(t, ae.NodeStatusPending, foldOf(log).NodeStatus["plan"])
		require.Equal(t, "plan", plan.Agents[0].NodeID)
	})
	t.Run("events within a node are strictly ordered", func(t *testing.T) {
		const (
			start, done  = `{"type":"node:start","nodeId":"n","runId":"x","timestamp":5}`, `{"type":"node:complete","nodeId":"n","runId":"x","timestamp":5,"output":1}`
			agent, text  = `{"type":"agent:start","nodeId":"n","runId":"x","timestamp":5,"sessionId":"s","prompt":""}`, `{"type":"agent:text","nodeId":"n","runId":"x","timestamp":5,"content":"hi"}`
			other, fails = `{"type":"agent:text","nodeId":"o","runId":"y","timestamp":5,"content":"hi"}`, `{"type":"agent:error","nodeId":"n","runId":"x","timestamp":5,"errorType":"exception","message":"m"}`
			earlier      = `{"type":"agent:text","nodeId":"n","runId":"x","timestamp":4,"content":"hi"}`
		)
		require.Equal(t, openharness.RuleOrder, broken(t, start, text), "before agent:start")
		require.Equal(t, openharness.RuleOrder, broken(t, start, agent, done, text), "after the end of the node")
		require.Equal(t, openharness.RuleOrder, broken(t, text, done, text))
		require.Empty(t, broken(t, start, agent, text, done, start, agent, text), "the node starts again")
		require.Empty(t, broken(t, start, fails, agent, text, done), "an agent may fail before it has a session")
		require.Empty(t, broken(t, text, done), "a log may begin in the middle")
		require.Empty(t, broken(t, start, agent, other, done, other), "events of other nodes interleave")
		require.Empty(t, broken(t, start, agent, earlier, done), "a clock may be set back: the lines have the order")
		require.Empty(t, broken(t, start, agent, `{"type":"flow:aborted","timestamp":5}`, done, text), "agents may report how they stop")
	})
	t.Run("a replay emits the recorded events again, and nothing is run", func(t *testing.T) {
		log := lines(t, paused...)
		p, err := playback.New(slices.Values(log), playback.Options{})
		require.NoError(t, err)
		var shown []ae.Event
		require.NoError(t, p.Play(t.Context(), playback.Timing{}, func(ev ae.Event) error {
			require.True(t, ev.Marks.Has(ae.MarkReplayed))
			ev.Marks = 0
			shown = append(shown, ev)
			return nil
		}))
		require.Equal(t, log, shown)
		require.Equal(t, foldOf(log), p.Snapshot(), "the timeline and the state")
		require.NoError(t, p.Seek(2))
		require.Equal(t, foldOf(log[:2]), p.Snapshot())
	})
	t.Run("an edge that is skipped has no event: its status comes from the definition or a snapshot", func(t *testing.T) {
		s := foldOf(append(lines(t, paused...), ae.Event{RunID: "run-1", Sequence: 9, Payload: &ae.EdgeSkipped{EdgeID: "e"}}))
		require.Equal(t, ae.EdgeStatusSkipped, s.EdgeStatus["e"])
		text, err := openharness.AppendSnapshot(nil, s)
		require.NoError(t, err)
		require.Contains(t, string(text), `"edgeStatus":{"e":"skipped"}`)
	})
	t.Run("patches change elements of lists", func(t *testing.T) {
		patch := func(op, path, value string) string {
			return `{"type":"state:patch","timestamp":1,"patch":{"op":"` + op + `","path":"` + path + `","value":` + value + `}}`
		}
		s := foldOf(lines(t, patch("set", "tasks", `[{"done":false},{"done":false}]`), patch("set", "tasks.1.done", "true"), patch("merge", "tasks.0", `{"by":"me"}`)))
		require.Equal(t, ae.JSON(`[{"done":false,"by":"me"},{"done":true}]`), s.State["tasks"])
	})
	t.Run("a command leaves the inbox when its execution ends", func(t *testing.T) {
		require.Len(t, foldOf(lines(t, paused...)).Inbox, 1)
		for _, end := range []string{
			`{"type":"node:complete","nodeId":"plan","runId":"x1","timestamp":1767517322005,"output":1}`,
			`{"type":"node:error","nodeId":"plan","runId":"x1","timestamp":1767517322005,"error":"e"}`,
		} {
			require.Empty(t, foldOf(lines(t, append(slices.Clone(paused), end)...)).Inbox)
		}
	})
	t.Run("a prompt is a string or a list of messages", func(t *testing.T) {
		for prompt, rule := range map[string]ae.Rule{
			`"P"`: "", `[]`: "", `[{"content":"hi"}]`: "", `["hi",{"message":{}}]`: "",
			`[1,2,null]`: openharness.RuleForm, `{}`: openharness.RuleForm, `7`: openharness.RuleForm, `null`: openharness.RuleForm,
		} {
			line := `{"type":"agent:start","nodeId":"n","runId":"x","timestamp":1,"sessionId":"s","prompt":` + prompt + `}`
			require.Equal(t, rule, broken(t, line), prompt)
			require.Equal(t, ae.JSON(prompt), lines(t, line)[0].Payload.(*ae.AgentStarted).Prompt, "it is read in any case")
		}
	})
	t.Run("a tool's error may be empty, and null is none", func(t *testing.T) {
		tool := func(more string) *ae.ToolReturned {
			return lines(t, `{"type":"agent:tool","nodeId":"n","runId":"x","timestamp":1,"toolName":"t","toolInput":{},"toolOutput":1`+more+`}`)[0].Payload.(*ae.ToolReturned)
		}
		require.Equal(t, ae.ToolStatusError, tool(`,"error":""`).Status)
		require.Equal(t, ae.ToolStatusOK, tool(`,"error":null`).Status)
		require.False(t, tool(`,"durationMs":null`).Duration.OK)
	})
	t.Run("agent:complete is a success", func(t *testing.T) {
		s := foldOf(lines(t, append(slices.Clone(paused[:3]),
			`{"type":"agent:complete","nodeId":"plan","runId":"x1","timestamp":1767517322003,"result":"r","usage":{"inputTokens":1,"outputTokens":1},"durationMs":1,"numTurns":1}`)...))
		require.Equal(t, ae.OutcomeConverged, s.Agents["x1"].Outcome)
	})
	t.Run("an agent that failed ends with its node", func(t *testing.T) {
		a := foldOf(lines(t, append(slices.Clone(paused[:3]), `{"type":"node:error","nodeId":"plan","runId":"x1","timestamp":1767517322003,"error":"too many"}`)...)).Agents["x1"]
		require.False(t, a.Open)
		require.Equal(t, "too many", a.Error.V.Message)
	})
	t.Run("lines that name their node alone keep its agent and session", func(t *testing.T) {
		s := foldOf(lines(t,
			`{"type":"agent:start","nodeId":"task-agent","sessionId":"sess-123","prompt":"..."}`,
			`{"type":"agent:text:delta","nodeId":"other","content":"elsewhere"}`,
			`{"type":"agent:text:delta","nodeId":"task-agent","content":"I'll "}`,
			`{"type":"agent:text:delta","nodeId":"task-agent","content":"start"}`,
			`{"type":"agent:complete","nodeId":"task-agent","result":"...","durationMs":4523}`,
			`{"type":"agent:text","content":"of no node"}`))
		require.Empty(t, s.Violations)
		require.Equal(t, map[string]string{"task-agent": "sess-123"}, s.AgentSessions)
		require.Equal(t, "I'll start", s.Agents["task-agent"].Text)
		require.Equal(t, "task-agent", s.Agents["task-agent"].NodeID)
		require.Equal(t, "of no node", s.Agents["run-1"].Text, "a line without a node belongs to the run's agent")
	})
	t.Run("commands of other types are data", func(t *testing.T) {
		const line = `{"type":"command:received","timestamp":1,"command":{"type":"pause","reason":"lunch"}}`
		s := foldOf(lines(t, line))
		require.Empty(t, s.Violations)
		require.Equal(t, ae.Command{Type: "pause", Reason: "lunch"}, s.Inbox[0].Command)
		require.Empty(t, broken(t, line), "the runtime has it")
		require.Equal(t, openharness.RuleEnum, broken(t, strings.Replace(line, "pause", "nap", 1)))
		require.True(t, s.Paused)
		ev := recorded(t, func(run *ae.Run) error {
			return run.Emit(t.Context(), &ae.CommandReceived{Command: ae.Command{Type: "pause", Reason: "lunch"}})
		})
		out, err := openharness.NewEncoder(openharness.EncoderOptions{}).Append(nil, ev)
		require.NoError(t, err)
		require.Contains(t, string(out), `"command":{"type":"pause","reason":"lunch"}`)
	})
	t.Run("a send or reply must name an execution", func(t *testing.T) {
		for _, c := range []ae.Command{{Type: ae.CommandSend, Message: "hi"}, {Type: ae.CommandReply, PromptID: "p", Content: "yes"}} {
			ev := recorded(t, func(run *ae.Run) error { return run.Emit(t.Context(), &ae.CommandReceived{Command: c}) })
			require.Equal(t, &ae.CommandReceived{Command: c, Rejected: openharness.Rejected}, ev.Payload, "the emitter rejects it")
			ev = recorded(t, func(run *ae.Run) error {
				err := inbox.New(run, inbox.Options{}).Deliver(t.Context(), c)
				require.ErrorIs(t, err, inbox.ErrNoExecution, "who sent it is told")
				return nil
			})
			require.NotEmpty(t, ev.Payload.(*ae.CommandReceived).Rejected)
		}
	})
	t.Run("a rejected command does not wait", func(t *testing.T) {
		for _, command := range []string{
			`{"type":"send","message":"hi"}`, `{"type":"send","message":"hi","runId":""}`, `{"type":"send","message":"hi","runId":null}`,
			`{"type":"send","message":"hi","runId":5}`, `{"type":"send","message":["hi"],"runId":"x1"}`, `{"type":"reply","promptId":{},"content":"yes","runId":"x1"}`,
		} {
			events := lines(t, `{"type":"command:received","timestamp":1,"command":`+command+`}`)
			require.NotEmpty(t, events[0].Payload.(*ae.CommandReceived).Rejected, command)
			require.Empty(t, foldOf(events).Inbox, command)
		}
	})
	t.Run("a rejected command is recorded as it came", func(t *testing.T) {
		for _, command := range []string{
			`{"type":"send","message":"hi"}`, `{"type":"send","runId":5,"message":"hi"}`, `{"type":"send","message":["hi"],"runId":"x1"}`,
			`{"type":"send","message":null}`, `{"type":"reply","promptId":1,"content":{"a":[]},"runId":null}`,
		} {
			line := `{"type":"command:received","timestamp":1,"command":` + command + `}`
			ev := lines(t, line)[0]
			native, err := ev.AppendJSON(nil)
			require.NoError(t, err)
			var back ae.Event
			require.NoError(t, back.UnmarshalJSON(native))
			e := openharness.NewEncoder(openharness.EncoderOptions{})
			out, err := e.Append(nil, back)
			require.NoError(t, err)
			require.JSONEq(t, line, string(out), "also by way of the native format")
			for _, loss := range e.Losses() {
				require.NotContains(t, loss.Pointer, "/payload", "%v", loss)
			}
		}
	})
	t.Run("a field that the line lacks and the event has is listed", func(t *testing.T) {
		for _, c := range []struct{ line, pointer string }{
			{`"agent:text:delta"`, "/payload/delta"}, {`"agent:text"`, "/payload/text"}, {`"agent:thinking"`, "/payload/reasoning"},
			{`"agent:error","message":"m"`, "/payload/errorType"}, {`"agent:error","errorType":"e"`, "/payload/message"},
			{`"agent:tool"`, "/payload/toolId"}, {`"node:error"`, "/payload/error/message"},
			{`"agent:complete","usage":{"inputTokens":1}`, "/payload/usage/outputTokens"}, {`"edge:fire","from":"a"`, "/payload/to"},
			{`"loop:iterate"`, "/payload/iteration"}, {`"state:patch","patch":{"op":"set","path":"p"}`, "/payload/value"},
			{`"state:patch","patch":{"op":"set","value":1}`, "/payload/path"}, {`"command:received","command":{}`, "/payload/command/type"},
			{`"agent:complete"`, "/payload/outcome"}, {`"agent:text","nodeId":"n"`, "/nodeRunId"}, {`"agent:text","runId":"x"`, "/timestamp"},
		} {
			d := openharness.NewDecoder(openharness.Options{})
			_, err := d.Decode(nil, []byte(`{"type":`+c.line+`}`))
			require.NoError(t, err, c.line)
			require.True(t, slices.ContainsFunc(d.Losses(), func(l dialect.Loss) bool { return l.Pointer == c.pointer && l.What == dialect.Made }), "%s: %v", c.line, d.Losses())
		}
	})
	t.Run("events after an abort are late, and come back", func(t *testing.T) {
		log := append(slices.Clone(paused[:3]),
			`{"type":"command:received","timestamp":1767517322003,"command":{"type":"abort","resumable":false}}`,
			`{"type":"flow:aborted","timestamp":1767517322004}`,
			`{"type":"agent:aborted","nodeId":"plan","runId":"x1","timestamp":1767517322005,"reason":"abort"}`,
			`{"type":"node:error","nodeId":"plan","runId":"x1","timestamp":1767517322006,"error":"aborted"}`)
		events := lines(t, log...)
		s := foldOf(events)
		require.Empty(t, s.Violations)
		require.Equal(t, ae.RunStatusCancelled, s.Status)
		e := openharness.NewEncoder(openharness.EncoderOptions{})
		var out []byte
		for _, ev := range events {
			var err error
			out, err = e.Append(out, ev)
			require.NoError(t, err)
		}
		require.Equal(t, strings.Join(log, "\n")+"\n", string(out))
		for _, loss := range e.Losses() {
			require.NotEqual(t, "/marks", loss.Pointer)
		}
		scheduled := foldOf(lines(t, append(log, `{"type":"node:start","nodeId":"other","runId":"x2","timestamp":1767517322007}`)...))
		require.Len(t, scheduled.Violations, 1, "nothing starts after an abort")
	})
	t.Run("events are loaded from a sequence on", func(t *testing.T) {
		log := lines(t, paused...)
		p, err := playback.New(slices.Values(log), playback.Options{})
		require.NoError(t, err)
		require.NoError(t, p.Seek(3))
		ev, ok := p.Step()
		require.True(t, ok)
		require.EqualValues(t, 3, ev.Sequence)
	})
}

// recorded returns the event that f records in a run.
func recorded(t *testing.T, f func(*ae.Run) error) (last ae.Event) {
	t.Helper()
	e, err := ae.NewEmitter(ae.EmitterOptions{
		Clock: func() time.Time { return time.UnixMilli(1767517322000) },
		Sinks: []ae.Sink{ae.SinkFunc(func(_ context.Context, ev ae.Event) error { last = ev; return nil })},
	})
	require.NoError(t, err)
	run, err := e.Run("run-1")
	require.NoError(t, err)
	require.NoError(t, errors.Join(f(run), e.Flush(t.Context())))
	return last
}
