package codex

import (
	"path"
	"strings"
	"time"

	"github.com/agentevents/agentevents/capture/internal/session"
	"github.com/agentevents/agentevents/internal/jsonwire"
)

// facts reads the first line, which is the thread's own session_meta.
func facts(first []string) (session.Facts, bool) {
	for _, line := range first {
		if jsonwire.Valid(line) != nil {
			continue
		}
		o := session.ParseObject(line)
		p := o.Object("payload")
		switch kind := o.Str("type"); {
		case kind == "session_meta":
		case kind == "" && o.Str("id") != "" && p.Text == "": // the first versions have no envelope
			p = o
		default:
			continue
		}
		f := session.Facts{Thread: p.Str("id"), Session: p.Str("session_id"), Version: p.Str("cli_version")}
		parent, _ := parentOf(p)
		if f.Session == "" || f.Session == f.Thread {
			f.Session = f.Thread
			if parent != "" {
				f.Session = parent
			}
		}
		f.At, _ = o.Time("timestamp")
		return f, f.Thread != ""
	}
	return session.Facts{}, false
}

// lineTime returns the time of a line, which begins with it.
func lineTime(line string) (time.Time, bool) {
	const begin = `{"timestamp":"`
	if rest, ok := strings.CutPrefix(line, begin); ok {
		if text, _, ok := strings.Cut(rest[:min(len(rest), 40)], `"`); ok {
			return session.ParseTime(text)
		}
	}
	return time.Time{}, false
}

// beside returns the files in the folder of a file, and, as sub-agents may begin on another day,
// in the folders of days after it.
func beside(f *session.Folder, name string, _ session.Facts) (out []string) {
	f.Files(".", func(other string) bool {
		if path.Dir(other) == "." && session.IsLog(other) {
			out = append(out, other)
		}
		return true
	})
	return out
}

// noTime is for lines without times.
func noTime(string) (time.Time, bool) { return time.Time{}, false }
