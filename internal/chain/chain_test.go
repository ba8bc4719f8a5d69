package chain

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const zeros = "0000000000000000000000000000000000000000000000000000000000000000"

// hexOf is the hash of text, found in another way than by this package.
func hexOf(text string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(text))) }

func chained(lines ...string) []string {
	var out []string
	var last Hash
	for _, line := range lines {
		var text []byte
		text, last = Append(nil, []byte(line), last)
		out = append(out, string(text))
	}
	return out
}

func TestAppendWritesTheForm(t *testing.T) {
	first := `{"id":"a","prev":"` + zeros + `"`
	h1 := hexOf(first)
	second := `{"id":"b","payload":{},"prev":"` + h1 + `"`
	require.Equal(t, []string{
		first + `,"hash":"` + h1 + `"}`,
		second + `,"hash":"` + hexOf(second) + `"}`,
	}, chained(`{"id":"a"}`, `{"id":"b","payload":{}}`))

	dst, _ := Append([]byte("before"), []byte(`{"id":"a"}`), Hash{})
	require.Equal(t, "before"+first+`,"hash":"`+h1+`"}`, string(dst))
	require.Len(t, dst, len("before")+len(`{"id":"a"}`)+Size)
}

func TestAppendDoesNotAllocate(t *testing.T) {
	line := []byte(`{"id":"a","payload":{"text":"` + strings.Repeat("x", 300) + `"}}`)
	dst := make([]byte, 0, len(line)+Size)
	var last Hash
	require.Zero(t, testing.AllocsPerRun(100, func() { _, last = Append(dst, line, last) }))
	text, _ := Append(dst, line, last)
	require.Zero(t, testing.AllocsPerRun(100, func() {
		if l, ok := Find(text); !ok || !l.Holds(text) {
			t.Error("does not hold")
		}
	}))
}

func TestFindTakesTheExactFormOnly(t *testing.T) {
	whole := chained(`{"id":"a"}`)[0]
	l, ok := Find([]byte(whole))
	require.True(t, ok)
	require.Equal(t, zeros, l.Prev.String())
	require.True(t, l.Holds([]byte(whole)))

	sum := l.Hash.String()
	for _, line := range []string{
		"", "}", "{}", `"}`, `{"id":"a"}`,
		whole[:len(whole)-1], whole + " ",
		`{"id":"a","hash":"` + sum + `","prev":"` + zeros + `"}`,
		`{"id":"a","prev":"` + zeros + `", "hash":"` + sum + `"}`,
		`{"id":"a", "prev":"` + zeros + `","hash":"` + sum + `"}`,
		`{"id":"a","prev":"` + zeros + `","hash":"` + strings.ToUpper(sum) + `"}`,
		`{"id":"a","prev":"` + zeros[1:] + `","hash":"` + sum + `"}`,
		`{"id":"a","prev":"` + zeros + `","hash":"` + sum[1:] + `"}`,
		`{"id":"a","prev":"` + zeros[1:] + `g","hash":"` + sum + `"}`,
		`{"id":"a","prev":"` + zeros + `","hash":"` + sum + `","more":1}`,
		`{"payload":{"id":"a","prev":"` + zeros + `","hash":"` + sum + `"}}`,
		`{,"prev":"` + zeros + `","hash":"` + sum + `"}`,
		`{"prev":"` + zeros + `","hash":"` + sum + `"}`,
	} {
		_, ok := Find([]byte(line))
		require.False(t, ok, line)
		rest, _, ok := Cut(line)
		require.False(t, ok, line)
		require.Equal(t, line, rest)
		require.Equal(t, line, Text([]byte(line)))
		require.Equal(t, line, string(Strip([]byte(line))))
	}
}

func TestHash(t *testing.T) {
	h := Hash(sha256.Sum256(nil))
	const text = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
	require.Equal(t, text, h.String())
	back, ok := ParseHash(text)
	require.True(t, ok)
	require.Equal(t, h, back)
	for _, bad := range []string{"", text[1:], text + "0", strings.ToUpper(text), " " + text[1:], "g" + text[1:], text[:63] + "\xff"} {
		_, ok := ParseHash(bad)
		require.False(t, ok, bad)
	}
}

func TestHead(t *testing.T) {
	h := Hash(sha256.Sum256(nil))
	head := AppendHead(nil, h)
	require.Equal(t, `{"hash":"`+h.String()+"\"}\n", string(head))
	require.Len(t, head, HeadSize)
	back, ok := ParseHead(head)
	require.True(t, ok)
	require.Equal(t, h, back)
	for i := range head {
		_, ok := ParseHead(append(bytes.Clone(head[:i]), head[i+1:]...))
		require.False(t, ok, i)
		changed := bytes.Clone(head)
		changed[i] ^= 1
		other, ok := ParseHead(changed)
		require.False(t, ok && other == h, i)
	}
}

func TestALineThatIsChainedTwiceHasNoLinkOfItsOwn(t *testing.T) {
	twice := chained(chained(`{"id":"a"}`)...)[0]
	rest, _, ok := Cut(twice)
	require.True(t, ok)
	require.Equal(t, chained(`{"id":"a"}`)[0], rest, "Cut takes one link off")
	require.Equal(t, `{"id":"a"}`, Text([]byte(twice)))
	require.Equal(t, `{"id":"a"}`, string(Strip([]byte(twice))))
}

func FuzzChain(f *testing.F) {
	f.Add([]byte(`{"id":"a"}`), uint(0), byte(1))
	f.Add([]byte(`{"id":"a","payload":{"text":"\u00e9\n"}}`), uint(12), byte(0x20))
	f.Add([]byte(`{"prev":"x","hash":1}`), uint(40), byte(0xff))
	f.Add([]byte(chained(`{"id":"a"}`)[0]), uint(200), byte(3))
	f.Fuzz(func(t *testing.T, line []byte, at uint, flip byte) {
		Find(line)
		Strip(bytes.Clone(line))
		if !json.Valid(line) || len(line) < len(`{"":0}`) || line[0] != '{' || line[len(line)-1] != '}' {
			return
		}
		before := Hash(sha256.Sum256(line))
		text, sum := Append(nil, line, before)
		require.True(t, json.Valid(text))
		require.Len(t, text, len(line)+Size)
		rest, l, ok := Cut(string(text))
		require.True(t, ok)
		require.Equal(t, string(line), rest)
		require.Equal(t, Link{before, sum}, l)
		found, ok := Find(text)
		require.True(t, ok && found == l && l.Holds(text))
		require.Equal(t, Text(line), Text(text))
		require.Equal(t, Text(text), string(Strip(bytes.Clone(text))))

		if flip != 0 { // a byte that is changed shows
			text[at%uint(len(text))] ^= flip
			l, ok := Find(text)
			require.False(t, ok && l.Holds(text) && l.Hash == sum)
			require.False(t, ok && l.Holds(text), "not even as another line")
		}
	})
}
