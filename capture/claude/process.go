package claude

import (
	"errors"
	"strings"
	"time"

	"github.com/agentevents/agentevents"
)

// processes tells where the lines of another process begin, if Options.Processes is set.
type processes struct {
	socket   string          // of the process
	sessions map[string]bool // that it has told
	reset    bool            // a conversation_reset has come since the latest init line
	before   int             // number of lines before the process
	given    *Options        // for the processes that follow; nil before the second one
	// waiting are lines after a result that the next process may have printed: its init line tells it.
	waiting []*line
	// early are the first lines of a process, which lack a time, of a saved stream.
	early []*line
}

// split returns the events of a line, which may be the first one of another process.
func (d *Decoder) split(dst []agentevents.Event, l *line) ([]agentevents.Event, error) {
	var ended error
	switch {
	case d.begins(l):
		dst, ended = d.another(dst, l)
	case d.mayBegin(l):
		d.waiting = append(d.waiting, l)
		if len(d.waiting) < maxHeldLines {
			return dst, nil
		}
		return d.release(dst)
	case len(d.waiting) > 0:
		dst, ended = d.release(dst)
	}
	d.know(l)
	dst, err := d.timely(dst, l)
	return dst, errors.Join(ended, err)
}

// know notes the session and the process that a line tells.
func (d *Decoder) know(l *line) {
	if id := l.str("session_id"); id != "" && !d.sessions[id] && (l.isInit() || l.inConversation() || l.kind == "stream_event") {
		if d.sessions == nil {
			d.sessions = map[string]bool{}
		}
		d.sessions[strings.Clone(id)] = true
	}
	switch {
	case l.isInit():
		d.reset = false
		if socket := l.str("messaging_socket_path"); socket != "" {
			d.socket = strings.Clone(socket)
		}
	case l.kind == "conversation_reset":
		d.reset = true
	}
}

// begins reports whether a line shows another process: it has another socket, or a session that this process
// has not told and that follows no conversation_reset. A hook may tell another session, except at a start.
func (d *Decoder) begins(l *line) bool {
	if !d.started && d.init == nil && len(d.early) == 0 {
		return false
	}
	id, reset := l.str("session_id"), d.reset
	for _, w := range d.waiting {
		reset = reset || w.kind == "conversation_reset" && d.sessions[w.str("session_id")]
	}
	other := id != "" && len(d.sessions) > 0 && !d.sessions[id] && !reset
	switch {
	case l.isInit():
		socket := l.str("messaging_socket_path")
		return socket != "" && d.socket != "" && socket != d.socket || other
	case l.inConversation(), l.kind == "stream_event", l.startsSession():
		return other
	}
	return false
}

// startsSession reports whether a line is of a hook that runs before the init line of a process, or after a
// command such as /clear.
func (l *line) startsSession() bool { return strings.HasPrefix(l.str("hook_name"), "SessionStart") }

// mayBegin reports whether a line after a result may belong to another process, whose init line follows.
func (d *Decoder) mayBegin(l *line) bool {
	if !d.idle && d.main.open || !d.started || l.isInit() {
		return false
	}
	switch l.kind {
	case "conversation_reset":
		return true
	case "system":
		switch l.str("subtype") {
		case "status":
			return true
		}
		if l.startsSession() {
			return true
		}
		return len(d.waiting) > 0
	}
	return false
}

// another ends the run, and begins the one of a process with the lines that wait and its first line.
func (d *Decoder) another(dst []agentevents.Event, first *line) ([]agentevents.Event, error) {
	waiting := append(d.waiting, first)
	d.waiting = nil
	d.lines -= len(waiting)
	dst, err := d.releaseEarly(dst)
	dst, ended := d.finishRun(dst)
	o := d.o
	if d.given != nil {
		o = *d.given
	}
	o.RunID, o.Prompt = "", ""
	o.Saved = d.o.Saved || !o.Started.IsZero()
	o.Started = time.Time{}
	next := NewDecoder(o)
	next.before, next.given = d.before+d.lines, &o
	*d = *next
	for _, l := range waiting {
		d.lines++
		l.no = d.lines
		l.at, l.stamped = d.time(l)
		d.last = l.at
		if l == first {
			break
		}
		var err error
		d.know(l)
		dst, err = d.timely(dst, l)
		ended = errors.Join(ended, err)
	}
	return dst, errors.Join(err, ended)
}

// release returns the events of the lines that wait.
func (d *Decoder) release(dst []agentevents.Event) ([]agentevents.Event, error) {
	waiting := d.waiting
	d.waiting = nil
	var all error
	for _, l := range waiting {
		var err error
		d.know(l)
		dst, err = d.timely(dst, l)
		all = errors.Join(all, err)
	}
	dst, err := d.releaseEarly(dst)
	return dst, errors.Join(all, err)
}

// timely returns the events of a line. The first lines of a process in a saved stream wait for a line with a
// time, or for the duration that a result states.
func (d *Decoder) timely(dst []agentevents.Event, l *line) ([]agentevents.Event, error) {
	if d.given == nil || d.started || !d.o.Saved {
		return d.see(dst, l)
	}
	d.early = append(d.early, l)
	if l.stamped {
		for _, early := range d.early {
			early.at = l.at
		}
	} else if l.kind != "result" && len(d.early) < maxHeldLines {
		return dst, nil
	}
	if took := l.millis("duration_ms"); !l.stamped && took.OK {
		d.o.Started = l.at.Add(-took.V)
	}
	return d.releaseEarly(dst)
}

// releaseEarly returns the events of the lines that wait for a time.
func (d *Decoder) releaseEarly(dst []agentevents.Event) ([]agentevents.Event, error) {
	early := d.early
	d.early = nil
	var all error
	for _, l := range early {
		var err error
		dst, err = d.see(dst, l)
		all = errors.Join(all, err)
	}
	return dst, all
}
