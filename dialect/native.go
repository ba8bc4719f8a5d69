package dialect

import "github.com/agentevents/agentevents"

// NativeEncoder writes native lines, for programs that write any format. It has
// every kind and loses nothing.
type NativeEncoder struct{}

// Append appends the event's native line.
func (NativeEncoder) Append(dst []byte, ev agentevents.Event) ([]byte, error) {
	mark := len(dst)
	dst, err := ev.AppendJSON(dst)
	if err != nil {
		return dst[:mark], err
	}
	return append(dst, '\n'), nil
}

// End appends nothing: the native format writes every event at once.
func (NativeEncoder) End(dst []byte) ([]byte, error) { return dst, nil }

// Losses returns nil.
func (NativeEncoder) Losses() []Loss { return nil }
