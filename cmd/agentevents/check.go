package main

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"iter"
	"strconv"
	"strings"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect"
	"github.com/agentevents/agentevents/dialect/openwop"
	"github.com/agentevents/agentevents/internal/jsonwire"
)

// ruleUnreadable is the rule that a line breaks when it is not an event.
const ruleUnreadable agentevents.Rule = "line-unreadable"

func checkCommand() command {
	return command{
		name:    "check",
		args:    "[flags] FILE...",
		purpose: "report the events of a log that break a rule",
		about: `
If the log breaks no rule, check exits with 0 and prints only warnings; an empty log breaks
no rule. Otherwise it prints a line for each problem, in the order of the log, and exits
with 1:

  FILE:LINE: RULE: the fault; the subject is in this state

'agentevents rules' lists the rules. A line that is not an event breaks the rule
line-unreadable. Status changes are checked by the lifecycle table that the log names. A
log without the name of a table is checked by the strict table if it is KAHN's, else by the
relaxed table.

Missing sequence numbers are listed at the end, in one line for each run, which begins with
"warning:". They do not change the exit status, because a log may leave out deltas; with
--complete they are problems, and the lines begin with "run". Runs that have only whole
blocks, where the deltas may have had the missing numbers, share one line; with --complete
each has its own. In formats whose numbers are not unique (KAOS), and in formats without
numbers, no event is known to be missing. A log that lacks its first segments gets a warning
too. If the beginning of a run is missing, its statuses, open calls and table are unknown,
and the rules about them are not checked there.

With --chain the lines must form a chain: each has its own hash and the hash of the line
before it. The files are one log, in the order given. The first line of each file that
breaks the chain is a problem with the rule chain-broken. So is a last line that differs
from the line that FILE.head names. A chain that begins in the middle of the log gets a
warning at the end. A chain has no key: it shows accidents and edits, but not that somebody
has written all lines after an edit anew.

The format of each line is detected. With --dialect all lines are read as that format, and
the rules of its document are checked too; for kahn the table is the strict one. A library
rule that the document does not state gives only a warning, with "warning:" after its
place, and does not change the exit status. With --strict it is a problem, and openwop
lines must keep each word of its text: a tool has a scope, a handoff a node and another
agent. Logs in the library's own format must keep all rules.`,
		examples: []string{
			"agentevents check run.jsonl",
			"agentevents check --lifecycle strict *.jsonl",
		},
		flags: func(fs *flag.FlagSet) action {
			c := checker{threshold: openwop.DefaultThreshold}
			// All violations are printed and nothing else is shown.
			f := folder{options: agentevents.FoldOptions{KeepCalls: -1, MaxViolations: -1}}
			c.l.flags(fs)
			f.flags(fs, &c.l)
			fs.BoolVar(&c.chained, "chain", false, "check the hashes that chain the lines of the log")
			fs.BoolVar(&c.strict, "strict", false, "exit with 1 also for rules that the document does not state")
			fs.BoolVar(&c.complete, "complete", false, "exit with 1 also if a sequence number is missing")
			fs.Var(&c.format, "dialect", "check the rules of `FORMAT` too; 'agentevents help convert' lists formats")
			fs.Func("threshold", "openwop: decisions below confidence `N` escalate; default: as in the log, or 0.7", func(s string) error {
				var err error
				if c.threshold, err = strconv.ParseFloat(s, 64); err != nil || !(c.threshold >= 0 && c.threshold <= 1) {
					return errors.New("want a number from 0 to 1")
				}
				return nil
			})
			return func(in *invocation) error { return c.check(in, &f) }
		},
	}
}

