package live_test

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/live"
)

// A page is one more sink. The file keeps no deltas; the page shows them.
func Example() {
	ctx := context.Background()
	var file strings.Builder
	page := live.New(live.Options{})
	emitter, err := agentevents.NewEmitter(agentevents.EmitterOptions{
		Sinks: []agentevents.Sink{
			agentevents.WithoutDeltas(agentevents.NewWriter(&file, agentevents.WriterOptions{})),
			page,
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	mux := http.NewServeMux()
	mux.Handle("/runs/{run}", page.SnapshotHandler())
	mux.Handle("/runs/{run}/events", page.EventsHandler())
	server := httptest.NewServer(mux)
	defer server.Close()

	run, err := emitter.Run("r1")
	if err != nil {
		fmt.Println(err)
		return
	}
	agent := run.Agent("coder")
	for _, p := range []agentevents.Payload{
		&agentevents.AgentStarted{},
		&agentevents.TextDelta{BlockID: "b", Delta: "Hel"},
		&agentevents.TextDelta{BlockID: "b", Delta: "lo"},
	} {
		if err := agent.Emit(ctx, p); err != nil {
			fmt.Println(err)
		}
	}
	fmt.Println("so far:", page.Snapshot("r1").Agents["coder"].Text)

	if run, ok := emitter.Lookup("r1"); ok { // as another handler does
		fmt.Println("status:", run.State().Status)
	}

	go func() { // while the page is open
		_ = agent.Emit(ctx, &agentevents.TextCompleted{BlockID: "b", Text: "Hello"})
		_ = run.Emit(ctx, &agentevents.RunCompleted{})
		_ = emitter.Close(ctx)
	}()
	stream, err := http.Get(server.URL + "/runs/r1/events?from=1")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer stream.Body.Close()
	for lines := bufio.NewScanner(stream.Body); lines.Scan(); {
		if id, ok := strings.CutPrefix(lines.Text(), "id: "); ok {
			sequence, _, _ := strings.Cut(id, "-") // an epoch follows
			fmt.Println("event", sequence)
		}
	}
	fmt.Println("lines in the file:", strings.Count(file.String(), "\n"))
	// Output:
	// so far: Hello
	// status: running
	// event 1
	// event 2
	// event 3
	// event 4
	// event 5
	// event 5
	// lines in the file: 4
}
