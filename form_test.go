package agentevents

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// eachJSON calls visit for every JSON field in v.
func eachJSON(v reflect.Value, name string, visit func(name string, v reflect.Value)) {
	switch v.Kind() {
	case reflect.String:
		if v.Type() == jsonType {
			visit(name, v)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.IsExported() {
				inside := name
				if f.Name != "V" {
					inside = v.Type().Name() + "." + f.Name
				}
				eachJSON(v.Field(i), inside, visit)
			}
		}
	case reflect.Slice:
		for i := range v.Len() {
			eachJSON(v.Index(i), name, visit)
		}
	}
}

// An emitted is what came of an event.
type attempt struct {
	log        *sinkLog
	live       *Fold // fed by a sink
	violations []*RuleError
	err        error
}

// attempted emits one event in a new run.
func attempted(t testing.TB, o EmitterOptions, ev Event) *attempt {
	t.Helper()
	a := &attempt{live: NewFold(FoldOptions{Lifecycle: o.Lifecycle})}
	o.OnViolation = func(err *RuleError) { a.violations = append(a.violations, err) }
	r, log := startRun(t, o)
	a.log = log
	_, a.err = r.Agent("a").Record(t.Context(), ev)
	for _, ev := range log.events {
		a.live.Apply(ev)
	}
	return a
}

// requireReadBack checks that a Reader reads each line, and that a fold of the lines is a
// fold of what the sinks got and has the violations that the emitter told, no others.
func requireReadBack(t testing.TB, a *attempt, o ReaderOptions) {
	t.Helper()
	f := NewFold(FoldOptions{Lifecycle: LifecycleRelaxed})
	n := 0
	for ev, err := range NewReader(strings.NewReader(strings.Join(a.log.lines, "\n")), o).All() {
		require.NoError(t, err)
		text, err := ev.AppendJSON(nil)
		require.NoError(t, err)
		require.Equal(t, a.log.lines[n], string(text))
		f.Apply(ev)
		n++
	}
	require.Len(t, a.log.lines, n)
	require.Equal(t, string(a.live.Snapshot().AppendJSON(nil)), string(f.Snapshot().AppendJSON(nil)))
	var rules []Rule
	for _, v := range a.violations {
		rules = append(rules, v.Rule)
	}
	var folded []Rule
	for _, v := range f.Snapshot().Violations {
		folded = append(folded, v.Rule)
	}
	require.Equal(t, rules, folded)
}

// What is missing is not made up: the log says no more than the sinks were told.
func TestMissingJSONIsNotWritten(t *testing.T) {
	n := 0
	eachKind(t, func(t *testing.T, k Kind, p payloadOps) {
		eachJSON(reflect.ValueOf(p).Elem(), "", func(name string, v reflect.Value) {
			was := v.String()
			v.SetString("")
			defer v.SetString(was)
			if p.check() == nil {
				return // it is optional
			}
			n++
			if patch, ok := p.(*StatePatched); ok {
				patch.Path = "db.password" // whose value is masked
			}
			err := attempted(t, EmitterOptions{}, Event{Payload: p}).err
			var broken *RuleError
			require.True(t, errors.As(err, &broken) && broken.Rule == RuleFieldRequired, "%v", err)

			a := attempted(t, EmitterOptions{Mode: ModeObserve, Lifecycle: LifecycleRelaxed}, Event{Payload: p})
			require.NoError(t, a.err)
			require.NotContains(t, a.log.lines[0], "null,")
			require.NotContains(t, a.log.lines[0], ":null")
			require.Len(t, a.violations, 1)
			require.Equal(t, RuleFieldRequired, a.violations[0].Rule)
			requireReadBack(t, a, ReaderOptions{})
			folded := a.live.Snapshot().Violations
			require.Equal(t, a.violations[0].Pointer, folded[len(folded)-1].Pointer)
		})
	})
	require.Equal(t, 5, n)
}

// Without a value the state stays as it is, also in a fold of the log.
func TestPatchWithoutAValueChangesNothing(t *testing.T) {
	r, log := startRun(t, EmitterOptions{Mode: ModeObserve})
	require.NoError(t, r.Emit(t.Context(), &StatePatched{Op: PatchSet, Path: "x", Value: "1"}))
	require.NoError(t, r.Emit(t.Context(), &StatePatched{Op: PatchSet, Path: "x"}))
	f := NewFold(FoldOptions{})
	for ev, err := range NewReader(strings.NewReader(strings.Join(log.lines, "\n")), ReaderOptions{}).All() {
		require.NoError(t, err)
		f.Apply(ev)
	}
	require.Equal(t, map[string]JSON{"x": "1"}, f.Snapshot().State)
	require.Len(t, f.Snapshot().Violations, 1)
	require.Equal(t, string(log.snapshot(t).AppendJSON(nil)), string(f.Snapshot().AppendJSON(nil)))
}
