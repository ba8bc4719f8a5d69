// Package transcript reads the sessions that Claude Code keeps on disk, below
// ~/.claude/projects: a file for the main agent, and one for each sub-agent in the folder
// SESSION/subagents beside it.
//
// A line has one block of a message. The lines of a file are in the order of the work; the chain
// of their parents forks at parallel calls, so that it tells only where a conversation was taken
// back to an earlier line. Tokens stand on each line of a message, and the last line
// counts. A call of the model that compacts the conversation has no line: its tokens are the
// difference between the program's own totals (cost-state) and the sum over the messages.
//
// A fork repeats the lines of the session that it comes from, with its own session id. Their
// answers carry the id of the session that asked for them.
package transcript
