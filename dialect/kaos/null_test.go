package kaos

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents"
)

// TestNulls reads null in the place of values that may not be null.
func TestNulls(t *testing.T) {
	for _, c := range []struct{ members, pointer, kept string }{
		{`"content":null,"type":"text_delta"}`, "/content", `{"content":null}`},
		{`"confidence":null,"intent":"plan","type":"intent_classified"}`, "/confidence", `{"confidence":null}`},
		{`"steps":null,"strategy":"s","type":"plan_proposed"}`, "/steps", `{"steps":null}`},
		{`"steps":[{"step_id":"s","description":null}],"strategy":"s","type":"plan_proposed"}`, "/steps/0/description", `{"/steps/0/description":null}`},
		{`"kind":"summarized","section":null,"item_count":1,"attributes":{"tokens_before":1},"type":"memory_event"}`, "/section", `{"section":null,"item_count":1}`},
		{`"subject":"turn","phase":"start","span_id":"t","name":null,"attributes":{},"type":"span"}`, "/name", `{"name":null}`},
	} {
		line := head + c.members
		ev := decodeOne(t, testOptions, line)
		require.Equal(t, c.kept, string(ev.Extra(string(Name))))

		_, err := NewDecoder(Options{Strict: true}).Decode(nil, []byte(line))
		var refused *agentevents.RuleError
		require.ErrorAs(t, err, &refused)
		require.Equal(t, RuleRequired, refused.Rule)
		require.Contains(t, []string{c.pointer, "/steps/0/description"}, refused.Pointer)

		e := NewEncoder(encoderOptions)
		out, err := e.Append(nil, ev)
		require.NoError(t, err)
		require.NotEmpty(t, decodeAll(t, string(out)))

		native, err := ev.AppendJSON(nil)
		require.NoError(t, err)
		require.NoError(t, ev.UnmarshalJSON(native))
		require.Equal(t, string(out), encodeOne(t, encoderOptions, ev), "through the native format")
	}
	var rule *agentevents.RuleError
	_, err := NewDecoder(Options{Strict: true}).Decode(nil, []byte(head+`"kind":null,"type":"memory_event"}`))
	require.True(t, errors.As(err, &rule))
	require.Equal(t, "is required", rule.Detail)
}
