package agentevents

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"math"
	"os"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/agentevents/agentevents/internal/canary"
	"github.com/agentevents/agentevents/internal/effort"
	"github.com/stretchr/testify/require"
)

// Errors go to program logs, which redaction does not reach: no error shows content.
// These tests range over the catalog, so that a new kind is tested without a line here.

// quotable reports whether errors may show the beginning of a text at a pointer of a
// native line: it is an id or a name, and no word of a closed list.
func quotable(k Kind) func(pointer string) bool {
	return func(pointer string) bool {
		in, rest := reflect.TypeFor[Event](), pointer
		if payload, ok := strings.CutPrefix(pointer, "/payload/"); ok && kindIndex(k) >= 0 {
			in, rest = reflect.TypeOf(NewPayload(k)).Elem(), "/"+payload
		} else if strings.Count(pointer, "/") == 1 {
			return pointer != "/timestamp" && pointer != "/payload"
		} else {
			return false
		}
		class := ""
		for token := range strings.SplitSeq(rest[1:], "/") {
			if strings.HasPrefix(in.Name(), "Opt[") {
				in = in.Field(0).Type
			}
			switch in.Kind() {
			case reflect.Slice, reflect.Map:
				in = in.Elem()
			case reflect.Struct:
				f, ok := fieldNamed(in, token)
				if !ok {
					return false
				}
				in = f.Type
				if c := f.Tag.Get("class"); c != "" {
					class = c
				}
			}
		}
		return (class == "id" || class == "meta") && in.Kind() == reflect.String && !in.Implements(reflect.TypeFor[interface{ known() bool }]())
	}
}

// sampled reports whether a test looks at its n-th line: at all would take too long. The
// number is prime, so that it comes to every way to break a line.
func sampled(n int) bool {
	return n%effort.Of(31, 11, 1) == 0
}

func fieldNamed(in reflect.Type, name string) (f reflect.StructField, ok bool) {
	for f := range in.Fields() {
		if n, _, _ := strings.Cut(f.Tag.Get("json"), ","); n == name && f.IsExported() {
			return f, true
		}
	}
	return f, false
}

// told fails if an error, or one of those in it, shows content.
func told(t *testing.T, err error, quotable bool, of any) {
	t.Helper()
	if err == nil {
		return
	}
	texts := []string{err.Error()}
	var rule *RuleError
	if errors.As(err, &rule) {
		texts = append(texts, rule.Error(), rule.Detail+rule.Subject+rule.State)
	}
	for _, text := range texts {
		if why := canary.Leak(text, quotable); why != "" {
			t.Fatalf("%s\nof %.2000v", why, of)
		}
	}
}

func TestReadersQuoteNoContent(t *testing.T) {
	n := 0
	for i, line := range kindLines(t) {
		kind := kindSamples[i].Kind()
		for l := range canary.Lines(strings.TrimSpace(line), quotable(kind)) {
			if n++; !sampled(n) {
				continue
			}
			var ev Event
			err := ev.UnmarshalJSON([]byte(l.Text))
			told(t, err, l.Quotable, l.Text)
			if err == nil {
				_, err := ev.AppendJSON(nil)
				told(t, err, l.Quotable, l.Text)
			}
			// The line, one that is almost the same, and a torn one.
			log := l.Text + "\n" + strings.Replace(l.Text, `"step":`, `"step":-`, 1) + "\n" + l.Text[:len(l.Text)-1]
			for _, err := range NewReader(strings.NewReader(log), ReaderOptions{Verbatim: true}).All() {
				told(t, err, l.Quotable, l.Text)
			}
			folded, err := FoldLog(NewReader(strings.NewReader(log), ReaderOptions{}), FoldOptions{OnViolation: func(v *RuleError) { told(t, v, l.Quotable, l.Text) }})
			if err != nil {
				for _, err := range splitJoined(err) {
					told(t, err, l.Quotable, l.Text)
				}
			}
			for range folded.Drain() { // packed runs are read again
			}
		}
	}
}

