package lawtest_test

import (
	"context"
	"iter"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	ae "github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/inbox"
	"github.com/agentevents/agentevents/playback"
	"github.com/agentevents/agentevents/query"
	"github.com/agentevents/agentevents/querytest"
	"github.com/agentevents/agentevents/resume"
	"github.com/agentevents/agentevents/runstore"
)

// The resume specification, sections 1 and 4 to 7: a workflow is cut off in the middle of its
// second node, goes on in another process, is commanded and is played back. Each subtest is
// a requirement of the specification, or a few that belong together. Each goes on with the run of those
// before it, so they are one function.
func TestSeed003(t *testing.T) {
	ctx := t.Context()
	emitter := func(store runstore.Store) *ae.Emitter {
		em, err := ae.NewEmitter(ae.EmitterOptions{Lifecycle: ae.LifecycleDerived, Sinks: []ae.Sink{runstore.NewSink(store)}})
		require.NoError(t, err)
		return em
	}
	load := func(store runstore.Store, from uint64) (entries []runstore.Entry) {
		for e, err := range store.Load(ctx, "run-1", from) {
			require.NoError(t, err)
			entries = append(entries, e)
		}
		return entries
	}
	at := func(run *ae.Run, node string) *ae.Run {
		return run.With(ae.Scope{NodeID: node, NodeRunID: node + "-1"})
	}
	emit := func(run *ae.Run, payloads ...ae.Payload) {
		for _, p := range payloads {
			require.NoError(t, run.Emit(ctx, p))
		}
	}

	// The first process. It is gone while the agent's tool works: the second one finds the content
	// of its store.
	first, store := new(runstore.Memory), new(runstore.Memory)
	run, err := emitter(first).Run("run-1")
	require.NoError(t, err)
	emit(run, &ae.RunStarted{Name: "my-workflow"})
	emit(at(run, "fetch"), &ae.NodeStarted{}, &ae.NodeCompleted{Outputs: `"data"`})
	emit(run, &ae.EdgeFired{EdgeID: "e1", From: "fetch", To: "task-agent"})
	emit(at(run, "task-agent"), &ae.NodeStarted{})
	emit(at(run, "index"), &ae.NodeStarted{})
	_, err = query.Do(ctx, at(run, "task-agent").Agent("task-agent"), func(context.Context, query.Request) iter.Seq2[ae.Event, error] {
		t.Run("4.2 the session is persisted before the provider is called", func(t *testing.T) {
			r, err := runstore.Restore(ctx, first, "run-1", ae.FoldOptions{})
			require.NoError(t, err)
			require.NoError(t, first.SaveSnapshot(ctx, r.Snapshot))
			s, err := first.LoadSnapshot(ctx, "run-1")
			require.NoError(t, err)
			require.Equal(t, map[string]string{"task-agent": "sess-1"}, s.AgentSessions)
		})
		return func(yield func(ae.Event, error) bool) {
			yield(ae.Event{Payload: &ae.ToolCalled{CallID: "c1", ToolID: "read_file"}}, nil)
			require.NoError(t, store.Append(ctx, "run-1", 0, load(first, 0)...))
			yield(ae.Event{Payload: &ae.AgentEnded{}}, nil)
		}
	}, query.Request{SessionID: "sess-1", Prompt: `"Analyze"`})
	require.NoError(t, err)

	// The second process.
	var plan *resume.Plan
	t.Run("5.1 the snapshot is loaded, the state restored, and the running nodes are known", func(t *testing.T) {
		r, err := runstore.Restore(ctx, store, "run-1", ae.FoldOptions{})
		require.NoError(t, err)
		require.Equal(t, map[string]ae.NodeStatus{
			"fetch": ae.NodeStatusDone, "task-agent": ae.NodeStatusRunning, "index": ae.NodeStatusRunning,
		}, r.Snapshot.NodeStatus)
		plan, err = resume.New(r.Snapshot, resume.Options{})
		require.NoError(t, err)
		require.Equal(t, []string{"index"}, plan.Nodes, "a node without an agent")
	})
	t.Run("5.2 the agent's session and its prompt: the message, else continue", func(t *testing.T) {
		require.Equal(t, "sess-1", plan.Agents[0].SessionID)
		require.Equal(t, "continue", plan.Agents[0].Prompt)
		plan, err = resume.New(plan.Snapshot, resume.Options{Message: "Go on, please."})
		require.NoError(t, err)
		require.Equal(t, "Go on, please.", plan.Agents[0].Prompt)
	})
	run, err = emitter(store).Resume(plan.Snapshot)
	require.NoError(t, err)
	receipt, err := plan.Apply(ctx, run)
	require.NoError(t, err)
	commands := inbox.New(run, inbox.Options{})
	t.Run("5.1 the resumption is recorded once, after the message, and the sequence goes on", func(t *testing.T) {
		var kinds []ae.Kind
		for _, e := range load(store, plan.Snapshot.NextSequence) {
			kinds = append(kinds, e.Event.Kind())
		}
		require.Equal(t, []ae.Kind{ae.KindCommandReceived, ae.KindRunResumed}, kinds[:2])
		require.Equal(t, 1, count(kinds, ae.KindRunResumed))
		require.Equal(t, []string{"c1"}, receipt.Calls, "the call is closed as interrupted")
	})

	t.Run("5.4 a send without an execution is rejected: recorded as it came, not queued, an error", func(t *testing.T) {
		before := run.State()
		err := commands.Deliver(ctx, ae.Command{Type: ae.CommandSend, Message: "to whom?"})
		require.ErrorIs(t, err, inbox.ErrNoExecution)
		entries := load(store, before.NextSequence)
		require.Len(t, entries, 1)
		p := entries[0].Event.Payload.(*ae.CommandReceived)
		require.Equal(t, "to whom?", p.Command.Message)
		require.NotEmpty(t, p.Rejected)
	})

	mock := querytest.NewMock(fixturesOf(t), querytest.MockOptions{Strict: true})
	t.Run("5.2 and 5.3 the agent goes on in its session; its node reads its own inbox", func(t *testing.T) {
		box, other := commands.Open("task-agent-1"), commands.Open("index-1")
		require.NoError(t, commands.Deliver(ctx, ae.Command{Type: ae.CommandSend, RunID: "task-agent-1", Message: "be brief"}))
		require.Zero(t, other.Waiting())
		node := at(run, "task-agent")
		emit(node, &ae.NodeStarted{})
		a := receipt.Resumed[0]
		ask := query.Request{Prompt: ae.JSONString(a.Prompt), SessionID: a.SessionID, Resume: true}
		_, err := query.Do(ctx, node.Agent(a.AgentID), mock.Query, ask)
		require.NoError(t, err)
		c, err := box.Receive(ctx)
		require.NoError(t, err)
		ask.Prompt = ae.JSONString(c.Message)
		end, err := query.Do(ctx, node.Agent(a.AgentID), mock.Query, ask)
		require.NoError(t, err)
		require.Equal(t, "Two tasks.", end.Result)
		emit(node, &ae.NodeCompleted{Outputs: ae.JSONString(end.Result)})
		require.NoError(t, box.Close(ctx))
		require.NoError(t, other.Close(ctx))
	})
	emit(at(run, "index"), &ae.NodeStarted{}, &ae.NodeCompleted{})
	emit(run, &ae.RunCompleted{})

	final, err := runstore.Restore(ctx, store, "run-1", ae.FoldOptions{})
	require.NoError(t, err)
	t.Run("4.2 the session stays after the agent has completed", func(t *testing.T) {
		require.Empty(t, final.Snapshot.Violations)
		require.Equal(t, ae.RunStatusCompleted, final.Snapshot.Status)
		require.Equal(t, map[string]string{"task-agent": "sess-1"}, final.Snapshot.AgentSessions)
		require.Empty(t, final.Snapshot.Inbox)
	})
	entries := load(store, 0)
	t.Run("6.1 all events are in the store", func(t *testing.T) {
		var kinds []ae.Kind
		for _, e := range entries {
			kinds = append(kinds, e.Event.Kind())
		}
		for _, kind := range []ae.Kind{ae.KindRunStarted, ae.KindNodeStarted, ae.KindEdgeFired, ae.KindCommandReceived, ae.KindCommandConsumed, ae.KindAgentStarted, ae.KindAgentEnded} {
			require.Contains(t, kinds, kind)
		}
	})
	t.Run("6.2 the run is played back from any sequence, with its state, and asks nobody", func(t *testing.T) {
		p, err := playback.New(func(yield func(ae.Event) bool) {
			for _, e := range entries {
				if !yield(e.Event) {
					return
				}
			}
		}, playback.Options{})
		require.NoError(t, err)
		require.NoError(t, p.Seek(plan.Snapshot.NextSequence))
		require.Equal(t, ae.NodeStatusRunning, p.Snapshot().NodeStatus["task-agent"])
		played := plan.Snapshot.NextSequence
		require.NoError(t, p.Play(ctx, playback.Timing{}, func(ev ae.Event) error {
			require.Equal(t, played, ev.Sequence)
			require.True(t, ev.Marks.Has(ae.MarkReplayed))
			played++
			return nil
		}))
		require.Equal(t, final.Snapshot.NodeStatus, p.Snapshot().NodeStatus)
		require.Empty(t, mock.Unused())
	})
	t.Run("7 no fixture for one call more", func(t *testing.T) {
		for _, err := range mock.Query(ctx, query.Request{NodeID: "task-agent"}) {
			require.ErrorContains(t, err, `no fixture for call 3 of node "task-agent"`)
		}
	})
}

func count(kinds []ae.Kind, kind ae.Kind) int {
	return len(slices.DeleteFunc(slices.Clone(kinds), func(k ae.Kind) bool { return k != kind }))
}

// fixturesOf returns fixtures as the specification prints them: their events have no node,
// no execution and no time.
func fixturesOf(t *testing.T) querytest.Fixtures {
	f, err := querytest.Parse([]byte(`{"calls": [
		{"input": {"prompt": "Go on, please."}, "output": {"text": "I have read the file.", "sessionId": "sess-1"},
		 "events": [{"type": "agent:start", "sessionId": "sess-1"}, {"type": "agent:text", "content": "I have read the file."}, {"type": "agent:complete", "result": "I have read the file."}]},
		{"input": {"prompt": "be brief"}, "output": {"text": "Two tasks.", "usage": {"inputTokens": 150, "outputTokens": 200}, "sessionId": "sess-1"},
		 "events": [{"type": "agent:text", "content": "Two tasks."}]}
	]}`))
	require.NoError(t, err)
	return querytest.Fixtures{"task-agent": f}
}
