package openwop

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect"
)

// FuzzDecode checks three laws: nothing panics; what decodes can be written or is
// refused; what was written decodes, and is written the same again.
func FuzzDecode(f *testing.F) {
	for p, lines := range golden {
		for line := range strings.Lines(lines) {
			f.Add(uint8(p), strings.TrimSuffix(line, "\n"))
		}
	}
	f.Fuzz(func(t *testing.T, profile uint8, line string) {
		p := Profile(profile % 3)
		_, _ = NewDecoder(Options{Strict: true, Profile: p}).Decode(nil, []byte(line))
		events, err := NewDecoder(Options{Profile: p}).Decode(nil, []byte(line))
		if err != nil {
			return
		}
		for _, to := range []Profile{p, (p + 1) % 3, (p + 2) % 3} {
			out, err := NewEncoder(EncoderOptions{Profile: to}).Append(nil, events[0])
			if err != nil {
				var broken *agentevents.RuleError
				if !errors.Is(err, dialect.ErrNoCounterpart) && !errors.As(err, &broken) {
					t.Fatal(err)
				}
				continue
			}
			text := bytes.TrimSuffix(out, []byte("\n"))
			back, err := NewDecoder(Options{Profile: to}).Decode(nil, text)
			if err != nil {
				t.Fatalf("%s: %v", text, err)
			}
			if _, unknown := events[0].Payload.(*agentevents.Unknown); !unknown && back[0].Kind() != events[0].Kind() {
				t.Fatalf("%s became %s: %s", events[0].Kind(), back[0].Kind(), text)
			}
			again, err := NewEncoder(EncoderOptions{Profile: to}).Append(nil, back[0])
			if err != nil {
				t.Fatalf("%s: %v", text, err)
			}
			if !bytes.Equal(again, out) {
				t.Fatalf("%s\n%s", out, again)
			}
		}
	})
}
