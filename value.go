package agentevents

import (
	"encoding/json"
	"strings"

	"github.com/agentevents/agentevents/internal/jsonwire"
)

// JSON is any JSON value as text: arguments, results, messages, evidence.
//
// It is immutable and comparable, and keeps its bytes: integers above 2^53,
// the order of keys and characters such as < survive. Only insignificant
// whitespace is removed when an event is recorded, so that a line stays a
// line. The empty string means that there is no value; JSON's own null is
// "null".
//
// An emitter records text that is not JSON as a JSON string, and as the object {"sanitized":"the
// text"} where an object is expected, and marks the event [MarkSanitized]. Arguments and results of
// tools are texts mostly: give an emitter JSON(text) of them. A member of [ToolCalled] and
// [ToolReturned] then tells that the text was not JSON, and no mark is needed. Event.AppendJSON and
// MarshalJSON refuse such text.
//
// [ToJSON] makes one from a Go value, [JSONOrString] from a text that may be JSON;
// json.Unmarshal([]byte(j), &v) reads one.
type JSON string

// ToJSON returns v as JSON text, as [encoding/json.Marshal] would write it but
// with characters such as < left as they are. It returns the error of
// encoding/json when v cannot be written.
func ToJSON(v any) (JSON, error) {
	if j, ok := v.(JSON); ok {
		c, err := jsonwire.Compact(string(j))
		return JSON(c), err
	}
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return "", err
	}
	return JSON(strings.TrimSuffix(b.String(), "\n")), nil // which Encode ends with
}

// JSONString returns s as a JSON string. Bytes that are not UTF-8 become U+FFFD.
func JSONString(s string) JSON { return JSON(jsonwire.Quote(s)) }

// JSONOrString returns s as JSON if it is JSON that a line carries, and otherwise as [JSONString]
// does. It is for texts by models and tools, which are JSON mostly. The empty text is absent, and
// so is the result. Which of the two it was is lost if s is a JSON string or becomes one: see
// [JSON] for arguments and results of tools.
//
// A line carries what encoding/json takes but for duplicate names, damaged UTF-8,
// halves of surrogates and values more than 1,000 deep.
func JSONOrString(s string) JSON {
	if s == "" {
		return ""
	}
	c, err := jsonwire.Compact(s)
	if err != nil {
		return JSONString(s)
	}
	return JSON(c)
}

// MarshalJSON returns the text itself, and null for the empty string.
func (j JSON) MarshalJSON() ([]byte, error) {
	if j == "" {
		return []byte("null"), nil
	}
	return []byte(j), nil
}

// UnmarshalJSON keeps the text of any JSON value.
func (j *JSON) UnmarshalJSON(text []byte) error {
	c, err := jsonwire.Compact(string(text))
	if err != nil {
		return err
	}
	*j = JSON(c)
	return nil
}

// Opt is a value that may be absent. The zero Opt is absent, which is not the
// same as present with a zero value: {"durationMs":0} and {} differ.
type Opt[T any] struct {
	V  T    // the value; meaningful only if OK
	OK bool // whether there is a value
}

// Some returns a present v.
func Some[T any](v T) Opt[T] { return Opt[T]{V: v, OK: true} }

// Or returns the value, or def when it is absent.
func (o Opt[T]) Or(def T) T {
	if o.OK {
		return o.V
	}
	return def
}

// MarshalJSON returns the value as [encoding/json] writes it, and null when it is
// absent. In a struct of your own, tag the field omitzero to leave an absent
// value out.
func (o Opt[T]) MarshalJSON() ([]byte, error) {
	if !o.OK {
		return []byte("null"), nil
	}
	return json.Marshal(o.V)
}

// UnmarshalJSON reads a value as [encoding/json] does; null is absent.
func (o *Opt[T]) UnmarshalJSON(text []byte) error {
	if string(text) == "null" {
		*o = Opt[T]{}
		return nil
	}
	var v T
	if err := json.Unmarshal(text, &v); err != nil {
		return err
	}
	*o = Some(v)
	return nil
}
