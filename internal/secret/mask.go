package secret

import (
	"cmp"
	"slices"
	"strings"
)

// A Scanner masks the secrets that it recognises. It is for concurrent use.
type Scanner struct {
	names  *Names
	values func() *Values // registered so far
}

// New returns a scanner. values returns the registered values; it may be nil, and may return nil.
func New(names *Names, values func() *Values) *Scanner {
	if values == nil {
		values = func() *Values { return nil }
	}
	return &Scanner{names, values}
}

// Mask returns a text with markers in the place of secrets: the text itself if it has
// none.
func (s *Scanner) Mask(text string) string { return s.mask(text, s.values()) }

func (s *Scanner) mask(text string, v *Values) string {
	f := found{hold: len(text), resume: len(text)}
	s.find(&f, text, 0, true)
	if v != nil {
		v.find(&f, text, 0, true)
	}
	if f.regions == nil {
		return text
	}
	f.hold = len(text) // nothing follows
	out, _ := f.mask(text, 0)
	return out
}

// mask returns the text from out up to the held part, with markers.
func (f *found) mask(text string, out int) (masked string, changed bool) {
	slices.SortFunc(f.regions, func(a, b region) int {
		return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.rule, b.rule))
	})
	var b []byte
	pos, end := out, out // the end of the regions so far
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

// A Stream masks a text that comes in pieces. Its results, put together, are the masked text. The
// zero Stream is not ready: see [Scanner.Stream].
type Stream struct {
	s      *Scanner
	buf    strings.Builder // where text is, from start on
	start  int
	text   string   // the end of the passed text, and the held-back text
	out    int      // how much of text was passed on
	rules  int      // how much of it rules need not look at again
	values int      // how much of it values need not be looked for again
	word   int      // where the letters and digits begin in which it ends; not known if negative
	open   []region // that go on
	masked bool     // since Masked was asked
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

// Write adds a piece and returns the text that can be passed on: the piece itself if it is all.
func (st *Stream) Write(piece string) string {
	if piece == "" {
		return ""
	}
	return st.add(piece, false)
}

// Close returns the rest. The stream is as new.
func (st *Stream) Close() string {
	out := ""
	if st.out < len(st.text) {
		out = st.add("", true)
	}
	*st = Stream{s: st.s, masked: st.masked}
	return out
}

// join appends a piece to the text. The text grows in a buffer, in which no byte moves: a full
// buffer is left to the passed text, and the next one is longer.
func (st *Stream) join(piece string) {
	if size := st.buf.Cap(); size-st.buf.Len() < len(piece) {
		st.buf = strings.Builder{}
		st.buf.Grow(max(min(2*size, 16*known), 2*(len(st.text)+len(piece)), known))
		st.buf.WriteString(st.text)
		st.start = 0
	}
	st.buf.WriteString(piece)
	st.text = st.buf.String()[st.start:]
}

// note finds the last word of the text, which is new from from on.
func (st *Stream) note(from int) {
	text := st.text
	k := len(text)
	for k > from && kindOf[text[k-1]] != 0 {
		k--
	}
	if k == from && st.word >= 0 && k > 0 && kindOf[text[k-1]] != 0 {
		return // it goes on
	}
	for st.word = k; k > 0 && len(text)-k < mostWord && kindOf[text[k-1]] != 0; k-- {
		st.word = k - 1
	}
}

// Pass adds a short piece at which no rule looks and which is passed on as it is. Most
// pieces are such ones, and Pass costs less than Write. It reports whether the piece is one.
// Then it is ASCII.
func (st *Stream) Pass(piece string) bool {
	from := len(st.text)
	if st.rules != from || st.out != from || st.open != nil || len(piece) < 8 || len(piece) > short || !calm(piece) ||
		begins(piece, 0) || from > 0 && stops.has(st.text[from-1], piece[0]) || st.s.values() != nil {
		return false
	}
	if alnum[piece[0]] && st.word >= 0 && kindsOf(st.text[st.word:])&digit != 0 {
		return false // it may go on with a lead: see form.after
	}
	st.join(piece)
	st.word = -1 // it has no digit
	if st.out = len(st.text); st.out > 2*known {
		st.start += st.out - known
		st.text = st.text[st.out-known:]
		st.out = known
	}
	st.rules, st.values = st.out, st.out
	return true
}

func (st *Stream) add(piece string, final bool) string {
	from := len(st.text)
	idle := st.out == from
	st.join(piece)
	st.note(from)
	f := found{hold: len(st.text), resume: len(st.text), tail: st.word}
	for _, r := range st.open {
		f.close(st.text, r)
	}
	st.s.find(&f, st.text, st.rules, final)
	values := len(st.text)
	if v := st.s.values(); v != nil {
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
	if st.open = nil; f.regions != nil {
		// Regions after the place where the rules go on are found again.
		st.open = slices.DeleteFunc(f.regions, func(r region) bool {
			return r.closed && r.at <= f.hold || r.trigger >= f.resume && r.rule != Value ||
				r.trigger >= values && r.rule == Value
		})
	}
	st.out, st.rules, st.values = f.hold, f.resume, values
	if n := min(st.out, st.rules, st.values) - known; n > 0 {
		st.text = st.text[n:]
		st.start += n
		st.out, st.rules, st.values, st.word = st.out-n, st.rules-n, st.values-n, st.word-n
		for i := range st.open {
			r := &st.open[i]
			r.trigger, r.from, r.at = r.trigger-n, r.from-n, r.at-n
		}
	}
	return out
}
