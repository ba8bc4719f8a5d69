package agentevents

import (
	"errors"
	"runtime/debug"
	"slices"
	"sort"
	"strings"
	"sync/atomic"
	"unicode/utf8"

	"github.com/agentevents/agentevents/internal/credential"
	"github.com/agentevents/agentevents/internal/extra"
	"github.com/agentevents/agentevents/internal/jsonwire"
)

// Class is the sensitivity of a field, by its struct tag: what the redaction
// step may do to it.
type Class uint8

// The classes. A field without one counts as [ClassSecret]; a test refuses it.
const (
	ClassSecret  Class = iota // always masked
	ClassContent              // written by people, models or tools
	ClassMeta                 // names, words and figures of the runtime
	ClassID                   // identifiers; never changed

	classes = iota
)

// String returns the word of the struct tag.
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
	ActionScan Action = iota // look for keys, registered secrets and what the Redactor finds
	ActionKeep               // leave it as it is
	ActionMask               // put a marker in its place
	ActionDrop               // leave nothing of it

	actions = iota
)

// A Policy says what the redaction step does before anything sees an event:
// the rules, the tracer, the sinks. The zero Policy is the default:
//
//   - content and names are scanned: inside raw JSON, at any depth, the values
//     of members whose names look like credentials (password, token, api_key,
//     authorization, cookie, …) are masked, and registered secret values are
//     masked wherever they stand;
//   - reasoning is kept as its producer's verbosity says;
//   - fields of class secret are masked.
//
// What is taken out is replaced by "[REDACTED:rule]", where the rule is key,
// secret, class or error, and the event is marked [MarkRedacted]. Identifiers,
// closed words, numbers and lifecycle never change. Members that no field
// holds and unknown payloads count as content.
//
// A Policy must not be changed once it is in use; Secrets may grow.
type Policy struct {
	// Off turns the whole step off.
	Off bool
	// Content and Meta are the actions for the text of these classes. Names
	// may be required, so Drop masks them.
	Content Action
	Meta    Action
	// Keys are further member names whose values are masked inside raw JSON.
	// Case, '-', '_', '.' and blanks do not count; a name matches when it ends
	// with one of them.
	Keys []string
	// KeepKeys are member names that are never masked for their name.
	KeepKeys []string
	// Secrets holds registered secret values; nil means none.
	Secrets *Secrets
	// Reasoning overrides the verbosity that events ask for; empty means that
	// each event's own holds, and full where it has none.
	Reasoning Verbosity
	// ReasoningTokens bounds reasoning of verbosity summary, block by block,
	// deltas included. 0 means 512.
	ReasoningTokens int
	// CountTokens counts the tokens of a text for that bound. Nil estimates
	// one token for four characters. It is called as a Redactor is.
	CountTokens func(text string) int
	// Redactor sees every text that is scanned, after the rules above. Nil
	// means none.
	Redactor Redactor
}

// A Redactor changes text before it is recorded: one string at a time, a field
// or a string inside raw JSON. It is called with the lock of a run held, by
// several goroutines for several runs, and must not emit.
//
// When it returns an error or panics the text is dropped ("[REDACTED:error]")
// and the event is kept; the emitter reports the error through
// EmitterOptions.OnError.
type Redactor interface {
	Redact(f Place, text string) (string, error)
}

// A Field says where a text stands.
type Place struct {
	Kind  Kind   // kind of the event
	Name  string // the field's JSON name
	Key   string // inside raw JSON: the nearest member name
	Class Class  // the class of the field
}

// Secrets is a set of secret values that must not be recorded. The zero value
// is empty and ready to use; methods may be called concurrently, also while
// events are emitted.
type Secrets struct {
	values atomic.Pointer[[]string]
}

// minSecret is the shortest value that is worth looking for: shorter ones
// would tear ordinary text apart.
const minSecret = 4

// ErrSecretTooShort is returned by [Secrets.Add].
var ErrSecretTooShort = errors.New("agentevents: a secret must have at least 4 bytes")

// Add registers values. Events recorded after it returns do not contain them.
// Values under four bytes are not registered and reported as
// [ErrSecretTooShort].
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
		// Longest first, so that a secret inside another leaves no remains.
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

// redaction is a Policy made ready for use. It is shared by all runs.
type redaction struct {
	Policy
	names   *credential.Names
	suspect func(name string) bool // names.Suspicious, made once
	limit   int                    // tokens
	actions [classes]Action        // by class
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

// looksInside reports whether strings inside raw JSON are looked at.
func (r *redaction) looksInside() bool {
	return r.Redactor != nil || len(r.Secrets.list()) > 0
}

// A cleaner carries the redaction step through one event. The generated clean
// methods call it for every text and JSON field, copy the payload when
// something changes, and stop at the first error.
//
// Without a policy it only checks raw JSON and takes insignificant whitespace
// out of it.
type cleaner struct {
	policy    *redaction // nil: no policy
	quiet     bool       // the policy looks inside no string
	kind      Kind
	redacted  bool        // something was taken out
	sanitized bool        // damaged characters were replaced
	err       *fieldError // raw JSON that is not JSON
	failed    error       // the first error of the Redactor
}

// text returns what a text field may say, and whether that differs from s.
func (c *cleaner) text(name string, class Class, s string) (string, bool) {
	if s == "" || c.policy == nil {
		return s, false // the encoder replaces what is damaged
	}
	out, action := s, c.policy.actions[class]
	if !jsonwire.ValidUTF8(s) {
		out = strings.ToValidUTF8(s, "\uFFFD")
		c.sanitized = true
	} else if action == ActionKeep || action == ActionScan && c.quiet {
		return s, false // as mostly
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

// json returns what a JSON field may say, without insignificant whitespace,
// and whether that differs from j. Text that is not JSON sets c.err.
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
				break // no string is looked at, and no name is a credential's
			}
			raw = c.rewrite(Place{Kind: c.kind, Name: name, Class: class}, raw, nil)
		case ActionMask, ActionDrop:
			raw, c.redacted = without(raw, action), true
		}
	}
	return JSON(raw), raw != string(j)
}

// without returns what an action leaves of a JSON value. An object stays an
// object and a list a list, so that rules about the value still hold.
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

// extras does the same for members that no field holds; they count as content.
func (c *cleaner) extras(x extras) (extras, bool) {
	if c.policy == nil {
		return x, false // read from a line, so it is sound
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

// action returns what is done to the text of a class.
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

// scan applies the rules for text, in this order: registered secrets, then
// the caller's Redactor.
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
	defer func() {
		if v := recover(); v != nil {
			err = &PanicError{Value: v, Stack: debug.Stack()}
		}
	}()
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
		return jsonwire.Quote(maskedError) // cannot be: raw was checked
	}
	c.redacted = c.redacted || out != raw
	return out
}

// reasoning applies the verbosity in force to a payload that carries
// reasoning. used is the number of characters that the block's deltas had
// before, or of tokens with CountTokens. It returns p itself when nothing changes.
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

// bound returns the text that verbosity leaves, and whether text or verbosity
// change.
func (r *redaction) bound(text string, asked Verbosity, used int) (string, Verbosity, bool) {
	v := r.Reasoning
	if v == "" || asked == VerbosityOff || asked == VerbositySummary && v == VerbosityFull {
		v = asked // a producer may ask for less than the policy allows
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

// summary cuts text so that it and what was used before it stay within the
// limit.
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
