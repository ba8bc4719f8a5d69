// Package scale makes logs that have many of one thing, and measures whether the cost
// of one thing grows with their number. It is for tests and benchmarks.
package scale

import (
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/agentevents/agentevents/internal/cputime"
)

// A Shape is a log that has many of one thing.
type Shape struct {
	Name string
	// Refused means that an emitter would refuse some of the events.
	Refused bool
	parts   []part
}

// Log returns the lines of a log with n of the things.
func (s Shape) Log(n int) []byte {
	l := &log{n: n, text: make([]byte, 0, 200*n), sequence: map[string]int{}}
	for _, write := range s.parts {
		write(l)
	}
	return l.text
}

// A part writes some lines of a log.
type part func(*log)

type log struct {
	n        int
	text     []byte
	sequence map[string]int // the next one, by run
	run      []byte
}

// once writes the lines with the number 0.
func once(lines ...string) part {
	return func(l *log) { l.lines(0, lines) }
}

// each writes the lines again and again, with the numbers from 0 to n-1.
func each(lines ...string) part {
	return func(l *log) {
		for i := range l.n {
			l.lines(i, lines)
		}
	}
}

// backwards is each with the numbers from n-1 to 0.
func backwards(lines ...string) part {
	return func(l *log) {
		for i := l.n - 1; i >= 0; i-- {
			l.lines(i, lines)
		}
	}
}

// twice is each with every line written a second time.
func twice(lines ...string) part {
	return func(l *log) {
		for i := range l.n {
			for _, line := range lines {
				start := len(l.text)
				l.line(i, line)
				l.text = append(l.text, l.text[start:]...)
			}
		}
	}
}

func (l *log) lines(i int, lines []string) {
	for _, line := range lines {
		l.line(i, line)
	}
}

// line writes an event: its kind and, after a blank, members that are not the same on all lines.
// The run is r, or the text after an @ that follows the kind.
func (l *log) line(i int, line string) {
	kind, members, _ := strings.Cut(line, " ")
	kind, run, _ := strings.Cut(kind, "@")
	if run == "" {
		run = "r"
	}
	l.run = l.expand(l.run[:0], run, i)
	sequence := strconv.Itoa(l.sequence[string(l.run)])
	l.sequence[string(l.run)]++
	l.text = append(l.text,
		`{"id":"e`+sequence+`","sequence":`+sequence+`,"timestamp":"2026-05-05T09:00:00.040Z","type":"`+kind+`","runId":"`...)
	l.text = append(append(l.text, l.run...), '"')
	if members != "" {
		l.text = l.expand(append(l.text, ','), members, i)
	}
	if !strings.Contains(members, `"payload":`) {
		l.text = append(l.text, `,"payload":{}`...)
	}
	l.text = append(l.text, '}', '\n')
}

// expand appends a text in which $ stands for the number i, $- for the number
// before it, $. for a path of up to 100 names, and [[text]] for the text with every
// number from 0 to n-1.
func (l *log) expand(dst []byte, text string, i int) []byte {
	for {
		at := strings.IndexAny(text, "$<")
		if at < 0 {
			return append(dst, text...)
		}
		dst = append(dst, text[:at]...)
		text = text[at:]
		switch {
		case text[0] == '<':
			item, rest, _ := strings.Cut(text[1:], ">")
			for i := range l.n {
				if i > 0 {
					dst = append(dst, ',')
				}
				dst = l.expand(dst, item, i)
			}
			text = rest
		case strings.HasPrefix(text, "$-"):
			dst, text = strconv.AppendInt(dst, int64(i-1), 10), text[2:]
		case strings.HasPrefix(text, "$/"):
			dst, text = append(dst, 'p'), text[2:]
			for range i % 100 {
				dst = append(dst, ".p"...)
			}
		default:
			dst, text = strconv.AppendInt(dst, int64(i), 10), text[1:]
		}
	}
}

// limit is the factor by which the cost of one thing may grow when there are eight times as many.
// The cost grows eight times in quadratic code, and less than twice in a map that leaves the cache.
const limit = 6

// attempts is how often Linear measures before it fails the test.
const attempts = 10

// Linear fails the test when one of 8n things costs more than 6 times the CPU time of
// one of n things. prepare returns the work on a number of things. The work can be
// repeated.
//
// Linear compares the least CPU time of several attempts, and makes a further attempt
// only while the growth is over the limit. CPU time counts all threads of the process,
// so no other test of the package may run in parallel. An attempt does the work on few
// things eight times: both sides then take about as long and are disturbed alike.
func Linear(t testing.TB, n int, prepare func(n int) (work func())) {
	t.Helper()
	if race {
		t.Skip("the race detector takes time that grows by itself")
	}
	if cputime.Process() == 0 {
		t.Skip("no CPU time of a process")
	}
	few, many := prepare(n), prepare(8*n)
	used := func(work func(), times int) time.Duration {
		start := cputime.Process()
		for range times {
			work()
		}
		return cputime.Process() - start
	}
	leastFew, leastMany := time.Duration(math.MaxInt64), time.Duration(math.MaxInt64)
	for range attempts {
		leastFew, leastMany = min(leastFew, used(few, 8)), min(leastMany, used(many, 1))
		if leastMany < limit*max(leastFew, 1) { //wallclock: least times of alternating attempts, with a wide limit
			return
		}
	}
	t.Errorf("%d things take %v of CPU time and 8 times %d things take %v: "+
		"one of many costs %.1f times one of few, and the limit is %d",
		8*n, leastMany, n, leastFew, float64(leastMany)/float64(max(leastFew, 1)), limit)
}
