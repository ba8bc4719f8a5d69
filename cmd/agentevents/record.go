package main

import (
	"bytes"
	"cmp"
	"crypto/rand"
	"errors"
	"flag"
	"fmt"
	"io"
	"iter"
	"net/url"
	"os"
	osexec "os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/capture"
	"github.com/agentevents/agentevents/capture/claude"
	"github.com/agentevents/agentevents/internal/disk"
	"github.com/agentevents/agentevents/query"
	"github.com/agentevents/agentevents/querytest"
)

func recordCommand() command {
	return command{
		name:    "record",
		args:    "--output DIR [flags] -- COMMAND [ARGUMENT...]",
		purpose: "run an agent program, and record its output as a test fixture and a log",
		about: `
COMMAND runs unchanged, with the standard input, output and error of record. Its output must
be the output of the Claude CLI with --output-format stream-json --verbose, of codex exec
--json, copilot --output-format json, opencode run --format json, cline --json, gemini or
qwen with --output-format stream-json, or pi --mode json. When COMMAND has ended, record
writes two files to DIR, with secrets masked, which only their owner may read:

  NODE.json   the fixture, from which package querytest answers in tests
  NODE.jsonl  the log, for all other commands

The prompt of the fixture is the argument after -p, --print or --prompt, or the last one of
codex exec, opencode run, cline --json --yolo and pi --mode, unless --prompt is given before
COMMAND, and its session is the one after --session-id, --resume, -r or resume.`,
		examples: []string{
			"agentevents record --output fixtures -- claude -p 'Do it' --output-format stream-json --verbose",
			"agentevents record --output testdata/report --node writer --append -- codex exec --json 'Do it'",
		},
		exit: `Exit status: the status of COMMAND; if it is 0,
  0  all went well
  1  COMMAND printed lines that cannot be read
  2  used wrongly, or nothing could be recorded
`,
		flags: func(fs *flag.FlagSet) action {
			var l logReader
			var r redactor
			l.limit(fs)
			r.flags(fs)
			dir := fs.String("output", "", "the `DIR` of the files, which is made if it is not there")
			node := fs.String("node", "", "the `NAME` of the node that is asked; default: COMMAND without its folder")
			prompt := fs.String("prompt", "", "the `TEXT` of the prompt; default: the argument after -p and so on")
			more := fs.Bool("append", false, "add a call to the fixture, and a run to the log, in place of new files")
			return func(in *invocation) error {
				switch {
				case *dir == "":
					return usageError("--output DIR is needed")
				case len(in.args) == 0:
					return usageError("a COMMAND is needed, after --")
				}
				argv := in.args
				rec := recording{
					node: cmp.Or(*node, filepath.Base(argv[0])), dir: *dir, more: *more,
					prompt: cmp.Or(*prompt, flagValue(argv, "-p", "--print", "--prompt"), lastPrompt(argv)),
				}
				if err := r.open(in); err != nil {
					return err
				}
				return rec.run(in, &l, &r, argv)
			}
		},
	}
}

// flagValue returns the argument after one of the flags, or "".
func flagValue(argv []string, flags ...string) string {
	for i, arg := range argv {
		name, value, joined := strings.Cut(arg, "=")
		if !slices.Contains(flags, name) {
			continue
		}
		if joined {
			return value
		}
		if i+1 < len(argv) && !strings.HasPrefix(argv[i+1], "-") {
			return argv[i+1]
		}
	}
	return ""
}

// promptLast are the arguments of programs that are asked by their last one.
var promptLast = [][]string{
	{"exec", "--json"},          // codex
	{"run", "--format", "json"}, // opencode
	{"--json", "--yolo"},        // cline
	{"--mode", "json"},          // pi
}

// lastPrompt returns the prompt of a program that is asked by its last argument, or "".
func lastPrompt(argv []string) string {
	last, before := argv[len(argv)-1], argv[:len(argv)-1]
	for _, words := range promptLast {
		missing := func(word string) bool { return !slices.Contains(before, word) }
		if !slices.ContainsFunc(words, missing) && !strings.HasPrefix(last, "-") {
			return last
		}
	}
	return ""
}

