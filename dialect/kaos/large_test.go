package kaos

import (
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/internal/jsonwire"
)

// many returns n texts, each made from its number.
func many(n int, one func(i string) string) []string {
	list := make([]string, n)
	for i := range list {
		list[i] = one(strconv.Itoa(i))
	}
	return list
}

// A line of the allowed size has room for very many extra members. A search
// through all of them for each one takes minutes here.
func TestManyExtraMembers(t *testing.T) {
	n := 100_000
	if testing.Short() {
		n = 10_000
	}
	steps := many(n, func(i string) string {
		return `{"step_id":"s` + i + `","description":"","tool_name":null,"x":` + i + `}`
	})
	calls := many(n, func(i string) string { return `{"tool_name":"","call_id":"","is_error":false,"x":` + i + `}` })
	for _, line := range []string{
		head + `"steps":[` + strings.Join(steps, ",") + `],"strategy":"","type":"plan_proposed"}`,
		head + `"text":"","intent":"","tool_calls":[` + strings.Join(calls, ",") + `],"input_tokens":0,"output_tokens":0,"type":"turn_summary"}`,
	} {
		require.True(t, encodeOne(t, encoderOptions, decodeOne(t, testOptions, line)) == line+"\n")
	}

	// Members of an unknown type take the place of extra members of the same name.
	odd := func(i string) string { return `"/x` + i + `":` + i }
	kept := func(i string) string { return `"/~1x` + i + `":0,"y` + i + `":` + i }
	ev := decodeOne(t, testOptions, head+strings.Join(many(n, odd), ",")+`,"type":"other"}`)
	require.NoError(t, ev.SetExtra(string(Name), agentevents.JSON("{"+strings.Join(many(n, kept), ",")+"}")))
	out := encodeOne(t, encoderOptions, ev)
	require.Equal(t, n, strings.Count(out, `,"/x`))
	require.Equal(t, n, strings.Count(out, `,"y`))
}

// Each extra member is found by its name and place, in any order, in a short list
// and in a long one.
func TestExtraMembersInAnyOrder(t *testing.T) {
	for _, n := range []int{1, fewKept + 1} {
		var members, extra []string
		for i := range n {
			members = append(members, `"m`+strconv.Itoa(i)+`":`+strconv.Itoa(i))
		}
		line := head + `"steps":[{"step_id":"a","description":"","tool_name":null,"x":1},{"step_id":"b","description":"","tool_name":null,"x":2,"/y":3}],"strategy":"","type":"plan_proposed",` +
			strings.Join(members, ",") + `}`
		ev := decodeOne(t, testOptions, line)
		for name, value := range jsonwire.Members(string(ev.Extra(string(Name)))) {
			extra = append([]string{jsonwire.Quote(name) + ":" + value}, extra...)
		}
		require.NoError(t, ev.SetExtra(string(Name), agentevents.JSON("{"+strings.Join(extra, ",")+"}")))
		out := encodeOne(t, encoderOptions, ev)
		require.Contains(t, out, `"tool_name":null,"x":1},{`)
		require.Contains(t, out, `"tool_name":null,"/y":3,"x":2}]`)
		for _, m := range members {
			require.Contains(t, out, m)
		}
	}
}
