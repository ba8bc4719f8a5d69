package main

import (
	"fmt"
	"strings"
)

// writeClean writes, to zvalues_gen.go, the methods clean of payloads and values.
func writeClean(w *writer, m *model) {
	for _, st := range m.structs {
		if st.open() {
			w.cleanMethod(st)
		}
	}
}

func (w *writer) cleanMethod(st *structType) {
	w.p("\nfunc (v *%s) clean(c *cleaner) *%s {", st.name, st.name)
	w.p("w := v // or the copy, once there is one")
	w.countSize(st)
	for _, f := range st.fields {
		if cleans(f.typ, f.class) {
			w.cleanField(f)
		}
	}
	w.p("if v.extra != \"\" {")
	w.p("x, changed := c.extras(v.extra)")
	w.p("if c.err != nil {\nreturn v\n}")
	w.p("if changed {\nw = copyOnce(v, w)\nw.extra = x\n}")
	w.p("}")
	w.p("return w\n}")
}

// countSize adds the parts of the line that clean does not visit: names, numbers, words and ids. It
// counts at least as much as appendJSON writes.
func (w *writer) countSize(st *structType) {
	size := len("{},")
	var texts []string
	var lists []*field
	for _, f := range st.fields {
		size += len(f.json) + len(`,"":`)
		t, expr := f.typ, "v."+f.name
		if t.shape == optShape {
			t, expr = t.elem, expr+".V"
		}
		switch _, scalar := t.scalar(); {
		case t.isText() && !cleans(t, f.class) || t.shape == wordShape:
			size += len(`""`)
			texts = append(texts, "len("+expr+")")
		case scalar:
			size += mostScalar
		default:
			size += len("null")
			if t.shape != structShape && t.shape != pointerShape && !cleans(t, f.class) {
				lists = append(lists, f)
			}
		}
	}
	if texts == nil {
		w.p("c.size += %d", size)
	} else {
		w.p("c.size += %d + mostEscaped*(%s)", size, strings.Join(texts, "+"))
	}
	for _, f := range lists {
		each, text := "", "key"
		if f.typ.shape == listShape {
			each, text = "_, ", "elem"
		}
		if f.typ.shape == dictShape || f.typ.elem.isText() {
			w.p("for %s%s := range v.%s {\nc.size += %d + mostEscaped*len(%[2]s)\n}", each, text, f.name, mostScalar)
		} else {
			w.p("c.size += %d * len(v.%s)", mostScalar, f.name)
		}
	}
}

// mostScalar is an upper bound of the length of a number or a time, and of the text around a
// string.
const mostScalar = 40

// isText reports whether a value of the type is a Go string.
func (t *typ) isText() bool {
	return t.shape == textShape || t.shape == wordShape || t.shape == jsonShape
}

// cleans reports whether the redaction step looks at a value of type t in a
// field of a class. Structs are always looked into: their fields have classes
// of their own.
func cleans(t *typ, class string) bool {
	switch t.shape {
	case textShape, jsonShape, wordShape:
		return class != "ClassID"
	case structShape:
		return true
	case optShape, pointerShape:
		return cleans(t.elem, class)
	case listShape, dictShape:
		return t.elem.shape != wordShape && cleans(t.elem, class)
	}
	return false
}

func (w *writer) cleanField(f *field) {
	t, expr, field := f.typ, "v."+f.name, "w."+f.name
	if t.shape == optShape {
		w.p("if %s.OK {", expr)
		defer w.p("}")
		t, expr, field = t.elem, expr+".V", field+".V"
	} else if row, scalar := t.scalar(); scalar {
		w.p("if %s {", fill(row.present, expr, t.name)) // nothing to clean about ""
		defer w.p("}")
	} else if t.shape == pointerShape {
		w.p("if %s != nil {", expr)
		defer w.p("}")
	}
	keep := func(elem string) string { return fmt.Sprintf("w = copyOnce(v, w)\n%s = %s", field, elem) }
	switch t.shape {
	case textShape:
		w.p("if s, changed := %s; changed {\n%s\n}", cleanText(t, f, expr), keep(t.from("s")))
	case wordShape:
		w.p("if c.words && !%s.known() {\nif s, changed := %s; changed {\n%s\n}\n}", expr, cleanText(t, f, expr),
			keep(t.from("s")))
	case jsonShape:
		call := "json"
		if f.object {
			call = "object"
		}
		results := "j, changed"
		if f.quoted != "" {
			call, results = "jsonOrText", "j, text, changed"
		}
		w.p("%s := c.%s(%q, %s, %s)", results, call, f.json, f.class, expr)
		w.p("if c.err != nil {\nreturn v\n}")
		kept := keep("j")
		if f.quoted != "" {
			kept += fmt.Sprintf("\nw.%s = w.%[1]s || text", f.quoted)
		}
		w.p("if changed {\n%s\n}", kept)
		if f.typ.shape == jsonShape {
			return // in a block of its own
		}
	case structShape:
		w.p("if e := %s.clean(c); c.err != nil {\nc.err = c.err.in(%q)\nreturn v\n} else if e != &%s {\n%s\n}", expr,
			f.json, expr, keep("*e"))
	case pointerShape:
		w.p("if e := %s.clean(c); c.err != nil {\nc.err = c.err.in(%q)\nreturn v\n} else if e != %s {\n%s\n}", expr,
			f.json, expr, keep("e"))
	case listShape, dictShape:
		w.p("if e, changed := %s; c.err != nil {\nc.err = c.err.in(%q)\nreturn v\n} else if changed {\n%s\n}",
			w.cleanCall(t, expr, fmt.Sprintf("%q", f.json), f.class), f.json, keep("e"))
	}
}

