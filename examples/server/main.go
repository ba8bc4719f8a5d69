// Command server is a small agent runtime with an HTTP API. Its agents ask a model that streams,
// use tools in parallel, spawn a sub-agent, and wait for a person's approval. A run has a budget,
// can be paused, resumed and cancelled, and is shown while it goes on.
//
//	go run ./examples/server -runs 4    a demo: four runs, answered and printed
//	go run ./examples/server            serves until it is interrupted
//
// The log is the runtime's only memory: it reads the state of a run from the log. A process that is
// interrupted or killed loses no recorded event, and the next one with the same log goes on. The
// model and the tools are a script; the rest is a real runtime.
//
//	POST /runs                            {"task":"…","budgetUsd":0.05} starts a run
//	GET  /runs                            all runs
//	GET  /runs/{run}                      the snapshot of one
//	GET  /runs/{run}/events               its events as Server-Sent Events
//	POST /runs/{run}/approvals/{approval} {"granted":true,"by":"ada"} answers a question
//	POST /runs/{run}/pause                and /resume, /cancel
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"
)

func main() {
	addr := flag.String("addr", "localhost:8080", "address to serve")
	log := flag.String("log", "server.jsonl", "log of all runs; those in it that are not finished go on")
	runs := flag.Int("runs", 0, "start so many runs, answer their questions, print them, and end")
	pace := flag.Duration("pace", 30*time.Millisecond, "time between two words of the model")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := serve(ctx, os.Stdout, *addr, *log, *runs, *pace); err != nil {
		fmt.Fprintln(os.Stderr, "server:", err)
		os.Exit(1)
	}
}

// serve serves until the context ends, or until the demo does. Then it pauses the runs,
// ends the streams and closes the log, within five seconds.
func serve(ctx context.Context, out io.Writer, addr, log string, runs int, pace time.Duration) error {
	listener, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	rt, err := open(log, pace)
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	server := &http.Server{Handler: rt.handler(), ReadHeaderTimeout: 5 * time.Second}
	served := make(chan error, 2)
	go func() { served <- server.Serve(listener) }()
	url := "http://" + listener.Addr().String()
	fmt.Fprintln(out, "serving", url)

	if runs > 0 {
		go func() { served <- demo(ctx, out, url, runs) }()
	}
	select {
	case <-ctx.Done():
	case err = <-served:
	}
	deadline, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	err = errors.Join(err, rt.close(deadline))
	// No stream is left, but perhaps connections that never sent a request.
	grace, cancel := context.WithTimeout(deadline, time.Second)
	defer cancel()
	if server.Shutdown(grace) != nil {
		err = errors.Join(err, server.Close())
	}
	return err
}
