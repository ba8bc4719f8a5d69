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
func drawn(rng *rand.Rand, runs int) (events []ae.Event) {
	pick := func(of ...string) string { return of[rng.IntN(len(of))] }
	often := func() bool { return rng.IntN(3) > 0 }
	usage := func() ae.Usage { return ae.Usage{InputTokens: rng.Int64N(100), OutputTokens: rng.Int64N(50)} }
	cost := func() (c ae.Opt[float64]) {
		if !often() {
			c = ae.Some(float64(rng.IntN(100)) / 4)
		}
		return c
	}
	second := 0
	for n := range runs {
		run, session, sequence := fmt.Sprint("run", n), "", uint64(0)
		second++ // the rows have no places in the log: the end of a session and the next run are told apart by their times
		if often() {
			session = fmt.Sprint("session", n/3)
		}
		tasks := [][]string{{""}, {"t"}, {"t", "u", ""}}[rng.IntN(3)]
		emit := func(agent, parent string, p ae.Payload) {
			second += rng.IntN(3)
			ev := ae.Event{
				ID: fmt.Sprint(run, "-", sequence), RunID: run, Sequence: sequence, SchemaVersion: ae.SchemaVersion, AgentID: agent, ParentAgentID: parent,
				Time: time.Date(2026, 6, 1, 8, 0, second, 0, time.UTC), Payload: p,
			}
			ev.SessionID, ev.TaskID = session, pick(tasks...)
			sequence++
			events = append(events, ev)
		}
		agents := []string{"a", "b", "c"}[:1+rng.IntN(3)]
		if often() {
			emit("", "", &ae.RunStarted{})
		}
		for i, agent := range agents {
			parent := ""
			if i > 0 && often() {
				parent = agents[i-1]
			}
			emit(agent, parent, &ae.AgentStarted{Model: pick("", "m", "n")})
		}
		for i := range rng.IntN(12) {
			agent, id := pick(agents...), fmt.Sprint(i)
			switch rng.IntN(11) {
			case 0:
				emit(agent, "", &ae.ToolCalled{CallID: id, ToolID: pick("read", "write")})
				if often() {
					emit(agent, "", &ae.ToolReturned{CallID: id, ToolID: events[len(events)-1].Payload.(*ae.ToolCalled).ToolID, Status: ae.ToolStatus(pick("ok", "error", "forbidden", "cancelled"))})
				}
			case 1:
				emit(agent, "", &ae.ModelCalled{ModelCallID: id, Model: pick("m", "n")})
				if often() {
					p := &ae.ModelReturned{ModelCallID: id, CostUSD: cost(), Model: pick("", "m", "n")}
					if often() {
						p.Usage = ae.Some(usage())
					}
					emit(agent, "", p)
				}
			case 2:
				emit(agent, "", &ae.UsageObserved{Model: pick("", "m", "n"), Usage: usage(), CostUSD: cost(), Cumulative: !often()})
			case 3:
				emit("", "", &ae.HandoffRequested{HandoffID: id, From: ae.AgentRef{AgentID: pick("a", "b")}, To: ae.AgentRef{AgentID: pick("a", "b")}})
				if often() {
					emit("", "", &ae.HandoffAccepted{HandoffID: id})
				}
			case 4:
				emit(agent, "", &ae.ApprovalRequested{ApprovalID: id, Action: "pay"})
				switch rng.IntN(3) {
				case 0:
					emit("", "", &ae.ApprovalGranted{ApprovalID: id})
				case 1:
					emit("", "", &ae.ApprovalRejected{ApprovalID: id})
				}
			case 5:
				emit("", "", &ae.ClaimVerified{FindingID: id, VerifierAgentID: "v", Verdict: pick("accepted", "rejected", "refuted", "odd")})
			case 6:
				emit(agent, "", &ae.AuditChecked{CheckpointID: id, Result: ae.AuditResult(pick("pass", "fail"))})
			case 7:
				p := &ae.ContextCompacted{TokensBefore: ae.Some(100 + rng.Int64N(100))}
				if often() {
					p.TokensAfter = ae.Some(1 + rng.Int64N(100))
				}
				emit(agent, "", p)
			case 8:
				turns := pick(agent, "d", "e") // d and e have not started
				emit(turns, "", &ae.TurnStarted{})
				if often() {
					p := &ae.TurnEnded{}
					if !often() {
						p.Error = ae.Some(ae.ErrorInfo{Message: "m", Code: pick("", "cancelled")})
					}
					emit(turns, "", p)
				}
			case 9:
				switch rng.IntN(3) {
				case 0:
					emit("", "", &ae.RunPaused{})
				case 1:
					emit("", "", &ae.RunResumed{})
				case 2:
					emit("", "", &ae.CommandReceived{Command: ae.Command{Type: ae.CommandAbort}})
				}
			case 10:
				emit(agent, "", end(rng, pick, often, usage, cost))
				if often() {
					emit(agent, "", &ae.AgentStarted{Model: pick("", "m", "n")})
				}
			}
		}
		for i := range agents {
			if often() {
				emit(agents[len(agents)-1-i], "", end(rng, pick, often, usage, cost))
			}
		}
		switch rng.IntN(4) {
		case 0:
			emit("", "", &ae.RunFailed{Error: ae.Some(ae.ErrorInfo{Message: "m"})})
		case 1, 2:
			emit("", "", &ae.RunCompleted{})
		}
		if !often() && session != "" {
			emit("", "", &ae.SessionCompleted{Status: pick("", "success", "failed", "partial", "odd", "completed")})
		}
	}
	return events
}

// end returns the end of an agent.
func end(rng *rand.Rand, pick func(...string) string, often func() bool, usage func() ae.Usage, cost func() ae.Opt[float64]) *ae.AgentEnded {
	p := &ae.AgentEnded{Outcome: ae.AgentOutcome(pick("", "converged", "aborted")), TotalCostUSD: cost(), Cumulative: !often()}
	if often() {
		p.Usage = ae.Some(usage())
	}
	for range rng.IntN(3) {
		if p.ModelUsage == nil {
			p.ModelUsage = map[string]ae.Usage{}
		}
		u := usage()
		u.CostUSD = cost()
		p.ModelUsage[pick("m", "n", "o")] = u
	}
	return p
}
