package capture

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents"
)

// tables returns the rows of a document of opencode, in an object with a list for each table.
func tables(t *testing.T, name string) (out map[string][]map[string]any) {
	text, err := os.ReadFile(name)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &out))
	return out
}

// rowsAs writes rows in each form that they are exported in.
func rowsAs(t *testing.T, all map[string][]map[string]any, only ...string) map[string]string {
	var list []map[string]any
	chosen := map[string]any{}
	for _, table := range only {
		chosen[table] = all[table]
		list = append(list, all[table]...)
	}
	encode := func(v any) string {
		text, err := json.Marshal(v)
		require.NoError(t, err)
		return string(text)
	}
	out := map[string]string{"an object": encode(chosen), "a list": encode(list)}
	indented, err := json.MarshalIndent(chosen, "", "  ")
	require.NoError(t, err)
	out["an object over several lines"] = string(indented)
	for _, row := range list {
		out["lines"] += encode(row) + "\n"
	}
	for _, row := range list {
		for column, value := range row {
			if _, nested := value.(map[string]any); nested {
				row[column] = encode(value) // as a database has it
			}
		}
		out["lines with texts"] += encode(row) + "\n"
	}
	return out
}

// The rows of opencode's database give the same counts in any form, and the journal the same as the
// other tables, whatever the file's name.
func TestRowsInAnyForm(t *testing.T) {
	for _, name := range []string{"reverted", "run-sigint", "subagent"} {
		file := filepath.Join("testdata/opencode", name, "rows.json")
		want, _ := count(t, file)
		for _, chosen := range [][]string{{"event"}, {"session", "message", "part"}, {"part", "message", "session"}, {"session", "message", "part", "event"}} {
			for form, text := range rowsAs(t, tables(t, file), chosen...) {
				path := filepath.Join(t.TempDir(), "renamed")
				require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
				got, sessions := count(t, path)
				require.Equal(t, want, got, "%s: %s of %v", name, form, chosen)
				for _, s := range sessions {
					require.Empty(t, s.Unread(), "%s: %s of %v", name, form, chosen)
				}
			}
		}
	}
}

// A document that is cut is a fault, not an empty session: alone, and in a folder.
func TestCutDocuments(t *testing.T) {
	for _, name := range []string{"opencode/subagent/rows.json", "opencode/tools/events.json", "opencode/text/export.json"} {
		text, err := os.ReadFile(filepath.Join("testdata", name))
		require.NoError(t, err)
		dir := t.TempDir()
		path := filepath.Join(dir, "cut.json")
		require.NoError(t, os.WriteFile(path, text[:len(text)/2], 0o600))
		_, err = Open(path, Options{})
		require.ErrorContains(t, err, "the document is cut", name)
		sessions, err := Open(dir, Options{})
		require.NoError(t, err)
		require.Len(t, sessions, 1)
		var faults []error
		for _, err := range sessions[0].Lines() {
			faults = append(faults, err)
		}
		require.Len(t, faults, 1)
		require.ErrorContains(t, faults[0], "the document is cut", name)
	}
}

// A line of rows that cannot be read is told, and the others count.
func TestBrokenRow(t *testing.T) {
	text, err := os.ReadFile("testdata/opencode/retry-cut/events.jsonl")
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "cut.jsonl")
	require.NoError(t, os.WriteFile(path, text[:len(text)-20], 0o600))
	sessions, err := Open(path, Options{})
	require.NoError(t, err)
	require.Len(t, sessions, 2)
	faults := 0
	for _, s := range sessions {
		fold := agentevents.NewFold(agentevents.FoldOptions{})
		for line, err := range s.Lines() {
			if err != nil {
				require.ErrorContains(t, err, "opencode: ")
				faults++
				continue
			}
			fold.Apply(*line.Event)
		}
		require.Empty(t, fold.Snapshot().Violations)
		require.Equal(t, agentevents.RunStatusCompleted, fold.Snapshot().Status)
	}
	require.Equal(t, 1, faults)
}

// What a stream of rows cannot have is told: another session, and rows that are no events.
func TestStreamOfRows(t *testing.T) {
	text, err := os.ReadFile("testdata/opencode/retry-cut/events.jsonl")
	require.NoError(t, err)
	read := func(text string) (faults []string) {
		d, ok := NewDecoder([]string{text}, Options{})
		require.True(t, ok)
		for line := range strings.Lines(text) {
			if _, err := d.Decode(nil, []byte(strings.TrimSpace(line))); err != nil {
				faults = append(faults, err.Error())
			}
		}
		_, err := d.End(nil)
		require.NoError(t, err)
		return faults
	}
	faults := read(string(text))
	require.Len(t, faults, 1)
	require.Contains(t, faults[0], "a stream is one session")
	rows := tables(t, "testdata/opencode/run-sigint/rows.json")
	faults = read(rowsAs(t, rows, "session", "message")["lines"])
	require.Len(t, faults, len(rows["message"]))
	require.Contains(t, faults[0], "read from files alone")
}

