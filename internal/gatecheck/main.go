// Command gatecheck holds the checks of the gate that are about this repository's own
// rules. Run it in the root folder of the repository.
//
//	go run ./internal/gatecheck english walltime silent   # the checks of the source
//	go run ./internal/gatecheck platforms MODULE...       # are type-checked for other systems
//	go run ./internal/gatecheck tests -record FILE -- go test ./...
//	go run ./internal/gatecheck report FILE
//
// The check english counts habits of compressed English in comments and Markdown pages.
// It fails if a package has more of them than the limits allow. It counts packages under
// 500 lines together, and also all tests and all pages.
//
// The check walltime finds tests that compare times of the wall clock, and tests that wait
// for a time that a busy machine exceeds. The check silent finds tests that return early
// because a file, program or variable is missing, without a skip. A comment with a reason
// on the same line, or on the line before, permits one place:
//
//	require.Less(t, time.Since(start), limit) //wallclock: REASON
//	if os.Getenv("CHILD") == "" { //silent: REASON
//
// The command tests runs go test. It prints the ordinary lines of the packages and the
// output of failed tests, and appends every skipped test to FILE. It fails if the message
// of a skip matches no row of skips.txt. The command report prints one line for each
// reason in FILE.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
)

// checks are the checks of the source, by name.
var checks = map[string]func(*tree) ([]string, error){
	"english":  english,
	"walltime": walltime,
	"silent":   silent,
}

// commands are the commands that have arguments of their own.
var commands = map[string]func(args []string, out io.Writer) error{
	"platforms": platforms,
	"tests":     tests,
	"report":    report,
}

var errUsage = errors.New("usage: gatecheck {english|walltime|silent}... " +
	"| platforms MODULE... | tests -record FILE -- go test ARG... | report FILE")

func main() {
	err := run(os.Args[1:], os.Stdout)
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "gatecheck:", err)
		os.Exit(1)
	}
}

func run(args []string, out io.Writer) error {
	if len(args) == 0 {
		return errUsage
	}
	if command, ok := commands[args[0]]; ok {
		return command(args[1:], out)
	}
	t, err := load(os.DirFS("."))
	if err != nil {
		return err
	}
	var errs []error
	for _, name := range args {
		check, ok := checks[name]
		if !ok {
			return errUsage
		}
		errs = append(errs, printed(out, func() ([]string, error) { return check(t) }))
	}
	return errors.Join(errs...)
}

// printed prints the problems that a check finds. It returns an error if it finds any.
func printed(out io.Writer, check func() ([]string, error)) error {
	problems, err := check()
	if err != nil || len(problems) == 0 {
		return err
	}
	slices.Sort(problems)
	fmt.Fprintln(out, strings.Join(problems, "\n"))
	return fmt.Errorf("%d problems", len(problems))
}
