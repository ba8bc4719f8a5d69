package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
	"unicode/utf8"

	"github.com/agentevents/agentevents/internal/view"
)

// Exit statuses.
const (
	exitOK       = 0 // all went well
	exitProblems = 1 // the input has problems
	exitUsage    = 2 // used wrongly, or a file cannot be read or written
)

// A command is one word of the command line.
type command struct {
	name     string
	args     string // the text after the name in the usage line; empty takes no arguments
	purpose  string // one line
	about    string // more, for its help; may be empty
	examples []string
	exit     string // the meaning of its exit statuses; empty is exitHelp
	// flags defines the flags and returns the action to run once they are parsed.
	flags func(*flag.FlagSet) action
}

// An action carries out a command. It returns errProblems or errFiles when it has reported the
// errors itself.
type action func(*invocation) error

// An invocation is the environment of an action.
type invocation struct {
	name   string   // of the command
	args   []string // arguments that are not flags
	stdin  io.Reader
	stdout *output
	stderr io.Writer
	index  string // folder of what is known about files; empty has none
	env    func(string) string
	ctx    context.Context // its end is an interrupt; nil waits for the signal of one
}

// interrupted returns a context that ends with an interrupt. A second interrupt is not caught:
// it ends the process.
func (in *invocation) interrupted() (context.Context, context.CancelFunc) {
	if in.ctx != nil {
		return context.WithCancel(in.ctx)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	return ctx, stop
}

var (
	errProblems = errors.New("the input has problems")  // reported; exit 1
	errFiles    = errors.New("a file cannot be read")   // reported; exit 2
	errHelp     = errors.New("help was asked for")      // exit 0
	errClosed   = errors.New("nobody reads the output") // exit 0
)

// A usageError is a fault of the command line.
type usageError string

func (e usageError) Error() string { return string(e) }

// noRun is the error for a --run that the log lacks.
func noRun(id string) error {
	return usageError(fmt.Sprintf("the log has no event of run %s; 'agentevents ls' lists its runs", visible(id)))
}

// commands returns the table of commands.
func commands() []command {
	return []command{
		importCommand(),
		recordCommand(),
		convertCommand(),
		exportCommand(),
		redactCommand(),
		catCommand(),
		tailCommand(),
		checkCommand(),
		foldCommand(),
		lsCommand(),
		sessionsCommand(),
		showCommand(),
		findingsCommand(),
		treeCommand(),
		viewCommand(),
		replayCommand(),
		diffCommand(),
		statsCommand(),
		kindsCommand(),
		rulesCommand(),
		versionCommand(),
		helpCommand(),
	}
}

func find(name string) (command, bool) {
	all := commands()
	i := slices.IndexFunc(all, func(c command) bool { return c.name == name })
	if i < 0 {
		return command{}, false
	}
	return all[i], true
}

// run is the whole program without an index. It returns the exit status.
func run(args []string, stdin io.Reader, stdout, stderr io.Writer, env func(string) string) int {
	return (&invocation{stdin: stdin, stdout: newOutput(stdout), stderr: stderr, env: env}).run(args)
}

// run runs the command that the arguments name.
func (in *invocation) run(args []string) int {
	name := ""
	if len(args) > 0 {
		name, args = args[0], args[1:]
	}
	var err error
	switch name {
	case "-version", "--version":
		name = "version"
	}
	switch name {
	case "":
		err = usageError("a command is needed")
	case "-h", "-help", "--help":
		writeOverview(in.stdout)
	default:
		c, ok := find(name)
		if !ok {
			name, err = "", usageError(fmt.Sprintf("unknown command %q", name))
			break
		}
		err = c.run(in, args)
	}
	return in.finish(name, err)
}

// run parses the command's flags and acts.
func (c *command) run(in *invocation, args []string) error {
	in.name = c.name
	fs := flag.NewFlagSet(c.name, flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	act := c.flags(fs)
	var err error
	if in.args, err = parseFlags(fs, args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			c.writeHelp(in.stdout)
			return errHelp
		}
		return usageError(wrongFlag(fs, args, err))
	}
	if c.args == "" && len(in.args) > 0 {
		return usageError(fmt.Sprintf("unexpected argument %q", in.args[0]))
	}
	if c.takesFiles() {
		if err := in.ids(); err != nil {
			return err
		}
	}
	return act(in)
}

// takesFiles reports whether an argument may be a FILE.
func (c *command) takesFiles() bool {
	return strings.HasSuffix(c.args, "FILE") || strings.HasSuffix(c.args, "FILE...") || c.args == "[flags] A B"
}

// oneDash finds the long flags that package flag names with one dash, and notGo its message for a
// value that it cannot read.
var (
	oneDash = regexp.MustCompile(`((?:flag|defined:|argument:) )-([\w-]{2,})`)
	notGo   = regexp.MustCompile(`for (?:flag )?-([\w-]+): (parse error|value out of range)$`)
)

// wrongFlag describes the fault of the flags.
func wrongFlag(fs *flag.FlagSet, args []string, err error) string {
	text := err.Error()
	if m := notGo.FindStringSubmatch(text); m != nil {
		want := m[2]
		switch fs.Lookup(m[1]).Value.(flag.Getter).Get().(type) {
		case bool:
			want = "want true or false"
		case int:
			want = "want a whole number"
		case float64:
			want = "want a number"
		case time.Duration:
			want = "want a time with its unit, such as 1.5s"
		}
		text = strings.TrimSuffix(text, m[0]) + "for flag -" + m[1] + ": " + want
	}
	if strings.HasPrefix(text, "flag provided but not defined") && slices.ContainsFunc(args, isDashedFile) {
		text += "; a FILE that begins with - follows --"
	}
	return oneDash.ReplaceAllString(text, "$1--$2")
}

// isDashedFile reports whether an argument that looks like a flag is a file.
func isDashedFile(arg string) bool {
	_, err := os.Lstat(arg)
	return err == nil && len(arg) > 1 && arg[0] == '-'
}

// dashed returns a flag as help and errors name it.
func dashed(name string) string {
	if len(name) == 1 {
		return "-" + name
	}
	return "--" + name
}

// parseFlags parses the flags before, between and after the other arguments, and
// returns those. After -- nothing is a flag.
func parseFlags(fs *flag.FlagSet, args []string) ([]string, error) {
	var rest []string
	for {
		if err := fs.Parse(args); err != nil {
			return nil, err
		}
		left := fs.Args()
		if len(left) == 0 {
			return rest, nil
		}
		if n := len(args) - len(left); n > 0 && args[n-1] == "--" {
			return append(rest, left...), nil
		}
		rest, args = append(rest, left[0]), left[1:]
	}
}

// finish flushes, reports err and returns the exit status.
func (in *invocation) finish(name string, err error) int {
	if ferr := in.stdout.Flush(); ferr != nil {
		err = ferr // a failed write matters more
	}
	prefix := "agentevents"
	if name != "" {
		prefix += " " + name
	}
	var usage usageError
	var exit exitError
	switch {
	case errors.As(err, &exit):
		return int(exit)
	case err == nil, errors.Is(err, errHelp), errors.Is(err, errClosed):
		return exitOK
	case errors.Is(err, errProblems):
		return exitProblems
	case errors.Is(err, errFiles):
		return exitUsage
	case errors.As(err, &usage):
		help := "agentevents help"
		if name != "" && name != "help" { // which lists the commands
			help += " " + name
		}
		fmt.Fprintf(in.stderr, "%s: %s\nRun '%s' for usage.\n", prefix, visible(err.Error()), help)
		return exitUsage
	}
	fmt.Fprintf(in.stderr, "%s: %s\n", prefix, visible(strings.TrimPrefix(err.Error(), "agentevents: ")))
	return exitUsage
}

// An output buffers writes until it is flushed. After a write has failed all writes fail. It may be
// used concurrently.
//
// On a terminal no character reaches it that controls it, but for the command's own.
type output struct {
	mu       sync.Mutex
	w        io.Writer
	terminal bool
	buf      []byte
	err      error
}

const outputSize = 64 << 10

func newOutput(w io.Writer) *output {
	f, ok := w.(*os.File)
	return &output{w: w, terminal: ok && isTerminal(f)}
}

// Write buffers p. The error is errClosed when nobody reads the output any
// more.
func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err != nil {
		return 0, o.err
	}
	o.buf = append(o.buf, p...)
	if len(o.buf) >= outputSize {
		o.flush(wholeRunes(o.buf))
	}
	return len(p), o.err
}

