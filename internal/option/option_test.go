package option

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestCheck(t *testing.T) {
	type options struct {
		Size  int           `least:"0"`
		Long  int64         `least:"1024"`
		Wait  time.Duration `least:"0"`
		Price float64       `least:"0"`
		Any   int
		Text  string
	}
	for _, o := range []options{{}, {Size: 1, Long: 1024, Wait: 1, Price: 0.5, Any: -1}} {
		require.NoError(t, Check("Options", o))
		require.NoError(t, Check("Options", &o))
	}
	for text, o := range map[string]options{
		`agentevents: Options.Size is -1: must be a number that is not below 0`:    {Size: -1},
		`agentevents: Options.Long is 1023: must be 0, or at least 1024`:           {Long: 1023},
		`agentevents: Options.Wait is -1: must be a number that is not below 0`:    {Wait: -1},
		`agentevents: Options.Price is -1: must be a number that is not below 0`:   {Price: -1},
		`agentevents: Options.Price is NaN: must be a number that is not below 0`:  {Price: math.NaN()},
		`agentevents: Options.Price is +Inf: must be a number that is not below 0`: {Price: math.Inf(1)},
	} {
		err := Check("Options", o)
		require.EqualError(t, err, text)
		require.ErrorAs(t, err, new(*Error))
	}
	require.ErrorAs(t, NoConstant("Options.Mode", 9), new(*Error))
}
