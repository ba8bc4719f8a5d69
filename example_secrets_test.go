package agentevents_test

import (
	"context"
	"fmt"
	"regexp"

	"github.com/agentevents/agentevents"
)

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
