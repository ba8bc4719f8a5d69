// Package secret finds secrets in texts: by the names beside them, by the patterns
// of well-known tokens, and by their registered values. It masks a text as a whole,
// or as it streams, with the same result.
//
// What is masked is a region of the text; a marker stands in its place. Names,
// prefixes of tokens and the separators stay: they are no secrets, and so a stream
// is held back only where a secret itself may have begun.
package secret

// The rules of regions.
const (
	Key   = "key"    // the value of a member, variable, header or parameter whose name is a credential's
	Value = "secret" // a registered value
	Token = "token"  // a text with the form of a token, key or signature
	Card  = "card"   // the number of a payment card
)

// Marker returns what stands in the place of a region.
func Marker(rule string) string { return "[REDACTED:" + rule + "]" }
