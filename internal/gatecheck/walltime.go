package main

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// leastWait is how long a test waits at least before it gives up: a goroutine of a busy
// machine may not run for several seconds.
const leastWait = 30 * time.Second

var (
	// ordered are the assertions of testify that compare the order or distance of values.
	ordered = regexp.MustCompile(`\.(Less|LessOrEqual|Greater|GreaterOrEqual|InDelta|InEpsilon|Positive|Negative)f?$`)
	// sameTime are the methods of a time that return it in another form, or a time at a
	// fixed distance.
	sameTime = regexp.MustCompile(`\.(Add|AddDate|In|Local|Round|Truncate|UTC|Unix|UnixMicro|UnixMilli|UnixNano)$`)
	elapsing = regexp.MustCompile(`^time\.(Since|Until)$|^cputime\.Process$|\.(Elapsed|NsPerOp)$`)
	failing  = regexp.MustCompile(`^(require|assert)\.|\.(Error|Fail|Fatal)|^panic$`)
)

// walltime finds comparisons of elapsed time of the wall clock and of CPU time, and short
// time limits of waits. A busy machine takes more CPU time for the same work too. Inside of synctest.Test time is exact, so nothing is reported there. A loop may
// run until a time, as that is a wait too.
func walltime(t *tree) ([]string, error) {
	var findings []finding
	for _, flow := range t.flows() {
		w := &wallClock{flow: flow}
		w.points = w.spread(w.isPoint)
		w.elapsed = w.spread(func(known map[types.Object]bool, e ast.Expr) bool { return w.derived(e, known, w.difference) })
		for _, f := range w.files {
			w.inspect(f, func(pos token.Pos, text string) { findings = append(findings, finding{f, pos, text}) })
		}
	}
	return t.unexcused("wallclock", findings), nil
}

type wallClock struct {
	*flow
	points  map[types.Object]bool // readings of the clock
	elapsed map[types.Object]bool // differences of readings
}

// isPoint reports whether an expression is a reading of the clock.
func (w *wallClock) isPoint(known map[types.Object]bool, e ast.Expr) bool {
	call, ok := e.(*ast.CallExpr)
	if !ok {
		return known[w.object(e)]
	}
	if method, ok := call.Fun.(*ast.SelectorExpr); ok && sameTime.MatchString(name(call)) {
		return w.isPoint(known, method.X)
	}
	return name(call) == "time.Now" || known[w.object(call.Fun)]
}

// difference reports whether an expression itself measures elapsed time.
func (w *wallClock) difference(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.BinaryExpr:
		return e.Op == token.SUB && (w.isPoint(w.points, e.X) || w.isPoint(w.points, e.Y))
	case *ast.CallExpr:
		method, ok := e.Fun.(*ast.SelectorExpr)
		sub := ok && method.Sel.Name == "Sub" && len(e.Args) == 1
		return elapsing.MatchString(name(e)) || sub && (w.isPoint(w.points, method.X) || w.isPoint(w.points, e.Args[0]))
	}
	return false
}

// inspect reports the places of a file that break the rules.
func (w *wallClock) inspect(f *file, report func(token.Pos, string)) {
	const compares = "compares times of a clock, which fails on a busy machine: " +
		"use internal/scale, count work, or use testing/synctest"
	isPoint := func(e ast.Expr) bool { return w.isPoint(w.points, e) }
	isElapsed := func(e ast.Expr) bool { return w.derived(e, w.elapsed, w.difference) }
	wait := func(pos token.Pos, limit time.Duration) {
		if limit < leastWait {
			report(pos, fmt.Sprintf("gives up after %v, which fails on a busy machine: wait for at least %v", limit, leastWait))
		}
	}
	loops := map[ast.Expr]bool{}
	ast.Inspect(f.ast, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ForStmt:
			loops[n.Cond] = true
		case *ast.BinaryExpr:
			switch n.Op {
			case token.LSS, token.LEQ, token.GTR, token.GEQ:
				if !loops[n] && (isElapsed(n.X) || isElapsed(n.Y)) {
					report(n.Pos(), compares)
				}
			}
		case *ast.CallExpr:
			switch called := name(n); {
			case called == "synctest.Test":
				return false
			case ordered.MatchString(called) && slices.ContainsFunc(n.Args, isElapsed),
				strings.Contains(called, ".WithinDuration") && slices.ContainsFunc(n.Args, isPoint) &&
					w.firstDuration(n.Args) < leastWait:
				report(n.Pos(), compares)
			case strings.Contains(called, ".Eventually"), called == "context.WithTimeout":
				wait(n.Pos(), w.firstDuration(n.Args))
			}
		case *ast.CommClause:
			if limit := timer(n.Comm); limit != nil && fails(n.Body) {
				wait(n.Pos(), w.firstDuration(limit.Args))
			}
		}
		return true
	})
}

// timer returns the call of time.After that a case of a select statement waits for, or nil.
func timer(comm ast.Stmt) *ast.CallExpr {
	if s, ok := comm.(*ast.ExprStmt); ok {
		if from, ok := s.X.(*ast.UnaryExpr); ok && name(from.X) == "time.After" {
			return from.X.(*ast.CallExpr)
		}
	}
	return nil
}

// fails reports whether statements call a function that lets the test fail.
func fails(block []ast.Stmt) (found bool) {
	ast.Inspect(&ast.BlockStmt{List: block}, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		found = found || ok && failing.MatchString(name(call))
		return !found
	})
	return found
}

// firstDuration returns the first constant duration of a list, or the longest of all.
func (w *wallClock) firstDuration(list []ast.Expr) time.Duration {
	for _, e := range list {
		if d, ok := w.duration(e); ok {
			return d
		}
	}
	return math.MaxInt64
}

var (
	durationForm = regexp.MustCompile(`^(?:(\d+) \* )?(time\.\w+)$`)
	units        = map[string]time.Duration{"time.Nanosecond": time.Nanosecond,
		"time.Microsecond": time.Microsecond, "time.Millisecond": time.Millisecond,
		"time.Second": time.Second, "time.Minute": time.Minute, "time.Hour": time.Hour}
)

// duration returns the value of a constant duration.
func (w *wallClock) duration(e ast.Expr) (time.Duration, bool) {
	if constant, ok := w.object(e).(*types.Const); ok {
		i := slices.IndexFunc(w.edges, func(e edge) bool { return e.to == constant })
		if i >= 0 {
			return w.duration(w.edges[i].from)
		}
	}
	m := durationForm.FindStringSubmatch(types.ExprString(e))
	if m == nil {
		return 0, false
	}
	n, err := strconv.Atoi(m[1])
	if err != nil {
		n = 1
	}
	return time.Duration(n) * units[m[2]], units[m[2]] > 0
}
