package apicheck

import (
	"context"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/adapter/modelhttp"
	"github.com/agentevents/agentevents/adapter/modelhttp/cassette"
	"github.com/agentevents/agentevents/capture"
	"github.com/agentevents/agentevents/capture/claude"
	"github.com/agentevents/agentevents/dialect"
	"github.com/agentevents/agentevents/dialect/agui"
	"github.com/agentevents/agentevents/dialect/kahn"
	"github.com/agentevents/agentevents/dialect/kaos"
	"github.com/agentevents/agentevents/dialect/multiagent"
	"github.com/agentevents/agentevents/dialect/openharness"
	"github.com/agentevents/agentevents/dialect/openwop"
	"github.com/agentevents/agentevents/dialect/openwop/host"
	"github.com/agentevents/agentevents/eventtest"
	"github.com/agentevents/agentevents/findings"
	"github.com/agentevents/agentevents/hooks"
	"github.com/agentevents/agentevents/inbox"
	"github.com/agentevents/agentevents/live"
	"github.com/agentevents/agentevents/logfile"
	"github.com/agentevents/agentevents/otlpjson"
	"github.com/agentevents/agentevents/playback"
	"github.com/agentevents/agentevents/querytest"
	"github.com/agentevents/agentevents/report"
	"github.com/agentevents/agentevents/resume"
	"github.com/agentevents/agentevents/runstore"
)

// zeros are the zero values of the structs with methods, by folder. The payloads come from the
// catalog.
var zeros = map[string][]any{
	".": {
		&agentevents.Agent{}, &agentevents.AgentRef{}, &agentevents.AgentSnapshot{}, &agentevents.AgentState{}, &agentevents.AgentUsage{},
		&agentevents.ApprovalSnapshot{}, &agentevents.AttemptSnapshot{}, &agentevents.AttemptUsage{}, &agentevents.AuditSnapshot{}, &agentevents.BlackboardItem{}, &agentevents.BudgetError{}, &agentevents.DroppedAttempts{}, &agentevents.BudgetSnapshot{},
		&agentevents.BufferedSink{}, &agentevents.Call{}, &agentevents.CheckpointSnapshot{}, &agentevents.CitationSnapshot{}, &agentevents.ClaimSnapshot{},
		&agentevents.ClarificationSnapshot{}, &agentevents.Command{}, &agentevents.ConversationMessage{}, &agentevents.Emitter{}, &agentevents.ErrorInfo{},
		&agentevents.Event{}, &agentevents.FactsSnapshot{}, &agentevents.Fold{}, &agentevents.ForeignError{}, &agentevents.HandoffSnapshot{}, &agentevents.InboxItem{},
		&agentevents.InsufficiencySnapshot{}, &agentevents.IntentSnapshot{}, &agentevents.IssueSnapshot{}, &agentevents.LineError{Err: io.EOF}, &agentevents.FoldSet{},
		&agentevents.ModelCall{}, &agentevents.ModelCallSnapshot{}, &agentevents.Opt[int]{}, &agentevents.PanicError{}, &agentevents.PhaseSnapshot{},
		&agentevents.PlanSnapshot{}, &agentevents.PlanStep{}, &agentevents.Policy{}, &agentevents.Question{}, &agentevents.Reader{}, &agentevents.ReportedUsage{},
		&agentevents.RuleError{}, &agentevents.Run{}, &agentevents.RunSnapshot{}, &agentevents.RunState{}, &agentevents.RunUsage{}, &agentevents.Secrets{},
		&agentevents.SinkError{}, &agentevents.StepSnapshot{}, &agentevents.TaskSnapshot{}, &agentevents.ToolCallSnapshot{}, &agentevents.ToolCallSummary{},
		&agentevents.ToolError{}, &agentevents.ToolStats{}, &agentevents.Totals{}, &agentevents.TurnSnapshot{}, &agentevents.Usage{},
		&agentevents.WorkflowSnapshot{}, &agentevents.Writer{},
	},
	"adapter/modelhttp":          {&modelhttp.Recorder{}},
	"adapter/modelhttp/cassette": {&cassette.Cassette{}, &cassette.MissError{}},
	"capture":                    {&capture.Decoder{}, &capture.Session{}},
	"capture/claude":             {&claude.Decoder{}},
	"dialect": {
		&dialect.Auto{}, &dialect.Calls{}, &dialect.IDs{}, &dialect.Loss{}, &dialect.Losses{}, &dialect.Measure{}, &dialect.Names{}, &dialect.NativeEncoder{}, &dialect.Numbers{},
		&dialect.Unknowns{},
	},
	"dialect/agui":         {&agui.Decoder{}, &agui.Encoder{}},
	"dialect/kahn":         {&kahn.Decoder{}, &kahn.Encoder{}},
	"dialect/kaos":         {&kaos.Decoder{}, &kaos.Encoder{}},
	"dialect/multiagent":   {&multiagent.Decoder{}, &multiagent.Encoder{}},
	"dialect/openharness":  {&openharness.Decoder{}, &openharness.Encoder{}, &openharness.Snapshot{}},
	"dialect/openwop":      {&openwop.Decoder{}, &openwop.Encoder{}},
	"dialect/openwop/host": {&host.Capabilities{}, &host.Discovery{}, &host.Host{}, &host.Namespace{}},
	"eventtest":            {&eventtest.Matcher{}, &eventtest.Recorder{}, &eventtest.SinkTest{}},
	"hooks":                {&hooks.Breaker{}, &hooks.Slog{}, &hooks.Watch{}},
	"findings":             {&findings.Fold{}, &findings.Options{}, &findings.Run{}},
	"inbox":                {&inbox.Box{}, &inbox.Inbox{}},
	"live":                 {&live.GapError{}, &live.Feed{}},
	"logfile": {
		&logfile.File{}, &logfile.Follower{}, &logfile.Log{}, &logfile.LostError{}, &logfile.MissingError{}, &logfile.Reader{}, &logfile.Segment{},
		&logfile.TornError{},
	},
	"otlpjson":  {&otlpjson.Client{}, &otlpjson.Exporter{}, &otlpjson.PartialError{}, &otlpjson.StatusError{}},
	"playback":  {&playback.Player{}},
	"querytest": {new(querytest.CallID), &querytest.Difference{}, &querytest.MissingError{}, &querytest.Mock{}},
	"resume":    {&resume.Plan{}, new(resume.Value)},
	"runstore":  {&runstore.ClaimError{}, &runstore.ConflictError{}, &runstore.File{}, &runstore.Memory{}, &runstore.RunInfo{}, &runstore.Sink{}, &runstore.Worker{}},
	"report":    {&report.Details{}, &report.Item{}},
}

