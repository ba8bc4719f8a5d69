package view

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"errors"
	"fmt"
	"html"
	"io"
	"iter"
	"strings"

	"github.com/agentevents/agentevents"
)

// A Log is a log for a page.
type Log struct {
	Name string // for people, such as the name of its file
	// Events yields the events. An error that it yields is counted, and the page tells the number: the
	// lines that cannot be read. The events may share memory with the reader.
	Events iter.Seq2[agentevents.Event, error]
}

// Options are the options of a page. The zero Options are usable.
type Options struct {
	Title string // of the document; empty means the name of the log
	// Policy redacts the events. The zero Policy is the default one.
	Policy agentevents.Policy
	// Unredacted leaves the events as they are recorded. The page has a mark that tells it.
	Unredacted bool
	// Lifecycle is the table of legal status changes; empty means the one that the log names.
	Lifecycle agentevents.Lifecycle
	// Run is the id of the only run that the page has; empty means all runs.
	Run string
}

// ErrNoRun is the error of [Write] for logs without an event of [Options.Run].
var ErrNoRun = errors.New("agentevents/view: the run has no event")

// Write writes the page of one log, or of two that are compared. It keeps the lines of all events
// in memory, and some 200 bytes more for each. Logs without an event give a page that tells so.
func Write(w io.Writer, o Options, logs ...Log) error {
	if len(logs) == 0 || len(logs) > 2 {
		return fmt.Errorf("agentevents/view: Write takes one log or two, not %d", len(logs))
	}
	d := newData(o)
	for i := range logs {
		if err := d.add(i, &logs[i]); err != nil {
			return err
		}
	}
	if d.events == 0 && o.Run != "" {
		return ErrNoRun
	}
	var packed bytes.Buffer
	if err := pack(&packed, d.write); err != nil {
		return err
	}
	return page(w, d.title(logs), packed.Bytes(), "")
}

// pack compresses the lines that write writes.
func pack(w io.Writer, write func(io.Writer) error) error {
	z, err := gzip.NewWriterLevel(w, gzip.BestCompression)
	if err != nil {
		return err
	}
	if err := write(z); err != nil {
		return err
	}
	return z.Close()
}

//go:embed assets
var assets embed.FS

// scripts are the parts of the page's script, in their order. They share one scope.
var scripts = []string{"base.js", "log.js", "list.js", "timeline.js", "panes.js", "diff.js", "live.js", "app.js"}

// page writes the document around the packed data. more are the requests that its policy allows.
func page(w io.Writer, title string, packed []byte, more string) error {
	style, err := assets.ReadFile("assets/app.css")
	if err != nil {
		return err
	}
	var script strings.Builder
	script.WriteString("\"use strict\";\n")
	for _, name := range scripts {
		text, err := assets.ReadFile("assets/" + name)
		if err != nil {
			return err
		}
		script.Write(text)
	}
	shell, err := assets.ReadFile("assets/page.html")
	if err != nil {
		return err
	}
	text := strings.NewReplacer(
		"{{title}}", html.EscapeString(title),
		"{{policy}}", "default-src 'none'; "+more+"script-src "+digest(script.String())+
			"; style-src "+digest(string(style))+"; base-uri 'none'; form-action 'none'",
		"{{style}}", string(style),
		"{{script}}", script.String(),
	).Replace(string(shell))
	before, after, _ := strings.Cut(text, "{{data}}")
	if _, err := io.WriteString(w, before); err != nil {
		return err
	}
	data := base64.NewEncoder(base64.StdEncoding, w)
	if _, err := data.Write(packed); err != nil {
		return err
	}
	if err := data.Close(); err != nil {
		return err
	}
	_, err = io.WriteString(w, after)
	return err
}

// digest returns the source of a Content-Security-Policy for a text inside the page.
func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}
