package secret

// A token is a form of secrets with a prefix, which stays. The alphabet and the number of the
// characters after it are the documented ones; where a provider changes the number now and
// then, the least one counts.
type token struct {
	provider, prefix string
	chars            *[256]bool
	min, max         int // characters after the prefix; a max of 0 is any number
}

// The alphabets of tokens.
var (
	alnum    = chars("")
	snake    = chars("_")
	urlSafe  = chars("-_")
	dotted   = chars("-_.")
	base64s  = chars("+/=-_")
	padded   = chars("-_.=")
	tildes   = chars("-_.~")
	uppers   = only("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ")
	lowers   = only("0123456789abcdefghijklmnopqrstuvwxyz")
	licenses = only("0123456789abcdefux") // of New Relic: some begin with eu01xx
	hexes    = only("0123456789abcdef")
	uuids    = only("0123456789abcdef-")
)

func only(these string) *[256]bool {
	set := new([256]bool)
	for i := range len(these) {
		set[these[i]] = true
	}
	return set
}

func chars(more string) *[256]bool {
	return only("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz" + more)
}

// tokens are the forms with a prefix that no word has, and some that are so frequent that a
// shorter one tells. After the prefix there is a digit, or a capital and a small letter, and more
// than words.
var tokens = []token{
	// models
	{"OpenAI, Anthropic", "sk-", urlSafe, 20, 0}, {"OpenAI session", "sess-", urlSafe, 30, 0}, {"Hugging Face", "hf_", alnum, 30, 0}, {"Hugging Face", "api_org_", alnum, 30, 0},
	{"Groq", "gsk_", alnum, 40, 0}, {"xAI", "xai-", urlSafe, 40, 0}, {"Perplexity", "pplx-", alnum, 40, 0}, {"Replicate", "r8_", alnum, 30, 0}, {"Together", "tgp_v1_", urlSafe, 30, 0},
	{"NVIDIA", "nvapi-", urlSafe, 40, 0}, {"Cerebras", "csk-", alnum, 30, 0}, {"Tavily", "tvly-", urlSafe, 20, 0}, {"LangSmith", "ls__", alnum, 30, 0}, {"LangSmith", "lsv2_pt_", urlSafe, 30, 0}, {"LangSmith", "lsv2_sk_", urlSafe, 30, 0},
	{"Jina", "jina_", urlSafe, 30, 0}, {"Pinecone", "pcsk_", snake, 50, 0}, {"Browserbase", "bb_live_", urlSafe, 20, 0}, {"Browserbase", "bb_test_", urlSafe, 20, 0}, {"Weights & Biases", "wandb_v1_", urlSafe, 30, 0},
	{"AWS Bedrock", "ABSK", base64s, 100, 0}, {"AWS Bedrock, short-lived", "bedrock-api-key-", base64s, 40, 0}, {"turbopuffer", "tpuf_", urlSafe, 20, 0},
	// clouds
	{"AWS", "AKIA", uppers, 16, 0}, {"AWS", "ASIA", uppers, 16, 0}, {"AWS", "ABIA", uppers, 16, 0}, {"AWS session", "IQoJb3JpZ2luX2", base64s, 60, 0}, {"Amazon MWS", "amzn.mws.", urlSafe, 30, 0},
	{"Google", "AIz", urlSafe, 31, 0}, {"Google", "GOCSPX-", urlSafe, 20, 0}, {"Google", "1//0", urlSafe, 30, 0}, {"Google", "ya29.", dotted, 20, 0}, {"Fly.io", "fm2_", base64s, 30, 0}, {"Terraform", "atlasv1.", urlSafe, 40, 0},
	{"DigitalOcean", "dop_v1_", alnum, 32, 0}, {"DigitalOcean", "doo_v1_", alnum, 32, 0}, {"DigitalOcean", "dor_v1_", alnum, 32, 0}, {"New Relic", "NRAK-", alnum, 20, 0}, {"New Relic", "NRII-", urlSafe, 30, 0},
	{"PlanetScale", "pscale_tkn_", padded, 20, 0}, {"PlanetScale", "pscale_pw_", padded, 20, 0}, {"PlanetScale", "pscale_oauth_", padded, 20, 0}, {"Supabase", "sbp_", alnum, 32, 0}, {"Supabase", "sb_secret_", urlSafe, 20, 0},
	{"Netlify", "nfp_", alnum, 30, 0}, {"Tailscale", "tskey-", urlSafe, 20, 0}, {"Postman", "PMAK-", urlSafe, 30, 0}, {"Grafana", "glsa_", urlSafe, 30, 0}, {"Grafana", "glc_", base64s, 30, 0},
	{"Vault", "hvs.", urlSafe, 20, 0}, {"Vault", "hvb.", urlSafe, 20, 0}, {"Vault", "hvr.", urlSafe, 20, 0}, {"Doppler", "dp.pt.", alnum, 30, 0}, {"Doppler", "dp.st.", dotted, 30, 0}, {"Doppler", "dp.ct.", alnum, 30, 0},
	{"Doppler", "dp.sa.", alnum, 30, 0}, {"Doppler", "dp.scim.", alnum, 30, 0}, {"Doppler", "dp.audit.", alnum, 30, 0}, {"1Password", "ops_eyJ", base64s, 80, 0}, {"Heroku", "HRKU-", urlSafe, 30, 0}, {"Contentful", "CFPAT-", urlSafe, 30, 0},
	{"age", "AGE-SECRET-KEY-1", alnum, 40, 0}, {"Neon", "napi_", alnum, 30, 0}, {"Cloudflare", "cfut_", urlSafe, 40, 0}, {"Cloudflare", "cfat_", urlSafe, 40, 0},
	{"Alibaba", "LTAI", alnum, 16, 0}, {"Tencent", "AKID", alnum, 32, 0}, {"Yandex", "AQVN", urlSafe, 35, 0}, {"Dynatrace", "dt0c01.", dotted, 60, 0},
	// hosts of sources and packages
	{"GitHub", "ghp_", alnum, 30, 0}, {"GitHub", "gho_", alnum, 30, 0}, {"GitHub", "ghu_", alnum, 30, 0}, {"GitHub", "ghs_", alnum, 30, 0}, {"GitHub, with a web token", "ghs_", dotted, 60, 0}, {"GitHub", "ghr_", alnum, 30, 0}, {"GitHub", "github_pat_", urlSafe, 22, 0},
	{"GitLab", "glpat-", dotted, 20, 0}, {"GitLab", "gldt-", urlSafe, 20, 0}, {"GitLab", "glrt-", dotted, 20, 0}, {"GitLab", "glptt-", urlSafe, 20, 0}, {"GitLab", "glcbt-", urlSafe, 20, 0}, {"GitLab", "glft-", dotted, 20, 0}, {"GitLab", "glimt-", urlSafe, 20, 0},
	{"GitLab", "glagent-", urlSafe, 40, 0}, {"GitLab", "gloas-", urlSafe, 40, 0}, {"GitLab", "glsoat-", urlSafe, 20, 0}, {"GitLab", "glffct-", urlSafe, 20, 0}, {"GitLab", "GR1348941", urlSafe, 20, 0}, {"Bitbucket", "ATBB", alnum, 28, 0},
	{"npm", "npm_", alnum, 30, 0}, {"PyPI", "pypi-", urlSafe, 40, 0}, {"RubyGems", "rubygems_", alnum, 40, 0}, {"Docker", "dckr_pat_", urlSafe, 20, 0}, {"Docker", "dckr_oat_", urlSafe, 20, 0}, {"Sourcegraph", "sgp_", urlSafe, 40, 0},
	{"CircleCI", "CCIPAT_", snake, 40, 0}, {"CircleCI", "CCIPRJ_", snake, 40, 0}, {"Buildkite", "bkua_", alnum, 30, 0}, {"Snyk", "snyk_uat.", dotted, 30, 0}, {"Snyk", "snyk_sat.", dotted, 30, 0}, {"Artifactory", "cmVmdG", alnum, 50, 0},
	// chats and trackers
	{"Slack", "xoxb-", urlSafe, 16, 0}, {"Slack", "xoxp-", urlSafe, 16, 0}, {"Slack", "xoxa-", urlSafe, 16, 0}, {"Slack", "xoxr-", urlSafe, 16, 0}, {"Slack", "xoxs-", urlSafe, 16, 0}, {"Slack", "xoxe-", dotted, 16, 0}, {"Slack", "xoxc-", urlSafe, 16, 0}, {"Slack", "xoxd-", urlSafe, 16, 0}, {"Slack", "xapp-", urlSafe, 16, 0},
	{"Notion", "ntn_", alnum, 30, 0}, {"Notion", "secret_", alnum, 40, 0}, {"Linear", "lin_api_", alnum, 30, 0}, {"Linear", "lin_oauth_", alnum, 30, 0}, {"Atlassian", "ATATT3", base64s, 60, 0}, {"Atlassian", "ATCTT3", base64s, 60, 0}, {"Figma", "figd_", urlSafe, 30, 0},
	{"Sentry", "sntrys_", base64s, 30, 0}, {"Sentry", "sntryu_", alnum, 30, 0}, {"HubSpot", "pat-na1-", urlSafe, 30, 0}, {"HubSpot", "pat-eu1-", urlSafe, 30, 0}, {"Twilio", "SK", hexes, 32, 0}, {"Twilio", "AC", hexes, 32, 0}, {"PostHog", "phx_", alnum, 30, 0},
	{"Instagram", "IGQV", urlSafe, 100, 0}, {"ReadMe", "rdme_", lowers, 60, 0}, {"Inngest", "signkey-prod-", alnum, 32, 0}, {"Inngest", "signkey-test-", alnum, 32, 0}, {"Trigger.dev", "tr_prod_", alnum, 20, 0}, {"Trigger.dev", "tr_stg_", alnum, 20, 0}, {"Trigger.dev", "tr_dev_", alnum, 20, 0},
	// payments, mail and freight
	{"Stripe", "sk_live_", alnum, 16, 0}, {"Stripe", "sk_test_", alnum, 16, 0}, {"Stripe", "rk_live_", alnum, 16, 0}, {"Stripe", "rk_test_", alnum, 16, 0}, {"Stripe", "sk_org_live_", alnum, 20, 0}, {"Stripe", "sk_org_test_", alnum, 20, 0}, {"Stripe", "whsec_", base64s, 20, 0},
	{"Square", "sq0atp-", urlSafe, 20, 0}, {"Square", "sq0csp-", urlSafe, 30, 0}, {"Shopify", "shpat_", alnum, 32, 0}, {"Shopify", "shpss_", alnum, 32, 0}, {"Shopify", "shpca_", alnum, 32, 0}, {"Shopify", "shppa_", alnum, 32, 0},
	{"Razorpay", "rzp_live_", alnum, 14, 0}, {"Razorpay", "rzp_test_", alnum, 14, 0}, {"Flutterwave", "FLWSECK-", urlSafe, 20, 0}, {"Flutterwave", "FLWSECK_TEST-", urlSafe, 20, 0}, {"Plaid", "access-production-", urlSafe, 30, 0}, {"Plaid", "access-development-", urlSafe, 30, 0}, {"Plaid", "access-sandbox-", urlSafe, 30, 0},
	{"Brevo", "xkeysib-", urlSafe, 40, 0}, {"Brevo", "xsmtpsib-", urlSafe, 40, 0}, {"SendGrid", "SG.", dotted, 30, 0}, {"Duffel", "duffel_live_", padded, 30, 0}, {"Duffel", "duffel_test_", padded, 30, 0}, {"Shippo", "shippo_live_", alnum, 30, 0}, {"Shippo", "shippo_test_", alnum, 30, 0},
	{"EasyPost", "EZAK", alnum, 50, 0}, {"EasyPost", "EZTK", alnum, 50, 0},
	{"JSON web token", webPrefix, dotted, 17, 0}, // and other JSON in base64: see webToken
}

