package agentevents

import (
	"fmt"
	"iter"

	"github.com/agentevents/agentevents/internal/extra"
	"github.com/agentevents/agentevents/internal/jsonwire"
)

// extras are the extra members of one JSON object: members without a field in its struct.
type extras = extra.Members

// Extra returns the value of a member of the event's line that no field of the envelope has, and ""
// when there is none. Decoders of other formats keep there the members that the vocabulary lacks.
func (e *Event) Extra(name string) JSON {
	for n, value := range e.extra.Unknown() {
		if n == name {
			return JSON(value)
		}
	}
	return ""
}

// Extras yields the members of the event's line that no field of the envelope
// has, in their order.
func (e *Event) Extras() iter.Seq2[string, JSON] {
	return func(yield func(string, JSON) bool) {
		for name, value := range e.extra.Unknown() {
			if !yield(name, JSON(value)) {
				return
			}
		}
	}
}

// SetExtra sets a member of the event's line that no field of the envelope has;
// the empty value removes it. It returns an error when the value is not JSON, which
// [JSONOrString] makes of any text, or the name is a field's. The member is written
// after all others, and passes the redaction step as content.
func (e *Event) SetExtra(name string, value JSON) error {
	if name == "" || !jsonwire.ValidUTF8(name) || extra.Number(envelopeFields[:], name) != 0 {
		return fmt.Errorf("agentevents: %s cannot be the name of an extra member", jsonwire.Brief(name))
	}
	var raw string
	if value != "" {
		var err error
		if raw, err = jsonwire.Compact(string(value)); err != nil {
			return fmt.Errorf("agentevents: extra member %s: %w", jsonwire.Brief(name), err)
		}
	}
	e.extra = e.extra.Set(len(envelopeFields), name, raw)
	return nil
}

// PayloadExtra reports whether the payload, or a value inside it, has members
// of its line that no field has. [Event.AppendJSON] writes them; no
// field shows them.
func (e *Event) PayloadExtra() bool {
	p := ops(e.Payload)
	return p != nil && p.hasExtra()
}

// Origin returns the line that the event was read from by a [Reader] with Verbatim set, however the
// event was changed since. It is empty for other events, and for one that shares its line with
// others. The hash that links a line to the one before it in a tamper-evident file is not part of
// it.
func (e *Event) Origin() string { return e.origin }
