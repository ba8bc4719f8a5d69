package runstore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/internal/jsonwire"
)

// A Claimer is a [Store] that gives a run to one worker at a time: if several workers find an
// interrupted run, one goes on with it. [Worker] is made of one, and is the part that
// programs use. [File], [Memory] and the stores of modules pgstore and natsstore are Claimers.
// Function Claims of package runstoretest tests the promises that are made here.
//
// The store measures leases by its own clock. Whether an append is accepted does not depend on a
// clock: the store compares the token of the append with the token of the latest claim.
type Claimer interface {
	Store
	// Claim claims a run, renews a claim or releases it, and returns the claim as it is then.
	//
	// Without a token it claims the run c.RunID for c.Worker, for the time c.Lease. The store need
	// not know the run: a worker claims a run before it begins it. While another claim of the run
	// is neither released nor older than its lease, the error is a [*ClaimError], also for a
	// worker of the same name. It wraps [ErrEnded] if the run has ended. A claim that is given
	// ends the one before.
	//
	// With the token of a claim it renews it for c.Lease from now on, also if its lease has passed
	// and no other worker has claimed the run meanwhile. Otherwise the error is a [*ClaimError].
	//
	// With a token and the lease 0 it releases the claim. It does nothing if the claim is lost.
	//
	// After any other error a claim may have been given, which ends with its lease.
	Claim(ctx context.Context, c Claim) (Claim, error)
	// AppendClaimed is Append for the worker that has a claim of c.RunID. The error is a
	// [*ClaimError], and nothing is written, once another worker has claimed the run or the claim
	// was released, also if these very events are in the store. Append returns that error while
	// a run has a claim that was not released. Both do so without entries, too: [Worker] asks who
	// has a run in this way.
	AppendClaimed(ctx context.Context, c Claim, expect uint64, entries ...Entry) error
}

// A Claim is the right of a worker to write a run.
type Claim struct {
	RunID  string        // the run
	Worker string        // a name for people, such as the host and the process. It need not be unique
	Lease  time.Duration // how long the claim lasts unless it is renewed. Stores may round it up to seconds
	Token  uint64        // it rises with the claims of a run. 0 means that no claim was given
	Until  time.Time     // the end of the lease by the store's clock
}

// ErrClaimed means that a run belongs to another worker.
var ErrClaimed = errors.New("runstore: the run belongs to another worker")

// ErrEnded means that a run has ended, so that no worker can claim it.
var ErrEnded = errors.New("runstore: the run has ended")

// A ClaimError reports that the worker has no claim of the run. It wraps [ErrClaimed] and
// [agentevents.ErrFenced].
type ClaimError struct {
	RunID  string    // the run
	Worker string    // the worker that has the run; "" if no worker has it, or the store was not asked
	Until  time.Time // the end of its lease by the store's clock; zero if it is not known
}

// Error names the worker.
func (e *ClaimError) Error() string {
	run := jsonwire.Brief(e.RunID)
	switch {
	case e.Worker == "":
		return fmt.Sprintf("runstore: run %s: the claim has ended, or there was none", run)
	case e.Until.IsZero():
		return fmt.Sprintf("runstore: run %s belongs to worker %s", run, jsonwire.Brief(e.Worker))
	}
	return fmt.Sprintf("runstore: run %s belongs to worker %s until %s",
		run, jsonwire.Brief(e.Worker), e.Until.UTC().Format(time.RFC3339Nano))
}

// Unwrap returns [ErrClaimed] and [agentevents.ErrFenced].
func (e *ClaimError) Unwrap() []error { return []error{ErrClaimed, agentevents.ErrFenced} }

// CheckClaim returns why the argument of Claim makes no sense: no run id, no worker, a negative
// lease, or neither a token nor a lease. It is for stores.
func CheckClaim(c Claim) error {
	switch {
	case c.RunID == "":
		return errors.New("runstore: a claim needs a run id")
	case c.Worker == "":
		return fmt.Errorf("runstore: the claim of run %s needs the name of a worker", jsonwire.Brief(c.RunID))
	case c.Lease < 0 || c.Lease == 0 && c.Token == 0:
		return fmt.Errorf("runstore: the claim of run %s has a lease of %v, legal: more than 0",
			jsonwire.Brief(c.RunID), c.Lease)
	}
	return nil
}

// claims are the claims of a store that one process has for itself. A claim needs no file: when the
// process has ended, so have its workers. The store guards them. The zero claims are empty.
type claims struct {
	last uint64 // the highest token
	runs map[string]Claim
}

// change is Claim of a store.
func (cs *claims) change(c Claim, ended bool) (Claim, error) {
	now := time.Now()
	has, claimed := cs.runs[c.RunID]
	switch {
	case c.Token != 0 && c.Lease == 0:
		if has.Token == c.Token {
			delete(cs.runs, c.RunID)
		}
		return c, nil
	case c.Token != 0 && has.Token != c.Token, c.Token == 0 && claimed && now.Before(has.Until):
		return c, &ClaimError{c.RunID, has.Worker, has.Until}
	case c.Token == 0 && ended:
		return c, fmt.Errorf("%w (run %s)", ErrEnded, jsonwire.Brief(c.RunID))
	case c.Token == 0:
		cs.last++
		c.Token = cs.last
	}
	c.Until = now.Add(c.Lease)
	if cs.runs == nil {
		cs.runs = map[string]Claim{}
	}
	cs.runs[c.RunID] = c
	return c, nil
}

// refuse returns why an append with a token, or 0, is refused.
func (cs *claims) refuse(runID string, token uint64) error {
	if has := cs.runs[runID]; has.Token != token {
		return &ClaimError{runID, has.Worker, has.Until}
	}
	return nil
}
