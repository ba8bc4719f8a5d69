package secret

import (
	"slices"
	"strings"
)

// A strength says how much a name tells of its value.
type strength uint8

const (
	none   strength = iota
	weak            // the value is a credential unless it is prose
	count           // so it is unless it is a number
	strong          // the value is a credential
)

// A name is the end of names of credentials, in small letters without '-', '_', '.' and
// blanks.
type name struct {
	text     string
	strength strength
	whole    bool // it is the last word of a name, not the end of a word
}

var names = []name{
	{"password", strong, false}, {"passwords", strong, false}, {"passwd", strong, false}, {"pwd", strong, false}, {"passphrase", strong, false}, {"passcode", strong, false},
	{"passwordhash", strong, false}, {"pass", weak, true}, {"pin", weak, true}, {"otp", weak, true},
	{"secret", strong, false}, {"secrets", strong, false}, {"secretkey", strong, false}, {"clientsecret", strong, false},
	{"apikey", strong, false}, {"apikeys", strong, false}, {"apikeyid", strong, false}, {"accesskey", strong, false}, {"accesskeyid", strong, false}, {"accountkey", strong, false},
	{"privatekey", strong, false}, {"privatekeypem", strong, false}, {"sshkey", strong, false}, {"signingkey", strong, false}, {"encryptionkey", strong, false}, {"masterkey", strong, false},
	{"sharedaccesskey", strong, false}, {"pem", weak, true},
	{"token", count, false}, {"tokens", count, false}, {"tokenvalue", strong, false}, {"jwt", weak, true}, {"bearer", weak, true}, {"auth", weak, true},
	{"authorization", strong, false}, {"cookie", strong, false}, {"cookies", strong, false}, {"setcookie", strong, false},
	{"credential", strong, false}, {"credentials", strong, false}, {"creds", strong, true},
	{"connectionstring", strong, false}, {"dsn", weak, true}, {"databaseurl", weak, false}, {"webhookurl", weak, false},
	{"signature", weak, false}, {"sessionid", weak, false}, {"sid", weak, true}, {"session", weak, true},
}

// harmless are ends of names that are like those of credentials and are none.
var harmless = []string{"pagetoken", "nexttoken", "continuationtoken", "synctoken", "canceltoken", "cancellationtoken"}

// Names are the names whose values are masked. They are for concurrent use.
type Names struct {
	byLast [256][]name
	keep   []string
}

// NewNames returns the known names and more, without those to keep.
func NewNames(more, keep []string) *Names {
	n := &Names{keep: slices.Clone(harmless)}
	for _, k := range keep {
		if k = folded(k); k != "" {
			n.keep = append(n.keep, k)
		}
	}
	add := func(k name) {
		if k.text != "" {
			last := k.text[len(k.text)-1]
			n.byLast[last] = append(n.byLast[last], k)
		}
	}
	for _, k := range more {
		add(name{text: folded(k), strength: strong})
	}
	for _, k := range names {
		add(k)
	}
	return n
}

// folded returns a name in the form of the tables.
func folded(name string) string {
	var out []byte
	for i := range len(name) {
		if c := fold(name[i]); c != 0 {
			out = append(out, c)
		}
	}
	return string(out)
}

// fold returns c in lower case, and 0 for what names are written with or without.
func fold(c byte) byte {
	switch {
	case c == '-' || c == '_' || c == '.' || c == ' ':
		return 0
	case 'A' <= c && c <= 'Z':
		return c + 'a' - 'A'
	}
	return c
}

// strength returns what a name tells of its value.
func (n *Names) strength(name string) strength {
	name = strings.TrimRight(name, "0123456789[]: ") // password2, password[0], password:
	last := byte(0)
	for i := len(name) - 1; i >= 0 && last == 0; i-- {
		last = fold(name[i])
	}
	found := none
	for i := range n.byLast[last] {
		if k := &n.byLast[last][i]; k.strength > found && ends(name, k.text, k.whole) {
			found = k.strength
		}
	}
	if found != none {
		for _, keep := range n.keep {
			if ends(name, keep, false) {
				return none
			}
		}
	}
	return found
}

// ends reports whether a name ends like that: with whole at the beginning of a word.
func ends(name, end string, whole bool) bool {
	j, i := len(end)-1, len(name)-1
	for ; i >= 0 && j >= 0; i-- {
		c := fold(name[i])
		if c == 0 {
			continue
		}
		if c != end[j] {
			return false
		}
		j--
	}
	if j >= 0 {
		return false
	}
	if !whole || i < 0 {
		return true
	}
	first, before := name[i+1], name[i]
	return fold(before) == 0 || first >= 'A' && first <= 'Z' && before >= 'a' && before <= 'z'
}

// Masks reports whether the value of a member is masked for its name. value is its
// JSON text.
func (n *Names) Masks(name, value string) bool {
	of := n.strength(name)
	if of == none {
		return false
	}
	switch value[0] {
	case 'n', 't', 'f': // null, true and false tell nothing
		return false
	case '"':
		return of != weak || !prose(value[1:len(value)-1])
	case '{', '[':
		return of == strong
	}
	return of == strong || of == weak && len(value) >= 4 // a PIN is a number, too
}

// prose reports whether a text is words, and not a value that somebody made up.
func prose(text string) bool { return strings.Contains(text, " ") }
