package agentevents

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents/internal/effort"
	"github.com/agentevents/agentevents/internal/jsonwire"
)

// setLong sets every text and JSON value of content.
func setLong(v reflect.Value, class, text string) {
	switch v.Kind() {
	case reflect.String:
		if v.Type() == jsonType {
			v.SetString(`{"long":` + jsonwire.Quote(text) + `}`)
		} else if class == "content" {
			v.SetString(text)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			f := v.Type().Field(i)
			inside := class
			if c := f.Tag.Get("class"); c != "" {
				inside = c
			}
			if f.IsExported() {
				setLong(v.Field(i), inside, text)
			}
		}
	case reflect.Slice:
		for i := range v.Len() {
			setLong(v.Index(i), class, text)
		}
	}
}

// requireCut checks that a cut text describes its original.
func requireCut(t testing.TB, was, got string) {
	t.Helper()
	head, tail, ok := strings.Cut(got, "[TRUNCATED:")
	require.True(t, ok, "%.200s", got)
	require.Equal(t, fmt.Sprintf("%d bytes, sha256 %x]", len(was), sha256.Sum256([]byte(was))), tail)
	require.True(t, strings.HasPrefix(was, head) && utf8.ValidString(head))
}

func requireCutJSON(t testing.TB, was string, got JSON) (head string) {
	t.Helper()
	var says struct {
		Truncated struct {
			Bytes        int
			SHA256, Head string
		}
	}
	require.NoError(t, json.Unmarshal([]byte(got), &says), "%.200s", got)
	require.Equal(t, len(was), says.Truncated.Bytes)
	require.Equal(t, fmt.Sprintf("%x", sha256.Sum256([]byte(was))), says.Truncated.SHA256)
	require.True(t, strings.HasPrefix(was, says.Truncated.Head) && utf8.ValidString(says.Truncated.Head))
	return says.Truncated.Head
}

// A Reader with the same limit reads every accepted event, whatever the kind and wherever the
// content stands; and nothing that fits is cut.
func TestContentThatIsTooLongIsCut(t *testing.T) {
	const limit = 8192
	text := strings.Repeat("é\"\x01", 5000)
	eachKind(t, func(t *testing.T, k Kind, p payloadOps) {
		setLong(reflect.ValueOf(p).Elem(), "", text)
		for _, mode := range []Mode{ModeEnforce, ModeObserve} {
			o := EmitterOptions{Mode: mode, Lifecycle: LifecycleRelaxed}
			whole := attempted(t, o, Event{Payload: p})
			o.MaxLine = limit
			a := attempted(t, o, Event{Payload: p})
			require.Equal(t, whole.err, a.err)
			if a.err != nil {
				continue
			}
			requireReadBack(t, a, ReaderOptions{MaxLine: limit})
			if len(whole.log.lines[0]) <= limit-500 {
				require.Equal(t, whole.log.last(t).Payload, a.log.last(t).Payload)
				require.Equal(t, whole.log.last(t).Marks, a.log.last(t).Marks)
				continue
			}
			require.Equal(t, whole.log.last(t).Marks|MarkSanitized, a.log.last(t).Marks)
			require.Contains(t, strings.ToLower(a.log.lines[0]), "truncated")
			require.Greater(t, len(a.log.lines[0]), limit/2, "not much more than is needed")

			// Content is cut once: also in a log that is emitted again, or redacted.
			again := attempted(t, EmitterOptions{Mode: mode, Lifecycle: LifecycleRelaxed, MaxLine: limit}, withMark(a.log.last(t), MarkReplayed))
			require.Equal(t, a.log.last(t).Payload, again.log.last(t).Payload)
			for _, ev := range redactedLog(t, nil, a.log) {
				require.Equal(t, a.log.last(t), ev)
			}
		}
	})
}

func withMark(ev Event, m Marks) Event {
	ev.Marks |= m
	return ev
}

