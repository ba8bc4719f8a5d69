package secret

import (
	"math"
	"slices"
	"strings"
	"sync"

	"github.com/agentevents/agentevents/internal/jsonwire"
)

// A strength is the certainty that a value with the name is a secret.
type strength uint8

const (
	none   strength = iota
	weak            // the value is a credential unless it is prose
	counts          // it is one if it looks random and is not a number
	count           // it is one unless it is a number or prose
	strong          // the value is a credential
	dir             // it is one unless it is a directory
	listed          // it is one, by the policy
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
	{"passwordhash", strong, false}, {"pass", weak, true}, {"pin", weak, true}, {"otp", weak, true}, {"pw", weak, true},
	{"secret", strong, false}, {"secrets", strong, false}, {"secretkey", strong, false}, {"secretkeybase", strong, false}, {"clientsecret", strong, false}, {"secretvalue", strong, false},
	{"apikey", strong, false}, {"apikeys", strong, false}, {"apikeyid", strong, false}, {"accesskey", strong, false}, {"accesskeyid", strong, false}, {"accountkey", strong, false},
	{"privatekey", strong, false}, {"privatekeypem", strong, false}, {"sshkey", strong, false}, {"signingkey", strong, false}, {"encryptionkey", strong, false}, {"masterkey", strong, false},
	{"sharedaccesskey", strong, false}, {"subscriptionkey", strong, false}, {"licensekey", strong, false}, {"deploykey", strong, false}, {"pem", weak, true},
	{"openaikey", strong, false}, {"anthropickey", strong, false}, {"geminikey", strong, false}, {"groqkey", strong, false}, {"mistralkey", strong, false}, {"openrouterkey", strong, false}, {"deepseekkey", strong, false},
	{"stripekey", strong, false}, {"sendgridkey", strong, false}, {"twiliokey", strong, false}, {"mailgunkey", strong, false}, {"datadogkey", strong, false}, {"sentrykey", strong, false}, {"supabasekey", strong, false}, {"rolekey", strong, false},
	{"awskey", strong, false}, {"azurekey", strong, false}, {"gcpkey", strong, false}, {"githubkey", strong, false},
	{"token", count, false}, {"tokens", counts, false}, {"tokenvalue", strong, false}, {"jwt", weak, true}, {"csrf", weak, true}, {"xsrf", weak, true}, {"bearer", weak, true}, {"auth", weak, true},
	{"authorization", strong, false}, {"cookie", strong, false}, {"cookies", strong, false}, {"setcookie", strong, false},
	{"credential", strong, false}, {"credentials", strong, false}, {"creds", strong, true},
	{"connectionstring", strong, false}, {"dsn", weak, true}, {"databaseurl", weak, false}, {"webhookurl", weak, false},
	{"signature", weak, false}, {"sig", weak, true}, {"sessionid", weak, false}, {"sid", weak, true}, {"session", weak, true},
	// other languages; without the first letter if its capital is not ASCII
	{"passwort", weak, false}, {"kennwort", weak, false}, {"depasse", weak, false}, {"contraseña", weak, false}, {"contrasena", weak, false}, {"senha", weak, true},
	{"wachtwoord", weak, false}, {"heslo", weak, true}, {"lösenord", weak, false}, {"hasło", weak, false}, {"haslo", weak, true}, {"ароль", weak, false},
	{"密码", weak, false}, {"密碼", weak, false}, {"パスワード", weak, false}, {"비밀번호", weak, false},
}

// harmless are ends of names that only look like names of credentials.
var harmless = []string{
	"pagetoken", "paginationtoken", "pagingtoken", "nexttoken", "continuationtoken", "synctoken", "deltatoken", "skiptoken", "resumetoken", "cursortoken", "canceltoken", "cancellationtoken",
	"bostoken", "eostoken", "padtoken", "unktoken", "septoken", "clstoken", "masktoken", "stoptoken", "imagepullsecrets",
}

