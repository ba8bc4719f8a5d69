package agentevents

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents/internal/txtar"
)

// foreignFiles returns texts of other programs by the names that they are called by.
func foreignFiles(t *testing.T) []txtar.File {
	t.Helper()
	text, err := os.ReadFile("internal/foreign/testdata/files.txtar")
	require.NoError(t, err)
	files := txtar.Parse(string(text)).Files
	require.Greater(t, len(files), 40)
	for i := range files {
		files[i].Name, _, _ = strings.Cut(files[i].Name, " #")
	}
	return files
}

// A reading is one way of reading a log.
type reading struct {
	name string
	read func(log string) (runs string, events uint64, err error)
}

func readings() []reading {
	fold := func(o FoldOptions) func(string) (string, uint64, error) {
		return func(log string) (runs string, events uint64, err error) {
			l, err := FoldLog(NewReader(strings.NewReader(log), ReaderOptions{}), o)
			for s := range l.Drain() {
				runs += s.RunID + ";"
				events += s.NextSequence
			}
			return runs, events, err
		}
	}
	return []reading{
		{"All", func(log string) (runs string, events uint64, err error) {
			var errs []error
			l := NewFoldSet(FoldOptions{})
			for ev, err := range NewReader(strings.NewReader(log), ReaderOptions{}).All() {
				if err != nil {
					errs = append(errs, err)
					continue
				}
				l.Apply(ev)
			}
			for s := range l.Drain() {
				runs += s.RunID + ";"
				events += s.NextSequence
			}
			return runs, events, errors.Join(errs...)
		}},
		{"FoldLog", fold(FoldOptions{})},
		{"FoldLog with workers", fold(FoldOptions{Workers: 2})},
	}
}

// The file of another program has no run, and the error names the program. Blank lines, the ends
// of lines and a byte order mark do not change that.
func TestFilesOfOtherPrograms(t *testing.T) {
	for _, f := range foreignFiles(t) {
		for spelling, text := range map[string]string{
			"as it is":         f.Text,
			"blank lines":      "\n \n\t\n" + f.Text + "\n\n  \n",
			"CRLF":             strings.ReplaceAll(f.Text, "\n", "\r\n"),
			"a mark":           "\ufeff" + f.Text,
			"a mark and blank": "\ufeff\r\n\r\n" + f.Text,
			"no newline":       strings.TrimRight(f.Text, "\n"),
		} {
			for _, r := range readings() {
				runs, events, err := r.read(text)
				require.Empty(t, runs, "%s, %s: %s", f.Name, spelling, r.name)
				require.Zero(t, events)
				var foreign *ForeignError
				require.ErrorAs(t, err, &foreign, "%s, %s: %s", f.Name, spelling, r.name)
				name, _, _ := strings.Cut(foreign.Name, " as JSON over") // a document of a program whose lines are read
				require.Equal(t, f.Name, name, "%s, %s", spelling, r.name)
				require.NotEmpty(t, foreign.Hint)
				if !foreign.unknown() {
					require.Equal(t, 1, strings.Count(err.Error(), "\n")+1, "%s: once", err)
				}
			}
		}
	}
}

func TestOtherFormsOfFiles(t *testing.T) {
	for text, want := range map[string]string{
		"SQLite format 3\x00\x10\x00\x01\x01\x00\n\x00":   "a SQLite database",
		"7\x7f\x06\x82\x00-\xe2\x18\n":                    "the write-ahead log of a SQLite database",
		"\x1f\x8b\x08\x00\n\x00":                          "gzip data, not lines of JSON",
		"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR":             "binary data",
		"\x7fELF\x02\x01\x01\x00\n{\"a\":1}\n\x00\x00\n":  "binary data",
		"\xff\xfe{\x00\"\x00i\x00d\x00\"\x00:\x00\n\x00x": "UTF-16, not UTF-8",
	} {
		for _, r := range readings() {
			runs, _, err := r.read(text)
			require.Empty(t, runs)
			var foreign *ForeignError
			require.ErrorAs(t, err, &foreign, "%q", text)
			require.Equal(t, want, foreign.Name)
			require.Empty(t, foreign.Program)
			require.NotContains(t, err.Error(), "\n", "once")
		}
	}
}

// Lines of other programs in a log take nothing from it, wherever they stand.
func TestLinesOfOtherProgramsInALog(t *testing.T) {
	var lines []string
	for _, f := range foreignFiles(t) {
		lines = append(lines, strings.Split(strings.TrimSpace(f.Text), "\n")...)
	}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	for range 200 {
		var log bytes.Buffer
		const events = 20
		for i := range events {
			for range random.IntN(4) {
				line := lines[random.IntN(len(lines))]
				if i == 0 && strings.HasPrefix(line, "[") {
					continue // a whole file of that form, of which the rest is not read
				}
				log.WriteString(line + "\n")
			}
			fmt.Fprintf(&log, `{"id":"e%d","sequence":%d,"timestamp":"2026-05-05T09:00:00.000Z","type":"x.custom","runId":"r","payload":{}}`+"\n", i, i)
		}
		var first error
		for i, r := range readings() {
			runs, got, err := r.read(log.String())
			for run := range strings.SplitSeq(strings.TrimSuffix(runs, ";"), ";") {
				require.NotEmpty(t, run, "%s:\n%s", r.name, &log)
			}
			require.True(t, strings.HasPrefix(runs, "r;"), runs)
			require.GreaterOrEqual(t, got, uint64(events), "%s:\n%s", r.name, &log)
			if i == 0 {
				first = err
			} else {
				require.Equal(t, fmt.Sprint(first), fmt.Sprint(err), r.name)
			}
		}
	}
}

// A log may have events of kinds that nobody knows, from its first line. Those that name their run
// and lack other members that an emitter writes count after an event that has them.
func TestUnknownKindsProveALog(t *testing.T) {
	const (
		whole = `{"id":"1","sequence":0,"timestamp":"2026-05-05T09:00:00.000Z","type":"x.custom","runId":"r"}` + "\n"
		part  = `{"id":"2","type":"x.custom","runId":"r"}` + "\n"
		alien = `{"id":"2","type":"x.custom"}` + "\n"
		known = `{"sequence":1,"type":"run.paused","runId":"r"}` + "\n"
		bare  = `{"type":"turn.started"}` + "\n"
	)
	for log, want := range map[string]int{
		whole: 1, known: 1, whole + part: 2, known + part: 2, part + whole: 1, part + known + part: 2,
		part: 0, bare: 0, alien: 0, part + part: 0, whole + bare: 1, whole + alien + whole: 2, known + alien: 1,
	} {
		events := 0
		var err error
		for _, bad := range NewReader(strings.NewReader(log), ReaderOptions{}).All() {
			if bad == nil {
				events++
			} else {
				err = bad
			}
		}
		require.Equal(t, want, events, log)
		require.Equal(t, strings.HasPrefix(log, part) || strings.Contains(log, bare) || strings.Contains(log, alien), err != nil, log)
	}
}
