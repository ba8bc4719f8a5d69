package lawtest

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/agentevents/agentevents"
)

// Payloads are filled by reflection, from the struct tags of the library. A new kind or
// field needs no code here.

// closedWords are the values of the closed lists, by type name. A new closed list needs
// an entry.
var closedWords = map[string][]string{
	"AgentStatus":  {"thinking", "tool_call", "tool_result", "response", "reflect", "blocked-on-clarification", "converged", "failed"},
	"AgentOutcome": {"converged", "partial", "escaped", "aborted"},
	"AgentSharing": {"isolated", "shared", "shared:group-1"},
	"AuditResult":  {"pass", "fail", "warn"},
	"CommandType":  {"send", "reply", "abort", "resume"},
	"Lifecycle":    {"strict", "relaxed", "derived"},
	"MemoryChange": {"added", "evicted", "summarized", "hydrated", "persisted", "searched"},
	"ModelClass":   {"reasoning", "writing", "coding", "research", "classification", "general"},
	"PatchOp":      {"set", "merge", "remove"},
	"Severity":     {"warning", "error"},
	"ToolStatus":   {"ok", "error", "forbidden", "rate_limited", "cancelled", "interrupted"},
	"Transport":    {"mcp", "http", "native"},
	"Verbosity":    {"full", "summary", "off"},
}

var (
	typeJSON     = reflect.TypeFor[agentevents.JSON]()
	typeTime     = reflect.TypeFor[time.Time]()
	typeDuration = reflect.TypeFor[time.Duration]()
	typeString   = reflect.TypeFor[string]()
)

// payload returns a payload of the kind that passes the field rules.
func (g *generator) payload(k agentevents.Kind) agentevents.Payload {
	p := agentevents.NewPayload(k)
	g.fill(reflect.ValueOf(p).Elem(), field{})
	g.fit(p)
	return p
}

// made returns a filled payload of type P, which actions then change.
func made[P any](g *generator, k agentevents.Kind) P { return g.payload(k).(P) }

// fit applies the field rules that struct tags cannot express.
func (g *generator) fit(p agentevents.Payload) {
	switch p := p.(type) {
	case *agentevents.AuditChecked:
		p.Evidence = agentevents.JSON(g.object(2)) // must be an object
	case *agentevents.AgentEnded:
		p.Totals.V.AuditCheckpoints = p.Totals.V.AuditsPassed + p.Totals.V.AuditsFailed // at least their sum
	case *agentevents.RunStarted:
		if g.chance(70) {
			p.Definition = g.definition()
		}
	case *agentevents.ApprovalRequested:
		if p.Timeout.OK {
			p.Timeout.V = max(p.Timeout.V, time.Hour) // a grant comes in time
		}
	case *agentevents.StatePatched:
		p.Path = pick(g, []string{"", "a", "b", "a.b", "a.b.c", "é.ü", "b.0"})
		switch {
		case g.chance(60):
			p.Value = agentevents.JSON(g.object(2))
		case p.Path == "" && p.Op == agentevents.PatchMerge:
			p.Value = "{}" // must be an object
		case (p.Value == "" || p.Path == "") && p.Op != agentevents.PatchRemove:
			p.Value = "null" // required; of the whole state, else an object
		}
	case *agentevents.CommandConsumed:
		if len(g.commands) > 0 {
			p.EventID = pick(g, g.commands)
		}
	case *agentevents.EventRetracted:
		if len(g.messageEvents) > 0 && g.chance(70) {
			p.EventIDs = append(p.EventIDs, pick(g, g.messageEvents))
		}
	}
}

// A field is the content of a struct tag.
type field struct {
	name     string // name of the Go field
	class    string
	omit     bool // the member may be absent
	required bool // the value must not be empty
	min      int64
	hasMin   bool
	unit     bool
}

func readField(f reflect.StructField) field {
	_, options, _ := strings.Cut(f.Tag.Get("json"), ",")
	out := field{name: f.Name, class: f.Tag.Get("class"), omit: strings.Contains(options, "omit")}
	for check := range strings.SplitSeq(f.Tag.Get("check"), ",") {
		switch min, ok := strings.CutPrefix(check, "min="); {
		case ok:
			out.min, _ = strconv.ParseInt(min, 10, 64)
			out.hasMin = true
		case check == "required":
			out.required = true
		case check == "unit":
			out.unit = true
		case check != "":
			panic(fmt.Sprintf("lawtest: the check %q of field %s is new: teach it to readField", check, f.Name))
		}
	}
	return out
}

// fill sets v to a legal value.
func (g *generator) fill(v reflect.Value, f field) {
	switch v.Type() {
	case typeJSON:
		v.SetString(g.json())
		return
	case typeTime:
		v.Set(reflect.ValueOf(time.UnixMilli(1_700_000_000_000 + g.r.Int64N(1e9)).UTC()))
		return
	case typeDuration:
		v.SetInt(pick(g, []int64{0, 1, 1500, 2_000_000, 3_600_000_000_001}))
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(g.text(v.Type(), f))
	case reflect.Bool:
		v.SetBool(g.chance(50))
	case reflect.Int, reflect.Int64:
		v.SetInt(g.integer(f))
	case reflect.Float64:
		v.SetFloat(g.float(f))
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 0, 2))
		for n := g.r.IntN(3); n > 0 || f.required && v.Len() == 0; n-- {
			elem := reflect.New(v.Type().Elem()).Elem()
			g.fill(elem, field{name: f.name, class: f.class, required: f.class == "id"})
			v.Set(reflect.Append(v, elem))
		}
	case reflect.Map:
		g.fillMap(v, f)
	case reflect.Struct:
		g.fillStruct(v, f)
	default:
		panic("lawtest: no filler for " + v.Type().String())
	}
}

