package runstoretest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/runstore"
)

var claimChecks = []check{
	{"claim", "a run is claimed before it begins, and claims are no events", nil, claim},
	{"claim race", "of workers that claim a run at the same time one has it, and the others hear who", nil, claimRace},
	{"claim lapses", "a claim that is not renewed lasts for its lease, and then another worker may have the run", nil, lapses},
	{"renewed claim", "a claim that is renewed in time lasts, and one that lapsed is renewed if nobody has the run", nil, renewed},
	{"lost claim", "an append of a worker that has lost its claim is refused, with or without its token, and the error names the worker that has the run", nil, lostClaim},
	{"claim between appends", "once a claim is given no append of the worker before comes in", nil, between},
	{"released claim", "a released run may be claimed at once, and written without a claim", nil, released},
	{"ended run", "a run that has ended is not claimed", nil, ended},
	{"bad claim", "claims that make no sense are refused", nil, badClaim},
	{"hostile ids of claims", "runs of any id are claimed apart from each other", nil, hostileClaims},
	{"worker", "a worker renews its claims, and hears it when one is lost", nil, worker},
	{"handed over", "a run goes on with another worker, and the emitter of the one before is closed", nil, handedOver},
	{"closed claims", "a closed store gives no claim", nil, closedClaims},
}

// Claims tests a store that is a [runstore.Claimer], each promise in a subtest. With Second the
// workers have a handle of the store each. Some of the tests wait for leases of a second or two.
func Claims(t *testing.T, f Features) { runChecks(t, f, claimChecks) }

// pair returns two handles of the store, of two workers.
func (k *kit) pair() (a, b runstore.Claimer) {
	k.Helper()
	a, ok := k.s.(runstore.Claimer)
	if !ok {
		k.Fatalf("%T is no Claimer", k.s)
	}
	if k.f.Second == nil {
		return a, a
	}
	return a, k.f.Second(k.T, k.s).(runstore.Claimer)
}

// claims claims a run, and must get it.
func (k *kit) claims(s runstore.Claimer, runID, worker string, lease time.Duration) runstore.Claim {
	k.Helper()
	c, err := s.Claim(k.Context(), runstore.Claim{RunID: runID, Worker: worker, Lease: lease})
	k.ok(err)
	if c.Token == 0 || c.Until.IsZero() || c.RunID != runID || c.Worker != worker {
		k.Fatalf("the claim is %+v", c)
	}
	return c
}

// gets claims a run as soon as that is possible.
func (k *kit) gets(s runstore.Claimer, runID, worker string, lease time.Duration) runstore.Claim {
	k.Helper()
	for range 1500 {
		c, err := s.Claim(k.Context(), runstore.Claim{RunID: runID, Worker: worker, Lease: lease})
		if err == nil {
			return c
		}
		k.isClaimed(err)
		time.Sleep(20 * time.Millisecond)
	}
	k.Fatalf("run %q cannot be claimed", runID)
	return runstore.Claim{}
}

// isClaimed requires the error of a run that belongs to another worker.
func (k *kit) isClaimed(err error) *runstore.ClaimError {
	k.Helper()
	var c *runstore.ClaimError
	if !errors.As(err, &c) || !errors.Is(err, runstore.ErrClaimed) || !errors.Is(err, agentevents.ErrFenced) {
		k.Fatalf("the error is %v, not a ClaimError", err)
	}
	return c
}

// refused requires that an append fails for want of a claim, also without entries, that the errors
// name the worker that has the run, and that the run is as it was.
func (k *kit) refused(s runstore.Claimer, has string, c runstore.Claim, entries ...runstore.Entry) {
	k.Helper()
	before := len(k.lines(s, c.RunID, 0))
	expect := entries[0].Event.Sequence
	for _, entries := range [][]runstore.Entry{nil, entries} {
		if err := k.isClaimed(s.AppendClaimed(k.Context(), c, expect, entries...)); err.Worker != has || err.RunID != c.RunID {
			k.Fatalf("worker %q has the run, the refused append returns: %v", has, err)
		}
	}
	if after := len(k.lines(s, c.RunID, 0)); after != before {
		k.Fatalf("the refused append left %d events, there were %d", after, before)
	}
}

