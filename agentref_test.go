package agentevents

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSharing(t *testing.T) {
	for _, c := range []struct {
		sharing AgentSharing
		group   string
		byGroup bool
		known   bool
	}{
		{SharingIsolated, "", false, true},
		{SharingShared, "", false, true},
		{SharingGroup("review"), "review", true, true},
		{SharingGroup("a:b"), "a:b", true, true},
		{"shared:", "", false, false}, // a group has a name
		{"Shared", "", false, false},
		{"sharedreview", "", false, false},
		{"", "", false, false}, // absent means isolated; the line has no word for it
	} {
		group, byGroup := c.sharing.Group()
		require.Equal(t, c.byGroup, byGroup, c.sharing)
		require.Equal(t, c.group, group)
		require.Equal(t, c.known, c.sharing.known(), c.sharing)
	}
	require.Equal(t, AgentSharing("shared:review"), SharingGroup("review"))
}

func TestAgentRefJSON(t *testing.T) {
	for _, text := range []string{
		`{"agentId":"a"}`,
		`{"agentId":"a","agentSharing":"shared:g","memoryRef":"m","modelClass":"coding"}`,
		`{"x-first":{"b":1.0,"a":2},"agentId":"a","x-mid":null,"agentSharing":"isolated","x-last":[9007199254740993]}`,
		`{"agentId":"a","agentSharing":"","modelClass":"something-new"}`,
		`{}`,
	} {
		var r AgentRef
		require.NoError(t, json.Unmarshal([]byte(text), &r))
		back, err := json.Marshal(r)
		require.NoError(t, err)
		require.Equal(t, text, string(back))
		back, err = json.Marshal(&r)
		require.NoError(t, err)
		require.Equal(t, text, string(back))
	}

	r := AgentRef{AgentID: "untouched"}
	var le *LineError
	for _, bad := range []string{`{"agentId":1}`, `{"agentId":"a","agentId":"b"}`, `{"agentId":"a","x":1,"x":2}`, `[]`, "{\"agentId\":\"\xff\"}", `{"agentId":"a"} {}`} {
		require.ErrorAs(t, r.UnmarshalJSON([]byte(bad)), &le, bad)
		require.Equal(t, "untouched", r.AgentID, "an unreadable value changes nothing")
	}

	for _, m := range []ModelClass{ModelReasoning, ModelWriting, ModelCoding, ModelResearch, ModelClassification, ModelGeneral} {
		require.True(t, m.known())
	}
	require.False(t, ModelClass("").known())
}

func TestConversationMessageIsJSONByItself(t *testing.T) {
	text := `{"messageId":"m1","from":"user","content":{"a":[1]},"ts":5,"agent":{"agentId":"abc","x":1},"speakerId":"s"}`
	var m ConversationMessage
	require.NoError(t, json.Unmarshal([]byte(text), &m))
	require.Equal(t, "m1", m.MessageID)
	require.Equal(t, JSON(`{"a":[1]}`), m.Content)
	out, err := json.Marshal(m)
	require.NoError(t, err)
	require.Equal(t, text, string(out))
	was := m
	for _, bad := range []string{`[]`, `{"ts":"5"}`, `{"from":"a","from":"b"}`} {
		var le *LineError
		require.ErrorAs(t, m.UnmarshalJSON([]byte(bad)), &le, bad)
		require.Equal(t, was, m)
	}
	require.Error(t, m.UnmarshalJSON([]byte(`{} {}`)))
}

// A message is appended as it is marshalled, and not at all when it is damaged.
func TestAppendMessage(t *testing.T) {
	m := ConversationMessage{MessageID: "m1", From: "coder", Content: ` {"a": 1} `, Role: "agent"}
	line, err := m.AppendJSON([]byte("x"))
	require.NoError(t, err)
	marshalled, err := json.Marshal(m)
	require.NoError(t, err)
	require.Equal(t, "x"+string(marshalled), string(line))

	for pointer, broken := range map[string]ConversationMessage{
		"/payload/message/content":   {MessageID: "m1", Content: `{"a":`},
		"/payload/message/messageId": {MessageID: "m\xff", Content: `1`},
	} {
		line, err := broken.AppendJSON([]byte("x"))
		var rule *RuleError
		require.ErrorAs(t, err, &rule)
		require.Equal(t, pointer, rule.Pointer)
		require.Equal(t, "x", string(line))
	}
}
