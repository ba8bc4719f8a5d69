package foreign

import (
	"bytes"
	"encoding/json"
	"strings"
	"unicode/utf8"

	"github.com/agentevents/agentevents/internal/jsonwire"
)

// A Fault is a line that cannot be read, and where it stands.
type Fault struct {
	Line     []byte
	First    bool   // no line stands before it
	Torn     bool   // it may be the beginning of a longer one
	After    []byte // the text after a first line, as far as it is known
	BadStart bool   // the fault is at the start of the line
}

// magics has how files of other forms than text begin.
var magics = []struct {
	magic string
	File
}{
	{"\x1f\x8b", compressed("gzip")},
	{"\x28\xb5\x2f\xfd", compressed("zstd")},
	{"\xfd7zXZ\x00", compressed("xz")},
	{"BZh", compressed("bzip2")},
	{"SQLite format 3\x00", File{Name: "a SQLite database", Hint: "opencode and crush keep their sessions in such a file; opencode-rows prints those of opencode as rows that agentevents reads: go run github.com/agentevents/agentevents/tools/opencode-rows@latest > rows.jsonl"}},
	{"\x37\x7f\x06\x82", walFile},
	{"\x37\x7f\x06\x83", walFile},
	{"\xff\xfe", utf16},
	{"\xfe\xff", utf16},
}

var (
	walFile = File{Name: "the write-ahead log of a SQLite database",
		Hint: "it belongs to a database beside it; opencode-rows reads both if they are of opencode"}
	utf16  = File{Name: "UTF-16, not UTF-8", Hint: "convert it first"}
	frames = File{Name: "a stream of Server-Sent Events",
		Hint: "KAOS and AG-UI alone are read in them; take the lines of data, as sed -n 's/^data: *//p' does"}
	binary = File{Name: "binary data", Hint: "a log is lines of JSON"}
)

func compressed(by string) File {
	return File{Name: by + " data, not lines of JSON", Hint: "decompress it first"}
}

// Form names the form of input that a line which cannot be read is part of, if it knows it. rest
// means that all lines after it are of that form. Otherwise those up to the next event may be.
func Form(f Fault) (file File, rest, ok bool) {
	for _, m := range magics {
		if bytes.HasPrefix(f.Line, []byte(m.magic)) {
			return m.File, true, true
		}
	}
	trimmed := bytes.TrimSpace(f.Line)
	list, isList := bytes.CutPrefix(trimmed, []byte("["))
	list = bytes.TrimLeft(list, " \t")
	whole := f.First && !f.Torn
	switch {
	case f.First && isWide(f.Line):
		return utf16, true, true
	case f.First && f.isBinary():
		return binary, false, true
	case whole && isList && (len(list) == 0 || list[0] == '{' || list[0] == ']'):
		return f.named(File{Name: "a JSON array", Hint: "an event is an object on a line of its own; " +
			"write the elements as lines, as jq -c '.[]' does"}), !json.Valid(trimmed), true
	case whole && string(trimmed) == "{":
		return f.named(File{Name: "JSON over several lines",
			Hint: "an event is an object on a line of its own; write it so, as jq -c . does"}), false, true
	case f.BadStart && isFrame(f.Line):
		return frames, true, true
	case whole && jsonwire.IsObject(string(trimmed[:min(len(trimmed), 1)])) && !json.Valid(trimmed): // it goes on
		file = f.named(File{})
		return file, false, file.Name != ""
	}
	return File{}, false, false
}

// named returns the program that wrote the document, or its form. The reader of a program still
// needs lines.
func (f Fault) named(form File) File {
	file, ok := document(string(f.Line) + "\n" + string(f.After))
	switch {
	case !ok || file.Program == "":
		return form
	case file.Hint == direct && form.Name == "": // a damaged line of a file that is read
		return form
	case file.Hint == direct:
		return File{file.Program, file.Name + " as " + form.Name, form.Hint}
	}
	return file
}

// isWide reports whether every other one of the first four bytes is NUL, as in UTF-16 without a
// byte order mark.
func isWide(line []byte) bool {
	return len(line) >= 4 && (line[0] == 0) == (line[2] == 0) &&
		(line[1] == 0) == (line[3] == 0) && (line[0] == 0) != (line[1] == 0)
}

// isBinary reports whether a file begins with NUL bytes in other text than JSON. Those before
// all text are not counted: a crash leaves them in a log.
func (f Fault) isBinary() bool {
	head := bytes.TrimLeft(f.Line, "\x00")
	if jsonwire.IsObject(string(head[:min(len(head), 1)])) {
		return false
	}
	return bytes.IndexByte(head, 0) >= 0 ||
		!utf8.Valid(f.Line) && bytes.IndexByte(f.After[:min(len(f.After), 512)], 0) >= 0
}

// isFrame reports whether a line is a field of a Server-Sent Event.
func isFrame(line []byte) bool {
	field, _, found := strings.Cut(string(line[:min(len(line), 8)]), ":")
	return found && (field == "data" || field == "event" || field == "id")
}
