#!/usr/bin/env bash
# nats-server 2.15.3 refuses a JetStream message whose Nats-Expected-Last-Subject-Sequence is wrong with
# error code 10071 on a stream of one replica. On a stream of three replicas two
# writers that race also get error code 10164. A client that looks for 10071 alone, as
# most examples do, takes a lost race on a cluster for a failure of the server.
set -euo pipefail
dir=$(mktemp -d)
trap 'kill $(jobs -p) 2> /dev/null || true; rm -rf "$dir"' EXIT
cd "$dir"
export GOWORK=off GOFLAGS=-mod=mod
go mod init example.com/finding 2> /dev/null
go get github.com/nats-io/nats-server/v2@v2.15.3 github.com/nats-io/nats.go@v1.55.0 2> /dev/null
go build -o nats-server github.com/nats-io/nats-server/v2
cat > main.go <<'GO'
package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"sort"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

func port() int {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

func main() {
	for _, n := range []int{1, 3} {
		fmt.Printf("%d replica(s): %s\n", n, codes(n))
	}
}

// codes returns the error codes of races on a stream with n replicas.
func codes(n int) string {
	var clients, routes []int
	var peers []string
	for range n {
		clients, routes = append(clients, port()), append(routes, port())
		peers = append(peers, fmt.Sprintf("nats://127.0.0.1:%d", routes[len(routes)-1]))
	}
	for i := range n {
		args := []string{"-a", "127.0.0.1", "-p", fmt.Sprint(clients[i]), "-js", "-sd", fmt.Sprintf("store-%d-%d", n, i), "-n", fmt.Sprintf("n%d", i)}
		if n > 1 {
			args = append(args, "-cluster_name", "test", "-cluster", fmt.Sprintf("nats://127.0.0.1:%d", routes[i]), "-routes", strings.Join(peers, ","))
		}
		cmd := exec.Command("./nats-server", args...)
		if err := cmd.Start(); err != nil {
			panic(err)
		}
		defer cmd.Process.Kill()
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	nc, err := nats.Connect(fmt.Sprintf("nats://127.0.0.1:%d", clients[0]), nats.RetryOnFailedConnect(true), nats.MaxReconnects(-1))
	if err != nil {
		panic(err)
	}
	js, _ := jetstream.New(nc)
	for {
		if _, err = js.CreateStream(ctx, jetstream.StreamConfig{Name: "s", Subjects: []string{"s.*"}, Replicas: n}); err == nil {
			break
		}
		time.Sleep(200 * time.Millisecond)
	}
	seen := map[string]bool{}
	var mu sync.Mutex
	for round := range 200 {
		var all sync.WaitGroup
		for range 4 {
			all.Add(1)
			go func() {
				defer all.Done()
				_, err := js.Publish(ctx, fmt.Sprintf("s.%d", round), []byte("x"), jetstream.WithExpectLastSequencePerSubject(0))
				var api *jetstream.APIError
				if errors.As(err, &api) {
					mu.Lock()
					defer mu.Unlock()
					seen[fmt.Sprint(api.ErrorCode)] = true
				} else if err != nil {
					fmt.Fprintln(os.Stderr, err)
				}
			}()
		}
		all.Wait()
	}
	var list []string
	for c := range seen {
		list = append(list, c)
	}
	sort.Strings(list)
	return strings.Join(list, " ")
}
GO
seen=$(go run .)
echo "$seen"
[ "$seen" = "1 replica(s): 10071
3 replica(s): 10071 10164" ] || [ "$seen" = "1 replica(s): 10071
3 replica(s): 10164" ] || { echo "the behaviour has changed"; exit 1; }
