package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestCompare has each kind of difference, and values that do not count.
func TestCompare(t *testing.T) {
	const before = `{"type":"user","id":"a","message":{"role":"user","content":[{"type":"text","text":"x"}]},"usage":{"input":1},"old":true}
{"type":"result","subtype":"success","ms":1,"files":{"/tmp/a":{"n":1}}}
{"sessionId":"s","kind":"main"}
`
	shapeOf := func(text string) shape {
		s := shape{}
		s.add("disk", text)
		return s
	}
	for _, c := range []struct{ name, from, to, want string }{
		{"other values", `"text":"x"`, `"text":"y"`, ""},
		{"an object in place of a text", `"id":"a"`, `"id":{"n":1,"m":2}`, "~ disk user/user /id: object, was string\n"},
		{"another path as a name", "/tmp/a", "/tmp/b/c", ""},
		{"a new member", `"ms":1`, `"ms":1,"cost":0.5`, "+ disk result/success /cost: number, in 1 of 1 lines\n"},
		{"a new object", `"ms":1`, `"ms":1,"cost":{"a":1,"b":2}`, "+ disk result/success /cost: object, in 1 of 1 lines\n"},
		{"a member less", `,"old":true`, ``, "- disk user/user /old: was boolean, in 1 of 1 lines\n"},
		{"another type", `"ms":1`, `"ms":"1"`, "~ disk result/success /ms: string, was number\n"},
		{"an element of another type", `{"type":"text","text":"x"}`, `{"type":"image","text":"x"}`,
			"+ disk user/user /message/content/*image: object, in 1 of 1 lines\n- disk user/user /message/content/*text: was object, in 1 of 1 lines\n"},
		{"a new kind", "\n{\"sess", "\n{\"type\":\"notice\",\"at\":1}\n{\"sess", "+ disk notice: a new kind, 1 lines: /at /type\n"},
		{"a kind less", `{"sessionId":"s","kind":"main"}` + "\n", "", "- disk kind+sessionId: 1 lines\n"},
		{"more lines", "\n{\"sess", "\n{\"sessionId\":\"s\",\"kind\":\"main\"}\n{\"sess", "~ disk kind+sessionId: 2 lines, were 1\n"},
		{"text", "\n{\"sess", "\nWarning!\n{\"sess", "+ disk (text): a new kind, 1 lines: \n"},
	} {
		after := strings.Replace(before, c.from, c.to, 1)
		if after == before {
			t.Fatalf("%s: nothing is changed", c.name)
		}
		var out strings.Builder
		n := compare(&out, shapeOf(before), shapeOf(after))
		if out.String() != c.want || n != strings.Count(c.want, "\n") {
			t.Errorf("%s: %d differences:\n%swant:\n%s", c.name, n, &out, c.want)
		}
	}
}

// TestDocuments compares the files of a folder: a document is one value.
func TestDocuments(t *testing.T) {
	dir := t.TempDir()
	p := &program{stores: []string{".made/sessions"}}
	for name, text := range map[string]string{
		"home/.made/sessions/a/a.json":  "{\n \"version\": 1,\n \"messages\": [{\"type\": \"text\"}]\n}\n",
		"home/.made/sessions/a/b.jsonl": `{"type":"user"}` + "\n",
		"home/.made/sessions/a/c.txt":   "x",
		"stdout-1.jsonl":                `{"type":"init"}` + "\n",
	} {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s, err := p.shapeOf(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"disk document", "disk user", "stdout init"} {
		if s[name] == nil {
			t.Errorf("no %s: %v", name, s)
		}
	}
	if len(s) != 3 || s["disk document"].members["/messages/*text/type"] == nil {
		t.Errorf("%v", s)
	}
}
