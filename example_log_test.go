package agentevents_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/eventtest"
	"github.com/agentevents/agentevents/findings"
	"github.com/agentevents/agentevents/hooks"
)

// A program writes the log of one run.
func Example() {
	ctx := context.Background()
	o := new(eventtest.Recorder).Options() // so that the output is the same every time
	o.Lifecycle = agentevents.LifecycleDerived
	o.Sinks = append(o.Sinks, agentevents.NewWriter(os.Stdout, agentevents.WriterOptions{}))
	emitter, err := agentevents.NewEmitter(o)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer emitter.Close(ctx)

	run, _ := emitter.Run("run-1")
	agent := run.Agent("writer")
	agent.Emit(ctx, &agentevents.AgentStarted{Task: "greet"})
	agent.Emit(ctx, &agentevents.TextCompleted{Text: "Hello <world>"})
	agent.Emit(ctx, &agentevents.AgentEnded{Outcome: agentevents.OutcomeConverged})
	run.Emit(ctx, &agentevents.RunCompleted{})
	// Output:
	// {"id":"id1","sequence":0,"timestamp":"2026-05-05T09:00:00.000Z","type":"agent.started","runId":"run-1","agentId":"writer","schemaVersion":"1.0","payload":{"task":"greet","lifecycle":"derived"}}
	// {"id":"id2","sequence":1,"timestamp":"2026-05-05T09:00:01.000Z","type":"agent.transition","runId":"run-1","agentId":"writer","step":0,"schemaVersion":"1.0","marks":["synthetic"],"payload":{"from":"thinking","to":"response"}}
	// {"id":"id3","sequence":2,"timestamp":"2026-05-05T09:00:01.000Z","type":"agent.text","runId":"run-1","agentId":"writer","step":0,"schemaVersion":"1.0","payload":{"text":"Hello <world>"}}
	// {"id":"id4","sequence":3,"timestamp":"2026-05-05T09:00:03.000Z","type":"agent.transition","runId":"run-1","agentId":"writer","step":0,"schemaVersion":"1.0","marks":["synthetic"],"payload":{"from":"response","to":"converged"}}
	// {"id":"id5","sequence":4,"timestamp":"2026-05-05T09:00:03.000Z","type":"agent.ended","runId":"run-1","agentId":"writer","schemaVersion":"1.0","payload":{"outcome":"converged","totals":{"steps":1,"toolCalls":0,"auditCheckpoints":0,"auditsPassed":0,"auditsFailed":0}}}
	// {"id":"id6","sequence":5,"timestamp":"2026-05-05T09:00:05.000Z","type":"run.completed","runId":"run-1","schemaVersion":"1.0","payload":{}}
}

// A custom sink prints a line for people.
type console struct{}

func (console) WriteEvent(_ context.Context, ev agentevents.Event) error {
	var words []any
	switch p := ev.Payload.(type) {
	case *agentevents.ToolCalled:
		words = []any{ev.AgentID, "calls", p.ToolID, p.Arguments, p.RetryOf}
	case *agentevents.ToolReturned:
		words = []any{p.ToolID + ":", p.Status, p.Result, p.Error.V.Message}
	case *agentevents.AgentTransition:
		words = []any{ev.AgentID + ":", p.From, "→", p.To}
	default:
		words = []any{cmp.Or(ev.AgentID, ev.RunID) + ":", ev.Kind()}
	}
	fmt.Println(strings.Join(strings.Fields(fmt.Sprintln(words...)), " "))
	return nil
}

