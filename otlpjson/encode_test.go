package otlpjson

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/internal/spans"
)

func sampleSpan() *spans.Span {
	at := time.Date(2026, 1, 2, 10, 0, 0, 123456789, time.UTC)
	return &spans.Span{
		TraceID: spans.TraceID{0: 0xab, 15: 1}, ID: spans.SpanID{7: 2}, Parent: &spans.Span{ID: spans.SpanID{7: 9}},
		Name: `execute_tool "x"`, Kind: spans.KindClient, Start: at, End: at.Add(time.Millisecond),
		Attributes: []spans.Attr{
			{Key: "s", Text: "a\nb"}, {Key: "b", Value: true}, {Key: "i", Value: int64(math.MinInt64)}, {Key: "f", Value: 0.5},
			{Key: "nan", Value: math.NaN()}, {Key: "inf", Value: math.Inf(1)}, {Key: "ninf", Value: math.Inf(-1)},
			{Key: "l", Value: []string{"x", "y"}}, {Key: "none", Value: []string(nil)}, {Key: "odd", Value: struct{}{}},
		},
		Points:        []spans.Point{{Name: "p", Time: at, Attributes: []spans.Attr{{Key: "k", Text: "v"}}}, {Name: "q", Time: at}},
		DroppedPoints: 3,
		Links:         []spans.Link{{TraceID: spans.TraceID{15: 5}, SpanID: spans.SpanID{7: 6}, Attributes: []spans.Attr{{Key: "k", Text: "v"}}}},
		Status:        spans.StatusError, Description: "it failed",
	}
}

func TestAppendSpan(t *testing.T) {
	require.Equal(t, strings.Join([]string{`{"traceId":"ab000000000000000000000000000001","spanId":"0000000000000002","parentSpanId":"0000000000000009"`,
		`"flags":257,"name":"execute_tool \"x\"","kind":3,"startTimeUnixNano":"1767348000123456789","endTimeUnixNano":"1767348000124456789"`,
		`"attributes":[{"key":"s","value":{"stringValue":"a\nb"}}`, `{"key":"b","value":{"boolValue":true}}`,
		`{"key":"i","value":{"intValue":"-9223372036854775808"}}`, `{"key":"f","value":{"doubleValue":0.5}}`,
		`{"key":"nan","value":{"doubleValue":"NaN"}}`, `{"key":"inf","value":{"doubleValue":"Infinity"}}`, `{"key":"ninf","value":{"doubleValue":"-Infinity"}}`,
		`{"key":"l","value":{"arrayValue":{"values":[{"stringValue":"x"},{"stringValue":"y"}]}}}`,
		`{"key":"none","value":{"arrayValue":{"values":[]}}}`, `{"key":"odd","value":{}}]`,
		`"events":[{"timeUnixNano":"1767348000123456789","name":"p","attributes":[{"key":"k","value":{"stringValue":"v"}}]}`,
		`{"timeUnixNano":"1767348000123456789","name":"q"}]`, `"droppedEventsCount":3`,
		`"links":[{"traceId":"00000000000000000000000000000005","spanId":"0000000000000006","attributes":[{"key":"k","value":{"stringValue":"v"}}]}]`,
		`"status":{"code":2,"message":"it failed"}}`}, ","), string(appendSpan(nil, sampleSpan())))

	at := time.Unix(1, 0)
	root := &spans.Span{TraceID: spans.TraceID{1}, ID: spans.SpanID{2}, Name: "r", Kind: spans.KindInternal, Start: at, End: at}
	require.Equal(t, `{"traceId":"01000000000000000000000000000000","spanId":"0200000000000000","flags":257,"name":"r","kind":1,`+
		`"startTimeUnixNano":"1000000000","endTimeUnixNano":"1000000001"}`, string(appendSpan(nil, root)))
	root.ParentID, root.Remote = spans.SpanID{3}, true
	require.Contains(t, string(appendSpan(nil, root)), `"parentSpanId":"0300000000000000","flags":769,`)
}

func TestAppendTime(t *testing.T) {
	for _, test := range []struct {
		t    time.Time
		want string
	}{
		{time.Time{}, `"0"`},
		{time.Unix(-1, 999), `"0"`},
		{time.Unix(0, 7), `"7"`},
		{time.Unix(9223372035, 999999999), `"9223372035999999999"`},
		{time.Unix(9223372036, 0), `"9223372036854775807"`},
		{time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC), `"9223372036854775807"`},
	} {
		require.Equal(t, test.want, string(appendTime(nil, test.t)))
	}
}

func TestFrame(t *testing.T) {
	head, tail := frame(&Options{Service: "s", Resource: map[string]string{"z": "2", "a": "1"}})
	require.Equal(t, `{"resourceSpans":[{"resource":{"attributes":[{"key":"a","value":{"stringValue":"1"}},{"key":"service.name","value":{"stringValue":"s"}},`+
		`{"key":"z","value":{"stringValue":"2"}}]},"scopeSpans":[{"scope":{"name":"github.com/agentevents/agentevents/otlpjson"},"spans":[]}]}]}`, string(head)+string(tail))
	head, tail = frame(&Options{Service: "s", Semconv: "1.41.0"})
	require.True(t, json.Valid(append(head, tail...)))
	require.Equal(t, `],"schemaUrl":"https://opentelemetry.io/schemas/1.41.0"}]}]}`, string(tail))
}

