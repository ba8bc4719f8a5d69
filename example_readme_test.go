package agentevents_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	ae "github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/logfile"
	"github.com/stretchr/testify/require"
)

// The README's refused event.
func Example_refused() {
	ctx := context.Background()
	em, err := ae.NewEmitter(ae.EmitterOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	run, err := em.Run("r1")
	if err != nil {
		fmt.Println(err)
		return
	}
	coder := run.Agent("coder")
	if err := coder.Emit(ctx, &ae.AgentStarted{}); err != nil {
		fmt.Println(err)
	}
	// README:
	err = coder.Emit(ctx, &ae.ToolReturned{CallID: "toolu_9", ToolID: "Read", Status: ae.ToolStatusOK})
	fmt.Println(err)
	// end

	// Output:
	// agentevents: agent.toolReturned: agent "coder" has no open call with this id; legal: agent.toolCalled first, or oneEvent; call "toolu_9" is not open (rule tool-call-open, run "r1", sequence 2)
}

// pages returns the text of the README and of the pages in docs.
func pages(t *testing.T) string {
	t.Helper()
	names, err := filepath.Glob("docs/*.md")
	require.NoError(t, err)
	require.NotEmpty(t, names)
	var all strings.Builder
	for _, name := range append([]string{"README.md"}, names...) {
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		all.Write(text)
	}
	return all.String()
}

// Each Go block of the README and the docs is code that runs: the first program, whose
// package tests it, or a part of the examples of this package between two marks. The pages
// show the output of these examples.
func TestPages(t *testing.T) {
	text := pages(t)
	var shown []string
	for rest := text; ; {
		_, after, ok := strings.Cut(rest, "\n```go\n")
		if !ok {
			break
		}
		block, next, ok := strings.Cut(after, "```\n")
		require.True(t, ok, "a block is not closed")
		shown, rest = append(shown, block), next
	}
	first, err := os.ReadFile("examples/hello/main.go")
	require.NoError(t, err)
	_, program, _ := strings.Cut(string(first), "\npackage main\n")
	run := []string{"package main\n" + program}

	names, err := filepath.Glob("example_*_test.go")
	require.NoError(t, err)
	for _, name := range names {
		source, err := os.ReadFile(name)
		require.NoError(t, err)
		for rest := string(source); ; {
			before, after, ok := strings.Cut(rest, "// README:\n")
			if !ok {
				break
			}
			block, next, ok := strings.Cut(after, "// end\n")
			require.True(t, ok, "%s: a block has no end", name)
			indent := before[strings.LastIndexByte(before, '\n')+1:]
			var code strings.Builder
			for line := range strings.Lines(block) {
				code.WriteString(strings.TrimPrefix(line, indent))
			}
			run, rest = append(run, strings.TrimSpace(code.String())+"\n"), next
			_, output, _ := strings.Cut(next, "// Output:\n")
			if indent == "" {
				continue // a function, which examples call
			}
			output, _, _ = strings.Cut(output, "}\n")
			for line := range strings.Lines(output) {
				line = strings.TrimPrefix(line, "\t// ")
				require.True(t, strings.Contains(text, line), "no page shows the output: %s", line)
			}
		}
	}
	drawn, err := os.ReadFile("adapter/eino/testdata/agenttool-whole.txt")
	require.NoError(t, err)
	require.Contains(t, text, "```\n"+string(drawn)+"```\n")
	slices.Sort(shown)
	slices.Sort(run)
	require.Equal(t, run, shown, "the code of the pages is not the examples'")
}

// The README is a page to decide by. Everything else is in docs.
func TestReadmeIsShort(t *testing.T) {
	text, err := os.ReadFile("README.md")
	require.NoError(t, err)
	require.LessOrEqual(t, len(text), 9000)
}

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
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
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
