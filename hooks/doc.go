// Package hooks has sinks that nearly every host of agents writes once: a structured
// logger and a circuit breaker.
//
// The word comes from KAOS, whose hooks (logging, cost tracking, OpenTelemetry, circuit breakers)
// observe the stream of events: concerns of all agents are not wired into each. They only observe:
// none of them refuses an event, and a failure in one is an error of that sink. Module otelhook has
// the hook for OpenTelemetry, and EmitterOptions.Guard refuses.
//
//	em, err := agentevents.NewEmitter(hooks.Breaker{
//		Limits: hooks.Limits{Tokens: 200_000, CostUSD: 1.50, WallClock: 10 * time.Minute, Failures: 4},
//		Stop:   stop,
//	}.Install(agentevents.EmitterOptions{
//		Sinks: []agentevents.Sink{log, agentevents.BestEffort(hooks.Slog{To: logger})},
//	}))
//
// Both may be called concurrently, for the runs of several emitters, and hold nothing
// global.
package hooks
