package main

// writeParse writes zparse_gen.go: the methods parseJSON.
func writeParse(w *writer, m *model) {
	for _, st := range m.structs {
		w.parseMethod(st)
	}
}

func (w *writer) parseMethod(st *structType) {
	var required uint64
	w.p("\nfunc (v *%s) parseJSON(s *jsonwire.Scanner) error {", st.name)
	w.p("if err := s.Object(); err != nil {\nreturn err\n}")
	w.p("var m members")
	w.p("for {")
	w.p("n, name, err := s.FieldOf(namesOf%s, m.last)", st.name)
	w.p("if err != nil {\nreturn err\n}")
	w.p("if n < 0 {\nbreak\n}")
	w.p("if n > 0 && m.repeats(s, n) {\nreturn s.Duplicate(name)\n}")
	w.p("switch n {")
	for _, f := range st.fields {
		if f.required {
			required |= 1 << (f.number - 1)
		}
		w.p("case %d: // %s", f.number, f.json)
		w.parseField(f)
		if t := f.typ; !st.open() && (t.shape == listShape || t.shape == dictShape) {
			w.p("if len(v.%[1]s) == 0 {\nv.%[1]s = nil\n}", f.name) // as in a snapshot that a fold made
		}
	}
	w.p("default:")
	if st.open() {
		w.p("err = m.unknown(s, name)")
	} else {
		w.p("err = s.Skip()")
	}
	w.p("}")
	w.p("if err != nil {\nreturn err\n}")
	w.p("}")
	if st.open() {
		if required != 0 {
			w.p("if m.seen&%#x != %#x {\nm.require(%s[:])\n}", required, required, fieldsOf(st))
		}
		w.p("v.extra = m.x.Members()")
	}
	w.p("return nil\n}")

	w.p("\nvar namesOf%s = jsonwire.Names(", st.name)
	for _, f := range st.fields {
		w.p("%q,", f.json)
	}
	w.p(")")
}

// parseField reads the value of a field.
func (w *writer) parseField(f *field) {
	expr := "v." + f.name
	// Any JSON value is one, null included.
	if f.typ.shape == jsonShape {
		w.parseValue(f.typ, expr)
		return
	}
	if f.typ.shape == optShape {
		if f.typ.elem.shape != jsonShape {
			w.p("if !m.null(s, name) {")
			defer w.p("}")
		}
		w.parseValue(f.typ.elem, expr+".V")
		w.p("%s.OK = err == nil", expr)
		return
	}
	value := func() {
		if f.aside {
			w.p("%s, err = s.Aside()", expr)
		} else {
			w.parseValue(f.typ, expr)
		}
	}
	if f.required {
		value()
		return
	}
	w.p("if !m.null(s, name) {")
	value()
	if row, ok := f.typ.scalar(); ok {
		w.p("if %s {\nm.spelled(name, `%s`)\n}", fill(row.absent, expr, f.typ.name), row.zero)
	}
	w.p("}")
}

// parseValue reads the next value into expr and sets err.
func (w *writer) parseValue(t *typ, expr string) {
	if t.shape == structShape {
		w.p("err = %s.parseJSON(s)", expr)
		return
	}
	w.p("%s, err = %s", expr, w.parseCall(t))
}

// parseCall returns an expression with the next value, of a type that is not a
// struct, and an error.
func (w *writer) parseCall(t *typ) string {
	if row, ok := t.scalar(); ok {
		return fill(row.read, "", t.name)
	}
	return w.once("parse"+t.ident(), func() { w.parseFunc(t) }) + "(s)"
}

// parseFunc declares the function for a pointer, slice or map.
func (w *writer) parseFunc(t *typ) {
	w.p("\nfunc parse%s(s *jsonwire.Scanner) (%s, error) {", t.ident(), t.name)
	switch t.shape {
	case pointerShape:
		w.p("if s.Null() {\nreturn nil, nil\n}")
		w.p("v := new(%s)", t.elem.name)
		w.p("if err := v.parseJSON(s); err != nil {\nreturn nil, err\n}")
		w.p("return v, nil")
	case listShape:
		w.p("if err := s.Array(); err != nil {\nreturn nil, err\n}")
		w.p("list := %s{}", t.name)
		w.p("for {")
		w.p("ok, err := s.Elem()")
		w.p("if err != nil {\nreturn nil, err\n}")
		w.p("if !ok {\nreturn list, nil\n}")
		switch t.elem.shape {
		case structShape: // in place: no copy
			w.p("list = append(list, %s{})", t.elem.name)
			w.p("if err := list[len(list)-1].parseJSON(s); err != nil {\nreturn nil, err\n}")
		case pointerShape: // null is refused: a nil inside a list would be a trap
			w.p("elem := new(%s)", t.elem.elem.name)
			w.p("if err := elem.parseJSON(s); err != nil {\nreturn nil, err\n}")
			w.p("list = append(list, elem)")
		default:
			w.p("elem, err := %s", w.parseCall(t.elem))
			w.p("if err != nil {\nreturn nil, err\n}")
			w.p("list = append(list, elem)")
		}
		w.p("}")
	case dictShape:
		w.p("if err := s.Object(); err != nil {\nreturn nil, err\n}")
		w.p("dict, last := %s{}, \"\"", t.name)
		w.p("for {")
		w.p("key, ok, err := s.Member()")
		w.p("if err != nil {\nreturn nil, err\n}")
		w.p("if !ok {\nreturn dict, nil\n}")
		w.p("if _, again := dict[key]; again {\nreturn nil, s.Duplicate(key)\n}")
		w.p("if key < last { // keys are written in order\ns.Odd = true\n}\nlast = key")
		switch t.elem.shape {
		case structShape:
			w.p("var elem %s", t.elem.name)
			w.p("if err := elem.parseJSON(s); err != nil {\nreturn nil, err\n}")
		case pointerShape: // as above
			w.p("elem := new(%s)", t.elem.elem.name)
			w.p("if err := elem.parseJSON(s); err != nil {\nreturn nil, err\n}")
		default:
			w.p("elem, err := %s", w.parseCall(t.elem))
			w.p("if err != nil {\nreturn nil, err\n}")
		}
		w.p("dict[key] = elem")
		w.p("}")
	}
	w.p("}")
}
