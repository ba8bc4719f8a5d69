package main

import "fmt"

// writeAppend writes zappend_gen.go: the methods appendJSON, and the tables of
// fields that extras read.
func writeAppend(w *writer, m *model) {
	for _, st := range m.structs {
		w.appendMethod(st)
		if st.open() {
			w.fieldTable(st)
		}
	}
}

// appendMethod writes appendJSON. If the first field is always there, its text
// opens the object; otherwise every member begins with a comma and the first
// comma becomes the brace.
func (w *writer) appendMethod(st *structType) {
	braceFirst := len(st.fields) > 0 && st.fields[0].required
	w.p("\nfunc (v *%s) appendJSON(dst []byte) []byte {", st.name)
	if st.open() || !braceFirst {
		w.p("mark := len(dst)")
	}
	certain := false // something is always written
	for i, f := range st.fields {
		certain = certain || f.required
		expr := "v." + f.name
		start := ","
		if i == 0 && braceFirst {
			start = "{"
		}
		if !f.required {
			w.p("if %s {", f.typ.present(expr))
		}
		w.p("dst = append(dst, `%s\"%s\":`...)", start, f.json)
		switch {
		case f.typ.shape == optShape:
			w.appendValue(f.typ.elem, expr+".V")
		case f.typ.shape == jsonShape:
			w.p("dst = append(dst, %s...)", expr) // there is some
		default:
			w.appendValue(f.typ, expr)
		}
		if !f.required {
			w.p("}")
		}
	}
	if !braceFirst {
		if !certain {
			w.p("if len(dst) == mark {\ndst = append(dst, ',')\n}")
		}
		w.p("dst[mark] = '{'")
	}
	if st.open() {
		w.p("dst = append(dst, '}')")
		w.p("if v.extra != \"\" {\ndst = v.extra.Merge(dst, mark, %s[:])\n}", fieldsOf(st))
		w.p("return dst\n}")
	} else {
		w.p("return append(dst, '}')\n}")
	}
}

// appendValue appends the value of expr, which can be addressed.
func (w *writer) appendValue(t *typ, expr string) {
	if row, ok := t.scalar(); ok {
		w.p("dst = %s", fill(row.append, expr, t.name))
		return
	}
	if t.shape == structShape {
		w.p("dst = %s.appendJSON(dst)", expr)
		return
	}
	name := w.once("append"+t.ident(), func() { w.appendFunc(t) })
	w.p("dst = %s(dst, %s)", name, expr)
}

// appendFunc declares the function for a pointer, slice or map.
func (w *writer) appendFunc(t *typ) {
	w.p("\nfunc append%s(dst []byte, v %s) []byte {", t.ident(), t.name)
	switch t.shape {
	case pointerShape:
		w.p("if v == nil {\nreturn append(dst, \"null\"...)\n}")
		w.p("return v.appendJSON(dst)")
	case listShape:
		w.p("dst = append(dst, '[')")
		w.p("for i := range v {")
		w.p("if i > 0 {\ndst = append(dst, ',')\n}")
		w.appendValue(t.elem, "v[i]")
		w.p("}\nreturn append(dst, ']')")
	case dictShape:
		w.p("dst = append(dst, '{')")
		w.p("for i, key := range %s {", sortedKeys("v"))
		w.p("if i > 0 {\ndst = append(dst, ',')\n}")
		w.p("dst = append(jsonwire.AppendString(dst, key), ':')")
		w.p("elem := v[key]")
		w.appendValue(t.elem, "elem")
		w.p("}\nreturn append(dst, '}')")
	}
	w.p("}")
}

// sortedKeys returns the expression for the keys of the map expr.
func sortedKeys(expr string) string {
	return fmt.Sprintf("sortedKeys(make([]string, 0, 8), %s)", expr)
}

func fieldsOf(st *structType) string { return "fieldsOf" + st.name }

func (w *writer) fieldTable(st *structType) {
	w.p("\nvar %s = [...]extra.Field{", fieldsOf(st))
	for _, f := range st.fields {
		if f.required {
			w.p("{Name: %q, Zero: `%s`},", f.json, f.typ.zero())
		} else {
			w.p("{Name: %q},", f.json)
		}
	}
	w.p("}")
}
