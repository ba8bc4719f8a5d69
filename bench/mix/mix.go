// Package mix makes the log for the benchmarks of folds: many runs of four agents,
// written by the library itself. It has the proportions of a coding agent at work: 35 %
// text deltas, 22 % transitions, 22 % tool returns of 0.2 to 1.2 KB, 16 % tool calls
// with nested arguments, 5 % everything else. It has every kind of the catalog. The same
// options give the same bytes.
package mix

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"time"

	ae "github.com/agentevents/agentevents"
)

// Options set the size of the log.
type Options struct {
	Lines int // the minimum; the log is a little longer, because runs end after it
	Runs  int
}

// Standard is the size of the log in the benchmarks.
var Standard = Options{Lines: 100_000, Runs: 200}

const (
	agentsPerRun = 4
	openRuns     = 8 // runs at the same time
)

// Write writes the log to w.
func Write(w io.Writer, o Options) error {
	g := &generator{rng: rand.New(rand.NewPCG(1, 2)), now: time.Date(2026, 5, 5, 9, 0, 0, 0, time.UTC)}
	em, err := ae.NewEmitter(ae.EmitterOptions{
		Lifecycle: ae.LifecycleStrict,
		Sinks:     []ae.Sink{ae.NewWriter(w, ae.WriterOptions{BufferSize: 256 << 10})},
		Clock:     func() time.Time { return g.now },
		NewID:     g.id,
	})
	if err != nil {
		return err
	}
	var open []*script
	begun := 0
	for {
		for len(open) < openRuns && begun < o.Runs {
			s, err := g.begin(em, begun)
			if err != nil {
				return err
			}
			open = append(open, s)
			begun++
		}
		if len(open) == 0 {
			return em.Close(context.Background())
		}
		i := g.rng.IntN(len(open))
		s := open[i]
		s.cycle()
		// A run ends when it has its share of the lines.
		if s.lines >= o.Lines/o.Runs {
			s.end()
			open[i] = open[len(open)-1]
			open = open[:len(open)-1]
		}
		if s.err != nil {
			return fmt.Errorf("run %d: %w", s.number, s.err)
		}
	}
}

// A generator is the state that the scripts share.
type generator struct {
	rng   *rand.Rand
	now   time.Time
	ids   uint64
	scene int // number of the next scene
}

// id returns a new id of the length of a UUID.
func (g *generator) id() string {
	g.ids++
	return fmt.Sprintf("%08x-%04x-7%03x-8a2b-%012x",
		uint32(g.now.UnixMilli()>>16), uint16(g.now.UnixMilli()), g.ids&0xfff, g.ids)
}

// A script plays one run.
type script struct {
	g      *generator
	number int
	run    *ae.Run
	agents []*ae.Agent
	turns  []int // cycles of each agent
	cycles int
	lines  int
	err    error
}

var roles = [agentsPerRun]string{"planner", "coder", "reviewer", "researcher"}

func (g *generator) begin(em *ae.Emitter, number int) (*script, error) {
	run, err := em.Run(fmt.Sprintf("run-%05d", number))
	if err != nil {
		return nil, err
	}
	s := &script{g: g, number: number, run: run, turns: make([]int, agentsPerRun)}
	if number%4 == 0 {
		s.emit(&ae.SessionStarted{Goal: "Ship the health endpoint"})
	}
	s.emit(&ae.RunStarted{
		Name: "release", Inputs: `{"branch":"main","dryRun":false}`,
		Definition: `{"nodes":["plan",{"id":"build"},{"id":"deploy"}],"edges":[{"id":"e1","from":"plan","to":"build"},{"id":"e2","from":"build","to":"deploy"}],"state":{"open":[]}}`,
	})
	for i, role := range roles {
		a := run.Agent(role)
		s.agents = append(s.agents, a)
		s.by(i, &ae.AgentStarted{
			Agent: ae.Some(ae.AgentRef{AgentID: role, ModelClass: "coding"}), Task: "Add /v2/health", Model: "claude-sonnet-4-5",
		})
	}
	return s, s.err
}

func (s *script) end() {
	for i := range s.agents {
		p := &ae.AgentEnded{
			Outcome: ae.OutcomePartial, Result: "Added /v2/health with a test.",
			Duration: ae.Some(65 * time.Second), NumTurns: ae.Some(s.turns[i]),
			Usage:        ae.Some(ae.Usage{InputTokens: 41250, OutputTokens: 1830, CacheReadInputTokens: ae.Some[int64](38000)}),
			TotalCostUSD: ae.Some(0.1512),
		}
		s.by(i, p)
	}
	switch s.number % 16 {
	case 5:
		s.emit(&ae.RunFailed{Error: ae.Some(ae.ErrorInfo{Code: "build_failed", Message: "go build: exit status 1"})})
	case 6:
		s.emit(&ae.RunCancelled{Reason: "superseded"})
	default:
		s.emit(&ae.RunCompleted{Outputs: `{"version":"2.4.0"}`})
	}
	if s.number%4 == 0 {
		s.emit(&ae.SessionCompleted{Status: "completed", Result: `{"pullRequest":812}`})
	}
}

// emit records an event of the run, and by one of agent i.
func (s *script) emit(p ae.Payload)      { s.record(ae.Event{Payload: p}) }
func (s *script) by(i int, p ae.Payload) { s.record(ae.Event{AgentID: s.agents[i].ID(), Payload: p}) }

