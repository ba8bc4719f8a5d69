package secret

// A token is a form of secrets that begins with a prefix. The prefix stays.
type token struct {
	prefix string
	min    int // characters behind the prefix
	chars  *[256]bool
	random bool // they have a digit, or capital and small letters: prefix and words look alike
}

var (
	alnum   = chars("")
	urlSafe = chars("-_")
	dotted  = chars("-_.")
	base64s = chars("+/=-_")
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

// tokens are the known forms. A longer prefix comes before its beginning.
var tokens = []token{
	// clouds
	{"AKIA", 16, alnum, true}, {"ASIA", 16, alnum, true}, {"AIza", 30, urlSafe, true}, {"ya29.", 20, dotted, true}, {"GOCSPX-", 20, urlSafe, true},
	{"dop_v1_", 32, alnum, true}, {"doo_v1_", 32, alnum, true}, {"dapi", 32, alnum, true}, {"hvs.", 20, urlSafe, true}, {"NRAK-", 20, alnum, true},
	{"pscale_tkn_", 20, dotted, true}, {"sbp_", 32, alnum, true}, {"nfp_", 30, alnum, true}, {"dp.pt.", 30, alnum, true},
	// hosts of sources and packages
	{"ghp_", 30, alnum, true}, {"gho_", 30, alnum, true}, {"ghu_", 30, alnum, true}, {"ghs_", 30, alnum, true}, {"ghr_", 30, alnum, true},
	{"github_pat_", 22, urlSafe, true}, {"glpat-", 20, urlSafe, true}, {"ATATT3", 30, base64s, true}, {"npm_", 30, alnum, true}, {"pypi-", 40, urlSafe, true},
	// chats
	{"xoxb-", 10, urlSafe, true}, {"xoxp-", 10, urlSafe, true}, {"xoxa-", 10, urlSafe, true}, {"xoxr-", 10, urlSafe, true}, {"xoxs-", 10, urlSafe, true},
	{"xapp-", 10, urlSafe, true}, {"ntn_", 30, alnum, true}, {"lin_api_", 30, alnum, true},
	// models
	{"sk-", 20, urlSafe, true}, {"hf_", 30, alnum, true}, {"gsk_", 40, alnum, true}, {"xai-", 40, urlSafe, true}, {"pplx-", 40, alnum, true}, {"r8_", 30, alnum, true},
	// payments and mail
	{"sk_live_", 16, alnum, true}, {"sk_test_", 16, alnum, true}, {"rk_live_", 16, alnum, true}, {"rk_test_", 16, alnum, true}, {"whsec_", 20, base64s, true},
	{"SG.", 30, dotted, true}, {"shpat_", 32, alnum, true}, {"shpss_", 32, alnum, true},
	{"AGE-SECRET-KEY-1", 40, alnum, true},
}

// byFirst are the tokens by the first byte of their prefix.
var byFirst = func() (list [256][]*token) {
	for i := range tokens {
		first := tokens[i].prefix[0]
		list[first] = append(list[first], &tokens[i])
	}
	return list
}()
