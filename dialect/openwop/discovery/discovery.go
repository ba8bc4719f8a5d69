// Package discovery serves and fetches the discovery document of an OpenWOP
// host over HTTP. It is apart from package openwop so that reading and writing
// events does not bring in net/http.
package discovery

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/agentevents/agentevents/dialect/openwop"
)

// Handler returns a handler for [openwop.DiscoveryPath] that answers GET and
// HEAD with document, an object, in whose capabilities.agents the members stand
// that c sets. All others are left as they are; a nil document has none, and a nil
// c sets none.
//
// It fails when document is not an object, and when a client would not read from
// it what c says: the agents of document may say "supported", which stands for all
// events, or be at its root, where clients of the published schemas look first.
func Handler(c *openwop.Capabilities, document []byte) (http.Handler, error) {
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
	if c != nil {
		for name := range doc { // encoding/json reads names in any case
			if strings.EqualFold(name, "agents") {
				return nil, fmt.Errorf("discovery: the document has %q at its root", name)
			}
		}
		own, err := json.Marshal(openwop.Discovery{Agents: c})
		if err != nil {
			return nil, err
		}
		if err := merge("the document", doc, own, "capabilities", "agents", "reasoning"); err != nil {
			return nil, err
		}
	}
	text, err := json.Marshal(doc)
	if err != nil {
		return nil, err
	}
	var read openwop.Discovery
	if err := json.Unmarshal(text, &read); err != nil {
		return nil, fmt.Errorf("discovery: the document: %w", err)
	}
	if c != nil {
		if read.Agents == nil { // the document hides them under a name that is read alike
			read.Agents = &openwop.Capabilities{}
		}
		want, got := events(c), events(read.Agents)
		for i := range want {
			if got[i] != want[i] {
				return nil, fmt.Errorf("discovery: of %s the document says otherwise than the capabilities", want[i].name)
			}
		}
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.Method {
		case http.MethodGet, http.MethodHead:
		default:
			w.Header().Set("Allow", "GET, HEAD")
			http.Error(w, "only GET and HEAD", http.StatusMethodNotAllowed)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(text) // nobody is left to tell
	}), nil
}

type declared struct {
	name string
	on   bool
}

// events returns which events the capabilities declare.
func events(c *openwop.Capabilities) [5]declared {
	return [...]declared{
		{"reasoningEvents", c.ReasoningEvents}, {"reasoning.streaming", c.ReasoningEvents && c.Streaming.Or(true)},
		{"toolEvents", c.ToolEvents}, {"handoffEvents", c.HandoffEvents}, {"decisionEvents", c.DecisionEvents},
	}
}

// merge puts the members of the object text into one that is there. Of the first
// of the names, if both have it, the values are merged, and in them those of the
// next.
func merge(what string, into map[string]json.RawMessage, text []byte, names ...string) error {
	members, err := object(what, text)
	if err != nil {
		return err
	}
	for name, value := range members {
		if old, ok := into[name]; ok && len(names) > 0 && name == names[0] {
			inner, err := object(name+" of "+what, old)
			if err != nil {
				return err
			}
			if inner != nil {
				if err := merge(name+" of "+what, inner, value, names[1:]...); err != nil {
					return err
				}
				if value, err = json.Marshal(inner); err != nil {
					return err
				}
			}
		}
		into[name] = value
	}
	return nil
}

// object reads an object; null is none.
func object(what string, text []byte) (members map[string]json.RawMessage, err error) {
	if err := json.Unmarshal(text, &members); err != nil {
		return nil, fmt.Errorf("discovery: %s: %w", what, err)
	}
	return members, nil
}

// maxDocument bounds what Fetch reads.
const maxDocument = 1 << 20

// Fetch asks the host at base, such as https://host.example, what it declares:
// the pre-flight of a client that consumes agent events. A nil client is
// http.DefaultClient.
func Fetch(ctx context.Context, client *http.Client, base string) (openwop.Discovery, error) {
	var d openwop.Discovery
	if client == nil {
		client = http.DefaultClient
	}
	url := strings.TrimSuffix(base, "/") + openwop.DiscoveryPath
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
