package kaos

import (
	"slices"
	"strings"
	"time"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect/internal/engine"
	"github.com/agentevents/agentevents/internal/jsonwire"
)

// maxRecent is how many entries a list has, which is searched one by one.
const maxRecent = 16

// An opened is a span that has begun and has not ended.
type opened struct {
	about
	spanID
	other string    // for readers: see parts; for the encoder the parent of an agent
	below bool      // an agent whose parent is the agent of the span around it
	at    time.Time // for the encoder: of the start
}

// An about is the subject of a span. The id of a handoff is the agent that hands over, or both
// agents.
type about struct{ id, subject, agent, run string }

// A spanID is the span id of an event, or an id that is made up.
type spanID struct {
	span string // of the event
	made uint64 // the made-up id, of which the first madeDigits hex digits are written
}

const madeDigits = 12

// append appends the id as a JSON string. Made-up ids depend on the place in the log:
// whole lines, which are compared, have none.
func (s spanID) append(dst []byte, whole bool) []byte {
	if s.span != "" || whole {
		return jsonwire.AppendString(dst, s.span)
	}
	n := len(dst) + 1
	dst = jsonwire.AppendHex(append(dst, '"'), s.made)
	return append(dst[:n+madeDigits], '"')
}

// text returns the id as it is read.
func (s spanID) text() string {
	if s.made == 0 {
		return s.span
	}
	return jsonwire.Text(string(s.append(nil, false)))
}

// roots are the runs in which the root agent has a line of its own. In others nobody knows
// of it: agents that are written without a parent have none.
type roots struct {
	runs engine.Recent[string, struct{}]
}

func (r *roots) have(run string) bool { _, ok := r.runs.Use(run); return ok }

// note records whether the line of an event belongs to the root agent.
func (r *roots) note(ev *agentevents.Event) {
	switch p := ev.Payload.(type) {
	case *agentevents.AgentStarted, *agentevents.AgentEnded:
		return
	case *agentevents.SpanRecorded:
		if p.Subject == "subagent" && p.Phase != "progress" && slices.Contains(phases, p.Phase) {
			return // it is read as one of these
		}
	}
	if (ev.AgentID == "" || ev.AgentID == Root) && !r.have(ev.RunID) {
		r.runs.Set(strings.Clone(ev.RunID), struct{}{})
	}
}

// A pair are the agents of a handoff: readers know it by them, as no line has its id.
type pair struct{ from, to string }

// handoff returns the pair of the open handoff that an event accepts: its own, if a
// handoff with the id has this pair, or else the pair of the first handoff with the id.
func (e *Encoder) handoff(run string, p *agentevents.HandoffAccepted) pair {
	own, open := pair{p.From.AgentID, p.To.AgentID}, e.handoffs.Of(scope{run, p.HandoffID})
	if p.HandoffID == "" || len(open) == 0 || slices.Contains(open, own) {
		return own
	}
	return open[0]
}

// noteHandoff notes a handoff that begins or is accepted.
func (e *Encoder) noteHandoff(ev *agentevents.Event) {
	switch p := ev.Payload.(type) {
	case *agentevents.HandoffRequested:
		if p.HandoffID == "" {
			return
		}
		of := scope{strings.Clone(ev.RunID), strings.Clone(p.HandoffID)}
		if open := e.handoffs.Of(of); len(open) < maxRecent {
			e.handoffs.Set(of, append(open, pair{strings.Clone(p.From.AgentID), strings.Clone(p.To.AgentID)}))
		}
	case *agentevents.HandoffAccepted:
		of := scope{ev.RunID, p.HandoffID}
		open := e.handoffs.Of(of)
		i := slices.Index(open, e.handoff(ev.RunID, p))
		if i < 0 {
			return
		}
		if open = slices.Delete(open, i, i+1); len(open) > 0 {
			e.handoffs.Set(of, open)
		} else {
			e.handoffs.Delete(of)
		}
	}
}

// A change is the effect of a line on the open spans. It takes effect when the line is written or
// read: a refused line changes nothing.
type change struct {
	ends   *opened // nil if none
	begins opened  // without a subject if none
	first  early   // an end whose start has not come; without a subject if none
	late   *early  // the end of the span that a line begins late; nil if none
}

// An early is the end of a span whose start has not come so far: its line may be written late.
type early struct {
	about
	span string
	at   time.Time
}

// late returns the end of the span that a line begins which was written late: it has an earlier time.
func (o *opens) late(ev *agentevents.Event, subject string) *early {
	if !agentevents.TimeKnown(ev.Time) {
		return nil
	}
	for i := len(o.early) - 1; i >= 0; i-- {
		if e := &o.early[i]; e.span == ev.SpanID && e.subject == subject && e.run == ev.RunID && ev.Time.Before(e.at) {
			return e
		}
	}
	return nil
}

