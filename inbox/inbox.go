// Package inbox takes commands of people and programs to the executions of nodes that they
// are for, while a run goes on.
//
// Every command is recorded as it comes ([agentevents.CommandReceived]), also one that is rejected,
// and again when the execution has it ([agentevents.CommandConsumed]). So a fold of the log knows
// the waiting commands, and an inbox goes on from its snapshot. A process that dies between
// [Box.Peek] and [Box.Ack] loses no command: the next one gets it again.
//
// The execution gets a command as it was delivered. The log has it redacted, and cut where it is
// too long for a line; after a resume the execution gets the log's text.
//
// Mirrors: the resume specification, "Command Routing & Prompt Injection".
package inbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"sync"

	"github.com/agentevents/agentevents"
)

// Errors of [Inbox.Deliver]. The command was recorded as rejected, with the reason.
var (
	ErrNoExecution = errors.New("inbox: a send or reply needs the id of an execution (Command.RunID)")
	ErrUnknown     = errors.New("inbox: no execution of this id is open")
	ErrFull        = errors.New("inbox: too many commands are waiting for this execution")
)

// Options configure an [Inbox]. The zero Options are usable.
type Options struct {
	// Size is how many commands may wait for one execution. 0 and below mean 256.
	Size int
	// Snapshot is the snapshot of a run that was resumed: its commands that nobody has consumed
	// wait for their executions, with the texts of the log. Nil means none.
	Snapshot *agentevents.RunSnapshot
}

// An Inbox has the commands of one run that are waiting. Its methods may be called
// concurrently, but not by a sink of the run's emitter, as they record events of the run.
type Inbox struct {
	run  *agentevents.Run
	size int

	mu    sync.Mutex
	boxes map[string]*Box // of executions that are open
	early map[string][]agentevents.InboxItem
}

// New returns an inbox for the run.
func New(run *agentevents.Run, o Options) *Inbox {
	b := &Inbox{run: run, size: cmp.Or(max(0, o.Size), 256), boxes: map[string]*Box{},
		early: map[string][]agentevents.InboxItem{}}
	if o.Snapshot != nil {
		for _, item := range o.Snapshot.Inbox {
			id := item.Command.RunID
			b.early[id] = append(b.early[id], item)
		}
	}
	return b
}

// Open begins to take commands for an execution of a node: the id is Scope.NodeRunID.
// Who opens the box closes it when the execution ends. An execution that is open already
// gets the same box. The box of "" has the commands of types of the runtime's own that name
// no execution, which are for the run.
func (b *Inbox) Open(nodeRunID string) *Box {
	b.mu.Lock()
	defer b.mu.Unlock()
	box := b.boxes[nodeRunID]
	if box == nil {
		if b.boxes == nil {
			b.boxes = map[string]*Box{} // the zero Inbox records nothing
		}
		box = &Box{in: b, id: nodeRunID, waiting: b.early[nodeRunID], changed: make(chan struct{})}
		delete(b.early, nodeRunID)
		b.boxes[nodeRunID] = box
	}
	return box
}

// Deliver records a command, and has it wait for its execution if it is a send or a
// reply, or of a type of the runtime's own and names one. The other commands are for the
// whole run: they are recorded, and the caller does as they ask. Commands of the
// runtime's own types wait in the box of "", if that is open.
//
// A command for an execution is rejected when it names none ([ErrNoExecution]), one that is not
// open ([ErrUnknown]) or one for which too many wait ([ErrFull]): it is recorded as it came, with
// the reason, waits for nobody, and the error comes back. Other errors are the run's; a
// [*agentevents.SinkError] means that the command is recorded and waits.
func (b *Inbox) Deliver(ctx context.Context, c agentevents.Command) error {
	b.mu.Lock()
	defer b.mu.Unlock() // the log has the same order as the box
	waits := c.RunID != "" || b.boxes[""] != nil
	switch c.Type {
	case agentevents.CommandSend, agentevents.CommandReply:
		waits = true
	case agentevents.CommandAbort, agentevents.CommandResume:
		waits = false
	}
	if !waits {
		return b.run.Emit(ctx, &agentevents.CommandReceived{Command: c})
	}
	box := b.boxes[c.RunID]
	var rejected error
	switch {
	case c.RunID == "" && (c.Type == agentevents.CommandSend || c.Type == agentevents.CommandReply):
		rejected = ErrNoExecution
	case box == nil:
		rejected = ErrUnknown
	case len(box.waiting) >= b.size:
		rejected = ErrFull
	}
	if rejected != nil {
		_, err := b.record(ctx, &agentevents.CommandReceived{Command: c, Rejected: rejected.Error()})
		return errors.Join(rejected, err)
	}
	ev, err := b.record(ctx, &agentevents.CommandReceived{Command: c})
	if ev.ID == "" {
		return err // it is not recorded
	}
	box.waiting = append(box.waiting, agentevents.InboxItem{EventID: ev.ID, Command: c})
	box.wake()
	return err
}

