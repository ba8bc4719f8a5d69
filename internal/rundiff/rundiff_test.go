package rundiff

import (
	"bytes"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/internal/scale"
	"github.com/agentevents/agentevents/internal/txtar"
)

var update = flag.Bool("update", false, "write the golden files; read the diff before you commit it")

// parse reads a log in short form. A line is an agent, a kind and a payload. After the agent there
// may be its parent and the run: sub<main@r2. The agent - is the run itself, and #n is node n. {}
// may be left out, and so may the kind's "agent.".
func parse(t testing.TB, text string) *Log {
	t.Helper()
	var log Log
	next := map[string]uint64{}
	for line := range strings.Lines(text) {
		who, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		kind, payload, _ := strings.Cut(rest, " ")
		if payload == "" {
			payload = "{}"
		}
		who, run, ok := strings.Cut(who, "@")
		if !ok {
			run = "r"
		}
		agent, parent, _ := strings.Cut(who, "<")
		var ev agentevents.Event
		id := fmt.Sprintf("%p-%d", &log, next[run])
		require.NoError(t, ev.UnmarshalJSON(fmt.Appendf(nil, `{"id":%q,"sequence":%d,"timestamp":"2026-05-05T09:00:%02dZ","type":%q,"runId":%q,"payload":%s}`, id, next[run], next[run]%60, kind, run, payload)), line)
		next[run]++
		if node, ok := strings.CutPrefix(agent, "#"); ok {
			ev.NodeID = node
		} else if agent != "-" {
			ev.AgentID = agent
		}
		ev.ParentAgentID = parent
		require.NoError(t, log.Add(&ev))
	}
	return &log
}

// TestGolden compares the logs of the files, which are read by people: read the diff.
func TestGolden(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			archive := txtar.Parse(string(text))
			a, b := parse(t, archive.Get("a")), parse(t, archive.Get("b"))
			laws(t, a, b)
			var got strings.Builder
			require.NoError(t, Compare(a, b).Write(&got, Options{}))
			if *update {
				archive.Files = archive.Files[:2]
				archive.Add("diff", got.String())
				require.NoError(t, os.WriteFile(file, []byte(archive.String()), 0o644))
			}
			require.Equal(t, archive.Get("diff"), got.String())
		})
	}
}

// laws requires the properties of any two logs.
func laws(t require.TestingT, a, b *Log) {
	for _, log := range []*Log{a, b} {
		self := Compare(log, log)
		require.True(t, self.Same, "a log equals itself")
		for _, run := range self.Runs {
			require.True(t, run.Same)
			for _, agent := range run.Agents {
				require.LessOrEqual(t, len(agent.Acts), 1)
			}
			for _, total := range run.Totals {
				require.Equal(t, total.A, total.B)
			}
		}
	}
	there, back := Compare(a, b), Compare(b, a)
	require.Equal(t, facts(there, false), facts(back, true), "B and A differ as A and B do")
	for _, run := range there.Runs {
		for _, agent := range run.Agents {
			acts, differ := [2]int{}, agent.A == nil || agent.B == nil || agent.A.Status != agent.B.Status
			for _, s := range agent.Acts {
				differ = differ || s.Same == 0
				acts[0], acts[1] = acts[0]+s.Same, acts[1]+s.Same
				if s.A != nil {
					acts[0]++
				}
				if s.B != nil {
					acts[1]++
				}
				require.Equal(t, s.A != nil && s.B != nil, len(s.Changes) > 0, "both have it, and it differs")
			}
			require.Equal(t, !differ, agent.Same)
			require.True(t, agent.Same || !run.Same && !there.Same)
			for i, p := range []*Party{agent.A, agent.B} {
				if p != nil {
					require.Equal(t, p.Acts, acts[i], "no act is lost")
				} else {
					require.Zero(t, acts[i])
				}
			}
		}
	}
}

