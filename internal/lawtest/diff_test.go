package lawtest

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/internal/rundiff"
)

func diffLog(t tester, events []agentevents.Event) *rundiff.Log {
	log := new(rundiff.Log)
	for i := range events {
		require.NoError(t, log.Add(&events[i]))
	}
	return log
}

// A run equals itself, also with other ids and at another time.
func TestDiffOfTheSameRun(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		events := anyRun(t).Events
		log := diffLog(t, events)
		require.True(t, rundiff.Compare(log, log).Same)
		var again []agentevents.Event
		for _, ev := range events {
			again = append(again, renamed(t, ev))
		}
		r := rundiff.Compare(log, diffLog(t, again))
		if !r.Same {
			var text strings.Builder
			require.NoError(t, r.Write(&text, rundiff.Options{}))
			t.Fatal(text.String())
		}
	})
}

// renamed returns the event as another run of the program has it.
func renamed(t tester, ev agentevents.Event) agentevents.Event {
	line, err := ev.AppendJSON(nil)
	require.NoError(t, err)
	var members map[string]json.RawMessage
	require.NoError(t, json.Unmarshal(line, &members))
	var rename func(raw json.RawMessage) json.RawMessage
	rename = func(raw json.RawMessage) json.RawMessage {
		var of map[string]json.RawMessage
		if json.Unmarshal(raw, &of) != nil {
			return raw
		}
		for _, name := range [...]string{"callId", "modelCallId", "retryOf", "messageId", "blockId", "approvalId", "interruptId", "handoffId", "requestId", "responseId", "providerSessionId", "eventId"} {
			var id string
			if json.Unmarshal(of[name], &id) == nil && id != "" {
				of[name] = json.RawMessage(agentevents.JSONString("other " + id))
			}
		}
		if inner := of["message"]; inner != nil {
			of["message"] = rename(inner)
		}
		if of["durationMs"] != nil {
			of["durationMs"] = json.RawMessage("12345")
		}
		text, err := json.Marshal(of)
		require.NoError(t, err)
		return text
	}
	if _, unknown := ev.Payload.(*agentevents.Unknown); !unknown {
		members["payload"] = rename(members["payload"])
	}
	line, err = json.Marshal(members)
	require.NoError(t, err)
	var own agentevents.Event
	require.NoError(t, json.Unmarshal(line, &own))
	own.ID = "other " + ev.ID
	own.Time = ev.Time.Add(time.Hour)
	return own
}

// Two runs differ as they do the other way round, and no act of either is lost.
func TestDiffOfTwoRuns(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := anyRun(t).Events
		b := a
		if rapid.Bool().Draw(t, "another") {
			b = anyRun(t).Events
		}
		b = slices.DeleteFunc(slices.Clone(b), func(agentevents.Event) bool { return rapid.IntRange(0, 9).Draw(t, "without") == 0 })
		logA, logB := diffLog(t, a), diffLog(t, b)
		there, back := counts(t, rundiff.Compare(logA, logB), false), counts(t, rundiff.Compare(logB, logA), true)
		require.Equal(t, there, back)
	})
}

// counts returns how much each pair of agents has in common, as A and B or as B and A.
func counts(t tester, r *rundiff.Report, mirrored bool) map[string]int {
	out := map[string]int{}
	for _, run := range r.Runs {
		for _, agent := range run.Agents {
			var same, onlyA, onlyB, changed int
			for _, s := range agent.Acts {
				same += s.Same
				switch {
				case s.Same > 0:
				case s.B == nil:
					onlyA++
				case s.A == nil:
					onlyB++
				default:
					changed++
				}
			}
			idA, idB := "none", "none"
			if agent.A != nil {
				idA = "agent " + agent.A.ID
				require.Equal(t, agent.A.Acts, same+changed+onlyA)
			}
			if agent.B != nil {
				idB = "agent " + agent.B.ID
				require.Equal(t, agent.B.Acts, same+changed+onlyB)
			}
			require.True(t, !agent.Same || changed+onlyA+onlyB == 0)
			if mirrored {
				idA, idB, onlyA, onlyB = idB, idA, onlyB, onlyA
			}
			out[fmt.Sprintf("%s, %s: %d %d %d", idA, idB, same, onlyA, onlyB)] = changed
		}
	}
	return out
}
