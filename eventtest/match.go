package eventtest

import (
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"

	"github.com/agentevents/agentevents"
)

// A Matcher is a wanted event with a function of its payload. [Match] makes one; the zero
// Matcher matches nothing and fails the test.
type Matcher struct {
	line string
	kind agentevents.Kind // of the payload; "" for Unknown
	of   string           // the payload's type, for failures
	at   string           // where the function is
	test func(agentevents.Payload) (is, holds bool)
}

// Match returns a wanted event: one with a payload of the type P for which the function
// returns true, and with the words of the line, which may be empty.
//
//	rec.Want(t,
//		"main agent.started",
//		eventtest.Match("main", func(p *agentevents.ToolCalled) bool { return len(p.Arguments) < 100 }),
//	)
//
// The function may be called more than once for an event. It must not change the payload.
// Failures name it by its place in the source.
func Match[P agentevents.Payload](line string, holds func(P) bool) Matcher {
	typ := reflect.TypeFor[P]()
	m := Matcher{line: line, of: strings.TrimPrefix(typ.String(), "*agentevents."), at: placeOf(holds)}
	if typ.Kind() == reflect.Pointer {
		ev := agentevents.Event{Payload: reflect.New(typ.Elem()).Interface().(agentevents.Payload)}
		m.kind = ev.Kind()
	}
	if holds != nil {
		m.test = func(p agentevents.Payload) (is, ok bool) {
			typed, is := p.(P)
			return is, is && holds(typed)
		}
	}
	return m
}

// placeOf returns the file and line of a function.
func placeOf(f any) string {
	fn := runtime.FuncForPC(reflect.ValueOf(f).Pointer())
	if fn == nil {
		return "nil"
	}
	file, line := fn.FileLine(fn.Entry())
	return fmt.Sprintf("%s:%d", filepath.Base(file), line)
}

// String returns the matcher as failures show it.
func (m Matcher) String() string {
	return strings.TrimSpace(m.line + " func(*" + m.of + ") at " + m.at)
}

// wantOf returns the want of a wanted value.
func wantOf(wanted any) (*want, error) {
	switch w := wanted.(type) {
	case string:
		return parseWant(w)
	case Matcher:
		if w.test == nil {
			return nil, errors.New("it has no function")
		}
		out := &want{}
		if strings.TrimSpace(w.line) != "" {
			var err error
			if out, err = parseWant(w.line); err != nil {
				return nil, err
			}
		}
		out.text, out.more = w.String(), &w
		return out, nil
	}
	return nil, errors.New("it is neither a line nor a Matcher")
}

// Payloads returns the payloads of one type, in the order in which they were recorded.
// They must not be changed.
//
//	calls := eventtest.Payloads[*agentevents.ToolCalled](rec.Events())
func Payloads[P agentevents.Payload](events []agentevents.Event) []P {
	var out []P
	for _, ev := range events {
		if p, ok := ev.Payload.(P); ok {
			out = append(out, p)
		}
	}
	return out
}