// Do records a tool call and its return. The agent's status follows.
func ExampleAgent_Do() {
	ctx := context.Background()
	emitter, _ := agentevents.NewEmitter(agentevents.EmitterOptions{
		Sinks: []agentevents.Sink{console{}},
	})
	run, _ := emitter.Run("")
	agent := run.Agent("adder")
	agent.Emit(ctx, &agentevents.AgentStarted{})

	sum, err := agent.Do(ctx, &agentevents.ToolCalled{ToolID: "add", Arguments: `[1,2]`}, func(context.Context) (agentevents.JSON, error) {
		return "3", nil
	})
	fmt.Println("->", sum, err)
	_, err = agent.Do(ctx, &agentevents.ToolCalled{ToolID: "divide", Arguments: `[1,0]`}, func(context.Context) (agentevents.JSON, error) {
		return "", errors.New("division by zero")
	})
	fmt.Println("->", err)
	// Output:
	// adder: agent.started
	// adder: thinking → tool_call
	// adder calls add [1,2]
	// adder: tool_call → tool_result
	// add: ok 3
	// -> 3 <nil>
	// adder: tool_result → tool_call
	// adder calls divide [1,0]
	// adder: tool_call → tool_result
	// divide: error division by zero
	// -> division by zero
}

// A log of two runs becomes two snapshots.
func ExampleFoldLog() {
	log := strings.NewReader(`
{"id":"1","sequence":0,"timestamp":"2026-05-05T09:00:00.000Z","type":"agent.started","runId":"a","agentId":"x","payload":{"task":"search"}}
{"id":"2","sequence":0,"timestamp":"2026-05-05T09:00:01.000Z","type":"run.started","runId":"b","payload":{}}
{"id":"3","sequence":1,"timestamp":"2026-05-05T09:00:02.000Z","type":"agent.toolCalled","runId":"a","agentId":"x","step":0,"payload":{"callId":"c1","toolId":"web"}}
{"id":"4","sequence":1,"timestamp":"2026-05-05T09:00:03.000Z","type":"run.completed","runId":"b","payload":{}}
`)
	runs, err := agentevents.FoldLog(agentevents.NewReader(log, agentevents.ReaderOptions{}), agentevents.FoldOptions{})
	if err != nil {
		fmt.Println(err)
	}
	for run := range runs.Drain() {
		fmt.Printf("run %s: %s, %d open calls, next sequence %d\n", run.RunID, run.Status, len(run.OpenCalls), run.NextSequence)
	}
	// Output:
	// run a: running, 1 open calls, next sequence 2
	// run b: completed, 0 open calls, next sequence 2
}

// A bad line is an error with its position; the others are read.
func ExampleReader_All() {
	log := `{"id":"1","sequence":0,"timestamp":"2026-05-05T09:00:00.000Z","type":"agent.text","runId":"r","payload":{"text":"one"}}
{"id":"2","sequence":1,"timestamp":"2026-05-05T09:00:01.000Z","type":"agent.text","runId":"r","payload":{"text":2}}
{"id":"3","sequence":2,"timestamp":"2026-05-05T09:00:02.000Z","type":"agent.text","runId":"r","payload":{"text":"three"}}
{"id":"4","sequence":3,"timesta`
	reader := agentevents.NewReader(strings.NewReader(log), agentevents.ReaderOptions{})
	for ev, err := range reader.All() {
		if err != nil {
			fmt.Println(err)
			continue
		}
		fmt.Printf("line %d: %s\n", reader.Line(), ev.Payload.(*agentevents.TextCompleted).Text)
	}
	// Output:
	// line 1: one
	// line 2 (byte 232): /payload/text: found a number, expected a string
	// line 3: three
	// line 4 (byte 389): the last line is torn (cut the file at byte 358): unexpected EOF: found end of text, expected the end of a string
}

// Credentials and registered secrets are gone before any sink sees them.
func ExamplePolicy() {
	ctx := context.Background()
	secrets := new(agentevents.Secrets)
	secrets.Add("tiger-7421")
	emitter, _ := agentevents.NewEmitter(agentevents.EmitterOptions{
		Redaction: &agentevents.Policy{Secrets: secrets},
		Sinks:     []agentevents.Sink{console{}},
	})
	run, _ := emitter.Run("")
	shop := run.Agent("shop")
	shop.Emit(ctx, &agentevents.AgentStarted{})
	call, _ := shop.Call(ctx, &agentevents.ToolCalled{ToolID: "login", Arguments: `{"user":"ann","password":"x","note":"code tiger-7421"}`})
	call.Return(ctx, `{"headers":{"Set-Cookie":"id=1"},"max_tokens":10}`)
	// Output:
	// shop: agent.started
	// shop: thinking → tool_call
	// shop calls login {"user":"ann","password":"[REDACTED:key]","note":"code [REDACTED:secret]"}
	// shop: tool_call → tool_result
	// login: ok {"headers":{"Set-Cookie":"[REDACTED:key]"},"max_tokens":10}
}

