package lawtest

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect"
	"github.com/agentevents/agentevents/internal/effort"
	"github.com/agentevents/agentevents/internal/secret"
	"github.com/agentevents/agentevents/internal/secret/corpus"
)

// No secret gets out, whole or in pieces: the tests of this file plant secrets in every
// text that a program can set, and look for them in everything that comes out.

const (
	plantedFile  = "../secret/testdata/planted.txt"
	harmlessFile = "../secret/testdata/harmless.txt"
	kindsFile    = "../../testdata/kinds.jsonl"
)

func samples(t require.TestingT, file string) []corpus.Sample {
	list, err := corpus.Read(file)
	require.NoError(t, err)
	return list
}

// values are those that the tests register. Words of other samples are not among them,
// or a rule that fails would not show.
func values() []string {
	return slices.DeleteFunc(corpus.Values(), func(v string) bool { return v == "hunter2" || v == "abcd" || strings.HasPrefix(v, "correct") })
}

// planted returns the samples of secrets, with the registered values in each spelling.
func planted(t require.TestingT) []corpus.Sample {
	return append(samples(t, plantedFile), corpus.Spelled(values())...)
}

// policy has the values registered.
var policy = sync.OnceValue(func() *agentevents.Policy {
	secrets := new(agentevents.Secrets)
	if err := secrets.Add(values()...); err != nil {
		panic(err)
	}
	return &agentevents.Policy{Secrets: secrets}
})

// scanner computes the expected form of a text.
var scanner = sync.OnceValue(func() *secret.Scanner {
	v := secret.NewValues(values())
	return secret.New(secret.NewNames(nil, nil), func() *secret.Values { return v })
})

// outputs are all that comes out of an emitter.
type outputs struct {
	t      testing.TB
	em     *agentevents.Emitter
	path   string // of the log
	events []agentevents.Event
	mu     sync.Mutex // guards told
	told   map[told]*bytes.Buffer
}

// emitter returns an emitter whose outputs are kept. All but the sinks are set in o.
func emitter(t testing.TB, o agentevents.EmitterOptions) *outputs {
	out := &outputs{t: t, path: filepath.Join(t.TempDir(), "log.jsonl"), told: map[told]*bytes.Buffer{}}
	file, err := agentevents.OpenFile(out.path, agentevents.WriterOptions{BufferSize: 1 << 16})
	require.NoError(t, err)
	ids := &IDs{}
	o.Lifecycle = cmp.Or(o.Lifecycle, agentevents.LifecycleStrict)
	o.NewID, o.Clock = ids.New, (&Clock{}).Now
	o.OnError = out.fail
	o.OnViolation = func(err *agentevents.RuleError) { out.fail(err) }
	o.Follow = func(ev agentevents.Event) []agentevents.Event { out.see("follow", ev, ""); return nil }
	o.Sinks = []agentevents.Sink{file, out, agentevents.BestEffort(agentevents.Buffered(agentevents.SinkFunc(func(_ context.Context, ev agentevents.Event) error {
		out.see("buffered", ev, "")
		return nil
	}), 64, agentevents.OverflowBlock))}
	out.em, err = agentevents.NewEmitter(o)
	require.NoError(t, err)
	return out
}

func (o *outputs) fail(err error) { o.tell("error", blockKey{}, err.Error()+"\n") }

// see records an event. It appends a delta to the earlier ones of its block.
func (o *outputs) see(who string, ev agentevents.Event, all string) {
	if key, text, ok := deltaOf(&ev); ok {
		o.tell(who, key, text)
	} else {
		line, err := ev.AppendJSON(nil)
		require.NoError(o.t, err)
		o.tell(who, blockKey{}, string(line)+all+"\n")
	}
}

func (o *outputs) tell(who string, block blockKey, text string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	key := told{who, block}
	if o.told[key] == nil {
		o.told[key] = new(bytes.Buffer)
	}
	o.told[key].WriteString(text)
}

// told is a reader of texts, and the block that they belong to.
type told struct {
	who   string
	block blockKey
}

func (o *outputs) WriteEvent(_ context.Context, ev agentevents.Event) error {
	o.events = append(o.events, ev)
	all := ""
	if info, _ := ev.Kind().Info(); info.Role != agentevents.RoleDelta {
		all = fmt.Sprintf("%#v %#v", ev, ev.Payload) // also the fields that are not on its line
	}
	o.see("sink", ev, all)
	return nil
}

