package agui_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect/agui"
	"github.com/agentevents/agentevents/dialect/dialecttest"
)

// published is the environment variable that names a folder where npm has installed
// @ag-ui/core, and perhaps @ag-ui/client.
const published = "AGENTEVENTS_AGUI"

// What the encoder writes keeps the schemas of the protocol, and its order.
func TestPublishedSchemas(t *testing.T) {
	folder := os.Getenv(published)
	if folder == "" {
		t.Skip(published + " does not name a folder with @ag-ui/core")
	}
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("node is not installed")
	}
	var logs strings.Builder
	add := func(events ...agentevents.Event) {
		enc := agui.NewEncoder(agui.EncoderOptions{})
		var out []byte
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
	for _, events := range hard {
		add(events...)
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
