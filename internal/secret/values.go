package secret

import (
	"encoding/base64"
	"encoding/hex"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Values are registered secrets. They are for concurrent use.
//
// Mostly a text is looked at in steps that are as long as the shortest form: where none
// of the four bytes there are near the beginning of a form, none begins in between.
type Values struct {
	forms   []string // sorted: the values, and how they look in base64 and hex
	longest int      // length of the longest
	reach   int      // how many bytes of each form are in near
	near    hashes   // of each four bytes at their beginning
	fours   hashes   // of their first four bytes
	first   [256]bool
	has     [256]bool // bytes of forms
}

// maxReach bounds the memory for near.
const maxReach = 16

// hashes have a bit for each of many four bytes, by their hash.
type hashes struct {
	bits  []uint64
	shift int
}

// newHashes returns a set for n of them.
func newHashes(n int) hashes {
	size := 12
	for 1<<size < 12*n && size < 24 {
		size++
	}
	return hashes{make([]uint64, 1<<(size-6)), 32 - size}
}

func (h *hashes) add(text string, i int) {
	k := load32(text, i) * 0x9E3779B1 >> h.shift
	h.bits[k/64] |= 1 << (k % 64)
}

// may reports whether the four bytes at i may be in the set, by their hash.
func (h *hashes) may(text string, i int) bool {
	k := load32(text, i) * 0x9E3779B1 >> h.shift
	return h.bits[k/64]>>(k%64)&1 != 0
}

// maxForm is the length of the longest form. A longer value is several, each of which
// is masked: so no stream holds back much.
const maxForm = 256

// minForm is the length of the shortest form, and of the shortest value.
const minForm = 4

// NewValues returns the values as a set. Values under four bytes are left out.
func NewValues(raw []string) *Values {
	v := new(Values)
	for _, value := range raw {
		if len(value) < minForm {
			continue
		}
		for _, form := range encodings(value) {
			for len(form) > maxForm {
				v.forms = append(v.forms, form[:maxForm])
				form = form[min(maxForm, len(form)-maxForm):]
			}
			v.forms = append(v.forms, form)
		}
	}
	slices.Sort(v.forms)
	v.forms = slices.Clip(slices.Compact(v.forms))
	v.reach = maxReach
	for _, form := range v.forms {
		v.longest, v.reach = max(v.longest, len(form)), min(v.reach, len(form))
	}
	v.near, v.fours = newHashes(len(v.forms)*(v.reach-minForm+1)), newHashes(len(v.forms))
	for _, form := range v.forms {
		v.first[form[0]] = true
		for i := range len(form) {
			v.has[form[i]] = true
		}
		v.fours.add(form, 0)
		for i := range v.reach - minForm + 1 {
			v.near.add(form, i)
		}
	}
	return v
}

// encodings returns a value and the fixed parts of its other encodings.
func encodings(value string) []string {
	lower := hex.EncodeToString([]byte(value))
	list := []string{value, lower, strings.ToUpper(lower)}
	for _, enc := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
		for shift := range 3 {
			// The characters that the bytes around the value have a part in are left out.
			text := enc.EncodeToString([]byte(strings.Repeat("\x00", shift) + value))
			from, to := 0, len(text)
			if shift > 0 {
				from = shift + 1
			}
			if (len(value)+shift)%3 != 0 {
				to--
			}
			if to-from >= 5 {
				list = append(list, text[from:to])
			}
		}
	}
	return list
}

// A view is a way to read a text: unchanged, or without the escapes of URLs, or without the escapes
// of JSON in so many nested strings.
type view struct {
	percent bool
	plus    bool // is a blank
	strings int
}

var views = [...]view{{}, {percent: true}, {percent: true, plus: true},
	{strings: 1}, {strings: 2}, {strings: 3}, {percent: true, plus: true, strings: 1}}

