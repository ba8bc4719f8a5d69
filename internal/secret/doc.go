// Package secret finds secrets in texts: by the names beside them, by the patterns
// of well-known tokens, and by their registered values. It masks a text as a whole
// or as it streams, with the same result, and JSON values.
//
// Rules look at a text around a few bytes that are rare in prose. Each rule decides by its byte and
// the text around it whether a region of the text is a secret. The union of all regions is masked:
// one marker replaces overlapping regions. Names, prefixes of tokens, the separators and the first
// six digits of a card stay: they are not secrets, and so a stream is held back only where a secret
// itself may have begun.
//
// Most texts have no secrets, and are passed over at little cost:
//
//   - Names end in front of a mark, ':', '=', '|' or '%'. The last three letters there rule out
//     nearly all, before a rule is asked.
//   - Tokens are long runs of few characters. Eight of these are looked for at every
//     twelfth place; a run that is found is asked for prefixes where words begin.
//     A few forms are told by their middle or end: for these a word of the right length is asked.
//   - Cards are found as tokens are, by two digits or separators side by side.
//   - Registered values are looked for in steps as long as the shortest form of them.
//   - A stream is one text that grows in a buffer. Only the new part of a piece is looked at, with
//     the text before it.
//   - JSON is looked at where it is compacted, and mostly not read again: see
//     [Scanner.Compact].
//
// Not found are words that only their meaning makes a secret ("my password is hunter") and values
// in elements of XML or that a blank parts from their name, as in .netrc, SQL and the ENV of a
// Dockerfile: these have no mark. A name decides nothing before a number of tokens, prose, a
// placeholder ($NAME, <name>), a version or a name of a variable. A stream holds back at most 4
// KiB; most rules decide after 64 bytes.
package secret

// The rules of regions.
const (
	Key   = "key"    // the value of a member, variable, header or parameter whose name is a credential's
	Value = "secret" // a registered value
	Token = "token"  // a text with the form of a token, key or signature
	Card  = "card"   // the number of a payment card
)

// Marker returns the text that replaces a region.
func Marker(rule string) string { return "[REDACTED:" + rule + "]" }
