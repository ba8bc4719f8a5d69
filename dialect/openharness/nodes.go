package openharness

import "strings"

// nodes are the nodes that have started, by their executions: the first one of a runId, and the
// others by their own ids. The zero nodes has none.
type nodes map[string]string

// id returns the execution of a node whose line has a runId. It is the runId, but for a node that
// starts with the runId of another one. starts says that the line is the start of the node.
func (n nodes) id(node, run string, starts bool) string {
	if first := n[run]; node == "" || node == run || first == "" || first == node { // a line whose nodeId is its runId names no node
		return run
	}
	if own := run + "/" + node; starts || n[own] == node {
		return own
	}
	return run
}

// runID returns the runId of a line for which id returns an execution.
func (n nodes) runID(node, execution string, starts bool) string {
	if run, cut := strings.CutSuffix(execution, "/"+node); cut && node != "" && n.id(node, run, starts) == execution {
		return run
	}
	return execution
}

// start notes the start of a node on an execution. Everything is forgotten when there are too
// many.
func (n *nodes) start(node, execution string) {
	if node == "" || node == execution || (*n)[execution] != "" {
		return
	}
	if *n == nil || len(*n) >= maxRuns {
		*n = nodes{}
	}
	(*n)[strings.Clone(execution)] = strings.Clone(node) // the clones do not keep the line alive
}

// sharedRun is the detail of an execution with the runId of another node.
const sharedRun = "another node has started with this runId"
