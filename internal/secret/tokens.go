package secret

import (
	"strings"

	"github.com/agentevents/agentevents/internal/jsonwire"
)

// A token is a form of secrets that begins with a prefix. The prefix stays.
type token struct {
	prefix string
	min    int // characters behind the prefix
	chars  *[256]bool
}

var (
	alnum   = chars("")
	urlSafe = chars("-_")
	dotted  = chars("-_.")
	base64s = chars("+/=-_")
	hexes   = func() *[256]bool {
		set := new([256]bool)
		for _, c := range []byte("0123456789abcdef") {
			set[c] = true
		}
		return set
	}()
)

func chars(more string) *[256]bool {
	set := new([256]bool)
	for c := range 256 {
		set[c] = '0' <= c && c <= '9' || 'A' <= c && c <= 'Z' || 'a' <= c && c <= 'z'
	}
	for i := range len(more) {
		set[more[i]] = true
	}
	return set
}

// tokens are the known forms. All have a digit, or capital and small letters, in what
// follows the prefix.
var tokens = []token{
	// clouds
	{"AKIA", 16, alnum}, {"ASIA", 16, alnum}, {"ABIA", 16, alnum}, {"amzn.mws.", 30, urlSafe}, {"AIza", 30, urlSafe}, {"GOCSPX-", 20, urlSafe}, {"1//0", 30, urlSafe}, {"fm2_", 30, base64s}, {"atlasv1.", 40, urlSafe},
	{"dop_v1_", 32, alnum}, {"doo_v1_", 32, alnum}, {"dor_v1_", 32, alnum}, {"NRAK-", 20, alnum}, {"pscale_tkn_", 20, dotted}, {"pscale_pw_", 20, dotted},
	{"sbp_", 32, alnum}, {"sb_secret_", 20, urlSafe}, {"nfp_", 30, alnum}, {"tskey-", 20, urlSafe}, {"PMAK-", 30, urlSafe}, {"glsa_", 30, urlSafe}, {"glc_", 30, base64s},
	{"ya29.", 20, dotted}, {"hvs.", 20, urlSafe}, {"hvb.", 20, urlSafe}, {"dp.pt.", 30, alnum}, {"dp.st.", 30, dotted}, {"HRKU-", 30, urlSafe}, {"CFPAT-", 30, urlSafe}, {"AGE-SECRET-KEY-1", 40, alnum}, {"dapi", 32, alnum},
	// hosts of sources and packages
	{"ghp_", 30, alnum}, {"gho_", 30, alnum}, {"ghu_", 30, alnum}, {"ghs_", 30, alnum}, {"ghr_", 30, alnum}, {"github_pat_", 22, urlSafe},
	{"glpat-", 20, dotted}, {"gldt-", 20, urlSafe}, {"glrt-", 20, dotted}, {"glptt-", 20, urlSafe}, {"npm_", 30, alnum}, {"pypi-", 40, urlSafe},
	{"rubygems_", 40, alnum}, {"dckr_pat_", 20, urlSafe}, {"sgp_", 40, urlSafe},
	// chats and trackers
	{"xoxb-", 16, urlSafe}, {"xoxp-", 16, urlSafe}, {"xoxa-", 16, urlSafe}, {"xoxr-", 16, urlSafe}, {"xoxs-", 16, urlSafe}, {"xoxe-", 16, dotted}, {"xoxc-", 16, urlSafe}, {"xoxd-", 16, urlSafe},
	{"xapp-", 16, urlSafe}, {"ntn_", 30, alnum}, {"secret_", 40, alnum}, {"lin_api_", 30, alnum}, {"lin_oauth_", 30, alnum}, {"ATATT3", 60, base64s}, {"ATCTT3", 60, base64s}, {"figd_", 30, urlSafe}, {"sntrys_", 30, base64s}, {"sntryu_", 30, alnum},
	{"pat-na1-", 30, urlSafe}, {"pat-eu1-", 30, urlSafe}, {"SK", 32, hexes}, {"AC", 32, hexes}, {"phx_", 30, alnum},
	// models
	{"sk-", 20, urlSafe}, {"hf_", 30, alnum}, {"gsk_", 40, alnum}, {"xai-", 40, urlSafe}, {"pplx-", 40, alnum}, {"r8_", 30, alnum}, {"tgp_v1_", 30, urlSafe},
	{"nvapi-", 40, urlSafe}, {"csk-", 30, alnum}, {"tvly-", 20, urlSafe}, {"ls__", 30, alnum}, {"lsv2_pt_", 30, urlSafe}, {"lsv2_sk_", 30, urlSafe}, {"jina_", 30, urlSafe},
	// payments and mail
	{"sk_live_", 16, alnum}, {"sk_test_", 16, alnum}, {"rk_live_", 16, alnum}, {"rk_test_", 16, alnum}, {"whsec_", 20, base64s}, {"sq0atp-", 20, urlSafe}, {"sq0csp-", 30, urlSafe},
	{"shpat_", 32, alnum}, {"shpss_", 32, alnum}, {"shpca_", 32, alnum}, {"shppa_", 32, alnum}, {"xkeysib-", 40, urlSafe}, {"SG.", 30, dotted},
	{webPrefix, 17, dotted}, // JSON web tokens, and what else is JSON in base64: see webToken
}

