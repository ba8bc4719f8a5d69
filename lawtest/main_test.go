package lawtest

import (
	"flag"
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"
)

// Defaults of the property tests. They are the same in every run of the tests,
// so that a failure is the change's and not the day's. To look further:
//
//	go test -run Law -rapid.seed=0 -rapid.checks=50000 -timeout 1h
//
// rapid.seed=0 is a random seed, rapid.steps the average length of a run.
var defaults = map[string]string{
	"rapid.checks":     "2000",
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