// shortTokens are the forms with a prefix of under four letters and digits, or one that base64 and
// words may have. It tells only in front of characters of each kind that the alphabet has, in
// the documented number, with no letter, digit or '_' after them.
var shortTokens = []token{
	// models
	{"Firecrawl", "fc-", hexes, 32, 32}, {"E2B", "e2b_", hexes, 40, 40}, {"Fireworks", "fw_", alnum, 20, 0}, {"ElevenLabs", "sk_", hexes, 48, 48}, {"OpenAI, of a client", "ek_", hexes, 32, 32}, {"OpenAI, of a client", "ek_", alnum, 20, 0}, {"Voyage", "pa-", urlSafe, 43, 43}, {"Google, bound to an account", "AQ.", urlSafe, 40, 0},
	{"Cohere", "co_", alnum, 20, 0}, {"Friendli", "flp_", alnum, 20, 0}, {"Cursor", "key_", hexes, 64, 64}, {"Runway", "key_", hexes, 128, 128},
	{"Vercel AI gateway", "vck_", urlSafe, 20, 0}, {"Vercel", "vcp_", urlSafe, 20, 0}, {"Vercel", "vci_", urlSafe, 20, 0}, {"Vercel", "vca_", urlSafe, 20, 0}, {"Vercel", "vcr_", urlSafe, 20, 0},
	// clouds
	{"Cloudflare", "cfk_", urlSafe, 30, 0}, {"Pulumi", "pul-", hexes, 40, 40}, {"Render", "rnd_", alnum, 20, 0}, {"Prefect", "pnu_", alnum, 36, 36}, {"Prefect", "pnu_", lowers, 36, 36}, {"Scaleway", "SCW", uppers, 17, 17},
	// sources and packages
	{"SonarQube", "squ_", hexes, 40, 40}, {"SonarQube", "sqp_", hexes, 40, 40}, {"SonarQube", "sqa_", hexes, 40, 40}, {"Artifactory", "AKC", alnum, 60, 0}, {"NuGet", "oy2", lowers, 43, 43},
	// others
	{"Square", "EAAA", urlSafe, 60, 60}, {"Facebook", "EAAC", alnum, 60, 0}, {"Facebook", "EAAM", alnum, 60, 0}, {"Resend", "re_", snake, 25, 0}, {"Typeform", "tfp_", padded, 40, 0}, {"LaunchDarkly", "sdk-", uuids, 36, 36},
	{"Dropbox", "sl.", padded, 100, 0},
}

// wordTokens are the forms with a prefix of small letters alone, as words have it. So some of the
// letters after it stay: no stream holds back a word for it.
var wordTokens = []token{
	{"Databricks", "dapi", alnum, 32, 0}, {"Databricks OAuth", "dose", hexes, 32, 0}, {"crates.io", "cio", alnum, 32, 32},
}

// leadTokens are the forms that are told by their middle or their end: lead characters of the
// alphabet are in front of it, which begin so. The first of them stay, because a stream has
// passed them on: see form.after.
var leadTokens = []struct {
	token
	lead   int
	begins string
}{
	{token{"Azure application", "Q~", tildes, 31, 34}, 4, ""}, // aBc8Q~…
	{token{"Azure AI and others", "JQQJ99", alnum, 26, 26}, 52, ""},
	{token{"New Relic license", "NRAL", licenses, 0, 0}, 36, ""},
	{token{"New Relic license", "FFFFNRAL", licenses, 0, 0}, 32, ""},
	{token{"Mailchimp", "-us", hexes, 1, 2}, 32, ""},
	{token{"Airtable", ".", alnum, 64, 64}, 17, "pat"},
}
