package agentevents

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The tests break rules on purpose, mostly without hooks. The program's log would hide a failure.
func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler))
	os.Exit(m.Run())
}

// logged returns the lines that a function writes to the program's log.
func logged(t *testing.T, do func()) []string {
	t.Helper()
	var text bytes.Buffer
	before := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(&text, nil)))
	defer slog.SetDefault(before)
	do()
	return strings.Split(strings.TrimSuffix(text.String(), "\n"), "\n")
}

var errBroken = errors.New("broken pipe")

func brokenSink(context.Context, Event) error { return errBroken }

func TestAnErrorThatNoHookHearsIsLoggedOnceARun(t *testing.T) {
	for name, c := range map[string]struct {
		options EmitterOptions
		want    []string // one for each line of a run
	}{
		"a refusal":           {EmitterOptions{}, []string{"agent.toolReturned"}},
		"a violation":         {EmitterOptions{Mode: ModeObserve}, []string{"agent.toolReturned"}},
		"a required sink":     {EmitterOptions{Sinks: []Sink{SinkFunc(brokenSink)}}, []string{"broken pipe", "agent.toolReturned"}},
		"a best-effort sink":  {EmitterOptions{Sinks: []Sink{BestEffort(SinkFunc(brokenSink))}}, []string{"broken pipe", "agent.toolReturned"}},
		"hooks do nothing":    {EmitterOptions{Sinks: []Sink{SinkFunc(brokenSink)}, OnError: func(error) {}, OnViolation: func(*RuleError) {}}, nil},
		"only OnError is set": {EmitterOptions{Sinks: []Sink{SinkFunc(brokenSink)}, OnError: func(error) {}}, []string{"agent.toolReturned"}},
	} {
		t.Run(name, func(t *testing.T) {
			e, err := NewEmitter(c.options)
			require.NoError(t, err)
			lines := logged(t, func() {
				for _, id := range []string{"r1", "r2"} {
					run, err := e.Run(id)
					require.NoError(t, err)
					for range 3 {
						_ = run.Agent("a").Emit(t.Context(), &AgentStarted{})
						_ = run.Agent("a").Emit(t.Context(), &ToolReturned{CallID: "nobody's", ToolID: "t", Status: ToolStatusOK})
					}
				}
			})
			if c.want == nil {
				require.Equal(t, []string{""}, lines)
				return
			}
			require.Len(t, lines, 2*len(c.want))
			for i, line := range lines {
				require.Contains(t, line, "level=WARN")
				require.Contains(t, line, c.want[i%len(c.want)])
				require.Contains(t, line, []string{`run \"r1\"`, `run \"r2\"`}[i/len(c.want)])
				require.Contains(t, line, "hint=")
			}
		})
	}
}

func TestAHandlerOfTheProgramsLogMayPanic(t *testing.T) {
	before := slog.Default()
	defer slog.SetDefault(before)
	slog.SetDefault(slog.New(panickingHandler{before.Handler()}))
	e, err := NewEmitter(EmitterOptions{})
	require.NoError(t, err)
	run, err := e.Run("r")
	require.NoError(t, err)
	var rule *RuleError
	require.ErrorAs(t, run.Emit(t.Context(), &ApprovalGranted{ApprovalID: "nobody asked"}), &rule)
}

type panickingHandler struct{ slog.Handler }

func (panickingHandler) Handle(context.Context, slog.Record) error { panic("handler") }

func TestNilAgentRunsTheTool(t *testing.T) {
	for name, a := range map[string]*Agent{"nil": nil, "zero": {}, "of a context without one": AgentFromContext(t.Context())} {
		t.Run(name, func(t *testing.T) {
			result, err := a.Do(t.Context(), &ToolCalled{ToolID: "read"}, func(ctx context.Context) (JSON, error) {
				require.NotNil(t, ctx)
				return `"text"`, errBroken
			})
			require.Equal(t, JSON(`"text"`), result)
			require.Equal(t, errBroken, err)
		})
	}
}
