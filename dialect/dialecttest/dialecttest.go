package dialecttest

import (
	"bufio"
	"fmt"
	"runtime/debug"
	"slices"
	"testing"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect"
	"github.com/agentevents/agentevents/internal/readback"
)

// A Dialect describes a dialect to [Run].
type Dialect struct {
	// Name is the dialect of the golden lines. dialect.Detect must return it for
	// them, or "" if it does not recognise the dialect.
	Name dialect.Name
	// Detect recognises the golden lines, as the Detect of a dialect.Auto does. Set it only if
	// dialect.Detect takes the lines for another dialect's.
	Detect func(line string) dialect.Name
	// Decoder and Encoder return new ones. They are called from several goroutines.
	Decoder func() agentevents.Decoder
	Encoder func() dialect.Encoder
	// Strict returns a new decoder that enforces the document's rules, if there is one.
	Strict func() agentevents.Decoder
	// Golden holds lines of the document, at least one for each variant.
	Golden []Golden
	// Unknown is a line of a type that the document does not have. The default is
	// the last golden line that is one event, with another word in its member
	// "event" or "type".
	Unknown string
	// Adapt changes an event of the suite into one that the document can represent, if leaving a
	// field out is not enough: it may choose another word of an open list, or another form of an
	// id. It may change the payload, which is a copy.
	Adapt func(ev *agentevents.Event)
	// Ignore lists places of native lines at which an event may come back different without a loss,
	// because they describe the document and not the event: for example a version that stands on
	// every line and is kept as an extra member, such as /openwop/schemaVersion.
	Ignore []string
	// Derived lists places of native lines that the document has no member for and the decoder
	// makes up, such as /payload/blockId. The new value needs no loss. If the event has a value of
	// its own, its loss is listed as Dropped. Members that every native line has need not be listed
	// here.
	Derived []string
	// Maps lists places of the document's lines that hold objects whose members are
	// all of one type: they have no room for an extra member. A * matches any name.
	Maps []string
	// Story returns the events of a run, legal and in order, that the checks "fold"
	// and "runs" write and read back. Nil means [StandardRun]. A dialect with few of
	// the kinds in that run needs a story of its own. It is called from several
	// goroutines, and the suite changes the events.
	Story func(runID string) []agentevents.Event

	short bool // few cases
}

// few returns the first n of a list when the suite runs few cases, else all.
func few[T any](d *Dialect, list []T, n int) []T {
	if d.short {
		return list[:min(n, len(list))]
	}
	return list
}

// A Golden is a piece of a log in the form that the document itself would print.
type Golden struct {
	Name  string // name of the variant
	Lines string // one or more, without the last newline
	// Events are the expected events of the lines. An ID, Sequence, Time or
	// SchemaVersion that is zero is not compared. Without Events only the round trip
	// is tested.
	Events []agentevents.Event
	// Build requires that the encoder writes Lines, byte for byte, from Events.
	Build bool
	// Written is the text that the encoder writes instead of Lines, where the
	// document has more than one form, without the last newline. The default is
	// Lines.
	Written string
}

// written returns the text that the encoder writes for the events of g.
func (g *Golden) written() string {
	if g.Written != "" {
		return g.Written + "\n"
	}
	return g.Lines + "\n"
}

// Run tests the dialect. Each check and case is a subtest. With -short it runs
// fewer cases.
func Run(t *testing.T, d Dialect) {
	t.Helper()
	d.short = testing.Short()
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

// RunLog checks the log of one run like Run checks its own: the events that come back differ by the
// listed losses, and fold to the same state. events are the run's, in order. RunLog does not change
// them.
func RunLog(t *testing.T, d Dialect, events []agentevents.Event) {
	t.Helper()
	for _, c := range d.logCases(slices.Clone(events)) {
		t.Run(c.name, c.test)
	}
}

// maxProblems is the number of problems that one case prints.
const maxProblems = 25

// checks lists the checks of Run, in order.
var checks = []check{
	{"golden", goldenCases},
	{"kinds", kindCases},
	{"extra members", extraMemberCases},
	{"unknown types", unknownTypeCases},
	{"bad lines", badLineCases},
	{"fold", foldCases},
	{"runs", runCases},
	{"properties", propertyCases},
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

func (c testCase) test(t *testing.T) { c.tell(t) }

// tell runs the case and tells its problems.
func (c testCase) tell(t testing.TB) {
	t.Helper()
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

// A problem is one finding.
type problem struct { // the input of the case; may be empty
	input  string // which input of the case; may be empty
	what   string
	detail string // such as the lines that were written; may be empty
	more   int    // how often it was found again
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
	input    string // set by the check for the problems that follow
	detail   string // likewise
	problems []problem
	buffer   *bufio.Reader // of the lines that accept reads
}

// errorf notes a problem. It only counts one that it has already.
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

// run calls f and reports a panic of the dialect as a problem.
func (r *report) run(f func(r *report)) {
	defer func() {
		if v := recover(); v != nil {
			r.errorf("panic: %v\n%s", v, debug.Stack())
		}
	}()
	f(r)
}

// guard calls f for one input of many. A panic is a problem and ends only that
// input.
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

// derives reports whether the decoder makes up the value at the place.
func (d *Dialect) derives(pointer string) bool {
	return slices.ContainsFunc(d.Derived, func(p string) bool { return readback.Covers(p, pointer) })
}
