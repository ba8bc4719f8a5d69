package agentevents

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/ast"
	"math"
	"math/rand/v2"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/agentevents/agentevents/internal/jsonwire"
	"github.com/stretchr/testify/require"
)

// These tests range over the catalog and fill payloads by reflection, so that
// a new kind is tested without a line here.

// eachKind runs test for every kind, with a payload all of whose fields are
// set.
func eachKind(t *testing.T, test func(t *testing.T, k Kind, p payloadOps)) {
	t.Helper()
	for info := range Kinds() {
		t.Run(string(info.Kind), func(t *testing.T) { test(t, info.Kind, filledPayload(t, info.Kind)) })
	}
}

// filledPayload returns a payload that passes its checks and has no zero field.
func filledPayload(t testing.TB, k Kind) payloadOps {
	t.Helper()
	p := ops(NewPayload(k))
	require.NotNil(t, p)
	fillValue(reflect.ValueOf(p).Elem(), rand.New(rand.NewPCG(1, uint64(kindIndex(k)))), false)
	if ended, ok := p.(*AgentEnded); ok {
		ended.Totals.V.AuditCheckpoints = 99 // at least the two others together
	}
	return p
}

// closedWords has a value of every closed list.
var closedWords = []string{
	"isolated", "reasoning", "summary", "ok", "warning", "mcp", "merge", "reply", "evicted",
	"thinking", "converged", "pass", "derived",
}

