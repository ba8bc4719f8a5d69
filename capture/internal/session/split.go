package session

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
)

// maxDocument bounds a file that is split: it is in memory as a whole.
const maxDocument = 512 << 20

// split returns the threads in a file below a folder, each as a file.
func (p *Program) split(f *Folder, name, dir string) ([]*File, error) {
	d := &document{p: p, dir: dir, name: name}
	parts, err := d.read(f)
	if err != nil {
		return nil, err
	}
	files := make([]*File, len(parts))
	for i, part := range parts {
		facts := part.Facts
		if p.Describe != nil {
			p.Describe(f, name, &facts)
		}
		if facts.At.IsZero() {
			facts.Changed = f.changed(name)
			facts.At = facts.Changed
		}
		facts.clone()
		files[i] = newFile(dir, name, facts)
		files[i].whole = func() (io.ReadCloser, error) { return d.open(facts.Thread) }
	}
	return files, nil
}

// A document is a file with several threads.
type document struct {
	p         *Program
	dir, name string
	unread    map[string]*Part // threads that were split and not opened yet
}

// open returns the lines of a thread. The file is read again if they were opened before.
func (d *document) open(thread string) (io.ReadCloser, error) {
	if d.unread[thread] == nil {
		f, err := OpenFolder(d.dir)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		parts, err := d.read(f)
		if err != nil {
			return nil, err
		}
		d.unread = map[string]*Part{}
		for i := range parts {
			d.unread[parts[i].Facts.Thread] = &parts[i]
		}
	}
	part := d.unread[thread]
	if part == nil {
		return nil, &fs.PathError{
			Op: "open", Path: d.name, Err: fmt.Errorf("%w: thread %s, which was there before", fs.ErrNotExist, thread),
		}
	}
	delete(d.unread, thread)
	return io.NopCloser(strings.NewReader(strings.Join(part.Lines, "\n") + "\n")), nil
}

func (d *document) read(f *Folder) ([]Part, error) {
	file, err := f.Open(d.name)
	if err != nil {
		return nil, err
	}
	var text strings.Builder
	_, err = io.Copy(&text, io.LimitReader(file, maxDocument+1))
	if err = errors.Join(err, file.Close()); err != nil {
		return nil, &fs.PathError{Op: "read", Path: f.Path(d.name), Err: err}
	}
	if text.Len() > maxDocument {
		return nil, &fs.PathError{
			Op: "read", Path: f.Path(d.name),
			Err: fmt.Errorf("%s: it has more than %d MB; write fewer sessions into a file", d.p.Name, maxDocument>>20),
		}
	}
	parts, err := d.p.Split(strings.TrimPrefix(text.String(), "\ufeff"))
	if err != nil {
		return nil, &fs.PathError{Op: "read", Path: f.Path(d.name), Err: fmt.Errorf("%s: %w", d.p.Name, err)}
	}
	return parts, nil
}
