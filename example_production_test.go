package agentevents_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	ae "github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/logfile"
)

// README:
// openLog returns the emitter of a service. It is made once.
func openLog(path string, dashboard ae.Sink, secrets *ae.Secrets) (*ae.Emitter, error) {
	log, err := logfile.Open(path, logfile.Options{MaxBytes: 256 << 20, Compress: true})
	if err != nil {
		return nil, err
	}
	return ae.NewEmitter(ae.EmitterOptions{
		Mode: ae.ModeObserve,
		Sinks: []ae.Sink{
			log, // required: its errors come back from Emit
			ae.BestEffort(ae.Buffered(dashboard, 1024, ae.OverflowDropOldest)),
		},
		Redaction:   &ae.Policy{Secrets: secrets, Keys: []string{"badge_no"}, Reasoning: ae.VerbositySummary},
		OnError:     func(err error) { slog.Error("agent log", "error", err) },
		OnViolation: func(v *ae.RuleError) { slog.Error("agent log", "violation", v) },
		MaxRuns:     10_000,
		MaxLine:     1 << 20,
	})
}

// closeLog flushes and closes the sinks when the service stops.
func closeLog(em *ae.Emitter) error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	return em.Close(ctx)
}

// end

// The README's production setup.
func Example_production() {
	dir, err := os.MkdirTemp("", "production")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	secrets := new(ae.Secrets)
	if err := secrets.Add("tiger-7421"); err != nil {
		fmt.Println(err)
	}
	dashboard := ae.SinkFunc(func(_ context.Context, ev ae.Event) error {
		if p, ok := ev.Payload.(*ae.TextCompleted); ok {
			fmt.Println("dashboard:", p.Text)
		}
		return nil
	})
	em, err := openLog(filepath.Join(dir, "run.jsonl"), dashboard, secrets)
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	run, err := em.Run("")
	if err != nil {
		fmt.Println(err)
		return
	}
	chat := run.Agent("chat")
	chat.Emit(ctx, &ae.AgentStarted{})
	chat.Emit(ctx, &ae.TextCompleted{Text: "The code is tiger-7421."})
	chat.Emit(ctx, &ae.AgentEnded{Outcome: ae.OutcomeConverged})
	run.Emit(ctx, &ae.RunCompleted{})
	fmt.Println("closed:", closeLog(em) == nil)
	// Output:
	// dashboard: The code is [REDACTED:secret].
	// closed: true
}
