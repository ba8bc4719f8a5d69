package main

import (
	"bytes"
	"errors"
	"fmt"
	"iter"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	ae "github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/bench/mix"
)

// foldLog turns the bytes of a log into snapshots, in the library's fastest way.
func foldLog(log []byte) ([]*ae.RunSnapshot, error) {
	return snapshots(ae.FoldLog(ae.NewReader(bytes.NewReader(log), ae.ReaderOptions{}), ae.FoldOptions{}))
}

func snapshots(folded *ae.LogFold, err error) ([]*ae.RunSnapshot, error) {
	return slices.Collect(folded.Drain()), err
}

// foldEvents is the library's fold behind another decoder.
func foldEvents(events iter.Seq2[ae.Event, error]) ([]*ae.RunSnapshot, error) {
	folded := ae.NewLogFold(ae.FoldOptions{})
	for ev, err := range events {
		if err != nil {
			return nil, err
		}
		folded.Apply(ev)
	}
	return snapshots(folded, nil)
}

// readLog returns the library's typed iterator over a log.
func readLog(log []byte) iter.Seq2[ae.Event, error] {
	return ae.NewReader(bytes.NewReader(log), ae.ReaderOptions{}).All()
}

// A handFold is a minimal fold: a few figures for each agent of each run. Peers use it
// where the library's fold is slow enough to hide how fast they parse.
type handFold map[agentKey]*figures

type agentKey struct{ run, agent string }

type figures struct {
	status      string
	step        int // the last one
	transitions int
	illegal     int
	calls       int
	failures    int
	durationMs  float64 // sum over returned calls
	text        int     // number of bytes
}

// A view is what the hand fold needs of an event. Its strings may be parts of a buffer
// that is reused.
type view struct {
	kind, run, agent string
	step             int // -1 if there is none
	from, to         string
	status           string
	durationMs       float64
	oneEvent         bool
	text             string
}

func (f handFold) add(v *view) {
	if v.agent == "" {
		return
	}
	a := f[agentKey{v.run, v.agent}]
	if a == nil {
		a = &figures{status: string(ae.StatusThinking)}
		f[agentKey{strings.Clone(v.run), strings.Clone(v.agent)}] = a
	}
	if v.step >= 0 {
		a.step = v.step
	}
	switch ae.Kind(v.kind) {
	case ae.KindAgentTransition:
		a.transitions++
		if v.from != a.status || !ae.LifecycleStrict.Allows(ae.AgentStatus(v.from), ae.AgentStatus(v.to)) {
			a.illegal++
		}
		if v.to != a.status {
			a.status = strings.Clone(v.to)
		}
	case ae.KindToolCalled:
		a.calls++
	case ae.KindToolReturned:
		if v.oneEvent {
			a.calls++
		}
		if v.status != string(ae.ToolStatusOK) {
			a.failures++
		}
		a.durationMs += v.durationMs
	case ae.KindTextDelta:
		a.text += len(v.text)
	}
}

// handFoldLog is the hand fold of the library's events.
func handFoldLog(log []byte) (handFold, error) {
	f := handFold{}
	for ev, err := range readLog(log) {
		if err != nil {
			return nil, err
		}
		v := view{run: ev.RunID, agent: ev.AgentID, step: ev.Step.Or(-1)}
		switch p := ev.Payload.(type) {
		case *ae.AgentTransition:
			v.kind, v.from, v.to = string(ae.KindAgentTransition), string(p.From), string(p.To)
		case *ae.ToolCalled:
			v.kind = string(ae.KindToolCalled)
		case *ae.ToolReturned:
			v.kind, v.status, v.oneEvent = string(ae.KindToolReturned), string(p.Status), p.OneEvent
			v.durationMs = p.Duration.V.Seconds() * 1e3
		case *ae.TextDelta:
			v.kind, v.text = string(ae.KindTextDelta), p.Delta
		}
		f.add(&v)
	}
	return f, nil
}

// handFold is the hand fold of a reflecting decoder.
func (d decoder) handFold(log []byte) (handFold, error) {
	f := handFold{}
	for line, err := range lines(log) {
		if err != nil {
			return nil, err
		}
		e, err := d.decode(line)
		if err != nil {
			return nil, err
		}
		v := view{kind: e.header.Type, run: e.header.RunID, agent: e.header.AgentID, step: -1}
		if e.header.Step != nil {
			v.step = *e.header.Step
		}
		switch p := e.payload.(type) {
		case *transition:
			v.from, v.to = p.From, p.To
		case *textDelta:
			v.text = p.Delta
		case interface {
			outcome() (string, float64, bool)
		}:
			v.status, v.durationMs, v.oneEvent = p.outcome()
		}
		f.add(&v)
	}
	return f, nil
}