// next returns the first character of a text, and its length there. part reports that the text ends
// in it.
func (w view) next(text string) (c [utf8.UTFMax]byte, n, size int, part bool) {
	if text == "" {
		return c, 0, 0, true
	}
	one := func(b byte, size int) ([utf8.UTFMax]byte, int, int, bool) {
		return [utf8.UTFMax]byte{b}, 1, size, false
	}
	if w.strings > 0 {
		inner := view{w.percent, w.plus, w.strings - 1}
		c, n, size, part = inner.next(text)
		if part || n != 1 || c[0] != '\\' {
			return c, n, size, part
		}
		c, n, more, part := inner.next(text[size:])
		if part {
			return c, 0, 0, true
		}
		if n != 1 {
			return one('\\', size)
		}
		if c[0] == 'u' {
			r := rune(0)
			end := size + more
			for range 4 {
				d, n, m, part := inner.next(text[end:])
				if part {
					return c, 0, 0, true
				}
				digit := strings.IndexByte("0123456789abcdef", d[0]|0x20)
				if n != 1 || digit < 0 {
					return one('\\', size)
				}
				r, end = r<<4|rune(digit), end+m
			}
			n = utf8.EncodeRune(c[:], r)
			return c, n, end, false
		}
		if i := strings.IndexByte(jsonEscapes, c[0]); i >= 0 {
			return one(jsonEscaped[i], size+more)
		}
		return one('\\', size)
	}
	if w.percent && text[0] == '%' {
		if len(text) < 3 {
			return c, 0, 0, true
		}
		if b, err := strconv.ParseUint(text[1:3], 16, 8); err == nil {
			return one(byte(b), 3)
		}
	}
	if w.plus && text[0] == '+' {
		return one(' ', 1)
	}
	return one(text[0], 1)
}

// match returns the length of the longest part at the beginning of a text that is a
// form in a view. part reports that the text ends within one, and escape that the
// text has a byte of an escape where no form goes on.
func (v *Values) match(text string, w view) (n int, part, escape bool) {
	lo, hi := 0, len(v.forms)
	plain := w == view{}
	for i, k := 0, 0; ; {
		// The forms from lo to hi begin with the k characters in front of i.
		if lo < hi && len(v.forms[lo]) == k && k > 0 {
			n = i
			lo++
		}
		if lo == hi {
			return n, false, escape
		}
		if i == len(text) {
			return n, true, escape
		}
		b := text[i]
		special := b == '\\' || b == '%' || b == '+'
		if plain || !special {
			lo, hi = v.narrow(lo, hi, k, b)
			escape = escape || special
			i, k = i+1, k+1
			continue
		}
		c, m, size, p := w.next(text[i:])
		if p {
			return n, true, escape
		}
		for j, b := range c[:m] {
			if lo, hi = v.narrow(lo, hi, k, b); lo == hi {
				return n, false, escape
			}
			if k++; j+1 < m && len(v.forms[lo]) == k { // a form ends within a character
				if lo++; lo == hi {
					return n, false, escape
				}
			}
		}
		i += size
	}
}

// narrow returns the forms from lo to hi that have c at k.
func (v *Values) narrow(lo, hi, k int, c byte) (int, int) {
	if hi-lo == 1 {
		if v.forms[lo][k] == c {
			return lo, hi
		}
		return lo, lo
	}
	first, _ := slices.BinarySearchFunc(v.forms[lo:hi], c, func(form string, c byte) int { return int(form[k]) - int(c) })
	lo += first
	after, _ := slices.BinarySearchFunc(v.forms[lo:hi], int(c)+1, func(form string, c int) int { return int(form[k]) - c })
	return lo, lo + after
}

// next returns the next place from i on where a form may begin.
func (v *Values) next(text string, i int, escapes *escapes) int {
	for i < len(text) {
		escape := v.escape(text, i, escapes)
		// A form that begins up to there is written without escapes, and the text does not end
		// inside it.
		plain := min(escape-v.longest, len(text)-v.reach)
		for k := i; k <= plain; k += v.reach - minForm + 1 {
			if !v.near.may(text, k+v.reach-minForm) {
				continue
			}
			for j := k; j <= min(k+v.reach-minForm, plain); j++ {
				if v.fours.may(text, j) {
					return j
				}
			}
		}
		for i = max(i, plain+1); i < min(escape, len(text)); i++ {
			if min(escape, len(text))-i >= minForm {
				if v.fours.may(text, i) {
					return i
				}
			} else if v.first[text[i]] {
				return i
			}
		}
		if i == escape {
			return i
		}
	}
	return i
}

