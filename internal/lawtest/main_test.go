package lawtest

import (
	"flag"
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/agentevents/agentevents/internal/effort"
)

// defaults are the flags of the property tests. The gate draws the same runs each time, so
// a failure comes from a change and not from chance; only TestWrittenLogsKeepTheRules draws new
// ones, with a seed that it prints. The long run draws others each time:
// seed 0 means a random seed, which a failure prints. rapid.steps is the average length of
// a run.
func defaults() map[string]string {
	return map[string]string{
		"rapid.checks":     effort.Of("300", "800", "20000"),
		"rapid.steps":      "40",
		"rapid.seed":       effort.Of("1", "1", "0"),
		"rapid.nofailfile": "true",
		"rapid.shrinktime": "20s",
	}
}

func TestMain(m *testing.M) {
	flag.Parse()
	given := map[string]bool{}
	flag.Visit(func(f *flag.Flag) { given[f.Name] = true })
	for name, value := range defaults() {
		if given[name] {
			continue
		}
		if err := flag.Set(name, value); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(2)
		}
	}
	goleak.VerifyTestMain(m)
}
