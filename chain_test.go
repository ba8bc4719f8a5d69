package agentevents

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents/internal/chain"
)

// link chains the lines of a log.
func link(log string) string {
	var out []byte
	var last chain.Hash
	for line := range strings.Lines(log) {
		out, last = chain.Append(out, []byte(strings.TrimSuffix(line, "\n")), last)
		out = append(out, '\n')
	}
	return string(out)
}

// chainLog is a log of every kind, among them kinds with an empty payload, none and with
// members that no field has.
func chainLog(t *testing.T) string {
	var b strings.Builder
	b.WriteString(aLine + "\n")
	for _, e := range sampleEvents() {
		b.WriteString(encodeEvent(t, e) + "\n")
	}
	b.WriteString(`{"id":"e8","sequence":8,"timestamp":"2026-05-05T09:00:00.000Z","type":"vendor.x","runId":"r1"}` + "\n")
	b.WriteString(`{"id":"e9","sequence":9,"timestamp":"2026-05-05T09:00:00.000Z","type":"run.paused","runId":"r1","payload":{},"hash":"x","prev":1}` + "\n")
	return b.String()
}

func readAllOf(t *testing.T, log string, o ReaderOptions) []Event {
	var all []Event
	for ev, err := range NewReader(strings.NewReader(log), o).All() {
		require.NoError(t, err)
		all = append(all, ev)
	}
	return all
}

// The link of a line belongs to the file: no way to read the line shows it.
func TestReadersTakeLinksOff(t *testing.T) {
	log := chainLog(t)
	linked := link(log)
	for _, o := range []ReaderOptions{{}, {Verbatim: true}, {Verbatim: true, Decoder: NewDecoder()}} {
		require.Equal(t, readAllOf(t, log, o), readAllOf(t, linked, o))
	}
	lines := strings.Split(strings.TrimSuffix(log, "\n"), "\n")
	for i, line := range strings.Split(strings.TrimSuffix(linked, "\n"), "\n") {
		kept := []byte(line)
		var ev Event
		require.NoError(t, ev.UnmarshalJSON(kept))
		require.Equal(t, line, string(kept), "the caller's line stays")
		require.Equal(t, decodeLine(t, lines[i]), ev)
		require.Equal(t, lines[i], encodeEvent(t, ev))
	}
}

// An event is the same one in a chain and outside of it: read twice it is counted once.
func TestDuplicatesIgnoreLinks(t *testing.T) {
	log := chainLog(t)
	_, rest, _ := strings.Cut(log, "\n")
	both := link(log) + log + link(rest) // the second chain has other links
	for _, workers := range []int{1, 3} {
		want, err := FoldLog(NewReader(strings.NewReader(log+log+rest), ReaderOptions{}), FoldOptions{Workers: workers})
		require.NoError(t, err)
		l, err := FoldLog(NewReader(strings.NewReader(both), ReaderOptions{}), FoldOptions{Workers: workers})
		require.NoError(t, err)
		for s := range want.Drain() {
			got := l.Snapshot(s.RunID)
			require.NotNil(t, got)
			require.Equal(t, string(s.AppendJSON(nil)), string(got.AppendJSON(nil)))
		}
	}
}

// Members of these names in another form are the event's own, and stay so when it is
// written.
func TestMembersThatLookLikeALinkStay(t *testing.T) {
	linked := strings.TrimSuffix(link(aLine+"\n"), "\n")
	for _, line := range []string{
		strings.Replace(linked, `,"prev"`, `, "prev"`, 1),
		strings.Replace(linked, `:"`+strings.Repeat("0", 64), `: "`+strings.Repeat("0", 64), 1),
		linked + " ",
	} {
		ev := decodeLine(t, line)
		require.NotEmpty(t, ev.Extra("prev"), line)
		require.NotEmpty(t, ev.Extra("hash"), line)
		text := encodeEvent(t, ev)
		require.True(t, json.Valid([]byte(text)))
		require.Equal(t, ev, decodeLine(t, text))
		require.Equal(t, text, encodeEvent(t, decodeLine(t, text)))

		again := strings.TrimSuffix(link(text+"\n"), "\n")
		require.Equal(t, ev, decodeLine(t, again), "in a chain too")
	}
	upper := strings.ToUpper(linked[len(linked)-66 : len(linked)-2])
	ev := decodeLine(t, linked[:len(linked)-66]+upper+`"}`)
	require.NotEmpty(t, ev.Extra("prev"))
	require.True(t, bytes.Contains([]byte(encodeEvent(t, ev)), []byte(upper)))
}

// A link does not count for the length of a line.
func TestALinkDoesNotMakeALineTooLong(t *testing.T) {
	linked := link(aLine + "\n")
	require.Len(t, readAllOf(t, linked, ReaderOptions{MaxLine: len(aLine)}), 1)
	for _, err := range NewReader(strings.NewReader(linked), ReaderOptions{MaxLine: len(aLine) - 1}).All() {
		require.ErrorContains(t, err, "MaxLine")
	}
}

// An error names the place in the line as it is in the file.
func TestErrorsInLinkedLines(t *testing.T) {
	bad := strings.Replace(aLine, `"sequence":7`, `"sequence":"x"`, 1)
	for _, linked := range []bool{false, true} {
		text := bad
		if linked {
			text = strings.TrimSuffix(link(bad+"\n"), "\n")
		}
		for _, err := range NewReader(strings.NewReader(text), ReaderOptions{}).All() {
			le, ok := err.(*LineError)
			require.True(t, ok)
			require.Equal(t, "/sequence", le.Pointer)
			require.Equal(t, strings.Index(bad, `"x"`), le.Column)
		}
		_, err := FoldLog(NewReader(strings.NewReader(text), ReaderOptions{}), FoldOptions{})
		require.ErrorContains(t, err, "/sequence")
		require.NotContains(t, err.Error(), "torn")
	}
}
