package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The root package's tests cover the shapes that its payloads use. Here are all other shapes, and
// the shapes that the generator refuses.

const fixture = `package agentevents

type Kind string

const KindPing Kind = "ping"

var catalog = [...]KindInfo{
	{Kind: KindPing},
}

type Ping struct {
	Text string ` + "`json:\"text\" class:\"content\"`" + `

	extra extras
}
`

// writeFixture writes one source file into a new folder and returns it.
func writeFixture(t *testing.T, source string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "fixture.go"), []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestErrors(t *testing.T) {
	field := func(decl string) string { // in place of Ping's field
		return strings.Replace(fixture, `Text string `+"`json:\"text\" class:\"content\"`", decl, 1)
	}
	after := func(decl string) string { return fixture + "\n" + decl }
	const part = "\ntype Part struct{ A int `json:\"a\"` }\n"
	for _, test := range []struct {
		name   string
		source string
		want   string
	}{
		{"no class", field("Text string `json:\"text\"`"), `fixture.go:12: Ping.Text: no class tag: add class:"id", "meta", "content" or "secret"`},
		{"bad class", field("Text string `json:\"text\" class:\"private\"`"), `Ping.Text: class "private": want id, meta, content or secret`},
		{"no tag", field("Text string"), `Ping.Text: no json tag`},
		{"bad name", field("Text string `json:\"te xt\" class:\"id\"`"), `Ping.Text: json name "te xt"`},
		{"omitempty", field("Text string `json:\"text,omitempty\" class:\"id\"`"), `Ping.Text: json option "omitempty": only omitzero`},
		{"two names", field("A string `json:\"a\" class:\"id\"`\nB string `json:\"a\" class:\"id\"`"), `fixture.go:13: Ping.B: json name "a" is taken by A`},
		{"type", field("Text chan int `json:\"text\" class:\"id\"`"), `Ping.Text: type ChanType: not supported`},
		{"array", field("Text [2]int `json:\"text\" class:\"id\"`"), `Ping.Text: type […]int: not supported`},
		{"int32", field("Text int32 `json:\"text\" class:\"id\"`"), `Ping.Text: type int32: not supported`},
		{"named int", field("Text Num `json:\"text\" class:\"id\"`") + "\ntype Num int\n", `Ping.Text: type Num: not supported`},
		{"map key", field("Text map[int]string `json:\"text\" class:\"id\"`"), `the keys of a map are strings`},
		{"pointer", field("Text *string `json:\"text\" class:\"id\"`"), `Ping.Text: type *string: not supported`},
		{"opt of slice", field("Text Opt[[]string] `json:\"text,omitzero\" class:\"id\"`"), `type Opt[[]string]: not supported`},
		{"slice of opt", field("Text []Opt[string] `json:\"text\" class:\"id\"`"), `type []Opt[string]: not supported`},
		{"required opt", field("Text Opt[int] `json:\"text\" class:\"id\"`"), `Ping.Text: an Opt is optional: add omitzero, or use int`},
		{"embedded", field("Other"), `Ping: embedded Other: not supported`},
		{"embedded pointer", after(part + "type Whole struct{ *Part\nB int `json:\"b\"` }"), `Whole: embedded *Part: not supported`},
		{"embedded with a tag", after(part + "type Whole struct{ Part `json:\"part\"` }"), `Whole: embedded Part: has a tag`},
		{"embedded in a payload", field("Part\nB int `json:\"b\" class:\"id\"`") + part, `Ping: embedded Part: only a record embeds`},
		{"hidden field", after(part + "type Whole struct{ Part\nA int `json:\"b\"` }"), `Whole.A: hides the field of the embedded Part`},
		{"embedded name", after(part + "type Whole struct{ Part\nB int `json:\"a\"` }"), `Whole.B: json name "a" is taken by A`},
		{"unexported in a payload", field("text string `wire:\"text\" class:\"id\"`"), `Ping.text: only a record has unexported fields`},
		{"bytes in a payload", field("Text []byte `json:\"text\" class:\"id\"`"), `Ping.Text: []byte is for records`},
		{"bare struct", field("Text Bare `json:\"text\" class:\"id\"`") + "\ntype Bare struct{ A int }\n", `Ping.Text: type Bare: none of its fields has a json or wire tag`},
		{"optional struct", field("Text Part `json:\"text,omitzero\" class:\"id\"`") + "\ntype Part struct{ A int `json:\"a\" class:\"id\"`\nextra extras }\n", `Ping.Text: an optional struct is written Opt[Part]`},
		{"record inside", field("Text []Part `json:\"text\" class:\"id\"`") + "\ntype Part struct{ A int `json:\"a\"` }\n", `Ping.Text: Part stands inside a payload and has no field extra`},
		{"no class in a value", after("type Part struct{ A int `json:\"a\"`\nextra extras }"), `Part.A: no class tag`},
		{"check word", field("Text string `json:\"text\" class:\"id\" check:\"positive\"`"), `Ping.Text: check "positive": want required, min=N or unit`},
		{"check min", field("Text int `json:\"text\" class:\"id\" check:\"min=x\"`"), `Ping.Text: check "min=x": want a whole number`},
		{"check type", field("Text int `json:\"text\" class:\"id\" check:\"unit\"`"), `Ping.Text: check "unit": is for float64, not int`},
		{"check required", field("Text bool `json:\"text\" class:\"id\" check:\"required\"`"), `Ping.Text: check "required": is for strings, slices and maps, not bool`},
		{"broken word", field("Text JSON `json:\"text\" class:\"content\" broken:\"list\"`") + "\ntype JSON string\n", `Ping.Text: broken "list": write broken:"object" or broken:"TextText", on JSON`},
		{"broken type", field("Text string `json:\"text\" class:\"content\" broken:\"object\"`"), `Ping.Text: broken "object": write broken:"object" or broken:"TextText", on JSON`},
		{"check in a record", after("type Part struct{ A int `json:\"a\" check:\"min=1\"` }"), `Part.A: check: records are not checked`},
		{"no extra", strings.Replace(fixture, "extra extras", "", 1), `fixture.go:11: Ping: a payload needs the field: extra extras`},
		{"no row", after(`const KindPong Kind = "pong"` + "\ntype Pong struct{ extra extras }\n"), `fixture.go:17: KindPong has no row in the catalog; add {Kind: KindPong, …}`},
		{"no struct", strings.Replace(fixture, "\t{Kind: KindPing},", "\t{Kind: KindPing},\n\t{Kind: KindPong},", 1) + "\nconst KindPong Kind = \"pong\"\n", `fixture.go:9: catalog: KindPong has no payload; declare the struct Pong`},
		{"no constant", strings.Replace(fixture, "{Kind: KindPing},", "{Kind: KindPing}, {Kind: KindPong},", 1), `KindPong is not a constant of type Kind; declare it`},
		{"two rows", strings.Replace(fixture, "{Kind: KindPing},", "{Kind: KindPing}, {Kind: KindPing},", 1), `KindPing has two rows`},
		{"odd row", strings.Replace(fixture, "{Kind: KindPing},", `{Kind: "ping"},`, 1), `catalog: write the row as {Kind: KindName, …}`},
		{"too many fields", field(manyFields(65)), `Ping: 65 fields, at most 64 are supported`},
		{"too many fields of a record", after("type Part struct{\n" + manyFields(129) + "}"), `Part: 129 fields, at most 128 are supported`},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := generate(writeFixture(t, test.source))
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v\nwant %s", err, test.want)
			}
		})
	}
}

