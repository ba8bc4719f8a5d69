package capture

import (
	"cmp"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/capture/claude"
	"github.com/agentevents/agentevents/capture/internal/session"
	"github.com/agentevents/agentevents/internal/foreign"
	"github.com/agentevents/agentevents/internal/jsonwire"
	"github.com/agentevents/agentevents/internal/lines"
)

// claudeStream returns the reader of the output of Claude Code, which package claude decodes.
func claudeStream() *session.Program {
	return &session.Program{
		Name:     "Claude Code",
		Tested:   "2.1.328",
		Files:    []string{foreign.ClaudeStream},
		Facts:    func([]string) (session.Facts, bool) { return session.Facts{}, true },
		Describe: describeStream,
		Decoder:  claudeDecoder,
		Own:      ownLines,
	}
}

// ownLines begin the lines of the output. An init line of Qwen Code begins as others do.
var ownLines = [][]byte{
	[]byte(`{"type":"assistant","message"`), []byte(`{"type":"user","message"`), []byte(`{"type":"result","subtype"`),
	[]byte(`{"type":"stream_event","event"`),
}

// describeStream reads the lines up to the start of the run. The id of the process is the run's,
// and a process that resumes a session prints the session's id.
func describeStream(f *session.Folder, name string, facts *session.Facts) {
	in, err := f.Open(name)
	if err != nil {
		return // reading it tells the fault
	}
	defer in.Close()
	from := lines.NewReader(in, agentevents.DefaultMaxLine)
	unknown := time.Unix(0, 0).UTC()
	d := claude.NewDecoder(claude.Options{Time: func() time.Time { return unknown }})
	var events []agentevents.Event
	var uuids []string
	for len(events) == 0 && !from.Ended() {
		line, err := from.Next()
		if err != nil {
			continue
		}
		events, _ = d.Decode(events, line)
		text := string(line)
		uuids = append(uuids, jsonwire.Text(jsonwire.Member(text, "uuid")))
		facts.Version = cmp.Or(facts.Version, jsonwire.Text(jsonwire.Member(text, "claude_code_version")))
	}
	if len(events) == 0 {
		events, _ = d.End(events)
	}
	for i := range events {
		if start, ok := events[i].Payload.(*agentevents.AgentStarted); ok && facts.Of == "" {
			facts.Of = strings.Clone(start.ProviderSessionID)
		}
	}
	if len(events) > 0 {
		facts.Session = events[0].RunID
		if at := events[0].Time; !at.Equal(unknown) {
			facts.At = at
		}
	}
	facts.Thread, facts.Copies = facts.Session, !slices.Contains(uuids, facts.Session)
}

// claudeDecoder returns the decoder of a stream that was saved, or of one that is printed right now.
// Only few lines of a stream state a time.
func claudeDecoder(o session.Options, saved time.Time, open func() (io.ReadCloser, error)) agentevents.Decoder {
	out := claude.Options{RunID: o.RunID, AgentID: o.AgentID, Prompt: o.Prompt, Processes: true}
	if saved.IsZero() {
		return claude.NewDecoder(out)
	}
	var first time.Time
	var took time.Duration
	if in, err := open(); err == nil {
		first, took, _ = claude.Times(in) // reading the lines tells the fault
		_ = in.Close()
	}
	if out.Saved = !first.IsZero(); out.Saved {
		saved = first
	} else {
		out.Started = saved.Add(-took)
	}
	out.Time = func() time.Time { return saved }
	return claude.NewDecoder(out)
}
