package agentevents

import (
	"cmp"
	"errors"
	"slices"
	"sort"
	"strings"
	"sync"
	"sync/atomic"
	"unicode/utf8"

	"github.com/agentevents/agentevents/internal/extra"
	"github.com/agentevents/agentevents/internal/jsonwire"
	"github.com/agentevents/agentevents/internal/option"
	"github.com/agentevents/agentevents/internal/secret"
)

// Class is the sensitivity of a field. The struct tag class sets it. A [Policy]
// has an action for each class.
type Class uint8

// The classes. A field without one would count as [ClassSecret]: no field has it.
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

// An Action is the treatment that a [Policy] gives to the texts of one class.
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
//   - Content and names are scanned for credentials: registered secrets, as they are and in base64,
//     hex, percent signs and the escapes of JSON; the value after a name that looks like a
//     credential's (password, token, api_key, authorization, cookie, …), be it a member of JSON, a
//     header, a variable, a flag or a parameter; tokens of well-known forms, JSON web tokens,
//     private keys, passwords in URLs and card numbers.
//   - Raw JSON is scanned at any depth, and JSON in its strings three deep. The value
//     of [StatePatched] is masked when its path names a credential.
//   - Reasoning is kept according to the verbosity of its event.
//
// A masked text becomes "[REDACTED:rule]", where rule is key, secret, token, card,
// class or error, and the event gets [MarkRedacted]. Identifiers, closed words,
// numbers and statuses never change, but for numbers in raw JSON that are secrets.
// Extra members and unknown payloads are content.
//
// The deltas of a block are scanned as one text. Each is recorded at once, without an end that may
// be the beginning of a secret: mostly that is nothing, and at most 4 KiB. Held-back text comes
// with the next delta of the block. If the block ends first, it comes as one more delta, marked
// [MarkSynthetic], before the event that ends the block: the whole block, an act that ends blocks
// without an id, the end of the agent or the run, [Run.Close], [Emitter.Close]. Of an agent with
// more than 256 blocks that do not end, the oldest is no longer scanned: each delta with which it
// goes on is masked whole. Held-back text is in no snapshot: a process that dies loses it, as does
// a late delta of a released run.
//
// A Policy must not be changed once it is in use. Secrets may be added.
type Policy struct {
	// Off turns the whole step off.
	Off bool
	// Content and Meta are the actions on texts of the classes content and meta; the default is
	// [ActionScan]. As Meta, [ActionDrop] masks texts instead of removing them: an event may
	// require them.
	Content Action
	Meta    Action
	// Keys are more names of credentials: a value is masked when its name ends with
	// one of them. Case, '-', '_', '.' and blanks do not matter.
	Keys []string
	// KeepKeys are names that are no credentials, although they look like one. They
	// match like Keys.
	KeepKeys []string
	// Secrets is the set of registered secrets; nil means none.
	Secrets *Secrets
	// Reasoning is the highest verbosity of recorded reasoning: an event may ask for less. Empty
	// means the verbosity that the event asks for, and full if it asks for none.
	Reasoning Verbosity
	// RunReasoning returns the verbosity that is in force in a run, instead of Reasoning; empty
	// means Reasoning. It is asked about every event with reasoning; it is called as a Redactor is,
	// but a panic reaches the caller of Emit, and the event is not recorded. An unknown word means
	// off. Nil means Reasoning in all runs.
	RunReasoning func(runID string) Verbosity
	// ReasoningTokens is the number of tokens to which a block of reasoning with
	// verbosity summary is cut, be it whole or in deltas. 0 means 512.
	ReasoningTokens int `least:"0"`
	// CountTokens returns the number of tokens of a text, for ReasoningTokens. Nil
	// means one token for four characters. It is called, and may panic, as RunReasoning.
	CountTokens func(text string) int
	// Redactor is called with every scanned text, after it is masked. Nil means
	// none.
	Redactor Redactor
}

// check refuses values that no constant has. in is where the policy stands.
func (p *Policy) check(in string) error {
	switch {
	case p == nil:
		return nil
	case p.Content >= actions:
		return option.NoConstant(in+".Content", int(p.Content))
	case p.Meta >= actions:
		return option.NoConstant(in+".Meta", int(p.Meta))
	case p.Reasoning != "" && !p.Reasoning.known():
		return option.NoConstant(in+".Reasoning", string(p.Reasoning))
	}
	return option.Check(in, p)
}

// A Redactor changes texts before they are recorded. A text is a field or a string inside raw JSON.
// Of a delta it is the part that is recorded with the delta. The emitter calls it with the lock of
// the run held, so Redact must not emit; it is called concurrently for different runs.
//
// When Redact returns an error or panics, the text becomes "[REDACTED:error]" and
// the event is recorded. EmitterOptions.OnError gets the error. A name that it
// makes illegal becomes "[REDACTED:class]": a name may be required.
type Redactor interface {
	Redact(f Place, text string) (string, error)
}

