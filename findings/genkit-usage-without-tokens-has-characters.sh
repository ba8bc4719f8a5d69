#!/usr/bin/env bash
# github.com/firebase/genkit/go v1.12.0: a model that reports no usage still gives a response with one:
# genkit counts the characters of the request and of the answer. Tokens are 0 there, so a reader
# that tells "no usage" by a nil Usage records 0 tokens.
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
	"fmt"

	"github.com/firebase/genkit/go/ai"
	"github.com/firebase/genkit/go/genkit"
)

func main() {
	ctx := context.Background()
	g := genkit.Init(ctx)
	model := genkit.DefineModelAction(g, "test/silent", &ai.ModelOptions{Supports: &ai.ModelSupports{}},
		func(context.Context, *ai.ModelRequest, struct{}, ai.ModelStreamCallback) (*ai.ModelResponse, error) {
			return &ai.ModelResponse{Message: ai.NewModelTextMessage("four")}, nil
		})
	r, err := genkit.Generate(ctx, g, ai.WithModel(model), ai.WithPrompt("hello"))
	if err != nil {
		panic(err)
	}
	fmt.Printf("usage is nil: %t\n", r.Usage == nil)
	if u := r.Usage; u != nil {
		fmt.Printf("tokens: %d in, %d out; characters: %d in, %d out\n", u.InputTokens, u.OutputTokens, u.InputCharacters, u.OutputCharacters)
	}
}
GO
export GOFLAGS=-mod=mod GOWORK=off
go mod tidy > /dev/null 2>&1
seen=$(go run . 2>/dev/null)
want='usage is nil: false
tokens: 0 in, 0 out; characters: 5 in, 4 out'
echo "$seen"
[ "$seen" = "$want" ] || { echo "the behaviour has changed"; exit 1; }
