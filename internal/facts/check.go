package facts

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/agentevents/agentevents/internal/jsonwire"
)

// A Breach is the kind of a fault.
type Breach uint8

// The kinds of faults.
const (
	Type     Breach = iota // a value of another type, or of none of the alternatives
	Range                  // a number outside its range, or a text or list of another length
	Pattern                // a text of another form
	Word                   // a word outside a closed list
	Closed                 // an extra member of a closed object
	Required               // a member is missing
)

// A Fault is the first condition that a value breaks.
type Fault struct {
	Breach  Breach
	Pointer string  // from the value on
	Detail  string  // for people: follows the name of the member
	Of      *Schema // whose condition it is
	Value   string  // the raw JSON that breaks it; "" if it is missing
}

// ExtraMember is the detail of [Closed].
const ExtraMember = "is an extra member of a closed object"

// Check returns the first condition that a value breaks, or nil. raw is one valid JSON value, or
// "" for a missing one, which breaks none.
func (s *Schema) Check(raw string) *Fault {
	c := checker{}
	if c.check(s, raw) {
		return nil
	}
	return &c.fault
}

// Fits reports whether a value breaks no condition.
func (s *Schema) Fits(raw string) bool {
	c := checker{}
	return c.check(s, raw)
}

// A checker walks a value. It keeps the fault, and the pointer only from there up.
type checker struct{ fault Fault }

func (c *checker) fail(s *Schema, what Breach, raw, detail string) bool {
	c.fault = Fault{Breach: what, Detail: detail, Of: s, Value: raw}
	return false
}

func (c *checker) below(name string) bool {
	c.fault.Pointer = "/" + jsonwire.Token(name) + c.fault.Pointer
	return false
}

// check checks a value. It reports false if it has found a fault.
func (c *checker) check(s *Schema, raw string) bool {
	if s == nil || raw == "" {
		return true
	}
	if s.same != nil && !c.check(s.same, raw) {
		return false
	}
	if !c.kind(s, raw) {
		return false
	}
	switch raw[0] {
	case '"':
		if !c.text(s, raw) {
			return false
		}
	case '{':
		if !c.object(s, raw) {
			return false
		}
	case '[':
		if !c.list(s, raw) {
			return false
		}
	case 't', 'f', 'n':
	default:
		if v, err := strconv.ParseFloat(raw, 64); err == nil && !s.value.has(v) {
			return c.fail(s, Range, raw, "is not "+s.numbers())
		}
	}
	return c.rest(s, raw)
}

// rest checks the alternatives and the conditions on the whole value.
func (c *checker) rest(s *Schema, raw string) bool {
	for _, part := range s.all {
		if !c.check(part, raw) {
			return false
		}
	}
	unjudged := func(one *Schema) bool { return one.unjudged }
	if slices.ContainsFunc(s.any, unjudged) || slices.ContainsFunc(s.one, unjudged) {
		return true
	}
	if s.any != nil && !slices.ContainsFunc(s.any, func(one *Schema) bool { return one.Fits(raw) }) {
		return c.fail(s, Type, raw, "has no form that is allowed")
	}
	if s.one != nil {
		return c.alternative(s, raw)
	}
	if s.not != nil && s.not.Fits(raw) {
		return c.fail(s, Type, raw, s.not.forbidden())
	}
	if s.when == nil {
		return true
	}
	if s.when.Fits(raw) {
		return c.check(s.so, raw)
	}
	return c.check(s.otherwise, raw)
}

// forbidden describes the values that a schema has, for one that must not have them.
func (s *Schema) forbidden() string {
	var names []string
	for _, m := range s.members {
		if m.need {
			names = append(names, m.name)
		}
	}
	return "must not have " + strings.Join(names, " and ")
}

// alternative checks that a value has exactly one of the forms.
func (c *checker) alternative(s *Schema, raw string) bool {
	n := 0
	for _, one := range s.one {
		if one.Fits(raw) {
			n++
		}
	}
	switch {
	case n == 1:
		return true
	case n > 1:
		return c.fail(s, Type, raw, "has several forms of which it must have one")
	}
	best := s.Choice(raw)
	if word := best.otherWord(raw); word != "" {
		return c.words(s, word, jsonwire.Member(raw, word))
	}
	return c.check(best, raw)
}

// words is the fault of a member that tells the alternatives of s apart.
func (c *checker) words(s *Schema, name, raw string) bool {
	all := &Schema{}
	for _, one := range s.one {
		if of, _, _ := one.Member(name); of != nil {
			all.Words = append(all.Words, of.Words...)
		}
	}
	if c.kind(all, raw) {
		return c.fail(s, Type, raw, "has no form that is allowed")
	}
	return c.below(name)
}

// otherWord returns the member with a closed list of which a value has another word, or "".
func (s *Schema) otherWord(raw string) string {
	for _, m := range s.members {
		if m.need && m.Words != nil && !slices.Contains(m.Words, jsonwire.Text(jsonwire.Member(raw, m.name))) &&
			jsonwire.HasMember(raw, m.name) {
			return m.name
		}
	}
	return ""
}

// likelihood tells how likely a value is meant as one of the schema.
func (s *Schema) likelihood(raw string) (n int) {
	for _, m := range s.members {
		if !jsonwire.HasMember(raw, m.name) {
			continue
		}
		n++
		if m.need {
			n += 16
			if m.Words != nil && slices.Contains(m.Words, jsonwire.Text(jsonwire.Member(raw, m.name))) {
				n += 1024
			}
		}
	}
	return n
}

