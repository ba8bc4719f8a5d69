package main

import "fmt"

// writeClone writes clone_gen.go: deep copies, text included, of records and
// of the values inside them. What a snapshot keeps of a line must not keep the
// line alive.
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
	for _, f := range st.fields {
		if inner := innermost(f.typ); inner.shape == structShape {
			reach(inner.object, set)
		}
	}
}

func (w *writer) cloneMethod(st *structType) {
	w.p("\nfunc (v *%s) clone() *%s {", st.name, st.name)
	w.p("w := *v")
	for _, f := range st.fields {
		expr := "w." + f.name
		t := f.typ
		if t.shape == optShape {
			if cloned := w.cloneExpr(t.elem, expr+".V"); cloned != "" {
				w.p("if %s.OK {\n%s.V = %s\n}", expr, expr, cloned)
			}
			continue
		}
		if cloned := w.cloneExpr(t, expr); cloned != "" {
			w.p("%s = %s", expr, cloned)
		}
	}
	if st.open() {
		w.p("w.extra = cloneText(w.extra)")
	}
	w.p("return &w\n}")
}

// cloneExpr returns the expression of a deep copy of expr, or "" when the
// value itself is one.
func (w *writer) cloneExpr(t *typ, expr string) string {
	switch t.shape {
	case textShape, wordShape, jsonShape:
		return fmt.Sprintf("cloneText(%s)", expr)
	case structShape:
		return fmt.Sprintf("*%s.clone()", expr)
	case pointerShape, listShape, dictShape:
		fn := w.once("clone"+t.ident(), func() { w.cloneFunc(t) })
		return fmt.Sprintf("%s(%s)", fn, expr)
	}
	return ""
}

// cloneFunc declares the function for a pointer, slice or map.
func (w *writer) cloneFunc(t *typ) {
	w.p("\nfunc clone%s(v %s) %s {", t.ident(), t.name, t.name)
	w.p("if v == nil {\nreturn nil\n}")
	switch t.shape {
	case pointerShape:
		w.p("return v.clone()")
	case listShape:
		w.p("w := make(%s, len(v))", t.name)
		elem := w.cloneExpr(t.elem, "v[i]")
		if elem == "" {
			w.p("copy(w, v)")
		} else {
			w.p("for i := range v {\nw[i] = %s\n}", elem)
		}
		w.p("return w")
	case dictShape:
		w.p("w := make(%s, len(v))", t.name)
		elem := w.cloneExpr(t.elem, "elem")
		if elem == "" {
			elem = "elem"
		}
		w.p("for key, elem := range v {\nw[cloneText(key)] = %s\n}", elem)
		w.p("return w")
	}
	w.p("}")
}
