package view

import (
	"bufio"
	"cmp"
	"encoding/json"
	"io"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/internal/replay"
	"github.com/agentevents/agentevents/internal/rundiff"
	"github.com/agentevents/agentevents/internal/spans"
	"github.com/agentevents/agentevents/internal/view"
	"github.com/agentevents/agentevents/report"
)

// A data is the content of a page. It is written as lines: first the head, then for each run, in the
// order of the head, the row of each event, and then the line of each event.
type data struct {
	o      Options
	events int
	runs   []*run
	byID   [2]map[string]*run
	diffs  [2]*rundiff.Log
	logs   int
	head   head
}

// A head is the first line. Members are read by the page under these names.
type head struct {
	Redacted bool            `json:"redacted"`
	Masked   int             `json:"masked"` // events
	Logs     []logHead       `json:"logs"`
	Runs     []*runHead      `json:"runs"`
	Diff     *rundiff.Report `json:"diff,omitempty"`
	Live     string          `json:"live,omitempty"`   // where the events come from, if the run goes on
	Choice   []string        `json:"choice,omitempty"` // ids of runs, on the page that lists them
}

type logHead struct {
	Name   string `json:"name"`
	Unread int    `json:"unread"` // lines that cannot be read
}

// A runHead is all of a run that is the same after each event. Times are milliseconds since Start,
// durations milliseconds.
type runHead struct {
	Log        int         `json:"log"`
	ID         string      `json:"id"`
	Session    string      `json:"session"`
	Name       string      `json:"name"`
	Status     string      `json:"status"`
	Mark       int         `json:"mark"`
	Why        string      `json:"why"`
	Start      string      `json:"start"` // in RFC 3339; empty when it is not known
	Took       float64     `json:"took"`
	Tokens     string      `json:"tokens"`
	Cost       string      `json:"cost"`
	Violations int         `json:"violations"`
	Events     int         `json:"events"`
	Kinds      []string    `json:"kinds"`
	Agents     []agentHead `json:"agents"`
	Calls      []callHead  `json:"calls"`
	Bars       []bar       `json:"bars"`
	Gaps       []gap       `json:"gaps"`
	Attention  []item      `json:"attention"`
	Items      []item      `json:"items"`
	Rules      []item      `json:"rules"`
	Tables     []table     `json:"tables"`
}

// An agentHead is an agent, or an attempt of one, in the order of the tree.
type agentHead struct {
	ID      string  `json:"id"`
	Name    string  `json:"name"`
	Depth   int     `json:"depth"`
	Attempt int     `json:"attempt"` // 0 for the only one
	Status  string  `json:"status"`
	Mark    int     `json:"mark"`
	Model   string  `json:"model"`
	Task    string  `json:"task"`
	Calls   int     `json:"calls"`
	Failed  int     `json:"failed"`
	Tokens  string  `json:"tokens"`
	Cost    string  `json:"cost"`
	Took    float64 `json:"took"`
	At      uint64  `json:"at"` // sequence of its first event
}

// A callHead is a tool call.
type callHead struct {
	At     uint64  `json:"at"`  // sequence of its first event
	End    int64   `json:"end"` // sequence of its return; -1 without one
	Tool   string  `json:"tool"`
	Text   string  `json:"text"` // the main argument
	Status string  `json:"status"`
	Mark   int     `json:"mark"`
	Took   float64 `json:"took"` // -1 is unknown
	Error  string  `json:"error"`
}

// A bar is a span of the timeline.
type bar struct {
	Agent string  `json:"agent"`
	Type  string  `json:"type"` // agent, tool, model, wait or other
	Name  string  `json:"name"`
	From  float64 `json:"from"`
	To    float64 `json:"to"`
	First uint64  `json:"first"`
	Bad   bool    `json:"bad,omitempty"`
}

// A gap is a time without events.
type gap struct {
	From float64 `json:"from"`
	To   float64 `json:"to"`
	Why  string  `json:"why"`
}

// An item is a line about the run, as in package report.
type item struct {
	Topic string `json:"topic"`
	At    int64  `json:"at"` // sequence; -1 for one without an event
	Text  string `json:"text"`
	Mark  int    `json:"mark"`
	Agent string `json:"agent"`
}

// A table tells where time and tokens went, or where the total comes from.
type table struct {
	Name    string     `json:"name"`
	Columns []string   `json:"columns"`
	Rows    [][]string `json:"rows"`
}

