//go:build linux

package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
)

// openTerminal returns both ends of a terminal: text that is written to user is read from screen.
func openTerminal(t *testing.T) (screen, user *os.File) {
	t.Helper()
	screen, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("no terminals: %v", err)
	}
	t.Cleanup(func() { screen.Close() })
	control := func(request, arg uintptr) {
		_, _, err := syscall.Syscall(syscall.SYS_IOCTL, screen.Fd(), request, arg)
		require.Zero(t, err)
	}
	unlocked, number := 0, uint32(0)
	control(syscall.TIOCSPTLCK, uintptr(unsafe.Pointer(&unlocked)))
	control(syscall.TIOCGPTN, uintptr(unsafe.Pointer(&number)))
	user, err = os.OpenFile(fmt.Sprint("/dev/pts/", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	require.NoError(t, err)
	return screen, user
}

// shown returns the text that a command shows on a terminal.
func shown(t *testing.T, stdin string, args ...string) string {
	screen, user := openTerminal(t)
	require.True(t, isTerminal(user))
	text := make(chan string)
	go func() {
		all, _ := io.ReadAll(screen) // it ends with an error when the other end is closed
		text <- string(all)
	}()
	run(args, strings.NewReader(stdin), user, io.Discard, os.Getenv)
	require.NoError(t, user.Close())
	return <-text
}

func TestIsTerminal(t *testing.T) {
	for _, path := range []string{os.DevNull, "/dev/zero", "/dev/full"} {
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		require.NoError(t, err)
		require.False(t, isTerminal(f), path)
		require.NoError(t, f.Close())
	}
	_, user := openTerminal(t)
	require.True(t, isTerminal(user))
	require.NoError(t, user.Close())
}

// Nothing that a log has controls a terminal: not the direction of its text either.
func TestATerminalIsNotControlled(t *testing.T) {
	const marks = "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200e\u200f\u061c\u009b\u0085\u007f"
	native := `{"id":"1","sequence":0,"timestamp":"2026-01-02T10:00:00.000Z","type":"run.started","runId":"r` + marks + `","payload":{"name":"n` + marks + `"}}
{"id":"2","sequence":1,"timestamp":"2026-01-02T10:00:01.000Z","type":"agent.started","runId":"r` + marks + `","agentId":"a` + marks + `","payload":{"task":"t` + marks + `"}}
{"id":"3","sequence":2,"timestamp":"2026-01-02T10:00:02.000Z","type":"agent.text","runId":"r` + marks + `","agentId":"a` + marks + `","payload":{"text":"x` + marks + `"}}
{"id":"4","sequence":3,"timestamp":"2026-01-02T10:00:03.000Z","type":"x` + marks + `","runId":"r` + marks + `","payload":{"` + marks + `":"` + marks + `"}}
`
	stream := `{"type":"system","subtype":"init","session_id":"s","model":"m` + marks + `","uuid":"u"}
{"type":"assistant","message":{"id":"m","role":"assistant","content":[{"type":"text","text":"` + marks + `"}]},"session_id":"s","uuid":"v"}
`
	for _, test := range []struct{ stdin, args string }{
		{native, "cat -"}, {native, "fold -"}, {native, "convert --to kahn -"}, {native, "convert --to agui -"}, {native, "convert --to openwop -"},
		{native, "convert --to kaos:sse -"}, {native, "redact -"}, {native, "export otlp --content -"}, {native, "export chrome -"}, {stream, "import claude -"}, {stream, "import claude --no-redact -"},
		{native, "tree -"}, {native, "show -"}, {native, "ls -"}, {native, "stats -"}, {native, "replay --speed 0 -"}, {native, "tail -n 10 -"},
	} {
		text := shown(t, test.stdin, strings.Fields(test.args)...)
		require.NotEmpty(t, text, test.args)
		require.False(t, strings.ContainsAny(text, marks), "%s: %q", test.args, text)
	}
}

// A drawing that takes long is drawn seldom: the log takes most of the time.
func TestReplayDrawsSeldom(t *testing.T) {
	const agents = 20_000
	var log strings.Builder
	for i := range agents {
		fmt.Fprintf(&log, `{"id":"%d","sequence":%d,"timestamp":"2026-01-02T10:00:00.000Z","type":"agent.started","runId":"r","agentId":"a%d","payload":{"task":"t"}}`+"\n", i, i, i)
	}
	text := shown(t, log.String(), "replay", "--speed", "0", "-")
	drawn := strings.Count(text, home)
	require.NotZero(t, drawn)
	t.Logf("drawn %d times", drawn)
	require.Less(t, drawn, 100)
}
