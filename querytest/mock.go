package querytest

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"sync"
	"testing"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/internal/textdiff"
	"github.com/agentevents/agentevents/query"
)

// MockQuery returns a query that answers from the fixtures of a folder. A prompt that differs from
// the recorded one is logged, and does not fail the test. When the test ends it fails if calls of
// the fixtures were not made. The test fails at once if the fixtures cannot be loaded.
func MockQuery(t testing.TB, dir string) query.Func {
	t.Helper()
	fixtures, err := Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	m := NewMock(fixtures, MockOptions{OnDifference: func(d *Difference) { t.Log("querytest: " + d.String()) }})
	t.Cleanup(func() {
		for _, call := range m.Unused() {
			t.Errorf("querytest: %s was not made", call)
		}
	})
	return m.Query
}

// MockOptions configure a [Mock]. The zero MockOptions are usable.
type MockOptions struct {
	// OnDifference is called with each prompt that differs from the recorded one. Concurrent
	// queries call it concurrently. Nil means that such prompts are not reported.
	OnDifference func(*Difference)
	// Strict makes a query with such a prompt fail with the [*Difference].
	Strict bool
}

// A Mock answers queries from fixtures. The first query of a node gets the first call of
// its fixture, and so on. It is safe for concurrent use; concurrent queries of one node get
// its calls in the order in which they begin.
type Mock struct {
	fixtures Fixtures
	o        MockOptions

	mu   sync.Mutex
	made map[string]int // calls by node
}

// NewMock returns a mock. The fixtures must not be changed any more.
func NewMock(f Fixtures, o MockOptions) *Mock {
	return &Mock{fixtures: f, o: o, made: map[string]int{}}
}

// A CallID names a call of a fixture.
type CallID struct {
	Node   string // the node that is asked
	Number int    // of the call, from 1
}

// String returns the call in words.
func (c CallID) String() string { return fmt.Sprintf("call %d of node %q", c.Number, c.Node) }

// Unused returns the calls of the fixtures that were not made, in order.
func (m *Mock) Unused() []CallID {
	m.mu.Lock()
	defer m.mu.Unlock()
	var unused []CallID
	for _, node := range m.fixtures.Nodes() {
		for i := m.made[node]; i < len(m.fixtures[node].Calls); i++ {
			unused = append(unused, CallID{node, i + 1})
		}
	}
	return unused
}

// A Difference is a prompt that is not the recorded one. It quotes the fixture and the test.
type Difference struct {
	Call      CallID           // the call of the fixture
	Got, Want agentevents.JSON // prompts, or lists of messages
}

// Error describes the difference.
func (d *Difference) Error() string { return "querytest: " + d.String() }

// String describes the difference.
func (d *Difference) String() string {
	return fmt.Sprintf("%s: its prompt %s", d.Call, differs(d.Got, d.Want))
}

// A MissingError is a query that no fixture answers.
type MissingError struct {
	Call    CallID // the one that was made
	Nearest CallID // the call that is most like it; zero if there are no calls at all
	Why     string // the difference from the nearest
}

// Error names the missing call and the nearest one.
func (e *MissingError) Error() string {
	if e.Nearest == (CallID{}) {
		return fmt.Sprintf("querytest: no fixture for %s: there are no calls at all", e.Call)
	}
	return fmt.Sprintf("querytest: no fixture for %s; the nearest is %s: %s", e.Call, e.Nearest, e.Why)
}

