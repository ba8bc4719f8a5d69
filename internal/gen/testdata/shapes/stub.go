package agentevents

import (
	"math"
	"strconv"
	"unicode/utf8"

	"github.com/agentevents/agentevents/internal/extra"
	"github.com/agentevents/agentevents/internal/jsonwire"
)

// What the real package declares by hand. The functions called check are those of codec_check.go.

type Kind string

type KindInfo struct{ Kind Kind }

type Payload interface{ kind() Kind }

type payloadOps interface {
	Payload
	appendJSON(dst []byte) []byte
	parseJSON(s *jsonwire.Scanner) error
	check() *fieldError
	index() int
	hasExtra() bool
}

type Unknown struct{ Type Kind }

func (u *Unknown) kind() Kind                          { return u.Type }
func (u *Unknown) appendJSON(dst []byte) []byte        { return append(dst, "{}"...) }
func (u *Unknown) parseJSON(s *jsonwire.Scanner) error { return s.Skip() }
func (u *Unknown) check() *fieldError                  { return nil }
func (u *Unknown) index() int                          { return -1 }
func (u *Unknown) hasExtra() bool                      { return false }
func (u *Unknown) clean(*cleaner) *Unknown             { return u }

func marshal(v interface{ appendJSON(dst []byte) []byte }) ([]byte, error) {
	return v.appendJSON(nil), nil
}

func unmarshal(text []byte, v interface {
	parseJSON(s *jsonwire.Scanner) error
}) error {
	var s jsonwire.Scanner
	s.Reset(string(text))
	return v.parseJSON(&s)
}

type extras = extra.Members

type JSON string

type Opt[T any] struct {
	V  T
	OK bool
}

type Class uint8

const (
	ClassSecret Class = iota
	ClassContent
	ClassMeta
	ClassID
)

type Rule string

const (
	// RuleFieldRequired: as in the package.
	RuleFieldRequired Rule = "field-required"
	// RuleFieldEnum: as in the package.
	RuleFieldEnum Rule = "field-enum"
	// RuleFieldRange: as in the package.
	RuleFieldRange Rule = "field-range"
	// RuleFieldUTF8: as in the package.
	RuleFieldUTF8 Rule = "field-utf8"
	// RuleFieldJSON: as in the package.
	RuleFieldJSON Rule = "field-json"
)

type fieldError struct {
	rule    Rule
	pointer string
	detail  string
}

func (e *fieldError) in(name string) *fieldError {
	e.pointer = "/" + name + e.pointer
	return e
}

// A cleaner replaces what is in its table.
type cleaner struct {
	table map[string]string
	calls []string
	words bool
	size  int
	err   *fieldError
}

const mostEscaped = 6

func (c *cleaner) text(name string, class Class, s string) (string, bool) {
	c.calls = append(c.calls, name+"="+s)
	c.size += mostEscaped * len(s)
	if out, ok := c.table[s]; ok {
		return out, true
	}
	return s, false
}

func (c *cleaner) json(name string, class Class, j JSON) (JSON, bool) {
	out, changed := c.text(name, class, string(j))
	if out == "!" {
		c.err = &fieldError{RuleFieldJSON, "/" + name, "no JSON"}
		return j, false
	}
	return JSON(out), changed
}

func (c *cleaner) object(name string, class Class, j JSON) (JSON, bool) {
	c.calls = append(c.calls, "object "+name)
	return c.json(name, class, j)
}

func (c *cleaner) extras(x extras) (extras, bool) {
	c.size += len(x)
	return x, false
}

func checkRequired(name string, present bool) *fieldError {
	if present {
		return nil
	}
	return &fieldError{RuleFieldRequired, "/" + name, "is required"}
}

// checkText refuses text that no JSON line can carry. Content is not checked:
// damaged characters in it are replaced and the event is marked sanitized.
func checkText(name, s string) *fieldError {
	if utf8.ValidString(s) {
		return nil
	}
	return &fieldError{RuleFieldUTF8, "/" + name, "is not valid UTF-8"}
}

// otherWord refuses a value that is not in its closed list.
func otherWord[T interface {
	~string
	words() []T
}](name string, v T) *fieldError {
	text := strconv.Quote(string(v)) + " is not one of: "
	for i, word := range v.words() {
		if i > 0 {
			text += ", "
		}
		text += string(word)
	}
	return &fieldError{RuleFieldEnum, "/" + name, text}
}

func checkMin[T ~int | ~int64](name string, v, min T) *fieldError {
	if v >= min {
		return nil
	}
	return &fieldError{RuleFieldRange, "/" + name,
		strconv.FormatInt(int64(v), 10) + " is below " + strconv.FormatInt(int64(min), 10)}
}

func checkFinite(name string, v float64) *fieldError {
	if !math.IsNaN(v) && !math.IsInf(v, 0) {
		return nil
	}
	return &fieldError{RuleFieldRange, "/" + name, "is not a finite number"}
}

func checkMinFloat(name string, v, min float64) *fieldError {
	if err := checkFinite(name, v); err != nil {
		return err
	}
	if v >= min {
		return nil
	}
	return &fieldError{RuleFieldRange, "/" + name, formatFloat(v) + " is below " + formatFloat(min)}
}

// checkUnit wants a number in [0, 1].
func checkUnit(name string, v float64) *fieldError {
	if v >= 0 && v <= 1 {
		return nil
	}
	return &fieldError{RuleFieldRange, "/" + name, formatFloat(v) + " is not in [0, 1]"}
}

func formatFloat(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }

// checkLacks reports a required member that the line did not have.
func checkLacks(x extras, _ func([]byte) []byte) *fieldError {
	for name := range x.Lacks() {
		return &fieldError{RuleFieldRequired, "/" + name, "is required"}
	}
	return nil
}
