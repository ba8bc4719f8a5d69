package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	osexec "os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTail(t *testing.T) {
	path := filepath.Join(t.TempDir(), "run.jsonl")
	write := func(suffix, text string) { require.NoError(t, os.WriteFile(path+suffix, []byte(text), 0o600)) }
	write(".000001.gz", gz(linesOf(0, 20)))
	write(".000002", strings.ReplaceAll(linesOf(20, 30), `"agentId":"a"`, `"agentId":"b"`))
	write("", linesOf(30, 33)+strings.TrimSuffix(line("r", 33), "\n"))
	for args, want := range map[string]string{
		"":                                  strings.ReplaceAll(linesOf(24, 30), `"agentId":"a"`, `"agentId":"b"`) + linesOf(30, 34),
		"-n 1":                              linesOf(33, 34),
		"-n 4":                              linesOf(30, 34),
		"-n 0":                              "",
		"-n 3 --agent b":                    strings.ReplaceAll(linesOf(27, 30), `"agentId":"a"`, `"agentId":"b"`),
		"-n 5 --agent a":                    linesOf(19, 20) + linesOf(30, 34),
		"-n 1 --kind agent.text --run r":    linesOf(33, 34),
		"-n 99 --kind run.completed":        "",
		"-n 99 --agent a --run r":           linesOf(0, 20) + linesOf(30, 34),
		"-n 2 --kind a.x --kind agent.text": linesOf(32, 34),
	} {
		require.Equal(t, result{exitOK, want, ""}, exec("", append([]string{"tail", path}, strings.Fields(args)...)...), args)
	}
	require.Equal(t, result{exitOK, linesOf(24, 34), ""}, exec(linesOf(0, 34), "tail", "-"))
	require.Equal(t, result{exitOK, linesOf(19, 20), ""}, exec("", "tail", "-n", "1", path+".000001.gz"))
	require.Equal(t, exitUsage, exec("", "tail", path+"x").code)

	// Other formats come as cat prints them.
	kahn := exec(read(t, clean), "convert", "--quiet", "--to", "kahn", "-").out
	all := strings.SplitAfter(exec(kahn, "cat", "-").out, "\n")
	require.Equal(t, result{exitOK, strings.Join(all[len(all)-3:], ""), ""}, exec(kahn, "tail", "-n", "2", "-"))
}

// Of the lines that cannot be read those before the events that are printed are not reported.
// A run, agent or kind that is not in the log is told, as by the commands that show runs.
func TestRunThatIsNotThere(t *testing.T) {
	want := exec("", "tree", "--run", "nope", clean)
	require.Equal(t, exitUsage, want.code)
	for _, args := range [][]string{{"cat"}, {"tail"}, {"cat", "--kind", "run.started"}} {
		got := exec("", append(args, "--run", "nope", clean)...)
		require.Equal(t, result{exitUsage, "", strings.ReplaceAll(want.err, "tree", args[0])}, got)
	}
	id := strings.SplitN(strings.SplitN(read(t, clean), `"runId":"`, 2)[1], `"`, 2)[0]
	for _, args := range [][]string{{"cat", "--kind", "run.failed"}, {"tail", "-n", "0"}} {
		require.Equal(t, result{}, exec("", append(args, "--run", id, clean)...))
	}
	for _, name := range []string{"cat", "tail"} {
		for _, c := range [][]string{
			{"--kind", "no.kind", "no event of kind no.kind; 'agentevents kinds'"},
			{"--kind", "toolCalled", "a kind has a dot"},
			{"--agent", "nope", "no event of agent nope; 'agentevents tree'"},
			{"--phase", "nope", "no event in the workflow and phase"},
			{"--workflow", "nope", "no event in the workflow and phase"},
		} {
			got := exec("", name, c[0], c[1], clean)
			require.Equal(t, exitUsage, got.code, c)
			require.Empty(t, got.out)
			require.Contains(t, got.err, c[2])
		}
	}
}

