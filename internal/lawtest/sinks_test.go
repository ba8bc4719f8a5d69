package lawtest_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"sync"
	"testing"

	ae "github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/eventtest"
	"github.com/stretchr/testify/require"
)

// A page is the output of a sink.
type page struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (p *page) Write(text []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.b.Write(text)
}

func (p *page) events(t testing.TB) []ae.Event {
	p.mu.Lock()
	defer p.mu.Unlock()
	return eventtest.ReadLog(t, bytes.NewReader(p.b.Bytes()), ae.ReaderOptions{}).Events()
}

// brokenPage is a destination that takes nothing.
type brokenPage struct{}

func (brokenPage) Write([]byte) (int, error) { return 0, errors.New("the disk is full") }

// A committing is a Writer whose events are as durable as they get when it is flushed.
type committing struct{ *ae.Writer }

func (c committing) Commit(ctx context.Context) error { return c.Flush(ctx) }

// The sinks of the package pass the test for sinks.
func TestSinksConform(t *testing.T) {
	writing := ae.WriterOptions{BufferSize: 512}
	delta := func(ev ae.Event) bool { info, _ := ev.Kind().Info(); return info.Droppable }
	for name, tt := range map[string]struct {
		sink   func(io.Writer) ae.Sink
		omits  func(ae.Event) bool
		except []string
	}{
		"Writer":               {sink: func(w io.Writer) ae.Sink { return ae.NewWriter(w, ae.WriterOptions{}) }},
		"Writer with a buffer": {sink: func(w io.Writer) ae.Sink { return ae.NewWriter(w, writing) }},
		"Buffered": {sink: func(w io.Writer) ae.Sink { return ae.Buffered(ae.NewWriter(w, writing), 4, ae.OverflowBlock) },
			except: []string{"Commit"}}, // a Writer has none
		"Buffered with commits": {sink: func(w io.Writer) ae.Sink {
			return ae.Buffered(committing{ae.NewWriter(w, writing)}, 1<<10, ae.OverflowDropDeltas)
		}},
		"SkipReplayed": {sink: func(w io.Writer) ae.Sink { return ae.SkipReplayed(ae.NewWriter(w, writing)) }},
		"BestEffort": {sink: func(w io.Writer) ae.Sink {
			return ae.BestEffort(ae.Buffered(ae.NewWriter(w, writing), 4, ae.OverflowBlock))
		}},
		"WithoutDeltas": {sink: func(w io.Writer) ae.Sink { return ae.WithoutDeltas(ae.NewWriter(w, writing)) }, omits: delta},
	} {
		t.Run(name, func(t *testing.T) {
			var last *page
			eventtest.SinkTest{
				New:    func(testing.TB) ae.Sink { last = new(page); return tt.sink(last) },
				Events: func(t testing.TB, _ ae.Sink) []ae.Event { return last.events(t) },
				Omits:  tt.omits,
				Except: tt.except,
				Broken: func(testing.TB) ae.Sink { return tt.sink(brokenPage{}) },
			}.Run(t)
		})
	}
}

func TestOpenFileConforms(t *testing.T) {
	var path string
	eventtest.SinkTest{
		New: func(t testing.TB) ae.Sink {
			path = filepath.Join(t.TempDir(), "run.jsonl")
			w, err := ae.OpenFile(path, ae.WriterOptions{})
			require.NoError(t, err)
			return w
		},
		Events: func(t testing.TB, _ ae.Sink) []ae.Event {
			text, err := os.ReadFile(path)
			require.NoError(t, err)
			return eventtest.ReadLog(t, bytes.NewReader(text), ae.ReaderOptions{}).Events()
		},
	}.Run(t)
}
