package querytest

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strings"
	"sync"
	"time"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/query"
)

// RecordOptions configure [Record]. The zero RecordOptions are usable.
type RecordOptions struct {
	// Redaction is the policy by which texts are masked before they are written; nil means the
	// default policy.
	Redaction *agentevents.Policy
}

// Record returns a query that asks, and writes each answer to a fixture of its node when it
// is complete, redacted. The fixtures that the folder has of a node are replaced when the
// node is asked for the first time; further queries are further calls. An answer that
// breaks off or that nobody reads to its end is recorded with an error.
//
// The caller sees the answer as it comes, unchanged. If an answer cannot be written, an error
// follows it.
func Record(ask query.Func, dir string, o RecordOptions) query.Func {
	r := &recorder{ask: ask, dir: dir, o: o, fixtures: Fixtures{}}
	return r.query
}

// A recorder writes fixtures.
type recorder struct {
	ask query.Func
	dir string
	o   RecordOptions

	mu       sync.Mutex
	fixtures Fixtures
}

func (r *recorder) query(ctx context.Context, q query.Request) iter.Seq2[agentevents.Event, error] {
	return func(yield func(agentevents.Event, error) bool) {
		node := cmp.Or(q.NodeID, q.AgentID)
		index := r.begin(node)
		var events []agentevents.Event
		failed := errors.New("the answer was not read to its end")
		saved := false
		save := func() error {
			saved = true
			call, err := NewCall(q, events, failed, r.o)
			if err == nil {
				err = r.save(node, index, call)
			}
			if err != nil {
				err = fmt.Errorf("querytest: recording %s: %w", CallID{node, index + 1}, err)
			}
			return err
		}
		defer func() {
			if !saved { // the caller has stopped, or somebody panics
				_ = save()
			}
		}()
		for ev, err := range r.ask(ctx, q) {
			if err != nil {
				failed = err
				yield(ev, errors.Join(err, save()))
				return
			}
			events = append(events, ev)
			if !yield(ev, nil) {
				return
			}
		}
		failed = nil
		if err := save(); err != nil {
			yield(agentevents.Event{}, err)
		}
	}
}

// begin returns the index of the node's next call.
func (r *recorder) begin(node string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	f := r.fixtures[node]
	if f == nil {
		f = &Fixture{}
		r.fixtures[node] = f
	}
	broken := OutputError{"the answer was not complete when the recording was written"}
	f.Calls = append(f.Calls, Call{Output: Output{Error: agentevents.Some(broken)}})
	return len(f.Calls) - 1
}

// save writes a call, after the earlier calls of the node.
func (r *recorder) save(node string, index int, call *Call) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	f := r.fixtures[node]
	f.Calls[index] = *call
	return Save(r.dir, node, f)
}

// NewCall returns the call of a query and its answer, redacted. failed is the error that
// the query ended with, or nil.
func NewCall(q query.Request, answer []agentevents.Event, failed error, o RecordOptions) (*Call, error) {
	// The request goes through the same step, as a start of a run and of an agent.
	events := []agentevents.Event{
		{Payload: &agentevents.RunStarted{Inputs: q.Options}},
		{AgentID: q.AgentID, Payload: &agentevents.AgentStarted{Prompt: q.Prompt}},
	}
	if failed != nil {
		events = append(events, agentevents.Event{AgentID: q.AgentID,
			Payload: &agentevents.AgentErrored{ErrorType: "query", Message: cmp.Or(failed.Error(), "failed")}})
	}
	request := len(events)
	events = append(events, answer...)
	masked, err := redact(events, q, o.Redaction)
	if err != nil {
		return nil, err
	}
	c := &Call{Events: []agentevents.JSON{}}
	c.Input.set(masked[1].Payload.(*agentevents.AgentStarted).Prompt,
		masked[0].Payload.(*agentevents.RunStarted).Inputs, q)
	var end *agentevents.AgentEnded
	for _, ev := range masked[request:] {
		own := ev.AgentID == q.AgentID
		switch p := ev.Payload.(type) {
		case *agentevents.AgentStarted:
			if own {
				c.Output.SessionID = cmp.Or(p.ProviderSessionID, c.Output.SessionID)
			}
		case *agentevents.AgentSessionChanged:
			if own {
				c.Output.SessionID = p.ProviderSessionID
			}
		case *agentevents.AgentEnded:
			if own {
				end = p
			}
		}
		text, err := encode(ev, q.AgentID)
		if err != nil {
			return nil, err
		}
		c.Events = append(c.Events, text)
	}
	if end != nil {
		c.Output.set(end)
	}
	switch {
	case failed != nil:
		c.Output.Error = agentevents.Some(OutputError{masked[request-1].Payload.(*agentevents.AgentErrored).Message})
	case end == nil:
		c.Output.Error = agentevents.Some(OutputError{query.ErrNoEnd.Error()})
	}
	return c, nil
}

