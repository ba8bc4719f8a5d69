package main

import (
	"fmt"
	"os"
	"path/filepath"
)

// fieldsFile is where the dialects' engine has the table of fields.
const fieldsFile = "dialect/internal/engine/zfields_gen.go"

// fields returns fieldsFile, or nil when the package has no dialects: the fields
// of every payload and value, and how to get at them.
func fields(dir string, m *model) (*file, error) {
	if _, err := os.Stat(filepath.Join(dir, filepath.Dir(fieldsFile))); err != nil {
		return nil, nil
	}
	w := newWriter()
	w.pkg = "engine"
	w.p("\n// structFields are the fields of each struct on a line, by its name.")
	w.p("var structFields = map[string][]fieldInfo{")
	for _, st := range m.structs {
		if st.open() {
			w.structFields(m, st)
		}
	}
	w.p("}")
	text, err := w.file(m)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", fieldsFile, err)
	}
	return &file{fieldsFile, text}, nil
}

// structFields writes the row of a struct: for each field its name, the struct
// inside, and functions that return pointers to it and to whether it is there.
func (w *writer) structFields(m *model, st *structType) {
	w.p("%q: {", st.name)
	for _, f := range st.fields {
		at := fmt.Sprintf("v.(*%s.%s).%s", m.pkg, st.name, f.name)
		inner, ok := f.typ, "nil"
		if inner.shape == optShape && inner.elem.shape == structShape {
			inner, ok = inner.elem, "func(v any) *bool { return &"+at+".OK }"
			at += ".V"
		}
		get := "&" + at
		if f.typ.shape == textShape || f.typ.shape == wordShape {
			get = "(*string)(" + get + ")"
		}
		in := ""
		if inner.shape == structShape {
			in = inner.object.name
		}
		w.p("{%q, %q, func(v any) any { return %s }, %s},", f.json, in, get, ok)
	}
	w.p("},")
}
