package agentevents

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// openQuestion waits until a question of the run is open and returns its id.
func openQuestion(t testing.TB, r *Run) (id string) {
	t.Helper()
	require.Eventually(t, func() bool {
		r.s.state.Lock()
		defer r.s.state.Unlock()
		for key := range r.s.m.questions.open {
			id = key.id
		}
		return id != ""
	}, time.Minute, time.Millisecond)
	return id
}

func requireRule(t testing.TB, err error, rule Rule) *RuleError {
	t.Helper()
	var broken *RuleError
	require.ErrorAs(t, err, &broken)
	require.Equal(t, rule, broken.Rule)
	return broken
}

func counted(log *sinkLog, kind Kind) (n int) {
	for _, ev := range log.events {
		if ev.Kind() == kind {
			n++
		}
	}
	return n
}

func TestAsk(t *testing.T) {
	var violations []*RuleError
	r, log := startRun(t, EmitterOptions{OnViolation: func(err *RuleError) { violations = append(violations, err) }})
	a := r.Agent("a")
	require.NoError(t, a.Emit(t.Context(), &AgentStarted{}))
	got := make(chan Approval, 1)
	go func() {
		answer, err := a.Ask(t.Context(), &ApprovalRequested{Action: "push", ToolID: "git", Arguments: `{"to":"main"}`})
		require.NoError(t, err)
		got <- answer
	}()
	id := openQuestion(t, r)
	require.NoError(t, r.Answer(t.Context(), &ApprovalGranted{ApprovalID: id, ApprovedBy: "ann", Feedback: "go"}))
	require.Equal(t, Approval{id, true, "ann", "go"}, <-got)
	for range 2 {
		require.ErrorIs(t, r.Answer(t.Context(), &ApprovalRejected{ApprovalID: id}), ErrAnswered)
	}
	require.ErrorIs(t, r.Answer(t.Context(), &ApprovalGranted{ApprovalID: "none"}), ErrAnswered)
	require.ErrorContains(t, r.Answer(t.Context(), &TextCompleted{}), "is not an answer")
	require.Empty(t, violations)
	again, err := a.Ask(t.Context(), &ApprovalRequested{ApprovalID: id})
	require.NoError(t, err)
	require.True(t, again.Granted, "it is granted, and not used")
	_, err = a.Call(t.Context(), &ToolCalled{ToolID: "git", Arguments: ` { "to" : "\u006dain" } `, ApprovalID: id})
	require.NoError(t, err)
	_, err = a.Call(t.Context(), &ToolCalled{ToolID: "git", Arguments: `{"to":"main"}`, ApprovalID: id})
	requireRule(t, err, RuleApprovalBinds)
	require.Equal(t, 1, counted(log, KindApprovalGranted))
}

func TestAskQuestions(t *testing.T) {
	r, _ := startRun(t, EmitterOptions{})
	a := r.Agent("a")
	require.NoError(t, a.Emit(t.Context(), &AgentStarted{}))
	got := make(chan *ClarificationResolved, 1)
	go func() {
		answer, err := a.AskQuestions(t.Context(), &ClarificationRequested{Questions: []Question{{ID: "q", Question: "Which?"}}})
		require.NoError(t, err)
		got <- answer
	}()
	require.NoError(t, r.Answer(t.Context(), &ClarificationResolved{InterruptID: openQuestion(t, r), Answers: `{"q":"this"}`}))
	require.Equal(t, JSON(`{"q":"this"}`), (<-got).Answers)
}

