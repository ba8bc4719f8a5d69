package cassette

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/agentevents/agentevents/adapter/modelhttp/internal/frames"
)

// A Frame is a frame of AWS's event stream, in which Bedrock streams its answers. Its payload is
// JSON or a text.
type Frame struct {
	Header map[string]string `json:"header,omitzero"` // such as :event-type
	// JSON is without white space. Bedrock's invoke wraps the JSON of a model in the base64 of a
	// member "bytes", which would hide its credentials: here that member is the JSON itself.
	JSON json.RawMessage `json:"json,omitzero"`
	Text string          `json:"text,omitzero"`
	// Cut is true if the answer ended within this frame. Nothing else of it is kept.
	Cut bool `json:"cut,omitzero"`
}

// framesOf returns the frames of a body.
func framesOf(body []byte) (out []Frame, err error) {
	var r frames.Reader
	broken := r.Write(body, func(f frames.Frame) {
		frame, failed := frameOf(f)
		out, err = append(out, frame), cmp.Or(err, failed)
	})
	if r.Rest() {
		out = append(out, Frame{Cut: true})
	}
	return out, cmp.Or(err, broken)
}

func frameOf(f frames.Frame) (out Frame, err error) {
	out.Header = f.Header
	switch {
	case f.Others > 0:
		return out, errors.New("a frame has a header that is not a text")
	case !utf8.Valid(f.Payload):
		return out, errors.New("a frame has a payload that is not a text, and cannot be masked")
	case !json.Valid(f.Payload):
		out.Text = string(f.Payload)
		return out, nil
	}
	out.JSON = compact(f.Payload)
	var chunk struct {
		Bytes []byte `json:"bytes"`
	}
	if json.Unmarshal(out.JSON, &chunk) != nil || len(chunk.Bytes) == 0 {
		return out, nil
	}
	if !isObject(chunk.Bytes) || !json.Valid(chunk.Bytes) {
		return out, errors.New("the bytes of a frame are not an object of JSON, and cannot be masked")
	}
	out.JSON, err = withBytes(out.JSON, compact(chunk.Bytes))
	return out, err
}

// append appends the frame as the client reads it.
func (f Frame) append(b []byte) ([]byte, error) {
	frame := frames.Frame{Header: f.Header, Payload: []byte(f.Text)}
	if f.JSON != nil {
		frame.Payload = compact(f.JSON)
	}
	var chunk struct {
		Bytes json.RawMessage `json:"bytes"`
	}
	if json.Unmarshal(f.JSON, &chunk) == nil && isObject(chunk.Bytes) {
		wrapped, err := json.Marshal([]byte(compact(chunk.Bytes)))
		if err != nil {
			return nil, err
		}
		if frame.Payload, err = withBytes(f.JSON, wrapped); err != nil {
			return nil, err
		}
	}
	whole, err := frame.Append(nil)
	if f.Cut && err == nil {
		whole = whole[:len(whole)-1]
	}
	return append(b, whole...), err
}

func isObject(j []byte) bool { return bytes.HasPrefix(bytes.TrimSpace(j), []byte("{")) }

// withBytes returns an object with another member "bytes".
func withBytes(object, value json.RawMessage) (json.RawMessage, error) {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(object, &members); err != nil {
		return nil, fmt.Errorf("a frame: %w", err)
	}
	members["bytes"] = value
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	if err := e.Encode(members); err != nil {
		return nil, fmt.Errorf("a frame: %w", err)
	}
	return compact(text.Bytes()), nil
}
