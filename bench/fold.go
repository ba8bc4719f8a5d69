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
	"github.com/agentevents/agentevents/bench/internal/measure"
	"github.com/agentevents/agentevents/bench/mix"
)

// foldLog turns the bytes of a log into snapshots, in the library's fastest way.
func foldLog(log []byte) ([]*ae.RunSnapshot, error) {
	return snapshots(ae.FoldLog(ae.NewReader(bytes.NewReader(log), ae.ReaderOptions{}), ae.FoldOptions{}))
}

func snapshots(folded *ae.FoldSet, err error) ([]*ae.RunSnapshot, error) {
	return slices.Collect(folded.Drain()), err
}

// foldEvents is the library's fold with another decoder.
func foldEvents(events iter.Seq2[ae.Event, error]) ([]*ae.RunSnapshot, error) {
	folded := ae.NewFoldSet(ae.FoldOptions{})
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

// A view has the fields of an event that the hand fold needs. Its strings may be parts of a buffer
// that is reused.
type view struct {
	kind, run, agent string
	step             int // -1 without one
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
func foldSection() []comparison {
	hand := func(name string, fold func([]byte) (handFold, error)) *cell {
		return wholeLog(name, func(log []byte) error { _, err := fold(log); return err })
	}
	same := func(name string, events func([]byte) iter.Seq2[ae.Event, error]) *cell {
		return wholeLog(name, func(log []byte) error { _, err := foldEvents(events(log)); return err })
	}
	decode := func(d decoder) *cell {
		c := wholeLog(d.name, func(log []byte) error {
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
		c.Control = true
		return c
	}
	var (
		std      = decoders[0]
		fold     = wholeLog("FoldLog", func(log []byte) error { _, err := foldLog(log); return err })
		foldHand = hand("Reader.All + hand fold", handFoldLog)
		reader   = wholeLog("Reader.All", readAll)
		stdHand  = hand("encoding/json + hand fold", std.handFold)
		simdHand = withSimdjson(hand("simdjson-go + hand fold", foldSimdjson))
		simdSame = withSimdjson(same("simdjson-go + the library's fold", simdjsonEvents))
	)
	out := []comparison{
		versus("F1", "library's fold on both sides: FoldLog / encoding/json twopass, Fold.Apply", atLeast(12), fold, same("encoding/json + the library's fold", std.events)),
		versus("F1", "hand fold on both sides: Reader.All / encoding/json twopass", atLeast(12), foldHand, stdHand),
		versus("F1", "FoldLog (all of RunSnapshot) / encoding/json twopass, hand fold", bar{}, fold, stdHand),
		versus("F2", "library's fold on both sides: FoldLog / simdjson-go ParseND, Fold.Apply", atLeast(1.5), fold, simdSame),
		versus("F2", "hand fold on both sides: Reader.All / simdjson-go ParseND", atLeast(1.5), foldHand, simdHand),
		versus("F2", "FoldLog (all of RunSnapshot) / simdjson-go ParseND, hand fold", bar{}, fold, simdHand),
		versus("F2", "hand fold on both sides: Reader.All / fastjson (which checks less)", bar{}, foldHand, hand("fastjson + hand fold", foldFastjson)),
		{goal: "F3", what: fmt.Sprintf("allocations per event of FoldLog, runs of %d events", mix.Standard.Lines/mix.Standard.Runs), direct: perEvent(func(log []byte) error {
			_, err := foldLog(log)
			return err
		})},
	}
	out = append(out, bigFold()...)
	for i, d := range decoders {
		b := bar{}
		if i == 0 {
			b = atLeast(7)
		}
		out = append(out, versus("F4", "typed events: Reader.All / "+d.name+" twopass", b, reader, decode(d)))
	}
	out = append(out,
		comparison{goal: "F4", what: "allocations per event of Reader.All", direct: perEvent(readAll)},
		aguiComparison(),
		comparison{goal: "F7", what: "damaged lines that Reader and fold refuse", direct: refused},
	)
	return out
}

// standardLog is the log of the benchmarks of folds.
var standardLog = sync.OnceValues(func() ([]byte, error) {
	var buf bytes.Buffer
	err := mix.Write(&buf, mix.Standard)
	return buf.Bytes(), err
})

// wholeLog is a cell whose operation works on the whole standard log.
func wholeLog(name string, op func(log []byte) error) *cell {
	return &cell{Name: name, Setup: func(c *cell) (func(int) error, error) {
		log, err := standardLog()
		c.Events, c.Bytes = bytes.Count(log, []byte("\n")), len(log)
		return measure.Repeat(func() error { return op(log) }), err
	}}
}

func readAll(log []byte) error {
	for _, err := range readLog(log) {
		if err != nil {
			return err
		}
	}
	return nil
}

// withSimdjson returns the cell, for machines that simdjson-go works on.
func withSimdjson(c *cell) *cell {
	setup := c.Setup
	c.Setup = func(c *cell) (func(int) error, error) {
		if err := simdjsonSupported(); err != nil {
			return nil, measure.Missing(err.Error())
		}
		return setup(c)
	}
	return c
}

// perEvent counts the allocations of an operation on the standard log.
func perEvent(op func(log []byte) error) func() (row, error) {
	return func() (row, error) {
		log, err := standardLog()
		if err != nil {
			return row{}, err
		}
		n, err := allocations(2, func() error { return op(log) })
		return information(n/float64(bytes.Count(log, []byte("\n"))), "%.2f"), err
	}
}

// limitRow is a row whose figure may not be greater than limit.
func limitRow(v, limit float64, format string) row {
	return counted("≤ "+number(limit), fmt.Sprintf(format, v), v <= limit)
}

// information is a row without a bar.
func information(v float64, format string) row {
	r := counted("–", fmt.Sprintf(format, v), true)
	r.verdict = ""
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
			if !big {
				out := counted(r.bar, "–", true)
				out.verdict = "not measured: -big"
				return out, nil
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
	if out, err := exec.Command("go", "build", "-o", bin,
		"github.com/agentevents/agentevents/bench/foldlog").CombinedOutput(); err != nil {
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
		return nil, fmt.Errorf("foldlog prints %q", out)
	}
	return said, nil
}

// coresSection is F5: the CPU time that a second worker costs in total. Its gain is wall
// time, which a busy machine cannot tell, so that row has no bar.
func coresSection() []comparison {
	on := func(name string, workers int) *cell {
		c := wholeLog(name, func(log []byte) error {
			_, err := snapshots(ae.FoldLog(ae.NewReader(bytes.NewReader(log), ae.ReaderOptions{}),
				ae.FoldOptions{Workers: workers}))
			return err
		})
		c.Procs = workers
		return c
	}
	two, one := on("2 workers on 2 cores", 2), on("1 worker on 1 core", 1)
	return []comparison{
		versus("F5", "total CPU time of FoldLog: 2 workers on 2 cores / 1 on 1", atMost(1.05), two, one),
		inWallTime("F5", "FoldLog: 2 workers on 2 cores / 1 on 1", two, one),
	}
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
	r := counted(fmt.Sprint("all ", len(damaged)), fmt.Sprintf("%d of %d", n, len(damaged)), n == len(damaged))
	if len(passed) > 0 {
		r.ours = "passed: " + strings.Join(passed, ", ")
	}
	return r, nil
}
