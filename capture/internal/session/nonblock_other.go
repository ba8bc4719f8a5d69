//go:build !unix

package session

const nonblock = 0 // named pipes are in no folder
