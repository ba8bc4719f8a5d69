package lawtest

import (
	"flag"
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"
)

// The defaults of the property tests are the same in every run, so that a failure comes
// from a change and not from chance. A longer search:
//
//	go test -run Law -rapid.seed=0 -rapid.checks=50000 -timeout 1h
//
// rapid.seed=0 means a random seed. rapid.steps is the average length of a run.
var defaults = map[string]string{
	"rapid.checks":     "1500",
	"rapid.steps":      "40",
	"rapid.seed":       "1",
	"rapid.nofailfile": "true",
	"rapid.shrinktime": "20s",
}

func TestMain(m *testing.M) {
	flag.Parse()
	given := map[string]bool{}
	flag.Visit(func(f *flag.Flag) { given[f.Name] = true })
	for name, value := range defaults {
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
