package openwop

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect"
	"github.com/agentevents/agentevents/internal/readback"
)

// FuzzDecode checks four laws: nothing panics; what decodes can be written or is refused;
// what was written decodes, and is written the same again; it has no fault that the line
// has not, and none at all in another profile if the line has none.
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
		folded := func(p Profile, line string) error { // one line has no call for its return
			_, err := NewDecoder(Options{Strict: true, Profile: p, Folded: true}).Decode(nil, []byte(line))
			return err
		}
		sound := folded(p, line) == nil
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
			if err := folded(to, string(text)); err != nil && (sound || to == p && !readback.OwnFault(line, string(text), err)) {
				t.Fatalf("a fault that the line has not: %v\n%s\n%s", err, line, text)
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