// check prints the problems of the files.
func (c *checker) check(in *invocation, f *folder) error {
	c.prepare(in, f)
	c.l.reuse = true
	lines, err := c.l.each(in)
	if err != nil {
		return err
	}
	if c.chained {
		c.l.raw = c.chain.reader
		c.chain.openHeads(in)
	}
	cuts := gaps{}
	for c.at, c.line = range lines {
		if f.apply(c.line) {
			cuts.see(c.line.Event)
		}
		c.told(c.line.Event)
	}
	c.chain.end()
	c.showChain(position{file: len(c.l.files)})
	for _, note := range append(c.l.notes, c.chain.notes...) {
		fmt.Fprintf(in.stdout, "warning: %s\n", note)
	}
	missing := c.warnMissing(f.runs().Coverage(), cuts)
	if err := c.l.result(); err != nil {
		return err
	}
	if c.problems > 0 || missing && c.complete {
		return errProblems
	}
	return nil
}

// prepare sets the reader and the fold to report to the checker, by the rules of the format.
func (c *checker) prepare(in *invocation, f *folder) {
	c.out, c.chain.l, c.document = in.stdout, &c.l, !c.strict
	c.l.report = func(at position, what string) { c.report(at, ruleUnreadable, what) }
	if c.format.wire != nil {
		c.dialect = c.format.dialect()
		c.l.decoder = &judge{
			strict:  c.format.newDecoder(reading{strict: true, letter: c.strict, run: c.l.run, threshold: c.threshold}),
			lenient: c.format.newDecoder(reading{run: c.l.run}),
		}
		if c.dialect == dialect.KAHN {
			f.options.Lifecycle = agentevents.LifecycleStrict
		}
		c.l.broken = func(at position, v *agentevents.RuleError) { c.report(at, v.Rule, violation(v)) }
	}
	c.l.verb = true // for the words of the document
	c.l.hint = func(what string) { c.l.notes = append(c.l.notes, what) }
	f.options.OnViolation, f.options.Tolerate = c.violated, nil
}

// warnMissing names the sequence numbers that are missing, and reports whether any is.
func (c *checker) warnMissing(coverage iter.Seq2[string, agentevents.Coverage], cuts gaps) bool {
	missing, runs, numbers := false, 0, uint64(0)
	for run, of := range coverage {
		switch {
		case of.Missing == 0:
			continue
		case !c.complete && cuts[run].deltas():
			runs, numbers = runs+1, numbers+of.Missing
		default:
			word := "warning: "
			if c.complete { // it is a problem
				word = ""
			}
			fmt.Fprintf(c.out, "%srun %s: %s\n", word, visible(jsonwire.Brief(run)), missingNumbers(of))
		}
		missing = true
	}
	if runs > 0 {
		fmt.Fprintf(c.out, "warning: sequence numbers are missing from runs without deltas, as if those were left out: "+
			"runs %d, numbers %d; --complete names them\n", runs, numbers)
	}
	return missing
}

// gaps tell, by run, whether left-out deltas explain the missing sequences.
type gaps map[string]*gap

type gap struct {
	next  uint64 // above the highest sequence so far
	delta bool   // the log has one of the run, or lacks its beginning, which is none
	open  bool   // a number is missing after which no block has ended
}

func (g gaps) see(ev *agentevents.Event) {
	r := g[ev.RunID]
	if r == nil {
		r = &gap{delta: ev.Sequence > 0}
		g[strings.Clone(ev.RunID)] = r
	} else if ev.Sequence > r.next {
		r.open = true
	}
	r.next = max(r.next, ev.Sequence+1)
	switch p := ev.Payload.(type) {
	case *agentevents.TextCompleted:
		r.open = r.open && p.BlockID == ""
	case *agentevents.AgentReasoned:
		r.open = r.open && p.BlockID == ""
	default:
		info, _ := ev.Kind().Info()
		r.delta = r.delta || info.Droppable
	}
}

// deltas reports whether the run looks like one without its deltas.
func (r *gap) deltas() bool { return r != nil && !r.delta && !r.open }

// A checker prints problems in the order of the log.
type checker struct {
	chained, strict, complete bool
	format                    wireFlag
	threshold                 float64

	out      *output
	l        logReader
	chain    chainCheck
	line     agentevents.Line // that is folded
	at       position         // of it
	problems int
	document bool // only the rules of the document are problems
	dialect  dialect.Name
	known    map[agentOfRun]bool // agents of KAHN lines whose status an event has told
}

