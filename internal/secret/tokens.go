package secret

import (
	"strings"

	"github.com/agentevents/agentevents/internal/jsonwire"
)

// tokenChars are the characters of all tokens and prefixes; no token begins after one of wordChars.
var (
	tokenChars = *chars("+/=-_.~")
	wordChars  = *chars("_")
)

const (
	leastToken = 19 // characters, at least, of a token and its prefix
	leastEnd   = 11 // of one that the text ends in
	mostPrefix = 20
)

// A form is a token as it is looked for.
type form struct {
	token
	lead   int    // characters of the token in front of the prefix
	begins string // the beginning of the lead
	stay   int    // how many of them, or of those after the prefix, stay
	signs  bool   // words may have its characters: see worded
	strict bool   // see shortTokens
	kinds  kinds  // of the alphabet
	limit  int    // characters after the prefix at which it is decided
}

// forms are those that are looked for by their prefix, wordForms those where a word begins.
var forms, wordForms = func() (forms, words []*form) {
	add := func(list *[]*form, t token, lead, stay int, begins string, strict bool) {
		signs := t.chars['-'] || t.chars['_'] || strict && t.chars['a'] && t.chars['A']
		f := &form{
			token: t, lead: lead, begins: begins, stay: stay,
			signs: signs, strict: strict, limit: max(most, t.min, t.max+1),
		}
		for c := range 256 {
			if t.chars[c] {
				f.kinds |= kindOf[c]
			}
		}
		*list = append(*list, f)
	}
	for _, t := range tokens {
		add(&forms, t, 0, 0, "", false)
	}
	for _, t := range shortTokens {
		add(&forms, t, 0, 0, "", true)
	}
	for _, t := range wordTokens {
		add(&words, t, 0, wordStay-len(t.prefix), t.prefix, t.max > 0)
	}
	for _, t := range leadTokens {
		if t.lead < wordStay {
			add(&forms, t.token, t.lead, 0, "", true)
		} else {
			stay := leadStay
			if t.begins != "" {
				stay = wordStay
			}
			add(&words, t.token, t.lead, stay, t.begins, true)
		}
	}
	return forms, words
}()

// byStart are the forms by the first byte of their prefix, byStop by the last two: see stop.
// starts and stops have the first and the last two bytes of each prefix. Of the words with
// wordForms, wordStarts are the first bytes, and wordSizes the lengths of those with a lead.
var byStart, byStop, starts, stops, wordStarts, wordSizes = func() (
	list [256][]*form, ends [1 << 9][]*form, starts, stops pairs, words [256]bool, sizes [mostWord]bool) {
	for _, t := range forms {
		p := t.prefix
		a, b := p[len(p)-2], p[len(p)-1]
		list[p[0]] = append(list[p[0]], t)
		ends[stop(a, b)] = append(ends[stop(a, b)], t)
		if t.lead == 0 {
			starts.add(p[0], p[1])
		}
		stops.add(a, b)
	}
	for _, t := range wordForms {
		if size := t.lead; t.begins != "" {
			words[t.begins[0]] = true
		} else {
			if wordChars[t.prefix[0]] {
				size += len(t.prefix) + t.max
			}
			sizes[size] = true
		}
	}
	return list, ends, starts, stops, words, sizes
}()

// stop returns the index in byStop of two bytes, which others may have, too.
func stop(a, b byte) int { return int(a)<<3&0x1FF ^ int(b) }

// stopChars has the bytes that belong to no token, or may end a prefix.
var stopChars = func() (of [256]byte) {
	for c := range of {
		if !tokenChars[c] {
			of[c] = noToken
		}
	}
	for _, t := range forms {
		of[t.prefix[len(t.prefix)-1]] = mayStop
	}
	return of
}()

const noToken, mayStop = 1, 2

// pairs have a bit for each of many pairs of ASCII.
type pairs [1 << 9]uint32

func (p *pairs) add(a, b byte) { p[int(a&0x7F)<<2|int(b&0x7F)>>5] |= 1 << (b & 31) }

func (p *pairs) has(a, b byte) bool { return p[int(a&0x7F)<<2|int(b&0x7F)>>5]>>(b&31)&1 != 0 }

// step is how far apart eight characters of a token, or two of a card, are looked for:
// in leastToken characters there are eight at a multiple of it, and in leastDigits two,
// one of which is a digit.
const step = 12

// runs finds tokens and the numbers of cards. Both are runs of characters that are long
// enough to look at few places only.
func (f *found) runs(text string, from int, final bool) {
	done := from // up to here runs are looked at
	i := stride(text, from)
	for ; i+8 <= len(text); i = stride(text, i+step) {
		w := jsonwire.Load64(text, i)
		if broken(w) == 0 && i >= done {
			done = f.tokens(text, i, from, final)
		}
		if w&0xC0C0 == 0 {
			f.cards(text, i, from, final)
		}
	}
	if i+1 < len(text) && (text[i]|text[i+1])&0xC0 == 0 {
		f.cards(text, i, from, final)
	}
	f.last(text, from, done, final)
}

