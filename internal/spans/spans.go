// Package spans maps the events of runs to spans in the words of OpenTelemetry. It is
// the one mapping: the live hook and the export of logs both use it, so a run looks the
// same live and replayed, with the same ids.
//
// A [Mapper] is fed the events of one run, in order. It tells of spans by the functions
// of its [Options]. It needs no OpenTelemetry.
package spans

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"time"
)

// A TraceID identifies a trace. The zero TraceID means no trace.
type TraceID [16]byte

// String returns the id as 32 hex digits, or "" for none.
func (t TraceID) String() string {
	if t == (TraceID{}) {
		return ""
	}
	return hex.EncodeToString(t[:])
}

// A SpanID identifies a span in its trace. The zero SpanID means no span.
type SpanID [8]byte

// String returns the id as 16 hex digits, or "" for none.
func (s SpanID) String() string {
	if s == (SpanID{}) {
		return ""
	}
	return hex.EncodeToString(s[:])
}

// ParseTraceID reads 32 lower-case hex digits. It returns false for other text and for
// zeros.
func ParseTraceID(s string) (id TraceID, ok bool) {
	ok = parseHex(id[:], s) && id != (TraceID{})
	return id, ok
}

// ParseSpanID reads 16 lower-case hex digits, as [ParseTraceID] does.
func ParseSpanID(s string) (id SpanID, ok bool) {
	ok = parseHex(id[:], s) && id != (SpanID{})
	return id, ok
}

