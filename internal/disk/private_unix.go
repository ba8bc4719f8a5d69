//go:build unix && !aix

package disk

import (
	"os"
	"syscall"
)

// noFollow is the flag for opening no link.
const noFollow = syscall.O_NOFOLLOW

// ours reports whether a file belongs to the program's user or to the system's.
func ours(path string) bool {
	info, err := os.Lstat(path)
	if err != nil {
		return false
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && (stat.Uid == 0 || int(stat.Uid) == os.Geteuid())
}