func (s *script) record(ev ae.Event) {
	if s.err != nil {
		return
	}
	s.g.now = s.g.now.Add(time.Duration(1+s.g.rng.IntN(900)) * time.Millisecond / 10)
	s.lines++
	if ev.AgentID != "" {
		_, s.err = s.run.Agent(ev.AgentID).Record(context.Background(), ev)
	} else {
		_, s.err = s.run.Record(context.Background(), ev)
	}
}

// cycle is one round of an agent through the lifecycle. The agent talks, calls three or
// four tools, reports one or two calls that happened elsewhere, and reflects.
func (s *script) cycle() {
	g := s.g
	i := g.rng.IntN(agentsPerRun)
	s.cycles++
	s.turns[i]++
	block := fmt.Sprintf("%s-msg-%d", roles[i], s.turns[i])
	var text string
	for range 8 {
		d := deltas[g.rng.IntN(len(deltas))]
		text += d
		s.by(i, &ae.TextDelta{BlockID: block, Delta: d})
	}
	if s.turns[i]%2 == 0 { // every other block also comes whole
		s.by(i, &ae.TextCompleted{BlockID: block, Text: text})
	}
	if s.cycles%8 == 0 {
		scenes[g.scene%len(scenes)](s, i)
		g.scene++
	}
	s.move(i, ae.StatusThinking, ae.StatusToolCall, "tool_call:Bash")
	calls := 3
	if g.rng.IntN(100) < 62 {
		calls = 4
	}
	for range calls {
		s.tool(i)
	}
	for range 5 - calls {
		s.by(i, &ae.ToolReturned{
			CallID: g.id(), ToolID: "Bash", Status: ae.ToolStatusOK,
			ResultSummary: g.output(), Duration: ae.Some(g.duration()), OneEvent: true,
			ArgumentsSummary: "go test ./...",
		})
	}
	s.move(i, ae.StatusToolCall, ae.StatusToolResult, "tool_result:Bash")
	s.move(i, ae.StatusToolResult, ae.StatusResponse, "response")
	s.move(i, ae.StatusResponse, ae.StatusReflect, "reflect")
	s.move(i, ae.StatusReflect, ae.StatusThinking, "next step")
}

func (s *script) move(i int, from, to ae.AgentStatus, reason string) {
	s.by(i, &ae.AgentTransition{From: from, To: to, Reason: reason})
}

// tool records a call and its return. One call in nine fails.
func (s *script) tool(i int) {
	g := s.g
	id := "toolu_" + g.id()[24:]
	tool := tools[g.rng.IntN(len(tools))]
	s.by(i, &ae.ToolCalled{CallID: id, ToolID: tool, Arguments: arguments[g.rng.IntN(len(arguments))]})
	p := &ae.ToolReturned{
		CallID: id, ToolID: tool, Status: ae.ToolStatusOK, ResultSummary: g.output(), Duration: ae.Some(g.duration()),
	}
	if g.rng.IntN(9) == 0 {
		p.Status, p.Error = ae.ToolStatusError, ae.Some(ae.ErrorInfo{Code: "exit", Message: "exit status 1"})
	}
	s.by(i, p)
}

func (g *generator) duration() time.Duration {
	return time.Duration(g.rng.IntN(4_000_000)) * time.Microsecond
}

var tools = []string{"Bash", "Read", "db:query", "fs:write_file", "web:fetch"}

var deltas = []string{
	"I'll start by ", "reading the router, ", "and then the next few words ", "of the handler ", "in `api/router.go`", ". It is small; ",
	"a test\nfollows", " — naïve, but enough ", "for a first version of the thing.",
}

// arguments are nested values of about 330 bytes.
var arguments = []ae.JSON{
	`{"query":"select id, title from docs where title match ?","params":["agent events",42,true,null],"options":{"limit":50,"offset":0,"order":[{"by":"score","dir":"desc"},{"by":"id","dir":"asc"}],"timeoutMs":1500.5},"context":{"repo":"example/agentevents","ref":"refs/heads/main","paths":["internal/wire","cmd"],"depth":3}}`,
	`{"command":"go test -race -run 'TestHealth' ./api/... 2>&1 | tail -n 40","description":"Run the tests of the package with the race detector","timeout":120000,"env":{"CGO_ENABLED":"1","GOFLAGS":"-count=1","TMPDIR":"/tmp/build"},"limits":{"cpu":2,"memoryMb":2048,"network":false},"tags":["test","race",{"retry":0}]}`,
	`{"file_path":"/src/api/health.go","edits":[{"old":"return nil","new":"if r.Method != http.MethodGet {\n\thttp.Error(w, \"method\", 405)\n\treturn\n}","count":1},{"old":"// to be done","new":"","count":2}],"create":false,"mode":420,"backup":{"keep":3,"suffix":".orig"},"checks":["gofmt","vet","build"]}`,
}

// output returns the text of a tool. A third of the texts are full of newlines and
// quotes, and an eighth are not ASCII.
func (g *generator) output() string {
	size := 200 + g.rng.IntN(1000)
	text := plainOutput
	switch n := g.rng.IntN(24); {
	case n < 8:
		text = escapedOutput
	case n < 11:
		text = foreignOutput
	}
	start := g.rng.IntN(len(text) - size)
	for start > 0 && text[start]&0xc0 == 0x80 {
		start--
	}
	end := start + size
	for end < len(text) && text[end]&0xc0 == 0x80 {
		end++
	}
	return text[start:end]
}