func TestNobodyAnswers(t *testing.T) {
	for name, c := range map[string]struct {
		end  func(r *Run, a *Agent, call *Call, stop func())
		want error
	}{
		"the time is over":   {func(*Run, *Agent, *Call, func()) { time.Sleep(2 * time.Minute) }, ErrUnanswered},
		"the context ends":   {func(_ *Run, _ *Agent, _ *Call, stop func()) { stop() }, context.Canceled},
		"the call returns":   {func(_ *Run, _ *Agent, c *Call, _ func()) { _ = c.Return(context.Background(), `1`) }, ErrUnanswered},
		"the agent ends":     {func(_ *Run, a *Agent, _ *Call, _ func()) { _ = a.Finish(context.Background(), errors.New("x"), nil) }, ErrUnanswered},
		"the run ends":       {func(r *Run, _ *Agent, _ *Call, _ func()) { _ = r.Finish(context.Background(), errors.New("x")) }, ErrUnanswered},
		"the run is closed":  {func(r *Run, _ *Agent, _ *Call, _ func()) { _ = r.Close() }, ErrClosed},
		"the emitter closes": {func(r *Run, _ *Agent, _ *Call, _ func()) { _ = r.s.e.Close(context.Background()) }, ErrClosed},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, log := startRun(t, EmitterOptions{Clock: time.Now})
				a := r.Agent("a")
				require.NoError(t, a.Emit(t.Context(), &AgentStarted{}))
				call, err := a.Call(t.Context(), &ToolCalled{ToolID: "git"})
				require.NoError(t, err)
				ctx, stop := context.WithCancel(t.Context())
				defer stop()
				errs := make(chan error)
				go func() {
					answer, err := a.Ask(ctx, &ApprovalRequested{CallID: call.ID, Timeout: Some(time.Minute)})
					if answer.Granted {
						err = errors.New("granted")
					}
					errs <- err
				}()
				synctest.Wait()
				c.end(r, a, call, stop)
				require.ErrorIs(t, <-errs, c.want)
				if name == "the time is over" {
					require.Equal(t, 1, counted(log, KindApprovalRejected))
					require.Equal(t, "timeout", log.events[len(log.events)-1].Payload.(*ApprovalRejected).Answer)
				}
				require.Empty(t, r.s.asks)
			})
		})
	}
	for _, a := range []*Agent{nil, {}} {
		_, err := a.Ask(t.Context(), nil)
		require.ErrorIs(t, err, ErrZeroValue)
		_, err = a.AskQuestions(t.Context(), nil)
		require.ErrorIs(t, err, ErrZeroValue)
	}
	require.ErrorIs(t, (*Run)(nil).Answer(t.Context(), &ApprovalGranted{}), ErrZeroValue)
}

// Many agents ask and many people answer, two for each question: each agent gets the answer
// of its own question, and each second person is told.
func TestManyAsk(t *testing.T) {
	r, _ := startRun(t, EmitterOptions{OnViolation: func(err *RuleError) { t.Error(err) }})
	const n = 50
	var all sync.WaitGroup
	var told, won sync.Map
	for i := range n {
		id := fmt.Sprint("ap-", i)
		all.Go(func() {
			a := r.Agent(fmt.Sprint("agent-", i))
			require.NoError(t, a.Emit(t.Context(), &AgentStarted{}))
			answer, err := a.Ask(t.Context(), &ApprovalRequested{ApprovalID: id})
			require.NoError(t, err)
			require.Equal(t, id, answer.ID)
			told.Store(id, answer.By)
		})
		for person := range 2 {
			all.Go(func() {
				for {
					r.s.state.Lock()
					open := r.s.m.questions.open[questionKey{KindApprovalRequested, id}] != nil || r.s.m.approvals.byID[id] != nil
					r.s.state.Unlock()
					if open {
						break
					}
					time.Sleep(time.Millisecond)
				}
				by := fmt.Sprintf("%s by %d", id, person)
				if err := r.Answer(t.Context(), &ApprovalGranted{ApprovalID: id, ApprovedBy: by}); err == nil {
					_, twice := won.Swap(id, by)
					require.False(t, twice)
				} else {
					require.ErrorIs(t, err, ErrAnswered)
				}
			})
		}
	}
	all.Wait()
	for i := range n {
		id := fmt.Sprint("ap-", i)
		by, _ := told.Load(id)
		first, _ := won.Load(id)
		require.Equal(t, first, by)
	}
}

