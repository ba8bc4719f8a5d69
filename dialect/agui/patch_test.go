package agui_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect"
	"github.com/agentevents/agentevents/dialect/agui"
	"github.com/agentevents/agentevents/internal/effort"
	"github.com/agentevents/agentevents/internal/scale"
)

// stateAfter returns the state of a run that a fold of events shows.
func stateAfter(t require.TestingT, events []agentevents.Event, run string) string {
	f := agentevents.NewFoldSet(agentevents.FoldOptions{})
	for _, ev := range events {
		f.Apply(ev)
	}
	s := f.Snapshot(run)
	require.Empty(t, s.Violations)
	if s.State == nil {
		return "{}"
	}
	text, err := json.Marshal(s.State)
	require.NoError(t, err)
	return string(text)
}

func snapshot(value string) string {
	return `{"type":"STATE_SNAPSHOT","timestamp":1777971600250,"snapshot":` + value + "}\n"
}

func deltaLine(ops string) string {
	return `{"type":"STATE_DELTA","timestamp":1777971600250,"delta":` + ops + "}\n"
}

// A JSON Patch is applied to the state that the lines have told. The native events of the log,
// and of the lines that an encoder makes of them, fold to the state of a front end.
func TestStateDelta(t *testing.T) {
	second := strings.ReplaceAll(head, `"run-1"`, `"run-2"`)
	for name, c := range map[string]struct{ log, want string }{
		"appends and a removal":   {snapshot(`{"notes":["one"],"n":1}`) + deltaLine(`[{"op":"add","path":"/notes/-","value":"two"},{"op":"replace","path":"/n","value":2}]`) + deltaLine(`[{"op":"remove","path":"/notes/0"}]`), `{"notes":["two"],"n":2}`},
		"an insertion":            {snapshot(`{"l":[1,2]}`) + deltaLine(`[{"op":"add","path":"/l/1","value":{"a":[]}},{"op":"add","path":"/l/1/a/-","value":5}]`), `{"l":[1,{"a":[5]},2]}`},
		"an element":              {snapshot(`{"l":[1,{"x":1}]}`) + deltaLine(`[{"op":"replace","path":"/l/0","value":3},{"op":"add","path":"/l/1/y","value":4},{"op":"remove","path":"/l/1/x"}]`), `{"l":[3,{"y":4}]}`},
		"move, copy and test":     {snapshot(`{"a":{"b":[1,2]},"c":1.0}`) + deltaLine(`[{"op":"test","path":"/c","value":1},{"op":"move","from":"/a/b/0","path":"/d"},{"op":"copy","from":"/a","path":"/e"}]`), `{"a":{"b":[2]},"c":1.0,"d":1,"e":{"b":[2]}}`},
		"names that no path has":  {snapshot(`{"a.b":{"c":1,"d":2},"":{"x":1}}`) + deltaLine(`[{"op":"replace","path":"/a.b/c","value":3},{"op":"add","path":"/e.f","value":4},{"op":"remove","path":"/"}]`), `{"a.b":{"c":3,"d":2},"e.f":4}`},
		"a number that is a name": {snapshot(`{"a":{"0":1,"-":2}}`) + deltaLine(`[{"op":"remove","path":"/a/0"},{"op":"add","path":"/a/1","value":3},{"op":"replace","path":"/a/-","value":4}]`), `{"a":{"1":3,"-":4}}`},
		"all of it":               {snapshot(`{"a":1}`) + deltaLine(`[{"op":"replace","path":"","value":{"l":[1]}},{"op":"remove","path":"/l/0"}]`), `{"l":[]}`},
		"a list that is gone":     {snapshot(`{"a":{"l":[1,2]}}`) + deltaLine(`[{"op":"remove","path":"/a/l/0"},{"op":"remove","path":"/a"}]`), `{}`},
		"a list that comes again": {snapshot(`{"l":[1,2]}`) + deltaLine(`[{"op":"remove","path":"/l/0"},{"op":"remove","path":"/l"},{"op":"add","path":"/l","value":[]},{"op":"add","path":"/l/-","value":7}]`), `{"l":[7]}`},
		"a changed list moves":    {snapshot(`{"l":[1,2]}`) + deltaLine(`[{"op":"add","path":"/l/0","value":0},{"op":"move","from":"/l","path":"/m"},{"op":"move","from":"/m/1","path":"/m/1"}]`), `{"m":[0,1,2]}`},
		"no snapshot":             {deltaLine(`[{"op":"add","path":"/l","value":[]}]`) + deltaLine(`[{"op":"add","path":"/l/-","value":1}]`), `{"l":[1]}`},
		"a refused one":           {snapshot(`{"n":1}`) + deltaLine(`[{"op":"replace","path":"/n","value":2},{"op":"remove","path":"/m"}]`), `{"n":1}`},
		"the state of an input":   {strings.Replace(second, "}\n", `,"input":{"threadId":"t-1","runId":"run-2","messages":[],"state":{"l":[1],"m":1}}}`+"\n", 1) + deltaLine(`[{"op":"add","path":"/l/-","value":2}]`), `{"l":[1,2]}`},
		"the state of an earlier run": {snapshot(`{"l":[1],"o":{"p":[1]}}`) + strings.TrimPrefix(tail, "\n") + "\n" + second +
			deltaLine(`[{"op":"replace","path":"/o/p/0","value":9}]`) + deltaLine(`[{"op":"add","path":"/l/0","value":2}]`), `{"l":[2,1],"o":{"p":[9]}}`},
	} {
		t.Run(name, func(t *testing.T) {
			log, run := c.log, "run-1"
			if strings.Contains(log, "run-2") {
				run = "run-2"
			}
			if !strings.HasPrefix(log, `{"type":"RUN`) {
				log = head + log
			}
			events := decode(t, agui.Options{}, log)
			require.JSONEq(t, c.want, stateAfter(t, events, run))
			lines, _ := encode(t, agui.EncoderOptions{}, events)
			require.JSONEq(t, c.want, stateAfter(t, decode(t, agui.Options{Strict: name != "a refused one"}, lines), run), lines)
		})
	}
}

