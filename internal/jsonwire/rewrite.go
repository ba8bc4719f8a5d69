package jsonwire

import "strconv"

// An Editor decides what [Rewrite] changes. Names and strings are unescaped.
type Editor struct {
	// Name returns what a member is called from now on.
	Name func(name string) string
	// Mask returns a text to put in place of a member's value, of which first is what
	// [Scanner.Kind] says. When ok is false the value is looked into.
	Mask func(name string, first byte) (text string, ok bool)
	// String returns what a string says from now on. member is the name, as it was, of
	// the nearest member around it; a string outside of objects has none.
	String func(member, text string) string
}

// Rewrite returns raw, one JSON value without insignificant whitespace, as e wants
// it. Names of an object that are changed stay different from its other names: from
// those in taken for the outermost object, unless taken is nil. A value to be masked
// that is the empty string stays.
//
// Nothing is copied before the first change; raw itself is returned when there is
// none. The error is that of a [Scanner].
func Rewrite(raw string, e Editor, taken Taken) (string, error) {
	w := rewriter{text: raw}
	w.s.Reset(raw)
	if err := w.value(&e, "", taken); err != nil {
		return "", err
	}
	if w.done == 0 {
		return raw, nil
	}
	return string(append(w.out, raw[w.done:]...)), nil
}

// A rewriter is the state of Rewrite. The editor is not in it, or it would be on the
// heap.
type rewriter struct {
	s    Scanner
	text string
	out  []byte
	done int // bytes of text that are in out
}

func (w *rewriter) replace(start, end int, with string) {
	w.out = append(w.out, w.text[w.done:start]...)
	w.out = AppendString(w.out, with)
	w.done = end
}

// value rewrites the next value. taken is for it, if it is an object.
func (w *rewriter) value(e *Editor, member string, taken Taken) error {
	switch w.s.Kind() {
	case '{':
		return w.object(e, taken)
	case '[':
		if err := w.s.Array(); err != nil {
			return err
		}
		for {
			ok, err := w.s.Elem()
			if err != nil || !ok {
				return err
			}
			if err := w.value(e, member, nil); err != nil {
				return err
			}
		}
	case '"':
		start := w.s.Offset()
		text, err := w.s.String()
		if err != nil {
			return err
		}
		if out := e.String(member, text); out != text {
			w.replace(start, w.s.Offset(), out)
		}
		return nil
	}
	return w.s.Skip()
}

func (w *rewriter) object(e *Editor, taken Taken) error {
	whole := w.s.Rest()
	if err := w.s.Object(); err != nil {
		return err
	}
	for {
		at := w.s.Offset()
		name, ok, err := w.s.Member()
		if err != nil || !ok {
			return err
		}
		if out := e.Name(name); out != name {
			if w.text[at] == ',' {
				at++
			}
			if taken == nil { // once an object: it may have many such names
				taken = Taken{}
				for n := range Members(whole) {
					taken.Add(n)
				}
			}
			w.replace(at, w.s.Offset()-1, taken.Unique(out))
		}
		start := w.s.Offset()
		mask, ok := e.Mask(name, w.s.Kind())
		if !ok {
			if err := w.value(e, name, nil); err != nil {
				return err
			}
			continue
		}
		if err := w.s.Skip(); err != nil {
			return err
		}
		if old := w.text[start:w.s.Offset()]; !Spells(old, "") && !Spells(old, mask) {
			w.replace(start, w.s.Offset(), mask)
		}
	}
}

// Taken holds names that are taken. With each goes the last number that was put
// behind it to make another name: 1 is none.
type Taken map[string]int

// Add adds a name.
func (t Taken) Add(name string) { t[name] = 1 }

// Unique returns name if it is free, or else with the first number, from 2, that
// makes it so. The result is taken from then on.
func (t Taken) Unique(name string) string {
	n := t[name]
	out := name
	for t[out] > 0 {
		n++
		out = name + "-" + strconv.Itoa(n)
	}
	if n > 0 {
		t[name] = n // the numbers up to n are taken
	}
	t.Add(out)
	return out
}