// facts returns the lines of a report, in any order: the things that A has, that B has, or both.
func facts(r *Report, mirrored bool) []string {
	facts := []string{fmt.Sprint(r.Same)}
	say := func(what string, a, b any) {
		if mirrored {
			a, b = b, a
		}
		facts = append(facts, fmt.Sprintf("%s: %+v | %+v", what, a, b))
	}
	for _, run := range r.Runs {
		of := ""
		ids := func(p *Party) string {
			if p == nil {
				return "none"
			}
			return fmt.Sprintf("%+v", *p)
		}
		say("run", ids(run.A), ids(run.B))
		of = facts[len(facts)-1]
		for _, t := range run.Totals {
			say(of+t.Name, t.A, t.B)
		}
		for _, agent := range run.Agents {
			say(of+"agent", ids(agent.A), ids(agent.B))
			of := facts[len(facts)-1]
			for _, s := range agent.Acts {
				if s.Same > 0 {
					continue
				}
				one := func(a *Act) string {
					if a == nil {
						return "none"
					}
					return fmt.Sprintf("%+v", *a)
				}
				say(of+"act", one(s.A), one(s.B))
				act := facts[len(facts)-1]
				for _, c := range s.Changes {
					say(act+"change", c.A, c.B)
				}
			}
		}
	}
	slices.Sort(facts)
	return facts
}

// A left-out element has no match that the lists would allow, and pieces do not lose any.
func TestAlign(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		letters := 1 + rng.IntN(4)
		list := func() []uint64 {
			out := make([]uint64, rng.IntN(12))
			for i := range out {
				out[i] = rng.Uint64N(uint64(letters))
			}
			return out
		}
		a, b := list(), list()
		require.Equal(t, longest(a, b), aligned(t, a, b), "%v %v", a, b)

		var there, back [][2]int
		alignSums(slices.Compare(a, b) > 0, a, b, func(i, j int) { there = append(there, [2]int{i, j}) })
		alignSums(slices.Compare(b, a) > 0, b, a, func(j, i int) { back = append(back, [2]int{i, j}) })
		require.Len(t, there, longest(a, b))
		require.Equal(t, there, back, "%v %v", a, b)
	}
}

// aligned returns the length of an alignment, which has to be one.
func aligned(t testing.TB, a, b []uint64) (n int) {
	i, j := -1, -1
	align(len(a), len(b), func(i, j int) bool { return a[i] == b[j] }, func(x, y int) {
		if x <= i || y <= j || a[x] != b[y] {
			t.Fatalf("%d and %d do not follow %d and %d", x, y, i, j)
		}
		i, j = x, y
		n++
	})
	return n
}

// longest returns the length of the longest common subsequence.
func longest(a, b []uint64) int {
	row := make([]int, len(b)+1)
	for _, x := range a {
		diagonal := 0
		for j, y := range b {
			above := row[j+1]
			if x == y {
				row[j+1] = diagonal + 1
			} else {
				row[j+1] = max(row[j], above)
			}
			diagonal = above
		}
	}
	return row[len(b)]
}

// With many differences an alignment is found in pieces, which are good enough.
func TestAlignManyDifferences(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	var a, b []uint64
	common := 0
	for i := range uint64(20_000) {
		switch rng.IntN(3) {
		case 0:
			a = append(a, i)
		case 1:
			b = append(b, i)
		default:
			a, b = append(a, i), append(b, i)
			common++
		}
	}
	require.Greater(t, len(a)+len(b)-2*common, 20*mostEdits)
	require.Greater(t, aligned(t, a, b), common*9/10)
	require.Equal(t, 0, aligned(t, slices.Repeat([]uint64{1}, 5000), slices.Repeat([]uint64{2}, 7000)))
	require.Equal(t, 5000, aligned(t, slices.Repeat([]uint64{1}, 5000), slices.Repeat([]uint64{1}, 7000)))
}