// escapes are the places of the next escapes that count, by their first character.
type escapes [3]int

const escapeChars = "\\%+"

// escape returns the place of the next escape from i on that may be a part of a form: far after the
// text if there is none.
func (v *Values) escape(text string, i int, escapes *escapes) int {
	next := math.MaxInt
	for k := range escapes {
		at := &escapes[k]
		for j := i; *at < i; j++ {
			n := -1
			if escapeChars[k] != '+' || v.has[' '] {
				n = strings.IndexByte(text[j:], escapeChars[k])
			}
			if n < 0 {
				*at = math.MaxInt
			} else if j += n; v.counts(text, j) {
				*at = j
			}
		}
		next = min(next, *at)
	}
	return next
}

// counts reports whether the escape at i may stand for a byte of a form in one of the views.
func (v *Values) counts(text string, i int) bool {
	switch text[i] {
	case '+':
		return v.has[' ']
	case '%':
		if len(text)-i < 3 {
			return true
		}
		b, err := strconv.ParseUint(text[i+1:i+3], 16, 8)
		return err == nil && (v.has[b] || b == '\\')
	}
	if v.has['\\'] {
		return true
	}
	const most = 16 // so many stand for a backslash at least in all views
	for n := 0; i < len(text) && text[i] == '\\'; n++ {
		if n == most {
			return false
		}
		i++
	}
	if i == len(text) || text[i] == 'u' || text[i] == '%' {
		return true
	}
	k := strings.IndexByte(jsonEscapes, text[i])
	return k >= 0 && v.has[jsonEscaped[k]]
}

// jsonEscapes are the letters of escapes in strings of JSON, and jsonEscaped the characters that
// they stand for.
const (
	jsonEscapes = `"\/bfnrt'`
	jsonEscaped = "\"\\/\b\f\n\r\t'"
)

// find adds the parts of a text from at on that are values. It returns from where it
// must look again.
func (v *Values) find(f *found, text string, at int, final bool) (resume int) {
	if v == nil || len(v.forms) == 0 {
		return len(text)
	}
	known := len(f.regions) // regions of rules
	escapes := escapes{-1, -1, -1}
	for i := at; ; i++ {
		if i = v.next(text, i, &escapes); i >= len(text) {
			break
		}
		c := text[i]
		n, part, escape := v.match(text[i:], view{})
		if escape || c == '\\' || c == '%' || c == '+' {
			for _, w := range views[1:] {
				m, p, _ := v.match(text[i:], w)
				n, part = max(n, m), part || p
			}
		}
		if part && !final { // the rest is looked at again
			f.hold = min(f.hold, i)
			return i
		}
		if part && len(text)-i >= unfinished {
			n = len(text) - i
		}
		if k := len(f.regions) - 1; n > 0 && k >= known && f.regions[k].at > i {
			f.regions[k].at = max(f.regions[k].at, i+n)
		} else if n > 0 {
			f.regions = append(f.regions, region{trigger: i, from: i, at: i + n, closed: true, rule: Value})
		}
		if i+n == len(text) && n > 0 && part {
			break
		}
	}
	return len(text)
}

// number reports whether a number is a value, however it is written.
func (v *Values) number(number string) bool {
	if v == nil {
		return false
	}
	if v.whole(number) {
		return true
	}
	if strings.ContainsAny(number, ".eE") {
		if x, err := strconv.ParseFloat(number, 64); err == nil {
			return v.whole(strconv.FormatFloat(x, 'f', -1, 64))
		}
	}
	return false
}

// whole reports whether a value is in a text.
func (v *Values) whole(text string) bool {
	f := found{hold: len(text)}
	v.find(&f, text, 0, true)
	return f.regions != nil
}
