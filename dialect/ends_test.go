package dialect_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents"
)

// Whatever the format, the first end of a run stands: a second one changes neither the
// status nor the reason.
func TestFirstEndStandsInEveryFormat(t *testing.T) {
	ends := []agentevents.Payload{
		&agentevents.RunCompleted{}, &agentevents.RunFailed{Error: agentevents.Some(agentevents.ErrorInfo{Code: "E", Message: "tool raised"})},
		&agentevents.RunCancelled{Reason: "stopped"},
	}
	for _, f := range formats() {
		t.Run(f.name, func(t *testing.T) {
			tried := 0
			written := map[agentevents.Kind][]string{}
			for _, end := range ends {
				e, text := f.suite.Encoder(), []byte(nil)
				for i, p := range []agentevents.Payload{&agentevents.RunStarted{}, end} {
					ev := agentevents.Event{ID: string(rune('a' + i)), Sequence: uint64(i), RunID: "r", Time: time.Date(2026, 5, 5, 9, 0, i, 0, time.UTC), SchemaVersion: "1.0", Payload: p}
					text, _ = e.Append(text, ev) // a format without the kind has no line
				}
				text, _ = e.End(text)
				written[ev(end)] = strings.SplitAfter(string(text), "\n")
			}
			for _, first := range ends {
				for _, second := range ends {
					one, other := written[ev(first)], written[ev(second)]
					if len(one) < 2 || len(other) < 2 || one[0] == "" {
						continue
					}
					want, got := foldText(f, strings.Join(one, "")), foldText(f, strings.Join(one, "")+strings.Join(other[len(other)-2:], ""))
					if want == nil || want.TerminalKind == "" || got == nil {
						continue // the format has no end of a run
					}
					tried++
					require.Equal(t, want.Status, got.Status, "%T, %T", first, second)
					require.Equal(t, want.Error, got.Error)
					require.Equal(t, want.CancelReason, got.CancelReason)
				}
			}
			want := 0
			if name, _, _ := strings.Cut(f.name, ":"); name == "agui" || name == "openharness" || name == "openwop" {
				want = len(ends) * len(ends)
			}
			require.Equal(t, want, tried, "pairs; the other documents have no end of a run")
		})
	}
}

func ev(p agentevents.Payload) agentevents.Kind { e := agentevents.Event{Payload: p}; return e.Kind() }

// foldText returns the state of the first run of a text.
func foldText(f format, text string) *agentevents.RunSnapshot {
	log, _ := agentevents.FoldLog(agentevents.NewReader(strings.NewReader(text), agentevents.ReaderOptions{Decoder: f.suite.Decoder()}), agentevents.FoldOptions{})
	for s := range log.Drain() {
		return s
	}
	return nil
}