func manyFields(n int) string {
	var b strings.Builder
	for i := range n {
		name := string(rune('A'+i/26)) + string(rune('a'+i%26))
		b.WriteString(name + " string `json:\"" + name + "\" class:\"id\"`\n")
	}
	return b.String()
}

func TestErrorsAreAllReported(t *testing.T) {
	source := strings.Replace(fixture, "`json:\"text\" class:\"content\"`", "\nOther string `json:\"other\"`", 1)
	_, err := generate(writeFixture(t, source))
	if err == nil || strings.Count(err.Error(), "\n") != 1 {
		t.Errorf("want two errors, got %v", err)
	}
}

func TestSixtyFourFields(t *testing.T) {
	source := strings.Replace(fixture, "Text string `json:\"text\" class:\"content\"`", manyFields(64), 1)
	files, err := generate(writeFixture(t, source))
	if err != nil {
		t.Fatal(err)
	}
	parse := ""
	for _, f := range files {
		if f.name == "zparse_gen.go" {
			parse = string(f.text)
		}
	}
	if !strings.Contains(parse, "m.seen != 0xffffffffffffffff") && !strings.Contains(parse, "m.seen&0xffffffffffffffff != 0xffffffffffffffff") {
		t.Error("the mask does not have every field")
	}
}

func TestDeterminism(t *testing.T) {
	dir := filepath.Join("..", "..") // the real package
	first, err := generate(dir)
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		again, err := generate(dir)
		if err != nil {
			t.Fatal(err)
		}
		for i := range first {
			if string(first[i].text) != string(again[i].text) {
				t.Errorf("%s differs", first[i].name)
			}
		}
	}
}

