package jsonwire

import (
	"math"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// MaxDepth is the number of objects and arrays that may be open at once, those
// inside a value that [Scanner.Skip] or [Scanner.Raw] consumes included.
const MaxDepth = 1000

// A Scanner reads JSON values from a string, in the order in which they stand
// there and without building anything in between. The caller drives it: it asks
// for the value that it expects next.
//
//	var s Scanner
//	s.Reset(text)
//	if err := s.Object(); err != nil {
//		return err
//	}
//	for {
//		name, ok, err := s.Member()
//		if err != nil {
//			return err
//		}
//		if !ok {
//			break
//		}
//		// Read exactly one value.
//	}
//	return s.End()
//
// After Object the caller calls Member, and after Array it calls Elem, until
// they report false; each time they report true it reads exactly one value.
//
// All methods skip whitespace first, and all their errors are of type
// [*SyntaxError]. When a method that reads a value fails, the Scanner stays in
// front of that value, so the caller may read it as something else or skip it.
// After an error of Member or Elem only Reset, Offset, Text and Duplicate are
// of use.
//
// Strings that a Scanner returns are substrings of the text where possible. A
// Scanner may be reused and copied; it may not be used by several goroutines at
// once. The zero Scanner has an empty text.
type Scanner struct {
	// Brief makes Aside leave escapes as they are. Reset clears it.
	Brief bool
	// Odd means that the text may be spelled in another way than the functions Append write it:
	// with whitespace, other escapes, skipped members. While it is not set, the text equals its
	// rewritten form. Callers set it too; Reset clears it.
	Odd bool
	// Texts is the memory into which String unescapes strings. If it is nil, String allocates
	// each unescaped string by itself. Reset sets it to nil.
	Texts *strings.Builder

	text   string
	pos    int
	depth  int  // objects and arrays that the caller has open
	fresh  bool // a container was opened and has had no Member or Elem call yet
	blanks int  // whitespace bytes that skipValue has passed over

	watch Watch // called for strings that skipValue passes, nil after it returned true
	ends  *Ends // of the watch
}

// Reset makes s read text from its start. The text may be anything: invalid UTF-8
// is an error of the method that comes across it. Reset("") lets go of a text.
func (s *Scanner) Reset(text string) { *s = Scanner{text: text} }

// Offset returns the byte offset of the next token. After a successful Member or Elem, after Kind,
// and after a method that failed to read a value, it is the offset of the next value's first byte.
func (s *Scanner) Offset() int { return s.pos }

// Text returns the text given to Reset.
func (s *Scanner) Text() string { return s.text }

// Rest returns the text from the next token on.
func (s *Scanner) Rest() string { return s.text[s.pos:] }

// CheckUTF8 returns a [*SyntaxError] at the first byte of text that is not part
// of valid UTF-8, or nil if there is none.
func CheckUTF8(text string) error {
	if utf8.ValidString(text) {
		return nil
	}
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRuneInString(text[i:])
		if r == utf8.RuneError && size == 1 {
			return invalidUTF8(text, i)
		}
		i += size
	}
	return nil
}

// Object consumes the '{' of an object. Member reads on. It is an error if the
// next value is not an object or is nested too deeply.
func (s *Scanner) Object() error { return s.open('{', "an object") }

// Array consumes the '[' of an array. Elem reads on. It is an error if the next
// value is not an array or is nested too deeply.
func (s *Scanner) Array() error { return s.open('[', "an array") }

func (s *Scanner) open(bracket byte, want string) error {
	i := s.next()
	if i >= len(s.text) || s.text[i] != bracket {
		return unexpected(s.text, i, want)
	}
	if s.depth >= MaxDepth {
		return tooDeep(i)
	}
	s.depth++
	s.fresh = true
	s.pos = i + 1
	return nil
}

func tooDeep(i int) error {
	return errorAt(i, "found a value nested deeper than "+strconv.Itoa(MaxDepth)+" levels")
}

// One flag is enough for all open containers: a comma is due before a member or
// an element unless the container was just opened, and by the time an inner
// container is closed, the outer one holds it and so is past its start.

