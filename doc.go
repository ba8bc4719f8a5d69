// Package agentevents records what AI agents do as typed events, in an order
// that is enforced while they happen, and folds the record back into state.
//
// The emitter turns payloads into a log that keeps its own rules. The fold
// turns the same log into the same snapshot, always. They share one lifecycle
// machine, so what one accepts the other accepts.
//
//	agent runtime                                        tools, tests, resume
//	    │ Emit(ctx, payload)                                 ▲ RunSnapshot
//	    ▼                                                    │
//	┌─ Emitter ───────────────────────────────┐         ┌─ Fold ───────────────┐
//	│ check payload    (required, ranges)     │         │ same lifecycle       │
//	│ check lifecycle  (is this legal now?)   │         │ machine, then state  │
//	│ stamp            (id, sequence, time)   │         └────────▲─────────────┘
//	│ redact           (before a sink sees it)│                  │ Event
//	└──────┬──────────────────────────────────┘         ┌─ Reader ─────────────┐
//	       │ Event, in sequence order per run           │ lines to events,     │
//	       ├──► Writer (JSONL) ────── log ─────────────►│ unknown ones survive │
//	       └──► any other Sink (package live: pages)    └──────────────────────┘
//
// # A log line
//
// A log is a text file with one JSON object per line: an envelope that says
// when, where and by whom, and a payload that says what.
//
//	{"id":"01a1ffa6-…","sequence":2,"timestamp":"2026-05-05T09:00:01.200Z",
//	 │                 │            └ stamped in UTC milliseconds
//	 │                 └ per run, from 0, without gaps
//	 └ UUIDv7, minted by the emitter
//	 "type":"agent.transition","runId":"r1","agentId":"coder","step":0,
//	 └ the Kind; it decides the payload's type                └ rises when the
//	 "schemaVersion":"1.0",                                      agent thinks again
//	 "payload":{"from":"thinking","to":"tool_call"}}
//
// Absent is not zero: the line omits an optional field that is absent, and the Go field is an
// [Opt]. Raw JSON of the user keeps its bytes ([JSON]). Kinds and members that this version does
// not know survive a round trip ([Unknown]).
//
// # Writing
//
// An [Emitter] is made once, with its sinks. [Emitter.Run] gives a handle to a run, [Run.Agent] one
// to an agent, [Agent.Call] one to a tool call. One method is one event, except [Agent.To] (a path
// of transitions) and [Agent.Do] (a serial tool use). Under [LifecycleDerived], which fits most
// agents, the emitter puts the transitions that follow in front, and none is written by hand.
// [Agent.Model] gives a handle to a model call, which turns the model's stream into blocks.
// [WrapTool] makes tools of plain functions that record themselves.
//
//	log, err := agentevents.OpenFile("run.jsonl", agentevents.WriterOptions{})
//	…
//	em, err := agentevents.NewEmitter(agentevents.EmitterOptions{Sinks: []agentevents.Sink{log}})
//	…
//	run, err := em.Run("")
//	…
//	coder := run.Agent("coder")
//	err = coder.Emit(ctx, &agentevents.AgentStarted{Task: "Add /v2/health"})
//	out, err := coder.Do(ctx, &agentevents.ToolCalled{ToolID: "Read", Arguments: `{"path":"main.go"}`}, readFile)
//	err = coder.Emit(ctx, &agentevents.AgentEnded{Outcome: agentevents.OutcomeConverged})
//	err = run.Emit(ctx, &agentevents.RunCompleted{})
//
// [Run.Finish] and [Agent.Finish] close everything that is still open when a function returns, with
// an error or without.
//
// Twenty payloads are enough for most programs. The handles make those with a star:
//
//   - runs: [RunStarted], [RunCompleted], [RunFailed]*, [RunCancelled]*, [RunPaused], [RunResumed]
//   - agents: [AgentStarted], [AgentEnded], [AgentErrored], [AgentHandoff]
//   - models: [ModelCalled]*, [ModelReturned]*, [TextDelta]*, [TextCompleted]*, [AgentReasoned]*
//   - tools: [ToolCalled]*, [ToolReturned]*
//   - people: [MessageCreated], [ApprovalRequested]*, [ApprovalGranted]
//
// [Payload] lists all; the kinds of workflows, nodes, spans and plans are for runtimes that have
// these. The results of Emit may be ignored: a refusal, and an error of a sink, reach a hook of
// [EmitterOptions], or the program's log if there is none.
//
// An illegal payload is refused with a [*RuleError] that names the rule,
// the subject, its state and the legal events; nothing was recorded then. A
// [*SinkError] means that the event was recorded and a sink failed. In
// [ModeObserve] illegal events are recorded and reported.
//
// While a run is open, [Emitter.Lookup] finds it and [Run.State] tells its state. The sink of
// package live shows whole runs, in Go and over HTTP. A [Writer] writes to anything; the one in
// package logfile reports when an event is on disk, and survives crashes and full disks. Package
// hooks has a breaker for runs that use too much, and writes events to a slog.Logger.
//
// # Reading
//
// A [Reader] yields the events of a log. A bad line is a [*LineError] with
// line, offset and JSON pointer, and reading goes on. A [Fold] makes a
// [RunSnapshot] of them: statuses, tool calls, messages once each, usage
// counted once, and every violation of a rule. [FoldLog] does it for a log of
// many runs, on several cores if asked. Snapshots are JSON documents; [ResumeFold]
// and [Emitter.Resume] go on from one.
//
// Logs of the five source documents, and of AG-UI, are read by decoders of the packages below
// dialect, which a Reader is given, and written by their encoders.
//
// # Guarantees
//
//   - Accepted logs have no gaps, and every sink sees the events of a run in
//     sequence order, one at a time. Different runs do not wait for each other.
//   - The fold accepts every event that the emitter accepted; folding in pieces, or after encoding
//     and decoding, gives the same snapshot.
//   - A reader reads every event that an emitter accepted: text that is not JSON, and content that
//     is too long for a line, is recorded in another form ([JSON], EmitterOptions.MaxLine).
//   - Text is redacted before the rules keep any of it, and before tracer and sinks see it; only
//     EmitterOptions.Guard sees the original text. The deltas of a block are redacted as one text
//     ([Policy]; [Policy.Redact] for other logs).
//   - A cancelled context loses no event. A panicking sink is an error.
//   - Illegal, dropped, lossy or unknown is always visible: as an error, a
//     violation, a mark, a count.
//
// # Words
//
//   - event: an envelope and a payload; one line of a log. A [Kind] is its type on
//     the wire.
//   - emit: to hand a payload to the library. The emitter accepts or refuses it; a sink receives
//     the accepted event; a [Writer] appends its line.
//   - rule: a condition that the events of a run keep. A violation is an event that breaks one.
//   - subject: the run, agent, call or other thing that an event is about. A kind opens, feeds,
//     closes its subject or is a point of it: that is its [Role].
//   - machine: the state that the rules are about, the same in emitter and fold.
//   - snapshot: the state that a fold makes of a log, and goes on from.
//   - step: the counter in the envelope. KAOS's step is [StepStarted].
//   - call: one use of a tool; model call: one request to a model; attempt: one start
//     of an agent.
//   - block: a text that comes in deltas; a whole block replaces its deltas.
//   - droppable: an event that a log may omit without changing the snapshot, such as a delta.
//   - extra: a member of a line that no field holds. Unknown: a kind that the
//     catalog does not have.
//   - dialect: the format of another document; loss: a part of an event that its line in a dialect
//     cannot carry back.
//
// # Sources
//
// The vocabulary is the union of five documents. Doc comments name the
// variants a struct mirrors, by these names:
//
//   - KAHN: the Agent Transition Event Schema of KAHN
//   - wiki: Observability and Event Model of the Multi-Agent Wiki
//   - KAOS: Events and spans of KAOS
//   - resume spec: the Agent Observability & Resume Specification
//   - OpenWOP: RFC 0002, Agent Identity and Reasoning Events
//
// # Reading the source
//
// event.go, catalog.go, lifecycle.go, rules.go, emitter.go, emit.go, jsonl.go,
// fold.go, in this order. From an error to its code: the rule's constant stands
// beside the function that refuses.
package agentevents