// A row is an event in the list: sequence, milliseconds since the start (-1 is unknown), index of the
// agent's name, index of the kind, subject, mark, status, text, and the change that it makes.
type row struct {
	ev     report.Item
	agent  string
	kind   string
	at     float64
	time   time.Time
	change *change
}

// A change is the part of the state that an event changes. A member that is absent has not changed.
type change struct {
	Status    string                      `json:"s,omitempty"`
	Agents    map[string]string           `json:"a,omitempty"` // status by id
	Open      map[string][]string         `json:"o,omitempty"` // ids of open calls by agent
	Questions []string                    `json:"q,omitempty"` // all that wait; one empty text for none
	Counters  *counters                   `json:"c,omitempty"`
	State     map[string]agentevents.JSON `json:"t,omitempty"` // the whole tree
}

// counters are figures of the fold at an event.
type counters struct {
	Calls      int      `json:"calls"`
	Failed     int      `json:"failed"`
	ModelCalls int      `json:"models"`
	Messages   int      `json:"messages"`
	Tokens     int64    `json:"tokens"`
	Least      bool     `json:"least,omitempty"` // the tokens are the least
	Cost       *float64 `json:"cost,omitempty"`
	Violations int      `json:"violations"`
}

// A run collects a run.
type run struct {
	head    runHead
	whole   *agentevents.Fold
	steps   *agentevents.Fold // without calls: for the state after each event
	details report.Details
	rows    []row
	lines   []string
	last    agentevents.RunView
	counted counters
	state   string
	returns map[[2]string][]uint64
	spans   *replay.Log
	bars    []*spans.Span
	first   time.Time
	masked  int // events
}

func newData(o Options) *data {
	return &data{o: o, head: head{Redacted: !o.Unredacted}}
}

// title returns the title of the document.
func (d *data) title(logs []Log) string {
	names := make([]string, len(logs))
	for i := range logs {
		names[i] = logs[i].Name
	}
	return cmp.Or(d.o.Title, strings.Join(names, " and "), "agentevents")
}

// add adds a log.
func (d *data) add(at int, l *Log) error {
	d.head.Logs = append(d.head.Logs, logHead{Name: l.Name})
	d.byID[at], d.diffs[at] = map[string]*run{}, new(rundiff.Log)
	d.logs++
	events := l.Events
	if !d.o.Unredacted {
		events = d.o.Policy.Redact(events)
	}
	for ev, err := range events {
		if err != nil {
			d.head.Logs[at].Unread++
			continue
		}
		if d.o.Run != "" && ev.RunID != d.o.Run {
			continue
		}
		if err := d.event(at, &ev); err != nil {
			return err
		}
	}
	return nil
}

// event adds an event to its run.
func (d *data) event(at int, ev *agentevents.Event) error {
	line, err := ev.AppendJSON(nil)
	if err != nil {
		d.head.Logs[at].Unread++ // it has no line
		return nil
	}
	r := d.byID[at][ev.RunID]
	if r == nil {
		r = newRun(at, strings.Clone(ev.RunID), d.o)
		d.byID[at][r.head.ID] = r
		d.runs = append(d.runs, r)
	}
	d.events++
	if err := d.diffs[at].Add(ev); err != nil {
		return err
	}
	r.add(ev, string(line))
	return nil
}

func newRun(log int, id string, o Options) *run {
	f := agentevents.FoldOptions{KeepCalls: math.MaxInt, MaxViolations: maxRules, Lifecycle: o.Lifecycle}
	r := &run{head: runHead{Log: log, ID: id}, whole: agentevents.NewFold(f), returns: map[[2]string][]uint64{}}
	f.KeepCalls, f.MaxViolations = -1, -1
	r.steps = agentevents.NewFold(f)
	r.spans = replay.New(spans.Options{Ended: func(s *spans.Span) { r.bars = append(r.bars, s) }})
	return r
}

// maxRules is the number of violations that a page lists.
const maxRules = 200