func TestDefaultReaderReadsLinesOfADefaultEmitter(t *testing.T) {
	if testing.Short() {
		t.Skip("it writes lines of the default limit, which is large")
	}
	r, log := startRun(t, EmitterOptions{Lifecycle: LifecycleRelaxed})
	a := r.Agent("a")
	huge := strings.Repeat("0123456789abcde\n", DefaultMaxLine/16+1<<16)
	require.NoError(t, a.Emit(t.Context(), &AgentStarted{}))
	require.NoError(t, a.To(t.Context(), StatusToolCall))
	_, err := a.Do(t.Context(), &ToolCalled{ToolID: "read"}, func(context.Context) (JSON, error) { return JSONString(huge), nil })
	require.NoError(t, err)
	require.NoError(t, a.Emit(t.Context(), &AgentEnded{Result: huge}))
	require.NoError(t, r.Emit(t.Context(), &RunCompleted{}))
	s, err := snapshotsOf(NewReader(strings.NewReader(strings.Join(log.lines, "\n")), ReaderOptions{}), FoldOptions{Lifecycle: LifecycleRelaxed})
	require.NoError(t, err)
	require.Empty(t, s[0].OpenCalls)
	require.Equal(t, RunStatusCompleted, s[0].Status)
	require.Empty(t, s[0].Violations)
	requireCutJSON(t, string(JSONString(huge)), log.events[3].Payload.(*ToolReturned).Result)
	requireCut(t, huge, log.events[4].Payload.(*AgentEnded).Result)
	require.Equal(t, string(log.snapshot(t).AppendJSON(nil)), string(s[0].AppendJSON(nil)))
}

// The longest content is cut first, to one length.
func TestTheLongestContentIsCut(t *testing.T) {
	short, long := strings.Repeat("s", 1000), strings.Repeat("l", 9000)
	a := attempted(t, EmitterOptions{MaxLine: 8192}, Event{Payload: &AgentStarted{Task: short, Prompt: JSONString(long)}})
	got := a.log.last(t).Payload.(*AgentStarted)
	require.Equal(t, short, got.Task)
	requireCutJSON(t, string(JSONString(long)), got.Prompt)

	a = attempted(t, EmitterOptions{MaxLine: 8192}, Event{Payload: &AgentStarted{Task: long + "x", Prompt: JSONString(long)}})
	got = a.log.last(t).Payload.(*AgentStarted)
	requireCut(t, long+"x", got.Task)
	requireCutJSON(t, string(JSONString(long)), got.Prompt)
	require.InDelta(t, len(got.Task), len(got.Prompt), 10)
}

func TestLevelOf(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		sizes := make([]int, rng.IntN(10))
		for i := range sizes {
			sizes[i] = 2 + rng.IntN(5000)
		}
		save := 1 + rng.IntN(20_000)
		level := levelOf(slices.Clone(sizes), save)
		saved := func(level int) (n int) {
			for _, size := range sizes {
				n += max(0, size-level)
			}
			return n
		}
		require.GreaterOrEqual(t, level, leastCut)
		if level > leastCut {
			require.GreaterOrEqual(t, saved(level), save, "%v", sizes)
		}
		require.Less(t, saved(level+1), save, "%v", sizes)
	}
}

// All content has an upper bound of its length on a line.
func TestSizeIsNoLessThanTheLine(t *testing.T) {
	eachKind(t, func(t *testing.T, k Kind, p payloadOps) {
		for _, text := range []string{"", "x", strings.Repeat("\x01\"\xff", 3000)} {
			fillTexts(reflect.ValueOf(p).Elem(), text)
			c := newRedaction(&Policy{Off: true}).cleaner(k)
			c.words = true
			cleaned, _ := cleanPayload(p, &c)
			clean := ops(cleaned)
			require.GreaterOrEqual(t, c.size, len(payloadText(clean)))
			require.Less(t, c.size, 8*len(payloadText(clean))+4000, "nearly all events are passed over")
		}
	})
}

