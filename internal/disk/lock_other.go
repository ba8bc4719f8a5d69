//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd || windows)

package disk

import "os"

// NewLock opens the file: this system has no lock that ends with its process.
func NewLock(path string) (*Lock, error) {
	f, err := Open(path, os.O_RDWR|os.O_CREATE)
	if err != nil {
		return nil, err
	}
	return &Lock{f}, nil
}

func lock(*os.File) error { return nil }
