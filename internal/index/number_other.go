//go:build !unix

package index

import "io/fs"

// number returns nothing: the system tells no number of a file with its size.
func number(fs.FileInfo) string { return "" }