// fillTexts sets all texts that are not JSON, ids and words too.
func fillTexts(v reflect.Value, text string) {
	switch v.Kind() {
	case reflect.String:
		if v.Type() != jsonType {
			v.SetString(text)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				fillTexts(v.Field(i), text)
			}
		}
	case reflect.Slice:
		for i := range v.Len() {
			fillTexts(v.Index(i), text)
		}
	case reflect.Map:
		elem := reflect.New(v.Type().Elem()).Elem()
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(reflect.ValueOf(text), elem)
	}
}

// An event a byte below the limit is recorded unchanged, with all that a line may have in its
// envelope.
func TestLinesOfEveryLengthAroundTheLimit(t *testing.T) {
	const limit = 8192
	last := 0
	for n := limit - 1000; n < limit+300; n++ {
		text := strings.Repeat("x", n)
		a := attempted(t, EmitterOptions{MaxLine: limit}, Event{Payload: &TextCompleted{Text: text}})
		require.NoError(t, a.err)
		require.LessOrEqual(t, len(a.log.lines[0]), limit)
		if a.log.last(t).Marks == 0 {
			require.Equal(t, n-1, max(last, n-1), "all shorter ones are whole too")
			last = n
		} else {
			requireCut(t, text, a.log.last(t).Payload.(*TextCompleted).Text)
		}
	}
	require.Greater(t, last, limit-700)
}

func TestEventsTooLongWithoutContentAreRefused(t *testing.T) {
	long := strings.Repeat("x", 5000)
	ids := make([]string, 2000)
	for _, mode := range []Mode{ModeEnforce, ModeObserve} {
		for _, ev := range []Event{
			{Payload: call(long)},
			{Payload: &EventRetracted{EventIDs: ids}},
			{Payload: &WorkflowCreated{Phases: ids}, Scope: Scope{WorkflowID: "w"}},
			{Payload: &AgentStarted{Model: long}},
			{Payload: &TextCompleted{}, Scope: Scope{SessionID: long}},
			{Payload: &TextDelta{Delta: long}, CausationID: long},
			{Payload: &TextCompleted{}, ID: long},
			{Payload: &TextCompleted{}, AgentID: long},
			{Payload: &Unknown{Type: Kind(long), Raw: JSON(`"` + long + `"`)}},
			{Payload: &AgentEnded{Outcome: AgentOutcome(long)}},
			{Payload: &AgentEnded{ModelUsage: map[string]Usage{long: {}}}},
		} {
			if mode == ModeEnforce && ops(ev.Payload).check() != nil {
				continue
			}
			a := attempted(t, EmitterOptions{Mode: mode, MaxLine: 4096, Lifecycle: LifecycleRelaxed}, ev)
			var broken *RuleError
			require.True(t, errors.As(a.err, &broken), "%T", ev.Payload)
			require.Equal(t, RuleLineLength, broken.Rule)
			require.Contains(t, broken.Detail, "at most 4096 are allowed (EmitterOptions.MaxLine)")
			require.NotContains(t, broken.Detail, "xx")
			require.Empty(t, a.log.events)
			require.Equal(t, []*RuleError{broken}, a.violations, "it is told once")
		}
	}
}