// Every field of a payload that is emitted is content, or breaks a rule.
func TestEmittersQuoteNoContent(t *testing.T) {
	bad := map[reflect.Type][]any{
		reflect.TypeFor[JSON]():          {JSON(canary.Text), JSON(`{"a":"` + canary.Text), JSON(`{"a" "` + canary.Text + `"}`), JSON("\"\xff" + canary.Text + `"`)},
		reflect.TypeFor[time.Time]():     {time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)},
		reflect.TypeFor[time.Duration](): {time.Duration(-1)},
		reflect.TypeFor[float64]():       {math.NaN(), math.Inf(1), -1e300},
		reflect.TypeFor[int]():           {-1},
		reflect.TypeFor[int64]():         {int64(-1)},
	}
	emit := func(p Payload, mode Mode, of string) {
		ctx := context.Background()
		em, err := NewEmitter(EmitterOptions{Mode: mode, OnError: func(err error) { told(t, err, false, of) }, Sinks: []Sink{NewWriter(new(bytes.Buffer), WriterOptions{})}})
		require.NoError(t, err)
		run, err := em.Run("run")
		require.NoError(t, err)
		told(t, run.Agent("agent").Emit(ctx, p), false, of)
		told(t, run.Agent("agent").Emit(ctx, p), false, of)
		told(t, run.Emit(ctx, p), false, of)
		text, err := json.Marshal(p)
		told(t, err, false, of)
		if err == nil {
			require.NotEmpty(t, text)
		}
	}
	// All content is the marker, then one field at a time has all bad values.
	filled := func(k Kind) (p Payload, n int) {
		p = filledPayload(t, k)
		fields(reflect.ValueOf(p).Elem(), "", func(v reflect.Value, class string) bool {
			if n++; class == "content" && v.Kind() == reflect.String && v.Type() != reflect.TypeFor[JSON]() {
				v.SetString(canary.Text)
			}
			return true
		})
		return p, n
	}
	for info := range Kinds() {
		_, n := filled(info.Kind)
		for field := range n {
			for value := range 4 {
				p, _ := filled(info.Kind)
				i := 0
				fields(reflect.ValueOf(p).Elem(), "", func(v reflect.Value, class string) bool {
					if i++; i != field+1 {
						return true
					}
					values := bad[v.Type()]
					if v.Kind() == reflect.String && len(values) == 0 {
						values = []any{"", "\xff"}
						if _, closed := v.Interface().(interface{ known() bool }); closed || class == "content" {
							values = append(values, canary.Text, "\xff"+canary.Text)
						}
					}
					if value < len(values) {
						v.Set(reflect.ValueOf(values[value]).Convert(v.Type()))
					}
					return false
				})
				of := string(info.Kind) + ", field " + strconv.Itoa(field) + ", value " + strconv.Itoa(value)
				emit(p, ModeEnforce, of)
				emit(p, ModeObserve, of)
			}
		}
	}
}

// fields calls visit for the fields of a struct and of the structs in it, until it
// returns false.
func fields(v reflect.Value, class string, visit func(v reflect.Value, class string) bool) bool {
	switch v.Kind() {
	case reflect.Struct:
		if _, ok := v.Interface().(time.Time); ok {
			return visit(v, class)
		}
		for i := range v.NumField() {
			f := v.Type().Field(i)
			if f.IsExported() && !fields(v.Field(i), cmp.Or(f.Tag.Get("class"), class), visit) {
				return false
			}
		}
		return true
	case reflect.Slice:
		for i := range v.Len() {
			if !fields(v.Index(i), class, visit) {
				return false
			}
		}
		return true
	case reflect.Map:
		return true // their values cannot be set
	}
	return visit(v, class)
}

// A snapshot may come from anywhere.
func TestSnapshotsQuoteNoContent(t *testing.T) {
	f := NewFold(FoldOptions{})
	var events []Event
	for ev, err := range NewReader(strings.NewReader(strings.Join(kindLines(t), "")), ReaderOptions{}).All() {
		require.NoError(t, err)
		ev.Sequence = uint64(len(events))
		events = append(events, ev)
		f.Apply(ev)
	}
	text := string(f.Snapshot().AppendJSON(nil))
	n := 0
	for l := range canary.Lines(text, func(string) bool { return false }) {
		if n++; !sampled(n) {
			continue
		}
		var s RunSnapshot
		err := s.UnmarshalJSON([]byte(l.Text))
		told(t, err, l.Quotable, l.Pointer)
		if err != nil {
			continue
		}
		f, err := ResumeFold(&s, FoldOptions{OnViolation: func(v *RuleError) { told(t, v, true, l.Pointer) }})
		told(t, err, true, l.Pointer)
		if err == nil {
			for _, ev := range events {
				ev.Sequence += 1 << 20
				f.Apply(ev)
			}
		}
	}
}

