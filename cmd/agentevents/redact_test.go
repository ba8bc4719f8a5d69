package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// secrets is a log that was recorded without redaction. Planted texts begin with this word, and one
// line is damaged.
const (
	secrets = "testdata/secrets.jsonl"
	planted = "Pl4nted"
	known   = "Pl4nted-registered\n"
	damaged = secrets + ":3: found a bare word of 4 bytes, expected an object\n"
)

// requireClean fails if anything that is planted is in the output or on standard error.
func requireClean(t *testing.T, r result) {
	t.Helper()
	for _, secret := range []string{planted, "UGw0bnRl", "1111 1111"} {
		require.NotContains(t, r.out, secret)
		require.NotContains(t, r.err, secret)
	}
}

// file makes a file in a directory of the test.
func file(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

func TestRedact(t *testing.T) {
	values := file(t, "values.txt", "\ufeff\n  "+strings.TrimSpace(known)+"\t\r\n\n")
	flags := []string{"--secrets", values, "--key", "badge", "--keep", "pin_token"}
	r := exec("", append([]string{"redact", secrets}, flags...)...)
	require.Equal(t, exitProblems, r.code, "for the damaged line")
	require.Equal(t, damaged+"masked 13: key 9, secret 3, card 1, in 7 of 10 events\ncut text, or moved it to the next delta, in 1 of 10 events\n", r.err)
	requireClean(t, r)
	golden(t, "secrets.redacted.jsonl", r.out)

	again := exec(r.out, append([]string{"redact", "-"}, flags...)...)
	require.Equal(t, result{exitOK, r.out, ""}, again, "masking twice changes nothing")
	require.Equal(t, result{exitOK, "", ""}, exec(r.out, "check", "--lifecycle", "relaxed", "-"))

	// The log and the values from standard input.
	stdin := exec(read(t, secrets), append([]string{"redact", "-"}, flags...)...)
	require.Equal(t, result{exitProblems, r.out, strings.Replace(r.err, secrets, "stdin", 1)}, stdin)
	piped := exec(known, "redact", "--secrets", "-", "--key", "badge", "--keep", "pin_token", secrets)
	require.Equal(t, r, piped)

	// Without the flags the default policy is in force.
	plain := exec("", "redact", secrets)
	require.Equal(t, damaged+"masked 10: key 9, card 1, in 6 of 10 events\n", plain.err)
	require.Contains(t, plain.out, "registered, she said")
	require.Contains(t, plain.out, planted+"-badge")

	require.Equal(t, result{exitOK, read(t, clean), ""}, exec("", "redact", clean))
	require.Equal(t, result{exitOK, "", ""}, exec("", "redact", "-"))
}

func TestRedactReasoning(t *testing.T) {
	r := exec("", "redact", "--reasoning", "off", secrets)
	require.Contains(t, r.out, `"payload":{"reasoning":"","verbosity":"off"}`)
	require.Equal(t, damaged+"masked 9: key 9, in 5 of 10 events\ncut text, or moved it to the next delta, in 1 of 10 events\n", r.err)
}

// A secret over several lines is masked, whatever stands between them.
func TestRedactStreams(t *testing.T) {
	var log strings.Builder
	const text = `{"password":"Pl4nted-key"} Pl4nted-registered`
	for i, c := range strings.Split(text, "") {
		delta := strings.Replace(line("r", i), `agent.text"`, `agent.text.delta"`, 1)
		delta = strings.Replace(delta, fmt.Sprintf(`"text":"t%d"`, i), fmt.Sprintf(`"blockId":"b","delta":%q`, c), 1)
		log.WriteString(delta + line("other", i))
	}
	r := exec(log.String(), "redact", "--secrets", file(t, "values.txt", known), "-")
	require.Equal(t, exitOK, r.code, r.err)
	require.Equal(t, 2*len(text), strings.Count(r.out, "\n"))
	require.True(t, strings.HasPrefix(r.err, "masked 2: key 1, secret 1, in 2 of 90 events\n"), r.err)
	folded := exec(r.out, "fold", "-")
	require.Contains(t, folded.out, `{\"password\":\"[REDACTED:key]\"} [REDACTED:secret]`)
	requireClean(t, r)
}

// Every format is read; the output is native.
func TestRedactOtherFormats(t *testing.T) {
	for _, w := range wires() {
		log := exec("", "convert", "--quiet", "--to", w.name, secrets)
		require.Contains(t, log.out, planted)
		for _, from := range [][]string{{}, {"--from", w.name}} {
			r := exec(log.out, append([]string{"redact", "--secrets", file(t, "values.txt", known), "--key", "badge", "-"}, from...)...)
			require.Equal(t, exitOK, r.code, w.name)
			requireClean(t, r)
			r = exec(r.out, "check", "--dialect", "native", "--lifecycle", "relaxed", "-")
			require.Equal(t, exitOK, r.code, w.name)
			require.NotContains(t, r.out, "stdin:", w.name) // but perhaps a warning, as the log begins in the middle of a run
		}
	}
}

func TestRedactUsage(t *testing.T) {
	short := file(t, "short.txt", "long enough\n\nq7\n")
	for _, test := range []struct{ args, want string }{
		{"redact", "agentevents redact: a FILE is needed; - is standard input\n"},
		{"redact --secrets - -", "agentevents redact: standard input can be read only once: name - once\n"},
		{"redact --secrets - --secrets - " + clean, "agentevents redact: standard input can be read only once: name - once\n"},
		{"redact --reasoning none -", "agentevents redact: invalid value \"none\" for flag --reasoning: want full, summary, off\n"},
		{"redact --from klingon -", "agentevents redact: invalid value \"klingon\" for flag --from: want native"},
		{"redact --secrets " + short + " " + clean, "agentevents redact: --secrets: " + short + ":3: a secret must have at least 4 bytes\n"},
		{"redact --secrets testdata/missing.txt " + clean, "agentevents redact: --secrets: open testdata/missing.txt: "},
		{"redact --secrets testdata " + clean, "agentevents redact: --secrets: read testdata: "},
	} {
		r := exec("", strings.Fields(test.args)...)
		require.Equal(t, exitUsage, r.code, test.args)
		require.Empty(t, r.out, test.args)
		require.True(t, strings.HasPrefix(r.err, test.want), r.err)
		require.NotContains(t, r.err, "q7")
	}
	r := exec("", "redact", "testdata/missing.jsonl", clean)
	require.Equal(t, exitUsage, r.code)
	require.Equal(t, read(t, clean), r.out, "the other file was read")
}

// plantInto puts secrets into the texts of a capture.
func plantInto(capture string) string {
	var pairs []string
	for _, name := range []string{"text", "thinking", "content", "result", "description", "prompt", "pattern", "stdout", "command", "cwd", "new_member"} {
		pairs = append(pairs, `"`+name+`":"`, `"`+name+`":"Pl4nted-registered password=Pl4nted-key, `)
	}
	return strings.NewReplacer(pairs...).Replace(strings.ReplaceAll(capture, `"type":"`, `"new_member":"","type":"`))
}

func TestImportRedacts(t *testing.T) {
	const streams = "../../capture/claude/testdata/"
	values := file(t, "values.txt", known)
	for _, name := range []string{"killed", "partial", "subagent"} {
		capture := "no line: Pl4nted\n" + plantInto(read(t, streams+name+".stream.jsonl"))
		args := []string{"import", "claude", "--time", "2026-01-02T00:00:00Z", "-"}
		r := exec(capture, append(args, "--secrets", values)...)
		require.Equal(t, exitOK, r.code, r.err)
		require.Regexp(t, `^stdin:1: .*\n(stdin:.*\n)*masked \d+: key \d+, secret \d+, in \d+ of \d+ events\n`, r.err)
		requireClean(t, r)

		// The events are the events of the log that is not redacted, and of its redaction.
		raw := exec(capture, append(args, "--no-redact")...)
		require.Equal(t, exitOK, raw.code)
		require.NotContains(t, raw.err, "masked")
		require.Contains(t, raw.out, planted+"-key")
		require.Equal(t, r.out, exec(raw.out, "redact", "--secrets", values, "-").out)
		require.Equal(t, strings.Count(raw.out, "\n"), strings.Count(r.out, "\n"))
		require.Equal(t, exitProblems, exec(capture, append(args, "--strict")...).code)
	}
	r := exec("", "import", "claude", "--no-redact", "--key", "badge", "-")
	require.Equal(t, exitUsage, r.code)
	require.Contains(t, r.err, "--no-redact masks nothing: leave out --secrets, --key, --keep and --reasoning\n")
}

func TestConvertRedacts(t *testing.T) {
	values := file(t, "values.txt", known)
	flags := []string{"--redact", "--secrets", values, "--key", "badge", "--keep", "pin_token"}
	redacted := exec("", append([]string{"redact", secrets}, flags[1:]...)...)
	for _, w := range wires() {
		args := append([]string{"convert", "--to", w.name, secrets}, flags...)
		r := exec("", args...)
		require.Equal(t, exitProblems, r.code, "for the damaged line")
		require.Contains(t, r.err, damaged+"masked ")
		require.Contains(t, r.err, "\nredacting: altered: agent.text.delta /payload/delta (2 times, first in run r at sequence 1)\n")
		require.Contains(t, r.err, "\nredacting: altered: acme.login /note (once, in run r at sequence 7)\n")
		requireClean(t, r)
		require.Equal(t, exec(redacted.out, "convert", "--quiet", "--to", w.name, "-").out, r.out, w.name)

		// The lines of the format itself, which keep their bytes otherwise.
		log := exec("", "convert", "--quiet", "--to", w.name, secrets)
		require.Contains(t, log.out, planted)
		args[3] = "-"
		r = exec(log.out, append(args, "--verify")...)
		require.Equal(t, exitOK, r.code, r.err)
		require.Contains(t, r.err, "redacting: altered: ")
		requireClean(t, r)
		require.Equal(t, result{exitOK, r.out, ""}, exec(log.out, append(args, "--quiet", "--verify")...))
		require.Equal(t, exitProblems, exec(log.out, append(args, "--strict")...).code)
		require.Equal(t, exitProblems, exec(log.out, append(args, "--strict", "--quiet")...).code)
	}
	const bare = `{"id":"1","sequence":0,"timestamp":"2026-01-02T10:00:00.000Z","type":"x.y","runId":"r","payload":{"ghp_Pl4ntedPl4ntedPl4ntedPl4ntedPl4nted12":1}}` + "\n"
	r := exec(bare, "convert", "--to", "native", "--redact", "-")
	require.Equal(t, exitOK, r.code)
	requireClean(t, r)
	require.Equal(t, "masked 1: token 1, in 1 of 1 events\nredacting: altered: x.y /payload/ghp_[REDACTED:token] (once, in run r at sequence 0)\n", r.err)

	// Another spelling does not change the event.
	odd := strings.ReplaceAll(line("r", 0), `,"`, ` , "`)
	require.Equal(t, result{exitOK, line("r", 0), ""}, exec(odd, "convert", "--to", "native", "--redact", "--strict", "-"))
	require.Equal(t, result{exitOK, line("r", 0), ""}, exec(odd, "redact", "-"))

	r = exec("", "convert", "--to", "native", "--reasoning", "off", "-")
	require.Equal(t, exitUsage, r.code)
	require.Contains(t, r.err, "--secrets, --key, --keep and --reasoning need --redact\n")
}