// fillValue sets v to a value without zero fields; with wire also the unexported fields of
// records that are on the wire.
func fillValue(v reflect.Value, r *rand.Rand, wire bool) {
	switch v.Interface().(type) {
	case JSON:
		v.SetString(`{"big":9007199254740993,"a":["<",1.0,null],"r":` + fmt.Sprint(r.IntN(100)) + `}`)
		return
	case time.Time:
		v.Set(reflect.ValueOf(time.UnixMilli(1_700_000_000_000 + r.Int64N(1e12)).UTC()))
		return
	case time.Duration:
		v.SetInt(1 + r.Int64N(int64(time.Hour)))
		return
	case []byte:
		v.SetBytes([]byte("text \"\\<\x01 é"))
		return
	case interface{ known() bool }:
		for _, word := range closedWords {
			v.SetString(word)
			if v.Interface().(interface{ known() bool }).known() {
				return
			}
		}
		panic(fmt.Sprintf("closedWords has no value of %s", v.Type()))
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(fmt.Sprintf("t%d \"\\\n\u2028é<\x01 %s", r.IntN(1000), strings.Repeat("x", r.IntN(40))))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(1 + r.Int64N(9))
	case reflect.Uint64:
		v.SetUint(1<<63 + r.Uint64N(9))
	case reflect.Float64:
		v.SetFloat(1 - r.Float64()) // (0, 1]
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fillValue(v.Elem(), r, wire)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		for i := range v.Len() {
			fillValue(v.Index(i), r, wire)
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		for _, key := range []string{"b/2", "a~1", "c"} {
			elem := reflect.New(v.Type().Elem()).Elem()
			fillValue(elem, r, wire)
			v.SetMapIndex(reflect.ValueOf(key), elem)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			f, field := v.Type().Field(i), v.Field(i)
			if !f.IsExported() {
				if !wire || !f.Anonymous && f.Tag.Get("wire") == "" {
					continue
				}
				field = reflect.NewAt(f.Type, field.Addr().UnsafePointer()).Elem()
			}
			fillValue(field, r, wire)
		}
	default:
		panic("no filler for " + v.Type().String())
	}
}

func payloadText(p payloadOps) string { return string(p.appendJSON(nil)) }

// parsedPayload reads text as a payload of kind k.
func parsedPayload(t testing.TB, k Kind, text string) payloadOps {
	t.Helper()
	p, err := parsePayloadText(k, text)
	require.NoError(t, err, text)
	return p
}

func parsePayloadText(k Kind, text string) (payloadOps, error) {
	p := ops(NewPayload(k))
	var s jsonwire.Scanner
	s.Reset(text)
	if err := p.parseJSON(&s); err != nil {
		return nil, err
	}
	return p, s.End()
}

// A jsonMember is one member of an object, as text.
type jsonMember struct{ name, raw string }

// membersOf takes an object apart.
func membersOf(t testing.TB, object string) []jsonMember {
	t.Helper()
	var s jsonwire.Scanner
	s.Reset(object)
	require.NoError(t, s.Object())
	var out []jsonMember
	for {
		name, ok, err := s.Member()
		require.NoError(t, err)
		if !ok {
			return out
		}
		raw, err := s.Raw()
		require.NoError(t, err)
		out = append(out, jsonMember{name, raw})
	}
}

// objectOf puts members together.
func objectOf(members ...jsonMember) string {
	var parts []string
	for _, m := range members {
		parts = append(parts, jsonwire.Quote(m.name)+":"+m.raw)
	}
	return "{" + strings.Join(parts, ",") + "}"
}

// withoutMember returns members without the one called name.
func withoutMember(members []jsonMember, name string) []jsonMember {
	var out []jsonMember
	for _, m := range members {
		if m.name != name {
			out = append(out, m)
		}
	}
	return out
}

// withMember returns members with another value for name.
func withMember(members []jsonMember, name, raw string) []jsonMember {
	out := append([]jsonMember(nil), members...)
	for i := range out {
		if out[i].name == name {
			out[i].raw = raw
		}
	}
	return out
}

// wireField is a field on the wire, by its struct tag.
type wireField struct {
	name     string
	optional bool
	index    int
	typ      reflect.Type
}

func wireFields(p any) []wireField {
	typ := reflect.TypeOf(p).Elem()
	var out []wireField
	for i := range typ.NumField() {
		tag, ok := typ.Field(i).Tag.Lookup("json")
		if !ok || tag == "-" {
			continue
		}
		name, option, _ := strings.Cut(tag, ",")
		out = append(out, wireField{name, option == "omitzero" || typ.Field(i).Type == jsonType, i, typ.Field(i).Type})
	}
	return out
}

var jsonType = reflect.TypeFor[JSON]()

func TestPayloadRoundTrip(t *testing.T) {
	eachKind(t, func(t *testing.T, k Kind, p payloadOps) {
		text := payloadText(p)
		require.NoError(t, jsonwire.Valid(text), text)
		q := parsedPayload(t, k, text)
		require.Equal(t, p, q)
		require.Equal(t, text, payloadText(q))
		require.Nil(t, p.check())

		// Members stand in the order of the fields.
		var names, want []string
		for _, m := range membersOf(t, text) {
			names = append(names, m.name)
		}
		for _, f := range wireFields(p) {
			want = append(want, f.name)
		}
		require.Equal(t, want, names)
	})
}

func TestPayloadAppendsAfterText(t *testing.T) {
	eachKind(t, func(t *testing.T, k Kind, p payloadOps) {
		require.Equal(t, "x"+payloadText(p), string(p.appendJSON([]byte("x"))))
		zero := ops(NewPayload(k))
		require.Equal(t, "x"+payloadText(zero), string(zero.appendJSON([]byte("x"))))
		strange := parsedPayload(t, k, `{"strange":1}`)
		require.Equal(t, `x{"strange":1}`, string(strange.appendJSON([]byte("x"))))
	})
}

func TestPayloadZero(t *testing.T) {
	eachKind(t, func(t *testing.T, k Kind, p payloadOps) {
		text := payloadText(ops(NewPayload(k)))
		members := membersOf(t, text)
		for _, f := range wireFields(p) {
			require.Equal(t, !f.optional, len(withoutMember(members, f.name)) < len(members), "%s in %s", f.name, text)
		}
		q := parsedPayload(t, k, text)
		require.Equal(t, text, payloadText(q))
		require.Empty(t, reflect.ValueOf(q).Elem().FieldByName("extra").String())

		// With nothing at all, nothing is added.
		require.Equal(t, `{}`, payloadText(parsedPayload(t, k, `{}`)))
	})
}

func TestPayloadOptionalLeftOut(t *testing.T) {
	eachKind(t, func(t *testing.T, k Kind, p payloadOps) {
		members := membersOf(t, payloadText(p))
		for _, f := range wireFields(p) {
			if !f.optional {
				continue
			}
			q := filledPayload(t, k)
			reflect.ValueOf(q).Elem().Field(f.index).SetZero()
			text := payloadText(q)
			require.Equal(t, objectOf(withoutMember(members, f.name)...), text)
			require.Equal(t, q, parsedPayload(t, k, text))
		}
	})
}

func TestPayloadSpelledOut(t *testing.T) {
	eachKind(t, func(t *testing.T, k Kind, p payloadOps) {
		members := membersOf(t, payloadText(p))
		for _, f := range wireFields(p) {
			if !f.optional {
				continue
			}
			spellings := []string{"null"}
			switch f.typ.Kind() {
			case reflect.String:
				if f.typ != jsonType {
					spellings = append(spellings, `""`)
				}
			case reflect.Bool:
				spellings = append(spellings, "false")
			case reflect.Slice:
				spellings = append(spellings, "[]")
			case reflect.Map:
				spellings = append(spellings, "{}")
			}
			for _, spelling := range spellings {
				text := objectOf(withMember(members, f.name, spelling)...)
				q := parsedPayload(t, k, text)
				require.Equal(t, text, payloadText(q))
				v := reflect.ValueOf(q).Elem().Field(f.index)
				if f.typ == jsonType {
					require.Equal(t, "null", v.String())
				} else if spelling != "[]" && spelling != "{}" {
					require.True(t, v.IsZero(), f.name)
				}
				// Once it is set, the spelling is forgotten.
				v.Set(reflect.ValueOf(p).Elem().Field(f.index))
				require.Equal(t, objectOf(members...), payloadText(q))

				// By itself, too.
				text = objectOf(jsonMember{f.name, spelling})
				require.Equal(t, text, payloadText(parsedPayload(t, k, text)))
			}
		}
	})
}

// withStrangers returns object with another member: first, in the middle and
// last, here and in every object inside but the ones that are maps.
func withStrangers(t *testing.T, text string, maps map[string]bool) []string {
	t.Helper()
	strange := jsonMember{"x-é\"", `{"n":9007199254740993.0,"list":[null,{}]}`}
	var out []string
	members := membersOf(t, text)
	for _, at := range []int{0, len(members) / 2, len(members)} {
		with := append([]jsonMember(nil), members[:at]...)
		with = append(append(with, strange), members[at:]...)
		out = append(out, objectOf(with...))
	}
	for _, m := range members {
		if maps[m.name] {
			for _, elem := range membersOf(t, m.raw) {
				for _, inner := range withStrangers(t, elem.raw, maps) {
					out = append(out, objectOf(withMember(members, m.name, objectOf(withMember(membersOf(t, m.raw), elem.name, inner)...))...))
				}
			}
			continue
		}
		switch m.raw[0] {
		case '{':
			for _, inner := range withStrangers(t, m.raw, maps) {
				out = append(out, objectOf(withMember(members, m.name, inner)...))
			}
		case '[':
			if strings.HasPrefix(m.raw, "[{") {
				var s jsonwire.Scanner
				s.Reset(m.raw)
				require.NoError(t, s.Array())
				_, err := s.Elem()
				require.NoError(t, err)
				first, err := s.Raw()
				require.NoError(t, err)
				rest := m.raw[s.Offset():]
				for _, inner := range withStrangers(t, first, maps) {
					out = append(out, objectOf(withMember(members, m.name, "["+inner+rest)...))
				}
			}
		}
	}
	return out
}

func TestPayloadUnknownMembers(t *testing.T) {
	eachKind(t, func(t *testing.T, k Kind, p payloadOps) {
		maps := map[string]bool{}
		for _, f := range wireFields(p) {
			maps[f.name] = f.typ.Kind() == reflect.Map
		}
		texts := withStrangers(t, payloadText(p), maps)
		texts = append(texts, withStrangers(t, payloadText(ops(NewPayload(k))), maps)...)
		for _, text := range texts {
			q := parsedPayload(t, k, text)
			require.Equal(t, text, payloadText(q))
			require.Equal(t, q, parsedPayload(t, k, payloadText(q)))
		}

		// Blanks go, and only they do.
		spaced := strings.NewReplacer(`{"`, `{ "`, `":`, "\" : ").Replace(`{"strange":{"a":[1,2]}}`)
		require.Equal(t, `{"strange":{"a":[1,2]}}`, payloadText(parsedPayload(t, k, spaced)))
	})
}

func TestPayloadMissingMembers(t *testing.T) {
	eachKind(t, func(t *testing.T, k Kind, p payloadOps) {
		members := membersOf(t, payloadText(p))
		for _, f := range wireFields(p) {
			text := objectOf(withoutMember(members, f.name)...)
			q := parsedPayload(t, k, text)
			require.Equal(t, text, payloadText(q))
			err := q.check()
			if f.optional && (f.typ != jsonType || err == nil) {
				require.Nil(t, err)
				continue
			}
			require.NotNil(t, err, f.name)
			require.Equal(t, RuleFieldRequired, err.rule)
			require.Equal(t, "/"+f.name, err.pointer)

			// Once it is set, it is written.
			reflect.ValueOf(q).Elem().Field(f.index).Set(reflect.ValueOf(p).Elem().Field(f.index))
			require.Equal(t, objectOf(members...), payloadText(q))
		}
	})
}

func TestPayloadMissingInside(t *testing.T) {
	for _, test := range []struct {
		kind    Kind
		text    string
		pointer string
	}{
		{KindAgentEnded, `{"usage":{"inputTokens":1}}`, "/usage/outputTokens"},
		{KindAgentEnded, `{"modelUsage":{"c":{"inputTokens":1},"a/b~":{"outputTokens":1}}}`, "/modelUsage/a~1b~0/inputTokens"},
		{KindPlanProposed, `{"steps":[{"stepId":"1","description":""},{"description":""}]}`, "/steps/1/stepId"},
		{KindMessageCreated, `{"message":{"messageId":"m","from":"a","content":1,"ts":1,"agent":{}}}`, "/message/agent/agentId"},
		{KindAgentStarted, `{"agent":{"extra":1}}`, "/agent/agentId"},
	} {
		p := parsedPayload(t, test.kind, test.text)
		err := p.check()
		require.NotNil(t, err, test.text)
		require.Equal(t, RuleFieldRequired, err.rule)
		require.Equal(t, test.pointer, err.pointer)
	}
}

func TestPayloadDuplicates(t *testing.T) {
	eachKind(t, func(t *testing.T, k Kind, p payloadOps) {
		members := append(membersOf(t, payloadText(p)), jsonMember{"strange", "1"})
		for _, m := range members {
			_, err := parsePayloadText(k, objectOf(append(members, m)...))
			require.ErrorContains(t, err, "duplicate", m.name)
		}
	})
}

func TestPayloadWrongTypes(t *testing.T) {
	eachKind(t, func(t *testing.T, k Kind, p payloadOps) {
		members := membersOf(t, payloadText(p))
		for _, f := range wireFields(p) {
			if f.typ == jsonType {
				continue
			}
			own := withoutMember(members, f.name)
			var m jsonMember
			for _, m = range members {
				if m.name == f.name {
					break
				}
			}
			for _, wrong := range []string{`"x"`, "1", "true", "[]", "{}", "null"} {
				if wrong[0] == m.raw[0] || wrong == "1" && m.raw[0] >= '0' && m.raw[0] <= '9' || wrong == "null" && f.optional {
					continue
				}
				_, err := parsePayloadText(k, objectOf(append(own, jsonMember{f.name, wrong})...))
				var syntax *jsonwire.SyntaxError
				require.ErrorAs(t, err, &syntax, "%s: %s", f.name, wrong)
			}
		}
		for _, text := range []string{"", "null", "[]", "1", `"x"`, "{", `{"a"}`, `{"a":1,}`} {
			_, err := parsePayloadText(k, text)
			require.Error(t, err, text)
		}
	})
}

func TestPayloadChecks(t *testing.T) {
	some := Some[int]
	for _, test := range []struct {
		payload payloadOps
		rule    Rule
		pointer string
		detail  string
	}{
		{&ToolCalled{ToolID: "t"}, RuleFieldRequired, "/callId", "is required"},
		{&ToolCalled{CallID: "c\xff", ToolID: "t"}, RuleFieldUTF8, "/callId", "is not valid UTF-8"},
		{&ToolCalled{CallID: "c", ToolID: "t", Attempt: some(0)}, RuleFieldRange, "/attempt", "0 is below 1"},
		{&ToolCalled{CallID: "c", ToolID: "t", Transport: "pigeon"}, RuleFieldEnum, "/transport", `"pigeon" is not one of: mcp, http, native`},
		{&ToolReturned{CallID: "c", ToolID: "t"}, RuleFieldRequired, "/status", "is required"},
		{&AuditChecked{CheckpointID: "c", Result: "pass", Duration: -1500 * time.Microsecond}, RuleFieldRange, "/durationMs", "-1.5 is below 0"},
		{&EventRetracted{}, RuleFieldRequired, "/eventIds", "is required"},
		{&EventRetracted{EventIDs: []string{"a", "\xff"}}, RuleFieldUTF8, "/eventIds/1", "is not valid UTF-8"},
		{&AgentDecided{}, RuleFieldRequired, "/decision", "is required"},
		{&AgentDecided{Decision: "1", Confidence: Some(1.5)}, RuleFieldRange, "/confidence", "1.5 is not in [0, 1]"},
		{&WorkflowApproved{ApprovedBy: "a"}, RuleFieldRequired, "/approvedAt", "is required"},
		{&WorkflowApproved{ApprovedBy: "a", ApprovedAt: time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)}, RuleFieldRange, "/approvedAt", "year 10000 is not in [0, 9999]"},
		{&AgentEnded{ModelUsage: map[string]Usage{"b": {InputTokens: -1}, "a": {OutputTokens: -2}}}, RuleFieldRange, "/modelUsage/a/outputTokens", "-2 is below 0"},
		{&AgentEnded{ModelUsage: map[string]Usage{"\xff": {}}}, RuleFieldUTF8, "/modelUsage", "has a key that is not valid UTF-8"},
		{&PlanProposed{Steps: []PlanStep{{StepID: "1"}, {}}}, RuleFieldRequired, "/steps/1/stepId", "is required"},
		{&AgentHandoff{From: AgentRef{AgentID: "a"}}, RuleFieldRequired, "/to/agentId", "is required"},
	} {
		require.Equal(t, &fieldError{test.rule, test.pointer, test.detail}, test.payload.check())
	}

	// Content is not checked; it is repaired.
	require.Nil(t, (&TextCompleted{Text: "\xff"}).check())
}

