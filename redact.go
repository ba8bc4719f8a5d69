package agentevents

import (
	"errors"
	"slices"
	"sort"
	"strings"
	"sync/atomic"
	"unicode/utf8"

	"github.com/agentevents/agentevents/internal/credential"
	"github.com/agentevents/agentevents/internal/extra"
	"github.com/agentevents/agentevents/internal/jsonwire"
)

// Class is the sensitivity of a field. The struct tag class sets it. A [Policy]
// has an action for each class.
type Class uint8

// The classes. A field without one counts as [ClassSecret]; a test refuses it.
const (
	ClassSecret  Class = iota // always masked
	ClassContent              // text and JSON by people, models or tools
	ClassMeta                 // names, words and figures of the runtime
	ClassID                   // identifiers; never changed

	classes = iota
)

// String returns the word in the struct tag: "secret", "content", "meta" or "id".
func (c Class) String() string {
	switch c {
	case ClassContent:
		return "content"
	case ClassMeta:
		return "meta"
	case ClassID:
		return "id"
	}
	return "secret"
}

// An Action is what a [Policy] does to the text of one class.
type Action uint8

// The actions.
const (
	ActionScan Action = iota // mask credentials and registered secrets, and call the Redactor
	ActionKeep               // leave the text as it is
	ActionMask               // replace the text by a marker
	ActionDrop               // remove the text

	actions = iota
)

// A Policy configures the redaction step. The step runs before the tracer and the
// sinks see an event. The zero Policy is the default:
//
//   - Content and names are scanned. In raw JSON, at any depth, it masks the
//     values of members whose names look like credentials (password, token,
//     api_key, authorization, cookie, …). In every string it masks registered
//     secrets.
//   - Reasoning is kept as the verbosity of its event says.
//   - Fields of class secret are masked.
//
// A masked text becomes "[REDACTED:rule]", where rule is key, secret, class or
// error, and the event gets [MarkRedacted]. Identifiers, closed words, numbers and
// statuses never change. Extra members and unknown payloads are content.
//
// Each text is scanned by itself: a secret that is split over two deltas is not
// found. Names of credentials count only in raw JSON: not in a
// [ToolArgumentsDelta], and not in JSON inside a string.
//
// A Policy must not be changed once it is in use. Secrets may be added.
type Policy struct {
	// Off turns the whole step off.
	Off bool
	// Content and Meta are the actions on the text of these classes; the default
	// is [ActionScan]. A text of class meta may be required, so [ActionDrop] masks
	// it.
	Content Action
	Meta    Action
	// Keys are more names of credentials: in raw JSON the value of a member is
	// masked when its name ends with one of them. Case, '-', '_', '.' and blanks
	// do not matter.
	Keys []string
	// KeepKeys are names that are no credentials, although they look like one. They
	// match like Keys.
	KeepKeys []string
	// Secrets is the set of registered secrets; nil means none.
	Secrets *Secrets
	// Reasoning is the highest verbosity of recorded reasoning: an event may ask
	// for less. Empty means what the event asks for, and full if it does not ask.
	Reasoning Verbosity
	// ReasoningTokens is the number of tokens to which a block of reasoning with
	// verbosity summary is cut, be it whole or in deltas. 0 means 512.
	ReasoningTokens int
	// CountTokens returns the number of tokens of a text, for ReasoningTokens. Nil
	// means one token for four characters. Its calls are like those of a Redactor.
	CountTokens func(text string) int
	// Redactor is called with every scanned text, after registered secrets are
	// masked. Nil means none.
	Redactor Redactor
}

// A Redactor changes texts before they are recorded. A text is a field or a string
// inside raw JSON. The emitter calls it with the lock of the run held, so Redact
// must not emit; it is called concurrently for different runs.
//
// When Redact returns an error or panics, the text becomes "[REDACTED:error]" and
// the event is recorded. EmitterOptions.OnError gets the error.
type Redactor interface {
	Redact(f Place, text string) (string, error)
}