// A Place is the position of a text in an event.
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
	values atomic.Pointer[registered]
}

// A registered is a state of a Secrets.
type registered struct {
	list []string
	set  func() *secret.Values // of the list, made when it is first asked for
}

// minSecret is the length of the shortest secret, in bytes. Shorter ones occur in
// ordinary text.
const minSecret = 4

// ErrSecretTooShort means that [Secrets.Add] was called with a value under four
// bytes.
var ErrSecretTooShort = errors.New("agentevents: a secret must have at least 4 bytes")

// Add registers values. They are masked in the scanned texts of all events that are emitted after
// it returns, whole or over the deltas of a block, as they are, in base64 and hex, with the escapes
// of URLs and JSON, and as numbers of raw JSON; see [Policy]. Add does not change deltas that were
// recorded before. It returns [ErrSecretTooShort] if a value has under four bytes; that value is
// not registered, the others are.
func (s *Secrets) Add(values ...string) error {
	var err error
	for {
		old := s.values.Load()
		var list []string
		if old != nil {
			list = slices.Clip(old.list)
		}
		err = nil
		for _, v := range values {
			if len(v) < minSecret {
				err = ErrSecretTooShort
			} else if !slices.Contains(list, v) {
				list = append(list, v)
			}
		}
		next := &registered{list, sync.OnceValue(func() *secret.Values { return secret.NewValues(list) })}
		if s.values.CompareAndSwap(old, next) {
			return err
		}
	}
}

// set returns the registered values, or nil.
func (s *Secrets) set() *secret.Values {
	if s == nil {
		return nil
	}
	if r := s.values.Load(); r != nil {
		return r.set()
	}
	return nil
}

// The markers of texts that are masked by class, and of texts that a Redactor could not read.
// Package secret has the other markers.
var (
	maskedClass = secret.Marker("class")
	maskedError = secret.Marker("error")
)

const defaultReasoningTokens = 512

// redaction is a prepared Policy. All runs of an emitter share it.
type redaction struct {
	Policy
	names   *secret.Names
	scanner *secret.Scanner
	limit   int             // limit of reasoning, in tokens
	actions [classes]Action // actions by class
}

func newRedaction(p *Policy) *redaction {
	r := &redaction{limit: defaultReasoningTokens}
	if p != nil {
		r.Policy = *p
		if p.ReasoningTokens > 0 {
			r.limit = p.ReasoningTokens
		}
	}
	r.names = secret.NewNames(r.Keys, r.KeepKeys)
	r.scanner = secret.New(r.names, r.Secrets.set)
	for c := range r.actions {
		r.actions[c] = r.action(Class(c))
	}
	return r
}

// cleaner returns a cleaner for an event of kind k.
func (r *redaction) cleaner(k Kind) cleaner { return cleaner{policy: r, kind: k} }

// A cleaner carries the redaction step through one event. The generated clean
// methods call it for every text and JSON field, copy the payload when
// something changes, and stop at the first error.
//
// Without a policy it only checks raw JSON and removes insignificant whitespace. With
// one, text that is not JSON becomes JSON.
type cleaner struct {
	policy    *redaction // nil: no policy
	kind      Kind
	words     bool        // words of closed lists may be of no list: then they are texts
	stream    *stream     // of the block, if the event is a delta
	redacted  bool        // a text was masked, dropped or changed
	sanitized bool        // invalid UTF-8 was replaced, or a text recorded that is not JSON
	quoted    bool        // the last JSON value was a text that is not JSON, and is a JSON string now
	size      int         // of the payload on a line, or more
	cut       *cutter     // without a policy: content is measured and cut
	err       *fieldError // set if raw JSON is not JSON and the policy is off
	failed    error       // the first error of the Redactor
}

// payload returns the payload with its texts cleaned, and whether anything changes.
func (c *cleaner) payload(p Payload) (clean Payload, changed bool) {
	clean, changed = cleanPayload(p, c)
	if p, ok := clean.(*StatePatched); ok && c.policy != nil {
		patched := c.patch(p)
		return patched, changed || patched != p
	}
	return clean, changed
}

// patch masks the value of a patch whose path names a credential. A path that a
// Redactor has made illegal is masked.
func (c *cleaner) patch(p *StatePatched) *StatePatched {
	path, value := p.Path, p.Value
	if c.policy.Redactor != nil && p.checkPath() != nil {
		path = maskedClass
	}
	if p.Value != "" && c.policy.actions[ClassContent] == ActionScan && c.namesCredential(p) {
		value = JSON(jsonwire.Quote(secret.Marker(secret.Key)))
	}
	if path == p.Path && value == p.Value {
		return p
	}
	c.redacted = true
	out := *p
	out.Path, out.Value = path, value
	return &out
}

