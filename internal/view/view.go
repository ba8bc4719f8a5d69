// Package view has the rules that all views of a run share: the tree, the list of runs, the report
// on one run, and the figures of many.
package view

import (
	"cmp"
	"encoding/json"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/internal/endword"
	"github.com/agentevents/agentevents/internal/jsonwire"
)

// Executes reports whether nothing but the execution of a node identifies the agent.
func Executes(id string, a *agentevents.AgentSnapshot) bool {
	return a != nil && a.NodeID != "" && id == a.NodeRunID
}

// Name returns the name of an agent for people: the one in its start, else its id, or its node if
// only an execution of that identifies it.
func Name(id string, a *agentevents.AgentSnapshot) string {
	if a != nil && a.Name != "" {
		return a.Name
	}
	if Executes(id, a) {
		return a.NodeID
	}
	if a != nil && id == a.SpanID && a.Ref.V.AgentID != "" { // one of several agents with one id
		return a.Ref.V.AgentID
	}
	return id
}

// Length returns the duration of a run. It is at least the duration of each agent, because a log
// that was captured without a clock has no useful times. 0 means that the duration is not known, or
// that the run is not over.
func Length(s *agentevents.RunSnapshot) time.Duration {
	d := time.Duration(0)
	switch {
	case s.CompletedAt.IsZero():
		return 0
	case agentevents.TimeKnown(s.StartedAt) && agentevents.TimeKnown(s.CompletedAt):
		d = max(d, s.CompletedAt.Sub(s.StartedAt))
	}
	for _, a := range s.Agents {
		if a != nil {
			d = max(d, a.Duration.V)
		}
	}
	return d
}