type agentOfRun struct{ run, agent string }

// told notes that an event tells the status of a KAHN agent.
func (c *checker) told(ev *agentevents.Event) {
	switch ev.Payload.(type) {
	case *agentevents.AgentStarted, *agentevents.AgentTransition:
	default:
		return
	}
	if !c.document || cmp.Or(c.dialect, c.l.format()) != dialect.KAHN || c.known[agentOfRun{ev.RunID, ev.AgentID}] {
		return
	}
	if c.known == nil {
		c.known = map[agentOfRun]bool{}
	}
	c.known[agentOfRun{strings.Clone(ev.RunID), strings.Clone(ev.AgentID)}] = true
}

// cut reports whether a violation is one because the log begins in the middle: the agent has moved
// before its first line. KAHN has no numbers that show it.
func (c *checker) cut(v *agentevents.RuleError) bool {
	return v.Rule == agentevents.RuleTransitionFromCurrent && cmp.Or(c.dialect, c.l.format()) == dialect.KAHN && !c.known[agentOfRun{v.RunID, v.AgentID}]
}

// report prints a problem, after the problems of the chain up to there.
func (c *checker) report(at position, rule agentevents.Rule, what string) {
	c.showChain(at)
	c.show(at, rule, what)
}

func (c *checker) showChain(to position) {
	for _, f := range c.chain.take(to) {
		c.show(f.at, ruleChain, f.what)
	}
}

func (c *checker) show(at position, rule agentevents.Rule, what string) {
	c.problems++
	// A failing standard output shows when it is flushed.
	fmt.Fprintf(c.out, "%s: %s: %s\n", c.l.place(at), visible(string(rule)), what)
}

// violated reports a violation that the fold found in an event, unless its line was reported: one
// report is enough.
func (c *checker) violated(v *agentevents.RuleError) {
	if c.at.refused {
		return
	}
	in := cmp.Or(c.dialect, c.l.format())
	tolerable := c.document && (!stated(in, v.Rule) || readable(in, c.line.Event, v) || c.cut(v))
	if typ := lineType(c.line.Event.Origin()); typ != "" && v.Kind != "" {
		named := *v
		named.Kind, named.Pointer, v = agentevents.Kind(typ), c.l.locate(v.Kind, v.Pointer), &named
	}
	if tolerable {
		c.showChain(c.at)
		fmt.Fprintf(c.out, "%s: warning: %s: %s\n", c.l.place(c.at), visible(string(v.Rule)), violation(v))
		return
	}
	c.report(c.at, v.Rule, violation(v))
}

// lineType returns the type that a line of a document has, or "".
func lineType(line string) string {
	return cmp.Or(jsonwire.Text(jsonwire.Member(line, "type")), jsonwire.Text(jsonwire.Member(line, "event")))
}

// missingNumbers names the sequence numbers that are missing.
func missingNumbers(c agentevents.Coverage) string {
	var b strings.Builder
	if fmt.Fprintf(&b, "%d sequence numbers are missing: ", c.Missing); c.Missing == 1 {
		b.Reset()
		b.WriteString("1 sequence number is missing: ")
	}
	rest := c.Missing
	for i, g := range c.Gaps {
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprint(&b, g.First)
		if g.Last > g.First {
			fmt.Fprintf(&b, "-%d", g.Last)
		}
		rest -= g.Last - g.First + 1
	}
	if rest > 0 {
		fmt.Fprintf(&b, " and %d more", rest)
	}
	return b.String()
}

// violation describes the fault, its subject and its state. The texts come from the log.
func violation(v *agentevents.RuleError) string {
	text := clip(v.Detail)
	if v.Pointer != "" {
		text = jsonwire.BriefPointer(v.Pointer) + ": " + text
	}
	if v.Kind != "" {
		text = jsonwire.BriefName(string(v.Kind)) + ": " + text
	}
	if v.Subject != "" {
		text += "; " + clip(v.Subject)
		if v.State != "" {
			text += " is " + v.State
		}
	} else if v.State != "" {
		text += "; the state is " + v.State
	}
	return visible(text)
}
