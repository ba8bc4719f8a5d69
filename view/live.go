package view

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/live"
)

// Live returns a handler for a page of a run that goes on. The page gets each event of the feed when
// it comes. Mount it below a path of its own, with its slash at the end:
//
//	mux.Handle("/view/", http.StripPrefix("/view/", view.Live(feed, view.Options{})))
//
// The page of a run is at ?run= and its id. Without a run it is a list of the runs that the feed
// has. A page that loses its connection connects again and goes on with the next event. When the
// feed keeps the first events no more, the page begins with the oldest one and tells so.
//
// Each page that is open costs its handler the events of the run, as [Write] does. The events are
// redacted as the options tell. The handler checks no permission: put it after one that does.
func Live(feed *live.Feed, o Options) http.Handler {
	l := &liveHandler{feed, o}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /events", l.events)
	mux.HandleFunc("GET /{$}", l.page)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasPrefix(r.URL.Path, "/") { // the prefix is stripped with its slash
			r = r.Clone(r.Context())
			r.URL.Path = "/" + r.URL.Path
		}
		mux.ServeHTTP(w, r)
	})
}

type liveHandler struct {
	feed *live.Feed
	o    Options
}

// page answers with the page of a run, or the list of the runs.
func (l *liveHandler) page(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	id := r.URL.Query().Get("run")
	head := head{Redacted: !l.o.Unredacted, Logs: []logHead{{Name: id}}}
	if id == "" {
		for _, run := range l.feed.Runs() {
			head.Choice = append(head.Choice, run.ID)
		}
	} else {
		head.Live = "events?" + strings.TrimPrefix(r.URL.RawQuery, "?")
	}
	var packed bytes.Buffer
	if err := pack(&packed, func(w io.Writer) error { return json.NewEncoder(w).Encode(&head) }); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	title := l.o.Title
	if title == "" {
		title = id
	}
	_ = page(w, title, packed.Bytes(), "connect-src 'self'; ") // a reader that has gone away
}

// headWait is the time after an event before the head of the page is sent again, and headShare
// bounds the share of the time that making heads may take.
const (
	headWait  = time.Second
	headShare = 20
	heartbeat = 15 * time.Second
)

// A stream sends a run to one page.
type stream struct {
	w    http.ResponseWriter
	flow *http.ResponseController
	run  *run
	last uint64 // sequence of the last event that the page has
	has  bool   // the page has one
	hash string // of its line
}

// events answers with the events of a run. The data of an event is its row and its line; the type
// head has the head of the page, reset tells the page to forget all, gap that events are missing.
func (l *liveHandler) events(w http.ResponseWriter, r *http.Request) {
	id := r.URL.Query().Get("run")
	if l.feed.Snapshot(id) == nil {
		http.Error(w, live.ErrUnknownRun.Error(), http.StatusNotFound)
		return
	}
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-store")
	s := &stream{w: w, flow: http.NewResponseController(w)}
	if at, hash, ok := strings.Cut(r.Header.Get("Last-Event-ID"), "-"); ok {
		n, err := strconv.ParseUint(at, 10, 64)
		s.last, s.has, s.hash = n, err == nil, hash
	}
	if err := l.send(r.Context(), s, id); err != nil && r.Context().Err() == nil && !errors.Is(err, live.ErrUnknownRun) {
		_ = s.message("trouble", "", err.Error()) // the page shows it; nobody else is there to tell
	}
}

