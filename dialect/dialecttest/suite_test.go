package dialecttest

import (
	"bytes"
	"crypto/rand"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect"
	"github.com/agentevents/agentevents/internal/readback"
)

// Two honest dialects pass.

func TestPlain(t *testing.T) { Run(t, plain()) }

func TestJoining(t *testing.T) { Run(t, joining()) }

// So does a dialect of another module, which dialect.Detect does not recognise.
func TestForeign(t *testing.T) {
	Run(t, foreign())

	claimed := plain()
	claimed.Name = "toy"
	require.Equal(t, []string{`dialect.Detect returns "native"`}, problemsOf(claimed, "golden", "start"))
	claimed.Detect = func(string) dialect.Name { return "toy" }
	require.Empty(t, problemsOf(claimed, "golden", "start"))
	claimed.Detect = func(string) dialect.Name { return "" }
	require.Equal(t, []string{`Detect returns ""`}, problemsOf(claimed, "golden", "start"))

	known := foreign()
	known.Name = dialect.KAHN
	require.Equal(t, []string{`dialect.Detect returns ""`}, problemsOf(known, "golden", "start"))
}

// A dialect with no kind of the standard run brings its own story.
func TestSmall(t *testing.T) {
	Run(t, small())

	lost := small()
	lost.Story = nil
	require.Equal(t, []string{"nothing of the run came back: the dialect needs a Story"}, problemsOf(lost, "fold", "snapshot"))
	require.Equal(t, []string{"nothing of the two runs came back: the dialect needs a Story"}, problemsOf(lost, "runs", "interleaved"))
}

// A broken encoder or decoder changes the output of an honest one.

type brokenEncoder struct {
	dialect.Encoder
	change func(ev *agentevents.Event) // called before encoding
	append func(inner dialect.Encoder, dst []byte, ev agentevents.Event) ([]byte, error)
	losses func([]dialect.Loss) []dialect.Loss
}

func (e brokenEncoder) Append(dst []byte, ev agentevents.Event) ([]byte, error) {
	if e.change != nil {
		e.change(&ev)
	}
	if e.append != nil {
		return e.append(e.Encoder, dst, ev)
	}
	return e.Encoder.Append(dst, ev)
}

func (e brokenEncoder) Losses() []dialect.Loss {
	if e.losses != nil {
		return e.losses(e.Encoder.Losses())
	}
	return e.Encoder.Losses()
}

type brokenDecoder struct {
	agentevents.Decoder
	change func(ev *agentevents.Event, line []byte) // called after decoding
}

func (d brokenDecoder) Decode(dst []agentevents.Event, line []byte) ([]agentevents.Event, error) {
	n := len(dst)
	dst, err := d.Decoder.Decode(dst, line)
	if len(dst) == n {
		d.change(nil, line)
	}
	for i := n; i < len(dst); i++ {
		d.change(&dst[i], line)
	}
	return dst, err
}

func withEncoder(d Dialect, b brokenEncoder) Dialect {
	inner := d.Encoder
	d.Encoder = func() dialect.Encoder { b.Encoder = inner(); return b }
	return d
}

func withDecoder(d Dialect, change func(ev *agentevents.Event, line []byte)) Dialect {
	inner := d.Decoder
	d.Decoder = func() agentevents.Decoder { return brokenDecoder{inner(), change} }
	return d
}

