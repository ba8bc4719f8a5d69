package live

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/agentevents/agentevents"
)

// SnapshotHandler returns a handler that answers GET with the run's snapshot as JSON
// ([agentevents.RunSnapshot]), 404 for a run that the feed does not have, and 400 for a query
// that cannot be read. The run is the wildcard {run} of the pattern, else the query's run.
//
// The handlers of a feed check no permission: wrap them in a handler that does.
func (f *Feed) SnapshotHandler() http.Handler { return http.HandlerFunc(f.serveSnapshot) }

func (f *Feed) serveSnapshot(w http.ResponseWriter, req *http.Request) {
	if !f.open(w, req) {
		return
	}
	query, err := queryOf(req)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	s := f.Snapshot(runOf(req, query))
	if s == nil {
		http.Error(w, ErrUnknownRun.Error(), http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(s.AppendJSON(nil)) // the reader may be gone
}

// EventsHandler returns a handler that answers GET with the events of a run as Server-Sent Events,
// as they come. The run is found as in SnapshotHandler. A stream begins after the event that the
// header Last-Event-ID names, which browsers send when they connect again; else at the sequence
// that the query's from names; else at 0. The query's agent and kind, each any number of times,
// leave out all other events.
//
// Of each event the id is its sequence and an epoch, such as 7-1f3xk2, and the data its line; it
// has no type, so a browser takes it as a message. The epoch is another one in each process and
// after each resume: a log whose last events were lost goes on with other events under their
// numbers. An id of another epoch is valid for events before the sequence at which the run was
// resumed here. An id without an epoch, and from, are always valid. Two events with a type are
// about the stream:
//
//   - resync: events that the reader wants are not kept any more, or its cursor belongs to another
//     log or epoch. The data is {"from":…,"oldest":…,"next":…}, the fields of a [GapError]. The
//     stream goes on at next. Load the snapshot now; events below its nextSequence are in it.
//   - end: the run has ended, and these are all its events; the data is {"next":…}. It comes
//     Options.Linger after the last event, 2 seconds by default, since events may follow the end of
//     a run. A program that only waits for the run takes the event run.completed, run.failed or
//     run.cancelled, or sets Linger to -1. Close the EventSource: if it asks again, 204 tells it to
//     stop.
//
// The stream of a run that was released before it has ended, as when the program stops, just ends:
// a browser connects again, and the next process may go on with the run.
//
// An id alone, or a comment, is a heartbeat. Answers are 400 for a query that cannot be read, for a
// run or from that is there twice, for a cursor that is not a number, for a kind that is misspelt
// (it has no dot, or is one of the catalog in another case), and for a name that only begins like
// agent or kind, such as agents. Other names of the query are left alone. For a run that the feed
// does not have the answer is 404, after which a browser does not ask again: a page that may be
// there before the run's first event makes its EventSource anew when that fails.
func (f *Feed) EventsHandler() http.Handler { return http.HandlerFunc(f.serveEvents(nil)) }

// An Encoder writes the events of one run, in order, as lines of another format. Every encoder of a
// dialect is one. If it also has a method Over() bool, true means that readers expect nothing more
// until the run goes on: then the answer ends.
type Encoder interface {
	// Append appends the lines of an event, each with its newline; there may be none.
	Append(dst []byte, ev agentevents.Event) ([]byte, error)
	// End appends the lines that are left when the run is over.
	End(dst []byte) ([]byte, error)
}

// EncodedHandler returns a handler that answers like EventsHandler, but each line is one that an
// encoder writes, and the events about the stream are left out, as a client of that format expects.
// If the encoder writes Server-Sent Events, as the encoder of KAOS can, the frames keep the names
// of their events and get the ids of the stream. For AG-UI:
//
//	mux.Handle("/runs/{run}/agui", page.EncodedHandler(func() live.Encoder { return agui.NewEncoder(agui.EncoderOptions{Fast: true}) }))
//
// Every stream has an encoder of its own, from newEncoder. It gets all events that the run keeps,
// also those before the cursor, whose lines are not sent; the query's agent and kind leave out
// none. Events that it refuses are left out. The handler answers POST like GET, and reads no body.
//
// With a cursor of another log or epoch the stream begins with the run. If the first events are not
// kept any more, it begins with the run's agent, with the other agents and calls that are open, and
// with the state, all from the snapshot. A block whose beginning is missing comes as its whole
// text, without deltas. A reader that needs older events than those that are kept loses the
// connection.
//
// A front end of AG-UI has one list of messages for all runs of a thread, which is the session of a
// run. The ids that the encoder makes up differ between runs. The ids of the log must differ too:
// give blocks and calls of two runs different ids, or give blocks no id.
//
// A front end of AG-UI that answers a question sends a POST. A handler in front of this one reads
// its body, records [agentevents.RunResumed] and the answers, and passes the request on with the
// query's from set to the sequence of the first of these.
func (f *Feed) EncodedHandler(newEncoder func() Encoder) http.Handler {
	return http.HandlerFunc(f.serveEvents(newEncoder))
}

func (f *Feed) serveEvents(newEncoder func() Encoder) http.HandlerFunc {
	return func(w http.ResponseWriter, req *http.Request) {
		if newEncoder != nil && req.Method == http.MethodPost {
			get := *req
			get.Method = http.MethodGet
			req = &get
		}
		f.serveStream(w, req, newEncoder)
	}
}

func (f *Feed) serveStream(w http.ResponseWriter, req *http.Request, newEncoder func() Encoder) {
	if !f.open(w, req) {
		return
	}
	query, err := queryOf(req)
	if err == nil {
		err = filters(query)
	}
	var from uint64
	var epoch string
	if err == nil {
		from, epoch, err = cursorOf(req, query)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	r := f.find(runOf(req, query))
	if r == nil {
		http.Error(w, ErrUnknownRun.Error(), http.StatusNotFound)
		return
	}
	s := stream{cursor: cursor{run: r, from: from, stale: r.stale(from, epoch)}, feed: f, w: w,
		conn: http.NewResponseController(w), query: query, told: from}
	if s.ended() && r.finished() {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no") // of nginx
	s.buf.WriteString(":\n\n")                // the reader learns that it is connected
	if newEncoder != nil {
		if !s.stale && from <= r.end() {
			s.skip = from
		}
		s.encoder, s.from, s.stale = newEncoder(), 0, false
	}
	if req.Method == http.MethodGet {
		s.serve(req.Context())
	}
}

// open checks the method and sets the headers that all answers have.
func (f *Feed) open(w http.ResponseWriter, req *http.Request) bool {
	h := w.Header()
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	if f.opts.AllowOrigin != "" {
		h.Set("Access-Control-Allow-Origin", f.opts.AllowOrigin)
	}
	if req.Method == http.MethodGet || req.Method == http.MethodHead {
		return true
	}
	h.Set("Allow", "GET, HEAD")
	http.Error(w, "only GET and HEAD", http.StatusMethodNotAllowed)
	return false
}

// runOf returns the id of the run that a request is about.
func runOf(req *http.Request, query url.Values) string {
	return cmp.Or(req.PathValue("run"), query.Get("run"))
}

// queryOf returns the query of a request. A part that cannot be read is an error: left out,
// it would be a filter that lets all events through.
func queryOf(req *http.Request) (url.Values, error) {
	query, err := url.ParseQuery(req.URL.RawQuery)
	if err != nil {
		return nil, errors.New("the query cannot be read")
	}
	for _, name := range []string{"run", "from"} {
		if len(query[name]) > 1 {
			return nil, errors.New("the query has more than one " + name)
		}
	}
	return query, nil
}

// filters checks the filters of a query. Other members are somebody else's, but for names
// that are misspelt, such as agents or kind[].
func filters(query url.Values) error {
	for name := range query {
		for _, own := range []string{"agent", "kind"} {
			if name != own && strings.HasPrefix(strings.ToLower(name), own) {
				return fmt.Errorf("the query has a member that begins like %s: it is spelled %s", own, own)
			}
		}
	}
	if slices.ContainsFunc(query["kind"], misspelt) {
		return errors.New("kind is not a kind: kinds have a dot, and case matters")
	}
	return nil
}

// cursorOf returns the sequence that a stream begins at, and its epoch, if the request names
// one. The header goes before the query: it comes from the same stream, later.
func cursorOf(req *http.Request, query url.Values) (from uint64, epoch string, err error) {
	if id := req.Header.Get("Last-Event-ID"); id != "" {
		number, epoch, hasEpoch := strings.Cut(id, "-")
		n, err := strconv.ParseUint(number, 10, 64)
		if err != nil || n == math.MaxUint64 || hasEpoch && epoch == "" {
			return 0, "", errors.New("Last-Event-ID is not the id of an event")
		}
		return n + 1, epoch, nil
	}
	text := query.Get("from")
	if text == "" {
		return 0, "", nil
	}
	if from, err = strconv.ParseUint(text, 10, 64); err != nil {
		return 0, "", errors.New("from is not a sequence")
	}
	return from, "", nil
}

// A stream is an HTTP answer under way.
type stream struct {
	cursor
	feed  *Feed
	w     http.ResponseWriter
	conn  *http.ResponseController
	query url.Values
	buf   bytes.Buffer // at most maxBuffer bytes
	err   error        // of a write
	sent  bool         // something was written and not flushed
	wrote time.Time
	told  uint64 // the position that the reader would ask for next: after the last id it got

	encoder Encoder         // nil writes native lines
	skip    uint64          // the lines of events below are not sent
	lines   []byte          // of the encoder, for the next ones; at most maxBuffer bytes
	fed     bool            // the encoder has got an event
	joined  map[string]bool // agents whose next delta may begin a block; nil when no delta is missing
}

// serve writes until the run is over or the reader is gone.
func (s *stream) serve(ctx context.Context) {
	for s.flush() {
		batch, err := s.read(ctx, s.feed.opts.Heartbeat)
		var gap *GapError
		switch {
		case errors.As(err, &gap) && s.encoder != nil && !s.fed && gap.Oldest > s.from:
			s.from = gap.Oldest
		case errors.As(err, &gap) && s.encoder != nil:
			return
		case errors.As(err, &gap):
			s.from = gap.Next
			s.event("resync", fmt.Sprintf(`{"from":%d,"oldest":%d,"next":%d}`, gap.From, gap.Oldest, gap.Next))
		case err == errIdle:
			s.heartbeat()
		case err != nil:
			return
		case len(batch) == 0:
			if s.run.finished() && s.encoder != nil {
				lines, _ := s.encoder.End(s.lines[:0])
				s.encoded(lines, s.from)
				s.flush()
			} else if s.run.finished() {
				s.event("end", fmt.Sprintf(`{"next":%d}`, s.from))
				s.flush()
			}
			return
		}
		for i := range batch {
			s.line(&batch[i])
		}
		if s.pending() && s.over() {
			s.flush()
			return
		}
		if beat := s.feed.opts.Heartbeat; beat > 0 && !s.pending() && time.Since(s.wrote) >= beat {
			s.heartbeat() // all was left out, for long
		}
	}
}

// over reports whether the encoder expects no more events, and none is left.
func (s *stream) over() bool {
	e, ok := s.encoder.(interface{ Over() bool })
	return ok && e.Over() && s.from == s.run.end()
}

// begin gives the encoder the missing part of the run: the agents and calls that began before the
// oldest event, and the state.
func (s *stream) begin(oldest uint64) {
	snapshot := s.run.snapshot()
	if s.skip < oldest {
		s.joined = map[string]bool{}
	}
	// tell gives an event that is not kept any more to the encoder.
	tell := func(agent, parent string, at time.Time, p agentevents.Payload) {
		lines, _ := s.encoder.Append(s.lines[:0], agentevents.Event{
			RunID: snapshot.RunID, Scope: agentevents.Scope{SessionID: snapshot.SessionID}, AgentID: agent,
			ParentAgentID: parent,
			Time:          at, SchemaVersion: agentevents.SchemaVersion, Payload: p,
		})
		if s.joined == nil {
			s.keep(lines)
		} else {
			s.encoded(lines, 0)
		}
	}
	for i, a := range snapshot.AgentsInOrder() {
		if a.Started && a.Sequence < oldest && (i == 0 || a.Open) {
			tell(a.AgentID, a.ParentAgentID, a.StartedAt, &agentevents.AgentStarted{Name: a.Name, Task: a.Task})
		}
	}
	for _, c := range snapshot.OpenCalls {
		if c.Sequence < oldest {
			tell(c.AgentID, "", c.StartedAt, &agentevents.ToolCalled{CallID: c.CallID, ToolID: c.ToolID})
		}
	}
	if len(snapshot.State) > 0 { // the patches that are kept come to the same state, on top of it
		tell("", "", snapshot.StartedAt,
			&agentevents.StatePatched{Op: agentevents.PatchSet, Value: agentevents.JSONOf(snapshot.State)})
	}
}

// line writes an event, unless the query leaves it out.
func (s *stream) line(l *line) {
	if s.encoder != nil {
		if !s.fed && l.sequence > 0 {
			s.begin(l.sequence)
		}
		s.fed = true
		info, _ := l.kind.Info()
		if delta := info.Role == agentevents.RoleDelta; s.joined != nil && !s.joined[l.agent] {
			if s.joined[l.agent] = !delta; delta {
				return
			}
		}
		var ev agentevents.Event
		if err := ev.UnmarshalJSON([]byte(l.text)); err != nil {
			return // the feed itself wrote the line
		}
		if lines, _ := s.encoder.Append(s.lines[:0], ev); l.sequence < s.skip {
			s.keep(lines)
		} else {
			s.encoded(lines, l.sequence+1)
		}
		return
	}
	if !wants(s.query["agent"], l.agent) || !wants(s.query["kind"], string(l.kind)) {
		return
	}
	s.id(l.sequence + 1)
	data(s, l.text)
}

// encoded writes the lines of the encoder. The last one has the id of the event before
// next, if that is not 0.
func (s *stream) encoded(lines []byte, next uint64) {
	defer s.keep(lines)
	for name, line, rest := frame(lines); len(line) > 0; name, line, rest = frame(rest) {
		if len(rest) == 0 {
			s.id(next)
		}
		if len(name) > 0 {
			s.buf.WriteString("event: ")
			s.buf.Write(name)
			s.buf.WriteByte('\n')
		}
		data(s, line)
	}
}

// frame cuts the first line off the lines of an encoder. If they are Server-Sent Events, it
// is the data of the first frame, which may have the name of an event. Other fields of the frame
// are left out, because the stream has its own ids.
func frame(lines []byte) (name, line, rest []byte) {
	for rest = lines; len(rest) > 0; {
		one, after, _ := bytes.Cut(rest, []byte("\n"))
		field, value, _ := bytes.Cut(one, []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		switch {
		case len(one) > 0 && one[0] == '{':
			value, field = one, []byte("data")
		case len(line) > 0 && string(field) == "event":
			return name, line, rest // the next frame begins
		}
		switch {
		case string(field) == "event":
			name = value
		case string(field) == "data" && len(line) > 0:
			return name, line, rest
		case string(field) == "data":
			line = value
		}
		rest = after
	}
	return name, line, nil
}

// keep keeps a buffer for the next lines, unless it is large: a reader would have it for as
// long as it is connected.
func (s *stream) keep(lines []byte) {
	if s.lines = nil; cap(lines) <= maxBuffer {
		s.lines = lines[:0]
	}
}

// misspelt reports whether a kind is none: hosts have kinds of their own, with a dot.
func misspelt(kind string) bool {
	for info := range agentevents.Kinds() {
		if strings.EqualFold(string(info.Kind), kind) {
			return string(info.Kind) != kind
		}
	}
	return !strings.Contains(kind, ".")
}

func wants(list []string, word string) bool { return len(list) == 0 || slices.Contains(list, word) }

// id writes the id of the event before next.
func (s *stream) id(next uint64) {
	s.told = next
	if next > 0 {
		s.buf.WriteString("id: ")
		s.buf.Write(strconv.AppendUint(s.buf.AvailableBuffer(), next-1, 10))
		s.buf.WriteByte('-')
		s.buf.WriteString(s.epoch)
		s.buf.WriteByte('\n')
	}
}

// event writes an event about the stream.
func (s *stream) event(name, data string) {
	s.id(s.from)
	fmt.Fprintf(&s.buf, "event: %s\ndata: %s\n\n", name, data)
}

// heartbeat writes a comment, and where the stream is, when events were left out since
// the last id.
func (s *stream) heartbeat() {
	if s.buf.WriteString(":\n"); s.told != s.from {
		s.id(s.from)
	}
	s.buf.WriteByte('\n')
}

// maxBuffer is how many bytes a stream keeps in a buffer.
const maxBuffer = 16 << 10

// data writes the end of a frame: its data. A long line is not copied, as readers share it.
func data[T string | []byte](s *stream, line T) {
	s.buf.WriteString("data: ")
	if s.buf.Len()+len(line) > maxBuffer {
		s.write()
	}
	if len(line) > maxBuffer {
		write(s, line)
	} else {
		s.buf.WriteString(string(line))
	}
	s.buf.WriteString("\n\n")
}

// write writes the buffer.
func (s *stream) write() {
	if s.buf.Len() > 0 {
		write(s, s.buf.Bytes())
		s.buf.Reset()
	}
}

// write writes text that does not go through the buffer.
func write[T string | []byte](s *stream, text T) {
	if s.err != nil {
		return
	}
	var deadline time.Time
	if timeout := s.feed.opts.WriteTimeout; timeout > 0 {
		deadline = time.Now().Add(timeout)
	}
	_ = s.conn.SetWriteDeadline(deadline) // not all writers have one
	s.sent, s.wrote = true, time.Now()
	switch text := any(text).(type) {
	case string:
		_, s.err = io.WriteString(s.w, text)
	case []byte:
		_, s.err = s.w.Write(text)
	}
}

// pending reports whether something is to be flushed.
func (s *stream) pending() bool { return s.sent || s.buf.Len() > 0 }

// flush writes the buffer to the reader. It reports whether the reader is still there.
func (s *stream) flush() bool {
	if !s.pending() {
		return true
	}
	s.write()
	s.sent = false
	return s.err == nil && s.conn.Flush() == nil
}

var _ interface {
	agentevents.LineSink
	agentevents.Resumer
	agentevents.Releaser
} = (*Feed)(nil)
