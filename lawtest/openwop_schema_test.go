package lawtest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
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

// schemas lies beside the project, not in it.
var schemas = filepath.Join("..", "..", "shared", "openwop-schemas")

// The patterns of the schemas look ahead, which Go's regexp cannot.
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
			// It closes the object that its forms are written in, and so
			// refuses every decision.
			delete(doc.(map[string]any), "additionalProperties")
		}
		require.NoError(t, c.AddResource(head.ID, doc), path)
		ids[name] = head.ID
		if strings.HasPrefix(name, "run-event-payloads") {
			raw := head.TypeIndex.Properties
			if raw == nil { // version 1 keeps it among the definitions
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
			continue // it refers to a schema that was not saved
		}
		p.payloads[typ] = s
	}
	require.Greater(t, len(p.payloads), 20)
	return p
}

// nothingElse loads nothing: the schemas' names are addresses, and nothing is
// fetched.
type nothingElse struct{}

func (nothingElse) Load(url string) (any, error) { return nil, fmt.Errorf("%s is not here", url) }

func (p *published) check(t *testing.T, line string) (typ string, checked bool) {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(line))
	require.NoError(t, err)
	object := doc.(map[string]any)
	typ = object["type"].(string)
	if err := p.envelope.Validate(doc); err != nil {
		t.Errorf("%s\nenvelope: %v", line, err)
	}
	s := p.payloads[typ]
	if s == nil {
		return typ, false
	}
	if err := s.Validate(object["payload"]); err != nil {
		t.Errorf("%s\npayload: %v", line, err)
	}
	return typ, true
}

// What the schema profiles write is what the published schemas describe: every
// kind, with few and with all members, and a whole run.
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
			checked, unchecked := map[string]bool{}, map[string]bool{}
			for _, ev := range events {
				switch p := ev.Payload.(type) { // closed lists of the schemas
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
					typ, ok := p.check(t, strings.TrimSuffix(line, "\n"))
					if ok {
						checked[typ] = true
					} else {
						unchecked[typ] = true
					}
				}
			}
			t.Logf("%d types checked, payloads of %d not: %v", len(checked), len(unchecked), unchecked)
			require.Greater(t, len(checked), 12)
		})
	}
}
