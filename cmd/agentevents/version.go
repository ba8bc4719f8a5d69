package main

import (
	"flag"
	"fmt"
	"runtime/debug"

	"github.com/agentevents/agentevents"
)

func versionCommand() command {
	return command{
		name:    "version",
		purpose: "print the version of the command and of the log format",
		examples: []string{
			"agentevents version",
			"agentevents version | head -1",
		},
		flags: func(*flag.FlagSet) action {
			return func(in *invocation) error {
				version, toolchain := "(unknown)", ""
				if info, ok := debug.ReadBuildInfo(); ok {
					if info.Main.Version != "" {
						version = info.Main.Version
					}
					toolchain = " " + info.GoVersion
				}
				_, err := fmt.Fprintf(in.stdout, "agentevents %s%s\nlog format %s\n", version, toolchain, agentevents.SchemaVersion)
				return err
			}
		},
	}
}
