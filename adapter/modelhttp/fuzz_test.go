package modelhttp

import (
	"io"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

// What an answer says does not depend on where the network cuts it, and no bytes make its
// reader panic or an event that an emitter refuses.
func FuzzAnswer(f *testing.F) {
	f.Fuzz(func(t *testing.T, text []byte, n uint8, form uint8) {
		read := func(piece int) *answer {
			h := http.Header{}
			if form&1 != 0 {
				h.Set("Content-Type", "text/event-stream")
			}
			if form&2 != 0 {
				h.Set("Content-Encoding", "gzip")
			}
			a := answerOf(&http.Response{StatusCode: 200, Header: h, ContentLength: -1})
			for rest := text; len(rest) > 0; {
				p := rest[:min(piece, len(rest))]
				a.write(p)
				rest = rest[len(p):]
			}
			a.finish()
			return &a
		}
		whole, cut := read(len(text)+1), read(int(n)+1)
		require.Equal(t, whole.returned(), cut.returned())
		for _, reason := range []error{io.EOF, errClosed, io.ErrUnexpectedEOF} {
			require.Equal(t, whole.failure(reason), cut.failure(reason))
		}
		if u := whole.returned().Usage; u.OK {
			require.GreaterOrEqual(t, min(u.V.InputTokens, u.V.OutputTokens, u.V.CacheReadInputTokens.V, u.V.CacheCreationInputTokens.V), int64(0))
		}
	})
}
