package secret

// A Scanner masks what it knows for a secret. It is for concurrent use.
type Scanner struct {
	names  *Names
	values func() *Values // registered so far
}

// New returns a scanner. values returns the registered values and may be nil.
func New(names *Names, values func() *Values) *Scanner {
	if values == nil {
		values = func() *Values { return nil }
	}
	return &Scanner{names, values}
}

// Mask returns a text with markers in the place of secrets: the text itself if it has
// none.
func (s *Scanner) Mask(text string) string {
	if v := s.values(); v != nil {
		text = v.Mask(text)
	}
	if !suspicious(text) {
		return text
	}
	var out []byte
	done, lo := 0, 0
	for {
		r, v := s.find(text, lo, done, true)
		if v != yes {
			break
		}
		to, closed := r.end(text, r.from)
		if !closed {
			to = len(text)
		}
		out = append(append(out, text[done:r.from]...), Marker(r.rule)...)
		done, lo = to, max(to-1, 0)
	}
	if out == nil {
		return text
	}
	return string(append(out, text[done:]...))
}

// maxHeld is the number of bytes that a stream holds back at most.
const maxHeld = 4 << 10

// known is how much of what a stream has passed on it looks at again.
const known = 128

// A Stream masks a text that comes in pieces. What it returns, put together, is the
// masked text. The zero Stream is not ready: see [Scanner.Stream].
type Stream struct {
	s      *Scanner
	values valueStream
	text   string // the end of what was passed on, and what is held back
	out    int    // how much of text was passed on
	in     region // the region that goes on, if inside
	inside bool
}

// Stream returns a stream of a text.
func (s *Scanner) Stream() *Stream { return &Stream{s: s} }

// Held reports whether a part of the text is held back.
func (st *Stream) Held() bool { return st.out < len(st.text) || st.values.held() }

// Write adds a piece and returns what can be passed on.
func (st *Stream) Write(piece string) string {
	return st.scan(st.values.write(st.s.values(), piece), false)
}

// Close returns what is left. The stream is as new.
func (st *Stream) Close() string {
	out := st.scan(st.values.close(st.s.values()), true)
	*st = Stream{s: st.s}
	return out
}

func (st *Stream) scan(piece string, final bool) string {
	if !st.inside && st.out == len(st.text) && !st.matters(piece) {
		st.keep(piece)
		return piece
	}
	st.text += piece
	var out []byte
	for {
		if st.inside {
			to, closed := st.in.end(st.text, st.out)
			st.cut(to)
			if !closed {
				break
			}
			st.inside = false
		}
		r, v := st.s.find(st.text, 0, st.out, final)
		if v == maybe && len(st.text)-r.from > maxHeld {
			v = yes
			if r.to = 0; r.chars == nil {
				r.until, r.chars = untilChar, valueChars
			}
		}
		if v == no {
			out = append(out, st.text[st.out:]...)
			st.out = len(st.text)
			break
		}
		out = append(out, st.text[st.out:r.from]...)
		st.out = r.from
		if v == maybe {
			break
		}
		out = append(out, Marker(r.rule)...)
		st.in, st.inside = r, true
	}
	if final && st.inside {
		st.out = len(st.text)
	}
	if drop := st.out - known; drop > 0 {
		st.move(drop)
	}
	return string(out)
}

// cut removes the part of a region that ends at to, but for its last byte: what comes
// next does not begin a text.
func (st *Stream) cut(to int) {
	if to > st.out {
		st.text = st.text[to-1:]
		st.out = 1
		if st.in.to > 0 {
			st.in.to = 1
		}
	}
}

func (st *Stream) move(n int) {
	st.text, st.out = st.text[n:], st.out-n
	if st.in.to > 0 {
		st.in.to -= n
	}
}

// keep notes the end of a piece that was passed on.
func (st *Stream) keep(piece string) {
	if len(piece) >= known {
		st.text = piece[len(piece)-known:]
	} else {
		st.text += piece
		if n := len(st.text) - known; n > 0 {
			st.text = st.text[n:]
		}
	}
	st.out = len(st.text)
}

// matters reports whether a piece may end or continue the beginning of a secret.
func (st *Stream) matters(piece string) bool { return true }

// suspicious reports whether a text may have a secret.
func suspicious(text string) bool { return len(text) >= 4 }
