package dialecttest

import (
	"fmt"
	"hash/fnv"
	"reflect"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/agentevents/agentevents"
)

// Filled returns an event of the kind with every exported field of envelope and
// payload set to a legal value. No two values are alike, so that a lost or
// misplaced one shows. Fields of the same name have the same value in all kinds,
// so that a call and its return belong together. Two calls give equal events that
// share no memory.
func Filled(kind agentevents.Kind) agentevents.Event {
	ev := Minimal(kind)
	f := newFiller()
	f.fields(reflect.ValueOf(&ev).Elem(), "", func(m member) bool { return !slices.Contains(placed, m.name) })
	f.fields(reflect.ValueOf(&ev.Scope).Elem(), "", func(member) bool { return true })
	f.fields(reflect.ValueOf(ev.Payload).Elem(), "", func(member) bool { return true })
	ev.Marks = 1<<agentevents.Marks(len(strings.Split((^agentevents.Marks(0)).String(), ","))) - 1
	settle(&ev)
	return ev
}

// Minimal returns an event of the kind with only the members that every event
// has, those that its payload requires, and the agent if the event is about one.
func Minimal(kind agentevents.Kind) agentevents.Event {
	ev := agentevents.Event{SchemaVersion: agentevents.SchemaVersion, RunID: "run-1",
		Payload: agentevents.NewPayload(kind)}
	place(&ev, 0)
	switch kind {
	case agentevents.KindAgentStarted, agentevents.KindAgentTransition, agentevents.KindAgentEnded:
		ev.AgentID = "agent-id-1"
	}
	newFiller().fields(reflect.ValueOf(ev.Payload).Elem(), "", func(m member) bool {
		return m.required || kind == agentevents.KindStatePatched && m.name == "value" // only remove has none
	})
	settle(&ev)
	return ev
}

// place gives an event the id, number and time of index i in a run.
func place(ev *agentevents.Event, i int) {
	ev.ID = fmt.Sprintf("01930000-0000-7000-8000-%012d", i+1)
	ev.Sequence = uint64(700 + i)
	ev.Time = time.Date(2026, 5, 5, 9, 0, 1, 234e6, time.UTC).Add(time.Duration(i) * 1017 * time.Millisecond)
}

// settle makes an event legal where fields depend on each other.
func settle(ev *agentevents.Event) {
	switch p := ev.Payload.(type) {
	case *agentevents.AgentStarted:
		if p.Agent.OK && ev.AgentID != "" {
			p.Agent.V.AgentID = ev.AgentID
		}
	case *agentevents.AgentEnded:
		if p.Totals.OK {
			p.Totals.V.AuditCheckpoints = p.Totals.V.AuditsPassed + p.Totals.V.AuditsFailed + 1
		}
	case *agentevents.SpanRecorded:
		p.Subject, p.Phase = "judge", "complete"
	case *agentevents.ToolReturned:
		if !p.OneEvent {
			p.Arguments, p.ArgumentsSummary = "", ""
		}
	case *agentevents.MessageCreated:
		if p.Message.TS == 0 {
			p.Message.TS = ev.Time.UnixMilli()
		}
	}
}

// words are the closed lists of the vocabulary. Filled uses the first word of
// each.
var words = map[reflect.Type][]string{
	reflect.TypeFor[agentevents.Verbosity]():    {"summary", "full", "off"},
	reflect.TypeFor[agentevents.ToolStatus]():   {"error", "ok", "forbidden", "rate_limited", "cancelled", "interrupted"},
	reflect.TypeFor[agentevents.Severity]():     {"warning", "error"},
	reflect.TypeFor[agentevents.Transport]():    {"mcp", "http", "native"},
	reflect.TypeFor[agentevents.PatchOp]():      {"merge", "set", "remove"},
	reflect.TypeFor[agentevents.CommandType]():  {"send", "reply", "abort", "resume"},
	reflect.TypeFor[agentevents.MemoryChange](): {"evicted", "added", "summarized", "hydrated", "persisted", "searched"},
	reflect.TypeFor[agentevents.AgentSharing](): {"shared", "isolated", "shared:group-1"},
	reflect.TypeFor[agentevents.ModelClass](): {"coding", "reasoning", "writing", "research", "classification",
		"general"},
	reflect.TypeFor[agentevents.AgentStatus](): {"thinking", "tool_call", "tool_result", "response", "reflect",
		"blocked-on-clarification", "converged", "failed"},
	reflect.TypeFor[agentevents.Lifecycle]():    {"derived", "strict", "relaxed"},
	reflect.TypeFor[agentevents.AgentOutcome](): {"partial", "converged", "escaped", "aborted"},
	reflect.TypeFor[agentevents.AuditResult]():  {"fail", "pass", "warn"},
}

