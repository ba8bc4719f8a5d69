package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"flag"
	"math"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/report"
)

// A folder folds a log of any number of runs.
type folder struct {
	lifecycle choice
	options   agentevents.FoldOptions
	run       string             // the only one that is wanted; empty for all
	found     bool               // an event of it
	event     *agentevents.Event // that is applied
	log       *agentevents.FoldSet
}

// flags adds the flag of the table, and makes the log's reader tell which table a
// KAHN log keeps that names none: the document has one.
func (f *folder) flags(fs *flag.FlagSet, l *logReader) {
	f.lifecycle = choice{
		values: []string{string(agentevents.LifecycleStrict),
			string(agentevents.LifecycleRelaxed), string(agentevents.LifecycleDerived)},
	}
	fs.Var(&f.lifecycle, "lifecycle", "`TABLE` of legal status changes: strict, relaxed, derived; default: the log's")
	l.judged = true
	f.options.Tolerate = func(v *agentevents.RuleError) bool {
		return !stated(l.format(), v.Rule) || readable(l.format(), f.event, v)
	}
}

// one adds the flag for a run.
func (f *folder) one(fs *flag.FlagSet) { fs.StringVar(&f.run, "run", "", "only the run `ID`") }

// apply reports whether the event belongs to a wanted run.
func (f *folder) apply(line agentevents.Line) bool {
	if f.run != "" && line.Event.RunID != f.run {
		return false
	}
	f.event = line.Event
	f.runs().ApplyLine(line.Event, line.Text)
	f.found = true
	return true
}

// read folds a log, and returns the details of its runs.
func (f *folder) read(in *invocation, l *logReader) (*report.Details, error) {
	lines, err := l.each(in)
	if err != nil {
		return nil, err
	}
	details := new(report.Details)
	for _, line := range lines {
		if f.apply(line) {
			details.Add(line.Event)
		}
	}
	return details, f.missing(l)
}

// missing returns an error if the log that was read has no event of the run that is wanted.
func (f *folder) missing(l *logReader) error {
	if f.run != "" && !f.found && !l.failed {
		return noRun(f.run)
	}
	return nil
}

// runs returns the fold of the runs seen so far.
func (f *folder) runs() *agentevents.FoldSet {
	if f.log == nil {
		f.options.Lifecycle = cmp.Or(agentevents.Lifecycle(f.lifecycle.value), f.options.Lifecycle)
		f.log = agentevents.NewFoldSet(f.options)
	}
	return f.log
}

func foldCommand() command {
	return command{
		name:    "fold",
		args:    "[flags] FILE...",
		purpose: "print the state of each run at the end of the log, as JSON",
		about: `
The state of a run is a snapshot: an object of JSON, on one line unless --indent is given.
The snapshot counts the events that break a rule; they do not change the exit status.`,
		examples: []string{
			"agentevents fold --keep-calls 100000 run.jsonl | jq .closedCalls",
			"agentevents fold --at 41 --indent run.jsonl",
		},
		flags: func(fs *flag.FlagSet) action {
			var l logReader
			var f folder
			l.flags(fs)
			f.flags(fs, &l)
			f.one(fs)
			until := sequence(math.MaxUint64)
			fs.Var(&until, "at", "fold only the events up to and including sequence `SEQ`")
			fs.IntVar(&f.options.KeepCalls, "keep-calls", 64, "keep the latest `N` calls that returned; default: 64")
			indent := fs.Bool("indent", false, "indent the JSON over several lines")
			return func(in *invocation) error {
				l.reuse = true
				lines, err := l.each(in)
				if err != nil {
					return err
				}
				if f.options.KeepCalls == 0 {
					f.options.KeepCalls = -1 // 0 is the default of a fold
				}
				for _, line := range lines {
					if line.Event.Sequence <= uint64(until) {
						f.apply(line)
					}
				}
				if err := f.missing(&l); err != nil {
					return err
				}
				var text []byte
				for s := range f.runs().Drain() {
					text = s.AppendJSON(text[:0])
					if *indent {
						var b bytes.Buffer
						if err := json.Indent(&b, text, "", "  "); err != nil {
							return err
						}
						text = b.Bytes()
					}
					text = append(text, '\n')
					if _, err := in.stdout.Write(text); err != nil {
						return err
					}
				}
				return l.result()
			}
		},
	}
}
