package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"time"

	_ "modernc.org/sqlite" // the driver
)

// withCopy calls use with a copy of a database, and deletes the copy.
func withCopy(ctx context.Context, path string, use func(*sql.DB) error) (err error) {
	dir, err := os.MkdirTemp("", "opencode-rows-") // of mode 0700
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	err = copyStore(ctx, path, root)
	if err = errors.Join(err, root.Close()); err != nil {
		return err
	}
	name := url.URL{Scheme: "file", OmitHost: true, Path: filepath.ToSlash(filepath.Join(dir, copied))}
	db, err := sql.Open("sqlite", name.String())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	db.SetMaxOpenConns(1)
	return use(db)
}

// copied is the name of the copy.
const copied = "copy.db"

// tries is how often a copy is begun anew, because the store changed meanwhile.
const tries, pause = 20, 100 * time.Millisecond

// copyStore copies a database and its write-ahead log. Both are only read, and not locked, so a
// program may write to them. A commit adds to the log, and a checkpoint moves the rows of the
// log into the database: a log that is copied after the database has all that the database lacks,
// unless the log began anew meanwhile. Its header tells.
func copyStore(ctx context.Context, from string, to *os.Root) error {
	for range tries {
		before, err := stateOf(from)
		if err != nil {
			return err
		}
		if err := copyFile(ctx, from, to, copied); err != nil {
			return err
		}
		err = copyFile(ctx, from+"-wal", to, copied+"-wal")
		if errors.Is(err, os.ErrNotExist) {
			err = to.RemoveAll(copied + "-wal")
		}
		if err != nil {
			return err
		}
		after, err := stateOf(from)
		if err != nil {
			return err
		}
		if before.same(after) {
			return before.check(from)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pause):
		}
	}
	return fmt.Errorf("%s changes all the time: end opencode, or try again", from)
}

// A state tells whether a store has changed.
type state struct {
	magic   string
	size    int64
	changed time.Time
	log     string // the header of the write-ahead log; empty without one
	journal bool   // there is a rollback journal: a change is half done
}

func stateOf(name string) (s state, err error) {
	info, err := os.Stat(name)
	if err != nil {
		return s, err
	}
	s.size, s.changed = info.Size(), info.ModTime()
	if s.magic, err = head(name, 16); err != nil {
		return s, err
	}
	if s.log, err = head(name+"-wal", 32); err != nil && !errors.Is(err, os.ErrNotExist) {
		return s, err
	}
	journal, err := os.Stat(name + "-journal")
	s.journal = err == nil && journal.Size() > 0
	return s, nil
}

// head returns the first bytes of a file.
func head(name string, n int64) (string, error) {
	file, err := os.Open(name)
	if err != nil {
		return "", err
	}
	defer file.Close() // it is only read
	text, err := io.ReadAll(io.LimitReader(file, n))
	return string(text), err
}

// same reports whether a copy that was made between two states is whole.
func (s state) same(other state) bool {
	if s.journal || other.journal || s.log != other.log {
		return false
	}
	return s.log != "" || s.size == other.size && s.changed.Equal(other.changed)
}

// check returns an error for a file that has no sessions, with the next step.
func (s state) check(name string) error {
	switch {
	case s.size == 0 && s.log == "":
		return fmt.Errorf("%s is empty: opencode has not written a session yet, or another file is meant (--db)", name)
	case s.size > 0 && s.magic != "SQLite format 3\x00":
		return fmt.Errorf("%s is not a SQLite database: name the file opencode.db with --db", name)
	}
	return nil
}

// copyFile copies a file to one that only its owner may read.
func copyFile(ctx context.Context, from string, to *os.Root, name string) (err error) {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close() // it is only read
	out, err := to.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	for chunk := make([]byte, 1<<20); ; {
		if err := ctx.Err(); err != nil {
			return err
		}
		n, err := in.Read(chunk)
		if n > 0 {
			if _, err := out.Write(chunk[:n]); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