// An approval allows the one call that was approved, also when the run is resumed between the
// two, and the fold of the log agrees with the emitter.
func TestApprovalBinds(t *testing.T) {
	request := func(p ApprovalRequested) *ApprovalRequested { p.ApprovalID = "ap"; return &p }
	grant := &ApprovalGranted{ApprovalID: "ap"}
	git := ToolCalled{CallID: "c", ToolID: "git", Arguments: `{"to":"main","n":1.50}`, ApprovalID: "ap"}
	with := func(change func(*ToolCalled)) *ToolCalled { p := git; change(&p); return &p }
	asked := request(ApprovalRequested{ToolID: "git", Arguments: `{"n":15e-1,"to":"main"}`, Timeout: Some(time.Minute)})
	secret := func(key string) JSON { return JSON(`{"key":"ghp_` + key + `"}`) }
	for name, c := range map[string]struct {
		before []Payload
		wait   time.Duration
		call   *ToolCalled
		legal  bool
		state  string
	}{
		"as approved":            {[]Payload{asked, grant}, 0, &git, true, ""},
		"in time":                {[]Payload{asked, grant}, time.Minute, &git, true, ""},
		"late":                   {[]Payload{asked, grant}, time.Minute + time.Millisecond, &git, false, "too old"},
		"other arguments":        {[]Payload{asked, grant}, 0, with(func(p *ToolCalled) { p.Arguments = `{"to":"main","n":2}` }), false, "for other arguments"},
		"no arguments":           {[]Payload{asked, grant}, 0, with(func(p *ToolCalled) { p.Arguments = "" }), false, "for other arguments"},
		"another tool":           {[]Payload{asked, grant}, 0, with(func(p *ToolCalled) { p.ToolID = "rm" }), false, "for another tool"},
		"not answered":           {[]Payload{asked}, 0, &git, false, "open"},
		"rejected":               {[]Payload{asked, &ApprovalRejected{ApprovalID: "ap"}}, 0, &git, false, "not granted, or used"},
		"never asked":            {nil, 0, &git, false, "not granted, or used"},
		"used":                   {[]Payload{asked, grant, &git, &ToolReturned{CallID: "c", ToolID: "git", Status: ToolStatusOK}}, 0, &git, false, "not granted, or used"},
		"asked again":            {[]Payload{asked, grant, &git, &ToolReturned{CallID: "c", ToolID: "git", Status: ToolStatusOK}, asked, grant}, 0, &git, true, ""},
		"its call has returned":  {[]Payload{with(func(p *ToolCalled) { p.ApprovalID = "" }), request(ApprovalRequested{CallID: "c"}), grant, &ToolReturned{CallID: "c", ToolID: "git", Status: ToolStatusOK}}, 0, &git, false, "not granted, or used"},
		"its call was cut":       {[]Payload{with(func(p *ToolCalled) { p.ApprovalID = "" }), request(ApprovalRequested{CallID: "c"}), grant, &ToolReturned{CallID: "c", ToolID: "git", Status: ToolStatusInterrupted}}, 0, &git, true, ""},
		"any call":               {[]Payload{request(ApprovalRequested{}), grant}, time.Hour, &git, true, ""},
		"masked values":          {[]Payload{request(ApprovalRequested{ToolID: "git", Arguments: secret("abcdefghijklmnopqrstuvwxyz0123456789")}), grant}, 0, with(func(p *ToolCalled) { p.Arguments = secret("9876543210zyxwvutsrqponmlkjihgfedcba") }), true, ""},
		"a call without a claim": {[]Payload{asked, grant, &git}, time.Hour, with(func(p *ToolCalled) { p.ApprovalID, p.CallID, p.Arguments = "", "d", `7` }), true, ""},
	} {
		for _, resumed := range []bool{false, true} {
			t.Run(fmt.Sprint(name, ", resumed: ", resumed), func(t *testing.T) {
				now := time.Date(2026, 5, 5, 9, 0, 0, 0, time.UTC)
				log := &sinkLog{}
				o := EmitterOptions{Clock: func() time.Time { return now }, Sinks: []Sink{log}, OnViolation: func(*RuleError) {}}
				e, err := NewEmitter(o)
				require.NoError(t, err)
				r, err := e.Run("r")
				require.NoError(t, err)
				a := r.Agent("a")
				require.NoError(t, r.Emit(t.Context(), &RunStarted{}))
				require.NoError(t, a.Emit(t.Context(), &AgentStarted{}))
				for _, p := range c.before {
					require.NoError(t, a.Emit(t.Context(), p))
				}
				now = now.Add(c.wait)
				fold := NewFold(FoldOptions{})
				for _, ev := range log.events {
					fold.Apply(ev)
				}
				require.Zero(t, fold.Snapshot().ViolationCount)
				if resumed {
					e, err = NewEmitter(o)
					require.NoError(t, err)
					r, err = e.Resume(fold.Snapshot())
					require.NoError(t, err)
					a = r.Agent("a")
				}
				err = a.Emit(t.Context(), c.call)
				call := Event{RunID: "r", AgentID: "a", Sequence: r.State().NextSequence, Time: now, Payload: c.call}
				if c.legal {
					require.NoError(t, err)
					call = log.events[len(log.events)-1]
				} else {
					rule := requireRule(t, err, RuleApprovalBinds)
					require.Equal(t, c.state, rule.State)
				}
				fold.Apply(call)
				require.Equal(t, !c.legal, fold.Snapshot().ViolationCount == 1)
				if ap := fold.Snapshot().Approvals; c.legal && c.call.ApprovalID != "" {
					require.Equal(t, "c", ap[len(ap)-1].UsedBy)
				}
			})
		}
	}
}

