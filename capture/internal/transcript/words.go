package transcript

import (
	"cmp"
	"strings"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/internal/jsonwire"
)

// The words by which Claude Code tells, on disk and in streams, that a call did not go its way.

// InDoubt is the status of a call that was refused or interrupted: later lines tell.
const InDoubt = agentevents.ToolStatus("in doubt")

// denials are the kinds of calls that were not executed.
var denials = map[string]agentevents.ToolStatus{
	"permission-rule": agentevents.ToolStatusForbidden,
	"interrupted":     agentevents.ToolStatusCancelled,
	"user-rejected":   InDoubt,
}

// Denial returns the status of a call of a kind that was not executed, or "" for another word.
func Denial(kind string) agentevents.ToolStatus { return denials[kind] }

// decisions are the words for whether a call was permitted.
var decisions = map[string]agentevents.ToolStatus{
	"reject": agentevents.ToolStatusForbidden,
	"accept": agentevents.ToolStatusError,
}

// Decision returns the status of a failed call with a decision, or "" for another word.
func Decision(word string) agentevents.ToolStatus { return decisions[word] }

// refusals are the beginnings of the texts for the model.
var refusals = []struct {
	begin, within string
	means         agentevents.ToolStatus
}{
	{"Claude requested permissions to ", "", agentevents.ToolStatusForbidden},
	{"Permission to use ", "", agentevents.ToolStatusForbidden},
	{"Permission prompt was aborted", "", agentevents.ToolStatusCancelled},
	{"PreToolUse:", " hook error", agentevents.ToolStatusForbidden},
	{"The user doesn't want to proceed with this tool use", "stopped while running", agentevents.ToolStatusCancelled},
	{"The user doesn't want to proceed with this tool use", "", InDoubt},
	{"[Request interrupted by user", "", agentevents.ToolStatusCancelled},
}

// Refusal returns the status of a failed call with a text for the model, which is an error
// without one of the words for a refusal.
func Refusal(text string) agentevents.ToolStatus {
	for _, r := range refusals {
		if strings.HasPrefix(text, r.begin) && strings.Contains(text, r.within) {
			return r.means
		}
	}
	return agentevents.ToolStatusError
}

// ServerFailure reports whether the result of a tool of the API's server is that of a failure, and
// returns its words. These results are objects, without is_error.
func ServerFailure(content string) (words string, failed bool) {
	if !strings.HasPrefix(content, "{") {
		return "", false
	}
	kind, exit := jsonwire.Text(jsonwire.Member(content, "type")), jsonwire.Member(content, "return_code")
	if !strings.HasSuffix(kind, "_error") && (exit == "" || exit == "null" || exit == "0") {
		return "", false
	}
	words = jsonwire.Text(jsonwire.Member(content, "error_code"))
	return cmp.Or(words, jsonwire.Text(jsonwire.Member(content, "stderr")), content), true
}

// A TaskState is the state of a sub-agent's work.
type TaskState uint8

const (
	TaskWorks TaskState = iota // also a word that nobody knows
	TaskCompleted
	TaskFailed
)

// TaskStates are the words of tasks and of the agents of workflows.
var TaskStates = map[string]TaskState{
	"completed": TaskCompleted, "complete": TaskCompleted, "done": TaskCompleted, "success": TaskCompleted,
	"failed": TaskFailed, "error": TaskFailed, "stopped": TaskFailed, "killed": TaskFailed, "cancelled": TaskFailed, "interrupted": TaskFailed,
}

// StatusError returns the error of a sub-agent that ended with a status. One without a status has
// completed.
func StatusError(status string) (err agentevents.Opt[agentevents.ErrorInfo]) {
	if status != "" && TaskStates[status] != TaskCompleted {
		err = agentevents.Some(agentevents.ErrorInfo{
			Code: strings.Clone(status), Message: "the sub-agent ended with status " + status,
		})
	}
	return err
}

// IsInterruption reports whether a text of the user's side marks an interruption.
func IsInterruption(text string) bool { return strings.HasPrefix(text, "[Request interrupted by user") }

// Synthetic is the model of messages that Claude Code writes itself.
const Synthetic = "<synthetic>"

// IsSpawn reports whether a tool spawns a sub-agent.
func IsSpawn(tool string) bool { return tool == "Agent" || tool == "Task" }
