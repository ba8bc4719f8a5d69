package kaos

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect"
	"github.com/agentevents/agentevents/dialect/dialecttest"
)

func suite(o Options, eo EncoderOptions) dialecttest.Dialect {
	return dialecttest.Dialect{
		Name:    Name,
		Decoder: func() agentevents.Decoder { return NewDecoder(o) },
		Encoder: func() dialect.Encoder { return NewEncoder(eo) },
		Strict: func() agentevents.Decoder {
			strict := o
			strict.Strict = true
			return NewDecoder(strict)
		},
		// The number of a line stays with its event.
		Ignore: []string{"/kaos/sequence"},
	}
}

func TestSuite(t *testing.T) {
	d := suite(testOptions, encoderOptions)
	for _, g := range goldens {
		d.Golden = append(d.Golden, dialecttest.Golden{Name: g.name, Lines: g.line, Events: []agentevents.Event{g.event()}, Build: true})
	}
	dialecttest.Run(t, d)
}

// Without an anchor, the times and the remark on the first event of a run are all
// that differs.
func TestWithoutAnchor(t *testing.T) {
	dialecttest.RunLog(t, func() dialecttest.Dialect {
		d := suite(Options{}, EncoderOptions{})
		d.Ignore = append(d.Ignore, "/kaos/~1timestamp")
		return d
	}(), dialecttest.StandardRun("run-1"))
	var lines []string
	for _, g := range goldens {
		lines = append(lines, g.line, strings.TrimSuffix(g.line, "}")+`,"x":1}`)
	}
	for _, line := range lines {
		ev, want := decodeOne(t, Options{}, line), decodeOne(t, testOptions, line)
		require.Equal(t, line+"\n", encodeOne(t, EncoderOptions{}, ev))
		native, err := ev.AppendJSON(nil)
		require.NoError(t, err)
		var back agentevents.Event
		require.NoError(t, back.UnmarshalJSON(native))
		require.Equal(t, line+"\n", encodeOne(t, EncoderOptions{}, back))

		blank := strings.Replace(line, `,"`, `, "`, 1) + "\n"
		for read, err := range agentevents.NewReader(strings.NewReader(blank), agentevents.ReaderOptions{Decoder: NewDecoder(Options{}), Verbatim: true}).All() {
			require.NoError(t, err)
			e := NewEncoder(EncoderOptions{})
			out, err := e.Append(nil, read)
			require.NoError(t, err)
			require.Equal(t, blank, string(out))
			require.Empty(t, e.Losses())
		}

		extra := string(want.Extra(string(Name)))
		if extra == "" {
			extra = "{}"
		}
		extra = strings.Replace(strings.TrimSuffix(extra, "}")+`,"/timestamp":"monotonic"}`, "{,", "{", 1)
		require.NoError(t, want.SetExtra(string(Name), agentevents.JSON(extra)))
		want.Time = want.Time.Add(time.Unix(1000, 0).Sub(anchor))
		require.Equal(t, want, ev, line)
	}
}

// A frame is its line with an event and an id, and has the same losses, for every
// kind. A frame that is torn before the end of its data is an error; after it, it is
// the event.
func TestFramesHaveTheEventsOfLines(t *testing.T) {
	frames := encoderOptions
	frames.SSE = true
	dialecttest.RunLog(t, suite(testOptions, frames), dialecttest.StandardRun("run-1"))
	var events []agentevents.Event
	for _, g := range goldens {
		events = append(events, decodeOne(t, testOptions, g.line), g.event())
	}
	for info := range agentevents.Kinds() {
		events = append(events, dialecttest.Minimal(info.Kind), dialecttest.Filled(info.Kind))
	}
	read := func(log string) (list []agentevents.Event, failed bool) {
		for ev, err := range agentevents.NewReader(strings.NewReader(log), agentevents.ReaderOptions{Decoder: NewDecoder(testOptions)}).All() {
			if err != nil {
				failed = true
				continue
			}
			ev.ID = "" // derived from the text of the line
			list = append(list, ev)
		}
		return list, failed
	}
	for _, ev := range events {
		e, f := NewEncoder(encoderOptions), NewEncoder(frames)
		line, err := e.Append(nil, ev)
		frame, ferr := f.Append(nil, ev)
		require.Equal(t, err, ferr)
		require.Equal(t, e.Losses(), f.Losses())
		if err != nil {
			continue
		}
		text := strings.TrimSuffix(string(line), "\n")
		lines := strings.Split(text, "\n") // the end of an agent has two
		require.Equal(t, sse(lines...), string(frame))
		want, _ := read(text)
		got, failed := read(string(frame))
		require.Equal(t, want, got)
		require.False(t, failed)

		if len(lines) > 1 {
			continue
		}
		data := strings.Index(string(frame), "data: ")
		for n := 1; n < len(frame); n += 5 {
			list, failed := read(string(frame[:n]))
			whole := n >= data+len("data: ")+len(text)
			require.Equal(t, whole, len(list) == 1, "%s", frame[:n])
			require.True(t, whole || failed, "%s", frame[:n])
		}
	}
}
