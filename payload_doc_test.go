package agentevents

import (
	"go/ast"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

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
func TestRequiredFieldsSaySo(t *testing.T) {
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
			require.True(t, said, "%s.%s must be set, and neither its tag nor its comment says so: %s %s", owner.Name(), field.Name, err.pointer, err.detail)
		})
	}
	require.Greater(t, found, 50)
}

// The comment of a field tells if the emitter fills it in.
func TestFilledFieldsSaySo(t *testing.T) {
	docs := fieldDocs(t)
	says := regexp.MustCompile(`emitter (fills|sets|mints|stamps|writes)|Run.With|Tracer`)
	told := map[string]bool{}
	check := func(owner, field string) {
		told[owner+"."+field] = true
		require.Regexp(t, says, strings.ReplaceAll(docs[owner+"."+field], "\n", " "), "%s.%s is filled in, and its comment does not say so", owner, field)
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
