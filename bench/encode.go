package main

import (
	"fmt"
	"io"
)

// encodeSection compares the encoder with those of the peers. All of them write the same
// line. E1 counts allocations, E2 compares with encoding/json, E4 with zerolog.
func encodeSection() ([]comparison, error) {
	std := marshalers[0]
	var out []comparison
	mean := map[string]*comparison{}
	add := func(goal, what string, b, meanBar bar, ours, theirs *cell) {
		out = append(out, compare(goal, what, b, ours, theirs))
		key := goal + theirs.name
		if mean[key] == nil {
			mean[key] = &comparison{goal: goal, what: "geomean, Event.AppendJSON / " + theirs.name, bar: meanBar}
		}
		mean[key].pairs = append(mean[key].pairs, pair{ours, theirs})
	}
	ours := map[string]*cell{}
	for _, s := range samples {
		ours[s.name] = appendCell(s)
		out = append(out, comparison{goal: "E1", what: s.name + ", allocations of Event.AppendJSON", direct: func() (row, error) {
			var buf []byte
			n, err := allocations(20_000, func() (err error) {
				buf, err = s.event.AppendJSON(buf[:0])
				return err
			})
			return allocRow(n), err
		}})
	}
	for _, s := range samples {
		add("E2", s.name+", Event.AppendJSON / "+std.name, atLeast(5), atLeast(8), ours[s.name], marshalCell(s, std))
	}
	out = append(out, *mean["E2"+std.name])
	for _, s := range samples {
		b := atLeast(2.5)
		what := s.name + ", Event.AppendJSON / zerolog"
		if s.name == "W" {
			b, what = atLeast(1), what+" (which does not check the raw JSON)"
		}
		add("E4", what, b, bar{}, ours[s.name], zerologCell(s))
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
	return out, nil
}

func appendCell(s *sample) *cell {
	var buf []byte
	return &cell{name: "Event.AppendJSON", setup: each(func() (err error) {
		buf, err = s.event.AppendJSON(buf[:0])
		return err
	})}
}

func marshalCell(s *sample, m marshaler) *cell {
	v := m.mirror(s)
	return &cell{name: m.name, setup: each(func() error {
		_, err := m.marshal(v)
		return err
	})}
}

func zerologCell(s *sample) *cell {
	log := newZerolog(io.Discard)
	return &cell{name: "zerolog", setup: each(func() error {
		logSample(&log, s)
		return nil
	})}
}

// allocRow returns a row about allocations. Only whole ones count, as in
// testing.AllocsPerRun. The fraction is memory that many events share.
func allocRow(n float64) row {
	r := row{bar: "0", measured: fmt.Sprintf("%.2f", n), ours: "–", theirs: "–", mark: "ok"}
	if n >= 1 {
		r.mark = "SHORT"
	}
	return r
}