// Flush writes the buffer.
func (o *output) Flush() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.flush(len(o.buf))
}

// wholeRunes returns the length of a text without the beginning of a character at its end.
func wholeRunes(text []byte) int {
	for i := len(text) - 1; i >= max(0, len(text)-utf8.UTFMax); i-- {
		if utf8.RuneStart(text[i]) {
			if !utf8.FullRune(text[i:]) {
				return i
			}
			break
		}
	}
	return len(text)
}

// flush writes the first n bytes of the buffer.
func (o *output) flush(n int) error {
	if o.err != nil || n == 0 {
		return o.err
	}
	text := o.buf[:n]
	if o.terminal {
		text = view.ForTerminal(text)
	}
	wrote, err := o.w.Write(text)
	if err == nil && wrote < len(text) {
		err = io.ErrShortWrite
	}
	o.buf = o.buf[:copy(o.buf, o.buf[n:])]
	switch {
	case errors.Is(err, syscall.EPIPE), errors.Is(err, io.ErrClosedPipe):
		o.err = errClosed
	case err != nil:
		o.err = fmt.Errorf("writing the output: %w", err)
	}
	return o.err
}

// A choice is a flag with a fixed list of values.
type choice struct {
	value  string
	values []string
}

func (c *choice) String() string { return c.value }

func (c *choice) Set(s string) error {
	if !slices.Contains(c.values, s) {
		return fmt.Errorf("want %s", strings.Join(c.values, ", "))
	}
	c.value = s
	return nil
}

// A sequence is a flag for the sequence of an event.
type sequence uint64

func (n *sequence) String() string { return strconv.FormatUint(uint64(*n), 10) }

func (n *sequence) Set(s string) error {
	v, err := strconv.ParseUint(s, 10, 64)
	if err != nil {
		return errors.New("want a sequence: 0 or more")
	}
	*n = sequence(v)
	return nil
}

// A list is a flag that may be given several times.
type list []string

func (l *list) String() string { return strings.Join(*l, ",") }

func (l *list) Set(s string) error {
	*l = append(*l, s)
	return nil
}
