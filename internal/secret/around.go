package secret

import "strings"

// flag finds the value of a flag of a command: --password x, and -Password x of PowerShell. The
// rule named finds --password=x.
func flag(s *Scanner, text string, i int, final bool) (region, verdict) {
	capital := i > 0 && text[i-1] == ' ' && i+1 < len(text) && text[i+1]-'A' <= 'Z'-'A'
	if !capital && (i == 0 || text[i-1] != '-' ||
		i > 1 && text[i-2] > ' ' && strings.IndexByte("\"'`([,", text[i-2]) < 0 && !escaped(text, i-1)) {
		return region{}, no
	}
	n := span(text, i+1, nameChars)
	k := i + 1 + n
	if k == len(text) {
		return region{from: k}, verdictOf(!final && n < enough)
	}
	if isOne(text[i+1:k], userFlags) && (text[k] == ' ' || text[k] == '=') && called(line(text, i), "curl") {
		return userValue(text, k+1, final)
	}
	of := s.names.strength(text[i+1 : k])
	if n == 0 || n == enough || of == none ||
		of == weak && !isOne(text[i+1:k], []string{"pass", "pw", "otp", "pin", "auth", "bearer", "jwt"}) {
		return region{}, no
	}
	if c := text[k]; c == '"' || c == '\'' || c == '\\' { // a list of arguments
		start := 0
		if start, k, c = nextQuoted(text, k); k == len(text) {
			return region{from: k}, verdictOf(!final)
		} else if start < 0 {
			return region{}, no
		}
		if r, v := quotedValue(of, true, text, k, c, start, final); v != yes || text[r.from] != '-' {
			return r, v
		}
		return region{}, no
	}
	if text[k] != ' ' {
		return region{}, no
	}
	for k++; k < len(text) && text[k] == ' ' && k-i < maxName+maxBlank; k++ {
	}
	return argument(of, text, k, final)
}

// argument finds an argument of a command that begins at k.
func argument(of strength, text string, k int, final bool) (region, verdict) {
	start := k
	k = skipSlashes(text, k)
	if k == len(text) {
		return region{from: start}, verdictOf(!final)
	}
	if c := text[k]; c == '"' || c == '\'' {
		return quotedValue(of, true, text, k+1, c, k-start, final)
	}
	r := region{from: start, rule: Key, until: untilChar, chars: pipedChars}
	n := span(text, start, valueChars)
	if start+n == len(text) && n < enough && !final {
		return r, maybe
	}
	value := text[start : start+n]
	switch {
	case n == 0 || n < 4 && !random(value) || value[0] == '-' || value[0] == '$' ||
		placeholder(value) || isOne(value, words) || of == dir && directory(value, false):
		return r, no
	case n < enough && start+n < len(text) && (text[start+n] == '(' || text[start+n] == '<'):
		return r, no
	case of < strong:
		return r, yesIf(random(value) && !digits(value))
	}
	if random(value) || n == enough {
		return r, yes
	}
	prose, v := proseFollows(text, start+n, final)
	if v == maybe {
		return r, maybe
	}
	return r, yesIf(!prose)
}

// proseFollows reports whether words follow, as in "the flag --password reads it from
// the terminal".
func proseFollows(text string, i int, final bool) (prose bool, v verdict) {
	if i == len(text) {
		return false, verdictOf(!final)
	}
	if text[i] != ' ' {
		return false, no
	}
	n := span(text, i+1, alnum)
	if i+1+n == len(text) {
		return false, verdictOf(!final && n < 16)
	}
	return n > 0 && n < 16 && !random(text[i+1:i+1+n]) && text[i+1+n] == ' ', no
}

// cell finds a value in a table of Markdown, after the cell with its name: | password | x |.
func cell(s *Scanner, text string, i int, final bool) (region, verdict) {
	from := max(0, i-maxName)
	open := strings.LastIndexByte(text[from:i], '|')
	if open < 0 || text[i-1] != ' ' || i+1 < len(text) && text[i+1] == '|' {
		return region{}, no
	}
	of := s.names.strength(strings.Trim(text[from+open+1:i], " *`"))
	k := skipBlanks(text, i+1)
	if rest := text[k:]; strings.HasPrefix(rest, "**") {
		k += 2
	} else if rest == "*" && !final && of >= counts {
		return region{from: k}, maybe
	}
	return made(of, text, k, final)
}