// A JSON Patch that cannot be applied changes nothing, and is told: it is an unknown event and a
// loss. A strict decoder refuses one that the state which is known does not allow. Of the rest
// nobody knows, as the log may begin later: so are members that it names from then on.
func TestStateDeltaThatCannotBeApplied(t *testing.T) {
	known := snapshot(`{"l":[1],"n":1}`)
	bomb := `{"op":"add","path":"/x","value":"` + strings.Repeat("x", 1<<20) + `"}` + strings.Repeat(`,{"op":"copy","from":"","path":"/y"}`, 40)
	for name, c := range map[string]struct {
		log, at string
		refused bool
	}{
		"no such member":         {known + deltaLine(`[{"op":"replace","path":"/n","value":2},{"op":"remove","path":"/m"}]`), "/delta/1", true},
		"no such element":        {known + deltaLine(`[{"op":"add","path":"/l/2","value":2}]`), "/delta/0", true},
		"an odd number":          {known + deltaLine(`[{"op":"replace","path":"/l/00","value":2}]`), "/delta/0", true},
		"nothing around it":      {known + deltaLine(`[{"op":"add","path":"/m/x","value":2}]`), "/delta/0", true},
		"in a number":            {known + deltaLine(`[{"op":"add","path":"/n/x","value":2}]`), "/delta/0", true},
		"a test":                 {known + deltaLine(`[{"op":"replace","path":"/l","value":2},{"op":"test","path":"/l","value":3}]`), "/delta/1", true},
		"into itself":            {known + deltaLine(`[{"op":"move","from":"/l","path":"/l/0"}]`), "/delta/0", true},
		"copies of copies":       {known + deltaLine("["+bomb+"]"), "/delta/6", false},
		"a list that is unknown": {deltaLine(`[{"op":"add","path":"/l/-","value":2}]`), "/delta/0", false},
		"what another changed":   {deltaLine(`[{"op":"add","path":"/l","value":[1]}]`) + deltaLine(`[{"op":"add","path":"/l/-","value":1},{"op":"add","path":"/m/-","value":1}]`) + deltaLine(`[{"op":"remove","path":"/l/0"}]`), "/delta/0", false},
	} {
		t.Run(name, func(t *testing.T) {
			log := head + c.log + tail[1:] + "\n"
			read := func(strict bool) (events []agentevents.Event, losses []dialect.Loss, broken *agentevents.RuleError) {
				d := agui.NewDecoder(agui.Options{Strict: strict})
				for ev, err := range agentevents.NewReader(strings.NewReader(log), agentevents.ReaderOptions{Decoder: d}).All() {
					if err != nil {
						require.True(t, errors.As(err, &broken), err)
						continue
					}
					events = append(events, ev)
				}
				return events, d.Losses(), broken
			}
			events, losses, _ := read(false)
			last := events[len(events)-2]
			require.Equal(t, agentevents.Kind("STATE_DELTA"), last.Kind())
			require.True(t, slices.ContainsFunc(losses, func(l dialect.Loss) bool {
				return l.Kind == last.Kind() && l.What == dialect.Dropped && l.Pointer == c.at
			}), losses)
			if strings.HasPrefix(c.log, known) {
				require.JSONEq(t, `{"l":[1],"n":1}`, stateAfter(t, events, "run-1"))
			}
			_, _, broken := read(true)
			require.Equal(t, c.refused, broken != nil, broken)
			if c.refused {
				require.Equal(t, [2]string{string(agui.RuleState), c.at}, [2]string{string(broken.Rule), broken.Pointer})
			}
		})
	}
}