// last finds a token and a card in which the text ends.
func (f *found) last(text string, from, done int, final bool) {
	n := len(text)
	if final {
		k := n
		for k > 0 && n-k < leastEnd && tokenChars[text[k-1]] {
			k--
		}
		if done < n && n-k == leastEnd {
			f.tokens(text, n-1, from, true)
		}
		return
	}
	// The next bytes are unknown: a token may have begun if its prefix is there.
	if begins(text, done) {
		f.tokens(text, n-1, from, false)
	}
	if n > 0 && leadEnds[text[n-1]] {
		k := n - 1
		for k > 0 && n-k < mostWord && kindOf[text[k-1]] != 0 {
			k--
		}
		if n-k > leastWord {
			f.word(text, k, false)
		}
	}
	if k := n - f.tail; k > wordStay && k < mostWord &&
		(wordStarts[text[f.tail]] || !inData(text, f.tail) && kindsOf(text[f.tail:])&digit != 0) {
		f.word(text, f.tail, false)
	}
	for k := n - 1; k >= from && n-k < 24 && cardChars[text[k]]; k-- {
		f.card(text, k, false)
	}
}

// begins reports whether the text ends in characters of a token with a prefix among them, of
// which the end is not in front of from. Of a prefix that begins before the text the end is
// enough.
func begins(text string, from int) bool {
	from = max(from, 1)
	for k := len(text) - 1; k >= from; k-- {
		c := stopChars[text[k]]
		if c == noToken {
			break
		}
		if c != mayStop || !stops.has(text[k-1], text[k]) {
			continue
		}
		for _, t := range byStop[stop(text[k-1], text[k])] {
			first := k + 1 - len(t.prefix)
			if first >= 0 && text[first] == t.prefix[0] && text[first:k+1] == t.prefix ||
				first < 0 && t.prefix[-first:] == text[:k+1] {
				return true
			}
		}
	}
	return false
}

// tokens finds tokens in the run of characters around i, whose prefix does not end in
// front of from. It returns the end of the run, or where it looked no further.
func (f *found) tokens(text string, i, from int, final bool) (end int) {
	run, inWord := &tokenChars, &wordChars
	end = i
	for least := max(0, min(i-leastToken, from-mostPrefix)); i > least && run[text[i-1]]; i-- {
	}
	for end < len(text) && end-i < leastToken && run[text[end]] {
		end++
	}
	if n := end - i; n < leastToken && (end < len(text) || final && n < leastEnd) {
		return end
	}
	if escaped(text, i+1) {
		f.tokenAt(text, i+1, from, final)
	}
	for {
		if i+1 < len(text) && starts.has(text[i], text[i+1]) {
			f.tokenAt(text, i, from, final)
		}
		first := i
		for i < len(text) && inWord[text[i]] {
			i++
		}
		if n := i - first; n >= leastWord && (wordStarts[text[first]] || n < mostWord && wordSizes[n]) {
			f.word(text, first, final)
		}
		if i == len(text) || !run[text[i]] {
			return i
		}
		if text[i] == '~' && i > 0 {
			f.tokenAt(text, i-1, from, final)
		}
		i++
	}
}

// tokenAt finds a token whose prefix begins at i.
func (f *found) tokenAt(text string, i, from int, final bool) {
	if i == len(text) {
		return
	}
	for _, t := range byStart[text[i]] {
		at := i + len(t.prefix)
		if at <= from || !strings.HasPrefix(text[i:], t.prefix) || !t.mayBegin(text, i) {
			continue
		}
		var r region
		var v verdict
		if t.prefix == webPrefix {
			r, v = webToken(text, at, final)
		} else {
			r, v = t.run(text, at, final)
		}
		if v != no {
			f.add(text, at-1, r, v)
		}
	}
}

// mayBegin reports whether the prefix may be at i: where a word begins, or after a lead, which
// ends in a digit.
func (t *form) mayBegin(text string, i int) bool {
	if t.lead == 0 {
		return word(text, i)
	}
	k := i
	for k > 0 && i-k < t.lead && t.chars[text[k-1]] {
		k--
	}
	return i-k == t.lead && kindOf[text[i-1]] == digit && word(text, k)
}

// most is the number of characters of a token at which a rule decides, if the form needs no
// more.
const most = 64

