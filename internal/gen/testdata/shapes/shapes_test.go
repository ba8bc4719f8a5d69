package agentevents

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/agentevents/agentevents/internal/extra"
	"github.com/agentevents/agentevents/internal/jsonwire"
)

func full() *Shapes {
	when := time.Date(2026, 1, 2, 3, 4, 5, 6_000_000, time.UTC)
	inner := func(name string) Inner { return Inner{Name: name} }
	ref := func(name string) *Inner { return &Inner{Name: name} }
	return &Shapes{
		OText: "a", OOpen: "b", OWord: "yes", OBool: true, OInt: 2, OInt64: 3, OUint64: 1 << 63, OFloat: 0.5,
		OJSON: "[1.0]", OTime: when, OMillis: 2500 * time.Microsecond, ORef: ref("c"), OTexts: []string{"d", "e"},
		ODict: map[string]string{"y": "f", "x": "g"},
		PText: Opt[string]{"", true}, POpen: Opt[Open]{"h", true}, PWord: Opt[Word]{"no", true},
		PBool: Opt[bool]{false, true}, PUint64: Opt[uint64]{0, true}, PJSON: Opt[JSON]{"null", true},
		PTime: Opt[time.Time]{when, true}, PInner: Opt[Inner]{inner("i"), true},
		Text: "j", RJSON: `{"r":1}`, Ref: ref("k"), Inner: inner("l"), Opens: []Open{"m"}, Words: []Word{"yes", "no"},
		Inners: []Inner{inner("n"), inner("o")}, Refs: []*Inner{ref("p")}, Values: []JSON{"null", `"q"`},
		Ints: []int{1, 2}, Uints: []uint64{1 << 63},
		DText: map[string]Open{"kb": "r", "ka": "s"}, DInt: map[string]int{"ka": -1}, DInt64: map[string]int64{"ka": -2},
		DFloat: map[string]float64{"ka": 1e300}, DBool: map[string]bool{"ka": false}, DJSON: map[string]JSON{"ka": "{}"},
		DInner: map[string]Inner{"ka/b": inner("t"), "kc": inner("u")}, DRef: map[string]*Inner{"kb": ref("v")},
		DTexts: map[string][]string{"ka": {"w"}, "kb": {}},
	}
}

const fullText = `{"oText":"a","oOpen":"b","oWord":"yes","oBool":true,"oInt":2,"oInt64":3,"oUint64":9223372036854775808,` +
	`"oFloat":0.5,"oJson":[1.0],"oTime":"2026-01-02T03:04:05.006Z","oMillis":2.5,"oRef":{"name":"c"},"oTexts":["d","e"],` +
	`"oDict":{"x":"g","y":"f"},"pText":"","pOpen":"h","pWord":"no","pBool":false,"pUint64":0,"pJson":null,` +
	`"pTime":"2026-01-02T03:04:05.006Z","pInner":{"name":"i"},"text":"j","rJson":{"r":1},"ref":{"name":"k"},"inner":{"name":"l"},` +
	`"opens":["m"],"words":["yes","no"],"inners":[{"name":"n"},{"name":"o"}],"refs":[{"name":"p"}],"values":[null,"q"],` +
	`"ints":[1,2],"uints":[9223372036854775808],"dText":{"ka":"s","kb":"r"},"dInt":{"ka":-1},"dInt64":{"ka":-2},` +
	`"dFloat":{"ka":1e+300},"dBool":{"ka":false},"dJson":{"ka":{}},"dInner":{"ka/b":{"name":"t"},"kc":{"name":"u"}},` +
	`"dRef":{"kb":{"name":"v"}},"dTexts":{"ka":["w"],"kb":[]}}`

const zeroText = `{"text":"","ref":null,"inner":{"name":""},"opens":[],"words":[],"inners":[],"refs":[],"values":[],"ints":[],` +
	`"uints":[],"dText":{},"dInt":{},"dInt64":{},"dFloat":{},"dBool":{},"dJson":{},"dInner":{},"dRef":{},"dTexts":{}}`

type codec interface {
	appendJSON(dst []byte) []byte
	parseJSON(s *jsonwire.Scanner) error
}

func parse(t *testing.T, v codec, text string) {
	t.Helper()
	var s jsonwire.Scanner
	s.Reset(text)
	err := v.parseJSON(&s)
	if err == nil {
		err = s.End()
	}
	if err != nil {
		t.Fatalf("%v in %s", err, text)
	}
}

