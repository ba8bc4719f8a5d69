package runstore_test

import (
	"context"
	"errors"
	"iter"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	ae "github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/runstore"
	"github.com/agentevents/agentevents/runstore/runstoretest"
)

// brokenEnv has TestBroken be the test of the store that it names.
const brokenEnv = "AGENTEVENTS_BROKEN_STORE"

// broken are stores that break a promise, and the checks of the kit that say so.
var broken = []struct {
	name  string
	store func() runstore.Store
	fails string
}{
	{"none", func() runstore.Store { return new(runstore.Memory) }, ""},
	{"takes everything", func() runstore.Store { return &greedy{} }, "expected sequence"},
	{"begins runs again", func() runstore.Store { return &beginsAgain{} }, "known run"},
	{"knows no repetition", func() runstore.Store { return &forgetful{} }, "repeated append"},
	{"compares ids only", func() runstore.Store { return &byID{} }, "changed append"},
	{"loads one too few", func() runstore.Store { return &fromNext{} }, "load"},
	{"watches no more", func() runstore.Store { return &impatient{} }, "watch"},
	{"keeps any snapshot", func() runstore.Store { return &anySnapshot{saved: map[string]*ae.RunSnapshot{}} }, "snapshots"},
	{"ignores contexts", func() runstore.Store { return &deaf{} }, "cancelled"},
	{"gives every claim", func() runstore.Store { return &generous{} }, "claim race"},
	{"ends claims early", func() runstore.Store { return &hasty{} }, "renewed claim"},
	{"appends for anybody", func() runstore.Store { return &unfenced{} }, "lost claim"},
	{"names nobody", func() runstore.Store { return &nameless{} }, "lost claim"},
}

type greedy struct{ runstore.Memory }

func (s *greedy) Append(ctx context.Context, id string, expect uint64, entries ...runstore.Entry) error {
	if info, err := s.Run(ctx, id); err == nil && expect > info.Next {
		expect = info.Next
	} else if err != nil {
		expect = 0
	}
	return s.Memory.Append(ctx, id, expect, entries...)
}

type beginsAgain struct{ runstore.Memory }

func (s *beginsAgain) Append(ctx context.Context, id string, expect uint64, entries ...runstore.Entry) error {
	err := s.Memory.Append(ctx, id, expect, entries...)
	if expect == 0 && errors.Is(err, ae.ErrFenced) {
		return nil
	}
	return err
}

type forgetful struct{ runstore.Memory }

func (s *forgetful) Append(ctx context.Context, id string, expect uint64, entries ...runstore.Entry) error {
	if info, err := s.Run(ctx, id); err == nil && expect != info.Next {
		return &runstore.ConflictError{RunID: id, Expect: expect, Next: info.Next}
	}
	return s.Memory.Append(ctx, id, expect, entries...)
}

type byID struct{ runstore.Memory }

func (s *byID) Append(ctx context.Context, id string, expect uint64, entries ...runstore.Entry) error {
	err := s.Memory.Append(ctx, id, expect, entries...)
	if !errors.Is(err, ae.ErrFenced) {
		return err
	}
	for e := range s.Load(ctx, id, expect) {
		if e.Event.ID != entries[0].Event.ID {
			return err
		}
		return nil
	}
	return err
}

type fromNext struct{ runstore.Memory }

func (s *fromNext) Load(ctx context.Context, id string, from uint64) iter.Seq2[runstore.Entry, error] {
	if from > 0 {
		from++
	}
	return s.Memory.Load(ctx, id, from)
}

type impatient struct{ runstore.Memory }

func (s *impatient) Watch(ctx context.Context, id string, from uint64) iter.Seq2[runstore.Entry, error] {
	return s.Load(ctx, id, from)
}

type anySnapshot struct {
	runstore.Memory
	saved map[string]*ae.RunSnapshot
}

func (s *anySnapshot) SaveSnapshot(_ context.Context, snapshot *ae.RunSnapshot) error {
	s.saved[snapshot.RunID] = snapshot
	return nil
}

func (s *anySnapshot) LoadSnapshot(_ context.Context, id string) (*ae.RunSnapshot, error) {
	if s.saved[id] == nil {
		return nil, runstore.ErrNoSnapshot
	}
	return s.saved[id], nil
}

type deaf struct{ runstore.Memory }

func (s *deaf) Load(_ context.Context, id string, from uint64) iter.Seq2[runstore.Entry, error] {
	return s.Memory.Load(context.Background(), id, from)
}

type generous struct{ runstore.Memory }

func (s *generous) Claim(ctx context.Context, c runstore.Claim) (runstore.Claim, error) {
	has, err := s.Memory.Claim(ctx, c)
	if errors.Is(err, runstore.ErrClaimed) {
		return c, nil
	}
	return has, err
}

type hasty struct{ runstore.Memory }

func (s *hasty) Claim(ctx context.Context, c runstore.Claim) (runstore.Claim, error) {
	c.Lease /= 8
	return s.Memory.Claim(ctx, c)
}

type unfenced struct{ runstore.Memory }

func (s *unfenced) AppendClaimed(ctx context.Context, c runstore.Claim, expect uint64, entries ...runstore.Entry) error {
	return s.Append(ctx, c.RunID, expect, entries...)
}

type nameless struct{ runstore.Memory }

func (s *nameless) AppendClaimed(ctx context.Context, c runstore.Claim, expect uint64, entries ...runstore.Entry) error {
	err := s.Memory.AppendClaimed(ctx, c, expect, entries...)
	if errors.Is(err, runstore.ErrClaimed) {
		return &runstore.ClaimError{RunID: c.RunID}
	}
	return err
}

// The kit finds stores that break a promise.
func TestBroken(t *testing.T) {
	if name := os.Getenv(brokenEnv); name != "" {
		for _, b := range broken {
			if b.name == name {
				f := runstoretest.Features{Open: func(testing.TB) runstore.Store { return b.store() }}
				runstoretest.Run(t, f)
				runstoretest.Claims(t, f)
			}
		}
		return
	}
	failed := regexp.MustCompile(`--- FAIL: TestBroken/(\S+)`)
	for _, b := range broken {
		t.Run(b.name, func(t *testing.T) {
			t.Parallel()
			// A check may hang or panic with such a store, so it gets only the ones that do not.
			run := "^TestBroken$"
			if b.fails != "" {
				run += "/^" + strings.ReplaceAll(b.fails, " ", "_") + "$"
			}
			c := exec.Command(os.Args[0], "-test.run="+run, "-test.timeout=2m")
			c.Env = append(os.Environ(), brokenEnv+"="+b.name)
			out, err := c.CombinedOutput()
			if b.fails == "" {
				require.NoError(t, err, "%s", out)
				return
			}
			require.Error(t, err, "the kit finds nothing")
			found := failed.FindStringSubmatch(string(out))
			require.NotNil(t, found, "%s", out)
			require.Equal(t, strings.ReplaceAll(b.fails, " ", "_"), found[1])
			require.Contains(t, string(out), "the promise: ")
		})
	}
}

func TestASinkWithoutAStore(t *testing.T) {
	for _, s := range []ae.Sink{(*runstore.Sink)(nil), &runstore.Sink{}, runstore.NewSink(nil), runstore.NewSinkWithDeltas(nil)} {
		_, err := ae.NewEmitter(ae.EmitterOptions{Sinks: []ae.Sink{s}})
		require.ErrorContains(t, err, "it comes from runstore.NewSink")
	}
}
