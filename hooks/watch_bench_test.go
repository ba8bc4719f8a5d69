package hooks_test

import (
	"context"
	"io"
	"strconv"
	"testing"

	ae "github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/hooks"
)

// BenchmarkWatch emits to a log, without a Watch and with one: a change of status, and a tool call
// with its return, whose arguments differ or equal the arguments of the call before.
func BenchmarkWatch(b *testing.B) {
	const arguments = `{"path":"internal/service/handler.go","options":{"recursive":true,"limit":250,"patterns":["*.go","*.mod"],"nested":{"a":1,"b":[1,2,3],"c":{"d":"text of some length that stands for a description"}}},"content":"func handler(w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusOK) } // and some more text so that the event is as long as those of real agents","number":`
	for _, watch := range []bool{false, true} {
		for _, kind := range []string{"status", "calls", "loop"} {
			b.Run(kind+map[bool]string{true: "/watch", false: "/alone"}[watch], func(b *testing.B) {
				o := ae.EmitterOptions{Lifecycle: ae.LifecycleDerived, Sinks: []ae.Sink{ae.NewWriter(io.Discard, ae.WriterOptions{})}}
				if watch {
					o = hooks.Breaker{Watch: hooks.NewWatch(hooks.WatchOptions{})}.Install(o)
				}
				em, err := ae.NewEmitter(o)
				if err != nil {
					b.Fatal(err)
				}
				run, _ := em.Run("r")
				a, ctx := run.Agent("a"), context.Background()
				emit := func(ctx context.Context, p ae.Payload) {
					if err := a.Emit(ctx, p); err != nil {
						b.Fatal(err)
					}
				}
				emit(ctx, &ae.AgentStarted{})
				b.ReportAllocs()
				for i := 0; b.Loop(); i++ {
					if kind == "status" {
						emit(ctx, &ae.AgentTransition{To: [...]ae.AgentStatus{ae.StatusToolCall, ae.StatusThinking}[i%2]})
						continue
					}
					n := ""
					if kind == "calls" {
						n = strconv.Itoa(i)
					}
					emit(ctx, &ae.ToolCalled{CallID: "c", ToolID: "Read", Arguments: ae.JSON(arguments + "1" + n + "}")})
					emit(ctx, &ae.ToolReturned{CallID: "c", ToolID: "Read", Status: ae.ToolStatusOK, Result: ae.JSON(`"text ` + n + `"`)})
				}
			})
		}
	}
}
