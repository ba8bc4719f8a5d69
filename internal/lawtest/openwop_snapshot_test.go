package lawtest

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect/dialecttest"
	"github.com/agentevents/agentevents/dialect/openwop"
	"github.com/agentevents/agentevents/dialect/openwop/snapshot"
)

// The encoder writes a snapshot that keeps the published schema, or returns an error.
func TestOpenWOPSnapshotsKeepThePublishedSchemas(t *testing.T) {
	f := agentevents.NewFold(agentevents.FoldOptions{})
	for _, ev := range dialecttest.StandardRun("acme/run-000000000001") {
		f.Apply(ev)
	}
	base, err := snapshot.Of(f.Snapshot())
	require.NoError(t, err)
	base.WorkflowID = "wf"
	ref := func(text string) func(*snapshot.Snapshot) {
		return func(s *snapshot.Snapshot) {
			s.Agent.OK = true
			require.NoError(t, s.Agent.V.UnmarshalJSON([]byte(text)))
		}
	}
	more := func(text agentevents.JSON) func(*snapshot.Snapshot) {
		return func(s *snapshot.Snapshot) { s.More = text }
	}
	metrics := func(text agentevents.JSON) func(*snapshot.Snapshot) {
		return func(s *snapshot.Snapshot) { s.Metrics = text }
	}
	long := strings.Repeat("x", 300)
	changes := map[string]func(*snapshot.Snapshot){
		"none": func(*snapshot.Snapshot) {},
		"error": func(s *snapshot.Snapshot) {
			s.Error, s.ErrorMore = agentevents.Some(agentevents.ErrorInfo{Details: `[1]`, Retryable: agentevents.Some(true)}), `{"x":1}`
		},
		"times":            func(s *snapshot.Snapshot) { s.StartedAt, s.CompletedAt = time.Unix(1e9, 5), time.Unix(2e9, 0) },
		"late":             func(s *snapshot.Snapshot) { s.StartedAt = time.Date(12000, 1, 1, 0, 0, 0, 0, time.UTC) },
		"node":             func(s *snapshot.Snapshot) { s.CurrentNodeID = "n 1" },
		"status":           func(s *snapshot.Snapshot) { s.Status = "napping" },
		"states":           func(s *snapshot.Snapshot) { s.NodeStates = `[]` },
		"sharing":          ref(`{"agentId":"abc","agentSharing":"shared","modelClass":"coding","memoryRef":"m"}`),
		"writing":          ref(`{"agentId":"abc","modelClass":"writing"}`),
		"short agent":      ref(`{"agentId":"a"}`),
		"no agent":         ref(`{}`),
		"long memory":      ref(`{"agentId":"abc","memoryRef":"` + long + `"}`),
		"long name":        ref(`{"agentId":"abc","name":"` + long + `"}`),
		"number for name":  ref(`{"agentId":"abc","name":5}`),
		"all of an agent":  ref(`{"agentId":"abc","name":"n","version":"1","sourceManifestId":"core.x","modelClass":"chat"}`),
		"version, channel": ref(`{"agentId":"abc","version":"1","channel":"c"}`),
		"costs":            metrics(`{"openwopCost":{"usd":0.1,"tokens":{"input":1,"output":2},"model":"m","provider":"p","duration_ms":5}}`),
		"text for costs":   metrics(`{"openwopCost":{"usd":"x"}}`),
		"negative costs":   metrics(`{"openwopCost":{"usd":-1}}`),
		"half a token":     metrics(`{"openwopCost":{"tokens":{"input":0.5}}}`),
		"other tokens":     metrics(`{"openwopCost":{"tokens":{"total":1}}}`),
		"other costs":      metrics(`{"openwopCost":{"eur":1}}`),
		"other metrics":    metrics(`{"other":1}`),
		"tags":             more(`{"tags":["a"],"metadata":{},"configurable":{}}`),
		"long tag":         more(`{"tags":["` + agentevents.JSON(long) + `"]}`),
		"many tags":        more(`{"tags":[` + agentevents.JSON(strings.Repeat(`"a",`, 100)) + `"a"]}`),
		"extension":        more(`{"extensions":{"acme.my-state":{}}}`),
		"bad extension":    more(`{"extensions":{"bad":{}}}`),
		"flat extension":   more(`{"extensions":{"acme.x":1}}`),
		"other":            more(`{"other":1}`),
		"again":            more(`{"status":"paused"}`),
		"log version":      more(`{"eventLogSchemaVersion":1}`),
		"engine":           more(`{"engineVersion":"1"}`),
		"engine number":    more(`{"engineVersion":1}`),
	}
	for version, want := range map[string]struct {
		profile openwop.Profile
		written []string // besides those that both profiles write
	}{
		"v1": {openwop.SchemaV1, []string{"node", "other metrics", "other", "log version", "engine", "bad extension", "flat extension"}},
		"v2": {openwop.SchemaV2, []string{"engine number", "short agent"}},
	} {
		t.Run(version, func(t *testing.T) {
			schema := loadPublished(t, version)["snapshot"]
			var written []string
			for name, change := range changes {
				s := base
				if want.profile == openwop.SchemaV2 {
					s.Owner = `{"tenant":"acme","subject":{"issuer":"https://id.example","subjectId":"ann","tenant":"acme","lane":"oidc","kind":"user"}}`
				}
				change(&s)
				out, _, err := snapshot.Append(nil, s, want.profile)
				if err != nil {
					continue
				}
				written = append(written, name)
				doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(out))
				require.NoError(t, err, "%s: %s", name, out)
				require.NoError(t, schema.Validate(doc), "%s: %s", name, out)
			}
			require.ElementsMatch(t, append(want.written, "none", "error", "times", "sharing", "writing", "all of an agent", "costs", "tags", "extension", "again"), written)
		})
	}
}