// A sent is a Sender that keeps the sent data.
type sent struct {
	requests []string
	errs     []error // of the requests in order; nil after that
}

func (s *sent) Send(_ context.Context, request []byte) error {
	s.requests = append(s.requests, string(request))
	if n := len(s.requests) - 1; n < len(s.errs) {
		return s.errs[n]
	}
	return nil
}

func TestBatches(t *testing.T) {
	span := sampleSpan()
	size := len(appendSpan(nil, span))
	head, tail := frame(&Options{Service: "agentevents"})
	empty := len(head) + len(tail)
	for _, test := range []struct {
		o    Options
		add  int
		want []int // spans in the requests
	}{
		{Options{}, 0, nil},
		{Options{}, 513, []int{512, 1}},
		{Options{MaxSpans: 2}, 5, []int{2, 2, 1}},
		{Options{MaxBytes: empty + 3*size + 2}, 4, []int{3, 1}},
		{Options{MaxBytes: empty + 3*size + 1}, 4, []int{2, 2}},
		{Options{MaxBytes: 1}, 2, []int{1, 1}},
	} {
		var to sent
		x := NewExporter(&to, test.o)
		for range test.add {
			x.add(span)
		}
		require.NoError(t, x.Close(t.Context()))
		require.NoError(t, x.Close(t.Context()), "again")
		var got []int
		for _, request := range to.requests {
			require.True(t, json.Valid([]byte(request)), request)
			got = append(got, strings.Count(request, `"spanId":"0000000000000002"`))
		}
		require.Equal(t, test.want, got, "%+v", test.o)
		require.Equal(t, test.add, x.Counts().Spans)
		require.Equal(t, len(test.want), x.Counts().Requests)
	}
}

func TestFlush(t *testing.T) {
	var to sent
	x := NewExporter(&to, Options{})
	require.NoError(t, x.Flush(t.Context()))
	require.Empty(t, to.requests)
	x.add(sampleSpan())
	require.NoError(t, x.Flush(t.Context()))
	require.Len(t, to.requests, 1)
	x.add(sampleSpan())
	require.NoError(t, x.Close(t.Context()))
	require.Equal(t, to.requests[0], to.requests[1])
	require.Equal(t, 2, x.Counts().Spans)

	down := errors.New("down")
	x = NewExporter(&sent{errs: []error{down}}, Options{})
	x.add(sampleSpan())
	require.ErrorIs(t, x.Flush(t.Context()), down)
	require.ErrorIs(t, x.Close(t.Context()), down)
}

func TestExporterErrors(t *testing.T) {
	to := sent{errs: []error{&PartialError{2, "first"}, nil, &PartialError{1, "second"}}}
	x := NewExporter(&to, Options{MaxSpans: 1})
	for range 4 {
		x.add(sampleSpan())
	}
	require.Equal(t, &PartialError{3, "first"}, x.Close(t.Context()))
	require.Equal(t, Counts{Spans: 4, Requests: 4, Rejected: 3}, x.Counts())
	require.EqualError(t, x.refused, "the endpoint refused 3 spans: first")

	down := errors.New("down")
	to = sent{errs: []error{nil, down}}
	x = NewExporter(&to, Options{MaxSpans: 1})
	for range 5 {
		x.add(sampleSpan())
	}
	require.ErrorIs(t, x.Export(t.Context(), nil), down)
	require.ErrorIs(t, x.Close(t.Context()), down)
	require.Len(t, to.requests, 2, "nothing is sent after a loss")
	require.Equal(t, 1, x.Counts().Spans)

	// An error at the start is not an export without data.
	for want, x := range map[string]*Exporter{
		"the sender is nil":                    NewExporter(nil, Options{}),
		`otlpjson.Options.Semconv is "1.40.0"`: NewExporter(&to, Options{Semconv: "1.40.0"}),
		"otlpjson.Options.ContentBytes is -1":  NewExporter(&to, Options{ContentBytes: -1}),
		"otlpjson.Options.MaxSpans is -1":      NewExporter(&to, Options{MaxSpans: -1}),
		"otlpjson.Options.MaxBytes is -1":      NewExporter(&to, Options{MaxBytes: -1}),
	} {
		require.ErrorContains(t, x.Export(t.Context(), nil), want)
		require.ErrorContains(t, x.Flush(t.Context()), want)
		require.ErrorContains(t, x.Close(t.Context()), want)
	}
	x = NewExporter(&to, Options{})
	require.NoError(t, x.Close(t.Context()))
	require.NoError(t, x.Close(t.Context()))
	require.ErrorIs(t, x.Export(t.Context(), nil), agentevents.ErrClosed)
	require.Zero(t, x.Counts().Events)
}