// known are texts for fields that need a certain form.
var known = map[string]string{
	"traceId":      "4bf92f3577b34da6a3ce929d0e0e4736",
	"spanId":       "00f067aa0ba902b7",
	"parentSpanId": "53995c3f42cd8ad8",
	"causationId":  "01930000-0000-7000-8000-0000000000ff",
}

// A filler sets fields. It derives values from the names of fields, and never
// uses a number twice.
type filler struct{ used map[int]bool }

func newFiller() *filler { return &filler{map[int]bool{}} }

// A member is a struct field that has a member on the line.
type member struct {
	field    reflect.StructField
	name     string // name of the member on the line
	required bool   // every line has it
	check    string
}

func memberOf(f reflect.StructField) (member, bool) {
	name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
	if name == "" { // fields of the envelope have no tags
		name = envelopeName(f.Name)
	}
	return member{f, name, f.Tag.Get("json") != "" && !strings.Contains(options, "omitzero"), f.Tag.Get("check")},
		f.IsExported() && !f.Anonymous
}

// envelopeName returns the member of a field of the envelope.
func envelopeName(field string) string {
	switch field {
	case "ID":
		return "id"
	case "Time":
		return "timestamp"
	}
	if base, ok := strings.CutSuffix(field, "ID"); ok {
		field = base + "Id"
	}
	return string(unicode.ToLower(rune(field[0]))) + field[1:]
}

// placed are the members of the envelope that place or Minimal sets, and the
// payload.
var placed = []string{"id", "sequence", "timestamp", "runId", "schemaVersion", "marks", "payload"}

// fields sets the fields of a struct that pass accepts. path is its place.
func (f *filler) fields(v reflect.Value, path string, pass func(member) bool) {
	for i := range v.NumField() {
		m, ok := memberOf(v.Type().Field(i))
		if !ok || !pass(m) {
			continue
		}
		f.set(v.Field(i), path, m, pass)
	}
}

// number returns a number for a name that no other name has.
func (f *filler) number(path string) int {
	h := fnv.New32a()
	h.Write([]byte(path))
	n := int(h.Sum32() % 61)
	for n < 2 || f.used[n] {
		n++
	}
	f.used[n] = true
	return n
}

