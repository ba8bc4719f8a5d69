package agentevents

import (
	"context"
	"errors"
	"go/ast"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/agentevents/agentevents/internal/jsonwire"
	"github.com/stretchr/testify/require"
)

// brokenJSON are texts that no line carries as JSON, and encoding/json takes in part.
func brokenJSON() []JSON {
	return []JSON{
		`package main`, `{`, `{"a":1}x`, `{"a":1,"a":2}`, `{"a":`, `{"a":"cut of`, `"a` + "\n" + `"`, "\"\xff\"", "{\"a\":\"\xc3\x28\"}", `"\ud800"`, `{"a":"\udc00x"}`, `NaN`, `01`, ` `, `'a'`, `{"a":1,}`,
		JSON(strings.Repeat("[", 1001) + strings.Repeat("]", 1001)), "\xff\xfe{\x00}", `{"a":1}{"a":2}`,
	}
}

// objects are the JSON fields that are expected to be objects. Text that is not JSON
// becomes one there.
var objects = map[string]bool{
	"AuditChecked.Evidence": true, "ClarificationResolved.Answers": true, "OrchestratorDecided.Decision": true, "StatePatched.Value": true,
	"ToolCalled.Attributes": true, "ModelCalled.Attributes": true, "MemoryChanged.Attributes": true, "TurnStarted.Attributes": true, "TurnEnded.Attributes": true, "StepStarted.Attributes": true,
	"StepEnded.Attributes": true, "SpanRecorded.Attributes": true,
}

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

// An attempt is the outcome of an emitted event.
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

// requireReadBack checks that a Reader reads each line, and that a fold of the lines is a fold of
// the sinks' events and has exactly the violations that the emitter reported.
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
		require.False(t, v.Refused)
		rules = append(rules, v.Rule)
	}
	var folded []Rule
	for _, v := range f.Snapshot().Violations {
		folded = append(folded, v.Rule)
	}
	require.Equal(t, rules, folded)
}

// A text that is not JSON does not refuse an event: it is recorded as a JSON string, or as an
// object where one is expected, in every JSON field of every kind.
func TestTextThatIsNotJSONIsRecorded(t *testing.T) {
	seen := map[string]bool{}
	kinds := func(yield func(payloadOps) bool) {
		for info := range Kinds() {
			if !yield(filledPayload(t, info.Kind)) {
				return
			}
		}
		yield(&Unknown{Type: "new.kind", Raw: `{}`})
	}
	for p := range kinds {
		if setJSONs(reflect.ValueOf(p).Elem(), "{}") == 0 {
			continue
		}
		for _, mode := range []Mode{ModeEnforce, ModeObserve} {
			for _, policy := range []*Policy{nil, {Off: true}} {
				o := EmitterOptions{Mode: mode, Redaction: policy, Lifecycle: LifecycleRelaxed}
				setJSONs(reflect.ValueOf(p).Elem(), "{}")
				sound := attempted(t, o, Event{Payload: p})
				for _, raw := range brokenJSON() {
					setJSONs(reflect.ValueOf(p).Elem(), raw)
					before := string(p.appendJSON(nil))
					a := attempted(t, o, Event{Payload: p})
					require.Equal(t, before, string(p.appendJSON(nil)), "the caller's payload stays")
					require.Equal(t, sound.err, a.err)
					require.Len(t, a.violations, len(sound.violations))
					require.Len(t, a.log.events, len(sound.log.events))
					if len(a.log.events) == 0 {
						continue
					}
					requireReadBack(t, a, ReaderOptions{})
					got := a.log.last(t)
					require.Equal(t, MarkSanitized|sound.log.last(t).Marks, got.Marks)
					eachJSON(reflect.ValueOf(got.Payload).Elem(), "", func(name string, v reflect.Value) {
						seen[name] = true
						want := jsonwire.Quote(string(raw))
						if objects[name] || name == "Unknown.Raw" {
							want = `{"sanitized":` + want + `}`
						}
						require.Equal(t, want, v.String(), name)
					})
				}
			}
		}
	}
	for name := range objects {
		require.True(t, seen[name], name)
	}
}

func TestTextThatIsNotJSONIsMaskedLikeJSON(t *testing.T) {
	for action, want := range map[Action][2]JSON{
		ActionMask: {`"[REDACTED:class]"`, `{"redacted":"[REDACTED:class]"}`},
		ActionDrop: {"null", "{}"},
	} {
		for _, raw := range brokenJSON() {
			got, _ := emitted(t, &Policy{Content: action}, &ToolCalled{CallID: "c", ToolID: "t", Arguments: raw, Attributes: raw})
			require.Equal(t, want, [2]JSON{got.Payload.(*ToolCalled).Arguments, got.Payload.(*ToolCalled).Attributes})
			require.Equal(t, MarkRedacted|MarkSanitized, got.Marks)
		}
	}
}

