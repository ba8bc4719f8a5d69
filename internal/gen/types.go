package main

import (
	"fmt"
	"strings"
)

// A shape decides which code a type needs.
type shape int

const (
	textShape    shape = iota // string, and named string types that are open
	wordShape                 // named string types with a closed list: method known
	boolShape                 // bool
	intShape                  // int
	int64Shape                // int64
	uint64Shape               // uint64
	floatShape                // float64
	bytesShape                // []byte that holds text; in records
	jsonShape                 // JSON
	timeShape                 // time.Time
	millisShape               // time.Duration, milliseconds on the wire
	structShape               // a struct that is generated for
	pointerShape              // a pointer to one; nil is null
	listShape                 // a slice
	dictShape                 // a map with string keys
	optShape                  // Opt
)

// A typ is the type of a field, or of a part of it.
type typ struct {
	shape  shape
	name   string      // as Go spells it
	elem   *typ        // of a pointer, list, dict or opt
	object *structType // of a structShape
}

// A scalar tells how a shape without parts goes to and from JSON. In the formats, %[1]s is a Go
// expression of the type and %[2]s the type's name.
type scalar struct {
	append  string // an expression: dst with the JSON text appended
	read    string // an expression: the next value of s, and an error
	present string // a condition: the value is not zero
	absent  string // a condition: the value is zero
	zero    string // JSON text of the zero value
}

// scalars is the table of all scalar shapes.
var scalars = map[shape]scalar{
	textShape:   {`jsonwire.AppendString(dst, string(%[1]s))`, `parseText[%[2]s](s)`, `%[1]s != ""`, `%[1]s == ""`, `""`},
	wordShape:   {`jsonwire.AppendString(dst, string(%[1]s))`, `parseText[%[2]s](s)`, `%[1]s != ""`, `%[1]s == ""`, `""`},
	boolShape:   {`strconv.AppendBool(dst, %[1]s)`, `s.Bool()`, `%[1]s`, `!%[1]s`, `false`},
	intShape:    {`jsonwire.AppendInt(dst, int64(%[1]s))`, `s.SmallInt()`, `%[1]s != 0`, `%[1]s == 0`, `0`},
	int64Shape:  {`jsonwire.AppendInt(dst, %[1]s)`, `s.Int()`, `%[1]s != 0`, `%[1]s == 0`, `0`},
	uint64Shape: {`jsonwire.AppendUint(dst, %[1]s)`, `s.Uint()`, `%[1]s != 0`, `%[1]s == 0`, `0`},
	floatShape:  {`jsonwire.AppendFloat(dst, %[1]s)`, `s.Float()`, `%[1]s != 0`, `%[1]s == 0`, `0`},
	bytesShape:  {`jsonwire.AppendString(dst, string(%[1]s))`, `parseBytes(s)`, `len(%[1]s) > 0`, `len(%[1]s) == 0`, `""`},
	jsonShape:   {`appendAny(dst, %[1]s)`, `parseAny(s)`, `%[1]s != ""`, `%[1]s == ""`, `null`},
	timeShape: {`jsonwire.AppendTime(dst, %[1]s)`, `s.Time()`, `!%[1]s.IsZero()`, `%[1]s.IsZero()`,
		`"0001-01-01T00:00:00.000Z"`},
	millisShape: {`jsonwire.AppendMillis(dst, %[1]s)`, `s.Millis()`, `%[1]s != 0`, `%[1]s == 0`, `0`},
}

// scalar returns t's row of the table, and false if t has insides.
func (t *typ) scalar() (scalar, bool) {
	row, ok := scalars[t.shape]
	if t.name == "string" {
		row.append = `jsonwire.AppendString(dst, %[1]s)`
		row.read = `s.String()`
	}
	return row, ok
}

// present returns the condition that an optional field with the value expr of
// type t is written.
func (t *typ) present(expr string) string {
	switch t.shape {
	case optShape:
		return expr + ".OK"
	case pointerShape, listShape, dictShape:
		return expr + " != nil"
	}
	row, _ := t.scalar()
	return fill(row.present, expr, t.name)
}

// zero returns the JSON text of a required field of type t at its zero value.
func (t *typ) zero() string {
	switch t.shape {
	case pointerShape:
		return "null"
	case listShape:
		return "[]"
	case dictShape:
		return "{}"
	case structShape:
		var members []string
		for _, f := range t.object.fields {
			if f.required {
				members = append(members, fmt.Sprintf("%q:%s", f.json, f.typ.zero()))
			}
		}
		return "{" + strings.Join(members, ",") + "}"
	}
	row, _ := t.scalar()
	return row.zero
}

// ident returns a name for t that can be part of a Go name: ListOfString.
func (t *typ) ident() string {
	switch t.shape {
	case pointerShape:
		return "RefTo" + t.elem.ident()
	case listShape:
		return "ListOf" + t.elem.ident()
	case dictShape:
		return "MapOf" + t.elem.ident()
	}
	if t.shape == bytesShape {
		return "Bytes"
	}
	name := strings.TrimPrefix(t.name, "time.")
	return strings.ToUpper(name[:1]) + name[1:]
}

// fill puts an expression and a type into a format of the table.
func fill(format, expr, name string) string {
	// A format need not use both.
	return strings.NewReplacer("%[1]s", expr, "%[2]s", name).Replace(format)
}
