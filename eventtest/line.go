package eventtest

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unicode"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/internal/jsonwire"
)

// Describe returns the line of an event: see the package documentation. A text of more
// than 40 characters is cut, and ends with an ellipsis then.
func Describe(ev agentevents.Event) string { return newLine(ev).String() }

// A line is an event as words, and the JSON text that its members are taken from.
type line struct {
	event agentevents.Event
	words []string // of the agent, the kind, the payload and the marks
	text  string
	body  string // the payload's part of text
}

// shown are the members of payloads that a line begins with, where they are not the
// strings of the payload in their order, and then the code of its error. Readers want them in
// this order, or they stand inside objects. An array or object is not shown.
var shown = map[agentevents.Kind][]string{
	agentevents.KindAgentStarted:     {"task"},
	agentevents.KindAgentEnded:       {"outcome", "error.code"},
	agentevents.KindMessageCreated:   {"message.from", "message.to", "message.content"},
	agentevents.KindToolCalled:       {"toolId", "callId"},
	agentevents.KindToolReturned:     {"toolId", "callId", "status", "error.code"},
	agentevents.KindAgentHandoff:     {"from.agentId", "to.agentId", "reason"},
	agentevents.KindHandoffRequested: {"from.agentId", "to.agentId", "reason"},
	agentevents.KindHandoffAccepted:  {"from.agentId", "to.agentId", "reason"},
	agentevents.KindRunFailed:        {"error.code", "error.message"},
}

func newLine(ev agentevents.Event) *line {
	l := &line{event: ev}
	if ev.AgentID != "" {
		l.words = append(l.words, ev.AgentID)
	}
	l.words = append(l.words, string(ev.Kind()))
	text, err := ev.AppendJSON(nil)
	if err != nil {
		l.words = append(l.words, err.Error())
		return l
	}
	l.text = string(text)
	l.body = member(l.text, "payload")
	if paths, ok := shown[ev.Kind()]; ok {
		for _, path := range paths {
			l.show(member(l.body, path))
		}
	} else {
		for _, raw := range jsonwire.Members(l.body) {
			l.show(raw)
		}
		l.show(member(l.body, "error.code"))
	}
	if ev.Marks != 0 {
		for mark := range strings.SplitSeq(ev.Marks.String(), ",") {
			l.words = append(l.words, "["+mark+"]")
		}
	}
	return l
}

func (l *line) show(raw string) {
	if text, ok := unquote(raw); ok && text != "" {
		l.words = append(l.words, text)
	}
}

// member returns the JSON text of a member of an object, or "" if there is none. A path
// has the names of nested objects before a dot.
func member(object, path string) string {
	name, rest, nested := strings.Cut(path, ".")
	if !strings.HasPrefix(object, "{") {
		return ""
	}
	for n, raw := range jsonwire.Members(object) {
		switch {
		case n == path:
			return raw
		case n == name && nested:
			return member(raw, rest)
		}
	}
	return ""
}

// unquote returns the text of a JSON string, and reports whether it is one.
func unquote(raw string) (string, bool) {
	var text string
	if !strings.HasPrefix(raw, `"`) || json.Unmarshal([]byte(raw), &text) != nil {
		return "", false
	}
	return text, true
}

// String returns the line as it is shown.
func (l *line) String() string {
	words := make([]string, len(l.words))
	for i, word := range l.words {
		words[i] = spell(cut(word))
	}
	return strings.Join(words, " ")
}

const (
	ellipsis = "…"
	maxWord  = 40 // characters
)

func cut(word string) string {
	n := 0
	for i := range word {
		if n++; n > maxWord {
			return word[:i] + ellipsis
		}
	}
	return word
}

// spell writes a word so that it is one word of a wanted line.
func spell(word string) string {
	plain := word != "" && !strings.ContainsFunc(word, func(r rune) bool {
		return unicode.IsSpace(r) || !unicode.IsPrint(r) || strings.ContainsRune("\"=`\\", r)
	})
	if plain {
		return word
	}
	return strconv.Quote(word)
}

// A want is a wanted event: a line, and the condition of a [Matcher].
type want struct {
	text  string
	words []word
	more  *Matcher // or nil
	hint  string   // which kind is misspelt, or ""
}

// size is the score of an event that matches.
func (w *want) size() int {
	if w.more != nil {
		return len(w.words) + 2
	}
	return len(w.words)
}

