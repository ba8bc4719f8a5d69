package openharness

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect"
	"github.com/agentevents/agentevents/internal/jsonwire"
)

// A Snapshot is the document's RunSnapshot (section 4): a host persists it and resumes
// the run from it. This writes the snapshot of a fold:
//
//	text, err := (&openharness.Snapshot{Run: fold.Snapshot()}).AppendJSON(nil)
//
// The document has nine members. AppendJSON leaves out everything else of Run (agents,
// calls, messages, usage …), and translates these words:
//
//	run status   pending → idle; waiting → running; completed, failed → complete;
//	             cancelling, cancelled → aborted
//	node status  suspended → running, because the node runs again on resume
//
// ParseSnapshot translates these:
//
//	run status   idle → pending; aborted → cancelled; complete → failed if a
//	             node failed, else completed
//
// Other words in a parsed text stay as they are, and are written back as long as the
// run or the node keeps that status. If such a word is one of the library's, it has
// the library's meaning: a completed run is over.
type Snapshot struct {
	// Run is the run. A parsed run is ready for [agentevents.ResumeFold]: its flags
	// agree with its status. If the text has no runId, RunID is empty, and the caller
	// must set it before resuming. The event ids of the inbox are made up; see [agentevents.CommandConsumed].
	Run *agentevents.RunSnapshot

	parsed bool
	word   string                           // the parsed status
	was    agentevents.RunStatus            // the status that word became
	onHold map[string]bool                  // nodes that were parsed as suspended
	rest   []byte                           // extra members, each after a comma
	inbox  map[agentevents.InboxItem]string // the text of each command of a parsed inbox
}

// ParseSnapshot reads a snapshot. AppendJSON writes its extra members back. It writes those in a
// command of the inbox only while the command is unchanged. Missing members are read as empty,
// because agentSessions is newer than the others; only status is required. The error is an
// [*agentevents.LineError].
func ParseSnapshot(text []byte) (*Snapshot, error) {
	line := string(text)
	o := &Snapshot{
		Run: agentevents.NewFold(agentevents.FoldOptions{}).Snapshot(), parsed: true, onHold: map[string]bool{},
		inbox: map[agentevents.InboxItem]string{},
	}
	if err := o.parse(line); err != nil {
		le := &agentevents.LineError{Line: 1, Err: err}
		var syntax *jsonwire.SyntaxError
		if errors.As(err, &syntax) {
			le.Column, le.Pointer, le.Err = syntax.Offset, jsonwire.Pointer(line, syntax.Offset), errors.New(syntax.Msg)
		}
		return nil, le
	}
	return o, nil
}

// snapshotMembers are the document's members, in its order.
var snapshotMembers = []snapshotMember{
	{"runId", func(o *Snapshot, s *jsonwire.Scanner) (err error) { o.Run.RunID, err = s.String(); return err },
		func(o *Snapshot, dst []byte) ([]byte, error) { return appendText(dst, o.Run.RunID) }},
	{"status", func(o *Snapshot, s *jsonwire.Scanner) (err error) { o.word, err = s.String(); return err },
		func(o *Snapshot, dst []byte) ([]byte, error) { return appendText(dst, o.status()) }},
	mapMember("outputs", func(r *agentevents.RunSnapshot) *map[string]agentevents.JSON { return &r.Outputs }, rawJSON, appendJSON),
	mapMember("state", func(r *agentevents.RunSnapshot) *map[string]agentevents.JSON { return &r.State }, rawJSON, appendJSON),
	mapMember("nodeStatus", func(r *agentevents.RunSnapshot) *map[string]agentevents.NodeStatus { return &r.NodeStatus }, word, appendText),
	mapMember("edgeStatus", func(r *agentevents.RunSnapshot) *map[string]agentevents.EdgeStatus { return &r.EdgeStatus }, word, appendText),
	mapMember("loopCounters",
		func(r *agentevents.RunSnapshot) *map[string]int { return &r.LoopCounters }, jsonwire.Whole[int],
		func(dst []byte, n int) ([]byte, error) { return jsonwire.AppendInt(dst, int64(n)), nil }),
	{"inbox", (*Snapshot).readInbox, (*Snapshot).appendInbox},
	mapMember("agentSessions", func(r *agentevents.RunSnapshot) *map[string]string { return &r.AgentSessions }, word, appendText),
}

