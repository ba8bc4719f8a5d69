// Command sessions records scenarios with two versions of an agent program, and compares the form of the
// files that they leave and of the lines that they print:
//
//	go -C tools/sessions run . pi 0.67.6 0.73.1
//
// It prints the members that appeared, disappeared or changed their types, for each kind of line; the
// number of lines where it differs; and the counts of command agentevents for both, with the lines and
// members that it does not understand. It exits with 1 if anything differs.
//
// The programs come from npm: they are installed without their scripts, in the user's cache folder. They
// run against a scripted model that is a part of this command, in a network namespace that has only
// the loopback device, with an environment of their own, an empty home folder and a made-up key. It needs
// Linux with unshare (util-linux), ip (iproute2), node and npm. It is run on demand and is not a
// part of the gate.
package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

const about = `Usage:
  sessions [flags] PROGRAM VERSION VERSION

PROGRAM is claude, codex, gemini, pi or qwen.

Flags:
`

var errDiffer = errors.New("the versions differ")

func main() {
	switch err := run(os.Args[1:], os.Stdout); {
	case errors.Is(err, flag.ErrHelp):
	case errors.Is(err, errDiffer):
		os.Exit(1)
	case err != nil:
		fmt.Fprintln(os.Stderr, "sessions:", err)
		os.Exit(2)
	}
}

func run(args []string, out io.Writer) error {
	flags := flag.NewFlagSet("sessions", flag.ContinueOnError)
	flags.Usage = func() {
		fmt.Fprint(flags.Output(), about)
		flags.PrintDefaults()
	}
	inside := flags.Bool("inside", false, "record one version: for the process in the namespace")
	keep := flags.String("out", "", "keep the recordings in the folder `DIR`")
	reader := flags.String("agentevents", "", "the command agentevents, a `FILE`; default: built from ../..")
	if err := flags.Parse(args); err != nil {
		return err
	}
	name := flags.Arg(0)
	p, ok := programs[name]
	if !ok || flags.NArg() != 3 {
		return fmt.Errorf("want a PROGRAM (%s) and two VERSIONs", strings.Join(slices.Sorted(maps.Keys(programs)), ", "))
	}
	if *inside {
		return p.record(flags.Arg(1), flags.Arg(2))
	}
	dir, err := os.MkdirTemp("", "sessions")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if *reader == "" {
		*reader = filepath.Join(dir, "agentevents")
		if err := output(exec.Command("go", "build", "-C", "../..", "-o", *reader, "./cmd/agentevents")); err != nil {
			return err
		}
	}
	folder := cmp.Or(*keep, filepath.Join(dir, "out"))
	if folder, err = filepath.Abs(folder); err != nil {
		return err
	}
	differ := 0
	var recorded [2]string
	for i, version := range flags.Args()[1:] {
		install, err := p.install(name, version)
		if err != nil {
			return err
		}
		recorded[i] = filepath.Join(folder, name+"-"+version)
		if err := isolated(name, install, recorded[i]); err != nil {
			return err
		}
	}
	for _, s := range scenarios {
		fmt.Fprintf(out, "== %s %s, %s → %s\n", name, s.name, flags.Arg(1), flags.Arg(2))
		var shapes [2]shape
		var told [2]string
		for i, dir := range recorded {
			dir = filepath.Join(dir, s.name)
			if shapes[i], err = p.shapeOf(dir); err != nil {
				return err
			}
			if told[i], err = p.told(*reader, dir); err != nil {
				return err
			}
		}
		if told[0] == told[1] {
			fmt.Fprintf(out, "  both: %s\n", told[0])
		} else {
			differ++
			fmt.Fprintf(out, "  %s: %s\n  %s: %s\n", flags.Arg(1), told[0], flags.Arg(2), told[1])
		}
		differ += compare(out, shapes[0], shapes[1])
	}
	if differ > 0 {
		return errDiffer
	}
	fmt.Fprintln(out, "the same")
	return nil
}

// output runs a command and returns its error with the output.
func output(c *exec.Cmd) error {
	if text, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", strings.Join(c.Args, " "), err, text)
	}
	return nil
}