// TestBroken checks that the suite finds every broken promise in the check for
// it.
func TestBroken(t *testing.T) {
	started := func(ev *agentevents.Event) *agentevents.AgentStarted {
		p, _ := ev.Payload.(*agentevents.AgentStarted)
		return p
	}
	loss := func(kind agentevents.Kind, pointer string, what dialect.Change) func([]dialect.Loss) []dialect.Loss {
		return func(list []dialect.Loss) []dialect.Loss {
			ev := Filled(kind)
			return append(list, dialect.Loss{Kind: kind, Pointer: pointer, What: what, Count: 1, RunID: ev.RunID, Sequence: ev.Sequence})
		}
	}
	var shared atomic.Int64
	var leaked agentevents.JSON
	for _, test := range []struct {
		name  string
		d     Dialect
		check string // the check that finds it
		input string // the case
		text  string
	}{
		{"a member of the payload is lost silently", withEncoder(plain(), brokenEncoder{change: func(ev *agentevents.Event) {
			if p := started(ev); p != nil {
				out := *p
				out.Model = ""
				ev.Payload = &out
			}
		}}), "kinds", "agent.started", "agent.started: no loss lists the difference /payload/model"},
		{"a member of the envelope is lost silently", withEncoder(plain(), brokenEncoder{change: func(ev *agentevents.Event) { ev.ParentCallID = "" }}),
			"kinds", "node.started", "/parentCallId"},
		{"a value is invented", withEncoder(plain(), brokenEncoder{change: func(ev *agentevents.Event) {
			if ev.Actor == "" {
				ev.Actor = "user"
			}
		}}), "kinds", "usage.observed", "/actor: nothing became"},
		{"a value is altered and listed as dropped", withEncoder(plain(), brokenEncoder{
			change: func(ev *agentevents.Event) {
				if p := started(ev); p != nil {
					out := *p
					out.Model = "other"
					ev.Payload = &out
				}
			},
			losses: loss(agentevents.KindAgentStarted, "/payload/model", dialect.Dropped),
		}), "kinds", "agent.started", "/payload/model"},
		{"a word becomes another", withEncoder(plain(), brokenEncoder{change: func(ev *agentevents.Event) {
			if p, ok := ev.Payload.(*agentevents.ToolReturned); ok && p.Status == agentevents.ToolStatusRateLimited {
				out := *p
				out.Status = agentevents.ToolStatusError
				ev.Payload = &out
			}
		}}), "kinds", "agent.toolReturned", `/payload/status: "rate_limited" became "error"`},
		{"zero becomes absent", withEncoder(plain(), brokenEncoder{change: func(ev *agentevents.Event) {
			if ev.Step.V == 0 {
				ev.Step.OK = false
			}
		}}), "kinds", "agent.text.delta", "/step: 0 became nothing"},
		{"a loss of the whole hides one of a member", withEncoder(plain(), brokenEncoder{
			change: func(ev *agentevents.Event) { ev.SpanID = "" },
			losses: loss(agentevents.KindRunPaused, "", dialect.Altered),
		}), "kinds", "run.paused", "/spanId"},
		{"a member of a payload that no field has is lost", withEncoder(plain(), brokenEncoder{change: func(ev *agentevents.Event) {
			if p, ok := ev.Payload.(*agentevents.RunPaused); ok {
				ev.Payload = &agentevents.RunPaused{Reason: p.Reason}
			}
		}}), "kinds", "run.paused", "/payload/x-suite/0: 1.50 became nothing"},
		{"a loss that did not happen", withEncoder(plain(), brokenEncoder{losses: loss(agentevents.KindRunPaused, "/payload/reason", dialect.Dropped)}),
			"kinds", "run.paused", "a loss that did not happen"},
		{"a loss of no event", withEncoder(plain(), brokenEncoder{losses: loss("x", "/id", dialect.Dropped)}), "kinds", "run.paused", "belongs to no event"},
		{"a refusal that is not listed", withEncoder(plain(), brokenEncoder{append: func(e dialect.Encoder, dst []byte, ev agentevents.Event) ([]byte, error) {
			if ev.Kind() == agentevents.KindPlanProposed {
				return dst, dialect.ErrNoCounterpart
			}
			return e.Append(dst, ev)
		}}), "kinds", "plan.proposed", "not among the losses"},
		{"a refusal of what lines say", withEncoder(joining(), brokenEncoder{append: func(e dialect.Encoder, dst []byte, ev agentevents.Event) ([]byte, error) {
			if ev.Kind() == agentevents.KindAuditChecked {
				return dst, e.(*joiningEncoder).losses.Refuse(&ev)
			}
			return e.Append(dst, ev)
		}}), "kinds", "audit.checked", "lines of the document are decoded to the kind"},
		{"a refusal that names nothing", withEncoder(joining(), brokenEncoder{append: func(e dialect.Encoder, dst []byte, ev agentevents.Event) ([]byte, error) {
			if ev.Kind() == agentevents.KindPlanProposed {
				_ = e.(*joiningEncoder).losses.Refuse(&ev)
				return dst, dialect.ErrNoCounterpart
			}
			return e.Append(dst, ev)
		}}), "kinds", "plan.proposed", "does not name it"},
		{"a refusal with any error", withEncoder(plain(), brokenEncoder{append: func(e dialect.Encoder, dst []byte, ev agentevents.Event) ([]byte, error) {
			return dst, bytes.ErrTooLarge
		}}), "kinds", "run.started", "neither wraps"},
		{"an event disappears", withEncoder(plain(), brokenEncoder{append: func(e dialect.Encoder, dst []byte, ev agentevents.Event) ([]byte, error) {
			if ev.Kind() == agentevents.KindTextDelta {
				return dst, nil
			}
			return e.Append(dst, ev)
		}}), "kinds", "agent.text.delta", "has disappeared"},
		{"an event is written twice", withEncoder(plain(), brokenEncoder{append: func(e dialect.Encoder, dst []byte, ev agentevents.Event) ([]byte, error) {
			dst, _ = e.Append(dst, ev)
			return e.Append(dst, ev)
		}}), "kinds", "run.started", "was not written"},
		{"something is appended with an error", withEncoder(plain(), brokenEncoder{append: func(e dialect.Encoder, dst []byte, ev agentevents.Event) ([]byte, error) {
			return append(dst, "x\n"...), e.(*plainEncoder).losses.Refuse(&ev)
		}}), "kinds", "run.started", "appended something"},
		{"a line without a newline", withEncoder(plain(), brokenEncoder{append: func(e dialect.Encoder, dst []byte, ev agentevents.Event) ([]byte, error) {
			dst, err := e.Append(dst, ev)
			return bytes.TrimSuffix(dst, []byte("\n")), err
		}}), "kinds", "run.started", "without a newline"},
		{"facts of a joined call are lost silently", withEncoder(joining(), brokenEncoder{losses: func(list []dialect.Loss) []dialect.Loss {
			return slices.DeleteFunc(list, func(l dialect.Loss) bool { return l.Pointer == "/payload/principal" })
		}}), "kinds", "agent.toolCalled", "/payload/principal"},
		{"a member of raw JSON is respelled", withEncoder(plain(), brokenEncoder{append: func(e dialect.Encoder, dst []byte, ev agentevents.Event) ([]byte, error) {
			dst, err := e.Append(dst, ev)
			return bytes.ReplaceAll(dst, []byte("1.50"), []byte("1.5")), err
		}}), "kinds", "run.started", "/payload/inputs/list/0: 1.50 became 1.5"},
		{"a panic", withDecoder(plain(), func(ev *agentevents.Event, line []byte) {
			if ev == nil && strings.HasSuffix(string(line), `"ta`) {
				panic("torn")
			}
		}), "bad lines", "torn", "panic: torn"},
		{"ids that are made by chance", withDecoder(plain(), func(ev *agentevents.Event, _ []byte) {
			if ev != nil {
				ev.ID = rand.Text()
			}
		}), "golden", "start", "decoding twice"},
		{"an extra member is lost", withDecoder(plain(), func(ev *agentevents.Event, _ []byte) {
			if ev != nil {
				_ = ev.SetExtra("x-suite", "")
			}
		}), "extra members", "start", "at the end: the line is written differently"},
		{"an extra member is on the next line too", withDecoder(plain(), func(ev *agentevents.Event, _ []byte) {
			if ev == nil {
				return
			}
			was := leaked
			leaked = ev.Extra("x-suite")
			if leaked == "" && was != "" {
				_ = ev.SetExtra("x-suite", was)
			}
		}), "extra members", "start", "before a line without"},
		{"a nested extra member is lost", withDecoder(plain(), func(ev *agentevents.Event, _ []byte) {
			if ev == nil {
				return
			}
			if p, ok := ev.Payload.(*agentevents.UsageObserved); ok {
				out := *p
				out.Usage = agentevents.Usage{InputTokens: p.Usage.InputTokens, OutputTokens: p.Usage.OutputTokens}
				ev.Payload = &out
			}
		}), "extra members", "usage", "in /payload/usage"},
		{"an unknown type is lost", withDecoder(plain(), func(ev *agentevents.Event, _ []byte) {
			if ev == nil {
				return
			}
			if _, ok := ev.Payload.(*agentevents.Unknown); ok {
				ev.Payload = &agentevents.RunPaused{}
			}
		}), "unknown types", "kept", "decoded as"},
		{"a line is written though the event was changed", withEncoder(plain(), brokenEncoder{append: func(e dialect.Encoder, dst []byte, ev agentevents.Event) ([]byte, error) {
			if ev.Origin() != "" {
				return append(append(dst, ev.Origin()...), '\n'), nil
			}
			return e.Append(dst, ev)
		}}), "extra members", "start", "was changed after reading"},
		{"the spelling is lost", withEncoder(plain(), brokenEncoder{append: func(e dialect.Encoder, dst []byte, ev agentevents.Event) ([]byte, error) {
			back, err := throughNative([]agentevents.Event{ev})
			if err != nil || len(back) != 1 {
				return e.Append(dst, ev)
			}
			text, err := e.Append(nil, back[0])
			return append(dst, bytes.ReplaceAll(text, []byte(": "), []byte(":"))...), err
		}}), "extra members", "start", "read with Verbatim"},
		{"an event without a payload", withDecoder(plain(), func(ev *agentevents.Event, _ []byte) {
			if ev != nil && ev.Kind() == "x" {
				ev.Payload = nil
			}
		}), "bad lines", "not objects", "without a payload"},
		{"golden lines have another event", withDecoder(plain(), func(ev *agentevents.Event, _ []byte) {
			if ev != nil {
				ev.AgentID += "!"
			}
		}), "golden", "start", `/agentId: "coder" became "coder!"`},
		{"runs are mixed up", withDecoder(plain(), func(ev *agentevents.Event, _ []byte) {
			if ev != nil {
				ev.RunID = "run-1"
			}
		}), "runs", "interleaved", "two runs became 1"},
		{"outcomes are mixed up", withDecoder(plain(), func(ev *agentevents.Event, _ []byte) {
			if ev == nil {
				return
			}
			if p, ok := ev.Payload.(*agentevents.ToolReturned); ok {
				out := *p
				out.Status = agentevents.ToolStatusOK
				ev.Payload = &out
			}
		}), "fold", "snapshot", "failures of Bash: 1 became 0"},
		{"a refused event is counted", withEncoder(plain(), brokenEncoder{append: func(e dialect.Encoder, dst []byte, ev agentevents.Event) ([]byte, error) {
			if ev.Time.Year() > 9999 {
				dst = append(dst, '\n')
			}
			return e.Append(dst, ev)
		}}), "fold", "refused", "agent.started of the year 10000 is written"},
		{"instances share something", withDecoder(plain(), func(ev *agentevents.Event, _ []byte) {
			if ev != nil {
				ev.Step = agentevents.Some(int(shared.Add(1)))
			}
		}), "instances", "parallel", "at the same time"},
		{"a kept line has losses", withEncoder(plain(), brokenEncoder{losses: func([]dialect.Loss) []dialect.Loss {
			return []dialect.Loss{{Pointer: "/id", What: dialect.Dropped, Count: 1, RunID: "r1", Sequence: 3}}
		}}), "verbatim lists nothing", "other spelling", "every kind: dropped /id"},
		{"a strict decoder refuses what is written", func() Dialect {
			d := withEncoder(plain(), brokenEncoder{change: func(ev *agentevents.Event) { ev.Step = agentevents.Some(-1) }})
			d.Strict = func() agentevents.Decoder { return strictDecoder{} }
			return d
		}(), "properties", "start", "a strict decoder finds a fault in a written line"},
		{"a line changes each time", withEncoder(plain(), brokenEncoder{change: func(ev *agentevents.Event) { ev.Step = agentevents.Some(ev.Step.V + 1) }}),
			"properties", "usage", "what was written and read is written differently"},
		{"a torn line takes an event with it", func() Dialect {
			d := plain()
			d.Decoder = func() agentevents.Decoder { return &holdingDecoder{} }
			return d
		}(), "properties", "all lines", "without the torn line"},
	} {
		t.Run(test.name, func(t *testing.T) {
			texts := problemsOf(test.d, test.check, test.input)
			require.True(t, slices.ContainsFunc(texts, func(s string) bool { return strings.Contains(s, test.text) }), "found: %q", texts)
		})
	}
}

