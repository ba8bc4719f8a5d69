package foreign

// ClaudeStream is the Name of the stream that capture/claude reads.
const ClaudeStream = "a stream of Claude Code"

// ClaudeTranscript is the Name of the files that Claude Code keeps on disk.
const ClaudeTranscript = "a transcript of Claude Code, as it keeps them on disk"

const (
	direct    = "agentevents reads it as it is, as a file of its own with the line that names its session, and without the name of a format"
	documents = direct + ", also as a JSON document" // of a program whose files need not be lines
	exported  = "agentevents writes it and cannot read it; name the log that it was exported from"
	camelCase = "the protocol has runId, threadId and messageId: rename the members, " +
		"as jq -c 'with_entries(.key |= gsub(\"_(?<c>[a-z])\"; .c | ascii_upcase))' does with lines of JSON"
)

// programs are the files of other programs. Of the rows that fit a line the first one counts, so
// those with fewer lines stand first. A format that gets a reader keeps its row: the hint is then
// how to read it. A row without a hint has no reader yet.
var programs = []struct {
	program, name, hint string
	signs               []string // see parse
}{
	{"Qwen Code", "a session file of Qwen Code", direct, []string{
		"parentUuid sessionId provenance",
		"parentUuid sessionId message/parts",
		"parentUuid sessionId systemPayload",
	}},
	{"Qwen Code", "a stream of qwen --output-format stream-json", direct, []string{
		"type=system subtype=init session_id permission_mode",
		"type=stream_event session_id event/type=goal_state",
	}},
	{"Qwen Code", "the description of a sub-agent of Qwen Code", "", []string{"agentId agentType parentSessionId"}},
	{"Qwen Code", "the usage record of Qwen Code", "", []string{"sessionId models tools totalLatencyMs"}},
	{"Claude Code", ClaudeTranscript, direct, []string{
		"parentUuid sessionId !session_id !parent_tool_use_id",
		"type=queue-operation|mode|permission-mode|last-prompt|cost-state|tools-used|atis-latch|api-request|api-request-shape|api-request-blob sessionId !session_id",
		"type=summary leafUuid",
		"type=file-history-snapshot messageId snapshot",
	}},
	{"Claude Code", "the journal of a workflow of Claude Code", "", []string{"type=launched|started|result key agentId"}},
	{"Claude Code", "the history of prompts of Claude Code", "", []string{"display pastedContents project"}},
	{"Claude Code", "the description of a sub-agent of Claude Code", "", []string{"agentType toolUseId", "agentType spawnDepth"}},
	{"Claude Code", ClaudeStream, direct, []string{
		"type=system|assistant|user|result|stream_event|rate_limit_event|tool_progress|auth_status session_id uuid !ts",
		"type=system subtype session_id !ts",
		"type=assistant|user message parent_tool_use_id !ts",
		"type=assistant|user message/role session_id !ts",
		"type=assistant message/content !ts",
		"type=result subtype num_turns !ts",
		"type=result session_id duration_ms !ts",
		"type=command_lifecycle|conversation_reset session_id !ts",
	}},
	{"Codex", "a session of Codex, as it keeps them on disk", direct, []string{
		"type=session_meta|turn_context|response_item|event_msg|compacted|world_state|token_usage_record payload !id !sequence",
		"id timestamp instructions !type !sequence !event",
	}},
	{"Codex", "a stream of codex exec --json", direct, []string{
		"type=thread.started thread_id",
		"type=turn.started !id !sequence !payload !timestamp",
		"type=turn.completed usage !id !sequence",
		"type=turn.failed error !id !sequence",
		"type=item.started|item.updated|item.completed item",
	}},
	{"Gemini CLI", "a session of Gemini CLI in one document", documents, []string{"sessionId projectHash messages"}},
	{"Gemini CLI", "a session of Gemini CLI", direct, []string{
		"sessionId projectHash",
		"$set !type",
		"$rewindTo !type",
		"type=gemini id content",
	}},
	{"Gemini CLI", "a stream of gemini --output-format stream-json", direct, []string{
		"type=init session_id model",
		"type=message role content !id",
		"type=tool_use tool_name tool_id",
		"type=tool_result tool_id status",
		"type=result status stats",
	}},
	{"Gemini CLI", "the answer of gemini --output-format json", "", []string{"session_id response stats"}},
	{"opencode", "a stream of opencode run --format json", direct, []string{"type sessionID part", "type sessionID timestamp:number"}},
	{"opencode", "rows of the database of opencode", documents, []string{
		"aggregate_id seq type data",
		"id=msg_*|prt_* session_id data",
		"id=ses_* project_id slug",
		"session/project_id session/slug",
		"event/aggregate_id event/seq",
		"message/session_id message/data",
		"part/session_id part/message_id",
		"info/id=ses_* info/projectID",
	}},
	{"pi", "a session of pi", direct, []string{
		"type=session version cwd",
		"type=model_change|thinking_level_change|compaction|branch_summary|label|custom|custom_message|session_info id parentId",
		"type=message id parentId message/role",
		"type=agent_start|turn_start !id !timestamp !run_id !session_id",
		"type=agent_end messages",
		"type=turn_end message toolResults",
		"type=message_start|message_update|message_end message/role",
		"type=tool_execution_start|tool_execution_update|tool_execution_end toolCallId toolName",
		"type=response command success",
	}},
	{"Copilot CLI", "a stream of copilot", direct, []string{
		"type data ephemeral timestamp",
		"type=result sessionId exitCode",
	}},
	{"Copilot CLI", "a session of Copilot CLI", direct, []string{
		"type=session.start data/producer=copilot-agent",
		"type data id parentId timestamp !payload !sequence",
	}},
	{"cline", "a stream of cline --json", direct, []string{"ts type=agent_event event", "ts type=run_result finishReason"}},
	{"cline", "the description of a session of cline", "name the file with its messages, which is beside it: ID.messages.json", []string{"session_id source pid started_at"}},
	{"cline", "a session of cline", documents, []string{
		"agent sessionId origin messages",
		"agent sessionId origin/source",
	}},
	{"AG-UI", "AG-UI with its names in snake case", camelCase, []string{
		"type=RUN_* run_id !runId",
		"type=RUN_* thread_id !threadId",
		"type=TEXT_MESSAGE_*|REASONING_*|THINKING_*|ACTIVITY_* message_id !messageId",
		"type=TOOL_CALL_* tool_call_id !toolCallId",
		"type=STEP_* step_name !stepName",
	}},
	{"OpenTelemetry", "OTLP JSON", exported, []string{"resourceSpans", "resourceLogs", "resourceMetrics"}},
	{"Chrome", "a trace in Chrome's trace event format", exported, []string{"traceEvents", "ph pid tid ts:number", "ph=M pid name"}},
	{"agentevents", "a snapshot of 'agentevents fold'", "name the log that it was made of", []string{"runId nextSequence resume"}},
}

// eventSigns are the signs of an event that has more than a type, in the formats that have readers.
var eventSigns = []string{
	"type runId", "type eventId", "type run_id", "ts run_id event", "type traceId actor",
	"type=flow:*|node:*|agent:*|edge:*|loop:*|state:*|command:* timestamp:number",
	"type=RUN_* threadId", "type=TEXT_MESSAGE_*|REASONING_*|THINKING_*|ACTIVITY_* messageId", "type=TOOL_CALL_* toolCallId", "type=STEP_* stepName",
}
