package session

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/agentevents/agentevents/internal/jsonwire"
)

// A Folder is a folder of a user. Its files are opened to read, and no symbolic link leads out of
// it. Names are relative to it, with slashes.
type Folder struct {
	root *os.Root
	path string
	dir  string   // the folder below it that was used last
	in   *os.Root // the same
	head []byte   // memory for the beginning of a file

	missed map[string]error // by the name of a file or folder that cannot be read
}

// OpenFolder opens a folder. Close closes it.
func OpenFolder(name string) (*Folder, error) {
	root, err := os.OpenRoot(name)
	if err != nil {
		return nil, err
	}
	return &Folder{root: root, path: name, dir: ".", in: root}, nil
}

// Close closes the folder.
func (f *Folder) Close() error {
	if f.in == f.root {
		return f.root.Close()
	}
	return errors.Join(f.in.Close(), f.root.Close())
}

// at returns the folder of a file, and the file's name in it. A folder stays open until another
// one is used: each part of a long name has a cost.
func (f *Folder) at(name string) (in *os.Root, base string, err error) {
	dir, base := path.Split(name)
	if dir = path.Clean(dir); dir == f.dir {
		return f.in, base, nil
	}
	in = f.root
	if dir != "." {
		if in, err = f.root.OpenRoot(dir); err != nil {
			return nil, "", err
		}
	}
	if f.in != f.root {
		_ = f.in.Close() // it was only read
	}
	f.dir, f.in = dir, in
	return in, base, nil
}

// Path returns a file's name for people.
func (f *Folder) Path(name string) string { return filepath.Join(f.path, filepath.FromSlash(name)) }

// miss notes a file or folder that cannot be read. One that is not there is not missed, and links are
// not followed.
func (f *Folder) miss(name string, err error) {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return
	}
	if info, err := f.root.Lstat(name); err == nil && info.Mode().Type() == fs.ModeSymlink {
		return
	}
	if pe := (*fs.PathError)(nil); errors.As(err, &pe) {
		err = pe.Err
	}
	if f.missed == nil {
		f.missed = map[string]error{}
	}
	f.missed[name] = &fs.PathError{Op: "read", Path: f.Path(name), Err: err}
}

// fault joins the errors of all files and folders that cannot be read.
func (f *Folder) fault() error {
	var all []error
	for _, name := range slices.Sorted(maps.Keys(f.missed)) {
		all = append(all, f.missed[name])
	}
	return errors.Join(all...)
}

// Files calls yield with the regular files below dir, in their order by name, until it returns
// false. Links are not followed. A folder that is not there is empty.
func (f *Folder) Files(dir string, yield func(name string) bool) {
	errStop := errors.New("stop")
	_ = fs.WalkDir(f.root.FS(), path.Clean(dir), func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			if f.miss(name, err); d != nil && d.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		if d.Type().IsRegular() && !yield(name) {
			return errStop
		}
		return nil
	})
}

// List returns the regular files in dir, and not those below it, by name.
func (f *Folder) List(dir string) (names []string) {
	entries, err := fs.ReadDir(f.root.FS(), path.Clean(dir))
	if err != nil {
		f.miss(path.Clean(dir), err)
		return nil // a folder that is not there is empty
	}
	for _, e := range entries {
		if e.Type().IsRegular() {
			names = append(names, path.Join(dir, e.Name()))
		}
	}
	return names
}

// Logs returns the files in dir that have the name of a file with lines of JSON.
func (f *Folder) Logs(dir string) []string {
	return slices.DeleteFunc(f.List(dir), func(name string) bool { return !IsLog(name) })
}

// IsLog reports whether a file has the name of a file with lines of JSON, which may be compressed.
func IsLog(name string) bool {
	name = strings.TrimSuffix(name, ".gz")
	return strings.HasSuffix(name, ".jsonl") || strings.HasSuffix(name, ".jsonl.zst") || strings.HasSuffix(name, ".ndjson")
}

// isDocument reports whether a file has the name of a JSON document.
func isDocument(name string) bool {
	return strings.HasSuffix(strings.TrimSuffix(name, ".gz"), ".json")
}

// Read returns the text of a small file, of at most a megabyte.
func (f *Folder) Read(name string) (string, error) {
	file, err := f.Open(name)
	if err != nil {
		return "", err
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, 1<<20))
	return string(text), err
}

// changed returns the time of a file's last change.
func (f *Folder) changed(name string) time.Time {
	info, err := f.root.Stat(name)
	if err != nil {
		return time.Time{}
	}
	return info.ModTime().UTC().Truncate(time.Millisecond)
}

