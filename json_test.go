package agentevents

import (
	"bytes"
	"encoding/json"
	"go/ast"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// taggedStructs returns the exported structs with a json or wire tag, as the
// source declares them.
func taggedStructs(t *testing.T) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	for _, file := range packageSource(t) {
		ast.Inspect(file, func(n ast.Node) bool {
			spec, ok := n.(*ast.TypeSpec)
			if !ok || !spec.Name.IsExported() {
				return true
			}
			if st, ok := spec.Type.(*ast.StructType); ok {
				for _, f := range st.Fields.List {
					if f.Tag != nil && (strings.Contains(f.Tag.Value, "json:") || strings.Contains(f.Tag.Value, "wire:")) {
						names[spec.Name.Name] = true
					}
				}
			}
			return true
		})
	}
	return names
}

// jsonRoots are the structs that hold all others.
func jsonRoots() []reflect.Type {
	roots := []reflect.Type{reflect.TypeFor[RunSnapshot]()}
	for info := range Kinds() {
		roots = append(roots, reflect.TypeOf(NewPayload(info.Kind)).Elem())
	}
	return roots
}

// reachable adds the exported structs of this package in typ to all, by name.
func reachable(typ reflect.Type, all map[string]reflect.Type) {
	switch typ.Kind() {
	case reflect.Slice, reflect.Map, reflect.Pointer:
		reachable(typ.Elem(), all)
	case reflect.Struct:
		if all[typ.Name()] == nil && typ.PkgPath() == reflect.TypeFor[Event]().PkgPath() {
			all[typ.Name()] = typ
			for i := range typ.NumField() {
				reachable(typ.Field(i).Type, all)
			}
		}
	}
}

// asValue reads text as encoding/json does, with numbers as they are spelled.
func asValue(t *testing.T, text []byte) any {
	t.Helper()
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	var v any
	require.NoError(t, dec.Decode(&v), string(text))
	return v
}

// unescapedJSON is json.Marshal without the escapes for HTML.
func unescapedJSON(t *testing.T, v any) string {
	t.Helper()
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	require.NoError(t, enc.Encode(v))
	return strings.TrimSuffix(b.String(), "\n")
}

// encoding/json writes and reads every struct as this package does.
func TestEncodingJSONOfEveryStruct(t *testing.T) {
	types := map[string]reflect.Type{}
	for _, root := range jsonRoots() {
		reachable(root, types)
	}
	for name := range taggedStructs(t) {
		t.Run(name, func(t *testing.T) {
			typ := types[name]
			require.NotNil(t, typ, "no root in jsonRoots holds it; add it there")
			v := reflect.New(typ)
			fillValue(v.Elem(), rand.New(rand.NewPCG(2, uint64(len(name)))), true)
			own := string(v.Interface().(interface{ appendJSON([]byte) []byte }).appendJSON(nil))

			text, err := json.Marshal(v.Elem().Interface())
			require.NoError(t, err)
			back := reflect.New(typ)
			require.NoError(t, json.Unmarshal(text, back.Interface()))
			again, err := json.Marshal(back.Interface())
			require.NoError(t, err)
			require.Equal(t, asValue(t, text), asValue(t, again))
			require.Equal(t, asValue(t, []byte(own)), asValue(t, text))
			if p, ok := v.Interface().(Payload); ok {
				line, err := (&Event{Payload: p}).AppendJSON(nil)
				require.NoError(t, err)
				require.Equal(t, asValue(t, line).(map[string]any)["payload"], asValue(t, text))
			}

			// Without the escapes for HTML not a byte differs.
			require.Equal(t, own, unescapedJSON(t, v.Elem().Interface()))
			exact := reflect.New(typ)
			require.NoError(t, json.Unmarshal([]byte(own), exact.Interface()))
			require.Equal(t, v.Interface(), exact.Interface())

			// What cannot be read changes nothing.
			for _, bad := range []string{`[]`, own + " 1", own[:len(own)-1], strings.Replace(own, ":", ":[[", 1)} {
				var le *LineError
				require.ErrorAs(t, exact.Interface().(json.Unmarshaler).UnmarshalJSON([]byte(bad)), &le, bad)
				require.Equal(t, v.Interface(), exact.Interface())
			}
			require.NoError(t, json.Unmarshal([]byte("null"), exact.Interface()))
			require.Equal(t, v.Interface(), exact.Interface())
		})
	}
}

