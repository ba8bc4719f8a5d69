package agentevents

import (
	"slices"
	"strings"
)

// Closed word lists of the documents. A value outside its list is kept as it
// is and reported by rule field-enum; nothing is lost by reading it. Each list
// is a table: the methods known, words and constant read it.

// constantOf returns v as the table has it, so that the line that v was cut from
// is not kept. A word outside the table is copied.
func constantOf[T ~string](table []T, v T) T {
	if i := slices.Index(table, v); i >= 0 {
		return table[i]
	}
	return T(strings.Clone(string(v)))
}

// Verbosity is the share of the reasoning that a text holds (OpenWOP RFC 0002, section B). The
// empty string means full.
type Verbosity string

// The verbosities.
const (
	VerbosityFull    Verbosity = "full"    // the whole trace
	VerbositySummary Verbosity = "summary" // bounded by the token limit
	VerbosityOff     Verbosity = "off"     // no text
)

var verbosities = []Verbosity{VerbosityFull, VerbositySummary, VerbosityOff}

func (v Verbosity) known() bool { return slices.Contains(verbosities, v) }

func (Verbosity) words() []Verbosity { return verbosities }

// ToolStatus is the outcome of a tool call.
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

var toolStatuses = []ToolStatus{ToolStatusOK, ToolStatusError, ToolStatusForbidden, ToolStatusRateLimited, ToolStatusCancelled, ToolStatusInterrupted}

func (s ToolStatus) known() bool { return slices.Contains(toolStatuses, s) }

func (ToolStatus) words() []ToolStatus { return toolStatuses }

func (s ToolStatus) constant() ToolStatus { return constantOf(toolStatuses, s) }

// Severity grades an [AgentErrored].
type Severity string

// The severities.
const (
	SeverityWarning Severity = "warning"
	SeverityError   Severity = "error"
)

var severities = []Severity{SeverityWarning, SeverityError}

func (s Severity) known() bool { return slices.Contains(severities, s) }

func (Severity) words() []Severity { return severities }

// Transport is the way to a tool (OpenWOP).
type Transport string

// The transports.
const (
	TransportMCP    Transport = "mcp"
	TransportHTTP   Transport = "http"
	TransportNative Transport = "native"
)

var transports = []Transport{TransportMCP, TransportHTTP, TransportNative}

func (t Transport) known() bool { return slices.Contains(transports, t) }

func (Transport) words() []Transport { return transports }

// PatchOp is the operation of a [StatePatched] at its path.
type PatchOp string

// The patch operations. The resume spec has the first two.
const (
	PatchSet    PatchOp = "set"    // replace the value
	PatchMerge  PatchOp = "merge"  // set the members of an object in it, not those of objects inside; if one of the two is not an object, replace the value
	PatchRemove PatchOp = "remove" // take the value away
)

var patchOps = []PatchOp{PatchSet, PatchMerge, PatchRemove}

func (o PatchOp) known() bool { return slices.Contains(patchOps, o) }

func (PatchOp) words() []PatchOp { return patchOps }

// CommandType is the kind of a [Command]. Runtimes have others than these: they are data,
// which waits in the inbox of the snapshot, as a pause does.
type CommandType string

// The commands of the resume spec, which leaves the list open.
const (
	CommandSend   CommandType = "send"   // queue a message for a node run
	CommandReply  CommandType = "reply"  // answer a prompt of a node run
	CommandAbort  CommandType = "abort"  // stop, or pause when resumable
	CommandResume CommandType = "resume" // go on
	CommandPause  CommandType = "pause"  // pause, as abort does when resumable; a word of Open-Harness
)

// MemoryChange is a kind of change of a memory.
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

var memoryChanges = []MemoryChange{MemoryAdded, MemoryEvicted, MemorySummarized, MemoryHydrated, MemoryPersisted, MemorySearched}

func (m MemoryChange) known() bool { return slices.Contains(memoryChanges, m) }

func (MemoryChange) words() []MemoryChange { return memoryChanges }
