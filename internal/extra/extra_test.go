package extra

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents/internal/jsonwire"
)

var fields = []Field{{Name: "id", Zero: `""`}, {Name: "note"}, {Name: "marks"}, {Name: "n", Zero: "0"}}

// parse keeps the extras of an object whose fields hold strings, but for n.
func parse(t *testing.T, text string) Members {
	t.Helper()
	m, err := read(text)
	require.NoError(t, err)
	return m
}

func read(text string) (Members, error) {
	var (
		s    jsonwire.Scanner
		b    Builder
		last int
		seen = map[int]bool{}
	)
	s.Reset(text)
	if err := s.Object(); err != nil {
		return "", err
	}
	for {
		name, ok, err := s.Member()
		if err != nil {
			return "", err
		}
		if !ok {
			break
		}
		n := Number(fields, name)
		if n == 0 {
			if err := b.Unknown(&s, last, name); err != nil {
				return "", err
			}
			continue
		}
		last, seen[n] = n, true
		raw, err := s.Raw()
		if err != nil {
			return "", err
		}
		if !fields[n-1].Required() && (raw == "null" || raw == `""` || raw == "[]") {
			b.Spelled(n, name, raw)
		}
	}
	for i := range fields {
		if fields[i].Required() && !seen[i+1] {
			b.Missing(i+1, fields[i].Name)
		}
	}
	return b.Members(), nil
}

// The output of a struct without optional values becomes the text that was read.
func TestMerge(t *testing.T) {
	const own = `{"id":"","n":0}`
	for _, text := range []string{
		own,
		`{}`,
		`{"x":1}`,
		`{"id":"","a\u0062":[1, 2],"n":0,"z":null}`,
		`{"first":1,"id":"","note":"","marks":[],"n":0}`,
		`{"note":null,"x":{"y":{}},"n":0}`,
		`{"id":"","note":"","middle":true}`,
	} {
		m := parse(t, text)
		want, err := jsonwire.Compact(text)
		require.NoError(t, err)
		want = strings.ReplaceAll(want, `\u0062`, "b") // names are written one way
		require.Equal(t, "before "+want, string(m.Merge([]byte("before "+own), len("before "), fields)))
	}
	require.Equal(t, `{"id":"","note":"","n":0,"x":1}`,
		string(parse(t, `{"id":"","n":0,"x":1,"note":""}`).Merge([]byte(own), 0, fields)), "a late field goes to its place")
	m := parse(t, `{"note":"","x":1}`)
	require.Equal(t, `{"id":"now","note":"set","x":1,"n":2}`, string(m.Merge([]byte(`{"id":"now","note":"set","n":2}`), 0, fields)),
		"a member with a value is written")
}

func TestEntries(t *testing.T) {
	m := parse(t, `{"x\"1":[1, 2],"note":null,"marks":[],"z":null}`)
	require.Equal(t, map[string]string{`x"1`: "[1,2]", "z": "null"}, maps.Collect(m.Unknown()))
	require.Equal(t, []string{`x"1`, "note", "marks", "z", "id", "n"}, slices.Collect(m.Names()))
	require.True(t, m.HasUnknown())
	require.Equal(t, []string{"id", "n"}, slices.Collect(m.Lacks()))
	require.Equal(t, "null", m.Spelling("note"))
	require.Equal(t, "[]", m.Spelling("marks"))
	require.Empty(t, m.Spelling("id"))
	for range m.Unknown() {
		break // an iterator may be left
	}
	for range m.Names() {
		break
	}
	for range m.Lacks() {
		break
	}

	none := parse(t, `{"id":"","n":0}`)
	require.Empty(t, none)
	require.False(t, none.HasUnknown())
	require.Empty(t, slices.Collect(none.Lacks()))
	require.False(t, parse(t, `{"note":null}`).HasUnknown())
}

func TestSet(t *testing.T) {
	m := Members("").Set(2, "a", "1")
	require.Equal(t, parse(t, `{"id":"","note":"here","a":1,"n":0}`), m)
	require.Empty(t, m.Set(2, "a", ""))
	require.Empty(t, Members("").Set(2, "a", ""))
	require.Equal(t, m, m.Set(2, "b", ""))

	m = parse(t, `{"a":1,"note":"","b":2,"n":0}`).Set(4, "a", "3").Set(4, "c", "4").Set(4, "b", "")
	require.Equal(t, `{"note":"","n":0,"a":3,"c":4}`, string(m.Merge([]byte(`{"id":"","n":0}`), 0, fields)))

	long := strings.Repeat("x", 300)
	require.Equal(t, map[string]string{long: long}, maps.Collect(Members("").Set(1, long, long).Unknown()))
	require.EqualValues(t, 1, testing.AllocsPerRun(10, func() { m = Members("").Set(1, "a", "{}") }))
}

func TestMap(t *testing.T) {
	m := parse(t, `{"a":1,"note":null,"b\n":2}`)
	var seen []string
	same := m.Map(func(e Entry) string {
		seen = append(seen, e.Name()+" "+e.Value())
		return e.Text
	})
	require.Equal(t, m, same)
	require.Equal(t, []string{"a 1", "note null", "b\n 2"}, seen, "a missing member has no text to replace")
	m = m.Map(func(e Entry) string { return strings.ReplaceAll(e.Text, "2", "[]") })
	require.Equal(t, `{"a":1,"note":null,"b\n":[]}`, string(m.Merge([]byte(`{"id":"","n":0}`), 0, fields)))
}

func TestDuplicates(t *testing.T) {
	for _, n := range []int{1, limit, 10 * limit} {
		text := "{"
		for i := range n {
			text += `"` + strconv.Itoa(i) + `":0,`
		}
		_, err := read(text + `"x":0}`)
		require.NoError(t, err)
		for _, i := range []int{0, n - 1} {
			_, err = read(text + `"` + strconv.Itoa(i) + `":0}`)
			require.ErrorContains(t, err, "duplicate")
		}
	}
}