func want[T any](t *testing.T, got, want T) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

func TestRoundTrip(t *testing.T) {
	want(t, string(full().appendJSON(nil)), fullText)
	want(t, string(new(Shapes).appendJSON(nil)), zeroText)
	var v Shapes
	parse(t, &v, fullText)
	want(t, &v, full())
	for _, text := range []string{`{}`, fullText, zeroText, `{"oTexts":[],"oDict":{},"strange":1}`} {
		var v Shapes
		parse(t, &v, text)
		want(t, string(v.appendJSON(nil)), text)
	}
	want(t, string(new(Empty).appendJSON(nil)), `{}`)
	var e Empty
	parse(t, &e, `{"strange":1}`)
	want(t, string(e.appendJSON(nil)), `{"strange":1}`)
}

func TestSpelled(t *testing.T) {
	for _, member := range []string{
		`"oText":""`, `"oOpen":""`, `"oWord":""`, `"oBool":false`, `"oInt":0`, `"oInt64":0`, `"oUint64":0`, `"oFloat":0`,
		`"oMillis":0`, `"oTime":"0001-01-01T00:00:00.000Z"`, `"oText":null`, `"oInt":null`, `"oTime":null`, `"oRef":null`,
		`"oTexts":null`, `"oDict":null`, `"pText":null`, `"pInner":null`, `"oJson":null`, `"pJson":null`,
	} {
		var v Shapes
		parse(t, &v, "{"+member+"}")
		want(t, string(v.appendJSON(nil)), "{"+member+"}")
		if !strings.Contains(member, "Json") {
			v.extra = ""
			want(t, v, Shapes{})
		}
	}
}

func TestRefuses(t *testing.T) {
	for _, text := range []string{
		`{"dInt":{"a":1,"a":1}}`, `{"dInner":{"a":{},"\u0061":{}}}`, `{"text":null}`, `{"opens":null}`, `{"inner":null}`,
		`{"inners":[null]}`, `{"refs":[null]}`, `{"dRef":{"a":null}}`, `{"dInt":{"a":null}}`, `{"ints":[1.5]}`, `{"uints":[-1]}`, `{"values":[}`, `{"oTime":"x"}`,
		`{"ref":null,"ref":null}`,
	} {
		var s jsonwire.Scanner
		s.Reset(text)
		if err := new(Shapes).parseJSON(&s); err == nil {
			t.Errorf("no error for %s", text)
		}
	}
}

func TestChecks(t *testing.T) {
	want(t, full().check(), nil)
	for _, test := range []struct {
		change  func(v *Shapes)
		rule    Rule
		pointer string
	}{
		{func(v *Shapes) { v.OOpen = "\xff" }, RuleFieldUTF8, "/oOpen"},
		{func(v *Shapes) { v.OWord = "perhaps" }, RuleFieldEnum, "/oWord"},
		{func(v *Shapes) { v.PWord.V = "" }, RuleFieldEnum, "/pWord"},
		{func(v *Shapes) { v.OInt = 1 }, RuleFieldRange, "/oInt"},
		{func(v *Shapes) { v.OMillis = 1_999_999 }, RuleFieldRange, "/oMillis"},
		{func(v *Shapes) { v.ORef = &Inner{} }, RuleFieldRequired, "/oRef/name"},
		{func(v *Shapes) { v.PInner.V.Name = "more" }, RuleFieldRange, "/pInner/name"},
		{func(v *Shapes) { v.PTime.V = v.PTime.V.AddDate(9000, 0, 0) }, RuleFieldRange, "/pTime"},
		{func(v *Shapes) { v.ODict = map[string]string{"\xff": ""} }, RuleFieldUTF8, "/oDict"},
		{func(v *Shapes) { v.RJSON = "" }, RuleFieldRequired, "/rJson"},
		{func(v *Shapes) { v.Opens[0] = "\xff" }, RuleFieldUTF8, "/opens/0"},
		{func(v *Shapes) { v.Words[1] = "perhaps" }, RuleFieldEnum, "/words/1"},
		{func(v *Shapes) { v.Inners[1].Name = "" }, RuleFieldRequired, "/inners/1/name"},
		{func(v *Shapes) { v.Refs[0].Name = "" }, RuleFieldRequired, "/refs/0/name"},
		{func(v *Shapes) { v.Ints = nil }, RuleFieldRequired, "/ints"},
		{func(v *Shapes) { v.Ints[1] = 0 }, RuleFieldRange, "/ints/1"},
		{func(v *Shapes) { v.DText["~/"] = "\xff" }, RuleFieldUTF8, "/dText/~0~1"},
		{func(v *Shapes) { v.DInner = map[string]Inner{"b": {}, "a": {}} }, RuleFieldRequired, "/dInner/a/name"},
		{func(v *Shapes) { v.DRef["kb"].Name = "" }, RuleFieldRequired, "/dRef/kb/name"},
	} {
		v := full()
		test.change(v)
		err := v.check()
		if err == nil {
			t.Errorf("%s: no error", test.pointer)
			continue
		}
		want(t, *err, fieldError{test.rule, test.pointer, err.detail})
	}
	for _, plain := range []func(v *Shapes){
		func(v *Shapes) { v.Text = "\xff" },          // content
		func(v *Shapes) { v.OInt, v.OMillis = 0, 0 }, // absent
		func(v *Shapes) { v.Ref = nil },
	} {
		v := full()
		plain(v)
		want(t, v.check(), nil)
	}
}