func (o *outputs) Trace(_ context.Context, ev agentevents.Event) agentevents.TraceContext {
	o.see("tracer", ev, "")
	return agentevents.TraceContext{}
}

func (o *outputs) run(id string) *agentevents.Run {
	run, err := o.em.Run(id)
	require.NoError(o.t, err)
	return run
}

// each closes the emitter and gives every output to look.
func (o *outputs) each(look func(name string, text []byte)) {
	require.NoError(o.t, o.em.Close(context.Background()))
	log, err := os.ReadFile(o.path)
	require.NoError(o.t, err)
	look("log", log)
	folds := agentevents.NewFoldSet(agentevents.FoldOptions{})
	for _, ev := range o.events {
		folds.Apply(ev)
	}
	for s := range folds.Drain() {
		look("snapshot", s.AppendJSON(nil))
	}
	for name, f := range formats() {
		enc := f.encoder()
		var text []byte
		for _, ev := range o.events {
			if text, err = enc.Append(text, ev); err != nil && !errors.Is(err, dialect.ErrNoCounterpart) {
				o.fail(err)
			}
		}
		text, err := enc.End(text)
		require.NoError(o.t, err)
		look(name, text)
		for _, loss := range enc.Losses() {
			look("losses of "+name, []byte(loss.String()))
		}
	}
	for key, text := range o.told {
		look(key.who, text.Bytes())
	}
	if testing.Short() {
		return // builds the command
	}
	command := filepath.Join(filepath.Dir(o.path), "agentevents")
	built, err := exec.Command("go", "build", "-o", command, "../../cmd/agentevents").CombinedOutput()
	require.NoError(o.t, err, "%s", built)
	for _, args := range []string{"cat", "tree --width -1", "check", "fold", "convert --to native"} {
		// The log of illegal events is a log with problems.
		text, err := exec.Command(command, append(strings.Fields(args), o.path)...).CombinedOutput()
		require.True(o.t, err == nil || errors.As(err, new(*exec.ExitError)), "%v", err)
		require.True(o.t, len(text) > 0 || args == "check", args)
		look(args, text)
	}
}

// A finder finds pieces of all secrets in long texts.
type finder struct {
	list   []string // the leaked secrets
	n      int
	pieces [len(pieceSizes)]map[string]string // piece → line of its sample
	starts [1 << 16]uint64                    // has a bit for how a piece begins
}

// pieceSizes are the lengths of pieces: of short secrets, of others, and of those that
// consist of escapes. A shorter piece may be there by chance.
var pieceSizes = [...]int{8, 10, 24}

func newFinder(t testing.TB, list []corpus.Sample) *finder {
	f := &finder{}
	all, err := os.ReadFile(kindsFile)
	require.NoError(t, err)
	harmless := string(all)
	for i := range f.pieces {
		f.pieces[i] = map[string]string{}
	}
	for _, s := range list {
		rest := s.Text
		for _, secret := range s.Secrets {
			rest = strings.ReplaceAll(rest, secret, "\n")
			for i := range secret {
				for k, n := range pieceSizes {
					if k == 0 && len(secret) >= pieceSizes[1] || i+n > len(secret) {
						continue
					}
					if piece := secret[i : i+n]; corpus.Tells(piece) && strings.Trim(piece, "0123456789") != "" {
						f.pieces[k][piece] = s.Line
						break
					}
				}
			}
		}
		harmless += rest + "\n"
	}
	for i := range harmless { // a piece that another text has too proves nothing
		for k, n := range pieceSizes {
			delete(f.pieces[k], harmless[i:min(i+n, len(harmless))])
		}
	}
	for _, pieces := range f.pieces {
		for piece := range pieces {
			h := startOf([]byte(piece))
			f.starts[h/64] |= 1 << (h % 64)
		}
	}
	t.Cleanup(func() {
		if f.n > 0 {
			t.Errorf("%d got out, such as\n%s", f.n, strings.Join(f.list, "\n"))
		}
	})
	return f
}

func startOf(text []byte) uint64 { return binary.LittleEndian.Uint64(text) * 0x9E3779B97F4A7C15 >> 42 }

// add records a leak. It lists the first ones of each place and sample.
func (f *finder) add(where, line, text string) {
	f.n++
	if len(f.list) < 200 {
		f.list = append(f.list, fmt.Sprintf("%s\t%s\t%.300q", where, line, text))
	}
}

