//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package disk

import (
	"errors"
	"os"
	"runtime"
	"syscall"
)

// NewLock takes the lock of that file, which is made if need be. It does not wait: the
// error is [ErrLocked] if somebody else holds it.
func NewLock(path string) (*Lock, error) {
	f, err := Open(path, os.O_RDWR|os.O_CREATE)
	if err != nil {
		return nil, err
	}
	if err := flock(f); err != nil {
		f.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, ErrLocked
		}
		return nil, &os.PathError{Op: "flock", Path: path, Err: err}
	}
	return &Lock{f}, nil
}

func flock(f *os.File) error {
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}

// lock locks a byte that no file has, where the system can: a lock of the whole file keeps
// readers out on SMB. Who cannot lock (gVisor) has the lock of the name.
func lock(f *os.File) error {
	const ofdSetLock = 37 // F_OFD_SETLK
	var err error
	if runtime.GOOS == "linux" {
		err = syscall.FcntlFlock(f.Fd(), ofdSetLock, &syscall.Flock_t{Type: syscall.F_WRLCK, Start: 1 << 62, Len: 1})
	} else {
		err = flock(f)
	}
	if errors.Is(err, syscall.EAGAIN) || errors.Is(err, syscall.EACCES) {
		return ErrLocked
	}
	return nil
}
