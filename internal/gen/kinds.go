package main

import (
	"slices"
	"strconv"
	"strings"
)

// writeKinds writes zkinds_gen.go: the links between kinds, payloads and the catalog, and the table
// of rules.
func writeKinds(w *writer, m *model) {
	if len(m.rules) > 0 {
		w.p("\n// ruleTable has every rule and what its comment states, in source order.")
		w.p("var ruleTable = [...]struct {\nrule Rule\nstatement string\n}{")
		for _, r := range m.rules {
			w.p("{%s, %q},", r.constant, r.statement)
		}
		w.p("}")
	}
	w.p("\n// kindCount is the number of rows of the catalog. The length of an " +
		"array type that names the catalog\n// itself would make a cycle of types.")
	w.p("const kindCount = %d", len(m.rows))
	for _, st := range m.rows {
		w.p("\nfunc (*%[1]s) kind() Kind { return Kind%[1]s }", st.name)
	}
	w.p(`
// cleanPayload returns p as the cleaner leaves it, which is p itself when nothing
// changes, and whether something does. The calls are static, so that the cleaner can stay
// on the stack.
func cleanPayload(p Payload, c *cleaner) (Payload, bool) {
switch p := p.(type) {`)
	for _, st := range m.rows {
		w.p("case *%s:\nq := p.clean(c)\nreturn q, q != p", st.name)
	}
	w.p("case *Unknown:\nq := p.clean(c)\nreturn q, q != p")
	w.p("}\nreturn p, false\n}")

	if slices.ContainsFunc(m.order, func(r row) bool { return len(r.does) > 0 }) {
		w.dispatch(m, "// checkKind applies the rules of the event's kind.",
			"(m *machine) checkKind(ev *Event, sub *subject) *RuleError", "return ", "check", "m", "}\nreturn nil\n")
		w.dispatch(m, "// applyKind notes what an event of its kind changes.",
			"(m *machine) applyKind(ev *Event, sub *subject)", "", "apply", "m", "}\n")
		w.dispatch(m, "// showKind puts into the snapshot what an event of its kind says.",
			"(v *view) showKind(ev *Event, sub *subject)", "", "show", "v", "case -1:\nv.unknown(ev)\n}\n")
	}

	w.p("")
	for _, st := range m.rows {
		w.p("\nfunc (v *%[1]s) reset() { *v = %[1]s{} }", st.name)
	}

	w.p("")
	for i, st := range m.rows {
		w.p("\nfunc (*%s) index() int { return %d }", st.name, i)
	}

	w.p(`
// limited tells, by the position in the catalog, whether a payload can hold values that JSON has no
// text for: floats and times.
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

// dispatch writes a method that calls, for the kind of an event, the function that the catalog
// names. The calls are static: an event that is passed to a function value is moved to the heap.
func (w *writer) dispatch(m *model, doc, signature, result, what, receiver, rest string) {
	w.p("\n%s\nfunc %s {\nswitch sub.index {", doc, signature)
	cases := map[string][]string{}
	var order []string
	for i, r := range m.order {
		if method := r.does[what]; method != "" {
			if cases[method] == nil {
				order = append(order, method)
			}
			cases[method] = append(cases[method], strconv.Itoa(i))
		}
	}
	for _, method := range order {
		w.p("case %s:\n%s%s.%s(ev, sub)", strings.Join(cases[method], ", "), result, receiver, method)
	}
	w.p("%s}", rest)
}
