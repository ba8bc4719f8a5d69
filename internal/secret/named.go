package secret

import (
	"slices"
	"strings"
)

const (
	maxName  = 64  // how far a name is looked for in front of its value
	maxBlank = 32  // blanks between a name, the separator and the value
	enough   = 64  // how much of a value a rule looks at before it decides
	maxValue = 256 // of a value in front of its name
)

// nameChars are the characters of names of variables, headers and parameters.
var nameChars = chars("_-.")

// named finds the value after a name and '=' or ':', whatever language the text is written in:
// members of JSON, also of JSON in strings, headers, assignments, parameters. It is one function because
// it runs for each separator of a text, and later tests use the results of earlier ones.
func named(s *Scanner, text string, i int, final bool) (region, verdict) {
	end, k := i, i+1
	compared := false
	if text[i] == '=' && i > 0 {
		switch before := text[i-1]; {
		case before == ':':
			end--
		case before == '!':
			end, compared = end-1, true
		case strings.IndexByte("=<>+-*/%|&^~", before) >= 0:
			return region{}, no // an operator
		}
	}
	if k < len(text) {
		switch text[i : k+1] {
		case "==":
			compared = true
			if k+1 < len(text) && text[k+1] == '=' {
				k++
			}
			fallthrough
		case "=>":
			if k++; k == len(text) {
				return region{from: k}, verdictOf(!final)
			}
		case "=~", "::", ":=":
			return region{}, no
		}
	}
	if text[i] == ':' && i > 1 && text[i-1] == '?' && alnum[text[i-2]] { // password?: 'x'
		end--
	}
	name, from, quoted := nameBefore(text, end)
	of := s.names.strength(name)
	if compared {
		if text[i:k] == "==" && of >= counts && from+len(name) == i && k < len(text) && valueChars[text[k]] {
			return s.tight(of, name, text, from, k, final)
		}
		return made(of, text, k, final)
	}
	if of == none && !quoted && from > 1 && text[from-1] == ' ' && alnum[text[from-2]] { // API key
		first := from - 1
		for first > 0 && from-first < maxName && alnum[text[first-1]] {
			first--
		}
		of = s.names.strength(text[first:from] + name)
	}
	if of == none {
		switch {
		case text[i] == '=' && parameter(text, from) && isOne(name, parameters):
			r := region{from: k, rule: Key, until: untilChar, chars: valueChars}
			n := span(text, k, valueChars)
			if k+n == len(text) && n < enough && !final {
				return r, maybe
			}
			value := text[k : k+n]
			return r, yesIf(invented(value) || n >= 20 && random(value) && !worded(value, true))
		case text[i] == '=' && name == digest && strings.Contains(text[max(0, i-known):i], "Digest "):
			of = strong
		case isOne(name, neighbors):
			if of = s.names.strength(neighbor(text, from)); of == none {
				return s.ahead(text, k, final)
			}
		case text[i] == '=' && isOne(name, typed):
			name, from, _ = nameBefore(text, skipBack(text, from, ": "))
			if of = s.names.strength(name); of != none && !strings.HasSuffix(text[:k], "= ") {
				name = ""
			}
		}
		if of == none {
			return region{}, no
		}
	}
	for k < len(text) && (text[k] == ' ' || text[k] == '\t') {
		if k++; k-i > maxBlank {
			return region{}, no
		}
	}
	if rest := text[k:]; strings.HasPrefix(rest, "**") { // the name or the value is bold
		k = skipBlanks(text, k+2)
	} else if rest == "*" && !final {
		return region{from: k}, maybe
	}
	start := k
	if k+1 < len(text) && strings.IndexByte("fbruFBRU", text[k]) >= 0 && strings.IndexByte("\"'\\", text[k+1]) >= 0 {
		k++ // a string of a program
	}
	open := k
	k = skipSlashes(text, k)
	slashes := k - open
	if k == len(text) { // it is empty so far, but the part before a quote may be there
		return region{from: start, rule: Key}, verdictOf(!final)
	}
	member := quoted && text[i] == ':'
	if strings.IndexByte("([{<", text[k]) >= 0 && slashes == 0 {
		switch r, v := made(of, text, k, final); v {
		case yes:
			return r, yes
		case maybe:
			return region{from: start, rule: Key}, maybe // or the whole value is a secret
		}
	}
	switch c := text[k]; {
	case c == '&':
		return entityValue(of, text, k, final)
	case c == '"' || c == '\'' || c == '`':
		k++
		two := strings.Repeat(text[open:k], 2)
		if rest := text[k:]; strings.HasPrefix(rest, two) {
			k += len(two)
		} else if !final && strings.HasPrefix(two, rest) {
			return region{from: k, rule: Key}, maybe
		}
		if text[i] == ':' && !quoted && open == i+1 && k < len(text) && strings.IndexByte(",)+;", text[k]) >= 0 {
			return region{}, no // the quote ends a string: print("password:", x)
		}
		return quotedValue(of, quoted, text, k, c, slashes, final)
	case c == '[' && of >= strong && (quoted || text[i] == '='):
		return list(text, k+1, final)
	case c == '{' && of >= strong && member:
		return object(text, k+1, final)
	case slashes > 0:
		return region{}, no
	case member: // of JSON, but no text
		r := region{from: start, rule: Key, until: untilChar, chars: numberChars}
		n := span(text, start, numberChars)
		switch {
		case start+n == len(text) && n < enough && !final:
			return r, maybe
		case n < span(text, start, valueChars): // nor a number
			return bare(s, of, name, text, i, from, start, final)
		case n == 0 || of.number() || n < 4 && of == weak:
			return region{}, no
		}
		return r, yes
	}
	return bare(s, of, name, text, i, from, start, final)
}

