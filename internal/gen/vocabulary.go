package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// The table of kinds in docs/vocabulary.md is made of the Mirrors paragraphs of the
// structs' doc comments.

const (
	tableBegin = "<!-- kinds: made by go generate -->\n"
	tableEnd   = "<!-- end of kinds -->"
)

// documents are the names that Mirrors paragraphs use, in the order of the
// table's columns.
var documents = []string{"KAHN", "wiki", "KAOS", "resume spec", "OpenWOP"}

// vocabulary returns docs/vocabulary.md with the table renewed, or nil when the package has
// no such page.
func vocabulary(dir string, m *model) ([]byte, error) {
	path := filepath.Join(dir, "docs", "vocabulary.md")
	old, err := os.ReadFile(path)
	if os.IsNotExist(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	before, rest, ok := strings.Cut(string(old), tableBegin)
	_, after, ok2 := strings.Cut(rest, tableEnd)
	if !ok || !ok2 {
		return nil, fmt.Errorf("%s: the markers of the table of kinds are missing: %s … %s", path,
			strings.TrimSpace(tableBegin), tableEnd)
	}
	table, err := kindTable(dir, m)
	if err != nil {
		return nil, err
	}
	return []byte(before + tableBegin + table + tableEnd + after), nil
}

func kindTable(dir string, m *model) (string, error) {
	docs, err := docComments(dir)
	if err != nil {
		return "", err
	}
	wire, err := wireNames(dir)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	b.WriteString("\n| Go type | `type` | " + strings.Join(documents, " | ") + " |\n")
	b.WriteString("|" + strings.Repeat("---|", 2+len(documents)) + "\n")
	for _, st := range m.rows {
		mirrors, err := parseMirrors(docs[st.name])
		if err != nil {
			return "", fmt.Errorf("%s: %w", st.name, err)
		}
		fmt.Fprintf(&b, "| `%s` | `%s` |", st.name, wire[st.name])
		for _, doc := range documents {
			fmt.Fprintf(&b, " %s |", strings.Join(mirrors[doc], ", "))
		}
		b.WriteByte('\n')
	}
	b.WriteByte('\n')
	return b.String(), nil
}

// wireNames returns the values of the Kind constants by the struct's name.
func wireNames(dir string) (map[string]string, error) {
	text, err := os.ReadFile(filepath.Join(dir, "catalog.go"))
	if err != nil {
		return nil, err
	}
	names := map[string]string{}
	for _, c := range regexp.MustCompile(`(?m)^\tKind(\w+)\s+Kind\s*=\s*"([^"]+)"`).
		FindAllStringSubmatch(string(text), -1) {
		names[c[1]] = c[2]
	}
	return names, nil
}

// parseMirrors reads the paragraph "Mirrors: <document> <variant>, …; …." of a
// doc comment.
func parseMirrors(doc string) (map[string][]string, error) {
	_, text, ok := strings.Cut(doc, "Mirrors: ")
	if !ok {
		return nil, fmt.Errorf("the doc comment has no paragraph that begins with %q", "Mirrors: ")
	}
	text = strings.TrimSuffix(strings.Join(strings.Fields(text), " "), ".")
	mirrors := map[string][]string{}
	for _, part := range strings.Split(text, "; ") {
		if part == "no document" {
			break // the rest is the reason why the kind exists
		}
		i := slices.IndexFunc(documents, func(doc string) bool { return strings.HasPrefix(part, doc+" ") })
		if i < 0 {
			return nil, fmt.Errorf("the paragraph Mirrors has %q: begin it with %q, or with one of %s", part,
				"no document; ", strings.Join(documents, ", "))
		}
		doc := documents[i]
		mirrors[doc] = append(mirrors[doc], part[len(doc)+1:])
	}
	return mirrors, nil
}

// docComments returns the doc comments of the package's types.
func docComments(dir string) (map[string]string, error) {
	files, err := filepath.Glob(filepath.Join(dir, "payload_*.go"))
	if err != nil {
		return nil, err
	}
	docs := map[string]string{}
	for _, path := range files {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments)
		if err != nil {
			return nil, err
		}
		for _, decl := range f.Decls {
			d, ok := decl.(*ast.GenDecl)
			if !ok {
				continue
			}
			for _, spec := range d.Specs {
				if t, ok := spec.(*ast.TypeSpec); ok {
					docs[t.Name.Name] = d.Doc.Text()
				}
			}
		}
	}
	return docs, nil
}
