package agentevents

import (
	"math"
	"strconv"
	"strings"

	"github.com/agentevents/agentevents/internal/jsonwire"
)

// The rules of single fields. The generated check methods call these functions;
// each returns nil, or the broken rule with the field's name in place.

// RulePayload: the payload is a non-nil pointer to a struct of this package, and
// Unknown holds no known kind.
const RulePayload Rule = "payload"

// RuleFieldRequired: required fields are there, ids are not empty.
const RuleFieldRequired Rule = "field-required"

func checkRequired(name string, present bool) *fieldError {
	if present {
		return nil
	}
	return &fieldError{RuleFieldRequired, "/" + name, "is required"}
}

// RuleFieldUTF8: ids and names are valid UTF-8.
const RuleFieldUTF8 Rule = "field-utf8"

// RuleFieldJSON: raw JSON is valid JSON without duplicate names; an emitter records
// other text as a JSON string.
const RuleFieldJSON Rule = "field-json"

// checkText refuses text that no JSON line can carry. Content is not checked:
// damaged characters in it are replaced and the event is marked sanitized.
func checkText(name, s string) *fieldError {
	if jsonwire.ValidUTF8(s) {
		return nil
	}
	return &fieldError{RuleFieldUTF8, "/" + name, "is not valid UTF-8"}
}

// RuleFieldEnum: words of closed lists are in their list.
const RuleFieldEnum Rule = "field-enum"

// otherWord refuses a value that is not in its closed list.
func otherWord[T interface {
	~string
	words() []T
}](name string, v T) *fieldError {
	return &fieldError{RuleFieldEnum, "/" + name, jsonwire.Word(string(v)) + " is not one of: " + wordList(v.words())}
}

// RuleFieldRange: confidence and convergence score are in [0, 1]; durations, totals
// and counters are not negative; numbers are finite; passed + failed <= audits;
// evidence and a patch of the whole state are objects.
const RuleFieldRange Rule = "field-range"

func checkMin[T ~int | ~int64](name string, v, min T) *fieldError {
	if v >= min {
		return nil
	}
	return &fieldError{RuleFieldRange, "/" + name,
		strconv.FormatInt(int64(v), 10) + " is below " + strconv.FormatInt(int64(min), 10)}
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

// checkLacks reports a required member that the line did not have, and that the struct still lacks,
// so that the written line would lack it too.
func checkLacks(x extras, write func([]byte) []byte) *fieldError {
	object := ""
	for name := range x.Lacks() {
		if object == "" {
			object = string(write(nil))
		}
		if !jsonwire.HasMember(object, name) {
			return &fieldError{RuleFieldRequired, "/" + name, "is required"}
		}
	}
	return nil
}

// checkMore has the checks that struct tags cannot express.
func (t *Totals) checkMore() *fieldError {
	if t.AuditsPassed+t.AuditsFailed <= t.AuditCheckpoints {
		return nil
	}
	return &fieldError{RuleFieldRange, "/auditCheckpoints",
		"passed " + strconv.Itoa(t.AuditsPassed) + " + failed " + strconv.Itoa(t.AuditsFailed) +
			" is more than " + strconv.Itoa(t.AuditCheckpoints)}
}

// maxPathDepth bounds the names in the path of a patch: the fold builds an
// object for each.
const maxPathDepth = 100

func (p *StatePatched) checkPath() *fieldError {
	if n := strings.Count(p.Path, "."); n >= maxPathDepth {
		return &fieldError{RuleFieldRange, "/path", strconv.Itoa(n+1) + " names are more than " + strconv.Itoa(maxPathDepth)}
	}
	return nil
}

func (p *StatePatched) checkMore() *fieldError {
	if p.Value == "" && p.Op != PatchRemove {
		return checkRequired("value", false)
	}
	if jsonwire.Path(p.Path) == "" && p.Op != PatchRemove &&
		!(p.Op == PatchSet && strings.TrimSpace(string(p.Value)) == "null") {
		return checkObject("value", p.Value) // or the state would be lost
	}
	return p.checkPath()
}

func (a *AuditChecked) checkMore() *fieldError { return checkObject("evidence", a.Evidence) }

// checkObject refuses JSON that is not an object. Text that is not JSON is recorded as one.
func checkObject(name string, v JSON) *fieldError {
	if v == "" || strings.HasPrefix(strings.TrimLeft(string(v), " \t\r\n"), "{") || jsonwire.Valid(string(v)) != nil {
		return nil
	}
	return &fieldError{RuleFieldRange, "/" + name, "is not an object"}
}