// parameters are names in URLs that tell something of a value that looks invented.
var parameters = []string{"key", code}

// code is the name of a parameter that a server of authorization redirects with.
const code = "code"

// parameter reports whether the name of a parameter of a URL may begin at i.
func parameter(text string, i int) bool {
	return i > 0 && (text[i-1] == '?' || text[i-1] == '&' || text[i-1] == '#')
}

// tight finds a value that "==" parts from its name without blanks: a parameter for HTTPie, or
// one that is compared and looks invented.
func (s *Scanner) tight(of strength, name, text string, from, k int, final bool) (region, verdict) {
	if r, v := made(of, text, k, final); v == yes {
		return r, v
	}
	r, v := bare(s, of, name, text, k-1, from, k, final)
	if before := line(text, from); v != yes || called(before, "http") || called(before, "https") || called(before, "xh") {
		return r, v
	}
	n := span(text, k, valueChars)
	value, next := text[k:k+n], byte(' ')
	if k+n < len(text) && n < enough {
		next = text[k+n]
	}
	return r, yesIf(n >= 8 && random(value) && kindsOf(value)&lower != 0 && s.names.strength(strings.TrimRight(value, ":")) == none && strings.IndexByte(" \n\r\"'`\\", next) >= 0)
}

// digest is the name of the hashed password in a header of authorization.
const digest = "response"

// made finds a value that somebody made up, in quotes or brackets or without, where others are more
// likely: after a comparison or an arrow, in a cell of a table.
func made(of strength, text string, k int, final bool) (region, verdict) {
	if of < counts {
		return region{}, no
	}
	k = skipBlanks(text, k)
	open, closing := k, byte(0)
	k = skipSlashes(text, k)
	slashes := k > open
	if k < len(text) {
		if o := strings.IndexByte("([{<\"'`", text[k]); o >= 0 {
			closing = ")]}>\"'`"[o]
			k++
		}
	}
	n := span(text, k, base64s)
	r := region{from: k, rule: Key, until: untilChar, chars: base64s}
	switch {
	case k+n == len(text) && n < enough && !final:
		return r, maybe
	case closing == 0 && slashes: // an escape
		return r, no
	case closing != 0 && n < enough && (k+n == len(text) || text[k+n] != closing && (!slashes || text[k+n] != '\\')):
		return r, no
	}
	value := text[k : k+n]
	return r, yesIf(invented(value) && !(of == dir && directory(value, false)))
}