// A session that a command prints row by row, with its journal, is read as a stream, too. The rows of
// sub-agents come after those of their session.
func TestStreamOfASession(t *testing.T) {
	for _, name := range []string{"subagent", "run-sigint"} {
		all := tables(t, filepath.Join("testdata/opencode", name, "rows.json"))
		text := rowsAs(t, all, "session", "event")["lines with texts"]
		d, ok := NewDecoder([]string{text[:strings.IndexByte(text, '\n')]}, Options{})
		require.True(t, ok)
		var events []agentevents.Event
		for line := range strings.Lines(text) {
			var err error
			events, err = d.Decode(events, []byte(strings.TrimSpace(line)))
			require.NoError(t, err)
		}
		events, err := d.End(events)
		require.NoError(t, err)
		fold := agentevents.NewFold(agentevents.FoldOptions{})
		for i := range events {
			fold.Apply(events[i])
		}
		got := fold.Snapshot()
		require.Empty(t, got.Violations)
		require.True(t, events[0].Time.AddDate(0, 0, 1).After(events[len(events)-1].Time), "the session row has a time of its own")
		require.Len(t, got.Agents, len(all["session"]))
	}
}

// What a process printed of a session that is in the folder, too, does not count again.
func TestPrintedBesideRows(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, "testdata/opencode/run-sigint/rows.json", "testdata/opencode-run/sigint/stdout.jsonl")
	c, sessions := count(t, dir)
	require.Equal(t, 1, c.runs)
	require.Len(t, sessions[0].Notes(), 1)
	require.Contains(t, sessions[0].Notes()[0], "stdout.jsonl was printed of this session and is left out")

	dir = t.TempDir()
	require.NoError(t, os.CopyFS(dir, os.DirFS("testdata/copilot/resume")))
	put(t, dir, "testdata/copilot-json/resume/stdout-1.jsonl", "testdata/copilot-json/resume/stdout-2.jsonl")
	c, sessions = count(t, dir)
	require.Equal(t, 1, c.runs)
	require.Len(t, sessions[0].Notes(), 2)
}

// However a document is damaged, what is read of it keeps the rules, and the run has an end. Each
// element of each list is left out, doubled, and moved after the next.
func TestDamagedDocuments(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"opencode/run-sigint/rows.json", "cline/tools/1795865561604_k7m3q/1795865561604_k7m3q.messages.json"} {
		text, err := os.ReadFile(filepath.Join("testdata", name))
		require.NoError(t, err)
		var whole map[string]any
		require.NoError(t, json.Unmarshal(text, &whole))
		for member, value := range whole {
			list, _ := value.([]any)
			for i := range list {
				moved := slices.Clone(list)
				if i+1 < len(moved) {
					moved[i], moved[i+1] = moved[i+1], moved[i]
				}
				for what, damaged := range map[string][]any{
					"left out": slices.Delete(slices.Clone(list), i, i+1),
					"doubled":  slices.Insert(slices.Clone(list), i, list[i]),
					"moved":    moved,
				} {
					whole[member] = damaged
					text, err := json.Marshal(whole)
					require.NoError(t, err)
					path := filepath.Join(dir, "damaged.json")
					require.NoError(t, os.WriteFile(path, text, 0o600))
					sessions, err := Open(path, Options{})
					require.NoError(t, err)
					for _, s := range sessions {
						fold := agentevents.NewFold(agentevents.FoldOptions{})
						for line, err := range s.Lines() {
							require.NoError(t, err, "%s: %s %d %s", name, member, i, what)
							fold.Apply(*line.Event)
						}
						snapshot := fold.Snapshot()
						require.Empty(t, snapshot.Violations, "%s: %s %d %s", name, member, i, what)
						require.True(t, snapshot.Status.Terminal() || snapshot.RunID == "", "%s: %s %d %s", name, member, i, what)
						require.Empty(t, snapshot.OpenCalls)
					}
				}
			}
			whole[member] = value
		}
	}
}

