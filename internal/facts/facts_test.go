package facts

import (
	"testing"

	"github.com/stretchr/testify/require"
)

const orders = `
order: object closed
	id! text len=2..4
	lines! list items=1..2 unique
		[] @line
	note text|null
	paid boolean
	state text in=open,shipped
	/^x-/ number value=..5
	<if>
		state! in=shipped
	<then>
		paid!
	<not>
		x-a!
		x-b!
line:
	<one>
		- object closed
			kind! in=item
			count! integer value=1..9
		- object closed
			kind! in=gift
			text! text len=1..
wide: list
	[] @line
+order:
	paid! boolean
	until date-time
`

func parsed(t *testing.T) Table {
	t.Helper()
	table, err := Parse(orders)
	require.NoError(t, err)
	return table
}

// A fault tells where it is and how it is mended.
func TestFaults(t *testing.T) {
	const item = `{"kind":"item","count":1}`
	for raw, want := range map[string]Fault{
		`{"id":"ab","lines":[` + item + `],"paid":true}`: {},
		`[]`:                                 {Breach: Type, Detail: "is not an object"},
		`{"id":"ab","lines":[` + item + `]}`: {Breach: Required, Pointer: "/paid", Detail: "is required"},
		`{"id":"a","lines":[` + item + `],"paid":true}`:                                        {Breach: Range, Pointer: "/id", Detail: "is shorter than 2 characters"},
		`{"id":"","lines":[` + item + `],"paid":true}`:                                         {Breach: Range, Pointer: "/id", Detail: "is empty"},
		`{"id":"ééééé","lines":[` + item + `],"paid":true}`:                                    {Breach: Range, Pointer: "/id", Detail: "is longer than 4 characters"},
		`{"id":"ab","lines":[],"paid":true}`:                                                   {Breach: Range, Pointer: "/lines", Detail: "is empty"},
		`{"id":"ab","lines":[` + item + `,` + item + `],"paid":true}`:                          {Breach: Type, Pointer: "/lines", Detail: "has an element twice"},
		`{"id":"ab","lines":[{"kind":"item","count":0}],"paid":true}`:                          {Breach: Range, Pointer: "/lines/0/count", Detail: "is not a whole number from 1 to 9"},
		`{"id":"ab","lines":[{"kind":"item","count":1.5}],"paid":true}`:                        {Breach: Range, Pointer: "/lines/0/count", Detail: "is not a whole number from 1 to 9"},
		`{"id":"ab","lines":[{"kind":"item","count":2.0}],"paid":true}`:                        {},
		`{"id":"ab","lines":[{"kind":"cake","count":1}],"paid":true}`:                          {Breach: Word, Pointer: "/lines/0/kind", Detail: `"cake" is not one of item, gift`},
		`{"id":"ab","lines":[{"kind":"gift","text":"","x":1}],"paid":true}`:                    {Breach: Range, Pointer: "/lines/0/text", Detail: "is empty"},
		`{"id":"ab","lines":[{"kind":"gift","text":"t","a/b":1}],"paid":true}`:                 {Breach: Closed, Pointer: "/lines/0/a~1b", Detail: ExtraMember},
		`{"id":"ab","lines":[` + item + `],"paid":"yes"}`:                                      {Breach: Type, Pointer: "/paid", Detail: "is neither true nor false"},
		`{"id":"ab","lines":[` + item + `],"paid":true,"note":1}`:                              {Breach: Type, Pointer: "/note", Detail: "is not a text or null"},
		`{"id":"ab","lines":[` + item + `],"paid":true,"x-a":6}`:                               {Breach: Range, Pointer: "/x-a", Detail: "is not a number up to 5"},
		`{"id":"ab","lines":[` + item + `],"paid":true,"x-a":1,"x-b":1}`:                       {Breach: Type, Detail: "must not have x-a and x-b"},
		`{"id":"ab","lines":[` + item + `],"paid":true,"state":7}`:                             {Breach: Word, Pointer: "/state", Detail: "a number is not one of open, shipped"},
		`{"id":"ab","lines":[` + item + `],"paid":true,"until":"now"}`:                         {Breach: Type, Pointer: "/until", Detail: "is not a time"},
		`{"id":"ab","lines":[` + item + `],"paid":true,"until":"2026-01-02t03:04:05.5+01:00"}`: {},
	} {
		got := parsed(t)["order"].Check(raw)
		if want == (Fault{}) {
			require.Nil(t, got, raw)
			continue
		}
		require.NotNil(t, got, raw)
		require.Equal(t, []any{want.Breach, want.Pointer, want.Detail}, []any{got.Breach, got.Pointer, got.Detail}, raw)
	}
}

// A schema tells of its members without a value.
func TestMembers(t *testing.T) {
	order := parsed(t)["order"]
	_, declared, required := order.Member("paid")
	require.True(t, declared && required, "a later text adds to the schema")
	of, declared, required := order.Member("x-c")
	require.False(t, declared || required)
	require.False(t, of.Fits("6"))
	require.True(t, order.Refuses("y"))
	require.False(t, order.Refuses("x-c"))
	require.True(t, order.Closed())
	line := parsed(t)["wide"].Element()
	gift := line.Choice(`{"kind":"gift"}`)
	_, declared, _ = gift.Member("text")
	require.True(t, declared)

	var none *Schema
	_, declared, _ = none.Member("x")
	require.False(t, declared || none.Refuses("x") || none.Closed())
	require.True(t, none.Fits("1"))
	require.Nil(t, none.Element().Choice("1").Whole())
}

func TestParseRefuses(t *testing.T) {
	for _, text := range []string{"a: wide", "a: len=1", "a: value=x..", "a: match=(", "a: @b", "a:\n\t/(/ text", "a: size=1.."} {
		_, err := Parse(text)
		require.Error(t, err, text)
	}
}
