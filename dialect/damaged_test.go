package dialect_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	ae "github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect"
	"github.com/agentevents/agentevents/dialect/kahn"
	"github.com/agentevents/agentevents/dialect/multiagent"
	"github.com/agentevents/agentevents/dialect/openharness"
	"github.com/agentevents/agentevents/dialect/openwop"
)

func TestDamaged(t *testing.T) {
	const bad = "a\xffb"
	line := []byte("a\ufffdb")
	ev := ae.Event{Payload: &ae.AgentEnded{
		Result: bad, Error: ae.Some(ae.ErrorInfo{Message: bad}), ModelUsage: map[string]ae.Usage{"m\xfe/x": {}},
	}}
	require.ElementsMatch(t, []string{"/payload/result", "/payload/error/message", "/payload/modelUsage/m\xfe~1x"}, dialect.Damaged(&ev, line))
	ev.Payload = &ae.AgentEnded{Error: ae.Opt[ae.ErrorInfo]{V: ae.ErrorInfo{Message: bad}}}
	require.Empty(t, dialect.Damaged(&ev, line), "there is no error")
	ev.Payload = &ae.ClarificationRequested{Questions: []ae.Question{{Question: "\ufffd"}, {Question: bad}}}
	require.Equal(t, []string{"/payload/questions/1/question"}, dialect.Damaged(&ev, line))
	require.Empty(t, dialect.Damaged(&ev, []byte("ok，")), "the line does not have it")
	ev.Payload = nil
	require.Empty(t, dialect.Damaged(&ev, line))
}

// Replacing text that is not UTF-8 is always a listed loss.
func TestDamagedTextIsListed(t *testing.T) {
	for name, c := range map[string]struct {
		enc      dialect.Encoder
		payloads func(text string) []ae.Payload
		pointer  string
	}{
		"kahn": {kahn.NewEncoder(kahn.EncoderOptions{}), func(s string) []ae.Payload { return []ae.Payload{&ae.AgentStarted{Task: s}} }, "/payload/task"},
		"kahn, of a call": {kahn.NewEncoder(kahn.EncoderOptions{}), func(s string) []ae.Payload {
			return []ae.Payload{&ae.ToolCalled{CallID: "c", ToolID: "t", ArgumentsSummary: s}, &ae.ToolReturned{CallID: "c", ToolID: "t", Status: ae.ToolStatusOK}}
		}, "/payload/argumentsSummary"},
		"multiagent":  {multiagent.NewEncoder(multiagent.EncoderOptions{}), func(s string) []ae.Payload { return []ae.Payload{&ae.WorkflowCreated{Script: s}} }, "/payload/script"},
		"openharness": {openharness.NewEncoder(openharness.EncoderOptions{}), func(s string) []ae.Payload { return []ae.Payload{&ae.TextCompleted{Text: s}} }, "/payload/text"},
		"openwop":     {openwop.NewEncoder(openwop.EncoderOptions{}), func(s string) []ae.Payload { return []ae.Payload{&ae.AgentReasoned{Reasoning: s}} }, "/payload/reasoning"},
	} {
		write := func(text string) (out string) {
			for i, p := range c.payloads(text) {
				ev := ae.Event{ID: fmt.Sprint("e", len(text)), Sequence: uint64(i), Time: time.Date(2026, 5, 5, 9, 0, i, 0, time.UTC), RunID: "r", AgentID: "a", Payload: p}
				ev.NodeID, ev.NodeRunID, ev.WorkflowID = "n", "x", "w"
				line, err := c.enc.Append(nil, ev)
				require.NoError(t, err, name)
				out += string(line)
			}
			return out
		}
		listed := func() (pointers []string) {
			for _, l := range c.enc.Losses() {
				if l.Detail == dialect.DamagedText {
					require.Equal(t, dialect.Altered, l.What)
					pointers = append(pointers, l.Pointer)
				}
			}
			return pointers
		}
		whole := write("a\ufffdb")
		require.Contains(t, whole, "a\ufffdb", name)
		require.Empty(t, listed(), name)
		require.Equal(t, strings.Count(whole, "\ufffd"), strings.Count(write("a\xffb"), "\ufffd"), name)
		require.Equal(t, []string{c.pointer}, listed(), name)
	}
}
