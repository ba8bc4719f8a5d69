#!/usr/bin/env bash
# go.opentelemetry.io/otel requires go.opentelemetry.io/otel/log from v1.47.0 on; v1.46.0 does not. So a
# program that raises only the traces API from v1.46.0 to v1.47.0 gets another otel/log too, whose
# attribute types are others: a library that uses log.Value of v0.20.0 compiles with the first and
# not with the second.
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
requires() {
	go mod download -json "go.opentelemetry.io/otel@$1" | sed -n 's/.*"GoMod": "\(.*\)",/\1/p' | xargs grep -o 'go.opentelemetry.io/otel/log v[0-9.]*' || echo "no otel/log"
}
go mod init example.com/finding 2> /dev/null
seen="v1.46.0: $(requires v1.46.0)
v1.47.0: $(requires v1.47.0)"
cat > main.go <<'GO'
package main

import "go.opentelemetry.io/otel/log"

func main() { _ = log.Value{} }
GO
for version in v1.46.0 v1.47.0; do
	cp go.mod try.mod
	go mod edit -require=go.opentelemetry.io/otel@$version -require=go.opentelemetry.io/otel/log@v0.20.0 try.mod
	if GOFLAGS=-mod=mod GOWORK=off go build -modfile=try.mod -o /dev/null . 2> /dev/null; then
		seen+="
log.Value of v0.20.0 beside otel $version: compiles"
	else
		seen+="
log.Value of v0.20.0 beside otel $version: does not compile"
	fi
done
want='v1.46.0: no otel/log
v1.47.0: go.opentelemetry.io/otel/log v1.47.0
log.Value of v0.20.0 beside otel v1.46.0: compiles
log.Value of v0.20.0 beside otel v1.47.0: does not compile'
echo "$seen"
[ "$seen" = "$want" ] || { echo "the behaviour has changed"; exit 1; }