func parseHex(dst []byte, s string) bool {
	if len(s) != 2*len(dst) {
		return false
	}
	for i := range len(s) {
		if c := s[i]; (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	_, err := hex.Decode(dst, []byte(s))
	return err == nil
}

// DeriveTraceID returns the id of a run's trace. It is a part of a SHA-256, because samplers expect
// random bytes in the id, and the bytes of a UUID are not random. A run that goes on in another
// process has one trace for each segment; segment is the sequence with which it begins.
func DeriveTraceID(runID string, segment uint64) (id TraceID) {
	sum := derive("trace", runID, segment)
	copy(id[:], sum[:])
	return id
}

// DeriveSpanID returns the id of a span. It is derived from the run, the kind and id of the span's
// subject, and the sequence of the event that opens it, because ids of calls may be used again.
func DeriveSpanID(runID, kind, id string, sequence uint64) (s SpanID) {
	sum := derive("span", runID, sequence, kind, id)
	copy(s[:], sum[:])
	return s
}

// derive hashes its arguments, each with its length, so that no two lists are the same.
func derive(what, runID string, sequence uint64, more ...string) [32]byte {
	var room [256]byte
	text := room[:0]
	add := func(s string) { text = append(binary.BigEndian.AppendUint64(text, uint64(len(s))), s...) }
	add(what)
	add(runID)
	for _, s := range more {
		add(s)
	}
	return sha256.Sum256(binary.BigEndian.AppendUint64(text, sequence))
}

// A Kind is the kind of a span. Its numbers are OTLP's.
type Kind int

// The kinds.
const (
	KindInternal Kind = 1
	KindClient   Kind = 3
)

// A Code is the code of a span's status. Its numbers are OTLP's. A successful span has no status.
type Code int

// The codes.
const (
	StatusUnset Code = 0
	StatusError Code = 2
)

// An Attr is an attribute. Its value is Text unless Value is a bool, int64, float64, []string
// or [Content]. An interface with a text in it would be one more allocation.
type Attr struct {
	Key, Text string
	Value     any
}

func str(k, text string) Attr { return Attr{Key: k, Text: text} }

func val(k string, v any) Attr { return Attr{Key: k, Value: v} }

// Any returns the value, which is a string if it is Text.
func (a Attr) Any() any {
	if a.Value == nil {
		return a.Text
	}
	return a.Value
}

// none reports whether the attribute is empty.
func (a Attr) none() bool { return a.Key == "" || a.Text == "" && a.Value == nil }

// A Content is a value of users, within the budget: text, or JSON.
type Content struct {
	Text string
	JSON bool
}

// MarshalText returns the text, so that in JSON it is a string.
func (c Content) MarshalText() ([]byte, error) { return []byte(c.Text), nil }

// A Point is an event at one time in a span: OpenTelemetry's span event, or a log record with an
// event name.
type Point struct {
	Name       string
	Time       time.Time
	Attributes []Attr
	Severity   Severity
	Sequence   uint64 // of the event it is made of
	AgentID    string // of the event
}

// A Severity is the severity of a log record. Its numbers are OTLP's.
type Severity int

// The severities.
const (
	SeverityDebug Severity = 5
	SeverityInfo  Severity = 9
	SeverityWarn  Severity = 13
	SeverityError Severity = 17
)

// A Link refers to a span that is not the parent.
type Link struct {
	TraceID    TraceID
	SpanID     SpanID
	Attributes []Attr
}

// A Span is one span. The mapper owns it until it has ended; then it changes no more.
type Span struct {
	TraceID TraceID
	ID      SpanID
	// Parent is the parent in the same run, or nil: then ParentID is, or zero for a root.
	// The parent may have ended before.
	Parent   *Span
	ParentID SpanID
	// Remote means that ParentID belongs to another process.
	Remote bool

	Name       string // may change between the call of [Options].Started and the end
	Kind       Kind
	Start, End time.Time // End is zero while the span is open, and not before Start
	// Took is the duration of a call, if its end states one: the times of events have milliseconds.
	Took time.Duration
	// Attributes have those for a sampler in front: at Started all are there that are known.
	Attributes    []Attr
	Points        []Point // the newest 128
	DroppedPoints int     // points that were not kept
	Links         []Link
	Status        Code
	Description   string // of StatusError

	First, Last  uint64 // sequences of the first and the last event
	ClosedReason string // why it ended without its event: see the Reason constants

	Data any // the value that Options.Started keeps with the span

	ended   bool
	madeUp  bool      // no event begins it, and so none has to end it
	carried bool      // from the trace before, and the id is known only by a later event
	waits   bool      // Ended is told of it later: see Options.Late
	spent   bool      // a model call, this or one below, has usage
	last    time.Time // of the last event of the span and of those below
	key     key
	told    int       // attributes that Started was told
	below   time.Time // the latest Until of the spans below that have ended
	content []Attr    // for the point that has it
	usage   *tally    // of the model call, agent or run; nil if there is none
	deltas  int       // that were counted
	delta   time.Time // of the first one
}

// Late returns the attributes that were added after Started was told; all of them if one
// that it was told has changed.
func (s *Span) Late() []Attr { return s.Attributes[s.told:] }

// Attr returns the attribute with the key, or the zero one.
func (s *Span) Attr(key string) Attr {
	for _, a := range s.Attributes {
		if a.Key == key {
			return a
		}
	}
	return Attr{}
}

// Until is the end to export instead of End. A span that ends in the millisecond in which it starts
// lasts as long as it took, or a nanosecond: Jaeger warns of spans without a duration that they end
// before they start. The end is not before the end of a child that was extended like this.
func (s *Span) Until() time.Time {
	until := s.End
	if !until.After(s.Start) {
		until = until.Add(max(1, min(s.Took, time.Millisecond-1)))
	}
	if over := s.below.Sub(until); over > 0 && over < time.Millisecond {
		return s.below
	}
	return until
}

// Lasted is how long the span has lasted.
func (s *Span) Lasted() time.Duration { return cmp.Or(s.Took, s.End.Sub(s.Start)) }

// ParentSpanID returns the id of the parent, or zero for a root.
func (s *Span) ParentSpanID() SpanID {
	if s.Parent != nil {
		return s.Parent.ID
	}
	return s.ParentID
}

// Why spans end without their event.
const (
	ReasonParentEnded = "parent_ended" // the span that contains them has ended
	ReasonRunEnded    = "run_ended"    // the run has
	ReasonRestarted   = "restarted"    // it began once more
	ReasonIdle        = "idle_timeout" // nothing happened in the run for a time
	ReasonEvicted     = "evicted"      // too many spans were open
	ReasonShutdown    = "shutdown"     // the hook, the emitter's run or the log ended
	ReasonPaused      = "paused"       // the run is released while it is paused: no error
)

// A key finds an open span in its run.
type key struct{ kind, agent, id string }

// A Capture is a set of places for content.
type Capture uint8

// The places, and the content that is captured only on request.
const (
	OnSpans   Capture = 1 << iota // content of spans: attributes of them
	Details                       // content of spans: a point of its own
	OnPoints                      // content of points
	Reasoning                     // of models, too, in points
)

// InTrace is the content of spans and of points, or nothing.
func InTrace(content bool) Capture {
	if content {
		return OnSpans | OnPoints
	}
	return 0
}

// Options configure a [Mapper]. The zero Options are usable.
type Options struct {
	// Started is told of a span that begins. It may set TraceID and ID, and ParentID of a
	// span without Parent, to those that the span has in truth. Ids that are zero then are
	// derived: see [Mapper.Derive]. nil means nothing.
	Started func(*Span)
	// Ended is told of a span that has ended. A span that is known only with its end
	// is told to Started just before. nil means nothing.
	Ended func(*Span)
	// Late has a span that is made of its end wait for its start, which may be written late: Ended is
	// told of it with that, at the latest when the run is closed. At most 256 wait.
	Late bool
	// Noted is told of a point, which is in Points too unless the span has ended; the
	// span is nil if there is none. The point is the mapper's again when it returns. nil means
	// nothing.
	Noted func(*Span, *Point)
	// NoPoints leaves Points empty: only Noted is told.
	NoPoints bool

	// Semconv selects the words of GenAI; "" means those that all versions share.
	Semconv Semconv
	// Content is the set of places for prompts, arguments, results, other texts of users and texts
	// of errors. The zero value drops them.
	Content Capture
	// ContentBytes bounds one such value. 0 means 8,192.
	ContentBytes int
	// Redact returns the text to export for a value of content. key is the attribute's key, or
	// "status" for the description of an error. A nil Redact exports all values unchanged.
	Redact func(key, value string) string
	// Deltas counts the parts of streamed output of models.
	Deltas bool
	// Markers makes a span without duration when a run or an agent begins, since the one
	// of its own is seen only when it has ended.
	Markers bool
	// NoSteps leaves out the spans of phases, nodes, turns and steps; they become points.
	NoSteps bool
	// Recorded takes ids that the events have, if they are W3C ids and no two spans have
	// the same, in place of derived ones.
	Recorded bool
	// MaxOpen bounds the open calls, steps and agents of the run; the oldest one is
	// closed. 0 means 1,024.
	MaxOpen int
}