func TestTailReports(t *testing.T) {
	path := rotated(t)
	const bad = "found a bare word of 3 bytes, expected an object\n"
	for n, want := range map[string]result{
		"0": {exitOK, "", ""},
		"1": {exitOK, linesOf(6, 7), ""},
		"2": {exitProblems, linesOf(5, 7), path + ":2: " + bad},
		"4": {exitProblems, linesOf(3, 7), path + ".000004:2: " + bad + path + ":2: " + bad},
		"5": {exitProblems, linesOf(2, 7), path + ".000002:2: " + bad + path + ".000003: the segment is missing\n" + path + ".000004:2: " + bad + path + ":2: " + bad},
	} {
		require.Equal(t, want, exec("", "tail", "-n", n, path), n)
	}
	r := exec("no log\nat all\n", "tail", "-")
	require.Equal(t, exitProblems, r.code)
	require.Equal(t, 2, strings.Count(r.err, "\n"), r.err)
}

// TestTailDoesNotFollowSessions: a session and a capture are whole when they are read.
func TestTailDoesNotFollowSessions(t *testing.T) {
	for path, program := range map[string]string{
		oneCapture:                           "Claude Code",
		"../../capture/testdata/codex/text":  "Codex",
		"../../capture/testdata/claude/fail": "Claude Code",
	} {
		got := exec("", "tail", "-f", path)
		require.Equal(t, exitUsage, got.code)
		require.Empty(t, got.out)
		require.Contains(t, got.err, "a session of "+program+" is read as a whole and cannot be followed")
		require.Equal(t, exitOK, exec("", "tail", "-n", "1", path).code)
	}
}

// TestLiveIsForLogs: a session has an end, also if its program still works.
func TestLiveIsForLogs(t *testing.T) {
	got := exec("", "tree", "--live", clean, "../../capture/testdata/codex/text")
	require.Equal(t, exitUsage, got.code)
	require.Contains(t, got.err, "--live is for a log: a session of Codex has an end")
	require.Equal(t, exitOK, exec("", "tree", "--live", clean).code)
	require.Equal(t, exitOK, exec(line("r", 0), "tree", "--live", "-").code)
}

// A following is a run of tail -f.
type following struct {
	t        *testing.T
	out, err *bufio.Reader
	cancel   func()
	code     chan int
}

func startTail(t *testing.T, args ...string) *following {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	outR, outW := io.Pipe()
	errR, errW := io.Pipe()
	f := &following{t, bufio.NewReader(outR), bufio.NewReader(errR), cancel, make(chan int, 1)}
	c, ok := find("tail")
	require.True(t, ok)
	go func() {
		in := &invocation{stdin: strings.NewReader(""), stdout: newOutput(outW), stderr: errW, ctx: ctx}
		f.code <- in.finish("tail", c.run(in, args))
		outW.Close()
		errW.Close()
	}()
	t.Cleanup(func() {
		cancel()
		outR.Close()
		errR.Close()
	})
	return f
}

// want reads text from one of the outputs.
func (f *following) want(r io.Reader, text string) {
	f.t.Helper()
	got := make([]byte, len(text))
	n, err := io.ReadFull(r, got)
	require.Equal(f.t, text, string(got[:n]))
	require.NoError(f.t, err)
}

// end interrupts the command.
func (f *following) end() {
	f.t.Helper()
	f.cancel()
	require.Equal(f.t, exitOK, <-f.code)
	for _, r := range []io.Reader{f.out, f.err} {
		rest, err := io.ReadAll(r)
		require.NoError(f.t, err)
		require.Empty(f.t, string(rest))
	}
}