// redact returns the events as the policy lets them be recorded. They are not changed.
func redact(events []agentevents.Event, q query.Request, p *agentevents.Policy) ([]agentevents.Event, error) {
	var masked []agentevents.Event
	for ev, err := range p.Redact(func(yield func(agentevents.Event, error) bool) {
		for i, ev := range events {
			ev.RunID, ev.Sequence, ev.Time, ev.ID = "r", uint64(i), time.UnixMilli(int64(i)), fmt.Sprint(i)
			ev.AgentID = cmp.Or(ev.AgentID, q.AgentID)
			if !yield(ev, nil) {
				return
			}
		}
	}) {
		if err != nil {
			return nil, err
		}
		masked = append(masked, ev)
	}
	return masked, nil
}

// set sets the question.
func (in *Input) set(prompt, options agentevents.JSON, q query.Request) {
	if strings.HasPrefix(string(prompt), "[") {
		in.Messages = prompt
	} else {
		in.Prompt = prompt
	}
	members := map[string]json.RawMessage{}
	if json.Unmarshal([]byte(options), &members) != nil {
		members = map[string]json.RawMessage{}
	}
	if q.SessionID != "" {
		name := "sessionId"
		if q.Resume {
			name = "resume"
		}
		members[name], _ = json.Marshal(q.SessionID)
	}
	if len(members) > 0 {
		in.Options, _ = agentevents.ToJSON(members)
	}
}

// set sets the result of an answer.
func (o *Output) set(end *agentevents.AgentEnded) {
	o.Text, o.StructuredOutput, o.TotalCostUSD, o.NumTurns = end.Result, end.StructuredOutput, end.TotalCostUSD,
		end.NumTurns
	if end.Usage.OK {
		o.Usage = agentevents.Some(Usage(end.Usage.V))
	}
	for model, usage := range end.ModelUsage {
		if o.ModelUsage == nil {
			o.ModelUsage = map[string]Usage{}
		}
		o.ModelUsage[model] = Usage(usage)
	}
	if end.Duration.OK {
		o.DurationMS = agentevents.Some(float64(end.Duration.V.Milliseconds()))
	}
}

// encode returns an event as a fixture has it.
func encode(ev agentevents.Event, agentID string) (agentevents.JSON, error) {
	line, err := ev.MarshalJSON()
	if err != nil {
		return "", err
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(line, &members); err != nil {
		return "", err
	}
	for name, value := range map[string]string{"agentId": ev.AgentID, "parentAgentId": ev.ParentAgentID} {
		if value == agentID {
			delete(members, name)
		}
	}
	var out strings.Builder
	for _, name := range []string{"type", "actor", "agentId", "parentAgentId", "parentCallId", "marks", "payload"} {
		value := members[name]
		if value == nil {
			continue
		}
		if out.Len() > 0 {
			out.WriteByte(',')
		}
		fmt.Fprintf(&out, "%q:%s", name, value)
	}
	return agentevents.JSON("{" + out.String() + "}"), nil
}