// invented reports whether a text has no words: at least every fourth of its characters has another
// kind than the one before, where a capital begins a word, and one is a digit.
func invented(text string) bool {
	changes, was := 0, kinds(0)
	for i := range len(text) {
		is := kindOf[text[i]]
		if was != 0 && is != 0 && was != is && (was != upper || is != lower) {
			changes++
		}
		was = is
	}
	return kindsOf(text)&digit != 0 && len(text) >= 8 && changes*4 >= len(text)
}

// entities stand for quotes in HTML.
var entities = []string{"&quot;", "&#34;", "&#39;", "&#x27;", "&apos;"}

// percents stand for quotes in URLs.
var percents = []string{"%22", "%27"}

// entityChars are the characters of a value between entities.
var entityChars = func() *[256]bool {
	set := new([256]bool)
	for c := 0x20; c < 256; c++ {
		set[c] = strings.IndexByte("&<>", byte(c)) < 0
	}
	return set
}()

// entityBefore returns the length of the entity that ends in front of end, or 0.
func entityBefore(text string, end int) int {
	if end == 0 {
		return 0
	}
	switch list := entities; text[end-1] {
	case '2', '7':
		list = percents
		fallthrough
	case ';':
		for _, e := range list {
			if strings.HasSuffix(text[:end], e) {
				return len(e)
			}
		}
	}
	return 0
}

// entityValue finds a value in quotes of HTML.
func entityValue(of strength, text string, k int, final bool) (region, verdict) {
	for _, e := range entities {
		rest := text[k:]
		if !strings.HasPrefix(rest, e) {
			if !final && strings.HasPrefix(e, rest) {
				return region{from: k}, maybe
			}
			continue
		}
		r := region{from: k + len(e), rule: Key, until: untilChar, chars: entityChars}
		n := span(text, r.from, entityChars)
		if r.from+n == len(text) && n < enough && !final {
			return r, maybe
		}
		value := text[r.from : r.from+n]
		return r, yesIf(of.says(value) && (of >= strong || random(value)))
	}
	return region{}, no
}

// skipBlanks returns where blanks from k on end.
func skipBlanks(text string, k int) int {
	for n := 0; k < len(text) && n < maxBlank && text[k] == ' '; n++ {
		k++
	}
	return k
}