// namesCredential reports whether the value of a patch is masked for the names in its
// path. The value is below all names but the last.
func (c *cleaner) namesCredential(p *StatePatched) bool {
	const below = `{"":0}`
	for i := range len(p.Path) {
		if p.Path[i] == '.' && c.policy.names.Masks(p.Path[:i], below) {
			return true
		}
	}
	return c.policy.names.Masks(p.Path, string(p.Value))
}

// text returns the cleaned text of a field, and whether it differs from s.
func (c *cleaner) text(name string, class Class, s string) (string, bool) {
	if s == "" || c.policy == nil {
		if c.cut != nil && class == ClassContent {
			return c.cut.text(s)
		}
		return s, false // the encoder replaces invalid UTF-8
	}
	if c.stream != nil && class == ClassContent {
		out := c.host(name, class, c.stream.write(c, s))
		c.size += mostEscaped * len(out)
		return out, out != s
	}
	out := c.valid(s)
	switch c.policy.actions[class] {
	case ActionScan:
		out = c.scan(name, class, out)
	case ActionMask:
		out, c.redacted = maskedClass, true
	case ActionDrop:
		out, c.redacted = "", true
	}
	c.size += mostEscaped * len(out)
	return out, out != s
}

// valid returns s with U+FFFD in place of bytes that are not UTF-8.
func (c *cleaner) valid(s string) string {
	if jsonwire.ValidUTF8(s) {
		return s
	}
	c.sanitized = true
	return strings.ToValidUTF8(s, "\uFFFD")
}

// json returns the cleaned text of a JSON field, without insignificant whitespace,
// and whether it differs from j. Text that is not JSON becomes a JSON string; without
// a policy c.err is set.
func (c *cleaner) json(name string, class Class, j JSON) (JSON, bool) {
	return c.value(name, class, j, false)
}

// jsonOrText is json for a field beside which another one tells that it was a text, and
// reports that.
func (c *cleaner) jsonOrText(name string, class Class, j JSON) (clean JSON, text, changed bool) {
	before := c.sanitized
	clean, changed = c.value(name, class, j, false)
	if c.quoted {
		c.sanitized = before || !jsonwire.ValidUTF8(string(j))
	}
	return clean, c.quoted, changed
}

// object is json for a field that is expected to be an object. Text that is not JSON
// becomes one.
func (c *cleaner) object(name string, class Class, j JSON) (JSON, bool) {
	return c.value(name, class, j, true)
}

func (c *cleaner) value(name string, class Class, j JSON, object bool) (JSON, bool) {
	c.quoted = false
	if j == "" {
		return j, false
	}
	if c.cut != nil {
		return c.cut.json(j)
	}
	action := ActionKeep
	if c.policy != nil {
		action = c.policy.actions[class]
	}
	raw, quiet, err := c.compact(string(j), action)
	if err != nil {
		if c.policy == nil {
			c.err = &fieldError{RuleFieldJSON, "/" + name, err.Error()}
			return j, false
		}
		c.sanitized, c.quoted = true, !object
		text := jsonwire.Quote(string(j))
		if object {
			text = `{"sanitized":` + text + `}`
		}
		raw, quiet, _ = c.compact(text, action)
	}
	switch {
	case action == ActionScan && !(quiet && c.policy.Redactor == nil):
		raw = c.rewrite(Place{Kind: c.kind, Name: name, Class: class}, raw, nil)
	case action == ActionMask || action == ActionDrop:
		raw, c.redacted = without(raw, action), true
	}
	c.size += len(raw)
	return JSON(raw), raw != string(j)
}

// compact returns JSON without insignificant whitespace, and whether it has nothing
// to be masked.
func (c *cleaner) compact(j string, action Action) (raw string, quiet bool, err error) {
	if action == ActionScan {
		return c.policy.scanner.Compact(j)
	}
	raw, err = jsonwire.Compact(j)
	return raw, true, err
}

// hide masks secrets in the ids and names that an error quotes.
func (r *redaction) hide(err *RuleError) {
	if r.Off {
		return
	}
	for _, text := range []*string{&err.Subject, &err.State, &err.Pointer, &err.Detail} {
		*text = r.scanner.Mask(*text)
	}
}

// without applies ActionMask or ActionDrop to a JSON value. An object stays an
// object and a list stays a list, so that rules about the value still hold.
func without(raw string, a Action) string {
	marker := jsonwire.Quote(maskedClass)
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
		if c.cut != nil {
			return c.cut.extras(x)
		}
		return x, false // checked when the line was read
	}
	out := c.cleanExtras(x)
	c.size += len(out)
	return out, out != x
}

