package main

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents/internal/chain"
)

// linked chains the lines of a log, after the line with the hash before. It returns them
// and the hash of the last one.
func linked(log string, before chain.Hash) (string, chain.Hash) {
	var out []byte
	for line := range strings.Lines(log) {
		out, before = chain.Append(out, []byte(strings.TrimSuffix(line, "\n")), before)
		out = append(out, '\n')
	}
	return string(out), before
}

func someLines(from, to int) string {
	var b strings.Builder
	for i := from; i <= to; i++ {
		b.WriteString(line("r", i-1)) // sequences begin at 0
	}
	return b.String()
}

// saved writes files into a new directory and returns their paths.
func saved(t *testing.T, files map[string]string) func(name string) string {
	dir := t.TempDir()
	for name, text := range files {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	return func(name string) string { return filepath.Join(dir, name) }
}

// problems runs check --chain over files and returns its exit status and its lines about
// the chain, without the directory.
func checkChain(t *testing.T, files map[string]string, names ...string) (int, []string) {
	path := saved(t, files)
	args := []string{"check", "--chain"}
	for _, name := range names {
		args = append(args, path(name))
	}
	got := exec("", args...)
	for l := range strings.Lines(got.err) {
		require.Contains(t, l, ": "+emptyFile+"\n")
	}
	var about []string
	for l := range strings.Lines(got.out) {
		if l = strings.ReplaceAll(strings.TrimSpace(l), path(""), ""); strings.Contains(l, "chain") {
			about = append(about, strings.ReplaceAll(l, string(filepath.Separator), ""))
		}
	}
	return got.code, about
}

const (
	saysChanged   = "chain-broken: the line was changed"
	saysUnchained = "chain-broken: the line is not chained: it was changed or inserted"
	saysBefore    = "chain-broken: the line before it is another than it was: lines were changed, removed, inserted or moved"
	saysNone      = "chain-broken: no line of the log is chained"
)

func TestCheckChain(t *testing.T) {
	whole, last := linked(someLines(1, 6), chain.Hash{})
	ls := strings.SplitAfter(whole, "\n")[:6]
	first, mid := linked(someLines(1, 3), chain.Hash{})
	second, _ := linked(someLines(4, 6), mid)
	require.Equal(t, whole, first+second)
	alone, _ := linked(someLines(7, 8), chain.Hash{})
	head := func(h chain.Hash) string { return string(chain.AppendHead(nil, h)) }
	rehashed, _ := linked(strings.Replace(line("r", 2), `"t2"`, `"no"`, 1), linkOf(t, ls[1]).Hash)
	join := func(parts ...string) string { return strings.Join(parts, "") }
	lost := func(n string) string {
		return "log:" + n + ": chain-broken: the line that log.head names as the last one on disk is missing: lines were removed at the end"
	}

	for name, test := range map[string]struct {
		log, more string // more is a second file
		head      string
		want      []string
		code      int
	}{
		"whole":                          {log: whole},
		"empty":                          {log: ""},
		"CRLF, blank lines, no newline":  {log: "\xef\xbb\xbf\n" + strings.ReplaceAll(strings.TrimSuffix(whole, "\n"), "\n", "\r\n\r\n")},
		"head":                           {log: whole, head: head(last)},
		"head of a line before":          {log: whole, head: head(mid)},
		"head of nothing":                {log: whole, head: head(chain.Hash{})},
		"two files":                      {log: first, more: second},
		"an empty file after a rotation": {log: whole, more: ""},
		"changed":                        {log: strings.Replace(whole, `"t2"`, `"no"`, 1), want: []string{"log:3: " + saysChanged}, code: 1},
		"changed and hashed anew":        {log: join(ls[0], ls[1], rehashed, ls[3]), want: []string{"log:4: " + saysBefore}, code: 1},
		"two are changed":                {log: strings.NewReplacer(`"t2"`, `"no"`, `"t4"`, `"no"`).Replace(whole), want: []string{"log:3: " + saysChanged}, code: 1},
		"removed":                        {log: join(ls[0], ls[1], ls[3]), want: []string{"log:3: " + saysBefore}, code: 1},
		"inserted":                       {log: join(ls[0], ls[1], line("r", 8), ls[2]), want: []string{"log:3: " + saysUnchained}, code: 1},
		"inserted with a link":           {log: join(ls[0], ls[1], alone, ls[2]), want: []string{"log:3: " + saysBefore}, code: 1},
		"moved":                          {log: join(ls[0], ls[2], ls[1], ls[3]), want: []string{"log:2: " + saysBefore}, code: 1},
		"twice":                          {log: join(ls[0], ls[1], ls[1], ls[2]), want: []string{"log:3: " + saysBefore}, code: 1},
		"its link is cut off":            {log: join(ls[0], line("r", 1), ls[2]), want: []string{"log:2: " + saysUnchained}, code: 1},
		"garbage":                        {log: join(ls[0], "{\n", ls[1]), want: []string{"log:2: " + saysUnchained}, code: 1},
		"torn":                           {log: join(ls[0], ls[1][:80]), want: nil, code: 1}, // line-unreadable
		"an end without a newline":       {log: join(ls[0], strings.TrimSuffix(line("r", 1), "\n")), want: []string{"log:2: " + saysUnchained}, code: 1},
		"cut":                            {log: first, head: head(last), want: []string{lost("3")}, code: 1},
		"cut to nothing":                 {log: "", head: head(last), want: []string{lost("1")}, code: 1},
		"a damaged head":                 {log: whole, head: "x", want: []string{"log.head:1: chain-broken: the head is damaged: it does not name a line"}, code: 1},
		"an empty head":                  {log: whole},
		"not chained":                    {log: someLines(1, 2), want: []string{"log:1: " + saysNone}, code: 1},
		"mid-way":                        {log: second, want: []string{"warning: log:1: the chain goes on from a line that is not here; its hash is " + mid.String()}},
		"mid-way, after the head":        {log: second, head: head(mid), want: []string{"warning: log:1: the chain goes on from a line that is not here; its hash is " + mid.String()}},
		"after a line":                   {log: line("q", 1) + whole, want: []string{"warning: log:2: the chain begins here; the line before it is in no chain"}},
		"after lines":                    {log: line("q", 1) + line("q", 2) + whole, want: []string{"warning: log:3: the chain begins here; the 2 lines before it are in no chain"}},
		"after a file":                   {log: line("q", 0) + line("q", 1), more: whole, want: []string{"warning: more:1: the chain begins here; the 2 lines before it are in no chain"}},
		"the second file is changed":     {log: first, more: strings.Replace(second, `"t4"`, `"no"`, 1), want: []string{"more:2: " + saysChanged}, code: 1},
		"both files are changed": {
			log: strings.Replace(first, `"t1"`, `"no"`, 1), more: strings.Replace(second, `"t4"`, `"no"`, 1),
			want: []string{"log:2: " + saysChanged, "more:2: " + saysChanged}, code: 1,
		},
		"a file is missing between": {log: join(ls[0], ls[1]), more: second, want: []string{"more:1: " + saysBefore}, code: 1},
		"two logs":                  {log: whole, more: alone, want: []string{"warning: more:1: a new chain begins here; it does not cover lines between the files"}},
		"a new chain in a file":     {log: whole + alone, want: []string{"log:7: " + saysBefore}, code: 1},
	} {
		t.Run(name, func(t *testing.T) {
			files := map[string]string{"log": test.log}
			names := []string{"log"}
			if test.head != "" || strings.HasPrefix(name, "an empty head") {
				files["log.head"] = test.head
			}
			if test.more != "" || strings.HasPrefix(name, "an empty file") {
				files["more"] = test.more
				names = append(names, "more")
			}
			code, got := checkChain(t, files, names...)
			require.Equal(t, test.want, got)
			require.Equal(t, test.code, code)
		})
	}
}

func linkOf(t *testing.T, line string) chain.Link {
	l, ok := chain.Find([]byte(strings.TrimSuffix(line, "\n")))
	require.True(t, ok)
	return l
}

// Problems of the chain stand among the others, in the order of the log; standard input
// has no head.
func TestCheckChainKeepsTheOrder(t *testing.T) {
	whole, _ := linked(someLines(1, 4), chain.Hash{})
	ls := strings.SplitAfter(whole, "\n")
	log := ls[0] + "x\n" + strings.Replace(ls[1], "t1", "no", 1) + "y\n"
	require.Equal(t, result{exitProblems, "" +
		"stdin:2: chain-broken: the line is not chained: it was changed or inserted\n" +
		"stdin:2: line-unreadable: found a bare word of 1 byte, expected an object\n" +
		"stdin:4: line-unreadable: found a bare word of 1 byte, expected an object\n", ""}, exec(log, "check", "--chain", "-"))
	require.Equal(t, result{exitOK, "", ""}, exec(whole, "check", "--chain", "-"))
	require.Equal(t, result{exitOK, "", ""}, exec(strings.Replace(whole, "t1", "no", 1), "check", "-"), "without --chain")
}

// A line as long as may be is checked; a longer one is not kept in memory.
func TestCheckChainOfLongLines(t *testing.T) {
	whole, _ := linked(someLines(1, 2), chain.Hash{})
	most := len(line("r", 0)) - 1
	require.Equal(t, result{exitOK, "", ""}, exec(strings.ReplaceAll(whole, "\n", "\r\n"), "check", "--chain", "--max-line", strconv.Itoa(most), "-"))
	got := exec(whole, "check", "--chain", "--max-line", strconv.Itoa(most-1), "-")
	require.Equal(t, exitProblems, got.code)
	require.Equal(t, 2, strings.Count(got.out, "line-unreadable"), got.out)
}

// No command shows the link of a line, whatever it does with the event.
func TestCommandsTakeLinksOff(t *testing.T) {
	log := read(t, clean)
	whole, _ := linked(log, chain.Hash{})
	for _, args := range []string{
		"cat", "check", "check --dialect native", "fold", "tree --color never", "stats", "redact", "convert --to native", "convert --to kahn",
		"export otlp", "export chrome",
	} {
		plain := exec(log, append(strings.Fields(args), "-")...)
		got := exec(whole, append(strings.Fields(args), "-")...)
		if strings.HasPrefix(args, "redact") {
			require.Contains(t, got.err, "the copy of the chained log has no chain")
			plain.err, got.err = "", ""
		}
		require.NotEqual(t, exitUsage, got.code, got.err)
		require.Equal(t, plain, got, args)
	}
}

// A redacted copy begins a chain that names the end of the log.
func TestRedactedCopyIsChained(t *testing.T) {
	log := someLines(1, 3) + strings.Replace(line("r", 3), "t3", "password=hunter22", 1)
	first, mid := linked(log, chain.Hash{})
	second, last := linked(someLines(5, 6), mid)
	path := saved(t, map[string]string{"a": first, "b": second, "empty": "", "plain": log})

	for _, names := range [][]string{{"a", "b"}, {"a", "b", "empty"}} {
		args := []string{"redact"}
		for _, name := range names {
			args = append(args, path(name))
		}
		got := exec("", args...)
		require.Equal(t, exitOK, got.code, got.err)
		require.NotContains(t, got.out, "hunter22")
		require.NotContains(t, got.err, "chain")
		require.Equal(t, last, linkOf(t, strings.SplitAfter(got.out, "\n")[0]).Prev)
		require.Equal(t, result{exitOK, "warning: stdin:1: the chain goes on from a line that is not here; its hash is " + last.String() + "\n", ""},
			exec(got.out, "check", "--chain", "-"))
	}

	got := exec("", "redact", path("plain"))
	require.NotContains(t, got.out+got.err, "hash")
	got = exec(first, "redact", "-")
	require.NotContains(t, got.out, `"hash"`)
	require.Contains(t, got.err, "agentevents redact: the copy of the chained log has no chain")
}

// A link to a log is checked with the log's head.
func TestCheckChainFollowsALink(t *testing.T) {
	whole, last := linked(someLines(1, 2), chain.Hash{})
	path := saved(t, map[string]string{
		"log": strings.SplitAfter(whole, "\n")[0], "log.head": string(chain.AppendHead(nil, last)), "log.lock": "",
	})
	if err := os.Symlink(path("log"), path("link")); err != nil {
		t.Skip("no symbolic links: ", err)
	}
	require.Contains(t, exec("", "check", "--chain", path("link")).out, missingHead(path("log")))
}

func TestCheckChainNeedsToReadTheHead(t *testing.T) {
	whole, _ := linked(someLines(1, 2), chain.Hash{})
	path := saved(t, map[string]string{"log": whole})
	require.NoError(t, os.Mkdir(path("log.head"), 0o700))
	got := exec("", "check", "--chain", path("log"))
	require.NotEqual(t, exitOK, got.code)
	require.Contains(t, got.err, "log.head: is a directory")
}
