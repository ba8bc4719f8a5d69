package main

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"slices"
	"strings"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/internal/chain"
)

func catCommand() command {
	return command{
		name:    "cat",
		args:    "[flags] FILE...",
		purpose: "print all or selected lines of a log, byte for byte",
		about: `
Lines that cannot be read are reported on standard error and left out. A byte order mark,
blank lines and carriage returns at the ends of lines are left out too. So are the hashes
of a chained log, because selected lines are not a chain: copy the file to keep them.
Lines of other formats are printed as native lines; 'agentevents convert' writes the other
formats.`,
		examples: []string{
			"agentevents cat --kind agent.toolCalled --kind agent.toolReturned run.jsonl",
			"agentevents cat --agent planner run.jsonl.000007.gz",
		},
		flags: func(fs *flag.FlagSet) action {
			var only filter
			l := logReader{verb: true}
			l.flags(fs)
			only.flags(fs)
			return func(in *invocation) error {
				events, err := l.events(in)
				if err != nil {
					return err
				}
				p := printer{out: in.stdout}
				for at, ev := range events {
					for _, ev := range only.pick(ev) {
						if err := p.print(&l, at, &ev); err != nil {
							return err
						}
					}
				}
				return cmp.Or(only.missing(&l), l.result())
			}
		},
	}
}

// A filter selects events.
type filter struct {
	run, agent, workflow, phase string
	kinds                       kinds
	from                        sequence // the lowest

	// An event has come of the run, of the agent, of the kinds, and in the workflow and phase.
	found, foundAgent, foundKind, foundIn bool

	inside map[place]bool              // spans of open agents that started in the phase or the workflow
	starts map[place]agentevents.Event // starts without an id, by span, until an event names the agent
	list   []agentevents.Event
}

// A place is a span of a run.
type place struct{ run, span string }

func (f *filter) flags(fs *flag.FlagSet) {
	fs.Var(&f.kinds, "kind", "only events of this `KIND`; may be given several times")
	fs.StringVar(&f.run, "run", "", "only events of the run `ID`")
	fs.StringVar(&f.agent, "agent", "", "only events of the agent `ID`; without an agent, of the node, execution or span")
	fs.Var(&f.from, "from", "only events from the sequence `SEQ` on")
	fs.StringVar(&f.workflow, "workflow", "", "only events of the workflow `ID`")
	fs.StringVar(&f.phase, "phase", "", "only events of the phase `NAME`")
}

// pick returns the events to print for an event: itself if it is wanted, and in front of it the
// start of its agent if it is the first to name that. The list is good until the next call.
func (f *filter) pick(ev agentevents.Event) []agentevents.Event {
	f.list = f.list[:0]
	f.found = f.found || ev.RunID == f.run
	own, in := f.agent == "" || f.by(&ev), f.within(&ev)
	f.foundAgent, f.foundIn = f.foundAgent || own, f.foundIn || in
	f.foundKind = f.foundKind || len(f.kinds) == 0 || slices.Contains(f.kinds, string(ev.Kind()))
	if start, ok := f.started(&ev, own, in); ok {
		f.list = append(f.list, start)
	}
	if own && in && f.rest(&ev) {
		f.list = append(f.list, ev)
	}
	return f.list
}

// missing returns an error if the log that was read has no event that one of the flags selects. A
// known kind may be missing.
func (f *filter) missing(l *logReader) error {
	unknown := slices.IndexFunc(f.kinds, func(kind string) bool {
		_, known := agentevents.Kind(kind).Info()
		return !known
	})
	switch {
	case l.failed:
	case f.run != "" && !f.found:
		return noRun(f.run)
	case f.agent != "" && !f.foundAgent:
		return usageError(fmt.Sprintf("the log has no event of agent %s; 'agentevents tree' draws its agents", f.agent))
	case !f.foundKind && unknown >= 0:
		return usageError(fmt.Sprintf("the log has no event of kind %s; 'agentevents kinds' lists the kinds", f.kinds[unknown]))
	case (f.workflow != "" || f.phase != "") && !f.foundIn:
		return usageError("the log has no event in the workflow and phase of the flags; 'agentevents tree' draws them")
	}
	return nil
}

