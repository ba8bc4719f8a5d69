// Package firsterrs keeps the first few of many errors.
package firsterrs

import "fmt"

// A List keeps the first errors and counts the others.
type List struct {
	errs []error
	more int
}

// Add adds errors to the list, which keeps up to max.
func (l *List) Add(max int, errs ...error) {
	kept := min(len(errs), max-len(l.errs))
	l.errs = append(l.errs, errs[:kept]...)
	l.more += len(errs) - kept
}

// Take returns the errors, with one at the end that counts the others, and empties
// the list. whose comes after the count.
func (l *List) Take(whose string) []error {
	errs := l.errs
	if l.more > 0 {
		errs = append(errs, fmt.Errorf("agentevents: %d more errors%s", l.more, whose))
	}
	*l = List{}
	return errs
}
