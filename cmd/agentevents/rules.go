package main

import (
	"flag"
	"fmt"
	"text/tabwriter"

	"github.com/agentevents/agentevents"
)

func rulesCommand() command {
	return command{
		name:    "rules",
		purpose: "list the rules that check goes by",
		examples: []string{
			"agentevents rules",
			"agentevents rules | grep step",
		},
		flags: func(*flag.FlagSet) action {
			return func(in *invocation) error {
				if err := in.noArgs(); err != nil {
					return err
				}
				tw := tabwriter.NewWriter(in.stdout, 0, 0, 2, ' ', 0)
				for rule, statement := range agentevents.Rules() {
					fmt.Fprintf(tw, "%s\t%s\n", rule, statement)
				}
				fmt.Fprintf(tw, "%s\t%s\n", ruleUnreadable, "every line is one event: a JSON object with the members of an event")
				return tw.Flush()
			}
		},
	}
}
