package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"

	"github.com/agentevents/agentevents/internal/index"
	"github.com/agentevents/agentevents/logfile"
)

// A memory is the index of a command that asks about whole files.
type memory struct{ rehash bool }

// flags adds the flag that reads all files.
func (m *memory) flags(fs *flag.FlagSet) {
	fs.BoolVar(&m.rehash, "rehash", false, "read all files, also those that have not changed since the last time")
}

// remembered returns the answer to a question about the files of l: the one of before if no file
// has changed, else that of work, which reads the files. One with anything to report is not kept,
// as the report is made by reading. The words are all that the answer depends on, beside the files.
func remembered[T any](in *invocation, m *memory, l *logReader, work func() T, words ...any) T {
	q := index.New(in.index, program()).Ask(l.filesOf(in),
		fmt.Sprintf("%s %q", in.name, append(words, l.maxLine, l.run, l.sorted.value)))
	if answer := q.Answer(); answer != nil && !m.rehash {
		var v T
		if json.Unmarshal(answer, &v) == nil {
			return v
		}
	}
	told := &counter{w: in.stderr}
	in.stderr = told
	v := work()
	in.stderr = told.w
	if told.n == 0 && l.result() == nil && q != nil {
		if answer, err := json.Marshal(v); err == nil {
			_ = q.Keep(answer) // without it the next command reads the files
		}
	}
	return v
}

// filesOf returns all files of the command line, or nil if they are not known before they are read or
// there is a report about them.
func (l *logReader) filesOf(in *invocation) (files []string) {
	if l.found = l.allSessions(in); l.failed {
		return nil
	}
	for _, name := range in.args {
		sessions, of := l.found[name]
		if name == "-" {
			return nil
		}
		for _, s := range sessions {
			if len(s.Notes()) > 0 {
				return nil // some files are left out, which the report names
			}
			files = append(files, s.Files()...)
		}
		if of {
			continue
		}
		segments, err := logfile.Segments(name)
		if err != nil {
			return nil
		}
		for _, s := range segments {
			files = append(files, s.Path)
		}
	}
	return files
}

// program names the program that runs. One that was built from changed sources has the version of
// the others, but another file.
func program() string {
	name := ""
	if info, ok := debug.ReadBuildInfo(); ok {
		name = info.Main.Version
	}
	if path, err := os.Executable(); err == nil {
		if info, err := os.Stat(path); err == nil {
			name += fmt.Sprint(" ", info.Size(), " ", info.ModTime().UnixNano())
		}
	}
	return name
}

// indexIn returns the folder of the index in a user's cache folder.
func indexIn(cache string, err error) string {
	if err != nil {
		return ""
	}
	return filepath.Join(cache, "agentevents", "index")
}

// A counter counts the bytes that pass.
type counter struct {
	w io.Writer
	n int
}

func (c *counter) Write(p []byte) (int, error) {
	c.n += len(p)
	return c.w.Write(p)
}
