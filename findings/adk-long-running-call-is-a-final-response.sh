#!/usr/bin/env bash
# google.golang.org/adk/v2 v2.2.0 (Go 1.26.5 or newer): Event.IsFinalResponse is true for the event in
# which a model asks for a long-running tool, before the tool has run. So a caller who stops at the
# first final response leaves before the call. The same event with a call of an ordinary tool is none.
set -euo pipefail
dir=$(mktemp -d)
trap 'chmod -R u+w "$dir"; rm -rf "$dir"' EXIT
cd "$dir"
cat > go.mod <<'MOD'
module example.com/finding

go 1.26.5

require google.golang.org/adk/v2 v2.2.0
MOD
cat > main.go <<'GO'
package main

import (
	"fmt"

	"google.golang.org/adk/v2/model"
	"google.golang.org/adk/v2/session"
	"google.golang.org/genai"
)

func main() {
	for _, long := range [][]string{nil, {"c1"}} {
		ev := &session.Event{LongRunningToolIDs: long, LLMResponse: model.LLMResponse{Content: &genai.Content{
			Role: "model", Parts: []*genai.Part{{FunctionCall: &genai.FunctionCall{ID: "c1", Name: "deploy"}}},
		}}}
		fmt.Printf("long-running: %t, final: %t\n", len(long) > 0, ev.IsFinalResponse())
	}
}
GO
export GOFLAGS=-mod=mod GOWORK=off
go mod tidy > /dev/null 2>&1
seen=$(go run .)
want='long-running: false, final: false
long-running: true, final: true'
echo "$seen"
[ "$seen" = "$want" ] || { echo "the behaviour has changed"; exit 1; }