// Open opens a file, which may be compressed by gzip.
func (f *Folder) Open(name string) (io.ReadCloser, error) {
	file, err := f.open(name)
	if err != nil {
		return nil, err
	}
	return plain(file, f.Path(name))
}

// open opens a file as it is.
func (f *Folder) open(name string) (*os.File, error) {
	in, base, err := f.at(name)
	if err != nil {
		return nil, err
	}
	file, err := in.OpenFile(base, os.O_RDONLY|nonblock, 0)
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = &fs.PathError{Op: "open", Path: f.Path(name), Err: errors.New("not a regular file")}
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// plain returns the text of a file, which may be compressed.
func plain(file *os.File, name string) (io.ReadCloser, error) {
	var magic [4]byte
	_, _ = file.ReadAt(magic[:], 0) // a short file is not compressed, and a pipe has no place
	switch {
	case string(magic[:2]) == "\x1f\x8b":
		_, err := file.Seek(0, io.SeekStart)
		var zr *gzip.Reader
		if err == nil {
			zr, err = gzip.NewReader(file)
		}
		if err != nil {
			return nil, errors.Join(err, file.Close())
		}
		return opened{zr, file}, nil
	case string(magic[:]) == "\x28\xb5\x2f\xfd":
		return nil, errors.Join(fmt.Errorf("%s: zstd data; decompress it first (zstd -d)", name), file.Close())
	}
	return file, nil
}

type opened struct {
	io.Reader
	file io.Closer
}

func (o opened) Close() error { return o.file.Close() }

// The beginning of a file decides whose it is: as many lines, or at least half of them where they
// are long. A document, whose first line is not JSON by itself, has more lines. maxHead bounds both.
const maxHead, maxHeadLines, maxDocumentLines, headSize = 256 << 10, 8, 1024, 4 << 10

// Tail returns the last line of a file that is not compressed, of at most 64 kB, or "".
func (f *Folder) Tail(name string) string {
	const most = 64 << 10
	file, err := f.root.Open(name)
	if err != nil {
		return ""
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return ""
	}
	text := make([]byte, min(info.Size(), most))
	if _, err := file.ReadAt(text, info.Size()-int64(len(text))); err != nil {
		return ""
	}
	text = bytes.TrimSpace(text)
	return string(text[bytes.LastIndexByte(text, '\n')+1:])
}

// Head returns the first lines of a file. The last one may be cut.
func (f *Folder) Head(name string) ([]string, error) {
	file, err := f.open(name)
	if err != nil {
		return nil, err
	}
	lines, text, err := readHead(file, f.head[:0])
	if f.head = text; !isPacked(text) {
		return lines, errors.Join(err, file.Close())
	}
	unpacked, err := plain(file, f.Path(name))
	if err != nil {
		return nil, err
	}
	defer unpacked.Close()
	return Head(unpacked)
}

// isPacked reports whether a text is compressed data.
func isPacked(text []byte) bool {
	return bytes.HasPrefix(text, []byte("\x1f\x8b")) || bytes.HasPrefix(text, []byte("\x28\xb5\x2f\xfd"))
}

// Head returns the first lines of an input. The last one may be cut.
func Head(r io.Reader) ([]string, error) {
	lines, _, err := readHead(r, nil)
	return lines, err
}

// readHead uses the memory of text, and returns it.
func readHead(r io.Reader, text []byte) ([]string, []byte, error) {
	for size := headSize; ; size *= 2 {
		text = slices.Grow(text, size-len(text))
		n, err := io.ReadFull(r, text[len(text):size])
		text = text[:len(text)+n]
		if n := bytes.Count(text, newline); err != nil || len(text) >= maxHead ||
			n >= maxHeadLines/2 && (n >= maxDocumentLines || isLine(text)) {
			if err == io.EOF || err == io.ErrUnexpectedEOF {
				err = nil
			}
			return firstLines(string(text)), text, err
		}
	}
}

var newline = []byte("\n")

// isLine reports whether the first line of a text is JSON by itself.
func isLine(text []byte) bool {
	line, _, _ := bytes.Cut(bytes.TrimSpace(bytes.TrimPrefix(text, []byte("\ufeff"))), newline)
	return jsonwire.Valid(string(line)) == nil
}

// firstLines returns the lines of a text that are not blank.
func firstLines(text string) (lines []string) {
	most := maxHeadLines
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(strings.TrimPrefix(line, "\ufeff")); line == "" {
			continue
		}
		if lines = append(lines, line); len(lines) == 1 && jsonwire.Valid(line) != nil {
			most = maxDocumentLines
		}
		if len(lines) == most {
			break
		}
	}
	return lines
}
