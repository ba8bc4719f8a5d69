//go:build unix

package questions_test

import (
	"fmt"
	"math/rand/v2"
	"time"

	ae "github.com/agentevents/agentevents"
)

// drawn returns the events of runs in which anything happens: agents that end in all ways, and start
// again, below others; tasks that are tried in several runs of a session; handoffs, calls, answers of
// people, verdicts, compactions, and usage that is stated in all ways.
func drawn(rng *rand.Rand, runs int) []ae.Event {
	d := &drawer{Rand: rng}
	for n := range runs {
		d.run = fmt.Sprint("run", n)
		d.session, d.sequence = "", 0
		// The rows have no places in the log: times tell the end of a session from the next run.
		d.second++
		if d.often() {
			d.session = fmt.Sprint("session", n/3)
		}
		d.tasks = [][]string{{""}, {"t"}, {"t", "u", ""}}[d.IntN(3)]
		d.drawRun()
	}
	return d.events
}

// A drawer draws the events of one run after the other.
type drawer struct {
	*rand.Rand
	events       []ae.Event
	second       int
	run, session string
	sequence     uint64
	tasks        []string
}

func (d *drawer) pick(of ...string) string { return of[d.IntN(len(of))] }

func (d *drawer) often() bool { return d.IntN(3) > 0 }

func (d *drawer) usage() ae.Usage {
	return ae.Usage{InputTokens: d.Int64N(100), OutputTokens: d.Int64N(50)}
}

func (d *drawer) cost() (c ae.Opt[float64]) {
	if !d.often() {
		c = ae.Some(float64(d.IntN(100)) / 4)
	}
	return c
}

func (d *drawer) emit(agent, parent string, p ae.Payload) {
	d.second += d.IntN(3)
	ev := ae.Event{
		ID: fmt.Sprint(d.run, "-", d.sequence), RunID: d.run, Sequence: d.sequence, SchemaVersion: ae.SchemaVersion,
		AgentID: agent, ParentAgentID: parent, Time: time.Date(2026, 6, 1, 8, 0, d.second, 0, time.UTC), Payload: p,
	}
	ev.SessionID, ev.TaskID = d.session, d.pick(d.tasks...)
	d.sequence++
	d.events = append(d.events, ev)
}

func (d *drawer) drawRun() {
	agents := []string{"a", "b", "c"}[:1+d.IntN(3)]
	if d.often() {
		d.emit("", "", &ae.RunStarted{})
	}
	for i, agent := range agents {
		parent := ""
		if i > 0 && d.often() {
			parent = agents[i-1]
		}
		d.emit(agent, parent, &ae.AgentStarted{Model: d.pick("", "m", "n")})
	}
	for i := range d.IntN(12) {
		d.act(d.pick(agents...), fmt.Sprint(i))
	}
	for i := range agents {
		if d.often() {
			d.emit(agents[len(agents)-1-i], "", d.end())
		}
	}
	switch d.IntN(4) {
	case 0:
		d.emit("", "", &ae.RunFailed{Error: ae.Some(ae.ErrorInfo{Message: "m"})})
	case 1, 2:
		d.emit("", "", &ae.RunCompleted{})
	}
	if !d.often() && d.session != "" {
		d.emit("", "", &ae.SessionCompleted{Status: d.pick("", "success", "failed", "partial", "odd", "completed")})
	}
}

// act draws a call, usage, a handoff, a question or another act of the agent, which has the id.
func (d *drawer) act(agent, id string) {
	switch d.IntN(11) {
	case 0:
		d.emit(agent, "", &ae.ToolCalled{CallID: id, ToolID: d.pick("read", "write")})
		if d.often() {
			d.emit(agent, "", &ae.ToolReturned{CallID: id,
				ToolID: d.events[len(d.events)-1].Payload.(*ae.ToolCalled).ToolID, Status: ae.ToolStatus(d.pick("ok",
					"error", "forbidden", "cancelled"))})
		}
	case 1:
		d.emit(agent, "", &ae.ModelCalled{ModelCallID: id, Model: d.pick("m", "n")})
		if d.often() {
			p := &ae.ModelReturned{ModelCallID: id, CostUSD: d.cost(), Model: d.pick("", "m", "n")}
			if d.often() {
				p.Usage = ae.Some(d.usage())
			}
			d.emit(agent, "", p)
		}
	case 2:
		d.emit(agent, "", &ae.UsageObserved{Model: d.pick("", "m", "n"), Usage: d.usage(), CostUSD: d.cost(),
			Cumulative: !d.often()})
	case 3:
		d.emit("", "", &ae.HandoffRequested{HandoffID: id, From: ae.AgentRef{AgentID: d.pick("a", "b")},
			To: ae.AgentRef{AgentID: d.pick("a", "b")}})
		if d.often() {
			d.emit("", "", &ae.HandoffAccepted{HandoffID: id})
		}
	case 4:
		d.emit(agent, "", &ae.ApprovalRequested{ApprovalID: id, Action: "pay"})
		switch d.IntN(3) {
		case 0:
			d.emit("", "", &ae.ApprovalGranted{ApprovalID: id})
		case 1:
			d.emit("", "", &ae.ApprovalRejected{ApprovalID: id, Answer: d.pick("", "timeout")})
		}
	case 5:
		d.emit("", "", &ae.ClaimVerified{FindingID: id, VerifierAgentID: "v", Verdict: d.pick("accepted", "rejected",
			"refuted", "odd")})
	case 6:
		d.emit(agent, "", &ae.AuditChecked{CheckpointID: id, Result: ae.AuditResult(d.pick("pass", "fail"))})
	case 7:
		p := &ae.ContextCompacted{TokensBefore: ae.Some(100 + d.Int64N(100))}
		if d.often() {
			p.TokensAfter = ae.Some(1 + d.Int64N(100))
		}
		d.emit(agent, "", p)
	case 8:
		turns := d.pick(agent, "d", "e") // d and e have not started
		d.emit(turns, "", &ae.TurnStarted{})
		if d.often() {
			p := &ae.TurnEnded{}
			if !d.often() {
				p.Error = ae.Some(ae.ErrorInfo{Message: "m", Code: d.pick("", "cancelled")})
			}
			d.emit(turns, "", p)
		}
	case 9:
		switch d.IntN(3) {
		case 0:
			d.emit("", "", &ae.RunPaused{})
		case 1:
			d.emit("", "", &ae.RunResumed{})
		case 2:
			d.emit("", "", &ae.CommandReceived{Command: ae.Command{Type: ae.CommandAbort}})
		}
	case 10:
		d.emit(agent, "", d.end())
		if d.often() {
			d.emit(agent, "", &ae.AgentStarted{Model: d.pick("", "m", "n")})
		}
	}
}

func (d *drawer) end() *ae.AgentEnded {
	p := &ae.AgentEnded{Outcome: ae.AgentOutcome(d.pick("", "converged", "aborted")), TotalCostUSD: d.cost(),
		Cumulative: !d.often()}
	if d.often() {
		p.Usage = ae.Some(d.usage())
	}
	for range d.IntN(3) {
		if p.ModelUsage == nil {
			p.ModelUsage = map[string]ae.Usage{}
		}
		u := d.usage()
		u.CostUSD = d.cost()
		p.ModelUsage[d.pick("m", "n", "o")] = u
	}
	return p
}
