// Package frames reads and writes the frames of AWS's event streams
// (application/vnd.amazon.eventstream), as Bedrock streams its answers.
//
// A frame is its length and the length of its headers (four bytes each, the highest first), the
// CRC-32 of these eight bytes, the headers, the payload, and the CRC-32 of all before.
package frames

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"maps"
	"slices"
)

// MediaType is the type of a body of frames.
const MediaType = "application/vnd.amazon.eventstream"

// The headers of a frame that tell its sort.
const (
	MessageType   = ":message-type"   // "event", "exception" or "error"
	EventType     = ":event-type"     // of an event
	ExceptionType = ":exception-type" // of an exception
	ErrorCode     = ":error-code"     // of an error
	ErrorMessage  = ":error-message"  // of an error
)

const (
	prelude  = 12          // two lengths and their checksum
	overhead = prelude + 4 // and the checksum of the frame
	text     = 7           // the type of a header that is a text
	most     = 1<<16 - 1   // bytes of a header's text
	mostName = 1<<8 - 1    // bytes of a header's name
	mostSize = 1 << 30     // bytes of a frame; the SDKs of AWS refuse far shorter ones
)

// sizes are the lengths of a header's value by its type. For -1 two bytes with the length come first.
var sizes = [...]int{0, 0, 1, 2, 4, 8, -1, -1, 8, 16}

// A Frame is one frame of a stream.
type Frame struct {
	Header  map[string]string // those that are texts
	Others  int               // how many headers are no texts; Append does not write them
	Payload []byte
}

// ErrBroken is the error of a frame whose checksums or lengths are wrong.
var ErrBroken = errors.New("a frame of the stream is broken")

// A Reader splits a stream into its frames. The zero Reader is usable.
type Reader struct {
	Most int // bytes of a frame that are kept; a longer frame is left out. 0 means any length

	kept []byte
	skip int   // bytes of a long frame that are still to come
	err  error // nothing can be read any more
}

// Write takes the next bytes, cut anywhere, and calls frame for each frame they complete. The
// frame's payload is overwritten afterwards. It returns ErrBroken at a frame that is broken, and
// from then on: the length of such a frame cannot be trusted.
func (r *Reader) Write(p []byte, frame func(Frame)) error {
	for r.err == nil && len(p) > 0 {
		if r.skip > 0 {
			n := min(r.skip, len(p))
			r.skip, p = r.skip-n, p[n:]
			continue
		}
		want := prelude
		if len(r.kept) >= prelude {
			want = int(binary.BigEndian.Uint32(r.kept))
		}
		n := min(want-len(r.kept), len(p))
		r.kept, p = append(r.kept, p[:n]...), p[n:]
		if len(r.kept) == want {
			r.err = r.complete(want, frame)
		}
	}
	return r.err
}

// complete takes a prelude, or a frame.
func (r *Reader) complete(n int, frame func(Frame)) error {
	if n == prelude {
		size, headers := binary.BigEndian.Uint32(r.kept), binary.BigEndian.Uint32(r.kept[4:])
		switch {
		case crc32.ChecksumIEEE(r.kept[:8]) != binary.BigEndian.Uint32(r.kept[8:]),
			size < overhead, size > mostSize, headers > size-overhead:
			return ErrBroken
		case r.Most > 0 && uint64(size) > uint64(r.Most):
			r.skip, r.kept = int(size)-prelude, r.kept[:0]
		}
		return nil
	}
	whole := r.kept
	r.kept = r.kept[:0]
	if crc32.ChecksumIEEE(whole[:n-4]) != binary.BigEndian.Uint32(whole[n-4:]) {
		return ErrBroken
	}
	body := whole[prelude : n-4]
	headers := binary.BigEndian.Uint32(whole[4:])
	f := Frame{Header: map[string]string{}, Payload: body[headers:]}
	if !f.headers(body[:headers]) {
		return ErrBroken
	}
	frame(f)
	return nil
}

// Rest reports whether the stream ends within a frame.
func (r *Reader) Rest() bool { return len(r.kept) > 0 || r.skip > 0 }

// headers reads the headers, and returns false if they do not fill p.
func (f *Frame) headers(p []byte) bool {
	// take returns the next n bytes.
	take := func(n int) (out []byte, ok bool) {
		if n > len(p) {
			return nil, false
		}
		out, p = p[:n], p[n:]
		return out, true
	}
	sized := func(bytes int) (out []byte, ok bool) {
		n, ok := take(bytes)
		if !ok {
			return nil, false
		}
		size := int(n[0])
		if bytes == 2 {
			size = int(binary.BigEndian.Uint16(n))
		}
		return take(size)
	}
	for len(p) > 0 {
		name, ok := sized(1)
		kind, more := take(1)
		if !ok || !more || int(kind[0]) >= len(sizes) {
			return false
		}
		var value []byte
		if size := sizes[kind[0]]; size >= 0 {
			value, ok = take(size)
		} else {
			value, ok = sized(2)
		}
		if !ok {
			return false
		}
		if kind[0] == text {
			f.Header[string(name)] = string(value)
		} else {
			f.Others++
		}
	}
	return true
}

// Append appends the frame to b, its headers in the order of their names. It fails if a header
// or the frame is too long.
func (f Frame) Append(b []byte) ([]byte, error) {
	begin := len(b)
	b = append(b, make([]byte, prelude)...)
	for _, name := range slices.Sorted(maps.Keys(f.Header)) {
		value := f.Header[name]
		if len(name) > mostName || len(value) > most {
			return nil, fmt.Errorf("the header %.40q of a frame is too long", name)
		}
		b = append(append(b, byte(len(name))), name...)
		b = binary.BigEndian.AppendUint16(append(b, text), uint16(len(value)))
		b = append(b, value...)
	}
	headers := len(b) - begin - prelude
	b = append(b, f.Payload...)
	size := len(b) - begin + 4
	if size > mostSize {
		return nil, errors.New("a frame is too long")
	}
	head := b[begin:]
	binary.BigEndian.PutUint32(head, uint32(size))
	binary.BigEndian.PutUint32(head[4:], uint32(headers))
	binary.BigEndian.PutUint32(head[8:], crc32.ChecksumIEEE(head[:8]))
	return binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(head)), nil
}
