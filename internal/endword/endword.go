// Package endword has the meanings of the words with which documents and programs tell how a
// session, a run, an agent or a call ended. Everything that reads such a word, or counts by it,
// asks here, so that all views of a log agree.
package endword

import "strings"

// A Meaning is how something ended.
type Meaning uint8

// The meanings.
const (
	Unknown   Meaning = iota // the word is not in the table: neither a success nor a failure
	Succeeded                // it reached its goal
	Partial                  // it reached a part of its goal: neither a success nor a failure
	Skipped                  // it was left out: neither a success nor a failure
	Failed                   // it did not reach its goal
	Refused                  // it was not permitted, or not accepted: a failure of a session or an agent
	Cancelled                // somebody or something stopped it
)

// String returns the word for the meaning that columns and spans have.
func (m Meaning) String() string {
	return [...]string{"unknown", "succeeded", "partial", "skipped", "failed", "refused", "cancelled"}[m]
}

// words are the words of each meaning, in lower case and without separators.
var words = func() map[string]Meaning {
	all := map[string]Meaning{}
	for meaning, list := range map[Meaning]string{
		Succeeded: "success successful successfully succeeded succeed succeeds " +
			"ok okay done complete completed finished converged pass passed passing " +
			"accepted accept approved approve granted grant confirmed " +
			"verified supported valid allowed allow yes resolved solved",
		Partial: "partial partially partialsuccess partiallysucceeded partiallycompleted incomplete unfinished escaped",
		Skipped: "skipped skip omitted bypassed",
		Failed: "failed fail fails failure failing error errored errors " +
			"exception crashed crash panic panicked fatal unsuccessful " +
			"timeout timedout deadlineexceeded expired invalid exhausted unresolved unsolved stuck " +
			"maxturns maxsteps maxiterations maxtokens maxturnsexceeded maxturnsreached errormaxturns " +
			"turnlimit steplimit tokenlimit budgetexceeded outofbudget limitreached limitexceeded",
		Refused: "refused refuse denied deny declined decline rejected reject refuted " +
			"forbidden unauthorized permissiondenied ratelimited vetoed disallowed blocked no",
		Cancelled: "cancelled canceled cancel aborted abort interrupted stopped killed terminated halted abandoned",
	} {
		for word := range strings.FieldsSeq(list) {
			all[word] = meaning
		}
	}
	return all
}()

// separators are the characters between the parts of a word.
var separators = strings.NewReplacer("_", "", "-", "", " ", "")

// Of returns the meaning of a word. Case and separators do not count: timed_out, timed-out and
// TimedOut are one word.
func Of(word string) Meaning {
	if m, ok := words[word]; ok {
		return m
	}
	if len(word) > 40 {
		return Unknown
	}
	return words[plain(word)]
}

// grants are the words of success that tell of a permission or a judgement, after which
// there is more to come.
var grants = set("accepted accept approved approve granted grant confirmed verified supported valid allowed allow yes")

func set(list string) map[string]bool {
	all := map[string]bool{}
	for word := range strings.FieldsSeq(list) {
		all[word] = true
	}
	return all
}

// domains are the beginnings of the types of events whose last word may tell that their subject
// is over. The first one that fits counts.
var domains = [...]string{"tool.call.", "agent.", "session.", "workflow.phase.", "workflow.", "handoff.", "approval."}

// OfType splits a type of event that tells by its last word how its subject ended, such as
// tool.call.failed, into the domain, with its dot, and the word. The meaning is Unknown for any other
// type, and for a word after which the subject may go on: a grant, unless it answers a request,
// a part of a result, of which the rest may come, and an error or an obstacle that the subject may
// get over.
func OfType(typ string) (domain, word string, how Meaning) {
	for _, domain = range domains {
		word, is := strings.CutPrefix(typ, domain)
		if !is {
			continue
		}
		asks := domain == "approval." || domain == "handoff."
		lasts := !asks && domain != "tool.call."
		if how = Of(word); how == Partial || !asks && Grants(word) || lasts && hurdles[plain(word)] {
			how = Unknown
		}
		return domain, word, how
	}
	return "", "", Unknown
}

// hurdles are words for troubles that an agent, a session or a workflow may get over.
var hurdles = set("error errors exception panic blocked stuck")

// plain returns a word in lower case and without separators.
func plain(word string) string { return separators.Replace(strings.ToLower(strings.TrimSpace(word))) }

// Grants reports whether a word answers a request with yes.
func Grants(word string) bool { return grants[plain(word)] }

// Lapsed reports whether a word for the answer to an approval, such as timeout, expired or interrupted,
// means that nobody has answered.
func Lapsed(word string) bool { return Of(word) == Failed || plain(word) == "interrupted" }

// An End is the end of an agent, a turn or a step as a log has it.
type End struct {
	Error bool   // there is an error
	Code  string // of the error; the code of a cancellation makes the end one
	Gave  bool   // the agent's status is failed
	// Words for the end, each of which may be empty. A success counts after another word.
	Word, Outcome string
}

// Meaning returns how the end went. One without an error and without a word is a success.
func (e End) Meaning() Meaning {
	switch {
	case e.Error && Of(e.Code) == Cancelled:
		return Cancelled
	case e.Error || e.Gave:
		return Failed
	case e.Word != "" && (Of(e.Word) != Succeeded || e.Outcome == ""):
		return Of(e.Word)
	case e.Outcome != "":
		return Of(e.Outcome)
	}
	return Succeeded
}
