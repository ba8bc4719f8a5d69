package kaos

import (
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/internal/jsonwire"
	"github.com/agentevents/agentevents/internal/scale"
)

// many returns n texts, each made from its number.
func many(n int, one func(i string) string) []string {
	list := make([]string, n)
	for i := range list {
		list[i] = one(strconv.Itoa(i))
	}
	return list
}

// A line of the allowed size has room for very many extra members. No one of them
// is searched for among all others.
func TestManyExtraMembers(t *testing.T) {
	for _, c := range []struct {
		name string
		line func(n int) string
	}{
		{"of steps", func(n int) string {
			return head + `"steps":[` + strings.Join(many(n, func(i string) string {
				return `{"step_id":"s` + i + `","description":"","tool_name":null,"x":` + i + `}`
			}), ",") + `],"strategy":"","type":"plan_proposed"}`
		}},
		{"of calls", func(n int) string {
			return head + `"text":"","intent":"","tool_calls":[` + strings.Join(many(n, func(i string) string {
				return `{"tool_name":"","call_id":"","is_error":false,"x":` + i + `}`
			}), ",") + `],"input_tokens":0,"output_tokens":0,"type":"turn_summary"}`
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			costs(t, func(n int) func() {
				line := c.line(n)
				return func() {
					require.True(t, encodeOne(t, encoderOptions, decodeOne(t, testOptions, line)) == line+"\n")
				}
			})
		})
	}

	// Extra members of an unknown type have no place on its line: readers take them for the payload's.
	t.Run("of an unknown type", func(t *testing.T) {
		odd := func(i string) string { return `"/x` + i + `":` + i }
		kept := func(i string) string { return `"/~1x` + i + `":0,"y` + i + `":` + i }
		costs(t, func(n int) func() {
			ev := decodeOne(t, testOptions, head+strings.Join(many(n, odd), ",")+`,"type":"other"}`)
			require.NoError(t, ev.SetExtra(string(Name), agentevents.JSON("{"+strings.Join(many(n, kept), ",")+"}")))
			return func() {
				out := encodeOne(t, encoderOptions, ev)
				require.Equal(t, n, strings.Count(out, `,"/x`))
				require.Zero(t, strings.Count(out, `,"y`))
			}
		})
	})
}

// costs does the work on many things. Without -short it also requires that the cost of one of many
// is about the cost of one of few.
func costs(t *testing.T, prepare func(n int) (work func())) {
	prepare(10_000)()
	if !testing.Short() {
		scale.Linear(t, 1000, prepare)
	}
}

// Each extra member is found by its name and place, in any order, in a short list
// and in a long one.
func TestExtraMembersInAnyOrder(t *testing.T) {
	for _, n := range []int{1, 33} {
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
