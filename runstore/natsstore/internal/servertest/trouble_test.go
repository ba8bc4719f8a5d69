package servertest

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	ae "github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/runstore"
	"github.com/agentevents/agentevents/runstore/natsstore"
)

// patch is an event of an emitter.
func patch(n int) ae.Payload {
	return &ae.StatePatched{Path: "n", Op: "set", Value: ae.JSON(fmt.Sprint(n))}
}

// A run goes on, and has every event once, after its server was away, and after it was too slow to
// answer in time.
func TestARunGoesOnAfterTrouble(t *testing.T) {
	nodes := cluster(t, 1, "")
	first := connect(t, nodes...)
	js, err := jetstream.New(first.Conn(), jetstream.WithDefaultTimeout(500*time.Millisecond))
	require.NoError(t, err)
	for name, trouble := range map[string]struct{ begin, end func() }{
		"away": {nodes[0].kill, nodes[0].start},
		"slow": {
			func() { require.NoError(t, nodes[0].cmd.Process.Signal(syscall.SIGSTOP)) },
			func() { require.NoError(t, nodes[0].cmd.Process.Signal(syscall.SIGCONT)) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, _ := newStore(t, js, natsstore.Options{})
			em, err := ae.NewEmitter(ae.EmitterOptions{Sinks: []ae.Sink{runstore.NewSink(s)}, OnError: func(error) {}})
			require.NoError(t, err)
			run, err := em.Run("r")
			require.NoError(t, err)
			require.NoError(t, run.Emit(t.Context(), &ae.RunStarted{}))
			trouble.begin()
			n := 0
			for failed := 0; failed < 3 && n < 1000; n++ { // a process that is stopped may answer for a moment
				err := run.Emit(t.Context(), patch(n))
				if err == nil {
					continue
				}
				failed++
				var sink *ae.SinkError
				require.ErrorAs(t, err, &sink)
				require.ErrorContains(t, err, `appending to run "r"`)
				require.NotErrorIs(t, err, ae.ErrFenced)
			}
			trouble.end()
			require.Eventually(t, func() bool { return em.Flush(t.Context()) == nil }, time.Minute, 50*time.Millisecond)
			require.NoError(t, run.Emit(t.Context(), &ae.RunCompleted{}))
			got := sequences(t, s, "r", 0)
			require.Less(t, n, 1000, "no call failed")
			require.Len(t, got, n+2)
			for i, seq := range got {
				require.EqualValues(t, i, seq)
			}
		})
	}
}

// A credential that may not write the subject is named in the error: the client alone only hears
// no answer.
func TestRefusedAppend(t *testing.T) {
	nodes := cluster(t, 1, `authorization { users = [{user: a, password: b}, {user: r, password: r, permissions: {publish: ["$JS.>", "_INBOX.>"]}}] }`)
	plain := nodes[0].url
	nodes[0].url = strings.Replace(plain, "nats://", "nats://a:b@", 1)
	js := connect(t, nodes...)
	s, o := newStore(t, js, natsstore.Options{})
	limited, err := jetstream.New(dial(t, strings.Replace(plain, "nats://", "nats://r:r@", 1)).Conn(), jetstream.WithDefaultTimeout(500*time.Millisecond))
	require.NoError(t, err)
	refused := open(t, limited, o)
	err = refused.Append(t.Context(), "r", 0, event(t, "r", 0, 1))
	require.ErrorIs(t, err, nats.ErrPermissionViolation)
	require.NoError(t, s.Append(t.Context(), "r", 0, event(t, "r", 0, 1)), "nothing was written")
	require.NoError(t, refused.Append(t.Context(), "r", 0, event(t, "r", 0, 1)), "it has read that it is there")

	_, err = nats.Connect(strings.Replace(plain, "nats://", "nats://a:wrong@", 1))
	require.ErrorIs(t, err, nats.ErrAuthorization)
}

// A server that is older than 2.12 has no atomic batches, and leaves out the settings that it does
// not know. Its answers are given here by a client of a server without JetStream.
func TestOlderServer(t *testing.T) {
	n := cluster(t, 1, "")[0]
	nc := dial(t, n.url).Conn()
	var asked []string
	answer, err := nc.Subscribe("OLD.API.STREAM.>", func(m *nats.Msg) {
		asked = append(asked, m.Subject)
		var config map[string]any
		if json.Unmarshal(m.Data, &config) != nil || config["name"] == nil {
			_ = m.Respond([]byte(`{"error":{"code":404,"err_code":10059,"description":"stream not found"}}`))
			return
		}
		delete(config, "allow_atomic")
		text, _ := json.Marshal(map[string]any{"type": "io.nats.jetstream.api.v1.stream_create_response", "config": config, "created": time.Now(), "state": map[string]any{}})
		_ = m.Respond(text)
	})
	require.NoError(t, err)
	defer func() { _ = answer.Unsubscribe() }()
	js, err := jetstream.NewWithAPIPrefix(nc, "OLD.API")
	require.NoError(t, err)
	err = natsstore.Create(t.Context(), js, natsstore.Options{})
	require.NotEmpty(t, asked)
	require.ErrorContains(t, err, "2.12")
	require.False(t, errors.Is(err, nats.ErrTimeout), err)
}