type foreignPayload struct{ *ToolCalled }

func TestPayloadSealed(t *testing.T) {
	i := 0
	for info := range Kinds() {
		p := NewPayload(info.Kind)
		require.Equal(t, i, kindIndex(info.Kind))
		require.Equal(t, i, ops(p).index())
		require.Equal(t, info.Kind, p.kind())
		k, ok := kindOf(p)
		require.True(t, ok)
		require.Equal(t, info.Kind, k)
		require.Equal(t, p, ops(p))
		null := reflect.Zero(reflect.TypeOf(p)).Interface().(Payload)
		requireNoPayload(t, null)
		i++
	}
	require.Equal(t, len(catalog), i)
	require.Equal(t, -1, kindIndex("no.such"))
	require.Nil(t, emptyPayload("no.such"))

	unknown := &Unknown{Type: "no.such"}
	require.Equal(t, -1, ops(unknown).index())
	k, ok := kindOf(unknown)
	require.True(t, ok)
	require.Equal(t, Kind("no.such"), k)
	require.Equal(t, payloadOps(unknown), ops(unknown))

	requireNoPayload(t, nil)
	requireNoPayload(t, (*Unknown)(nil))
	requireNoPayload(t, foreignPayload{})
	requireNoPayload(t, foreignPayload{&ToolCalled{}})
	requireNoPayload(t, (*foreignPayload)(nil))
}

