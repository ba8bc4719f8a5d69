package main

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"iter"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// A model is the parsed source.
type model struct {
	pkg     string
	structs []*structType // all of them, in source order
	rows    []*structType // the payloads, in the catalog's order

	fset  *token.FileSet
	named map[string]*ast.TypeSpec // types declared in the package
	known map[string]bool          // of these, the ones with a method known
	more  map[string]bool          // of these, the ones with a method checkMore
	built map[string]*structType   // structs to generate for
	kinds map[string]token.Pos     // constants of type Kind
	rules []rule                   // constants of type Rule, in source order
	order []row                    // the catalog
	errs  []error

	helped map[string]bool // helpers that an output has already
}

// A row is a row of the catalog.
type row struct {
	constant string
	does     map[string]string // methods by their purpose: check, apply, show
	pos      token.Pos
}

// A rule is a constant of type Rule and the statement in its comment.
type rule struct{ constant, statement string }

// A role is the purpose of a struct.
type role int

const (
	record role = iota
	value
	payload
)

func (r role) String() string { return [...]string{"record", "value", "payload"}[r] }

// A structType is a struct that is generated for.
type structType struct {
	name      string
	role      role
	fields    []*field
	checkMore bool          // the package declares the method
	embeds    []*structType // their fields are promoted
	loose     []string      // fields that are not on the wire; a copy has them at zero

	syntax *ast.StructType
	pos    token.Pos
	read   bool // readFields is done
}

// open reports whether the struct keeps members that it does not know.
func (st *structType) open() bool { return st.role != record }

// A field is a field on the wire.
type field struct {
	name     string // Go name
	json     string // member name
	number   int    // from 1
	typ      *typ
	required bool
	promoted bool   // of an embedded struct
	class    string // the constant, such as ClassMeta; empty in records
	aside    bool   // text that no fold reads
	object   bool   // JSON that is broken is recorded as an object
	quoted   string // name of the bool that is set when broken JSON is recorded as a string
	check    checks

	pos token.Pos
}

// checks are the rules of a check tag.
type checks struct {
	required bool
	min      *int64
	unit     bool
}