// Member consumes the name of the open object's next member, unescaped, and the colon after it; the
// member's value is next. It reports false after the last member, when it has consumed the '}'. It
// does not look for duplicates; see [Scanner.Duplicate].
func (s *Scanner) Member() (name string, ok bool, err error) {
	text := s.text
	i := s.next()
	if i < len(text) && text[i] == '}' {
		s.fresh = false
		s.depth--
		s.pos = i + 1
		return "", false, nil
	}
	want := "a member name"
	if s.fresh {
		s.fresh = false
		want = "a member name or '}'"
	} else {
		if i >= len(text) || text[i] != ',' {
			return "", false, unexpected(text, i, "',' or '}'")
		}
		i = s.skip(i + 1)
	}
	if i >= len(text) || text[i] != '"' {
		return "", false, unexpected(text, i, want)
	}
	end, found, err := scanString(text, i)
	if err != nil {
		return "", false, err
	}
	name = text[i+1 : end-1]
	if found != 0 {
		name = unescape(name)
		s.Odd = s.Odd || found >= otherEscape
	}
	i = s.skip(end)
	if i >= len(text) || text[i] != ':' {
		return "", false, unexpected(text, i, "':'")
	}
	s.pos = s.skip(i + 1)
	return name, true, nil
}

// A Name is the name of a member in the form in which [Scanner.FieldOf] compares
// it: as machine words.
type Name struct {
	text       string // with quotes and colon
	head, mask uint64 // the first eight bytes of text, and which of them there are
	tail       uint64 // the last eight bytes, if there are as many
}

// Names returns names for Scanner.FieldOf. None needs an escape.
func Names(names ...string) []Name {
	list := make([]Name, len(names))
	for i, name := range names {
		text := `"` + name + `":`
		n := Name{text: text, mask: math.MaxUint64 >> (8 * max(0, 8-len(text)))}
		n.head = Load64(text+"       ", 0) & n.mask
		n.tail = Load64("       "+text, len(text)-1)
		list[i] = n
	}
	return list
}

// fieldGuesses is the number of names that Field tries before it parses the name: optional members
// are often left out.
const fieldGuesses = 8

// Field is Member for an object whose members are known and mostly come in the same order. names
// are their names as a writer without whitespace spells them, quotes and colon included; guess is
// the index of the one that is expected. It returns the member's index counted from 1, and 0 with
// the name of a member that is not among names. It returns -1 after the last member.
func (s *Scanner) Field(names []string, guess int) (n int, name string, err error) {
	i := s.pos
	if i < len(s.text) && s.text[i] == ',' && !s.fresh {
		i++
	}
	if rest := s.text[i:]; s.fresh || i > s.pos {
		for n := guess; n < min(len(names), guess+fieldGuesses); n++ {
			// Most wrong guesses differ in their first letter.
			lit := names[n]
			if len(rest) < len(lit) || rest[1] != lit[1] || rest[:len(lit)] != lit {
				continue
			}
			s.fresh = false
			s.pos = s.skip(i + len(lit))
			return n + 1, lit[1 : len(lit)-len(`":`)], nil
		}
	}
	name, ok, err := s.Member()
	if !ok {
		return -1, "", err
	}
	for n, lit := range names {
		if lit[1:len(lit)-len(`":`)] == name {
			return n + 1, name, nil
		}
	}
	return 0, name, nil
}

// FieldOf is Field for names that are prepared. It takes less time.
func (s *Scanner) FieldOf(names []Name, guess int) (n int, name string, err error) {
	text, i := s.text, s.pos
	start := s.fresh
	if !start && i < len(text) {
		switch text[i] {
		case ',':
			start = true
			i++
		case '}':
			s.depth--
			s.pos = i + 1
			return -1, "", nil
		}
	}
	if start && i+8 <= len(text) {
		head := Load64(text, i)
		for n := guess; n < min(len(names), guess+fieldGuesses); n++ {
			known := &names[n]
			if (head^known.head)&known.mask != 0 {
				continue
			}
			end := i + len(known.text)
			if end > i+8 && (end > len(text) || Load64(text, end-8) != known.tail || end > i+16 && text[i:end] != known.text) {
				continue
			}
			s.fresh = false
			s.pos = s.skip(end)
			return n + 1, known.name(), nil
		}
	}
	name, ok, err := s.Member()
	if !ok {
		return -1, "", err
	}
	for n := range names {
		if names[n].name() == name {
			return n + 1, name, nil
		}
	}
	return 0, name, nil
}

func (n *Name) name() string { return n.text[1 : len(n.text)-len(`":`)] }

