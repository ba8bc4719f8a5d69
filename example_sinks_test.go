package agentevents_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/agentevents/agentevents"
)

// A webhook is a slow sink: it answers when the far end does.
type webhook struct {
	called  chan struct{}
	answers chan struct{}
}

func (w webhook) WriteEvent(_ context.Context, ev agentevents.Event) error {
	w.called <- struct{}{}
	<-w.answers
	fmt.Println("sent:", ev.Payload.(*agentevents.TextCompleted).Text)
	return nil
}

// Buffered keeps a slow sink from slowing the run. When its buffer is full this
// one drops the newest event, and says so.
func ExampleBuffered() {
	ctx := context.Background()
	slow := webhook{make(chan struct{}, 3), make(chan struct{})}
	buffered := agentevents.Buffered(slow, 2, agentevents.OverflowDropNewest)
	emitter, err := agentevents.NewEmitter(agentevents.EmitterOptions{
		Sinks: []agentevents.Sink{agentevents.BestEffort(buffered)},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	run, err := emitter.Run("")
	if err != nil {
		fmt.Println(err)
		return
	}

	say := func(text string) {
		if err := run.Emit(ctx, &agentevents.TextCompleted{Text: text}); err != nil {
			fmt.Println(err)
		}
	}
	say("one")
	<-slow.called // the sink is busy with it
	say("two")
	say("three")
	say("four") // two are waiting: there is no room
	fmt.Println("recorded four, dropped", buffered.Dropped())

	close(slow.answers)
	stop, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	err = emitter.Close(stop)
	fmt.Println("Close tells:", errors.Is(err, agentevents.ErrDropped))
	// Output:
	// recorded four, dropped 1
	// sent: one
	// sent: two
	// sent: three
	// Close tells: true
}

// A perRun sink keeps the log of every run apart. It is called by the
// goroutines of several runs at the same time.
type perRun struct {
	mu   sync.Mutex
	logs map[string]*strings.Builder
}

// WriteEvent is for callers that have no line. The emitter calls WriteLine.
func (p *perRun) WriteEvent(ctx context.Context, ev agentevents.Event) error {
	line, err := ev.AppendJSON(nil)
	if err != nil {
		return err
	}
	return p.WriteLine(ctx, ev, line)
}

// WriteLine copies the line: its memory is used again after the call.
func (p *perRun) WriteLine(_ context.Context, ev agentevents.Event, line []byte) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	log := p.logs[ev.RunID]
	if log == nil {
		log = new(strings.Builder)
		p.logs[ev.RunID] = log
	}
	log.Write(line)
	log.WriteByte('\n')
	return nil
}

// A LineSink gets the event's line as well. The emitter encodes an event once
// for all sinks that want its line.
func ExampleLineSink() {
	ctx := context.Background()
	sink := &perRun{logs: map[string]*strings.Builder{}}
	emitter, err := agentevents.NewEmitter(agentevents.EmitterOptions{Sinks: []agentevents.Sink{sink}})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, id := range []string{"a", "b"} {
		run, err := emitter.Run(id)
		if err != nil {
			fmt.Println(err)
			return
		}
		err = errors.Join(
			run.Emit(ctx, &agentevents.RunStarted{Name: "run " + id}),
			run.Emit(ctx, &agentevents.RunCompleted{}))
		if err != nil {
			fmt.Println(err)
			return
		}
	}
	if err := emitter.Close(ctx); err != nil {
		fmt.Println(err)
		return
	}

	fold := agentevents.NewFold(agentevents.FoldOptions{})
	for ev, err := range agentevents.NewReader(strings.NewReader(sink.logs["b"].String()), agentevents.ReaderOptions{}).All() {
		if err != nil {
			fmt.Println(err)
			return
		}
		fold.Apply(ev)
	}
	fmt.Println(len(sink.logs), "logs")
	fmt.Println(fold.Snapshot().Name, fold.Snapshot().Status)
	// Output:
	// 2 logs
	// run b completed
}
