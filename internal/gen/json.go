package main

import "go/ast"

// writeJSON writes, to zvalues_gen.go, the methods that make encoding/json write and
// read every exported struct as this package does.
func writeJSON(w *writer, m *model) {
	for _, st := range m.structs {
		if !ast.IsExported(st.name) {
			continue
		}
		if st.open() {
			w.p("\n// MarshalJSON returns the members as they stand on a line; the error is a [*RuleError].")
			w.p("func (v %s) MarshalJSON() ([]byte, error) { return marshal(&v) }", st.name)
			w.p("\n// UnmarshalJSON reads that and keeps extra members; the error is a [*LineError].")
		} else {
			w.p("\n// MarshalJSON returns the members as they stand in a snapshot.")
			w.p("func (v %s) MarshalJSON() ([]byte, error) { return v.appendJSON(nil), nil }", st.name)
			w.p("\n// UnmarshalJSON reads that and skips extra members; the error is a [*LineError].")
		}
		w.p("func (v *%s) UnmarshalJSON(text []byte) error { return unmarshal(text, v) }", st.name)
	}
}
