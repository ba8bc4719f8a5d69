package jsonwire

import (
	"strconv"
	"strings"
)

// Pointer returns the JSON pointer (RFC 6901) of the innermost value of text that the byte at
// offset belongs to. A member's name, its colon and the whitespace before its value count as part
// of the member; other punctuation belongs to the object or array that it delimits.
//
// Pointer is for the [SyntaxError] of a text that may be malformed, or cut off, at or after offset.
// It returns "" for the root, and also if the text is malformed before offset and the place cannot
// be told.
func Pointer(text string, offset int) string {
	const (
		value = iota // a value is next, or the ']' of an empty array
		name         // a member name is next, or the '}' of an empty object
		colon
		comma // a comma is next, or the end of the container
	)
	var (
		path  []step
		state = value
	)
	offset = min(offset, len(text))
	for i := 0; ; {
		i = skipSpace(text, i)
		if offset < i || i == len(text) {
			return join(path)
		}
		var top *step
		if len(path) > 0 {
			top = &path[len(path)-1]
		} else if state != value {
			return "" // after the root
		}

		// Each case decides where the token at i ends, whether it may stand here, and what the path
		// and the state are past it. Before the end it is the path of the token. The cases share these
		// variables, so they are one function.
		c := text[i]
		switch {
		case c == '}' && top != nil && !top.array && (state == name || state == comma),
			c == ']' && top != nil && top.array && (state == value || state == comma):
			top.inside = false
			if offset == i {
				return join(path)
			}
			i++
			path = path[:len(path)-1]
			if len(path) > 0 {
				path[len(path)-1].inside = false
			}
			state = comma

		case state == value && (c == '{' || c == '['):
			if offset == i {
				return join(path)
			}
			i++
			// The first element has begun with the '['; the first member
			// begins with its name.
			path = append(path, step{array: c == '[', inside: c == '['})
			state = value
			if c == '{' {
				state = name
			}

		case state == value:
			end, ok := lenientScalar(text, i)
			if offset < end || offset == end && !ok {
				return join(path)
			}
			if end == i {
				return ""
			}
			i = end
			if top != nil {
				top.inside = false
			}
			state = comma

		case state == name && c == '"':
			end, ok := lenientString(text, i)
			if !ok {
				return join(path)
			}
			top.name, top.inside = text[i+1:end-1], true
			if offset < end {
				return join(path)
			}
			i = end
			state = colon

		case state == colon && c == ':':
			if offset == i {
				return join(path)
			}
			i++
			state = value

		case state == comma && c == ',':
			if offset == i {
				return join(path)
			}
			i++
			state = name
			if top.array {
				top.index++
				top.inside = true
				state = value
			}

		default:
			if offset == i {
				return join(path)
			}
			return ""
		}
	}
}

// A step is one open container on the way from the root to the current token.
type step struct {
	array  bool
	inside bool   // the token is part of a member or an element, not between two
	index  int    // of the current element
	name   string // of the current member, as spelled in the text
}

func join(path []step) string {
	var b strings.Builder
	for _, st := range path {
		if !st.inside {
			break // the last one
		}
		b.WriteByte('/')
		if st.array {
			b.WriteString(strconv.Itoa(st.index))
			continue
		}
		name := st.name
		if strings.IndexByte(name, '\\') >= 0 {
			name = unescape(name)
		}
		pointerEscaper.WriteString(&b, strings.ToValidUTF8(name, "\uFFFD"))
	}
	return b.String()
}

var (
	pointerEscaper   = strings.NewReplacer("~", "~0", "/", "~1")
	pointerUnescaper = strings.NewReplacer("~1", "/", "~0", "~")
)

// Token returns a member's name as it stands in a JSON pointer (RFC 6901).
func Token(name string) string {
	if strings.IndexByte(name, '~') < 0 && strings.IndexByte(name, '/') < 0 {
		return name
	}
	return pointerEscaper.Replace(name)
}

// Untoken returns the name that a token of a JSON pointer stands for.
func Untoken(token string) string {
	if strings.IndexByte(token, '~') < 0 {
		return token
	}
	return pointerUnescaper.Replace(token)
}

// lenientScalar returns the end of the string, number or literal at text[i:], and whether it is
// complete, so that the offset after it does not belong to it. It returns i without such a token.
func lenientScalar(text string, i int) (end int, complete bool) {
	switch c := text[i]; {
	case c == '"':
		return lenientString(text, i)
	case c == '-' || isDigit(c):
		end = scalarEnd(text, i)
		n, err := scanNumber(text[:end], i)
		return end, err == nil && n == end
	}
	end = scalarEnd(text, i)
	switch text[i:end] {
	case "null", "true", "false":
		return end, true
	}
	return end, false
}

// lenientString returns the offset after the closing quote of the string at
// text[i:], or false and the end of text if there is none.
func lenientString(text string, i int) (end int, ok bool) {
	for i++; i < len(text); i++ {
		switch text[i] {
		case '"':
			return i + 1, true
		case '\\':
			i++
		}
	}
	return len(text), false
}