type snapshotMember struct {
	name   string
	read   func(o *Snapshot, s *jsonwire.Scanner) error
	append func(o *Snapshot, dst []byte) ([]byte, error)
}

// mapMember is a member that is a map.
func mapMember[V any](name string, of func(*agentevents.RunSnapshot) *map[string]V,
	read func(*jsonwire.Scanner) (V, error), appendValue func(dst []byte, v V) ([]byte, error)) snapshotMember {
	return snapshotMember{name, func(o *Snapshot, s *jsonwire.Scanner) error {
		to := of(o.Run)
		return eachMember(s, func(key string) (err error) {
			if *to == nil {
				*to = map[string]V{}
			}
			(*to)[key], err = read(s)
			return err
		})
	}, func(o *Snapshot, dst []byte) (_ []byte, err error) {
		m := *of(o.Run)
		dst = append(dst, '{')
		for i, key := range slices.Sorted(maps.Keys(m)) {
			if i > 0 {
				dst = append(dst, ',')
			}
			if dst, err = appendText(dst, key); err != nil {
				return dst, err
			}
			if dst, err = appendValue(append(dst, ':'), m[key]); err != nil {
				return dst, err
			}
		}
		return append(dst, '}'), nil
	}}
}

func rawJSON(s *jsonwire.Scanner) (agentevents.JSON, error) {
	raw, err := s.Raw()
	return agentevents.JSON(raw), err
}

func appendJSON(dst []byte, j agentevents.JSON) ([]byte, error) {
	raw, err := jsonwire.Compact(string(cmp.Or(j, "null")))
	return append(dst, raw...), err
}

func word[T ~string](s *jsonwire.Scanner) (T, error) {
	text, err := s.String()
	return T(text), err
}

func appendText[T ~string](dst []byte, text T) ([]byte, error) {
	return jsonwire.AppendString(dst, string(text)), valid(string(text))
}

// valid returns an error for a text that is not valid UTF-8: it changes when it is
// written, and two keys may become the same.
func valid(texts ...string) error {
	for _, text := range texts {
		if !jsonwire.ValidUTF8(text) {
			return fmt.Errorf("a text of %d bytes is not valid UTF-8", len(text))
		}
	}
	return nil
}

// eachMember calls f for each member of the next value, an object. f reads the value.
func eachMember(s *jsonwire.Scanner, f func(name string) error) error {
	if err := s.Object(); err != nil {
		return err
	}
	for seen := map[string]bool{}; ; {
		name, more, err := s.Member()
		if err != nil || !more {
			return err
		}
		if seen[name] {
			return s.Duplicate(name)
		}
		seen[name] = true
		if err := f(name); err != nil {
			return err
		}
	}
}

func (o *Snapshot) parse(text string) error {
	var s jsonwire.Scanner
	s.Reset(text)
	hasStatus := false
	err := eachMember(&s, func(name string) error {
		hasStatus = hasStatus || name == "status"
		if i := slices.IndexFunc(snapshotMembers, func(m snapshotMember) bool { return m.name == name }); i >= 0 {
			return snapshotMembers[i].read(o, &s)
		}
		raw, err := s.Raw()
		o.rest = append(append(jsonwire.AppendString(append(o.rest, ','), name), ':'), raw...)
		return err
	})
	if err != nil {
		return err
	}
	end := s.Offset()
	if err := s.End(); err != nil {
		return err
	}
	if !hasStatus {
		return &jsonwire.SyntaxError{Offset: end - 1, Msg: `the member "status" is missing`}
	}
	o.setStatus()
	return nil
}

// setStatus sets the status and the flags from which a fold derives it.
func (o *Snapshot) setStatus() {
	run, failed := o.Run, false
	for id, st := range run.NodeStatus {
		switch st {
		case agentevents.NodeStatusRunning:
			if run.NodeRuns == nil {
				run.NodeRuns = map[string]int{}
			}
			run.NodeRuns[id] = 1
		case agentevents.NodeStatusFailed:
			failed = true
		case agentevents.NodeStatusSuspended:
			o.onHold[id] = true
		}
	}
	run.Status = cmp.Or(statuses[o.word], agentevents.RunStatus(o.word))
	if o.word == statusComplete && failed {
		run.Status = agentevents.RunStatusFailed
	}
	run.TerminalKind = terminalKinds[run.Status]
	run.Paused = run.Status == agentevents.RunStatusPaused
	run.Cancelling = run.Status == agentevents.RunStatusCancelling
	o.was = run.Status
}