// send sends events until the run or the connection ends.
func (l *liveHandler) send(ctx context.Context, s *stream, id string) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	s.run = newRun(0, id, l.o)
	events := make(chan agentevents.Event, 64)
	var failed error
	go func() { // ends with the context, which ends with this call
		defer close(events)
		failed = l.follow(ctx, s, id, events)
	}()
	beat, due := time.NewTicker(heartbeat), time.NewTimer(headWait)
	defer beat.Stop()
	defer due.Stop()
	changed := true
	for {
		select {
		case ev, ok := <-events:
			if !ok {
				if err := s.head(l.o); err != nil {
					return err
				}
				if failed == nil {
					return s.message("end", "", "{}")
				}
				return failed
			}
			if err := s.event(&ev); err != nil {
				return err
			}
			if len(events) == 0 {
				if err := s.flow.Flush(); err != nil {
					return err
				}
			}
			changed = true
		case <-due.C:
			began := time.Now()
			if changed {
				if err := s.head(l.o); err != nil {
					return err
				}
			}
			changed = false
			due.Reset(max(headWait, headShare*time.Since(began)))
		case <-beat.C:
			if _, err := io.WriteString(s.w, ":\n\n"); err != nil {
				return err
			}
			if err := s.flow.Flush(); err != nil {
				return err
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// follow sends the events of the feed, redacted, from the oldest one on that is kept.
func (l *liveHandler) follow(ctx context.Context, s *stream, id string, to chan<- agentevents.Event) error {
	from := uint64(0)
	for {
		var gap *live.GapError
		var failed error
		events := l.feed.Events(ctx, id, from)
		if !l.o.Unredacted {
			events = l.o.Policy.Redact(events)
		}
		for ev, err := range events {
			if failed = err; err != nil {
				break
			}
			select {
			case to <- ev:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		if !errors.As(failed, &gap) || gap.Oldest < from {
			return failed
		}
		from = max(gap.Oldest, from+1)
	}
}

// event sends an event, unless the page has it.
func (s *stream) event(ev *agentevents.Event) error {
	line, err := ev.AppendJSON(nil)
	if err != nil {
		return err
	}
	if n := len(s.run.rows); n == 0 && ev.Sequence > 0 || n > 0 && ev.Sequence > s.run.rows[n-1].ev.Sequence+1 {
		if !s.has || ev.Sequence > s.last+1 {
			if err := s.message("gap", "", strconv.FormatUint(ev.Sequence, 10)); err != nil {
				return err
			}
		}
	}
	s.run.add(ev, string(line))
	if s.has && ev.Sequence <= s.last {
		if ev.Sequence == s.last && hashOf(line) != s.hash { // the page has another event with this number
			s.has = false
			return s.again()
		}
		return nil
	}
	s.has = false
	return s.row(len(s.run.rows) - 1)
}

// again has the page forget all, and sends all events so far.
func (s *stream) again() error {
	if err := s.message("reset", "", "{}"); err != nil {
		return err
	}
	for i := range s.run.rows {
		if err := s.row(i); err != nil {
			return err
		}
	}
	return nil
}

// row sends the row and the line of an event.
func (s *stream) row(i int) error {
	w := &s.run.rows[i]
	w.at = s.run.since(w.time)
	row, err := w.appendJSON(nil, w.agent, w.kind) // the page finds the indexes: the lists still grow
	if err != nil {
		return err
	}
	id := strconv.FormatUint(w.ev.Sequence, 10) + "-" + hashOf([]byte(s.run.lines[i]))
	return s.message("", id, `{"row":`+string(row)+`,"line":`+string(agentevents.JSONString(s.run.lines[i]))+`}`)
}

// head sends the head of the run.
func (s *stream) head(o Options) error {
	s.run.finish()
	text, err := json.Marshal(head{
		Redacted: !o.Unredacted, Masked: s.run.masked, Logs: []logHead{{Name: s.run.head.ID}}, Runs: []*runHead{&s.run.head},
	})
	if err != nil {
		return err
	}
	if err := s.message("head", "", string(text)); err != nil {
		return err
	}
	return s.flow.Flush()
}

// message writes one message. The data has no line break.
func (s *stream) message(typ, id, data string) error {
	text := ""
	if typ != "" {
		text += "event: " + typ + "\n"
	}
	if id != "" {
		text += "id: " + id + "\n"
	}
	_, err := fmt.Fprintf(s.w, "%sdata: %s\n\n", text, strings.ReplaceAll(data, "\n", " "))
	return err
}

func hashOf(line []byte) string {
	h := fnv.New64a()
	_, _ = h.Write(line)
	return strconv.FormatUint(h.Sum64(), 36)
}
