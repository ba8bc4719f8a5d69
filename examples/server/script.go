package main

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"strings"
	"time"

	ae "github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/resume"
)

// A use is the use of a tool that the model wants.
type use struct{ id, tool, args string }

// A chunk is a piece of the model's stream: of its reasoning, its text, the arguments of a use, or
// the end.
type chunk struct {
	reasoning, text, arguments string
	use                        use // whose arguments
	returned                   *ae.ModelReturned
	uses                       []use
}

// turns are the turns of each agent.
var turns = map[string][]struct {
	reasoning, text string
	uses            []use
}{
	"main": {
		{"I look around first. Three tools can do so at the same time.", "Let me look around.", []use{
			{tool: "search", args: `{"query":"release notes"}`},
			{tool: "fetch", args: `{"url":"https://example.org/notes"}`},
			{tool: "render", args: `{"page":1}`},
		}},
		{"Two of three failed. Somebody should read the changes.", "The researcher reads the changes.", []use{
			{tool: "delegate", args: `{"agent":"researcher","task":"Read the changes"}`},
			{tool: "crawl", args: `{"depth":3}`},
		}},
		{"A person must allow this.", "Ready to deploy.", []use{{tool: "deploy", args: `{"version":"1.4.0"}`}}},
		{"", "That is all.", nil},
	},
	"researcher": {
		{"One search will do.", "I search.", []use{{tool: "search", args: `{"query":"changes since 1.3.0"}`}}},
		{"", "Nothing breaks.", nil},
	},
}

const modelName = "script-1"

var errRateLimit = errors.New("rate limit")

// A model stands for the client of a provider.
type model struct {
	pace time.Duration // between two words
}

// stream streams an agent's next turn. It refuses the first attempt of a conversation.
func (m model) stream(ctx context.Context, agent string,
	conversation []resume.Message, attempt int) iter.Seq2[chunk, error] {
	return func(yield func(chunk, error) bool) {
		n := 0 // turns so far
		for _, m := range conversation {
			if m.Role == resume.RoleAssistant {
				n++
			}
		}
		if attempt == 1 && n == 0 {
			yield(chunk{}, errRateLimit)
			return
		}
		turn := turns[agent][n]
		end := chunk{returned: &ae.ModelReturned{FinishReasons: []string{"stop"}}}
		chunks := pieces(nil, turn.reasoning, func(word string) chunk { return chunk{reasoning: word} })
		chunks = pieces(chunks, turn.text, func(word string) chunk { return chunk{text: word} })
		for _, u := range turn.uses {
			u.id = fmt.Sprintf("call_%08x", rand.Uint32())
			chunks = pieces(chunks, u.args, func(word string) chunk { return chunk{arguments: word, use: u} })
			end.uses, end.returned.FinishReasons[0] = append(end.uses, u), "tool_calls"
		}
		in, out := 100+80*n, len(chunks)
		end.returned.Usage = ae.Some(ae.Usage{InputTokens: int64(in), OutputTokens: int64(out)})
		end.returned.CostUSD = ae.Some(float64(3*in+15*out) / 1e6)
		for _, c := range append(chunks, end) {
			if ctx.Err() != nil {
				yield(chunk{}, context.Cause(ctx))
				return
			}
			if !yield(c, nil) {
				return
			}
			select {
			case <-ctx.Done():
			case <-time.After(m.pace):
			}
		}
	}
}

// pieces appends a chunk for each word of a text.
func pieces(chunks []chunk, text string, piece func(word string) chunk) []chunk {
	for word := range strings.SplitAfterSeq(text, " ") {
		chunks = append(chunks, piece(word))
	}
	return chunks
}

// tool runs a tool: one fails, one panics, one takes too long.
func (w *worker) tool(ctx context.Context, u use) (ae.JSON, error) {
	switch u.tool {
	case "search":
		return `{"hits":["CHANGELOG.md"]}`, nil
	case "fetch":
		return "", &ae.ToolError{Code: "http_503", Retryable: ae.Some(true), Err: errors.New("the server is busy")}
	case "render":
		panic("no page 1")
	case "crawl":
		ctx, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
		defer cancel()
		<-ctx.Done()
		return "", context.Cause(ctx)
	case "delegate":
		return w.delegate(ctx, u)
	case "deploy":
		if err := w.approve(ctx, u); err != nil {
			return "", err
		}
		return `{"deployed":true}`, nil
	}
	return "", errors.New("there is no such tool")
}
