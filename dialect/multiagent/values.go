package multiagent

import (
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/internal/jsonwire"
)

// markNames are the names of the marks, lowest bit first.
var markNames = [...]string{"late", "synthetic", "replayed", "redacted", "sanitized"}

// statusOf returns the tool status that a word means. It reports true if the word is
// another spelling of the status.
func statusOf(word string) (agentevents.ToolStatus, bool) {
	switch word {
	case "success", "completed":
		return agentevents.ToolStatusOK, true
	case "failed", "failure":
		return agentevents.ToolStatusError, true
	}
	return agentevents.ToolStatus(word), false
}

// value reads the next value into a field. It reports fit as false if the value has
// another type, and then does not consume it. It reports exact as false if the field
// does not preserve the spelling: absent and zero are the same for the field, or the
// encoder does not write this form.
func (r *reader) value(name string, field any) (fit, exact bool, err error) {
	s := &r.s
	exact = true
	switch v := field.(type) {
	case *string:
		*v, err = s.String()
		exact = *v != ""
	case *agentevents.JSON:
		var raw string
		if raw, err = s.Raw(); err != nil {
			return false, false, err
		}
		*v = agentevents.JSON(raw)
	case *agentevents.Opt[int]:
		var n int
		if n, err = s.SmallInt(); err == nil {
			*v = agentevents.Some(n)
		}
	case *agentevents.Opt[int64]:
		if v.V, err = s.Int(); err == nil {
			v.OK = true
		}
	case *agentevents.Opt[float64]:
		if v.V, err = s.Float(); err == nil {
			v.OK = true
		}
	case *agentevents.Opt[time.Duration]:
		if v.V, err = s.Millis(); err == nil {
			v.OK = true
		}
	case *agentevents.Opt[bool]:
		if v.V, err = s.Bool(); err == nil {
			v.OK = true
		}
	case *int:
		*v, err = s.SmallInt()
	case *int64:
		*v, err = s.Int()
	case *float64:
		*v, err = s.Float()
	case *bool:
		*v, err = s.Bool()
		exact = *v
	case *time.Duration:
		*v, err = s.Millis()
	case *time.Time:
		*v, err = s.Time()
		exact = !v.IsZero()
	case *agentevents.ToolStatus:
		var word string
		var other bool
		word, err = s.String()
		*v, other = statusOf(word)
		exact = word != "" && !other
	case *agentevents.AgentRef:
		switch s.Kind() {
		case '{':
			f := refFields(v)
			return true, true, r.object(name, refNames, f[:])
		case '"':
			v.AgentID, err = s.String()
			exact = false
		default:
			return false, false, nil
		}
	case *agentevents.Opt[agentevents.AgentRef]:
		fit, exact, err = r.value(name, &v.V)
		v.OK = fit
		return fit, exact, err
	case *agentevents.Opt[agentevents.ErrorInfo]:
		switch s.Kind() {
		case '{':
			v.OK = true
			f := errorFields(&v.V)
			return true, true, r.object(name, errorNames, f[:])
		case '"':
			v.V.Message, err = s.String()
			v.OK, exact = err == nil, false
		default:
			return false, false, nil
		}
	case *agentevents.Opt[agentevents.Usage]:
		if s.Kind() != '{' {
			return false, false, nil
		}
		v.OK = true
		f := usageFields(&v.V)
		return true, true, r.object(name, usageNames, f[:])
	case *agentevents.Opt[agentevents.Totals]:
		if s.Kind() != '{' {
			return false, false, nil
		}
		v.OK = true
		f := totalsFields(&v.V)
		return true, true, r.object(name, totalsNames, f[:])
	case *map[string]agentevents.Usage:
		return r.usageMap(name, v)
	case *[]string:
		list, ok, err := texts(s)
		if ok {
			*v = list
		}
		return ok, true, err
	case *agentevents.Marks:
		list, ok, err := texts(s)
		if !ok || err != nil {
			return false, false, err
		}
		marks := agentevents.Marks(0)
		for _, name := range list {
			i := slices.Index(markNames[:], name)
			if i < 0 {
				exact = false
				continue
			}
			exact = exact && marks>>i == 0 // each mark once, in the order of the encoder
			marks |= 1 << i
		}
		*v = marks
		return true, exact && marks != 0, nil
	default:
		return false, false, nil
	}
	if err != nil {
		return false, false, nil // the caller keeps the value, which reports malformed JSON
	}
	return true, exact, nil
}

// texts reads a list of strings. It reports false for any other value, and then does
// not consume it.
func texts(s *jsonwire.Scanner) (list []string, ok bool, err error) {
	if s.Kind() != '[' {
		return nil, false, nil
	}
	before := *s
	if err := s.Array(); err != nil {
		return nil, false, err
	}
	list = []string{}
	for {
		more, err := s.Elem()
		if err != nil {
			return nil, false, err
		}
		if !more {
			return list, true, nil
		}
		text, err := s.String()
		if err != nil {
			*s = before
			return nil, false, nil
		}
		list = append(list, text)
	}
}