// A version that is newer than the newest one that was tested is told once.
func TestNewerVersions(t *testing.T) {
	for name, tested := range map[string]string{
		"copilot/resume": "1.0.102", "opencode/tools": "1.18.33", "opencode/text": "1.18.33", "cline/tools": "3.0.65",
	} {
		dir := t.TempDir()
		require.NoError(t, os.CopyFS(dir, os.DirFS(filepath.Join("testdata", name))))
		require.NoError(t, filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			text, err := os.ReadFile(path)
			require.NoError(t, err)
			return os.WriteFile(path, []byte(strings.ReplaceAll(string(text), tested, "99.0.0")), 0o600)
		}))
		_, sessions := count(t, dir)
		require.Len(t, sessions, 1)
		require.Len(t, sessions[0].Notes(), 1, name)
		require.Contains(t, sessions[0].Notes()[0], "version 99.0.0 is newer than "+tested)
	}
}

// A text that began before a call introduces it, also if it is complete when the tool runs.
func TestTextsBeforeTheirCalls(t *testing.T) {
	for folder, texts := range map[string][]string{
		"subagent": {"I hand this to a sub-agent.", "Sub-agent reads."},
		"reverted": {"I remember 7."},
	} {
		sessions, err := Open("testdata/opencode/"+folder, Options{})
		require.NoError(t, err)
		for _, s := range sessions {
			calls := map[string]int{}
			for line, err := range s.Lines() {
				require.NoError(t, err)
				switch p := line.Event.Payload.(type) {
				case *agentevents.ToolCalled:
					calls[line.Event.AgentID]++
				case *agentevents.TextCompleted:
					if i := slices.Index(texts, p.Text); i >= 0 {
						require.Zero(t, calls[line.Event.AgentID], p.Text)
						texts = slices.Delete(texts, i, i+1)
					}
				case *agentevents.AgentStarted:
					require.Equal(t, line.Event.ParentAgentID != "", line.Event.ParentCallID != "")
				}
			}
		}
		require.Empty(t, texts, folder)
	}
}

// A call has the times that its part states, also where nothing else tells its beginning.
func TestTimesOfCallsOfOpencode(t *testing.T) {
	for name, want := range map[string][]string{
		"opencode-run/tools":     {"15.772", "read 16.790 5.55s", "bash 16.420 6.729s"},
		"opencode-run/sigint":    {"37.283", "read 37.801 1.991s"},
		"opencode/badargs-dupid": {"43.775", "bash 53.252 40ms"},
	} {
		all, _ := snapshots(t, "testdata/"+name)
		got := []string{all[0].StartedAt.Format("05.000")}
		for _, call := range all[0].ClosedCalls {
			got = append(got, call.ToolID+" "+call.StartedAt.Format("05.000")+" "+call.Duration.V.String())
		}
		require.Equal(t, want, got, name)
	}
}

// A session of an older Gemini CLI is one document, which has the counts of the journal with its messages.
func TestDocumentsOfGemini(t *testing.T) {
	for _, name := range []string{"text", "tools", "fail"} {
		file := chatFile(t, "gemini/"+name)
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		var document map[string]any
		var messages []map[string]any
		for line := range strings.Lines(string(text)) {
			var o map[string]any
			require.NoError(t, json.Unmarshal([]byte(line), &o))
			at := slices.IndexFunc(messages, func(m map[string]any) bool { return m["id"] == o["id"] })
			switch {
			case document == nil:
				document = o
			case at >= 0:
				messages[at] = o
			case o["id"] != nil:
				messages = append(messages, o)
			}
		}
		document["messages"] = messages
		want, _ := count(t, file)
		compact, err := json.Marshal(document)
		require.NoError(t, err)
		indented, err := json.MarshalIndent(document, "", "  ")
		require.NoError(t, err)
		path := filepath.Join(t.TempDir(), "session.json")
		for _, form := range [][]byte{compact, indented} {
			require.NoError(t, os.WriteFile(path, form, 0o600))
			got, sessions := count(t, path)
			require.Equal(t, want, got, name)
			require.Empty(t, sessions[0].Unread(), name)
			below, _ := count(t, filepath.Dir(path))
			require.Equal(t, want, below, name)
			require.NoError(t, os.WriteFile(path, form[:len(form)-9], 0o600))
			_, err = Open(path, Options{})
			require.ErrorContains(t, err, "the document is cut", name)
		}
		s, ok := Stream("stdin", []string{string(compact)}, strings.NewReader(string(compact)), Options{})
		require.True(t, ok)
		_, faults := linesOf(t, s)
		require.Len(t, faults, 1)
		require.Contains(t, faults[0], "is read from a file alone", name)
	}
}