// endedFirst remembers an end whose start has not come.
func (o *opens) endedFirst(e *early) {
	if e.subject == "" {
		return
	}
	o.early = engine.Limited(o.early,
		early{about{strings.Clone(e.id), e.subject, "", strings.Clone(e.run)}, strings.Clone(e.span), e.at})
}

// A key finds an open span by its subject. Without a subject, it finds the span by its id and run.
type key struct {
	about
	spanID
}

// opens remembers the open spans, of which a log mostly has few: the latest are in a
// list, the others in a map. Many spans never end (most logs have no end of a
// handoff).
type opens struct {
	recent []opened // the latest last; their texts may be parts of lines
	others engine.Recent[key, *opened]
	early  []early // the latest last; their texts are no parts of lines
}

func (p *opened) keys() [2]key { return [...]key{{about: p.about}, {about{run: p.run}, p.spanID}} }

// find returns the open span that a key finds, or nil. It is valid until the next
// change.
func (o *opens) find(k *key) *opened {
	for i := len(o.recent) - 1; i >= 0; i-- {
		p := &o.recent[i]
		if k.subject == "" && p.spanID == k.spanID && p.run == k.run || k.subject != "" && p.about == k.about {
			return p
		}
	}
	if o.others.Len() == 0 { // as mostly
		return nil
	}
	return o.others.Of(*k)
}

// ended returns the open span that ends with a line, or nil. It has the id of the line, and the
// same subject unless the line begins another span.
func (o *opens) ended(run string, id spanID, subject string, begins bool) *opened {
	p := o.find(&key{about{run: run}, id})
	if p != nil && !begins && p.subject != subject {
		return nil
	}
	return p
}

// within reports whether an open agent has a span.
func (o *opens) within(run, span string) bool {
	p := o.find(&key{about{run: run}, spanID{span: span}})
	return span != "" && p != nil && p.subject == "subagent"
}

// known returns the id by which readers know the call or agent of a line. It is the id of the
// start, or the id on the line. It is the span's id if the line has none, or one that another open
// span has.
func (o *opens) known(c *change, said about, begins bool, span spanID) string {
	switch {
	case !begins && c.ends != nil:
		return c.ends.id
	case begins && c.late != nil:
		return c.late.id
	}
	taken := said.id == ""
	if begins && !taken {
		p := o.find(&key{about: said})
		taken = p != nil && p != c.ends
	}
	if taken {
		return span.text()
	}
	return said.id
}

// below reports whether the parent of an agent is the agent of the span around it: its line
// names none, as the end of one whose start names none.
func (o *opens) below(c *change, ev *agentevents.Event, begins bool) bool {
	if !begins && c.ends != nil {
		return c.ends.below
	}
	return o.within(ev.RunID, ev.ParentSpanID)
}

// settle makes a change.
func (o *opens) settle(c *change) {
	o.remove(c.ends)
	if c.begins.subject != "" {
		o.add(&c.begins)
	}
	o.endedFirst(&c.first)
	if c.late != nil {
		began := *c.late // which is in the list
		o.early = slices.DeleteFunc(o.early, func(e early) bool { return e == began })
	}
	c.reset()
}

// start returns the start of the span that ends, and nothing for a line that begins one.
func (c *change) start(begins bool) (start opened) {
	if c.ends != nil && !begins {
		start = *c.ends
	}
	return start
}

func (c *change) reset() { c.ends, c.begins.subject, c.first.subject, c.late = nil, "", "", nil }

// remove removes an open span, if p is not nil.
func (o *opens) remove(p *opened) {
	if p == nil {
		return
	}
	for i := range o.recent {
		if p == &o.recent[i] {
			o.recent = slices.Delete(o.recent, i, i+1)
			return
		}
	}
	for _, k := range p.keys() {
		if o.others.Of(k) == p {
			o.others.Delete(k)
		}
	}
}

// add adds an open span. The oldest of the list moves to the map, with texts of its
// own, which keep no line alive.
func (o *opens) add(p *opened) {
	if len(o.recent) == maxRecent {
		old := o.recent[0]
		o.recent = slices.Delete(o.recent, 0, 1)
		for _, text := range [...]*string{&old.id, &old.agent, &old.run, &old.span, &old.other} {
			*text = strings.Clone(*text)
		}
		for _, k := range old.keys() {
			o.others.Set(k, &old)
		}
	}
	o.recent = append(o.recent, *p)
}