// otherwise finds the default of a variable: process.env.PASSWORD || "x".
func otherwise(s *Scanner, text string, i int, final bool) (region, verdict) {
	if i+1 == len(text) || text[i+1] != '|' {
		return region{from: len(text)}, verdictOf(i+1 == len(text) && !final)
	}
	name, _, _ := nameBefore(text, i)
	of := s.names.strength(name)
	open := skipBlanks(text, i+2)
	k := skipSlashes(text, open)
	switch {
	case of < counts:
		return region{}, no
	case k == len(text):
		return region{from: k}, verdictOf(!final)
	case strings.IndexByte("\"'`", text[k]) < 0:
		return region{}, no
	}
	r := region{from: k + 1, at: k + 1, rule: Key, until: untilQuote, quote: text[k], slashes: k - open}
	seen := r
	seen.end(text[:min(len(text), r.from+enough)])
	if !seen.closed && !final && len(text)-r.from < enough {
		return r, maybe
	}
	value := text[r.from:seen.at]
	return r, yesIf(of.says(value) && !prose(value) && (of >= strong || random(value) || len(value) >= 20))
}

// percent finds a value in what is written with percent signs, as parameters of a URL in a
// parameter are: password%3Dx, %22password%22%3A%22x%22.
func percent(s *Scanner, text string, i int, final bool) (region, verdict) {
	rest := text[i+1:]
	if len(rest) < 2 {
		return region{from: len(text)}, verdictOf(!final)
	}
	if rest[0] != '3' || strings.IndexByte("ADad", rest[1]) < 0 {
		return region{}, no
	}
	name, _, _ := nameBefore(text, i)
	of := s.names.strength(name)
	if of == none {
		return region{}, no
	}
	k := i + 3
	for n := 0; k < len(text) && n < maxBlank; n++ {
		switch rest := text[k:]; {
		case rest[0] == '+':
			k++
		case strings.HasPrefix(rest, "%20") || strings.HasPrefix(rest, "%22") || strings.HasPrefix(rest, "%27"):
			k += 3
		case !final && (rest == "%" || rest == "%2"):
			return region{from: k}, maybe
		default:
			n = maxBlank
		}
	}
	r := region{from: k, rule: Key, until: untilChar, chars: percentChars}
	n := span(text, k, dotted)
	if k+n == len(text) && n < enough && !final {
		return r, maybe
	}
	value := text[k : k+n]
	return r, yesIf(n >= 4 && !isOne(value, words) && of.says(value) && (of >= strong || random(value)))
}

// percentChars are those of a value with percent signs, and what follows it up to the next
// parameter.
var percentChars = chars("-_.%+~*!")

// nextQuoted returns the number of backslashes of the quote at k and the place after
// the quote that opens the next string, which only a comma separates. slashes is
// negative if there is none, and next is the length of the text if that ends before.
func nextQuoted(text string, k int) (slashes, next int, quote byte) {
	start := k
	k = skipSlashes(text, k)
	slashes = k - start
	if k == len(text) {
		return 0, k, 0
	}
	quote = text[k]
	if quote != '"' && quote != '\'' {
		return -1, k, 0
	}
	k++
	comma := false
	for n := 0; k < len(text) && n < maxBlank && (text[k] == ' ' || text[k] == ',' && !comma || text[k] == '\n'); n++ {
		comma = comma || text[k] == ','
		k++
	}
	if k == len(text) {
		return 0, k, 0
	}
	for n := slashes; n > 0; n-- {
		if text[k] != '\\' {
			return -1, k, 0
		}
		if k++; k == len(text) {
			return 0, k, 0
		}
	}
	if text[k] != quote || !comma {
		return -1, k, 0
	}
	return slashes, k + 1, quote
}

