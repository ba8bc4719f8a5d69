package dialecttest

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect"
	"github.com/agentevents/agentevents/internal/readback"
)

// decode reads lines with a new decoder.
func (d *Dialect) decode(text string, verbatim bool) ([]agentevents.Event, error) {
	return read(strings.NewReader(text), agentevents.ReaderOptions{Decoder: d.Decoder(), Verbatim: verbatim})
}

// read returns the events of a log, and its errors joined.
func read(log io.Reader, o agentevents.ReaderOptions) ([]agentevents.Event, error) {
	var events []agentevents.Event
	var errs []error
	for ev, err := range agentevents.NewReader(log, o).All() {
		if err != nil {
			errs = append(errs, err)
		} else {
			events = append(events, ev)
		}
	}
	return events, errors.Join(errs...)
}

// encode writes all events with a new encoder.
func (d *Dialect) encode(events []agentevents.Event) (string, error) {
	enc := d.Encoder()
	var out []byte
	var errs []error
	for _, ev := range events {
		var err error
		if out, err = enc.Append(out, ev); err != nil {
			errs = append(errs, err)
		}
	}
	out, err := enc.End(out)
	return string(out), errors.Join(append(errs, err)...)
}

// throughNative writes events in the native format and reads them again.
func throughNative(events []agentevents.Event) ([]agentevents.Event, error) {
	var log []byte
	for i := range events {
		line, err := events[i].AppendJSON(log)
		if err != nil {
			return nil, err
		}
		log = append(line, '\n')
	}
	return read(bytes.NewReader(log), agentevents.ReaderOptions{})
}

// A trip holds events on their way into the document and back.
type trip struct {
	readback.Trip
	d     *Dialect
	text  string // the lines
	sound bool   // the lines decoded without error
}

// prefix stands before the lines. An encoder must not change it.
const prefix = "before\n"

// trip sends events through the document, and checks the encoder while it works.
func (d *Dialect) trip(r *report, events []agentevents.Event) *trip {
	t := &trip{d: d, Trip: readback.Trip{Ignore: d.Ignore, Derived: d.Derived}}
	enc := d.Encoder()
	out := []byte(prefix)
	for _, ev := range events {
		was := len(out)
		next, err := enc.Append(out, ev)
		switch {
		case len(next) < was || !bytes.Equal(next[:was], out[:was]):
			r.errorf("encoding %s changed the bytes in dst before it", ev.Kind())
			return t
		case err != nil && len(next) > was:
			r.errorf("encoding %s appended something and returned the error %v", ev.Kind(), err)
		case len(next) > was && next[len(next)-1] != '\n':
			r.errorf("encoding %s appended a line without a newline: %s", ev.Kind(), next[was:])
		}
		t.Wrote(ev, next[was:], err)
		out = next
	}
	was := len(out)
	out, err := enc.End(out)
	if err != nil {
		r.errorf("End of the encoder: %v", err)
	}
	t.Wrote(agentevents.Event{}, out[was:], nil)
	t.text = string(t.Text)
	t.Losses = enc.Losses()
	for i, err := range t.Refused {
		kind := events[i].Kind()
		var rule *agentevents.RuleError
		switch {
		case err == nil:
		case errors.Is(err, dialect.ErrNoCounterpart):
			if !t.Lost(kind, "", dialect.Dropped) {
				r.errorf("%s was refused with ErrNoCounterpart, but that is not among the losses", kind)
			}
		case !errors.As(err, &rule) || rule.Rule == "":
			r.errorf("%s was refused with an error that neither wraps ErrNoCounterpart nor names a rule: %v", kind, err)
		}
	}
	for _, l := range t.Losses {
		hasKind := func(ev agentevents.Event) bool { return readback.IsOf(l, ev.Kind()) }
		isEvent := func(ev agentevents.Event) bool { return ev.RunID == l.RunID && ev.Sequence == l.Sequence }
		if l.Count < 1 || !slices.ContainsFunc(events, hasKind) || !slices.ContainsFunc(events, isEvent) {
			r.errorf("a loss that belongs to no event: %+v", l)
		}
	}
	if err := errors.Join(t.Read(agentevents.ReaderOptions{Decoder: d.Decoder()})...); err != nil {
		r.errorf("the encoded line cannot be decoded: %v\n%s", err, t.text)
		return t
	}
	t.sound = true
	return t
}

// compare computes the differences.
func (t *trip) compare(r *report) {
	for _, err := range t.Compare() {
		r.errorf("%v", err)
	}
}

// verify checks that the differences and the losses agree.
func (t *trip) verify(r *report) {
	if !t.sound {
		return
	}
	r.detail = t.shown()
	defer func() { r.detail = "" }()
	t.compare(r)
	t.Unlisted(func(_ int, what string) { r.errorf("%s", what) })
	t.Unreal(func(what string) { r.errorf("%s", what) })
}

const maxShown = 1500

// shown returns the lines for messages, shortened.
func (t *trip) shown() string {
	text := t.text
	if len(text) > maxShown {
		text = text[:maxShown] + "…"
	}
	return strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n\t")
}

// A Difference is a place where two events differ.
type Difference = readback.Difference

// Diff compares two events as native lines, value by value. Raw JSON differs if
// its spelling does, except for blanks.
func Diff(before, after agentevents.Event) ([]Difference, error) {
	return readback.Diff(before, after)
}