// foldSection compares folds and readers on the mixed log.
func foldSection() ([]comparison, error) {
	var buf bytes.Buffer
	if err := mix.Write(&buf, mix.Standard); err != nil {
		return nil, err
	}
	log := buf.Bytes()
	count := bytes.Count(log, []byte("\n"))
	whole := func(name string, op func() error) *cell {
		return &cell{name: name, events: count, bytes: len(log), setup: each(op)}
	}
	hand := func(name string, fold func([]byte) (handFold, error)) *cell {
		return whole(name, func() error { _, err := fold(log); return err })
	}
	same := func(name string, events func([]byte) iter.Seq2[ae.Event, error]) *cell {
		return whole(name, func() error { _, err := foldEvents(events(log)); return err })
	}
	read := func(name string, events func([]byte) iter.Seq2[ae.Event, error]) *cell {
		return whole(name, func() error {
			for _, err := range events(log) {
				if err != nil {
					return err
				}
			}
			return nil
		})
	}
	decode := func(d decoder) *cell {
		return whole(d.name, func() error {
			for line, err := range lines(log) {
				if err != nil {
					return err
				}
				if _, err := d.decode(line); err != nil {
					return err
				}
			}
			return nil
		})
	}
	var (
		std      = decoders[0]
		fold     = whole("fold", func() error { _, err := foldLog(log); return err })
		foldHand = hand("Reader.All + hand fold", handFoldLog)
		reader   = read("Reader.All", readLog)
		stdHand  = hand("encoding/json + hand fold", std.handFold)
		simdHand = hand("simdjson-go + hand fold", foldSimdjson)
	)
	simdSame := same("simdjson-go + the library's fold", simdjsonEvents)
	simdHand.missing, simdSame.missing = simdjsonSupported(), simdjsonSupported()
	out := []comparison{
		compare("F1", "library's fold on both sides: FoldLog / encoding/json twopass, Fold.Apply", atLeast(12), fold, same("encoding/json + the library's fold", std.events)),
		compare("F1", "hand fold on both sides: Reader.All / encoding/json twopass", atLeast(12), foldHand, stdHand),
		compare("F1", "FoldLog (all of RunSnapshot) / encoding/json twopass, hand fold", bar{}, fold, stdHand),
		compare("F2", "library's fold on both sides: FoldLog / simdjson-go ParseND, Fold.Apply", atLeast(1.5), fold, simdSame),
		compare("F2", "hand fold on both sides: Reader.All / simdjson-go ParseND", atLeast(1.5), foldHand, simdHand),
		compare("F2", "FoldLog (all of RunSnapshot) / simdjson-go ParseND, hand fold", bar{}, fold, simdHand),
		compare("F2", "hand fold on both sides: Reader.All / fastjson (which checks less)", bar{}, foldHand, hand("fastjson + hand fold", foldFastjson)),
		{goal: "F3", what: fmt.Sprintf("allocations per event of FoldLog, runs of %d events", count/mix.Standard.Runs), direct: func() (row, error) {
			n, err := allocations(2, func() error { _, err := foldLog(log); return err })
			r := limitRow(n/float64(count), 0.05, "%.2f")
			r.bar, r.mark = "–", ""
			return r, err
		}},
	}
	out = append(out, bigFold()...)
	for i, d := range decoders {
		b := bar{}
		if i == 0 {
			b = atLeast(7)
		}
		out = append(out, compare("F4", "typed events: Reader.All / "+d.name+" twopass", b, reader, decode(d)))
	}
	out = append(out,
		comparison{goal: "F4", what: "allocations per event of Reader.All", direct: func() (row, error) {
			n, err := allocations(2, func() error {
				for _, err := range readLog(log) {
					if err != nil {
						return err
					}
				}
				return nil
			})
			r := limitRow(n/float64(count), 0, "%.2f")
			r.bar, r.mark = "–", ""
			return r, err
		}},
		aguiComparison(),
		comparison{goal: "F7", what: "damaged lines that Reader and fold refuse", direct: refused},
	)
	return out, nil
}

func limitRow(v, limit float64, format string) row {
	r := row{bar: "≤ " + number(limit), measured: fmt.Sprintf(format, v), ours: "–", theirs: "–", mark: "ok"}
	if v > limit {
		r.mark = "SHORT"
	}
	return r
}