// paired finds the value after a name in a list: ["Authorization","Bearer x"]. The
// byte at i is one of the name of a header: its 'z', or a dash.
func paired(s *Scanner, text string, i int, final bool) (region, verdict) {
	n := span(text, i+1, alnum)
	k := i + 1 + n
	if k == len(text) {
		return region{from: k}, verdictOf(!final && n < 16)
	}
	if c := text[k]; n >= 16 || c != '"' && c != '\'' && c != '\\' {
		return region{}, no
	}
	from := i
	for from > 0 && i-from < maxName && nameChars[text[from-1]] {
		from--
	}
	if from == 0 || text[from-1] != '"' && text[from-1] != '\'' || s.names.strength(text[from:k]) < counts {
		return region{}, no
	}
	slashes, start, quote := nextQuoted(text, k)
	if start == len(text) {
		return region{from: start}, verdictOf(!final)
	}
	if slashes < 0 {
		return region{}, no
	}
	r := region{from: start, at: start, rule: Key, until: untilQuote, quote: quote, slashes: slashes}
	seen := r
	seen.end(text[:min(len(text), start+enough)])
	if !seen.closed && !final && len(text)-start < enough {
		return r, maybe
	}
	return r, yesIf(pair(text[start:seen.at]))
}

// pair reports whether a text that follows the name of a credential in a list is one,
// and not another name.
func pair(value string) bool {
	first, rest, _ := strings.Cut(value, " ")
	return random(value) && !prose(value) || scheme(first) && rest != "" && credential(value)
}

// A short flag holds a credential for some commands.
var commands = []struct {
	name string // of the command
	flag byte
	user bool // a name and ':' are in front of the password
	tied bool // the value follows the flag without a blank
}{
	{"curl", 'u', true, false}, {"curl", 'U', true, false}, {"http", 'a', true, false}, {"https", 'a', true, false}, {"ab", 'A', true, false},
	{"mysql", 'p', false, true}, {"mysqldump", 'p', false, true}, {"mysqladmin", 'p', false, true}, {"mariadb", 'p', false, true},
	{"sshpass", 'p', false, false}, {"sshpass", 'p', false, true}, {"docker login", 'p', false, false}, {"podman login", 'p', false, false}, {"az login", 'p', false, false},
	{"redis-cli", 'a', false, false}, {"mongo", 'p', false, false}, {"mongosh", 'p', false, false}, {"mongodump", 'p', false, false}, {"sqlcmd", 'P', false, false},
	{"ldapsearch", 'w', false, false}, {"htpasswd", 'b', true, false}, {"smbclient", 'U', true, false}, {"rabbitmqadmin", 'p', false, false},
}

// isFlag says for each byte whether it is a flag of a command.
var isFlag = func() (is [256]bool) {
	for k := range commands {
		is[commands[k].flag] = true
	}
	return is
}()

// userFlags are those of curl with a name, ':' and a password.
var userFlags = []string{"user", "proxy-user"}

// maxCommand is how far a command is looked for in front of its flag.
const maxCommand = 160

// command finds the value of a short flag of a command: curl -u name:password.
func command(_ *Scanner, text string, i int, final bool) (region, verdict) {
	if i == 0 || text[i-1] != ' ' {
		return region{}, no
	}
	if i+2 >= len(text) {
		return region{from: len(text)}, verdictOf(!final)
	}
	tied := text[i+2] != ' '
	before := ""
	for k := range commands {
		c := &commands[k]
		if c.flag != text[i+1] || c.tied != tied {
			continue
		}
		if before == "" {
			before = line(text, i)
		}
		if !called(before, c.name) {
			continue
		}
		start := i + 3
		if tied {
			start = i + 2
		}
		if !c.user {
			return argument(strong, text, start, final)
		}
		return userValue(text, start, final)
	}
	return region{}, no
}

// line returns what is in front of i in its line and command.
func line(text string, i int) string {
	before := text[max(0, i-maxCommand):i]
	return before[strings.LastIndexAny(before, "\n;|")+1:]
}