// leaky are texts with a secret that no line carries as JSON.
func leaky(secret string) (texts []string) {
	q := jsonwire.Quote(secret)
	inner := jsonwire.Quote(`{"password":` + q + `}`)
	return []string{
		`{"password":` + q + `,"password":` + q + `}`, `{"a":1,"a":{"api_key":` + q + `}}`, `{"password":` + q, `{"password":` + q[:len(q)-1], `{"password":` + q + `}x`, "{\"a\":\"\xff\",\"password\":" + q + "}",
		`{"a":"\ud800","token":` + q + `}`, strings.Repeat(`{"a":`, 1001) + `{"password":` + q + `}` + strings.Repeat(`}`, 1001), `{'password': '` + secret + `'}`, "password: " + secret + "\n", "Authorization: Bearer " + secret,
		`{"body":` + inner + `,"body":` + inner + `}`, `["--password","` + secret + `",]`, `export PASSWORD=` + secret, `{"headers":{"Authorization":"Bearer ` + secret + `"`, `{"password":"` + secret + "\xff\"}",
	}
}

func TestNoSecretGetsOutOfBrokenJSON(t *testing.T) {
	const hunter = "hunter2xhunter2x9"
	registered := new(Secrets)
	require.NoError(t, registered.Add(canaryValue))
	byValue, other := startRun(t, EmitterOptions{Redaction: &Policy{Secrets: registered}})
	for _, text := range leaky(hunter) {
		require.Error(t, jsonwire.Valid(text))
		r, log := startRun(t, EmitterOptions{})
		require.NoError(t, r.Emit(t.Context(), &ToolCalled{CallID: "c", ToolID: "t", Arguments: JSON(text), Attributes: JSON(text)}))
		require.NoError(t, r.Emit(t.Context(), &AuditChecked{CheckpointID: "c", Result: AuditPass, Evidence: JSON(text)}))
		require.NoError(t, r.Emit(t.Context(), &Unknown{Type: "x", Raw: JSON(text)}))
		for _, line := range log.lines {
			require.NotContains(t, line, hunter, text)
		}
		require.True(t, log.events[0].Marks.Has(MarkRedacted|MarkSanitized))
	}
	for i, text := range leaky(canaryValue) {
		require.NoError(t, byValue.Emit(t.Context(), &ToolCalled{CallID: string(rune('a' + i)), ToolID: "t", Arguments: JSON(text)}))
	}
	require.NotContains(t, strings.Join(other.lines, "\n"), canaryValue)
}

// The pieces of a text that is not JSON and the whole of it are redacted alike.
func TestBrokenArgumentsAreTheSameInPieces(t *testing.T) {
	for _, text := range append(leaky("hunter2xhunter2x9"), "package main", `{"a":"cut of`) {
		if strings.Contains(text, `\"`) || !jsonwire.ValidUTF8(text) {
			continue // escapes, and the pieces of damaged characters, are told apart by who reads JSON
		}
		r, log := startRun(t, EmitterOptions{Lifecycle: LifecycleRelaxed})
		a := beginAgent(t, r, "a", StatusToolCall)
		for i := 0; i < len(text); i += 7 {
			require.NoError(t, a.Emit(t.Context(), &ToolArgumentsDelta{CallID: "c", Delta: text[i:min(len(text), i+7)]}))
		}
		require.NoError(t, a.Emit(t.Context(), &ToolCalled{CallID: "c", ToolID: "t", Arguments: JSON(text)}))
		require.NoError(t, r.Close())
		var pieces, whole string
		for _, ev := range log.events {
			switch p := ev.Payload.(type) {
			case *ToolArgumentsDelta:
				pieces += p.Delta
			case *ToolCalled:
				whole = jsonwire.Text(string(p.Arguments))
			}
		}
		require.Equal(t, pieces, whole, text)
	}
}

func TestDoRecordsAResultThatIsNotJSON(t *testing.T) {
	r, log := startRun(t, EmitterOptions{Lifecycle: LifecycleRelaxed})
	a := beginAgent(t, r, "a", StatusToolCall)
	out, err := a.Do(t.Context(), &ToolCalled{ToolID: "read", Arguments: `{"path":`}, func(context.Context) (JSON, error) { return `package main`, nil })
	require.NoError(t, err)
	require.Equal(t, JSON(`package main`), out)
	require.Equal(t, JSON(`"package main"`), log.last(t).Payload.(*ToolReturned).Result)
	require.True(t, log.last(t).Payload.(*ToolReturned).ResultText)
	require.Empty(t, log.snapshot(t).Violations)
	require.Empty(t, log.snapshot(t).OpenCalls)
}

