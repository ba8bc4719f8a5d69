package apicheck

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// configures matches the names of structs that programs fill in to configure something.
var configures = regexp.MustCompile(`^(.*Options|Policy|Limits|Timing|Client|Host)$`)

// boundTag is the key of the tag that package option reads.
const boundTag = "least"

// A number of an option has a bound that option.Check enforces, or a comment that says what it
// means below 0.
func TestNumbersOfOptions(t *testing.T) {
	numbers := 0
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		if name := d.Name(); strings.HasPrefix(name, ".") && name != ".." || slices.Contains([]string{"testdata", "internal", "lawtest", "bench", "cmd", "examples", "tools"}, name) {
			return fs.SkipDir
		}
		fset := token.NewFileSet()
		files, err := filepath.Glob(filepath.Join(path, "*.go"))
		if err != nil {
			return err
		}
		bounded, checked := map[string]bool{}, map[string]bool{}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			f, err := parser.ParseFile(fset, file, nil, parser.ParseComments)
			if err != nil {
				return err
			}
			ast.Inspect(f, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.TypeSpec:
					st, ok := n.Type.(*ast.StructType)
					if !ok || !configures.MatchString(n.Name.Name) || !n.Name.IsExported() {
						return true
					}
					doc := ""
					for _, field := range st.Fields.List {
						if field.Doc != nil { // or else the comment is that of the fields before
							doc = field.Doc.Text()
						}
						if !isNumber(field.Type) || !field.Names[0].IsExported() {
							continue
						}
						numbers++
						if _, has := reflect.StructTag(tagOf(field)).Lookup(boundTag); has {
							bounded[n.Name.Name] = true
						} else if !strings.Contains(doc, "negative") && !strings.Contains(doc, "below") {
							t.Errorf("%s: %s.%s has neither a tag %s nor a comment that says what it means below 0", fset.Position(field.Pos()), n.Name.Name, field.Names[0], boundTag)
						}
					}
				case *ast.CallExpr:
					if sel, ok := n.Fun.(*ast.SelectorExpr); ok && sel.Sel.Name == "Check" && len(n.Args) == 2 {
						checked[lastName(n.Args[0])] = true
					}
				}
				return true
			})
		}
		for name := range bounded {
			require.True(t, checked[name], "%s: nobody calls option.Check for %s", path, name)
		}
		return nil
	})
	require.NoError(t, err)
	require.Greater(t, numbers, 20)
}

func isNumber(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.Ident:
		return regexp.MustCompile(`^(int|float)\d*$`).MatchString(e.Name)
	case *ast.SelectorExpr:
		return e.Sel.Name == "Duration"
	}
	return false
}

func tagOf(f *ast.Field) string {
	if f.Tag == nil {
		return ""
	}
	return strings.Trim(f.Tag.Value, "`")
}

// lastName returns the name of a struct in the first argument of option.Check, which is a text
// or a constant or variable called name or in.
func lastName(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.BasicLit:
		text := strings.Trim(e.Value, `"`)
		return text[strings.LastIndexByte(text, '.')+1:]
	case *ast.Ident:
		if e.Obj != nil {
			if spec, ok := e.Obj.Decl.(*ast.ValueSpec); ok {
				return lastName(spec.Values[0])
			}
		}
		return map[string]string{"in": "Policy"}[e.Name]
	}
	return ""
}
