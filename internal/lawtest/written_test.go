package lawtest

import (
	"bytes"
	"cmp"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/capture/claude"
	"github.com/agentevents/agentevents/dialect"
	"github.com/agentevents/agentevents/dialect/openwop"
	"github.com/agentevents/agentevents/internal/effort"
	"github.com/agentevents/agentevents/internal/txtar"
)

// A judge reads as `agentevents check --dialect` does: by the rules of the document, and
// leniently for the rules of the library.
type judge struct {
	strict, lenient agentevents.Decoder
	refused         bool // the current line is
}

func (d *judge) Decode(dst []agentevents.Event, line []byte) ([]agentevents.Event, error) {
	_, broken := d.strict.Decode(nil, line)
	dst, err := d.lenient.Decode(dst, line)
	d.refused = broken != nil
	return dst, cmp.Or(err, broken)
}

func (d *judge) End(dst []agentevents.Event) ([]agentevents.Event, error) {
	_, broken := d.strict.End(nil)
	d.refused = broken != nil
	dst, err := d.lenient.End(dst)
	return dst, cmp.Or(err, broken)
}

// faults calls report with each fault of a written log.
func (f *format) faults(text []byte, table agentevents.Lifecycle, report func(error)) {
	d := &judge{strict: f.decoder(true), lenient: f.decoder(false)}
	log := agentevents.NewFoldSet(agentevents.FoldOptions{Lifecycle: table, KeepCalls: -1, OnViolation: func(v *agentevents.RuleError) {
		if !d.refused {
			report(v)
		}
	}})
	for ev, err := range agentevents.NewReader(bytes.NewReader(text), agentevents.ReaderOptions{Decoder: d}).All() {
		if err != nil {
			report(err)
			continue
		}
		log.Apply(ev)
	}
}

// nativeOf returns the lines of events.
func nativeOf(events []agentevents.Event) (text []byte) {
	for _, ev := range events {
		text, _ = ev.AppendJSON(text) // damaged text has no line
		text = append(text, '\n')
	}
	return text
}

// logOf draws a log: a run, or two whose events interleave.
func logOf(t *rapid.T) (events []agentevents.Event, table agentevents.Lifecycle) {
	c := Config{Lifecycle: Lifecycles().Draw(t, "lifecycle"), Named: true}
	events = Generate(t, c).Events
	if rapid.Bool().Draw(t, "two") {
		var both []agentevents.Event
		other := Generate(t, c).Events
		for i := range max(len(events), len(other)) {
			if i < len(events) {
				both = append(both, events[i])
			}
			if i < len(other) {
				other[i].RunID = "run-2"
				both = append(both, other[i])
			}
		}
		events = both
	}
	keepDocuments(events)
	return events, c.Lifecycle
}

// keepDocuments makes events keep two rules of documents that the library does not have. A decision
// below OpenWOP's threshold is escalated: the suspension of its node refers to it, or else the
// decision gets a higher confidence. A recorded span has words of KAOS, the document that it
// mirrors: the writer writes other words too, because a later version may list them.
func keepDocuments(events []agentevents.Event) {
	for i, ev := range events {
		switch p := ev.Payload.(type) {
		case *agentevents.AgentDecided:
			if p.Confidence.OK && !escalate(ev, events[i+1:]) {
				sure := *p
				sure.Confidence.V = max(p.Confidence.V, openwop.DefaultThreshold)
				events[i].Payload = &sure
			}
		case *agentevents.SpanRecorded:
			listed := *p
			listed.Subject, listed.Phase = "judge", "progress"
			events[i].Payload = &listed
		}
	}
}

// escalate makes the first suspension of the node of a decision the action on it, and reports
// whether there is one that is not the action on another decision.
func escalate(decided agentevents.Event, later []agentevents.Event) bool {
	for i, ev := range later {
		if ev.RunID != decided.RunID || ev.NodeID != decided.NodeID {
			continue
		}
		switch p := ev.Payload.(type) {
		case *agentevents.NodeCompleted:
			return false
		case *agentevents.NodeSuspended:
			if p.Reason == openwop.ReasonLowConfidence {
				return false
			}
			low := *p
			low.Reason = openwop.ReasonLowConfidence
			later[i].Payload = &low
			return true
		}
	}
	return false
}

// keepsRules reports whether events keep the rules of the library.
func keepsRules(events []agentevents.Event, table agentevents.Lifecycle) bool {
	clean := true
	log := agentevents.NewFoldSet(agentevents.FoldOptions{Lifecycle: table, OnViolation: func(*agentevents.RuleError) { clean = false }})
	for _, ev := range events {
		log.Apply(ev)
	}
	return clean
}

// write returns the lines of events, up to one that the writer refuses with a rule, and how many
// events it took.
func (f *format) write(t require.TestingT, events []agentevents.Event) (text []byte, taken int, full bool) {
	enc, full := f.encoder(), true
	for _, ev := range events {
		var err error
		var rule *agentevents.RuleError
		if text, err = enc.Append(text, ev); errors.As(err, &rule) {
			full = false
			break
		}
		taken++
	}
	text, err := enc.End(text)
	require.NoError(t, err)
	return text, taken, full
}