// On every way to the log.
func TestContentIsCutOnEveryWay(t *testing.T) {
	const limit = 4096
	long := strings.Repeat("some words. ", 1000)
	o := EmitterOptions{MaxLine: limit, Lifecycle: LifecycleRelaxed, Redaction: &Policy{}}
	o.Follow = func(ev Event) []Event {
		if ev.Kind() != KindRunPaused {
			return nil
		}
		return []Event{{AgentID: "b", Payload: &TextCompleted{Text: long}}}
	}
	grow := redactorFunc(func(p Place, text string) (string, error) {
		if p.Kind == KindTextDelta && text != "" && text != "x" {
			return long, nil
		}
		return text, nil
	})
	var told []Event
	o.Sinks = []Sink{SinkFunc(func(_ context.Context, ev Event) error {
		told = append(told, ev)
		return nil
	})}
	for name, way := range map[string]func(r *Run, a *Agent) error{
		"emit": func(r *Run, a *Agent) error { return r.Emit(t.Context(), &RunCompleted{Outputs: JSONString(long)}) },
		"record": func(r *Run, a *Agent) error {
			_, err := a.Record(t.Context(), Event{ID: "e", Payload: &TextCompleted{Text: long}})
			return err
		},
		"follow": func(r *Run, a *Agent) error { return r.Emit(t.Context(), &RunPaused{}) },
		"extra": func(r *Run, a *Agent) error {
			ev := Event{Payload: &TextCompleted{Text: "short"}}
			err := errors.Join(ev.SetExtra("x-other", `"stays"`), ev.SetExtra("x-long", JSONString(long)))
			_, rerr := r.Record(t.Context(), ev)
			return errors.Join(err, rerr)
		},
		"unknown": func(r *Run, a *Agent) error {
			return r.Emit(t.Context(), &Unknown{Type: "x.y", Raw: JSON(`{"a":"` + long + `"}`)})
		},
		"evidence": func(r *Run, a *Agent) error {
			return r.Emit(t.Context(), &AuditChecked{CheckpointID: "c", Result: AuditPass, Evidence: JSON(`{"a":"` + long + `"}`)})
		},
		"broken": func(r *Run, a *Agent) error {
			return r.Emit(t.Context(), &AuditChecked{CheckpointID: "c", Result: AuditPass, Evidence: JSON(`{"a":"` + long)})
		},
		"delta": func(r *Run, a *Agent) error {
			return a.Emit(t.Context(), &TextDelta{BlockID: "b", Delta: long, Index: Some(0)})
		},
		"arguments": func(r *Run, a *Agent) error {
			return a.Emit(t.Context(), &ToolArgumentsDelta{CallID: "c", Delta: long})
		},
		"reasoning": func(r *Run, a *Agent) error { return a.Emit(t.Context(), &AgentReasoned{Reasoning: long}) },
		"held": func(r *Run, a *Agent) error {
			return errors.Join(a.Emit(t.Context(), &TextDelta{Delta: "sk-"}), a.Emit(t.Context(), &TextCompleted{Text: "x"}))
		},
		"closed": func(r *Run, a *Agent) error {
			return errors.Join(a.Emit(t.Context(), &TextDelta{Delta: "sk-"}), r.Close())
		},
		"ids": func(r *Run, a *Agent) error { return a.Emit(t.Context(), &TextCompleted{Text: long}) },
	} {
		t.Run(name, func(t *testing.T) {
			told = nil
			o := o
			o.Redaction = &Policy{}
			if name == "held" || name == "closed" {
				o.Redaction.Redactor = grow
			}
			if name == "ids" {
				o.NewID = func() string { return strings.Repeat("i", 1500) }
			}
			live := NewFold(FoldOptions{Lifecycle: LifecycleRelaxed})
			r, log := startRun(t, o)
			require.NoError(t, way(r, beginAgent(t, r, "a")))
			cut := 0
			for i, ev := range told {
				live.Apply(ev)
				require.LessOrEqual(t, len(log.lines[i]), limit)
				require.Equal(t, strings.Contains(strings.ToLower(log.lines[i]), "truncated"), ev.Marks.Has(MarkSanitized))
				if ev.Marks.Has(MarkSanitized) {
					cut++
				}
			}
			require.Equal(t, 1, cut)
			if name == "extra" {
				require.Equal(t, JSON(`"stays"`), told[1].Extra("x-other"))
				requireCutJSON(t, string(JSONString(long)), told[1].Extra("x-long"))
				require.Equal(t, "short", told[1].Payload.(*TextCompleted).Text)
			}
			requireReadBack(t, &attempt{log: log, live: live}, ReaderOptions{MaxLine: limit})
		})
	}
}

