package main

import (
	"cmp"
	"flag"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

const exitHelp = `Exit status:
  0  all went well
  1  the input has problems
  2  used wrongly, or a file cannot be read or written
`

func helpCommand() command {
	return command{
		name:    "help",
		args:    "[COMMAND]",
		purpose: "explain a command, or list all commands",
		examples: []string{
			"agentevents help",
			"agentevents help check",
		},
		flags: func(*flag.FlagSet) action {
			return func(in *invocation) error {
				switch len(in.args) {
				case 0:
					writeOverview(in.stdout)
					return nil
				case 1:
					c, ok := find(in.args[0])
					if !ok {
						return usageError(fmt.Sprintf("unknown command %q", in.args[0]))
					}
					c.writeHelp(in.stdout)
					return nil
				}
				return usageError("name one COMMAND, or none for the list")
			}
		},
	}
}

// writeOverview lists the commands.
func writeOverview(w io.Writer) {
	fmt.Fprint(w, "Agentevents checks, draws, folds, converts and redacts logs of agent runs.\n\nUsage:\n  agentevents COMMAND [flags] [arguments]\n\nCommands:\n")
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, c := range commands() {
		fmt.Fprintf(tw, "  %s\t%s\n", c.name, c.purpose)
	}
	tw.Flush()
	fmt.Fprint(w, "\nThe FILE - is standard input. Several FILEs are read one after another as one\nlog, in the order given. The closed segments of a log, FILE.000001 or FILE.000001.gz\nand so on, are read with FILE, oldest first; name one to read it alone. FILE* is the\nsame as FILE. A directory in which package runstore keeps runs stands for its log,\nevents.jsonl. Gzip data is decompressed. Flags may stand before or after FILEs.\n\n"+
		"A session that an agent program keeps on disk, and a folder with sessions, are read like\na log: 'agentevents help import' lists the programs. Its id, or the beginning of it, names\none on this machine in place of a FILE: 'agentevents sessions' lists them.\n\n"+
		"A log in another order, as a sort by time leaves one, is read with --order sequence.\nThat holds the FILEs in memory.\n\n"+
		exitHelp+"\nRun 'agentevents help COMMAND' for more.\n")
}

// writeHelp explains a command.
func (c *command) writeHelp(w io.Writer) {
	fmt.Fprintf(w, "%s: %s\n\nUsage:\n  %s\n", c.name, c.purpose, strings.TrimSpace("agentevents "+c.name+" "+c.args))
	if c.about != "" {
		fmt.Fprintf(w, "\n%s\n", strings.TrimSpace(c.about))
	}
	fs := flag.NewFlagSet(c.name, flag.ContinueOnError)
	c.flags(fs)
	var flags strings.Builder
	tw := tabwriter.NewWriter(&flags, 0, 0, 2, ' ', 0)
	fs.VisitAll(func(f *flag.Flag) {
		value, usage := flag.UnquoteUsage(f)
		fmt.Fprintf(tw, "  %s\t%s\n", strings.TrimSpace(dashed(f.Name)+" "+value), usage)
	})
	tw.Flush()
	if flags.Len() > 0 {
		fmt.Fprintf(w, "\nFlags:\n%s", flags.String())
	}
	fmt.Fprintf(w, "\nExamples:\n  %s\n", strings.Join(c.examples, "\n  "))
	fmt.Fprintf(w, "\n%s", cmp.Or(c.exit, exitHelp))
}
