package dialect_test

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect"
	"github.com/agentevents/agentevents/dialect/dialecttest"
	"github.com/agentevents/agentevents/eventtest"
	"github.com/agentevents/agentevents/internal/txtar"
)

var update = flag.Bool("update", false, "write the golden files in testdata/golden")

const renew = "read the diff; if it is meant, run go test ./dialect -run TestGolden -update"

func goldenFile(name string) string { return filepath.Join("testdata", "golden", name+".txtar") }

func readGolden(t testing.TB, name string) txtar.Archive {
	t.Helper()
	text, err := os.ReadFile(goldenFile(name))
	require.NoError(t, err, renew)
	return txtar.Parse(string(text))
}

// The golden files have, byte for byte, the conversion of a log to every format. Their first text
// is the log, in the native format or in a document's. Then follow, for every format, the lines
// that it writes, its losses, its errors, the events that come back if they differ from the log,
// and the values that its decoder makes up for a kind. (The values made up for every line, such as
// an id, are in the suite's tests.)
func TestGolden(t *testing.T) {
	logs := map[string]string{} // the logs that code makes, by the name of the file
	for info := range agentevents.Kinds() {
		logs[string(info.Kind)] = kindLog(t, dialecttest.Filled(info.Kind), dialecttest.Minimal(info.Kind))
	}
	unknown := dialecttest.Filled("x-vendor.new-thing")
	unknown.Payload = &agentevents.Unknown{Type: "x-vendor.new-thing", Raw: `{"a":1.50,"b":{"c":null}}`}
	logs["unknown"] = kindLog(t, unknown, dialecttest.Minimal("x-vendor.new-thing"))
	logs["standard"] = nativeLines(t, dialecttest.StandardRun("run-1"))

	files := map[string]bool{}
	for name, log := range logs {
		files[goldenFile(name)] = true
		if *update {
			a := txtar.Archive{Files: []txtar.File{{Name: "native", Text: log}}}
			require.NoError(t, os.WriteFile(goldenFile(name), []byte(a.String()), 0o644))
		}
	}
	for _, name := range []string{"quickstart", "variants-agui", "variants-kahn", "variants-kaos", "variants-multiagent", "variants-openharness", "variants-openwop"} {
		files[goldenFile(name)] = true
	}
	found, err := filepath.Glob(goldenFile("*"))
	require.NoError(t, err)
	for file := range files {
		require.Contains(t, found, file, renew)
	}
	for _, file := range found {
		name := strings.TrimSuffix(filepath.Base(file), ".txtar")
		t.Run(name, func(t *testing.T) {
			require.True(t, files[file], "no kind or log has that name: remove the file")
			golden := readGolden(t, name)
			if log := logs[name]; log != "" {
				require.Equal(t, log, golden.Get("native"))
			}
			got := converted(t, golden)
			if *update {
				require.NoError(t, os.WriteFile(file, []byte(got.String()), 0o644))
				return
			}
			for _, text := range got.Files {
				require.Equal(t, golden.Get(text.Name), text.Text, "%s: %s", text.Name, renew)
			}
			require.Equal(t, golden.String(), got.String(), renew)
		})
	}
}

// kindLog returns the lines of two events of a kind, the second in a run of its own.
func kindLog(t *testing.T, filled, minimal agentevents.Event) string {
	minimal.RunID = "run-2"
	switch p := minimal.Payload.(type) { // the schemas of OpenWOP allow no other words
	case *agentevents.CapBreached:
		p.Cap = "loop-iterations"
	case *agentevents.OrchestratorDecided:
		p.Decision = `{"kind":"ask-user","prompt":"?"}`
	}
	return nativeLines(t, []agentevents.Event{filled, minimal})
}

// converted returns an archive with the comment and the first text of another, and the conversions
// of this text to every format.
func converted(t *testing.T, from txtar.Archive) txtar.Archive {
	log := from.Files[0]
	to := txtar.Archive{Comment: from.Comment, Files: []txtar.File{log}}
	native := log.Text
	for _, f := range formats() {
		if f.name == log.Name {
			native = nativeLines(t, readLog(t, log.Text, f.suite.Decoder()))
			to.Add("native", native)
		}
	}
	for _, f := range formats() {
		enc := f.suite.Encoder()
		var out []byte
		var losses, errs strings.Builder
		for _, ev := range readLog(t, native, nil) {
			var err error
			out, err = enc.Append(out, ev)
			if err != nil && !errors.Is(err, dialect.ErrNoCounterpart) {
				errs.WriteString(err.Error() + "\n")
			}
		}
		out, err := enc.End(out)
		require.NoError(t, err)
		for _, l := range enc.Losses() {
			losses.WriteString(l.String() + "\n")
		}
		if f.name != log.Name {
			to.Add(f.name, string(out))
		} else if string(out) != log.Text {
			to.Add(f.name+" again", string(out))
		}
		to.Add(f.name+" losses", losses.String())
		to.Add(f.name+" errors", errs.String())
		dec := f.suite.Decoder()
		if back := nativeLines(t, readLog(t, string(out), dec)); back != native {
			to.Add(f.name+" back", back)
		}
		var made strings.Builder
		for _, l := range dec.(dialect.Decoder).Losses() {
			if l.Kind != "" {
				made.WriteString(l.String() + "\n")
			}
		}
		to.Add(f.name+" reading", made.String())
	}
	return to
}

// readLog returns the events of a log without errors.
func readLog(t testing.TB, log string, d agentevents.Decoder) []agentevents.Event {
	t.Helper()
	return eventtest.ReadLog(t, strings.NewReader(log), agentevents.ReaderOptions{Decoder: d}).Events()
}

func nativeLines(t *testing.T, events []agentevents.Event) string {
	t.Helper()
	var log []byte
	for i := range events {
		line, err := events[i].AppendJSON(log)
		require.NoError(t, err)
		log = append(line, '\n')
	}
	return string(log)
}
