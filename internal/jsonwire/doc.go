// Package jsonwire holds the JSON primitives under a reader and a writer of one JSON object per
// line: functions that append values to a byte slice, a [Scanner] that reads values from a string,
// and a few functions over whole values. It does not know the meaning of the values.
//
// The package is strict where [encoding/json] is lenient. It reads exactly the
// texts that RFC 8259 describes, minus those that its section 4 and RFC 7493
// (I-JSON) warn about because readers disagree on them: invalid UTF-8, lone
// surrogates in \u escapes and duplicate member names.
//
// Reading yields substrings of the text wherever the wire form and the value
// are the same bytes. Such a result keeps the whole text alive; a caller that
// holds on to a small part of a big text clones it.
package jsonwire
