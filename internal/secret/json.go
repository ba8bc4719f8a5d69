package secret

import (
	"strings"

	"github.com/agentevents/agentevents/internal/jsonwire"
)

// MaxStrings is the number of JSON texts in strings, in each other, that are read as JSON. Deeper
// JSON is masked as text.
const MaxStrings = 3

// JSON returns raw, one valid JSON value, with markers in the place of secrets: raw itself if it
// has none.
//
//   - The value of a member is masked when its name is a credential's: see [Names.Masks].
//   - So is the member "value" of an object whose member "name", "key" or "header" is the name of a
//     credential, and in a list the element after such a name or flag, as in
//     ["Authorization","Bearer x"].
//   - A string is masked by [Scanner.Mask]. One that is an object or a list of JSON is masked as
//     JSON, [MaxStrings] deep.
//   - A number that is a registered value or the number of a card is masked.
//   - Names with secrets in them are masked and stay different from the other names of their
//     object: from the names in taken for the outermost object, unless taken is nil.
//
// text, unless nil, is called with each masked string that is not the value of a credential, and
// returns its final text. member is the name, as it was, of the nearest member around it. JSON in a
// string is one string for it.
//
// The error comes from a [jsonwire.Scanner]. Nothing is copied before the first change.
func (s *Scanner) JSON(raw string, taken jsonwire.Taken, text func(member, text string) string) (string, error) {
	w := rewriter{s: s, v: s.values(), raw: raw}
	w.in.Reset(raw)
	if err := w.value("", taken, text); err != nil {
		return "", err
	}
	if w.done == 0 {
		return raw, nil
	}
	return string(append(w.out, raw[w.done:]...)), nil
}

// A rewriter is the state of JSON. The function for texts is not in it, or it would be
// on the heap.
type rewriter struct {
	s    *Scanner
	v    *Values
	in   jsonwire.Scanner
	raw  string
	out  []byte
	done int // bytes of raw that are in out
	deep int // strings around raw
}

// replace puts a string in the place of a part of raw.
func (w *rewriter) replace(start, end int, with string) {
	w.out = append(w.out, w.raw[w.done:start]...)
	w.out = jsonwire.AppendString(w.out, with)
	w.done = end
}

// mask replaces the value from start, which is read, by a marker, unless it is empty.
func (w *rewriter) mask(start int) {
	marker := Marker(Key)
	if old := w.raw[start:w.in.Offset()]; !jsonwire.Spells(old, "") && !jsonwire.Spells(old, marker) {
		w.replace(start, w.in.Offset(), marker)
	}
}

// value rewrites the next value. taken is for it, if it is an object.
func (w *rewriter) value(member string, taken jsonwire.Taken, each func(member, text string) string) error {
	switch w.in.Kind() {
	case '{':
		return w.object(taken, each)
	case '[':
		return w.array(member, each)
	case '"':
		start := w.start()
		text, err := w.in.String()
		if err != nil {
			return err
		}
		out := w.text(text)
		if each != nil {
			out = each(member, out)
		}
		if out != text {
			w.replace(start, w.in.Offset(), out)
		}
		return nil
	case '0', '-':
		start := w.start()
		if err := w.in.Skip(); err != nil {
			return err
		}
		number := w.raw[start:w.in.Offset()]
		if w.v.number(number) {
			w.replace(start, w.in.Offset(), Marker(Value))
		} else if len(number) >= leastDigits {
			if out := w.s.mask(number, w.v); out != number {
				w.replace(start, w.in.Offset(), out)
			}
		}
		return nil
	}
	return w.in.Skip()
}

// start returns where the next value begins.
func (w *rewriter) start() int {
	i := w.in.Offset()
	for i < len(w.raw) && strings.IndexByte(" \t\r\n:,", w.raw[i]) >= 0 {
		i++
	}
	return i
}

