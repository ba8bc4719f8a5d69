package dialect

import "github.com/agentevents/agentevents"

// A RefusedError is the error of a strict decoder for a line that it can read although
// the line breaks a rule of the document. The line is not among the events of the log. Who
// checks the log needs what it says: or else what follows from the line seems to be wrong,
// too, such as the end of what the line begins.
type RefusedError struct {
	Rule *agentevents.RuleError // the rule that the line breaks
	// Events are what the line says, as a decoder that is not strict reads it. The
	// decoder goes on as behind a line that it has accepted.
	Events []agentevents.Event
}

// Error returns the text of the rule's error.
func (e *RefusedError) Error() string { return e.Rule.Error() }

// Unwrap returns the rule's error.
func (e *RefusedError) Unwrap() error { return e.Rule }
