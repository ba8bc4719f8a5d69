package transcript

import (
	"bytes"
	"cmp"
	"path"
	"strings"
	"time"

	"github.com/agentevents/agentevents/capture/internal/session"
	"github.com/agentevents/agentevents/internal/foreign"
	"github.com/agentevents/agentevents/internal/jsonwire"
)

// Program returns the reader of transcripts.
func Program() *session.Program {
	return &session.Program{
		Name:     "Claude Code",
		Tested:   "2.1.328",
		Files:    []string{foreign.ClaudeTranscript},
		Facts:    facts,
		Time:     lineTime,
		Skip:     func(line []byte) bool { return bytes.HasPrefix(line, request) },
		Beside:   beside,
		Describe: describe,
		Counter:  newCounter,
		New:      newReader,
	}
}

// facts reads the ids of the session, and of the sub-agent if it wrote the file.
func facts(first []string) (f session.Facts, ok bool) {
	var o session.Object
	for _, line := range first {
		o.Parse(line)
		before := f.Session
		f.Session = cmp.Or(o.Str("sessionId"), before)
		f.Version = cmp.Or(o.Str("version"), f.Version)
		if o.Flag("isSidechain") {
			f.Thread = cmp.Or(f.Thread, o.Str("agentId"))
		}
		if at, ok := o.Time("timestamp"); ok && f.At.IsZero() {
			f.At = at
		}
		if before == f.Session && before != "" && !f.At.IsZero() {
			break // two lines agree: old versions begin with lines of another session
		}
	}
	f.Thread = cmp.Or(f.Thread, f.Session)
	return f, f.Session != ""
}

// request begins lines that repeat the requests to the API: a third of all bytes.
var request = []byte(`{"type":"api-request`)

// untimed are the beginnings of long lines without a time.
var untimed = []string{`{"type":"file-history-snapshot"`, `{"type":"last-prompt"`, `{"type":"cost-state"`}

func lineTime(line string) (time.Time, bool) {
	for _, begin := range untimed {
		if strings.HasPrefix(line, begin) {
			return time.Time{}, false
		}
	}
	raw := jsonwire.Member(line, "timestamp")
	if raw == "" || raw[0] != '"' {
		return time.Time{}, false
	}
	return session.ParseTime(jsonwire.Text(raw))
}

// beside returns the files of the sub-agents of a session. They are in its folder, and in older
// versions beside its file.
func beside(f *session.Folder, name string, facts session.Facts) (out []string) {
	logs := func(other string) bool {
		if session.IsLog(other) {
			out = append(out, other)
		}
		return true
	}
	for _, folder := range []string{facts.Session, sessionOf(name)} {
		if folder != "" && len(out) == 0 && !strings.ContainsAny(folder, "/\\") {
			f.Files(folder+"/subagents", logs)
		}
	}
	for _, other := range f.Logs(".") {
		if strings.HasPrefix(other, "agent-") {
			out = append(out, other)
		}
	}
	return out
}

// sessionOf returns the session that the name of a file names, or "".
func sessionOf(name string) string {
	base, ok := strings.CutSuffix(path.Base(name), ".jsonl")
	if !ok || len(base) != jsonwire.LenUUID || strings.Count(base, "-") != 4 {
		return ""
	}
	return base
}

// describe completes the facts of a file: its name is the session's id, also if it begins with
// lines of another one, and a description beside a sub-agent's file tells its place in the tree.
func describe(f *session.Folder, name string, facts *session.Facts) {
	if facts.Thread == facts.Session {
		if id := sessionOf(name); id != "" {
			facts.Session, facts.Thread = id, id
		}
		return
	}
	dir, base := path.Split(name)
	meta, err := f.Read(dir + strings.TrimSuffix(base, ".jsonl") + ".meta.json")
	if err == nil && jsonwire.Valid(meta) == nil {
		facts.About = meta
	}
	if flow := path.Base(path.Clean(dir)); strings.HasPrefix(flow, "wf_") {
		facts.Group = flow
	}
}