// text masks a string.
func (w *rewriter) text(text string) string {
	if w.deep < MaxStrings && isJSON(text) {
		inner := rewriter{s: w.s, v: w.v, raw: text, deep: w.deep + 1}
		inner.in.Reset(text)
		if inner.value("", nil, nil) == nil && inner.in.End() == nil {
			if inner.done == 0 {
				return text
			}
			return string(append(inner.out, text[inner.done:]...))
		}
	}
	return w.s.mask(text, w.v)
}

// isJSON reports whether a text looks like an object or a list, or like a string of
// which the same is true.
func isJSON(text string) bool {
	if text == "" || !opens[text[0]] {
		return false
	}
	text = strings.Trim(text, " \t\r\n")
	if len(text) < 4 {
		return false
	}
	switch last := text[len(text)-1]; text[0] {
	case '{':
		return last == '}'
	case '[':
		return last == ']'
	case '"':
		return last == '"'
	}
	return false
}

// opens are the bytes with which JSON may begin that isJSON knows.
var opens = [256]bool{'{': true, '[': true, '"': true, ' ': true, '\t': true, '\r': true, '\n': true}

func (w *rewriter) object(taken jsonwire.Taken, each func(member, text string) string) error {
	whole := w.in.Rest()
	looked, pair := false, none // the meaning of the member "name" for the member "value"
	if err := w.in.Object(); err != nil {
		return err
	}
	for {
		at := w.in.Offset()
		name, ok, err := w.in.Member()
		if err != nil || !ok {
			return err
		}
		if out := w.s.mask(name, w.v); out != name {
			for strings.IndexByte(" \t\r\n,", w.raw[at]) >= 0 {
				at++
			}
			if taken == nil { // once an object: it may have many such names
				taken = jsonwire.Taken{}
				for n := range jsonwire.Members(whole) {
					taken.Add(n)
				}
			}
			// Member has read the colon, and perhaps blanks in front of it.
			end := at + strings.LastIndexByte(w.raw[at:w.in.Offset()], '"') + 1
			w.replace(at, end, taken.Unique(out))
		}
		of := w.s.names.strength(name)
		if of == none && isOne(name, neighbors) {
			if !looked {
				looked, pair = true, w.s.label(whole)
			}
			of = pair
		}
		if of == none {
			if err := w.value(name, nil, each); err != nil {
				return err
			}
			continue
		}
		before, start := w.in, w.start()
		if err := w.in.Skip(); err != nil {
			return err
		}
		if of.masks(w.raw[start:w.in.Offset()]) {
			w.mask(start)
			continue
		}
		w.in = before
		if err := w.value(name, nil, each); err != nil {
			return err
		}
	}
}

// label returns the strength of the name that an object gives to a value.
func (s *Scanner) label(object string) strength {
	of := none
	for name, value := range jsonwire.Members(object) {
		if isOne(name, labels) && value[0] == '"' {
			of = max(of, s.names.strength(jsonwire.Text(value)))
		}
	}
	return of
}

func (w *rewriter) array(member string, each func(member, text string) string) error {
	if err := w.in.Array(); err != nil {
		return err
	}
	last, flagged := none, false // strength that the previous element gives to the next one
	for {
		ok, err := w.in.Elem()
		if err != nil || !ok {
			return err
		}
		if w.in.Kind() != '"' {
			last = none
			if err := w.value(member, nil, each); err != nil {
				return err
			}
			continue
		}
		before, start := w.in, w.start()
		text, err := w.in.String()
		if err != nil {
			return err
		}
		if last != none && (pair(text) || flagged && last.says(text) && text[0] != '-') {
			w.mask(start)
			last = none
			continue
		}
		name, dashes := strings.CutPrefix(text, "--")
		if last, flagged = w.s.names.strength(name), dashes; len(name) > maxName ||
			strings.ContainsAny(name, " :=") || last == weak && !dashes {
			last = none
		}
		w.in = before
		if err := w.value(member, nil, each); err != nil {
			return err
		}
	}
}