// counter is a custom sink. Flush is optional: the emitter finds it.
type counter map[agentevents.Kind]int

func (c counter) WriteEvent(_ context.Context, ev agentevents.Event) error {
	c[ev.Kind()]++
	return nil
}

func (c counter) Flush(context.Context) error {
	fmt.Println(c[agentevents.KindTextDelta], "deltas")
	return nil
}

// A sink needs one method.
func ExampleSink() {
	ctx := context.Background()
	emitter, _ := agentevents.NewEmitter(agentevents.EmitterOptions{
		Sinks: []agentevents.Sink{agentevents.Buffered(counter{}, 100, agentevents.OverflowBlock)},
	})
	run, _ := emitter.Run("")
	poet := run.Agent("poet")
	poet.Emit(ctx, &agentevents.AgentStarted{})
	for _, word := range []string{"to", "be", "or"} {
		poet.Emit(ctx, &agentevents.TextDelta{Delta: word})
	}
	if err := emitter.Flush(ctx); err != nil {
		fmt.Println(err)
	}
	// Output:
	// 3 deltas
}

// An illegal event is refused with an error that names the broken rule and the legal alternatives.
// Here it is a move that KAHN's diagram does not have.
func ExampleRuleError() {
	ctx := context.Background()
	emitter, _ := agentevents.NewEmitter(agentevents.EmitterOptions{Lifecycle: agentevents.LifecycleStrict})
	run, _ := emitter.Run("run-1")
	writer := run.Agent("writer")
	writer.Emit(ctx, &agentevents.AgentStarted{})
	err := writer.To(ctx, agentevents.StatusToolCall, agentevents.StatusConverged)

	var broken *agentevents.RuleError
	if errors.As(err, &broken) {
		fmt.Println(broken.Rule)
		fmt.Println(broken.Detail)
		fmt.Println(broken.Subject, "is", broken.State)
	}
	// Output:
	// transition-legal
	// tool_call → converged is not in the strict table; legal: tool_result; lifecycles that allow it: derived
	// agent "writer" is tool_call
}

// A cardRedactor masks texts that a Policy does not find by itself: numbers like card numbers with
// a wrong check digit.
type cardRedactor struct{ number *regexp.Regexp }

func (r cardRedactor) Redact(_ agentevents.Place, text string) (string, error) {
	return r.number.ReplaceAllString(text, "[REDACTED:card]"), nil
}

// printer shows the events that a sink gets.
type printer struct{}

func (printer) WriteEvent(_ context.Context, ev agentevents.Event) error {
	marks := ev.Marks
	switch p := ev.Payload.(type) {
	case *agentevents.ToolCalled:
		fmt.Printf("[%s] %s\n", marks, p.Arguments)
	case *agentevents.TextCompleted:
		fmt.Printf("[%s] %s\n", marks, p.Text)
	case *agentevents.AgentReasoned:
		fmt.Printf("[%s] %s %q\n", marks, p.Verbosity, p.Reasoning)
	}
	return nil
}