// A log of random JSON Patches has the states that a simple implementation of RFC 6902 has.
func TestRandomStateDeltas(t *testing.T) {
	rng := rand.New(rand.NewPCG(effort.Seed(t), 0))
	for range effort.Of(100, 1000, 100_000) {
		randomStateDeltas(t, rng)
	}
}

func randomStateDeltas(t *testing.T, rng *rand.Rand) {
	var doc any = map[string]any{"a": []any{1.0, map[string]any{"b": []any{}}}, "b": map[string]any{"0": 1.0}}
	known := rng.IntN(2) == 0
	log := head + deltaLine(`[{"op":"add","path":"","value":`+jsonOf(doc)+"}]")
	if known {
		log = head + snapshot(jsonOf(doc))
	}
	for range 1 + rng.IntN(6) {
		ops, next := []map[string]any{}, doc
		for range 1 + rng.IntN(4) {
			op := map[string]any{"op": oneOf(rng, []string{"add", "add", "replace", "remove", "move", "copy", "test"}), "path": pointerIn(rng, next)}
			switch op["op"] {
			case "move", "copy":
				op["from"] = pointerIn(rng, next)
			case "test":
				if op["value"], _ = get(next, split(op["path"].(string))); rng.IntN(4) > 0 {
					break
				}
				fallthrough
			default:
				op["value"] = oneOf(rng, []any{1.0, nil, "x", []any{2.0, 3.0}, map[string]any{"a": []any{4.0}}, map[string]any{}})
			}
			ops = append(ops, op)
			after, ok := apply(next, op)
			if next = after; !ok {
				break
			}
			if _, object := next.(map[string]any); !object {
				return // no native state is like this
			}
		}
		log += deltaLine(jsonOf(ops))
		if _, ok := applyAll(doc, ops); ok {
			doc = next
		}
	}
	events := decode(t, agui.Options{}, log)
	require.JSONEq(t, jsonOf(doc), stateAfter(t, events, "run-1"), log)
	lines, _ := encode(t, agui.EncoderOptions{}, events)
	require.JSONEq(t, jsonOf(doc), stateAfter(t, decode(t, agui.Options{}, lines), "run-1"), lines)
}

func oneOf[T any](rng *rand.Rand, list []T) T { return list[rng.IntN(len(list))] }

func jsonOf(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(text)
}

func split(pointer string) []string {
	if pointer == "" {
		return nil
	}
	return strings.Split(pointer[1:], "/")
}

// pointerIn draws a pointer of a place in a document, or near one.
func pointerIn(rng *rand.Rand, doc any) string {
	pointer := ""
	for range 1 + rng.IntN(3) {
		names := []string{"a", "b", "c", "0", "1", "-", "d.e", ""}
		if object, ok := doc.(map[string]any); ok {
			for name := range object {
				names = append(names, name, name)
			}
			slices.Sort(names)
		} else if list, ok := doc.([]any); ok {
			names = []string{"0", "1", "-", strconv.Itoa(len(list)), strconv.Itoa(max(0, len(list)-1)), "a"}
		}
		name := oneOf(rng, names)
		pointer += "/" + name
		doc, _ = get(doc, []string{name})
	}
	return pointer
}