// Law: the check of a format accepts the lines of its writer, if the events keep the rules of the
// library. A log that a writer refuses is judged up to the refused event.
func TestWrittenLogsKeepTheRules(t *testing.T) {
	amount := effort.Of(2_000, 20_000, 200_000)
	draws(t, amount)
	seed := flag.Lookup("rapid.seed")
	before := seed.Value.String()
	require.NoError(t, seed.Value.Set(strconv.FormatUint(effort.Seed(t)|1, 10)))
	t.Cleanup(func() { require.NoError(t, seed.Value.Set(before)) })
	for name, f := range formats() {
		t.Run(name, func(t *testing.T) {
			written, refused, broken := 0, 0, false
			rapid.Check(t, func(t *rapid.T) {
				if written >= amount && !broken { // a fault is looked for again in shorter logs
					return
				}
				events, table := logOf(t)
				if !keepsRules(events, table) {
					return
				}
				if rapid.Bool().Draw(t, "lines") { // the events have their lines
					text := nativeOf(events)
					events = nil
					for ev, err := range agentevents.NewReader(bytes.NewReader(text), agentevents.ReaderOptions{Verbatim: true}).All() {
						require.NoError(t, err)
						events = append(events, ev)
					}
				}
				text, n, full := f.write(t, events)
				if written += n; !full {
					refused++
				}
				if name != "kahn" {
					table = "" // the table that the log names; KAHN's is strict
				}
				f.faults(text, table, func(err error) {
					broken = true
					t.Errorf("%v\n%sof\n%s", err, text, nativeOf(events))
				})
			})
			t.Logf("%d events, %d logs refused", written, refused)
			if !t.Failed() {
				require.GreaterOrEqual(t, written, amount)
			}
		})
	}
}

// logFiles are the logs of the repository: the golden files, the cases, the captures and the
// samples.
var logFiles = []string{
	"../../dialect/testdata/golden/*.txtar", "../../cmd/agentevents/testdata/*.txtar", "../../cmd/agentevents/testdata/*.jsonl", "../../otelhook/testdata/*.txtar",
	"../../capture/claude/testdata/*.jsonl", "../../capture/claude/testdata/sessions/*.jsonl", "../../tree/testdata/*.jsonl", "../../eventtest/testdata/*.jsonl",
	"../../dialect/*/testdata/*.jsonl", "../../testdata/*.jsonl", "../../internal/rundiff/testdata/*.txtar",
}

// logsOf returns the logs of a file, by name.
func logsOf(t *testing.T, file string) map[string]string {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	if filepath.Ext(file) != ".txtar" {
		return map[string]string{file: string(text)}
	}
	logs := map[string]string{}
	for _, part := range txtar.Parse(string(text)).Files {
		logs[file+" "+part.Name] = part.Text
	}
	return logs
}

// eventsOf reads a log of any format, and reports whether it keeps the rules of its document.
// Lines that are no events, as the conditions of a case, are passed over.
func eventsOf(name, text string, verbatim bool) (events []agentevents.Event, strict bool) {
	read := func(strict bool) (events []agentevents.Event) {
		var d agentevents.Decoder = claude.NewDecoder(claude.Options{})
		if !strings.HasSuffix(name, ".stream.jsonl") {
			decoders, all := map[dialect.Name]agentevents.Decoder{}, formats()
			for _, name := range []string{"agui", "kahn", "kaos", "multiagent", "openharness", "openwop"} {
				f := all[name]
				decoders[f.name] = f.decoder(strict)
			}
			d = &dialect.Auto{Decoders: decoders}
		}
		for ev, err := range agentevents.NewReader(strings.NewReader(text), agentevents.ReaderOptions{Decoder: d, Verbatim: verbatim}).All() {
			if err == nil {
				events = append(events, ev)
			}
		}
		return events
	}
	events = read(false)
	return events, len(read(true)) == len(events)
}

// fromStart numbers the events of each run from 0. The check forgives a log that begins in the
// middle of a run more than a whole one, and not every format keeps the numbers.
func fromStart(events []agentevents.Event) {
	numbers := dialect.Numbers{}
	for i := range events {
		events[i].Sequence = numbers.Next(events[i].RunID)
	}
}

// The law for the logs of the repository, read with their lines and without. A log that breaks
// the rules of the library, or of its own document, is left out.
func TestWrittenFilesKeepTheRules(t *testing.T) {
	judged, left := 0, 0
	for _, pattern := range logFiles {
		files, err := filepath.Glob(pattern)
		require.NoError(t, err)
		require.NotEmpty(t, files, pattern)
		for _, file := range files {
			for name, text := range logsOf(t, file) {
				for _, verbatim := range []bool{false, true} {
					events, strict := eventsOf(name, text, verbatim)
					if len(events) == 0 {
						continue
					}
					keepDocuments(events)
					fromStart(events)
					if !strict || !keepsRules(events, "") {
						left++
						continue
					}
					judged++
					for to, f := range formats() {
						out, _, _ := f.write(t, events)
						f.faults(out, "", func(err error) {
							t.Errorf("%s as %s, verbatim %t: %v\n%s", name, to, verbatim, err, out)
						})
					}
				}
			}
		}
	}
	t.Logf("%d logs, %d left out", judged, left)
	require.Greater(t, judged, 3*left)
}
