package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/agentevents/agentevents/bench/internal/appends"
	"github.com/agentevents/agentevents/bench/internal/measure"
)

// postgres inserts rows into a server that it starts for itself, with the settings of
// initdb: synchronous_commit is on. Each writer has a connection. Autovacuum is off, as the
// CPU time of a process that ends could not be counted.
func (s *stores) postgres(c *measure.Cell) (appends.Append, error) {
	bin := postgresPrograms()
	if bin == "" {
		return nil, measure.Missing("PostgreSQL's initdb is not found")
	}
	dir, err := os.MkdirTemp("", "pg-") // the path of a socket must be short
	if err != nil {
		return nil, err
	}
	s.closers = append(s.closers, func() { _ = os.RemoveAll(dir) })
	as, err := unprivileged(dir)
	if err != nil {
		return nil, err
	}
	data := filepath.Join(dir, "data")
	initdb := exec.Command(filepath.Join(bin, "initdb"), "--username=bench", "--auth=trust", "--no-locale", "--encoding=UTF8", "-D", data)
	initdb.SysProcAttr, initdb.Dir = as, dir
	if out, err := initdb.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("initdb: %w: %s", err, out)
	}
	postmaster := exec.Command(filepath.Join(bin, "postgres"), "-D", data, "-k", dir, "-c", "listen_addresses=", "-c", "autovacuum=off")
	postmaster.SysProcAttr, postmaster.Dir = as, dir
	if err := postmaster.Start(); err != nil {
		return nil, err
	}
	s.closers = append([]func(){func() {
		_ = postmaster.Process.Signal(syscall.SIGINT)
		_ = postmaster.Wait()
	}}, s.closers...)
	var conns [appends.Waiters]*pgx.Conn
	ctx := context.Background()
	for i := range conns {
		if conns[i], err = connect(ctx, dir); err != nil {
			return nil, err
		}
	}
	if _, err := conns[0].Exec(ctx, "CREATE TABLE lines(id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, line bytea)"); err != nil {
		return nil, err
	}
	server, err := processesOf(postmaster.Process.Pid)
	if err != nil {
		return nil, err
	}
	c.Clock = func() time.Duration { return measure.ProcessTime() + timeOf(server) }
	return func(g, _ int) error {
		_, err := conns[g].Exec(ctx, "INSERT INTO lines(line) VALUES($1)", appends.Line)
		return err
	}, nil
}

func postgresPrograms() string {
	if path, err := exec.LookPath("initdb"); err == nil {
		return filepath.Dir(path)
	}
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if len(found) == 0 {
		return ""
	}
	return filepath.Dir(found[len(found)-1])
}

// unprivileged gives the folder to the user whom the server runs as: it refuses root.
func unprivileged(dir string) (*syscall.SysProcAttr, error) {
	attr := &syscall.SysProcAttr{Pdeathsig: syscall.SIGINT} // the server ends with this process
	if os.Getuid() != 0 {
		return attr, nil
	}
	u, err := user.Lookup("postgres")
	if err != nil {
		return nil, measure.Missing("PostgreSQL refuses root, and the system has no user postgres")
	}
	uid, err := strconv.Atoi(u.Uid)
	if err != nil {
		return nil, err
	}
	gid, err := strconv.Atoi(u.Gid)
	if err != nil {
		return nil, err
	}
	attr.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	return attr, os.Chown(dir, uid, gid)
}

// connect waits until the server accepts a connection.
func connect(ctx context.Context, dir string) (*pgx.Conn, error) {
	var errs error
	for range 200 {
		conn, err := pgx.Connect(ctx, "host="+dir+" user=bench dbname=postgres")
		if err == nil {
			return conn, nil
		}
		errs = err
		time.Sleep(50 * time.Millisecond)
	}
	return nil, errors.Join(errors.New("PostgreSQL does not start"), errs)
}

// processesOf returns the ids of a process and of its children.
func processesOf(parent int) ([]int, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", parent, parent))
	if err != nil {
		return nil, measure.Missing("the kernel does not list the processes of PostgreSQL")
	}
	out := []int{parent}
	for _, field := range strings.Fields(string(text)) {
		pid, err := strconv.Atoi(field)
		if err != nil {
			return nil, err
		}
		out = append(out, pid)
	}
	return out, nil
}

// timeOf returns the CPU time of processes of one thread. It is exact to the nanosecond;
// /proc/PID/stat has hundredths of a second.
func timeOf(pids []int) time.Duration {
	var sum time.Duration
	for _, pid := range pids {
		text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/schedstat", pid)) // none is left when the process has ended
		first, _, _ := bytes.Cut(text, []byte(" "))
		ns, _ := strconv.ParseInt(string(first), 10, 64)
		sum += time.Duration(ns)
	}
	return sum
}
