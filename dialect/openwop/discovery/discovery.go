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
// HEAD with the document, in which capabilities.agents is what c says. document
// is the rest of it, an object; nil means that there is none. It fails when
// document is not an object, and when it has agents at its root, where clients
// of the published schemas look first: they would hide what c says.
func Handler(c *openwop.Capabilities, document []byte) (http.Handler, error) {
	members := map[string]json.RawMessage{}
	if document != nil {
		if err := json.Unmarshal(document, &members); err != nil {
			return nil, fmt.Errorf("discovery: the document: %w", err)
		}
		if members == nil {
			return nil, errors.New("discovery: the document is null")
		}
		for name := range members { // encoding/json reads names in any case
			if strings.EqualFold(name, "agents") {
				return nil, fmt.Errorf("discovery: the document has %q at its root", name)
			}
		}
	}
	own, err := json.Marshal(openwop.Discovery{Agents: c})
	if err != nil {
		return nil, err
	}
	// The agents go into the capabilities that are there.
	var doc, rest struct {
		Capabilities map[string]json.RawMessage `json:"capabilities"`
	}
	if err := json.Unmarshal(own, &doc); err != nil {
		return nil, err
	}
	if raw, ok := members["capabilities"]; ok {
		if err := json.Unmarshal(raw, &rest.Capabilities); err != nil {
			return nil, fmt.Errorf("discovery: capabilities of the document: %w", err)
		}
		for name, value := range rest.Capabilities {
			if name != "agents" {
				doc.Capabilities[name] = value
			}
		}
	}
	if members["capabilities"], err = json.Marshal(doc.Capabilities); err != nil {
		return nil, err
	}
	text, err := json.Marshal(members)
	if err != nil {
		return nil, err
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