// Elem reports whether the open array has another element, which is then next.
// It reports false when there is none and it has consumed the ']'.
func (s *Scanner) Elem() (ok bool, err error) {
	text := s.text
	i := s.next()
	if i < len(text) && text[i] == ']' {
		s.fresh = false
		s.depth--
		s.pos = i + 1
		return false, nil
	}
	if s.fresh {
		s.fresh = false
		if i >= len(text) {
			return false, unexpected(text, i, "a value or ']'")
		}
		return true, nil
	}
	if i >= len(text) || text[i] != ',' {
		return false, unexpected(text, i, "',' or ']'")
	}
	i = s.skip(i + 1)
	if i >= len(text) || text[i] == ']' {
		return false, unexpected(text, i, "a value")
	}
	s.pos = i
	return true, nil
}

// Duplicate returns the error, a [*SyntaxError] at the current offset, for a name that occurs twice
// in an object. The caller of Member keeps track of the names and decides.
func (s *Scanner) Duplicate(name string) error { return duplicate(s.pos, name) }

func duplicate(i int, name string) error {
	return errorAt(i, "found duplicate member name "+Brief(name))
}

// Null reports whether the next value is the literal null, and if so consumes
// it.
func (s *Scanner) Null() bool {
	// Mostly it is not, and the caller need not call for that.
	if i := s.pos; i < len(s.text) && s.text[i] > ' ' && s.text[i] != 'n' {
		return false
	}
	return s.null()
}

func (s *Scanner) null() bool {
	i := s.next()
	if !strings.HasPrefix(s.text[i:], "null") {
		return false
	}
	s.pos = i + len("null")
	return true
}

// String consumes a string and returns it, unescaped: a substring of the text if
// there are no escapes, a new string otherwise. It is an error if the next value
// is not a string, or has a control character, an unknown escape, a lone surrogate
// or invalid UTF-8 in it.
func (s *Scanner) String() (string, error) { return s.str(false) }

// Aside is String for a text that its caller may not look at: with Brief set it
// is validated but not unescaped, which saves an allocation.
func (s *Scanner) Aside() (string, error) { return s.str(s.Brief) }

func (s *Scanner) str(raw bool) (string, error) {
	i := s.next()
	if i >= len(s.text) || s.text[i] != '"' {
		return "", unexpected(s.text, i, "a string")
	}
	rest := s.text[i+1:]
	n := plainLen(rest)
	if n < len(rest) && rest[n] == '"' {
		s.pos = i + n + 2
		return rest[:n], nil
	}
	end, found, err := scanString(s.text, i+n) // the rest of it
	if err != nil {
		return "", err
	}
	s.pos = end
	str := s.text[i+1 : end-1]
	if found == 0 {
		return str, nil
	}
	s.Odd = s.Odd || found >= otherEscape
	switch {
	case raw:
		return str, nil
	case s.Texts == nil:
		return unescape(str), nil
	}
	return unescapeInto(s.Texts, str), nil
}

// Bool consumes a literal true or false and returns it. It is an error if the
// next value is something else.
func (s *Scanner) Bool() (bool, error) {
	i := s.next()
	switch rest := s.text[i:]; {
	case strings.HasPrefix(rest, "true"):
		s.pos = i + len("true")
		return true, nil
	case strings.HasPrefix(rest, "false"):
		s.pos = i + len("false")
		return false, nil
	}
	return false, unexpected(s.text, i, "true or false")
}

// Int consumes a number and returns it. It is an error if the next value is not
// a number, has a fraction or an exponent, whatever its value, or is out of
// range for int64. -0 is 0.
func (s *Scanner) Int() (int64, error) {
	i := s.next()
	u, end, err := scanInteger(s.text, i)
	if err != nil {
		return 0, err
	}
	n := int64(u)
	if s.text[i] == '-' {
		if u > 1<<63 {
			return 0, outOfRange(s.text, i, "int64")
		}
		n = -n
		s.Odd = s.Odd || u == 0
	} else if n < 0 {
		return 0, outOfRange(s.text, i, "int64")
	}
	s.pos = end
	return n, nil
}

// SmallInt is Int for an int, which holds less where it has 32 bits.
func (s *Scanner) SmallInt() (int, error) {
	before := s.pos
	n, err := s.Int()
	if err == nil && int64(int(n)) != n {
		s.pos = before
		return 0, outOfRange(s.text, s.next(), "int")
	}
	return int(n), err
}

