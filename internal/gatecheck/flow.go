package main

import (
	"errors"
	"go/ast"
	"go/types"
	"path"
	"slices"
)

// A flow is how values move through the tests of a package: into variables, fields,
// parameters and the results of functions. It knows no order: a variable that once gets a
// value always has it.
type flow struct {
	files    []*file // tests, and helpers of tests
	info     *types.Info
	edges    []edge
	literals map[*ast.FuncLit]types.Object // the variables of function literals
}

// An edge is an expression whose value an object may get.
type edge struct {
	to   types.Object
	from ast.Expr
}

// flows returns the flows of the packages that have tests. Each package is type-checked
// without its imports: that resolves its own names in a small part of the time.
func (t *tree) flows() []*flow {
	var packages []string
	files := map[string][]*file{}
	for _, f := range t.files {
		p := path.Dir(f.path) + " " + f.ast.Name.Name
		if files[p] == nil {
			packages = append(packages, p)
		}
		files[p] = append(files[p], f)
	}
	var found []*flow
	for _, p := range packages {
		tests := slices.DeleteFunc(slices.Clone(files[p]), func(f *file) bool { return !f.helps() })
		if len(tests) == 0 {
			continue
		}
		info := &types.Info{Types: map[ast.Expr]types.TypeAndValue{}, Defs: map[*ast.Ident]types.Object{},
			Uses: map[*ast.Ident]types.Object{}}
		var parsed []*ast.File
		for _, f := range files[p] {
			parsed = append(parsed, f.ast)
		}
		conf := types.Config{Importer: noImports{}, Error: func(error) {}}
		conf.Check(p, t.fset, parsed, info) // its errors are about the imports
		f := &flow{files: tests, info: info, literals: map[*ast.FuncLit]types.Object{}}
		for _, file := range tests {
			f.collect(file.ast, nil)
		}
		found = append(found, f)
	}
	return found
}

type noImports struct{}

func (noImports) Import(string) (*types.Package, error) { return nil, errors.New("not imported") }

// collect adds the edges of a function's body, or of a file.
func (f *flow) collect(body ast.Node, function types.Object) {
	ast.Inspect(body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			if n.Body != nil {
				f.collect(n.Body, f.info.Defs[n.Name])
			}
			return false
		case *ast.FuncLit:
			f.collect(n.Body, f.literals[n])
			return false
		case *ast.AssignStmt:
			for i, to := range n.Lhs {
				f.add(f.object(to), n.Rhs[min(i, len(n.Rhs)-1)])
			}
		case *ast.ValueSpec:
			for i, to := range n.Names[:min(len(n.Names), len(n.Values))] {
				f.add(f.object(to), n.Values[i])
			}
		case *ast.RangeStmt:
			f.add(f.object(n.Value), n.X)
		case *ast.SendStmt:
			f.add(f.object(n.Chan), n.Value)
		case *ast.KeyValueExpr:
			f.add(f.object(n.Key), n.Value)
		case *ast.ReturnStmt:
			for _, result := range n.Results {
				f.add(function, result)
			}
		case *ast.CallExpr:
			if s, ok := f.info.TypeOf(n.Fun).(*types.Signature); ok && s.Params().Len() > 0 {
				for i, arg := range n.Args {
					f.add(s.Params().At(min(i, s.Params().Len()-1)), arg)
				}
			}
		}
		return true
	})
}

func (f *flow) add(to types.Object, from ast.Expr) {
	if literal, ok := from.(*ast.FuncLit); ok {
		f.literals[literal] = to
	} else if to != nil {
		f.edges = append(f.edges, edge{to, from})
	}
}

// object returns the variable, field, constant or function that an expression names, or
// nil. An element stands for its whole.
func (f *flow) object(e ast.Expr) types.Object {
	switch e := e.(type) {
	case *ast.Ident:
		return f.info.ObjectOf(e)
	case *ast.SelectorExpr:
		return f.info.ObjectOf(e.Sel)
	case *ast.IndexExpr:
		return f.object(e.X)
	case *ast.StarExpr:
		return f.object(e.X)
	case *ast.ParenExpr:
		return f.object(e.X)
	}
	return nil
}

// spread returns the objects that may get a value for which holds returns true. The
// function is called with the set that is known up to then.
func (f *flow) spread(holds func(known map[types.Object]bool, e ast.Expr) bool) map[types.Object]bool {
	known := map[types.Object]bool{}
	for changed := true; changed; {
		changed = false
		for _, e := range f.edges {
			if !known[e.to] && holds(known, e.from) {
				known[e.to], changed = true, true
			}
		}
	}
	return known
}

// derived reports whether an expression is made of a source or of a known object. The
// length of a list tells nothing about its elements, and a field is an object of its own.
func (f *flow) derived(e ast.Expr, known map[types.Object]bool, source func(ast.Expr) bool) (found bool) {
	ast.Inspect(e, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncLit, *ast.KeyValueExpr:
			return false
		case *ast.CallExpr:
			if name(n) == "len" {
				return false
			}
		case *ast.Ident:
			found = found || known[f.info.ObjectOf(n)]
		}
		if e, ok := n.(ast.Expr); ok && source(e) {
			found = true
		}
		return !found
	})
	return found
}