var terminalKinds = map[agentevents.RunStatus]agentevents.Kind{
	agentevents.RunStatusCompleted: agentevents.KindRunCompleted,
	agentevents.RunStatusFailed:    agentevents.KindRunFailed,
	agentevents.RunStatusCancelled: agentevents.KindRunCancelled,
}

// The document's words for statuses, as they are read and written. Others, also those
// that were parsed, stand for themselves.
var (
	statuses = map[string]agentevents.RunStatus{
		"idle":         agentevents.RunStatusPending,
		"aborted":      agentevents.RunStatusCancelled,
		statusComplete: agentevents.RunStatusCompleted,
	}
	words = map[agentevents.RunStatus]string{
		"":                              "idle",
		agentevents.RunStatusPending:    "idle",
		agentevents.RunStatusWaiting:    "running",
		agentevents.RunStatusCompleted:  statusComplete,
		agentevents.RunStatusFailed:     statusComplete,
		agentevents.RunStatusCancelling: "aborted",
		agentevents.RunStatusCancelled:  "aborted",
	}
)

// status returns the document's word for the status of the run.
func (o *Snapshot) status() string {
	st := o.Run.Status
	if o.parsed && st == o.was {
		return o.word
	}
	return cmp.Or(words[st], string(st))
}

// commandRow is the row with a command.
var commandRow = format.Row(agentevents.KindCommandReceived)

func (o *Snapshot) readInbox(s *jsonwire.Scanner) error {
	if err := s.Array(); err != nil {
		return err
	}
	for {
		more, err := s.Elem()
		if err != nil || !more {
			return err
		}
		var p agentevents.CommandReceived
		start := *s
		if err := commandRow.Parse(s, "command", &p); err != nil {
			return err
		}
		raw, err := start.Raw()
		if err != nil {
			return err
		}
		item := agentevents.InboxItem{EventID: dialect.DerivedID(raw, len(o.Run.Inbox), partEvent), Command: p.Command}
		o.Run.Inbox = append(o.Run.Inbox, item)
		o.inbox[item] = raw
	}
}

func (o *Snapshot) appendInbox(dst []byte) ([]byte, error) {
	dst = append(dst, '[')
	for i, item := range o.Run.Inbox {
		if i > 0 {
			dst = append(dst, ',')
		}
		if raw := o.inbox[item]; raw != "" {
			dst = append(dst, raw...)
			continue
		}
		c := &item.Command
		if err := valid(string(c.Type), c.RunID, c.Message, c.PromptID, c.Content, c.Reason); err != nil {
			return dst, err
		}
		dst = commandRow.Append(dst, "command", &agentevents.CommandReceived{Command: *c})
	}
	return append(dst, ']'), nil
}

// AppendJSON appends the snapshot as one JSON object to dst: the members of the document
// in its order, then the extra members that were parsed. Keys of maps are sorted, and
// maps and lists are never null. It appends nothing and returns an error if Run is nil,
// or has malformed JSON or text that is not valid UTF-8.
func (o *Snapshot) AppendJSON(dst []byte) ([]byte, error) {
	if o.Run == nil {
		return dst, errors.New("openharness: the snapshot has no run")
	}
	written, run := *o, *o.Run
	written.Run, run.NodeStatus = &run, maps.Clone(run.NodeStatus)
	for id, st := range run.NodeStatus {
		if st == agentevents.NodeStatusSuspended && !o.onHold[id] {
			run.NodeStatus[id] = agentevents.NodeStatusRunning
		}
	}
	out := dst
	for _, m := range snapshotMembers {
		if m.name == "runId" && run.RunID == "" {
			continue
		}
		var err error
		out = append(append(append(out, `,"`...), m.name...), `":`...)
		if out, err = m.append(&written, out); err != nil {
			return dst, fmt.Errorf("openharness: %s of the snapshot: %w", m.name, err)
		}
	}
	out = append(append(out, o.rest...), '}')
	out[len(dst)] = '{' // in the place of a comma
	return out, nil
}

// AppendSnapshot appends a run as the document's snapshot to dst, like AppendJSON of a
// new [Snapshot] with this Run.
func AppendSnapshot(dst []byte, run *agentevents.RunSnapshot) ([]byte, error) {
	return (&Snapshot{Run: run}).AppendJSON(dst)
}
