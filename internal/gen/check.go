package main

import (
	"fmt"
	"strconv"
)

// writeCheck writes, to zvalues_gen.go, the methods check of payloads and values.
func writeCheck(w *writer, m *model) {
	for _, st := range m.structs {
		if !st.open() {
			continue
		}
		w.p("\nfunc (v *%s) check() *fieldError {", st.name)
		w.p(`if v.extra != "" {`)
		w.fail("checkLacks(v.extra, v.appendJSON)", "")
		w.p("}")
		for _, f := range st.fields {
			w.checkField(f)
		}
		if st.checkMore {
			w.p("return v.checkMore()\n}")
		} else {
			w.p("return nil\n}")
		}
	}
}

// fail returns the error of a call, if there is one, from the method. The
// suffix places it.
func (w *writer) fail(call, suffix string) {
	w.p("if err := %s; err != nil {\nreturn err%s\n}", call, suffix)
}

func (w *writer) checkField(f *field) {
	t, expr, name := f.typ, "v."+f.name, strconv.Quote(f.json)
	row, scalar := t.scalar()
	switch {
	case f.check.required && (t.shape == listShape || t.shape == dictShape):
		w.fail(fmt.Sprintf("checkRequired(%s, len(%s) > 0)", name, expr), "")
	case f.check.required,
		f.required && (t.shape == wordShape || t.shape == timeShape):
		w.fail(fmt.Sprintf("checkRequired(%s, %s)", name, fill(row.present, expr, t.name)), "")
	}
	v := &checker{w: w, f: f}
	if t.shape == optShape {
		t, expr = t.elem, expr+".V"
		if !v.any(t) {
			return
		}
		w.p("if v.%s.OK {", f.name)
		defer w.p("}")
	} else if scalar && !f.required && t.shape != textShape && v.any(t) {
		w.p("if %s {", fill(row.present, expr, t.name))
		defer w.p("}")
	}
	v.value(t, expr, name, "", 0)
}

// A checker writes the checks of the values of one field.
type checker struct {
	w *writer
	f *field
}

// any reports whether there is anything to check about a value of type t.
func (v *checker) any(t *typ) bool {
	switch t.shape {
	case textShape:
		return v.f.class == "ClassID" || v.f.class == "ClassMeta"
	case intShape, int64Shape, millisShape:
		return v.f.check.min != nil
	case wordShape, floatShape, timeShape, structShape, dictShape:
		return true
	case pointerShape, listShape:
		return v.any(t.elem)
	}
	return false
}

// value checks the value of expr. The Go expression name is its place in the surrounding value;
// suffix is that value's place.
func (v *checker) value(t *typ, expr, name, suffix string, depth int) {
	if !v.any(t) {
		return
	}
	w, rules := v.w, v.f.check
	call := func(format string, args ...any) { w.fail(fmt.Sprintf(format, args...), suffix) }
	switch t.shape {
	case textShape:
		if t.name != "string" {
			expr = "string(" + expr + ")"
		}
		call("checkText(%s, %s)", name, expr)
	case wordShape:
		w.p("if !%s.known() {\nreturn otherWord(%s, %s)%s\n}", expr, name, expr, suffix)
	case intShape, int64Shape:
		call("checkMin(%s, %s, %d)", name, expr, *rules.min)
	case millisShape:
		unit := "*time.Millisecond"
		if *rules.min == 0 {
			unit = ""
		}
		call("checkMinMillis(%s, %s, %d%s)", name, expr, *rules.min, unit)
	case floatShape:
		if rules.min != nil {
			call("checkMinFloat(%s, %s, %d)", name, expr, *rules.min)
		}
		if rules.unit {
			call("checkUnit(%s, %s)", name, expr)
		}
		if rules.min == nil && !rules.unit {
			call("checkFinite(%s, %s)", name, expr)
		}
	case timeShape:
		call("checkYear(%s, %s)", name, expr)
	case structShape:
		w.fail(expr+".check()", in(name)+suffix)
	case pointerShape:
		w.p("if %s != nil {", expr)
		w.fail(expr+".check()", in(name)+suffix)
		w.p("}")
	case listShape:
		if t.elem.shape == textShape {
			call("checkTexts(%s, %s)", name, expr)
			return
		}
		i := variable("i", depth)
		w.p("for %s := range %s {", i, expr)
		v.value(t.elem, expr+"["+i+"]", "strconv.Itoa("+i+")", in(name)+suffix, depth+1)
		w.p("}")
	case dictShape:
		call("checkKeys(%s, %s)", name, expr)
		if !v.any(t.elem) {
			return
		}
		key, elem := variable("key", depth), variable("elem", depth)
		w.p("for _, %s := range %s {", key, sortedKeys(expr))
		w.p("%s := %s[%s]", elem, expr, key)
		v.value(t.elem, elem, "pointerToken("+key+")", in(name)+suffix, depth+1)
		w.p("}")
	}
}

// in returns the suffix that places an error in name.
func in(name string) string { return ".in(" + name + ")" }

// variable returns the name of a variable at a depth of loops.
func variable(name string, depth int) string {
	if depth == 0 {
		return name
	}
	return name + strconv.Itoa(depth+1)
}
