package dialecttest

import (
	"fmt"
	"runtime/debug"
	"slices"
	"testing"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect"
)

// A Dialect is what [Run] needs to know of one.
type Dialect struct {
	// Name is what dialect.Detect says of the golden lines. Of those of a dialect
	// that it does not know it says nothing.
	Name dialect.Name
	// Detect is what dialect.Auto is to be given for the dialect, and says Name of
	// the golden lines. It is needed only where dialect.Detect takes them for lines
	// of another one.
	Detect func(line string) dialect.Name
	// Decoder and Encoder make new ones. They are called from several goroutines.
	Decoder func() agentevents.Decoder
	Encoder func() dialect.Encoder
	// Golden are lines of the document, at least one for each variant.
	Golden []Golden
	// Unknown is a line of a type that the document does not have. By default it
	// is the last golden line that is one event, with another word in its member
	// "event" or "type".
	Unknown string
	// Adapt makes an event of the suite one that the document can say, where that
	// takes more than leaving something out: words of a list that the vocabulary
	// leaves open, forms of ids. It may change the payload, which is its own.
	Adapt func(ev *agentevents.Event)
	// Ignore are places of native lines where an event that came back may differ
	// without a loss, as they say nothing of it: a version that stands on every
	// line and is kept as an extra member, such as /openwop/schemaVersion.
	Ignore []string
	// Derived are places of native lines where the decoder makes up what the
	// document has no member for, such as /payload/blockId. That it is there is no
	// loss; that the event's own value is gone is one, Dropped. Members that every
	// native line has need not be listed here.
	Derived []string
	// Maps are places of the document's lines that hold objects whose members are
	// all of one type: there is no room for an unknown one. A * is any name.
	Maps []string
	// Story returns the events of a run, legal and in order, that the checks "fold"
	// and "runs" write and read back; nil means [StandardRun]. A dialect that has
	// few of the kinds in that needs one of its own. It is called from several
	// goroutines, and the events are changed.
	Story func(runID string) []agentevents.Event
}

// A Golden is a piece of a log that the document itself could have printed.
type Golden struct {
	Name  string // of the variant
	Lines string // one or more, without the last newline
	// Events are what the lines say. Where ID, Sequence, Time or SchemaVersion is
	// zero, anything is right. Without Events only the round trip is tested.
	Events []agentevents.Event
	// Build says that Events give Lines, byte for byte.
	Build bool
	// Written is what is written instead of Lines, where the document has more
	// than one form, without the last newline. By default it is Lines.
	Written string
}

// written returns the lines that the events of g are written as.
func (g *Golden) written() string {
	if g.Written != "" {
		return g.Written + "\n"
	}
	return g.Lines + "\n"
}

// Run tests the dialect, in one subtest for each check and case.
func Run(t *testing.T, d Dialect) {
	t.Helper()
	for _, c := range checks {
		t.Run(c.name, func(t *testing.T) {
			cases := c.cases(&d)
			if len(cases) == 0 {
				t.Skip("the dialect has no golden line for this check")
			}
			for _, tc := range cases {
				t.Run(tc.name, tc.test)
			}
		})
	}
}

// RunLog checks a log of one run as Run checks its own: what comes back differs
// by the listed losses, and folds to the same. The events are those of the run,
// in order; they are not changed.
func RunLog(t *testing.T, d Dialect, events []agentevents.Event) {
	t.Helper()
	for _, c := range d.logCases(slices.Clone(events)) {
		t.Run(c.name, c.test)
	}
}

// maxProblems is how many problems of one case are printed.
const maxProblems = 25

// checks are what Run does, in order.
var checks = []check{
	{"golden", goldenCases},
	{"kinds", kindCases},
	{"unknown members", unknownMemberCases},
	{"unknown types", unknownTypeCases},
	{"bad lines", badLineCases},
	{"fold", foldCases},
	{"runs", runCases},
	{"instances", instanceCases},
	{"verbatim lists nothing", verbatimCases},
}

type check struct {
	name  string
	cases func(d *Dialect) []testCase
}

type testCase struct {
	name string
	run  func(r *report)
}

func (c testCase) test(t *testing.T) {
	var r report
	r.run(c.run)
	for i, p := range r.problems {
		if i == maxProblems {
			t.Errorf("and %d more", len(r.problems)-i)
			break
		}
		t.Error(p.text())
	}
}

// A problem is one thing that is wrong.
type problem struct {
	input  string // which input of the case; may be empty
	what   string
	detail string // such as the lines that were written; may be empty
	more   int    // times it was found again
}

func (p problem) text() string {
	s := p.what
	if p.input != "" {
		s = p.input + ": " + s
	}
	if p.more > 0 {
		s += fmt.Sprintf(" (and %d times more)", p.more)
	}
	if p.detail != "" {
		s += "\n\t" + p.detail
	}
	return s
}

// A report collects the problems of one case.
type report struct {
	input    string // set by the check, for the problems that follow
	detail   string // likewise
	problems []problem
}

// errorf notes a problem; the same one with another input is counted.
func (r *report) errorf(format string, args ...any) {
	what := fmt.Sprintf(format, args...)
	for i := range r.problems {
		if r.problems[i].what == what {
			r.problems[i].more++
			return
		}
	}
	r.problems = append(r.problems, problem{input: r.input, what: what, detail: r.detail})
}

// run calls f; a panic of the dialect is a problem.
func (r *report) run(f func(r *report)) {
	defer func() {
		if v := recover(); v != nil {
			r.errorf("panic: %v\n%s", v, debug.Stack())
		}
	}()
	f(r)
}

// guard calls f for one input of many; a panic is a problem and ends only that.
func (r *report) guard(input string, f func()) {
	r.input = input
	defer func() {
		if v := recover(); v != nil {
			r.errorf("panic: %v", v)
		}
		r.input, r.detail = "", ""
	}()
	f()
}