// adds appends under a claim, and commits.
func (k *kit) adds(s runstore.Claimer, c runstore.Claim, entries ...runstore.Entry) {
	k.Helper()
	k.ok(s.AppendClaimed(k.Context(), c, entries[0].Event.Sequence, entries...))
	k.ok(s.Commit(k.Context()))
}

func claim(k *kit) {
	a, b := k.pair()
	c := k.claims(a, "r", "a", time.Minute)
	if _, err := b.Run(k.Context(), "r"); !errors.Is(err, runstore.ErrNoRun) {
		k.Fatalf("the claim made a run: %v", err)
	}
	for info, err := range b.Runs(k.Context(), "") {
		k.Fatalf("the claim made a run: %+v, %v", info, err)
	}
	k.has(b, "r", 0)
	all := k.entries("r", 0, 6)
	k.adds(a, c, all[:2]...)
	k.adds(a, c, all[:2]...) // the acknowledgement was lost
	c, err := a.Claim(k.Context(), runstore.Claim{RunID: "r", Worker: "a", Lease: time.Minute, Token: c.Token})
	k.ok(err)
	k.adds(a, c, all[2:]...)
	for from := range uint64(7) {
		k.has(b, "r", from, all[from:]...)
	}
	k.ok(a.SaveSnapshot(k.Context(), k.fold("r", 6)))
	n := 0
	for e, err := range b.Watch(k.Context(), "r", 1) {
		k.ok(err)
		if n++; e.Line != all[n].Line {
			k.Fatalf("a watch yields %s", e.Line)
		}
		if n == 5 {
			break
		}
	}
	if info := k.info("r"); info.Next != 6 || !info.Begun.Equal(all[0].Event.Time) ||
		!info.Updated.Equal(all[5].Event.Time) {
		k.Fatalf("Run says %+v", info)
	}
}

func claimRace(k *kit) {
	a, b := k.pair()
	k.add(k.s, k.entries("r", 0, 1)...)
	var all sync.WaitGroup
	var mu sync.Mutex
	won, heard := "", map[string]bool{}
	for i := range 8 {
		name, s := fmt.Sprint("worker ", i), a
		if i%2 == 1 {
			s = b
		}
		all.Go(func() {
			c, err := s.Claim(k.Context(), runstore.Claim{RunID: "r", Worker: name, Lease: time.Minute})
			var claimed *runstore.ClaimError
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil && won == "" && c.Worker == name:
				won = name
			case err == nil:
				k.Errorf("%s and %s have the run", won, name)
			case !errors.As(err, &claimed):
				k.Error(err)
			default:
				heard[claimed.Worker] = true
			}
		})
	}
	all.Wait()
	if won == "" || len(heard) != 1 || !heard[won] {
		k.Fatalf("%q has the run, the others heard %v", won, heard)
	}
	_, err := b.Claim(k.Context(), runstore.Claim{RunID: "r", Worker: won, Lease: time.Minute})
	if c := k.isClaimed(err); c.Worker != won || c.Until.IsZero() || c.RunID != "r" {
		k.Fatalf("another worker of the same name hears %+v", c)
	}
}

func lapses(k *kit) {
	a, b := k.pair()
	k.add(k.s, k.entries("r", 0, 1)...)
	first := k.claims(a, "r", "a", time.Second)
	second := k.gets(b, "r", "b", time.Minute)
	if second.Token <= first.Token {
		k.Errorf("the later claim has the token %d, the one before %d", second.Token, first.Token)
	}
	// Stores may count seconds.
	if given := second.Until.Add(-time.Minute); given.Before(first.Until.Add(-500 * time.Millisecond)) {
		k.Errorf("the second claim was given at %v, the first one lasts until %v", given, first.Until)
	}
	_, err := a.Claim(k.Context(), runstore.Claim{RunID: "r", Worker: "a", Lease: time.Minute})
	if k.isClaimed(err).Worker != "b" {
		k.Errorf("the first worker hears %v", err)
	}
}

