package main

import (
	"context"
	"errors"

	ae "github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/live"
)

// liveSection is L1: the cost of a reader of package live for the goroutine that emits, against the
// cost of a second file. The reader works on the other core. It decodes every event that it gets;
// if it is too slow it skips to the newest ones.
func liveSection() []comparison {
	var out []comparison
	for _, l := range loads {
		var (
			file   = l.threadCell("Emit to a file", fileSink)
			page   = l.threadCell("Emit to a file and a page", fileSink, pageSink(0))
			reader = l.threadCell("Emit to a file and a page with a reader", fileSink, pageSink(1))
			many   = l.threadCell("Emit to a file and a page with 100 readers", fileSink, pageSink(100))
			second = l.threadCell("Emit to a file, a page and a second file", fileSink, pageSink(0), fileSink)
		)
		name := l.label()
		out = append(out,
			versus("L1", name+", Emit to a file and a page with a reader / with a second file", atMost(1), reader, second),
			versus("L1", name+", Emit to a file and a page with 100 readers / with one", bar{}, many, reader),
			versus("L1", name+", Emit to a file and a page / to the file", bar{}, page, file),
		)
	}
	return byKind(out)
}

func (l load) threadCell(name string, sinks ...func() (ae.Sink, error)) *cell {
	c := l.cell(name, l.emitter(ae.EmitterOptions{}, sinks...))
	c.Thread, c.Procs = true, 2
	return c
}

// pageSink returns a sink of package live, and readers of it for the rest of the program.
func pageSink(readers int) func() (ae.Sink, error) {
	return func() (ae.Sink, error) {
		page := &readPage{Feed: live.New(live.Options{}), readers: readers}
		return page, nil
	}
}

// A readPage starts its readers with the run's first event.
type readPage struct {
	*live.Feed
	readers int
}

// WriteLine implements the line writer of a sink.
func (p *readPage) WriteLine(ctx context.Context, ev ae.Event, line []byte) error {
	err := p.Feed.WriteLine(ctx, ev, line)
	for ; p.readers > 0; p.readers-- {
		go p.read(ev.RunID)
	}
	return err
}

func (p *readPage) read(runID string) {
	from := uint64(0)
	for {
		var gap *live.GapError
		for _, err := range p.Events(context.Background(), runID, from) {
			errors.As(err, &gap)
		}
		if gap == nil {
			return
		}
		from = gap.Next
	}
}