// bigFold is F3: a process that only folds a log of 400 MB.
func bigFold() []comparison {
	measure := sync.OnceValues(foldBigLog)
	size := func(said map[string]float64) string {
		return fmt.Sprintf("%.0f MB, %.0f runs", said["bytes"]/1e6, said["runs"])
	}
	rows := []struct {
		what, bar, format string
		limit             float64
		of                func(said map[string]float64) float64
	}{
		{"allocations per event of a process that folds a log of 400 MB", "≤ 0.05", "%.3f", 0.05, func(said map[string]float64) float64 { return said["mallocs"] / said["events"] }},
		{"peak memory of that process", "≤ 32 MB", "%.0f MB", 32, func(said map[string]float64) float64 { return said["peakKB"] / 1024 }},
	}
	var out []comparison
	for _, r := range rows {
		out = append(out, comparison{goal: "F3", what: r.what, direct: func() (row, error) {
			if !*big {
				return row{bar: r.bar, measured: "–", ours: "–", theirs: "–", mark: "not measured: -big"}, nil
			}
			said, err := measure()
			if err != nil {
				return row{}, err
			}
			out := limitRow(r.of(said), r.limit, r.format)
			out.bar, out.ours = r.bar, size(said)
			return out, nil
		}})
	}
	return out
}

// foldBigLog builds the program foldlog, runs it, and returns the figures that it
// prints.
func foldBigLog() (map[string]float64, error) {
	bin, log := filepath.Join(scratch, "foldlog"), filepath.Join(scratch, "big.jsonl")
	if out, err := exec.Command("go", "build", "-o", bin, "github.com/agentevents/agentevents/bench/foldlog").CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%w: %s", err, out)
	}
	f, err := os.Create(log)
	if err != nil {
		return nil, err
	}
	defer os.Remove(log)
	defer f.Close()
	const perLine = 500
	if err := mix.Write(f, mix.Options{Lines: 400e6 / perLine, Runs: mix.Standard.Runs}); err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	out, err := exec.Command(bin, log).Output()
	if err != nil {
		return nil, err
	}
	said := map[string]float64{"bytes": float64(info.Size())}
	for _, part := range strings.Fields(string(out)) {
		name, value, _ := strings.Cut(part, "=")
		var v float64
		if _, err := fmt.Sscan(value, &v); err == nil {
			said[name] = v
		}
	}
	if said["peakKB"] == 0 || said["events"] == 0 {
		return nil, fmt.Errorf("foldlog says %q", out)
	}
	return said, nil
}

// coresSection is F5: the same log on one worker and on two.
func coresSection() ([]comparison, error) {
	var buf bytes.Buffer
	if err := mix.Write(&buf, mix.Standard); err != nil {
		return nil, err
	}
	log := buf.Bytes()
	count := bytes.Count(log, []byte("\n"))
	on := func(name string, workers int) *cell {
		return &cell{name: name, events: count, bytes: len(log), wall: true, procs: workers, setup: each(func() error {
			_, err := snapshots(ae.FoldLog(ae.NewReader(bytes.NewReader(log), ae.ReaderOptions{}), ae.FoldOptions{Workers: workers}))
			return err
		})}
	}
	return []comparison{compare("F5", "wall: FoldLog with 2 workers on 2 cores / with 1 on 1", atLeast(1.9), on("two cores", 2), on("one core", 1))}, nil
}

// damaged are lines that json/v2 refuses. They are made from a valid one.
var damaged = func() []struct{ name, line string } {
	const head = `{"id":"e1","sequence":0,"timestamp":"2026-05-05T09:00:01.412Z","type":"agent.text.delta","runId":"r",`
	line := func(rest string) string { return head + rest }
	return []struct{ name, line string }{
		{"invalid UTF-8", line("\"payload\":{\"delta\":\"a\xffb\"}}")},
		{"control character", line("\"payload\":{\"delta\":\"a\tb\"}}")},
		{"bad escape", line(`"payload":{"delta":"a\qb"}}`)},
		{"number 01", line(`"step":01,"payload":{"delta":"a"}}`)},
		{"literal tru", line(`"late":tru,"payload":{"delta":"a"}}`)},
		{"trailing data", line(`"payload":{"delta":"a"}} x`)},
		{"trailing comma", line(`"payload":{"delta":"a",}}`)},
		{"duplicate known member", line(`"payload":{"delta":"a","delta":"b"}}`)},
		{"duplicate unknown member", line(`"vendor":1,"vendor":2,"payload":{"delta":"a"}}`)},
		{"lone high surrogate", line(`"payload":{"delta":"a\ud83db"}}`)},
		{"lone low surrogate", line(`"payload":{"delta":"a\ude00b"}}`)},
	}
}()

func refused() (row, error) {
	n := 0
	var passed []string
	for _, d := range damaged {
		_, foldErr := foldLog([]byte(d.line + "\n"))
		var readErr error
		for _, err := range readLog([]byte(d.line + "\n")) {
			readErr = errors.Join(readErr, err)
		}
		if foldErr != nil && readErr != nil {
			n++
		} else {
			passed = append(passed, d.name)
		}
	}
	r := row{bar: fmt.Sprint("all ", len(damaged)), measured: fmt.Sprintf("%d of %d", n, len(damaged)), ours: "–", theirs: "–", mark: "ok"}
	if n < len(damaged) {
		r.mark, r.ours = "SHORT", "passed: "+strings.Join(passed, ", ")
	}
	return r, nil
}