func requireNoPayload(t *testing.T, p Payload) {
	t.Helper()
	_, ok := kindOf(p)
	require.False(t, ok)
	require.Nil(t, ops(p))
}

func TestPayloadFieldTables(t *testing.T) {
	eachKind(t, func(t *testing.T, k Kind, p payloadOps) {
		// The zero text in the tables is the text of a zero payload: a member noted as missing is
		// left out only then.
		zero := membersOf(t, payloadText(ops(NewPayload(k))))
		for _, f := range zero {
			q := parsedPayload(t, k, objectOf(withoutMember(zero, f.name)...))
			require.Equal(t, objectOf(withoutMember(zero, f.name)...), payloadText(q))
		}
	})
}

// leastAllocs is testing.AllocsPerRun, the least of five: that also counts the allocations of other
// goroutines, such as those that earlier tests have left to end.
func leastAllocs(runs int, f func()) float64 {
	least := testing.AllocsPerRun(runs, f)
	for range 4 {
		if least == 0 {
			break
		}
		least = min(least, testing.AllocsPerRun(runs, f))
	}
	return least
}

func TestPayloadAppendAllocs(t *testing.T) {
	buf := make([]byte, 0, 64<<10)
	eachKind(t, func(t *testing.T, _ Kind, p payloadOps) {
		require.Zero(t, leastAllocs(20, func() { buf = p.appendJSON(buf[:0]) }))
	})
}

