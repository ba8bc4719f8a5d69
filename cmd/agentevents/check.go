package main

import (
	"flag"
	"fmt"

	"github.com/agentevents/agentevents"
)

// ruleUnreadable names what is wrong with a line that is no event.
const ruleUnreadable agentevents.Rule = "line-unreadable"

func checkCommand() command {
	return command{
		name:    "check",
		args:    "[flags] FILE...",
		purpose: "check that a log keeps its rules",
		about: `
Prints nothing and exits with 0 when all is well; an empty log is well. Else it
prints a line for every problem, in the order of the lines, and exits with 1:

  FILE:LINE: RULE: what is wrong; the subject is in this state

Run 'agentevents rules' for the rules. A line that is no event breaks the rule
line-unreadable. Logs of agents that nobody controls rarely keep the strict
table of status changes; check those with --lifecycle relaxed.

The format of every line is found out. With --dialect all lines are of that
format, and the rules of its document bind beside those of the library.`,
		examples: []string{
			"agentevents check run.jsonl",
			"agentevents check --lifecycle relaxed *.jsonl",
		},
		flags: func(fs *flag.FlagSet) action {
			var l logReader
			var f folder
			var format wireFlag
			l.flags(fs)
			f.flags(fs, agentevents.LifecycleStrict)
			fs.Var(&format, "dialect", "check the rules of this `FORMAT` too; 'agentevents help convert' lists them")
			return func(in *invocation) error {
				problems := 0
				report := func(at position, rule agentevents.Rule, what string) {
					problems++
					// A failing standard output shows when it is flushed.
					fmt.Fprintf(in.stdout, "%s:%d: %s: %s\n", l.files[at.file], at.line, visible(string(rule)), what)
				}
				l.report = func(at position, what string) { report(at, ruleUnreadable, what) }
				if format.wire != nil {
					l.decoder = format.newDecoder(true)
					l.broken = func(at position, v *agentevents.RuleError) { report(at, v.Rule, violation(v)) }
				}
				var at position
				f.onViolation = func(v *agentevents.RuleError) { report(at, v.Rule, violation(v)) }
				f.keepCalls = -1
				events, err := l.events(in)
				if err != nil {
					return err
				}
				var ev agentevents.Event
				for at, ev = range events {
					f.apply(ev)
				}
				if err := l.result(); err != nil {
					return err
				}
				if problems > 0 {
					return errProblems
				}
				return nil
			}
		},
	}
}

// violation says what is wrong, with what and in which state. The texts come
// from the log.
func violation(v *agentevents.RuleError) string {
	text := clip(v.Detail)
	if v.Pointer != "" {
		text = clip(v.Pointer) + ": " + text
	}
	if v.Kind != "" {
		text = string(v.Kind) + ": " + text
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