// kind checks the type of a value and, if it is a text, its words.
func (c *checker) kind(s *Schema, raw string) bool {
	if s.Words != nil {
		return c.word(s, raw)
	}
	if s.of == 0 || s.of&typeOf(raw) != 0 {
		return true
	}
	switch {
	case s.of == integer:
		return c.fail(s, Range, raw, "is not "+s.numbers())
	case s.of == number:
		return c.fail(s, Range, raw, "is not "+s.numbers())
	}
	return c.fail(s, Type, raw, nameOf(s.of))
}

func (c *checker) word(s *Schema, raw string) bool {
	word := jsonwire.Describe(raw)
	if raw[0] == '"' {
		if slices.Contains(s.Words, jsonwire.Text(raw)) {
			return true
		}
		word = jsonwire.Word(jsonwire.Text(raw))
	}
	return c.fail(s, Word, raw, word+" is not one of "+strings.Join(s.Words, ", "))
}

// typeOf returns the types that a value has.
func typeOf(raw string) types {
	switch raw[0] {
	case '{':
		return object
	case '[':
		return list
	case '"':
		return text
	case 't', 'f':
		return boolean
	case 'n':
		return null
	}
	if v, err := strconv.ParseFloat(raw, 64); err == nil && v == math.Trunc(v) {
		return number | integer
	}
	return number
}

// nameOf tells that a value has none of the types.
func nameOf(of types) string {
	if of == boolean {
		return "is neither true nor false"
	}
	var words []string
	for _, name := range [...]string{"object", "list", "text", "number", "integer", "boolean", "null"} {
		if of&typeNames[name] == 0 {
			continue
		}
		article := "a "
		switch name {
		case "object", "integer":
			article = "an "
		case "null":
			article = ""
		}
		words = append(words, article+name)
	}
	return "is not " + strings.Join(words, " or ")
}

// numbers describes the numbers that a schema has.
func (s *Schema) numbers() string {
	what := "a number"
	if s.of == integer {
		what = "a whole number"
	}
	low, high := strconv.FormatFloat(s.value.low, 'g', -1, 64), strconv.FormatFloat(s.value.high, 'g', -1, 64)
	switch v := s.value; {
	case v.hasLow && v.hasHigh && s.of != integer:
		return "in [" + low + ", " + high + "]"
	case v.hasLow && v.hasHigh:
		return what + " from " + low + " to " + high
	case v.hasLow:
		return what + " from " + low + " on"
	case v.hasHigh:
		return what + " up to " + high
	}
	return what
}

func (c *checker) text(s *Schema, raw string) bool {
	if s.Low == 0 && s.High == 0 && s.pattern == nil && s.Legal == nil && !s.time {
		return true
	}
	word := jsonwire.Text(raw)
	switch n := utf8.RuneCountInString(word); {
	case n == 0 && s.Low > 0:
		return c.fail(s, Range, raw, "is empty")
	case n < s.Low:
		return c.fail(s, Range, raw, "is shorter than "+strconv.Itoa(s.Low)+" characters")
	case s.High > 0 && n > s.High:
		return c.fail(s, Range, raw, "is longer than "+strconv.Itoa(s.High)+" characters")
	case s.time && !isTime(raw):
		return c.fail(s, Type, raw, "is not a time")
	case s.Legal != nil && s.Legal(word), s.Legal == nil && (s.pattern == nil || s.pattern.MatchString(word)):
	default:
		return c.fail(s, Pattern, raw, jsonwire.Brief(word)+" does not have the form "+s.pattern.String())
	}
	return true
}

// isTime reports whether a text is a time. RFC 3339 allows its letters in both cases.
func isTime(raw string) bool {
	var s jsonwire.Scanner
	s.Reset(strings.ToUpper(raw))
	_, err := s.Time()
	return err == nil
}

func (c *checker) object(s *Schema, raw string) bool {
	if s.members == nil && s.like == nil && !s.closed {
		return true
	}
	needs := s.needs
	for name, value := range jsonwire.Members(raw) {
		i, declared := s.index[name]
		if declared {
			if s.members[i].need {
				needs--
			}
			if !c.check(s.members[i].Schema, value) {
				return c.below(name)
			}
			continue
		}
		if !s.isLike(name) && s.closed {
			detail := ExtraMember
			if s.members == nil && s.like != nil {
				detail = "is a name without the form " + s.like[0].names.String()
			}
			c.fail(s, Closed, value, detail)
			return c.below(name)
		}
		for i := range s.like {
			if s.like[i].names.MatchString(name) && !c.check(s.like[i].Schema, value) {
				return c.below(name)
			}
		}
	}
	for i := 0; needs > 0 && i < len(s.members); i++ {
		if m := &s.members[i]; m.need && !jsonwire.HasMember(raw, m.name) {
			c.fail(s, Required, "", "is required")
			return c.below(m.name)
		}
	}
	return true
}

func (c *checker) list(s *Schema, raw string) bool {
	if s.element == nil && !s.unique && s.items == (span{}) {
		return true
	}
	var seen map[string]bool
	n := 0
	for value := range jsonwire.Elements(raw) {
		if !c.check(s.element, value) {
			return c.below(strconv.Itoa(n))
		}
		n++
		if !s.unique {
			continue
		}
		if text := jsonwire.Text(value); text != "" {
			value = jsonwire.Quote(text) // an escaped text is the same
		}
		if seen[value] {
			return c.fail(s, Type, raw, "has an element twice")
		}
		if seen == nil {
			seen = map[string]bool{}
		}
		seen[value] = true
	}
	switch {
	case s.items.has(float64(n)):
		return true
	case n == 0:
		return c.fail(s, Range, raw, "is empty")
	case s.items.hasHigh && float64(n) > s.items.high:
		return c.fail(s, Range, raw, "has more than "+strconv.Itoa(int(s.items.high))+" elements")
	}
	return c.fail(s, Range, raw, "has fewer than "+strconv.Itoa(int(s.items.low))+" elements")
}
