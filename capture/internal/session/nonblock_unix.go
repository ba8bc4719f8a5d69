//go:build unix

package session

import "syscall"

// nonblock lets a named pipe be opened without its writer. It is told by its mode, then.
const nonblock = syscall.O_NONBLOCK
