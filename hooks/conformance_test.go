package hooks_test

import (
	"errors"
	"io"
	"log/slog"
	"testing"
	"time"

	ae "github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/eventtest"
	"github.com/agentevents/agentevents/hooks"
)

// brokenWriter is where a logger writes in vain.
type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, errors.New("the pipe is gone") }

func TestLoggerConforms(t *testing.T) {
	logger := func(w io.Writer) ae.Sink {
		return hooks.Slog{To: slog.New(slog.NewJSONHandler(w, &slog.HandlerOptions{Level: slog.LevelDebug})), Content: true}
	}
	eventtest.SinkTest{
		New:    func(testing.TB) ae.Sink { return logger(io.Discard) },
		Broken: func(testing.TB) ae.Sink { return logger(brokenWriter{}) },
	}.Run(t)
}

func TestBreakerConforms(t *testing.T) {
	eventtest.SinkTest{
		New: func(testing.TB) ae.Sink {
			b := hooks.Breaker{Limits: hooks.Limits{Tokens: 1 << 30, WallClock: time.Hour}}
			return b.Install(ae.EmitterOptions{}).Sinks[0]
		},
	}.Run(t)
}
