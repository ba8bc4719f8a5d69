package jsonwire

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// shout writes strings and names that begin with an a in capitals, and masks members
// named like secrets but for numbers.
type shout struct{ seen []string }

func (e *shout) editor() Editor { return Editor{e.Name, e.Mask, e.String} }

func (e *shout) Name(name string) string {
	if strings.HasPrefix(name, "a") {
		return "A"
	}
	return name
}

func (e *shout) Mask(name string, first byte) (string, bool) {
	return "***", strings.HasPrefix(name, "secret") && first != '0'
}

func (e *shout) String(member, text string) string {
	e.seen = append(e.seen, member+"="+text)
	if strings.HasPrefix(text, "a") {
		return strings.ToUpper(text)
	}
	return text
}

func TestRewrite(t *testing.T) {
	for _, c := range []struct {
		in, want string
		seen     []string
	}{
		{`1.50`, `1.50`, nil},
		{`"b"`, `"b"`, []string{"=b"}},
		{`"a\u0022\n"`, `"A\"\n"`, []string{"=a\"\n"}},
		{`{}`, `{}`, nil},
		{`[null,"ab",["b","a"]]`, `[null,"AB",["b","A"]]`, []string{"=ab", "=b", "=a"}},
		{`{"x":{"y":["a",{}],"z":true},"w":"\/"}`, `{"x":{"y":["A",{}],"z":true},"w":"\/"}`, []string{"y=a", "w=/"}},
		{`{"ab":"c","x":1,"ac":[{"ad":2}]}`, `{"A":"c","x":1,"A-2":[{"A":2}]}`, []string{"ab=c"}},
		{`{"A":1,"a":2,"A-2":3,"aa":4}`, `{"A":1,"A-3":2,"A-2":3,"A-4":4}`, nil},
		{`{"secret":{"a":"a"},"secrets":"","secret2":12,"secret3":"***","n":{"secret":[1]}}`,
			`{"secret":"***","secrets":"","secret2":12,"secret3":"***","n":{"secret":"***"}}`, nil},
	} {
		var e shout
		got, err := Rewrite(c.in, e.editor(), nil)
		require.NoError(t, err, c.in)
		require.Equal(t, c.want, got)
		require.Equal(t, c.seen, e.seen, c.in)
	}
	taken := Taken{}
	taken.Add("A")
	got, err := Rewrite(`{"a":{"a":1}}`, new(shout).editor(), taken)
	require.NoError(t, err)
	require.Equal(t, `{"A-2":{"A":1}}`, got, "the names beside it count for the outermost object")
	got, err = Rewrite(`{"ab":1}`, new(shout).editor(), taken)
	require.NoError(t, err)
	require.Equal(t, `{"A-3":1}`, got)

	for _, bad := range []string{``, `{"a"`, `["a"`, `{"x":{"secret":`, `tru`} {
		_, err := Rewrite(bad, new(shout).editor(), nil)
		require.Error(t, err, bad)
	}

	const long = `{"x":["b","c",{"y":"d"}],"n":[1,2,3]}`
	member := ""
	require.Zero(t, testing.AllocsPerRun(10, func() {
		_, _ = Rewrite(long, Editor{
			Name:   func(name string) string { return name },
			Mask:   func(string, byte) (string, bool) { return "", false },
			String: func(name, text string) string { member = name; return text },
		}, nil)
	}), "last in %s", member)
}
