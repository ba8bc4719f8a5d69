package agui_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect/agui"
	"github.com/agentevents/agentevents/dialect/dialecttest"
	"github.com/agentevents/agentevents/internal/jsonwire"
)

// published is the environment variable that names a folder where npm has installed
// @ag-ui/core and @ag-ui/client.
const published = "AGENTEVENTS_AGUI"

// programs returns the path of node and the folder with the packages of AG-UI, or skips the
// test.
func programs(t *testing.T) (node, folder string) {
	t.Helper()
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("needs node: install Node.js")
	}
	if folder = os.Getenv(published); folder == "" {
		t.Skip("needs @ag-ui/core: run 'npm ci' in a copy of dialect/agui/testdata/client, and set " + published + " to its path")
	}
	return node, folder
}

// The encoder's lines keep the schemas of the protocol, and its order.
func TestPublishedSchemas(t *testing.T) {
	node, folder := programs(t)
	var logs strings.Builder
	add := func(events ...agentevents.Event) {
		enc := agui.NewEncoder(agui.EncoderOptions{})
		var (
			out []byte
			err error
		)
		for _, ev := range events {
			out, err = enc.Append(out, ev)
			require.NoError(t, err)
		}
		out, err = enc.End(out)
		require.NoError(t, err)
		logs.Write(append(out, '\n'))
	}
	for info := range agentevents.Kinds() {
		add(dialecttest.Filled(info.Kind), dialecttest.Minimal(info.Kind))
	}
	add(dialecttest.StandardRun("run-1")...)
	add(together(dialecttest.StandardRun("run-1"), dialecttest.StandardRun("run-2"))...)
	for name, events := range hard {
		if !strings.HasPrefix(name, "lenient: ") { // these have lines that the protocol does not have
			add(events...)
		}
	}
	script, err := os.ReadFile(filepath.Join("testdata", "validate.js"))
	require.NoError(t, err)
	cmd := exec.Command(node, "-e", string(script))
	cmd.Dir, cmd.Stdin = folder, strings.NewReader(logs.String())
	refused, err := cmd.CombinedOutput()
	require.NoError(t, err, string(refused))
	require.Empty(t, string(refused), logs.String())
}

func together(a, b []agentevents.Event) (both []agentevents.Event) {
	for i := range a {
		both = append(both, a[i], b[i])
	}
	return both
}

// A strict decoder refuses the lines that the schemas refuse, and no others.
func TestStrictLikeTheSchemas(t *testing.T) {
	node, folder := programs(t)
	var lines []string
	refused := map[string]bool{}
	for _, g := range golden {
		for line := range strings.SplitSeq(g.Lines, "\n") {
			for _, other := range broken(line) {
				err := strictly(other)
				var rule *agentevents.RuleError
				lines = append(lines, other)
				refused[other] = err != nil && (!errors.As(err, &rule) || rule.Rule != agui.RuleOrder)
			}
		}
	}
	script := `const { EventSchemas } = require("@ag-ui/core/schemas");
		for (const line of require("fs").readFileSync(0, "utf8").split("\n")) console.log(EventSchemas.safeParse(JSON.parse(line)).success);`
	cmd := exec.Command(node, "-e", script)
	cmd.Dir, cmd.Stdin = folder, strings.NewReader(strings.Join(lines, "\n"))
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
	for i, valid := range strings.Fields(string(out)) {
		if refused[lines[i]] != (valid == "false") {
			t.Errorf("the schemas accept: %s, a strict decoder: %v: %s: %v", valid, !refused[lines[i]], lines[i], strictly(lines[i]))
		}
	}
}

// strictly returns the error of a line of a run.
func strictly(line string) error {
	d := agui.NewDecoder(agui.Options{Strict: true})
	if !strings.Contains(line, `"RUN_STARTED"`) {
		_, _ = d.Decode(nil, []byte(strings.TrimSuffix(head, "\n")))
	}
	_, err := d.Decode(nil, []byte(line))
	return err
}

// broken returns the line without each of its members, and with other values for it.
func broken(line string) (list []string) {
	for name := range jsonwire.Members(line) {
		for _, value := range []string{"", "null", "3", "1.5", `""`, `"x"`, "[]", "{}", "true"} {
			other := ""
			for n, raw := range jsonwire.Members(line) {
				switch {
				case n != name:
					other += "," + jsonwire.Quote(n) + ":" + raw
				case value != "":
					other += "," + jsonwire.Quote(n) + ":" + value
				}
			}
			list = append(list, "{"+strings.TrimPrefix(other, ",")+"}")
		}
	}
	return list
}