func (c *cleaner) cleanExtras(x extras) extras {
	act := c.policy.actions[ClassContent]
	if act == ActionKeep {
		return x
	}
	taken := c.takenBy(x)
	return x.Map(func(e extra.Entry) string {
		if act == ActionScan {
			object := "{" + e.Text + "}" // the rules for members need the name
			object = c.rewrite(Place{Kind: c.kind, Class: ClassContent}, object, taken)
			return object[1 : len(object)-1]
		}
		name, value := e.Name(), e.Value()
		quoted := strings.TrimSuffix(e.Text, value)
		if hidden := c.policy.scanner.Mask(name); hidden != name {
			quoted = jsonwire.Quote(taken.Unique(hidden)) + ":"
		}
		// A zero value in the text has nothing to mask.
		if e.What == extra.Unknown {
			value = without(value, act)
			c.redacted = true
		}
		return quoted + value
	})
}

// takenBy returns the names of extra members if one of them changes, else nil.
func (c *cleaner) takenBy(x extras) jsonwire.Taken {
	changes := false
	for name := range x.Names() {
		changes = changes || c.policy.scanner.Mask(name) != name
	}
	if !changes {
		return nil
	}
	taken := jsonwire.Taken{}
	for name := range x.Names() {
		taken.Add(name)
	}
	return taken
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

// scan masks a text and calls the Redactor.
func (c *cleaner) scan(name string, class Class, s string) string {
	out := c.policy.scanner.Mask(s)
	c.redacted = c.redacted || out != s
	return c.host(name, class, out)
}

// host asks the Redactor, if there is one, about the text of a field.
func (c *cleaner) host(name string, class Class, s string) string {
	if c.policy.Redactor == nil {
		return s
	}
	return c.ask(Place{Kind: c.kind, Name: name, Class: class}, s)
}

// ask asks the Redactor about a text.
func (c *cleaner) ask(f Place, s string) string {
	if s == "" {
		return ""
	}
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
	if out == "" && f.Class == ClassMeta {
		out = maskedClass // it may be required
	}
	c.redacted = c.redacted || out != s
	return out
}

func callRedactor(r Redactor, f Place, s string) (out string, err error) {
	defer contain(&err)
	return r.Redact(f, s)
}

// rewrite masks raw JSON. raw is valid and has no whitespace; taken are the names of
// the members beside it.
func (c *cleaner) rewrite(f Place, raw string, taken jsonwire.Taken) string {
	var each func(member, text string) string
	if c.policy.Redactor != nil {
		each = func(member, text string) string {
			f.Key = member
			return c.ask(f, text)
		}
	}
	out, err := c.policy.scanner.JSON(raw, taken, each)
	if err != nil {
		return jsonwire.Quote(maskedError) // impossible: raw was checked
	}
	c.redacted = c.redacted || out != raw
	return out
}

// verbosity returns the highest verbosity of reasoning in a run; it is never empty.
func (r *redaction) verbosity(run string) Verbosity {
	var v Verbosity
	if r.RunReasoning != nil {
		v = r.RunReasoning(run)
	}
	if v = cmp.Or(v, r.Reasoning, VerbosityFull); !v.known() {
		return VerbosityOff
	}
	return v
}

// reasoning applies the verbosity most to a payload with reasoning. used is
// the length of the block's earlier deltas, in characters, or with CountTokens in
// tokens. It returns p itself if nothing changes, and whether the text changes.
func (r *redaction) reasoning(p Payload, most Verbosity, used int) (Payload, bool) {
	if r.Off {
		return p, false
	}
	switch p := p.(type) {
	case *AgentReasoned:
		if text, v, ok := r.bound(p.Reasoning, most, p.Verbosity, 0); ok {
			out := *p
			out.Reasoning, out.Verbosity = text, v
			return &out, text != p.Reasoning
		}
	case *AgentReasoningDelta:
		if text, v, ok := r.bound(p.Delta, most, p.Verbosity, used); ok {
			out := *p
			out.Delta, out.Verbosity = text, v
			return &out, text != p.Delta
		}
	case *AgentDecided:
		if text, _, ok := r.bound(p.Reasoning, most, "", 0); ok {
			out := *p
			out.Reasoning = text
			return &out, text != p.Reasoning
		}
	case *IntentClassified:
		if text, _, ok := r.bound(p.Reasoning, most, "", 0); ok {
			out := *p
			out.Reasoning = text
			return &out, text != p.Reasoning
		}
	}
	return p, false
}

// bound returns the text cut to the verbosity in force, that verbosity, and whether
// either of them changes. v is the highest one.
func (r *redaction) bound(text string, v, asked Verbosity, used int) (string, Verbosity, bool) {
	if asked == VerbosityOff || asked == VerbositySummary && v == VerbosityFull {
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

// summary cuts text to the rest of the limit after used.
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
