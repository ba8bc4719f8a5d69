package codex

import (
	"path"
	"path/filepath"
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
		case kind == "" && o.Str("id") != "" && p.Text == "": // the first versions lack envelopes
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

// lineTime returns the time of a line, which begins with it unless another program wrote the line anew.
func lineTime(line string) (time.Time, bool) {
	const begin = `{"timestamp":"`
	if rest, ok := strings.CutPrefix(line, begin); ok {
		if text, _, ok := strings.Cut(rest[:min(len(rest), 40)], `"`); ok {
			return session.ParseTime(text)
		}
	}
	return session.ParseTime(jsonwire.Text(jsonwire.Member(line, "timestamp")))
}

// root returns the folder of all sessions for the folder of a day, as in sessions/2026/11/28.
func root(dir string) (root, below string) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return dir, ""
	}
	month := filepath.Dir(abs)
	below = path.Join(filepath.Base(filepath.Dir(month)), filepath.Base(month), filepath.Base(abs))
	if _, err := time.Parse(dayFolder, below); err != nil {
		return dir, "" // a folder of another name has files of all days
	}
	return filepath.Join(dir, "..", "..", ".."), below
}

const dayFolder = "2006/01/02"

// beside returns the files in the folder of a file, and in the folders of the days after it on which the
// session went on: a sub-agent's file is in the folder of the day on which it began.
func beside(f *session.Folder, name string, facts session.Facts) (out []string) {
	const most = 366
	folders := []string{path.Dir(name)}
	if day, err := time.Parse(dayFolder, folders[0]); err == nil {
		for until := facts.Changed.AddDate(0, 0, 1); len(folders) < most && day.Before(until); {
			day = day.AddDate(0, 0, 1)
			folders = append(folders, day.Format(dayFolder))
		}
	}
	for _, folder := range folders {
		out = append(out, f.Logs(folder)...)
	}
	return out
}

// noTime is for lines without times.
func noTime(string) (time.Time, bool) { return time.Time{}, false }
