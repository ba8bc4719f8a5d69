package qwen

import (
	"cmp"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/agentevents/agentevents/capture/internal/session"
	"github.com/agentevents/agentevents/internal/jsonwire"
)

// facts reads the ids of the session, and of the sub-agent if it wrote the file.
func facts(first []string) (f session.Facts, ok bool) {
	var o session.Object
	for _, line := range first {
		o.Parse(line)
		f.Session = cmp.Or(f.Session, o.Str("sessionId"))
		f.Version = cmp.Or(f.Version, o.Str("version"))
		if o.Flag("isSidechain") {
			f.Thread = cmp.Or(f.Thread, o.Str("agentId"))
		}
		if at, ok := o.Time("timestamp"); ok && f.At.IsZero() {
			f.At = at
		}
	}
	f.Thread = cmp.Or(f.Thread, f.Session)
	return f, f.Session != ""
}

func lineTime(line string) (time.Time, bool) {
	return session.ParseTime(jsonwire.Text(jsonwire.Member(line, "timestamp")))
}

// The folders of a project: chats has its sessions, and subagents a folder for each session.
const chats, subagents = "chats", "subagents"

// root returns the folder of a project, for one in it.
func root(dir string) (root, below string) {
	abs, err := filepath.Abs(dir)
	switch parent := filepath.Dir(abs); {
	case err != nil:
	case filepath.Base(abs) == chats:
		return filepath.Join(dir, ".."), chats
	case filepath.Base(parent) == subagents:
		return filepath.Join(dir, "..", ".."), path.Join(subagents, filepath.Base(abs))
	}
	return dir, ""
}

// beside returns the files of the sub-agents of a session.
func beside(f *session.Folder, _ string, facts session.Facts) []string {
	if strings.ContainsAny(facts.Session, `/\`) {
		return nil
	}
	return f.Logs(path.Join(subagents, facts.Session))
}

// describe reads the description beside the file of a sub-agent.
func describe(f *session.Folder, name string, facts *session.Facts) {
	if facts.Thread == facts.Session {
		return
	}
	if meta, err := f.Read(strings.TrimSuffix(name, ".jsonl") + ".meta.json"); err == nil && jsonwire.Valid(meta) == nil {
		facts.About = meta
	}
}
