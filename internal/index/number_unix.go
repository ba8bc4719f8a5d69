//go:build unix

package index

import (
	"fmt"
	"io/fs"
	"syscall"
)

// number returns the number of a file on its disk, and that of the disk.
func number(info fs.FileInfo) string {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		return fmt.Sprint(stat.Dev, " ", stat.Ino)
	}
	return ""
}
