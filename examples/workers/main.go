// Workers has three processes share the runs of one store. One of them is killed, and the others go
// on with its runs:
//
//	GOWORK=off go run . -store runs                    # a directory; in one process at a time, the others wait
//	GOWORK=off go run . -store postgres://…            # PostgreSQL
//	GOWORK=off go run . -store nats://…                # NATS JetStream
//
// Each worker claims the runs that it works on, for a lease that it renews. The claims of a process
// that is gone end with their lease, and an append of a process that was only slow is refused.
package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"
)

// options are the flags.
type options struct {
	store  string
	worker string        // the name of this worker; "" starts workers
	runs   int           // how many there are
	most   int           // how many a worker works on at the same time
	lease  time.Duration // of its claims
	pace   time.Duration // of a step of a run
}

func (o options) args(worker string) []string {
	return []string{"-store", o.store, "-worker", worker, "-runs", fmt.Sprint(o.runs),
		"-most", fmt.Sprint(o.most), "-lease", o.lease.String(), "-pace", o.pace.String()}
}

func parse(args []string) (o options, err error) {
	f := flag.NewFlagSet("workers", flag.ContinueOnError)
	f.StringVar(&o.store, "store", "", "a directory, postgres://… or nats://…; a new directory if empty")
	f.StringVar(&o.worker, "worker", "", "work, as the worker of that name; without it the program starts three workers")
	f.IntVar(&o.runs, "runs", 6, "number of runs")
	f.IntVar(&o.most, "most", 2, "runs of a worker at the same time")
	f.DurationVar(&o.lease, "lease", 2*time.Second, "lease of a claim")
	f.DurationVar(&o.pace, "pace", 100*time.Millisecond, "time of a step")
	return o, f.Parse(args)
}

func main() {
	if err := run(context.Background(), os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "workers:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	o, err := parse(args)
	if err != nil {
		return err
	}
	if o.worker != "" {
		return work(ctx, o, out)
	}
	if o.store == "" {
		if o.store, err = os.MkdirTemp("", "workers-"); err != nil {
			return err
		}
		defer os.RemoveAll(o.store)
	}
	return demonstrate(ctx, o, out)
}

// demonstrate starts three workers, and kills the first one that is in the middle of a run.
func demonstrate(ctx context.Context, o options, out io.Writer) error {
	var mu sync.Mutex
	var all sync.WaitGroup
	killed := ""
	errs := make([]error, 3)
	for i := range errs {
		name := fmt.Sprint("worker-", i+1)
		all.Go(func() {
			errs[i] = start(ctx, o.args(name), func(line string, kill func()) {
				mu.Lock()
				defer mu.Unlock()
				fmt.Fprintf(out, "%s %s\n", name, line)
				if killed == "" && strings.HasSuffix(line, "write") {
					killed = name
					kill()
					fmt.Fprintf(out, "%s is killed\n", name)
				}
			})
			if mu.Lock(); killed == name {
				errs[i] = nil
			}
			mu.Unlock()
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

// start runs this program as a worker. It calls told with each line that the worker prints.
func start(ctx context.Context, args []string, told func(line string, kill func())) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, self, args...)
	cmd.Stderr = os.Stderr
	lines, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	for in := bufio.NewScanner(lines); in.Scan(); {
		told(in.Text(), func() { _ = cmd.Process.Kill() }) // it may have ended
	}
	return cmd.Wait()
}
