// Package pack keeps many texts that are like each other in little memory.
package pack

import (
	"encoding/binary"
	"math/bits"

	"github.com/agentevents/agentevents/internal/reuse"
)

// A Packer packs texts. Their common parts are kept once, in its dictionary: the texts that
// were unlike all before them, up to [MaxDictionary]. The zero Packer is ready to use; it must not
// be used concurrently.
type Packer struct {
	dict  []byte
	known []uint32 // places in dict, from 1, by the hash of the bytes there
	text  []uint16 // places in the text that is packed, from 1
	buf   []byte
	forms reuse.Slab
}

// A Text is a packed text: a list of pieces. A piece has bytes as they are, and then a copy from
// the dictionary or from the text so far. The zero Text stands for nothing.
type Text struct {
	by   *Packer
	form string
}

const (
	// MaxDictionary is the largest size of a dictionary in bytes.
	MaxDictionary = 64 << 10

	knownBits, textBits = 14, 11

	word = 8 // bytes that are compared at once
	few  = 6 // bytes: a shorter copy takes as much room as the bytes

	piece = 16 << 10 // size of the memory in which forms are, in bytes
)

// Pack packs a text, and keeps no part of it. The time for a text that has the shape of one
// before is some 10 µs for 7 kB.
func (p *Packer) Pack(text []byte) Text {
	p.forms.Size = piece
	p.buf = p.pack(p.buf[:0], text)
	if (len(p.buf) > len(text)/2 || len(p.dict) == 0) && len(p.dict)+len(text) <= MaxDictionary {
		p.learn(text)
		p.buf = p.pack(p.buf[:0], text)
	}
	t := Text{p, p.forms.String(p.buf)}
	p.buf = reuse.Small(p.buf)
	return t
}

// IsZero reports whether t stands for nothing.
func (t Text) IsZero() bool { return t.by == nil }

// Size returns the size of the packed form in bytes.
func (t Text) Size() int { return len(t.form) }

// learn adds a text to the dictionary. Packed texts refer to places in it, so it only grows.
func (p *Packer) learn(text []byte) {
	if p.known == nil {
		p.known = make([]uint32, 1<<knownBits)
	}
	from := max(0, len(p.dict)-word+1)
	p.dict = append(p.dict, text...)
	for i := from; i+word <= len(p.dict); i++ {
		p.known[hash(p.dict, i, knownBits)] = uint32(i + 1)
	}
}

func hash(b []byte, i, bits int) uint64 {
	const sixBytes = 16 // to shift the other two out
	return binary.LittleEndian.Uint64(b[i:]) << sixBytes * 0x9e3779b97f4a7c15 >> (64 - bits)
}

// alike returns how many bytes at the beginning of a and b are the same.
func alike(a, b []byte) int {
	n := 0
	for ; n+word <= len(a) && n+word <= len(b); n += word {
		if x := binary.LittleEndian.Uint64(a[n:]) ^ binary.LittleEndian.Uint64(b[n:]); x != 0 {
			return n + bits.TrailingZeros64(x)/8
		}
	}
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

// pack appends the pieces of a text. Places in the dictionary are relative to the end of the copy
// before, plus the bytes since: in a text of the same shape they are near it.
func (p *Packer) pack(dst, text []byte) []byte {
	if p.text == nil {
		p.text = make([]uint16, 1<<textBits)
	}
	clear(p.text)
	next, done := 0, 0 // place in dict that goes on with the last copy; end of that copy in text
	for i := 0; i+word <= len(text); i++ {
		h := hash(text, i, knownBits)
		at, n := p.best(text, i, next+i-done, h)
		own := &p.text[h>>(knownBits-textBits)]
		back := 0
		if n < few && *own > 0 {
			if m := alike(text[i:], text[*own-1:]); m >= few {
				n, back = m, i-int(*own-1)
			}
		}
		if i < 1<<16-1 {
			*own = uint16(i + 1)
		}
		if n < few {
			continue
		}
		dst = appendBytes(dst, text[done:i])
		dst = binary.AppendUvarint(dst, uint64(n))
		if back > 0 {
			dst = binary.AppendUvarint(dst, uint64(back)<<1|1)
			next += i - done + n
		} else {
			away := at - (next + i - done)
			dst = binary.AppendUvarint(dst, uint64(away<<1^away>>(bits.UintSize-1))<<1)
			next = at + n
		}
		done = i + n
		i = done - 1
	}
	return appendBytes(dst, text[done:])
}

// digits are the bytes of which two take one: those that differ between two texts are mostly
// numbers, times and hexadecimal ids.
const digits = "0123456789.:abcd"

// nibbles has the places in digits, from 1.
var nibbles = func() (n [256]byte) {
	for i := range len(digits) {
		n[digits[i]] = byte(i + 1)
	}
	return n
}()

// appendBytes appends bytes as they are, or two in one if all are digits.
func appendBytes(dst, text []byte) []byte {
	for _, c := range text {
		if nibbles[c] == 0 {
			dst = binary.AppendUvarint(dst, uint64(len(text))<<1)
			return append(dst, text...)
		}
	}
	dst = binary.AppendUvarint(dst, uint64(len(text))<<1|1)
	for i := 0; i < len(text); i += 2 {
		b := nibbles[text[i]] - 1
		if i+1 < len(text) {
			b |= (nibbles[text[i+1]] - 1) << 4
		}
		dst = append(dst, b)
	}
	return dst
}

// best returns the place in the dictionary that has most of text[i:], and how much that is: the
// one where the copy before goes on, unless that has little.
func (p *Packer) best(text []byte, i, here int, h uint64) (at, n int) {
	if here >= 0 && here < len(p.dict) {
		if n = alike(text[i:], p.dict[here:]); n >= 2*few {
			return here, n
		}
	}
	if p.known == nil {
		return 0, 0
	}
	if k := int(p.known[h]) - 1; k >= 0 {
		if m := alike(text[i:], p.dict[k:]); m > n+2 {
			return k, m
		}
	}
	return here, n
}

// Append appends the text to dst. It must not be called while its Packer packs another one.
func (t Text) Append(dst []byte) []byte {
	start, next := len(dst), 0
	b := reader{t.form}
	for {
		v := b.uvarint()
		n := int(v >> 1)
		if next += n; v&1 == 0 {
			dst = append(dst, b.s[:n]...)
			b.s = b.s[n:]
		} else {
			for i := range n {
				dst = append(dst, digits[b.s[i/2]>>(i%2*4)&15])
			}
			b.s = b.s[(n+1)/2:]
		}
		if b.s == "" {
			return dst
		}
		n = int(b.uvarint())
		switch v := b.uvarint(); {
		case v&1 == 0:
			away := int(v>>2) ^ -int(v>>1&1)
			next += away
			dst = append(dst, t.by.dict[next:next+n]...)
		default:
			from := len(dst) - int(v>>1)
			_ = dst[start:][from-start:] // it is in the text
			for range n {                // the copy may reach into itself
				dst = append(dst, dst[from])
				from++
			}
		}
		next += n
	}
}

type reader struct{ s string }

func (r *reader) uvarint() (v uint64) {
	for shift := 0; ; shift += 7 {
		c := r.s[0]
		r.s = r.s[1:]
		if v |= uint64(c&0x7f) << shift; c < 0x80 {
			return v
		}
	}
}
