package secret

import (
	"encoding/base64"
	"encoding/hex"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Values are registered secrets. They are for concurrent use.
type Values struct {
	forms []string // sorted: the values, and how they look in base64 and hex
	first [256]bool
	// fours has a bit for the first four bytes of each form, by their hash: it says in a
	// moment that a form does not begin at a place.
	fours []uint64
	shift int
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
	bits := 12
	for 1<<bits < 16*len(v.forms) && bits < 24 {
		bits++
	}
	v.fours, v.shift = make([]uint64, 1<<(bits-6)), 32-bits
	for _, form := range v.forms {
		v.first[form[0]] = true
		h := v.hash(form)
		v.fours[h/64] |= 1 << (h % 64)
	}
	return v
}

// hash returns that of the first four bytes of a text.
func (v *Values) hash(text string) uint32 {
	_ = text[3]
	w := uint32(text[0]) | uint32(text[1])<<8 | uint32(text[2])<<16 | uint32(text[3])<<24
	return w * 0x9E3779B1 >> v.shift
}

// encodings returns a value and what is fixed of it in other encodings.
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

// A view is a way to read a text: as it is, or without the escapes of URLs, or without
// those of JSON in so many strings in each other.
type view struct {
	percent bool
	plus    bool // is a blank
	strings int
}

var views = [...]view{{}, {percent: true}, {percent: true, plus: true}, {strings: 1}, {strings: 2}, {strings: 3}, {percent: true, plus: true, strings: 1}}

// next returns what a text begins with, and its length there. part reports that the
// text ends in it.
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
		if i := strings.IndexByte(`"\/bfnrt'`, c[0]); i >= 0 {
			return one("\"\\/\b\f\n\r\t'"[i], size+more)
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

// narrow returns those of the forms from lo to hi that have c at k.
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

// find adds the parts of a text from at on that are values. It returns from where it
// must look again.
func (v *Values) find(f *found, text string, at int, final bool) (resume int) {
	if v == nil || len(v.forms) == 0 {
		return len(text)
	}
	known := len(f.regions) // those of rules
	escapes := strings.IndexByte(text[at:], '\\') >= 0 || strings.IndexByte(text[at:], '%') >= 0 || strings.IndexByte(text[at:], '+') >= 0
	for i := at; i < len(text); i++ {
		c := text[i]
		if !escapes && len(text)-i >= minForm {
			if h := v.hash(text[i:]); v.fours[h/64]&(1<<(h%64)) == 0 {
				continue
			}
		} else if !v.first[c] && c != '\\' && c != '%' && c != '+' {
			continue
		}
		n, part, escape := v.match(text[i:], view{})
		if escape || c == '\\' || c == '%' || c == '+' {
			for _, w := range views[1:] {
				m, p, _ := v.match(text[i:], w)
				n, part = max(n, m), part || p
			}
		}
		if part && !final { // what follows is looked at again
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

// quiet reports that no value is in a text and none begins in it.
func (v *Values) quiet(text string) bool {
	if v == nil {
		return true
	}
	f := found{hold: len(text)}
	return v.find(&f, text, 0, false) == len(text) && f.regions == nil
}

// has reports whether a number is a value, however it is written.
func (v *Values) has(number string) bool {
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