// called reports whether a command is called in front of a flag.
func called(before, name string) bool {
	for at := len(before); ; {
		if at = strings.LastIndex(before[:at], name); at < 0 {
			return false
		}
		if word(before, at) && (at == 0 || before[at-1] != '-') && strings.HasPrefix(before[at+len(name):], " ") {
			return true
		}
	}
}

// userValue finds the password after a name and ':' in an argument that begins at start.
func userValue(text string, start int, final bool) (region, verdict) {
	slashes := start
	start = skipSlashes(text, start)
	quoted := start < len(text) && (text[start] == '"' || text[start] == '\'')
	if quoted {
		start++
	}
	n := span(text, start, userChars)
	if start+n == len(text) {
		return region{from: start + n}, verdictOf(!final && n < enough)
	}
	if text[start+n] != ':' {
		return region{}, no
	}
	if k := start + n + 1; !quoted {
		return argument(strong, text, k, final)
	} else if k < len(text) && text[k] != '$' {
		return region{from: k, rule: Key, until: untilQuote, quote: text[start-1], slashes: start - 1 - slashes}, yes
	} else {
		return region{from: k}, verdictOf(!final && k == len(text))
	}
}

// arrow finds a value after a name and an arrow: password -> x.
func arrow(s *Scanner, text string, i int, final bool) (region, verdict) {
	if i == 0 || text[i-1] != ' ' {
		return region{}, no
	}
	if i+1 == len(text) || text[i+1] != '>' {
		return region{from: len(text)}, verdictOf(i+1 == len(text) && !final)
	}
	name, _, _ := nameBefore(text, i)
	return made(s.names.strength(name), text, i+2, final)
}

var userChars = chars("_-.@+%\\")

// hooks are places of URLs that a secret follows.
var hooks = []string{
	"hooks.slack.com/services/", "hooks.slack.com/workflows/", "hooks.slack.com/triggers/",
	"discord.com/api/webhooks/", "discordapp.com/api/webhooks/",
	"hooks.zapier.com/hooks/catch/", "outlook.office.com/webhook/", "api.telegram.org/bot",
}

// teams is the end of hosts whose paths are secrets.
const teams = ".webhook.office.com"

// location finds the password in the authority of a URL, and what follows in a URL that
// is a secret.
func location(_ *Scanner, text string, i int, final bool) (region, verdict) {
	const lead = "://"
	if !strings.HasPrefix(text[i:], lead) {
		return region{from: len(text)}, verdictOf(!final && strings.HasPrefix(lead, text[i:]))
	}
	start := i + len(lead)
	if rest := text[start:]; len(rest) > 0 {
		for _, h := range hooks {
			if h[0] != rest[0] {
				continue
			}
			if strings.HasPrefix(rest, h) {
				return hookForm.run(text, start+len(h), final)
			}
			if !final && strings.HasPrefix(h, rest) {
				return region{from: len(text)}, maybe
			}
		}
	}
	colon, at := -1, -1
	for k := start; ; k++ {
		ended := k == len(text)
		if !ended {
			switch c := text[k]; {
			case c == ':' && colon < 0:
				colon = k
			case c == '@':
				at = k
			case c <= ' ' || strings.IndexByte("/?#\"'<>\\`()", c) >= 0 || k-start > maxValue:
				ended = true
			}
		}
		switch {
		case !ended:
			continue
		case k == len(text) && !final && k-start <= maxValue:
			if to := start + span(text, start, urlSafe); colon < 0 && (to == k || to == at && at > start+maxUser) {
				return region{from: start, rule: Key}, maybe // a token in front of '@'
			}
			if colon < 0 {
				return region{from: k}, maybe
			}
			return region{from: colon + 1, rule: Key}, maybe
		case k-start > maxValue && colon >= 0 && at < 0:
			return region{from: colon + 1, rule: Key, until: untilChar, chars: valueChars}, yes
		case colon < 0 && at > start+maxUser && at <= start+enough && span(text, start, urlSafe) == at-start:
			return region{from: start, at: at, rule: Key}, yesIf(invented(text[start:at]))
		case k < len(text) && text[k] == '/' && strings.HasSuffix(text[start:k], teams):
			return hookForm.run(text, k+1, final)
		case colon < 0 || at <= colon+1:
			return region{}, no
		}
		r := region{from: colon + 1, at: at, rule: Key}
		return r, yesIf(!placeholder(text[colon+1:at]) && text[colon+1] != '$' && text[colon+1] != '{')
	}
}

