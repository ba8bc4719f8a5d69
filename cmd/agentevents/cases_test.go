package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"
)

// A logCase is a log that one of the documents allows, or forbids, and what the command says
// of it.
type logCase struct {
	Name   string
	Lines  []string
	Expect []expectation
}

// An expectation is one run of the command. Members are present for the commands that have
// them.
type expectation struct {
	Do    string
	Flags []string // check
	Exit  *int
	Rule  string // check
	Lines *int   // check

	Path            []string // fold: a member of the first run's snapshot; # is the number of members
	Is              json.RawMessage
	Present, Absent bool
	Has             hasText
	HasNot          []string

	From, To  string // convert
	Strict    bool
	Lost      []string
	Back      string
	ThenCheck []string
}

// A hasText is one text or a list of texts.
type hasText []string

func (h *hasText) UnmarshalJSON(text []byte) error {
	var one string
	if json.Unmarshal(text, &one) == nil {
		*h = hasText{one}
		return nil
	}
	return json.Unmarshal(text, (*[]string)(h))
}

// TestCases runs the cases that come with the source documents.
func TestCases(t *testing.T) {
	text, err := os.ReadFile("../../../shared/cases/cases.jsonl")
	if err != nil {
		t.Skip("the cases are not beside the project: ", err)
	}
	for line := range strings.Lines(string(text)) {
		var c logCase
		if err := json.Unmarshal([]byte(line), &c); err != nil {
			t.Fatal(err)
		}
		t.Run(c.Name, func(t *testing.T) {
			log := filepath.Join(t.TempDir(), "run.jsonl")
			if err := os.WriteFile(log, []byte(strings.Join(c.Lines, "\n")+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			for i, e := range c.Expect {
				if err := e.holds(log); err != nil {
					t.Errorf("%d: %s: %v", i, e.Do, err)
				}
			}
		})
	}
}

// holds runs the command on a log, and returns what is not as expected.
func (e *expectation) holds(log string) error {
	var args []string
	switch e.Do {
	case "check", "fold", "tree":
		args = append([]string{e.Do}, e.Flags...)
	case "convert":
		args = []string{"convert", "--to", e.To}
		if e.From != "" {
			args = append(args, "--from", e.From)
		}
		if e.Strict {
			args = append(args, "--strict")
		}
	default:
		return fmt.Errorf("no such command")
	}
	got := exec("", append(args, log)...)
	said := fmt.Sprintf("exit %d\nout: %s\nerr: %s", got.code, got.out, got.err)
	if e.Exit != nil && got.code != *e.Exit {
		return fmt.Errorf("want exit %d\n%s", *e.Exit, said)
	}
	if !strings.Contains(got.out+got.err, e.Rule) {
		return fmt.Errorf("want the rule %s\n%s", e.Rule, said)
	}
	if n := strings.Count(got.out, "\n"); e.Lines != nil && n != *e.Lines {
		return fmt.Errorf("want %d findings\n%s", *e.Lines, said)
	}
	text := got.out
	if e.Do == "fold" {
		value, there := at(text, e.Path)
		if there != e.Present && (e.Present || e.Absent) {
			return fmt.Errorf("%s: present: %v\n%s", strings.Join(e.Path, "."), there, said)
		}
		if e.Is != nil {
			var want any
			if err := json.Unmarshal(e.Is, &want); err != nil {
				return err
			}
			if !reflect.DeepEqual(want, value) {
				return fmt.Errorf("%s is %v, not %s\n%s", strings.Join(e.Path, "."), value, e.Is, said)
			}
		}
		encoded, err := json.Marshal(value)
		if err != nil {
			return err
		}
		text = string(encoded)
	}
	for _, has := range e.Has {
		if !strings.Contains(text, has) {
			return fmt.Errorf("want %q\n%s", has, said)
		}
	}
	for _, has := range e.HasNot {
		if strings.Contains(text, has) {
			return fmt.Errorf("want no %q\n%s", has, said)
		}
	}
	for _, lost := range e.Lost {
		if !strings.Contains(got.err, lost) {
			return fmt.Errorf("want %s as lost\n%s", lost, said)
		}
	}
	if e.Back != "" {
		was, err := os.ReadFile(log)
		if err != nil {
			return err
		}
		if back := exec(got.out, "convert", "--to", e.Back, "-"); back.out != string(was) {
			return fmt.Errorf("comes back as\n%s%s", back.out, back.err)
		}
	}
	if e.ThenCheck != nil {
		if check := exec(got.out, append(append([]string{"check"}, e.ThenCheck...), "-")...); check.code != 0 {
			return fmt.Errorf("is refused:\n%s%s\n%s", check.out, check.err, said)
		}
	}
	return nil
}

// at returns the value at a path of the first run's snapshot.
func at(text string, path []string) (value any, there bool) {
	first, _, _ := strings.Cut(text, "\n")
	if json.Unmarshal([]byte(first), &value) != nil && json.Unmarshal([]byte(text), &value) != nil {
		return nil, false
	}
	for _, name := range path {
		switch of := value.(type) {
		case map[string]any:
			if name == "#" {
				return float64(len(of)), true
			}
			if value, there = of[name]; !there {
				return nil, false
			}
		case []any:
			if name == "#" {
				return float64(len(of)), true
			}
			i, err := strconv.Atoi(name)
			if err != nil || i >= len(of) {
				return nil, false
			}
			value = of[i]
		default:
			return float64(0), name == "#"
		}
	}
	return value, true
}
