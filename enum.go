package agentevents

import "strings"

// Closed word lists of the documents. A value outside its list is kept as it
// is and reported by rule field-enum; nothing is lost by reading it.

// Verbosity says how much of the reasoning a text holds (OpenWOP RFC 0002,
// section B). The empty string means full.
type Verbosity string

// The verbosities.
const (
	VerbosityFull    Verbosity = "full"    // the whole trace
	VerbositySummary Verbosity = "summary" // bounded by the token limit
	VerbosityOff     Verbosity = "off"     // no text
)

func (v Verbosity) known() bool {
	return v == VerbosityFull || v == VerbositySummary || v == VerbosityOff
}

// ToolStatus says how a tool call went.
type ToolStatus string

// The tool statuses. The first four are OpenWOP's; the last two close calls
// that never returned.
const (
	ToolStatusOK          ToolStatus = "ok"
	ToolStatusError       ToolStatus = "error"
	ToolStatusForbidden   ToolStatus = "forbidden"    // refused, perhaps before any call
	ToolStatusRateLimited ToolStatus = "rate_limited" // refused for now, perhaps before any call
	ToolStatusCancelled   ToolStatus = "cancelled"    // somebody stopped it
	ToolStatusInterrupted ToolStatus = "interrupted"  // the run ended while it was open
)

func (s ToolStatus) known() bool {
	switch s {
	case ToolStatusOK, ToolStatusError, ToolStatusForbidden, ToolStatusRateLimited, ToolStatusCancelled, ToolStatusInterrupted:
		return true
	}
	return false
}

// constant returns the word itself when s is one, so that a piece of a line is
// not kept.
func (s ToolStatus) constant() ToolStatus {
	for _, c := range [...]ToolStatus{ToolStatusOK, ToolStatusError, ToolStatusForbidden, ToolStatusRateLimited, ToolStatusCancelled, ToolStatusInterrupted} {
		if s == c {
			return c
		}
	}
	return ToolStatus(strings.Clone(string(s)))
}

// Severity grades an [AgentErrored].
type Severity string

// The severities.
const (
	SeverityWarning Severity = "warning"
	SeverityError   Severity = "error"
)

func (s Severity) known() bool { return s == SeverityWarning || s == SeverityError }

// Transport says how a tool is reached (OpenWOP).
type Transport string

// The transports.
const (
	TransportMCP    Transport = "mcp"
	TransportHTTP   Transport = "http"
	TransportNative Transport = "native"
)

func (t Transport) known() bool {
	return t == TransportMCP || t == TransportHTTP || t == TransportNative
}

// PatchOp is what a [StatePatched] does at its path.
type PatchOp string

// The patch operations of the resume spec.
const (
	PatchSet   PatchOp = "set"   // replace the value
	PatchMerge PatchOp = "merge" // merge the members of an object into it
)

func (o PatchOp) known() bool { return o == PatchSet || o == PatchMerge }

// CommandType is the kind of a [Command].
type CommandType string

// The commands of the resume spec.
const (
	CommandSend   CommandType = "send"   // queue a message for a node run
	CommandReply  CommandType = "reply"  // answer a prompt of a node run
	CommandAbort  CommandType = "abort"  // stop, or pause when resumable
	CommandResume CommandType = "resume" // go on
)

func (c CommandType) known() bool {
	switch c {
	case CommandSend, CommandReply, CommandAbort, CommandResume:
		return true
	}
	return false
}

// MemoryChange is what happened to a memory.
type MemoryChange string

// The memory changes of KAOS.
const (
	MemoryAdded      MemoryChange = "added"
	MemoryEvicted    MemoryChange = "evicted"
	MemorySummarized MemoryChange = "summarized"
	MemoryHydrated   MemoryChange = "hydrated"
	MemoryPersisted  MemoryChange = "persisted"
	MemorySearched   MemoryChange = "searched"
)

func (m MemoryChange) known() bool {
	switch m {
	case MemoryAdded, MemoryEvicted, MemorySummarized, MemoryHydrated, MemoryPersisted, MemorySearched:
		return true
	}
	return false
}