// object reads the members of an object inside the payload.
func (r *reader) object(name string, names []string, fields []any) error {
	s := &r.s
	if err := s.Object(); err != nil {
		return err
	}
	r.path = append(r.path, name)
	var seen uint32
	guess := 0
	for {
		n, member, err := s.Field(names, guess)
		if err != nil {
			return err
		}
		if n < 0 {
			for i, field := range fields {
				if seen&(2<<i) == 0 && plain(field) {
					r.as = append(r.as, spelling{r.place(bare(names[i]))[len("/payload/"):], ""})
				}
			}
			r.path = r.path[:len(r.path)-1]
			return nil
		}
		if n == 0 {
			if err := r.keep(member); err != nil {
				return err
			}
			continue
		}
		if seen&(1<<n) != 0 {
			return s.Duplicate(member)
		}
		seen |= 1 << n
		guess = n
		fit, err := r.member(member, fields[n-1])
		if err != nil {
			return err
		}
		if !fit {
			seen &^= 1 << n // it is an extra member, where a duplicate is found
		}
	}
}

// usageMap reads usage by model. It does not fit unless all values are objects.
func (r *reader) usageMap(name string, to *map[string]agentevents.Usage) (fit, exact bool, err error) {
	s := &r.s
	if s.Kind() != '{' {
		return false, false, nil
	}
	before := *s
	if err := s.Object(); err != nil {
		return false, false, err
	}
	for {
		_, more, err := s.Member()
		if err != nil {
			return false, false, err
		}
		if !more {
			break
		}
		if s.Kind() != '{' {
			*s = before
			return false, false, nil
		}
		if err := s.Skip(); err != nil {
			return false, false, err
		}
	}
	*s = before
	if err := s.Object(); err != nil {
		return false, false, err
	}
	m := map[string]agentevents.Usage{}
	r.path = append(r.path, name)
	for {
		model, more, err := s.Member()
		if err != nil {
			return false, false, err
		}
		if !more {
			break
		}
		if _, twice := m[model]; twice {
			return false, false, s.Duplicate(model)
		}
		var u agentevents.Usage
		f := usageFields(&u)
		if err := r.object(model, usageNames, f[:]); err != nil {
			return false, false, err
		}
		m[model] = u
	}
	r.path = r.path[:len(r.path)-1]
	*to = m
	return true, true, nil
}

// head appends the name of a member, after a comma unless it is the first one. name
// has quotes and a colon.
func head(dst []byte, name string) []byte {
	if dst[len(dst)-1] != '{' {
		dst = append(dst, ',')
	}
	return append(dst, name...)
}

// value appends a member with the value of a field, or nothing if that is absent.
func (e *Encoder) value(dst []byte, name string, field any) []byte {
	switch v := field.(type) {
	case *string:
		if *v != "" {
			dst = jsonwire.AppendString(head(dst, name), *v)
		}
	case *agentevents.JSON:
		if *v != "" {
			dst = e.json(dst, name, *v)
		}
	case *agentevents.Opt[int]:
		if v.OK {
			dst = jsonwire.AppendInt(head(dst, name), int64(v.V))
		}
	case *agentevents.Opt[int64]:
		if v.OK {
			dst = jsonwire.AppendInt(head(dst, name), v.V)
		}
	case *agentevents.Opt[float64]:
		if v.OK {
			dst = e.float(head(dst, name), v.V)
		}
	case *agentevents.Opt[time.Duration]:
		if v.OK {
			dst = jsonwire.AppendMillis(head(dst, name), v.V)
		}
	case *agentevents.Opt[bool]:
		if v.OK {
			dst = strconv.AppendBool(head(dst, name), v.V)
		}
	case *int:
		dst = jsonwire.AppendInt(head(dst, name), int64(*v))
	case *int64:
		dst = jsonwire.AppendInt(head(dst, name), *v)
	case *float64:
		dst = e.float(head(dst, name), *v)
	case *bool:
		if *v {
			dst = append(head(dst, name), "true"...)
		}
	case *time.Duration:
		dst = jsonwire.AppendMillis(head(dst, name), *v)
	case *time.Time:
		if !v.IsZero() {
			if y := v.UTC().Year(); y < 0 || y > 9999 {
				e.damaged = true
			}
			dst = jsonwire.AppendTime(head(dst, name), *v)
		}
	case *agentevents.ToolStatus:
		if *v != "" {
			dst = jsonwire.AppendString(head(dst, name), string(*v))
		}
	case *agentevents.AgentRef:
		switch {
		case *v == agentevents.AgentRef{}:
		case e.own:
			f := refFields(v)
			dst = e.object(dst, name, refNames, f[:])
		default:
			dst = appendRef(head(dst, name), v)
		}
	case *agentevents.Opt[agentevents.AgentRef]:
		switch {
		case !v.OK:
		case e.own:
			f := refFields(&v.V)
			dst = e.object(dst, name, refNames, f[:])
		default:
			dst = appendRef(head(dst, name), &v.V)
		}
	case *agentevents.Opt[agentevents.ErrorInfo]:
		if v.OK {
			f := errorFields(&v.V)
			dst = e.object(dst, name, errorNames, f[:])
		}
	case *agentevents.Opt[agentevents.Usage]:
		if v.OK {
			f := usageFields(&v.V)
			dst = e.object(dst, name, usageNames, f[:])
		}
	case *agentevents.Opt[agentevents.Totals]:
		switch {
		case !v.OK:
		case e.own:
			f := totalsFields(&v.V)
			dst = e.object(dst, name, totalsNames, f[:])
		default:
			dst = append(head(dst, name), '{')
			for i, n := range [...]int{v.V.Steps, v.V.ToolCalls, v.V.AuditCheckpoints, v.V.AuditsPassed, v.V.AuditsFailed} {
				dst = jsonwire.AppendInt(head(dst, totalsNames[i]), int64(n))
			}
			dst = append(dst, '}')
		}
	case *map[string]agentevents.Usage:
		if *v != nil {
			dst = e.usageMap(dst, name, *v)
		}
	case *[]string:
		dst = append(head(dst, name), '[')
		for i, text := range *v {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = jsonwire.AppendString(dst, text)
		}
		dst = append(dst, ']')
	case *agentevents.Marks:
		if *v != 0 {
			dst = append(head(dst, name), '[')
			for i, mark := range markNames {
				if *v&(1<<i) != 0 {
					if dst[len(dst)-1] != '[' {
						dst = append(dst, ',')
					}
					dst = jsonwire.AppendString(dst, mark)
				}
			}
			dst = append(dst, ']')
		}
	}
	return dst
}

