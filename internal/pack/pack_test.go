package pack

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents/internal/effort"
)

// Texts come back as they were, also when the dictionary has grown since.
func TestAnyText(t *testing.T) {
	random := rand.New(rand.NewPCG(effort.Seed(t), 0))
	alphabets := []string{"abc", `"name":0123456789,`, "\x00\xff{}é→"}
	for range effort.Of(50, 200, 5000) {
		var p Packer
		var texts []string
		var packed []Text
		for range 1 + random.IntN(8) {
			var piece strings.Builder
			for range random.IntN(30) {
				alphabet := alphabets[random.IntN(len(alphabets))]
				piece.WriteByte(alphabet[random.IntN(len(alphabet))])
			}
			texts = append(texts, strings.Repeat(piece.String(), 1+random.IntN(40)))
			packed = append(packed, p.Pack([]byte(texts[len(texts)-1])))
		}
		for i, text := range texts {
			require.Equal(t, "before"+text, string(packed[i].Append([]byte("before"))))
			require.LessOrEqual(t, packed[i].Size(), len(text)+16)
		}
	}
}

func TestDictionaryHasALimit(t *testing.T) {
	var p Packer
	random := rand.NewChaCha8([32]byte{})
	for n := range 300 {
		text := make([]byte, 1<<10*(1+n%90)) // also one that is larger than the dictionary
		_, _ = random.Read(text)
		require.Equal(t, text, p.Pack(text).Append(nil))
	}
	require.LessOrEqual(t, len(p.dict), MaxDictionary)
}

// A text with the shape of an earlier one takes little more than its new parts.
func TestAlike(t *testing.T) {
	var p Packer
	random := rand.New(rand.NewPCG(1, 2))
	text := func() []byte {
		var b bytes.Buffer
		for i := range 40 {
			fmt.Fprintf(&b, `{"name of member %d":"2026-05-05T09:00:%02d.%03dZ","other":%d}`, i, random.IntN(60), random.IntN(1000), random.IntN(1e6))
		}
		return b.Bytes()
	}
	require.Less(t, p.Pack(text()).Size(), 16, "it is in the dictionary")
	for range 100 {
		one := text()
		packed := p.Pack(one)
		require.Less(t, packed.Size(), len(one)/3)
		require.Equal(t, one, packed.Append(nil))
	}
}