func (f *filler) set(v reflect.Value, path string, m member, pass func(member) bool) {
	full := m.name
	if path != "" {
		full = path + "-" + m.name
	}
	if list, ok := words[v.Type()]; ok {
		v.SetString(list[0])
		if m.name == "to" {
			v.SetString(list[1])
		}
		return
	}
	switch v.Interface().(type) {
	case agentevents.JSON:
		v.SetString(fmt.Sprintf(`{"of":%q,"n":9007199254740993,"list":[1.50,null,"<é"],"deep":{"z":1,"a":{}}}`, full))
		return
	case time.Time:
		v.Set(reflect.ValueOf(time.Date(2026, 5, 4, 8, 7, f.number(full)%60, 345e6, time.UTC)))
		return
	case time.Duration:
		v.SetInt(int64(time.Duration(1000+f.number(full)*37) * time.Millisecond))
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(text(full, m))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		if m.name == "index" {
			break // it is the first delta
		}
		v.SetInt(int64(f.number(full)))
	case reflect.Float64:
		v.SetFloat(float64(f.number(full)) / 64) // exact, and within [0, 1]
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		for i := range v.Len() {
			f.set(v.Index(i), full, member{name: fmt.Sprint(i), required: true, field: m.field}, pass)
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		for _, key := range []string{"model-a", "model-b"} {
			elem := reflect.New(v.Type().Elem()).Elem()
			f.set(elem, full, member{name: key}, pass)
			v.SetMapIndex(reflect.ValueOf(key), elem)
		}
	case reflect.Struct:
		if ok := v.FieldByName("OK"); ok.IsValid() {
			ok.SetBool(true)
			f.set(v.FieldByName("V"), path, m, pass)
			return
		}
		f.fields(v, full, pass)
	default:
		panic("dialecttest: no filler for " + v.Type().String())
	}
}

// text returns a text for a field: plain for an id or a word, with odd characters
// for content.
func text(path string, m member) string {
	if known[path] != "" {
		return known[path]
	}
	var b strings.Builder
	for i, c := range path { // agentId becomes agent-id
		if unicode.IsUpper(c) {
			if i > 0 {
				b.WriteByte('-')
			}
			c = unicode.ToLower(c)
		}
		b.WriteRune(c)
	}
	if m.field.Tag.Get("class") == "content" && !strings.HasSuffix(m.name, "Id") {
		return b.String() + ": naïve <b>\"\\\n\t\u2028😀"
	}
	return b.String() + "-1"
}

// A variant is one way to fill an event of a kind.
type variant struct {
	name string
	ev   agentevents.Event
}

// variants returns events of the kind: with few and with all members, with zero
// where a member may be zero, with empty and long texts, with numbers of many
// digits, with each optional member alone, and with every word of every closed
// list.
func variants(kind agentevents.Kind) []variant {
	alone := func() agentevents.Event {
		ev := Minimal(kind)
		ev.AgentID = Filled(kind).AgentID
		return ev
	}
	zeros := alone()
	setZeros(reflect.ValueOf(zeros.Payload).Elem())
	zeros.Step = agentevents.Some(0)
	empty, long, exact := alone(), Filled(kind), Filled(kind)
	eachLeaf(reflect.ValueOf(empty.Payload).Elem(), emptyText)
	eachLeaf(reflect.ValueOf(long.Payload).Elem(), longText)
	eachLeaf(reflect.ValueOf(exact.Payload).Elem(), exactNumber)
	list := []variant{
		{"filled", Filled(kind)}, {"minimal", Minimal(kind)}, // the few of -short
		{"with an agent", alone()},
		{"zeros", zeros}, {"empty texts", empty}, {"long texts", long}, {"exact numbers", exact},
	}

	filled := Filled(kind)
	one := func(to func(*agentevents.Event) reflect.Value) {
		for i := range to(&filled).NumField() {
			m, ok := memberOf(to(&filled).Type().Field(i))
			if !ok || m.required || slices.Contains(placed, m.name) && m.name != "marks" || to(&filled).Field(i).IsZero() {
				continue
			}
			ev, from := alone(), Filled(kind)
			to(&ev).Field(i).Set(to(&from).Field(i))
			settle(&ev)
			list = append(list, variant{"with " + m.name, ev})
		}
	}
	one(func(ev *agentevents.Event) reflect.Value { return reflect.ValueOf(ev).Elem() })
	one(func(ev *agentevents.Event) reflect.Value { return reflect.ValueOf(&ev.Scope).Elem() })
	one(func(ev *agentevents.Event) reflect.Value { return reflect.ValueOf(ev.Payload).Elem() })

	payload := reflect.ValueOf(filled.Payload).Elem()
	for i := range payload.NumField() {
		for _, word := range words[payload.Field(i).Type()] {
			ev := Filled(kind)
			reflect.ValueOf(ev.Payload).Elem().Field(i).SetString(word)
			m, _ := memberOf(payload.Type().Field(i))
			list = append(list, variant{m.name + " " + word, ev})
		}
	}
	return list
}

// eachLeaf calls f for every field that is not a struct or list, at any depth.
func eachLeaf(v reflect.Value, f func(v reflect.Value, m member)) {
	var visit func(v reflect.Value, m member)
	visit = func(v reflect.Value, m member) {
		switch {
		case v.Kind() == reflect.Slice:
			for i := range v.Len() {
				visit(v.Index(i), m)
			}
		case v.Kind() == reflect.Struct && v.FieldByName("OK").IsValid():
			if v.FieldByName("OK").Bool() {
				visit(v.FieldByName("V"), m)
			}
		case v.Kind() == reflect.Struct && v.Type() != reflect.TypeFor[time.Time]():
			for i := range v.NumField() {
				if m, ok := memberOf(v.Type().Field(i)); ok {
					visit(v.Field(i), m)
				}
			}
		default:
			f(v, m)
		}
	}
	visit(v, member{})
}

func isContent(v reflect.Value, m member) bool {
	return v.Type() == reflect.TypeFor[string]() && m.field.Tag.Get("class") == "content"
}

func emptyText(v reflect.Value, m member) {
	if isContent(v, m) {
		v.SetString("")
	}
}

func longText(v reflect.Value, m member) {
	if isContent(v, m) && v.String() != "" {
		v.SetString(strings.Repeat(v.String()+" ", 200))
	}
}

// exactNumber sets numbers that do not fit a float64, a millisecond or two
// digits.
func exactNumber(v reflect.Value, m member) {
	switch {
	case v.IsZero():
	case v.Type() == reflect.TypeFor[time.Duration]():
		v.SetInt(v.Int() + 234_567)
	case v.Kind() == reflect.Int64:
		v.SetInt(1<<53 + 1 + v.Int())
	case v.Kind() == reflect.Float64:
		v.SetFloat(v.Float()/3 + 1e-17)
	}
}

// setZeros sets every optional number, flag and duration to zero, or to the least
// legal value.
func setZeros(v reflect.Value) {
	for i := range v.NumField() {
		m, exported := memberOf(v.Type().Field(i))
		if !exported || v.Field(i).Kind() != reflect.Struct {
			continue
		}
		ok := v.Field(i).FieldByName("OK")
		if !ok.IsValid() {
			continue
		}
		switch inner := v.Field(i).FieldByName("V"); inner.Kind() {
		case reflect.Struct:
		case reflect.Int:
			if m.check == "min=1" {
				inner.SetInt(1)
			}
			ok.SetBool(true)
		default:
			ok.SetBool(true)
		}
	}
}

// links are the fields that connect events.
var links = []string{"CallID", "ToolID", "BlockID", "ApprovalID", "InterruptID", "HandoffID", "StepID", "Turn",
	"From", "To", "ProviderSessionID"}

// before and after list the kinds that make an event legal: its subject is opened before it, and
// closed after it.
var before = map[agentevents.Kind][]agentevents.Kind{
	agentevents.KindSessionCompleted:      {agentevents.KindSessionStarted},
	agentevents.KindRunPaused:             {agentevents.KindRunStarted},
	agentevents.KindRunResumed:            {agentevents.KindRunStarted, agentevents.KindRunPaused},
	agentevents.KindRunCompleted:          {agentevents.KindRunStarted},
	agentevents.KindRunFailed:             {agentevents.KindRunStarted},
	agentevents.KindRunCancelled:          {agentevents.KindRunStarted},
	agentevents.KindAgentTransition:       {agentevents.KindAgentStarted},
	agentevents.KindAgentEnded:            {agentevents.KindAgentStarted},
	agentevents.KindHandoffAccepted:       {agentevents.KindHandoffRequested},
	agentevents.KindTurnEnded:             {agentevents.KindTurnStarted},
	agentevents.KindTurnSummarized:        {agentevents.KindTurnStarted},
	agentevents.KindStepEnded:             {agentevents.KindStepStarted},
	agentevents.KindNodeCompleted:         {agentevents.KindNodeStarted},
	agentevents.KindNodeFailed:            {agentevents.KindNodeStarted},
	agentevents.KindNodeSuspended:         {agentevents.KindNodeStarted},
	agentevents.KindWorkflowApproved:      {agentevents.KindWorkflowCreated},
	agentevents.KindPhaseStarted:          {agentevents.KindWorkflowCreated},
	agentevents.KindPhaseCompleted:        {agentevents.KindWorkflowCreated, agentevents.KindPhaseStarted},
	agentevents.KindCheckpointSaved:       {agentevents.KindWorkflowCreated, agentevents.KindPhaseStarted},
	agentevents.KindCheckpointResumed:     {agentevents.KindWorkflowCreated, agentevents.KindPhaseStarted},
	agentevents.KindWorkflowFinalized:     {agentevents.KindWorkflowCreated},
	agentevents.KindApprovalGranted:       {agentevents.KindApprovalRequested},
	agentevents.KindApprovalRejected:      {agentevents.KindApprovalRequested},
	agentevents.KindClarificationResolved: {agentevents.KindClarificationRequested},
	agentevents.KindCommandConsumed:       {agentevents.KindCommandReceived},
	agentevents.KindToolReturned:          {agentevents.KindToolCalled},
}

var after = map[agentevents.Kind][]agentevents.Kind{
	agentevents.KindAgentReasoningDelta: {agentevents.KindAgentReasoned},
	agentevents.KindTextDelta:           {agentevents.KindTextCompleted},
	agentevents.KindToolCalled:          {agentevents.KindToolReturned},
	agentevents.KindToolArgumentsDelta:  {agentevents.KindToolCalled, agentevents.KindToolReturned},
}

// inContext returns a legal sequence of events of one run that has ev in it.
// filled decides whether the others are filled or minimal.
func inContext(ev agentevents.Event, filled bool) []agentevents.Event {
	kind := ev.Kind()
	if p, ok := ev.Payload.(*agentevents.ToolReturned); ok && p.OneEvent {
		return []agentevents.Event{ev}
	}
	var list []agentevents.Event
	add := func(kinds []agentevents.Kind) {
		for _, k := range kinds {
			other := Minimal(k)
			if filled {
				other = Filled(k)
			}
			payload := other.Payload
			other = ev
			other.Payload, other.CausationID = payload, ""
			link(other.Payload, ev.Payload)
			if p, ok := other.Payload.(*agentevents.ToolReturned); ok {
				p.OneEvent = false
			}
			settle(&other)
			list = append(list, other)
		}
	}
	add(before[kind])
	list = append(list, ev)
	add(after[kind])
	for i := range list {
		place(&list[i], i)
		if i == 0 {
			continue
		}
		switch p := list[i].Payload.(type) {
		case *agentevents.ToolReturned:
			list[i].CausationID = list[i-1].ID
		case *agentevents.CommandConsumed:
			p.EventID = list[i-1].ID
		}
	}
	return list
}

// link copies the ids of another payload.
func link(to, from agentevents.Payload) {
	a, b := reflect.ValueOf(to).Elem(), reflect.ValueOf(from).Elem()
	for _, name := range links {
		x, y := a.FieldByName(name), b.FieldByName(name)
		if x.IsValid() && y.IsValid() && x.Type() == y.Type() {
			x.Set(y)
		}
	}
}