func (g *generator) fillMap(v reflect.Value, f field) {
	if f.omit && g.chance(30) {
		return
	}
	v.Set(reflect.MakeMap(v.Type()))
	for range 1 + g.r.IntN(2) {
		elem := reflect.New(v.Type().Elem()).Elem()
		g.fill(elem, field{class: f.class})
		v.SetMapIndex(reflect.ValueOf(pick(g, []string{"m1", "m/2", "ü~3"})), elem)
	}
}

// fillStruct fills the fields of a struct. An Opt is a struct too: V and OK.
func (g *generator) fillStruct(v reflect.Value, f field) {
	if strings.HasPrefix(v.Type().Name(), "Opt[") {
		if g.chance(50) {
			g.fill(v.Field(0), f)
			v.Field(1).SetBool(true)
		}
		return
	}
	for i := range v.NumField() {
		sf := v.Type().Field(i)
		if !sf.IsExported() {
			continue
		}
		f := readField(sf)
		if f.omit && !f.required && g.chance(40) {
			continue
		}
		g.fill(v.Field(i), f)
	}
}

var texts = []string{
	"", "a", "plain words", "é<&>ü", "line\nbreak \u2028 and\ttab", `"quoted" \ back`, "\U0001f3b2 dice", "\x00\x1f\x7f",
	"token: 12345", strings.Repeat("long ", 60),
}

// text returns a word of a closed list, an id, or free text.
func (g *generator) text(t reflect.Type, f field) string {
	if t != typeString && t.Name() != "Kind" {
		words := closedWords[t.Name()]
		if words == nil {
			g.t.Fatalf("lawtest: closedWords has no entry for the closed type %s: add one", t.Name())
		}
		return pick(g, words)
	}
	if f.class == "id" {
		return g.id(f.name)
	}
	if f.class == "content" && g.chance(3) {
		return "damaged \xff\xc3("
	}
	s := pick(g, texts)
	if s == "" && f.required {
		s = "required"
	}
	return s
}

// id returns one of a few ids for a field, so that events refer to each other.
func (g *generator) id(name string) string {
	switch name {
	case "CallID", "RetryOf":
		return g.callID()
	case "AgentID", "From", "To", "AssignedAgent", "VerifierAgentID", "SourceAgent":
		return g.agentID()
	case "ModelCallID":
		return "model-" + g.callID()
	case "EventID", "EventIDs":
		if n := len(g.out.Events); n > 0 && g.chance(80) {
			return g.out.Events[g.r.IntN(n)].ID
		}
	}
	return strings.ToLower(name) + "-" + strconv.Itoa(g.r.IntN(4))
}

func (g *generator) callID() string  { return "call-" + strconv.Itoa(g.r.IntN(8)) }
func (g *generator) agentID() string { return "agent-" + strconv.Itoa(g.r.IntN(6)) }

func (g *generator) integer(f field) int64 {
	n := pick(g, []int64{0, 1, 2, 3, 17, 1000, 1<<53 + 1})
	if f.hasMin {
		return max(n, f.min)
	}
	return n
}

func (g *generator) float(f field) float64 {
	if f.unit {
		return pick(g, []float64{0, 0.1, 1.0 / 3, 0.5, 1})
	}
	n := pick(g, []float64{0, 0.001, 1.0 / 3, 1.5, 1e-9, 123456789.125, 1e21})
	if !f.hasMin && g.chance(20) {
		return -n
	}
	return n
}

// json returns a small JSON value, sometimes with whitespace in it.
func (g *generator) json() string {
	s := g.value(2)
	if g.chance(20) {
		s = " " + s + "\n"
	}
	return s
}

var scalars = []string{
	"null", "true", "false", "0", "-0", "1.50", "1e400", "9007199254740993", "123456789012345678901234567890",
	`""`, `"a"`, `"\u00e9\n\ud83c\udfb2"`, `"<&>"`, `"ü"`,
}

func (g *generator) value(depth int) string {
	switch {
	case depth > 0 && g.chance(30):
		return g.object(depth)
	case depth > 0 && g.chance(20):
		return "[" + g.value(depth-1) + ", " + g.value(depth-1) + "]"
	}
	return pick(g, scalars)
}

func (g *generator) object(depth int) string {
	var b strings.Builder
	b.WriteByte('{')
	for _, name := range []string{"a", "b", "\\u00fc", "0", "password"} {
		if g.chance(40) {
			if b.Len() > 1 {
				b.WriteByte(',')
			}
			b.WriteString(`"` + name + `": ` + g.value(depth-1))
		}
	}
	b.WriteByte('}')
	return b.String()
}

// definition returns a flow in the form of RunStarted.Definition.
func (g *generator) definition() agentevents.JSON {
	return agentevents.JSON(`{"nodes":["node-0",{"id":"node-1"},{"nodeId":"node-2","x":` + g.value(1) + `}],` +
		`"edges":[{"from":"node-0","to":"node-1"},{"id":"edgeid-1","from":"node-1","to":"node-2"}],"state":` +
		g.object(2) + `}`)
}