// look looks for pieces in a text.
func (f *finder) look(name string, text []byte) {
	seen := map[string]bool{}
	for i := 0; i+8 <= len(text); i++ {
		h := startOf(text[i:])
		if f.starts[h/64]&(1<<(h%64)) == 0 {
			continue
		}
		for k, n := range pieceSizes {
			if line, ok := f.pieces[k][string(text[i:min(i+n, len(text))])]; ok && !seen[line] {
				seen[line] = true
				f.add(name, line, string(text[max(0, i-60):min(len(text), i+60)]))
			}
		}
	}
}

// A place is a text of a payload that a program sets.
type place struct {
	name string
	json bool
	get  func() string
	set  func(string)
}

// places returns the places of texts in a payload.
func places(p agentevents.Payload) (list []place) {
	var walk func(v reflect.Value, name, class string)
	walk = func(v reflect.Value, name, class string) {
		switch v.Kind() {
		case reflect.String:
			json := v.Type() == typeJSON
			if json || v.Type() == typeString && (class == "content" || class == "meta") {
				list = append(list, place{name, json, v.String, v.SetString})
			}
		case reflect.Slice:
			for i := range v.Len() {
				walk(v.Index(i), fmt.Sprint(name, "/", i), class)
			}
		case reflect.Map: // the keys are names
			list = append(list, place{name, false,
				func() string { return fmt.Sprint(v.MapKeys()) },
				func(s string) {
					key := v.MapKeys()[0]
					v.SetMapIndex(reflect.ValueOf(s), v.MapIndex(key))
					v.SetMapIndex(key, reflect.Value{})
				}})
		case reflect.Struct:
			if strings.HasPrefix(v.Type().Name(), "Opt[") {
				if v.Field(0).Kind() == reflect.Struct {
					v.Field(1).SetBool(true)
				}
				walk(v.Field(0), name, class)
				return
			}
			for i := range v.NumField() {
				if f := v.Type().Field(i); f.IsExported() {
					walk(v.Field(i), name+"/"+f.Name, f.Tag.Get("class"))
				}
			}
		}
	}
	walk(reflect.ValueOf(p).Elem(), "", "")
	return list
}

// wraps are the texts around a sample. The strings around the secret are JSON.
var wraps = []struct {
	name    string
	strings int
	text    func(corpus.Sample) string
}{
	{"as it is", 0, func(s corpus.Sample) string { return s.Text }},
	{"in JSON", 1, func(s corpus.Sample) string { return s.InString(1).Text }},
	{"in JSON in JSON", 2, func(s corpus.Sample) string { return s.InString(2).Text }},
	{"in JSON in JSON in JSON", 3, func(s corpus.Sample) string { return s.InString(3).Text }},
	{"in JSON that is cut off", 1, func(s corpus.Sample) string { return strings.TrimSuffix(s.InString(1).Text, `","n":1}`) }},
}

// shapes are the JSON values around a text.
var shapes = []struct {
	name string
	json func(text string) string
}{
	{"a string", quote},
	{"in lists and objects", func(text string) string { return `{"list":[1,{"note":[` + quote(text) + `,null]}]}` }},
	{"JSON, or a string", func(text string) string {
		if json.Valid([]byte(text)) {
			return text
		}
		return quote(text)
	}},
	{"a name", func(text string) string { return `{` + quote(text) + `:null}` }},
}

func quote(text string) string { return string(agentevents.JSONString(text)) }

// A crop has the samples that are planted in one text.
type crop struct {
	name   string
	sample corpus.Sample
	text   string // that is set
}

// sow returns the nth crop of a sample.
func sow(s corpus.Sample, n int, inJSON bool) crop {
	w := wraps[n%len(wraps)]
	if s.Strings+w.strings > secret.MaxStrings {
		w = wraps[0]
	}
	c := crop{w.name, s.InString(w.strings), w.text(s)}
	if inJSON {
		shape := shapes[n/len(wraps)%len(shapes)]
		c.name += ", " + shape.name
		c.text = shape.json(c.text)
		c.sample = s.InString(w.strings + 1)
	}
	return c
}