// load reads the package in dir.
func load(dir string) (*model, error) {
	m := &model{
		fset:  token.NewFileSet(),
		named: map[string]*ast.TypeSpec{},
		known: map[string]bool{},
		more:  map[string]bool{},
		built: map[string]*structType{},
		kinds: map[string]token.Pos{},
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var files []*ast.File
	for _, e := range entries { // sorted by name
		if name := e.Name(); filepath.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go") ||
			strings.HasSuffix(name, "_gen.go") {
			continue
		}
		f, err := parser.ParseFile(m.fset, filepath.Join(dir, e.Name()), nil,
			parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		if !ast.IsGenerated(f) {
			files = append(files, f)
		}
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("%s: no Go files", dir)
	}
	m.pkg = files[0].Name.Name
	for _, f := range files {
		m.collect(f)
	}
	// All structs first: fields refer to structs that come later.
	for _, st := range m.structs {
		m.classify(st)
	}
	for _, st := range m.structs {
		m.readFields(st)
	}
	m.matchCatalog()
	if len(m.errs) > 0 {
		return nil, errors.Join(m.errs...)
	}
	return m, nil
}

func (m *model) errorf(pos token.Pos, format string, args ...any) {
	p := m.fset.Position(pos)
	m.errs = append(m.errs, fmt.Errorf("%s:%d: %s", p.Filename, p.Line, fmt.Sprintf(format, args...)))
}

// collect notes the declarations of f that matter.
func (m *model) collect(f *ast.File) {
	for _, decl := range f.Decls {
		switch decl := decl.(type) {
		case *ast.FuncDecl:
			m.collectMethod(decl)
		case *ast.GenDecl:
			for _, spec := range decl.Specs {
				switch spec := spec.(type) {
				case *ast.TypeSpec:
					m.collectType(spec)
				case *ast.ValueSpec:
					m.collectValue(decl, spec)
				}
			}
		}
	}
}

func (m *model) collectMethod(decl *ast.FuncDecl) {
	if decl.Recv == nil || len(decl.Recv.List) != 1 {
		return
	}
	receiver := decl.Recv.List[0].Type
	star, pointer := receiver.(*ast.StarExpr)
	if pointer {
		receiver = star.X
	}
	id, ok := receiver.(*ast.Ident)
	if !ok {
		return
	}
	switch decl.Name.Name {
	case "known":
		m.known[id.Name] = true
	case "checkMore":
		m.more[id.Name] = true
	}
}

func (m *model) collectType(spec *ast.TypeSpec) {
	if spec.TypeParams != nil || spec.Assign.IsValid() {
		return
	}
	m.named[spec.Name.Name] = spec
	if st, ok := spec.Type.(*ast.StructType); ok {
		// classify throws out the ones that are not for us.
		m.structs = append(m.structs, &structType{name: spec.Name.Name, syntax: st, pos: spec.Pos()})
	}
}

func (m *model) collectValue(decl *ast.GenDecl, spec *ast.ValueSpec) {
	if decl.Tok == token.CONST {
		if id, ok := spec.Type.(*ast.Ident); ok && id.Name == "Rule" {
			m.collectRule(decl, spec)
		}
		if id, ok := spec.Type.(*ast.Ident); ok && id.Name == "Kind" {
			for _, name := range spec.Names {
				m.kinds[name.Name] = name.Pos()
			}
		}
		return
	}
	if len(spec.Names) != 1 || spec.Names[0].Name != "catalog" || len(spec.Values) != 1 {
		return
	}
	list, ok := spec.Values[0].(*ast.CompositeLit)
	if !ok {
		m.errorf(spec.Pos(), "catalog: want a composite literal, to read the order of the kinds from")
		return
	}
	for _, elt := range list.Elts {
		m.collectRow(elt)
	}
}

// collectRule reads the statement of a rule from its comment: the text after the colon.
func (m *model) collectRule(decl *ast.GenDecl, spec *ast.ValueSpec) {
	doc := spec.Doc
	if doc == nil {
		doc = decl.Doc
	}
	for _, name := range spec.Names {
		statement, ok := strings.CutPrefix(strings.Join(strings.Fields(doc.Text()), " "), name.Name+": ")
		if !ok {
			m.errorf(name.Pos(), "%s: write the comment as // %s: the statement of the rule.", name.Name, name.Name)
		}
		m.rules = append(m.rules, rule{name.Name, strings.TrimSuffix(statement, ".")})
	}
}

func (m *model) collectRow(elt ast.Expr) {
	r := row{does: map[string]string{}}
	for key, value := range keyed(elt) {
		switch key {
		case "Kind":
			if id, ok := value.(*ast.Ident); ok {
				r.constant, r.pos = id.Name, id.Pos()
			}
		case "does":
			if ref, ok := value.(*ast.UnaryExpr); ok {
				for what, method := range keyed(ref.X) {
					if sel, ok := method.(*ast.SelectorExpr); ok {
						r.does[what] = sel.Sel.Name
					}
				}
			}
			if len(r.does) == 0 {
				m.errorf(value.Pos(), "catalog: write the behaviour of a kind as &behaviour{check: (*machine).checkName, …}")
			}
		}
	}
	if r.constant == "" {
		m.errorf(elt.Pos(), "catalog: write the row as {Kind: KindName, …}")
		return
	}
	m.order = append(m.order, r)
}

// keyed yields the elements of a composite literal that have a name.
func keyed(e ast.Expr) iter.Seq2[string, ast.Expr] {
	return func(yield func(string, ast.Expr) bool) {
		lit, ok := e.(*ast.CompositeLit)
		if !ok {
			return
		}
		for _, elt := range lit.Elts {
			if kv, ok := elt.(*ast.KeyValueExpr); ok {
				if key, ok := kv.Key.(*ast.Ident); ok && !yield(key.Name, kv.Value) {
					return
				}
			}
		}
	}
}

// classify finds the role of st. Structs that are not on the wire leave the model.
func (m *model) classify(st *structType) {
	tagged, open := false, false
	for _, f := range st.syntax.Fields.List {
		if _, ok := wireTag(m.tag(f)); ok {
			tagged = true
		}
		if len(f.Names) == 1 && f.Names[0].Name == "extra" && m.source(f.Type) == "extras" {
			open = true
		}
	}
	_, isKind := m.kinds["Kind"+st.name]
	switch {
	case isKind && !open:
		m.errorf(st.pos, "%s: a payload needs the field: extra extras", st.name)
		st.role = payload
	case isKind:
		st.role = payload
	case tagged && open:
		st.role = value
	case !tagged:
		return
	}
	st.checkMore = m.more[st.name]
	m.built[st.name] = st
}

func (m *model) tag(f *ast.Field) reflect.StructTag {
	if f.Tag == nil {
		return ""
	}
	text, err := strconv.Unquote(f.Tag.Value)
	if err != nil {
		return ""
	}
	return reflect.StructTag(text)
}

// wireTag returns the tag that names a member. An unexported field has it under
// the key wire: go vet refuses a json tag there.
func wireTag(tag reflect.StructTag) (string, bool) {
	if text, ok := tag.Lookup("json"); ok {
		return text, true
	}
	return tag.Lookup("wire")
}

// maxFields is the number of fields that fit in the mask of a parser; a record has two masks.
const maxFields = 64

var jsonName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// readFields reads the fields of st, after the fields of the structs that it embeds.
func (m *model) readFields(st *structType) {
	if m.built[st.name] != st || st.read {
		return
	}
	st.read = true
	names := map[string]string{} // Go names by JSON names
	add := func(fd field) {
		if other, ok := names[fd.json]; ok {
			m.errorf(fd.pos, "%s.%s: json name %q is taken by %s; choose another", st.name, fd.name, fd.json, other)
			return
		}
		names[fd.json] = fd.name
		st.fields = append(st.fields, &fd)
		fd.number = len(st.fields)
	}
	for _, f := range st.syntax.Fields.List {
		if len(f.Names) == 0 {
			for _, fd := range m.embedded(st, f) {
				fd := *fd
				fd.promoted = true
				add(fd)
			}
		}
		for _, name := range f.Names {
			tag, tagged := wireTag(m.tag(f))
			switch {
			case name.Name == "extra" && st.open() || name.Name == "_":
			case tag == "-", !tagged && !name.IsExported():
				st.loose = append(st.loose, name.Name)
			default:
				if fd := m.readField(st, name, f); fd != nil {
					add(*fd)
				}
			}
		}
	}
	most := maxFields
	if !st.open() {
		most *= 2
	}
	if len(st.fields) > most {
		m.errorf(st.pos, "%s: %d fields, at most %d are supported; move some into a struct of their own", st.name,
			len(st.fields), most)
	}
}

// embedded returns the fields of the struct that f embeds in st. They stand in
// st as if they were its own.
func (m *model) embedded(st *structType, f *ast.Field) []*field {
	name := m.source(f.Type)
	inner := m.built[name]
	switch {
	case inner == nil:
		m.errorf(f.Pos(), "%s: embedded %s: not supported; embed a struct of this package with json or wire tags",
			st.name, name)
		return nil
	case st.open():
		m.errorf(f.Pos(), "%s: embedded %s: only a record embeds; write a named field", st.name, name)
		return nil
	case f.Tag != nil:
		m.errorf(f.Pos(), "%s: embedded %s: has a tag; remove it, or write a named field", st.name, name)
		return nil
	}
	m.readFields(inner)
	st.embeds = append(st.embeds, inner)
	for _, own := range st.syntax.Fields.List {
		for _, id := range own.Names {
			if slices.ContainsFunc(inner.fields, func(fd *field) bool { return fd.name == id.Name }) {
				m.errorf(id.Pos(), "%s.%s: hides the field of the embedded %s; choose another name", st.name, id.Name, name)
			}
		}
	}
	return inner.fields
}

// readField reads one field. It returns nil after an error.
func (m *model) readField(st *structType, name *ast.Ident, f *ast.Field) *field {
	before := len(m.errs)
	fail := func(format string, args ...any) {
		m.errorf(name.Pos(), "%s.%s: %s", st.name, name.Name, fmt.Sprintf(format, args...))
	}
	fd := &field{name: name.Name, pos: name.Pos()}
	tag := m.tag(f)
	json, ok := wireTag(tag)
	if !ok {
		fail(`no json tag: name the member, or write json:"-" to leave the field out`)
		return nil
	}
	if st.open() && !name.IsExported() {
		fail("only a record has unexported fields on the wire")
	}
	fd.json, json, _ = strings.Cut(json, ",")
	fd.required = json != "omitzero"
	if json != "" && json != "omitzero" {
		fail("json option %q: only omitzero is supported", json)
	}
	if !jsonName.MatchString(fd.json) {
		fail("json name %q: use letters, digits and _", fd.json)
	}
	if class, ok := tag.Lookup("class"); ok {
		fd.class = classes[class]
		if fd.class == "" {
			fail("class %q: want id, meta, content or secret", class)
		}
	} else if st.open() {
		fail(`no class tag: add class:"id", "meta", "content" or "secret"`)
	}
	t, err := m.typeOf(f.Type)
	if err != nil {
		fail("%v", err)
		return nil
	}
	fd.typ = t
	if t.shape == structShape && !fd.required {
		fail("an optional struct is written Opt[%s]", t.name)
	}
	if t.shape == jsonShape && fd.required {
		// No text stands for a value that is missing: null is one. So it is left out.
		fd.required, fd.check.required = false, true
	}
	if t.shape == optShape && fd.required {
		fail("an Opt is optional: add omitzero, or use %s", t.elem.name)
	}
	if innermost(t).shape == bytesShape && st.open() {
		fail("[]byte is for records; write string")
	}
	if inner := innermost(t); st.open() && inner.shape == structShape && !inner.object.open() {
		fail("%s stands inside a %s and has no field extra: add the field: extra extras", inner.name, st.role)
	}
	if text, ok := tag.Lookup("check"); ok {
		for rule := range strings.SplitSeq(text, ",") {
			if err := fd.check.add(rule, t); err != nil {
				fail("check %q: %v", rule, err)
			}
		}
		if !st.open() {
			fail("check: records are not checked; remove the tag")
		}
	}
	if text, ok := tag.Lookup("fold"); ok {
		fd.aside = true
		if text != "-" || t.name != "string" {
			fail("fold %q: write fold:\"-\", on a string that no fold reads", text)
		}
	}
	if text, ok := tag.Lookup("broken"); ok {
		fd.object = text == "object"
		if !fd.object {
			fd.quoted = text
		}
		if t.shape != jsonShape || !fd.object && text != fd.name+"Text" {
			fail("broken %q: write broken:\"object\" or broken:\"%sText\", on JSON", text, fd.name)
		}
	}
	if len(m.errs) > before {
		return nil
	}
	return fd
}

var classes = map[string]string{
	"id":      "ClassID",
	"meta":    "ClassMeta",
	"content": "ClassContent",
	"secret":  "ClassSecret",
}

func innermost(t *typ) *typ {
	for t.elem != nil {
		t = t.elem
	}
	return t
}

// add adds a rule for a field of type t. Rules about numbers also hold for
// the elements of slices and maps.
func (c *checks) add(rule string, t *typ) error {
	inner := innermost(t)
	name, arg, _ := strings.Cut(rule, "=")
	switch name {
	case "required":
		switch t.shape {
		case textShape, wordShape, listShape, dictShape:
			c.required = true
			return nil
		}
		return fmt.Errorf("is for strings, slices and maps, not %s", t.name)
	case "min":
		n, err := strconv.ParseInt(arg, 10, 64)
		if err != nil {
			return errors.New("want a whole number after min=")
		}
		c.min = &n
		switch inner.shape {
		case intShape, int64Shape, floatShape, millisShape:
			return nil
		}
		return fmt.Errorf("is for signed numbers and durations, not %s", t.name)
	case "unit":
		c.unit = true
	default:
		return errors.New("want required, min=N or unit")
	}
	if inner.shape != floatShape {
		return fmt.Errorf("is for float64, not %s", t.name)
	}
	return nil
}

// plainShapes are the shapes of the types that have no declaration to look at.
var plainShapes = map[string]shape{
	"string": textShape, "bool": boolShape, "int": intShape, "int64": int64Shape, "uint64": uint64Shape, "float64": floatShape,
	"JSON": jsonShape, "time.Time": timeShape, "time.Duration": millisShape,
}

// typeOf reads a field's type.
func (m *model) typeOf(e ast.Expr) (*typ, error) {
	t := &typ{name: m.source(e)}
	unsupported := fmt.Errorf("type %s: not supported; internal/gen/types.go lists the types", t.name)
	var inside ast.Expr
	switch e := e.(type) {
	case *ast.Ident, *ast.SelectorExpr:
		if shape, ok := plainShapes[t.name]; ok {
			t.shape = shape
			return t, nil
		}
		if st := m.built[t.name]; st != nil {
			t.shape, t.object = structShape, st
			return t, nil
		}
		spec := m.named[t.name]
		if spec == nil {
			return nil, unsupported
		}
		switch under := spec.Type.(type) {
		case *ast.StructType:
			return nil, fmt.Errorf("type %s: none of its fields has a json or wire tag", t.name)
		case *ast.Ident:
			if under.Name != "string" {
				return nil, unsupported
			}
		default:
			return nil, unsupported
		}
		t.shape = textShape
		if m.known[t.name] {
			t.shape = wordShape
		}
		return t, nil
	case *ast.StarExpr:
		t.shape, inside = pointerShape, e.X
	case *ast.ArrayType:
		if e.Len != nil {
			return nil, unsupported
		}
		if t.name == "[]byte" {
			t.shape = bytesShape
			return t, nil
		}
		t.shape, inside = listShape, e.Elt
	case *ast.MapType:
		if m.source(e.Key) != "string" {
			return nil, fmt.Errorf("type %s: not supported; the keys of a map are strings", t.name)
		}
		t.shape, inside = dictShape, e.Value
	case *ast.IndexExpr:
		if m.source(e.X) != "Opt" {
			return nil, unsupported
		}
		t.shape, inside = optShape, e.Index
	default:
		return nil, unsupported
	}
	var err error
	if t.elem, err = m.typeOf(inside); err != nil {
		return nil, err
	}
	switch _, scalar := t.elem.scalar(); {
	case t.shape == pointerShape && t.elem.shape != structShape,
		t.shape == optShape && !scalar && t.elem.shape != structShape,
		t.elem.shape == optShape:
		return nil, unsupported
	}
	return t, nil
}

// source returns a type as it is written, for the expressions that types are
// made of.
func (m *model) source(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return m.source(e.X) + "." + e.Sel.Name
	case *ast.StarExpr:
		return "*" + m.source(e.X)
	case *ast.ArrayType:
		if e.Len == nil {
			return "[]" + m.source(e.Elt)
		}
		return "[…]" + m.source(e.Elt)
	case *ast.MapType:
		return "map[" + m.source(e.Key) + "]" + m.source(e.Value)
	case *ast.IndexExpr:
		return m.source(e.X) + "[" + m.source(e.Index) + "]"
	case *ast.StructType:
		return "struct{…}"
	}
	return strings.TrimPrefix(fmt.Sprintf("%T", e), "*ast.")
}

// matchCatalog ties constants, rows and structs together.
func (m *model) matchCatalog() {
	seen := map[string]bool{}
	for _, r := range m.order {
		name := strings.TrimPrefix(r.constant, "Kind")
		st := m.built[name]
		_, declared := m.kinds[r.constant]
		switch {
		case seen[r.constant]:
			m.errorf(r.pos, "catalog: %s has two rows; remove one", r.constant)
		case !declared:
			m.errorf(r.pos, "catalog: %s is not a constant of type Kind; declare it", r.constant)
		case st == nil || st.role != payload:
			m.errorf(r.pos, "catalog: %s has no payload; declare the struct %s", r.constant, name)
		default:
			m.rows = append(m.rows, st)
		}
		seen[r.constant] = true
	}
	for _, constant := range sortedByPos(m.kinds) {
		if name := strings.TrimPrefix(constant, "Kind"); name == constant {
			m.errorf(m.kinds[constant], "%s: name a constant of type Kind Kind<Struct>", constant)
		} else if !seen[constant] {
			m.errorf(m.kinds[constant], "%s has no row in the catalog; add {Kind: %s, …}", constant, constant)
		}
	}
	m.structs = slices.DeleteFunc(m.structs, func(st *structType) bool { return m.built[st.name] != st })
}

func sortedByPos(m map[string]token.Pos) []string {
	var names []string
	for name := range m {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int { return int(m[a]) - int(m[b]) })
	return names
}
