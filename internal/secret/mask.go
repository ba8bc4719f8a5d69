package secret

import (
	"cmp"
	"slices"
	"strings"
)

// A Scanner masks what it knows for a secret. It is for concurrent use.
type Scanner struct {
	names  *Names
	values func() *Values // registered so far
}

// New returns a scanner. values returns the registered values and may be nil, and so
// may what it returns.
func New(names *Names, values func() *Values) *Scanner {
	if values == nil {
		values = func() *Values { return nil }
	}
	return &Scanner{names, values}
}

// Mask returns a text with markers in the place of secrets: the text itself if it has
// none.
func (s *Scanner) Mask(text string) string {
	f := found{hold: len(text), resume: len(text)}
	s.find(&f, text, 0, true)
	if v := s.values(); v != nil {
		v.find(&f, text, 0, true)
	}
	if f.regions == nil {
		return text
	}
	f.hold = len(text) // nothing follows
	out, _ := f.mask(text, 0)
	return out
}

// mask returns the text from out up to what is held, with markers.
func (f *found) mask(text string, out int) (masked string, changed bool) {
	slices.SortFunc(f.regions, func(a, b region) int {
		return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.rule, b.rule))
	})
	var b []byte
	pos, end := out, out // end is that of the regions so far
	for i := range f.regions {
		r := &f.regions[i]
		switch {
		case r.from >= f.hold || r.at <= r.from || r.at <= out:
			continue
		case r.from < out: // its marker is there
			changed = true
			pos = max(pos, r.at)
		case r.from >= end:
			changed = true
			if pos < r.from {
				b = append(b, text[pos:r.from]...)
			}
			b = append(b, Marker(r.rule)...)
			pos = r.at
		default:
			pos = max(pos, r.at)
		}
		end = max(end, r.at)
	}
	if !changed {
		return text[out:f.hold], false
	}
	if pos < f.hold {
		b = append(b, text[pos:f.hold]...)
	}
	return string(b), true
}

// A Stream masks a text that comes in pieces. What it returns, put together, is the
// masked text. The zero Stream is not ready: see [Scanner.Stream].
type Stream struct {
	s      *Scanner
	text   string          // the end of what was passed on, and what is held back
	buf    strings.Builder // where text is, from start on, if own
	start  int
	own    bool
	out    int      // how much of text was passed on
	rules  int      // how much of it rules need not look at again
	values int      // how much of it values need not be looked for again
	open   []region // that go on
	masked bool     // since Masked was asked

	// later are pieces that were passed on and are not yet a part of text.
	later  [8]string
	latest int // how many they are
}

// Stream returns a stream of a text.
func (s *Scanner) Stream() *Stream { return &Stream{s: s} }

// Held reports whether a part of the text is held back.
func (st *Stream) Held() bool { return st.out < len(st.text) }

// Masked reports whether Write or Close left something out since it was asked before.
func (st *Stream) Masked() bool {
	masked := st.masked
	st.masked = false
	return masked
}

// Write adds a piece and returns what can be passed on: the piece itself if that is all.
func (st *Stream) Write(piece string) string {
	if piece == "" {
		return ""
	}
	v := st.s.values()
	n := len(st.text)
	if st.open == nil && st.out == n && st.rules == n && st.values == n && st.s.quiet(piece) && v.quiet(piece) {
		st.pass(piece)
		return piece
	}
	return st.add(piece, v, false)
}

// pass notes a piece that was passed on. Rules may look at it when a piece follows that
// is not quiet: mostly there is no need to copy it.
func (st *Stream) pass(piece string) {
	if len(piece) > 4<<10 { // do not keep all of it alive
		piece = strings.Clone(piece[len(piece)-known:])
	}
	if st.latest == len(st.later) {
		st.catchUp()
	}
	st.later[st.latest] = piece
	st.latest++
	// Rules do not look further than known: what is in front of that is dropped.
	n, first := 0, st.latest
	for first > 0 && n < known {
		first--
		n += len(st.later[first])
	}
	if n >= known {
		st.latest = copy(st.later[:], st.later[first:st.latest])
		st.text, st.own = "", false
		st.out, st.rules, st.values = 0, 0, 0
	}
}

// catchUp makes the pieces a part of text.
func (st *Stream) catchUp() {
	pieces := st.later[:st.latest]
	if st.text == "" {
		st.text, pieces = pieces[0], pieces[1:]
	}
	for _, piece := range pieces {
		st.join(piece)
	}
	if n := len(st.text) - 2*known; n > 0 {
		st.text = st.text[n:]
		st.start += n
	}
	st.latest = 0
	st.out, st.rules, st.values = len(st.text), len(st.text), len(st.text)
}

// Close returns what is left. The stream is as new.
func (st *Stream) Close() string {
	out := ""
	if st.out < len(st.text) {
		out = st.add("", st.s.values(), true)
	}
	*st = Stream{s: st.s, masked: st.masked}
	return out
}

// join puts a piece behind the text.
func (st *Stream) join(piece string) {
	if !st.own || st.buf.Cap()-st.buf.Len() < len(piece) {
		st.buf = strings.Builder{}
		st.buf.Grow(max(2*known, 2*(len(st.text)+len(piece))))
		st.buf.WriteString(st.text)
		st.start, st.own = 0, true
	}
	st.buf.WriteString(piece)
	st.text = st.buf.String()[st.start:]
}

func (st *Stream) add(piece string, v *Values, final bool) string {
	if st.latest > 0 {
		st.catchUp()
	}
	idle := st.out == len(st.text)
	st.join(piece)
	f := found{hold: len(st.text), resume: len(st.text)}
	for _, r := range st.open {
		f.close(st.text, r)
	}
	st.s.find(&f, st.text, st.rules, final)
	values := len(st.text)
	if v != nil {
		values = v.find(&f, st.text, st.values, final)
	}
	if f.hold = max(f.hold, st.out); final {
		f.hold = len(st.text)
	}
	var out string
	if changed := false; f.regions == nil {
		if out = st.text[st.out:f.hold]; idle && len(out) == len(piece) {
			out = piece
		}
	} else if out, changed = f.mask(st.text, st.out); !changed && idle && len(out) == len(piece) {
		out = piece
	} else {
		st.masked = st.masked || changed
	}
	// What was found behind the place where the rules go on is found again.
	st.open = slices.DeleteFunc(f.regions, func(r region) bool {
		return r.closed && r.at <= f.hold || r.trigger >= f.resume && r.rule != Value || r.trigger >= values && r.rule == Value
	})
	if len(st.open) == 0 {
		st.open = nil
	}
	st.out, st.rules, st.values = f.hold, f.resume, values
	if n := min(st.out, st.rules, st.values) - known; n > 0 {
		st.text = st.text[n:]
		st.start += n
		st.out, st.rules, st.values = st.out-n, st.rules-n, st.values-n
		for i := range st.open {
			r := &st.open[i]
			r.trigger, r.from, r.at = r.trigger-n, r.from-n, r.at-n
		}
	}
	return out
}