// plant emits every kind of event with samples in all texts, many times, and gives each
// text before and after to compare.
func plant(t *testing.T, out *outputs, list []corpus.Sample, compare func(where string, c crop, got string, marks agentevents.Marks)) {
	log, err := os.ReadFile(kindsFile)
	require.NoError(t, err)
	lines := slices.Collect(strings.Lines(string(log)))
	ends := func(line string) int { // the ends of runs come last
		if strings.Contains(line, `"type":"run.c`) || strings.Contains(line, `"type":"run.failed"`) {
			return 1
		}
		return 0
	}
	slices.SortStableFunc(lines, func(a, b string) int { return ends(a) - ends(b) })
	stride := effort.Of(32, 8, 1)
	kinds := map[agentevents.Kind]bool{}
	planted := map[string]int{} // by sample
	for first := 0; first < len(list); first += stride {
		run := out.run("")
		next := first
		sowNext := func(inJSON bool) crop {
			s := list[next%len(list)]
			planted[s.Line]++
			next++
			return sow(s, first/stride+next, inJSON)
		}
		for _, line := range lines {
			above, inside := sowNext(true), sowNext(true)
			line = strings.Replace(line, `"payload":{`, `"x-above":`+above.text+`,"payload":{"x-inside":`+inside.text+`,`, 1)
			var ev agentevents.Event
			require.NoError(t, ev.UnmarshalJSON([]byte(line)), line)
			info, _ := ev.Kind().Info()
			if kinds[ev.Kind()] = true; info.Role == agentevents.RoleDelta {
				continue // see TestNoSecretGetsOutInPieces
			}
			ev.ID, ev.RunID = "", ""
			var crops []crop
			for _, p := range places(ev.Payload) {
				c := sowNext(p.json)
				crops = append(crops, c)
				p.set(c.text)
			}
			require.NoError(t, errOf(run.Record(t.Context(), ev)), line)

			got := out.events[len(out.events)-1]
			for i, p := range places(got.Payload) {
				compare(string(got.Kind())+p.name, crops[i], p.get(), got.Marks)
			}
			compare(string(got.Kind())+" above", above, string(got.Extra("x-above")), got.Marks)
			if _, unknown := got.Payload.(*agentevents.Unknown); !unknown { // the whole of it was set
				compare(string(got.Kind())+" inside", inside, payloadMember(t, &got, "x-inside"), got.Marks)
			}
		}
	}
	for info := range agentevents.Kinds() {
		require.True(t, kinds[info.Kind], "%s has no line in %s", info.Kind, kindsFile)
	}
	require.GreaterOrEqual(t, len(planted), len(list)*9/10, "some samples have the same line")
	for line, n := range planted {
		require.GreaterOrEqual(t, n, 3, line)
	}
	t.Logf("%d samples, %d events", len(planted), len(out.events))
}

func payloadMember(t testing.TB, ev *agentevents.Event, name string) string {
	line, err := ev.AppendJSON(nil)
	require.NoError(t, err)
	var parts struct{ Payload map[string]json.RawMessage }
	require.NoError(t, json.Unmarshal(line, &parts), "%s", line)
	return string(parts.Payload[name])
}

// Nothing of a secret gets out of any text of any kind, be it in JSON, in broken JSON, in
// extra members or in the texts of errors.
func TestNoSecretGetsOut(t *testing.T) {
	t.Parallel()
	list := planted(t)
	require.GreaterOrEqual(t, len(list), 700)
	f := newFinder(t, list)
	out := emitter(t, agentevents.EmitterOptions{Mode: agentevents.ModeObserve, Redaction: policy()})
	plant(t, out, list, func(where string, c crop, got string, marks agentevents.Marks) {
		if part := c.sample.GotOut(got); part != "" || !strings.Contains(got, "[REDACTED:") || !marks.Has(agentevents.MarkRedacted) {
			f.add(where+", "+c.name, c.sample.Line, got)
		}
	})
	out.each(f.look)
}