// Content is redacted before it is cut: no half of a secret is left at the cut, and the hash is not
// the secret's.
func TestContentIsRedactedBeforeItIsCut(t *testing.T) {
	registered := new(Secrets)
	require.NoError(t, registered.Add(canaryValue))
	for n := range effort.Of(200, 200, 1200) {
		text := strings.Repeat("x", 3200+n) + " " + canaryValue + " " + strings.Repeat("y", 4096)
		clean := strings.ReplaceAll(text, canaryValue, "[REDACTED:secret]")
		a := attempted(t, EmitterOptions{MaxLine: 4096, Redaction: &Policy{Secrets: registered}}, Event{Payload: &AgentEnded{Result: text}})
		require.NotContains(t, a.log.lines[0], canaryValue[:2])
		requireCut(t, clean, a.log.last(t).Payload.(*AgentEnded).Result)
		a = attempted(t, EmitterOptions{MaxLine: 4096, Redaction: &Policy{Secrets: registered}}, Event{Payload: &ToolCalled{CallID: "c", ToolID: "t", Arguments: JSONString(text)}})
		require.NotContains(t, a.log.lines[0], canaryValue[:2])
		requireCutJSON(t, string(JSONString(clean)), a.log.last(t).Payload.(*ToolCalled).Arguments)
		require.Equal(t, MarkRedacted|MarkSanitized, a.log.last(t).Marks)
	}
}

// The same message again is not another message, though it is cut.
func TestACutMessageMayBeRepeated(t *testing.T) {
	r, log := startRun(t, EmitterOptions{MaxLine: 4096})
	for _, session := range []string{"", "another"} {
		require.NoError(t, r.With(Scope{SessionID: session}).Emit(t.Context(), &MessageCreated{Message: ConversationMessage{MessageID: "m", From: "a", TS: 1, Content: JSONString(strings.Repeat("x", 9000))}}))
	}
	require.Len(t, log.snapshot(t).Messages, 1)
}

// Under LifecycleDerived a refused event ends no block either, nor moves its agent.
func TestEventsTooLongEndNoBlockAndMoveNoAgent(t *testing.T) {
	r, log := startRun(t, EmitterOptions{Lifecycle: LifecycleDerived, MaxLine: 4096, Redaction: canaryPolicy(t)})
	a := r.Agent("a")
	require.NoError(t, a.Emit(t.Context(), &AgentStarted{}))
	require.NoError(t, a.Emit(t.Context(), &TextDelta{Delta: "C4N4"}))
	n := len(log.events)
	for _, id := range []string{strings.Repeat("x", 5000), strings.Repeat("x", 3700)} {
		for _, p := range []Payload{&ToolCalled{CallID: "c", ToolID: id}, &ToolCalled{CallID: "c", ToolID: id, Arguments: JSON(id)}, &AgentReasoningDelta{BlockID: id, Delta: "x"}} {
			var broken *RuleError
			require.ErrorAs(t, a.Emit(t.Context(), p), &broken)
			require.Equal(t, RuleLineLength, broken.Rule)
		}
	}
	require.Len(t, log.events, n)
	require.NoError(t, a.Emit(t.Context(), &TextDelta{Delta: "RYs3cr3t"}))
	require.Equal(t, "text [REDACTED:secret] [redacted]", said(log.events)[n])

	// A shorter one is cut, and both are recorded.
	require.NoError(t, a.Emit(t.Context(), &ToolCalled{CallID: "c", ToolID: "t", Arguments: JSONString(strings.Repeat("x", 5000))}))
	require.Equal(t, []Kind{KindAgentTransition, KindToolCalled}, log.kinds()[n+1:])
	require.Empty(t, log.snapshot(t).Violations)
}

func TestAnEventThatFitsCostsNothingMore(t *testing.T) {
	r, _ := startRun(t, EmitterOptions{})
	ev := Event{Payload: call("c"), RunID: "r"}
	sub := subject{payload: ops(ev.Payload)}
	require.Zero(t, leastAllocs(100, func() {
		if r.s.fit(&ev, &sub, "", 1000) != nil || r.s.fitDelta(&ev, &sub, "") != nil {
			panic("refused")
		}
	}))
	require.Nil(t, r.s.line, "it was not measured")
}