// rest reports whether an event meets the conditions that need no other event.
func (f *filter) rest(ev *agentevents.Event) bool {
	return (f.run == "" || ev.RunID == f.run) && ev.Sequence >= uint64(f.from) &&
		(len(f.kinds) == 0 || slices.Contains(f.kinds, string(ev.Kind())))
}

// within reports whether an event belongs to the workflow and the phase. An event that names
// neither belongs to those of the start of the agent whose span, or the span around it, it is in.
func (f *filter) within(ev *agentevents.Event) bool {
	if f.workflow == "" && f.phase == "" {
		return true
	}
	in := (f.workflow == "" || ev.WorkflowID == f.workflow) && (f.phase == "" || ev.Phase == f.phase)
	at, around := place{ev.RunID, ev.SpanID}, place{ev.RunID, ev.ParentSpanID}
	_, starts := ev.Payload.(*agentevents.AgentStarted)
	if ev.WorkflowID == "" && ev.Phase == "" {
		in = !starts && f.inside[at] || f.inside[around]
	}
	if _, ends := ev.Payload.(*agentevents.AgentEnded); starts || ends {
		delete(f.inside, at)
	}
	if starts && in && ev.SpanID != "" {
		f.inside = set(f.inside, at, true)
	}
	return in
}

// started returns the start of the agent that an event is the first to name, if that is the wanted
// agent: own means that the event is wanted itself. in means that it is in the wanted workflow and
// phase.
func (f *filter) started(ev *agentevents.Event, own, in bool) (start agentevents.Event, ok bool) {
	if f.agent == "" {
		return start, false
	}
	at := place{ev.RunID, ev.SpanID}
	switch ev.Payload.(type) {
	case *agentevents.AgentStarted:
		if delete(f.starts, at); ev.AgentID == "" && ev.SpanID != "" && !own && in && f.rest(ev) {
			f.starts = set(f.starts, at, *ev)
		}
		return start, false
	case *agentevents.AgentEnded:
	default:
		if _, ok = f.starts[at]; !ok {
			at.span = ev.ParentSpanID
		}
		if ev.AgentID == "" {
			return start, false
		}
	}
	start, ok = f.starts[at]
	delete(f.starts, at)
	return start, ok && own
}

func set[V any](m map[place]V, at place, v V) map[place]V {
	if m == nil {
		m = map[place]V{}
	}
	m[at] = v
	return m
}

// A kinds is a flag for kinds of events. It takes kinds that this version does not know, but
// none that differs from a known one in case only.
type kinds []string

func (k *kinds) String() string { return strings.Join(*k, ",") }

func (k *kinds) Set(s string) error {
	for known := range agentevents.Kinds() {
		if is := string(known.Kind); is != s && strings.EqualFold(is, s) {
			return fmt.Errorf("want %s", is)
		}
	}
	if strings.Contains(s, ",") {
		return errors.New("want one kind; give the flag again for each")
	}
	if !strings.Contains(s, ".") {
		return errors.New("a kind has a dot; 'agentevents kinds' lists the kinds")
	}
	*k = append(*k, s)
	return nil
}

// by reports whether an event belongs to the agent. The name of an agent without an id may be the
// id of another.
func (f *filter) by(ev *agentevents.Event) bool {
	return ev.AgentID == f.agent ||
		ev.AgentID == "" && slices.Contains([]string{ev.NodeID, ev.NodeRunID, ev.SpanID, ev.ParentSpanID}, f.agent)
}

// A printer prints events as lines.
type printer struct {
	out  *output
	line []byte
	last *chain.Hash // of the line before, which each line is chained to; nil chains none
}

// print prints one event. An event that cannot be written is reported like a bad line. The error is
// the output's.
func (p *printer) print(l *logReader, at position, ev *agentevents.Event) error {
	line, err := ev.AppendJSON(p.line[:0])
	if err != nil {
		l.bad++
		l.report(at, visible(err.Error()))
		return nil
	}
	if p.last != nil {
		line, *p.last = chain.Append(line[:0], line, *p.last)
	}
	p.line = append(line, '\n')
	_, err = p.out.Write(p.line)
	return err
}
