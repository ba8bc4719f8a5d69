// Package deal gives texts to workers by key: texts of one key go to one worker, in
// order. They are handed over in batches, as one by one would take longer than most
// work.
package deal

import (
	"hash/maphash"
	"sync"
	"unsafe"
)

const (
	batchSize  = 256 << 10 // bytes of text that are handed over at a time
	batchAhead = 4         // batches that may wait for a worker
)

// A Dealer deals texts, each with a note of type N. It is not for concurrent use.
type Dealer[N any] struct {
	seed    maphash.Seed
	workers []*worker[N]
	wg      sync.WaitGroup
}

// A worker is a goroutine that works on batches.
type worker[N any] struct {
	work  func(text string, note N)
	in    chan *batch[N]
	back  chan *batch[N] // finished ones, to be filled again; all have room
	out   *batch[N]      // being filled by the dealer
	panic any            // of work
}

// A batch is texts for one worker, in order.
type batch[N any] struct {
	text  []byte // the memory of the texts, which later ones use again
	items []item[N]
}

type item[N any] struct {
	text string
	note N
}

// New returns a dealer with a worker for each function. It must be ended with Wait.
// A text is valid until work returns: a later text uses its memory again.
func New[N any](work ...func(text string, note N)) *Dealer[N] {
	d := &Dealer[N]{seed: maphash.MakeSeed()}
	for _, f := range work {
		w := &worker[N]{
			work: f, in: make(chan *batch[N], batchAhead), back: make(chan *batch[N], batchAhead+2), out: newBatch[N](),
		}
		d.workers = append(d.workers, w)
		d.wg.Go(w.run)
	}
	return d
}

// Deal gives a copy of text to the worker of key.
func (d *Dealer[N]) Deal(key, text []byte, note N) {
	w := d.workers[maphash.Bytes(d.seed, key)%uint64(len(d.workers))]
	b := w.out
	start := len(b.text)
	b.text = append(b.text, text...)
	b.items = append(b.items, item[N]{unsafe.String(unsafe.SliceData(b.text[start:]), len(text)), note})
	if len(b.text) >= batchSize {
		w.in <- b
		select {
		case w.out = <-w.back:
		default:
			w.out = newBatch[N]()
		}
	}
}

// Wait waits until all work is done and ends the workers. A panic of theirs goes on
// in the caller's goroutine, where it can be recovered.
func (d *Dealer[N]) Wait() {
	for _, w := range d.workers {
		w.in <- w.out
		close(w.in)
	}
	d.wg.Wait()
	for _, w := range d.workers {
		if w.panic != nil {
			panic(w.panic)
		}
	}
}

// run works until its channel is closed. After a panic it takes batches without working on them.
func (w *worker[N]) run() {
	for b := range w.in {
		if w.panic == nil {
			w.batch(b)
		}
		b.empty()
		select {
		case w.back <- b:
		default:
		}
	}
}

func (w *worker[N]) batch(b *batch[N]) {
	defer func() { w.panic = recover() }()
	for i := range b.items {
		w.work(b.items[i].text, b.items[i].note)
	}
}

func newBatch[N any]() *batch[N] { return &batch[N]{text: make([]byte, 0, batchSize+batchSize/8)} }

// empty makes b ready to be filled again.
func (b *batch[N]) empty() {
	items := b.items[:0]
	if cap(items) > batchSize/64 { // many short texts
		items = nil
	}
	clear(b.items)
	if cap(b.text) > 2*batchSize { // a long text
		*b = *newBatch[N]()
	}
	b.text, b.items = b.text[:0], items
}