func (b *Inbox) record(ctx context.Context, p agentevents.Payload) (agentevents.Event, error) {
	return b.run.Record(ctx, agentevents.Event{Payload: p})
}

// A Box has the commands for one execution.
type Box struct {
	in      *Inbox
	id      string
	waiting []agentevents.InboxItem
	closed  bool
	changed chan struct{} // closed when something has changed; in.mu guards all
}

// wake tells those who wait. in.mu is held.
func (x *Box) wake() {
	close(x.changed)
	x.changed = make(chan struct{})
}

// Receive waits for the next command, records that it is consumed and returns it: a process
// that dies before the agent has it loses it, see [Box.Peek]. It
// returns [io.EOF] when the box is closed, and the error of the context when that ends
// first. A command comes with an error if that it is consumed could not be recorded.
func (x *Box) Receive(ctx context.Context) (agentevents.Command, error) {
	for {
		item, err := x.Peek(ctx)
		if err != nil {
			return item.Command, err
		}
		if taken, err := x.ack(ctx, item.EventID); taken {
			return item.Command, err
		}
	}
}

// Peek waits for the next command and returns it with the id of its event. The command stays
// the next one until [Box.Ack], so a box with several readers needs [Box.Receive]. It has the
// errors of Receive.
func (x *Box) Peek(ctx context.Context) (agentevents.InboxItem, error) {
	if x.in == nil {
		return agentevents.InboxItem{}, agentevents.ErrZeroValue
	}
	for {
		item, changed, err := x.next()
		if changed == nil {
			return item, err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return agentevents.InboxItem{}, ctx.Err()
		}
	}
}

// next returns the next command, or a channel that announces it.
func (x *Box) next() (item agentevents.InboxItem, changed <-chan struct{}, err error) {
	x.in.mu.Lock()
	defer x.in.mu.Unlock()
	switch {
	case len(x.waiting) > 0:
		return x.waiting[0], nil, nil
	case x.closed:
		return item, nil, io.EOF
	}
	return item, x.changed, nil
}

// Ack records that the agent has the command of [Box.Peek]. A command that no longer waits
// changes nothing. The error comes from the run.
func (x *Box) Ack(ctx context.Context, eventID string) error {
	if x.in == nil {
		return agentevents.ErrZeroValue
	}
	_, err := x.ack(ctx, eventID)
	return err
}

// ack takes a command out of the box. It reports false for one that is not in it.
func (x *Box) ack(ctx context.Context, eventID string) (taken bool, err error) {
	x.in.mu.Lock()
	defer x.in.mu.Unlock()
	i := slices.IndexFunc(x.waiting, func(item agentevents.InboxItem) bool { return item.EventID == eventID })
	if i < 0 {
		return false, nil
	}
	x.waiting = slices.Delete(x.waiting, i, i+1)
	_, err = x.in.record(ctx, &agentevents.CommandConsumed{EventID: eventID})
	return true, err
}

// All yields the commands as they come, for a loop that feeds an agent, until the box is
// closed or the context ends. A command is consumed when the body of the loop is done with
// it: if that could not be recorded, the error comes next, without a command.
func (x *Box) All(ctx context.Context) iter.Seq2[agentevents.Command, error] {
	return func(yield func(agentevents.Command, error) bool) {
		for {
			item, err := x.Peek(ctx)
			if errors.Is(err, agentevents.ErrZeroValue) {
				yield(item.Command, err)
				return
			}
			if err != nil {
				return
			}
			more := yield(item.Command, nil)
			if err := x.Ack(ctx, item.EventID); err != nil && (!more || !yield(agentevents.Command{}, err)) || !more {
				return
			}
		}
	}
}

// Waiting returns the number of commands that wait.
func (x *Box) Waiting() int {
	if x.in == nil {
		return 0
	}
	x.in.mu.Lock()
	defer x.in.mu.Unlock()
	return len(x.waiting)
}

// Close ends the box: its execution has ended. Waiting commands have no other receiver: they are
// recorded as consumed, so that they leave the run's inbox, and the error has their number
// ([ErrUnread]). Later commands for the execution are rejected.
func (x *Box) Close(ctx context.Context) error {
	if x.in == nil {
		return agentevents.ErrZeroValue
	}
	x.in.mu.Lock()
	defer x.in.mu.Unlock()
	if x.closed {
		return nil
	}
	x.closed = true
	delete(x.in.boxes, x.id)
	left := x.waiting
	x.waiting = nil
	x.wake()
	var errs []error
	if len(left) > 0 {
		errs = append(errs, fmt.Errorf("%w: %d", ErrUnread, len(left)))
	}
	for _, item := range left {
		if _, err := x.in.record(ctx, &agentevents.CommandConsumed{EventID: item.EventID}); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// ErrUnread means that an execution has ended before it took all its commands.
var ErrUnread = errors.New("inbox: the execution has ended, and commands for it were not read")
