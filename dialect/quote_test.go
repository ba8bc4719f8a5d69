package dialect_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/capture/claude"
	"github.com/agentevents/agentevents/dialect"
	"github.com/agentevents/agentevents/dialect/agui"
	"github.com/agentevents/agentevents/dialect/dialecttest"
	"github.com/agentevents/agentevents/dialect/kahn"
	"github.com/agentevents/agentevents/dialect/kaos"
	"github.com/agentevents/agentevents/dialect/multiagent"
	"github.com/agentevents/agentevents/dialect/openharness"
	"github.com/agentevents/agentevents/dialect/openwop"
	"github.com/agentevents/agentevents/dialect/openwop/snapshot"
	"github.com/agentevents/agentevents/internal/canary"
	"github.com/agentevents/agentevents/internal/effort"
)

// strict are the strict decoders by the names of the formats.
var strict = map[string]func() agentevents.Decoder{
	"agui":        func() agentevents.Decoder { return agui.NewDecoder(agui.Options{Strict: true}) },
	"kahn":        func() agentevents.Decoder { return kahn.NewDecoder(kahn.Options{Strict: true}) },
	"kaos":        func() agentevents.Decoder { return kaos.NewDecoder(kaos.Options{Strict: true}) },
	"kaos:sse":    func() agentevents.Decoder { return kaos.NewDecoder(kaos.Options{Strict: true}) },
	"multiagent":  func() agentevents.Decoder { return multiagent.NewDecoder(multiagent.Options{Strict: true}) },
	"openharness": func() agentevents.Decoder { return openharness.NewDecoder(openharness.Options{Strict: true}) },
	"openwop":     func() agentevents.Decoder { return openwop.NewDecoder(openwop.Options{Strict: true}) },
	"openwop:v1": func() agentevents.Decoder {
		return openwop.NewDecoder(openwop.Options{Strict: true, Profile: openwop.SchemaV1})
	},
	"openwop:v2": func() agentevents.Decoder {
		return openwop.NewDecoder(openwop.Options{Strict: true, Profile: openwop.SchemaV2})
	},
}

// ids matches the places of ids and types in the documents: errors may show the beginning of their
// texts.
var ids = regexp.MustCompile(`/(id|type|from|to|[a-zA-Z]*(_id|Id|ID|Ids|_ids))(/\d+)?$`)

// sampled returns how many planted lines stand for one that a test looks at: all would
// take too long. It has no divisor in common with the number of ways to break a line.
func sampled() int {
	return effort.Of(211, 23, 1)
}

// told fails if an error, or one of those in it, shows content.
func told(t *testing.T, err error, quotable bool, of any) {
	t.Helper()
	if err == nil {
		return
	}
	if many, ok := err.(interface{ Unwrap() []error }); ok {
		for _, err := range many.Unwrap() {
			told(t, err, quotable, of)
		}
		return
	}
	texts := []string{err.Error()}
	var rule *agentevents.RuleError
	if errors.As(err, &rule) {
		texts = append(texts, rule.Error(), rule.Detail+rule.Subject+rule.State)
	}
	for _, text := range texts {
		if why := canary.Leak(text, quotable); why != "" {
			t.Errorf("%s\nof %.2000v", why, of)
		}
	}
}

// lost fails if a loss shows content.
func lost(t *testing.T, losses []dialect.Loss, of any) {
	t.Helper()
	for _, l := range losses {
		told(t, errors.New(l.String()+l.Detail), true, of)
	}
}