// A Place says where in an event a text is.
type Place struct {
	Kind  Kind   // kind of the event
	Name  string // JSON name of the field; empty for extra members
	Key   string // in raw JSON, the name of the nearest member around the text
	Class Class  // class of the field
}

// Secrets is a set of secrets that must not be recorded. The zero Secrets is empty
// and ready to use. Methods may be called concurrently, also while events are
// emitted.
type Secrets struct {
	values atomic.Pointer[[]string]
}

// minSecret is the length of the shortest secret, in bytes. Shorter ones occur in
// ordinary text.
const minSecret = 4

// ErrSecretTooShort means that [Secrets.Add] was called with a value under four
// bytes.
var ErrSecretTooShort = errors.New("agentevents: a secret must have at least 4 bytes")

// Add registers values. They are masked in the scanned texts of all events that
// are emitted after it returns; see [Policy]. It returns [ErrSecretTooShort] if a
// value has under four bytes; that value is not registered, the others are.
func (s *Secrets) Add(values ...string) error {
	var err error
	for {
		old := s.values.Load()
		var next []string
		if old != nil {
			next = slices.Clone(*old)
		}
		err = nil
		for _, v := range values {
			if len(v) < minSecret {
				err = ErrSecretTooShort
			} else if !slices.Contains(next, v) {
				next = append(next, v)
			}
		}
		// Longest first: a secret inside another one must not hide the rest of it.
		slices.SortFunc(next, func(a, b string) int { return len(b) - len(a) })
		if s.values.CompareAndSwap(old, &next) {
			return err
		}
	}
}

func (s *Secrets) list() []string {
	if s == nil {
		return nil
	}
	if p := s.values.Load(); p != nil {
		return *p
	}
	return nil
}

// The markers.
const (
	maskedKey    = "[REDACTED:key]"
	maskedSecret = "[REDACTED:secret]"
	maskedClass  = "[REDACTED:class]"
	maskedError  = "[REDACTED:error]"
)

const defaultReasoningTokens = 512

// redaction is a prepared Policy. All runs of an emitter share it.
type redaction struct {
	Policy
	names   *credential.Names
	suspect func(name string) bool // names.Suspicious, made once
	limit   int                    // limit of reasoning, in tokens
	actions [classes]Action        // actions by class
}

func newRedaction(p *Policy) *redaction {
	r := &redaction{limit: defaultReasoningTokens}
	if p != nil {
		r.Policy = *p
		if p.ReasoningTokens > 0 {
			r.limit = p.ReasoningTokens
		}
	}
	r.names = credential.NewNames(r.Keys, r.KeepKeys)
	if !r.Off {
		r.suspect = r.names.Suspicious
	}
	for c := range r.actions {
		r.actions[c] = r.action(Class(c))
	}
	return r
}

// cleaner returns a cleaner for an event of kind k.
func (r *redaction) cleaner(k Kind) cleaner {
	return cleaner{policy: r, kind: k, quiet: !r.looksInside()}
}

// looksInside reports whether the policy looks at strings inside raw JSON.
func (r *redaction) looksInside() bool {
	return r.Redactor != nil || len(r.Secrets.list()) > 0
}

// A cleaner carries the redaction step through one event. The generated clean
// methods call it for every text and JSON field, copy the payload when
// something changes, and stop at the first error.
//
// Without a policy it only checks raw JSON and removes insignificant whitespace.
type cleaner struct {
	policy    *redaction // nil: no policy
	quiet     bool       // the policy does not look at strings inside raw JSON
	kind      Kind
	redacted  bool        // a text was masked, dropped or changed
	sanitized bool        // invalid UTF-8 was replaced
	err       *fieldError // set when raw JSON is not JSON
	failed    error       // the first error of the Redactor
}

