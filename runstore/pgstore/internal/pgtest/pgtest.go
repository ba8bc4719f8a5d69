//go:build unix

// Package pgtest runs PostgreSQL for tests: a server of a process of tests, or of one test.
package pgtest

import (
	"database/sql"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	_ "github.com/jackc/pgx/v5/stdlib"
)

// A Server is a PostgreSQL of the tests' own.
type Server struct {
	bin, dir string // of its programs, and of its data and socket
	as       *syscall.SysProcAttr
}

// ErrNotFound is the error where the programs of PostgreSQL are not installed.
var ErrNotFound = errors.New("install the server of PostgreSQL")

// Main runs the tests of a package with a server, which is nil if err tells why there is none, and
// returns the code of the process.
func Main(m *testing.M, use func(s *Server, err error)) int {
	dir, err := os.MkdirTemp("", "pgstore")
	if err != nil {
		fmt.Println(err)
		return 1
	}
	defer os.RemoveAll(dir)
	s, err := Install(dir)
	if err == nil {
		err = s.Start()
	}
	if err == nil {
		defer func() { _ = s.Stop("immediate") }()
	}
	use(s, err)
	return m.Run()
}

// Need skips a test where PostgreSQL is not installed, and fails it for another error.
func Need(t testing.TB, s *Server, err error) *Server {
	t.Helper()
	if errors.Is(err, ErrNotFound) {
		t.Skip("needs initdb: ", err)
	}
	must(t, err)
	return s
}

// Own returns a server for one test.
func Own(t testing.TB) *Server {
	t.Helper()
	dir := t.TempDir()
	must(t, os.Chmod(filepath.Dir(dir), 0o755))
	s, err := Install(dir)
	must(t, err)
	must(t, s.Start())
	t.Cleanup(func() { _ = s.Stop("immediate") })
	return s
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Install makes a server in the directory.
func Install(dir string) (*Server, error) {
	programs, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if path, err := exec.LookPath("initdb"); err == nil {
		programs = append(programs, path)
	}
	if len(programs) == 0 {
		return nil, ErrNotFound
	}
	s := &Server{bin: filepath.Dir(programs[len(programs)-1]), dir: filepath.Join(dir, "server")}
	if err := os.Mkdir(s.dir, 0o700); err != nil {
		return nil, err
	}
	if os.Getuid() == 0 { // for which the server does not run
		u, err := user.Lookup("nobody")
		if err != nil {
			return nil, err
		}
		uid, _ := strconv.Atoi(u.Uid)
		gid, _ := strconv.Atoi(u.Gid)
		s.as = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}
		if err := errors.Join(os.Chmod(dir, 0o755), os.Chown(s.dir, uid, gid)); err != nil {
			return nil, err
		}
	}
	return s, s.run("initdb", "--username=test", "--auth=trust",
		"--encoding=UTF8", "--no-locale", "-D", filepath.Join(s.dir, "data"))
}

func (s *Server) run(program string, args ...string) error {
	c := exec.Command(filepath.Join(s.bin, program), args...)
	c.SysProcAttr, c.Dir = s.as, s.dir
	out, err := c.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w\n%s", program, err, out)
	}
	return nil
}

// Start starts the server, which writes little to the disk that nobody waits for.
func (s *Server) Start() error {
	data := filepath.Join(s.dir, "data")
	lazy := "-c wal_writer_delay=10s -c full_page_writes=off -c autovacuum=off -c bgwriter_lru_maxpages=0"
	return s.run("pg_ctl", "start", "-w", "-D", data, "-l", filepath.Join(s.dir, "log"), "-o",
		"-c listen_addresses= -c max_connections=200 "+lazy+" -k "+s.dir)
}

// Stop ends the server; with immediate as a crash does it.
func (s *Server) Stop(how string) error {
	return s.run("pg_ctl", "stop", "-w", "-m", how, "-D", filepath.Join(s.dir, "data"))
}

// Connection is the text with which a driver connects to a schema.
func (s *Server) Connection(schema string, settings ...string) string {
	return fmt.Sprintf("host=%s user=test dbname=postgres search_path=%s %s", s.dir, schema, strings.Join(settings, " "))
}

// Open connects to a schema.
func (s *Server) Open(t testing.TB, schema string, settings ...string) *sql.DB {
	t.Helper()
	db, err := sql.Open("pgx", s.Connection(schema, settings...))
	must(t, err)
	db.SetMaxOpenConns(8)
	t.Cleanup(func() { db.Close() })
	return db
}

var schemas atomic.Int64

// Empty returns a connection to a new schema, which is empty.
func (s *Server) Empty(t testing.TB) (db *sql.DB, schema string) {
	t.Helper()
	schema = fmt.Sprint("test", schemas.Add(1))
	db = s.Open(t, schema)
	_, err := db.Exec("CREATE SCHEMA " + schema)
	must(t, err)
	return db, schema
}
