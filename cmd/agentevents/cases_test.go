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

	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents/internal/txtar"
)

// A ran is a command that ran on the log of a case.
type ran struct {
	result
	log string
}

// conditions are the conditions of a case on a command, by the first word of the line.
var conditions = map[string]func(r *ran, rest string) error{
	"exit":  func(r *ran, rest string) error { return unless(strconv.Itoa(r.code) == rest) },
	"lines": func(r *ran, rest string) error { return unless(strconv.Itoa(strings.Count(r.out, "\n")) == rest) }, // of the output
	"has":   func(r *ran, rest string) error { return unless(strings.Contains(r.out, rest)) },
	"lacks": func(r *ran, rest string) error { return unless(!strings.Contains(r.out, rest)) },
	"lost":  func(r *ran, rest string) error { return unless(strings.Contains(r.err, rest)) }, // as standard error lists
	"at":    (*ran).at,
	// back FORMAT: the output is the log again, once it is converted to this format.
	"back": func(r *ran, rest string) error {
		back := exec(r.out, "convert", "--to", rest, "-")
		if back.out != r.log {
			return fmt.Errorf("it comes back as\n%s%s", back.out, back.err)
		}
		return nil
	},
	// then COMMAND: the command accepts the output.
	"then": func(r *ran, rest string) error {
		if then := exec(r.out, append(strings.Fields(rest), "-")...); then.code != exitOK {
			return fmt.Errorf("it is refused:\n%s%s", then.out, then.err)
		}
		return nil
	},
}

func unless(holds bool) error {
	if holds {
		return nil
	}
	return fmt.Errorf("it does not hold")
}

// at is about a value of the first run's snapshot: "at PATH is JSON", "at PATH has TEXT", "at
// PATH there" or "at PATH absent". The name # is the number of members.
func (r *ran) at(rest string) error {
	path, rest, _ := strings.Cut(rest, " ")
	word, text, _ := strings.Cut(rest, " ")
	value, there, err := valueAt(r.out, strings.Split(path, "/")[1:])
	if err != nil {
		return err
	}
	encoded, err := json.Marshal(value)
	if err != nil {
		return err
	}
	switch word {
	case "there":
		return unless(there)
	case "absent":
		return unless(!there)
	case "has":
		return unless(strings.Contains(string(encoded), text))
	case "is":
		var want any
		if err := json.Unmarshal([]byte(text), &want); err != nil {
			return err
		}
		if !reflect.DeepEqual(want, value) {
			return fmt.Errorf("it is %s", encoded)
		}
		return nil
	default:
		return fmt.Errorf("no condition %q", word)
	}
}

// TestCases runs commands on logs that the source documents allow or forbid.
func TestCases(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("testdata", "cases*.txtar"))
	require.NoError(t, err)
	var cases []txtar.File
	for _, name := range files {
		cases = append(cases, txtar.Parse(read(t, name)).Files...)
	}
	require.NotEmpty(t, cases)
	for _, c := range cases {
		t.Run(c.Name, func(t *testing.T) {
			at := strings.Index(c.Text, "\n{") + 1
			log := filepath.Join(t.TempDir(), "run.jsonl")
			require.NoError(t, os.WriteFile(log, []byte(c.Text[at:]), 0o600))
			commands := strings.Split(c.Text[:at], "$ ")
			require.Empty(t, commands[0])
			for _, command := range commands[1:] {
				args, wants, _ := strings.Cut(command, "\n")
				r := &ran{exec("", append(strings.Fields(args), log)...), c.Text[at:]}
				require.NotEqual(t, exitUsage, r.code, r.err)
				require.NotEmpty(t, wants, args)
				for want := range strings.Lines(wants) {
					want = strings.TrimSuffix(want, "\n")
					word, rest, _ := strings.Cut(want, " ")
					holds := conditions[word]
					require.NotNil(t, holds, want)
					if err := holds(r, rest); err != nil {
						t.Errorf("%s: %s: %v\nexit %d\nout: %s\nerr: %s", args, want, err, r.code, r.out, r.err)
					}
				}
			}
		})
	}
}

// valueAt returns the value at a path of the first run's snapshot.
func valueAt(text string, path []string) (value any, there bool, err error) {
	if err := json.NewDecoder(strings.NewReader(text)).Decode(&value); err != nil {
		return nil, false, err
	}
	for _, name := range path {
		var members map[string]any
		switch of := value.(type) {
		case map[string]any:
			members = of
		case []any:
			members = map[string]any{}
			for i, item := range of {
				members[strconv.Itoa(i)] = item
			}
		}
		if name == "#" {
			return float64(len(members)), true, nil
		}
		if value, there = members[name]; !there {
			return nil, false, nil
		}
	}
	return value, true, nil
}
