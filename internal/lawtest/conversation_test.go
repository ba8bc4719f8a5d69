package lawtest

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/resume"
)

// A talk makes runs in which agents talk to models, tools and people, by handles. Each text,
// argument and result is unique.
type talk struct {
	t       *rapid.T
	log     []agentevents.Event
	run     *agentevents.Run
	overlap bool // model calls may overlap, and compactions come beside open calls
	n       int
	agents  []*talker
}

type talker struct {
	a      *agentevents.Agent
	models []*answering
	calls  []*agentevents.Call
	failed []*agentevents.Call
	ids    int      // of calls since the last answer
	want   []string // texts of answers since the last compaction
	never  []string // texts that must not show
}

// An answering is an open model call and the texts that it has brought.
type answering struct {
	*agentevents.ModelCall
	texts []string
}

func newTalk(t *rapid.T, overlap bool) *talk {
	k := &talk{t: t, overlap: overlap}
	em := NewEmitter(t, agentevents.LifecycleDerived, agentevents.ModeEnforce, &Clock{}, &IDs{}, &agentevents.Policy{Off: true}, func(ev agentevents.Event) { k.log = append(k.log, ev) })
	var err error
	k.run, err = em.Run("r")
	require.NoError(t, err)
	k.start(k.run.Agent("a"))
	return k
}

func (k *talk) ok(err error) { require.NoError(k.t, err) }

func (k *talk) text(what string) string {
	k.n++
	return fmt.Sprintf("<%s%d>", what, k.n)
}

func (k *talk) chance(percent int) bool { return rapid.IntRange(0, 99).Draw(k.t, "chance") < percent }

func (k *talk) start(a *agentevents.Agent) {
	k.agents = append(k.agents, &talker{a: a})
	k.ok(a.Emit(context.Background(), &agentevents.AgentStarted{Task: k.text("task")}))
}

// take removes an element of a list.
func take[T any](k *talk, list *[]T) T {
	i := rapid.IntRange(0, len(*list)-1).Draw(k.t, "which")
	x := (*list)[i]
	*list = slices.Delete(*list, i, i+1)
	return x
}

// acts are the possible events, with the condition under which each can happen.
var acts = []struct {
	can func(*talk, *talker) bool
	do  func(*talk, *talker, context.Context)
}{
	{func(k *talk, a *talker) bool { return k.overlap || len(a.models) == 0 }, func(k *talk, a *talker, ctx context.Context) {
		m, err := a.a.Model(ctx, &agentevents.ModelCalled{Operation: rapid.SampledFrom([]string{"", "", "", "chat", "compaction"}).Draw(k.t, "operation")})
		k.ok(err)
		a.models = append(a.models, &answering{ModelCall: m})
	}},
	{streams, writes},
	{streams, writes},
	{streams, func(k *talk, a *talker, ctx context.Context) {
		m := take(k, &a.models)
		k.ok(m.Return(ctx, nil))
		a.ids = 0
		a.want = append(a.want, m.texts...)
	}},
	{streams, func(k *talk, a *talker, ctx context.Context) {
		m := take(k, &a.models)
		k.ok(m.Fail(ctx, errors.New("503")))
		a.never = append(a.never, m.texts...)
		if k.chance(70) {
			again, err := m.Retry(ctx)
			k.ok(err)
			a.models = append(a.models, &answering{ModelCall: again})
		}
	}},
	{always, called}, {always, called},
	{busy, func(k *talk, a *talker, ctx context.Context) {
		k.ok(take(k, &a.calls).Return(ctx, agentevents.JSON(k.text("result"))))
	}},
	{busy, func(k *talk, a *talker, ctx context.Context) {
		call := take(k, &a.calls)
		k.ok(call.Fail(ctx, errors.New("busy")))
		a.failed = append(a.failed, call)
	}},
	{func(_ *talk, a *talker) bool { return len(a.failed) > 0 }, func(k *talk, a *talker, ctx context.Context) {
		again, err := take(k, &a.failed).Retry(ctx)
		k.ok(err)
		a.calls = append(a.calls, again)
	}},
	{always, func(k *talk, a *talker, ctx context.Context) {
		message := agentevents.ConversationMessage{From: "user", Content: agentevents.JSONString(k.text("said"))}
		if k.chance(30) {
			k.ok(k.run.Emit(ctx, &agentevents.MessageCreated{Message: message}))
		} else {
			k.ok(a.a.Emit(ctx, &agentevents.MessageCreated{Message: message}))
		}
	}},
	{func(k *talk, a *talker) bool { return k.overlap || len(a.calls) == 0 && k.chance(20) }, func(k *talk, a *talker, ctx context.Context) {
		p := &agentevents.ContextCompacted{}
		if k.chance(70) {
			p.Summary = k.text("summary")
			a.never = append(a.never, a.want...)
			a.want = []string{p.Summary}
			for _, m := range a.models {
				a.never = append(a.never, m.texts...)
				m.texts = nil
			}
		}
		k.ok(a.a.Emit(ctx, p))
	}},
	{rarely, func(k *talk, a *talker, ctx context.Context) { // without a model call
		text := k.text("text")
		if len(a.models) == 0 {
			a.want = append(a.want, text)
			if k.chance(30) {
				k.ok(a.a.Emit(ctx, &agentevents.TextDelta{BlockID: text, Delta: text}))
			}
			k.ok(a.a.Emit(ctx, &agentevents.TextCompleted{BlockID: text, Text: text}))
		}
	}},
	{rarely, func(k *talk, a *talker, ctx context.Context) { k.start(a.a.Agent(k.text("agent"))) }},
	{rarely, func(k *talk, a *talker, ctx context.Context) { // the process pauses, or has died
		k.ok(k.run.Emit(ctx, &agentevents.RunPaused{}))
		k.ok(k.run.Emit(ctx, &agentevents.RunResumed{Message: k.text("told")}))
		for _, b := range k.agents {
			for _, m := range b.models {
				k.ok(m.Fail(ctx, errors.New("interrupted")))
				b.never = append(b.never, m.texts...)
			}
			for _, call := range b.calls {
				k.ok(call.End(ctx, &agentevents.ToolReturned{Status: agentevents.ToolStatusInterrupted}))
			}
			b.models, b.calls = nil, nil
			k.ok(b.a.Emit(ctx, &agentevents.AgentStarted{Resumed: k.chance(50)}))
		}
	}},
}

