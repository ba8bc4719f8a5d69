// Package capture reads the sessions that agent programs keep on disk, or print, as logs of
// events. The program is known by the first lines of a file, whatever its name:
//
//	sessions, err := capture.Open(filepath.Join(home, ".codex", "sessions"), capture.Options{})
//	…
//	for _, s := range sessions {
//		for line, err := range s.Lines() { … }
//	}
//
// A session is one run, with the files of its sub-agents: its events have ids and sequence
// numbers, and a fold reports no violations. The id of an event is made of the run, the thread,
// and the number of its line, so that the same files give the same ids.
//
// Files are opened to read, and no symbolic link is followed out of the folder that is read.
// Texts are redacted as an emitter redacts them: see [Options].Redaction.
//
// # Files with several sessions
//
// A file or stream may have several sessions, or the output of several processes, one after another: cat
// joins session files, and a shell appends captures to a log. Each is a run, with the ids that it has in a
// file of its own. Lines that cannot be taken apart are a fault, which names them: lines of a session that
// began before in the file, and of its sub-agents, and rows of a database after other lines. Two processes
// look like one where their lines do not differ: Claude Code before version 2.1.328, Qwen Code and opencode if the second one resumes the
// session of the first one, and pi --mode rpc.
//
// # Usage
//
// Tokens have one meaning for all programs: the input without the tokens of caches, the
// output with the reasoning. Each call of the model counts once over all files of a session. A
// history that was copied from another session is not work of this one, and makes no events.
//
// # Facts that files lack
//
// A fact that no line tells is left out, or has the mark [agentevents.MarkSynthetic], as ends have:
//
//   - Gemini CLI, journal: the end. The last turn is complete if the agent has spoken last, also if the
//     program was stopped in the calls of that answer, which then are on no line.
//   - Gemini CLI, output: the calls of the model, thoughts and the work of sub-agents.
//   - pi: the tokens of reasoning, and the call of the model for a compaction.
//   - Claude Code, output: times of most lines, and the work of a process before; see package
//     [github.com/agentevents/agentevents/capture/claude].
//   - Qwen Code, output: the prompt, times, and the tokens of sub-agents in the background. The
//     result's total is that of the session with all processes before, and only stated.
//
// # Unknown lines and members
//
// Programs change their formats. Lines and members that a reader does not know are left out and
// counted: see [Session.Unread]. [Session.Notes] tells when the program's version is newer than
// the newest one that the reader was tested with.
package capture

import (
	"cmp"
	"errors"
	"io"
	"iter"
	"time"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/capture/internal/cline"
	"github.com/agentevents/agentevents/capture/internal/codex"
	"github.com/agentevents/agentevents/capture/internal/copilot"
	"github.com/agentevents/agentevents/capture/internal/gemini"
	"github.com/agentevents/agentevents/capture/internal/opencode"
	"github.com/agentevents/agentevents/capture/internal/pi"
	"github.com/agentevents/agentevents/capture/internal/qwen"
	"github.com/agentevents/agentevents/capture/internal/session"
	"github.com/agentevents/agentevents/capture/internal/transcript"
	"github.com/agentevents/agentevents/internal/option"
)

// programs returns the readers.
func programs() []*session.Program {
	return []*session.Program{
		codex.Rollout(), codex.Exec(), transcript.Program(),
		copilot.Program(),
		opencode.Run(), opencode.Rows(),
		cline.Session(), cline.Stream(),
		pi.Program(),
		gemini.Session(), gemini.Document(), gemini.Stream(),
		qwen.Session(), qwen.Stream(),
		claudeStream(),
	}
}

// Options configure the reading of a session. The zero Options are usable.
type Options struct {
	// RunID names the run. Empty means the id of the session.
	RunID string
	// AgentID is the id of the main agent, with which the ids of its sub-agents begin. Empty means
	// the name of the program.
	AgentID string
	// MaxLine is the length in bytes of the longest line that is read; 0 means
	// [agentevents.DefaultMaxLine]. Longer ones are reported.
	MaxLine int `least:"0"`
	// Time is the clock for lines before the first time of a session; nil means the last change of its file, or for
	// a stream time.Now.
	Time func() time.Time
	// Prompt is the prompt of the main agent, a JSON string, for programs that do not print it.
	Prompt agentevents.JSON
	// Redaction is the policy that texts are redacted by; nil means the default one,
	// &agentevents.Policy{Off: true} none.
	Redaction *agentevents.Policy
}

// A Session is a session on disk. It must not be used concurrently.
type Session struct {
	source *session.Source
	o      *Options
}

// Open returns the sessions in a file, or in the files below a folder, by the time of their
// beginning. With the file of a session come the files of its sub-agents that are beside it. The
// error wraps [io/fs.ErrNotExist] if no known program has a session there, and is an
// [*agentevents.OptionError] if an option makes no sense. Where some of the files or folders cannot be
// read, the sessions of the others come with an error that joins an [*io/fs.PathError] for each.
func Open(name string, o Options) ([]*Session, error) {
	if err := option.Check("Options", o); err != nil {
		return nil, err
	}
	sources, err := session.Open(programs(), name)
	return sessionsOf(sources, o), err
}

