package querytest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/internal/disk"
)

// Fixtures are the questions to the nodes of a program and their answers, by node.
type Fixtures map[string]*Fixture

// A Fixture has the calls of one node.
type Fixture struct {
	Calls []Call `json:"calls"` // in the order in which they were made
}

// A Call is one question and its answer.
type Call struct {
	Input  Input              `json:"input"`  // the question
	Output Output             `json:"output"` // the result of the answer
	Events []agentevents.JSON `json:"events"` // the answer: objects; see the package
}

// An Input is a question. It has a prompt or messages.
type Input struct {
	Prompt   agentevents.JSON `json:"prompt,omitzero"`   // a string
	Messages agentevents.JSON `json:"messages,omitzero"` // a list
	// Options are the provider's options, an object, and the session: sessionId names a new one,
	// resume one that goes on.
	Options agentevents.JSON `json:"options,omitzero"`
}

// An Output is the result of an answer. Its members replace those that the agent's events lack.
type Output struct {
	Text             string                       `json:"text"`                      // the final text
	StructuredOutput agentevents.JSON             `json:"structuredOutput,omitzero"` // the result as data
	Usage            agentevents.Opt[Usage]       `json:"usage,omitzero"`            // of the agent, without sub-agents
	ModelUsage       map[string]Usage             `json:"modelUsage,omitempty"`      // by model
	TotalCostUSD     agentevents.Opt[float64]     `json:"totalCostUsd,omitzero"`     // in US dollars
	DurationMS       agentevents.Opt[float64]     `json:"durationMs,omitzero"`       // in milliseconds
	SessionID        string                       `json:"sessionId,omitempty"`       // the session at the provider, at the end
	NumTurns         agentevents.Opt[int]         `json:"numTurns,omitzero"`         // round trips to the model
	Error            agentevents.Opt[OutputError] `json:"error,omitzero"`            // present without an answer
}

// An OutputError is the reason for a missing answer. The mock fails with it after the events.
type OutputError struct {
	Message string `json:"message"` // its text
}

// Usage counts tokens as [agentevents.Usage] does. It is also read with the names of
// providers: input_tokens, costUSD. Other members are left out.
type Usage agentevents.Usage

// usageNames are the members of Usage, by how they are read.
var usageNames = map[string]string{
	"inputtokens": "inputTokens", "outputtokens": "outputTokens", "totaltokens": "totalTokens",
	"cachecreationinputtokens": "cacheCreationInputTokens", "cachereadinputtokens": "cacheReadInputTokens",
	"reasoningoutputtokens": "reasoningOutputTokens", "costusd": "costUsd",
}

// UnmarshalJSON reads an object.
func (u *Usage) UnmarshalJSON(text []byte) error {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(text, &members); err != nil {
		return err
	}
	known := map[string]json.RawMessage{}
	for name, value := range members {
		if as := usageNames[strings.ToLower(strings.ReplaceAll(name, "_", ""))]; as != "" {
			known[as] = value
		}
	}
	encoded, err := json.Marshal(known)
	if err != nil {
		return err
	}
	return (*agentevents.Usage)(u).UnmarshalJSON(encoded)
}

// MarshalJSON returns an object with the names of the resume specification.
func (u Usage) MarshalJSON() ([]byte, error) { return agentevents.Usage(u).MarshalJSON() }

// Load returns the fixtures of a folder: a file NODE.json for each node. The characters of a node's
// name that no file name has are percent-encoded. Other files, and folders, are not looked at. All
// errors are returned, each with its file. A folder without a fixture is an error, too
// ([fs.ErrNotExist]).
func Load(dir string) (Fixtures, error) {
	files, err := filepath.Glob(filepath.Join(escapeGlob(dir), "*.json"))
	if err != nil {
		return nil, fmt.Errorf("querytest: %w", err)
	}
	if len(files) == 0 {
		if _, err := os.Stat(dir); err != nil {
			return nil, fmt.Errorf("querytest: %w", err)
		}
		return nil, fmt.Errorf("querytest: %s has no fixtures (NODE.json): %w", dir, fs.ErrNotExist)
	}
	fixtures := Fixtures{}
	var errs []error
	for _, file := range files {
		node, err := url.PathUnescape(strings.TrimSuffix(filepath.Base(file), ".json"))
		if err != nil {
			errs = append(errs, fmt.Errorf("querytest: %s: %w", file, err))
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			errs = append(errs, fmt.Errorf("querytest: %w", err))
			continue
		}
		f, err := Parse(text)
		if err != nil {
			errs = append(errs, fmt.Errorf("%w (%s)", err, file))
			continue
		}
		fixtures[node] = f
	}
	return fixtures, errors.Join(errs...)
}

// escapeGlob returns a pattern that matches only dir.
func escapeGlob(dir string) string {
	return strings.NewReplacer("[", "[[]", "*", "[*]", "?", "[?]").Replace(dir)
}

// Parse reads a fixture. Unknown members are left out. The events of a call must be readable: an
// error names the one that is not.
func Parse(text []byte) (*Fixture, error) {
	var f struct {
		Calls *[]Call `json:"calls"`
	}
	if err := json.Unmarshal(bytes.TrimPrefix(text, []byte("\ufeff")), &f); err != nil {
		var typ *json.UnmarshalTypeError
		switch {
		case !errors.As(err, &typ):
			return nil, fmt.Errorf("querytest: not a fixture: %w", err)
		case typ.Field == "":
			return nil, fmt.Errorf("querytest: not a fixture: found %s, want an object with calls", typ.Value)
		}
		return nil, fmt.Errorf("querytest: not a fixture: %s: found %s", typ.Field, typ.Value)
	}
	if f.Calls == nil {
		return nil, errors.New(`querytest: not a fixture: it has no "calls"`)
	}
	for i := range *f.Calls {
		if _, err := (*f.Calls)[i].answer("", i); err != nil {
			return nil, fmt.Errorf("querytest: call %d: %w", i+1, err)
		}
	}
	return &Fixture{Calls: *f.Calls}, nil
}

// Nodes returns the names of the nodes, in order.
func (f Fixtures) Nodes() []string {
	nodes := make([]string, 0, len(f))
	for node := range f {
		nodes = append(nodes, node)
	}
	slices.Sort(nodes)
	return nodes
}

// Save writes the fixture of a node to a folder, which it makes if there is none. A file
// that is there is replaced at once. Only its owner may read it (0600).
func Save(dir, node string, f *Fixture) error {
	if node == "" {
		return errors.New("querytest: a fixture needs a node")
	}
	if f == nil {
		return errors.New("querytest: the fixture is nil")
	}
	if f.Calls == nil {
		f = &Fixture{Calls: []Call{}} // Parse wants the list
	}
	var text bytes.Buffer
	enc := json.NewEncoder(&text)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(f); err != nil {
		return fmt.Errorf("querytest: %w", err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("querytest: %w", err)
	}
	if err := disk.Replace(filepath.Join(dir, url.PathEscape(node)+".json"), text.Bytes()); err != nil {
		return fmt.Errorf("querytest: %w", err)
	}
	return nil
}