func TestPayloadCheckAllocs(t *testing.T) {
	eachKind(t, func(t *testing.T, _ Kind, p payloadOps) {
		require.Zero(t, leastAllocs(20, func() {
			if p.check() != nil {
				panic("broken rule")
			}
		}))
	})
}

// fieldDocs returns the comments of the fields of all structs, by "Struct.Field".
func fieldDocs(t *testing.T) map[string]string {
	docs := map[string]string{}
	for _, file := range packageSource(t) {
		ast.Inspect(file, func(n ast.Node) bool {
			ts, ok := n.(*ast.TypeSpec)
			if !ok {
				return true
			}
			st, ok := ts.Type.(*ast.StructType)
			if !ok {
				return false
			}
			for _, f := range st.Fields.List {
				for _, name := range f.Names {
					docs[ts.Name.Name+"."+name.Name] = f.Doc.Text() + f.Comment.Text()
				}
			}
			return false
		})
	}
	return docs
}

// eachField calls f for every exported field in v, with its struct. Of a list it takes
// the first element.
func eachField(v reflect.Value, f func(owner reflect.Type, field reflect.StructField, value reflect.Value)) {
	switch v.Kind() {
	case reflect.Pointer:
		eachField(v.Elem(), f)
	case reflect.Slice:
		if v.Len() > 0 {
			eachField(v.Index(0), f)
		}
	case reflect.Struct:
		if v.Type().PkgPath() != reflect.TypeFor[Event]().PkgPath() {
			return
		}
		for i := range v.NumField() {
			field := v.Type().Field(i)
			switch {
			case !field.IsExported():
				continue
			case strings.HasPrefix(v.Type().Name(), "Opt["):
				if field.Name == "V" && v.Field(1).Bool() {
					eachField(v.Field(i), f)
				}
				continue
			}
			f(v.Type(), field, v.Field(i))
			eachField(v.Field(i), f)
		}
	}
}

