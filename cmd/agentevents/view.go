package main

import (
	"bytes"
	"cmp"
	"crypto/rand"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	osexec "os/exec"
	"runtime"
	"strings"
	"time"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/internal/disk"
	"github.com/agentevents/agentevents/view"
)

func viewCommand() command {
	return command{
		name:    "view",
		args:    "[flags] FILE...",
		purpose: "open a page of a log, or of two logs side by side, in a browser",
		about: `
The page has the runs, their agents, a timeline, the transcript, the events with their
lines, the state after each event, the use of time and tokens, and the problems of the run.
Press ? on the page for the list of its keys.

View serves the page on this machine until an interrupt (Ctrl-C), at an address with a
random part, and opens it in a browser. If no browser opens, go to the printed address.
With --out view writes the page to a file instead. The file works offline and makes no
requests.

Secrets are masked as an emitter masks them by default, and the page notes that. Ids, names
and secrets without a known form, such as a project name, stay: read the page before you
give it away.`,
		examples: []string{
			"agentevents view --out run.html logs/*.jsonl",
			"agentevents view --diff last-week.jsonl today.jsonl",
		},
		flags: func(fs *flag.FlagSet) action {
			var l logReader
			var o view.Options
			l.flags(fs)
			l.judged = true
			out := fs.String("out", "", "write the page to `FILE`, - for standard output, and open nothing")
			both := fs.Bool("diff", false, "compare two FILEs: both are on the page")
			listen := fs.String("listen", "", "serve on the `ADDRESS`, which must be of this machine; default: 127.0.0.1:0")
			quiet := fs.Bool("no-open", false, "print the address, and open no browser")
			fs.StringVar(&o.Title, "title", "", "`TEXT` above the page; default: the names of the FILEs")
			fs.StringVar(&o.Run, "run", "", "only the run `ID`")
			fs.BoolVar(&o.Unredacted, "unredacted", false, "do not mask secrets; the page notes that")
			return func(in *invocation) error {
				if *out != "" && (*quiet || *listen != "") {
					return usageError("--out writes a file and serves nothing: leave out --listen and --no-open")
				}
				address := cmp.Or(*listen, "127.0.0.1:0")
				if err := onThisMachine(address); err != nil {
					return err
				}
				groups := [][]string{in.args}
				if *both {
					if len(in.args) != 2 {
						return usageError("--diff needs two FILEs")
					}
					groups = [][]string{in.args[:1], in.args[1:]}
				}
				var logs []view.Log
				events := 0
				readers := make([]logReader, len(groups))
				for i, files := range groups {
					one, reader := *in, &readers[i]
					*reader, one.args = l, files
					log, err := reader.pageLog(&one, &events)
					if err != nil {
						return err
					}
					logs = append(logs, log)
				}
				var page bytes.Buffer
				switch err := view.Write(&page, o, logs...); {
				case errors.Is(err, view.ErrNoRun):
					return cmp.Or(results(readers), noRun(o.Run))
				case err != nil:
					return err
				case events == 0 && results(readers) != nil: // no log
					return results(readers)
				}
				if *out != "" {
					if err := writePage(in, *out, page.Bytes()); err != nil {
						return err
					}
					return results(readers)
				}
				if err := servePage(in, address, page.Bytes(), !*quiet); err != nil {
					return err
				}
				return results(readers)
			}
		},
	}
}

// pageLog returns the files as one log of the page, which adds its events to the count.
func (l *logReader) pageLog(in *invocation, events *int) (view.Log, error) {
	all, err := l.events(in)
	if err != nil {
		return view.Log{}, err
	}
	name := in.args[0]
	if n := len(in.args); n > 1 {
		name = fmt.Sprintf("%s and %s", name, plural(n-1, "more file"))
	}
	if name == "-" {
		name = "stdin"
	}
	return view.Log{Name: name, Events: func(yield func(agentevents.Event, error) bool) {
		for _, ev := range all {
			*events++
			if !yield(ev, nil) {
				return
			}
		}
		for range l.bad {
			if !yield(agentevents.Event{}, errProblems) {
				return
			}
		}
	}}, nil
}

// results returns the first error of readers.
func results(readers []logReader) error {
	var all error
	for i := range readers {
		all = cmp.Or(all, readers[i].result())
	}
	return all
}

// writePage writes the page to a file that only its owner may read: it has the inputs of agents.
func writePage(in *invocation, name string, page []byte) error {
	if name == "-" {
		_, err := in.stdout.Write(page)
		return err
	}
	if err := disk.Replace(name, page); err != nil {
		return err
	}
	fmt.Fprintf(in.stderr, "agentevents view: wrote %s, %d kB\n", visible(name), (len(page)+1023)/1024)
	return nil
}

// onThisMachine returns an error for an address that other machines reach.
func onThisMachine(address string) error {
	host, _, err := net.SplitHostPort(address)
	if ip := net.ParseIP(host); err != nil || host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return usageError("--listen wants an address of this machine, such as 127.0.0.1:8080; to share a page, write it with --out")
	}
	return nil
}

// servePage serves the page until an interrupt.
func servePage(in *invocation, address string, page []byte, open bool) error {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	path := "/" + strings.ToLower(rand.Text()) + "/"
	server := &http.Server{Handler: pageHandler(l.Addr().String(), path, page), ReadHeaderTimeout: 10 * time.Second}
	url := "http://" + l.Addr().String() + path
	fmt.Fprintf(in.stderr, "agentevents view: %s\nInterrupt ends it (Ctrl-C).\n", url)
	if open && !openBrowser(url) {
		fmt.Fprintln(in.stderr, "No browser opened: open the address yourself.")
	}
	ctx, stop := in.interrupted()
	defer stop()
	done := make(chan error, 1)
	go func() { done <- server.Serve(l) }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return server.Close()
	}
}

// pageHandler serves the page at one path, to requests that name this host: a page elsewhere that
// has a name of its own resolved to this machine gets nothing.
func pageHandler(host, path string, page []byte) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, port, _ := net.SplitHostPort(host)
		origin := r.Header.Get("Origin")
		switch {
		case r.Host != host && r.Host != "localhost:"+port, origin != "" && origin != "http://"+r.Host:
			http.Error(w, "the page is for this machine only", http.StatusForbidden)
		case r.URL.Path != path:
			http.NotFound(w, r)
		case r.Method != http.MethodGet && r.Method != http.MethodHead:
			w.Header().Set("Allow", "GET, HEAD")
			http.Error(w, "the page can only be read", http.StatusMethodNotAllowed)
		default:
			h := w.Header()
			h.Set("Content-Type", "text/html; charset=utf-8")
			h.Set("Cache-Control", "no-store")
			h.Set("Referrer-Policy", "no-referrer")
			h.Set("X-Content-Type-Options", "nosniff")
			h.Set("X-Frame-Options", "DENY")
			http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(page))
		}
	})
}

// openBrowser opens an address in the browser of the desktop, and reports whether that began.
func openBrowser(url string) bool {
	name, args := "xdg-open", []string{url}
	switch runtime.GOOS {
	case "darwin":
		name = "open"
	case "windows":
		name, args = "rundll32", []string{"url.dll,FileProtocolHandler", url}
	}
	if runtime.GOOS == "linux" && os.Getenv("DISPLAY") == "" && os.Getenv("WAYLAND_DISPLAY") == "" {
		return false
	}
	cmd := osexec.Command(name, args...)
	cmd.Stdout, cmd.Stderr = io.Discard, io.Discard
	if err := cmd.Start(); err != nil {
		return false
	}
	go func() { _ = cmd.Wait() }() // it ends with the program that it starts
	return true
}
