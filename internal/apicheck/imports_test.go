// Package apicheck tests rules of the module that the compiler does not check: the imports of each
// package, the requirements of the root's go.mod, and that exported names have comments.
package apicheck

import (
	"bytes"
	"encoding/json"
	"io"
	"os/exec"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const module = "github.com/agentevents/agentevents"

// A layer is a set of packages, and the packages that they may import besides the
// standard library. Import paths are relative to the module: "." is the root, and a
// trailing "/..." means a subtree.
type layer struct {
	packages string
	allowed  []string
	why      string
}

// layers are the layers of the module. The first match decides.
var layers = []layer{
	{"internal/extra", []string{"internal/jsonwire"},
		"extra members are kept as JSON text"},
	{"internal/secret", []string{"internal/jsonwire"},
		"secrets are found in JSON text, too"},
	{"internal/scale", []string{"internal/cputime"},
		"costs are compared by the CPU time that they take"},
	{"internal/secret/corpus", []string{"internal/jsonwire"},
		"texts are planted in JSON text, too"},
	{"internal/deal", []string{"internal/reuse"},
		"texts that are dealt out are many in one piece of memory"},
	{"internal/facts", []string{"internal/jsonwire"},
		"the demands of schemas are about JSON text"},
	{"internal/foreign", []string{"internal/jsonwire"},
		"programs are told by the JSON text of their lines"},
	{"internal/lines", []string{"internal/chain", "internal/disk"},
		"a chain adds to a line and not to its length, and files are opened in one place"},
	{"internal/readback", []string{".", "dialect", "internal/jsonwire"},
		"the suite of the dialects and the command compare what comes back; neither may import the other"},
	{"internal/spans", []string{".", "internal/endword"},
		"the mapping is that of the live hook and of the export, and needs only the events"},
	{"internal/replay", []string{".", "internal/spans"},
		"the command and the exporter map logs alike"},
	{"internal/view", []string{".", "internal/endword", "internal/jsonwire"},
		"the views of a run say the same of a snapshot, and of what a call asks for"},
	{"internal/rundiff", []string{".", "internal/endword", "internal/jsonwire", "internal/textdiff", "internal/view"},
		"the command and the tests of programs compare what agents did by one definition"},
	{"internal/stats", []string{".", "findings", "internal/endword", "internal/jsonwire", "internal/sessions", "internal/view"},
		"the figures of runs come from events and their folds; their definitions are too young for a public package"},
	{"internal/pack", []string{"internal/reuse"},
		"packed texts lie in the memory that folds reuse"},
	{"internal/index", []string{"internal/disk"},
		"what is known about files is written as content is"},
	{"internal/genhome", []string{"internal/disk"},
		"made sessions are written as content is"},
	{"internal/...", nil,
		"internal packages are leaves: they handle bytes, files or Go source, and know nothing of events"},
	{".", []string{"internal/canonjson", "internal/chain", "internal/secret", "internal/deal", "internal/endword", "internal/extra", "internal/firsterrs", "internal/foreign", "internal/jsonwire", "internal/lines", "internal/option", "internal/pack", "internal/reentry",
		"internal/queue", "internal/reuse", "internal/roster", "internal/sessions", "internal/turns", "internal/uuid7", "internal/wallclock", "github.com/google/uuid"},
		"every program imports the root, so it needs only google/uuid at run time"},
	{"adapter/modelhttp/internal/frames", nil,
		"the frames of AWS are bytes"},
	{"adapter/modelhttp", []string{".", "adapter/modelhttp/internal/frames"},
		"model calls are recorded in every program that makes them, with the standard library alone"},
	{"adapter/modelhttp/cassette", []string{".", "adapter/modelhttp/internal/frames", "internal/disk", "internal/jsonwire", "internal/textdiff"},
		"what is recorded and played is HTTP; only tests need it"},
	{"capture", []string{".", "capture/claude", "capture/internal/...", "internal/foreign", "internal/jsonwire", "internal/lines", "internal/option"},
		"it has the readers of all programs"},
	{"capture/...", []string{".", "capture/internal/...", "internal/endword", "internal/foreign", "internal/jsonwire", "internal/lines", "internal/option", "github.com/google/uuid"},
		"readers of foreign streams need the vocabulary and the wire primitives, never each other or a command"},
	{"columns", []string{".", "internal/endword", "internal/jsonwire", "internal/view"},
		"rows are made of events and their folds, in the words of the other views"},
	{"dialect", []string{".", "dialect/internal/recent", "internal/foreign", "internal/jsonwire"},
		"the contract of the dialects must not depend on a dialect"},
	{"dialect/dialecttest", []string{".", "dialect", "internal/readback"},
		"the suite knows only the contract: the test passes the dialect in"},
	{"dialect/openwop/discovery", []string{".", "dialect/openwop/host"},
		"HTTP stays out of the dialect, and needs only what it serves and the events that this declares"},
	{"dialect/openwop/internal/schemas", []string{".", "dialect", "internal/facts", "internal/jsonwire"},
		"the demands of a document need its facts and the vocabulary, not the dialect"},
	{"dialect/openwop/host", []string{".", "dialect/openwop", "dialect/openwop/internal/schemas", "internal/jsonwire"},
		"a host needs the events and the ids of the document"},
	{"dialect/openwop/snapshot", []string{".", "dialect", "dialect/internal/engine", "dialect/openwop", "dialect/openwop/internal/schemas", "internal/facts", "internal/jsonwire"},
		"a snapshot is another document than the lines"},
	{"dialect/openwop", []string{".", "dialect", "dialect/internal/engine", "dialect/openwop/internal/schemas", "internal/endword", "internal/facts", "internal/jsonwire"},
		"the dialect needs the vocabulary, the contract, the engine and the facts of its schemas"},
	{"dialect/...", []string{".", "dialect", "dialect/internal/recent", "dialect/internal/engine", "internal/endword", "internal/jsonwire"},
		"a dialect needs the vocabulary, the contract and the engine, never another dialect"},
	{"eventtest", []string{".", "findings", "internal/disk", "internal/jsonwire", "internal/rundiff"},
		"tests of programs need the vocabulary, the JSON text of events and how runs differ; what is more would be a dependency of every test"},
	{"findings", []string{".", "internal/canonjson", "internal/endword", "internal/jsonwire", "internal/option", "internal/view"},
		"the patterns of a run come from its events, as a fold of their own"},
	{"hooks", []string{".", "findings", "internal/endword", "internal/jsonwire", "internal/option"},
		"what a host would write itself needs only what a host has"},
	{"live", []string{".", "internal/jsonwire", "internal/reuse"},
		"a sink that is read over HTTP needs only the root and the standard library"},
	{"logfile", []string{".", "internal/chain", "internal/disk", "internal/option"},
		"a log on disk needs the events and the standard library"},
	{"otlpjson", []string{".", "internal/jsonwire", "internal/option", "internal/replay", "internal/spans"},
		"logs are exported with the standard library alone"},
	{"resume", []string{".", "internal/firsterrs"},
		"a plan is made of a snapshot"},
	{"inbox", []string{"."},
		"commands are routed and recorded"},
	{"playback", []string{".", "internal/option"},
		"a player needs only the events and their fold"},
	{"runstore", []string{".", "internal/chain", "internal/disk", "internal/firsterrs", "internal/jsonwire", "logfile"},
		"runs are stored in a log on disk, with the standard library alone"},
	{"runstore/runstoretest", []string{".", "runstore"},
		"the suite knows only the contract: the test passes the store in"},
	{"query", []string{"."},
		"production programs ask agents through it, and need no more than the events"},
	{"querytest", []string{".", "capture/claude", "dialect/openharness", "internal/disk", "internal/jsonwire", "internal/textdiff", "query"},
		"fixtures are of three forms, and only tests need them"},
	{"report", []string{".", "findings", "internal/endword", "internal/jsonwire", "internal/view", "github.com/google/uuid"},
		"a view of snapshots needs only the root, and how a word for an end is meant"},
	{"tree", []string{".", "internal/endword", "internal/view", "report"},
		"a tree draws the items of a report"},
	{"view", []string{".", "live", "report", "internal/endword", "internal/replay", "internal/rundiff", "internal/spans", "internal/view"},
		"a page shows the figures of the other views, so it takes them from the same packages"},
	{"cmd/...", []string{".", "findings", "logfile", "otlpjson", "playback", "query", "querytest", "report", "tree", "view", "capture/...", "dialect/...", "internal/chain", "internal/disk", "internal/endword", "internal/foreign", "internal/homes", "internal/index", "internal/jsonwire", "internal/lines",
		"internal/readback", "internal/replay", "internal/rundiff", "internal/spans", "internal/stats", "internal/view"},
		"the command may use every package of the module, but no dependency of its own"},
	{"examples/...", []string{".", "live", "query", "resume", "runstore", "tree"},
		"examples use only what a user needs"},
}

// testOnly are packages that the tests of every package may import.
var testOnly = []string{"github.com/stretchr/testify/...", ".", "dialect/...", "adapter/...", "capture/...", "eventtest", "findings", "hooks", "live", "logfile", "otlpjson", "inbox", "playback", "query", "querytest", "resume", "runstore", "runstore/runstoretest", "report", "tree", "internal/canary", "internal/cputime", "internal/effort", "internal/readback", "internal/scale", "internal/stats", "internal/secret/corpus", "internal/txtar"}

type listed struct {
	ImportPath                         string
	Imports, TestImports, XTestImports []string
}

func TestImports(t *testing.T) {
	cmd := exec.Command("go", "list", "-json=ImportPath,Imports,TestImports,XTestImports", module+"/...")
	cmd.Env = append(cmd.Environ(), "GOWORK=off") // only the root module
	cmd.Dir = "../.."
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	require.NoError(t, err, stderr.String())
	count := 0
	for dec := json.NewDecoder(bytes.NewReader(out)); ; count++ {
		var p listed
		if err := dec.Decode(&p); err == io.EOF {
			break
		} else {
			require.NoError(t, err)
		}
		check(t, p)
	}
	require.Greater(t, count, 4, "go list found too few packages: %s", out)
}

func check(t *testing.T, p listed) {
	name := relative(p.ImportPath)
	i := slices.IndexFunc(layers, func(l layer) bool { return matches(l.packages, name) })
	if i < 0 {
		t.Errorf("%s has no layer: add it to layers with the packages that it may import", p.ImportPath)
		return
	}
	l := layers[i]
	for _, imp := range p.Imports {
		if !standard(imp) && !slices.ContainsFunc(l.allowed, func(a string) bool { return matches(a, relative(imp)) }) {
			t.Errorf("%s imports %s.\nAllowed besides the standard library: %s.\nReason: %s.", p.ImportPath, imp, list(l.allowed), l.why)
		}
	}
	for _, imp := range append(p.TestImports, p.XTestImports...) {
		allowed := append(slices.Clone(l.allowed), append(testOnly, name)...)
		if !standard(imp) && !slices.ContainsFunc(allowed, func(a string) bool { return matches(a, relative(imp)) }) {
			t.Errorf("a test of %s imports %s.\nTests may also import: %s.\nReason: a test with more dependencies belongs in a nested module.", p.ImportPath, imp, list(testOnly))
		}
	}
}

// TestRequirements checks the requirements of the root's go.mod that the README states.
func TestRequirements(t *testing.T) {
	cmd := exec.Command("go", "mod", "edit", "-json")
	cmd.Env = append(cmd.Environ(), "GOWORK=off")
	cmd.Dir = "../.."
	out, err := cmd.Output()
	require.NoError(t, err)
	var mod struct {
		Require []struct {
			Path     string
			Indirect bool
		}
		Replace []any
		Tool    []any
	}
	require.NoError(t, json.Unmarshal(out, &mod))
	var direct []string
	for _, r := range mod.Require {
		if !r.Indirect {
			direct = append(direct, r.Path)
		}
	}
	require.ElementsMatch(t, []string{"github.com/google/uuid", "github.com/stretchr/testify"}, direct,
		"the root may require only google/uuid and, for tests, testify; code with more dependencies belongs in a nested module")
	require.Empty(t, mod.Replace, "the root must have no replace, which programs that import it ignore")
	require.Empty(t, mod.Tool, "tools belong in nested modules: in the root they join every user's module graph")
}

func relative(imp string) string {
	if imp == module {
		return "."
	}
	return strings.TrimPrefix(imp, module+"/")
}

func matches(pattern, name string) bool {
	if tree, ok := strings.CutSuffix(pattern, "/..."); ok {
		return name == tree || strings.HasPrefix(name, tree+"/")
	}
	return path.Clean(pattern) == name
}

func standard(imp string) bool {
	first, _, _ := strings.Cut(imp, "/")
	return !strings.Contains(first, ".")
}

func list(names []string) string {
	if len(names) == 0 {
		return "nothing"
	}
	return strings.Join(names, ", ")
}