// text returns the cleaned text of a field, and whether it differs from s.
func (c *cleaner) text(name string, class Class, s string) (string, bool) {
	if s == "" || c.policy == nil {
		return s, false // the encoder replaces invalid UTF-8
	}
	out, action := s, c.policy.actions[class]
	if !jsonwire.ValidUTF8(s) {
		out = strings.ToValidUTF8(s, "\uFFFD")
		c.sanitized = true
	} else if action == ActionKeep || action == ActionScan && c.quiet {
		return s, false // the usual case
	}
	switch action {
	case ActionScan:
		out = c.scan(Place{Kind: c.kind, Name: name, Class: class}, out)
	case ActionMask:
		out, c.redacted = maskedClass, true
	case ActionDrop:
		out, c.redacted = "", true
	}
	return out, out != s
}

// json returns the cleaned text of a JSON field, without insignificant whitespace,
// and whether it differs from j. It sets c.err if j is not JSON.
func (c *cleaner) json(name string, class Class, j JSON) (JSON, bool) {
	if j == "" {
		return j, false
	}
	var suspect func(string) bool
	if c.policy != nil {
		suspect = c.policy.suspect
	}
	raw, found, err := jsonwire.CompactNames(string(j), suspect)
	if err != nil {
		c.err = &fieldError{RuleFieldJSON, "/" + name, err.Error()}
		return j, false
	}
	if c.policy != nil {
		switch action := c.policy.actions[class]; action {
		case ActionScan:
			if !found && c.quiet {
				break // no credentials, and strings are not looked at
			}
			raw = c.rewrite(Place{Kind: c.kind, Name: name, Class: class}, raw, nil)
		case ActionMask, ActionDrop:
			raw, c.redacted = without(raw, action), true
		}
	}
	return JSON(raw), raw != string(j)
}

// without applies ActionMask or ActionDrop to a JSON value. An object stays an
// object and a list stays a list, so that rules about the value still hold.
func without(raw string, a Action) string {
	const marker = `"` + maskedClass + `"`
	switch {
	case raw[0] == '{' && a == ActionMask:
		return `{"redacted":` + marker + `}`
	case raw[0] == '{':
		return "{}"
	case raw[0] == '[' && a == ActionMask:
		return "[" + marker + "]"
	case raw[0] == '[':
		return "[]"
	case a == ActionMask:
		return marker
	}
	return "null"
}

// extras returns the cleaned extra members, and whether they differ from x. Extra
// members are content.
func (c *cleaner) extras(x extras) (extras, bool) {
	if c.policy == nil {
		return x, false // checked when the line was read
	}
	act := c.policy.actions[ClassContent]
	if act == ActionKeep {
		return x, false
	}
	var taken jsonwire.Taken
	if len(c.policy.Secrets.list()) > 0 {
		taken = jsonwire.Taken{}
		for name := range x.Names() {
			taken.Add(name)
		}
	}
	out := x.Map(func(e extra.Entry) string {
		if act == ActionScan {
			object := "{" + e.Text + "}" // the rules for members need the name
			object = c.rewrite(Place{Kind: c.kind, Class: ClassContent}, object, taken)
			return object[1 : len(object)-1]
		}
		name, value := e.Name(), e.Value()
		quoted := strings.TrimSuffix(e.Text, value)
		if hidden := c.hideSecrets(name); hidden != name {
			quoted = jsonwire.Quote(taken.Unique(hidden)) + ":"
		}
		// What is spelled out at its zero value says nothing to be masked.
		if e.What == extra.Unknown {
			value = without(value, act)
			c.redacted = true
		}
		return quoted + value
	})
	return out, out != x
}

// action returns the action on the text of a class.
func (r *redaction) action(c Class) Action {
	if r.Off {
		return ActionKeep
	}
	switch c {
	case ClassContent:
		return r.Content
	case ClassMeta:
		if r.Meta == ActionDrop {
			return ActionMask
		}
		return r.Meta
	case ClassID:
		return ActionKeep
	}
	return ActionMask
}

// scan masks the registered secrets in a text and then calls the Redactor.
func (c *cleaner) scan(f Place, s string) string {
	s = c.hideSecrets(s)
	if c.policy.Redactor != nil {
		out, err := callRedactor(c.policy.Redactor, f, s)
		if err != nil {
			out = maskedError
			if c.failed == nil {
				c.failed = err
			}
		}
		if !jsonwire.ValidUTF8(out) {
			out = strings.ToValidUTF8(out, "\uFFFD")
		}
		if out != s {
			s = out
			c.redacted = true
		}
	}
	return s
}

