package dialect_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect"
)

// pieces makes an event of every line it is given, and one at the end.
type pieces struct{ lines int }

func (p *pieces) Decode(dst []agentevents.Event, line []byte) ([]agentevents.Event, error) {
	p.lines++
	return append(dst, agentevents.Event{Payload: &agentevents.RunPaused{Reason: string(line)}}), nil
}

func (p *pieces) End(dst []agentevents.Event) ([]agentevents.Event, error) {
	return append(dst, agentevents.Event{Payload: &agentevents.RunResumed{}}), nil
}

func TestAuto(t *testing.T) {
	const (
		native   = `{"id":"1","sequence":0,"timestamp":"2026-05-05T09:00:00.000Z","type":"run.paused","runId":"r","payload":{"reason":"n"}}`
		shuffled = `{"sequence":1,"id":"2","timestamp":"2026-05-05T09:00:00.000Z","type":"run.paused","runId":"r","payload":{"reason":"s"}}`
		escaped  = `{"id":"\"","sequence":2,"timestamp":"2026-05-05T09:00:00.000Z","type":"run.paused","runId":"r","payload":{"reason":"e"}}`
		kahn     = `{"ts":"2026-05-05T09:00:00.000Z","run_id":"r","event":"agent_run_start"}`
		wiki     = `{"id":"e","traceId":"t","actor":"a","type":"x","payload":null}`
	)
	var seen []dialect.Name
	fake := &pieces{}
	auto := &dialect.Auto{
		Decoders: map[dialect.Name]agentevents.Decoder{dialect.KAHN: fake},
		OnLine:   func(n dialect.Name) { seen = append(seen, n) },
	}
	log := strings.Join([]string{native, kahn, shuffled, `{"no":"log"}`, escaped, kahn, wiki}, "\n")
	var got []string
	var errs []error
	for ev, err := range agentevents.NewReader(strings.NewReader(log), agentevents.ReaderOptions{Decoder: auto}).All() {
		if err != nil {
			errs = append(errs, err)
			continue
		}
		switch p := ev.Payload.(type) {
		case *agentevents.RunPaused:
			got = append(got, p.Reason)
		default:
			got = append(got, string(ev.Kind()))
		}
	}
	require.Equal(t, []string{"n", kahn, "s", "e", kahn, "x", "run.resumed"}, got)
	require.Equal(t, []dialect.Name{dialect.Native, dialect.KAHN, dialect.Native, dialect.Native, dialect.Native, dialect.KAHN, dialect.MultiAgent}, seen)
	require.Len(t, errs, 1)
	require.ErrorContains(t, errs[0], "line 4")
	require.ErrorContains(t, errs[0], `"type" is missing`)
	require.Equal(t, 2, fake.lines)
}

// A line that does not tell what it is, such as one of an unknown type, is like
// the line before.
func TestAutoStaysWithTheDialect(t *testing.T) {
	fake := &pieces{}
	auto := &dialect.Auto{Decoders: map[dialect.Name]agentevents.Decoder{dialect.OpenHarness: fake}}
	_, err := auto.Decode(nil, []byte(`{"type":"x.custom","timestamp":1}`))
	require.Error(t, err, "native, for want of a better guess")
	for _, line := range []string{`{"type":"flow:start","timestamp":1}`, `{"type":"x.custom","timestamp":1}`, `{"type":"flow:paused","timestamp":1}`} {
		_, err := auto.Decode(nil, []byte(line))
		require.NoError(t, err)
	}
	require.Equal(t, 3, fake.lines)
}
