package inbox_test

import (
	"context"
	"fmt"
	"io"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	ae "github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/inbox"
)

// begin returns a run, and a function that folds its recorded events.
func begin(t *testing.T) (*ae.Run, func() *ae.RunSnapshot) {
	var mu sync.Mutex
	fold := ae.NewFold(ae.FoldOptions{})
	em, err := ae.NewEmitter(ae.EmitterOptions{Sinks: []ae.Sink{ae.SinkFunc(func(_ context.Context, ev ae.Event) error {
		mu.Lock()
		defer mu.Unlock()
		fold.Apply(ev)
		return nil
	})}})
	require.NoError(t, err)
	run, err := em.Run("r")
	require.NoError(t, err)
	return run, func() *ae.RunSnapshot {
		mu.Lock()
		defer mu.Unlock()
		s := fold.Snapshot()
		require.Empty(t, s.Violations)
		return s
	}
}

func send(to, text string) ae.Command {
	return ae.Command{Type: ae.CommandSend, RunID: to, Message: text}
}

func TestCommandsReachTheirExecution(t *testing.T) {
	run, snapshot := begin(t)
	in := inbox.New(run, inbox.Options{})
	a, b := in.Open("a-1"), in.Open("b-1")
	require.Same(t, a, in.Open("a-1"))
	require.NoError(t, in.Deliver(t.Context(), send("a-1", "one")))
	require.NoError(t, in.Deliver(t.Context(), send("b-1", "other")))
	require.NoError(t, in.Deliver(t.Context(), ae.Command{Type: ae.CommandReply, RunID: "a-1", PromptID: "p", Content: "two"}))
	require.NoError(t, in.Deliver(t.Context(), ae.Command{Type: "pause", RunID: "a-1", Message: "three"}), "a type of the runtime's own")
	require.Len(t, snapshot().Inbox, 4)
	require.Equal(t, 3, a.Waiting())
	for _, want := range []string{"one", "two", "three"} {
		c, err := a.Receive(t.Context())
		require.NoError(t, err)
		require.Equal(t, want, c.Message+c.Content)
	}
	left := snapshot().Inbox
	require.Len(t, left, 1)
	require.Equal(t, "other", left[0].Command.Message)

	require.NoError(t, a.Close(t.Context()))
	require.NoError(t, a.Close(t.Context()))
	_, err := a.Receive(t.Context())
	require.ErrorIs(t, err, io.EOF)
	require.ErrorIs(t, b.Close(t.Context()), inbox.ErrUnread)
	require.Empty(t, snapshot().Inbox, "commands of executions that have ended leave")
}

// A command without a route is recorded unchanged, waits for nobody, and is an error.
func TestCommandsAreRejected(t *testing.T) {
	var received []*ae.CommandReceived
	fold := ae.NewFold(ae.FoldOptions{})
	em, err := ae.NewEmitter(ae.EmitterOptions{Sinks: []ae.Sink{ae.SinkFunc(func(_ context.Context, ev ae.Event) error {
		received = append(received, ev.Payload.(*ae.CommandReceived))
		fold.Apply(ev)
		return nil
	})}})
	require.NoError(t, err)
	run, err := em.Run("r")
	require.NoError(t, err)
	in := inbox.New(run, inbox.Options{Size: 1})
	in.Open("a-1")
	for _, test := range []struct {
		c    ae.Command
		want error
	}{
		{send("", "to whom?"), inbox.ErrNoExecution},
		{send("other", "x"), inbox.ErrUnknown},
		{send("a-1", "x"), nil},
		{send("a-1", "y"), inbox.ErrFull},
		{ae.Command{Type: ae.CommandReply, PromptID: "p", Content: "x"}, inbox.ErrNoExecution},
		{ae.Command{Type: ae.CommandAbort}, nil},
	} {
		err := in.Deliver(t.Context(), test.c)
		require.ErrorIs(t, err, test.want)
		last := received[len(received)-1]
		require.Equal(t, test.c, last.Command)
		if test.want == nil {
			require.NoError(t, err)
			require.Empty(t, last.Rejected)
		} else {
			require.Equal(t, test.want.Error(), last.Rejected)
		}
	}
	require.Len(t, received, 6)
	require.Len(t, fold.Snapshot().Inbox, 1)
}

// An inbox goes on from the snapshot of a run that was resumed.
func TestResumedCommands(t *testing.T) {
	run, snapshot := begin(t)
	in := inbox.New(run, inbox.Options{})
	in.Open("a-1")
	require.NoError(t, in.Deliver(t.Context(), send("a-1", "one")))
	require.NoError(t, in.Deliver(t.Context(), send("a-1", "two")))

	in = inbox.New(run, inbox.Options{Snapshot: snapshot()})
	box := in.Open("a-1")
	require.NoError(t, in.Deliver(t.Context(), send("a-1", "three")))
	for _, want := range []string{"one", "two", "three"} {
		c, err := box.Receive(t.Context())
		require.NoError(t, err)
		require.Equal(t, want, c.Message)
	}
	require.Empty(t, snapshot().Inbox)
}

func TestReceiveWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		run, _ := begin(t)
		in := inbox.New(run, inbox.Options{})
		box := in.Open("a-1")
		ctx, cancel := context.WithCancel(t.Context())
		var got []string
		done := make(chan struct{})
		go func() {
			defer close(done)
			for c, err := range box.All(ctx) {
				require.NoError(t, err)
				got = append(got, c.Message)
			}
		}()
		synctest.Wait()
		require.NoError(t, in.Deliver(t.Context(), send("a-1", "one")))
		synctest.Wait()
		require.Equal(t, []string{"one"}, got)
		cancel()
		<-done
		_, err := box.Receive(ctx)
		require.ErrorIs(t, err, context.Canceled)

		go func() { _ = box.Close(context.Background()) }()
		_, err = box.Receive(context.Background())
		require.ErrorIs(t, err, io.EOF)
	})
}

// Many send at once: each command comes once, and the commands of one sender in its order.
func TestManySenders(t *testing.T) {
	const senders, each = 16, 50
	run, snapshot := begin(t)
	in := inbox.New(run, inbox.Options{Size: senders * each})
	box := in.Open("a-1")
	var all sync.WaitGroup
	for s := range senders {
		all.Go(func() {
			for i := range each {
				if err := in.Deliver(context.Background(), send("a-1", fmt.Sprint(s, " ", i))); err != nil {
					t.Error(err)
				}
			}
		})
	}
	next := map[int]int{}
	for range senders * each {
		c, err := box.Receive(t.Context())
		require.NoError(t, err)
		var s, i int
		_, err = fmt.Sscan(c.Message, &s, &i)
		require.NoError(t, err)
		require.Equal(t, next[s], i)
		next[s]++
	}
	all.Wait()
	require.Empty(t, snapshot().Inbox)
}

// The execution gets the original command even if the log may not have it, until the process ends.
func TestCommandsAreDeliveredAsTheyCame(t *testing.T) {
	run, snapshot := begin(t)
	in := inbox.New(run, inbox.Options{})
	box := in.Open("a-1")
	sent := send("a-1", "Deploy with password=kX9vB2mQ7wLr4TzN")
	require.NoError(t, in.Deliver(t.Context(), sent))
	require.NoError(t, in.Deliver(t.Context(), sent))
	got, err := box.Receive(t.Context())
	require.NoError(t, err)
	require.Equal(t, sent, got)

	s := snapshot()
	require.Len(t, s.Inbox, 1)
	got, err = inbox.New(run, inbox.Options{Snapshot: s}).Open("a-1").Receive(t.Context())
	require.NoError(t, err)
	require.Equal(t, "Deploy with password=[REDACTED:key]", got.Message)
}

// A process that dies before its agent has a command gets it again.
func TestCommandsAreConsumedWhenTheAgentHasThem(t *testing.T) {
	run, snapshot := begin(t)
	_, err := new(inbox.Box).Peek(t.Context())
	require.ErrorIs(t, err, ae.ErrZeroValue)
	in := inbox.New(run, inbox.Options{})
	box := in.Open("a-1")
	require.NoError(t, in.Deliver(t.Context(), send("a-1", "one")))
	require.NoError(t, in.Deliver(t.Context(), send("a-1", "two")))
	item, err := box.Peek(t.Context())
	require.NoError(t, err)
	require.Equal(t, "one", item.Command.Message)

	died := snapshot()
	again := inbox.New(run, inbox.Options{Snapshot: died}).Open("a-1")
	var got []string
	for c, err := range again.All(t.Context()) {
		require.NoError(t, err)
		require.Len(t, snapshot().Inbox, 2-len(got), "the agent does not have it yet")
		if got = append(got, c.Message); len(got) == 2 {
			break
		}
	}
	require.Equal(t, []string{"one", "two"}, got)
	require.Empty(t, snapshot().Inbox)
	require.NoError(t, again.Ack(t.Context(), item.EventID), "it is consumed")
	require.Zero(t, again.Waiting())
}

// Commands of a type of the runtime's own that name no execution are for the run.
func TestCommandsForTheRun(t *testing.T) {
	run, snapshot := begin(t)
	in := inbox.New(run, inbox.Options{})
	pause := ae.Command{Type: "pause", Reason: "lunch"}
	require.NoError(t, in.Deliver(t.Context(), pause))
	require.Len(t, snapshot().Inbox, 1)
	again := inbox.New(run, inbox.Options{Snapshot: snapshot()})
	box := again.Open("")
	require.NoError(t, again.Deliver(t.Context(), ae.Command{Type: "nap"}))
	require.ErrorIs(t, again.Deliver(t.Context(), ae.Command{Type: ae.CommandSend}), inbox.ErrNoExecution)
	require.NoError(t, again.Deliver(t.Context(), ae.Command{Type: ae.CommandAbort, Resumable: ae.Some(true)}))
	for _, want := range []ae.CommandType{"pause", "nap"} {
		c, err := box.Receive(t.Context())
		require.NoError(t, err)
		require.Equal(t, want, c.Type)
	}
	require.Empty(t, snapshot().Inbox)
	require.Zero(t, box.Waiting(), "the caller aborts")
}
