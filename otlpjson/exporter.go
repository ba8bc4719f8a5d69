package otlpjson

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/internal/option"
	"github.com/agentevents/agentevents/internal/replay"
	"github.com/agentevents/agentevents/internal/spans"
)

// Options configure an [Exporter]. The zero Options are usable.
type Options struct {
	// Service is the attribute service.name of the resource. The default is "agentevents".
	Service string
	// Resource has more attributes of the resource, such as deployment.environment.name, or ip:
	// without it, Jaeger's pages take a span outside of its parent's times for clock skew.
	Resource map[string]string
	// Semconv selects the words of GenAI: "1.41.0", "latest", or "" for those that both
	// have. Requests name a schema only with 1.41.0, the last version that is published.
	Semconv string
	// Content adds prompts, arguments, results and texts of errors. Redact a log before.
	Content bool
	// ContentBytes bounds one such value; 0 means 8,192.
	ContentBytes int `least:"0"`
	// NoSteps leaves out the spans of phases, nodes, turns and steps; they become events.
	NoSteps bool
	// NewIDs derives all ids from the log. Without it spans have the ids that the log
	// recorded, if it did, and are those that the program sent while it ran.
	NewIDs bool
	// MaxSpans and MaxBytes bound a request; 0 means 512 spans and 4 MiB. A span that is
	// larger alone is sent alone.
	MaxSpans, MaxBytes int `least:"0"`
}

// Counts has the numbers of exported spans and of events without one.
type Counts struct {
	Events   int            // exported or not
	Runs     int            // as many as traces, but for runs that were resumed
	Spans    int            // sent
	Requests int            // sent
	Rejected int64          // spans that an endpoint refused
	Closed   map[string]int // spans that the log leaves open, by the attribute agentevents.closed.reason
	Repeated int            // events left out: their sequence is not above the earlier ones of their run
	Late     int            // events left out: they come long after the end of their run
	Unplaced int            // events that no span shows: theirs has ended, or there is none
	Unopened int            // ends without a beginning; Close counts those of runs that go on
	// Untimed counts events without a time. They get the time of the event before in their run, else
	// of the first that has one.
	Untimed int
	// Timeless counts events left out, because no event of their run, or none of the first 64, has a
	// time. Close counts the last ones.
	Timeless int
	NoDate   int // events of 1970: their clock has no date, and back ends show no spans so old unless asked
}

// An Exporter turns the events of a log into spans and sends them in requests. The same
// events give the same requests, byte for byte, if Flush is called after the same ones. It must
// not be used concurrently.
//
// Its memory is bounded by the runs that have not ended, and by one request. A request is sent
// when it is full, at Close and at Flush, which is for logs that go on.
type Exporter struct {
	to     Sender
	o      Options
	log    *replay.Log
	counts Counts

	ctx        context.Context // of the call that goes on
	head, tail []byte          // of every request
	request    []byte          // without its tail
	n          int             // spans in it
	span       []byte
	err        error         // of the request that was lost
	refused    *PartialError // all of them together
	closed     bool
}

// NewExporter returns an exporter without events. If the sender is nil, or an option makes no
// sense ([*agentevents.OptionError]), Export and Close return an error.
func NewExporter(to Sender, o Options) *Exporter {
	err := option.Check("otlpjson.Options", o)
	o.Service = cmp.Or(o.Service, "agentevents")
	o.MaxSpans, o.MaxBytes = cmp.Or(o.MaxSpans, 512), cmp.Or(o.MaxBytes, 4<<20)
	x := &Exporter{to: to, o: o}
	x.head, x.tail = frame(&x.o)
	switch v := spans.Semconv(o.Semconv); {
	case to == nil:
		x.err = errors.New("otlpjson: the sender is nil")
	case v != "" && v != spans.SemconvV1_41 && v != spans.SemconvLatest:
		x.err = option.NoConstant("otlpjson.Options.Semconv", o.Semconv)
	default:
		x.err = err
	}
	x.log = replay.New(spans.Options{
		Ended: x.add, Semconv: spans.Semconv(o.Semconv), Content: spans.InTrace(o.Content), ContentBytes: o.ContentBytes,
		NoSteps: o.NoSteps, Recorded: !o.NewIDs,
	})
	return x
}

// Export adds an event. It sends a request when that is full. After an error, which ends the
// export, it returns that again, and after Close [agentevents.ErrClosed]. Refusals by endpoints are
// reported by [Exporter.Close].
func (x *Exporter) Export(ctx context.Context, ev *agentevents.Event) error {
	if err := x.usable(); err != nil {
		return err
	}
	if x.closed {
		return fmt.Errorf("otlpjson: the exporter is closed: %w", agentevents.ErrClosed)
	}
	x.ctx = ctx
	x.counts.Events++
	x.log.Feed(ev)
	return x.err
}

// Flush sends the spans that have ended and were not sent yet. It returns what Export does.
func (x *Exporter) Flush(ctx context.Context) error {
	x.ctx = ctx
	if err := x.usable(); err != nil {
		return err
	}
	x.send()
	return x.err
}

// usable returns why nothing can be exported.
func (x *Exporter) usable() error {
	if x.log == nil {
		return agentevents.ErrZeroValue
	}
	return x.err
}

// Close ends the spans that the log leaves open, at the times of their last events, and sends the
// rest. The error is the lost request's, else the [*PartialError] of all spans that were refused,
// with the first message.
func (x *Exporter) Close(ctx context.Context) error {
	x.ctx = ctx
	if x.usable() == nil {
		x.log.Close()
		x.send()
	}
	x.closed = true
	if err := x.usable(); err != nil {
		return err
	}
	if x.refused != nil {
		return x.refused
	}
	return nil
}

// Counts returns the counts so far.
func (x *Exporter) Counts() Counts {
	c := x.counts
	if x.log == nil {
		return c
	}
	l := &x.log.Counts
	c.Runs, c.Closed = l.Runs, maps.Clone(l.Closed)
	c.Repeated, c.Late, c.Unplaced, c.Unopened = l.Repeated, l.Late, l.Unplaced, l.Unopened
	c.Untimed, c.Timeless, c.NoDate = l.Untimed, l.Timeless, l.NoDate
	return c
}

// add adds a span to the request, and sends that before it is too large.
func (x *Exporter) add(s *spans.Span) {
	if x.err != nil {
		return
	}
	x.span = appendSpan(x.span[:0], s)
	if x.n > 0 && (x.n >= x.o.MaxSpans || len(x.request)+1+len(x.span)+len(x.tail) > x.o.MaxBytes) {
		if x.send(); x.err != nil {
			return
		}
	}
	if x.n == 0 {
		x.request = append(x.request[:0], x.head...)
	} else {
		x.request = append(x.request, ',')
	}
	x.request = append(x.request, x.span...)
	x.n++
}

// send sends the request, unless it is empty.
func (x *Exporter) send() {
	if x.n == 0 {
		return
	}
	err := x.to.Send(x.ctx, append(x.request, x.tail...))
	var refused *PartialError
	switch {
	case errors.As(err, &refused):
		x.counts.Rejected += refused.Rejected
		if x.refused == nil {
			x.refused = &PartialError{Message: refused.Message}
		}
		x.refused.Rejected = x.counts.Rejected
	case err != nil:
		x.err = err
		return
	}
	x.counts.Spans += x.n
	x.counts.Requests++
	x.n = 0
}
