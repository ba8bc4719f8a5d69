package modelhttp_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"

	ae "github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/adapter/modelhttp"
	"github.com/agentevents/agentevents/eventtest"
)

// A client of a model, written by hand, gets a transport. The SDKs of OpenAI and Anthropic get
// option.WithMiddleware(recorder.Middleware).
func ExampleRecorder() {
	model := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"id":"msg_1","model":"claude-sonnet-4-5","stop_reason":"end_turn","usage":{"input_tokens":9,"output_tokens":4}}`)
	}))
	defer model.Close()
	rec := new(eventtest.Recorder)
	options := rec.Options()
	options.Lifecycle = ae.LifecycleDerived
	em, err := ae.NewEmitter(options)
	if err != nil {
		fmt.Println(err)
		return
	}
	run, err := em.Run("r1")
	if err != nil {
		fmt.Println(err)
		return
	}
	agent := run.Agent("guide")
	if err := agent.Emit(context.Background(), &ae.AgentStarted{}); err != nil {
		fmt.Println(err)
	}

	recorder := new(modelhttp.Recorder) // one for the program
	client := &http.Client{Transport: recorder.Transport(nil)}

	ctx := ae.ContextWithAgent(context.Background(), agent)
	ask, err := http.NewRequestWithContext(ctx, http.MethodPost, model.URL+"/v1/messages", strings.NewReader(`{"model":"claude-sonnet","messages":[]}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	ask.Header.Set("Content-Type", "application/json")
	answer, err := client.Do(ask)
	if err != nil {
		fmt.Println(err)
		return
	}
	_, _ = io.Copy(io.Discard, answer.Body)
	answer.Body.Close()

	for _, ev := range rec.Events() {
		fmt.Println(eventtest.Describe(ev))
		if p, ok := ev.Payload.(*ae.ModelReturned); ok {
			fmt.Println(p.Model, p.FinishReasons, p.Usage.V.InputTokens, "+", p.Usage.V.OutputTokens)
		}
	}
	// Output:
	// guide agent.started
	// guide model.called id2 claude-sonnet chat
	// guide model.returned id2 claude-sonnet-4-5 msg_1
	// claude-sonnet-4-5 [end_turn] 9 + 4
}
