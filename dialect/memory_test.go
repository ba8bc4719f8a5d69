package dialect_test

import (
	"bytes"
	"errors"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect"
	"github.com/agentevents/agentevents/dialect/agui"
	"github.com/agentevents/agentevents/dialect/dialecttest"
	"github.com/agentevents/agentevents/internal/scale"
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

// The memory of an encoder and a decoder does not grow with the log, however many things begin
// and never end. The usual run looks at one format for each shape, the long run at all.
func TestMemoryIsBounded(t *testing.T) {
	const n, most = 4 * dialect.MaxCalls, 512 << 10
	heap := func() int64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	list, long := formats(), os.Getenv("AGENTEVENTS_LONG") != ""
	for i, name := range []string{"agents", "blocks", "open calls", "open model calls", "approvals", "handoffs", "turns", "nodes", "executions of one node", "runs", "ended runs"} {
		at := slices.IndexFunc(scale.Shapes(), func(s scale.Shape) bool { return s.Name == name })
		for j, f := range list {
			if !long && j != i%len(list) || f.name == "agui" && slices.Contains([]string{"blocks", "open calls", "runs"}, name) {
				continue // AG-UI wants ids of messages and calls that are unique in a run, and its runs wait for each other
			}
			t.Run(f.name+"/"+name, func(t *testing.T) {
				enc, dec := f.suite.Encoder(), f.suite.Decoder()
				log := scale.Shapes()[at].Log(n)
				events := bytes.Count(log, []byte("\n"))
				var text []byte
				var decoded []agentevents.Event
				var peaks [4]int64 // of each quarter of the log
				k := 0
				for ev, err := range agentevents.NewReader(bytes.NewReader(log), agentevents.ReaderOptions{}).All() {
					require.NoError(t, err)
					text, _ = enc.Append(text[:0], ev)
					for line := range bytes.Lines(text) {
						decoded, _ = dec.Decode(decoded[:0], bytes.TrimSuffix(line, []byte("\n")))
					}
					if quarter := k * 4 / events; k%(events/32) == 0 {
						clear(decoded)
						peaks[quarter] = max(peaks[quarter], heap())
					}
					k++
				}
				require.Less(t, peaks[3]-peaks[2], int64(most), "%d", peaks)
				runtime.KeepAlive(enc)
				runtime.KeepAlive(dec)
			})
		}
	}
}