// run returns the region of the characters from i.
func (t *form) run(text string, i int, final bool) (region, verdict) {
	r := region{from: i + t.stay, rule: Token, until: untilChar, chars: t.chars}
	to := i
	for to < len(text) && to-i < t.limit && t.chars[text[to]] {
		to++
	}
	n, ended := to-i, to < len(text) && to-i < t.limit
	has := kindsOf(text[i:to])
	invented := has&digit != 0 || has == upper|lower
	if t.strict {
		invented = has == t.kinds
	}
	invented = invented && !(t.signs && worded(text[i:to], t.strict))
	switch {
	case t.strict && !ended && n < t.limit && !final:
		return r, maybe
	case t.max > 0 && n > t.max || t.strict && ended && wordChars[text[to]]:
		return r, no
	case n >= t.min && invented:
		return r, yes
	case ended || n == t.limit:
		return r, no
	case !final:
		return r, maybe
	}
	least := unfinished
	if t.strict {
		least = 20
	}
	return r, yesIf(n >= least && invented)
}

const (
	wordStay  = 7  // characters of a word that stay, if it may begin a token
	leadStay  = 16 // and of one that begins with nothing that tells
	leastWord = 12 // characters of a word with a token
	mostWord  = 90
)

// word finds tokens in the word that has the character at i.
func (f *found) word(text string, i int, final bool) {
	first := i
	for first > 0 && i-first < mostWord && wordChars[text[first-1]] {
		first--
	}
	if first > 0 && wordChars[text[first-1]] {
		return
	}
	data := inData(text, first)
	for _, t := range wordForms {
		var r region
		v := no
		switch {
		case !strings.HasPrefix(text[first:], t.begins):
		case t.lead == 0:
			r, v = t.run(text, first+len(t.prefix), final)
		case t.begins != "" || !data:
			r, v = t.after(text, first, final)
		}
		if v != no {
			f.add(text, first, r, v)
		}
	}
}

// leadEnds are the bytes after words that are leads.
var leadEnds = func() (is [256]bool) {
	for _, t := range wordForms {
		if c := t.prefix[0]; t.lead > 0 && !wordChars[c] {
			is[c] = true
		}
	}
	return is
}()

// inData reports whether the word at i is perhaps of data in base64, or of a name or a number
// with signs in it.
func inData(text string, i int) bool { return i > 0 && dataSigns[text[i-1]] }

var dataSigns = *only("+/-.%~")

// after returns the region of a token whose lead begins at first. If a lead may begin with
// anything, nothing is masked before it has had all kinds of its characters: a stream holds back
// no word of letters.
func (t *form) after(text string, first int, final bool) (region, verdict) {
	r := region{rule: Token, at: len(text)}
	if t.begins != "" {
		r.from = first + t.stay
	}
	k, has := first, kinds(0)
	for k < len(text) && k-first < t.lead && t.chars[text[k]] {
		if has |= kindOf[text[k]]; r.from == 0 && has == t.kinds {
			r.from = max(k, first+t.stay)
		}
		k++
	}
	rest := text[k:]
	end := k + len(t.prefix)
	switch {
	case r.from == 0:
		return r, no
	case k-first < t.lead || len(rest) < len(t.prefix):
		return r, verdictOf(!final && strings.HasPrefix(t.prefix, rest) && (rest == "" || k-first == t.lead))
	case rest[:len(t.prefix)] != t.prefix:
		return r, no
	}
	r.at = end
	for r.at < len(text) && r.at-end <= t.max && t.chars[text[r.at]] {
		r.at++
	}
	switch n := r.at - end; {
	case n > t.max || r.at < len(text) && (n < t.min || wordChars[text[r.at]]):
		return r, no
	case r.at == len(text) && !final:
		return r, maybe
	default:
		return r, yesIf(n >= t.min)
	}
}

// unfinished is the length from which the beginning of a secret is masked when the
// text ends in it.
const unfinished = 8

// webPrefix is the beginning of a JSON object in base64.
const webPrefix = "eyJ"

// maxHeader is the length of the header of a JSON web token, at most.
const maxHeader = 1 << 10

// webToken finds a JSON web token after its first three letters: a header, a dot and claims.
func webToken(text string, i int, final bool) (region, verdict) {
	r := region{from: i, rule: Token, until: untilChar, chars: dotted}
	k := i
	for k < len(text) && k-i <= maxHeader && urlSafe[text[k]] {
		k++
	}
	switch {
	case k-i > maxHeader:
		return r, no
	case k == len(text):
		return r, verdictOf(!final)
	case text[k] != '.' || k-i < 8:
		return r, no
	}
	claims := k + 1
	for k++; k < len(text) && k-claims < 8 && (urlSafe[text[k]] || text[k] == '.'); k++ {
	}
	switch {
	case k-claims == 8:
		return r, yes
	case k == len(text):
		if final && k > claims {
			return r, yes
		}
		return r, verdictOf(!final)
	}
	return r, no
}

