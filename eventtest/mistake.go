package eventtest

import (
	"fmt"
	"iter"
	"reflect"
	"slices"
	"strings"

	"github.com/agentevents/agentevents"
)

// Kinds and members are closed lists, and a misspelt one is a mistake of the test: no event has it,
// so that "none" and "absent" hold of it. A member that an event has is never a mistake: hosts have
// kinds and members of their own.

// envelope are the members of a line.
var envelope = strings.Fields(`id sequence timestamp type runId sessionId taskId workflowId phase nodeId
	nodeRunId agentId actor parentAgentId parentCallId step traceId spanId parentSpanId causationId schemaVersion
	marks payload`)

// mistake returns an error for the first member that no event of the line's kinds can have,
// and notes the first word that seems to be a misspelt kind.
func (r *Recorder) mistake(w *want) error {
	kinds := w.kinds()
	dotted := slices.ContainsFunc(w.words, func(w word) bool { return w.dotted() })
	for i := range w.words {
		switch word := &w.words[i]; {
		case word.dotted() && len(kinds) == 0 && w.hint == "":
			if near := nearKind(word.value); near != "" &&
				!r.has(func(l *line) bool { return slices.Contains(l.words, word.value) }) {
				w.hint = fmt.Sprintf("%s is not a kind; %s is", word.value, near)
			}
		case word.name != "" && (len(kinds) > 0 || !dotted):
			of := slices.Values(kinds)
			if len(kinds) == 0 {
				of = agentevents.Kinds()
			}
			if near, known := lookMember(of, word.name); !known &&
				!r.has(func(l *line) bool { return l.member(word.name) != "" }) {
				return fmt.Errorf("no event of this kind has a member %s%s", word.name, near)
			}
		}
	}
	return nil
}

// dotted reports whether the word may be meant as a kind: all kinds have a dot.
func (w *word) dotted() bool {
	return w.name == "" && w.spelled == w.value && strings.Contains(w.value, ".")
}

func (r *Recorder) has(is func(*line) bool) bool {
	return slices.ContainsFunc(r.Events(), func(ev agentevents.Event) bool { return is(newLine(ev)) })
}

// nearKind returns the kind that a word is likely meant as: one that begins as it does, or
// differs in one letter.
func nearKind(text string) string {
	var all []string
	family, _, _ := strings.Cut(text, ".")
	ofFamily := false
	for k := range agentevents.Kinds() {
		all = append(all, string(k.Kind))
		ofFamily = ofFamily || strings.HasPrefix(string(k.Kind), family+".")
	}
	if near, edits := nearest(all, text); ofFamily || edits <= 1 {
		return near
	}
	return ""
}

// lookMember reports whether events of one of the kinds may have the member that a path names. If
// not, it returns the most similar member.
func lookMember(kinds iter.Seq[agentevents.KindInfo], path string) (near string, known bool) {
	name, rest, nested := strings.Cut(path, ".")
	if slices.Contains(envelope, name) {
		return "", true
	}
	names := slices.Clone(envelope)
	for k := range kinds {
		members := membersOf(reflect.TypeOf(agentevents.NewPayload(k.Kind)).Elem())
		if t := members[name]; t != nil && (!nested || mayHave(t, rest)) {
			return "", true
		}
		for name, t := range members {
			names = append(names, name)
			for inner := range membersOf(t) {
				names = append(names, name+"."+inner)
			}
		}
	}
	if near, edits := nearest(names, path); edits <= 2 {
		return "; there is " + near, false
	}
	return "", false
}

// mayHave reports whether the values of a type may have the member that a path names.
func mayHave(t reflect.Type, path string) bool {
	if t == reflect.TypeFor[agentevents.JSON]() || t.Kind() == reflect.Map {
		return true
	}
	name, rest, nested := strings.Cut(path, ".")
	member := membersOf(t)[name]
	return member != nil && (!nested || mayHave(member, rest))
}

// membersOf returns the types of the members that values of a struct, or of an Opt of one,
// have as JSON.
func membersOf(t reflect.Type) map[string]reflect.Type {
	if t == nil || t.Kind() != reflect.Struct {
		return nil
	}
	if strings.HasPrefix(t.Name(), "Opt[") {
		return membersOf(t.Field(0).Type)
	}
	members := map[string]reflect.Type{}
	for i := range t.NumField() {
		if name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ","); name != "" {
			members[name] = t.Field(i).Type
		}
	}
	return members
}

// nearest returns the name that takes the fewest edits to become the text, in any case, and
// their number.
func nearest(names []string, text string) (near string, edits int) {
	for _, name := range names {
		if n := distance(strings.ToLower(name), strings.ToLower(text)); near == "" || n < edits || n == edits && name < near {
			near, edits = name, n
		}
	}
	return near, edits
}

// distance returns how many letters are added, left out or replaced between two texts.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0]++
		for j := range len(b) {
			replaced := diagonal
			if a[i] != b[j] {
				replaced++
			}
			diagonal = row[j+1]
			row[j+1] = min(replaced, row[j]+1, diagonal+1)
		}
	}
	return row[len(b)]
}
