package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"sync"

	"github.com/agentevents/agentevents"
)

// A tool is a function over the files of a folder: JSON in, JSON out.
type tool func(files fs.FS, args json.RawMessage) (any, error)

// toolbox returns the tools that agents may use.
func toolbox() map[string]tool {
	return map[string]tool{
		"list":   list,
		"read":   read,
		"search": search,
		"count":  (&counter{}).count,
	}
}

// run calls a tool by name with arguments as JSON.
func (w *worker) run(name string, args agentevents.JSON) (agentevents.JSON, error) {
	t, ok := w.tools[name]
	if !ok {
		return "", fmt.Errorf("no tool %q", name)
	}
	out, err := t(w.files, json.RawMessage(args))
	if err != nil {
		return "", err
	}
	return agentevents.ToJSON(out)
}

type query struct {
	Path    string `json:"path,omitempty"`
	Suffix  string `json:"suffix,omitempty"`
	Exclude string `json:"exclude,omitempty"`
	Text    string `json:"text,omitempty"`
}

// list names the files that end with a suffix.
func list(files fs.FS, args json.RawMessage) (any, error) {
	var q query
	if err := json.Unmarshal(args, &q); err != nil {
		return nil, err
	}
	var names []string
	err := walk(files, q, func(name string) error {
		names = append(names, name)
		return nil
	})
	return names, err
}

// read returns the first lines of a file.
func read(files fs.FS, args json.RawMessage) (any, error) {
	var q query
	if err := json.Unmarshal(args, &q); err != nil {
		return nil, err
	}
	text, err := fs.ReadFile(files, q.Path)
	if err != nil {
		return nil, err
	}
	const limit = 400
	if len(text) > limit {
		text = text[:limit]
	}
	return map[string]any{"path": q.Path, "head": strings.ToValidUTF8(string(text), "")}, nil
}

type hit struct {
	Path string `json:"path"`
	Line int    `json:"line"`
}

// search finds the lines that contain a text.
func search(files fs.FS, args json.RawMessage) (any, error) {
	var q query
	if err := json.Unmarshal(args, &q); err != nil {
		return nil, err
	}
	hits := []hit{}
	err := walk(files, q, func(name string) error {
		text, err := fs.ReadFile(files, name)
		if err != nil {
			return err
		}
		lines := bufio.NewScanner(bytes.NewReader(text))
		lines.Buffer(nil, 1<<20)
		for n := 1; lines.Scan(); n++ {
			if strings.Contains(lines.Text(), q.Text) {
				hits = append(hits, hit{name, n})
			}
		}
		return lines.Err()
	})
	return hits, err
}

type total struct {
	Files int `json:"files"`
	Lines int `json:"lines"`
}

// A counter counts lines. Its first call fails because it is not ready, as happens with
// real tools, so the agent retries it.
type counter struct {
	mu    sync.Mutex
	ready bool
}

var errNotReady = errors.New("index not ready, try again")

func (c *counter) count(files fs.FS, args json.RawMessage) (any, error) {
	c.mu.Lock()
	ready := c.ready
	c.ready = true
	c.mu.Unlock()
	if !ready {
		return nil, errNotReady
	}
	var q query
	if err := json.Unmarshal(args, &q); err != nil {
		return nil, err
	}
	var t total
	err := walk(files, q, func(name string) error {
		text, err := fs.ReadFile(files, name)
		t.Files++
		t.Lines += bytes.Count(text, []byte("\n"))
		return err
	})
	return t, err
}

// walk visits the files that match a query, outside of hidden folders.
func walk(files fs.FS, q query, visit func(name string) error) error {
	return fs.WalkDir(files, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && name != "." && strings.HasPrefix(path.Base(name), "."):
			return fs.SkipDir
		case d.IsDir() || !strings.HasSuffix(name, q.Suffix) || q.Exclude != "" && strings.HasSuffix(name, q.Exclude):
			return nil
		}
		return visit(name)
	})
}
