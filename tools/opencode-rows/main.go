// Command opencode-rows prints the sessions in the database of opencode as rows of JSON, which the
// command agentevents reads:
//
//	opencode-rows > rows.jsonl
//	agentevents ls rows.jsonl
//
// The database and its write-ahead log are copied to a temporary folder that only its owner may
// read, and the copy is read and deleted: nothing is written to opencode's folder, and opencode may
// be at work. Of the tables session, message, part and event alone anything is read. The texts of
// sessions are printed as they are, with the secrets in them.
package main

import (
	"context"
	"database/sql"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"
	"unicode"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	switch {
	case errors.Is(err, flag.ErrHelp):
	case err != nil:
		fmt.Fprintln(os.Stderr, "opencode-rows:", err)
		os.Exit(1)
	}
}

const about = `Usage:
  opencode-rows [flags] [SESSION...] > rows.jsonl

Prints sessions of opencode, with the sessions of their sub-agents, as rows of JSON. SESSION is an
id, or the beginning of one; without one all sessions are printed.

Flags:
`

// run is the command.
func run(ctx context.Context, args []string, out, messages io.Writer) error {
	flags := flag.NewFlagSet("opencode-rows", flag.ContinueOnError)
	flags.SetOutput(messages)
	flags.Usage = func() {
		fmt.Fprint(messages, about)
		flags.PrintDefaults()
	}
	name := flags.String("db", "", "the database `FILE`; default: opencode/opencode.db below XDG_DATA_HOME or ~/.local/share")
	list := flags.Bool("list", false, "list the sessions: id, time of the latest change, title")
	dir := flags.String("out", "", "write each session to a file of its own in the folder `DIR`, which is made")
	if err := flags.Parse(args); err != nil {
		return err
	}
	path, err := databaseAt(*name)
	if err != nil {
		return err
	}
	return withCopy(ctx, path, func(db *sql.DB) error {
		s, err := openStore(ctx, db, path)
		if err != nil {
			return err
		}
		roots, err := s.choose(flags.Args())
		switch {
		case err != nil:
			return err
		case *list:
			return s.list(roots, out)
		case *dir != "":
			return s.files(ctx, roots, *dir, messages)
		}
		for _, root := range roots {
			if err := s.print(ctx, root, out); err != nil {
				return err
			}
		}
		return nil
	})
}

// databaseAt returns the database, or where opencode keeps it.
func databaseAt(name string) (string, error) {
	if name == "" {
		data := os.Getenv("XDG_DATA_HOME")
		if data == "" {
			home, err := os.UserHomeDir()
			if err != nil {
				return "", err
			}
			data = filepath.Join(home, ".local", "share")
		}
		name = filepath.Join(data, "opencode", "opencode.db")
	}
	info, err := os.Stat(name)
	switch {
	case errors.Is(err, os.ErrNotExist):
		if old, err := os.Stat(filepath.Join(filepath.Dir(name), "storage", "session")); err == nil && old.IsDir() {
			return "", fmt.Errorf("%s is not there, but sessions of older versions in files are; start a newer opencode once, which moves them, or use opencode export", name)
		}
		return "", fmt.Errorf("%s is not there: name the database with --db", name)
	case err != nil:
		return "", err
	case !info.Mode().IsRegular():
		return "", fmt.Errorf("%s is not a file: name the database with --db", name)
	}
	return name, nil
}

// list prints a line for each session.
func (s *store) list(roots []string, out io.Writer) error {
	for _, id := range roots {
		row := s.sessions[id]
		if _, err := fmt.Fprintf(out, "%s  %s  %s\n", id, time.UnixMilli(row.changed).UTC().Format("2006-01-02 15:04:05Z"), visible(row.title)); err != nil {
			return err
		}
	}
	return nil
}

// visible returns a title without characters that a terminal obeys.
func visible(text string) string {
	out := []rune(text)
	for i, c := range out {
		if !unicode.IsPrint(c) {
			out[i] = ' '
		}
	}
	return string(out)
}

// files writes a file for each session, which only its owner may read.
func (s *store) files(ctx context.Context, roots []string, dir string, messages io.Writer) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	for _, id := range roots {
		file, err := root.OpenFile(fileName(id), os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
		if err != nil {
			return err
		}
		err = file.Chmod(0o600) // it may have been there
		if err == nil {
			err = s.print(ctx, id, file)
		}
		if err := errors.Join(err, file.Close()); err != nil {
			return err
		}
	}
	fmt.Fprintf(messages, "wrote %d sessions to %s\n", len(roots), dir)
	return nil
}

// fileName is the name of a session's file: an id has letters, digits and _ alone.
func fileName(id string) string {
	out := []byte(id)
	for i, c := range out {
		if !(c|0x20 >= 'a' && c|0x20 <= 'z' || c >= '0' && c <= '9' || c == '_' || c == '-') {
			out[i] = '_'
		}
	}
	return string(out) + ".jsonl"
}
