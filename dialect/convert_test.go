package dialect_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents"
)

// FuzzConvert checks that what the decoder of any format reads, kept as it was read or not, is
// written in every format without a panic, and that readers of the lines refuse none.
func FuzzConvert(f *testing.F) {
	list := formats()
	log := func(from int, log string) {
		for order := range uint64(10) {
			f.Add(uint8(from), order, log)
		}
	}
	add := func(from int, golden, member string) {
		file := readGolden(f, golden)
		log(from, file.Get(member))
	}
	for i, from := range list {
		add(i, "variants-"+string(from.suite.Name), string(from.suite.Name))
		if from.name != "agui" {
			continue
		}
		for _, role := range []string{"assistant", "user", "system", "developer", "tool", "reasoning", "robot", ""} {
			log(i, streamed(role))
		}
	}
	add(len(list), "standard", "native")
	f.Fuzz(func(t *testing.T, format uint8, order uint64, log string) {
		log = shaken(order, log)
		for _, verbatim := range []bool{false, true} {
			o := agentevents.ReaderOptions{Verbatim: verbatim}
			if n := int(format) % (len(list) + 1); n < len(list) {
				o.Decoder = list[n].suite.Decoder()
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
