package backendtest

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// A Collector is an OpenTelemetry Collector that writes everything it receives to a file.
type Collector struct {
	// Endpoint takes OTLP by HTTP, such as http://127.0.0.1:4318. The file has every request that
	// it has answered with 200.
	Endpoint string

	file string
}

// StartCollector runs a Collector until the end of the test.
func StartCollector(t testing.TB) *Collector {
	t.Helper()
	c := &Collector{file: filepath.Join(t.TempDir(), "lines.jsonl")}
	ports := start(t, "collector", 1, func(ports []any) string {
		return fmt.Sprintf(`
receivers: {otlp: {protocols: {http: {endpoint: "127.0.0.1:%d"}}}}
exporters: {lines: {path: %q}}
service:
  telemetry: {metrics: {level: none}, logs: {level: warn}}
  pipelines:
    traces: {receivers: [otlp], exporters: [lines]}
    metrics: {receivers: [otlp], exporters: [lines]}
    logs: {receivers: [otlp], exporters: [lines]}
`, ports[0], c.file)
	}, func(ports []any) error {
		_, err := Post(fmt.Sprintf("http://127.0.0.1:%d/v1/traces", ports...), "{}")
		return err
	})
	c.Endpoint = fmt.Sprintf("http://127.0.0.1:%d", ports...)
	return c
}

// Text returns the whole file.
func (c *Collector) Text(t testing.TB) []byte {
	t.Helper()
	text, err := os.ReadFile(c.file)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// Data returns everything that the Collector has received, in its order.
func (c *Collector) Data(t testing.TB) (d Data) {
	t.Helper()
	for line := range bytes.Lines(c.Text(t)) {
		if err := d.add(line); err != nil {
			t.Fatal(err)
		}
	}
	return d
}
