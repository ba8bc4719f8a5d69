// Package otelhook shows runs of agents as OpenTelemetry traces while they go on.
//
// A [Hook] is a sink and a tracer of an emitter:
//
//	hook, err := otelhook.New(otelhook.Options{TracerProvider: provider})
//	…
//	em, err := agentevents.NewEmitter(agentevents.EmitterOptions{
//		Sinks: []agentevents.Sink{log, hook},
//	})
//
// It has no exporter and touches no global state: where spans go, how they are sampled
// and when they are flushed is the provider's. It needs the API of OpenTelemetry only.
//
// # What a trace has
//
//	host span, if the context of the run's first event has one
//	└─ invoke_workflow {run}          or invoke_agent {agent} of a run of one agent
//	   ├─ run_step {phase, node}
//	   └─ invoke_agent {agent}
//	      ├─ run_step {turn, step}
//	      ├─ chat {model}
//	      ├─ execute_tool {tool}
//	      │  └─ agentevents.approval  begins and ends when the answer comes
//	      └─ events: transitions, audits, handoffs, errors, …
//
// Parents are found by the ids of the events, not by the context. Times are the events'.
// Deltas make nothing. A session is the attribute gen_ai.conversation.id. Only model calls
// have gen_ai.usage: back ends add it up. Agents have agentevents.usage.total.
//
// Prompts, arguments, results, reasoning and texts of errors are content, and left out
// unless Options.Content is set. Names of people are always left out.
//
// With Options.MeterProvider there are metrics too: durations of runs, agents, tools and
// model calls, calls of an agent, tokens, cost, handoffs, evaluations, waits for approvals.
// Their attributes have no ids. The conventions' versions name those of model calls
// differently, so there are none with SemconvShared.
//
// # What never ends
//
// A span that does not end is never exported. So a span also ends with what it is a part
// of, with its run, when the run is idle for too long, when too many are open, and with
// [Hook.Close]. It ends at the time of its last event and says why in
// agentevents.closed.reason; it has an error then, unless the run ended well, or waits for
// people or to go on. A return that comes after that is an event, not a second span.
//
// # One trace for log and spans
//
// Every event gets the ids of its trace and its span before the log has it. A context that
// a tool is given ([Hook.Context]) puts the spans that the tool makes below its own, and
// [Environ] does so for a subprocess. With [IDGenerator] in the provider, the ids are those
// that an export of the log derives.
//
// # Bursts
//
// The batch processor of OpenTelemetry's SDK drops spans silently when its queue is full:
// a burst of 20,000 may leave 2,560. Who needs them all gives it a longer queue or lets it
// block.
package otelhook