func renewed(k *kit) {
	a, b := k.pair()
	k.add(k.s, k.entries("r", 0, 1)...)
	c := k.claims(a, "r", "a", 2*time.Second)
	before := c.Until
	for range 6 {
		time.Sleep(400 * time.Millisecond)
		_, err := b.Claim(k.Context(), runstore.Claim{RunID: "r", Worker: "b", Lease: time.Minute})
		k.isClaimed(err)
		again, err := a.Claim(k.Context(), c)
		k.ok(err)
		if again.Token != c.Token || again.Until.Before(before) {
			k.Fatalf("the renewed claim is %+v, it was %+v until %v", again, c, before)
		}
		before = again.Until
	}
	time.Sleep(2500 * time.Millisecond)
	again, err := a.Claim(k.Context(), c) // nobody else wants it
	k.ok(err)
	k.adds(a, again, k.entries("r", 1, 1)...)
	k.gets(b, "r", "b", time.Minute)
	_, err = a.Claim(k.Context(), c)
	k.isClaimed(err)
	_, err = b.Claim(k.Context(), c) // its token does not help another handle
	k.isClaimed(err)
}

func lostClaim(k *kit) {
	a, b := k.pair()
	first := k.claims(a, "r", "a", time.Second)
	k.adds(a, first, k.entries("r", 0, 2)...)
	k.isClaimed(b.Append(k.Context(), "r", 2, k.entries("r", 2, 1)...))
	second := k.gets(b, "r", "b", time.Minute)
	k.refused(a, "b", first, k.entries("r", 2, 1)...)
	k.refused(a, "b", runstore.Claim{RunID: "r"}, k.entries("r", 2, 1)...)
	k.refused(a, "b", first, k.entries("r", 1, 2)...)
	_, err := a.Claim(k.Context(), runstore.Claim{RunID: "r", Worker: "a", Token: first.Token}) // which releases nothing
	k.ok(err)
	k.refused(a, "b", first, k.entries("r", 2, 1)...)
	k.adds(b, second, k.entries("r", 2, 2)...)
	k.refused(a, "b", first, k.entries("r", 4, 1)...)
	k.has(a, "r", 0, k.entries("r", 0, 4)...)
}

// between has a worker append as fast as it can, until another one has claimed its run.
func between(k *kit) {
	a, b := k.pair()
	for _, id := range []string{"r", "s"} {
		first := k.claims(a, id, "a", time.Second)
		ended := make(chan error)
		go func() {
			for seq := uint64(0); ; seq++ {
				if err := a.AppendClaimed(k.Context(), first, seq, k.entries(id, seq, 1)...); err != nil {
					ended <- err
					return
				}
			}
		}()
		second := k.gets(b, id, "b", time.Minute)
		n := uint64(len(k.lines(b, id, 0)))
		k.isClaimed(<-ended)
		if after := uint64(len(k.lines(b, id, 0))); after != n || n == 0 {
			k.Fatalf("%d events when the claim is given, and %d later", n, after)
		}
		k.adds(b, second, k.entries(id, n, 1)...)
	}
}

func released(k *kit) {
	a, b := k.pair()
	first := k.claims(a, "r", "a", time.Minute)
	k.adds(a, first, k.entries("r", 0, 2)...)
	release := func(s runstore.Claimer, c runstore.Claim) {
		c.Lease = 0
		_, err := s.Claim(k.Context(), c)
		k.ok(err)
	}
	release(a, first)
	release(a, first)
	k.refused(a, "", first, k.entries("r", 2, 1)...)
	_, err := a.Claim(k.Context(), first)
	k.isClaimed(err)
	k.add(a, k.entries("r", 2, 1)...)
	second := k.claims(b, "r", "b", time.Minute)
	k.refused(a, "b", runstore.Claim{RunID: "r"}, k.entries("r", 3, 1)...)
	k.adds(b, second, k.entries("r", 3, 1)...)
	release(b, second)
	k.refused(a, "", first, k.entries("r", 4, 1)...)
	k.add(a, k.entries("r", 4, 1)...)
	k.has(a, "r", 0, k.entries("r", 0, 5)...)

	release(a, k.claims(a, "new", "a", time.Minute))
	k.adds(b, k.claims(b, "new", "b", time.Minute), k.entries("new", 0, 1)...)
	release(a, k.claims(a, "newer", "a", time.Minute))
	k.add(b, k.entries("newer", 0, 1)...)
}