// Models returns the models of a run, in the order of the agents' starts.
func Models(s *agentevents.RunSnapshot) (names []string) {
	add := func(name string) {
		if name != "" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	for _, a := range s.AgentsInOrder() {
		add(Model(a))
	}
	for _, name := range slices.Sorted(maps.Keys(s.Usage.Models)) {
		add(name)
	}
	for i := range s.OpenModelCalls {
		add(s.OpenModelCalls[i].Model)
	}
	return names
}

// Model returns the model of an agent: the model in its start, else the first that answered it in
// its attempt. If its end states only the usage of other models, Model returns those, because the
// requested model gave no answer.
func Model(a *agentevents.AgentSnapshot) string {
	model := a.Model
	if _, used := a.Usage.Models[model]; len(a.Usage.Models) > 0 && !used {
		return strings.Join(slices.Sorted(maps.Keys(a.Usage.Models)), ", ")
	}
	for i := range a.Usage.Reported {
		model = cmp.Or(model, a.Usage.Reported[i].Model)
	}
	return model
}

// Stated returns the tokens that the ends of an agent state, if no report of the agent counts any.
func Stated(u *agentevents.AgentUsage) int64 {
	if tokens, _ := u.Total(); Tokens(tokens) > 0 {
		return 0
	}
	return u.StatedTokens().V
}

// Cached returns the tokens that a provider read from its cache or wrote to it. InputTokens does
// not include them.
func Cached(u agentevents.Usage) int64 {
	return Plus(u.CacheReadInputTokens.V, u.CacheCreationInputTokens.V)
}

// Tokens returns the number of all tokens: the sum of the kinds of tokens, or TotalTokens if that is
// greater. Some events state TotalTokens alone.
func Tokens(u agentevents.Usage) int64 {
	return max(u.TotalTokens.V, Plus(Plus(u.InputTokens, u.OutputTokens), Cached(u)))
}

// Plus adds two numbers. The sum stops at the highest number.
func Plus[T ~int64](a, b T) T {
	if sum := a + b; b <= 0 || sum > a {
		return sum
	}
	return math.MaxInt64
}

// Node returns the word for the status of a node, and why it failed, was skipped or waits. A
// fold keeps the first two of these in the node's outputs.
func Node(s *agentevents.RunSnapshot, id string) (word, why string) {
	var out struct{ Reason, Error string }
	status, output := s.NodeStatus[id], string(s.Outputs[id])
	failed := status == agentevents.NodeStatusFailed
	done := status == agentevents.NodeStatusDone
	skipped := done && strings.HasPrefix(output, `{"skipped":true,"reason":"`)
	cancelled := done && strings.HasPrefix(output, `{"cancelled":true,"reason":"`)
	if (failed || skipped || cancelled) && json.Unmarshal([]byte(output), &out) != nil {
		return string(status), ""
	}
	switch {
	case skipped:
		return "skipped", out.Reason
	case cancelled:
		return "cancelled", out.Reason
	}
	open := status == agentevents.NodeStatusRunning || status == agentevents.NodeStatusSuspended
	if open && s.Status.Terminal() { // nothing interrupts a node of a run that has ended
		if s.TerminalKind == "" && !nodesEnd(s) {
			return "visited", ""
		}
		return NoEnd, s.Suspended[id]
	}
	return string(status), cmp.Or(out.Error, suspended(s, id))
}

// nodesEnd reports whether a node of the run has ended or waited. A document that has no runs may
// have no ends of nodes either: then agents visit them.
func nodesEnd(s *agentevents.RunSnapshot) bool {
	for _, status := range s.NodeStatus {
		if status != agentevents.NodeStatusRunning && status != agentevents.NodeStatusPending {
			return true
		}
	}
	return false
}

// suspended returns the reason of a suspended node, with the confidence and the threshold that
// the details have.
func suspended(s *agentevents.RunSnapshot, id string) string {
	why := s.Suspended[id]
	var d struct{ Threshold, Observed agentevents.Opt[float64] }
	if why == "" || json.Unmarshal([]byte(s.Facts.V.Suspensions[id]), &d) != nil || !d.Observed.OK || !d.Threshold.OK {
		return why
	}
	number := func(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }
	return why + " (" + number(d.Observed.V) + " of " + number(d.Threshold.V) + ")"
}

// UnloggedFailures returns how many of the audits that Unlogged counts failed, as the agent states.
func UnloggedFailures(a *agentevents.AgentSnapshot) int {
	if _, audits := Unlogged(a); audits == 0 {
		return 0
	}
	return max(0, a.Totals.V.AuditsFailed-a.Counted.AuditsFailed)
}

// Unlogged returns how many tool calls and audits an agent states in its totals beyond those in the
// log: a document may be an excerpt.
func Unlogged(a *agentevents.AgentSnapshot) (calls, audits int) {
	if a == nil || !a.Totals.OK {
		return 0, 0
	}
	return max(0, a.Totals.V.ToolCalls-a.Counted.ToolCalls), max(0, a.Totals.V.AuditCheckpoints-a.Counted.AuditCheckpoints)
}

// NoEnd is the word for a thing that is open in a run that is over: see Over.
const NoEnd = "without an end"

// Phase returns the word for the status of a phase.
func Phase(s *agentevents.RunSnapshot, p *agentevents.PhaseSnapshot) string {
	switch {
	case !p.Open:
		return cmp.Or(p.Ended, "completed")
	case s.Status.Terminal():
		return NoEnd
	}
	return "open"
}

// A Mark is the result of a run, an agent or a call.
type Mark uint8

// The results. The zero Mark means that the result is not known.
const (
	None Mark = iota
	Good
	Bad
	Warn
	Open // it goes on
)

// MarkOf returns the mark for how something ended.
func MarkOf(m endword.Meaning) Mark { return marks[m] }

// marks has a mark by how something ended; one that is neither success nor failure has none.
var marks = [...]Mark{
	endword.Succeeded: Good, endword.Partial: Warn, endword.Failed: Bad, endword.Refused: Bad, endword.Cancelled: Bad,
}

// MadeUp returns the sign after the word for an end: a question mark if no line of the source tells
// the end.
func MadeUp(yes bool) string {
	if yes {
		return "?"
	}
	return ""
}

// Run returns the word for the status of a run with the sign of MadeUp, and how it went.
func Run(s *agentevents.RunSnapshot) (word string, how Mark) {
	switch s.Status {
	case agentevents.RunStatusEnded:
		return s.SessionStatus + MadeUp(s.EndMadeUp), MarkOf(endword.Of(s.SessionStatus))
	case agentevents.RunStatusCompleted, agentevents.RunStatusFailed, agentevents.RunStatusCancelled:
		return string(s.Status) + MadeUp(s.EndMadeUp), MarkOf(endword.Of(string(s.Status)))
	case agentevents.RunStatusPaused: // it means to go on
		return string(s.Status), None
	}
	return string(s.Status), Open
}

// Ending returns how an agent ended. One that ends with its node, without a word of its own, did not
// succeed after an error: its document has an end for success.
func Ending(a *agentevents.AgentSnapshot) endword.Meaning {
	end := endword.End{
		Error: a.Error.OK, Code: a.Error.V.Code, Gave: a.Status == agentevents.StatusFailed,
		Word: a.EndStatus, Outcome: string(a.Outcome),
	}
	if !a.Error.OK && a.EndStatus == "" && a.Outcome == "" && Executes(a.AgentID, a) {
		end.Error, end.Code = a.LastError.OK, a.LastError.V.Code
	}
	return end.Meaning()
}

// Error returns how a turn or a step with this error, or without one, went, and the word for it.
func Error(err agentevents.Opt[agentevents.ErrorInfo]) (word string, how endword.Meaning) {
	switch how = (endword.End{Error: err.OK, Code: err.V.Code}).Meaning(); how {
	case endword.Succeeded:
		return "completed", how
	case endword.Cancelled:
		return "cancelled", how
	}
	return "failed", how
}

// Over reports whether a run is over and nothing in it was interrupted: its document may lack the
// ends of the things that are open.
func Over(s *agentevents.RunSnapshot) bool {
	return s.Status == agentevents.RunStatusCompleted || s.Status == agentevents.RunStatusEnded
}

// Agents are the agents of a run.
type Agents struct {
	completed bool // the run is over: see Over
	over      bool // the run has ended in any way
	nodes     map[string]agentevents.NodeStatus
	starts    bool                                 // an agent has started: its document has starts
	turns     map[string]*agentevents.TurnSnapshot // the latest one, by agent id
	acted     map[string]bool                      // agents with a record of the run's own: they need no start
}

// Of returns the agents of a run.
func Of(s *agentevents.RunSnapshot) *Agents {
	v := &Agents{
		completed: Over(s), over: s.Status.Terminal(), nodes: s.NodeStatus,
		turns: map[string]*agentevents.TurnSnapshot{}, acted: map[string]bool{},
	}
	for _, a := range s.Agents {
		v.starts = v.starts || a != nil && a.Started
	}
	for i := range s.Turns {
		v.turns[s.Turns[i].AgentID] = &s.Turns[i]
	}
	for i := range s.Messages {
		v.acted[s.Messages[i].From] = true
	}
	for i := range s.Issues {
		v.acted[s.Issues[i].AgentID] = true
	}
	for i := range s.Approvals {
		v.acted[s.Approvals[i].AgentID] = true
	}
	for i := range s.Handoffs {
		h := &s.Handoffs[i]
		v.acted[h.From] = true
		v.acted[h.To] = v.acted[h.To] || !h.Open
	}
	for i := range s.Claims {
		v.acted[s.Claims[i].VerifierAgentID] = true
	}
	return v
}

// Status returns the word for the status of an agent, with the sign of MadeUp, and how it went. There is none for
// an agent that acts without a start, as in documents that have no starts.
func (v *Agents) Status(id string, a *agentevents.AgentSnapshot) (word string, how Mark) {
	switch turn := v.turns[id]; {
	case a.Started && !a.Open && !a.Ended:
		return "cut off", Warn // it started again
	case a.Ended:
		how := Ending(a)
		said := cmp.Or(string(a.Outcome), a.EndStatus)
		if a.EndStatus != "" && endword.Of(a.EndStatus) != endword.Succeeded {
			said = a.EndStatus
		}
		switch {
		case how == endword.Failed && endword.Of(said) == endword.Succeeded:
			said = "failed" // its end does not tell
		case how == endword.Failed:
			said = cmp.Or(said, "failed")
		case how == endword.Cancelled && endword.Of(said) != endword.Cancelled:
			said = "cancelled"
		}
		return cmp.Or(said, "ended") + MadeUp(a.EndMadeUp), MarkOf(how)
	case a.Status == agentevents.StatusFailed:
		return string(a.Status), Bad
	case a.Status == agentevents.StatusConverged:
		return string(a.Status), Good
	case !a.Started && turn != nil && !turn.EndedAt.IsZero(): // its document has turns in place of a start
		word, how := Error(turn.Error)
		return word + MadeUp(turn.EndMadeUp), MarkOf(how)
	case !a.Started && turn == nil && a.Transitions == 0:
		if !v.starts || a.ToolCalls > 0 || a.ModelCalls > 0 || a.Errors > 0 || a.NodeID != "" ||
			a.Text != "" || a.Reasoning != "" || a.Step.OK || a.Decisions > 0 || a.Ref.OK || v.acted[id] {
			return "", None
		}
		return "not started", None
	case v.gaveUp(a) == endword.Cancelled:
		return "cancelled", Bad
	case v.gaveUp(a) == endword.Failed:
		return "failed", Bad
	case v.completed:
		return NoEnd, None
	}
	return string(a.Status), Open
}

// gaveUp returns how an open agent ended whose run or node is over, if its last error tells, such as a
// timeout. Its end is not in the log.
func (v *Agents) gaveUp(a *agentevents.AgentSnapshot) endword.Meaning {
	node := v.nodes[a.NodeID]
	if !a.LastError.OK || !v.over && node != agentevents.NodeStatusFailed && node != agentevents.NodeStatusDone {
		return endword.Unknown
	}
	return endword.Of(a.LastError.V.Code)
}

// telling are the names of arguments that describe a call best, the best first.
var telling = []string{
	"command", "cmd", "file_path", "path", "filename", "notebook_path", "query", "pattern", "url", "sql", "skill",
	"description", "prompt", "question", "message", "text", "name", "id",
}

// Argument returns the argument that describes a call best. It goes by the name, which may have a
// plural s for a list, else it takes the first text. This may be a text in an object among the
// arguments, or in the objects of a list.
//
// Of arguments that an emitter has cut, it takes those before the cut, after their size.
func Argument(arguments agentevents.JSON) string {
	if size, head := Cut(arguments); head != "" {
		return size + cmp.Or(argumentOf(head, true), head)
	}
	return argumentOf(string(arguments), true)
}

// Cut returns a phrase with the size of a value that an emitter has cut, and the value's beginning. They are empty
// for any other value.
func Cut(value agentevents.JSON) (size, head string) {
	if !strings.HasPrefix(string(value), `{"truncated":`) {
		return "", ""
	}
	cut := jsonwire.Member(string(value), "truncated")
	size, head = jsonwire.Member(cut, "bytes"), jsonwire.Text(jsonwire.Member(cut, "head"))
	if size == "" || head == "" {
		return "", ""
	}
	return "cut, " + size + " bytes: ", head
}

func argumentOf(text string, deep bool) string {
	said := jsonwire.Text(text)
	lists := len(telling) // their ranks come after all telling names
	texts, nested := lists+1, lists+2
	best := nested + 1
	for name, raw := range jsonwire.Members(text) {
		key := strings.ToLower(name)
		singular, _ := strings.CutSuffix(key, "s")
		rank := slices.Index(telling, key)
		value, list := jsonwire.Text(raw), strings.HasPrefix(raw, "[")
		switch {
		case list && rank >= 0:
			value, rank = words(raw), lists
		case list && slices.Contains(telling, singular):
			value, rank = each(raw), lists
		case deep && strings.HasPrefix(raw, "[{"):
			value, rank = each(raw), nested
		case deep && jsonwire.IsObject(raw):
			value, rank = argumentOf(raw, false), nested
		case rank < 0:
			rank = texts
		}
		if rank < best && value != "" && !strings.HasPrefix(value, "[REDACTED:") {
			best, said = rank, value
			if strings.HasSuffix(strings.ToLower(name), "path") {
				said = end(value)
			}
		}
	}
	return said
}

// each joins the texts of a list, and the telling arguments of its objects, such as the files of
// a patch.
func each(list string) string {
	var all []string
	for raw := range jsonwire.Elements(list) {
		if text := argumentOf(raw, false); text != "" && !strings.HasPrefix(text, "[REDACTED:") {
			all = append(all, text)
		}
	}
	return strings.Join(all, ", ")
}

// words joins a list of texts, such as a command and its arguments. Of a shell and its command
// only that counts.
func words(list string) string {
	var all []string
	for raw := range jsonwire.Elements(list) {
		if text := jsonwire.Text(raw); text != "" {
			all = append(all, text)
		}
	}
	n := len(all)
	if n == 3 && strings.HasSuffix(all[0], "sh") && strings.HasPrefix(all[1], "-") && strings.HasSuffix(all[1], "c") {
		return all[2]
	}
	return strings.Join(all, " ")
}

// end returns a path without the folders at its beginning, if it is long.
func end(path string) string {
	const most = 48
	if len(path) <= most {
		return path
	}
	if i := strings.IndexByte(path[len(path)-most:], '/'); i >= 0 {
		return "…" + path[len(path)-most+i:]
	}
	return path
}

// Sequences tells which events of a run come again. The zero Sequences has seen none.
type Sequences struct {
	Next  uint64 // the sequence after the last event's; lower ones came before
	below uint64 // Next, before that event
}

// Again reports whether an event with that sequence came before, and notes it. One that is
// below the last event, and above all others, shows that the last one's sequence is false.
func (s *Sequences) Again(sequence uint64) bool {
	switch {
	case sequence >= s.Next:
		s.below = s.Next
	case sequence < s.below, sequence+1 == s.Next:
		return true
	}
	s.Next = sequence + 1
	return false
}
