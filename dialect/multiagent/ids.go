package multiagent

import (
	"strings"

	"github.com/agentevents/agentevents/internal/jsonwire"
)

// runs counts the events of runs, and derives their trace and span ids.
type runs struct {
	all    map[string]*run
	latest *run
}

type run struct {
	id    string
	hash  uint64
	count uint64 // number of events so far
}

// get returns the run with an id.
func (m *runs) get(id string) *run {
	if r := m.latest; r != nil && r.id == id {
		return r
	}
	r := m.all[id]
	if r == nil {
		if m.all == nil {
			m.all = map[string]*run{}
		}
		id = strings.Clone(id) // does not keep the line alive
		r = &run{id: id, hash: jsonwire.Hash(id)}
		m.all[id] = r
	}
	m.latest = r
	return r
}

// trace appends the trace id: 32 hex digits.
func (r *run) trace(dst []byte) []byte {
	return appendID(appendID(dst, jsonwire.Mix(r.hash, 1)), jsonwire.Mix(r.hash, 2))
}

// span appends the span id of a call of an agent, of an agent, or of the run itself:
// 16 hex digits.
func (r *run) span(dst []byte, agent, call string) []byte {
	owner, part := jsonwire.Mix(r.hash, jsonwire.Hash(agent)), uint64(3)
	if call != "" {
		part = jsonwire.Hash(call)
	}
	return appendID(dst, jsonwire.Mix(owner, part))
}

// appendID appends an id of 16 hex digits, which are not all zero.
func appendID(dst []byte, h uint64) []byte { return jsonwire.AppendHex(dst, max(h, 1)) }
