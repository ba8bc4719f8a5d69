package view_test

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/view"
)

const secret = "sk-ant-api03-abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGH"

func events() iter.Seq2[agentevents.Event, error] {
	at := time.Date(2026, 5, 2, 6, 0, 0, 0, time.UTC)
	return func(yield func(agentevents.Event, error) bool) {
		for n, p := range []agentevents.Payload{
			&agentevents.RunStarted{Name: "bake"}, &agentevents.AgentStarted{Task: "bread"},
			&agentevents.ToolCalled{CallID: "c", ToolID: "oven", Arguments: agentevents.JSON(`{"api_key":"` + secret + `"}`)},
			&agentevents.ToolReturned{CallID: "c", ToolID: "oven", Status: agentevents.ToolStatusOK},
		} {
			ev := agentevents.Event{ID: string(rune('a' + n)), RunID: "r", Sequence: uint64(n), Time: at.Add(time.Duration(n) * time.Second), AgentID: "baker", SchemaVersion: agentevents.SchemaVersion, Payload: p}
			if !yield(ev, nil) {
				return
			}
		}
		yield(agentevents.Event{}, errors.New("a line that cannot be read"))
	}
}

// content returns the document of a page, and the data in it.
func content(t *testing.T, o view.Options) (shell, data string) {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, view.Write(&b, o, view.Log{Name: "log", Events: events()}))
	m := regexp.MustCompile(`(?s)^(.*id="data">)([^<]*)(</script>.*)$`).FindStringSubmatch(b.String())
	require.NotNil(t, m)
	packed, err := base64.StdEncoding.DecodeString(m[2])
	require.NoError(t, err)
	z, err := gzip.NewReader(bytes.NewReader(packed))
	require.NoError(t, err)
	text, err := io.ReadAll(z)
	require.NoError(t, err)
	return m[1] + m[3], string(text)
}

func TestPageIsRedactedUnlessToldOtherwise(t *testing.T) {
	_, data := content(t, view.Options{})
	require.NotContains(t, data, secret)
	require.Contains(t, data, `"redacted":true,"masked":1,"logs":[{"name":"log","unread":1}]`)
	_, data = content(t, view.Options{Unredacted: true})
	require.Contains(t, data, secret)
	require.Contains(t, data, `"redacted":false`)
}

// The shell is small, and its policy names the only script and style that it has.
func TestShell(t *testing.T) {
	shell, data := content(t, view.Options{Title: `<b>"title"`})
	require.Less(t, len(shell), 80<<10)
	require.Contains(t, shell, "<title>&lt;b&gt;&#34;title&#34;</title>")
	for _, tag := range []string{"script", "style"} {
		m := regexp.MustCompile(`(?s)<` + tag + `>(.*?)</` + tag + `>`).FindStringSubmatch(shell)
		require.NotNil(t, m, tag)
		sum := sha256.Sum256([]byte(m[1]))
		require.Contains(t, shell, tag+"-src 'sha256-"+base64.StdEncoding.EncodeToString(sum[:])+"'")
	}
	require.Equal(t, 1+2*4, strings.Count(data, "\n"), "a head, and a row and a line for each event")
}

// The page has a class and a sign for each mark of package report, in their order.
func TestMarksOfThePage(t *testing.T) {
	script, err := os.ReadFile("assets/base.js")
	require.NoError(t, err)
	list := regexp.MustCompile(`(?m)^const marks = (.*);$`).FindSubmatch(script)
	require.NotNil(t, list)
	var marks [][2]string
	require.NoError(t, json.Unmarshal(list[1], &marks))
	source, err := os.ReadFile("../internal/view/view.go")
	require.NoError(t, err)
	block := regexp.MustCompile(`(?s)\tNone Mark = iota\n(.*?)\n\)`).FindSubmatch(source)
	require.NotNil(t, block)
	want := []string{""}
	for line := range strings.Lines(string(block[1])) {
		want = append(want, strings.ToLower(strings.Fields(line)[0]))
	}
	got := make([]string, len(marks))
	for i, m := range marks {
		got[i] = m[0]
		require.Equal(t, m[0] == "", m[1] == "", "a class has a sign")
	}
	require.Equal(t, want, got)
}

// The kinds that the scripts name are kinds of events.
func TestKindsOfThePage(t *testing.T) {
	names, err := filepath.Glob("assets/*.js")
	require.NoError(t, err)
	found := 0
	for _, name := range names {
		script, err := os.ReadFile(name)
		require.NoError(t, err)
		for _, m := range regexp.MustCompile(`"([a-z]+(?:\.[a-zA-Z]+)+)"`).FindAllSubmatch(script, -1) {
			_, known := agentevents.Kind(m[1]).Info()
			require.True(t, known, "%s: %s", name, m[1])
			found++
		}
	}
	require.Positive(t, found)
}

func TestWriteRefuses(t *testing.T) {
	require.ErrorIs(t, view.Write(io.Discard, view.Options{Run: "other"}, view.Log{Events: events()}), view.ErrNoRun)
	require.Error(t, view.Write(io.Discard, view.Options{}))
	require.Error(t, view.Write(io.Discard, view.Options{}, make([]view.Log, 3)...))
}

func ExampleWrite() {
	file, err := os.CreateTemp("", "*.html")
	if err != nil {
		panic(err)
	}
	defer os.Remove(file.Name())
	defer file.Close()
	if err := view.Write(file, view.Options{Title: "nightly run"}, view.Log{Name: "run.jsonl", Events: events()}); err != nil {
		panic(err)
	}
	// Output:
}
