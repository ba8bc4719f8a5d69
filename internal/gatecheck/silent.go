package main

import (
	"go/ast"
	"go/token"
	"regexp"
	"slices"
	"strconv"
)

// outside are the functions and variables that tell a test about its machine.
var outside = []string{"os.Getenv", "os.LookupEnv", "os.Stat", "os.Lstat", "exec.LookPath", "filepath.Glob",
	"runtime.GOOS"}

// silent finds tests that return early, without a skip, because the machine lacks something.
// It sees a condition that asks for that itself, or for a result of the statement before.
// It also finds skips with a reason that skips.txt lacks: most machines have the program, and
// there only this check sees the reason.
func silent(t *tree) ([]string, error) {
	rows, err := parseSkips(skipsText)
	if err != nil {
		return nil, err
	}
	var findings []finding
	for _, f := range t.files {
		if !f.helps() {
			continue
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok && skips.MatchString(name(call)) && !hasRow(call, rows) {
				findings = append(findings,
					finding{f, call.Pos(), "no row of internal/gatecheck/skips.txt matches this reason, or it is not written here"})
			}
			block, ok := n.(*ast.BlockStmt)
			for i := 0; ok && i < len(block.List); i++ {
				s, ok := block.List[i].(*ast.IfStmt)
				if !ok || !givesUp(s.Body.List) {
					continue
				}
				before, _ := block.List[max(i-1, 0)].(*ast.AssignStmt)
				if asksOutside(s.Cond) || s.Init != nil && asksOutside(s.Init) || before != nil && asksOutside(before) {
					findings = append(findings,
						finding{f, s.Pos(), "the test ends here without a word if something is missing: call t.Skip with a reason"})
				}
			}
			return true
		})
	}
	return t.unexcused("silent", findings), nil
}

var skips = regexp.MustCompile(`^(t|b|tb)\.Skipf?$`)

// hasRow reports whether the reason of a skip matches a row. A value in the reason stands for
// any word.
func hasRow(call *ast.CallExpr, rows []skipRow) bool {
	const word = "word"
	reason := ""
	for _, arg := range call.Args {
		ast.Inspect(arg, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.BasicLit:
				text, _ := strconv.Unquote(n.Value)
				reason += text
			case *ast.BinaryExpr:
				return true
			case ast.Expr:
				reason += word
			}
			return false
		})
	}
	return slices.ContainsFunc(rows, func(r skipRow) bool { return r.message.MatchString(reason) })
}

func asksOutside(n ast.Node) (found bool) {
	ast.Inspect(n, func(n ast.Node) bool {
		if sel, ok := n.(*ast.SelectorExpr); ok {
			found = found || slices.Contains(outside, name(sel))
		}
		return !found
	})
	return found
}

var logs = regexp.MustCompile(`\.(Log|Print|Fprint)`)

// givesUp reports whether a block ends a test, or a round of it, without a value, and does
// nothing before but log.
func givesUp(block []ast.Stmt) bool {
	for _, s := range block {
		switch s := s.(type) {
		case *ast.ReturnStmt:
			return !slices.ContainsFunc(s.Results, func(e ast.Expr) bool { return name(e) != "nil" && name(e) != "false" })
		case *ast.BranchStmt:
			return s.Tok == token.CONTINUE
		case *ast.ExprStmt:
			if !logs.MatchString(name(s.X)) {
				return false
			}
		default:
			return false
		}
	}
	return false
}