// Errors go to program logs, which redaction does not reach: no decoder's error shows
// content.
func TestDecodersQuoteNoContent(t *testing.T) {
	files, err := filepath.Glob(goldenFile("*"))
	require.NoError(t, err)
	every := sampled()
	for _, f := range formats() {
		t.Run(f.name, func(t *testing.T) {
			n := 0
			for _, file := range files {
				name := strings.TrimSuffix(filepath.Base(file), ".txtar")
				golden := readGolden(t, name)
				for line := range strings.Lines(golden.Get(f.name)) {
					before, line, frame := "", strings.TrimSpace(line), false
					if before, line, frame = strings.Cut(line, "data: "); !frame {
						before, line = "", before
					}
					if !strings.HasPrefix(line, "{") {
						continue
					}
					for l := range canary.Lines(line, ids.MatchString) {
						if n++; n%every != 0 {
							continue
						}
						for _, dec := range []agentevents.Decoder{strict[f.name](), f.suite.Decoder()} {
							text := l.Text
							if frame {
								text = before + "data: " + text
							}
							_, err := dec.Decode(nil, []byte(text))
							told(t, err, l.Quotable, l.Text)
							_, err = dec.End(nil)
							told(t, err, l.Quotable, l.Text)
							lost(t, dec.(dialect.Decoder).Losses(), l.Text)
							if t.Failed() {
								return
							}
						}
					}
				}
			}
			require.NotZero(t, n)
		})
	}
}

func TestEncodersQuoteNoContent(t *testing.T) {
	files, err := filepath.Glob(goldenFile("*"))
	require.NoError(t, err)
	n, every := 0, sampled()
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".txtar")
		golden := readGolden(t, name)
		for line := range strings.Lines(golden.Get("native")) {
			for l := range canary.Lines(strings.TrimSpace(line), ids.MatchString) {
				var ev agentevents.Event
				if ev.UnmarshalJSON([]byte(l.Text)) != nil {
					continue
				}
				if n++; n%every != 0 {
					continue
				}
				for _, f := range formats() {
					enc := f.suite.Encoder()
					_, err := enc.Append(nil, ev)
					told(t, err, l.Quotable, l.Text)
					_, err = enc.End(nil)
					told(t, err, l.Quotable, l.Text)
					lost(t, enc.Losses(), l.Text)
					if t.Failed() {
						return
					}
				}
			}
		}
	}
}

func TestSnapshotsQuoteNoContent(t *testing.T) {
	f := agentevents.NewFold(agentevents.FoldOptions{})
	sequence := uint64(0)
	for info := range agentevents.Kinds() {
		ev := dialecttest.Filled(info.Kind)
		ev.Sequence = sequence
		sequence++
		f.Apply(ev)
	}
	harness, err := openharness.AppendSnapshot(nil, f.Snapshot())
	require.NoError(t, err)
	wop, err := snapshot.Of(f.Snapshot())
	require.NoError(t, err)
	document, _, err := snapshot.Append(nil, wop, openwop.RFC0002)
	require.NoError(t, err)
	for l := range canary.Lines(string(harness), ids.MatchString) {
		s, err := openharness.ParseSnapshot([]byte(l.Text))
		told(t, err, l.Quotable, l.Text)
		if err == nil {
			_, err = s.AppendJSON(nil)
			told(t, err, l.Quotable, l.Text)
		}
	}
	for l := range canary.Lines(string(document), ids.MatchString) {
		s, err := snapshot.Parse([]byte(l.Text))
		told(t, err, l.Quotable, l.Text)
		for _, p := range []openwop.Profile{openwop.RFC0002, openwop.SchemaV1, openwop.SchemaV2} {
			if err == nil {
				_, losses, err := snapshot.Append(nil, s, p)
				told(t, err, l.Quotable, l.Text)
				lost(t, losses, l.Text)
			}
		}
	}
}

func TestCapturesQuoteNoContent(t *testing.T) {
	files, err := filepath.Glob("../capture/claude/testdata/*.stream.jsonl")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		log, err := os.ReadFile(file)
		require.NoError(t, err)
		var before []byte
		for line := range bytes.Lines(log) {
			n := 0
			for l := range canary.Lines(string(bytes.TrimSpace(line)), ids.MatchString) {
				if n++; n%7 != 0 {
					continue
				}
				dec := claude.NewDecoder(claude.Options{})
				dec.Decode(nil, before)
				_, err := dec.Decode(nil, []byte(l.Text))
				told(t, err, l.Quotable, l.Text)
				_, err = dec.End(nil)
				told(t, err, l.Quotable, l.Text)
				if t.Failed() {
					return
				}
			}
			before = line
		}
	}
}
