// Package otlpjson exports recorded logs to OpenTelemetry, with the standard library alone: as
// OTLP/JSON in a file, or to the OTLP/HTTP endpoint of a collector or a back end.
//
//	x := otlpjson.NewExporter(&otlpjson.Client{Endpoint: "http://localhost:4318"}, otlpjson.Options{})
//	for ev, err := range agentevents.NewReader(file, agentevents.ReaderOptions{}).All() {
//		…
//		err = x.Export(ctx, &ev)
//	}
//	err = x.Close(ctx)
//
// A run is a trace. Spans have the ids that the log recorded or, without these, ids derived from
// the run's ids: exported again, a log gives the same spans, which back ends that know spans by
// their ids show once. A back end that has the live spans of the run may show them twice, since the
// makers of the two differ: Jaeger does. Spans that the log leaves open, as after a crash, end with
// their last event. Nothing is dated 1970 for want of a time: see [Counts]. Only traces are
// exported: metrics of a replay would repeat the live counts.
//
// A run that another process went on with was two traces, if an OpenTelemetry hook sent it while it
// ran. It is so again if the log recorded the ids: the second trace begins with the run.resumed of
// another trace id, and links to the first; agents and calls that are open then are in both.
// Without ids a log does not show that a process released a run, and the run is one trace.
//
// Prompts, texts, arguments and results stay out of the spans unless [Options] include them.
package otlpjson
