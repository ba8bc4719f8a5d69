// Package option checks the numbers of options. One that makes no sense must not pass for the
// default, nor for no bound.
package option

import (
	"fmt"
	"math"
	"reflect"
	"strconv"
)

// An Error says that an option has a value that makes no sense. The root package exports it.
type Error struct {
	Option string // the field, such as EmitterOptions.MaxRuns
	Value  any    // what it has
	Detail string // what is wrong, and what would be legal
}

// Error returns one line: the option, its value and the detail.
func (e *Error) Error() string {
	return fmt.Sprintf("agentevents: %s is %#v: %s", e.Option, e.Value, e.Detail)
}

// Tag is the key of the tag of a field that is a number. Its value is the least that the
// number may be unless it is 0, which is the default. A number without the tag may be below 0:
// its comment says with which meaning.
const Tag = "least"

// Check returns an [*Error] for the first number of a struct that its tag does not allow. o is
// the struct or a pointer to it, and name what the error calls it.
func Check(name string, o any) error {
	v := reflect.Indirect(reflect.ValueOf(o))
	for i := range v.NumField() {
		tag, ok := v.Type().Field(i).Tag.Lookup(Tag)
		if !ok {
			continue
		}
		least, err := strconv.Atoi(tag)
		if f := v.Field(i); err != nil || !allowed(f, least) {
			detail := "must be a number that is not below 0"
			if least > 0 {
				detail = "must be 0, or at least " + tag
			}
			return &Error{name + "." + v.Type().Field(i).Name, f.Interface(), detail}
		}
	}
	return nil
}

func allowed(f reflect.Value, least int) bool {
	switch {
	case f.IsZero():
		return true
	case f.CanInt():
		return f.Int() >= int64(least)
	case f.CanFloat():
		return f.Float() >= float64(least) && !math.IsInf(f.Float(), 0)
	}
	return false
}

// NoConstant returns the error of a word or a number that is none of the constants.
func NoConstant(field string, value any) error {
	return &Error{field, value, "no constant has this value"}
}