// Whole consumes a whole number, as Int and SmallInt do. Below 2^53 it may have a fraction or
// an exponent, such as 1.0.
func Whole[T int | int64](s *Scanner) (T, error) {
	before := *s
	from := s.next()
	n, err := s.Int()
	if err != nil {
		if f, ferr := s.Float(); ferr == nil && math.Abs(f) < 1<<53 && isWhole(s.text[from:s.pos]) {
			n, err = int64(f), nil
		}
	}
	if err == nil && int64(T(n)) != n {
		err = outOfRange(s.text, from, "int")
	}
	if err != nil {
		*s = before
		return 0, err
	}
	return T(n), nil
}

// Uint consumes a number and returns it. It is an error if the next value is not
// a number, has a fraction or an exponent, whatever its value, or is out of
// range for uint64. -0 is 0.
func (s *Scanner) Uint() (uint64, error) {
	i := s.next()
	u, end, err := scanInteger(s.text, i)
	if err != nil {
		return 0, err
	}
	if s.text[i] == '-' {
		if u != 0 {
			return 0, outOfRange(s.text, i, "uint64")
		}
		s.Odd = true
	}
	s.pos = end
	return u, nil
}

// Float consumes a number and returns the float64 nearest to it. It is an error
// if the next value is not a number or if it is too large for a finite float64.
// A number too small becomes zero.
func (s *Scanner) Float() (float64, error) {
	i := s.next()
	end, err := scanNumber(s.text, i)
	if err != nil {
		return 0, err
	}
	f, err := strconv.ParseFloat(s.text[i:end], 64)
	if err != nil {
		return 0, outOfRange(s.text, i, "float64")
	}
	s.Odd = s.Odd || !usualFloat(s.text[i:end], f)
	s.pos = end
	return f, nil
}

// Millis consumes a number of milliseconds and returns it as a Duration, exact to the nanosecond:
// the conversion is decimal, and fractions of a nanosecond are rounded, halves away from zero. It
// is an error if the next value is not a number or if it is out of range.
func (s *Scanner) Millis() (time.Duration, error) {
	i := s.next()
	end, err := scanNumber(s.text, i)
	if err != nil {
		return 0, err
	}
	d, ok := parseMillis(s.text[i:end])
	if !ok {
		return 0, outOfRange(s.text, i, "a duration in milliseconds")
	}
	s.Odd = s.Odd || !usualMillis(s.text[i:end])
	s.pos = end
	return d, nil
}

// Seconds is Millis for a number of seconds.
func (s *Scanner) Seconds() (time.Duration, error) {
	i := s.next()
	end, err := scanNumber(s.text, i)
	if err != nil {
		return 0, err
	}
	d, ok := parseDuration(s.text[i:end], 9)
	if !ok {
		return 0, outOfRange(s.text, i, "a duration in seconds")
	}
	s.pos = end
	return d, nil
}

// Time consumes a string that holds an RFC 3339 time, with up to nine fraction
// digits and any offset, and returns the time in UTC. It is an error if the next
// value is not such a string, if it names a day or a time of day that does not
// exist (leap seconds included, which [time.Time] does not have), or if its
// year in UTC is not in 0 to 9999. T and Z are upper case.
func (s *Scanner) Time() (time.Time, error) {
	i := s.next()
	if i >= len(s.text) || s.text[i] != '"' {
		return time.Time{}, unexpected(s.text, i, "a time in a string")
	}
	end, found, err := scanString(s.text, i)
	if err != nil {
		return time.Time{}, err
	}
	str := s.text[i+1 : end-1]
	if found != 0 {
		str = unescape(str)
	}
	t, at, msg := parseTime(str)
	if msg != "" {
		if found != 0 {
			at = -1 // offsets in str are not offsets in the text
		}
		return time.Time{}, errorAt(i+1+at, "found a time"+ofBytes(len(str))+" with "+msg)
	}
	s.Odd = s.Odd || found != 0 || !usualTime(str)
	s.pos = end
	return t, nil
}

// Skip consumes a value of any type. It is an error if there is none, if it is
// malformed anywhere inside, if an object in it has two members with the same
// name (compared unescaped), or if it is nested too deeply.
func (s *Scanner) Skip() error {
	end, err := s.skipValue(s.next(), s.depth)
	if err != nil {
		return err
	}
	s.Odd = true
	s.pos = end
	return nil
}

