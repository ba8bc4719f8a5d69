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
// It has no exporter and touches no global state: the provider decides where spans go, how they are
// sampled and when they are flushed. It needs the API of OpenTelemetry only, v1.44.0 or later.
//
// # The shape of a trace
//
//	host span, if the context of the run's first event has one
//	└─ invoke_workflow {run}          or invoke_agent {agent} of a run of one agent
//	   ├─ run_step {phase, node}
//	   └─ invoke_agent {agent}
//	      ├─ run_step {turn, step}
//	      ├─ chat {model}
//	      ├─ execute_tool {tool}
//	      │  └─ agentevents.approval  begins and ends when the answer comes
//	      ├─ agentevents.handoff      begins and ends when the handoff is accepted or fails
//	      └─ events: transitions, audits, handoffs, errors, …
//
// Parents are found by the ids of the events, not by the context. Times are the events'.
// Deltas make nothing. A session is the attribute gen_ai.conversation.id. An agent's usage is
// agentevents.usage.total; it is gen_ai.usage as well only if no model call below has that:
// back ends add it up.
//
// The root is the run's and never an agent's: agents, their attempts and workflows are siblings
// below it. An attempt is linked to the one before and has agentevents.agent.attempt, a node is linked
// to the nodes whose edges lead to it.
//
// A log without run.started, of another system, that begins with a turn has the turn as its root,
// which ends with the turn's summary. Each further turn is a trace of its own, linked to the one
// before. Any other has a root with agentevents.made_up: it begins with the first event, and ends with
// the session or the last event. An agent that acts without a start has such a span as well. Neither
// enters the metrics of durations.
//
// An end whose start is missing makes a span that lasts as long as the end states; without that
// it has no duration, and agentevents.start.unknown. Where an event has no time a duration that its end
// states is the span's, with agentevents.time.stated, else the span has agentevents.start.unknown or
// agentevents.end.unknown. A span has agentevents.end.made_up if no line of the source tells its end.
// Attributes that an event carries beside its fields
// are agentevents.attribute.NAME; texts among them are content.
//
// Prompts, arguments, results, reasoning and texts of errors are content, and left out unless
// Options.Content, or the variable of OpenTelemetry that it names, is set. Reasoning needs an
// option of its own. Names of people, and values of state and memory, are always left out.
//
// With Options.Logs the events are log records with an event name in place of events of spans: each
// has the ids of its span, its run, session and agent. Content has structure there. The content of
// a model call is the record gen_ai.client.inference.operation.details, the content of other spans
// agentevents.span.details. OpenTelemetry's logs are stable from v1.47.0 on. So they are a module
// of their own, otelhook/otellogs, and a program with an earlier version has the rest:
//
//	Logs: otellogs.New(loggerProvider),
//
// Frameworks and clients of models make spans of their own. Where the context of Emit has one for
// the same work (the same operation on the same agent, tool or model), the hook makes none: it puts
// its attributes on that one, and its ids into the log. The maker of that span decides on the names
// of the conventions and their metrics. The hook recognises spans of the SDK, and not those of
// another implementation of the API.
//
// With Options.MeterProvider there are metrics too: durations of runs, agents, tools and model
// calls, calls of an agent, tokens, cost, handoffs, evaluations, waits for approvals. Their
// attributes have no ids. The conventions' versions differ in their names for model calls, so
// SemconvShared has no metrics.
//
// # Spans that never end
//
// A span that does not end is never exported. So a span also ends with the span that it is a part
// of, with its run, when the run is idle for too long, when too many are open, and with
// [Hook.Close]. It ends at the time of its last event and has the reason in
// agentevents.closed.reason; it has an error then, unless its run and its agent ended well, or the run
// waits for people or to go on. Its duration enters no metric. A call may outlive its agent: its span
// ends with its return. A return after the run's end is an event, not a second span.
//
// A span may begin or end after its parent has ended, as the span of a call or an agent that works on in the
// background, or begin before its parent, as a wait, an agent or a call that is older than the resumed
// run's root: everything that is open when the run is resumed has a span in both traces. Jaeger's
// pages report that as clock skew, unless the resource has the attribute ip: spans of one address
// share a clock.
//
// # One trace for log and spans
//
// Every event gets the ids of its trace and its span before the log has it. The context of a tool
// ([Hook.Context]) puts the spans that the tool makes below its own, and [Environ] does so for a
// subprocess. With [IDGenerator] in the provider, the ids are those that an export of the log
// derives.
//
// # Bursts
//
// The batch processor of OpenTelemetry's SDK drops spans silently when its queue is full: a burst
// of 20,000 may leave 2,560. Stats.Spans counts the hook's spans; if fewer arrive, some were
// dropped. With OTEL_GO_X_OBSERVABILITY=true the SDK counts them itself, at the global
// MeterProvider: otel.sdk.processor.span.processed with error.type queue_full. To keep them all,
// give the processor a longer queue (WithMaxQueueSize) or let it block (WithBlocking).
package otelhook
