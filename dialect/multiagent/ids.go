package multiagent

import (
	"strings"

	"github.com/agentevents/agentevents/internal/jsonwire"
)

// madeIDs counts the events of runs and derives trace and span ids. It caches the
// ids of the latest agents.
type madeIDs struct {
	runs   map[string]*run
	latest *run
	owners [8]owner
	last   int // index of the owner that was used last
	next   int // index of the owner that is replaced next
}

type run struct {
	id    string
	hash  uint64
	count uint64 // number of events so far
}

// run returns the run with an id.
func (m *madeIDs) run(id string) *run {
	if r := m.latest; r != nil && r.id == id {
		return r
	}
	r := m.runs[id]
	if r == nil {
		if m.runs == nil {
			m.runs = map[string]*run{}
		}
		id = strings.Clone(id) // does not keep the line alive
		r = &run{id: id, hash: jsonwire.Hash(id)}
		m.runs[id] = r
	}
	m.latest = r
	return r
}

// An owner is an agent of a run, or the run itself. Its buffers are reused for the
// next owner.
type owner struct {
	run     *run
	agent   []byte
	calls   uint64 // a hash of run and agent, for span ids of calls
	members []byte // JSON text of ids; see the constants below
	id      string // the span id, once it is needed

	context []byte // JSON text of the members from sessionId to type, for session; may be empty
	session []byte
}

// The parts of an owner's members: traceId, spanId, and the parentSpanId of a call.
// The last part begins with the quote that ends the call's span id.
const (
	traceHead  = `,"traceId":"`
	spanHead   = `","spanId":"`
	parentHead = `","parentSpanId":"`
	traceAt    = len(traceHead)
	spanAt     = traceAt + 32 + len(spanHead)
	spanEnd    = spanAt + 16 + 1
)

func (o *owner) trace() []byte { return o.members[traceAt : traceAt+32] }
func (o *owner) span() []byte  { return o.members[spanAt : spanAt+16] }

// owner returns the owner for an agent of a run. The result is valid until the next
// call.
func (m *madeIDs) owner(r *run, agent string) *owner {
	i := m.last
	for range m.owners {
		if o := &m.owners[i]; o.run == r && string(o.agent) == agent {
			m.last = i
			return o
		}
		i = (i + 1) % len(m.owners)
	}
	m.last = m.next
	m.next = (m.next + 1) % len(m.owners)
	o := &m.owners[m.last]
	o.run, o.agent, o.id, o.context = r, append(o.agent[:0], agent...), "", o.context[:0]
	o.calls = jsonwire.Mix(r.hash, jsonwire.Hash(agent))
	span := jsonwire.Mix(o.calls, 3)
	b := append(o.members[:0], traceHead...)
	b = appendID(appendID(b, jsonwire.Mix(r.hash, 1)), jsonwire.Mix(r.hash, 2))
	b = append(appendID(append(b, spanHead...), span), '"')
	o.members = append(appendID(append(b, parentHead...), span), '"')
	return o
}

// call appends the span id of a call: 16 hex digits.
func (o *owner) call(dst []byte, call string) []byte {
	return appendID(dst, jsonwire.Mix(o.calls, jsonwire.Hash(call)))
}

// span returns the span id of an agent, of a call, or of the run itself.
func (m *madeIDs) span(r *run, agent, call string) string {
	o := m.owner(r, agent)
	if call != "" {
		return string(o.call(nil, call))
	}
	if o.id == "" {
		o.id = string(o.span())
	}
	return o.id
}

// appendID appends an id of 16 hex digits, which are not all zero.
func appendID(dst []byte, h uint64) []byte { return jsonwire.AppendHex(dst, max(h, 1)) }