// A run of 100,000 acts is compared like one of 1,000: differences in a few places are found there.
func TestLongRuns(t *testing.T) {
	for _, n := range []int{1000, 100_000} {
		if n > 1000 && testing.Short() {
			return
		}
		write := func(changed, missing int) *Log {
			var log Log
			for i := range n {
				path := fmt.Sprint("f", i%97)
				switch i {
				case missing:
					continue
				case changed:
					path = "other"
				}
				ev := agentevents.Event{RunID: "r", AgentID: "a", Sequence: uint64(i), Payload: &agentevents.ToolReturned{
					CallID: fmt.Sprint("c", i), ToolID: []string{"Read", "Grep", "Bash"}[i%3], Status: "ok", OneEvent: true,
					Arguments: agentevents.JSON(fmt.Sprintf(`{"path":%q}`, path)), Result: agentevents.JSON(fmt.Sprint(i % 11)),
				}}
				require.NoError(t, log.Add(&ev))
			}
			return &log
		}
		r := Compare(write(n/2, n/4), write(-1, n-n/5))
		steps := r.Runs[0].Agents[0].Acts
		require.Len(t, steps, 7)
		require.Equal(t, n/4, steps[0].Same)
		require.Equal(t, uint64(n/4), steps[1].B.Sequence)
		require.Equal(t, []Change{{At: "/arguments/path", A: `"other"`, B: agentevents.JSON(fmt.Sprintf(`"f%d"`, n/2%97))}}, steps[3].Changes)
		require.Equal(t, uint64(n-n/5), steps[5].A.Sequence)
	}
}

// TestLinear compares runs with many of one thing, with another run that has half of them
// twice, and runs that have nothing in common.
func TestLinear(t *testing.T) {
	if testing.Short() {
		t.Skip("it compares times")
	}
	read := func(text []byte, change func(i int, ev *agentevents.Event)) *Log {
		var log Log
		i := 0
		for ev, err := range agentevents.NewReader(bytes.NewReader(text), agentevents.ReaderOptions{}).All() {
			require.NoError(t, err)
			change(i, &ev)
			require.NoError(t, log.Add(&ev))
			i++
		}
		return &log
	}
	for _, shape := range scale.Shapes() {
		t.Run(shape.Name, func(t *testing.T) {
			scale.Linear(t, 300, func(n int) func() {
				text := shape.Log(n)
				return func() {
					a := read(text, func(int, *agentevents.Event) {})
					b := read(text, func(i int, ev *agentevents.Event) {
						if i%2 == 0 && ev.AgentID != "" {
							ev.AgentID += "x"
						}
					})
					var out bytes.Buffer
					require.NoError(t, Compare(a, b).Write(&out, Options{All: true}))
				}
			})
		})
	}
	for _, c := range []struct{ name, a, b string }{
		{"nothing in common", "a%d", "b%d"},
		{"in reverse", "t%d", "t-%d"},
		{"all changed", "t", "t"},
	} {
		t.Run(c.name, func(t *testing.T) {
			write := func(n int, tool string, from, step int) *Log {
				var log Log
				for i := range n {
					id := strings.Replace(strings.Replace(tool, "-%d", fmt.Sprint(n-i), 1), "%d", fmt.Sprint(i), 1)
					ev := agentevents.Event{RunID: "r", Sequence: uint64(i), Payload: &agentevents.ToolCalled{CallID: fmt.Sprint(i), ToolID: id, Arguments: agentevents.JSON(fmt.Sprintf("[%d]", from+i*step))}}
					require.NoError(t, log.Add(&ev))
				}
				return &log
			}
			scale.Linear(t, 2*mostEdits, func(n int) func() {
				a, b := write(n, c.a, 0, 1), write(n, c.b, -1, -1)
				return func() { Compare(a, b) }
			})
		})
	}
}

// BenchmarkCompare compares runs of 100,000 calls, and reads them for comparison.
func BenchmarkCompare(b *testing.B) {
	read := func(tool string, odd int) *Log {
		var log Log
		for i := range 100_000 {
			p := &agentevents.ToolReturned{CallID: "c", ToolID: fmt.Sprint(tool, i), Status: "ok", OneEvent: true, Arguments: `{"path":"main.go"}`}
			if i == odd {
				p.Result = `"odd"`
			}
			require.NoError(b, log.Add(&agentevents.Event{RunID: "r", AgentID: "a", Sequence: uint64(i), Payload: p}))
		}
		return &log
	}
	alike, other, strange := read("t", 1), read("t", 50_000), read("u", 0)
	b.Run("read two", func(b *testing.B) {
		for b.Loop() {
			read("t", 1)
			read("t", 2)
		}
	})
	b.Run("alike", func(b *testing.B) {
		for b.Loop() {
			Compare(alike, other)
		}
	})
	b.Run("nothing in common", func(b *testing.B) {
		for b.Loop() {
			Compare(alike, strange)
		}
	})
	there, back := make([]uint64, 100_000), make([]uint64, 100_000)
	for i := range there {
		there[i], back[len(back)-1-i] = uint64(i), uint64(i)
	}
	b.Run("in reverse", func(b *testing.B) { // the worst of all
		for b.Loop() {
			alignSums(false, there, back, func(i, j int) {})
		}
	})
}