// A strictDecoder refuses steps.
type strictDecoder struct{ plainDecoder }

func (d strictDecoder) Decode(dst []agentevents.Event, line []byte) ([]agentevents.Event, error) {
	out, err := d.plainDecoder.Decode(dst, line)
	if err == nil && out[len(out)-1].Step.OK {
		return dst, &agentevents.RuleError{Rule: "step", Pointer: "/step"}
	}
	return out, err
}

// A holdingDecoder returns an event with the next line, and forgets it if that is bad.
type holdingDecoder struct {
	plainDecoder
	held []agentevents.Event
}

func (d *holdingDecoder) Decode(dst []agentevents.Event, line []byte) ([]agentevents.Event, error) {
	dst = append(dst, d.held...)
	var err error
	if d.held, err = d.plainDecoder.Decode(nil, line); err != nil {
		return dst[:len(dst)-min(1, len(dst))], err
	}
	return dst, nil
}

func (d *holdingDecoder) End(dst []agentevents.Event) ([]agentevents.Event, error) {
	return append(dst, d.held...), nil
}

// problemsOf runs one case of one check.
func problemsOf(d Dialect, checkName, caseName string) []string {
	var texts []string
	for _, c := range checks {
		if c.name != checkName {
			continue
		}
		for _, tc := range c.cases(&d) {
			if tc.name == caseName {
				r := report{}
				r.run(tc.run)
				for _, p := range r.problems {
					texts = append(texts, p.text())
				}
			}
		}
	}
	return texts
}

