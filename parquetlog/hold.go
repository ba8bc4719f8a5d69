package parquetlog

import (
	"strings"

	"github.com/agentevents/agentevents/columns"
)

// A holding has rows of agents that are known by a span alone, until an event tells their ids.
type holding struct {
	runs  map[string][]columns.Row
	rows  int
	bytes int
}

// add keeps a copy of a row.
func (h *holding) add(r *columns.Row) {
	if h.runs == nil {
		h.runs = map[string][]columns.Row{}
	}
	own := r.Clone()
	h.runs[own.RunID] = append(h.runs[own.RunID], own)
	h.rows++
	h.bytes += len(own.Line) + len(own.Result)
}

// named takes the rows of the agent whose id a row tells, with that id. The rows of other agents of
// the run go on waiting.
func (h *holding) named(r *columns.Row) (rows []columns.Row) {
	var rest []columns.Row
	for _, own := range h.take(r.RunID) {
		if own.AgentID != r.AgentWas {
			rest = append(rest, own)
			continue
		}
		own.AgentID, own.AgentName = strings.Clone(r.AgentID), strings.Clone(r.AgentName)
		rows = append(rows, own)
	}
	for i := range rest {
		h.add(&rest[i])
	}
	return rows
}

// all takes all rows as they are.
func (h *holding) all() (rows []columns.Row) {
	for id := range h.runs {
		rows = append(rows, h.take(id)...)
	}
	return rows
}

// take takes the rows of a run as they are.
func (h *holding) take(runID string) []columns.Row {
	rows := h.runs[runID]
	delete(h.runs, runID)
	h.rows -= len(rows)
	for i := range rows {
		h.bytes -= len(rows[i].Line) + len(rows[i].Result)
	}
	return rows
}
