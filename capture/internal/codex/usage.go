package codex

import (
	"strings"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/capture/internal/session"
)

// tokens are the figures of Codex: the input holds the tokens that were read from the cache and written
// to it, and the output holds the reasoning.
type tokens struct{ input, cached, written, output, reasoning int64 }

func tokensOf(o *session.Object) tokens {
	t := tokens{
		o.Count("input_tokens").V, o.Count("cached_input_tokens").V, o.Count("cache_write_input_tokens").V,
		o.Count("output_tokens").V, o.Count("reasoning_output_tokens").V,
	}
	o.Skip("total_tokens")
	return t
}

// usage returns the figures with the library's meaning.
func (t tokens) usage() agentevents.Usage {
	return session.UsageOf(t.input-t.cached-t.written, t.output,
		agentevents.Some(t.cached), agentevents.Some(t.written), agentevents.Some(t.reasoning))
}

func (t tokens) minus(u tokens) tokens {
	return tokens{t.input - u.input, t.cached - u.cached,
		t.written - u.written, t.output - u.output, t.reasoning - u.reasoning}
}

func (t tokens) below(u tokens) bool { return t.input < u.input || t.output < u.output }

// A counter is the state of the running totals of a thread.
type counter struct {
	records bool // the thread has records of each answer, so its totals do not count
	known   bool
	total   tokens
}

// A usage has the tokens of one call of the model.
type usage struct {
	id string // of the answer, or empty
	tokens
}

// record reads the usage of one answer of the model.
func (c *rollout) record(t *thread) {
	t.counter.records = true
	used := usage{strings.Clone(c.p.Str("response_id")), tokensOf(c.p.Object("usage"))}
	c.p.Skip("thread_id", "turn_id", "session_id", "root_turn_id", "turn_token_usage", "thread_token_usage")
	if c.answers.First(used.id) {
		c.used(t, used)
	}
}

// used counts the usage of the answer that is held, or of the latest one.
func (c *rollout) used(t *thread, used usage) {
	if len(t.parts) == 0 && t.without != "" {
		c.r.Emit(t.agent, &agentevents.UsageObserved{ModelCallID: t.without, Model: t.model, Usage: used.usage()}, 0)
		t.without = ""
		return
	}
	c.answered(t, &used)
}

// modelCall records a call of the model that was answered.
func (c *rollout) modelCall(t *thread, used *usage) {
	p := &agentevents.ModelReturned{Model: t.model, OneEvent: true}
	t.without = ""
	if used != nil {
		p.ResponseID, p.Usage = used.id, agentevents.Some(used.usage())
	}
	if p.ModelCallID = p.ResponseID; p.ModelCallID == "" {
		p.ModelCallID = c.lineID()
	}
	if used == nil {
		t.without = p.ModelCallID
		if t.broken && t.counter.records {
			p.Error = agentevents.Some(agentevents.ErrorInfo{Code: "interrupted",
				Message: "the answer was broken off; its tokens are not known"})
		}
	}
	t.broken = false
	c.r.Emit(t.agent, p, 0)
}

// baseline takes the totals of a copied history, which the thread's own totals go on from.
func (c *rollout) baseline(t *thread) {
	if total := c.p.Object("info").Object("total_token_usage"); total.Text != "" {
		t.counter.known, t.counter.total = true, tokensOf(total)
	}
}

// tokenCount reads the running totals of a thread. They come again without change, begin anew,
// and may be missing.
func (c *rollout) tokenCount(t *thread) {
	c.p.Skip("rate_limits")
	info := c.p.Object("info")
	if t.counter.records || info.Text == "" {
		return
	}
	total, last := tokensOf(info.Object("total_token_usage")), tokensOf(info.Object("last_token_usage"))
	before := t.counter.total
	same := t.counter.known && total == before
	t.counter.known, t.counter.total = true, total
	if same || total == (tokens{}) {
		return
	}
	used := last
	if before != (tokens{}) && !total.below(before) && total != last { // the total of another process begins anew
		used = total.minus(before)
	}
	t.ahead = t.ahead || len(t.parts) == 0 && t.n == 0
	c.used(t, usage{"", used})
}
