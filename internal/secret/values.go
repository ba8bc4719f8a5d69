package secret

import (
	"encoding/base64"
	"encoding/hex"
	"slices"
	"strings"
	"unicode/utf8"
)

// Values are registered secrets. They are for concurrent use.
type Values struct {
	raw   []string
	forms []string // the values and how they look in other encodings, without those of escapes
	first [256]bool
	most  int // length of the longest form; an escape takes up to six bytes for one
}

// NewValues returns the values as a set.
func NewValues(raw []string) *Values {
	v := &Values{raw: slices.Clone(raw)}
	for _, value := range raw {
		for _, form := range encodings(value) {
			if len(form) >= 4 && !slices.Contains(v.forms, form) {
				v.forms = append(v.forms, form)
				v.first[form[0]] = true
				v.most = max(v.most, len(form))
			}
		}
		v.most = max(v.most, 6*len(value))
	}
	return v
}

// encodings returns a value and what is fixed of it in other encodings.
func encodings(value string) []string {
	list := []string{value, hex.EncodeToString([]byte(value)), strings.ToUpper(hex.EncodeToString([]byte(value)))}
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
			if to-from >= 8 {
				list = append(list, text[from:to])
			}
		}
	}
	return list
}

// match returns the length of the part of a text that is a value in some encoding. part
// reports that the text ends within it.
func (v *Values) match(text string) (n int, part bool) {
	if v.first[text[0]] {
		for _, form := range v.forms {
			switch {
			case strings.HasPrefix(text, form):
				n = max(n, len(form))
			case len(text) < len(form) && strings.HasPrefix(form, text):
				part = true
			}
		}
	}
	if text[0] == '%' || text[0] == '\\' || v.first[text[0]] {
		for _, value := range v.raw {
			switch m, p := escaped(text, value); {
			case p:
				part = true
			default:
				n = max(n, m)
			}
		}
	}
	return n, part
}

// escaped returns the length of the part of a text that is the value with escapes of
// URLs or of JSON.
func escaped(text, value string) (n int, part bool) {
	for len(value) > 0 {
		if n == len(text) {
			return 0, n > 0
		}
		c, size, part := unescape(text[n:])
		if part {
			return 0, true
		}
		if !strings.HasPrefix(value, c) {
			return 0, false
		}
		n, value = n+size, value[len(c):]
	}
	return n, false
}

// unescape returns what a text begins with, and its length there. part reports that the
// text ends in an escape.
func unescape(text string) (c string, size int, part bool) {
	switch text[0] {
	case '%':
		if len(text) < 3 {
			return "", 0, true
		}
		if b, err := hex.DecodeString(text[1:3]); err == nil {
			return string(b), 3, false
		}
	case '\\':
		n := 1
		for n < len(text) && text[n] == '\\' {
			n++
		}
		if n == len(text) {
			return "", 0, true
		}
		if n%2 == 0 { // backslashes, escaped
			return `\`, 2, false
		}
		if text[n] == 'u' {
			if len(text) < n+5 {
				return "", 0, true
			}
			if b, err := hex.DecodeString(text[n+1 : n+5]); err == nil {
				return string(utf8.AppendRune(nil, rune(b[0])<<8|rune(b[1]))), n + 5, false
			}
		}
		if i := strings.IndexByte(`"\/bfnrt`, text[n]); i >= 0 {
			return "\"\\/\b\f\n\r\t"[i : i+1], n + 1, false
		}
	}
	return text[:1], 1, false
}

// find returns the first part of a text, from at, that values cover, and whether the
// text ends within it.
func (v *Values) find(text string, at int, final bool) (from, to int, part bool) {
	from = -1
	for i := at; i < len(text) && (from < 0 || i < to); i++ {
		n, p := 0, false
		if c := text[i]; v.first[c] || c == '%' || c == '\\' {
			n, p = v.match(text[i:])
		}
		if p && final {
			p = false
			if len(text)-i >= unfinished {
				n = len(text) - i
			}
		}
		switch {
		case p && from < 0:
			return i, 0, true
		case p:
			return from, 0, true
		case n > 0 && from < 0:
			from, to = i, i+n
		case n > 0:
			to = max(to, i+n)
		}
	}
	return from, to, false
}

// Mask returns a text with markers in the place of values.
func (v *Values) Mask(text string) string {
	var st valueStream
	return st.scan(v, text, true)
}

// A valueStream masks the values in a text that comes in pieces.
type valueStream struct{ text string }

func (st *valueStream) held() bool { return st.text != "" }

func (st *valueStream) write(v *Values, piece string) string {
	if v == nil {
		return piece
	}
	return st.scan(v, piece, false)
}

func (st *valueStream) close(v *Values) string {
	if v == nil {
		return st.text
	}
	return st.scan(v, "", true)
}

func (st *valueStream) scan(v *Values, piece string, final bool) string {
	text := st.text + piece
	var out []byte
	at := 0
	for {
		from, to, part := v.find(text, at, final)
		if part {
			if len(text)-from <= maxHeld {
				st.text = text[from:]
				return string(append(out, text[at:from]...))
			}
			to = len(text)
		}
		if from < 0 {
			break
		}
		out = append(append(out, text[at:from]...), Marker(Value)...)
		at = to
	}
	st.text = ""
	if out == nil {
		return text
	}
	return string(append(out, text[at:]...))
}