// A text that is not JSON and JSON that is a string differ on the log.
func TestTextsAreToldFromJSON(t *testing.T) {
	for given, text := range map[JSON]bool{"": false, "package main": true, `"package main"`: false, "42": false, `{"a": 1}`: false, `{"a":1,"a":2}`: true, "caf\xff": true} {
		for _, mode := range []Mode{ModeEnforce, ModeObserve} {
			r, log := startRun(t, EmitterOptions{Mode: mode})
			a := beginAgent(t, r, "a")
			call, err := a.Call(t.Context(), &ToolCalled{ToolID: "t", Arguments: given})
			require.NoError(t, err)
			called := log.last(t)
			require.Equal(t, text, called.Payload.(*ToolCalled).ArgumentsText, "%q", given)
			require.Equal(t, strings.Contains(string(given), "\xff"), called.Marks.Has(MarkSanitized))
			require.NoError(t, call.Return(t.Context(), given))
			require.Equal(t, text, log.last(t).Payload.(*ToolReturned).ResultText)
			require.NoError(t, a.Emit(t.Context(), &ToolReturned{ToolID: "t", Status: ToolStatusOK, OneEvent: true, Arguments: given, Result: "1"}))
			whole := log.last(t).Payload.(*ToolReturned)
			require.Equal(t, text, whole.ArgumentsText)
			require.False(t, whole.ResultText)
		}
	}
}

func TestJSONOrString(t *testing.T) {
	for text, want := range map[string]JSON{
		"": "", " ": `" "`, `{"a": [1, 2]}`: `{"a":[1,2]}`, "42": "42", "null": "null", ` "x" `: `"x"`, "package main": `"package main"`,
		`{"a":1,"a":2}`: `"{\"a\":1,\"a\":2}"`, "caf\xff": `"caf` + "\uFFFD" + `"`, `"\ud800"`: `"\"\\ud800\""`,
	} {
		require.Equal(t, want, JSONOrString(text), "%q", text)
	}
	for _, raw := range append(brokenJSON(), `{"a": 1}`, "") {
		got, _ := redactedJSON(t, &Policy{Off: true}, raw)
		require.Equal(t, got, JSONOrString(string(raw)), "an emitter records it")
	}
}

// Damaged characters of content are replaced, as ever.
func TestDamagedContentIsRecorded(t *testing.T) {
	for _, mode := range []Mode{ModeEnforce, ModeObserve} {
		for _, policy := range []*Policy{nil, {Off: true}} {
			a := attempted(t, EmitterOptions{Mode: mode, Redaction: policy, Lifecycle: LifecycleRelaxed}, Event{Payload: &TextCompleted{Text: "caf\xc3"}})
			require.NoError(t, a.err)
			require.Equal(t, "caf\uFFFD", a.log.last(t).Payload.(*TextCompleted).Text)
			require.Equal(t, MarkSanitized, a.log.last(t).Marks)
			requireReadBack(t, a, ReaderOptions{})
		}
	}
}

// Missing values are not made up: the log has the same values as the sinks.
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

type closedWord[T any] interface {
	~string
	known() bool
	words() []T
}

// listOf returns the words of a list, each of which is known, and the error for
// another one.
func listOf[T closedWord[T]](t *testing.T) (words []string, err *fieldError) {
	for _, word := range T("").words() {
		require.True(t, word.known(), word)
		words = append(words, string(word))
	}
	require.False(t, T("no word").known())
	return words, otherWord("name", T("no word"))
}

// A closed list has every constant of its type, and its error names them all.
func TestClosedLists(t *testing.T) {
	constants, closed := map[string][]string{}, map[string]bool{}
	for _, file := range packageSource(t) {
		for _, decl := range file.Decls {
			if fn, ok := decl.(*ast.FuncDecl); ok && fn.Recv != nil && fn.Name.Name == "known" {
				closed[fn.Recv.List[0].Type.(*ast.Ident).Name] = true
			}
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if spec, ok := n.(*ast.ValueSpec); ok && len(spec.Values) == 1 {
				if typ, ok := spec.Type.(*ast.Ident); ok {
					if lit, ok := spec.Values[0].(*ast.BasicLit); ok {
						if word, err := strconv.Unquote(lit.Value); err == nil {
							constants[typ.Name] = append(constants[typ.Name], word)
						}
					}
				}
			}
			return true
		})
	}
	lists := map[string]func(*testing.T) ([]string, *fieldError){
		"AgentOutcome": listOf[AgentOutcome], "AgentSharing": listOf[AgentSharing], "AgentStatus": listOf[AgentStatus],
		"AuditResult": listOf[AuditResult], "Lifecycle": listOf[Lifecycle], "MemoryChange": listOf[MemoryChange],
		"ModelClass": listOf[ModelClass], "PatchOp": listOf[PatchOp], "Severity": listOf[Severity],
		"ToolStatus": listOf[ToolStatus], "Transport": listOf[Transport], "Verbosity": listOf[Verbosity],
	}
	for name := range closed {
		require.Contains(t, lists, name, "add the list to this test")
	}
	for name, list := range lists {
		words, err := list(t)
		want := constants[name]
		if name == "AgentSharing" {
			want = append(want, "shared:<group>") // any group
		}
		require.Equal(t, want, words, name)
		require.Equal(t, `a text of 7 bytes is not one of: `+strings.Join(want, ", "), err.detail)
	}
	require.Equal(t, ToolStatusOK, ToolStatus("ok").constant())
	require.Equal(t, ToolStatus("new"), ToolStatus("new").constant())
}