// maxUser is the greatest length of a name before a host: a longer one that looks invented is a
// token.
const maxUser = 15

var hookForm = &form{token: token{chars: chars("/-_:@"), min: 16}, limit: most}

// below finds a value on the lines below its name: of a field of a form in parts, and the lines
// of a private key of PuTTY. The byte at i is the dash in form-data, or that in Private-Lines.
func below(s *Scanner, text string, i int, final bool) (region, verdict) {
	for _, b := range [...]struct {
		before, after string
		find          func(s *Scanner, text string, k int, final bool) (region, verdict)
	}{{"form", "data; name=", field}, {"Private", "Lines:", lines}} {
		if rest := text[i+1:]; !strings.HasSuffix(text[:i], b.before) {
			continue
		} else if strings.HasPrefix(rest, b.after) {
			return b.find(s, text, i+1+len(b.after), final)
		} else {
			return region{from: len(text)}, verdictOf(!final && strings.HasPrefix(b.after, rest))
		}
	}
	return region{}, no
}

// field finds the value of a field of a form in parts, if the field has the name of a
// credential. Headers may follow the name, and an empty line does. The name begins at k.
func field(s *Scanner, text string, k int, final bool) (region, verdict) {
	open := k
	k = skipSlashes(text, k)
	slashes := k - open
	if k < len(text) && text[k] != '"' {
		return region{}, no
	}
	name := min(k+1, len(text))
	end := name + span(text, name, nameChars)
	of := s.names.strength(text[name:end])
	if end < len(text) && of == none {
		return region{}, no
	}
	for k = end + slashes; ; {
		if n := newline(text, k); n == 0 {
			k++
		} else if k += n; newline(text, k) > 0 {
			break
		}
		if k >= len(text) || k-name > maxValue {
			return region{from: len(text)}, verdictOf(!final && k-name <= maxValue)
		}
	}
	if strings.Contains(text[end:k], "filename") {
		return region{}, no
	}
	k += newline(text, k)
	r := region{from: k, rule: Key, until: untilChar, chars: lineChars}
	if slashes > 0 { // in a string: all that is left of it
		r.until, r.chars, r.quote, r.slashes = untilQuote, escapedChars, '"', (slashes-1)/2
	}
	n := span(text, k, r.chars)
	if k+n == len(text) && n < enough && !final {
		return r, maybe
	}
	value := text[k : k+n]
	return r, yesIf(n > 0 && of.says(value) && (of >= strong || random(value)))
}

// lineChars are the characters of a line, and escapedChars the characters of a line in a string.
var lineChars, escapedChars = func() (line, escaped *[256]bool) {
	line = new([256]bool)
	for c := range line {
		line[c] = c != '\r' && c != '\n'
	}
	escaped = new(*line)
	escaped['\\'], escaped['"'] = false, false
	return line, escaped
}()

// newline returns the length of the end of a line at i, which may be escaped, or 0.
func newline(text string, i int) int {
	k := i
	for _, c := range [...]byte{'\r', '\n'} {
		n := skipSlashes(text, k)
		if n < len(text) &&
			(text[n] == c && n == k || n > k && (text[n] == 'r' && c == '\r' || text[n] == 'n' && c == '\n')) {
			k = n + 1
		}
	}
	return k - min(i, k)
}

// lines finds the lines of a private key of PuTTY. Their number begins at k.
func lines(_ *Scanner, text string, k int, final bool) (region, verdict) {
	k = skipBlanks(text, k)
	if k == len(text) {
		return region{from: k}, verdictOf(!final)
	}
	return region{from: k, rule: Token, until: untilChar, chars: puttyChars}, yesIf(kindOf[text[k]] == digit)
}

var puttyChars = chars("+/=\r\n\\")
