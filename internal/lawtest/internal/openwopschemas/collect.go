package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/agentevents/agentevents/internal/lawtest/internal/schematable"
)

type object = map[string]any

// A collector makes a table of the schemas that it is asked for, and of those that they
// refer to.
type collector struct {
	files map[string]*file // by $id
	table schematable.Table
	used  map[string]bool // paths
}

// add adds the schema at an address, unless the table has it, and returns its name.
func (c *collector) add(address string) (name string, err error) {
	id, pointer, _ := strings.Cut(address, "#")
	f := c.files[id]
	if f == nil {
		return "", fmt.Errorf("%s is not in the folder", address)
	}
	var s any = f.doc
	name = f.name()
	for _, step := range strings.Split(pointer, "/")[1:] {
		if s = s.(object)[step]; step != "$defs" && step != "properties" {
			name += "." + step
		}
	}
	if _, there := c.table[name]; there {
		return name, nil
	}
	c.used[f.path] = true
	c.table[name] = object{} // for a schema that refers to itself
	c.table[name], err = c.facts(f, s)
	return name, err
}

// facts returns a schema with the keywords that judge, in the one form that a table has for
// them.
func (c *collector) facts(f *file, schema any) (object, error) {
	from, ok := schema.(object)
	if !ok {
		return nil, fmt.Errorf("%s: %v is not an object", f.path, schema)
	}
	to := object{}
	var failed error
	below := func(schema any) object {
		s, err := c.facts(f, schema)
		failed = errors.Join(failed, err)
		return s
	}
	for key, v := range from {
		switch key {
		case "$schema", "$id", "$defs", "$comment", "title", "description", "default", "examples", "_typeIndex":
		case "additionalProperties":
			if v != true { // which is the default
				to[key] = v
			}
		case "const":
			to["enum"] = []any{v}
		case "required":
			to[key] = sorted(v.([]any))
		case "properties", "patternProperties":
			members := object{}
			for name, part := range v.(object) {
				members[name] = below(part)
			}
			if len(members) > 0 {
				to[key] = members
			}
		case "items", "not", "if", "then", "else":
			to[key] = below(v)
		case "allOf", "anyOf", "oneOf":
			list := []any{}
			for _, part := range v.([]any) {
				list = append(list, below(part))
			}
			to[key] = list
		case "$ref":
			name, err := c.add(f.address(v.(string)))
			failed = errors.Join(failed, err)
			to[key] = "#/$defs/" + name
		default:
			if !strings.HasPrefix(key, "x-") {
				to[key] = v
			}
		}
	}
	return to, errors.Join(failed, describe(to))
}

// describe gives each required member an empty description, if it has none: in a schema
// that allows other members it changes nothing.
func describe(s object) error {
	required, _ := s["required"].([]any)
	for _, name := range required {
		members, _ := s["properties"].(object)
		if members[name.(string)] != nil {
			continue
		}
		if s["additionalProperties"] != nil {
			return fmt.Errorf("a member %v is required and not allowed", name)
		}
		if members == nil {
			members = object{}
		}
		members[name.(string)] = object{}
		s["properties"] = members
	}
	return nil
}

func sorted(list []any) []any {
	return slices.SortedFunc(slices.Values(list), func(a, b any) int { return strings.Compare(a.(string), b.(string)) })
}