func TestEncodingJSONOfAPayload(t *testing.T) {
	text, err := json.Marshal(&ToolReturned{CallID: "c", ToolID: "t", Status: ToolStatusOK, Duration: Some(1500 * time.Millisecond)})
	require.NoError(t, err)
	require.Equal(t, `{"callId":"c","toolId":"t","status":"ok","durationMs":1500}`, string(text))

	// Extra members stay where they were.
	const spelled = `{"x":{"b":1.0},"callId":"c","toolId":"t","y":null,"status":"ok"}`
	var p ToolReturned
	require.NoError(t, json.Unmarshal([]byte(spelled), &p))
	text, err = json.Marshal(p)
	require.NoError(t, err)
	require.Equal(t, spelled, string(text))

	// A payload that no line can carry is refused, as Event.AppendJSON does.
	for pointer, broken := range map[string]json.Marshaler{
		"/result":                ToolReturned{CallID: "c", ToolID: "t", Status: ToolStatusOK, Result: `{"a":`},
		"/callId":                ToolReturned{CallID: "c\xff", ToolID: "t", Status: ToolStatusOK},
		"/limit":                 BudgetExceeded{Budget: "cost", Limit: math.NaN()},
		"/approvedAt":            WorkflowApproved{ApprovedBy: "a", ApprovedAt: time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)},
		"/message/agent/agentId": MessageCreated{Message: ConversationMessage{MessageID: "m", From: "a", Content: "1", Agent: Some(AgentRef{AgentID: "\xff"})}},
	} {
		_, err := broken.MarshalJSON()
		var rule *RuleError
		require.ErrorAs(t, err, &rule)
		require.Equal(t, pointer, rule.Pointer)
		require.NotEmpty(t, rule.Kind)
		_, err = json.Marshal(broken)
		require.ErrorAs(t, err, &rule)
	}
	_, err = ErrorInfo{Message: "m", Details: "{"}.MarshalJSON()
	require.EqualError(t, err, `agentevents: /details: found end of text, expected a member name or '}' at byte 1 (rule field-json, sequence 0)`)

	// A payload of an unknown kind is its text.
	text, err = json.Marshal(Unknown{Type: "vendor.pinged", Raw: ` {"a": 1.0}`})
	require.NoError(t, err)
	require.Equal(t, `{"a":1.0}`, string(text))
	text, err = json.Marshal(&Unknown{Type: "vendor.pinged"})
	require.NoError(t, err)
	require.Equal(t, `null`, string(text))
	u := Unknown{Type: "vendor.pinged"}
	require.NoError(t, json.Unmarshal([]byte(`[1, 2]`), &u))
	require.Equal(t, Unknown{Type: "vendor.pinged", Raw: `[1,2]`}, u)
	require.Error(t, u.UnmarshalJSON([]byte(`[`)))
	require.Equal(t, Unknown{Type: "vendor.pinged", Raw: `[1,2]`}, u)
}

// Opt works in structs of the user's own.
func TestEncodingJSONOfOpt(t *testing.T) {
	type own struct {
		Score Opt[float64]   `json:"score,omitzero"`
		Names Opt[[]string]  `json:"names"`
		Usage Opt[Usage]     `json:"usage,omitzero"`
		Ref   *Opt[AgentRef] `json:"ref,omitempty"`
	}
	for _, test := range []struct {
		value own
		text  string
	}{
		{own{}, `{"names":null}`},
		{own{Score: Some(0.0), Names: Some([]string{"a"}), Usage: Some(Usage{InputTokens: 1, CostUSD: Some(0.5)})},
			`{"score":0,"names":["a"],"usage":{"inputTokens":1,"outputTokens":0,"costUsd":0.5}}`},
		{own{Ref: &Opt[AgentRef]{V: AgentRef{AgentID: "a"}, OK: true}}, `{"names":null,"ref":{"agentId":"a"}}`},
	} {
		text, err := json.Marshal(test.value)
		require.NoError(t, err)
		require.Equal(t, test.text, string(text))
		back := own{Names: Some([]string{"old"})}
		require.NoError(t, json.Unmarshal(text, &back))
		require.Equal(t, test.value, back)
	}
	was := Some(AgentRef{AgentID: "a"})
	require.Error(t, json.Unmarshal([]byte(`{"agentId":1}`), &was))
	require.Equal(t, Some(AgentRef{AgentID: "a"}), was)
	_, err := json.Marshal(Some(math.NaN()))
	require.Error(t, err)
}
