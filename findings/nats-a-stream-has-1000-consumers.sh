#!/usr/bin/env bash
# nats-server 2.15.3 refuses the 1,001st consumer of a JetStream stream with error code 10026, although
# the stream and the account both tell that they have no limit (max_consumers -1). The limit is a default of
# the server, which a stream leaves only with a max_consumers of its own. An ordered consumer of nats.go
# 1.55.0 stays in the server for five minutes after its Stop, and counts: a program that reads 1,001
# subjects one after another in that time is refused.
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
	"os/exec"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

func main() {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(err)
	port := l.Addr().(*net.TCPAddr).Port
	l.Close()
	server := exec.Command("./nats-server", "-a", "127.0.0.1", "-p", fmt.Sprint(port), "-js", "-sd", "store")
	must(server.Start())
	defer server.Process.Kill()
	nc, err := nats.Connect(fmt.Sprintf("nats://127.0.0.1:%d", port), nats.RetryOnFailedConnect(true), nats.MaxReconnects(-1))
	must(err)
	js, err := jetstream.New(nc)
	must(err)
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	for name, limit := range map[string]int{"plain": 0, "own": 5000} {
		config := jetstream.StreamConfig{Name: name, Subjects: []string{name + ".*"}, MaxConsumers: limit}
		stream, err := js.CreateStream(ctx, config)
		for err != nil && ctx.Err() == nil {
			time.Sleep(100 * time.Millisecond)
			stream, err = js.CreateStream(ctx, config)
		}
		must(err)
		_, err = js.Publish(ctx, name+".a", []byte("x"))
		must(err)
		account, err := js.AccountInfo(ctx)
		must(err)
		n := 0
		for ; n < 1100; n++ {
			if err = read(ctx, stream); err != nil {
				break
			}
		}
		var api *jetstream.APIError
		errors.As(err, &api)
		fmt.Printf("%s: the stream states %d, the account %d; %d readers", name,
			stream.CachedInfo().Config.MaxConsumers, account.Limits.MaxConsumers, n)
		if api != nil {
			fmt.Printf(", then error %d", api.ErrorCode)
		}
		fmt.Println()
	}
}

// read reads the message of the stream with an ordered consumer, and stops it.
func read(ctx context.Context, stream jetstream.Stream) error {
	consumer, err := stream.OrderedConsumer(ctx, jetstream.OrderedConsumerConfig{})
	if err != nil {
		return err
	}
	messages, err := consumer.Messages()
	if err != nil {
		return err
	}
	defer messages.Stop()
	_, err = messages.Next()
	return err
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}
GO
seen=$(go run . | sort)
echo "$seen"
[ "$seen" = "own: the stream states 5000, the account -1; 1100 readers
plain: the stream states -1, the account -1; 1000 readers, then error 10026" ] || { echo "the behaviour has changed"; exit 1; }
