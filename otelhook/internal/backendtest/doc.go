// Package backendtest runs real back ends of OpenTelemetry for tests: a Collector, which
// writes all that it is sent to a file, and Jaeger, which keeps traces and answers
// questions about them.
//
//	jaeger := backendtest.StartJaeger(t)
//	… export spans to jaeger.Endpoint …
//	trace := jaeger.Trace(t, id, 12)
//	fmt.Print(trace.Tree())
//
// They listen on free ports of the loopback interface, keep nothing, and end with the
// test, also when the test process is killed. Their binaries come from tools/build; a test
// is skipped where they are absent.
//
// It is a module of its own, as its tests need exporters, which otelhook must not need.
package backendtest