// A program registers a secret as soon as it knows it, also while events are
// recorded. Events recorded before keep it.
func ExampleSecrets() {
	ctx := context.Background()
	secrets := new(agentevents.Secrets)
	emitter, err := agentevents.NewEmitter(agentevents.EmitterOptions{
		Redaction: &agentevents.Policy{Secrets: secrets},
		Sinks:     []agentevents.Sink{printer{}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	run, err := emitter.Run("")
	if err != nil {
		fmt.Println(err)
		return
	}
	emit := func(p agentevents.Payload) {
		if err := run.Agent("shop").Emit(ctx, p); err != nil {
			fmt.Println(err)
		}
	}

	emit(&agentevents.AgentStarted{})
	emit(&agentevents.TextCompleted{Text: "the code is tiger-7421"})
	if err := secrets.Add("tiger-7421"); err != nil {
		fmt.Println(err)
	}
	emit(&agentevents.TextCompleted{Text: "the code is tiger-7421"})
	fmt.Println(secrets.Add("cat"))
	// Output:
	// [] the code is tiger-7421
	// [redacted] the code is [REDACTED:secret]
	// agentevents: a secret must have at least 4 bytes
}

// A Policy masks members of more names, keeps members of others, leaves out
// reasoning and asks a Redactor about every text.
func ExamplePolicy_redactor() {
	ctx := context.Background()
	emitter, err := agentevents.NewEmitter(agentevents.EmitterOptions{
		Redaction: &agentevents.Policy{
			Keys:      []string{"pin"},
			KeepKeys:  []string{"sessiontoken"},
			Reasoning: agentevents.VerbosityOff,
			Redactor:  cardRedactor{regexp.MustCompile(`\d{4}-\d{4}-\d{4}-\d{4}`)},
		},
		Sinks: []agentevents.Sink{printer{}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	run, err := emitter.Run("")
	if err != nil {
		fmt.Println(err)
		return
	}
	shop := run.Agent("shop")
	for _, p := range []agentevents.Payload{
		&agentevents.AgentStarted{},
		&agentevents.ToolCalled{CallID: "c1", ToolID: "pay", Arguments: `{"card":{"PIN":"1234"},"password":"x","session_token":"open"}`},
		&agentevents.TextCompleted{Text: "Paid with 4000-1234-5678-9010."},
		&agentevents.AgentReasoned{Reasoning: "The customer is in a hurry."},
	} {
		if err := shop.Emit(ctx, p); err != nil {
			fmt.Println(err)
		}
	}
	// Output:
	// [redacted] {"card":{"PIN":"[REDACTED:key]"},"password":"[REDACTED:key]","session_token":"open"}
	// [redacted] Paid with [REDACTED:card].
	// [redacted] off ""
}

// An agent that goes round in circles is told so.
func Example_findings() {
	ctx := context.Background()
	stop := func(context.Context, string, agentevents.BudgetExceeded) error { return nil }
	options := agentevents.EmitterOptions{OnViolation: func(*agentevents.RuleError) {}}
	// README:
	watch := hooks.NewWatch(hooks.WatchOptions{Act: map[findings.Kind]hooks.Action{
		findings.Repeat: hooks.Refuse, // the next call of the loop, with an error for the model
		findings.Retry:  hooks.Ask,    // a person, by an approval
		findings.Waste:  hooks.Stop,   // the run, as a budget does
	}})
	em, err := agentevents.NewEmitter(hooks.Breaker{Watch: watch, Stop: stop}.Install(options))
	// end
	if err != nil {
		fmt.Println(err)
		return
	}
	run, err := em.Run("r1")
	if err != nil {
		fmt.Println(err)
		return
	}
	coder := run.Agent("coder")
	if err := coder.Emit(ctx, &agentevents.AgentStarted{}); err != nil {
		fmt.Println(err)
	}
	for n := range 4 {
		_, err := coder.Do(ctx, &agentevents.ToolCalled{ToolID: "Read", Arguments: `{"path":"go.mod"}`}, func(context.Context) (agentevents.JSON, error) {
			return `"module m"`, nil
		})
		var refused *agentevents.RuleError
		if errors.As(err, &refused) {
			fmt.Printf("%d: %s: %s\n", n+1, refused.Rule, refused.Detail)
		}
	}

	// Output:
	// 4: finding-repeat: coder made the same call of Read (go.mod) 3 times in a row and got the same result; do something else
}