// places are whole names of directories of a shell, which passwords may have, too, and lone is
// one that programs have also for words, signs and coins.
var (
	places = []string{"pwd", "oldpwd"}
	lone   = []string{"token"}
)

// neighbors are the names of members that hold a value, and typed are the words between
// a name and its value in programs. A rule looks for the name of the credential
// further ahead.
var (
	neighbors = []string{"value", "val"}
	typed     = []string{"str", "string", "bytes"}
	others    = []string{"key", digest} // names that tell something at some places
)

// Names are the names whose values are masked. They are for concurrent use.
type Names struct {
	byTail [1 << 10][]name // by their last two letters: see tail
	keep   []string
	tails  jsonwire.Ends // by the last two letters, those in front of them: see dull
	any    bool          // a name does not end in a letter
}

// builtin are the known names. Names do not change once they are made, and each emitter has them.
var builtin = sync.OnceValue(func() *Names { return newNames(nil, nil) })

// NewNames returns the known names and more, without those to keep.
func NewNames(more, keep []string) *Names {
	if len(more) == 0 && len(keep) == 0 {
		return builtin()
	}
	return newNames(more, keep)
}

func newNames(more, keep []string) *Names {
	n := &Names{keep: slices.Clone(harmless)}
	for c := range byte(32) {
		for b := range byte(32) {
			if c < 1 || c > 26 || b == '_'%32 || b == '\\'%32 { // no letters: near looks again
				n.tails[tail(c, b)] = math.MaxUint32
			}
		}
	}
	for _, k := range keep {
		if k = folded(k); k != "" {
			n.keep = append(n.keep, k)
		}
	}
	for _, k := range more {
		n.add(name{text: folded(k), strength: listed})
	}
	for _, k := range names {
		n.add(k)
	}
	for _, list := range [...][]string{neighbors, typed, others} {
		for _, k := range list {
			n.mayEnd(k)
		}
	}
	if n.any {
		for i := range n.tails {
			n.tails[i] = math.MaxUint32
		}
	}
	return n
}

func (n *Names) add(k name) {
	if k.text == "" {
		return
	}
	if len(k.text) > 1 {
		i := tail(k.text[len(k.text)-1], k.text[len(k.text)-2])
		n.byTail[i] = append(n.byTail[i], k)
	} else { // whatever comes before it
		for b := range 32 {
			i := tail(k.text[0], byte(b))
			n.byTail[i] = append(n.byTail[i], k)
		}
	}
	n.mayEnd(k.text)
}

// tail returns the index of the last letter of a name and the one before.
func tail(last, before byte) int { return int(last%32)<<5 | int(before%32) }

func (n *Names) mayEnd(name string) {
	last := name[len(name)-1]
	if c := last | 0x20; (c < 'a' || c > 'z') && last < 0x80 {
		n.any = true // near looks at letters
	}
	switch len(name) {
	case 1:
		n.any = true
	case 2:
		n.tails[tail(last, name[0])] = math.MaxUint32
	default:
		n.tails[tail(last, name[len(name)-2])] |= 1<<(name[len(name)-3]%32) | 1<<('_'%32)
	}
}

// tells reports whether a name tells something of its value.
func (n *Names) tells(name string) bool {
	end := len(name)
	for end > 0 && trailing[name[end-1]] {
		end--
	}
	if !n.any && (end == 0 || !letters[name[end-1]] || end >= 4 && n.dull(load32(name, end-4))) {
		return false
	}
	return n.strength(name) != none
}

// trailing are bytes that may follow a name, or stand in it without a meaning.
var trailing = func() (is [256]bool) {
	for _, c := range []byte("0123456789[]:-_. =") {
		is[c] = true
	}
	return is
}()

// dull reports that no name ends in four bytes, by their last three letters or those in
// front of a quote or a blank.
func (n *Names) dull(w uint32) bool {
	if c := w >> 24; c == '"' || c == ' ' {
		w <<= 8
	}
	const upper = 0x40404000 // of bytes from 0x40 on: letters and few others
	return w&upper == upper && n.tails[w>>24%32<<5|w>>16%32]>>(w>>8%32)&1 == 0
}

