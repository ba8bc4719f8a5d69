package agentevents

import (
	"math"
	"strconv"
	"strings"

	"github.com/agentevents/agentevents/internal/jsonwire"
)

// The field rules. The generated check methods call these; each returns nil
// or the broken rule with the field's name in place.

func checkRequired(name string, present bool) *fieldError {
	if present {
		return nil
	}
	return &fieldError{RuleFieldRequired, "/" + name, "is required"}
}

// checkText refuses text that no JSON line can carry. Content is not checked:
// damaged characters in it are replaced and the event is marked sanitized.
func checkText(name, s string) *fieldError {
	if jsonwire.ValidUTF8(s) {
		return nil
	}
	return &fieldError{RuleFieldUTF8, "/" + name, "is not valid UTF-8"}
}

// checkWord refuses a value outside a closed list.
func checkWord[T interface {
	~string
	known() bool
}](name string, v T) *fieldError {
	if v.known() {
		return nil
	}
	return &fieldError{RuleFieldEnum, "/" + name, strconv.Quote(string(v)) + " is not one of the values"}
}

func checkMin[T ~int | ~int64](name string, v, min T) *fieldError {
	if v >= min {
		return nil
	}
	return &fieldError{RuleFieldRange, "/" + name, strconv.FormatInt(int64(v), 10) + " is below " + strconv.FormatInt(int64(min), 10)}
}

func checkFinite(name string, v float64) *fieldError {
	if !math.IsNaN(v) && !math.IsInf(v, 0) {
		return nil
	}
	return &fieldError{RuleFieldRange, "/" + name, "is not a finite number"}
}

func checkMinFloat(name string, v, min float64) *fieldError {
	if err := checkFinite(name, v); err != nil {
		return err
	}
	if v >= min {
		return nil
	}
	return &fieldError{RuleFieldRange, "/" + name, formatFloat(v) + " is below " + formatFloat(min)}
}

// checkUnit wants a number in [0, 1].
func checkUnit(name string, v float64) *fieldError {
	if v >= 0 && v <= 1 {
		return nil
	}
	return &fieldError{RuleFieldRange, "/" + name, formatFloat(v) + " is not in [0, 1]"}
}

func formatFloat(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }

// checkLacks reports a required member that the line did not have.
func checkLacks(x extras) *fieldError {
	if x == "" {
		return nil
	}
	if name := x.lacks(); name != "" {
		return &fieldError{RuleFieldRequired, "/" + name, "is required"}
	}
	return nil
}

// checkMore is what the struct tags cannot say.
func (t *Totals) checkMore() *fieldError {
	if t.AuditsPassed+t.AuditsFailed <= t.AuditCheckpoints {
		return nil
	}
	return &fieldError{RuleFieldRange, "/auditCheckpoints", "passed " + strconv.Itoa(t.AuditsPassed) + " + failed " + strconv.Itoa(t.AuditsFailed) +
		" is more than " + strconv.Itoa(t.AuditCheckpoints)}
}

// maxPathDepth bounds the names in the path of a patch: the fold builds an
// object for each.
const maxPathDepth = 100

func (p *StatePatched) checkMore() *fieldError {
	if n := strings.Count(p.Path, "."); n >= maxPathDepth {
		return &fieldError{RuleFieldRange, "/path", strconv.Itoa(n+1) + " names are more than " + strconv.Itoa(maxPathDepth)}
	}
	return nil
}

func (a *AuditChecked) checkMore() *fieldError {
	if a.Evidence == "" || strings.HasPrefix(strings.TrimLeft(string(a.Evidence), " \t\r\n"), "{") {
		return nil
	}
	return &fieldError{RuleFieldRange, "/evidence", "is not an object"}
}
