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

	parsed   bool
	word     string                // the parsed status
	was      agentevents.RunStatus // the status that word became
	onHold   map[string]bool       // whether a node was parsed as suspended
	rest     []byte                // extra members, each after a comma
	commands map[string]command
}

// A command is a command of a parsed inbox, and its text.
type command struct {
	was agentevents.Command
	raw string
}

// ParseSnapshot reads a snapshot. AppendJSON writes its extra members back; those of a
// command in the inbox only while the command is unchanged. Missing members are read as
// empty, because agentSessions is newer than the others; only status is required. The
// error is an [*agentevents.LineError].
func ParseSnapshot(text []byte) (*Snapshot, error) {
	line := string(text)
	s, err := parseSnapshot(line)
	if err != nil {
		le := &agentevents.LineError{Line: 1, Err: err}
		var syntax *jsonwire.SyntaxError
		if errors.As(err, &syntax) {
			le.Column, le.Pointer, le.Err = syntax.Offset, jsonwire.Pointer(line, syntax.Offset), errors.New(syntax.Msg)
		}
		return nil, le
	}
	return s, nil
}

func parseSnapshot(text string) (*Snapshot, error) {
	run := agentevents.NewFold(agentevents.FoldOptions{}).Snapshot()
	out := &Snapshot{Run: run, parsed: true, onHold: map[string]bool{}, commands: map[string]command{}}
	var s jsonwire.Scanner
	s.Reset(text)
	if err := s.Object(); err != nil {
		return nil, err
	}
	for seen := map[string]bool{}; ; {
		name, more, err := s.Member()
		if err != nil {
			return nil, err
		}
		if !more {
			end := s.Offset()
			if err := s.End(); err != nil {
				return nil, err
			}
			if !seen["status"] {
				return nil, &jsonwire.SyntaxError{Offset: end - 1, Msg: `the member "status" is missing`}
			}
			break
		}
		if seen[name] {
			return nil, s.Duplicate(name)
		}
		seen[name] = true
		if err := out.member(&s, name); err != nil {
			return nil, err
		}
	}
	setStatus(run, out.word)
	out.was = run.Status
	for id, st := range run.NodeStatus {
		out.onHold[id] = st == agentevents.NodeStatusSuspended
	}
	return out, nil
}

// member reads the value of a member.
func (o *Snapshot) member(s *jsonwire.Scanner, name string) (err error) {
	switch name {
	case "runId":
		o.Run.RunID, err = s.String()
	case "status":
		o.word, err = s.String()
	case "outputs":
		err = readMap(s, &o.Run.Outputs, rawJSON)
	case "state":
		err = readMap(s, &o.Run.State, rawJSON)
	case "nodeStatus":
		err = readMap(s, &o.Run.NodeStatus, wordOf[agentevents.NodeStatus])
	case "edgeStatus":
		err = readMap(s, &o.Run.EdgeStatus, wordOf[agentevents.EdgeStatus])
	case "loopCounters":
		err = readMap(s, &o.Run.LoopCounters, (*jsonwire.Scanner).Whole)
	case "inbox":
		err = o.readInbox(s)
	case "agentSessions":
		err = readMap(s, &o.Run.AgentSessions, (*jsonwire.Scanner).String)
	default:
		var raw string
		raw, err = s.Raw()
		o.rest = append(append(jsonwire.AppendString(append(o.rest, ','), name), ':'), raw...)
	}
	return err
}

// setStatus sets the status and the flags from which a fold derives it.
func setStatus(run *agentevents.RunSnapshot, word string) {
	failed := false
	for id, st := range run.NodeStatus {
		switch st {
		case agentevents.NodeStatusRunning:
			if run.NodeRuns == nil {
				run.NodeRuns = map[string]int{}
			}
			run.NodeRuns[id] = 1
		case agentevents.NodeStatusFailed:
			failed = true
		}
	}
	switch word {
	case "idle", string(agentevents.RunStatusPending):
		run.Status = agentevents.RunStatusPending
	case "aborted", string(agentevents.RunStatusCancelled):
		run.Status, run.TerminalKind = agentevents.RunStatusCancelled, agentevents.KindRunCancelled
	case string(agentevents.RunStatusCompleted):
		run.Status, run.TerminalKind = agentevents.RunStatusCompleted, agentevents.KindRunCompleted
	case string(agentevents.RunStatusFailed):
		run.Status, run.TerminalKind = agentevents.RunStatusFailed, agentevents.KindRunFailed
	case statusComplete:
		run.Status, run.TerminalKind = agentevents.RunStatusCompleted, agentevents.KindRunCompleted
		if failed {
			run.Status, run.TerminalKind = agentevents.RunStatusFailed, agentevents.KindRunFailed
		}
	default:
		run.Status = agentevents.RunStatus(word)
		run.Paused = run.Status == agentevents.RunStatusPaused
		run.Cancelling = run.Status == agentevents.RunStatusCancelling
	}
}

func rawJSON(s *jsonwire.Scanner) (agentevents.JSON, error) {
	raw, err := s.Raw()
	return agentevents.JSON(raw), err
}

func wordOf[T ~string](s *jsonwire.Scanner) (T, error) {
	word, err := s.String()
	return T(word), err
}

