//go:build !unix || aix

package disk

// noFollow is 0: this system has no flag for opening no link.
const noFollow = 0

// ours reports true: this system does not tell the owner of a file.
func ours(string) bool { return true }