// add adds an event.
func (r *run) add(ev *agentevents.Event, line string) {
	r.whole.Apply(*ev)
	r.steps.Apply(*ev)
	r.details.Add(ev)
	r.spans.Feed(ev)
	if ev.Marks.Has(agentevents.MarkRedacted) {
		r.masked++
	}
	one := report.Event(ev)
	one.Subject = strings.Clone(brief(one.Subject, maxName))
	one.Status, one.Text = strings.Clone(brief(one.Status, maxName)), strings.Clone(brief(one.Text, maxText))
	if agentevents.TimeKnown(ev.Time) && r.first.IsZero() {
		r.first = ev.Time
	}
	if p, ok := ev.Payload.(*agentevents.ToolReturned); ok {
		key := [2]string{strings.Clone(cmp.Or(ev.AgentID, ev.NodeRunID)), strings.Clone(p.CallID)}
		r.returns[key] = append(r.returns[key], ev.Sequence)
	}
	r.rows = append(r.rows, row{
		ev: one, agent: strings.Clone(cmp.Or(ev.AgentID, ev.NodeRunID)),
		kind: string(ev.Kind()), time: ev.Time, change: r.step(ev),
	})
	r.lines = append(r.lines, line)
}

// snapshots is the number of events after which the counters may lag in a long log: they are taken
// from a snapshot, which takes time in proportion to the state.
const snapshots = 4096

// step returns the change that an event makes.
func (r *run) step(ev *agentevents.Event) *change {
	now, was := r.steps.State(), &r.last
	c := change{}
	if now.Status != was.Status {
		c.Status = string(now.Status)
	}
	before := make(map[string]*agentevents.AgentView, len(was.Agents))
	for i := range was.Agents {
		before[was.Agents[i].AgentID] = &was.Agents[i]
	}
	for i := range now.Agents {
		a := &now.Agents[i]
		b := before[a.AgentID]
		if b == nil || a.Status != b.Status || a.Open != b.Open {
			put(&c.Agents, a.AgentID, agentWord(a))
		}
		if b == nil && len(a.OpenCalls) > 0 || b != nil && !slices.Equal(a.OpenCalls, b.OpenCalls) {
			put(&c.Open, a.AgentID, append([]string{}, a.OpenCalls...))
		}
	}
	if !slices.Equal(now.Questions, was.Questions) {
		c.Questions = []string{}
		for _, q := range now.Questions {
			kind, _, _ := strings.Cut(string(q.Kind), ".")
			c.Questions = append(c.Questions, kind+" "+q.ID)
		}
		if len(c.Questions) == 0 {
			c.Questions = []string{""}
		}
	}
	r.last = now
	r.count(ev, &c)
	if c.Status == "" && c.Agents == nil && c.Open == nil && c.Questions == nil && c.Counters == nil && c.State == nil {
		return nil
	}
	return &c
}

func agentWord(a *agentevents.AgentView) string {
	switch {
	case a.Ended && !a.Status.Terminal():
		return cmp.Or(string(a.Status), "-") + " (ended)"
	case !a.Open && !a.Ended:
		return cmp.Or(string(a.Status), "-")
	}
	return string(a.Status)
}

// count adds counters and the state tree, if they have changed.
func (r *run) count(ev *agentevents.Event, c *change) {
	n := len(r.rows)
	_, patches := ev.Payload.(*agentevents.StatePatched)
	if every := 1 + n/snapshots; n%every != 0 && !patches {
		return
	}
	s := r.steps.Snapshot()
	now := counters{Messages: len(s.Messages), Tokens: view.Tokens(s.Usage.Usage), Least: s.Usage.Partial, Violations: s.ViolationCount}
	for _, t := range s.Tools {
		now.Calls, now.Failed = now.Calls+t.Calls, now.Failed+t.Failed
	}
	for _, a := range s.Agents {
		now.ModelCalls += a.ModelCalls
	}
	if s.Usage.CostUSD.OK {
		now.Cost = &s.Usage.CostUSD.V
	}
	if !now.same(&r.counted) {
		r.counted, c.Counters = now, &now
	}
	if text, err := json.Marshal(s.State); err == nil && string(text) != r.state && len(s.State)+len(r.state) > 0 {
		r.state, c.State = string(text), s.State
	}
}

func (c *counters) same(b *counters) bool {
	x, y := *c, *b
	x.Cost, y.Cost = nil, nil
	return x == y && (c.Cost == nil) == (b.Cost == nil) && (c.Cost == nil || *c.Cost == *b.Cost)
}

func put[K comparable, V any](m *map[K]V, k K, v V) {
	if *m == nil {
		*m = map[K]V{}
	}
	(*m)[k] = v
}

