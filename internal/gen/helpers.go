package main

// A helper is a declaration that does not depend on the structs. A file that
// uses its name gets it.
type helper struct {
	name string
	text string
}

var helpers = []helper{
	{"cloneText", `
// cloneText copies text, so that it does not keep the longer text alive.
func cloneText[T ~string](s T) T { return T(strings.Clone(string(s))) }`},
	{"clearField", `
// clearField sets a field to zero.
func clearField[T any](field *T) { *field = *new(T) }`},
	{"appendAny", `
// appendAny appends a JSON value that is always written; none is null.
func appendAny(dst []byte, j JSON) []byte {
	if j == "" {
		return append(dst, "null"...)
	}
	return append(dst, j...)
}`},
	{"sortedKeys", `
// sortedKeys appends the keys of dict to buf, which should be empty, and sorts
// them. A buf that stays on the caller's stack saves the allocation.
func sortedKeys[V any](buf []string, dict map[string]V) []string {
	for key := range dict {
		buf = append(buf, key)
	}
	slices.Sort(buf)
	return buf
}`},
	{"checkTexts", `
// checkTexts refuses a list with text that no JSON line can carry.
func checkTexts[T ~string](name string, list []T) *fieldError {
	for i, s := range list {
		if !jsonwire.ValidUTF8(string(s)) {
			return checkText(strconv.Itoa(i), string(s)).in(name)
		}
	}
	return nil
}`},
	{"checkKeys", `
// checkKeys refuses a map with a key that no JSON line can carry. Repairing it
// could make it equal to another key.
func checkKeys[V any](name string, dict map[string]V) *fieldError {
	for key := range dict {
		if !jsonwire.ValidUTF8(key) {
			return &fieldError{RuleFieldUTF8, "/" + name, "has a key that is not valid UTF-8"}
		}
	}
	return nil
}`},
	{"checkMinMillis", `
// checkMinMillis is checkMin in the unit of the wire.
func checkMinMillis(name string, v, min time.Duration) *fieldError {
	if v >= min {
		return nil
	}
	text := append(jsonwire.AppendMillis(nil, v), " is below "...)
	return &fieldError{RuleFieldRange, "/" + name, string(jsonwire.AppendMillis(text, min))}
}`},
	{"checkYear", `
// checkYear refuses a time that RFC 3339 cannot express.
func checkYear(name string, t time.Time) *fieldError {
	if year := t.UTC().Year(); year < 0 || year > 9999 {
		return &fieldError{RuleFieldRange, "/" + name, "year " + strconv.Itoa(year) + " is not in [0, 9999]"}
	}
	return nil
}`},
	{"pointerToken", `
// pointerToken returns a map's key as a part of a JSON pointer.
func pointerToken(key string) string {
	return strings.ReplaceAll(strings.ReplaceAll(key, "~", "~0"), "/", "~1")
}`},
	{"copyOnce", `
// copyOnce returns the copy of v that a clean method writes to: w, or a new
// one while w is still v itself.
func copyOnce[T any](v, w *T) *T {
	if w != v {
		return w
	}
	c := *v
	return &c
}`},
	{"cleanKeys", `
// cleanKeys cleans the keys of a map, which are names like any other. Keys that
// become equal are told apart by a number, in the order they had. It returns
// v itself, or a copy and true.
func cleanKeys[V any](c *cleaner, name string, class Class, v map[string]V) (map[string]V, bool) {
	if class == ClassID {
		return v, false
	}
	keys := sortedKeys(make([]string, 0, 8), v)
	clean := make([]string, 0, 8)
	differ := false
	for _, key := range keys {
		text, changed := c.text(name, class, key)
		clean, differ = append(clean, text), differ || changed
	}
	if !differ {
		return v, false
	}
	w, taken := make(map[string]V, len(v)), jsonwire.Taken{}
	for i, key := range keys {
		w[taken.Unique(clean[i])] = v[key]
	}
	return w, true
}`},
	{"cleanTexts", `
// cleanTexts cleans every text of a list.
func cleanTexts[T ~string](c *cleaner, name string, class Class, list []T) ([]T, bool) {
	c.size += 40 * len(list)
	out := list
	changed := false
	for i, elem := range list {
		if s, differs := c.text(name, class, string(elem)); differs {
			if !changed {
				out, changed = slices.Clone(list), true
			}
			out[i] = T(s)
		}
	}
	return out, changed
}`},
	{"errorInside", `
// errorInside turns an error at /name, which a call for the element key of
// name set, into the one at /key: the caller adds the name again.
func errorInside(err *fieldError, name, key string) *fieldError {
	err.pointer = strings.TrimPrefix(err.pointer, "/"+name)
	return err.in(key)
}`},
	{"members", `
// members keeps the books of one object while it is parsed: the fields that were there, and the
// members that the struct cannot hold.
type members struct {
	seen uint64 // bit n-1 for field n
	more uint64 // bit n-65 for field n: only records have so many
	last int    // number of the last field, counted from 1
	x    extra.Builder
}

// repeats notes that field n is next, and reports whether it was there before.
func (m *members) repeats(s *jsonwire.Scanner, n int) bool {
	seen := &m.seen
	if n > 64 {
		seen = &m.more
	}
	bit := uint64(1) << ((n - 1) & 63)
	again := *seen&bit != 0
	*seen |= bit
	if n < m.last {
		s.Odd = true
	}
	m.last = n
	return again
}

// null consumes the null of an optional field, and reports whether it was one.
// The field stays absent.
func (m *members) null(s *jsonwire.Scanner, name string) bool {
	if !s.Null() {
		return false
	}
	m.spelled(name, "null")
	return true
}

// spelled keeps the text of the last field, which looks absent.
func (m *members) spelled(name, text string) { m.x.Spelled(m.last, name, text) }

// unknown keeps a member that no field has.
func (m *members) unknown(s *jsonwire.Scanner, name string) error {
	return m.x.Unknown(s, m.last, name)
}

// require notes the required fields that were not there.
func (m *members) require(fields []extra.Field) {
	for i := range fields {
		if fields[i].Required() && m.seen&(1<<i) == 0 {
			m.x.Missing(i+1, fields[i].Name)
		}
	}
}`},
	{"parseText", `
// parseText reads a word.
func parseText[T ~string](s *jsonwire.Scanner) (T, error) {
	text, err := s.String()
	return T(text), err
}`},
	{"parseBytes", `
// parseBytes reads a string into memory of its own; the empty one is nil.
func parseBytes(s *jsonwire.Scanner) ([]byte, error) {
	text, err := s.String()
	return append([]byte(nil), text...), err
}`},
	{"parseAny", `
// parseAny reads any JSON value.
func parseAny(s *jsonwire.Scanner) (JSON, error) {
	text, err := s.Raw()
	return JSON(text), err
}`},
}
