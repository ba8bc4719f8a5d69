//go:build unix

package index

import (
	"fmt"
	"io/fs"
	"syscall"
)

// number returns the numbers of a disk and of a file on it.
func number(info fs.FileInfo) string {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		return fmt.Sprint(stat.Dev, " ", stat.Ino)
	}
	return ""
}