// printedDecoder reads the output of a program, which it recognises by the first line of JSON.
type printedDecoder struct {
	agentevents.Decoder
	o claude.Options
}

func (d *printedDecoder) Decode(dst []agentevents.Event, line []byte) ([]agentevents.Event, error) {
	if text := bytes.TrimSpace(line); d.Decoder == nil && !bytes.HasPrefix(text, []byte("{")) {
		return claude.NewDecoder(d.o).Decode(dst, line) // it tells the fault
	}
	d.choose(string(line))
	return d.Decoder.Decode(dst, line)
}

// End ends the stream, which may have no lines.
func (d *printedDecoder) End(dst []agentevents.Event) ([]agentevents.Event, error) {
	d.choose("")
	return d.Decoder.End(dst)
}

func (d *printedDecoder) choose(first string) {
	if d.Decoder != nil {
		return
	}
	o := capture.Options{RunID: d.o.RunID, AgentID: d.o.AgentID, Prompt: d.o.Prompt, Redaction: &agentevents.Policy{Off: true}}
	if session, ok := capture.NewDecoder([]string{first}, o); ok {
		d.Decoder = session
		return
	}
	d.Decoder = claude.NewDecoder(d.o)
}

// A recording is made of one run of a program.
type recording struct {
	node, dir, prompt string
	more              bool // add to the files that are there
}

// An exitError is the exit status of a program that was run.
type exitError int

func (e exitError) Error() string { return fmt.Sprintf("the command ended with status %d", int(e)) }

// jsonFlags tells how programs are called that print JSON.
const jsonFlags = "the Claude CLI needs --output-format stream-json --verbose, " +
	"gemini and qwen --output-format stream-json, codex exec and cline --json, copilot --output-format json, " +
	"opencode run --format json, and pi --mode json"

// openLog opens the log to add to or, for a new one, a file in its place: an earlier log stays until
// there is something to replace it with.
func (rec *recording) openLog() (log *os.File, path string, err error) {
	if rec.more {
		path = rec.path(".jsonl")
		log, err = disk.Open(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND)
	} else {
		path = rec.path(".jsonl.partial")
		log, err = disk.Create(path)
	}
	return log, path, err
}

func (rec *recording) run(in *invocation, l *logReader, r *redactor, argv []string) error {
	fixture, err := rec.fixture()
	if err != nil {
		return err // before anything is run
	}
	if _, err := osexec.LookPath(argv[0]); err != nil {
		return err
	}
	cmd := osexec.Command(argv[0], argv[1:]...)
	if _, file := in.stderr.(*os.File); !file { // the program writes there while record does
		in.stderr = &locked{w: in.stderr}
	}
	cmd.Stdin, cmd.Stderr = in.stdin, in.stderr
	in.stdout.terminal = false // the output of the program passes as it is
	if err := os.MkdirAll(rec.dir, 0o755); err != nil {
		return err
	}
	log, path, err := rec.openLog()
	if err != nil {
		return err
	}
	defer log.Close()

	// An interrupt is for the program too: record waits for its end.
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(signals)
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	ended := make(chan struct{})
	defer close(ended)
	go passOn(cmd.Process, signals, ended)

	o := claude.Options{AgentID: rec.node, Prompt: rec.asked()}
	if rec.more { // a program that always prints the same always names the same run
		o.RunID = strings.ToLower(rand.Text())
	}
	l.decoder = &printedDecoder{o: o}
	l.open = func(name string) iter.Seq2[input, error] {
		return func(yield func(input, error) bool) {
			yield(input{Reader: io.TeeReader(stdout, careless{in.stdout}), name: name}, nil)
		}
	}
	in.args = []string{"the output of " + filepath.Base(argv[0])}
	read, err := l.events(in)
	if err != nil {
		return err
	}
	var events []agentevents.Event
	p := printer{out: newOutput(log)}
	var failed error
	for at, ev := range r.events(l, func(yield func(position, agentevents.Event) bool) {
		for at, ev := range read {
			events = append(events, ev)
			if !yield(at, ev) {
				return
			}
		}
	}) {
		if failed == nil { // the program runs on, whatever becomes of its log
			failed = p.print(l, at, &ev)
		}
	}
	status := exitStatus(cmd.Wait())
	failed = cmp.Or(failed, p.out.Flush(), log.Close(), rec.save(fixture, events, r, argv, status))
	switch {
	case rec.more:
	case len(events) == 0:
		failed = cmp.Or(failed, os.Remove(path))
	case failed == nil:
		failed = os.Rename(path, rec.path(".jsonl"))
	}
	if failed == nil && len(events) == 0 {
		failed = fmt.Errorf("%s printed nothing that can be recorded; %s", argv[0], jsonFlags)
	}
	r.report(in)
	if failed == nil {
		in.stdout.Flush()
		fmt.Fprintf(in.stderr, "recorded %d events: %s, %s\n", len(events), rec.path(".json"), rec.path(".jsonl"))
	}
	switch {
	case status != 0:
		if failed != nil {
			fmt.Fprintf(in.stderr, "agentevents record: %s\n", visible(failed.Error()))
		}
		return exitError(status)
	case failed != nil:
		return failed
	}
	return l.result()
}

