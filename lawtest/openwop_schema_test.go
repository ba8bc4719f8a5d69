package lawtest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/dlclark/regexp2"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect"
	"github.com/agentevents/agentevents/dialect/dialecttest"
	"github.com/agentevents/agentevents/dialect/openwop"
)

// schemas are the published schemas, which are not part of the project.
var schemas = filepath.Join("..", "..", "shared", "openwop-schemas")

// lookingAhead is a pattern of regexp2: the schemas look ahead, which package regexp
// cannot.
type lookingAhead struct{ *regexp2.Regexp }

func (re lookingAhead) MatchString(s string) bool {
	ok, err := re.Regexp.MatchString(s)
	return err == nil && ok
}

func compileRegexp(s string) (jsonschema.Regexp, error) {
	re, err := regexp2.Compile(s, regexp2.ECMAScript)
	return lookingAhead{re}, err
}

// A published is one version of the published schemas.
type published struct {
	envelope *jsonschema.Schema
	payloads map[string]*jsonschema.Schema // by type
}

func loadPublished(t *testing.T, version string) *published {
	t.Helper()
	dir := filepath.Join(schemas, version)
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	require.NoError(t, err)
	if len(files) == 0 {
		t.Skip("the published schemas are not here; they are not part of the project")
	}
	c := jsonschema.NewCompiler()
	c.UseRegexpEngine(compileRegexp)
	c.AssertFormat()
	c.UseLoader(nothingElse{})
	ids := map[string]string{}
	var index map[string]struct {
		Ref string `json:"$ref"`
	}
	for _, path := range files {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
		require.NoError(t, err, path)
		var head struct {
			ID        string `json:"$id"`
			TypeIndex struct {
				Properties json.RawMessage
			} `json:"_typeIndex"`
			Defs map[string]json.RawMessage `json:"$defs"`
		}
		require.NoError(t, json.Unmarshal(text, &head), path)
		name := filepath.Base(path)
		if version == "v2" && name == "orchestrator-decision.schema.json" {
			// This schema forbids additional members of the object that contains its
			// alternatives, so it refuses every decision.
			delete(doc.(map[string]any), "additionalProperties")
		}
		require.NoError(t, c.AddResource(head.ID, doc), path)
		ids[name] = head.ID
		if strings.HasPrefix(name, "run-event-payloads") {
			raw := head.TypeIndex.Properties
			if raw == nil { // version 1 has it among the definitions
				var def struct{ Properties json.RawMessage }
				require.NoError(t, json.Unmarshal(head.Defs["_typeIndex"], &def))
				raw = def.Properties
			}
			require.NoError(t, json.Unmarshal(raw, &index))
			ids["payloads"] = head.ID
		}
	}
	p := &published{payloads: map[string]*jsonschema.Schema{}}
	p.envelope, err = c.Compile(ids["run-event.schema.json"])
	require.NoError(t, err)
	for typ, ref := range index {
		s, err := c.Compile(ids["payloads"] + ref.Ref)
		if err != nil {
			continue // it refers to a schema that is not in the folder
		}
		p.payloads[typ] = s
	}
	require.Greater(t, len(p.payloads), 20)
	if version == "v2" {
		// The folder lacks the schemas of interrupts. Version 1 requires the same of
		// approvals and clarifications.
		p.payloads["interrupt.requested"] = loadPublished(t, "v1").payloads["interrupt.requested"]
	}
	return p
}

// nothingElse refuses to load a schema: their names are addresses, and the tests fetch
// nothing.
type nothingElse struct{}

func (nothingElse) Load(url string) (any, error) { return nil, fmt.Errorf("%s is not here", url) }

// check validates a line, and reports whether there is a schema for its payload.
func (p *published) check(line string) (typ string, checked bool, err error) {
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(line))
	if err != nil {
		return "", false, err
	}
	object, _ := doc.(map[string]any)
	typ, _ = object["type"].(string)
	if err := p.envelope.Validate(doc); err != nil {
		return typ, false, fmt.Errorf("envelope: %w", err)
	}
	s := p.payloads[typ]
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

// The lines of the schema profiles keep the published schemas: those of every kind, with
// few and with all members, and those of a whole run.
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
					require.True(t, ok, "there is no schema for %s", typ)
					checked[typ] = true
				}
			}
			require.ElementsMatch(t, strings.Fields(schemaTypes[version]), slices.Collect(maps.Keys(checked)))
		})
	}
}
