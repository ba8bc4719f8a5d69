package apicheck

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// writers are the functions of package os that write a file, and may do so through a link or
// for everybody.
var writers = []string{"Create", "WriteFile", "OpenFile", "CreateTemp"}

// freeWriters are the folders whose code may call them: its files hold no content of a
// program's events, or belongs to a test or an example.
var freeWriters = []string{
	"internal/disk",                                                                                                                // it is the one place
	"internal/gen", "internal/gatecheck", "internal/lawtest/internal/openwopschemas", "bench", "internal/compare", "tools/release", // sources and tables of the repository, and logs that were made up
	"examples", "tools/collector", "tools/sessions", // programs of their own, which write where they are told
	"otelhook/internal/backendtest", // starts the servers of a test
}

// Content is written by package disk: for its owner only, and through no link.
func TestFilesAreWrittenInOnePlace(t *testing.T) {
	seen := 0
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := filepath.ToSlash(strings.TrimPrefix(path, "../../"))
		if d.IsDir() {
			if strings.HasPrefix(d.Name(), ".") && path != "../.." || d.Name() == "testdata" || slices.Contains(freeWriters, name) {
				return fs.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		seen++
		fset := token.NewFileSet()
		f, err := parser.ParseFile(fset, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(f, func(n ast.Node) bool {
			sel, ok := n.(*ast.SelectorExpr)
			if !ok || !slices.Contains(writers, sel.Sel.Name) {
				return true
			}
			if pkg, ok := sel.X.(*ast.Ident); ok && pkg.Name == "os" {
				t.Errorf("%s: os.%s: content is written by internal/disk", fset.Position(sel.Pos()), sel.Sel.Name)
			}
			return true
		})
		return nil
	})
	require.NoError(t, err)
	require.Greater(t, seen, 200)
}