// write writes all lines.
func (d *data) write(w io.Writer) error {
	for _, r := range d.runs {
		r.spans.Close()
		r.finish()
		d.head.Masked += r.masked
		d.head.Runs = append(d.head.Runs, &r.head)
	}
	if d.logs == 2 {
		d.head.Diff = rundiff.Compare(d.diffs[0], d.diffs[1])
	}
	out := bufio.NewWriterSize(w, 1<<16)
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(&d.head); err != nil {
		return err
	}
	var line []byte
	for _, r := range d.runs {
		kinds, names := indexes(r.head.Kinds), map[string]int{}
		for i := range r.head.Agents {
			if _, known := names[r.head.Agents[i].ID]; !known {
				names[r.head.Agents[i].ID] = i
			}
		}
		for i := range r.rows {
			w := &r.rows[i]
			agent := -1
			if n, ok := names[w.agent]; ok {
				agent = n
			}
			text, err := w.appendJSON(line[:0], agent, kinds[w.kind])
			if err != nil {
				return err
			}
			line = append(text, '\n')
			if _, err := out.Write(line); err != nil {
				return err
			}
		}
		for _, line := range r.lines {
			if _, err := out.WriteString(line); err != nil {
				return err
			}
			if err := out.WriteByte('\n'); err != nil {
				return err
			}
		}
	}
	return out.Flush()
}

// appendJSON appends the row. agent and kind are indexes, or names.
func (w *row) appendJSON(dst []byte, agent, kind any) ([]byte, error) {
	text := w.ev.Text
	if len(w.ev.Facts) > 0 {
		text = report.Dashed(strings.Join(w.ev.Facts, " · "), text)
	}
	list, err := json.Marshal([]any{w.ev.Sequence, w.at, agent, kind,
		w.ev.Subject, int(w.ev.Mark), w.ev.Status, text, w.change})
	return append(dst, list...), err
}

func indexes(names []string) map[string]int {
	m := make(map[string]int, len(names))
	for i, name := range names {
		m[name] = i
	}
	return m
}

// ms returns a duration in milliseconds.
func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// finish fills the head.
func (r *run) finish() {
	s := r.whole.Snapshot()
	h := &r.head
	items := report.Of(s, &r.details)
	word, mark := view.Run(s)
	h.Session, h.Name, h.Status = s.SessionID, brief(s.Name, maxName), word
	h.Mark, h.Why = int(mark), brief(report.Reason(s, items), maxText)
	if !r.first.IsZero() {
		h.Start = r.first.UTC().Format(time.RFC3339Nano)
	}
	h.Took = ms(view.Length(s))
	h.Tokens, h.Cost = tokens(s.Usage.Usage, s.Usage.Partial), dollars(s.Usage.CostUSD)
	h.Violations, h.Events = s.ViolationCount, len(r.rows)
	kinds := map[string]bool{}
	for i := range r.rows {
		w := &r.rows[i]
		kinds[w.kind] = true
		w.at = r.since(w.time)
	}
	h.Kinds = slices.Sorted(maps.Keys(kinds))
	h.Agents = agents(s)
	h.Calls = r.calls(s)
	h.Bars = r.timeline()
	h.Gaps = r.gaps()
	for i := range items {
		h.Items = append(h.Items, itemOf(&items[i]))
	}
	attention := report.Attention(items)
	for i := range attention {
		h.Attention = append(h.Attention, itemOf(&attention[i]))
	}
	for _, v := range s.Violations {
		h.Rules = append(h.Rules, item{
			Topic: "violation", At: int64(v.Sequence), Text: brief(v.Error(), maxText), Mark: int(view.Warn), Agent: v.AgentID,
		})
	}
	h.Tables = tables(s, h)
}

// since returns the milliseconds since the start, -1 when the time is not known.
func (r *run) since(t time.Time) float64 {
	if !agentevents.TimeKnown(t) || r.first.IsZero() {
		return -1
	}
	return max(0, ms(t.Sub(r.first)))
}

func itemOf(i *report.Item) item {
	at := int64(i.Sequence)
	if i.Time.IsZero() && i.Sequence == 0 {
		at = -1
	}
	return item{Topic: string(i.Topic), At: at, Text: brief(i.Sentence(), maxText), Mark: int(i.Mark), Agent: i.AgentID}
}

func tokens(u agentevents.Usage, partial bool) string {
	n := view.Tokens(u)
	if n == 0 {
		return ""
	}
	text := view.Count(n, "token")
	if partial {
		text = "at least " + text
	}
	return text
}

func dollars(c agentevents.Opt[float64]) string {
	if !c.OK {
		return ""
	}
	return view.Dollars(c.V)
}