// get, apply and applyAll are RFC 6902 on decoded documents, each operation on a copy.
func get(doc any, names []string) (any, bool) {
	for _, name := range names {
		switch v := doc.(type) {
		case map[string]any:
			next, ok := v[name]
			if doc = next; !ok {
				return nil, false
			}
		case []any:
			i, err := strconv.Atoi(name)
			if err != nil || i < 0 || i >= len(v) || strconv.Itoa(i) != name {
				return nil, false
			}
			doc = v[i]
		default:
			return nil, false
		}
	}
	return doc, true
}

func applyAll(doc any, ops []map[string]any) (any, bool) {
	for _, op := range ops {
		var ok bool
		if doc, ok = apply(doc, op); !ok {
			return doc, false
		}
	}
	return doc, true
}

func apply(doc any, op map[string]any) (any, bool) {
	path := split(op["path"].(string))
	switch op["op"] {
	case "test":
		is, ok := get(doc, path)
		return doc, ok && jsonOf(is) == jsonOf(op["value"])
	case "remove":
		return change(doc, path, "remove", nil)
	case "move", "copy":
		from := split(op["from"].(string))
		value, ok := get(doc, from)
		if ok && op["op"] == "move" {
			if len(path) > len(from) && slices.Equal(path[:len(from)], from) {
				return doc, false
			}
			doc, ok = change(doc, from, "remove", nil)
		}
		if !ok {
			return doc, false
		}
		return change(doc, path, "add", value)
	}
	return change(doc, path, op["op"].(string), op["value"])
}

func change(doc any, path []string, op string, value any) (any, bool) {
	if len(path) == 0 {
		return value, true
	}
	name, rest := path[0], path[1:]
	switch v := doc.(type) {
	case map[string]any:
		object := map[string]any{}
		for name, member := range v {
			object[name] = member
		}
		old, has := v[name]
		if !has && (len(rest) > 0 || op != "add") {
			return doc, false
		}
		if len(rest) == 0 && op == "remove" {
			delete(object, name)
			return object, true
		}
		next, ok := change(old, rest, op, value)
		object[name] = next
		return object, ok
	case []any:
		i, err := strconv.Atoi(name)
		if name == "-" {
			i, err, name = len(v), nil, strconv.Itoa(len(v))
		}
		inserts := len(rest) == 0 && op == "add"
		if err != nil || strconv.Itoa(i) != name || i < 0 || i > len(v) || i == len(v) && !inserts {
			return doc, false
		}
		list := slices.Clone(v)
		if inserts {
			return slices.Insert(list, i, value), true
		}
		if len(rest) == 0 && op == "remove" {
			return slices.Delete(list, i, i+1), true
		}
		next, ok := change(v[i], rest, op, value)
		list[i] = next
		return list, ok
	}
	return doc, false
}

// Appends to one list cost the decoder the same, however long the list is: on a line each, and
// on one line. So do removals on one line.
func TestLinearDeltas(t *testing.T) {
	for name, log := range map[string]func(n int) string{
		"appends": func(n int) string {
			return head + snapshot(`{"l":[]}`) + strings.Repeat(deltaLine(`[{"op":"add","path":"/l/-","value":"some note"}]`), n)
		},
		"appends on one line": func(n int) string {
			return head + snapshot(`{"l":[]}`) + deltaLine("["+strings.Repeat(`{"op":"add","path":"/l/-","value":"some note"},`, n)+`{"op":"add","path":"/n","value":1}]`)
		},
		"removals on one line": func(n int) string {
			return head + snapshot(`{"l":[0`+strings.Repeat(`,1`, n)+`]}`) + deltaLine("["+strings.Repeat(`{"op":"add","path":"/l/0","value":1},{"op":"remove","path":"/l/0"},`, n/10)+`{"op":"add","path":"/n","value":1}]`)
		},
	} {
		t.Run(name, func(t *testing.T) {
			scale.Linear(t, 1000, func(n int) func() {
				text := log(n)
				return func() { require.NotEmpty(t, decode(t, agui.Options{}, text), fmt.Sprint(n)) }
			})
		})
	}
}
