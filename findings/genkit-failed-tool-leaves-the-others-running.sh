#!/usr/bin/env bash
# github.com/firebase/genkit/go v1.12.0: a model asks for two tools in one answer, and the first fails.
# Generate returns the error at once, while the second tool still runs: its result is nowhere, and
# work that it does goes on after Generate.
set -euo pipefail
dir=$(mktemp -d)
trap 'chmod -R u+w "$dir"; rm -rf "$dir"' EXIT
cd "$dir"
cat > go.mod <<'MOD'
module example.com/finding

go 1.26.0

require github.com/firebase/genkit/go v1.12.0
MOD
cat > main.go <<'GO'
package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/firebase/genkit/go/ai"
	"github.com/firebase/genkit/go/genkit"
)

type in struct{ X string }

func main() {
	ctx := context.Background()
	g := genkit.Init(ctx)
	started, returned, done := make(chan bool), make(chan bool), make(chan bool)
	model := genkit.DefineModelAction(g, "test/scripted", &ai.ModelOptions{Supports: &ai.ModelSupports{Tools: true, Multiturn: true}},
		func(context.Context, *ai.ModelRequest, struct{}, ai.ModelStreamCallback) (*ai.ModelResponse, error) {
			return &ai.ModelResponse{Message: ai.NewModelMessage(
				ai.NewToolRequestPart(&ai.ToolRequest{Name: "fails", Ref: "1", Input: map[string]any{"X": "a"}}),
				ai.NewToolRequestPart(&ai.ToolRequest{Name: "works", Ref: "2", Input: map[string]any{"X": "b"}}),
			)}, nil
		})
	fails := genkit.DefineTool(g, "fails", "fails", func(*ai.ToolContext, in) (string, error) {
		<-started
		return "", errors.New("no")
	})
	works := genkit.DefineTool(g, "works", "works", func(*ai.ToolContext, in) (string, error) {
		started <- true
		<-returned
		close(done)
		return "yes", nil
	})
	_, err := genkit.Generate(ctx, g, ai.WithModel(model), ai.WithPrompt("do both"), ai.WithTools(fails, works))
	fmt.Println("Generate has returned, error:", err != nil)
	close(returned)
	<-done
	fmt.Println("the other tool ended after it")
}
GO
export GOFLAGS=-mod=mod GOWORK=off
go mod tidy > /dev/null 2>&1
seen=$(go run . 2>/dev/null)
want='Generate has returned, error: true
the other tool ended after it'
echo "$seen"
[ "$seen" = "$want" ] || { echo "the behaviour has changed"; exit 1; }
