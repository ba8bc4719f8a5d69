package main

// writeExtra writes, to zvalues_gen.go, the methods hasExtra, which tell whether a
// payload holds members of its line that no field has.
func writeExtra(w *writer, m *model) {
	for _, st := range m.structs {
		if st.open() {
			w.extraMethod(st)
		}
	}
}

func (w *writer) extraMethod(st *structType) {
	w.p("\nfunc (v *%s) hasExtra() bool {", st.name)
	var inside []*field
	for _, f := range st.fields {
		if inner := innermost(f.typ); inner.shape == structShape && inner.object.open() {
			inside = append(inside, f)
		}
	}
	if inside == nil {
		w.p("return v.extra.HasUnknown()\n}")
		return
	}
	w.p("if v.extra.HasUnknown() {\nreturn true\n}")
	for _, f := range inside {
		expr := "v." + f.name
		if f.typ.shape == optShape {
			w.p("if %s.OK {", expr)
			w.extraStmt(f.typ.elem, expr+".V", 0)
			w.p("}")
			continue
		}
		w.extraStmt(f.typ, expr, 0)
	}
	w.p("return false\n}")
}

// extraStmt looks into the value of expr, which can be addressed.
func (w *writer) extraStmt(t *typ, expr string, depth int) {
	switch t.shape {
	case structShape:
		w.p("if %s.hasExtra() {\nreturn true\n}", expr)
	case pointerShape:
		w.p("if %s != nil && %s.hasExtra() {\nreturn true\n}", expr, expr)
	case listShape:
		i := variable("i", depth)
		w.p("for %s := range %s {", i, expr)
		w.extraStmt(t.elem, expr+"["+i+"]", depth+1)
		w.p("}")
	case dictShape:
		elem := variable("elem", depth)
		w.p("for _, %s := range %s {", elem, expr)
		w.extraStmt(t.elem, elem, depth+1)
		w.p("}")
	}
}