func TestTailFollows(t *testing.T) {
	path := filepath.Join(t.TempDir(), "run.jsonl")
	add := func(text string) {
		f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		require.NoError(t, err)
		_, err = f.WriteString(text)
		require.NoError(t, err)
		require.NoError(t, f.Close())
	}
	f := startTail(t, "-f", "-n", "2", path)
	f.want(f.err, "agentevents tail: "+path+": it is not there yet; waiting for it\n")
	add(linesOf(0, 2) + line("r", 2)[:20])
	f.want(f.out, linesOf(0, 2))
	add(line("r", 2)[20:])
	f.want(f.out, linesOf(2, 3))
	add("bad\n" + line("r", 3))
	f.want(f.err, path+":4: found a bare word of 3 bytes, expected an object\n")
	f.want(f.out, linesOf(3, 4))
	add(line("r", 4))
	require.NoError(t, os.Rename(path, path+".000001"))
	add(line("r", 5) + "bad\n")
	f.want(f.out, linesOf(4, 6))
	f.want(f.err, path+":2: found a bare word of 3 bytes, expected an object\n")

	// Files of others: the lines of a new text are counted anew.
	require.NoError(t, os.Truncate(path, 0))
	f.want(f.err, path+": the file was truncated or written over; it is read again from its beginning\n")
	add("bad\n" + line("r", 6))
	f.want(f.err, path+":1: found a bare word of 3 bytes, expected an object\n")
	f.want(f.out, linesOf(6, 7))
	f.end()

	// The last lines come first, from as many segments as it takes; then the filters hold on.
	f = startTail(t, "-f", "-n", "3", "--run", "r", "--kind", "agent.text", path)
	f.want(f.out, linesOf(3, 5))
	f.want(f.err, path+":1: found a bare word of 3 bytes, expected an object\n")
	f.want(f.out, linesOf(6, 7))
	add(line("other", 0) + line("r", 7))
	f.want(f.out, linesOf(7, 8))
	f.end()

	f = startTail(t, "-f", "-n", "0", path)
	f.cancel()
	require.Equal(t, exitOK, <-f.code)

	r := exec("", "tail", "-f", path+".000001.gz")
	require.Equal(t, exitUsage, r.code)
	require.Equal(t, "agentevents tail: "+path+".000001.gz: it is compressed, so nothing is appended to it\n", r.err)
}

// The file of another program is called by its name before it has ended, and once.
func TestTailFollowsTheFileOfAnotherProgram(t *testing.T) {
	path := write(t, `{"sessionId":"s1","models":{},"tools":{},"totalLatencyMs":1}`+"\n")
	f := startTail(t, "-f", path)
	f.want(f.err, path+":1: this is the usage record of Qwen Code: agentevents cannot read it yet\n")
	file, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	require.NoError(t, err)
	defer file.Close()
	_, err = file.WriteString(`{"sessionId":"s1","models":{},"tools":{},"totalLatencyMs":2}` + "\n" + line("r", 0))
	require.NoError(t, err)
	f.want(f.out, line("r", 0))
	f.end()
}

// An interrupt ends the process with exit status 0.
func TestTailIsInterrupted(t *testing.T) {
	if path := os.Getenv("AGENTEVENTS_TEST_TAIL"); path != "" {
		os.Exit(run([]string{"tail", "-f", path}, os.Stdin, os.Stdout, os.Stderr, os.Getenv))
	}
	if runtime.GOOS == "windows" {
		t.Skip("a process cannot be sent an interrupt")
	}
	path := filepath.Join(t.TempDir(), "run.jsonl")
	require.NoError(t, os.WriteFile(path, []byte(linesOf(0, 1)), 0o600))
	cmd := osexec.Command(os.Args[0], "-test.run=^TestTailIsInterrupted$")
	cmd.Env = append(os.Environ(), "AGENTEVENTS_TEST_TAIL="+path)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	defer cmd.Process.Kill()
	got, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, linesOf(0, 1), got)
	require.NoError(t, cmd.Process.Signal(os.Interrupt))
	rest, err := io.ReadAll(out)
	require.NoError(t, err)
	require.Empty(t, string(rest), fmt.Sprintf("%q", rest))
	require.NoError(t, cmd.Wait())
}
