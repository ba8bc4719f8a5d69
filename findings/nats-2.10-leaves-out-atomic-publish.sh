#!/usr/bin/env bash
# nats-server 2.10.29 creates a stream that asks for allow_atomic, reports success and leaves the setting
# out: batches are no unit on it. Version 2.15.3 keeps the setting. A client that needs atomic batches has
# to compare the configuration in the answer with the one that it sent.
set -euo pipefail
dir=$(mktemp -d)
trap 'kill $(jobs -p) 2> /dev/null || true; rm -rf "$dir"' EXIT
cd "$dir"
export GOWORK=off GOFLAGS=-mod=mod
for version in v2.10.29 v2.15.3; do
	mkdir "$version"
	(cd "$version" && go mod init example.com/server 2> /dev/null && go get "github.com/nats-io/nats-server/v2@$version" 2> /dev/null && go build -o nats-server github.com/nats-io/nats-server/v2)
done
go mod init example.com/finding 2> /dev/null
go get github.com/nats-io/nats.go@v1.55.0 2> /dev/null
cat > main.go <<'GO'
package main

import (
	"context"
	"fmt"
	"net"
	"os/exec"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

func main() {
	for _, version := range []string{"v2.10.29", "v2.15.3"} {
		fmt.Printf("%s: %s\n", version, created(version))
	}
}

func created(version string) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	l.Close()
	cmd := exec.Command(version+"/nats-server", "-a", "127.0.0.1", "-p", fmt.Sprint(port), "-js", "-sd", version+"/store")
	if err := cmd.Start(); err != nil {
		panic(err)
	}
	defer cmd.Process.Kill()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	nc, err := nats.Connect(fmt.Sprintf("nats://127.0.0.1:%d", port), nats.RetryOnFailedConnect(true), nats.MaxReconnects(-1))
	if err != nil {
		panic(err)
	}
	js, err := jetstream.New(nc)
	if err != nil {
		panic(err)
	}
	for {
		s, err := js.CreateStream(ctx, jetstream.StreamConfig{Name: "s", Subjects: []string{"s.*"}, AllowAtomicPublish: true})
		if err == nil {
			return fmt.Sprintf("created, allow_atomic %t", s.CachedInfo().Config.AllowAtomicPublish)
		}
		if ctx.Err() != nil {
			return err.Error()
		}
		time.Sleep(200 * time.Millisecond)
	}
}
GO
seen=$(go run .)
echo "$seen"
[ "$seen" = "v2.10.29: created, allow_atomic false
v2.15.3: created, allow_atomic true" ] || { echo "the behaviour has changed"; exit 1; }