func verdictOf(mayBe bool) verdict {
	if mayBe {
		return maybe
	}
	return no
}

// pem finds a private key after its first line.
func pem(_ *Scanner, text string, i int, _ bool) (region, verdict) {
	const dashes, begin = "-----", "BEGIN "
	line, ok := strings.CutSuffix(text[max(0, i-80):i+1], dashes)
	if !ok || !strings.HasSuffix(line, "PRIVATE KEY") && !strings.HasSuffix(line, "PRIVATE KEY BLOCK") {
		return region{}, no
	}
	line = line[strings.LastIndex(line, dashes)+1:]
	return region{from: i + 1, rule: Token, until: untilEnd}, yesIf(strings.HasPrefix(line, dashes[1:]+begin))
}

// botToken finds the token of a bot after the bot's number.
func botToken(_ *Scanner, text string, i int, final bool) (region, verdict) {
	k := i
	for k > 0 && i-k <= 10 && text[k-1]-'0' <= 9 {
		k--
	}
	if i-k < 8 || i-k > 10 {
		return region{}, no
	}
	const lead = "AA"
	if rest := text[i+1:]; !strings.HasPrefix(rest, lead) {
		return region{from: len(text)}, verdictOf(!final && strings.HasPrefix(lead, rest))
	}
	return botForm.run(text, i+1+len(lead), final)
}

var botForm = &form{token: token{chars: urlSafe, min: 30}, limit: most}

// cards finds the numbers of cards that have the characters from i on.
func (f *found) cards(text string, i, from int, final bool) {
	if !cardChars[text[i]] || !cardChars[text[i+1]] || text[i]-'0' > 9 && text[i+1]-'0' > 9 {
		return
	}
	start, end := i, i+2
	for start > from && i-start < step && cardChars[text[start-1]] {
		start--
	}
	for end < len(text) && end-start < leastDigits && cardChars[text[end]] {
		end++
	}
	if end-start < leastDigits {
		return
	}
	for k := start; k <= i; k++ {
		f.card(text, k, final)
	}
}

// cardChars are the characters of numbers of cards.
var cardChars = func() (is [256]bool) {
	for _, c := range []byte("0123456789 -") {
		is[c] = true
	}
	return is
}()

func (f *found) card(text string, i int, final bool) {
	if c := text[i]; c < '2' || c > '6' {
		return
	}
	if r, v := card(text, i, final); v != no {
		f.add(text, i, r, v)
	}
}

// leastDigits is the number of digits of a card, at least.
const leastDigits = 13

// card finds the number of a payment card after its first six digits.
func card(text string, i int, final bool) (region, verdict) {
	const shown, most = 6, 19
	if !word(text, i) || i > 0 && strings.IndexByte(".-+/,", text[i-1]) >= 0 {
		return region{}, no
	}
	r := region{from: len(text), rule: Card}
	var digits [most]byte
	n, k := 0, i
	for ; k < len(text); k++ {
		c := text[k]
		if c-'0' <= 9 {
			if n == most {
				return r, no
			}
			if n == shown {
				r.from = k
			}
			digits[n] = c - '0'
			n++
			r.at = k + 1
			if four := text[i:r.at]; n == 4 && digits[0] == 2 && (four < "2221" || four > "2720") {
				return r, no // of Mastercard's
			}
			continue
		}
		if c != ' ' && c != '-' || n >= leastDigits && luhn(digits[:n]) {
			break
		}
		if k+1 < len(text) && text[k+1]-'0' > 9 || n%4 != 0 && n != 10 {
			break
		}
	}
	switch {
	case !final && (k == len(text) || k+1 == len(text) && text[k] == '.'):
		return r, maybe
	case n < leastDigits || !luhn(digits[:n]) || !issued(digits[:n]):
		return r, no
	case k < len(text) && (alnum[text[k]] || text[k] == '_' || text[k] == '.' && k+1 < len(text) && alnum[text[k+1]]):
		return r, no
	}
	return r, yes
}

// issued reports whether an issuer has numbers of this length: the first digit, and after a 3
// the second, tells. So the number of a telephone is not masked.
func issued(digits []byte) bool {
	switch n := len(digits); digits[0] {
	case 2:
		return n == 16
	case 3:
		switch digits[1] {
		case 4, 7: // American Express
			return n == 15
		case 5: // JCB
			return n >= 16
		}
		return n == 14 || n >= 16 // Diners
	case 4:
		return n == 13 || n == 16 || n == 19
	}
	return true
}

// luhn reports whether the check digit of a card is right.
func luhn(digits []byte) bool {
	sum := 0
	for j := range digits {
		d := int(digits[len(digits)-1-j])
		if j%2 == 1 {
			if d *= 2; d > 9 {
				d -= 9
			}
		}
		sum += d
	}
	return sum%10 == 0
}
