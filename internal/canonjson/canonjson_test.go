package canonjson

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents/internal/effort"
)

func TestForms(t *testing.T) {
	for text, want := range map[string]string{
		` { "b" : [ 1 , true , null ] , "a" : {} } `:                                                           `{"a":{},"b":[1,true,null]}`,
		`{"numbers":[1E30,4.50,2e-3,0.000000000000000000000000001,-0,1.0,100,1e2,1e21,123456789012345680000]}`: `{"numbers":[1e+30,4.5,0.002,1e-27,0,1,100,100,1e+21,123456789012345680000]}`,
		`"\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/\u2028<"`:                                               "\"\u20ac$\\u000f\\nA'B\\\"\\\\\\\\\\\"/\u2028<\"",
		`{"\u20ac":1,"\r":2,"\ud83d\ude00":3,"\ufb33":4,"1":5,"\u00f6":6}`:                                     "{\"\\r\":2,\"1\":5,\"\u00f6\":6,\"\u20ac\":1,\"\U0001F600\":3,\"\ufb33\":4}",
		`9007199254740993`:         `9007199254740993`, // a float64 is ...992
		`1234567890123456789.10e2`: `12345678901234567891e1`,
		`1e400`:                    `1e400`,
		`"\b\t\n\f\r"`:             `"\b\t\n\f\r"`,
	} {
		got, err := Append([]byte("x"), text)
		require.NoError(t, err, text)
		require.Equal(t, "x"+want, string(got))
	}
	for _, text := range []string{"", "{", "1 2", "{}x", "01"} {
		_, err := Append(nil, text)
		require.Error(t, err, text)
	}
}

// Another spelling of a value has the same form, another number has another one, and the form of
// a form is itself.
func TestSpellings(t *testing.T) {
	rng := rand.New(rand.NewPCG(effort.Seed(t), 0))
	for range effort.Of(300, 3000, 300_000) {
		v := value(rng, 4)
		plain, err := json.Marshal(v)
		require.NoError(t, err)
		pretty, err := json.MarshalIndent(v, " ", "\t")
		require.NoError(t, err)
		want := form(t, string(plain))
		require.Equal(t, want, form(t, string(pretty)))
		require.Equal(t, want, form(t, want))
		var back any
		require.NoError(t, json.Unmarshal([]byte(want), &back))
		require.Equal(t, v, back)

		n := rng.Int64N(math.MaxInt64/1000) + 1
		for _, other := range []string{fmt.Sprintf("%d.000", n), fmt.Sprintf("%d000e-3", n), fmt.Sprintf("%d00E-02", n)} {
			require.Equal(t, form(t, fmt.Sprint(n)), form(t, other), other)
		}
		require.NotEqual(t, form(t, fmt.Sprint(n)), form(t, fmt.Sprint(n+1)))
		require.NotEqual(t, form(t, fmt.Sprint(n)), form(t, fmt.Sprint(-n)))
	}
}

func form(t *testing.T, text string) string {
	t.Helper()
	out, err := Append(nil, text)
	require.NoError(t, err, text)
	return string(out)
}

func value(rng *rand.Rand, depth int) any {
	text := func() string {
		const letters = "aAz0 é€😀\"\\\n\u0001\u2028<"
		var b strings.Builder
		runes := []rune(letters)
		for range rng.IntN(6) {
			b.WriteRune(runes[rng.IntN(len(runes))])
		}
		return b.String()
	}
	switch k := rng.IntN(7); {
	case k < 2 && depth > 0:
		object := map[string]any{}
		for range rng.IntN(4) {
			object[text()] = value(rng, depth-1)
		}
		return object
	case k < 3 && depth > 0:
		list := []any{}
		for range rng.IntN(4) {
			list = append(list, value(rng, depth-1))
		}
		return list
	case k < 5:
		return math.Float64frombits(rng.Uint64()&^(1<<62) | 1<<61) // neither infinite nor no number
	case k < 6:
		return text()
	}
	return []any{nil, true, false, 0.0, 1e21}[rng.IntN(5)]
}
