package report

import (
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	ae "github.com/agentevents/agentevents"
)

// A prompt may be a list of messages, with the role and content of each in a member.
func TestPrompt(t *testing.T) {
	for prompt, want := range map[ae.JSON]string{
		`"do it"`:               "do it",
		`[{"content":"do it"}]`: "do it",
		`[{"type":"user","message":{"role":"user","content":[{"type":"text","text":"do it"}]}}]`: "do it",
		`[{"content":5}]`: "",
		`[{"content":"be short"},{"content":"do it"}]`:      "do it (after: be short)",
		`[{"content":"a"},{"content":"b"},{"content":"c"}]`: "c (after: a; b)",
	} {
		require.Equal(t, want, promptText(prompt), string(prompt))
	}
}

// An answer that nobody gave is no refusal.
func TestAnswer(t *testing.T) {
	for own, want := range map[string]struct {
		word string
		mark Mark
	}{
		"": {"rejected", Bad}, "denied": {"rejected (denied)", Bad}, "refine": {"refine", None},
		"timeout": {"timeout", Warn}, "expired": {"expired", Warn}, "interrupted": {"interrupted", Warn},
	} {
		word, mark := Answer(false, own)
		require.Equal(t, want.word, word)
		require.Equal(t, want.mark, mark, own)
	}
}

func TestShort(t *testing.T) {
	require.Equal(t, strings.Repeat("ä", maxNote)+"…", short(strings.Repeat("ä", 10*maxNote), maxNote))
}

func TestTextOfValue(t *testing.T) {
	for value, want := range map[ae.JSON]string{
		`{}`: "", `null`: "", ``: "", `"a\nb"`: "a b", `{"a":1}`: `{"a":1}`,
		`{"truncated":{"bytes":2000,"sha256":"6f1e","head":"\"AAA"}}`:   "cut, 2000 bytes: AAA",
		`{"truncated":{"bytes":2000,"sha256":"6f1e","head":"{\"a\":"}}`: `cut, 2000 bytes: {"a":`,
		`{"truncated":true}`: `{"truncated":true}`,
	} {
		require.Equal(t, want, valueText(value), string(value))
	}
}

// An edge is one line, however often it is taken, and events that come again count once.
func TestEdges(t *testing.T) {
	var d Details
	f := ae.NewFold(ae.FoldOptions{})
	for i, p := range []ae.Payload{
		&ae.RunStarted{}, &ae.EdgeFired{From: "a", To: "b"}, &ae.EdgeSkipped{From: "a", To: "c"}, &ae.EdgeFired{From: "a", To: "b"},
		&ae.LoopIterated{EdgeID: "e", Iteration: 1}, &ae.LoopIterated{EdgeID: "e", Iteration: 2}, &ae.EdgeSkipped{From: "a", To: "b"},
	} {
		ev := ae.Event{RunID: "r", ID: string(rune('a' + i)), Sequence: uint64(i), Payload: p}
		for range 2 {
			d.Add(&ev)
		}
		f.Apply(ev)
	}
	var got []string
	for _, i := range Of(f.Snapshot(), &d) {
		require.Equal(t, Edge, i.Topic)
		got = append(got, strings.Repeat(i.Subject+" "+i.Status+"|", i.Times()))
	}
	require.Equal(t, []string{"edge a → b taken|edge a → b taken|", "edge a → c skipped|", "loop e iteration 2|", "edge a → b skipped|"}, got)
}

// A text before a call is not the answer, of a turn and of an agent.
func TestTextBeforeACall(t *testing.T) {
	text, call := &ae.TextCompleted{Text: "I run the tests:"}, &ae.ToolCalled{CallID: "c", ToolID: "t"}
	for name, c := range map[string]struct {
		acts []ae.Payload
		want []Topic
	}{
		"before":     {[]ae.Payload{text, call, &ae.ToolReturned{CallID: "c", ToolID: "t"}}, []Topic{Said}},
		"after":      {[]ae.Payload{call, &ae.ToolReturned{CallID: "c", ToolID: "t"}, text}, []Topic{Answered}},
		"without it": {[]ae.Payload{text}, []Topic{Answered}},
	} {
		var d Details
		f := ae.NewFold(ae.FoldOptions{})
		all := append([]ae.Payload{&ae.RunStarted{}, &ae.AgentStarted{}, &ae.TurnStarted{}}, c.acts...)
		for i, p := range append(all, &ae.TurnEnded{}, &ae.AgentEnded{Outcome: ae.OutcomeConverged}, &ae.RunCompleted{}) {
			ev := ae.Event{RunID: "r", AgentID: "a", ID: string(rune('a' + i)), Sequence: uint64(i), Payload: p}
			d.Add(&ev)
			f.Apply(ev)
		}
		var got []Topic
		for _, i := range Of(f.Snapshot(), &d) {
			if i.Topic == Answered || i.Topic == Said {
				got = append(got, i.Topic)
			}
		}
		require.Equal(t, c.want, got, name)
	}
}

// A run that the user stopped is cancelled. One without an end may be at work: it is not called killed.
func TestCauseOfInterruption(t *testing.T) {
	err := ae.Some(ae.ErrorInfo{Code: "interrupted", Message: "no end"})
	require.Equal(t, "interrupted", Cause(&ae.RunSnapshot{Status: ae.RunStatusFailed, Error: err}))
	require.Empty(t, Cause(&ae.RunSnapshot{Status: ae.RunStatusCancelled, Error: err}))
}

// Each turn has its prompt: the first message of a user in it.
func TestPromptsOfTurns(t *testing.T) {
	var d Details
	f := ae.NewFold(ae.FoldOptions{})
	n := 0
	add := func(p ae.Payload) {
		ev := ae.Event{RunID: "r", ID: strconv.Itoa(n), Sequence: uint64(n), AgentID: "a", Payload: p}
		n++
		d.Add(&ev)
		f.Apply(ev)
	}
	user := func(text string) {
		add(&ae.MessageCreated{Message: ae.ConversationMessage{MessageID: strconv.Itoa(n), From: "user", To: "a", Content: ae.JSON(strconv.Quote(text)), TS: 1}})
	}
	add(&ae.AgentStarted{Prompt: `"one"`})
	for i, prompts := range [][]string{{"one"}, {"two", "and more"}, {"one"}} {
		add(&ae.TurnStarted{Turn: ae.Some(i + 1)})
		for _, prompt := range prompts {
			user(prompt)
		}
		add(&ae.TurnEnded{Turn: ae.Some(i + 1)})
	}
	var asked []string
	for _, i := range Of(f.Snapshot(), &d) {
		if i.Topic == Asked && i.Turn != "" {
			asked = append(asked, i.Text)
		}
	}
	require.Equal(t, []string{"one", "two", "one"}, asked)
}
