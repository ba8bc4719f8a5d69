#!/usr/bin/env bash
# With nats.go 1.55.0 and nats-server 2.15.3 a JetStream publish to a subject that the user may not publish to
# fails after its deadline, as if the server were slow. The refusal is in Conn.LastError and in the error
# handler of the connection only, and stays in LastError after later publishes that succeed.
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
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func main() {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(err)
	port := l.Addr().(*net.TCPAddr).Port
	l.Close()
	must(os.WriteFile("server.conf", []byte(fmt.Sprintf(`
listen: "127.0.0.1:%d"
jetstream { store_dir: "store" }
authorization { users: [ { user: a, password: a, permissions: { publish: { deny: "s.closed" } } } ] }
`, port)), 0o600))
	cmd := exec.Command("./nats-server", "-c", "server.conf")
	must(cmd.Start())
	defer cmd.Process.Kill()
	nc, err := nats.Connect(fmt.Sprintf("nats://a:a@127.0.0.1:%d", port), nats.RetryOnFailedConnect(true), nats.MaxReconnects(-1), nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}))
	must(err)
	js, err := jetstream.New(nc)
	must(err)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for {
		if _, err = js.CreateStream(ctx, jetstream.StreamConfig{Name: "s", Subjects: []string{"s.*"}}); err == nil || ctx.Err() != nil {
			break
		}
		time.Sleep(200 * time.Millisecond)
	}
	must(err)
	short, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	_, err = js.Publish(short, "s.closed", []byte("x"))
	fmt.Println("publish: deadline", errors.Is(err, context.DeadlineExceeded), "refused", errors.Is(err, nats.ErrPermissionViolation))
	fmt.Println("LastError: refused", errors.Is(nc.LastError(), nats.ErrPermissionViolation))
	_, err = js.Publish(ctx, "s.open", []byte("x"))
	must(err)
	fmt.Println("LastError after a publish that succeeds: refused", errors.Is(nc.LastError(), nats.ErrPermissionViolation))
}
GO
seen=$(go run .)
echo "$seen"
[ "$seen" = "publish: deadline true refused false
LastError: refused true
LastError after a publish that succeeds: refused true" ] || { echo "the behaviour has changed"; exit 1; }
