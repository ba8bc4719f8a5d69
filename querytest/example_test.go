package querytest_test

import (
	"context"
	"fmt"
	"log"

	ae "github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/query"
	"github.com/agentevents/agentevents/querytest"
)

// Example answers a query from a fixture. A test takes MockQuery, which reads the fixtures of
// a folder and fails the test when one is not used.
func Example() {
	fixture, err := querytest.Parse([]byte(`{"calls": [{
		"input": {"prompt": "Write the report."},
		"output": {"text": "Done."},
		"events": [{"type": "agent:text", "content": "Working."}]
	}]}`))
	if err != nil {
		log.Fatal(err)
	}
	mock := querytest.NewMock(querytest.Fixtures{"writer": fixture}, querytest.MockOptions{})

	ctx := context.Background()
	em, err := ae.NewEmitter(ae.EmitterOptions{})
	if err != nil {
		log.Fatal(err)
	}
	run, err := em.Run("r1")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(mock.Unused())
	end, err := query.Do(ctx, run.Agent("writer"), mock.Query, query.Request{Prompt: ae.JSONString("Write the report.")})
	fmt.Println(end.Result, err)
	fmt.Println(mock.Unused())
	// Output:
	// [call 1 of node "writer"]
	// Done. <nil>
	// []
}