// near reports whether a name may end in front of i.
func (n *Names) near(text string, i int) bool {
	k := i - 1
	if k >= 0 && text[k] == ';' && entityBefore(text, i) > 0 {
		return true
	}
	for ; k >= 0 && !letters[text[k]]; k-- {
		if k < i-maxNear || n.any {
			return true
		}
		if breaks[text[k]] {
			return false
		}
	}
	if k < 0 || n.any {
		return true
	}
	last := [3]byte{text[k]} // letters of the name, from its end
	for have := 1; have < len(last); {
		if k--; k < 0 || k < i-maxNear {
			return true
		}
		switch c := text[k]; {
		case fold(c) == 0:
		case letters[c] || c-'0' <= 9:
			last[have] = c
			have++
		case have == 1:
			return c == '\\' // perhaps of an escape
		default:
			return n.tails[tail(last[0], last[1])] == math.MaxUint32
		}
	}
	return n.tails[tail(last[0], last[1])]>>(last[2]%32)&1 != 0
}

// maxNear is how far near looks.
const maxNear = 40

// letters are the letters of names; breaks are never between a name and its value.
var letters, breaks = func() (letters, breaks [256]bool) {
	for c := range 256 {
		letters[c] = c|0x20 >= 'a' && c|0x20 <= 'z' || c >= 0x80
	}
	for _, c := range []byte("\n,;{}()/<>&|=") {
		breaks[c] = true
	}
	return letters, breaks
}()

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

// fold returns c in lower case, and 0 for optional characters of names.
func fold(c byte) byte {
	switch {
	case c == '-' || c == '_' || c == '.' || c == ' ':
		return 0
	case 'A' <= c && c <= 'Z':
		return c + 'a' - 'A'
	}
	return c
}