func always(*talk, *talker) bool      { return true }
func rarely(k *talk, _ *talker) bool  { return k.chance(20) }
func streams(_ *talk, a *talker) bool { return len(a.models) > 0 }
func busy(_ *talk, a *talker) bool    { return len(a.calls) > 0 }

// writes streams a piece of text or reasoning.
func writes(k *talk, a *talker, ctx context.Context) {
	m := a.models[len(a.models)-1]
	if k.chance(25) {
		k.ok(m.Reason(ctx, k.text("thought")))
		return
	}
	text := k.text("text")
	k.ok(m.Text(ctx, text))
	if op := operationOf(k.log, m.ID); op == "" || op == "chat" {
		m.texts = append(m.texts, text)
	} else {
		a.never = append(a.never, text)
	}
}

func operationOf(log []agentevents.Event, id string) (op string) {
	for _, ev := range log {
		if p, ok := ev.Payload.(*agentevents.ModelCalled); ok && p.ModelCallID == id {
			op = p.Operation
		}
	}
	return op
}

// called calls a tool. Ids repeat, but are not used again while a call is open.
func called(k *talk, a *talker, ctx context.Context) {
	id := ""
	for open := true; open; a.ids++ {
		id = fmt.Sprint("call_", a.ids)
		open = a.a.OpenCall(id).Recorded()
	}
	a.failed = slices.DeleteFunc(a.failed, func(c *agentevents.Call) bool { return c.ID == id }) // a retry would name the new call
	call, err := a.a.Call(ctx, &agentevents.ToolCalled{CallID: id, ToolID: "t", Arguments: agentevents.JSON(k.text("call"))})
	k.ok(err)
	a.calls = append(a.calls, call)
}

func (k *talk) step(*rapid.T) {
	a := k.agents[rapid.IntRange(0, len(k.agents)-1).Draw(k.t, "agent")]
	act := acts[rapid.IntRange(0, len(acts)-1).Draw(k.t, "act")]
	if act.can(k, a) {
		act.do(k, a, context.Background())
	}
}

func drawTalk(t *rapid.T, overlap bool) *talk {
	k := newTalk(t, overlap)
	for range rapid.IntRange(1, 60).Draw(t, "steps") {
		k.step(t)
	}
	return k
}

func conversed(log []agentevents.Event) iter.Seq2[agentevents.Event, error] {
	return func(yield func(agentevents.Event, error) bool) {
		for _, ev := range log {
			if !yield(ev, nil) {
				return
			}
		}
	}
}

// parts are the parts of a conversation up to the first that is open: texts, and calls with
// their results.
func parts(t require.TestingT, log []agentevents.Event, run, agent string, open func(resume.Call) bool) (list []string, settled int) {
	messages, err := resume.Conversation(conversed(log), run, agent)
	require.NoError(t, err)
	settled = -1
	add := func(isOpen bool, part string) {
		if isOpen && settled < 0 {
			settled = len(list)
		}
		list = append(list, part)
	}
	for i, m := range messages {
		if m.Role == resume.RoleTool {
			for n, r := range m.Results {
				c := messages[i-1].Calls[n]
				add(r.Status == "" || open(c), fmt.Sprintf("%v -> %v", c, r))
			}
			continue
		}
		m.Open = m.Open && len(m.Calls) == 0 // the calls tell
		if m.Reasoning != "" {
			add(m.Open, "reasoning "+m.Reasoning)
		}
		if m.Text != "" || m.JSON != "" {
			add(m.Open, fmt.Sprint(m.Role, m.Summary, " ", m.Text, m.JSON))
		}
	}
	if settled < 0 {
		settled = len(list)
	}
	return list, settled
}