// TestFilled checks that events of the suite are legal, whole and distinct.
func TestFilled(t *testing.T) {
	for info := range agentevents.Kinds() {
		t.Run(string(info.Kind), func(t *testing.T) {
			ev := Filled(info.Kind)
			require.Equal(t, ev, Filled(info.Kind))
			require.Equal(t, info.Kind, ev.Kind())
			payload := reflect.ValueOf(ev.Payload).Elem()
			for i := range payload.NumField() {
				if f := payload.Type().Field(i); f.IsExported() {
					require.False(t, payload.Field(i).IsZero(), f.Name)
				}
			}
			f, err := readback.FactsOf(&ev)
			require.NoError(t, err)
			seen := map[string]string{}
			for pointer, text := range f.Leaves {
				if len(text) < 4 || text == "true" || strings.Contains(pointer, "/list/") || strings.Contains(pointer, "/deep/") || strings.HasSuffix(pointer, "/n") ||
					strings.Contains(pointer, "agentSharing") || strings.Contains(pointer, "modelClass") || strings.HasPrefix(pointer, "/marks") || pointer == "/payload/agent/agentId" {
					continue
				}
				require.Empty(t, seen[text], "%s and %s are %s", seen[text], pointer, text)
				seen[text] = pointer
			}
			for _, v := range variants(info.Kind) {
				for _, ev := range inContext(v.ev, v.name == "filled") {
					fold := agentevents.NewFold(agentevents.FoldOptions{})
					fold.Apply(ev)
					for _, violation := range fold.Snapshot().Violations {
						require.False(t, strings.HasPrefix(string(violation.Rule), "field-"), "%s: %v", v.name, violation)
					}
				}
			}
		})
	}
}

