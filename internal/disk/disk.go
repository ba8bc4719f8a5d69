// Package disk is the part of a file system that a log needs: files that are written at
// an offset, directories that are synced, and a lock between processes. Tests put faults
// in its place.
package disk

import (
	"errors"
	"io"
	"os"
	"runtime"
)

// A File is one that is open.
type File interface {
	// Lock locks the file for this caller, whatever name other callers open it by: they get
	// [ErrLocked]. The lock ends when the file is closed. On a system without file locks, Lock does
	// nothing and returns nil.
	Lock() error
	io.ReaderAt
	io.WriterAt
	io.Closer
	Stat() (os.FileInfo, error)
	Sync() error
	Truncate(size int64) error
}

// An FS is a file system. Its methods do the work of the functions of package os.
type FS interface {
	OpenFile(path string, flag int, perm os.FileMode) (File, error)
	Stat(path string) (os.FileInfo, error)
	ReadDir(path string) ([]os.DirEntry, error)
	Rename(from, to string) error
	Remove(path string) error
	SyncDir(path string) error // makes names durable
}

// OS is the operating system's.
type OS struct{}

// OpenFile is [os.OpenFile] for reading, and [Open] for writing.
func (OS) OpenFile(path string, flag int, perm os.FileMode) (File, error) {
	open := os.OpenFile
	if flag&(os.O_WRONLY|os.O_RDWR|os.O_CREATE) != 0 {
		open = func(path string, flag int, _ os.FileMode) (*os.File, error) { return Open(path, flag) }
	}
	f, err := open(path, flag, perm)
	if err != nil {
		return nil, err // not a File that holds a nil pointer
	}
	return file{f}, nil
}

type file struct{ *os.File }

func (f file) Lock() error { return lock(f.File) }

// Stat is [os.Stat].
func (OS) Stat(path string) (os.FileInfo, error) { return os.Stat(path) }

// ReadDir is [os.ReadDir].
func (OS) ReadDir(path string) ([]os.DirEntry, error) { return os.ReadDir(path) }

// Rename is [os.Rename].
func (OS) Rename(from, to string) error { return os.Rename(from, to) }

// Remove is [os.Remove].
func (OS) Remove(path string) error { return os.Remove(path) }

// SyncDir makes the names in a directory durable. Windows does so by itself, and refuses
// to be asked.
func (OS) SyncDir(path string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// ErrLocked means that another process, or this one, holds the lock.
var ErrLocked = errors.New("locked by another process, or opened twice by this one")

// A Lock is held until it is closed or the process ends, however it ends.
type Lock struct{ f *os.File }

// Close lets go of the lock. Its file stays: to remove it would let two processes hold
// locks of the same name.
func (l *Lock) Close() error { return l.f.Close() }
