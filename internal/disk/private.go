package disk

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// This file writes content: for its owner only, and not through a symbolic link that somebody
// else may have put there.

// ErrLink means that a name is a symbolic link, through which nothing is written.
var ErrLink = errors.New("it is a symbolic link")

const private = 0o600

// Open opens a file as [os.OpenFile] does, makes a new one for its owner only, and refuses a
// symbolic link with [ErrLink]. A link that the system has for a stream, such as /dev/stdout,
// is none.
func Open(path string, flag int) (*os.File, error) {
	if stream(path) {
		return os.OpenFile(path, flag, private)
	}
	if noFollow == 0 && isLink(path) {
		return nil, &fs.PathError{Op: "open", Path: path, Err: ErrLink}
	}
	f, err := os.OpenFile(path, flag|noFollow, private)
	if err != nil && isLink(path) {
		return nil, &fs.PathError{Op: "open", Path: path, Err: ErrLink}
	}
	return f, err
}

// Create makes a file for its owner only, in the place of a file or a link of that name.
// A device, a pipe or a stream of the system is opened.
func Create(path string) (*os.File, error) {
	if special(path) {
		return os.Create(path)
	}
	err := os.Remove(path)
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		return os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, private)
	}
	// The folder may belong to somebody else, and the file to us.
	f, err := Open(path, os.O_RDWR|os.O_CREATE|os.O_TRUNC)
	if err != nil {
		return nil, err
	}
	if err := f.Chmod(private); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// Replace makes a file with the text, for its owner only, in the place of a file or a link of
// that name. Whoever opens the name finds the text before or this one, also after a crash.
func Replace(path string, text []byte) (err error) {
	if special(path) {
		return os.WriteFile(path, text, private)
	}
	out, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*"+temporary) // for its owner only
	if pe := (*fs.PathError)(nil); errors.As(err, &pe) {
		return &fs.PathError{Op: pe.Op, Path: path, Err: pe.Err} // the temporary name tells nobody anything
	}
	if err != nil {
		return err
	}
	_, err = out.Write(text)
	if err == nil {
		err = out.Sync()
	}
	if err = errors.Join(err, out.Close()); err == nil {
		err = os.Rename(out.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(out.Name()))
	}
	return OS{}.SyncDir(filepath.Dir(path))
}

// temporary ends the names of files that [Replace] writes before it renames them.
const temporary = ".tmp"

// RemoveTemporary removes the files that crashes in the middle of [Replace] have left in a folder
// that nobody else writes to.
func RemoveTemporary(dir string) error {
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		if name := e.Name(); strings.HasPrefix(name, ".") && strings.HasSuffix(name, temporary) {
			err = errors.Join(err, os.Remove(filepath.Join(dir, name)))
		}
	}
	return err
}

// maxLinks is how many links a name may lead over, as on Linux.
const maxLinks = 40

// Follow returns the name that a name leads to over symbolic links of the program's user and
// of the system's. The file need not be there. The error is [ErrLink] if a link is somebody
// else's.
func Follow(path string) (string, error) {
	to, foreign := resolve(path)
	if foreign != "" {
		return "", &fs.PathError{Op: "open", Path: foreign, Err: fmt.Errorf("%w that somebody else has made", ErrLink)}
	}
	return to, nil
}

// Resolve is [Follow] for reading: over links of anybody.
func Resolve(path string) string {
	to, _ := resolve(path)
	return to
}

// resolve returns the name that a name leads to, and the first link on the way that is
// somebody else's.
func resolve(path string) (to, foreign string) {
	for range maxLinks {
		to, err := os.Readlink(path)
		if err != nil {
			return path, foreign // the name is not a link
		}
		if foreign == "" && !ours(path) {
			foreign = path
		}
		if !filepath.IsAbs(to) {
			dir, err := filepath.EvalSymlinks(filepath.Dir(path))
			if err != nil {
				return path, foreign
			}
			to = filepath.Join(dir, to)
		}
		path = to
	}
	return path, foreign // the system refuses so many links when the file is opened
}

// OpenOurs is [Open] for a name that may be a link of the program's user or of the system's:
// see [Follow].
func OpenOurs(path string, flag int) (*os.File, error) {
	if stream(path) {
		return Open(path, flag)
	}
	path, err := Follow(path)
	if err != nil {
		return nil, err
	}
	return Open(path, flag)
}

func isLink(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && info.Mode()&fs.ModeSymlink != 0
}

// special reports whether a name leads to something that cannot be replaced: a device, a
// pipe, a folder or a stream of the system.
func special(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && (stream(path) || !info.Mode().IsRegular() && info.Mode()&fs.ModeSymlink == 0)
}

// stream reports whether a name is a link that the system has for an open file.
func stream(path string) bool {
	clean := filepath.Clean(path)
	return (strings.HasPrefix(clean, "/dev/") || strings.HasPrefix(clean, "/proc/")) && isLink(path) && ours(path)
}