// tokenChars are those of all tokens and prefixes, wordChars those in front of which no
// token begins.
var (
	tokenChars = *chars("+/=-_.")
	wordChars  = *chars("_")
)

const (
	leastToken = 19 // characters, at least, of a token and its prefix
	leastEnd   = 11 // of one that the text ends in
	mostPrefix = 20
)

// byStart are the tokens by the first byte of their prefix. starts and stops have the
// first and the last two bytes of each prefix.
var byStart, starts, stops = func() (list [256][]*token, starts, stops pairs) {
	for i := range tokens {
		p := tokens[i].prefix
		list[p[0]] = append(list[p[0]], &tokens[i])
		starts.add(p[0], p[1])
		stops.add(p[len(p)-2], p[len(p)-1])
	}
	return list, starts, stops
}()

// stopChars say of a byte whether it is of no token, or may be the last of a prefix.
var stopChars = func() (of [256]byte) {
	for c := range of {
		if !tokenChars[c] {
			of[c] = noToken
		}
	}
	for i := range tokens {
		of[tokens[i].prefix[len(tokens[i].prefix)-1]] = mayStop
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
	// Nothing is said of what follows: a token may have begun if its prefix is there.
	if begins(text, done) {
		f.tokens(text, n-1, from, false)
	}
	for k := n - 1; k >= from && n-k < 24 && cardChars[text[k]]; k-- {
		f.card(text, k, false)
	}
}

// begins reports whether the text ends in characters of a token with the end of a prefix
// among them, which is not in front of from.
func begins(text string, from int) bool {
	from = max(from, 1)
	for k := len(text) - 1; k >= from; k-- {
		c := stopChars[text[k]]
		if c == noToken {
			break
		}
		if c == mayStop && stops.has(text[k-1], text[k]) {
			return true
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
		for i < len(text) && inWord[text[i]] {
			i++
		}
		if i == len(text) || !run[text[i]] {
			return i
		}
		i++
	}
}

// tokenAt finds a token that begins at i.
func (f *found) tokenAt(text string, i, from int, final bool) {
	if i == len(text) {
		return
	}
	for _, t := range byStart[text[i]] {
		at := i + len(t.prefix)
		if at <= from || !strings.HasPrefix(text[i:], t.prefix) || !word(text, i) {
			continue
		}
		var r region
		var v verdict
		if t.prefix == webPrefix {
			r, v = webToken(text, at, final)
		} else {
			r, v = run(text, at, t.min, t.chars, final)
		}
		if v != no {
			f.add(text, at-1, r, v)
		}
	}
}

// most is the number of characters of a token at which a rule decides.
const most = 64

// run returns the region of the characters from i, which must be at least min.
func run(text string, i, min int, chars *[256]bool, final bool) (region, verdict) {
	r := region{from: i, rule: Token, until: untilChar, chars: chars}
	to := i
	for to < len(text) && to-i < most && chars[text[to]] {
		to++
	}
	ended := to < len(text) || final
	switch n := to - i; {
	case n >= min && random(text[i:to]):
		return r, yes
	case n == most || to < len(text):
		return r, no
	case !ended:
		return r, maybe
	case n >= unfinished && random(text[i:to]):
		return r, yes
	}
	return r, no
}

// unfinished is the length from which the beginning of a secret is masked when the
// text ends in it.
const unfinished = 8

// webPrefix is that of an object of JSON in base64.
const webPrefix = "eyJ"

// maxHeader is the length of the header of a JSON web token, at most.
const maxHeader = 1 << 10

// webToken finds a JSON web token behind its first three letters: a header, a dot and
// claims.
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

// pem finds a private key behind its first line.
func pem(_ *Scanner, text string, i int, _ bool) (region, verdict) {
	const dashes, begin = "-----", "BEGIN "
	line, ok := strings.CutSuffix(text[max(0, i-80):i+1], dashes)
	if !ok || !strings.HasSuffix(line, "PRIVATE KEY") && !strings.HasSuffix(line, "PRIVATE KEY BLOCK") {
		return region{}, no
	}
	line = line[strings.LastIndex(line, dashes)+1:]
	return region{from: i + 1, rule: Token, until: untilEnd}, yesIf(strings.HasPrefix(line, dashes[1:]+begin))
}

// botToken finds the token of a bot behind the bot's number.
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
	return run(text, i+1+len(lead), 30, urlSafe, final)
}

// cards finds the numbers of cards that have the characters at i and behind it.
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

// cardChars are those of numbers of cards.
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

// card finds the number of a payment card behind its first six digits.
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
	case n < leastDigits || !luhn(digits[:n]) || digits[0] == 2 && n != 16:
		return r, no
	case k < len(text) && (alnum[text[k]] || text[k] == '_' || text[k] == '.' && k+1 < len(text) && alnum[text[k+1]]):
		return r, no
	}
	return r, yes
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