func TestLongIDsInErrors(t *testing.T) {
	for _, long := range []string{strings.Repeat("x", 1<<12), strings.Repeat("\x01ü\xff", 1<<10)} {
		for info := range Kinds() {
			p := filledPayload(t, info.Kind)
			fields(reflect.ValueOf(p).Elem(), "", func(v reflect.Value, class string) bool {
				if v.Kind() == reflect.String && v.Type() != reflect.TypeFor[JSON]() {
					v.SetString(long)
				}
				return true
			})
			ev := Event{ID: long, RunID: long, Payload: p, AgentID: long, Scope: Scope{WorkflowID: long, Phase: long}, CausationID: long}
			_, err := ev.AppendJSON(nil)
			told(t, err, true, info.Kind)
			f := NewFold(FoldOptions{OnViolation: func(v *RuleError) { told(t, v, true, info.Kind) }})
			for range 3 {
				f.Apply(ev)
				ev.Sequence += 2
				ev.ID += "x"
			}
		}
	}
	told(t, (&LineError{Pointer: "/" + strings.Repeat("a/", 1<<20), Err: errors.New("x")}), true, "pointer")
	told(t, new(Event).SetExtra(strings.Repeat("x", 1<<20), "{"), true, "extra")
	told(t, &SinkError{RunID: strings.Repeat("x", 1<<20), Err: errors.New("x")}, true, "sink")
}

// The tests break rules on purpose, mostly without hooks. The program's log would hide a failure.
func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler))
	os.Exit(m.Run())
}

// logged returns the lines that a function writes to the program's log.
func logged(t *testing.T, do func()) []string {
	t.Helper()
	var text bytes.Buffer
	before := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(&text, nil)))
	defer slog.SetDefault(before)
	do()
	return strings.Split(strings.TrimSuffix(text.String(), "\n"), "\n")
}

var errBroken = errors.New("broken pipe")

func brokenSink(context.Context, Event) error { return errBroken }

func TestAnErrorThatNoHookHearsIsLoggedOnceARun(t *testing.T) {
	for name, c := range map[string]struct {
		options EmitterOptions
		want    []string // one for each line of a run
	}{
		"a refusal":           {EmitterOptions{}, []string{"agent.toolReturned"}},
		"a violation":         {EmitterOptions{Mode: ModeObserve}, []string{"agent.toolReturned"}},
		"a required sink":     {EmitterOptions{Sinks: []Sink{SinkFunc(brokenSink)}}, []string{"broken pipe", "agent.toolReturned"}},
		"a best-effort sink":  {EmitterOptions{Sinks: []Sink{BestEffort(SinkFunc(brokenSink))}}, []string{"broken pipe", "agent.toolReturned"}},
		"hooks do nothing":    {EmitterOptions{Sinks: []Sink{SinkFunc(brokenSink)}, OnError: func(error) {}, OnViolation: func(*RuleError) {}}, nil},
		"only OnError is set": {EmitterOptions{Sinks: []Sink{SinkFunc(brokenSink)}, OnError: func(error) {}}, []string{"agent.toolReturned"}},
	} {
		t.Run(name, func(t *testing.T) {
			e, err := NewEmitter(c.options)
			require.NoError(t, err)
			lines := logged(t, func() {
				for _, id := range []string{"r1", "r2"} {
					run, err := e.Run(id)
					require.NoError(t, err)
					for range 3 {
						_ = run.Agent("a").Emit(t.Context(), &AgentStarted{})
						_ = run.Agent("a").Emit(t.Context(), &ToolReturned{CallID: "nobody's", ToolID: "t", Status: ToolStatusOK})
					}
				}
			})
			if c.want == nil {
				require.Equal(t, []string{""}, lines)
				return
			}
			require.Len(t, lines, 2*len(c.want))
			for i, line := range lines {
				require.Contains(t, line, "level=WARN")
				require.Contains(t, line, c.want[i%len(c.want)])
				require.Contains(t, line, []string{`run \"r1\"`, `run \"r2\"`}[i/len(c.want)])
				require.Contains(t, line, "hint=")
			}
		})
	}
}

func TestAHandlerOfTheProgramsLogMayPanic(t *testing.T) {
	before := slog.Default()
	defer slog.SetDefault(before)
	slog.SetDefault(slog.New(panickingHandler{before.Handler()}))
	e, err := NewEmitter(EmitterOptions{})
	require.NoError(t, err)
	run, err := e.Run("r")
	require.NoError(t, err)
	var rule *RuleError
	require.ErrorAs(t, run.Emit(t.Context(), &ApprovalGranted{ApprovalID: "nobody asked"}), &rule)
}

type panickingHandler struct{ slog.Handler }

func (panickingHandler) Handle(context.Context, slog.Record) error { panic("handler") }

func TestNilAgentRunsTheTool(t *testing.T) {
	for name, a := range map[string]*Agent{"nil": nil, "zero": {}, "of a context without one": AgentFromContext(t.Context())} {
		t.Run(name, func(t *testing.T) {
			result, err := a.Do(t.Context(), &ToolCalled{ToolID: "read"}, func(ctx context.Context) (JSON, error) {
				require.NotNil(t, ctx)
				return `"text"`, errBroken
			})
			require.Equal(t, JSON(`"text"`), result)
			require.Equal(t, errBroken, err)
		})
	}
}
