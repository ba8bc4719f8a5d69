package main

import (
	"encoding/json"
	"flag"
	"fmt"

	"github.com/agentevents/agentevents/internal/rundiff"
)

func diffCommand() command {
	return command{
		name:    "diff",
		args:    "[flags] A B",
		purpose: "list the differences between two runs, agent by agent",
		about: `
A and B are FILEs of any format. The acts of an agent are compared in their order. An
additional act is one difference: the acts after it can still be equal.

  -  only A has the act
  +  only B has the act
  ~  both have the act, with differences: below it are the members of the payload that
     differ, each with its JSON pointer and the values of A and B

A call and its return are one act. So is a block of text, with all its deltas.
The comparison leaves out facts that differ between any two runs: ids of events, calls and
messages, times, durations, tokens, and status changes without a reason. Arguments, results
and other content are compared unchanged; --ignore leaves members out. The last line has the
differences in time, tokens, cost and numbers of calls, which do not change the exit status.

Agents are paired by their ids or by their properties: task, role, the agents above them, and
their order. Runs are paired by their ids, by their prompts, or, if A and B have no id in
common, by their order. Formats differ in the facts that they record: compare logs of one
format.`,
		examples: []string{
			"agentevents diff last-week.jsonl today.jsonl",
			"agentevents diff --run r-17:r-18 --ignore elapsed run.jsonl",
		},
		exit: `Exit status:
  0  the runs did the same
  1  they differ
  2  used wrongly, or a file or a line of one cannot be read
`,
		flags: func(fs *flag.FlagSet) action {
			var l logReader
			var d drawing
			var ignore list
			l.flags(fs)
			l.judged = true
			d.flags(fs)
			fs.Var(&ignore, "ignore", "leave out members called `NAME`, at any depth; may be given several times")
			runs := fs.String("run", "", "compare only the runs with the `IDS` A:B; one FILE may have both")
			all := fs.Bool("all", false, "print every act and every change, without a limit")
			asJSON := fs.Bool("json", false, "print JSON, with the sequence of every act that is not the same")
			return func(in *invocation) error {
				files := in.args
				switch {
				case len(files) == 1 && *runs != "":
					files = append(files, files[0])
				case len(files) != 2:
					return usageError("two FILEs are needed, or one with --run A:B; - is standard input")
				case files[0] == "-" && files[1] == "-":
					return usageError("standard input can be read only once: name - once")
				}
				logs, trouble, err := l.both(in, files)
				if err != nil {
					return err
				}
				if *runs != "" && !choose(&logs, *runs) {
					return usageError(fmt.Sprintf("the logs have no two runs %q; 'agentevents ls' lists them", *runs))
				}
				r := rundiff.Compare(logs[0], logs[1], ignore...)
				for i, name := range files {
					if name == "-" {
						files[i] = "stdin"
					}
				}
				if *asJSON {
					enc := json.NewEncoder(in.stdout)
					enc.SetEscapeHTML(false)
					enc.SetIndent("", "  ")
					err = enc.Encode(r)
				} else {
					err = r.Write(in.stdout, rundiff.Options{A: files[0], B: files[1], Color: in.color(d.color.value), Width: d.width, All: *all})
				}
				switch {
				case err != nil:
					return err
				case trouble:
					return errFiles
				case !r.Same:
					return errProblems
				}
				return nil
			}
		},
	}
}

// both reads the two files, the only one once. It reports whether a line cannot be read.
func (l *logReader) both(in *invocation, files []string) (logs [2]*rundiff.Log, trouble bool, err error) {
	for i := range logs {
		if i > 0 && len(in.args) == 1 {
			logs[i] = logs[0]
			break
		}
		logs[i] = new(rundiff.Log)
		one, reader := *in, *l
		one.args = files[i : i+1]
		lines, err := reader.each(&one)
		if err != nil {
			return logs, trouble, err
		}
		for _, line := range lines {
			if err := logs[i].AddLine(line); err != nil {
				return logs, trouble, err
			}
		}
		trouble = trouble || reader.result() != nil
		if reader.failed {
			return logs, trouble, errFiles // missing input is not a difference
		}
	}
	return logs, trouble, nil
}

// choose leaves one run in each log: ids has both ids, joined by a colon, or one for both logs. An
// id may have colons.
func choose(logs *[2]*rundiff.Log, ids string) bool {
	for i := range len(ids) + 1 {
		idA, idB := ids, ids
		if i < len(ids) {
			if ids[i] != ':' {
				continue
			}
			idA, idB = ids[:i], ids[i+1:]
		}
		a, inA := logs[0].Run(idA)
		b, inB := logs[1].Run(idB)
		if inA && inB {
			logs[0], logs[1] = a, b
			return true
		}
	}
	return false
}
