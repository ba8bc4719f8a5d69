package jsonwire

import (
	"strings"
	"testing"
)

var fieldTexts = func() (texts []string) {
	for _, known := range fieldNames {
		texts = append(texts, known.text)
	}
	return texts
}()

var fieldNames = Names("id", "a", "ab", "name", "b", "c", "last", "fives", "sixsix", "longname", "causationId", "argumentsSummary", "")

// With any guess, Field and FieldOf read the same as Member.
func TestFieldReadsTheSameAsMember(t *testing.T) {
	for _, text := range []string{
		`{}`, ` { } `, `{"id":1}`, `{"id":1,"a":2,"ab":3,"name":4,"b":5,"c":6,"last":7}`, `{"last":7,"c":6,"b":5,"name":4,"ab":3,"a":2,"id":1}`,
		`{ "id" : 1 , "a" : 2 }`, `{"id": 1,"a": 2}`, `{"id":1 ,"a":2}`, `{"i\u0064":1,"\u0061":2}`, `{"":1,"other":{"id":1},"ab":[{"a":1}],"abc":3}`,
		`{"longname":1,"causationId":2,"argumentsSummary":3}`, `{"longnamf":1,"causationIe":2,"argumentsSummarz":3,"argumentsXummary":4,"cbusationId":5}`,
		`{"fives":1,"sixsix":2}`, `{"fivet":1,"fives0":2,"sixsiy":3,"xixsix":4}`, `{"causationId":2}`, `{"argumentsSummary"`, `{"sixsix":`,
		`{"id":1,"id":2}`, `{"a":1,"a":2,"a":3}`, "{\n\t\"id\":\n1,\n\"last\":2\n}",
		// Not objects.
		``, `[]`, `{`, `{"id"`, `{"id":`, `{"id":1`, `{"id":1,`, `{"id":1,}`, `{,"id":1}`, `{"id":1,,"a":2}`, `{"id":1"a":2}`, `{"id" 1}`, `{id:1}`,
		`{"id":1,"a":2`, `{"a":1]`, `{"id":,"a":2}`, "{\"id\":1,\"\xff\":2}", `{"id":1,"a`, `{"id":1,"\q":2}`,
	} {
		want := readMembers(text, func(s *Scanner) (string, bool, error) { return s.Member() })
		for guess := range len(fieldNames) + 2 {
			last := guess
			got := readMembers(text, func(s *Scanner) (string, bool, error) {
				probe := *s
				n, name, err := s.FieldOf(fieldNames, last)
				n2, name2, err2 := probe.Field(fieldTexts, last)
				if n != n2 || name != name2 || (err == nil) != (err2 == nil) || err == nil && probe.Offset() != s.Offset() {
					t.Fatalf("%s with guess %d: FieldOf reads %d %q, %v, Field %d %q, %v", text, guess, n, name, err, n2, name2, err2)
				}
				switch {
				case n > 0:
					if known := fieldNames[n-1]; known.name() != name {
						t.Fatalf("%s: member %d is %s, not %q", text, n, known.name(), name)
					}
					last = n + guess - 1
				case n == 0:
					for _, known := range fieldNames {
						if known.name() == name {
							t.Fatalf("%s: %q is known", text, name)
						}
					}
				}
				return name, n >= 0, err
			})
			if got != want {
				t.Fatalf("%s with guess %d:\n%s\nwant\n%s", text, guess, got, want)
			}
		}
	}
}

// readMembers describes the members that a way of reading finds.
func readMembers(text string, next func(*Scanner) (string, bool, error)) string {
	var s Scanner
	var out strings.Builder
	s.Reset(text)
	if err := s.Object(); err != nil {
		return err.Error()
	}
	for {
		name, ok, err := next(&s)
		if err != nil {
			return out.String() + err.Error()
		}
		if !ok {
			break
		}
		raw := ""
		at := s.Offset()
		if raw, err = s.Raw(); err != nil {
			return out.String() + err.Error()
		}
		out.WriteString(name + "=" + raw + "@" + string(rune('0'+at%10)) + " ")
	}
	if err := s.End(); err != nil {
		return out.String() + err.Error()
	}
	return out.String() + "end"
}
