// Command gen writes the codec of the root package: the code that appends,
// parses, checks and redacts every payload and every struct inside one. It
// reads the struct declarations; nothing is declared twice.
//
//	go run ./internal/gen          # write the z*_gen.go files
//	go run ./internal/gen -check   # fail if they are not up to date
//
// # What it reads
//
// It generates for every struct that has a field with a json tag, and sorts them into three groups:
//
//   - a payload has a constant of type Kind, named Kind and the struct's name,
//     and a row in the catalog;
//   - a value has a field "extra extras" but no such constant: it stands inside
//     payloads;
//   - a record has neither: it is part of a snapshot. Records can be appended,
//     parsed and cloned. A record may embed a record or a value: the members of
//     the embedded struct stand in its object, in the place of the embedding.
//
// The tags of a field are:
//
//	json:"name"           required: always written; JSON unless there is none
//	json:"name,omitzero"  optional: left out while it is zero
//	json:"-"              not on the wire
//	wire:"name,omitzero"  json for an unexported field, in records
//	class:"id"            sensitivity: id, meta, content or secret
//	fold:"-"              text that no fold reads: a reader for folds need not unescape it
//	broken:"object"       JSON that an emitter records as an object when it is broken
//	broken:"FieldText"    JSON that it records as a string then, and sets this bool of the struct
//	check:"required"      rules, separated by commas: required, min=N, unit; floats are finite in any case
//
// Payloads and values need a class on every field. An unexported field without
// a tag is not on the wire. The copy of a record has it at zero, like all fields
// that are not on the wire.
//
// gen also writes two tables: that in docs/vocabulary.md lists the kinds, from the Mirrors
// paragraphs of the payloads' doc comments; the Go table of rules has the comments of the constants
// of type Rule.
//
// # How it is made
//
// load (load.go) turns the source into a [model]; types.go knows the field
// types; append.go, parse.go, check.go, clean.go, clone.go, extra.go, json.go and
// kinds.go write one file each. The JSON text of a single value is the row of a table, [scalars], so a
// new scalar type is a new row and a name in [plainShapes]. Slices, maps and
// pointers have one function per type, which the [writer] adds on demand.
// Functions that do not depend on the structs are in helpers.go, as text; a
// file gets those that it calls.
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

func main() {
	dir := flag.String("dir", ".", "folder of the package")
	check := flag.Bool("check", false, "write nothing; fail if the files on disk differ")
	flag.Parse()
	if err := run(*dir, *check); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run writes the generated files of the package in dir, or compares them with the existing ones.
func run(dir string, check bool) error {
	files, err := generate(dir)
	if err != nil {
		return err
	}
	var errs []error
	for _, f := range files {
		path := filepath.Join(dir, f.name)
		old, err := os.ReadFile(path)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		switch {
		case err == nil && bytes.Equal(old, f.text):
		case check:
			errs = append(errs, fmt.Errorf("%s is not up to date: run go generate", path))
		default:
			errs = append(errs, os.WriteFile(path, f.text, 0o644))
		}
	}
	return errors.Join(errs...)
}

// A file is one output.
type file struct {
	name string
	text []byte
}

// generate returns the generated files of the package in dir.
func generate(dir string) ([]file, error) {
	m, err := load(dir)
	if err != nil {
		return nil, err
	}
	var files []file
	for _, out := range []struct {
		name  string
		parts []func(w *writer, m *model)
	}{
		{"zappend_gen.go", []func(*writer, *model){writeAppend}},
		{"zkinds_gen.go", []func(*writer, *model){writeKinds}},
		{"zparse_gen.go", []func(*writer, *model){writeParse}},
		{"zvalues_gen.go", []func(*writer, *model){writeCheck, writeClean, writeClone, writeExtra, writeJSON}},
	} {
		w := newWriter()
		for _, write := range out.parts {
			write(w, m)
		}
		text, err := w.file(m)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", out.name, err)
		}
		files = append(files, file{out.name, text})
	}
	if f, err := fields(dir, m); err != nil {
		return nil, err
	} else if f != nil {
		files = append(files, *f)
	}
	if text, err := vocabulary(dir, m); err != nil {
		return nil, err
	} else if text != nil {
		files = append(files, file{"docs/vocabulary.md", text})
	}
	return files, nil
}
