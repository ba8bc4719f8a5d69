package apicheck

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestDocs checks that every exported name of the module's packages has a comment:
// constants, types, functions, methods and fields. The comment of a group counts for
// its constants.
func TestDocs(t *testing.T) {
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := d.Name()
		if d.IsDir() && (strings.HasPrefix(name, ".") && name != ".." || name == "testdata" || name == "internal" || name == "lawtest" || name == "bench") {
			return fs.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") || strings.HasSuffix(name, "_gen.go") {
			return nil
		}
		fset := token.NewFileSet()
		f, err := parser.ParseFile(fset, path, nil, parser.ParseComments)
		if err != nil || f.Name.Name == "main" {
			return err
		}
		for _, decl := range f.Decls {
			undocumented(decl, func(pos token.Pos, what string) {
				t.Errorf("%s: %s has no comment", fset.Position(pos), what)
			})
		}
		return nil
	})
	require.NoError(t, err)
}

func undocumented(decl ast.Decl, report func(token.Pos, string)) {
	switch d := decl.(type) {
	case *ast.FuncDecl:
		if d.Name.IsExported() && d.Doc == nil && (d.Recv == nil || ast.IsExported(receiver(d))) {
			report(d.Pos(), "func "+d.Name.Name)
		}
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			switch s := spec.(type) {
			case *ast.ValueSpec:
				for _, name := range s.Names {
					if name.IsExported() && d.Doc == nil && s.Doc == nil && s.Comment == nil {
						report(name.Pos(), name.Name)
					}
				}
			case *ast.TypeSpec:
				if !s.Name.IsExported() {
					continue
				}
				if d.Doc == nil && s.Doc == nil {
					report(s.Pos(), "type "+s.Name.Name)
				}
				if st, ok := s.Type.(*ast.StructType); ok {
					undocumentedFields(s.Name.Name, st, report)
				}
			}
		}
	}
}

func undocumentedFields(owner string, st *ast.StructType, report func(token.Pos, string)) {
	covered := false // the group of lines begins with a comment
	last := token.NoPos
	for _, f := range st.Fields.List {
		adjacent := last != token.NoPos && f.Pos()-last < 3
		covered = f.Doc != nil || f.Comment != nil || covered && adjacent
		last = f.End()
		for _, name := range f.Names {
			if name.IsExported() && !covered {
				report(name.Pos(), owner+"."+name.Name)
			}
		}
	}
}

func receiver(d *ast.FuncDecl) string {
	t := d.Recv.List[0].Type
	if star, ok := t.(*ast.StarExpr); ok {
		t = star.X
	}
	switch t := t.(type) {
	case *ast.IndexExpr:
		return t.X.(*ast.Ident).Name
	case *ast.Ident:
		return t.Name
	}
	return ""
}
