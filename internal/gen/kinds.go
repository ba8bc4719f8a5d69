package main

// writeKinds writes zkinds_gen.go: what ties kinds, payloads and the catalog
// together.
func writeKinds(w *writer, m *model) {
	for _, st := range m.rows {
		w.p("\nfunc (*%[1]s) kind() Kind { return Kind%[1]s }", st.name)
	}
	w.p(`
// cleanPayload returns p as the cleaner leaves it: p itself when nothing
// changes. The calls are static, so that the cleaner can stay on the stack.
func cleanPayload(p Payload, c *cleaner) Payload {
switch p := p.(type) {`)
	for _, st := range m.rows {
		w.p("case *%s:\nreturn p.clean(c)", st.name)
	}
	w.p("case *Unknown:\nreturn p.clean(c)")
	w.p("}\nreturn p\n}")

	w.p("")
	for _, st := range m.rows {
		w.p("\nfunc (v *%[1]s) reset() { *v = %[1]s{} }", st.name)
	}

	w.p("")
	for i, st := range m.rows {
		w.p("\nfunc (*%s) index() int { return %d }", st.name, i)
	}

	w.p(`
// limited says, by the position in the catalog, whether a payload can hold
// values that JSON has no text for: floats and times.
var limited = [...]bool{`)
	for _, st := range m.rows {
		w.p("%t, // %s", hasLimits(st, map[*structType]bool{}), st.name)
	}
	w.p("}")

	w.p(`
// kindIndex returns the position of k in the catalog, or -1.
func kindIndex(k Kind) int {
switch k {`)
	for i, st := range m.rows {
		w.p("case Kind%s:\nreturn %d", st.name, i)
	}
	w.p("}\nreturn -1\n}")

	w.p(`
// emptyPayload returns an empty payload of the kind, or nil if the catalog does
// not have it.
func emptyPayload(k Kind) Payload {
switch k {`)
	for _, st := range m.rows {
		w.p("case Kind%[1]s:\nreturn new(%[1]s)", st.name)
	}
	w.p("}\nreturn nil\n}")

	w.p(`
// ops returns p with the methods of this package, and nil if p is nil, a nil
// pointer or not a payload of this package. It calls no method of p, which may
// be somebody else's.
func ops(p Payload) payloadOps {
switch p := p.(type) {`)
	for _, st := range m.rows {
		w.p("case *%s:\nif p != nil {\nreturn p\n}", st.name)
	}
	w.p("case *Unknown:\nif p != nil {\nreturn p\n}")
	w.p("}\nreturn nil\n}")
}

// hasLimits reports whether there is a float or a time in st or inside it.
func hasLimits(st *structType, seen map[*structType]bool) bool {
	if seen[st] {
		return false
	}
	seen[st] = true
	for _, f := range st.fields {
		switch inner := innermost(f.typ); inner.shape {
		case floatShape, timeShape:
			return true
		case structShape:
			if hasLimits(inner.object, seen) {
				return true
			}
		}
	}
	return false
}