// fixture returns the fixture that the call is added to: a new one unless more is set.
func (rec *recording) fixture() (*querytest.Fixture, error) {
	if !rec.more {
		return &querytest.Fixture{}, nil
	}
	text, err := os.ReadFile(rec.path(".json"))
	if errors.Is(err, os.ErrNotExist) {
		return &querytest.Fixture{}, nil
	}
	if err != nil {
		return nil, err
	}
	return querytest.Parse(text)
}

// passOn passes SIGTERM on to a program until it has ended.
func passOn(to *os.Process, signals <-chan os.Signal, ended <-chan struct{}) {
	for {
		select {
		case s := <-signals:
			if s == syscall.SIGTERM {
				_ = to.Signal(s)
			}
		case <-ended:
			return
		}
	}
}

// save writes the fixture.
func (rec *recording) save(f *querytest.Fixture, events []agentevents.Event, r *redactor, argv []string, status int) error {
	if len(events) == 0 {
		return nil
	}
	answer := querytest.Answer(events, rec.node)
	var failed error
	if status != 0 && !slices.ContainsFunc(answer, func(ev agentevents.Event) bool {
		return ev.AgentID == "" && ev.Kind() == agentevents.KindAgentEnded && !ev.Marks.Has(agentevents.MarkSynthetic)
	}) {
		failed = exitError(status)
	}
	options, err := agentevents.ToJSON(map[string]any{"command": argv})
	if err != nil {
		return err
	}
	resumed := flagValue(argv, "--resume", "-r")
	if slices.Contains(argv, "exec") {
		resumed = cmp.Or(resumed, flagValue(argv, "resume"))
	}
	call, err := querytest.NewCall(query.Request{
		Prompt: rec.asked(), Options: options,
		SessionID: cmp.Or(resumed, flagValue(argv, "--session-id")), Resume: resumed != "",
	}, answer, failed, querytest.RecordOptions{Redaction: &r.policy})
	if err != nil {
		return err
	}
	f.Calls = append(f.Calls, *call)
	return querytest.Save(rec.dir, rec.node, f)
}

// asked returns the prompt as JSON, if it is known.
func (rec *recording) asked() agentevents.JSON {
	if rec.prompt == "" {
		return ""
	}
	return agentevents.JSONString(rec.prompt)
}

func (rec *recording) path(ext string) string {
	return filepath.Join(rec.dir, url.PathEscape(rec.node)+ext)
}

// exitStatus returns the exit status of a program that was waited for, as a shell does.
func exitStatus(err error) int {
	var exit *osexec.ExitError
	switch {
	case err == nil:
		return 0
	case !errors.As(err, &exit):
		return exitUsage
	}
	if w, ok := exit.Sys().(syscall.WaitStatus); ok && w.Signaled() {
		return 128 + int(w.Signal())
	}
	return exit.ExitCode()
}

// locked is a writer for several goroutines.
type locked struct {
	mu sync.Mutex
	w  io.Writer
}

func (l *locked) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(p)
}

// careless ignores errors of writing: the program whose output it is does not end because nobody
// reads that.
type careless struct{ w io.Writer }

func (c careless) Write(p []byte) (int, error) {
	_, _ = c.w.Write(bytes.Clone(p))
	return len(p), nil
}