func TestClean(t *testing.T) {
	v := full()
	if v.clean(&cleaner{}) != v {
		t.Error("copied without a change")
	}
	// Every text in turn: the result differs there only, and v not at all.
	for _, s := range strings.Split("a b [1.0] c d e f g h null i j {\"r\":1} k l m n o p \"q\" r s {} t u v w", " ") {
		c := &cleaner{table: map[string]string{s: `"CHANGED"`}}
		w := v.clean(c)
		if w == v {
			t.Errorf("%s: not changed", s)
		}
		want(t, v, full())
		// JSON texts stand as they are in the line, others quoted.
		text := strings.ReplaceAll(string(w.appendJSON(nil)), `\"CHANGED\"`, s)
		if strings.ContainsAny(s, `[{"`) || s == "null" {
			text = strings.ReplaceAll(text, `"CHANGED"`, s)
		}
		if s == "null" { // the cleaner leaves other nulls alone
			want(t, string(w.Values[0]), `"CHANGED"`)
			want(t, string(w.PJSON.V), `"CHANGED"`)
			continue
		}
		want(t, text, fullText)
	}
	// Keys of maps too; those that become equal are told apart.
	c := &cleaner{table: map[string]string{"x": "masked", "y": "masked"}}
	want(t, v.clean(c).ODict, map[string]string{"masked": "g", "masked-2": "f"})
	// An error stops it, at its place.
	for _, test := range []struct{ json, pointer string }{
		{"[1.0]", "/oJson"}, {`{"r":1}`, "/rJson"}, {`"q"`, "/values/1"}, {"{}", "/dJson/ka"},
	} {
		c := &cleaner{table: map[string]string{test.json: "!", "a": "b"}}
		if v.clean(c) != v || c.err == nil || c.err.pointer != test.pointer {
			t.Errorf("%s: %+v", test.pointer, c.err)
		}
	}
	want(t, v, full())
}

func TestOnlyOneMemberIsAnObjectWhenBroken(t *testing.T) {
	c := &cleaner{}
	full().clean(c)
	objects := slices.DeleteFunc(c.calls, func(call string) bool { return !strings.HasPrefix(call, "object ") })
	want(t, objects, []string{"object rJson"})
}

// The size that clean counts is at least the line's, whichever fields are empty.
func TestSize(t *testing.T) {
	empty := full()
	empty.Opens, empty.Values, empty.OTexts, empty.DTexts = make([]Open, 1000), make([]JSON, 1000), make([]string, 1000), map[string][]string{"": make([]string, 1000)}
	empty.Refs, empty.Inners, empty.Uints, empty.Ints = make([]*Inner, 1000), make([]Inner, 1000), make([]uint64, 1000), make([]int, 1000)
	long := full()
	text := strings.Repeat("\x01", 1000)
	long.OText, long.OWord, long.Words, long.DBool = text, Word(text), []Word{"", Word(text)}, map[string]bool{text: true}
	long.DFloat, long.DJSON = map[string]float64{text: 1e300}, map[string]JSON{text: ""}
	for i, v := range []*Shapes{new(Shapes), full(), empty, long} {
		c := &cleaner{}
		v.clean(c)
		if n := len(v.appendJSON(nil)); c.size < n || c.size > 100*n {
			t.Errorf("%d: a size of %d, the line has %d bytes", i, c.size, n)
		}
	}
}