func cleanText(t *typ, f *field, expr string) string {
	return fmt.Sprintf("c.text(%q, %s, %s)", f.json, f.class, t.string(expr))
}

// string returns expr, of the string type t, as a string.
func (t *typ) string(expr string) string {
	if t.name == "string" {
		return expr
	}
	return "string(" + expr + ")"
}

// from returns the string expr as one of type t.
func (t *typ) from(expr string) string {
	if t.name == "string" {
		return expr
	}
	return t.name + "(" + expr + ")"
}

// cleanCall returns the call that cleans a slice or map: the clean one, and
// whether it is another one. It sets c.err to an error below the slice or map.
func (w *writer) cleanCall(t *typ, expr, name, class string) string {
	if t.shape == listShape && t.elem.shape == textShape {
		return fmt.Sprintf("cleanTexts(c, %s, %s, %s)", name, class, expr)
	}
	fn := w.once("clean"+t.ident(), func() { w.cleanFunc(t) })
	return fmt.Sprintf("%s(c, %s, %s, %s)", fn, name, class, expr)
}

// cleanFunc declares the function for a slice or map.
func (w *writer) cleanFunc(t *typ) {
	// The elements of a structure bring their own names and classes.
	params := "name string, class Class"
	if t.shape == listShape && t.elem.shape == structShape {
		params = "_ string, _ Class"
	}
	w.p("\nfunc clean%s(c *cleaner, %s, v %s) (%s, bool) {", t.ident(), params, t.name, t.name)
	w.p("c.size += %d * len(v)", mostScalar)
	w.p("w := v // or the copy, once there is one")
	w.p("changed := false")
	key, clone, at := "i", "slices.Clone", "strconv.Itoa(i)"
	if t.shape == dictShape {
		key, clone, at = "key", "maps.Clone", "pointerToken(key)"
		w.p("v, changed = cleanKeys(c, name, class, v)")
		w.p("if changed {\nw = v // a copy already\n}")
		w.p("for _, key := range %s {", sortedKeys("v"))
		w.p("elem := v[key]")
	} else {
		w.p("for i := range v {")
		if t.elem.shape == structShape {
			w.p("elem := &v[i]")
		} else {
			w.p("elem := v[i]")
		}
	}
	keep := func(elem string) string {
		return fmt.Sprintf("if !changed {\nw, changed = %s(v), true\n}\nw[%s] = %s", clone, key, elem)
	}
	failed := fmt.Sprintf("c.err != nil {\nc.err = c.err.in(%s)\nreturn v, false\n}", at)
	switch t.elem.shape {
	case textShape:
		w.p("if s, differs := c.text(name, class, %s); differs {\n%s\n}", t.elem.string("elem"), keep(t.elem.from("s")))
	case jsonShape:
		w.p("if elem == \"\" {\ncontinue\n}")
		w.p("j, differs := c.json(name, class, elem)")
		w.p("if c.err != nil {\nc.err = errorInside(c.err, name, %s)\nreturn v, false\n}", at)
		w.p("if differs {\n%s\n}", keep("j"))
	case structShape:
		address := "elem" // of a slice's element
		if t.shape == dictShape {
			address = "&elem"
		}
		w.p("if e := elem.clean(c); %s else if e != %s {\n%s\n}", failed, address, keep("*e"))
	case pointerShape:
		w.p("if elem == nil {\ncontinue\n}")
		w.p("if e := elem.clean(c); %s else if e != elem {\n%s\n}", failed, keep("e"))
	case listShape, dictShape:
		w.p("if e, differs := %s; %s else if differs {\n%s\n}", w.cleanCall(t.elem, "elem", "name", "class"), failed,
			keep("e"))
	}
	w.p("}\nreturn w, changed\n}")
}
