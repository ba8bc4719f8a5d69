package modelhttp

import (
	"bytes"
	"encoding/json"
	"io"
	"math/rand/v2"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents/adapter/modelhttp/internal/frames"
)

// The events of an answer do not depend on the places at which the network cuts it. No bytes make
// its reader panic, or return an event that an emitter refuses.
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
			if form&4 != 0 {
				h.Set("Content-Type", frames.MediaType)
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

// A body is whole if it is JSON, wherever the network cuts it. Between the elements of an array
// anything goes.
func TestValues(t *testing.T) {
	const letters = "{}[]\",:1\\a \n"
	random := rand.New(rand.NewPCG(1, 2))
	for range 50_000 {
		text := make([]byte, random.IntN(13))
		for i := range text {
			text[i] = letters[random.IntN(len(letters))]
		}
		piece := 1 + random.IntN(5)
		var f facts
		var v values
		for rest := text; len(rest) > 0; {
			p := rest[:min(piece, len(rest))]
			v.write(p, &f)
			rest = rest[len(p):]
		}
		v.end(&f)
		valid := json.Valid(text)
		array := bytes.HasPrefix(bytes.TrimSpace(text), []byte("["))
		if valid && !f.whole || !valid && f.whole && !array || f.whole && f.broken {
			t.Fatalf("%q in pieces of %d: valid %t, whole %t, broken %t", text, piece, valid, f.whole, f.broken)
		}
	}
}
