package main

import (
	"bufio"
	"bytes"
	_ "embed"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
)

//go:embed skips.txt
var skipsText string

// A skipRow is a reason for which tests may be skipped.
type skipRow struct {
	class   string
	message *regexp.Regexp
}

// A skipClass is a kind of reasons. A class with a flag is for runs of go test with that
// flag: the tests also run without it. The report counts the tests of a listed class.
type skipClass struct {
	flag   string
	listed bool
}

var skipClasses = map[string]skipClass{
	"needs":    {listed: true}, // a program is not installed
	"platform": {listed: true}, // the operating system lacks something
	"short":    {flag: "-short"},
	"race":     {flag: "-race"},
	"case":     {}, // one case of a table or property does not apply
}

func parseSkips(text string) (rows []skipRow, err error) {
	for line := range strings.Lines(text) {
		class, pattern, _ := strings.Cut(strings.TrimSpace(line), " ")
		if class == "" || class[0] == '#' {
			continue
		}
		message, err := regexp.Compile("^(" + strings.TrimSpace(pattern) + ")$")
		if err != nil {
			return nil, fmt.Errorf("skips.txt: %w", err)
		}
		if _, ok := skipClasses[class]; !ok || pattern == "" {
			return nil, fmt.Errorf("skips.txt: no class and regular expression: %q", line)
		}
		rows = append(rows, skipRow{class, message})
	}
	return rows, nil
}

// tests runs go test and notes its skips.
func tests(args []string, out io.Writer) error {
	flags := flag.NewFlagSet("tests", flag.ContinueOnError)
	record := flags.String("record", "", "the `file` to which skipped tests are added")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if args = flags.Args(); len(args) < 2 || args[0] != "go" || args[1] != "test" || *record == "" {
		return errUsage
	}
	rows, err := parseSkips(skipsText)
	if err != nil {
		return err
	}
	cmd := exec.Command("go", append([]string{"test", "-json"}, args[2:]...)...)
	cmd.Stderr = os.Stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	r := &results{out: out, output: map[string]*bytes.Buffer{}}
	read := r.read(stdout)
	if err := cmd.Wait(); err != nil {
		return fmt.Errorf("go %s: %w", strings.Join(args[1:], " "), err)
	}
	if read != nil {
		return read
	}
	return classify(r.skipped, rows, args, *record, out)
}

// A skipped test has the message of its skip, or "".
type skipped struct{ test, message string }

// results collects the lines of go test -json. It keeps the output of a test until the end
// of the test.
type results struct {
	out     io.Writer
	output  map[string]*bytes.Buffer // by package and test
	skipped []skipped
}

type event struct {
	Action, Package, Test, Output string
}

func (r *results) read(from io.Reader) error {
	lines := bufio.NewReader(from)
	for {
		line, err := lines.ReadBytes('\n')
		var e event
		if json.Unmarshal(line, &e) == nil && e.Action != "" {
			r.handle(e)
		} else {
			r.out.Write(line)
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (r *results) handle(e event) {
	key := e.Package + "." + e.Test
	switch e.Action {
	case "build-output":
		io.WriteString(r.out, e.Output)
	case "output":
		if r.output[key] == nil {
			r.output[key] = &bytes.Buffer{}
		}
		r.output[key].WriteString(e.Output)
	case "skip", "pass", "fail":
		if e.Test == "" {
			r.end(e)
			return
		}
		if e.Action == "skip" {
			r.skipped = append(r.skipped, skipped{key, message(r.output[key].String())})
		}
		if e.Action == "fail" {
			r.print(key)
		}
		delete(r.output, key)
	}
}

// end prints the lines of a package. Those of a failed one follow the output of the tests
// that had not ended.
func (r *results) end(e event) {
	if e.Action == "fail" {
		for _, key := range slices.Sorted(maps.Keys(r.output)) {
			if strings.HasPrefix(key, e.Package+".") && key != e.Package+"." {
				r.print(key)
			}
		}
		r.print(e.Package + ".")
	} else if out := r.output[e.Package+"."]; out != nil {
		for line := range strings.Lines(out.String()) {
			if strings.Contains(line, "\t"+e.Package) {
				io.WriteString(r.out, line)
			}
		}
	}
	maps.DeleteFunc(r.output, func(key string, _ *bytes.Buffer) bool { return strings.HasPrefix(key, e.Package+".") })
}

func (r *results) print(key string) {
	if out := r.output[key]; out != nil {
		r.out.Write(out.Bytes())
	}
}

var logged = regexp.MustCompile(`(?m)^ +\S+\.go:\d+: `)

// message returns the text that a skipped test logged last.
func message(output string) string {
	before, _, _ := strings.Cut(output, "--- SKIP: ")
	all := logged.FindAllStringIndex(before, -1)
	if len(all) == 0 {
		return ""
	}
	return strings.Join(strings.Fields(before[all[len(all)-1][1]:]), " ")
}

// classify adds the skipped tests of listed classes to the record, as lines of the message
// and the test. It returns an error if no row matches a skip.
func classify(list []skipped, rows []skipRow, args []string, record string, out io.Writer) error {
	file, err := os.OpenFile(record, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o666)
	if err != nil {
		return err
	}
	defer file.Close()
	silent := 0
	for _, s := range list {
		i := slices.IndexFunc(rows, func(r skipRow) bool {
			flag := skipClasses[r.class].flag
			return s.message != "" && r.message.MatchString(s.message) && (flag == "" || slices.Contains(args, flag))
		})
		if i < 0 {
			silent++
			fmt.Fprintf(out, "silent skip: %s was skipped: %q matches no row of internal/gatecheck/skips.txt\n", s.test,
				s.message)
		} else if skipClasses[rows[i].class].listed {
			if _, err := fmt.Fprintf(file, "%s\t%s\n", s.message, s.test); err != nil {
				return err
			}
		}
	}
	if silent > 0 {
		return fmt.Errorf("%d silent skips", silent)
	}
	return nil
}

// report prints a line for each reason in a record, with the number of its tests.
func report(args []string, out io.Writer) error {
	if len(args) != 1 {
		return errUsage
	}
	record, err := os.ReadFile(args[0])
	if err != nil {
		return err
	}
	tests := map[string]int{}                             // by reason
	lines := slices.Sorted(strings.Lines(string(record))) // the gate runs a test several times
	for _, line := range slices.Compact(lines) {
		reason, _, _ := strings.Cut(line, "\t")
		tests[reason]++
	}
	for _, reason := range slices.Sorted(maps.Keys(tests)) {
		switch program, needs := strings.CutPrefix(reason, "needs "); {
		case needs && tests[reason] == 1:
			fmt.Fprintf(out, "not run: 1 test needs %s\n", program)
		case needs:
			fmt.Fprintf(out, "not run: %d tests need %s\n", tests[reason], program)
		default:
			fmt.Fprintf(out, "not run: %d of the tests: %s\n", tests[reason], reason)
		}
	}
	return nil
}