func ended(k *kit) {
	a, b := k.pair()
	c := k.claims(a, "r", "a", time.Minute)
	k.adds(a, c, k.entry("r", 0, &agentevents.RunStarted{}), k.entry("r", 1, &agentevents.RunCompleted{}))
	release := c
	release.Lease = 0
	_, err := a.Claim(k.Context(), release)
	k.ok(err)
	_, err = b.Claim(k.Context(), runstore.Claim{RunID: "r", Worker: "b", Lease: time.Minute})
	if !errors.Is(err, runstore.ErrEnded) {
		k.Fatalf("the claim of a run that has ended returns %v, not ErrEnded", err)
	}
	if _, err := b.Claim(k.Context(), runstore.Claim{RunID: "other", Worker: "b", Lease: time.Minute}); err != nil {
		k.Fatal(err)
	}
}

func badClaim(k *kit) {
	a, _ := k.pair()
	for name, c := range map[string]runstore.Claim{
		"without a run":         {Worker: "a", Lease: time.Minute},
		"without a worker":      {RunID: "r", Lease: time.Minute},
		"without a lease":       {RunID: "r", Worker: "a"},
		"with a negative lease": {RunID: "r", Worker: "a", Lease: -1},
		"with a negative one":   {RunID: "r", Worker: "a", Lease: -1, Token: 1},
	} {
		if _, err := a.Claim(k.Context(), c); err == nil || errors.Is(err, runstore.ErrClaimed) {
			k.Errorf("a claim %s returns %v", name, err)
		}
	}
	made := runstore.Claim{RunID: "r", Worker: "a", Lease: time.Minute, Token: 99}
	_, err := a.Claim(k.Context(), made)
	k.isClaimed(err)
	k.refused(a, "", made, k.entries("r", 0, 1)...)
	k.claims(a, "r", "a", time.Minute)
}

func hostileClaims(k *kit) {
	a, b := k.pair()
	var claims []runstore.Claim
	ids := []string{".", "a/b", "*", ">", " ", "A", "a", "é", "'; DROP TABLE runs",
		"\x00", "a\nb", strings.Repeat("x", 300), strings.Repeat("x", 301)}
	for _, id := range ids {
		claims = append(claims, k.claims(a, id, "worker \x00 \n "+id, time.Minute))
	}
	for i, id := range ids {
		_, err := b.Claim(k.Context(), runstore.Claim{RunID: id, Worker: "b", Lease: time.Minute})
		if c := k.isClaimed(err); c.Worker != claims[i].Worker || c.RunID != id {
			k.Errorf("run %q belongs to %q", c.RunID, c.Worker)
		}
		k.adds(a, claims[i], k.entries(id, 0, 1)...)
	}
}

// newWorker returns a worker that the test closes.
func (k *kit) newWorker(s runstore.Claimer, name string, lease time.Duration) *runstore.Worker {
	k.Helper()
	w, err := runstore.NewWorker(s, name, lease)
	k.ok(err)
	k.Cleanup(func() {
		if err := w.Close(); err != nil {
			k.Error(err)
		}
	})
	return w
}

