package discovery_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect/openwop/discovery"
	"github.com/agentevents/agentevents/dialect/openwop/host"
)

// A host serves its capabilities, and a client asks for them before it waits for
// events.
func Example() {
	handler, err := discovery.Handler(&host.Capabilities{ToolEvents: true}, []byte(`{"protocolVersion":"1"}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	mux := http.NewServeMux()
	mux.Handle(host.DiscoveryPath, handler)
	host := httptest.NewServer(mux)
	defer host.Close()

	d, err := discovery.Fetch(context.Background(), nil, host.URL)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("calls:", d.Agents.Allows(&agentevents.ToolCalled{}))
	fmt.Println("decisions:", d.Agents.Allows(&agentevents.AgentDecided{}))
	// Output:
	// calls: true
	// decisions: false
}
