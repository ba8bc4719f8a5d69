package live_test

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	ae "github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect/agui"
	"github.com/agentevents/agentevents/live"
)

// longest is the length of a text that just fits on a line.
const longest = 15 << 20

// inUse returns the memory that is in use, of the heap and of stacks.
func inUse() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC() // the second one empties pools
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse)
}

// A reader that has read a long line, and waits for more, costs little: the line is there
// once, and no reader keeps it, or a buffer of its length.
func TestWaitingReadersCostLittle(t *testing.T) {
	const most = 96 << 10
	const mark = "the end of the line"
	encoded := func(page *live.Feed) http.Handler {
		return page.EncodedHandler(func() live.Encoder { return agui.NewEncoder(agui.EncoderOptions{Fast: true}) })
	}
	for name, test := range map[string]struct {
		readers int64
		handler func(*live.Feed) http.Handler
	}{
		"in process": {40, nil}, "events": {40, (*live.Feed).EventsHandler}, "encoded": {8, encoded},
	} {
		t.Run(name, func(t *testing.T) {
			handler := test.handler
			page := live.New(live.Options{KeepBytes: 4 * longest})
			em, err := ae.NewEmitter(ae.EmitterOptions{Lifecycle: ae.LifecycleDerived, Redaction: &ae.Policy{Off: true}, Sinks: []ae.Sink{page}})
			require.NoError(t, err)
			run, err := em.Run("r")
			require.NoError(t, err)
			a := run.Agent("a")
			emit(t, run, &ae.RunStarted{})
			require.NoError(t, a.Emit(t.Context(), &ae.AgentStarted{}))
			c, err := a.Call(t.Context(), &ae.ToolCalled{ToolID: "t"})
			require.NoError(t, err)
			require.NoError(t, c.Return(t.Context(), ae.JSON(`"`+strings.Repeat(`line\n`, longest/len(`line\n`))+mark+`"`)))

			read := func(ctx context.Context, seen func()) { // until the context ends
				for ev, err := range page.Events(ctx, "r", 0) {
					if err != nil {
						return
					}
					if p, ok := ev.Payload.(*ae.ToolReturned); ok && strings.HasSuffix(string(p.Result), mark+`"`) {
						seen()
					}
				}
			}
			if handler != nil {
				server := httptest.NewServer(handler(page))
				t.Cleanup(server.Close)
				read = func(ctx context.Context, seen func()) { readUntil(ctx, server.Listener.Addr().String(), mark, seen) }
			}

			before := inUse()
			ctx, cancel := context.WithCancel(t.Context())
			var all, done sync.WaitGroup
			defer all.Wait()
			defer cancel()
			for range test.readers {
				done.Add(1)
				all.Go(func() { read(ctx, sync.OnceFunc(done.Done)) })
			}
			done.Wait()
			cost := (inUse() - before) / test.readers
			for range 100 { // the servers of readers that have the end may be in the middle of their work
				if cost < most {
					break
				}
				time.Sleep(50 * time.Millisecond)
				cost = (inUse() - before) / test.readers
			}
			t.Logf("%d bytes a reader", cost)
			require.Less(t, cost, int64(most))
		})
	}
}

// readUntil reads an answer until the context ends, and tells when it has read a text. Its
// side of the connection is small.
func readUntil(ctx context.Context, addr, text string, seen func()) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", addr)
	if err != nil {
		return
	}
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	_, _ = io.WriteString(conn, "GET /?run=r HTTP/1.1\r\nHost: x\r\n\r\n")
	_, _ = io.CopyBuffer(&finder{text: text, found: seen}, struct{ io.Reader }{conn}, make([]byte, 4<<10))
}

// A finder is a writer that looks for a text.
type finder struct {
	text  string
	tail  []byte // of the text so far
	found func()
}

func (f *finder) Write(p []byte) (int, error) {
	all := append(f.tail, p...)
	if bytes.Contains(all, []byte(f.text)) {
		f.found()
	}
	f.tail = append(f.tail[:0:0], all[max(0, len(all)-len(f.text)):]...)
	return len(p), nil
}
