package lines

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents/internal/chain"
)

// A got is one result of Next.
type got struct {
	Text string
	Pos  Pos
	Last bool // it is the last one
	Err  string
}

func readAll(r *Reader) []got {
	var all []got
	for !r.Ended() {
		line, err := r.Next()
		if line == nil && err == nil {
			break
		}
		g := got{Text: string(line), Pos: r.Pos(), Last: r.Ended()}
		if err != nil {
			g.Err = err.Error()
		}
		all = append(all, g)
	}
	return all
}

// link returns the line with a link of a chain, which does not count for its length.
func link(line string) string {
	text, _ := chain.Append(nil, []byte(line), chain.Hash{})
	return string(text)
}

func TestNext(t *testing.T) {
	long := strings.Repeat("x", 100)
	huge := strings.Repeat("y", 200<<10)
	chained := link(`{"text":"12345678"}`) // 19 bytes
	over := link(`{"text":"1234567890"}`)  // 21 bytes
	const tooLong = "the line has 100 bytes, the limit is 20"
	for in, want := range map[string][]got{
		"":                   nil,
		"\n \r\n\t":          nil,
		"{}":                 {{"{}", Pos{1, 0}, true, ""}},
		"a\nb\n":             {{"a", Pos{1, 0}, false, ""}, {"b", Pos{2, 2}, false, ""}},
		"a\r\n\r\n b \r\nc":  {{"a", Pos{1, 0}, false, ""}, {" b ", Pos{3, 5}, false, ""}, {"c", Pos{4, 10}, true, ""}},
		"\xef\xbb\xbfa\nb":   {{"a", Pos{1, 3}, false, ""}, {"b", Pos{2, 5}, true, ""}},
		"a\n\xef\xbb\xbfb":   {{"a", Pos{1, 0}, false, ""}, {"b", Pos{2, 5}, true, ""}},
		"\xef\xbb\xbf\n":     nil,
		long + "\r\nb\n":     {{"", Pos{1, 0}, false, tooLong}, {"b", Pos{2, 102}, false, ""}},
		"a\n" + long:         {{"a", Pos{1, 0}, false, ""}, {"", Pos{2, 2}, true, tooLong}},
		huge + "\r\n" + "{}": {{"", Pos{1, 0}, false, "the line has 204800 bytes, the limit is 20"}, {"{}", Pos{2, 204802}, true, ""}},
		chained + "\r\n":     {{chained, Pos{1, 0}, false, ""}},
		over + "\nb":         {{"", Pos{1, 0}, false, fmt.Sprintf("the line has %d bytes, the limit is 20", len(over))}, {"b", Pos{2, int64(len(over)) + 1}, true, ""}},
	} {
		require.Equal(t, want, readAll(NewReader(strings.NewReader(in), 20)), "%.40q", in)
		require.Equal(t, want, readAll(NewReader(iotest.OneByteReader(strings.NewReader(in)), 20)), "%.40q", in)
	}
	require.Equal(t, []got{{huge, Pos{1, 0}, false, ""}, {"z", Pos{2, 204801}, true, ""}},
		readAll(NewReader(strings.NewReader(huge+"\nz"), 1<<20)), "longer than the buffer")
	require.Equal(t, []got{{huge, Pos{1, 0}, false, ""}}, readAll(NewReader(strings.NewReader(huge+"\r\n"), len(huge))), "as long as may be")
}

func TestNextReportsTheInputsError(t *testing.T) {
	broken := errors.New("broken")
	for in, before := range map[string]int{"": 0, "a\nb": 1, "a\n": 1, strings.Repeat("x", 100<<10): 0} {
		r := NewReader(io.MultiReader(strings.NewReader(in), iotest.ErrReader(broken)), 1<<20)
		for range before {
			_, err := r.Next()
			require.NoError(t, err)
		}
		_, err := r.Next()
		require.ErrorIs(t, err, broken)
		require.True(t, r.Ended())
		require.Equal(t, before+1, r.Pos().Line)
		line, err := r.Next()
		require.Nil(t, line)
		require.NoError(t, err, "it ends once")
	}
}