// A method of a zero value returns an error, does nothing or works: it does not panic.
func TestZeroValues(t *testing.T) {
	for info := range agentevents.Kinds() {
		zeros["."] = append(zeros["."], agentevents.NewPayload(info.Kind))
	}
	zeros["."] = append(zeros["."], &agentevents.Unknown{})
	for dir, values := range zeros {
		var names []string
		for _, v := range values {
			name, _, _ := strings.Cut(reflect.TypeOf(v).Elem().Name(), "[")
			names = append(names, name)
			for i := range reflect.TypeOf(v).NumMethod() {
				m := reflect.TypeOf(v).Method(i)
				if panicked := callZero(t, v, i); panicked != nil {
					t.Errorf("%s: the zero %s: %s panics: %v", dir, name, m.Name, panicked)
				}
			}
		}
		require.ElementsMatch(t, structsWithMethods(t, filepath.Join("../..", dir)), names, dir)
	}
}

// callZero calls the n-th method of a new value of v's type with arguments that are zero, and
// takes one turn of each loop that it returns.
func callZero(t *testing.T, v any, n int) (panicked any) {
	defer func() { panicked = recover() }()
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // a method that waits ends
	m := reflect.New(reflect.TypeOf(v).Elem()).Method(n)
	if _, filled := v.(*agentevents.LineError); filled {
		m = reflect.ValueOf(v).Method(n)
	}
	args := make([]reflect.Value, m.Type().NumIn())
	for i := range args {
		switch in := m.Type().In(i); {
		case in == reflect.TypeFor[testing.TB](), in == reflect.TypeFor[*testing.T]():
			return nil // it tells the test
		case in == reflect.TypeFor[agentevents.Event]():
			args[i] = reflect.ValueOf(agentevents.Event{ID: "e", RunID: "r", Payload: &agentevents.RunStarted{}})
		case in == reflect.TypeFor[*http.Request]():
			args[i] = reflect.ValueOf(httptest.NewRequest("GET", "/", nil))
		case in == reflect.TypeFor[func(*http.Request) (*http.Response, error)]():
			args[i] = reflect.ValueOf(func(*http.Request) (*http.Response, error) { return nil, io.EOF })
		case in == reflect.TypeFor[io.Writer]():
			args[i] = reflect.ValueOf(io.Discard)
		case in.Kind() == reflect.Interface && in.NumMethod() > 0 && reflect.TypeOf(ctx).Implements(in):
			args[i] = reflect.ValueOf(ctx)
		case in.Kind() == reflect.Pointer:
			args[i] = reflect.New(in.Elem())
		case in.Kind() == reflect.Func:
			args[i] = reflect.MakeFunc(in, func([]reflect.Value) (out []reflect.Value) {
				for i := range in.NumOut() {
					out = append(out, reflect.Zero(in.Out(i)))
				}
				return out
			})
		default:
			args[i] = reflect.Zero(in)
		}
	}
	var out []reflect.Value
	if m.Type().IsVariadic() {
		out = m.CallSlice(args)
	} else {
		out = m.Call(args)
	}
	for _, o := range out {
		if o.Kind() == reflect.Func && !o.IsNil() && strings.Contains(o.Type().String(), "iter.Seq") {
			stop := reflect.MakeFunc(o.Type().In(0), func([]reflect.Value) []reflect.Value { return []reflect.Value{reflect.ValueOf(false)} })
			o.Call([]reflect.Value{stop})
		}
	}
	return nil
}

// structsWithMethods returns the names of the exported structs of a package that have exported
// methods.
func structsWithMethods(t *testing.T, dir string) (names []string) {
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	require.NoError(t, err)
	structs, methods := map[string]bool{}, map[string]bool{}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		for _, decl := range f.Decls {
			switch d := decl.(type) {
			case *ast.FuncDecl:
				if d.Recv != nil && d.Name.IsExported() {
					methods[receiver(d)] = true
				}
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					if s, ok := spec.(*ast.TypeSpec); ok && s.Name.IsExported() {
						_, structs[s.Name.Name] = s.Type.(*ast.StructType)
					}
				}
			}
		}
	}
	for name, is := range structs {
		if is && methods[name] {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}