func TestRecord(t *testing.T) {
	const zero = `{"name":"","word":"","texts":[],"nums":{},"inner":{"name":""},"kids":[],"parent":null,"part":{"list":[]}}`
	want(t, string(new(Record).appendJSON(nil)), zero)
	for _, text := range []string{`{}`, zero, `{"strange":[{}],"name":""}`} {
		var r Record
		parse(t, &r, text)
		r.Inner.extra = ""
		want(t, r, Record{})
	}
	const text = `{"name":"n","word":"other","when":"2026-01-02T03:04:05.006Z","texts":["a"],"nums":{"a":1,"b":2},` +
		`"inner":{"name":"i","strange":1},"kids":[` + zero + `],"byName":{"x":` + zero + `},"parent":` + zero + `,"opt":{"name":"o"},"part":{"list":[1]}}`
	var r Record
	parse(t, &r, text)
	want(t, string(r.appendJSON(nil)), text)
}

func wholeRecord() *Whole {
	return &Whole{
		Head: "h", part: part{deeper: deeper{1}, Names: []string{"a"}}, Note: Note{Text: "t"},
		buf: []byte("b\"\n"), bufs: map[string][]byte{"x": []byte("y"), "z": nil},
		rest:  rest{lists: map[string][]int{"l": {1}}, parts: []part{{Names: []string{"p"}}}},
		more:  Opt[rest]{rest{}, true},
		rests: map[string]*rest{"r": {}},
	}
}

func TestEmbedded(t *testing.T) {
	const zero = `{"head":"","names":[],"text":"","buf":"","rest":{"lists":{},"parts":[]}}`
	want(t, string(new(Whole).appendJSON(nil)), zero)
	const text = `{"head":"h","depth":1,"names":["a"],"text":"t","buf":"b\"\n","bufs":{"x":"y","z":""},` +
		`"rest":{"lists":{"l":[1]},"parts":[{"names":["p"]}]},"more":{"lists":{},"parts":[]},"rests":{"r":{"lists":{},"parts":[]}}}`
	want(t, string(wholeRecord().appendJSON(nil)), text)
	var w Whole
	parse(t, &w, text)
	want(t, &w, wholeRecord())
	// The embedded struct has a codec of its own.
	want(t, string(w.part.appendJSON(nil)), `{"depth":1,"names":["a"]}`)
}

func TestEncodingJSON(t *testing.T) {
	text, err := json.Marshal(map[string]any{"shapes": *full(), "whole": []Whole{*wholeRecord()}})
	want(t, err, nil)
	want(t, string(text), `{"shapes":`+fullText+`,"whole":[`+string(wholeRecord().appendJSON(nil))+`]}`)
	var back struct {
		Shapes Shapes
		Whole  []*Whole
	}
	want(t, json.Unmarshal(text, &back), nil)
	want(t, &back.Shapes, full())
	want(t, back.Whole, []*Whole{wholeRecord()})
}

func TestClone(t *testing.T) {
	v := wholeRecord()
	v.owner, v.cache, v.Calls, v.Note.extra = v, []string{"c"}, func() {}, "kept"
	c := v.clone()
	full := wholeRecord()
	full.Note.extra = "kept"
	want(t, c, full)
	// The copy shares nothing.
	v.Names[0], v.buf[0], v.bufs["x"][0] = "-", '-', '-'
	v.rest.lists["l"][0], v.rest.parts[0].Names[0], v.rests["r"].lists = 9, "-", map[string][]int{"new": nil}
	want(t, c, full)
}

func TestKinds(t *testing.T) {
	want(t, ops(&Shapes{}).index(), 0)
	want(t, kindIndex("empty"), 1)
	want(t, emptyPayload("empty"), Payload(&Empty{}))
	want(t, ops((*Empty)(nil)), nil)
	want(t, fieldsOfShapes[25], extra.Field{Name: "inner", Zero: `{"name":""}`})
}

func TestAllocs(t *testing.T) {
	v, buf := full(), make([]byte, 0, 1<<16)
	want(t, testing.AllocsPerRun(10, func() { buf = v.appendJSON(buf[:0]) }), 0)
	c := &cleaner{calls: make([]string, 0, 1<<16)}
	want(t, testing.AllocsPerRun(10, func() { _ = v.PInner.V.clean(c) }) <= 1, true) // the stub's own
}