// A tool whose call names an approval runs only if the call is the approved one: nothing else
// binds it.
func TestDoNeedsTheApprovalThatItNames(t *testing.T) {
	for name, c := range map[string]struct {
		before func(r *Run, a *Agent, now *time.Time)
		mode   Mode
		call   ToolCalled
		runs   bool
	}{
		"as approved":     {call: ToolCalled{ToolID: "git", Arguments: `1`}, runs: true},
		"other arguments": {call: ToolCalled{ToolID: "git", Arguments: `2`}},
		"another tool":    {call: ToolCalled{ToolID: "rm", Arguments: `1`}},
		"late":            {before: func(_ *Run, _ *Agent, now *time.Time) { *now = now.Add(time.Hour) }, call: ToolCalled{ToolID: "git", Arguments: `1`}},
		"a second call": {before: func(_ *Run, a *Agent, _ *time.Time) {
			_, _ = a.Do(context.Background(), &ToolCalled{ToolID: "git", Arguments: `1`, ApprovalID: "ap"}, func(context.Context) (JSON, error) { return `1`, nil })
		}, call: ToolCalled{ToolID: "git", Arguments: `1`}},
		"the agent has ended":        {before: func(_ *Run, a *Agent, _ *time.Time) { _ = a.Emit(context.Background(), &AgentEnded{}) }, call: ToolCalled{ToolID: "git", Arguments: `1`}},
		"the run is closed":          {before: func(r *Run, _ *Agent, _ *time.Time) { _ = r.Close() }, call: ToolCalled{ToolID: "git", Arguments: `1`}},
		"who observes stops nothing": {mode: ModeObserve, call: ToolCalled{ToolID: "git", Arguments: `2`}, runs: true},
	} {
		t.Run(name, func(t *testing.T) {
			now := noon()
			r, _ := startRun(t, EmitterOptions{Mode: c.mode, Clock: func() time.Time { return now }, OnViolation: func(*RuleError) {}})
			a := r.Agent("a")
			for _, p := range []Payload{&AgentStarted{}, &ApprovalRequested{ApprovalID: "ap", ToolID: "git", Arguments: `1`, Timeout: Some(time.Minute)}, &ApprovalGranted{ApprovalID: "ap"}} {
				require.NoError(t, a.Emit(t.Context(), p))
			}
			if c.before != nil {
				c.before(r, a, &now)
			}
			ran := false
			c.call.ApprovalID = "ap"
			_, err := a.Do(t.Context(), &c.call, func(context.Context) (JSON, error) { ran = true; return `1`, nil })
			require.Equal(t, c.runs, ran)
			require.Equal(t, c.runs, err == nil, err)
		})
	}
}

