package agentevents

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/agentevents/agentevents/internal/jsonwire"
)

// JSON is any JSON value as text: arguments, results, messages, evidence.
//
// It is immutable and comparable, and keeps its bytes: integers above 2^53,
// the order of keys and characters such as < survive. Only insignificant
// whitespace is removed when an event is recorded, so that a line stays a
// line. The empty string means that there is no value; JSON's own null is
// "null".
//
// An emitter records text that is not JSON as a JSON string, and as the object {"sanitized":"the
// text"} where an object is expected, and marks the event [MarkSanitized]. Arguments and results of
// tools are texts mostly: give an emitter JSON(text) of them. A member of [ToolCalled] and
// [ToolReturned] then tells that the text was not JSON, and no mark is needed. Event.AppendJSON and
// MarshalJSON refuse such text.
//
// [ToJSON] makes one from a Go value, [JSONOrString] from a text that may be JSON;
// json.Unmarshal([]byte(j), &v) reads one.
type JSON string

// ToJSON returns v as JSON text, as [encoding/json.Marshal] would write it but
// with characters such as < left as they are. It returns the error of
// encoding/json when v cannot be written.
func ToJSON(v any) (JSON, error) {
	if j, ok := v.(JSON); ok {
		c, err := jsonwire.Compact(string(j))
		return JSON(c), err
	}
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return "", err
	}
	return JSON(strings.TrimSuffix(b.String(), "\n")), nil // which Encode ends with
}

// JSONString returns s as a JSON string. Bytes that are not UTF-8 become U+FFFD.
func JSONString(s string) JSON { return JSON(jsonwire.Quote(s)) }

// JSONOrString returns s as JSON if it is JSON that a line carries, and otherwise as [JSONString]
// does. It is for texts by models and tools, which are JSON mostly. The empty text is absent, and
// so is the result. Which of the two it was is lost if s is a JSON string or becomes one: see
// [JSON] for arguments and results of tools.
//
// A line carries what encoding/json takes but for duplicate names, damaged UTF-8,
// halves of surrogates and values more than 1,000 deep.
func JSONOrString(s string) JSON {
	if s == "" {
		return ""
	}
	c, err := jsonwire.Compact(s)
	if err != nil {
		return JSONString(s)
	}
	return JSON(c)
}

// MarshalJSON returns the text itself, and null for the empty string.
func (j JSON) MarshalJSON() ([]byte, error) {
	if j == "" {
		return []byte("null"), nil
	}
	return []byte(j), nil
}

// UnmarshalJSON keeps the text of any JSON value.
func (j *JSON) UnmarshalJSON(text []byte) error {
	c, err := jsonwire.Compact(string(text))
	if err != nil {
		return err
	}
	*j = JSON(c)
	return nil
}

// Opt is a value that may be absent. The zero Opt is absent, which is not the
// same as present with a zero value: {"durationMs":0} and {} differ.
type Opt[T any] struct {
	V  T    // the value; meaningful only if OK
	OK bool // whether there is a value
}

// Some returns a present v.
func Some[T any](v T) Opt[T] { return Opt[T]{V: v, OK: true} }

// Or returns the value, or def when it is absent.
func (o Opt[T]) Or(def T) T {
	if o.OK {
		return o.V
	}
	return def
}

// MarshalJSON returns the value as [encoding/json] writes it, and null when it is
// absent. In a struct of your own, tag the field omitzero to leave an absent
// value out.
func (o Opt[T]) MarshalJSON() ([]byte, error) {
	if !o.OK {
		return []byte("null"), nil
	}
	return json.Marshal(o.V)
}

// UnmarshalJSON reads a value as [encoding/json] does; null is absent.
func (o *Opt[T]) UnmarshalJSON(text []byte) error {
	if string(text) == "null" {
		*o = Opt[T]{}
		return nil
	}
	var v T
	if err := json.Unmarshal(text, &v); err != nil {
		return err
	}
	*o = Some(v)
	return nil
}

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

var toolStatuses = []ToolStatus{ToolStatusOK, ToolStatusError, ToolStatusForbidden,
	ToolStatusRateLimited, ToolStatusCancelled, ToolStatusInterrupted}

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
	PatchSet PatchOp = "set" // replace the value
	// Set the members of an object in it, not those of objects inside; if one of the two is not an
	// object, replace the value.
	PatchMerge  PatchOp = "merge"
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

var memoryChanges = []MemoryChange{MemoryAdded, MemoryEvicted,
	MemorySummarized, MemoryHydrated, MemoryPersisted, MemorySearched}

func (m MemoryChange) known() bool { return slices.Contains(memoryChanges, m) }

func (MemoryChange) words() []MemoryChange { return memoryChanges }

// Values that several payloads share.

// Usage counts tokens. Fields that a provider does not report are absent, not
// zero. The names are those of the resume spec.
//
// The three input counts do not overlap: their sum is the whole input. Most providers report an
// input that includes the cached tokens, and some an output without the reasoning: a recorder of
// such figures subtracts the cached tokens and adds the reasoning. A reader of a document takes its
// figures unchanged.
type Usage struct {
	InputTokens              int64      `json:"inputTokens" class:"meta" check:"min=0"`                       // tokens sent that no cache was used for
	OutputTokens             int64      `json:"outputTokens" class:"meta" check:"min=0"`                      // all tokens generated, reasoning included
	TotalTokens              Opt[int64] `json:"totalTokens,omitzero" class:"meta" check:"min=0"`              // as reported, not computed
	CacheCreationInputTokens Opt[int64] `json:"cacheCreationInputTokens,omitzero" class:"meta" check:"min=0"` // tokens sent and written to the cache
	CacheReadInputTokens     Opt[int64] `json:"cacheReadInputTokens,omitzero" class:"meta" check:"min=0"`     // tokens sent and read from the cache
	ReasoningOutputTokens    Opt[int64] `json:"reasoningOutputTokens,omitzero" class:"meta" check:"min=0"`    // the part of OutputTokens that is reasoning
	// CostUSD is the cost in US dollars, in [AgentEnded].ModelUsage. Other
	// payloads have a field of their own for the cost.
	CostUSD Opt[float64] `json:"costUsd,omitzero" class:"meta" check:"min=0"`

	extra extras
}

// ErrorInfo is an error as data (OpenWOP's ErrorEnvelope).
type ErrorInfo struct {
	Code      string    `json:"code,omitzero" class:"meta"`       // open word for programs, such as "not_found"
	Message   string    `json:"message" class:"content"`          // text for people
	Details   JSON      `json:"details,omitzero" class:"content"` // any JSON value
	Retryable Opt[bool] `json:"retryable,omitzero" class:"meta"`  // whether trying again may help

	extra extras
}