// kept are the members of the vocabulary that are ids or times and have a meaning of their own,
// though no act is about them.
var kept = setOf("failedNodeId", "approvedBy", "rejectedBy", "answeredBy", "groupId", "memoryRef", "id", "itemId", "timeoutMs", "ttlMs", "typeId")

// Somebody has decided for every id and every measure whether it differs between any two runs.
func TestVocabulary(t *testing.T) {
	measures := []reflect.Type{reflect.TypeFor[time.Duration](), reflect.TypeFor[time.Time](), reflect.TypeFor[agentevents.Usage](), reflect.TypeFor[agentevents.Totals](), reflect.TypeFor[map[string]agentevents.Usage]()}
	seen := map[string]bool{}
	var walk func(of string, typ reflect.Type)
	walk = func(of string, typ reflect.Type) {
		for i := range typ.NumField() {
			f := typ.Field(i)
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if name == "" {
				continue
			}
			seen[name] = true
			typ := f.Type
			if strings.HasPrefix(typ.Name(), "Opt[") {
				typ = typ.Field(0).Type
			}
			if f.Tag.Get("class") == "id" || slices.Contains(measures, typ) {
				require.True(t, varies[name] || refs[name] || subjects[name] || kept[name], "%s of %s: does it differ between any two runs?", name, of)
			}
			if typ.Kind() == reflect.Slice {
				typ = typ.Elem()
			}
			if typ.Kind() == reflect.Struct && !slices.Contains(measures, typ) {
				require.True(t, typed[name], "%s of %s has members", name, of)
				walk(of+"/"+name, typ)
			}
		}
	}
	for k := range agentevents.Kinds() {
		walk(string(k.Kind), reflect.TypeOf(agentevents.NewPayload(k.Kind)).Elem())
	}
	for _, set := range []map[string]bool{varies, typed, refs, subjects, asks, kept} {
		for name := range set {
			require.True(t, seen[name] || name == "parentAgentId", "%s is not a member", name)
		}
	}
	for _, name := range append(details, "status", "outcome") {
		require.True(t, seen[name], "%s is not a member", name)
	}
}

// Any two logs are compared, and the laws of two logs hold for them.
func FuzzCompare(f *testing.F) {
	files, err := filepath.Glob("testdata/*.txtar")
	require.NoError(f, err)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(f, err)
		archive := txtar.Parse(string(text))
		f.Add(archive.Get("a"), archive.Get("b"))
	}
	f.Fuzz(func(t *testing.T, textA, textB string) {
		read := func(text string) *Log {
			var log Log
			next := map[string]uint64{}
			for line := range strings.Lines(text) {
				who, rest, _ := strings.Cut(strings.ToValidUTF8(strings.TrimSpace(line), "x"), " ")
				kind, payload, _ := strings.Cut(rest, " ")
				agent, run, _ := strings.Cut(who, "@")
				agent, parent, _ := strings.Cut(agent, "<")
				var ev agentevents.Event
				if ev.UnmarshalJSON(fmt.Appendf(nil, `{"id":"e","sequence":%d,"timestamp":"2026-05-05T09:00:00Z","type":%s,"runId":%s,"payload":%s}`,
					next[run], agentevents.JSONString(kind), agentevents.JSONString(run+"r"), payload)) != nil {
					continue
				}
				next[run]++
				ev.AgentID, ev.ParentAgentID = agent, parent
				require.NoError(t, log.Add(&ev))
			}
			return &log
		}
		a, b := read(textA), read(textB)
		laws(t, a, b)
		var text strings.Builder
		require.NoError(t, Compare(a, b, "query").Write(&text, Options{All: true, Width: -1, Color: true}))
		require.True(t, utf8.ValidString(text.String()))
		require.NotContains(t, strings.NewReplacer("\x1b[31m", "", "\x1b[32m", "", "\x1b[33m", "", "\x1b[0m", "").Replace(text.String()), "\x1b")
	})
}