// hideSecrets masks the registered secrets in s.
func (c *cleaner) hideSecrets(s string) string {
	for _, secret := range c.policy.Secrets.list() {
		if strings.Contains(s, secret) {
			s = strings.ReplaceAll(s, secret, maskedSecret)
			c.redacted = true
		}
	}
	return s
}

func callRedactor(r Redactor, f Place, s string) (out string, err error) {
	defer contain(&err)
	return r.Redact(f, s)
}

// rewrite applies the rules to every string of raw and to the values of members
// named like credentials. raw is valid and has no whitespace; taken are the names of
// the members beside it.
func (c *cleaner) rewrite(f Place, raw string, taken jsonwire.Taken) string {
	out, err := jsonwire.Rewrite(raw, jsonwire.Editor{
		Name: c.hideSecrets,
		Mask: func(name string, first byte) (string, bool) { return maskedKey, c.policy.names.Masks(name, first) },
		String: func(member, text string) string {
			f.Key = member
			return c.scan(f, text)
		},
	}, taken)
	if err != nil {
		return jsonwire.Quote(maskedError) // impossible: raw was checked
	}
	c.redacted = c.redacted || out != raw
	return out
}

// reasoning applies the verbosity in force to a payload with reasoning. used is
// the length of the block's earlier deltas, in characters, or with CountTokens in
// tokens. It returns p itself if nothing changes, and whether the text changes.
func (r *redaction) reasoning(p Payload, used int) (Payload, bool) {
	if r.Off {
		return p, false
	}
	switch p := p.(type) {
	case *AgentReasoned:
		if text, v, ok := r.bound(p.Reasoning, p.Verbosity, 0); ok {
			out := *p
			out.Reasoning, out.Verbosity = text, v
			return &out, text != p.Reasoning
		}
	case *AgentReasoningDelta:
		if text, v, ok := r.bound(p.Delta, p.Verbosity, used); ok {
			out := *p
			out.Delta, out.Verbosity = text, v
			return &out, text != p.Delta
		}
	case *AgentDecided:
		if text, _, ok := r.bound(p.Reasoning, "", 0); ok {
			out := *p
			out.Reasoning = text
			return &out, text != p.Reasoning
		}
	case *IntentClassified:
		if text, _, ok := r.bound(p.Reasoning, "", 0); ok {
			out := *p
			out.Reasoning = text
			return &out, text != p.Reasoning
		}
	}
	return p, false
}

// bound returns the text cut to the verbosity in force, that verbosity, and whether
// either of them changes.
func (r *redaction) bound(text string, asked Verbosity, used int) (string, Verbosity, bool) {
	v := r.Reasoning
	if v == "" || asked == VerbosityOff || asked == VerbositySummary && v == VerbosityFull {
		v = asked // an event may ask for less than the policy allows
	}
	if v == VerbosityFull && asked == "" {
		v = asked // the same thing
	}
	out := text
	switch v {
	case VerbosityOff:
		out = ""
	case VerbositySummary:
		out = r.summary(text, used)
	}
	return out, v, out != text || v != asked
}

// summary cuts text to what the limit leaves after used.
func (r *redaction) summary(text string, used int) string {
	if r.CountTokens == nil {
		return text[:jsonwire.FirstCharacters(text, max(0, r.limit*4-used))]
	}
	limit := r.limit - used
	if limit <= 0 {
		return ""
	}
	if r.CountTokens(text) <= limit {
		return text
	}
	// The longest beginning that fits, of whole characters.
	end := func(i int) int {
		for i < len(text) && !utf8.RuneStart(text[i]) {
			i++
		}
		return i
	}
	n := sort.Search(len(text), func(i int) bool { return r.CountTokens(text[:end(i)]) > limit })
	return text[:end(max(0, n-1))]
}