// Stream returns the session that a stream has, such as standard input, which people call name. It
// begins with these lines, of which the last one may be cut, and can be read once. With
// Options.Time it was saved at that time. Without, it was saved if its first time is more than a minute
// ago, and is otherwise printed right now. Stream reports false if no known program begins a session so,
// or an option makes no sense.
func Stream(name string, first []string, in io.Reader, o Options) (*Session, bool) {
	p, ok := session.Detect(programs(), first)
	if !ok || option.Check("Options", o) != nil {
		return nil, false
	}
	return &Session{session.Stream(programs(), p, name, in), &o}, true
}

// Merge returns the sessions that the files of several ones make, such as the sessions of the names on
// a command line. A file counts once, and the file of a sub-agent belongs to its session. The
// options of the first one hold for all.
func Merge(sessions []*Session) []*Session {
	var sources []*session.Source
	o := &Options{}
	for i, s := range sessions {
		if i == 0 {
			o = cmp.Or(s.o, o)
		}
		if s.source != nil {
			sources = append(sources, s.source)
		}
	}
	return sessionsOf(session.Merge(programs(), sources), *o)
}

func sessionsOf(sources []*session.Source, o Options) []*Session {
	out := make([]*Session, len(sources))
	for i, s := range sources {
		out[i] = &Session{s, &o}
	}
	return out
}

// Program is the name of the program, such as "Codex".
func (s *Session) Program() string {
	if s.source == nil {
		return ""
	}
	return s.source.Program.Name
}

// ID is the id of the session.
func (s *Session) ID() string {
	if s.source == nil {
		return ""
	}
	return s.source.Files[0].Facts.Session
}

// Files are the names of its files. The session's own is the first one.
func (s *Session) Files() []string {
	if s.source == nil {
		return nil
	}
	out := make([]string, len(s.source.Files))
	for i, f := range s.source.Files {
		out[i] = f.Path
	}
	return out
}

// A Line is an event, and the place that it comes from.
type Line struct {
	File   int                // index in [Session.Files]
	Number int                // of the line, from 1, or of the entry in a document; 0 is the whole file
	Event  *agentevents.Event // it may be kept; nil beside an error
}

// Lines reads the session. It yields the events in their order, and the faults of lines, which do
// not end it.
func (s *Session) Lines() iter.Seq2[Line, error] {
	return func(yield func(Line, error) bool) {
		if s.source == nil {
			return
		}
		for item := range s.source.Read(session.Options(*s.o)) {
			if !yield(Line{item.File, item.Line, item.Event}, item.Err) {
				return
			}
		}
	}
}

// Notes are facts that are not faults of a line, such as a file that is missing.
// They are complete after Lines.
func (s *Session) Notes() []string {
	if s.source == nil {
		return nil
	}
	return s.source.Notes
}

// Unread returns the lines and members that were not understood, sorted. It is complete after Lines.
func (s *Session) Unread() []Unread {
	if s.source == nil {
		return nil
	}
	return unread(&s.source.Residue)
}

// An Unread names lines, or members of lines, that a reader did not understand and left out.
type Unread struct {
	Program string // such as "Codex"
	Version string // of the program
	Kind    string // of the line, as the program spells it
	Pointer string // JSON pointer of the member, with * for the elements of a list; empty means the whole line
	Count   int    // number of lines
}

func unread(r *session.Residue) []Unread {
	var out []Unread
	for _, c := range r.Counts() {
		out = append(out, Unread{c.Program, c.Version, c.Kind, c.Pointer, c.N})
	}
	return out
}

// A Decoder reads a stream of lines, such as standard input, as one session. It implements
// [agentevents.Decoder], and must not be used concurrently. A stream has no files of sub-agents.
type Decoder struct{ d *session.Decoder }

// NewDecoder returns a decoder of a stream that begins with these lines, of which the last one
// may be cut. It reports false if no known program begins a session so, or an option makes no
// sense. The output of Claude Code has the decoder of package claude, which redacts nothing, and
// [Stream].
func NewDecoder(first []string, o Options) (*Decoder, bool) {
	p, ok := session.Detect(programs(), first)
	if !ok || p.Decoder != nil || option.Check("Options", o) != nil {
		return nil, false
	}
	return &Decoder{session.NewDecoder(programs(), p, session.Options(o))}, true
}

// Program is as [Session.Program].
func (d *Decoder) Program() string {
	if d.d == nil {
		return ""
	}
	return d.d.Program().Name
}

// Decode appends the events of a line to dst. Several faults of a line are joined.
func (d *Decoder) Decode(dst []agentevents.Event, line []byte) ([]agentevents.Event, error) {
	if d.d == nil {
		return dst, errZero
	}
	return d.d.Decode(dst, line)
}

// End appends the end of the run.
func (d *Decoder) End(dst []agentevents.Event) ([]agentevents.Event, error) {
	if d.d == nil {
		return dst, errZero
	}
	return d.d.End(dst)
}

// errZero is the error of a decoder that NewDecoder did not return.
var errZero = errors.New("agentevents: a capture.Decoder comes from capture.NewDecoder")

// Notes is as [Session.Notes], of the stream so far.
func (d *Decoder) Notes() []string {
	if d.d == nil {
		return nil
	}
	return d.d.Notes()
}

// Unread is as [Session.Unread], of the stream so far.
func (d *Decoder) Unread() []Unread {
	if d.d == nil {
		return nil
	}
	return unread(&d.d.Residue)
}
