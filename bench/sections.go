package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"

	ae "github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/bench/internal/measure"
)

// A section is a set of comparisons whose cells are measured together.
type section struct {
	name        string
	comparisons func() []comparison
	durable     bool // measured by bench/durable
	once        bool // in one process, as its setup takes as long as a few rounds
}

// control is the section whose rows have the same code on both sides.
const control = "control"

func sections() []section {
	return append([]section{
		{name: control, comparisons: controlSection},
		{name: "encoding", comparisons: encodeSection},
		{name: "emitting", comparisons: emitSection},
		{name: "emitting concurrently", comparisons: concurrentSection},
		{name: "emitting to a disk", comparisons: diskSection},
		{name: "emitting to readers", comparisons: liveSection},
		{name: "appending durably", comparisons: durableSection, durable: true},
		{name: "folding and reading", comparisons: foldSection},
		{name: "folding on two cores", comparisons: coresSection},
		{name: "questions about a log", comparisons: questionSection},
		{name: "memory", comparisons: memorySection},
		{name: "tracing", comparisons: otelSection},
	}, growSections()...)
}

// controlSection compares operations with themselves.
func controlSection() []comparison {
	var out []comparison
	twice := func(what string, ours, theirs *cell) {
		ours.Name += ", again"
		out = append(out, versus("A/A", what+" / the same", bar{}, ours, theirs))
	}
	for _, l := range loads {
		if l.name != "W" {
			emit := func() *cell { return l.cell("Emit", l.emitter(ae.EmitterOptions{}, fileSink)) }
			twice(l.name+", Emit", emit(), emit())
		}
	}
	for _, s := range samples {
		if s.name == "U" || s.name == "W" {
			twice(s.name+", Event.AppendJSON", appendCell(s), appendCell(s))
		}
	}
	fold := func() *cell {
		return wholeLog("FoldLog", func(log []byte) error { _, err := foldLog(log); return err })
	}
	twice("FoldLog", fold(), fold())
	return out
}

// matching returns the comparisons that only matches.
func (s section) matching(only *regexp.Regexp) []comparison {
	return slices.DeleteFunc(s.comparisons(), func(c comparison) bool { return !only.MatchString(c.goal + " " + c.what) })
}

// cellsOf returns the cells of comparisons, each once. Two cells of a name are an error of
// the section.
func cellsOf(comparisons []comparison) ([]*cell, error) {
	var cells []*cell
	byName := map[string]*cell{}
	for _, c := range comparisons {
		for _, p := range c.pairs {
			for _, cell := range []*cell{p.ours, p.theirs} {
				switch byName[cell.Name] {
				case nil:
					byName[cell.Name] = cell
					cells = append(cells, cell)
				case cell:
				default:
					return nil, fmt.Errorf("two cells are named %q", cell.Name)
				}
			}
		}
	}
	return cells, nil
}

func names(cells []*cell) []string {
	out := make([]string, len(cells))
	for i, c := range cells {
		out[i] = c.Name
	}
	return out
}

// shared is the folder for files that child processes share.
var shared string

// serve measures cells of a section for the parent process, which asks on standard input.
func serve(name, folder string) (err error) {
	all := sections()
	at := slices.IndexFunc(all, func(s section) bool { return s.name == name })
	if at < 0 {
		return fmt.Errorf("no section is named %q", name)
	}
	shared = folder
	if scratch, err = os.MkdirTemp(folder, "cells-"); err != nil {
		return err
	}
	defer os.RemoveAll(scratch)
	cells, err := cellsOf(all[at].comparisons())
	if err != nil {
		return err
	}
	return measure.Serve(cells, os.Stdin, os.Stdout)
}

// A listed cell is one that two commits can be compared by.
type listed struct {
	Section, Name, Goals string
	Control              bool // as in measure.Cell
}

// list writes the cells of the library, and the controls.
func list(w io.Writer) error {
	var out []listed
	for _, s := range sections() {
		if s.durable || s.name == control {
			continue
		}
		at := map[*cell]int{}
		add := func(goal string, c *cell) {
			if i, ok := at[c]; !ok {
				at[c] = len(out)
				out = append(out, listed{Section: s.name, Name: c.Name, Goals: goal, Control: c.Control})
			} else if !slices.Contains(strings.Fields(out[i].Goals), goal) {
				out[i].Goals += " " + goal
			}
		}
		for _, c := range s.comparisons() {
			for _, p := range c.pairs {
				add(c.goal, p.ours)
				if p.theirs.Control {
					add(c.goal, p.theirs)
				}
			}
		}
	}
	return json.NewEncoder(w).Encode(out)
}
