package eventtest

import (
	"cmp"
	"encoding/json"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/agentevents/agentevents"
)

// A plain makes the events of a log the same for every run of a program.
type plain struct {
	words  map[string]string // by id
	counts map[string]int    // number of words, by their prefix
	next   map[string]uint64 // sequence, by run
	time   time.Time         // of the next event
}

func newPlain() *plain {
	return &plain{words: map[string]string{}, counts: map[string]int{}, next: map[string]uint64{}, time: epoch}
}

// minted matches ids that nobody chose.
var minted = regexp.MustCompile(`^(?i:[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|id[0-9]+)$`)

// first notes the sequence of the first event of a run, which may be a resumed one.
func (p *plain) first(ev *agentevents.Event) {
	if _, ok := p.next[ev.RunID]; !ok {
		p.next[ev.RunID] = ev.Sequence
	}
}

// event returns the event with words in place of values that differ between runs.
func (p *plain) event(ev agentevents.Event) (agentevents.Event, error) {
	line, err := ev.AppendJSON(nil)
	if err != nil {
		return ev, err
	}
	var own agentevents.Event // shares no memory with the recorded event
	if err := json.Unmarshal(line, &own); err != nil {
		return ev, err
	}
	own.Sequence = p.next[own.RunID]
	p.next[own.RunID]++
	id := p.word("EventID", own.ID)
	own.ID = "" // other members of that name are not of events
	p.walk("", reflect.ValueOf(&own).Elem())
	p.walk("", reflect.ValueOf(own.Payload))
	own.ID = id
	p.time = p.time.Add(time.Second)
	return own, nil
}

// walk replaces the ids, times and durations of a field's value.
func (p *plain) walk(field string, v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			p.walk(field, v.Elem())
		}
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			if !v.Interface().(time.Time).IsZero() {
				v.Set(reflect.ValueOf(p.time))
			}
			return
		}
		for i := range v.NumField() {
			switch f := v.Type().Field(i); {
			case !f.IsExported():
			case f.Name == "V": // of an Opt
				p.walk(field, v.Field(i))
			default:
				p.walk(f.Name, v.Field(i))
			}
		}
	case reflect.Slice:
		for i := range v.Len() {
			p.walk(strings.TrimSuffix(field, "s"), v.Index(i))
		}
	case reflect.String:
		if strings.HasSuffix(field, "ID") && v.Len() > 0 {
			v.SetString(p.word(field, v.String()))
		}
	case reflect.Int64:
		switch {
		case field == "Duration", field == "TimeToFirstToken":
			v.SetInt(0)
		case field == "TS" && v.Int() != 0: // of a message
			v.SetInt(p.time.UnixMilli())
		}
	}
}

// nobodys are the fields with ids of events, traces and spans, and the beginning of their words. Nobody
// chooses these ids, whatever they look like.
var nobodys = map[string]string{"EventID": "id", "CausationID": "id",
	"TraceID": "trace", "SpanID": "span", "ParentSpanID": "span"}

// word returns the word for an id, or the id if somebody chose it.
func (p *plain) word(field, id string) string {
	key, name := id, nobodys[field]
	switch {
	case minted.MatchString(id):
	case name == "":
		return id
	default:
		key = name + "\x00" + id // somebody may have chosen the same text for another thing
	}
	if w, ok := p.words[key]; ok || id == "" {
		return w
	}
	if name == "" {
		name = strings.TrimPrefix(strings.TrimSuffix(field, "ID"), "Parent")
		name = cmp.Or(strings.ToLower(name[:min(1, len(name))])+name[min(1, len(name)):], "id")
	}
	p.counts[name]++
	p.words[key] = name + strconv.Itoa(p.counts[name])
	return p.words[key]
}
