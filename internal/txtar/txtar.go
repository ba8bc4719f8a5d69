// Package txtar reads and writes text files that hold several texts. It is for golden files of
// tests. A text begins after a line such as
//
//	-- name --
//
// and ends at the next one. Lines before the first one are a comment.
package txtar

import "strings"

// An Archive is the content of a file.
type Archive struct {
	Comment string
	Files   []File
}

// A File is one of the texts.
type File struct{ Name, Text string }

// Parse reads an archive. Any text is one.
func Parse(text string) Archive {
	var a Archive
	to := &a.Comment
	for line := range strings.Lines(text) {
		if name, ok := heading(line); ok {
			a.Files = append(a.Files, File{Name: name})
			to = &a.Files[len(a.Files)-1].Text
			continue
		}
		*to += line
	}
	return a
}

// heading returns the name on a line that begins a text.
func heading(line string) (name string, ok bool) {
	name, ok = strings.CutPrefix(strings.TrimSuffix(line, "\n"), "-- ")
	if !ok {
		return "", false
	}
	name, ok = strings.CutSuffix(name, " --")
	return name, ok && name != ""
}

// Get returns the text of that name, and an empty text if there is none.
func (a *Archive) Get(name string) string {
	for _, f := range a.Files {
		if f.Name == name {
			return f.Text
		}
	}
	return ""
}

// Add adds a text at the end. It leaves out an empty one.
func (a *Archive) Add(name, text string) {
	if text != "" {
		a.Files = append(a.Files, File{name, text})
	}
}

// String returns the archive as Parse reads it. A comment and every text must end
// with a newline.
func (a *Archive) String() string {
	var b strings.Builder
	b.WriteString(a.Comment)
	for _, f := range a.Files {
		b.WriteString("-- " + f.Name + " --\n" + f.Text)
	}
	return b.String()
}
