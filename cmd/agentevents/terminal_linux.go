package main

import (
	"os"
	"syscall"
	"unsafe"
)

// isTerminal reports whether a file is a terminal, which has settings. A device such as
// /dev/null is none.
func isTerminal(f *os.File) bool {
	var settings syscall.Termios
	_, _, err := syscall.Syscall(syscall.SYS_IOCTL, f.Fd(), syscall.TCGETS, uintptr(unsafe.Pointer(&settings)))
	return err == 0
}