func TestStandardRun(t *testing.T) {
	events := StandardRun("r")
	require.Equal(t, events, StandardRun("r"))
	snapshot := fold(&report{}, events)
	require.Empty(t, snapshot.Violations)
	require.Equal(t, agentevents.RunStatusCompleted, snapshot.Status)
	require.Len(t, snapshot.Agents, 2)
	require.Len(t, snapshot.Messages, 1)
}

func TestDiff(t *testing.T) {
	a := Filled(agentevents.KindRunStarted)
	b := Filled(agentevents.KindRunStarted)
	diffs, err := readback.Diff(a, b)
	require.NoError(t, err)
	require.Empty(t, diffs)
	b.Marks, b.Step = agentevents.MarkLate, agentevents.Opt[int]{}
	b.Payload.(*agentevents.RunStarted).Definition = `{"b":1,"a":2}`
	a.Payload.(*agentevents.RunStarted).Definition = `{"a":2,"b":1}`
	diffs, err = readback.Diff(a, b)
	require.NoError(t, err)
	var places []string
	for _, d := range diffs {
		places = append(places, d.Pointer)
	}
	require.Equal(t, "/payload/definition: the members have another order", diffs[slices.Index(places, "/payload/definition")].Brief())
	require.Equal(t, []string{"/marks/illegal", "/marks/redacted", "/marks/replayed", "/marks/sanitized", "/marks/synthetic", "/payload/definition", "/step"}, places)
}

func TestCovers(t *testing.T) {
	for _, test := range []struct {
		pattern, pointer string
		want             bool
	}{
		{"", "/a", true}, {"/a", "/a", true}, {"/a", "/a/b", true}, {"/a", "/ab", false}, {"/a/b", "/a", false},
		{"/a/*/c", "/a/0/c", true}, {"/a/*/c", "/a/0/c/d", true}, {"/a/*/c", "/a/0/d", false}, {"/a/*", "/a", false},
	} {
		require.Equal(t, test.want, readback.Covers(test.pattern, test.pointer), "%+v", test)
	}
}

func TestRequired(t *testing.T) {
	require.True(t, readback.Required(agentevents.KindAuditChecked, "/payload/durationMs"))
	require.True(t, readback.Required(agentevents.KindHandoffRequested, "/payload/from/agentId"))
	require.True(t, readback.Required(agentevents.KindAgentStarted, "/payload/agent/agentId"))
	require.True(t, readback.Required(agentevents.KindPlanProposed, "/payload/steps/0/stepId"))
	require.False(t, readback.Required(agentevents.KindAgentStarted, "/payload/agent"))
	require.False(t, readback.Required(agentevents.KindAgentStarted, "/payload/model"))
	require.False(t, readback.Required(agentevents.KindAgentStarted, "/payload/prompt/a"))
	require.False(t, readback.Required(agentevents.KindAgentStarted, "/agentId"))
}
