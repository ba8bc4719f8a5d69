package dialect_test

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/internal/scale"
)

// One more of many things costs every encoder no more than the others. The usual run looks at one
// format for each shape, the long run at all.
func TestEncodersAreLinear(t *testing.T) {
	list, long := formats(), os.Getenv("AGENTEVENTS_LONG") != ""
	for i, shape := range scale.Shapes() {
		for j, f := range list {
			n := 200
			if long {
				n = 5000
			} else if j != i%len(list) {
				continue
			}
			t.Run(shape.Name+" "+f.name, func(t *testing.T) {
				scale.Linear(t, n, func(n int) func() {
					var events []agentevents.Event
					for ev, err := range agentevents.NewReader(strings.NewReader(string(shape.Log(n))), agentevents.ReaderOptions{Verbatim: true}).All() {
						require.NoError(t, err)
						events = append(events, ev)
					}
					return func() {
						enc := f.suite.Encoder()
						var out []byte
						for _, ev := range events {
							out, _ = enc.Append(out[:0], ev)
						}
						_, err := enc.End(out)
						require.NoError(t, err)
					}
				})
			})
		}
	}
}