// appendRef appends an AgentRef as an object, for an event that was not read from a
// line.
func appendRef(dst []byte, v *agentevents.AgentRef) []byte {
	dst = append(dst, '{')
	dst = appendText(dst, refNames[0], v.AgentID)
	dst = appendText(dst, refNames[1], string(v.AgentSharing))
	dst = appendText(dst, refNames[2], v.MemoryRef)
	dst = appendText(dst, refNames[3], string(v.ModelClass))
	return append(dst, '}')
}

// appendText appends a member with a text, unless that is empty.
func appendText(dst []byte, name, text string) []byte {
	if text == "" {
		return dst
	}
	return jsonwire.AppendString(head(dst, name), text)
}

// json appends a member with raw JSON.
func (e *Encoder) json(dst []byte, name string, v agentevents.JSON) []byte {
	raw, err := jsonwire.Compact(string(v))
	if err != nil {
		e.damaged = true
	}
	return append(head(dst, name), raw...)
}

func (e *Encoder) float(dst []byte, f float64) []byte {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		e.damaged = true
	}
	return jsonwire.AppendFloat(dst, f)
}

// isObject reports whether a field is JSON that is an object.
func isObject(field any) bool {
	raw, ok := field.(*agentevents.JSON)
	return ok && strings.HasPrefix(strings.TrimLeft(string(*raw), " \t\r\n"), "{")
}

// sets reports whether readers of raw, an extra member with the short spelling of a
// field, set the field.
func sets(field any, raw string) bool {
	switch field.(type) {
	case *agentevents.ToolStatus, *agentevents.AgentRef:
		return raw[0] == '"' && raw != `""`
	case *agentevents.Opt[agentevents.AgentRef], *agentevents.Opt[agentevents.ErrorInfo]:
		return raw[0] == '"'
	case *agentevents.Marks:
		var none agentevents.Marks
		return raw[0] == '[' && !says(&none, raw)
	}
	return false
}

// takes reports whether readers of raw set a field of the given type. It does not
// change the field.
func takes(field any, raw string) bool {
	value := reflect.New(reflect.TypeOf(field).Elem())
	var r reader
	r.s.Reset(raw)
	fit, _, err := r.value("", value.Interface())
	return err == nil && fit && !value.Elem().IsZero()
}

// says reports whether raw, an extra member with the line's spelling of a field,
// still has the field's value.
func says(field any, raw string) bool {
	if raw == "" || raw[0] != '"' && raw[0] != '[' {
		return false
	}
	var s jsonwire.Scanner
	s.Reset(raw)
	if marks, ok := field.(*agentevents.Marks); ok {
		var r reader
		var was agentevents.Marks
		r.s = s
		fit, _, err := r.value("", &was)
		return fit && err == nil && was == *marks
	}
	text, err := s.String()
	if err != nil {
		return false
	}
	switch v := field.(type) {
	case *agentevents.ToolStatus:
		status, _ := statusOf(text)
		return status == *v
	case *agentevents.AgentRef:
		return *v == agentevents.AgentRef{AgentID: text}
	case *agentevents.Opt[agentevents.AgentRef]:
		return v.OK && v.V == agentevents.AgentRef{AgentID: text}
	case *agentevents.Opt[agentevents.ErrorInfo]:
		return v.OK && v.V == agentevents.ErrorInfo{Message: text}
	}
	return false
}
