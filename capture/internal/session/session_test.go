package session

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestNewer(t *testing.T) {
	for _, c := range []struct {
		version, than string
		want          bool
	}{
		{"0.170.0", "0.169.0", true}, {"0.169.0", "0.169.0", false}, {"0.40.0", "0.169.0", false}, {"1.0", "0.169.0", true},
		{"0.169.1", "0.169", true}, {"0.169", "0.169.0", false}, {"v2.1.329", "2.1.328", true}, {"0.170.0-alpha.3", "0.169.0", true},
		{"", "0.169.0", false}, {"unknown", "0.169.0", false}, {"0.169.0-rc1", "0.169.0", false},
	} {
		require.Equal(t, c.want, Newer(c.version, c.than), "%s than %s", c.version, c.than)
	}
}

// The members that nobody asked for are the residue of an object. Those that are null tell nothing.
func TestObject(t *testing.T) {
	o := ParseObject(`{"a":"x","b":null,"c":3,"d":{"e":true},"f":[1],"g":null}`)
	require.Equal(t, "x", o.Str("a"))
	require.Empty(t, o.Raw("b"))
	require.EqualValues(t, 3, o.Count("c").V)
	require.True(t, o.Object("d").Flag("e"))
	var rest []string
	o.Unasked(func(name string) { rest = append(rest, name) })
	require.Equal(t, []string{"f"}, rest)
	o.Skip("f")
	o.Unasked(func(name string) { t.Fatal(name) })
	require.Equal(t, `{"a":"x","c":3}`, string(o.Pick("a", "b", "c")))
	require.False(t, o.Count("a").OK, "a member of another type counts as absent")
}

func TestResidue(t *testing.T) {
	var r Residue
	for range 3 {
		r.Add(Unread{"P", "1", "kind", "/a"})
	}
	r.Add(Unread{"P", "1", "kind", ""})
	require.Equal(t, []Count{{Unread{"P", "1", "kind", ""}, 1}, {Unread{"P", "1", "kind", "/a"}, 3}}, r.Counts())
	for i := range 2 * maxUnread {
		r.Add(Unread{"P", "1", strings.Repeat("x", i%97) + time.Duration(i).String(), ""})
	}
	require.LessOrEqual(t, len(r.Counts()), maxUnread+1)
	sum := 0
	for _, c := range r.Counts() {
		sum += c.N
	}
	require.Equal(t, 4+2*maxUnread, sum, "each counts, though not all kinds are told apart")
}

func TestOnce(t *testing.T) {
	var o Once
	require.True(t, o.First("a"))
	require.False(t, o.First("a"))
	require.True(t, o.First(""))
	require.True(t, o.First(""), "the empty id is that of none")
}

// Of two members of one name the first counts, at any depth, and other faults stay faults.
func TestRepair(t *testing.T) {
	for text, want := range map[string]string{
		`{"id":"a","x":{"y":1,"y":2},"id":"b"}`: `{"id":"a","x":{"y":1}}`,
		`[{"a":1,"a":2},3]`:                     `[{"a":1},3]`,
		`{"a":1,"a":[}`:                         "",
		`{"a":1`:                                "",
		`{"a":"` + "\xff" + `"}`:                `{"a":"` + "\ufffd" + `"}`,
	} {
		got, ok := repair(text)
		require.Equal(t, want, got, text)
		require.Equal(t, want != "", ok, text)
	}
}

func TestIsLog(t *testing.T) {
	for name, want := range map[string]bool{"a.jsonl": true, "a.jsonl.gz": true, "a.json": false, "a.txt": false, "a.jsonl.lock": false} {
		require.Equal(t, want, IsLog(name), name)
	}
}