// byArguments names a call by its arguments, which a talk does not repeat.
func byArguments(p *agentevents.ToolCalled) string { return string(p.Arguments) }

// anyCall gives all calls one name: ids and arguments of generated runs repeat at random.
func anyCall(*agentevents.ToolCalled) string { return "call" }

// requireGrows requires the law of resume.Conversation for an agent, at each boundary. name
// tells which calls are tried again after a cut.
func requireGrows(t *rapid.T, log []agentevents.Event, run, agent string, name func(*agentevents.ToolCalled) string) {
	for n := range len(log) + 1 {
		anew := func(ev agentevents.Event) bool {
			switch p := ev.Payload.(type) {
			case *agentevents.ContextCompacted:
				return ev.AgentID == agent && p.Summary != ""
			case *agentevents.EventRetracted:
				return true
			}
			return false
		}
		end := len(log)
		if i := slices.IndexFunc(log[n:], anew); i >= 0 {
			end = n + i
		}
		retried := map[string]bool{}
		for _, ev := range log[n:end] {
			if p, ok := ev.Payload.(*agentevents.ToolCalled); ok && ev.AgentID == agent && (p.RetryOf != "" || p.Attempt.Or(1) > 1) {
				retried[name(p)] = true
			}
		}
		before, settled := parts(t, log[:n], run, agent, func(c resume.Call) bool {
			args := c.Arguments.JSON
			if args == "" {
				args = agentevents.JSONString(c.Arguments.Text)
			}
			return retried[name(&agentevents.ToolCalled{CallID: c.ID, Arguments: args})]
		})
		whole, _ := parts(t, log[:end], run, agent, func(resume.Call) bool { return false })
		require.LessOrEqual(t, settled, len(whole), "cut at %d, agent %s", n, agent)
		require.True(t, slices.Equal(before[:settled], whole[:settled]), "%q\n%q\ncut at %d, agent %s", before[:settled], whole, n, agent)
	}
}

// At every boundary the conversation of the cut log, up to the first thing that is open,
// begins the one of the whole log before its next compaction.
func TestConversationGrows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		k := drawTalk(t, rapid.Bool().Draw(t, "overlap"))
		for _, a := range k.agents {
			requireGrows(t, k.log, "r", a.a.ID(), byArguments)
		}
	})
}

// The law holds for runs with all kinds, too.
func TestConversationOfAnyRunGrows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := anyRun(t)
		agents := map[string]bool{}
		for _, ev := range r.Events {
			agents[ev.AgentID] = true
		}
		for agent := range agents {
			requireGrows(t, r.Events, r.ID, agent, anyCall)
		}
	})
}

// A log without deltas, such as the log that runstore.NewSink writes, has the same conversation after every
// event that it has. Model calls that overlap another one or a compaction are left out: there the
// first event of a block decides where it belongs, and that may be a delta.
func TestConversationNeedsNoDeltas(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		k := drawTalk(t, false)
		var lean []agentevents.Event
		answering := 0
		for n, ev := range k.log {
			switch ev.Payload.(type) {
			case *agentevents.ModelCalled:
				answering++
			case *agentevents.ModelReturned:
				answering--
			case *agentevents.ContextCompacted:
				if answering > 0 {
					return
				}
			}
			if info, _ := ev.Kind().Info(); info.Droppable {
				continue
			}
			lean = append(lean, ev)
			for _, a := range k.agents {
				want, err := resume.Conversation(conversed(k.log[:n+1]), "r", a.a.ID())
				require.NoError(t, err)
				got, err := resume.Conversation(conversed(lean), "r", a.a.ID())
				require.NoError(t, err)
				require.Equal(t, want, got, "after event %d, agent %s", n, a.a.ID())
			}
		}
	})
}

// A conversation has each text of an answer since the last compaction once, and in order. It has
// no text of a broken attempt, of a model call that has not returned, or of before the
// compaction.
func TestConversationHasEachTextOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		k := drawTalk(t, false)
		for _, a := range k.agents {
			messages, err := resume.Conversation(conversed(k.log), "r", a.a.ID())
			require.NoError(t, err)
			var got strings.Builder
			for _, m := range messages {
				if m.Role == resume.RoleAssistant || m.Summary {
					got.WriteString(m.Text)
				}
			}
			require.Equal(t, strings.Join(a.want, ""), got.String())
			for _, m := range a.models {
				a.never = append(a.never, m.texts...)
			}
			for _, text := range a.never {
				require.NotContains(t, got.String(), text)
			}
		}
	})
}