// nameBefore returns the name that ends in front of end, without blanks, quotes, stars
// and brackets.
func nameBefore(text string, end int) (name string, from int, quoted bool) {
	end = skipBack(text, end, " \t*")
	if end > 0 && text[end-1] == ']' && end > 1 && (text[end-2] == '"' || text[end-2] == '\'') {
		end--
	}
	if end > 0 && strings.IndexByte("\"'`", text[end-1]) >= 0 {
		quoted = true
		end = skipBack(text, end-1, `\`)
	} else if n := entityBefore(text, end); n > 0 {
		quoted = true
		end -= n
	}
	from = end
	for from > 0 && end-from < maxName {
		c := text[from-1]
		if !nameChars[c] && c < 0x80 && c != ']' && c != '[' && (!quoted || c != ' ' && c != ':') {
			break
		}
		from--
	}
	if from+1 < end && escaped(text, from+1) {
		from++
	}
	return text[from:end], from, quoted
}

// skipBack returns the end of a text in front of end without some characters.
func skipBack(text string, end int, set string) int {
	for n := 0; end > 0 && n < maxBlank && strings.IndexByte(set, text[end-1]) >= 0; n++ {
		end--
	}
	return end
}

// span returns the number of characters of a set from i on, up to enough.
func span(text string, i int, set *[256]bool) int {
	n := 0
	for i+n < len(text) && n < enough && set[text[i+n]] {
		n++
	}
	return n
}

func isOne(name string, list []string) bool {
	for _, l := range list {
		if len(l) == len(name) && strings.EqualFold(name, l) {
			return true
		}
	}
	return false
}

// neighbor returns the value of the member in front of the one whose name begins at
// from: {"name":"password","value": ...}.
func neighbor(text string, from int) string {
	end := from
	for n := 0; end > 0 && n < maxBlank; n++ {
		if strings.IndexByte(" \t\r\n\\\"',-", text[end-1]) < 0 && (end == 1 || text[end-2] != '\\' || text[end-1] != 'n') {
			break
		}
		end--
	}
	if end == from {
		return ""
	}
	name := end
	for name > 0 && end-name < maxName && nameChars[text[name-1]] {
		name--
	}
	before := name
	for n := 0; before > 0 && n < maxBlank && strings.IndexByte(" \\\"':=", text[before-1]) >= 0; n++ {
		before--
	}
	if before == name || !strings.ContainsAny(text[before:name], ":=") {
		return ""
	}
	label := before
	for label > 0 && before-label < 16 && alnum[text[label-1]] {
		label--
	}
	if !isOne(text[label:before], labels) {
		return ""
	}
	return text[name:end]
}

// labels are the names of members that hold a name.
var labels = []string{"name", "key", "header", "field", "param", "parameter", "variable", "var", "k"}

// ahead finds a value in front of its name: {"value":"x","name":"password"}. The value
// follows k.
func (s *Scanner) ahead(text string, k int, final bool) (region, verdict) {
	for n := 0; k < len(text) && text[k] == ' ' && n < maxBlank; n++ {
		k++
	}
	start := k
	k = skipSlashes(text, k)
	if k == len(text) {
		return region{from: start}, verdictOf(!final)
	}
	if text[k] != '"' {
		return region{}, no
	}
	r := region{from: k + 1, at: k + 1, rule: Key, until: untilQuote, quote: '"', slashes: k - start}
	end := r
	if end.end(text[:min(len(text), k+maxValue)]); !end.closed {
		return r, verdictOf(!final && len(text) < k+maxValue)
	}
	// Next is a quote, a comma and the name of a member that holds a name.
	i := end.at
	step := func(set string, most int) {
		for n := 0; i < len(text) && n < most && strings.IndexByte(set, text[i]) >= 0; n++ {
			i++
		}
	}
	step(`\"`, 9)
	step(" ,\n\r", maxBlank)
	step(`\"`, 9)
	label := i
	i += min(span(text, i, alnum), 16)
	labelled := isOne(text[label:i], labels)
	if i < len(text) && !labelled {
		return r, no
	}
	step(`\"`, 9)
	step(" :", maxBlank)
	step(`\"`, 9)
	name := i
	for i < len(text) && i-name < maxName && nameChars[text[i]] {
		i++
	}
	if i == len(text) && i-name < maxName && !final {
		return r, maybe
	}
	return region{from: r.from, until: untilThere, at: end.at, rule: Key}, yesIf(labelled && s.names.strength(text[name:i]) != none && end.at > r.from)
}

func yesIf(is bool) verdict {
	if is {
		return yes
	}
	return no
}

var numberChars = func() *[256]bool {
	set := new([256]bool)
	for _, c := range "0123456789+-.eE" {
		set[c] = true
	}
	return set
}()

// valueChars are the characters of a value without quotes.
var valueChars = func() *[256]bool {
	set := new([256]bool)
	for c := 0x21; c < 256; c++ {
		set[c] = strings.IndexByte("&;,\"'`<>()[]{}|\\", byte(c)) < 0
	}
	return set
}()

// pipedChars are those, and '|' in front of one of them: see region.end.
var pipedChars = func() *[256]bool {
	set := *valueChars
	set['|'] = true
	return &set
}()

// quotedValue finds a value in quotes. It follows the quote, at from. member means that the name is
// in quotes, too.
func quotedValue(of strength, member bool, text string, from int, quote byte, slashes int, final bool) (region, verdict) {
	r := region{from: from, at: from, rule: Key, until: untilQuote, quote: quote, slashes: slashes}
	seen := r
	seen.end(text[:min(len(text), from+enough)])
	more := !seen.closed && !final && len(text)-from < enough
	if strings.Trim(text[from:seen.at], " \t\r\n,:;()[]{}\\") == "" { // the text between two strings
		return r, verdictOf(more)
	}
	if seen := text[from:seen.at]; of >= strong && strings.IndexByte("$<{%*", text[from]) < 0 && !of.saysNothing(seen, more) && !version(seen, more) {
		return r, yes
	}
	if more {
		return r, maybe
	}
	value := text[from:seen.at]
	switch {
	case placeholder(value) || of.saysNothing(value, false):
		return r, no
	case of >= strong:
		return r, yes
	case of.number() && !member:
		return r, yesIf(of.says(value) && (random(value) || len(value) >= 20 && !strings.Contains(value, " ")))
	}
	return r, yesIf(of.says(value))
}

// saysNothing reports whether a text is a word and not a credential, the name of a scheme with
// nothing or a placeholder after it, or a directory where there may be one. With more the text
// may go on.
func (of strength) saysNothing(text string, more bool) bool {
	if of == dir && directory(text, more) {
		return true
	}
	first, rest, two := strings.Cut(text, " ")
	lists := [...][]string{schemes, modes, answers}
	if of == listed {
		lists[2] = nil
	}
	for _, list := range lists {
		for _, w := range list {
			if len(first) > len(w) || !strings.EqualFold(first, w[:len(first)]) || !more && len(first) < len(w) {
				continue
			}
			if !two || more && len(first) == len(w) && len(rest) == 0 {
				return true
			}
			if len(first) == len(w) && (rest == "" || strings.IndexByte("<${%*", rest[0]) >= 0 && (more || placeholder(rest))) {
				return true
			}
		}
	}
	return false
}

// modes are the credentials modes of fetch, a protocol, and words in place of the version of a
// package with such a name.
var modes = []string{"include", "omit", "same-origin", "oauth2", "latest", "workspace:*", "workspace:^", "catalog:"}

// answers are words of answers and of forms, which may stand for a credential.
var answers = []string{"yes", "no", "on", "off", "true", "false", "null", "none", "undefined", "required", "optional", "missing", "invalid", "expired"}

// placeholder reports whether a text only stands for a secret: $NAME, ${NAME}, <name>,
// {{name}}, %s, ****. The version of a package is none either.
func placeholder(value string) bool {
	if value == "" || version(value, false) {
		return true
	}
	last := value[len(value)-1]
	switch value[0] {
	case '*':
		return strings.Trim(value, "*") == ""
	case '<':
		return last == '>'
	case '{':
		return last == '}'
	case '[':
		return last == ']' && strings.Trim(value[1:len(value)-1], "ABCDEFGHIJKLMNOPQRSTUVWXYZ_") == ""
	case '%':
		return len(value) == 2 || last == '%'
	case '$':
		if last == '}' || last == ')' {
			return true
		}
		return strings.Trim(value[1:], "ABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789") == "" && len(value) > 1 && (value[1] > '9' || len(value) == 2)
	}
	return false
}

// version reports whether a text is the version of a package, or a range of versions: 1.2.3, ^1.2,
// >=1.2.x <2, 1.2.3-rc.1. more means that the text may go on. A number in it has four digits at
// most.
func version(text string, more bool) bool {
	numbers, tag, tagged := strings.Cut(strings.TrimPrefix(text, "v"), "-")
	var dots, digits, n int
	for i := range len(numbers) {
		switch c := numbers[i]; {
		case c-'0' <= 9 && n < 4:
			digits++
			n++
		case c == '.':
			dots, n = dots+1, 0
		case c != 'x' && strings.IndexByte("^~<>=*| ", c) < 0:
			return false
		default:
			n = 0
		}
	}
	if tagged {
		tag = strings.TrimRight(tag, "0123456789.")
		return slices.ContainsFunc(tags, func(t string) bool { return t == tag || more && strings.HasPrefix(t, tag) })
	}
	return more || digits > 0 && (dots > 0 || numbers[0] == '^' || numbers[0] == '~' || numbers[0] == '>')
}

// tags are the words after the numbers of a version.
var tags = []string{"alpha", "beta", "rc", "pre", "dev", "next", "canary"}

// list finds a list of values after its bracket.
func list(text string, from int, final bool) (region, verdict) {
	r := region{from: from, at: from, rule: Key, until: untilClose}
	return r, r.firstString(text, final)
}

// firstString finds the first string of a list or an object, and notes how it is quoted.
func (r *region) firstString(text string, final bool) verdict {
	k := r.from
	for k < len(text) && k-r.from < maxBlank {
		slash := skipSlashes(text, k)
		switch {
		case slash == len(text):
			return verdictOf(!final)
		case text[slash] == '"' || text[slash] == '\'':
			r.quote, r.slashes = text[slash], slash-k
			return yes
		case strings.IndexByte(" \n\r\t[{", text[slash]) < 0 && (slash == k || strings.IndexByte("nrt", text[slash]) < 0):
			return no
		}
		k = slash + 1
	}
	return verdictOf(k == len(text) && !final)
}

// object finds the members of an object after its brace, unless it describes a value.
func object(text string, from int, final bool) (region, verdict) {
	r := region{from: from, at: from, rule: Key, until: untilClose}
	if v := r.firstString(text, final); v != yes {
		return r, v
	}
	seen := r
	seen.end(text[:min(len(text), from+maxValue)])
	if !seen.closed && !final && len(text)-from < maxValue {
		return r, maybe
	}
	members := strings.NewReplacer(`\`, "", " ", "", "'", `"`).Replace(text[from:seen.at])
	if !strings.Contains(members, `"value":`) {
		if _, v, ok := strings.Cut(members, `"version":"`); ok && version(v[:max(0, strings.IndexByte(v, '"'))], false) {
			return r, no
		}
		for _, t := range types {
			if strings.Contains(members, `"type":"`+t+`"`) {
				return r, no
			}
		}
		if strings.Contains(members, `"type":[`) || strings.Contains(members, `"$ref":`) || strings.Contains(members, `"secretName":`) {
			return r, no
		}
	}
	return r, yes
}

// bare finds a value without quotes that begins at start. The separator is at i, the
// name begins at from.
func bare(s *Scanner, of strength, name, text string, i, from, start int, final bool) (region, verdict) {
	if header(name) && text[i] == ':' && strings.IndexByte("\"'`\\", text[from+len(name)]) < 0 { // not in quotes
		return headerLine(text, start, final)
	}
	r := region{from: start, rule: Key, until: untilChar, chars: pipedChars}
	n := span(text, start, valueChars)
	value, ended := strings.TrimRight(text[start:start+n], "*"), start+n < len(text) || final
	if !ended && n < enough {
		return r, maybe
	}
	piped := false // the part after a '|' tells
	if n > 0 && n < enough && start+n < len(text) && text[start+n] == '|' {
		more := span(text, start+n+1, valueChars)
		if start+n+1+more == len(text) && more < enough && !final {
			return r, maybe
		}
		piped = more >= 8 && random(text[start+n+1:start+n+1+more])
	}
	next := byte('\n')
	switch {
	case n == enough:
		next = 'x' // whatever follows
	case start+n < len(text):
		next = text[start+n]
	}
	if scheme(value) && next == ' ' { // TOKEN=Bearer x
		r.from += n + 1
		rest := span(text, r.from, valueChars)
		if r.from+rest == len(text) && rest < enough && !final {
			return r, maybe
		}
		return r, yesIf(random(text[r.from : r.from+rest]))
	}
	if name == "PASS" && strings.HasSuffix(text[:from], "--- ") { // of a test of Go
		return r, no
	}
	spaced := start > i+1 || i > 0 && (text[i-1] == ' ' || text[i-1] == '\t')
	switch {
	case n < 4 || placeholder(value) || of.saysNothing(value, false) || value[0] == '$' || value[0] == '*', of.number() && amount(value), of == weak && ident(value):
		return r, no
	case strings.EqualFold(value, name) || isOne(value, words) || s.isName(strings.TrimRight(value, ".:!?"), name, text[i], next, spaced):
		return r, no
	case next == '(' || next == '[' || next == '{' && !spaced: // code
		return r, no
	case strings.IndexByte(value, '.') > 0 && path(value): // a member of a variable
		return r, no
	case random(value):
		return r, yesIf(of != weak || !spelt(value))
	case piped:
		return r, yes
	case of < strong:
		return r, no
	case text[i] == ':' || spaced:
		// The line consists of a name and a word.
		return r, yesIf(text[i] == ':' && n >= 6 && strings.IndexByte("\n\r\\\"", next) >= 0 && lineStart(text, from))
	}
	return r, yes
}

// isName reports whether a value after a name and a separator is itself the name of a variable, as
// programs have it: password=db_password. In an assignment of a shell (DB_PASSWORD=mysecret) it is
// not, and in others a plain word (password=mysecret) is only if code follows.
func (s *Scanner) isName(value, name string, separator, next byte, spaced bool) bool {
	letters := strings.TrimRight(value, "0123456789")
	if s.names.strength(value) == none || len(value)-len(letters) > 1 || !identifier(value) {
		return false
	}
	upper := strings.ToUpper(value) == value
	switch {
	case strings.ToUpper(name) == name && (separator == ':' || !spaced):
		return upper
	case strings.IndexByte(letters, '_') > 0 || strings.IndexByte(letters, '.') > 0 || !upper && strings.ToLower(letters[1:]) != letters[1:]: // several words
		return true
	case separator == '=' && !spaced:
		return strings.IndexByte(",)]};", next) >= 0
	}
	return separator == '=' || s.names.strength(value[1:]) == none // token, but not mytoken
}

// spelt reports whether a value is words without blanks, as RequireAnyClientCert: letters alone,
// at most a quarter of them capitals, or some that are not ASCII.
func spelt(value string) bool {
	capitals, others := 0, 0
	for i := range len(value) {
		switch c := value[i]; {
		case c >= 0x80:
			return true
		case c-'A' <= 'Z'-'A':
			capitals++
		case c-'a' > 'z'-'a':
			others++
		}
	}
	return others == 0 && capitals*4 <= len(value)
}

// identifier reports whether a value has letters, digits, '_' and '.' alone.
func identifier(value string) bool {
	for i := range len(value) {
		if !alnum[value[i]] && value[i] != '_' && value[i] != '.' {
			return false
		}
	}
	return true
}

// words are words of programs and of forms that stand for a value.
var words = []string{"null", "none", "undefined", "true", "false", "string", "str", "number", "boolean", "bytes", "text", "required", "optional", "integer", "object", "redacted", "hidden", "enabled", "disabled", "missing", "invalid", "expired", "rotated", "changed", "updated", "accepted", "rejected", "failed", "unknown", "default", "passed", "skipped"}

// path reports whether a value is a path of names of variables, as in os.environ.
func path(value string) bool {
	for i := range len(value) {
		if c := value[i]; c|0x20 < 'a' || c|0x20 > 'z' {
			if c != '_' && c != '.' {
				return false
			}
		}
	}
	return true
}

// lineStart reports whether only blanks are in front of from on its line, or in its
// string.
func lineStart(text string, from int) bool {
	k := skipBack(text, from, " \t-+*")
	return k == 0 || text[k-1] == '\n' || text[k-1] == '"' || k > 1 && text[k-1] == 'n' && text[k-2] == '\\'
}

// skipSlashes returns where backslashes from i on end.
func skipSlashes(text string, i int) int {
	const most = 16 // of a quote in four strings in each other
	for n := 0; i < len(text) && text[i] == '\\' && n < most; n++ {
		i++
	}
	return i
}

// header reports whether the value of a header is all that follows on the line.
func header(name string) bool {
	for _, h := range [...]string{"authorization", "cookie"} {
		if len(name) >= len(h) && strings.EqualFold(name[len(name)-len(h):], h) {
			return true
		}
	}
	return false
}

// headerLine finds the value of a header that is a credential.
func headerLine(text string, start int, final bool) (region, verdict) {
	r := region{from: start, at: start, rule: Key, until: untilLine}
	seen := r
	seen.end(text[:min(len(text), start+enough)])
	if !seen.closed && !final && len(text)-start < enough {
		// The name of a scheme is not a secret, but nothing else is known.
		return r, maybe
	}
	if seen.at == start {
		return r, no
	}
	return r, yesIf(credential(text[start:seen.at]))
}

// credential reports whether a text is the value of a header of authorization: a scheme and
// something, or something that is not prose.
func credential(value string) bool {
	value = strings.Trim(value, " \\")
	first, rest, two := strings.Cut(value, " ")
	if rest = strings.TrimLeft(rest, " "); two && scheme(first) && rest != "" {
		return strings.IndexByte("<${%*", rest[0]) < 0 && !prose(rest)
	}
	switch {
	case value == "" || scheme(value) || placeholder(value) || isOne(value, words) || value[0] == '$':
		return false
	case two:
		return !prose(value)
	}
	return len(value) >= 4 || random(value)
}