// The comment of Payload explains which fields must be set.
func TestRequiredFieldsAreDocumented(t *testing.T) {
	docs := fieldDocs(t)
	found := 0
	for _, sample := range sampleEvents() {
		eachField(reflect.ValueOf(sample.Payload), func(owner reflect.Type, field reflect.StructField, value reflect.Value) {
			name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			kept := reflect.ValueOf(value.Interface())
			value.SetZero()
			err := sample.check(ops(sample.Payload), false)
			value.Set(kept)
			if err == nil || err.rule == RuleFieldRange || !strings.HasSuffix(err.pointer, "/"+name) {
				return
			}
			found++
			doc, tag := docs[owner.Name()+"."+field.Name], field.Tag.Get("check")
			said := strings.Contains(tag, "required") || strings.Contains(doc, "required") || strings.Contains(doc, "emitter fills")
			require.True(t, said, "%s.%s must be set, and neither its tag nor its comment tells it: %s %s", owner.Name(), field.Name, err.pointer, err.detail)
		})
	}
	require.Greater(t, found, 50)
}

// The comment of a field tells if the emitter fills it in.
func TestFilledFieldsAreDocumented(t *testing.T) {
	docs := fieldDocs(t)
	says := regexp.MustCompile(`emitter (fills|sets|mints|stamps|writes)|Run.With|Tracer`)
	told := map[string]bool{}
	check := func(owner, field string) {
		told[owner+"."+field] = true
		require.Regexp(t, says, strings.ReplaceAll(docs[owner+"."+field], "\n", " "), "%s.%s is filled in, and its comment does not tell it", owner, field)
	}
	for _, sample := range sampleEvents() {
		visited := 0
		eachField(reflect.ValueOf(sample.Payload), func(owner reflect.Type, field reflect.StructField, value reflect.Value) {
			visited++
			e, _ := startEmitter(t, EmitterOptions{Mode: ModeObserve, Lifecycle: LifecycleDerived, Redaction: &Policy{Off: true}})
			r, err := e.Run("r")
			require.NoError(t, err)
			_, err = r.Record(t.Context(), Event{AgentID: sample.AgentID})
			require.Error(t, err, "so that an end has something to count")

			kept := reflect.ValueOf(value.Interface())
			value.SetZero()
			defer value.Set(kept)
			ev, err := r.Record(t.Context(), Event{AgentID: sample.AgentID, Scope: sample.Scope, Payload: sample.Payload})
			if err != nil {
				return // it is required
			}
			at, filled := 0, false
			eachField(reflect.ValueOf(ev.Payload), func(_ reflect.Type, _ reflect.StructField, v reflect.Value) {
				if at++; at == visited {
					filled = !v.IsZero()
				}
			})
			part := field.Type.Kind() == reflect.Struct && !strings.HasPrefix(field.Type.Name(), "Opt[") // its fields tell it
			if filled && !part {
				check(owner.Name(), field.Name)
			}
		})
	}
	for _, field := range []string{
		"RunStarted.Lifecycle", "AgentStarted.Lifecycle", "AgentTransition.From", "AgentEnded.Totals", "AgentEnded.Refused",
		"RunCompleted.Refused", "RunFailed.Refused", "RunCancelled.Refused",
		"ConversationMessage.MessageID", "ConversationMessage.From", "ConversationMessage.TS",
	} {
		require.True(t, told[field], "%s is not filled in", field)
	}

	e, _ := startEmitter(t, EmitterOptions{Lifecycle: LifecycleDerived})
	r, err := e.Run("r")
	require.NoError(t, err)
	r = r.With(Scope{SessionID: "s"})
	require.NoError(t, r.Agent("a").Emit(t.Context(), &AgentStarted{}))
	require.NoError(t, r.Agent("a").Emit(t.Context(), &ToolCalled{CallID: "c", ToolID: "t"}))
	ev, err := r.Record(t.Context(), Event{AgentID: "a", Payload: &ToolReturned{CallID: "c", ToolID: "t", Status: ToolStatusOK}})
	require.NoError(t, err)
	v := reflect.ValueOf(ev)
	filled := 0
	for i := range v.NumField() {
		switch field := v.Type().Field(i); {
		case !field.IsExported(), field.Anonymous, field.Name == "AgentID", field.Name == "Payload", v.Field(i).IsZero():
		default:
			filled++
			check("Event", field.Name)
		}
	}
	require.GreaterOrEqual(t, filled, 6)
}

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

			// Unreadable JSON changes nothing.
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
