package servertest

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents/runstore"
	"github.com/agentevents/agentevents/runstore/natsstore"
)

// The benchmarks compare the store with bare publishes to the same server, with the same lines and
// the same expectations:
//
//	go test -bench . -benchtime 5000x -count 5
func BenchmarkAppend(b *testing.B) {
	js := connect(b, cluster(b, 1, "")...)
	for _, size := range []int{1, 64} {
		b.Run(fmt.Sprintf("store/%d", size), func(b *testing.B) {
			s, _ := newStore(b, js, natsstore.Options{})
			var batch []runstore.Entry
			for j := range size {
				batch = append(batch, event(b, "r", uint64(j), 250))
			}
			b.ResetTimer()
			for i := range b.N {
				for j := range batch { // the lines stay: batches that are made before would keep the garbage collector busy
					batch[j].Event.Sequence = uint64(i*size + j)
				}
				if err := s.Append(b.Context(), "r", uint64(i*size), batch...); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(fmt.Sprintf("bare/%d", size), func(b *testing.B) {
			_, o := newStore(b, js, natsstore.Options{})
			var lines []string
			for j := range size {
				lines = append(lines, event(b, "r", uint64(j), 250).Line)
			}
			data := []byte(strings.Join(lines, "\n"))
			last := uint64(0)
			b.ResetTimer()
			for range b.N {
				ack, err := js.PublishMsg(b.Context(), &nats.Msg{Subject: o.Name + ".cg", Data: data}, jetstream.WithExpectLastSequencePerSubject(last))
				if err != nil {
					b.Fatal(err)
				}
				last = ack.Sequence
			}
		})
	}
}

// BenchmarkWatch reports the 99th percentile of the time from the beginning of an append to its
// event in a watch, and to its message in a bare ordered consumer of the same stream.
func BenchmarkWatch(b *testing.B) {
	js := connect(b, cluster(b, 1, "")...)
	s, o := newStore(b, js, natsstore.Options{})
	require.NoError(b, s.Append(b.Context(), "r", 0, event(b, "r", 0, 250)))
	consumer, err := js.OrderedConsumer(b.Context(), o.Name, jetstream.OrderedConsumerConfig{})
	require.NoError(b, err)
	messages, err := consumer.Messages()
	require.NoError(b, err)
	defer messages.Stop()
	watched, bare := make(chan time.Time, b.N+1), make(chan time.Time, b.N+1)
	go func() {
		for range s.Watch(b.Context(), "r", 0) {
			watched <- time.Now()
		}
	}()
	go func() {
		for {
			if _, err := messages.Next(); err != nil {
				return
			}
			bare <- time.Now()
		}
	}()
	<-watched
	<-bare
	var a, c []time.Duration
	b.ResetTimer()
	for seq := range uint64(b.N) {
		e := event(b, "r", seq+1, 250)
		at := time.Now()
		if err := s.Append(b.Context(), "r", seq+1, e); err != nil {
			b.Fatal(err)
		}
		a, c = append(a, (<-watched).Sub(at)), append(c, (<-bare).Sub(at))
	}
	b.ReportMetric(float64(p99(a).Microseconds()), "watch-p99-µs")
	b.ReportMetric(float64(p99(c).Microseconds()), "bare-p99-µs")
}

func key(runID string) string { return base64.RawURLEncoding.EncodeToString([]byte(runID)) }

func p99(all []time.Duration) time.Duration {
	slices.Sort(all)
	return all[(len(all)*99-1)/100]
}

// BenchmarkRuns lists runs page by page.
func BenchmarkRuns(b *testing.B) {
	js := connect(b, cluster(b, 1, "")...)
	s, o := newStore(b, js, natsstore.Options{})
	const n = 100_000
	for i := range n {
		id := fmt.Sprintf("run-%06d", i)
		h := nats.Header{"Agentevents-First": {"0"}, "Agentevents-Next": {"1"}}
		_, err := js.PublishMsgAsync(&nats.Msg{Subject: o.Name + "." + key(id), Data: []byte(event(b, id, 0, 1).Line), Header: h})
		require.NoError(b, err)
		if i%1000 == 999 {
			<-js.PublishAsyncComplete()
		}
	}
	<-js.PublishAsyncComplete()
	b.ResetTimer()
	for range b.N {
		seen := 0
		for after, more := "", true; more; {
			more = false
			page := 0
			for info, err := range s.Runs(b.Context(), after) {
				require.NoError(b, err)
				require.Greater(b, info.RunID, after)
				seen, after, more = seen+1, info.RunID, true
				if page++; page == 1000 {
					break
				}
			}
		}
		require.Equal(b, n, seen)
	}
}