func worker(k *kit) {
	a, b := k.pair()
	w := k.newWorker(a, "a", time.Second)
	k.isClaimed(w.Append(k.Context(), "r", 0, k.entries("r", 0, 1)...))
	ctx, err := w.Claim(k.Context(), "r")
	k.ok(err)
	k.ok(w.Append(k.Context(), "r", 0, k.entries("r", 0, 1)...))
	for range 8 { // longer than the lease
		time.Sleep(200 * time.Millisecond)
		_, err := b.Claim(k.Context(), runstore.Claim{RunID: "r", Worker: "b", Lease: time.Minute})
		k.isClaimed(err)
	}
	k.ok(ctx.Err())
	k.ok(w.Append(k.Context(), "r", 1, k.entries("r", 1, 1)...))
	k.ok(w.Release(k.Context(), "r"))
	k.ok(w.Release(k.Context(), "r"))
	if !errors.Is(context.Cause(ctx), runstore.ErrClaimed) {
		k.Errorf("the context of a released run ends with %v", context.Cause(ctx))
	}
	hears := func(worker string) {
		k.Helper()
		if err := k.isClaimed(w.Append(k.Context(), "r", 2, k.entries("r", 2, 1)...)); err.Worker != worker {
			k.Errorf("worker %q has the run, the worker before hears: %v", worker, err)
		}
	}
	hears("")
	other := k.newWorker(b, "b", time.Minute)
	lost, err := other.Claim(k.Context(), "r")
	k.ok(err)
	hears("b")
	k.ok(other.Close())
	hears("")
	if !errors.Is(context.Cause(lost), runstore.ErrClaimed) {
		k.Errorf("the context of a closed worker ends with %v", context.Cause(lost))
	}
	_, err = w.Claim(k.Context(), "r")
	k.ok(err)
}

func handedOver(k *kit) {
	a, b := k.pair()
	ctx := k.Context()
	first := k.claims(a, "r", "a", time.Second)
	stopped := stoppedWorker{a, first} // it renews nothing
	em, _ := k.emitter(stopped)
	run, err := em.Run("r")
	k.ok(err)
	k.ok(run.Emit(ctx, &agentevents.RunStarted{}))
	k.ok(run.Emit(ctx, &agentevents.StatePatched{Path: "x", Op: "set", Value: "1"}))
	k.gets(b, "r", "c", time.Second) // and so does another one
	w := k.newWorker(b, "b", time.Minute)
	for range 1500 {
		if ctx, err = w.Claim(k.Context(), "r"); err == nil {
			break
		}
		k.isClaimed(err)
		time.Sleep(20 * time.Millisecond)
	}
	k.ok(err)
	restored, err := runstore.Restore(ctx, w, "r", agentevents.FoldOptions{})
	k.ok(err)
	if err := run.Emit(ctx, &agentevents.RunCompleted{}); !errors.Is(err, agentevents.ErrFenced) ||
		!errors.Is(err, runstore.ErrClaimed) {
		k.Fatalf("the worker that lost its run records an event: %v", err)
	}
	next, _ := k.emitter(w)
	again, err := next.Resume(restored.Snapshot)
	k.ok(err)
	k.ok(again.Emit(ctx, &agentevents.RunResumed{}))
	k.ok(again.Emit(ctx, &agentevents.RunCompleted{}))
	k.ok(w.Release(ctx, "r"))
	if n := len(k.lines(b, "r", 0)); n != 4 {
		k.Fatalf("the run has %d events, want 4", n)
	}
}

// A stoppedWorker appends under a claim for ever.
type stoppedWorker struct {
	runstore.Claimer
	claim runstore.Claim
}

func (s stoppedWorker) Append(ctx context.Context, _ string, expect uint64, entries ...runstore.Entry) error {
	return s.AppendClaimed(ctx, s.claim, expect, entries...)
}

func closedClaims(k *kit) {
	c, ok := k.s.(io.Closer)
	if !ok {
		k.Skip("the store has no Close")
	}
	a, _ := k.pair()
	has := k.claims(a, "r", "a", time.Minute)
	k.ok(c.Close())
	if _, err := a.Claim(k.Context(), has); !errors.Is(err, agentevents.ErrClosed) {
		k.Errorf("Claim of a closed store returns %v, not ErrClosed", err)
	}
	if err := a.AppendClaimed(k.Context(), has, 0, k.entries("r", 0, 1)...); !errors.Is(err, agentevents.ErrClosed) {
		k.Errorf("AppendClaimed to a closed store returns %v, not ErrClosed", err)
	}
}