// strength returns the strength of a name.
func (n *Names) strength(name string) strength {
	if i := strings.IndexByte(name, ']'); i >= 0 &&
		(strings.IndexByte(name[:i], '[') < 0 || strings.Contains(name, "[REDACTED:")) {
		return none // of a marker
	}
	for len(name) > 0 && !letters[name[len(name)-1]] && strings.IndexByte("0123456789[]: =", name[len(name)-1]) >= 0 {
		name = name[:len(name)-1] // password2, password[0], password:, password=
	}
	var last, before byte
	for i := len(name) - 1; i >= 0 && before == 0; i-- {
		switch c := fold(name[i]); {
		case c == 0:
		case last == 0:
			last = c
		default:
			before = c
		}
	}
	found := none
	list := n.byTail[tail(last, before)]
	for i := range list {
		if k := &list[i]; k.strength > found && ends(name, k.text, k.whole) {
			found = k.strength
		}
	}
	if found == none {
		return none
	}
	for _, keep := range n.keep {
		if ends(name, keep, false) {
			return none
		}
	}
	switch whole := name[strings.LastIndexAny(name, ".:$")+1:]; {
	case found == strong && isOne(whole, places):
		return dir
	case found == count && isOne(whole, lone):
		return counts
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

// number reports whether the name may also name a number.
func (of strength) number() bool { return of == count || of == counts }

// Masks reports whether the value of a member is masked for its name. value is its
// JSON text.
func (n *Names) Masks(name, value string) bool { return n.strength(name).masks(value) }

// masks reports whether the value after a name is masked. value is its JSON text.
func (of strength) masks(value string) bool {
	if of == none || value == "" {
		return false
	}
	switch value[0] {
	case 'n', 't', 'f': // null, true and false tell nothing
		return false
	case '"':
		return of.says(value[1 : len(value)-1])
	case '{', '[':
		return (of >= count || of == counts && of.inside(value)) && len(value) > len("{}") && !schema(value)
	}
	return of >= strong || of == weak && len(value) >= 4 // a PIN is a number, too
}

// inside reports whether a member of an object, or the only element of a list, is a credential.
func (of strength) inside(value string) bool {
	if only := value[1 : len(value)-1]; value[0] == '[' {
		return only != "" && only[0] == '"' && jsonwire.Valid(only) == nil && of.says(jsonwire.Text(only))
	}
	for _, v := range jsonwire.Members(value) {
		if v[0] == '"' && of.says(jsonwire.Text(v)) {
			return true
		}
	}
	return false
}

// says reports whether a quoted text after a name is a credential.
func (of strength) says(text string) bool {
	if placeholder(text) || of.saysNothing(text, false) {
		return false
	}
	switch of {
	case strong, dir, listed:
		return true
	case count:
		return !digits(text) && !prose(text)
	case counts:
		return !digits(text) && !prose(text) && (random(text) && len(text) >= 6 || len(text) >= 16)
	}
	return !prose(text) && !ident(text) && (random(text) && len(text) >= 4 || len(text) >= 12)
}

// directory reports whether a text begins like the name of a directory. With more the text may
// go on.
func directory(text string, more bool) bool {
	switch {
	case text == "" || text[0] == '/' || text[0] == '~':
		return true
	case kindOf[text[0]]&(lower|upper) == 0:
		return false
	case len(text) < 3:
		return more && (len(text) == 1 || text[1] == ':')
	}
	return text[1] == ':' && (text[2] == '/' || text[2] == '\\')
}

// ident reports whether a text is a UUID or begins with a date, as the id of a session of an
// agent does, is the id of an account of Windows, or few capitals and digits, as the pin of a
// chip.
func ident(text string) bool {
	const uuid, date, account = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx", "dddd-dd-dd", "S-1-"
	number := strings.TrimLeft(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZ")
	return len(text) == len(uuid) && like(text, uuid) || len(text) >= len(date) && like(text[:len(date)], date) ||
		strings.HasPrefix(text, account) && strings.Trim(text[len(account):], "0123456789-") == "" ||
		len(text) <= 7 && len(number) <= 3 && number != "" && number != text && strings.Trim(number, "0123456789") == ""
}

// like reports whether a text has a digit for each d of a form, a hexadecimal one for each x, and
// otherwise the characters of the form.
func like(text, form string) bool {
	for i := range len(form) {
		switch c := text[i]; {
		case form[i] == c || c-'0' <= 9 && form[i] != '-' || form[i] == 'x' && (c|0x20)-'a' <= 5:
		default:
			return false
		}
	}
	return true
}

// schema reports whether an object describes a value or a package, and does not hold a value.
func schema(object string) bool {
	is := false
	for name, value := range jsonwire.Members(object) {
		switch name {
		case "value":
			return false
		case "type":
			is = is || isOne(jsonwire.Text(value), types) || value[0] == '['
		case "version":
			is = is || value[0] == '"' && version(jsonwire.Text(value), false)
		case "$ref", "secretName":
			is = true
		}
	}
	return is
}

// types are the types of a JSON schema.
var types = []string{"string", "number", "integer", "boolean", "object", "array", "null"}

// prose reports whether a text is words, and not a value that somebody made up.
func prose(text string) bool {
	if !strings.Contains(text, " ") {
		return false
	}
	for word := range strings.SplitSeq(text, " ") {
		if len(word) >= 6 && random(word) || scheme(word) {
			return false
		}
	}
	return true
}

// schemes are the schemes of authorization, in small letters.
var schemes = []string{"bearer", "basic", "token", "digest", "apikey", "negotiate", "bot", "aws4-hmac-sha256", "key"}

// scheme reports whether a word is the name of a scheme of authorization.
func scheme(word string) bool {
	for _, s := range schemes {
		if strings.EqualFold(word, s) {
			return true
		}
	}
	return false
}

// amount reports whether a text is a number, perhaps with a unit, such as 3.2k.
func amount(text string) bool {
	if n := len(text) - 1; n > 0 && strings.IndexByte("kKmMgGbB%", text[n]) >= 0 {
		text = text[:n]
	}
	return digits(text)
}

// digits reports whether a text is a number, or several.
func digits(text string) bool { return strings.Trim(text, "0123456789.,_ ") == "" }
