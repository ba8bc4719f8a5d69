package eventtest

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/internal/disk"
	"github.com/agentevents/agentevents/internal/jsonwire"
	"github.com/agentevents/agentevents/internal/rundiff"
)

// GoldenOptions select the content of a golden log. [Recorder.Golden] uses the zero GoldenOptions.
type GoldenOptions struct {
	// Update writes the file in place of comparing it: the value of a flag of the caller.
	Update bool
	// Deltas keeps the deltas. Otherwise the log does not depend on how a model cuts its
	// text: the events are numbered without them.
	Deltas bool
	// Exact keeps ids, times, durations and sequences as they were recorded.
	Exact bool
	// Acts compares the acts of each agent, as the command "agentevents diff" does, and not line by
	// line. So agents may work at the same time, calls return in any order, status changes without
	// a reason, usage and totals be others, and an act more is one difference.
	Acts bool
}

// Golden fails the test unless the log of the recorded events equals the file. The failure names
// the first line that differs, and its members. The log has no deltas: the program does not decide
// how a model cuts its text.
//
// The log is the same for every run of the program, also with its own clock and ids:
//
//   - ids that were minted (UUIDs, those of [Recorder.Options], and all of events, traces
//     and spans) are words in the order in which they come: id1, run1, call1, message1,
//     trace1. Ids that the program chose stay.
//   - The first event has the time 2026-05-05T09:00:00Z, each later one a second after the one
//     before. Other times of a payload are the time of its event.
//   - Measured durations (durationMs, timeToFirstTokenMs) are 0 where there is one.
//
// Content stays as it is, also ids in it. The log is still one that all tools read.
//
// The file is written instead, if the environment variable AGENTEVENTS_UPDATE is 1 or if
// the test binary defines a flag "update" that is true. The package defines no flag.
//
//	AGENTEVENTS_UPDATE=1 go test ./...
func (r *Recorder) Golden(t testing.TB, path string) {
	t.Helper()
	r.GoldenWith(t, path, GoldenOptions{})
}

// GoldenWith is [Recorder.Golden] with options.
func (r *Recorder) GoldenWith(t testing.TB, path string, o GoldenOptions) {
	t.Helper()
	got, err := r.log(o)
	if err != nil {
		t.Errorf("eventtest: %v", err)
		return
	}
	if o.Update || updating() {
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), disk.Replace(path, got)); err != nil {
			t.Errorf("eventtest: %v", err)
		}
		return
	}
	want, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		t.Errorf("eventtest: the golden log %s does not exist yet%s", path, howToUpdate)
	case err != nil:
		t.Errorf("eventtest: %v", err)
	case o.Acts:
		switch diff, err := compareActs(path, got, want); {
		case err != nil:
			t.Errorf("eventtest: %s: %v", path, err)
		case diff != "":
			t.Errorf("eventtest: the agents act differently from %s:\n%s%s", path, diff, howToUpdate)
		}
	default:
		if diff := compare(got, bytes.ReplaceAll(want, []byte("\r\n"), []byte("\n"))); diff != "" {
			t.Errorf("eventtest: the log differs from %s: %s%s", path, diff, howToUpdate)
		}
	}
}

const howToUpdate = "\nTo write the file, run the test with AGENTEVENTS_UPDATE=1, and read the difference."

func updating() bool {
	if os.Getenv("AGENTEVENTS_UPDATE") == "1" {
		return true
	}
	f := flag.Lookup("update")
	return f != nil && f.Value.String() == "true"
}

// log returns the lines of the golden log.
func (r *Recorder) log(o GoldenOptions) ([]byte, error) {
	var log []byte
	plain := newPlain()
	for _, ev := range r.Events() {
		if !o.Exact {
			plain.first(&ev)
		}
		if info, _ := ev.Kind().Info(); info.Droppable && !o.Deltas {
			continue
		}
		var err error
		if !o.Exact {
			if ev, err = plain.event(ev); err != nil {
				return nil, err
			}
		}
		if log, err = ev.AppendJSON(log); err != nil {
			return nil, err
		}
		log = append(log, '\n')
	}
	return log, nil
}

// compare returns how two logs differ, or "".
func compare(got, want []byte) string {
	a, b := slices.Collect(bytes.Lines(got)), slices.Collect(bytes.Lines(want))
	for i := range max(len(a), len(b)) {
		switch {
		case i >= len(b):
			return fmt.Sprintf("%s more, from line %d:\n  + %s", events(len(a)-i), i+1, describe(a[i]))
		case i >= len(a):
			return fmt.Sprintf("%s fewer, from line %d:\n  - %s", events(len(b)-i), i+1, describe(b[i]))
		case string(a[i]) == string(b[i]):
		default:
			out := fmt.Sprintf("line %d differs:\n  - %s\n  + %s", i+1, describe(b[i]), describe(a[i]))
			for _, d := range differences("", decode(a[i]), decode(b[i])) {
				out += "\n      " + d
			}
			return out
		}
	}
	return ""
}

// compareActs returns how the acts of two logs differ, or "".
func compareActs(path string, got, want []byte) (string, error) {
	var logs [2]rundiff.Log
	for i, text := range [...][]byte{want, got} {
		for ev, err := range agentevents.NewReader(bytes.NewReader(text), agentevents.ReaderOptions{}).All() {
			if err == nil {
				err = logs[i].Add(&ev)
			}
			if err != nil {
				return "", err
			}
		}
	}
	r := rundiff.Compare(&logs[0], &logs[1])
	if r.Same {
		return "", nil
	}
	var out strings.Builder
	err := r.Write(&out, rundiff.Options{A: path, B: "this test"})
	return strings.TrimSuffix(out.String(), "\n"), err
}

// describe returns the line of an event of a log, or the text if it is not one.
func describe(text []byte) string {
	var ev agentevents.Event
	if err := json.Unmarshal(text, &ev); err != nil {
		return cut(strings.TrimSpace(string(text)))
	}
	return Describe(ev)
}

func decode(text []byte) any {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var v any
	if d.Decode(&v) != nil {
		return string(text)
	}
	return v
}

// differences returns the members in which two JSON values differ.
func differences(at string, got, want any) []string {
	if reflect.DeepEqual(got, want) {
		return nil
	}
	a, ok := got.(map[string]any)
	b, also := want.(map[string]any)
	if !ok || !also {
		return []string{fmt.Sprintf("%s: %s, was %s", at, show(got), show(want))}
	}
	names := maps.Clone(a)
	maps.Copy(names, b)
	var out []string
	for _, name := range slices.Sorted(maps.Keys(names)) {
		out = append(out, differences(at+"/"+jsonwire.Token(name), a[name], b[name])...)
	}
	return out
}

func show(v any) string {
	if v == nil {
		return "absent"
	}
	text, _ := json.Marshal(v)
	return cut(string(text))
}