func TestUpToDate(t *testing.T) {
	if err := run(filepath.Join("..", ".."), true); err != nil {
		t.Error(err)
	}
}

func TestCheckMode(t *testing.T) {
	dir := writeFixture(t, fixture)
	err := run(dir, true)
	if err == nil || !strings.Contains(err.Error(), "zparse_gen.go is not up to date: run go generate") {
		t.Errorf("got %v", err)
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 1 {
		t.Error("check wrote a file")
	}
	if err := run(dir, false); err != nil {
		t.Fatal(err)
	}
	if err := run(dir, true); err != nil {
		t.Error(err)
	}
	path := filepath.Join(dir, "zvalues_gen.go")
	if err := os.WriteFile(path, []byte("package agentevents\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := run(dir, true); err == nil || strings.Count(err.Error(), "_gen.go") != 1 || !strings.Contains(err.Error(), path) {
		t.Errorf("got %v", err)
	}
}

// TestShapes generates for a package with every shape, and runs the tests of
// that package, testdata/shapes.
func TestShapes(t *testing.T) {
	if testing.Short() {
		t.Skip("runs the go command")
	}
	root := filepath.Join("..", "..")
	dir := t.TempDir()
	copyTo := func(to string, patterns ...string) {
		t.Helper()
		if err := os.MkdirAll(to, 0o750); err != nil {
			t.Fatal(err)
		}
		for _, pattern := range patterns {
			paths, err := filepath.Glob(pattern)
			if err != nil || len(paths) == 0 {
				t.Fatalf("%s: no files (%v)", pattern, err)
			}
			for _, path := range paths {
				if strings.HasPrefix(path, root) && strings.HasSuffix(path, "_test.go") {
					continue
				}
				text, err := os.ReadFile(path)
				if err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(filepath.Join(to, filepath.Base(path)), text, 0o600); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	copyTo(dir, filepath.Join("testdata", "shapes", "*.go"))
	copyTo(filepath.Join(dir, "internal", "extra"), filepath.Join(root, "internal", "extra", "*.go"))
	copyTo(filepath.Join(dir, "internal", "jsonwire"), filepath.Join(root, "internal", "jsonwire", "*.go"))
	mod := "module github.com/agentevents/agentevents\n\ngo 1.26\n"
	if err := os.WriteFile(filepath.Join(dir, "go.mod"), []byte(mod), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := run(dir, false); err != nil {
		t.Fatal(err)
	}
	// With -trimpath the build cache has the results of an earlier run in another folder.
	for _, args := range [][]string{{"vet", "-trimpath", "."}, {"test", "-trimpath", "-vet=off", "."}} {
		cmd := exec.CommandContext(t.Context(), "go", args...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("go %s: %v\n%s", args[0], err, out)
		}
	}
}

func TestParseMirrors(t *testing.T) {
	for _, test := range []struct{ doc, want string }{
		{"Mirrors: KAOS memory_event; wiki metric ratio.\n", "map[KAOS:[memory_event] wiki:[metric ratio]]"},
		{"Mirrors: no document; KAOS has no word for it.\n", "map[]"},
		{"Mirrors: kaos memory_event.\n", `the paragraph Mirrors has "kaos memory_event": begin it with "no document; ", or with one of KAHN, wiki, KAOS, resume spec, OpenWOP`},
		{"Says nothing.\n", `the doc comment has no paragraph that begins with "Mirrors: "`},
	} {
		mirrors, err := parseMirrors(test.doc)
		got := fmt.Sprint(mirrors)
		if err != nil {
			got = err.Error()
		}
		if got != test.want {
			t.Errorf("%q: got %s\nwant %s", test.doc, got, test.want)
		}
	}
}
