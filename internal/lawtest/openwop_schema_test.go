package lawtest

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect"
	"github.com/agentevents/agentevents/dialect/dialecttest"
	"github.com/agentevents/agentevents/dialect/openwop"
	"github.com/agentevents/agentevents/internal/facts"
	"github.com/agentevents/agentevents/internal/jsonwire"
	"github.com/agentevents/agentevents/internal/lawtest/internal/schematable"
)

// published are the schemas of a version of OpenWOP, by name: the envelope, the snapshot and
// the payload of each type. The published files are outside the project; demands has their
// facts.
type published map[string]*jsonschema.Schema

// demands is the folder of the facts of the schemas.
const demands = "../../dialect/openwop/internal/schemas"

func loadPublished(t *testing.T, version string) published {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(demands, version+".txt"))
	require.NoError(t, err)
	table, err := schematable.Parse(string(text))
	require.NoError(t, err)
	schemas, err := table.Compile(slices.Collect(maps.Keys(table))...)
	require.NoError(t, err)
	return schemas
}

// check validates a line, and reports whether there is a schema for its payload.
func (p published) check(line string) (typ string, checked bool, err error) {
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(line))
	if err != nil {
		return "", false, err
	}
	object, _ := doc.(map[string]any)
	typ, _ = object["type"].(string)
	if err := p["envelope"].Validate(doc); err != nil {
		return typ, false, fmt.Errorf("envelope: %w", err)
	}
	s := p["payload:"+typ]
	if s == nil {
		return typ, false, nil
	}
	if err := s.Validate(object["payload"]); err != nil {
		return typ, true, fmt.Errorf("payload: %w", err)
	}
	return typ, true, nil
}

// schemaTypes are the types as which the vocabulary's kinds are written, by version.
var schemaTypes = map[string]string{
	"v1": `agent.decided agent.handoff agent.reasoned agent.reasoning.delta agent.toolCalled agent.toolReturned approval.granted approval.rejected
		approval.requested cap.breached channel.written clarification.requested clarification.resolved node.completed node.failed node.skipped
		node.started node.suspended run.cancelled run.completed run.failed run.paused run.resumed run.started runOrchestrator.decided`,
	"v2": `agent.decided agent.handoff agent.reasoned agent.reasoning-delta agent.tool-called agent.tool-returned cap.breached channel.written
		interrupt.requested interrupt.resolved node.completed node.failed node.skipped node.started node.suspended orchestrator.decided
		run.cancelled run.completed run.failed run.paused run.resumed run.started`,
}

// The lines of the schema profiles keep the published schemas: the lines of every kind, with few
// and with all members, and the lines of a whole run.
func TestOpenWOPProfilesKeepThePublishedSchemas(t *testing.T) {
	for version, profile := range map[string]openwop.Profile{"v1": openwop.SchemaV1, "v2": openwop.SchemaV2} {
		t.Run(version, func(t *testing.T) {
			p := loadPublished(t, version)
			var events []agentevents.Event
			for info := range agentevents.Kinds() {
				events = append(events, dialecttest.Minimal(info.Kind), dialecttest.Filled(info.Kind))
			}
			events = append(events, dialecttest.StandardRun("run-1")...)
			enc := openwop.NewEncoder(openwop.EncoderOptions{Profile: profile})
			checked := map[string]bool{}
			for _, ev := range events {
				switch p := ev.Payload.(type) { // the schemas have closed lists for these
				case *agentevents.OrchestratorDecided:
					p.Decision = `{"kind":"ask-user","prompt":"Go on?"}`
				case *agentevents.CapBreached:
					p.Cap = "loop-iterations"
				}
				text, err := enc.Append(nil, ev)
				if errors.Is(err, dialect.ErrNoCounterpart) {
					continue
				}
				require.NoError(t, err, "%s", ev.Kind())
				for line := range strings.Lines(string(text)) {
					typ, ok, err := p.check(strings.TrimSuffix(line, "\n"))
					require.NoError(t, err, line)
					require.True(t, ok, "%s has no schema", typ)
					checked[typ] = true
				}
			}
			require.ElementsMatch(t, strings.Fields(schemaTypes[version]), slices.Collect(maps.Keys(checked)))
		})
	}
}

// vectors are lines of OpenWOP with the verdict of its documents and of its schemas.
const vectors = "../../dialect/openwop/testdata/vectors.jsonl"

// The schemas judge the test vectors as the published ones do, and package facts as they do.
func TestOpenWOPVectorsAndSchemas(t *testing.T) {
	text, err := os.ReadFile(vectors)
	require.NoError(t, err)
	schemas, own := map[string]published{}, map[string]facts.Table{}
	for _, version := range []string{"v1", "v2"} {
		text, err := os.ReadFile(filepath.Join(demands, version+".txt"))
		require.NoError(t, err)
		own[version], err = facts.Parse(string(text))
		require.NoError(t, err)
		schemas[version] = loadPublished(t, version)
	}
	seen := map[string]int{}
	for vector := range strings.Lines(string(text)) {
		var v struct {
			About   string
			Line    json.RawMessage
			Schemas map[string][2]string // the verdicts on the envelope and on the payload
		}
		require.NoError(t, json.Unmarshal([]byte(vector), &v))
		line, err := jsonschema.UnmarshalJSON(strings.NewReader(string(v.Line)))
		require.NoError(t, err, v.About)
		object := line.(map[string]any)
		payload := jsonwire.Member(string(v.Line), "payload")
		for version, want := range v.Schemas {
			for i, part := range []struct {
				schema *jsonschema.Schema
				value  any
			}{{schemas[version]["envelope"], line}, {schemas[version]["payload:"+object["type"].(string)], object["payload"]}} {
				got := "none"
				if part.schema != nil {
					got = map[bool]string{true: "pass", false: "fail"}[part.schema.Validate(part.value) == nil]
				}
				require.Equal(t, want[i], got, "%s, %s: %d", v.About, version, i)
				if raw := []string{string(v.Line), payload}[i]; got != "none" {
					fault := own[version][[]string{"envelope", "payload:" + object["type"].(string)}[i]].Check(raw)
					types, _, _ := own[version]["envelope"].Member("type")
					unjudged := i == 0 && !slices.Contains(types.Vocabulary(), object["type"].(string)) // its pattern looks ahead
					require.True(t, (got == "pass") == (fault == nil) || unjudged && fault == nil, "%s, %s: %+v", v.About, version, fault)
				}
				seen[got]++
			}
		}
	}
	require.Len(t, seen, 3)
}
