package dialect_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect/agui"
)

// FuzzConvert checks that every event that the decoder of any format reads, with its line or
// without, is written in every format without a panic, and that readers refuse no line. The logs
// come from the golden files, are changed by the number order, and end with another line.
func FuzzConvert(f *testing.F) {
	list := formats()
	var logs []string
	add := func(golden, member string) {
		file := readGolden(f, golden)
		logs = append(logs, file.Get(member))
	}
	for _, from := range list {
		add("variants-"+string(from.suite.Name), string(from.suite.Name))
	}
	for _, role := range []string{"assistant", "user", "system", "developer", "tool", "reasoning", "robot", ""} {
		logs = append(logs, streamed(role))
	}
	add("standard", "native")
	for i := range logs {
		for order := range uint64(10) {
			f.Add(uint8(i), order, `{"type":"TEXT_MESSAGE_END","messageId":"m"}`)
		}
	}
	f.Fuzz(func(t *testing.T, from uint8, order uint64, line string) {
		n := int(from) % len(logs)
		o := agentevents.ReaderOptions{}
		log := shaken(order, logs[n]) + line
		for range 2 {
			switch { // of the variants, the roles of AG-UI and the native log
			case n < len(list):
				o.Decoder = list[n].suite.Decoder()
			case n < len(logs)-1:
				o.Decoder = agui.NewDecoder(agui.Options{})
			}
			var events []agentevents.Event
			for ev, err := range agentevents.NewReader(strings.NewReader(log), o).All() {
				if err == nil {
					events = append(events, ev)
				}
			}
			for _, to := range list {
				enc := to.suite.Encoder()
				var out []byte
				for _, ev := range events {
					out, _ = enc.Append(out, ev)
				}
				out, err := enc.End(out)
				require.NoError(t, err)
				for _, err := range agentevents.NewReader(strings.NewReader(string(out)), agentevents.ReaderOptions{Decoder: to.suite.Decoder()}).All() {
					require.NoError(t, err, "%s: %s", to.name, out)
				}
			}
			o.Verbatim = true
		}
	})
}

// shaken returns a log of which some lines are gone, are there twice, have another place or have
// a word of another line. Order 0 leaves it as it is.
func shaken(order uint64, log string) string {
	r, lines := rand.New(rand.NewPCG(order, 0)), strings.SplitAfter(log, "\n")
	if order == 0 || len(lines) > 1000 {
		return log
	}
	for range 1 + r.IntN(6) {
		i, j := r.IntN(len(lines)), r.IntN(len(lines))
		switch r.IntN(4) {
		case 0:
			lines[i] = ""
		case 1:
			lines[i] += lines[j]
		case 2:
			lines[i], lines[j] = lines[j], lines[i]
		case 3:
			words, others := strings.Split(lines[i], `"`), strings.Split(lines[j], `"`)
			words[r.IntN(len(words))] = others[r.IntN(len(others))]
			lines[i] = strings.Join(words, `"`)
		}
	}
	return strings.Join(lines, "")
}

// streamed returns a log of AG-UI with a streamed message of a role.
func streamed(role string) string {
	return fmt.Sprintf(`{"type":"RUN_STARTED","threadId":"t","runId":"r"}
{"type":"TEXT_MESSAGE_START","messageId":"m","role":%q}
{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"hello"}
{"type":"TEXT_MESSAGE_END","messageId":"m"}
{"type":"RUN_FINISHED","threadId":"t","runId":"r"}
`, role)
}
