package eventtest_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/stretchr/testify/suite"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/eventtest"
)

// waits is an agent that gives a tool a minute.
func waits(ctx context.Context, em *agentevents.Emitter) error {
	run, err := em.Run("r1")
	if err != nil {
		return err
	}
	a := run.Agent("main")
	if err := a.Emit(ctx, &agentevents.AgentStarted{}); err != nil {
		return err
	}
	_, err = a.Do(ctx, &agentevents.ToolCalled{CallID: "c1", ToolID: "wait"}, func(ctx context.Context) (agentevents.JSON, error) {
		select {
		case <-ctx.Done():
			return "", ctx.Err()
		case <-time.After(time.Minute):
			return "", errors.New("too late")
		}
	})
	return errors.Join(err, a.Emit(ctx, &agentevents.AgentEnded{Outcome: agentevents.OutcomePartial}))
}

// A recorder and its emitter live in a bubble: with the fake clock, and with the goroutine of
// a buffer, which ends with the test.
func TestInSynctest(t *testing.T) {
	for name, clock := range map[string]func() time.Time{"the recorder's clock": nil, "the bubble's clock": time.Now} {
		t.Run(name, func(t *testing.T) {
			var began time.Time
			var rec *eventtest.Recorder
			behind := new(eventtest.Recorder)
			synctest.Test(t, func(t *testing.T) {
				began = time.Now()
				var em *agentevents.Emitter
				em, rec = eventtest.RecordWith(t, agentevents.EmitterOptions{
					Lifecycle: agentevents.LifecycleDerived, Clock: clock,
					Sinks: []agentevents.Sink{agentevents.Buffered(behind, 2, agentevents.OverflowBlock)},
				})
				require.EqualError(t, waits(t.Context(), em), "too late")
				synctest.Wait()
				require.Equal(t, rec.Events(), behind.Events())
				rec.Want(t, "agent.started", "agent.toolCalled c1", "agent.toolReturned c1 error", "agent.ended")
				rec.WantLaws(t, eventtest.LawOptions{})
			})
			returned := rec.Find(t, "agent.toolReturned")[0].Time
			if clock != nil {
				require.Equal(t, time.Minute, returned.Sub(began))
			}
			rec.Golden(t, "testdata/waits.jsonl") // of both
		})
	}
}

// A suite of testify has its own T.
type agentSuite struct {
	suite.Suite
	em  *agentevents.Emitter
	rec *eventtest.Recorder
}

func (s *agentSuite) SetupTest() {
	s.em, s.rec = eventtest.RecordWith(s.T(), agentevents.EmitterOptions{Lifecycle: agentevents.LifecycleDerived})
}

func (s *agentSuite) TestAgent() {
	ctx, cancel := context.WithCancel(s.T().Context())
	cancel()
	s.Require().ErrorIs(waits(ctx, s.em), context.Canceled)
	s.rec.Want(s.T(), "agent.toolCalled wait", "agent.toolReturned c1 cancelled")
	s.Len(s.rec.Find(s.T(), "agent.toolCalled"), 1)
	s.Equal("wait", eventtest.Payloads[*agentevents.ToolCalled](s.rec.Events())[0].ToolID)
	s.NoError(eventtest.CheckLaws(s.rec.Events(), eventtest.LawOptions{}))
}

func TestInSuite(t *testing.T) { suite.Run(t, new(agentSuite)) }