// Raw consumes a value of any type like Skip, with the same errors, and returns its text without
// the whitespace between tokens: a substring of the text if it has no such whitespace, a new string
// otherwise. The order of members and the spelling of numbers and strings are kept.
func (s *Scanner) Raw() (string, error) {
	i := s.next()
	s.blanks = 0
	end, err := s.skipValue(i, s.depth)
	if err != nil {
		return "", err
	}
	s.pos = end
	raw := s.text[i:end]
	if s.blanks == 0 {
		return raw, nil
	}
	s.Odd = true
	return squeeze(raw, len(raw)-s.blanks), nil
}

// Kind returns the first byte of the next value, or '0' for a digit. The possible results are '{',
// '[', '"', 't', 'f', 'n', '-' and '0'; and 0 without a value. The value is not consumed, and may
// turn out malformed.
func (s *Scanner) Kind() byte {
	i := s.next()
	if i >= len(s.text) {
		return 0
	}
	switch c := s.text[i]; c {
	case '{', '[', '"', 't', 'f', 'n', '-':
		return c
	case '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
		return '0'
	}
	return 0
}

// End returns an error if anything but whitespace remains.
func (s *Scanner) End() error {
	if i := s.next(); i < len(s.text) {
		return unexpected(s.text, i, "end of text")
	}
	return nil
}

// next skips whitespace and returns the offset after it, which is at most
// len(s.text).
func (s *Scanner) next() int {
	if i := s.pos; i < len(s.text) && s.text[i] <= ' ' {
		s.pos = s.skipOdd(i)
	}
	return s.pos
}

// skip is next for the whitespace at text[i:], and leaves s where it is.
func (s *Scanner) skip(i int) int {
	if i < len(s.text) && s.text[i] <= ' ' {
		return s.skipOdd(i)
	}
	return i
}

func (s *Scanner) skipOdd(i int) int {
	s.Odd = true
	return skipSpace(s.text, i)
}

func skipSpace(text string, i int) int {
	for i < len(text) && isSpace(text[i]) {
		i++
	}
	return i
}

func isSpace(c byte) bool {
	return c <= ' ' && (c == ' ' || c == '\n' || c == '\r' || c == '\t')
}

// skipValue validates the value at text[i:], where depth containers are open,
// and returns the offset after it. It adds the whitespace inside it to s.blanks.
func (s *Scanner) skipValue(i, depth int) (int, error) {
	text := s.text
	if i < len(text) {
		switch text[i] {
		case '"':
			end, _, err := s.skipString(i)
			return end, err
		case '{':
			return s.skipObject(i, depth+1)
		case '[':
			return s.skipArray(i, depth+1)
		case '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
			end, err := scanNumber(text, i)
			if end-i >= LongNumber {
				s.ask(i, end, false)
			}
			return end, err
		case 't':
			if strings.HasPrefix(text[i:], "true") {
				return i + len("true"), nil
			}
		case 'f':
			if strings.HasPrefix(text[i:], "false") {
				return i + len("false"), nil
			}
		case 'n':
			if strings.HasPrefix(text[i:], "null") {
				return i + len("null"), nil
			}
		}
	}
	return 0, unexpected(text, i, "a value")
}

// ask asks the watch, if there is one, about the string or number from start to end.
func (s *Scanner) ask(start, end int, escaped bool) {
	if w := s.watch; w != nil && end > start && w.Text(s.text[start:end], escaped) {
		s.watch = nil
	}
}

// skipString is scanString that asks the watch, if there is one, about the string.
func (s *Scanner) skipString(i int) (end int, found escapes, err error) {
	text := s.text
	if s.watch == nil {
		return scanString(text, i)
	}
	busy, j := uint64(0), i+1
	for ; j+8 <= len(text); j += 8 {
		w := Load64(text, j)
		m := endings(w)
		if busy |= Busy(w & (m&-m - 1)); m != 0 { // of the bytes before a quote, and seven bits of it
			j += firstByte(m)
			break
		}
	}
	if busy&hi == 0 && j > 3 && j < len(text) && text[j] == '"' && !s.ends.has(uint32(load32(text, j-4)), j-i-1) {
		return j + 1, 0, nil
	}
	if end, found, err = scanString(text, i); err == nil {
		s.ask(i+1, end-1, found != 0)
	}
	return end, found, err
}

