package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A pageLog writes the lines of a run of an agent.
type pageLog struct {
	strings.Builder
	run string
	n   int
	at  time.Time
}

func (p *pageLog) line(kind, payload string) {
	p.at = p.at.Add(time.Second)
	fmt.Fprintf(p, `{"id":"%s-%d","sequence":%d,"timestamp":%q,"type":%q,"runId":%q,"agentId":"coder","schemaVersion":"1.0","payload":%s}`+"\n",
		p.run, p.n, p.n, p.at.Format(time.RFC3339), kind, p.run, payload)
	p.n++
}

func (p *pageLog) call(tool, arguments, status, result string) {
	id := fmt.Sprintf("c%d", p.n)
	p.line("agent.toolCalled", fmt.Sprintf(`{"callId":%q,"toolId":%q,"arguments":%s}`, id, tool, arguments))
	p.line("agent.toolReturned", fmt.Sprintf(`{"callId":%q,"toolId":%q,"status":%q,"result":%q}`, id, tool, status, result))
}

func (p *pageLog) model(tokens int) {
	p.line("model.returned", fmt.Sprintf(`{"modelCallId":"m%d","model":"large","oneEvent":true,"usage":{"inputTokens":%d,"outputTokens":0},"costUsd":%g}`, p.n, tokens, float64(tokens)/100_000))
}

// pageRuns are the runs of which docs/findings.md shows the findings.
var pageRuns = []struct {
	run   string
	write func(*pageLog)
}{
	{"loop", func(p *pageLog) {
		for range 4 {
			p.model(20_000)
			p.call("Read", `{"path":"go.mod"}`, "ok", "module m")
		}
	}},
	{"polling", func(p *pageLog) {
		for i := range 9 {
			p.call("job_status", `{"job":7}`, "ok", fmt.Sprintf("%d %%", 10*i))
		}
	}},
	{"turns", func(p *pageLog) {
		for range 3 {
			p.call("Search", `{"query":"main"}`, "ok", "nothing")
			p.call("List", `{"path":"cmd"}`, "ok", "main.go")
		}
	}},
	{"retry", func(p *pageLog) {
		for range 3 {
			p.call("Bash", `{"command":"make"}`, "error", "no rule to make target")
		}
	}},
	{"fails", func(p *pageLog) {
		for i := range 5 {
			p.call("Edit", fmt.Sprintf(`{"path":"f%d.go"}`, i), "error", fmt.Sprint("no match: ", string(rune('a'+i))))
		}
	}},
	{"hung", func(p *pageLog) {
		p.model(100)
		p.at = p.at.Add(40 * time.Minute)
		p.model(100)
	}},
	{"full", func(p *pageLog) {
		p.model(120_000)
		p.model(170_000)
	}},
}

// The page about findings shows the lines that the command prints.
func TestFindingsPage(t *testing.T) {
	var log strings.Builder
	for _, r := range pageRuns {
		p := &pageLog{run: r.run, at: time.Date(2026, 5, 5, 9, 0, 0, 0, time.UTC)}
		p.line("agent.started", `{"task":"look"}`)
		r.write(p)
		p.line("agent.ended", `{"outcome":"converged"}`)
		log.WriteString(p.String())
	}
	got := exec(log.String(), "findings", "--context-tokens", "200000", "-")
	require.Empty(t, got.err)
	require.NotContains(t, got.out, "polling")
	page := read(t, "../../docs/findings.md")
	for _, line := range strings.Split(strings.TrimSpace(got.out), "\n") {
		require.Contains(t, page, "\n"+line+"\n")
	}
	_, rate, _ := strings.Cut(exec(log.String(), "stats", "-").out, "finding rate")
	rate, _, _ = strings.Cut(rate, "\n")
	require.Contains(t, page, "\nfinding rate"+rate+"\n")
}
