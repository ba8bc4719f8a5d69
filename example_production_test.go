package agentevents_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	ae "github.com/agentevents/agentevents"
)

// The README's production setup. TestReadmeProduction holds the README to it.
func Example_production() {
	dir, err := os.MkdirTemp("", "production")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "run.jsonl")
	dashboard := ae.SinkFunc(func(context.Context, ae.Event) error { return nil })
	logError := func(err error) { slog.Error("agent log", "error", err) }
	logViolation := func(err *ae.RuleError) { slog.Warn("agent log", "violation", err) }
	// README:
	log, err := ae.OpenFile(path, ae.WriterOptions{})
	em, err := ae.NewEmitter(ae.EmitterOptions{
		Lifecycle: ae.LifecycleDerived, Mode: ae.ModeObserve,
		Sinks:   []ae.Sink{log, ae.BestEffort(ae.Buffered(dashboard, 1024, ae.OverflowDropOldest))},
		OnError: logError, OnViolation: logViolation,
	})
	// end
	if err != nil {
		fmt.Println(err)
		return
	}
	run, err := em.Run("")
	if err != nil {
		fmt.Println(err)
		return
	}
	// An answer without a tool: the strict table refuses it.
	chat := run.Agent("chat")
	fmt.Println(chat.Emit(context.Background(), &ae.AgentStarted{}), chat.To(context.Background(), ae.StatusResponse, ae.StatusConverged))
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	fmt.Println(em.Close(ctx))
	// Output:
	// <nil> <nil>
	// <nil>
}

// TestReadmeProduction compares the README's production setup with the one that
// runs.
func TestReadmeProduction(t *testing.T) {
	source, err := os.ReadFile("example_production_test.go")
	require.NoError(t, err)
	readme, err := os.ReadFile("README.md")
	require.NoError(t, err)
	_, code, _ := strings.Cut(string(source), "\t// README:\n")
	code, _, ok := strings.Cut(code, "\t// end\n")
	require.True(t, ok)
	require.Contains(t, string(readme), strings.ReplaceAll("\n"+code, "\n\t", "\n"), "the README's code is not the example's")
}