// Query is a [query.Func]. A query that no fixture answers is a [*MissingError], one that
// was recorded with an error fails with it, and with Strict a prompt that differs is a
// [*Difference].
func (m *Mock) Query(ctx context.Context, r query.Request) iter.Seq2[agentevents.Event, error] {
	return func(yield func(agentevents.Event, error) bool) {
		fail := func(err error) { yield(agentevents.Event{}, err) }
		node := cmp.Or(r.NodeID, r.AgentID)
		m.mu.Lock()
		if m.made == nil {
			m.made = map[string]int{} // the zero Mock has no call
		}
		index := m.made[node]
		m.made[node]++
		m.mu.Unlock()
		id := CallID{node, index + 1}

		f := m.fixtures[node]
		if f == nil || index >= len(f.Calls) {
			fail(m.missing(id, r.Prompt))
			return
		}
		call := &f.Calls[index]
		if want := call.Input.asked(); !same(r.Prompt, want) {
			d := &Difference{Call: id, Got: r.Prompt, Want: want}
			if m.o.OnDifference != nil {
				m.o.OnDifference(d)
			}
			if m.o.Strict {
				fail(d)
				return
			}
		}
		events, err := call.answer(r.AgentID, index)
		if err != nil {
			fail(fmt.Errorf("querytest: %s: %w", id, err))
			return
		}
		call.Input.resession(events, r)
		for _, ev := range events {
			if ctx.Err() != nil {
				fail(context.Cause(ctx))
				return
			}
			if !yield(ev, nil) {
				return
			}
		}
		if call.Output.Error.OK {
			fail(errors.New(call.Output.Error.V.Message))
		}
	}
}

// resession gives the events the session of the request, where the recorded request had
// chosen it, too.
func (in *Input) resession(events []agentevents.Event, r query.Request) {
	was := in.session()
	if was == "" || r.SessionID == "" {
		return
	}
	for _, ev := range events {
		switch p := ev.Payload.(type) {
		case *agentevents.AgentStarted:
			if p.ProviderSessionID == was {
				p.ProviderSessionID = r.SessionID
			}
		case *agentevents.AgentSessionChanged:
			if p.ProviderSessionID == was {
				p.ProviderSessionID = r.SessionID
			}
		}
	}
}

// session returns the session that was asked for, or "".
func (in *Input) session() string {
	var o struct {
		SessionID string `json:"sessionId"`
		Resume    any    `json:"resume"`
	}
	if json.Unmarshal([]byte(in.Options), &o) != nil {
		return ""
	}
	if id, ok := o.Resume.(string); ok && id != "" {
		return id
	}
	return o.SessionID
}

// missing returns the error of a query that has no fixture.
func (m *Mock) missing(id CallID, prompt agentevents.JSON) error {
	e := &MissingError{Call: id}
	best := -1.0
	for _, node := range m.fixtures.Nodes() {
		for i := range m.fixtures[node].Calls {
			want := m.fixtures[node].Calls[i].Input.asked()
			score := textdiff.Alike(string(prompt), string(want))
			if same(prompt, want) {
				score = 1
			}
			if node == id.Node {
				score += 0.5 // the node is half of a call's identity
			}
			if score <= best {
				continue
			}
			best, e.Nearest = score, CallID{node, i + 1}
			e.Why = "its prompt " + differs(prompt, want)
			if same(prompt, want) {
				e.Why = "its prompt is the same"
			}
		}
	}
	return e
}

// same reports whether two prompts are the same JSON.
func same(a, b agentevents.JSON) bool {
	return a == b || compact(a) == compact(b)
}

func compact(j agentevents.JSON) string {
	var v any
	if json.Unmarshal([]byte(j), &v) != nil {
		return string(j)
	}
	text, _ := json.Marshal(v)
	return string(text)
}

// differs returns the place where two prompts differ.
func differs(got, want agentevents.JSON) string {
	g, w := plain(got), plain(want)
	switch {
	case w == "":
		return "is not recorded"
	case g == "":
		return "is missing"
	}
	character, inGot, inWant := textdiff.Excerpts(g, w)
	return fmt.Sprintf("differs at character %d: %s, recorded as %s", character, inGot, inWant)
}

// plain returns the text of a prompt, or the JSON of messages.
func plain(j agentevents.JSON) string {
	var text string
	if json.Unmarshal([]byte(j), &text) == nil {
		return text
	}
	return compact(j)
}
