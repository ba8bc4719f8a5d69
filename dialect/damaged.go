package dialect

import (
	"bytes"
	"reflect"
	"strconv"
	"strings"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/internal/jsonwire"
)

// DamagedText is the [Loss.Detail] of a text that is not UTF-8: the line has
// U+FFFD for each damaged character.
const DamagedText = "damaged characters were replaced"

// Damaged returns JSON pointers to the text in the payload of ev that is not valid UTF-8. The
// pointers are places in its native line. line is the line written for ev: if it has no U+FFFD,
// Damaged returns nil. Ids are not listed, because every encoder returns an error for an id that is
// not UTF-8. The emitter replaces damaged text itself and marks the event.
func Damaged(ev *agentevents.Event, line []byte) (pointers []string) {
	if bytes.Contains(line, replacement) {
		damaged(reflect.ValueOf(ev.Payload), "/payload", &pointers)
	}
	return pointers
}

var replacement = []byte("\ufffd")

var rawJSON = reflect.TypeFor[agentevents.JSON]() // always valid

func damaged(v reflect.Value, at string, pointers *[]string) {
	switch v.Kind() {
	case reflect.String:
		if v.Type() != rawJSON && !jsonwire.ValidUTF8(v.String()) {
			*pointers = append(*pointers, at)
		}
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			damaged(v.Elem(), at, pointers)
		}
	case reflect.Slice:
		for i := range v.Len() {
			damaged(v.Index(i), at+"/"+strconv.Itoa(i), pointers)
		}
	case reflect.Map:
		for key, value := range v.Seq2() {
			name := key.String()
			damaged(key, at+"/"+jsonwire.Token(name), pointers)
			damaged(value, at+"/"+jsonwire.Token(name), pointers)
		}
	case reflect.Struct:
		if ok := v.FieldByName("OK"); strings.HasPrefix(v.Type().Name(), "Opt[") && !ok.Bool() {
			return
		}
		for i := range v.NumField() {
			field := v.Type().Field(i)
			if !field.IsExported() {
				continue
			}
			name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			switch name {
			case "": // the value inside an Opt
				damaged(v.Field(i), at, pointers)
			case "-":
			default:
				damaged(v.Field(i), at+"/"+name, pointers)
			}
		}
	}
}
