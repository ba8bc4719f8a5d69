package main

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/agentevents/agentevents/bench/internal/measure"
	"github.com/agentevents/agentevents/bench/mix"
)

var (
	//go:embed questions.jq
	jqQuestions string
	//go:embed questions.js
	duckQuestions string
)

// questionLog is the log that is asked. It is larger than mix.Standard, so that the start of
// a process is a small part.
var questionLog = mix.Options{Lines: 200_000, Runs: 400}

// An asker starts the process that answers questions about a log. A Missing tells why
// there is none.
type asker func(log string) (*exec.Cmd, error)

// statsBy asks the command stats, which answers one grouping in one pass.
func statsBy(group string) asker {
	return func(log string) (*exec.Cmd, error) {
		bin, err := command()
		return exec.Command(bin, "stats", "--json", "--by", group, log), err
	}
}

// askJQ asks jq, which answers all groupings in one pass.
func askJQ(log string) (*exec.Cmd, error) {
	bin, err := exec.LookPath("jq")
	if err != nil {
		return nil, measure.Missing("jq is not in PATH")
	}
	return exec.Command(bin, "-n", jqQuestions, log), nil
}

// askDuckDB asks DuckDB, which answers all groupings in one pass.
func askDuckDB(log string) (*exec.Cmd, error) {
	if _, err := exec.LookPath("node"); err != nil {
		return nil, measure.Missing("node, in which DuckDB runs, is not in PATH")
	}
	modules := filepath.Join(os.Getenv("AGENTEVENTS_DUCKDB"), "node_modules")
	if _, err := os.Stat(filepath.Join(modules, "@duckdb", "node-api")); err != nil || !filepath.IsAbs(modules) {
		return nil, measure.Missing("AGENTEVENTS_DUCKDB names no folder with @duckdb/node-api")
	}
	cmd := exec.Command("node", "-e", duckQuestions, log)
	cmd.Env = append(os.Environ(), "NODE_PATH="+modules)
	return cmd, nil
}

// questionSection is Q1: the cost of questions about a log, asked with the command and with
// programs that people use for it. Stats groups by one thing, so it is called three times. DuckDB and
// jq check neither the order of events nor their rules; the start of node is in DuckDB's
// time.
func questionSection() []comparison {
	ask := func(name string, askers ...asker) *cell {
		return &cell{Name: name, Clock: measure.ChildTime, Cold: true, Setup: func(c *cell) (func(int) error, error) {
			log, size, err := largeLog()
			if err != nil {
				return nil, err
			}
			c.Bytes = size
			for _, a := range askers {
				if _, err := a(log); err != nil {
					return nil, err
				}
			}
			return measure.Repeat(func() error {
				for _, a := range askers {
					if _, err := answer(a, log); err != nil {
						return err
					}
				}
				return nil
			}), nil
		}}
	}
	var (
		all    = ask("stats by tool, by agent and by model", statsBy("tool"), statsBy("agent"), statsBy("model"))
		one    = ask("stats by tool", statsBy("tool"))
		duckDB = ask("DuckDB", askDuckDB)
		jq     = ask("jq", askJQ)
	)
	return []comparison{
		versus("Q1", "calls, tokens and cost by tool, agent and model: stats, three passes / DuckDB read_json, one", atMost(1), all, duckDB),
		versus("Q1", "calls, tokens and cost by tool, agent and model: stats, three passes / jq, one", atLeast(1), all, jq),
		versus("Q1", "stats by tool / DuckDB read_json by all three", bar{}, one, duckDB),
	}
}

// answer runs the process of an asker to its end.
func answer(a asker, log string) ([]byte, error) {
	cmd, err := a(log)
	if err != nil {
		return nil, err
	}
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("%s: %w: %s", filepath.Base(cmd.Path), err, stderr.String())
	}
	return out, err
}

// largeLog returns the path and the size of the log that is asked. The first process that
// wants it writes it.
func largeLog() (string, int, error) {
	path := filepath.Join(shared, "questions.jsonl")
	info, err := os.Stat(path)
	if err == nil {
		return path, int(info.Size()), nil
	}
	f, err := os.Create(path)
	if err != nil {
		return "", 0, err
	}
	defer f.Close()
	if err := mix.Write(f, questionLog); err != nil {
		return "", 0, err
	}
	info, err = f.Stat()
	if err != nil {
		return "", 0, err
	}
	return path, int(info.Size()), f.Close()
}

// programVersions names the programs that are peers.
func programVersions() []string {
	var out []string
	if v, err := exec.Command("jq", "--version").Output(); err == nil {
		out = append(out, strings.TrimSpace(string(v)))
	}
	text, err := os.ReadFile(filepath.Join(os.Getenv("AGENTEVENTS_DUCKDB"),
		"node_modules", "@duckdb", "node-api", "package.json"))
	var pack struct{ Name, Version string }
	if err == nil && json.Unmarshal(text, &pack) == nil {
		out = append(out, pack.Name+" "+pack.Version)
	}
	return out
}
