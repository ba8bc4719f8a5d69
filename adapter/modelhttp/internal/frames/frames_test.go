package frames

import (
	"bytes"
	"encoding/hex"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// read returns the frames of a stream that comes in pieces of n bytes.
func read(r *Reader, stream []byte, n int) (out []Frame, err error) {
	for len(stream) > 0 && err == nil {
		piece := stream[:min(n, len(stream))]
		stream = stream[len(piece):]
		err = r.Write(piece, func(f Frame) {
			f.Payload = bytes.Clone(f.Payload)
			out = append(out, f)
		})
	}
	return out, err
}

// Frames come back as they were written, wherever the network cuts them, and a bit that flips is
// found at its frame.
func TestRoundTrip(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	text := func(most int) string {
		b := make([]byte, random.IntN(most+1))
		for i := range b {
			b[i] = byte(random.IntN(256))
		}
		return string(b)
	}
	for range 2000 {
		var stream []byte
		var want []Frame
		for range 1 + random.IntN(4) {
			f := Frame{Header: map[string]string{}, Payload: []byte(text(40))}
			for range random.IntN(4) {
				f.Header[text(20)] = text(50)
			}
			var err error
			stream, err = f.Append(stream)
			require.NoError(t, err)
			want = append(want, f)
		}
		n := 1 + random.IntN(len(stream))
		var r Reader
		got, err := read(&r, stream, n)
		require.NoError(t, err)
		require.False(t, r.Rest())
		require.Len(t, got, len(want))
		for i, f := range got {
			require.Equal(t, want[i].Header, f.Header)
			require.Equal(t, string(want[i].Payload), string(f.Payload))
		}

		stream[random.IntN(len(stream))] ^= 1 << random.IntN(8)
		got, err = read(new(Reader), stream, n)
		require.ErrorIs(t, err, ErrBroken)
		for i, f := range got {
			require.Equal(t, want[i].Header, f.Header)
		}
	}
}

// A frame with a header of each type, made by hand. The SDK of AWS writes the others.
func TestHeaders(t *testing.T) {
	var f Frame
	headers, err := hex.DecodeString("0161" + "00" + "0162" + "01" + "0163" + "02ff" + "0164" + "03ffff" + "0165" + "04ffffffff" +
		"0166" + "05ffffffffffffffff" + "0167" + "060002abcd" + "0168" + "0700026869" + "0169" + "08ffffffffffffffff" + "016a" + "09ffffffffffffffffffffffffffffffff")
	require.NoError(t, err)
	f.Header = map[string]string{}
	require.True(t, f.headers(headers))
	require.Equal(t, map[string]string{"h": "hi"}, f.Header)
	require.Equal(t, 9, f.Others)
	for i := 1; i < len(headers); i++ {
		cut := Frame{Header: map[string]string{}}
		require.NotPanics(t, func() { cut.headers(headers[:i]) })
	}
	require.False(t, (&Frame{Header: map[string]string{}}).headers([]byte{1, 'a', 10}))
}

func TestLongFrame(t *testing.T) {
	long, err := Frame{Payload: make([]byte, 1000)}.Append(nil)
	require.NoError(t, err)
	stream, err := Frame{Payload: []byte("short")}.Append(long)
	require.NoError(t, err)
	for _, n := range []int{1, 13, 5000} {
		got, err := read(&Reader{Most: 100}, stream, n)
		require.NoError(t, err)
		require.Len(t, got, 1)
		require.Equal(t, "short", string(got[0].Payload))
	}
	cut := Reader{Most: 100}
	_, err = read(&cut, long[:500], 500)
	require.NoError(t, err)
	require.True(t, cut.Rest())
	_, err = Frame{Header: map[string]string{"h": string(make([]byte, 1<<16))}}.Append(nil)
	require.Error(t, err)
}
