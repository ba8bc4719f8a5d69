package querytest_test

import (
	"encoding/json"
	"flag"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/querytest"
)

var update = flag.Bool("update", false, "write the schema; read the diff before you commit it")

type object = map[string]any

// TestSchema makes the schema of the types that are read and written.
func TestSchema(t *testing.T) {
	schema := schemaOf(reflect.TypeFor[querytest.Fixture]())
	schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	schema["title"] = "Fixture of a node: what its agent was asked and has answered"
	text, err := json.MarshalIndent(schema, "", "  ")
	require.NoError(t, err)
	text = append(text, '\n')
	if *update {
		require.NoError(t, os.WriteFile("fixture.schema.json", text, 0o644))
	}
	require.Equal(t, string(text), string(querytest.Schema()), "go test ./querytest -update writes it, and a second run reads it")
}

// members of raw JSON have types that Go does not know.
var raw = map[string]object{
	"prompt":           {"type": []string{"string", "array"}},
	"messages":         {"type": "array"},
	"options":          {"type": "object"},
	"structuredOutput": {},
	"events":           {"type": "object", "required": []string{"type"}, "properties": object{"type": object{"type": "string"}}},
}

func schemaOf(typ reflect.Type) object {
	switch {
	case typ == reflect.TypeFor[querytest.Usage]():
		return usage()
	case typ.Kind() == reflect.Struct && strings.HasPrefix(typ.Name(), "Opt["):
		return schemaOf(typ.Field(0).Type)
	}
	switch typ.Kind() {
	case reflect.Struct:
		properties, required := object{}, []string{}
		for i := range typ.NumField() {
			f := typ.Field(i)
			name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
			properties[name] = memberOf(name, f.Type)
			if options == "" && name != "text" && name != "message" { // Parse reads a call without output, too
				required = append(required, name)
			}
		}
		s := object{"type": "object", "properties": properties}
		if len(required) > 0 {
			s["required"] = required
		}
		return s
	case reflect.Slice:
		return object{"type": "array", "items": schemaOf(typ.Elem())}
	case reflect.Map:
		return object{"type": "object", "additionalProperties": schemaOf(typ.Elem())}
	case reflect.Int:
		return object{"type": "integer", "minimum": 0}
	case reflect.Float64:
		return object{"type": "number", "minimum": 0}
	}
	return object{"type": "string"}
}

func memberOf(name string, typ reflect.Type) object {
	switch {
	case typ == reflect.TypeFor[agentevents.JSON]():
		return raw[name]
	case typ == reflect.TypeFor[[]agentevents.JSON]():
		return object{"type": "array", "items": raw[name]}
	}
	return schemaOf(typ)
}

// usage has the members in both spellings.
func usage() object {
	properties := object{}
	typ := reflect.TypeFor[agentevents.Usage]()
	for i := range typ.NumField() {
		name, _, _ := strings.Cut(typ.Field(i).Tag.Get("json"), ",")
		if name == "" {
			continue
		}
		kind := object{"type": "integer", "minimum": 0}
		if name == "costUsd" {
			kind = object{"type": "number", "minimum": 0}
			properties["costUSD"] = kind
		}
		properties[name] = kind
		properties[snake(name)] = kind
	}
	return object{"type": "object", "properties": properties}
}

func snake(name string) string {
	var b strings.Builder
	for _, r := range name {
		if r >= 'A' && r <= 'Z' {
			b.WriteByte('_')
			r += 'a' - 'A'
		}
		b.WriteRune(r)
	}
	return b.String()
}
