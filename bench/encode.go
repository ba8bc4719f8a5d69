package main

import (
	"fmt"
	"io"

	"github.com/agentevents/agentevents/bench/internal/measure"
)

// encodeSection compares the encoder with the peers' encoders. All of them write the same line. E1
// counts allocations, E2 compares with encoding/json, E4 with zerolog.
func encodeSection() []comparison {
	std := marshalers[0]
	var out []comparison
	mean := map[string]*comparison{}
	add := func(goal, what, peer string, b, meanBar bar, ours, theirs *cell) {
		out = append(out, versus(goal, what+", Event.AppendJSON / "+peer, b, ours, theirs))
		key := goal + peer
		if mean[key] == nil {
			mean[key] = &comparison{goal: goal, what: "geomean, Event.AppendJSON / " + peer, bar: meanBar}
		}
		mean[key].pairs = append(mean[key].pairs, pair{ours, theirs})
	}
	ours := map[string]*cell{}
	for _, s := range samples {
		ours[s.name] = appendCell(s)
		direct := func() (row, error) {
			var buf []byte
			n, err := allocations(20_000, func() (err error) {
				buf, err = s.event.AppendJSON(buf[:0])
				return err
			})
			return allocRow(n), err
		}
		out = append(out, comparison{goal: "E1", what: s.name + ", allocations of Event.AppendJSON", direct: direct})
	}
	for _, s := range samples {
		add("E2", s.name, std.name, atLeast(5), atLeast(8), ours[s.name], marshalCell(s, std))
	}
	out = append(out, *mean["E2"+std.name])
	for _, s := range samples {
		b := atLeast(2.5)
		if s.name == "W" { // zerolog does not check the raw JSON
			b = atLeast(1)
		}
		add("E4", s.name, "zerolog", b, bar{}, ours[s.name], zerologCell(s))
	}
	out = append(out, *mean["E4zerolog"])
	// The other encoders are for information, so the table has only their mean.
	for _, m := range marshalers[1:] {
		for _, s := range samples {
			key := "E2" + m.name
			if mean[key] == nil {
				mean[key] = &comparison{goal: "E2", what: "geomean, Event.AppendJSON / " + m.name}
			}
			mean[key].pairs = append(mean[key].pairs, pair{ours[s.name], marshalCell(s, m)})
		}
		out = append(out, *mean["E2"+m.name])
	}
	return out
}

func appendCell(s *sample) *cell {
	var buf []byte
	return &cell{Name: s.name + ": Event.AppendJSON", Setup: measure.Each(func() (err error) {
		buf, err = s.event.AppendJSON(buf[:0])
		return err
	})}
}

func marshalCell(s *sample, m marshaler) *cell {
	v := m.mirror(s)
	return &cell{Name: s.name + ": " + m.name, Control: true, Setup: measure.Each(func() error {
		_, err := m.marshal(v)
		return err
	})}
}

func zerologCell(s *sample) *cell {
	log := newZerolog(io.Discard)
	return &cell{Name: s.name + ": zerolog", Control: true, Setup: measure.Each(func() error {
		logSample(&log, s)
		return nil
	})}
}

// allocRow returns a row about allocations. Only whole ones count, as in
// testing.AllocsPerRun. The fraction is memory that many events share.
func allocRow(n float64) row {
	return counted("0", fmt.Sprintf("%.2f", n), n < 1)
}
