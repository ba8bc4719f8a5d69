// Agentevents checks, draws, folds, compares, converts and redacts logs of agent runs. It also
// makes logs from the output of agent programs.
//
//	agentevents import claude capture.jsonl > run.jsonl
//	agentevents check run.jsonl
//	agentevents tree run.jsonl
//
// Run "agentevents help" for the commands and "agentevents help COMMAND" for
// one of them.
//
// Lines that cannot be read are reported on standard error, with file and line, and skipped. The
// exit status is 0 when all went well, 1 when the input has problems, and 2 when the command was
// used wrongly or a file could not be read or written. diff exits with 1 when two runs differ; a
// line that cannot be read makes it 2.
package main
