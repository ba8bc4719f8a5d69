package main

import (
	"fmt"
	"os"
	"path/filepath"
)

// fieldsFile is where the dialects' engine has the table of fields.
const fieldsFile = "dialect/internal/wire/zfields_gen.go"

// fields returns fieldsFile, or nil when the package has no dialects: the fields
// of every payload and value, how to get at them, and which of a payload are set.
func fields(dir string, m *model) (*file, error) {
	if _, err := os.Stat(filepath.Join(dir, filepath.Dir(fieldsFile))); err != nil {
		return nil, nil
	}
	w := newWriter()
	w.pkg = "wire"
	w.p("\n// structFields are the fields of each struct on a line, by its name.")
	w.p("var structFields = map[string][]fieldInfo{")
	for _, st := range m.structs {
		if st.open() {
			w.structFields(m, st)
		}
	}
	w.p("}")
	w.p("\n// leaves are the places of the fields of each struct, by its name: bit n of present")
	w.p("// is for the nth. Those of a payload are pointers of the native line.")
	w.p("var leaves = map[string][]string{")
	for _, st := range m.structs {
		if st.open() {
			w.p("%q: {", st.name)
			n := 0
			w.eachLeaf(st, func(pointer, _ string) {
				w.p("%q,", pointer)
				n++
			})
			w.p("},")
			if n > 64-16 {
				return nil, fmt.Errorf("%s: %d fields and those of the envelope are more than 64", st.name, n)
			}
		}
	}
	w.p("}")
	w.p("\n// present returns the set of leaves that a struct says.")
	w.p("func present(v any) (set uint64) {\nswitch p := v.(type) {")
	for _, st := range m.structs {
		if st.open() {
			w.p("case *%s.%s:", m.pkg, st.name)
			n := 0
			w.eachLeaf(st, func(_, cond string) {
				w.p("if %s {\nset |= 1 << %d\n}", cond, n)
				n++
			})
		}
	}
	w.p("}\nreturn set\n}")
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

func (w *writer) eachLeaf(st *structType, f func(pointer, cond string)) {
	at := ""
	if st.role == payload {
		at = "/payload"
	}
	leaves(st, "p", at, "", f)
}

// leaves calls f for each field of st, the value of expr, and of the values inside.
// A list or a map is one field; a value that may be absent is one, beside its own
// fields. cond is the condition that the field is not zero.
func leaves(st *structType, expr, pointer, guard string, f func(pointer, cond string)) {
	for _, fl := range st.fields {
		t, at, x := fl.typ, pointer+"/"+fl.json, expr+"."+fl.name
		cond := guard
		if t.shape == optShape && t.elem.shape == structShape {
			cond, t, x = and(guard, x+".OK"), t.elem, x+".V"
			f(at, cond)
		}
		if t.shape == structShape {
			leaves(t.object, x, at, cond, f)
		} else {
			f(at, and(cond, t.present(x)))
		}
	}
}

func and(a, b string) string {
	if a == "" {
		return b
	}
	return a + " && " + b
}
