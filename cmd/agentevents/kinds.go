package main

import (
	"flag"
	"fmt"
	"text/tabwriter"

	"github.com/agentevents/agentevents"
)

func kindsCommand() command {
	return command{
		name:    "kinds",
		purpose: "list the kinds of events",
		about: `
The columns are the kind, its effect on its subject (opens, delta, closes or point), the
subject, and "droppable" for kinds that the log of a finished run may leave out.`,
		examples: []string{
			"agentevents kinds",
			"agentevents kinds | grep tool_call",
		},
		flags: func(*flag.FlagSet) action {
			return func(in *invocation) error {
				tw := tabwriter.NewWriter(in.stdout, 0, 0, 2, ' ', 0)
				for info := range agentevents.Kinds() {
					fmt.Fprintf(tw, "%s\t%s\t%s", info.Kind, info.Role, info.Subject)
					if info.Droppable {
						fmt.Fprint(tw, "\tdroppable")
					}
					fmt.Fprintln(tw)
				}
				return tw.Flush()
			}
		},
	}
}