// install installs a version, unless it is there.
func (p *program) install(name, version string) (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(cache, "agentevents", "programs", name+"-"+version)
	if _, err := p.command(dir); err == nil {
		return dir, nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	args := []string{"install", "--silent", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix", dir}
	if err := output(exec.Command("npm", append(args, p.packages(version)...)...)); err != nil {
		return "", err
	}
	_, err = p.command(dir)
	return dir, err
}

// isolated runs this command in namespaces of its own.
func isolated(name, install, out string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	c := exec.Command("unshare", "--user", "--map-root-user", "--net", "--pid",
		"--fork", "--kill-child", "--mount-proc", self, "-inside", name, install, out)
	c.Env = []string{"PATH=" + os.Getenv("PATH")}
	return output(c)
}

// perProcess is how long a program may take.
const perProcess = 3 * time.Minute

// A recording is what the scenario's folder tells beside the files: it is in recording.json.
type recording struct {
	Exits    []int
	Requests int      // that were answered by the script
	Asides   int      // other requests for an answer
	Others   []string // other requests
}

// record runs all scenarios with a program in the namespace.
func (p *program) record(install, out string) error {
	if err := output(exec.Command("ip", "link", "set", "lo", "up")); err != nil {
		return err
	}
	devices, err := net.Interfaces()
	if err != nil {
		return err
	}
	isUp := func(d net.Interface) bool { return d.Flags&net.FlagLoopback == 0 && d.Flags&net.FlagUp != 0 }
	if slices.ContainsFunc(devices, isUp) {
		return errors.New("the namespace has a device beside loopback")
	}
	for _, s := range scenarios {
		if err := p.play(s, install, filepath.Join(out, s.name)); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
	}
	return nil
}

// play runs one scenario.
func (p *program) play(s scenario, install, out string) error {
	if err := os.RemoveAll(out); err != nil {
		return err
	}
	home, folder := filepath.Join(out, "home"), filepath.Join(out, "repo")
	m := &model{replies: s.replies(p, folder), others: map[string]bool{}}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	server := &http.Server{Handler: m}
	go server.Serve(listener) // ends with Close
	defer server.Close()
	url := "http://" + listener.Addr().String()
	if err := p.prepare(home, folder, url); err != nil {
		return err
	}
	argv, err := p.command(install)
	if err != nil {
		return err
	}
	var r recording
	for i, prompt := range s.prompts {
		exit, err := p.process(append(argv[:len(argv):len(argv)], p.args(prompt, i > 0)...), home, folder, url,
			filepath.Join(out, fmt.Sprintf("stdout-%d", i+1)))
		if err != nil {
			return err
		}
		r.Exits = append(r.Exits, exit)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.answered < len(m.replies) {
		return fmt.Errorf("the program asked for %d of %d answers: see %s",
			m.answered, len(m.replies), filepath.Join(out, "stdout-*"))
	}
	r.Requests, r.Asides, r.Others = m.answered, m.asides, slices.Sorted(maps.Keys(m.others))
	text, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(out, "recording.json"), text, 0o600)
}

// process runs the program once, and returns its exit status. Its output goes to files.
func (p *program) process(argv []string, home, folder, url, name string) (int, error) {
	ctx, cancel := context.WithTimeout(context.Background(), perProcess)
	defer cancel()
	var stdout, stderr bytes.Buffer
	c := exec.CommandContext(ctx, argv[0], argv[1:]...)
	c.Dir, c.Stdout, c.Stderr, c.WaitDelay = folder, &stdout, &stderr, 5*time.Second
	c.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "TERM=dumb",
		"LANG=C.UTF-8", "TZ=UTC", "USER=demo", "SHELL=/bin/sh", "NO_COLOR=1"}, p.env(url)...)
	err := c.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) && !errors.Is(err, exec.ErrWaitDelay) {
		return 0, err
	}
	if err := errors.Join(os.WriteFile(name+".jsonl", stdout.Bytes(), 0o600),
		os.WriteFile(name+".err", stderr.Bytes(), 0o600)); err != nil {
		return 0, err
	}
	return c.ProcessState.ExitCode(), nil
}

// shapeOf returns the shape of a recorded scenario.
func (p *program) shapeOf(dir string) (shape, error) {
	s := shape{}
	add := func(source, pattern string, root string) error {
		return filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if errors.Is(err, fs.ErrNotExist) && path == root {
				return nil // the program left nothing
			}
			if err != nil || d.IsDir() || !strings.HasPrefix(d.Name(), pattern) ||
				!strings.HasSuffix(path, ".jsonl") && !strings.HasSuffix(path, ".json") {
				return err
			}
			text, err := os.ReadFile(path)
			s.add(source, string(text))
			return err
		})
	}
	for _, store := range p.stores {
		if err := add("disk", "", filepath.Join(dir, "home", store)); err != nil {
			return nil, err
		}
	}
	printed, err := filepath.Glob(filepath.Join(dir, "stdout-*.jsonl"))
	for _, path := range printed {
		if err := add("stdout", "", path); err != nil {
			return nil, err
		}
	}
	return s, err
}

// told returns in a line the exits, the requests, and the counts of command agentevents.
func (p *program) told(reader, dir string) (string, error) {
	text, err := os.ReadFile(filepath.Join(dir, "recording.json"))
	if err != nil {
		return "", err
	}
	var r recording
	if err := json.Unmarshal(text, &r); err != nil {
		return "", err
	}
	told := fmt.Sprintf("exits %v, %d requests and %d asides", r.Exits, r.Requests, r.Asides)
	for _, other := range r.Others {
		told += ", " + other
	}
	for _, store := range p.stores {
		sessions := filepath.Join(dir, "home", store)
		var stats struct {
			Runs       int
			ToolCalls  *struct{ Calls, Failed int }
			ModelCalls *struct{ Calls int }
			Tokens     *struct{ Input, Output, CacheRead int }
		}
		found, err := exec.Command(reader, "stats", "--json", sessions).Output()
		if json.Unmarshal(found, &stats) != nil {
			told += fmt.Sprintf("; agentevents reads nothing: %v", err)
			continue
		}
		told += fmt.Sprintf("; agentevents: %d runs", stats.Runs)
		if m := stats.ModelCalls; m != nil {
			told += fmt.Sprintf(", %d model calls", m.Calls)
		}
		if c := stats.ToolCalls; c != nil {
			told += fmt.Sprintf(", %d tool calls, %d failed", c.Calls, c.Failed)
		}
		if t := stats.Tokens; t != nil {
			told += fmt.Sprintf(", tokens %d/%d/%d", t.Input, t.Output, t.CacheRead)
		}
		// The exit status tells faults, which the text has.
		unread, _ := exec.Command(reader, "import", "--report", sessions).Output()
		told += "; " + strings.Join(strings.Fields(string(unread)), " ")
	}
	return told, nil
}