func (s *Scanner) skipObject(i, depth int) (int, error) {
	if depth > MaxDepth {
		return 0, tooDeep(i)
	}
	text := s.text
	i = s.skipBlanks(text, i+1)
	if i < len(text) && text[i] == '}' {
		return i + 1, nil
	}
	var names nameSet
	want := "a member name or '}'"
	for {
		if i >= len(text) || text[i] != '"' {
			return 0, unexpected(text, i, want)
		}
		want = "a member name"
		end, found, err := s.skipString(i)
		if err != nil {
			return 0, err
		}
		name := text[i+1 : end-1]
		if found != 0 {
			name = unescape(name)
		}
		if bit := nameBit(name); names.bits&bit == 0 && names.n < len(names.small) {
			names.bits |= bit
			names.small[names.n] = name
			names.n++
		} else if !names.add(name) {
			return 0, duplicate(i, name)
		}
		i = s.skipBlanks(text, end)
		if i >= len(text) || text[i] != ':' {
			return 0, unexpected(text, i, "':'")
		}
		i = s.skipBlanks(text, i+1)
		if i < len(text) && text[i] == '"' { // as skipValue does, but most values are strings
			i, _, err = s.skipString(i)
		} else {
			i, err = s.skipValue(i, depth)
		}
		if err != nil {
			return 0, err
		}
		i = s.skipBlanks(text, i)
		if i < len(text) && text[i] == ',' {
			i = s.skipBlanks(text, i+1)
			continue
		}
		if i < len(text) && text[i] == '}' {
			return i + 1, nil
		}
		return 0, unexpected(text, i, "',' or '}'")
	}
}

func (s *Scanner) skipArray(i, depth int) (int, error) {
	if depth > MaxDepth {
		return 0, tooDeep(i)
	}
	text := s.text
	i = s.skipBlanks(text, i+1)
	if i < len(text) && text[i] == ']' {
		return i + 1, nil
	}
	for {
		var err error
		i, err = s.skipValue(i, depth)
		if err != nil {
			return 0, err
		}
		i = s.skipBlanks(text, i)
		if i < len(text) && text[i] == ',' {
			i = s.skipBlanks(text, i+1)
			continue
		}
		if i < len(text) && text[i] == ']' {
			return i + 1, nil
		}
		return 0, unexpected(text, i, "',' or ']'")
	}
}

// skipBlanks is skipSpace that counts.
func (s *Scanner) skipBlanks(text string, i int) int {
	if i < len(text) && text[i] > ' ' {
		return i
	}
	return s.skipBlank(text, i)
}

func (s *Scanner) skipBlank(text string, i int) int {
	j := skipSpace(text, i)
	s.blanks += j - i
	return j
}

// A nameSet is the set of member names of one object. It lives on the stack of
// the function that reads the object and allocates only for large objects.
//
// The names of an object mostly differ in their bit of bits, and then a new one
// need not be compared with the others. skipObject looks there before it calls
// add.
type nameSet struct {
	n     int
	bits  uint64 // nameBit of those in small
	small [16]string
	large map[string]struct{} // all names, once they no longer fit in small
}

// add adds name and reports whether it was not in the set yet.
func (set *nameSet) add(name string) bool {
	if set.large != nil {
		// One lookup instead of two: a known name does not make it longer.
		n := len(set.large)
		set.large[name] = struct{}{}
		return len(set.large) > n
	}
	for i := range set.n {
		if set.small[i] == name {
			return false
		}
	}
	if set.n < len(set.small) {
		set.bits |= nameBit(name)
		set.small[set.n] = name
		set.n++
		return true
	}
	set.large = make(map[string]struct{}, 4*len(set.small))
	for _, known := range set.small {
		set.large[known] = struct{}{}
	}
	set.large[name] = struct{}{}
	return true
}

// nameBit returns one of 64 bits, in most cases another one for another name.
func nameBit(name string) uint64 {
	if name == "" {
		return 1
	}
	return 1 << ((len(name)*8 ^ int(name[0])*5 ^ int(name[len(name)-1])) & 63)
}

// squeeze returns raw, one valid JSON value, without the whitespace between
// tokens. That leaves size bytes.
func squeeze(raw string, size int) string {
	var b strings.Builder
	b.Grow(size)
	start := 0 // raw[start:i] is to be kept
	for i := 0; i < len(raw); {
		switch c := raw[i]; {
		case c == '"':
			i, _, _ = scanString(raw, i)
		case isSpace(c):
			b.WriteString(raw[start:i])
			i = skipSpace(raw, i)
			start = i
		default:
			i++
		}
	}
	b.WriteString(raw[start:])
	return b.String()
}
