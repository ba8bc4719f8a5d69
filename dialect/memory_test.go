package dialect_test

import (
	"errors"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect"
	"github.com/agentevents/agentevents/dialect/agui"
	"github.com/agentevents/agentevents/dialect/dialecttest"
)

// An encoder that waits for the next event keeps nothing of a long one that it has written,
// or refused: a live handler has an encoder for each reader.
func TestEncodersKeepNoLongEvent(t *testing.T) {
	const size, most = 4 << 20, 64 << 10
	heap := func() int64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	text := func() string { return strings.Repeat("line\n", size/5) }
	value := func() agentevents.JSON { return agentevents.JSON(`"` + strings.Repeat(`line\n`, size/6) + `"`) }
	for _, f := range formats() {
		for name, payload := range map[string]func() agentevents.Payload{
			"result": func() agentevents.Payload {
				return &agentevents.ToolReturned{CallID: "c", ToolID: "t", Status: agentevents.ToolStatusOK, Result: value()}
			},
			"whole call": func() agentevents.Payload {
				return &agentevents.ToolReturned{CallID: "d", ToolID: "t", Status: agentevents.ToolStatusOK, OneEvent: true, Arguments: value(), Result: value()}
			},
			"text":      func() agentevents.Payload { return &agentevents.TextCompleted{Text: text()} },
			"reasoning": func() agentevents.Payload { return &agentevents.AgentReasoned{Reasoning: text()} },
			"message": func() agentevents.Payload {
				return &agentevents.MessageCreated{Message: agentevents.ConversationMessage{MessageID: "m", Content: value()}}
			},
			"patch": func() agentevents.Payload { return &agentevents.StatePatched{Path: "x", Op: "set", Value: value()} },
			"error": func() agentevents.Payload { return &agentevents.AgentErrored{ErrorType: "x", Message: text()} },
			"unknown": func() agentevents.Payload {
				return &agentevents.Unknown{Type: "x.y", Raw: agentevents.JSON(`{"a":`) + value() + `}`}
			},
		} {
			t.Run(f.name+"/"+name, func(t *testing.T) {
				enc := f.suite.Encoder()
				if f.name+" "+name == "agui patch" { // to measure, it has the state that readers have
					enc = agui.NewEncoder(agui.EncoderOptions{Fast: true})
				}
				before := dialecttest.Filled(agentevents.KindAgentStarted)
				before.Sequence = 0
				call := before
				call.Sequence, call.ID, call.Payload = 1, "id-1", &agentevents.ToolCalled{CallID: "c", ToolID: "t", Arguments: `{}`}
				long := func() (ev agentevents.Event) {
					ev = call
					ev.Sequence, ev.ID, ev.Payload = 2, "id-2", payload()
					return ev
				}
				for _, ev := range []agentevents.Event{before, call} {
					_, err := enc.Append(nil, ev)
					require.True(t, err == nil || errors.Is(err, dialect.ErrNoCounterpart), err)
				}
				_, _ = f.suite.Encoder().Append(nil, long()) // the tables of a document are made once
				was := heap()
				_, _ = enc.Append(nil, long())
				if f.name+" "+name == "openharness text" {
					return // the end of the agent has its last text again
				}
				require.Less(t, heap()-was, int64(most))
				runtime.KeepAlive(enc)
			})
		}
	}
}
