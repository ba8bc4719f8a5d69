// Package sessions knows which runs of a log the end of their session ends, where the event that
// tells the end is another run's.
package sessions

import (
	"slices"
	"strings"
	"time"
)

// Ends are the ends of the sessions of a log. The zero Ends have none.
type Ends struct{ ends map[string][]End }

// An End is the end of a session.
type End struct {
	At     int       // place in the log
	Time   time.Time // time of the event
	Status string    // SessionCompleted.Status
}

// Add adds an end of a session, which is after the last one of the session.
func (e *Ends) Add(session string, end End) {
	if session == "" {
		return
	}
	if e.ends == nil {
		e.ends = map[string][]End{}
	}
	end.Status = strings.Clone(end.Status)
	e.ends[strings.Clone(session)] = append(e.ends[session], end) // a map keeps the key that it is written with last
}

// Merge adds the ends of other parts of the log.
func (e *Ends) Merge(other *Ends) {
	for session, ends := range other.ends {
		if e.ends == nil {
			e.ends = map[string][]End{}
		}
		list := append(e.ends[session], ends...)
		slices.SortStableFunc(list, func(a, b End) int { return a.At - b.At })
		e.ends[session] = list
	}
}

// After returns the first end of a session after a place in the log.
func (e *Ends) After(session string, at int) (End, bool) {
	list := e.ends[session]
	i, _ := slices.BinarySearchFunc(list, at+1, func(end End, at int) int { return end.At - at })
	if session == "" || i == len(list) {
		return End{}, false
	}
	return list[i], true
}