// An approval that is too old allows nothing: who asks again gets a new answer, with all the time
// for it.
func TestAskAfterAnApprovalIsTooOld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, log := startRun(t, EmitterOptions{Clock: time.Now})
		a := r.Agent("a")
		require.NoError(t, a.Emit(t.Context(), &AgentStarted{}))
		ask := func(wait time.Duration) (Approval, error) {
			time.Sleep(wait)
			return a.Ask(t.Context(), &ApprovalRequested{ApprovalID: "ap", Timeout: Some(time.Minute)})
		}
		grant := func(by string, after time.Duration) {
			time.Sleep(after)
			require.NoError(t, r.Answer(t.Context(), &ApprovalGranted{ApprovalID: "ap", ApprovedBy: by}))
		}
		go grant("ann", 30*time.Second)
		got, err := ask(0)
		require.NoError(t, err)
		require.Equal(t, "ann", got.By)
		got, err = ask(time.Minute)
		require.NoError(t, err)
		require.True(t, got.Granted, "in its time")
		go grant("bob", 30*time.Second)
		got, err = ask(time.Millisecond)
		require.NoError(t, err)
		require.Equal(t, "bob", got.By)
		require.Equal(t, 2, counted(log, KindApprovalRequested))
		_, err = a.Call(t.Context(), &ToolCalled{ToolID: "git", ApprovalID: "ap"})
		require.NoError(t, err)
	})
}

// After a restart, Ask returns the grant with the person, and a grant whose request has waited too
// long is refused.
func TestAskAfterARestart(t *testing.T) {
	for name, c := range map[string]struct {
		before, after time.Duration // of the grant, before and after the restart
		want          Approval
		err           error
	}{
		"granted before":       {before: 30 * time.Second, want: Approval{"ap", true, "ann", "go"}},
		"granted after":        {after: 30 * time.Second, want: Approval{"ap", true, "ann", "go"}},
		"granted when too old": {after: 2 * time.Minute, want: Approval{ID: "ap", Feedback: "nobody answered within 1m0s"}, err: ErrUnanswered},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, log := startRun(t, EmitterOptions{Clock: time.Now})
				a := r.Agent("a")
				require.NoError(t, a.Emit(t.Context(), &AgentStarted{}))
				request := &ApprovalRequested{ApprovalID: "ap", ToolID: "git", Timeout: Some(time.Minute)}
				require.NoError(t, a.Emit(t.Context(), request))
				grant := &ApprovalGranted{ApprovalID: "ap", ApprovedBy: "ann", Feedback: "go"}
				if c.before > 0 {
					time.Sleep(c.before)
					require.NoError(t, r.Answer(t.Context(), grant))
				}
				fold := NewFold(FoldOptions{})
				for _, ev := range log.events {
					fold.Apply(ev)
				}
				require.NoError(t, r.Close())
				r, err := r.s.e.Resume(fold.Snapshot())
				require.NoError(t, err)
				if c.after > 0 {
					time.Sleep(c.after)
					if err := r.Answer(t.Context(), grant); c.err == nil {
						require.NoError(t, err)
					} else {
						require.ErrorIs(t, err, ErrAnswered)
						requireRule(t, r.Emit(t.Context(), grant), RuleApprovalOpen)
					}
				}
				got, err := r.Agent("a").Ask(t.Context(), request)
				require.ErrorIs(t, err, c.err)
				require.Equal(t, c.want, got)
			})
		})
	}
}

// The agents of an approval are told apart.
func TestApprovalOfAnAgent(t *testing.T) {
	r, _ := startRun(t, EmitterOptions{OnViolation: func(*RuleError) {}})
	a, b := r.Agent("a"), r.Agent("b")
	for _, agent := range []*Agent{a, b} {
		require.NoError(t, agent.Emit(t.Context(), &AgentStarted{}))
	}
	require.NoError(t, a.Emit(t.Context(), &ApprovalRequested{ApprovalID: "ap", ToolID: "git"}))
	require.NoError(t, r.Answer(t.Context(), &ApprovalGranted{ApprovalID: "ap"}))
	_, err := b.Call(t.Context(), &ToolCalled{ToolID: "git", ApprovalID: "ap"})
	require.Equal(t, "another agent's", requireRule(t, err, RuleApprovalBinds).State)
	_, err = a.Call(t.Context(), &ToolCalled{ToolID: "git", ApprovalID: "ap"})
	require.NoError(t, err)
}