// A word of a wanted line is a text or, with a name, the value of a member.
type word struct {
	spelled, name, value string
}

// parseWant splits a wanted line into words.
func parseWant(text string) (*want, error) {
	w := &want{text: text}
	for rest := strings.TrimSpace(text); rest != ""; rest = strings.TrimSpace(rest) {
		n, err := wordEnd(rest)
		if err != nil {
			return nil, err
		}
		parsed, err := parseWord(rest[:n])
		if err != nil {
			return nil, err
		}
		w.words = append(w.words, parsed)
		rest = rest[n:]
	}
	if len(w.words) == 0 {
		return nil, fmt.Errorf("it has no words")
	}
	return w, nil
}

// wordEnd returns the length of the first word: up to a space that is not in quotes.
func wordEnd(text string) (int, error) {
	quoted, escaped := false, false
	for i, r := range text {
		switch {
		case escaped:
			escaped = false
		case quoted && r == '\\':
			escaped = true
		case r == '"':
			quoted = !quoted
		case !quoted && unicode.IsSpace(r):
			return i, nil
		}
	}
	if quoted {
		return 0, fmt.Errorf("a quote is not closed")
	}
	return len(text), nil
}

func parseWord(text string) (word, error) {
	w := word{spelled: text, value: text}
	if name, value, ok := strings.Cut(text, "="); ok && isPath(name) {
		w.name, w.value = name, value
	}
	if strings.HasPrefix(w.value, `"`) {
		value, err := strconv.Unquote(w.value)
		if err != nil {
			return w, fmt.Errorf("%s is not a quoted word", w.value)
		}
		w.value = value
	}
	return w, nil
}

func isPath(name string) bool {
	return name != "" && !strings.ContainsFunc(name, func(r rune) bool {
		return r != '_' && r != '.' && r != '-' && !unicode.IsLetter(r) && !unicode.IsDigit(r)
	})
}

// matches reports whether the text is the word's, or begins with it.
func (w *word) matches(text string) bool {
	begin, cut := strings.CutSuffix(w.value, ellipsis)
	return text == w.value || cut && strings.HasPrefix(text, begin)
}

// member returns the JSON text of a member of the payload, else of the envelope, or "".
func (l *line) member(path string) string {
	if raw := member(l.body, path); raw != "" {
		return raw
	}
	return member(l.text, path)
}

// holds reports whether the member that the word names has its value. Otherwise it returns the
// member's value.
func (w *word) holds(l *line) (bool, string) {
	raw := l.member(w.name)
	text, isString := unquote(raw)
	switch {
	case raw == "" && w.value == "", isString && w.matches(text):
		return true, ""
	case raw == "":
		return false, "no " + w.name
	case isString:
		return false, w.name + " is " + spell(cut(text))
	}
	compact, err := jsonwire.Compact(raw)
	if value, bad := jsonwire.Compact(w.value); err == nil && bad == nil && compact == value {
		return true, ""
	}
	return false, w.name + " is " + cut(raw)
}

// match returns how many words of the wanted line the event has, and why it does not
// match, or "" if it does.
func (w *want) match(l *line) (score int, why string) {
	var misses []string
	at := 0
	for i := range w.words {
		word := &w.words[i]
		if word.name != "" {
			ok, is := word.holds(l)
			if ok {
				score++
			} else {
				misses = append(misses, is)
			}
			continue
		}
		n := at
		for n < len(l.words) && !word.matches(l.words[n]) {
			n++
		}
		if n == len(l.words) {
			misses = append(misses, "no "+word.spelled)
			continue
		}
		score++
		at = n + 1
	}
	if w.more != nil {
		switch is, holds := w.more.test(l.event.Payload); {
		case !is:
			misses = append(misses, "no "+w.more.of)
		case !holds:
			score++
			misses = append(misses, "the function returns false")
		default:
			score += 2
		}
	}
	return score, strings.Join(misses, ", ")
}

// kinds returns the kinds of the catalog that the line names.
func (w *want) kinds() (kinds []agentevents.KindInfo) {
	if w.more != nil {
		if info, ok := w.more.kind.Info(); ok {
			kinds = append(kinds, info)
		}
	}
	for _, word := range w.words {
		if info, ok := agentevents.Kind(word.value).Info(); ok {
			kinds = append(kinds, info)
		}
	}
	return kinds
}
