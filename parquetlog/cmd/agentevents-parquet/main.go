// Command agentevents-parquet writes logs as Parquet files.
//
//	agentevents-parquet -o FOLDER FILE...
//
// Its module is one of several in a repository, so Go gets it as a tool of a module of yours:
//
//	go get -tool github.com/agentevents/agentevents/parquetlog/cmd/agentevents-parquet
//	go tool agentevents-parquet -o FOLDER FILE...
//
// A FILE is a log in any format that the agentevents command reads, with its segments and compressed
// ones; a folder in which package runstore keeps runs; a session of an agent program, or a folder of
// sessions; or - for standard input. All files are one log, in their order. The folder gets new files
// with the events that it lacks: see package parquetlog. Lines that cannot be read are told on standard
// error, and the rest is written; the exit code is 1 then. It is 2 if nothing is written.
package main

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/capture"
	"github.com/agentevents/agentevents/dialect"
	"github.com/agentevents/agentevents/dialect/agui"
	"github.com/agentevents/agentevents/dialect/kahn"
	"github.com/agentevents/agentevents/dialect/kaos"
	"github.com/agentevents/agentevents/dialect/multiagent"
	"github.com/agentevents/agentevents/dialect/openharness"
	"github.com/agentevents/agentevents/dialect/openwop"
	"github.com/agentevents/agentevents/logfile"
	"github.com/agentevents/agentevents/parquetlog"
)

const (
	exitOK     = 0
	exitFaults = 1 // lines cannot be read; the others are written
	exitFailed = 2 // nothing is written
)

func main() { os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }

// run is the command. It returns the exit code.
func run(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	fs := flag.NewFlagSet("agentevents-parquet", flag.ContinueOnError)
	fs.SetOutput(stderr)
	dir := fs.String("o", "", "the `FOLDER` that gets the files")
	if err := fs.Parse(args); errors.Is(err, flag.ErrHelp) {
		return exitOK
	} else if err != nil {
		return exitFailed
	}
	if *dir == "" || fs.NArg() == 0 {
		fmt.Fprintln(stderr, "usage: agentevents-parquet -o FOLDER FILE...")
		return exitFailed
	}
	w, err := parquetlog.Open(*dir)
	if err != nil {
		fmt.Fprintln(stderr, err)
		return exitFailed
	}
	c := converter{w: w, decoders: decoders(), stdin: stdin, stderr: stderr}
	for _, name := range fs.Args() {
		if err := c.name(name); err != nil {
			c.tell(name, err)
		}
	}
	report, err := w.Close()
	if err != nil {
		fmt.Fprintln(stderr, err)
		return exitFailed
	}
	if err := json.NewEncoder(stdout).Encode(report); err != nil {
		fmt.Fprintln(stderr, err)
		return exitFaults
	}
	if c.faults {
		return exitFaults
	}
	return exitOK
}

// A converter writes the files of the command line.
type converter struct {
	w        *parquetlog.Writer
	decoders map[dialect.Name]agentevents.Decoder
	stdin    io.Reader
	stderr   io.Writer
	faults   bool
}

// tell prints a fault of a file.
func (c *converter) tell(file string, err error) {
	c.faults = true
	fmt.Fprintf(c.stderr, "%q: %v\n", file, err)
}

// name writes a file or folder.
func (c *converter) name(name string) error {
	if name == "-" {
		return c.log(c.stdin)
	}
	if log := filepath.Join(name, "events.jsonl"); isLog(log) {
		name = log
	}
	sessions, err := sessions(name)
	for _, s := range capture.Merge(sessions) {
		c.session(s)
	}
	if err != nil || len(sessions) > 0 {
		return err
	}
	for f, err := range logfile.Files(name) {
		if err == nil {
			err = c.log(f)
		}
		if err != nil {
			c.tell(name, err)
		}
	}
	return nil
}

// sessions returns the sessions of agent programs in a file or below a folder. A log has none.
func sessions(name string) ([]*capture.Session, error) {
	info, err := os.Stat(name)
	if err != nil || !info.Mode().IsRegular() && !info.IsDir() {
		return nil, nil // opening it as a log tells the fault
	}
	all, err := capture.Open(name, capture.Options{})
	if errors.Is(err, fs.ErrNotExist) && !info.IsDir() {
		return nil, nil // it may be a log
	}
	return all, err
}

func isLog(path string) bool {
	_, err := logfile.Segments(path)
	return err == nil
}

// session writes a session of an agent program.
func (c *converter) session(s *capture.Session) {
	files := s.Files()
	for line, err := range s.Lines() {
		if err == nil {
			err = c.w.Add(agentevents.Line{Event: line.Event})
		}
		if err == nil {
			continue
		}
		c.tell(fmt.Sprintf("%s:%d", files[line.File], line.Number), err)
		if !errors.Is(err, parquetlog.ErrNoRow) && errors.As(err, new(*fs.PathError)) {
			return
		}
	}
}

// log writes a log in any format, compressed or not.
func (c *converter) log(from io.Reader) error {
	in := bufio.NewReaderSize(from, 64<<10)
	from = in
	if magic, _ := in.Peek(2); string(magic) == "\x1f\x8b" {
		z, err := gzip.NewReader(in)
		if err != nil {
			return err
		}
		from = z
	}
	return c.w.Log(agentevents.NewReader(from, agentevents.ReaderOptions{Decoder: &dialect.Auto{Decoders: c.decoders}}))
}

// decoders has a decoder for each format. The files are one log, so they share them.
func decoders() map[dialect.Name]agentevents.Decoder {
	return map[dialect.Name]agentevents.Decoder{
		dialect.KAHN:        kahn.NewDecoder(kahn.Options{}),
		dialect.MultiAgent:  multiagent.NewDecoder(multiagent.Options{}),
		dialect.KAOS:        kaos.NewDecoder(kaos.Options{}),
		dialect.OpenHarness: openharness.NewDecoder(openharness.Options{}),
		dialect.OpenWOP:     openwop.NewDecoder(openwop.Options{Folded: true}),
		dialect.AGUI:        agui.NewDecoder(agui.Options{}),
	}
}
