package session

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/agentevents/agentevents/internal/jsonwire"
)

// A Folder is a folder of a user. Its files are opened to read, and no symbolic link leads out of
// it. Names are relative to it, with slashes.
type Folder struct {
	root *os.Root
	path string
}

// OpenFolder opens a folder. Close closes it.
func OpenFolder(name string) (*Folder, error) {
	root, err := os.OpenRoot(name)
	if err != nil {
		return nil, err
	}
	return &Folder{root, name}, nil
}

// Close closes the folder.
func (f *Folder) Close() error { return f.root.Close() }

// Path returns a file's name for people.
func (f *Folder) Path(name string) string { return filepath.Join(f.path, filepath.FromSlash(name)) }

// Files calls yield with the regular files below dir, in their order by name, until it returns
// false. Links are not followed. A folder that is not there is empty.
func (f *Folder) Files(dir string, yield func(name string) bool) {
	errStop := errors.New("stop")
	_ = fs.WalkDir(f.root.FS(), path.Clean(dir), func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			if d != nil && d.IsDir() {
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
		return nil // a folder that is not there is empty
	}
	for _, e := range entries {
		if e.Type().IsRegular() {
			names = append(names, path.Join(dir, e.Name()))
		}
	}
	return names
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
	info, err := f.root.Stat(name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, &fs.PathError{Op: "open", Path: f.Path(name), Err: errors.New("not a regular file")}
	}
	file, err := f.root.Open(name)
	if err != nil {
		return nil, err
	}
	return plain(file, f.Path(name))
}

// plain returns the text of a file, which may be compressed.
func plain(file *os.File, name string) (io.ReadCloser, error) {
	var magic [4]byte
	_, _ = file.ReadAt(magic[:], 0) // a short file is not compressed, and a pipe has no place
	switch {
	case string(magic[:2]) == "\x1f\x8b":
		zr, err := gzip.NewReader(file)
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

// maxHead bounds the beginning of a file that decides whose it is. Documents have more lines.
const maxHead, maxHeadLines, maxDocumentLines = 256 << 10, 8, 1024

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
	file, err := f.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return Head(file)
}

// Head returns the first lines of an input. The last one may be cut.
func Head(r io.Reader) ([]string, error) {
	in := bufio.NewReaderSize(io.LimitReader(r, maxHead), 4<<10)
	var lines []string
	for len(lines) < maxHeadLines || len(lines) < maxDocumentLines && jsonwire.Valid(lines[0]) != nil {
		line, err := in.ReadString('\n')
		if line = strings.TrimSpace(strings.TrimPrefix(line, "\ufeff")); line != "" {
			lines = append(lines, line)
		}
		if err != nil {
			if err == io.EOF {
				err = nil
			}
			return lines, err
		}
	}
	return lines, nil
}
