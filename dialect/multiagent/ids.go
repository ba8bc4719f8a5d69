package multiagent

import (
	"strings"

	"github.com/agentevents/agentevents/internal/jsonwire"
)

// madeIDs counts the events of runs and derives trace and span ids. It remembers
// those of the latest agents.
type madeIDs struct {
	runs   map[string]*run
	latest *run
	owners [8]owner
	last   int // the owner that was asked for last
	next   int // to be forgotten
}

type run struct {
	id    string
	hash  uint64
	count uint64 // its events so far
}

// run returns the run of that id.
func (m *madeIDs) run(id string) *run {
	if r := m.latest; r != nil && r.id == id {
		return r
	}
	r := m.runs[id]
	if r == nil {
		if m.runs == nil {
			m.runs = map[string]*run{}
		}
		id = strings.Clone(id) // and not the line it was cut from
		r = &run{id: id, hash: jsonwire.Hash(id)}
		m.runs[id] = r
	}
	m.latest = r
	return r
}

// An owner is an agent of a run, or the run itself. Its bytes are used again for
// another one.
type owner struct {
	run     *run
	agent   []byte
	calls   uint64 // a hash of both, for span ids of calls
	members []byte // as they stand on a line; see the constants below
	id      string // the span id, once it was asked for

	context []byte // sessionId to type, of an event with this session; or nothing
	session []byte
}

// The members of an owner: traceId and spanId, and the parentSpanId of a call,
// which begins with the quote after the call's span id.
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

// owner returns the owner that is an agent of a run. It is good until the next
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

// call appends the span id of a call: 16 digits.
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

// appendID appends 16 digits that are not all zero.
func appendID(dst []byte, h uint64) []byte { return jsonwire.AppendHex(dst, max(h, 1)) }
