// Package hooks has sinks that nearly every host of agents writes once.
//
// The word is that of KAOS, whose hooks (logging, cost tracking, OpenTelemetry, circuit
// breakers) observe the stream of events: what concerns all agents is not wired into each.
package hooks
