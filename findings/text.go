package findings

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/internal/jsonwire"
	"github.com/agentevents/agentevents/internal/view"
)

const (
	maxWhy  = 100 // characters of an error
	maxCall = 80  // characters of the main argument of a call
)

// name returns the name of an agent in a sentence.
func name(id string) string {
	if id == "" {
		return "the run"
	}
	return view.Visible(id, maxCall)
}

// callText names a call by its tool and its main argument.
func callText(tool string, a *args) string {
	text := view.Visible(tool, maxCall)
	if main := brief(view.Argument(agentevents.JSON(a.text))); main != "" && a.whole {
		text += " (" + view.Visible(main, maxCall) + ")"
	}
	return text
}

// plain returns JSON as text for people.
func plain(j agentevents.JSON) string {
	if text := jsonwire.Text(string(j)); text != "" {
		return text
	}
	return string(j)
}

// brief returns a text on one line.
func brief(text string) string {
	const most = 4 * maxWhy
	return strings.Join(strings.Fields(strings.ToValidUTF8(text[:min(len(text), most)], "")), " ")
}

// why returns a copy of the beginning of an error, for people.
func why(text string) string { return view.Visible(brief(text), maxWhy) }

func reason(why string) string {
	if why == "" {
		return ""
	}
	return ": " + why
}

// last returns the reason of the last failure, if it has one.
func (f *found) last() string {
	if f.about == "" {
		return ""
	}
	return ", the last one" + f.about
}

func repeatText(f *found) string {
	return fmt.Sprintf("%s made the same call of %s %d times in a row and got the same result",
		name(f.AgentID), f.about, f.Count)
}

func sortsText(f *found) string {
	return fmt.Sprintf("%s made %d calls of only %s and got nothing new",
		name(f.AgentID), f.Count, view.Count(f.parts, "sort"))
}

func cycleText(f *found) string {
	return fmt.Sprintf("%s went round in a circle of %d calls %d times without a new result, the last one %s",
		name(f.AgentID), f.parts, f.Count/f.parts, f.about)
}

func handsText(f *found) string {
	return fmt.Sprintf("%s handed over to each other %d times without a new result", f.about, f.Count)
}

// calls returns the verb for how the calls of a streak went.
func (f *found) calls() string { return f.went("failed", "were refused", "failed or were refused") }

// went returns the word for a streak of calls that failed, of calls that were refused, or of both.
func (f *found) went(failed, refused, both string) string {
	switch f.parts {
	case 0:
		return failed
	case f.Count:
		return refused
	}
	return both
}

func retryText(f *found) string {
	return fmt.Sprintf("%s made a call that %s %d times without a change: %s",
		name(f.AgentID), f.went("fails", "is refused", "fails or is refused"), f.Count, f.about)
}

func sameErrorText(f *found) string {
	if f.about == "" {
		return fmt.Sprintf("%d calls of %s %s in a row, without a reason", f.Count, name(f.AgentID), f.calls())
	}
	return fmt.Sprintf("%d calls of %s %s in a row with the same error: %s", f.Count, name(f.AgentID), f.calls(), f.about)
}

func toolText(f *found) string {
	return fmt.Sprintf("%d calls of %s by %s %s in a row%s",
		f.Count, view.Visible(f.ToolID, maxCall), name(f.AgentID), f.calls(), f.last())
}

func anyText(f *found) string {
	return fmt.Sprintf("%d calls of %s %s in a row%s", f.Count, name(f.AgentID), f.calls(), f.last())
}

func modelText(f *found) string {
	return fmt.Sprintf("%d model calls of %s failed in a row%s", f.Count, name(f.AgentID), f.last())
}

func errorsText(f *found) string {
	return fmt.Sprintf("%s had %d errors in a row without an answer of the model between%s",
		name(f.AgentID), f.Count, f.last())
}

func stoppedText(f *found) string {
	return fmt.Sprintf("the program stopped %s because it went round in circles: %s", name(f.AgentID), f.about)
}

func attemptsText(f *found) string {
	return fmt.Sprintf("%s ended with an error %d times in a row%s", name(f.AgentID), f.Count, f.last())
}

func stallText(f *found) string {
	if f.Count == 1 {
		return "nothing happened for " + view.Duration(f.long) + ", and nothing was waited for"
	}
	return fmt.Sprintf("nothing happened %d times, for %s at most, and nothing was waited for",
		f.Count, view.Duration(f.long))
}

func contextText(f *found) string {
	return fmt.Sprintf("the input of %s has %d tokens, %d %% of the limit of %d",
		name(f.AgentID), f.parts, int64(f.parts)*100/max(1, f.room), f.room)
}

func compactionsText(f *found) string {
	return fmt.Sprintf("the context of %s was compacted %d times with %d calls or fewer between",
		name(f.AgentID), f.Count, f.parts)
}

func wasteText(f *found) string {
	text := "loops and failures used " + strconv.FormatInt(f.Cost.Tokens.V, 10) + " tokens"
	if f.Cost.CostUSD.OK {
		text += " and " + view.Dollars(f.Cost.CostUSD.V)
	}
	return text + " in " + view.Count(f.Cost.ModelCalls, "model call")
}

func waitText(f *found) string {
	return "a person was waited for " + view.Duration(f.long) + ": question " + view.Visible(f.CallID, maxCall)
}

func expiredText(f *found) string {
	return "the answer to question " + view.Visible(f.CallID, maxCall) + " came after the time that it stood"
}

func afterEndText(f *found) string {
	return "the answer to question " + view.Visible(f.CallID, maxCall) + " came after the end"
}
