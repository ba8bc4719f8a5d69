package report

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/internal/endword"
	"github.com/agentevents/agentevents/internal/jsonwire"
	"github.com/agentevents/agentevents/internal/view"
)

// unsure is the confidence below which a decision is worth a look: OpenWOP's default threshold
// (RFC 0002, section F).
const unsure = 0.7

// Event returns one event as an item, such as for a list of the events of a run. An event without
// a text of its own has its kind as the subject.
func Event(ev *agentevents.Event) Item {
	l := itemOf(ev)
	l.Subject = cmp.Or(l.Subject, string(ev.Kind()))
	l.Sequence, l.Time, l.AgentID = ev.Sequence, ev.Time, ev.AgentID
	l.Agent = cmp.Or(ev.AgentID, ev.NodeID)
	return l
}

// unless returns the mark of an end, and none for a success: most events are one.
func unless(how endword.Meaning) Mark {
	if how == endword.Succeeded {
		return None
	}
	return view.MarkOf(how)
}

// itemOf returns the texts of an event.
func itemOf(ev *agentevents.Event) Item {
	switch p := ev.Payload.(type) {
	case *agentevents.SessionStarted:
		return Item{Topic: Asked, Text: short(p.Goal, maxNote)}
	case *agentevents.SessionCompleted:
		return Item{Topic: Answered, Status: p.Status, Text: cmp.Or(short(errorText(p.Error.V), maxNote), short(p.Reason, maxNote), valueText(p.Result))}
	case *agentevents.RunStarted:
		return Item{Status: p.Name}
	case *agentevents.RunFailed:
		return Item{Mark: Bad, Text: short(errorText(p.Error.V), maxNote)}
	case *agentevents.RunCancelled:
		return Item{Mark: Bad, Text: short(p.Reason, maxNote)}
	case *agentevents.AgentStarted:
		return Item{Topic: Asked, Text: cmp.Or(short(p.Task, maxNote), short(promptText(p.Prompt), maxNote))}
	case *agentevents.AgentTransition:
		return Item{Status: string(p.From) + " → " + string(p.To), Text: short(p.Reason, maxNote)}
	case *agentevents.AgentEnded:
		return Item{Topic: Answered, Mark: unless(endword.End{Error: p.Error.OK, Code: p.Error.V.Code, Word: p.Status, Outcome: string(p.Outcome)}.Meaning()),
			Status: cmp.Or(string(p.Outcome), short(p.Status, maxWhy)), Text: cmp.Or(short(errorText(p.Error.V), maxNote), short(p.Reason, maxNote), short(p.Result, maxNote))}
	case *agentevents.AgentErrored:
		l := Item{Topic: Error, Subject: "error", Mark: Bad, Status: short(p.ErrorType, maxWhy), Text: short(p.Message, maxNote)}
		if p.Severity == agentevents.SeverityWarning {
			l.Subject, l.Mark = "warning", Warn
		}
		return l
	case *agentevents.TaskAssigned:
		return Item{Topic: Task, Subject: words("task", ev.TaskID), Text: short(p.Goal, maxNote)}
	case *agentevents.AgentDecided:
		l := Item{Topic: Decision, Subject: "decided", Text: Dashed(valueText(p.Decision), short(p.Reasoning, maxNote))}
		l.confidence(p.Confidence)
		if p.Confidence.OK && p.Confidence.V < unsure {
			l.Mark, l.Concern = Warn, Look
		}
		return l
	case *agentevents.OrchestratorDecided:
		l := Item{Topic: Decision, Subject: "orchestrator decided", Text: valueText(p.Decision)}
		if kind := jsonwire.Text(jsonwire.Member(string(p.Decision), "kind")); kind == "ask-user" {
			l.Concern, l.Subject = Look, "orchestrator decided ask-user"
			l.Text = cmp.Or(jsonwire.Text(jsonwire.Member(string(p.Decision), "question")), jsonwire.Text(jsonwire.Member(string(p.Decision), "prompt")), l.Text)
			l.Text = short(l.Text, maxNote)
		}
		return l
	case *agentevents.ContextCompacted:
		l := Item{Topic: Compaction, Subject: "context compacted", Status: short(p.Trigger, maxWhy), Text: short(p.Summary, maxNote)}
		if before, after := p.TokensBefore, p.TokensAfter; before.OK && after.OK {
			l.fact(strconv.FormatInt(before.V, 10) + " tokens to " + strconv.FormatInt(after.V, 10))
		}
		return l
	case *agentevents.IntentClassified:
		l := Item{Topic: Intent, Subject: "intent", Status: p.Intent}
		l.confidence(p.Confidence)
		return l
	case *agentevents.TextDelta:
		return Item{Text: short(p.Delta, maxNote)}
	case *agentevents.TextCompleted:
		return Item{Text: short(p.Text, maxNote)}
	case *agentevents.AgentReasoned:
		return Item{Text: short(p.Reasoning, maxNote)}
	case *agentevents.AgentReasoningDelta:
		return Item{Text: short(p.Delta, maxNote)}
	case *agentevents.MessageCreated:
		return messageItem(&p.Message)
	case *agentevents.ModelCalled:
		return Item{Status: p.Model}
	case *agentevents.ModelReturned:
		return Item{Mark: unless(endword.End{Error: p.Error.OK, Code: p.Error.V.Code}.Meaning()), Status: p.Model, Text: short(errorText(p.Error.V), maxNote)}
	case *agentevents.ToolCalled:
		return Item{Topic: Call, Status: p.ToolID, Text: argument(p.ArgumentsSummary, p.Arguments)}
	case *agentevents.ToolArgumentsDelta:
		return Item{Topic: Call, Status: p.CallID, Text: short(p.Delta, maxNote)}
	case *agentevents.ToolReturned:
		l := Item{Topic: Call, Status: strings.TrimSpace(p.ToolID + " " + cmp.Or(short(p.StatusWord, maxWhy), string(p.Status))), Text: short(errorText(p.Error.V), maxNote)}
		if how := endword.Of(string(p.Status)); how != endword.Succeeded {
			l.Mark = view.MarkOf(how)
			l.Text = cmp.Or(l.Text, short(p.ResultSummary, maxNote), valueText(p.Result))
		}
		return l
	case *agentevents.AgentHandoff:
		return Item{Topic: Handoff, Subject: "handoff " + p.From.AgentID + " → " + p.To.AgentID, Text: short(p.Reason, maxNote)}
	case *agentevents.HandoffRequested:
		return Item{Topic: Handoff, Subject: "handoff " + p.From.AgentID + " → " + p.To.AgentID, Text: short(p.Reason, maxNote)}
	case *agentevents.TurnSummarized:
		return Item{Status: p.Intent, Text: short(p.Text, maxNote)}
	case *agentevents.NodeFailed:
		return Item{Topic: Node, Mark: Bad, Text: short(errorText(p.Error), maxNote)}
	case *agentevents.NodeSkipped:
		return Item{Topic: Node, Text: p.Reason}
	case *agentevents.NodeSuspended:
		return Item{Topic: Node, Status: p.Reason, Text: valueText(p.Details)}
	case *agentevents.EdgeFired:
		return Item{Topic: Edge, Subject: "edge " + short(p.From, maxWhy) + " → " + short(p.To, maxWhy), Mark: Good, Status: "taken"}
	case *agentevents.EdgeSkipped:
		return Item{Topic: Edge, Subject: "edge " + short(p.From, maxWhy) + " → " + short(p.To, maxWhy), Status: "skipped"}
	case *agentevents.LoopIterated:
		return Item{Topic: Edge, Subject: words("loop", short(p.EdgeID, maxWhy)), Status: "iteration " + strconv.Itoa(p.Iteration)}
	case *agentevents.LoopRoundCompleted:
		l := Item{Topic: Round, Subject: "round " + strconv.Itoa(p.Round), Text: short(p.Feedback, maxNote)}
		if p.Score.OK {
			l.fact("score " + number(p.Score.V))
		}
		if p.CostUSD.OK {
			l.fact(view.Dollars(p.CostUSD.V))
		}
		return l
	case *agentevents.PhaseStarted:
		return Item{Status: ev.Phase}
	case *agentevents.PhaseCompleted:
		return Item{Status: ev.Phase}
	case *agentevents.ApprovalRequested:
		return Item{Topic: Approval, Subject: words("approval", p.ApprovalID), Text: short(Dashed(cmp.Or(p.Action, p.ToolID), p.Reason), maxNote)}
	case *agentevents.ApprovalGranted:
		return answer(p.ApprovalID, true, p.Answer, p.ApprovedBy, p.Feedback)
	case *agentevents.ApprovalRejected:
		return answer(p.ApprovalID, false, p.Answer, p.RejectedBy, p.Feedback)
	case *agentevents.ClarificationRequested:
		l := Item{Topic: Question, Subject: words("clarification", p.InterruptID)}
		for i := range p.Questions {
			l.Text = short(strings.TrimPrefix(l.Text+"; "+p.Questions[i].Question, "; "), maxNote)
		}
		return l
	case *agentevents.ClarificationResolved:
		return Item{Topic: Question, Subject: words("clarification", p.InterruptID), Status: "answered" + by(p.AnsweredBy), Text: valueText(p.Answers)}
	case *agentevents.CommandReceived:
		return commandItem(p)
	case *agentevents.AuditChecked:
		return Item{Topic: Audit, Status: string(p.Result), Text: p.CheckpointID}
	case *agentevents.ClaimVerified:
		return Item{Topic: Claim, Status: p.Verdict, Text: p.FindingID}
	case *agentevents.IssueFound:
		return Item{Topic: Issue, Status: p.Severity, Text: short(p.Issue, maxNote)}
	case *agentevents.EvidenceInsufficient:
		return Item{Topic: Evidence, Text: lacking(p.Reason, p.WhatWouldResolve)}
	case *agentevents.BudgetExceeded:
		return Item{Topic: Budget, Status: p.Budget, Text: short(p.Reason, maxNote)}
	case *agentevents.CapBreached:
		return Item{Topic: Budget, Status: p.Cap}
	case *agentevents.BlackboardItemCreated:
		l := Item{Topic: Blackboard, Subject: words("blackboard", short(p.ItemID, maxWhy)), Status: short(p.ItemType, maxWhy), Text: valueText(p.Content)}
		l.confidence(p.Confidence)
		return l
	case *agentevents.Unknown:
		return Item{Topic: Other, Subject: short(string(p.Type), maxWhy), Text: short(view.Argument(p.Raw), maxNote)}
	}
	return Item{Topic: Other}
}

func answer(id string, granted bool, own, who, feedback string) Item {
	word, mark := Answer(granted, own)
	return Item{Topic: Approval, Subject: words("approval", id), Mark: mark, Status: word + by(who), Text: short(feedback, maxNote)}
}

func by(who string) string {
	if who == "" {
		return ""
	}
	return " by " + who
}

func commandItem(p *agentevents.CommandReceived) Item {
	c := &p.Command
	l := Item{Topic: Command, Subject: "command " + short(string(c.Type), maxWhy), Text: short(cmp.Or(c.Message, c.Content, c.Reason), maxNote)}
	if p.Rejected != "" {
		l.Concern, l.Mark, l.Status, l.Text = Look, Bad, "rejected", Dashed(l.Text, short(p.Rejected, maxNote))
	}
	return l
}

// argument returns the main argument of a call.
func argument(summary string, arguments agentevents.JSON) string {
	if summary == "" {
		summary = view.Argument(arguments)
	} else if strings.HasPrefix(summary, "{") { // some recorders take the arguments as their summary
		summary = cmp.Or(view.Argument(agentevents.JSON(summary)), summary)
	}
	return short(summary, maxNote)
}
