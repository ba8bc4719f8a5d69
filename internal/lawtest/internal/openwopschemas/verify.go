package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect/dialecttest"
	"github.com/agentevents/agentevents/dialect/openwop"
	"github.com/agentevents/agentevents/dialect/openwop/snapshot"
	"github.com/agentevents/agentevents/internal/facts"
	"github.com/agentevents/agentevents/internal/lawtest"
	"github.com/agentevents/agentevents/internal/lawtest/internal/schematable"
)

// draws is how often every line is drawn with changes.
const draws = 400

// verify has the published schemas and the table judge the same values, and counts.
func verify(folder, version, path string) error {
	files, err := load(folder, version)
	if err != nil {
		return err
	}
	if err := upToDate(folder, version, path); err != nil {
		return err
	}
	table, err := read(path)
	if err != nil {
		return err
	}
	published, err := compile(files, version)
	if err != nil {
		return err
	}
	if names := slices.Sorted(maps.Keys(published)); !slices.Equal(names, slices.Sorted(maps.Keys(table))) {
		return fmt.Errorf("the schemas are about %v", names)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	own, err := facts.Parse(string(text))
	if err != nil {
		return err
	}
	values, err := samples(version)
	if err != nil {
		return err
	}
	r := rand.New(rand.NewPCG(1, 2))
	counts := map[string]*[2]int{}
	for i := range draws * len(values) {
		v := values[i%len(values)]
		if i >= len(values) {
			v = v.changed(r, values)
		}
		for name, value := range v.parts() {
			if published[name] == nil {
				continue
			}
			a, b := published[name].Validate(value), table[name].Validate(value)
			raw, err := json.Marshal(value)
			if err != nil {
				return err
			}
			c := own[name].Check(string(raw))
			if (a == nil) != (b == nil) || (a == nil) != (c == nil) && !otherType(name, a) {
				return fmt.Errorf("%s: %s\nthe schemas: %v\nthe table: %v\nthe project: %v", name, raw, a, b, c)
			}
			if counts[name] == nil {
				counts[name] = &[2]int{}
			}
			if counts[name][0]++; a != nil {
				counts[name][1]++
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		fmt.Printf("%s %-40s %7d judged alike, %7d of them refused\n", version, name, counts[name][0], counts[name][1])
	}
	return nil
}

// otherType reports whether a fault is only about the type of a line, whose pattern package facts
// does not judge.
func otherType(name string, fault error) bool {
	var broken *jsonschema.ValidationError
	if name != "envelope" || !errors.As(fault, &broken) {
		return false
	}
	for _, cause := range broken.Causes {
		if !slices.Equal(cause.InstanceLocation, []string{"type"}) {
			return false
		}
	}
	return true
}

func read(path string) (map[string]*jsonschema.Schema, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	table, err := schematable.Parse(string(text))
	if err != nil {
		return nil, err
	}
	names := slices.DeleteFunc(slices.Collect(maps.Keys(table)), func(name string) bool { return !isRoot(name) })
	return table.Compile(names...)
}

func isRoot(name string) bool {
	return name == "envelope" || name == "snapshot" || strings.HasPrefix(name, "payload:")
}

// compile returns the judges of the published files.
func compile(files map[string]*file, version string) (map[string]*jsonschema.Schema, error) {
	c := schematable.NewCompiler()
	for id, f := range files {
		if err := c.AddResource(id, f.doc); err != nil {
			return nil, err
		}
	}
	judges := map[string]*jsonschema.Schema{}
	for name, address := range roots(files, version) {
		s, err := c.Compile(address)
		if err != nil {
			return nil, err
		}
		judges[name] = s
	}
	return judges, nil
}

// A sample is a line of a log, or a snapshot as the payload of a line without a type.
type sample map[string]any

func samples(version string) (list []sample, err error) {
	lines, err := lawtest.OpenWOPLines(filepath.Join("..", "..", "dialect", "openwop", "testdata", "vectors.jsonl"))
	if err != nil {
		return nil, err
	}
	snapshots, err := ofARun(version)
	if err != nil {
		return nil, err
	}
	for _, line := range append(lines, snapshots...) {
		v, err := jsonschema.UnmarshalJSON(strings.NewReader(line))
		if err != nil {
			return nil, err
		}
		list = append(list, v.(object))
	}
	return list, nil
}

// ofARun returns snapshots of a run with all members that the encoder writes.
func ofARun(version string) ([]string, error) {
	f := agentevents.NewFold(agentevents.FoldOptions{})
	for _, ev := range dialecttest.StandardRun("acme/run-000000000001") {
		f.Apply(ev)
	}
	s, err := snapshot.Of(f.Snapshot())
	if err != nil {
		return nil, err
	}
	s.WorkflowID = "wf"
	s.Metrics = `{"openwopCost":{"usd":0.1,"tokens":{"input":1,"output":2},"model":"m","provider":"p","duration_ms":5}}`
	s.More, s.Agent.OK = `{"tags":["a"],"metadata":{},"configurable":{},"extensions":{"acme.my-state":{}}}`, true
	if err := s.Agent.V.UnmarshalJSON([]byte(`{"agentId":"abc","name":"n","version":"1","sourceManifestId":"core.x","modelClass":"chat"}`)); err != nil {
		return nil, err
	}
	p := openwop.SchemaV1
	if version == "v2" {
		p = openwop.SchemaV2
		s.Owner = `{"tenant":"acme","subject":{"issuer":"https://id.example","subjectId":"ann","tenant":"acme","lane":"oidc","kind":"user"}}`
	}
	text, _, err := snapshot.Append(nil, s, p)
	return slices.Repeat([]string{`{"payload":` + string(text) + `}`}, 10), err
}

// parts returns the values to judge, by the names of the judges.
func (s sample) parts() map[string]any {
	typ, isLine := s["type"].(string)
	if !isLine {
		return map[string]any{"snapshot": s["payload"]}
	}
	return map[string]any{"envelope": object(s), "payload:" + typ: s["payload"]}
}

// changed returns the sample as the law of the profiles changes it, or with changes
// anywhere in it.
func (s sample) changed(r *rand.Rand, all []sample) sample {
	text, _ := json.Marshal(s) // never fails
	line := string(text)
	if r.IntN(3) == 0 {
		line = lawtest.Strange(r, line)
	}
	v, _ := jsonschema.UnmarshalJSON(strings.NewReader(line)) // never fails
	if object(v.(object))["payload"] == nil {
		return v.(object)
	}
	for range r.IntN(3) {
		other := all[r.IntN(len(all))]
		switch r.IntN(8) {
		case 0: // changes of the envelope
			v = change(r, v, other)
		default:
			v.(object)["payload"] = change(r, v.(object)["payload"], other["payload"])
		}
	}
	return v.(object)
}

// change changes a value somewhere; other has values to take.
func change(r *rand.Rand, v, other any) any {
	switch v := v.(type) {
	case object:
		names := slices.Sorted(maps.Keys(v))
		if len(names) == 0 || r.IntN(8) == 0 {
			if from, ok := other.(object); ok && len(from) > 0 {
				names := slices.Sorted(maps.Keys(from))
				name := names[r.IntN(len(names))]
				v[name] = from[name]
			}
			return v
		}
		name := names[r.IntN(len(names))]
		if r.IntN(8) == 0 {
			delete(v, name)
		} else {
			v[name] = change(r, v[name], other)
		}
		return v
	case []any:
		if len(v) == 0 || r.IntN(4) == 0 {
			return append(slices.Clone(v), v...)[:r.IntN(2*len(v)+1)]
		}
		i := r.IntN(len(v))
		v[i] = change(r, v[i], other)
		return v
	case string:
		return [...]any{"", v + "x", v[:len(v)/2], v + "\n", " " + v, strings.ToUpper(v),
			strings.ReplaceAll(v, "-", "_"), strings.Repeat(v+"k", 60), strings.Repeat("é", 256), "ab", "abc",
			json.Number("1"), v + "/" + strings.Repeat("a", 16), "x-" + v, "anonymous", "saml", "2026-05-19T24:00:00Z", "2026-02-29T10:00:00+01:00", v + ".b", "shared", nil}[r.IntN(21)]
	case json.Number:
		return [...]any{json.Number("-1"), json.Number("0"), json.Number("1.0"), json.Number("1.5"),
			json.Number("2"), json.Number("0.1"), json.Number("1e2"), json.Number("100000"), "1", true}[r.IntN(10)]
	default:
		return [...]any{nil, true, object{}, []any{}, "x", json.Number("1")}[r.IntN(6)]
	}
}