// Nothing of a secret gets out of a text that should be JSON and is not.
func TestNoSecretGetsOutOfTextThatIsNotJSON(t *testing.T) {
	t.Parallel()
	list := planted(t)
	f := newFinder(t, list)
	out := emitter(t, agentevents.EmitterOptions{Redaction: policy()})
	forms := []struct {
		strings int // around the secret on the line
		text    func(text string) string
	}{
		{1, func(text string) string { return text + "\n" }},
		{2, func(text string) string { return `{"a":1,"a":` + quote(text) + `}` }},
		{2, func(text string) string { return `{"a":[` + quote(text) }},
		{2, func(text string) string { return `{"a":` + strings.TrimSuffix(quote(text), `"`) }},
		{2, func(text string) string { return "{\"a\xff\":" + quote(text) + `}` }},
		{2, func(text string) string { return `{"a":"\ud800","b":` + quote(text) + `}` }},
	}
	for i, s := range list {
		if testing.Short() && i%8 != 0 {
			continue
		}
		run := out.run("")
		for j, form := range forms {
			if text := agentevents.JSON(form.text(s.Text)); !json.Valid([]byte(text)) || j > 0 {
				for _, p := range []agentevents.Payload{
					&agentevents.ToolCalled{CallID: fmt.Sprint(j), ToolID: "x", Arguments: text},
					&agentevents.AuditChecked{CheckpointID: "c", Result: agentevents.AuditPass, Evidence: text},
					&agentevents.Unknown{Type: "x.y", Raw: text},
				} {
					require.NoError(t, run.Emit(t.Context(), p))
					ev := out.events[len(out.events)-1]
					call, _ := ev.Payload.(*agentevents.ToolCalled)
					require.True(t, ev.Marks.Has(agentevents.MarkSanitized) || call != nil && call.ArgumentsText, "%s", text)
					got := places(ev.Payload)[0].get()
					if s.Strings+form.strings > secret.MaxStrings {
						continue
					}
					if part := s.InString(form.strings).GotOut(got); part != "" || !ev.Marks.Has(agentevents.MarkRedacted) {
						f.add(fmt.Sprintf("%T, form %d, sample %d", p, j, i), s.Line, got)
					}
				}
			}
		}
	}
	out.each(f.look)
}

// Text that only looks like a secret comes out unchanged.
func TestHarmlessTextStays(t *testing.T) {
	list := samples(t, harmlessFile)
	require.GreaterOrEqual(t, 2*len(list), 400)
	out := emitter(t, agentevents.EmitterOptions{Mode: agentevents.ModeObserve})
	bad := 0
	plant(t, out, list, func(where string, c crop, got string, marks agentevents.Marks) {
		want := c.text
		if json.Valid([]byte(want)) && strings.Contains(c.name, ", ") {
			var b bytes.Buffer
			require.NoError(t, json.Compact(&b, []byte(want)))
			want = b.String()
		}
		if where == "agent.ended/ModelUsage" {
			want = "[" + want + "]"
		}
		if want != got && where != "state.patched/Value" { // its path may name a credential
			if bad++; bad < 30 {
				t.Errorf("%s, %s\t%s\n%q\n%q", where, c.name, c.sample.Line, want, got)
			}
		}
	})
	require.Zero(t, bad)
	require.NoError(t, out.em.Close(t.Context()))
}

// The error of a refused event reveals none of its texts, and masks the quoted parts of ids, names
// of members and words.
func TestNoSecretGetsOutInErrors(t *testing.T) {
	list := planted(t)
	f := newFinder(t, list)
	out := emitter(t, agentevents.EmitterOptions{Redaction: policy()})
	run := out.run("")
	a := run.Agent("a")
	require.NoError(t, a.Emit(t.Context(), &agentevents.AgentStarted{Task: "x"}))
	for _, s := range list {
		q := quote(s.Text)
		payloads := []agentevents.Payload{
			&agentevents.ToolReturned{CallID: "none", ToolID: "x", Status: agentevents.ToolStatusError, Error: agentevents.Some(agentevents.ErrorInfo{Message: s.Text, Details: agentevents.JSON(q)})},
			&agentevents.AuditChecked{CheckpointID: "c", Result: agentevents.AuditPass, Evidence: agentevents.JSON(q)},
			&agentevents.AgentTransition{To: agentevents.StatusReflect, Reason: s.Text},
			&agentevents.AuditChecked{CheckpointID: "c", Result: agentevents.AuditResult(s.Text)},
			// Ids are shown.
			&agentevents.ToolReturned{CallID: s.Text, ToolID: "x", Status: agentevents.ToolStatusError},
		}
		for _, p := range payloads {
			err := a.Emit(t.Context(), p)
			var rule *agentevents.RuleError
			if !errors.As(err, &rule) {
				t.Fatalf("%T was not refused: %v", p, err)
			}
			f.look(fmt.Sprintf("error %s of %T", rule.Rule, p), []byte(err.Error()))
			f.look("error", fmt.Appendf(nil, "%#v", rule))
		}
	}
	out.each(f.look)
}