func readMap[V any](s *jsonwire.Scanner, to *map[string]V, value func(*jsonwire.Scanner) (V, error)) error {
	if err := s.Object(); err != nil {
		return err
	}
	for {
		key, ok, err := s.Member()
		if err != nil || !ok {
			return err
		}
		if _, twice := (*to)[key]; twice {
			return s.Duplicate(key)
		}
		v, err := value(s)
		if err != nil {
			return err
		}
		if *to == nil {
			*to = map[string]V{}
		}
		(*to)[key] = v
	}
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
		id := dialect.DerivedID(raw, len(o.Run.Inbox), partEvent)
		o.Run.Inbox = append(o.Run.Inbox, agentevents.InboxItem{EventID: id, Command: p.Command})
		o.commands[id] = command{p.Command, raw}
	}
}

// AppendJSON appends the snapshot as one JSON object to dst: the members of the document
// in its order, then the extra members that were parsed. Keys of maps are sorted, and
// maps and lists are never null. It appends nothing and returns an error if Run is nil,
// or has malformed JSON or text that is not valid UTF-8.
func (o *Snapshot) AppendJSON(dst []byte) ([]byte, error) {
	run := o.Run
	if run == nil {
		return dst, errors.New("openharness: the snapshot has no run")
	}
	mark := len(dst)
	dst = append(dst, '{')
	w := snapshotWriter{in: "runId"}
	if run.RunID != "" {
		dst = append(w.text(append(dst, `"runId":`...), run.RunID), ',')
	}
	word := o.word
	if !o.parsed || run.Status != o.was {
		word = status(run.Status)
	}
	w.in = "status"
	dst = w.text(append(dst, `"status":`...), word)
	dst = appendMap(&w, dst, "outputs", run.Outputs, w.json)
	dst = appendMap(&w, dst, "state", run.State, w.json)
	dst = appendMap(&w, dst, "nodeStatus", run.NodeStatus, func(dst []byte, id string, st agentevents.NodeStatus) []byte {
		if st == agentevents.NodeStatusSuspended && !o.onHold[id] {
			st = agentevents.NodeStatusRunning
		}
		return w.text(dst, string(st))
	})
	dst = appendMap(&w, dst, "edgeStatus", run.EdgeStatus, func(dst []byte, _ string, st agentevents.EdgeStatus) []byte {
		return w.text(dst, string(st))
	})
	dst = appendMap(&w, dst, "loopCounters", run.LoopCounters, func(dst []byte, _ string, n int) []byte {
		return jsonwire.AppendInt(dst, int64(n))
	})
	dst = append(dst, `,"inbox":[`...)
	w.in = "inbox"
	for i := range run.Inbox {
		if i > 0 {
			dst = append(dst, ',')
		}
		item := &run.Inbox[i]
		if was, ok := o.commands[item.EventID]; ok && was.was == item.Command {
			dst = append(dst, was.raw...)
			continue
		}
		c := item.Command
		w.check(string(c.Type), c.RunID, c.Message, c.PromptID, c.Content, c.Reason)
		dst = commandRow.Append(dst, "command", &agentevents.CommandReceived{Command: c})
	}
	dst = appendMap(&w, append(dst, ']'), "agentSessions", run.AgentSessions, func(dst []byte, _, session string) []byte {
		return w.text(dst, session)
	})
	if w.err != nil {
		return dst[:mark], w.err
	}
	return append(append(dst, o.rest...), '}'), nil
}

// AppendSnapshot appends a run as the document's snapshot to dst, like AppendJSON of a
// new [Snapshot] with this Run.
func AppendSnapshot(dst []byte, run *agentevents.RunSnapshot) ([]byte, error) {
	return (&Snapshot{Run: run}).AppendJSON(dst)
}

// status returns the document's word for a status.
func status(st agentevents.RunStatus) string {
	switch st {
	case agentevents.RunStatusPending, "":
		return "idle"
	case agentevents.RunStatusWaiting:
		return "running"
	case agentevents.RunStatusCompleted, agentevents.RunStatusFailed:
		return statusComplete
	case agentevents.RunStatusCancelling, agentevents.RunStatusCancelled:
		return "aborted"
	}
	return string(st) // running, paused, and words that were parsed
}

// A snapshotWriter notes the first error. Text that is not valid UTF-8 is an error,
// because it changes when it is written, and two keys may become the same.
type snapshotWriter struct {
	in  string // the current member
	err error
}

func (w *snapshotWriter) fail(err error) {
	if w.err == nil {
		w.err = fmt.Errorf("openharness: %s of the snapshot: %w", w.in, err)
	}
}

func (w *snapshotWriter) check(texts ...string) {
	for _, s := range texts {
		if !jsonwire.ValidUTF8(s) {
			w.fail(fmt.Errorf("the text %q is not valid UTF-8", s))
		}
	}
}

func (w *snapshotWriter) text(dst []byte, s string) []byte {
	w.check(s)
	return jsonwire.AppendString(dst, s)
}

func (w *snapshotWriter) json(dst []byte, _ string, j agentevents.JSON) []byte {
	raw, err := jsonwire.Compact(string(cmp.Or(j, "null")))
	if err != nil {
		w.fail(err)
	}
	return append(dst, raw...)
}

func appendMap[V any](w *snapshotWriter, dst []byte, name string, m map[string]V, value func(dst []byte, key string, v V) []byte) []byte {
	w.in = name
	dst = append(append(append(dst, `,"`...), name...), `":{`...)
	for i, key := range slices.Sorted(maps.Keys(m)) {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = value(append(w.text(dst, key), ':'), key, m[key])
	}
	return append(dst, '}')
}
