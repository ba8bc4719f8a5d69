package schematable

import (
	"os"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents/internal/facts"
)

// A table has one text.
func TestText(t *testing.T) {
	for _, name := range []string{"v1", "v2"} {
		file, err := os.ReadFile("../../../../dialect/openwop/internal/schemas/" + name + ".txt")
		require.NoError(t, err)
		_, text, _ := strings.Cut(string(file), "\n\n")
		table, err := Parse(text)
		require.NoError(t, err)
		again, err := table.String()
		require.NoError(t, err)
		require.Equal(t, text, again)
	}
}

// Every condition of the text judges.
func TestConditions(t *testing.T) {
	for text, values := range map[string][2]string{
		"a: object":               {`{}`, `[]`},
		"a: text|null":            {`"" null`, `0`},
		"a: len=1..2":             {`"é" 5`, `"" "abc"`},
		"a: items=..1":            {`[1]`, `[1,1]`},
		"a: value=0..":            {`0`, `-1`},
		"a: in=b,c":               {`"b" "c"`, `"d"`},
		`a: match=^(?!x).\.$`:     {`"y."`, `"x."`},
		"a: closed\n\tb":          {`{"b":1}`, `{"c":1}`},
		"a:\n\tb!\n\tc":           {`{"b":1}`, `{"c":1}`},
		"a: closed\n\t/^x-/ text": {`{"x-a":""}`, `{"x-a":1} {"y":""}`},
		"a: unique\n\t[] integer": {`[1,2]`, `[1,1] [0.5]`},
		"a: date-time":            {`"2026-01-02T03:04:05Z"`, `"2026-01-02"`},
		"a: @b\nb: null":          {`null`, `1`},
		"a:\n\t<not> null":        {`1`, `null`},
		"a:\n\t<if> text\n\t<then> len=1..\n\t<else> null": {`"x" null`, `"" 1`},
		"a:\n\t<all>\n\t\t- text\n\t\t- len=1..":           {`"x"`, `"" 1`},
		"a:\n\t<any>\n\t\t- text\n\t\t- null":              {`"x" null`, `1`},
		"a:\n\t<one>\n\t\t- number\n\t\t- integer\n\tb":    {`0.5`, `1`},
	} {
		table, err := Parse("# comment\n" + text + "\n")
		require.NoError(t, err, text)
		again, err := table.String()
		require.NoError(t, err, text)
		require.Equal(t, len(text)+1, len(again), text) // members may have another order
		judges, err := table.Compile("a")
		require.NoError(t, err, text)
		own, err := facts.Parse(text)
		require.NoError(t, err, text)
		for i, list := range values {
			for value := range strings.FieldsSeq(list) {
				v, err := jsonschema.UnmarshalJSON(strings.NewReader(value))
				require.NoError(t, err)
				require.Equal(t, i == 0, judges["a"].Validate(v) == nil, "%s: %s", text, value)
				if !strings.Contains(text, "(?!") { // which package regexp does not have
					require.Equal(t, i == 0, own["a"].Fits(value), "%s: %s: %+v", text, value, own["a"].Check(value))
				}
			}
		}
	}
}

func TestUnknown(t *testing.T) {
	for _, text := range []string{"a: wide", "a: text|wide", "a: size=1..2", "a: len=1"} {
		_, err := Parse(text)
		require.Error(t, err, text)
		_, err = facts.Parse(text)
		require.Error(t, err, text)
	}
	for _, schema := range []object{
		{"multipleOf": 2}, {"format": "email"}, {"enum": []any{1}}, {"type": "any"}, {"pattern": "a b"}, {"required": []any{"a"}}, {"additionalProperties": object{}},
		{"properties": object{"a!": object{}}}, {"items": true},
	} {
		_, err := Table{"s": schema}.String()
		require.Error(t, err, schema)
	}
}
