package main

import "fmt"

// writeClone writes, to zvalues_gen.go, deep copies, text included, of records and of the values inside
// them. The values that a snapshot keeps must not keep their line alive.
func writeClone(w *writer, m *model) {
	wanted := map[*structType]bool{}
	for _, st := range m.structs {
		if st.role == record {
			reach(st, wanted)
		}
	}
	for _, st := range m.structs {
		if wanted[st] {
			w.cloneMethod(st)
		}
	}
}

// reach adds st and the structs inside it.
func reach(st *structType, set map[*structType]bool) {
	if set[st] {
		return
	}
	set[st] = true
	for _, inner := range st.embeds {
		reach(inner, set)
	}
	for _, f := range st.fields {
		if inner := innermost(f.typ); inner.shape == structShape {
			reach(inner.object, set)
		}
	}
}

func (w *writer) cloneMethod(st *structType) {
	w.p("\nfunc (v *%[1]s) clone() *%[1]s {\nw := *v\nw.deepen()\nreturn &w\n}", st.name)
	w.p("\n// deepen makes a shallow copy a deep one.")
	w.p("func (w *%s) deepen() {", st.name)
	for _, inner := range st.embeds {
		w.p("w.%s.deepen()", inner.name)
	}
	for _, f := range st.fields {
		if f.promoted {
			continue
		}
		expr := "w." + f.name
		t := f.typ
		if t.shape == optShape {
			if deep := w.deepStmt(t.elem, expr+".V"); deep != "" {
				w.p("if %s.OK {\n%s\n}", expr, deep)
			}
			continue
		}
		if deep := w.deepStmt(t, expr); deep != "" {
			w.p("%s", deep)
		}
	}
	if st.open() {
		w.p("w.extra = cloneText(w.extra)")
	}
	for _, name := range st.loose {
		w.p("clearField(&w.%s)", name)
	}
	w.p("}")
}

// deepStmt returns the statement that makes expr a deep copy of itself, or ""
// when it is one.
func (w *writer) deepStmt(t *typ, expr string) string {
	switch t.shape {
	case textShape, wordShape, jsonShape:
		return fmt.Sprintf("%[1]s = cloneText(%[1]s)", expr)
	case bytesShape:
		return fmt.Sprintf("%[1]s = append([]byte(nil), %[1]s...)", expr)
	case structShape:
		return fmt.Sprintf("%s.deepen()", expr)
	case pointerShape, listShape, dictShape:
		fn := w.once("clone"+t.ident(), func() { w.cloneFunc(t) })
		return fmt.Sprintf("%[1]s = %[2]s(%[1]s)", expr, fn)
	}
	return ""
}

// cloneFunc declares the function for a pointer, slice or map.
func (w *writer) cloneFunc(t *typ) {
	w.p("\nfunc clone%s(v %s) %s {", t.ident(), t.name, t.name)
	switch t.shape {
	case pointerShape:
		w.p("if v == nil {\nreturn nil\n}")
		w.p("return v.clone()")
	case listShape:
		w.p("if len(v) == 0 {\nreturn nil\n}")
		w.p("w := make(%s, len(v))", t.name)
		w.p("copy(w, v)")
		if deep := w.deepStmt(t.elem, "w[i]"); deep != "" {
			w.p("for i := range w {\n%s\n}", deep)
		}
		w.p("return w")
	case dictShape:
		w.p("if len(v) == 0 {\nreturn nil\n}")
		w.p("w := make(%s, len(v))", t.name)
		w.p("for key, elem := range v {\n%s\nw[cloneText(key)] = elem\n}", w.deepStmt(t.elem, "elem"))
		w.p("return w")
	}
	w.p("}")
}
