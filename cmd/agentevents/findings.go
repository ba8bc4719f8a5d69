package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/findings"
	"github.com/agentevents/agentevents/internal/view"
)

func findingsCommand() command {
	return command{
		name:    "findings",
		args:    "[flags] FILE...",
		purpose: "report the loops, stalls and wasted tokens of runs",
		about: `
Prints a line for each finding: its run, its kind, a sentence, the sequences of its events,
its start, and the tokens and dollars that it used. Without findings it prints nothing. The
kinds and their limits are:

  repeat                an agent makes the same call and gets the same result, 3 times in
                        a row; or 12 calls in a row are of 3 sorts or fewer
  ping-pong             2 to 4 calls in turn, 3 times, without a new result; or two agents
                        hand over to each other so
  failure-streak        5 calls of a tool or of an agent fail in a row, 4 with one error;
                        4 model calls fail, or an agent has 4 errors or 8 warnings,
                        without an answer between, or 3 before it ends with an error;
                        or it ends with an error 3 times
  retry-without-change  a call that failed is made again as it was, 3 times
  stall                 nothing happens for 5 minutes, and no open call, question, pause
                        or person explains it; 15 minutes during a model call, and in a
                        log that has no model calls
  context               the input of a model has 80 % of --context-tokens; or contexts are
                        compacted 3 times with 10 calls or fewer between
  waste                 loops and failures of a run used 50,000 tokens, or 1 dollar
  asked-too-late        a person was waited for 2 hours, or answers after the end

Equal calls with results that change are polling, which is not a finding; --poll names a
tool that may get the same result again and again. Calls that are open at the same time
count as one. Retries with growing pauses are allowed twice as often.`,
		examples: []string{
			"agentevents findings capture.jsonl",
			"agentevents findings --json --fail-on repeat --fail-on stall logs/*.jsonl",
		},
		exit: `Exit status:
  0  all went well, and no finding has a kind of --fail-on
  1  a finding has a kind of --fail-on, or the input has problems
  2  used wrongly, or a file cannot be read or written
`,
		flags: func(fs *flag.FlagSet) action {
			var l logReader
			l.flags(fs)
			var o findings.Options
			var fatal kindList
			var polls list
			only := fs.String("run", "", "only the run `ID`")
			asJSON := fs.Bool("json", false, "print a JSON object for each finding")
			fs.Var(&fatal, "fail-on", "exit with 1 for a finding of `KIND`, or any; may be given several times")
			fs.Var(&polls, "poll", "`TOOL` that may get the same result again; may be given several times")
			fs.Int64Var(&o.ContextTokens, "context-tokens", 0, "limit of a model's input: `N` tokens; default: unknown, not checked")
			fs.DurationVar(&o.Stall, "stall", 0, "a gap of `TIME` is a stall, 3 times TIME during a model call; default: 5m")
			return func(in *invocation) error {
				if o.Polls = append(findings.Defaults().Polls, polls...); o.Check() != nil {
					return usageError("--context-tokens and --stall must not be below 0")
				}
				o.ModelStall = 3 * o.Stall
				lines, err := l.each(in)
				if err != nil {
					return err
				}
				f := findings.New(o)
				for _, line := range lines {
					if *only == "" || *only == line.Event.RunID {
						f.Add(line.Event)
					}
				}
				if *only != "" && f.Runs() == 0 && !l.failed {
					return noRun(*only)
				}
				return writeFindings(in, &l, f, *asJSON, fatal)
			}
		},
	}
}

func writeFindings(in *invocation, l *logReader, f *findings.Fold, asJSON bool, fatal kindList) error {
	enc := json.NewEncoder(in.stdout)
	enc.SetEscapeHTML(false)
	failed, last := false, ""
	for _, one := range f.Findings() {
		failed = failed || slices.Contains(fatal, one.Kind)
		if asJSON {
			if err := enc.Encode(one); err != nil {
				return err
			}
			continue
		}
		fmt.Fprintln(in.stdout, findingLine(&one))
		if n := f.More(one.RunID); n > 0 && one.RunID != last {
			fmt.Fprintf(in.stdout, "%s: %s are not kept\n", visible(one.RunID), plural(n, "more finding"))
		}
		last = one.RunID
	}
	if err := l.result(); err != nil || !failed {
		return err
	}
	return errProblems
}

// findingLine returns a finding as a line of text.
func findingLine(f *findings.Finding) string {
	var facts []string
	var events []string
	for _, n := range f.Sequences {
		events = append(events, strconv.FormatUint(n, 10))
	}
	at := " at events "
	if len(events) == 1 {
		at = " at event "
	}
	facts = append(facts, plural(f.Count, "time")+at+strings.Join(events, ", "))
	if agentevents.TimeKnown(f.Since) {
		facts = append(facts, "since "+f.Since.Format(time.RFC3339))
	}
	if f.Cost.Tokens.OK {
		facts = append(facts, view.Count(f.Cost.Tokens.V, "token"))
	}
	if f.Cost.CostUSD.OK {
		facts = append(facts, view.Dollars(f.Cost.CostUSD.V))
	}
	return fmt.Sprintf("%s: %s: %s: %s (%s)",
		visible(f.RunID), f.Severity, f.Kind, visible(f.Text), strings.Join(facts, "; "))
}

// A kindList is a flag for kinds of findings that may be given several times.
type kindList []findings.Kind

func (l *kindList) String() string { return "" }

func (l *kindList) Set(s string) error {
	all := findings.Kinds()
	switch {
	case s == "any":
		*l = append(*l, all...)
	case slices.Contains(all, findings.Kind(s)):
		*l = append(*l, findings.Kind(s))
	default:
		var names []string
		for _, kind := range all {
			names = append(names, string(kind))
		}
		return errors.New("want any, " + strings.Join(names, ", "))
	}
	return nil
}
