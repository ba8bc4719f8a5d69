// Package discovery serves and fetches the discovery document of an OpenWOP host
// over HTTP. It is a package of its own so that programs that only read and write
// events do not link net/http.
package discovery

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect/openwop/host"
)

// Handler returns a handler for [host.DiscoveryPath]. It answers GET and HEAD with document, a JSON
// object, after setting the members of c in its capabilities.agents. All other members stay as they
// are. A nil document is an empty one, and a nil c sets nothing.
//
// It fails if document is not an object, or if a client would read capabilities other than c from
// it. The agents of document may be "supported", which stands for all events. They may stand at its
// root, the first place that clients of the published schemas read.
func Handler(c *host.Capabilities, document []byte) (http.Handler, error) {
	if document == nil {
		document = []byte("{}")
	}
	doc, err := object("the document", document)
	if err != nil {
		return nil, err
	}
	if doc == nil {
		return nil, errors.New("discovery: the document is null")
	}
	own := []byte("{}")
	if c != nil {
		for name := range doc { // encoding/json matches names in any case
			if strings.EqualFold(name, "agents") {
				return nil, fmt.Errorf("discovery: the document has %q at its root", name)
			}
		}
		if own, err = json.Marshal(host.Discovery{Agents: c}); err != nil {
			return nil, err
		}
	}
	text, err := merged("the document", document, own)
	if err != nil {
		return nil, err
	}
	var read host.Discovery
	if err := json.Unmarshal(text, &read); err != nil {
		return nil, fmt.Errorf("discovery: the document: %w", err)
	}
	for _, e := range declared {
		if c != nil && c.Allows(e.event) != read.Agents.Allows(e.event) {
			return nil, fmt.Errorf("discovery: the document contradicts the capabilities about %s", e.name)
		}
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			w.Header().Set("Allow", "GET, HEAD")
			http.Error(w, "only GET and HEAD", http.StatusMethodNotAllowed)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(text) // there is nobody to report an error to
	}), nil
}

// declared are the events that capabilities declare.
var declared = [...]struct {
	name  string
	event agentevents.Payload
}{
	{"reasoningEvents", &agentevents.AgentReasoned{}}, {"reasoning.streaming", &agentevents.AgentReasoningDelta{}}, {"toolEvents", &agentevents.ToolCalled{}},
	{"handoffEvents", &agentevents.AgentHandoff{}}, {"decisionEvents", &agentevents.AgentDecided{}},
}

// merged returns the object old with the members of text, also an object. Objects
// that both have are merged too.
func merged(what string, old, text []byte) ([]byte, error) {
	into, err := object(what, old)
	if err != nil || into == nil {
		return text, err
	}
	members, err := object(what, text)
	if err != nil {
		return nil, err
	}
	for name, value := range members {
		if was, ok := into[name]; ok && value[0] == '{' {
			if value, err = merged(name+" of "+what, was, value); err != nil {
				return nil, err
			}
		}
		into[name] = value
	}
	return json.Marshal(into)
}

// object reads an object. For null it returns nil.
func object(what string, text []byte) (members map[string]json.RawMessage, err error) {
	if err := json.Unmarshal(text, &members); err != nil {
		return nil, fmt.Errorf("discovery: %s: %w", what, err)
	}
	return members, nil
}

// maxDocument is the number of bytes that Fetch reads at most.
const maxDocument = 1 << 20

// Fetch reads the capabilities of the host at base, such as https://host.example.
// It is the first request of a client that consumes agent events. A nil client
// means http.DefaultClient.
func Fetch(ctx context.Context, client *http.Client, base string) (host.Discovery, error) {
	var d host.Discovery
	if client == nil {
		client = http.DefaultClient
	}
	url := strings.TrimSuffix(base, "/") + host.DiscoveryPath
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return d, err
	}
	req.Header.Set("Accept", "application/json")
	resp, err := client.Do(req)
	if err != nil {
		return d, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return d, fmt.Errorf("discovery: %s answered %s", url, resp.Status)
	}
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxDocument+1))
	if err != nil {
		return d, err
	}
	if len(text) > maxDocument {
		return d, fmt.Errorf("discovery: %s answered more than %d bytes", url, maxDocument)
	}
	if err := json.Unmarshal(text, &d); err != nil {
		return d, fmt.Errorf("discovery: %s: %w", url, err)
	}
	return d, nil
}
