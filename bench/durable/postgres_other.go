//go:build !linux

package main

import (
	"github.com/agentevents/agentevents/bench/internal/appends"
	"github.com/agentevents/agentevents/bench/internal/measure"
)

func (s *stores) postgres(*measure.Cell) (appends.Append, error) {
	return nil, measure.Missing("the CPU time of PostgreSQL's processes is counted on Linux only")
}
