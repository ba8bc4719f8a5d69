package lawtest

import (
	"bufio"
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect/agui"
	"github.com/agentevents/agentevents/internal/effort"
)

// A client is a process that plays streams to the client of AG-UI: see judge.cjs.
type client struct {
	to   *json.Encoder
	from *bufio.Reader
}

// An ending is how a client ends.
type ending struct {
	Errors, Warnings []string
	Messages         []frontMessage
	State            string // empty if it is the one that was expected
}

// newClient starts a client, which ends with the test.
func newClient(t *testing.T) *client {
	t.Helper()
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("needs node: install Node.js")
	}
	folder := os.Getenv("AGENTEVENTS_AGUI")
	if folder == "" {
		t.Skip("needs the AG-UI client: run 'npm ci' in a copy of dialect/agui/testdata/client, and set AGENTEVENTS_AGUI to its path")
	}
	script, err := os.ReadFile(filepath.Join("..", "..", "dialect", "agui", "testdata", "client", "judge.cjs"))
	require.NoError(t, err)
	cmd := exec.Command(node, "-e", string(script))
	cmd.Dir, cmd.Stderr = folder, os.Stderr
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = in.Close() // the end of its tasks
		require.NoError(t, cmd.Wait())
	})
	to := json.NewEncoder(in)
	to.SetEscapeHTML(false)
	return &client{to, bufio.NewReader(out)}
}

// do gives a task to the client, and returns how the client ends.
func (c *client) do(t rapid.TB, task any) (e ending) {
	t.Helper()
	require.NoError(t, c.to.Encode(task))
	line, err := c.from.ReadBytes('\n')
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(line, &e))
	return e
}

// fresh makes the property tests of t begin with the seed of [effort.Seed] and do so many
// checks: ten times as many in the long run. Flags of the command line stay.
func fresh(t *testing.T, checks int) {
	if effort.Long() {
		checks *= 10
	}
	seed := strconv.FormatUint(effort.Seed(t)|1, 10)
	for name, value := range map[string]string{"rapid.seed": seed, "rapid.checks": strconv.Itoa(checks)} {
		f := flag.Lookup(name)
		if was := f.Value.String(); was == defaults()[name] {
			require.NoError(t, f.Value.Set(value))
			t.Cleanup(func() { require.NoError(t, f.Value.Set(was)) })
		}
	}
}

// Law: the protocol's own client ends with the messages, the reasoning, the calls, the results
// and the state of a log, whatever runs a thread has, and where they pause and end.
func TestClientOfAGUIEndsWithTheLog(t *testing.T) {
	c := newClient(t)
	fresh(t, 330)
	events, messages := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		log := thread(t)
		lines := streamOf(t, log)
		want := frontOf(log)
		events, messages = events+len(log), messages+len(want.messages)
		got := c.do(t, map[string]any{"lines": lines, "state": json.RawMessage(cmp.Or(want.state, "null"))})
		what := want.differs(got.Messages)
		if got.State != "" {
			what += "\nthe state is " + got.State + ", not " + want.state
		}
		if what != "" || len(got.Errors)+len(got.Warnings) > 0 {
			show(t, &Run{Events: log})
			t.Fatalf("%s\nerrors: %q\nwarnings: %q\n%s", what, got.Errors, got.Warnings, strings.Join(lines, ""))
		}
	})
	t.Logf("%d events, %d messages", events, messages)
}

// streamOf returns the lines of a log.
func streamOf(t rapid.TB, log []agentevents.Event) (lines []string) {
	enc := agui.NewEncoder(agui.EncoderOptions{})
	var out []byte
	for _, ev := range log {
		var err error
		out, err = enc.Append(out, ev)
		require.NoError(t, err)
	}
	out, err := enc.End(out)
	require.NoError(t, err)
	return slices.AppendSeq([]string{}, strings.Lines(string(out)))
}

// thread draws the log of a thread: runs one after the other or interleaved, which pause.
func thread(t *rapid.T) (log []agentevents.Event) {
	session, n := rapid.SampledFrom([]string{"", "thread"}).Draw(t, "session"), 1
	if session != "" {
		n = rapid.IntRange(1, 3).Draw(t, "runs")
	}
	var rest [][]agentevents.Event
	for i := range n {
		run := paused(t, Generate(t, anyConfig(t)).Events)
		for j := range run {
			run[j].ID, run[j].Sequence, run[j].RunID, run[j].SessionID = fmt.Sprint("e", j), uint64(j), fmt.Sprint("run-", i), session
		}
		rest = append(rest, run)
	}
	inTurn := rapid.Bool().Draw(t, "in turn")
	for len(rest) > 0 {
		i, take := 0, len(rest[0])
		if inTurn {
			i = rapid.IntRange(0, len(rest)-1).Draw(t, "run")
			take = rapid.IntRange(0, len(rest[i])).Draw(t, "events")
		}
		log = append(log, rest[i][:take]...)
		if rest[i] = rest[i][take:]; len(rest[i]) == 0 {
			rest = slices.Delete(rest, i, i+1)
		}
	}
	return log
}

// paused returns a run that pauses for a question at some places.
func paused(t *rapid.T, run []agentevents.Event) (events []agentevents.Event) {
	at := rapid.SliceOfNDistinct(rapid.IntRange(0, len(run)), 0, 2, rapid.ID).Draw(t, "pauses")
	for i, ev := range run {
		if slices.Contains(at, i) {
			id := fmt.Sprint("pause-", i)
			for _, p := range []agentevents.Payload{&agentevents.ApprovalRequested{ApprovalID: id}, &agentevents.RunPaused{}, &agentevents.RunResumed{}, &agentevents.ApprovalGranted{ApprovalID: id}} {
				events = append(events, agentevents.Event{Time: ev.Time, SchemaVersion: agentevents.SchemaVersion, Payload: p})
			}
		}
		events = append(events, ev)
	}
	return events
}
