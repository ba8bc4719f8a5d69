package openharness

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect"
	"github.com/agentevents/agentevents/internal/jsonwire"
)

// Options configure a [Decoder]. The zero Options are usable.
type Options struct {
	// RunID is the run of the log. The document's events do not name it, but a host
	// knows it: it is the key of its store and the runId of its snapshot. If RunID
	// is empty, the decoder derives an id from the first line of the log, and a new
	// one from each later flow:start, which begins another run. Reading the same log
	// twice gives the same ids.
	RunID string
	// Strict refuses lines that break a rule of the document, with a
	// [*agentevents.RuleError]; see the Rule constants. Without Strict the decoder
	// reads as much of such a line as it can. Extra members and unknown types break
	// no rule. A line of an unknown type still needs a timestamp, and its nodeId and
	// runId must be strings.
	Strict bool
}

// The rules of the document that a strict decoder checks.
const (
	// RuleNode: node and agent events name their node and its execution (sections
	// 1.1 and 3). node:skipped has no execution.
	RuleNode agentevents.Rule = "openharness-node"
	// RuleRequired: the members that the document requires are there.
	RuleRequired agentevents.Rule = "openharness-required"
	// RuleEnum: the document lists the word.
	RuleEnum agentevents.Rule = "openharness-enum"
	// RuleRange: a number is in its range.
	RuleRange agentevents.Rule = "openharness-range"
)

// Rejected is the text of [agentevents.CommandReceived].Rejected for a send or reply
// without runId. The document says that a runtime records such a command and refuses it
// (section 5.4). The decoder makes the text up.
const Rejected = "runId is missing"

// A Decoder turns lines into events. It implements [agentevents.Decoder]. A Decoder is
// for one log, and must not be used concurrently.
type Decoder struct {
	o       Options
	lines   int
	run     string // the current run
	ids     dialect.IDs
	numbers dialect.Numbers
	blocks  blocks
	scanner jsonwire.Scanner
	unknown dialect.Unknowns
	after   [numMembers + 1]uint8 // guesses the next member: the one that followed the last time

	// What the current line says. A value is valid if seen has the member's bit.
	seen      set
	had       set // all members of the line, including extra members
	kind      string
	texts     [numMembers + 1]string // strings, and raw JSON
	time      time.Time
	duration  time.Duration
	tokens    int64
	turns     int
	iteration int
	cost      float64
	usage     agentevents.Usage
	models    map[string]agentevents.Usage
	patch     agentevents.StatePatched
	command   agentevents.Command
	lacks     string // pointer of a required member that an inner object lacks
	below     string // pointer of a negative number in an inner object
}

// NewDecoder returns a decoder.
func NewDecoder(o Options) *Decoder { return &Decoder{o: o, run: o.RunID} }

// Decode appends the event of a line.
func (d *Decoder) Decode(dst []agentevents.Event, line []byte) ([]agentevents.Event, error) {
	text := string(line)
	d.lines++
	v, err := d.read(text, false)
	if err != nil {
		return dst, err
	}
	if d.o.Strict {
		if err := d.check(v); err != nil {
			return dst, err
		}
	}
	if status := d.text(mStatus); v == vFlowComplete && status != statusComplete && status != statusFailed {
		// The line does not say how the flow ended, so it does not end the run.
		if v, err = d.read(text, true); err != nil {
			return dst, err
		}
	}
	if d.o.RunID == "" && (d.run == "" || v == vFlowStart && d.lines > 1) {
		d.run = dialect.DerivedID(text, d.lines, partRun)
	}
	dst = append(dst, agentevents.Event{})
	ev := &dst[len(dst)-1]
	ev.ID, ev.Sequence, ev.Time = d.ids.Derived(text, d.lines, partEvent), d.numbers.Next(d.run), d.time
	ev.RunID, ev.SchemaVersion = d.run, agentevents.SchemaVersion
	ev.NodeID, ev.NodeRunID = d.text(mNodeID), d.text(mRunID)
	if v == vUnknown {
		if ev.NodeID == "" {
			ev.NodeRunID = "" // without a node, runId may be the run: it stays in Raw
		}
		ev.Payload = &agentevents.Unknown{Type: dialect.UnknownKind(Name, d.kind), Raw: d.rest()}
		return dst, nil
	}
	ev.Payload = d.payload(v, text)
	if v == vFlowComplete && d.seen.has(mFlowName) {
		d.unknown.Add(memberName(mFlowName), jsonwire.Quote(d.texts[mFlowName]))
	}
	if err := d.unknown.Keep(ev, Name); err != nil {
		return dst[:len(dst)-1], err
	}
	return dst, nil
}

// End appends nothing: every line is an event by itself.
func (d *Decoder) End(dst []agentevents.Event) ([]agentevents.Event, error) { return dst, nil }

// The parts of a line for which ids are derived.
const (
	partEvent = iota
	partRun
	partCall
)

// The statuses of flow:complete.
const (
	statusComplete = "complete"
	statusFailed   = "failed"
)

// unknownPrefix is what [dialect.UnknownKind] puts before a type that is the name of a
// kind.
const unknownPrefix = string(Name) + ":"

// rest returns the members of a line of an unknown type, as an object.
func (d *Decoder) rest() agentevents.JSON {
	if d.seen.has(mRunID) && d.text(mNodeID) == "" {
		d.unknown.Add(memberName(mRunID), jsonwire.Quote(d.texts[mRunID]))
	}
	if d.seen.has(mNodeID) && d.texts[mNodeID] == "" {
		d.unknown.Add(memberName(mNodeID), `""`)
	}
	if raw := d.unknown.Object(); raw != "" {
		return raw
	}
	return "{}"
}

// text returns member m, or "" if the line does not have it.
func (d *Decoder) text(m int) string {
	if !d.seen.has(m) {
		return ""
	}
	return d.texts[m]
}

func (d *Decoder) json(m int) agentevents.JSON { return agentevents.JSON(d.text(m)) }

// payload makes the payload of a line.
func (d *Decoder) payload(v int, text string) agentevents.Payload {
	block := d.blocks.line(v, d.text(mRunID), d.text(mContent))
	switch v {
	case vAgentStart:
		return &agentevents.AgentStarted{Model: d.text(mModel), ProviderSessionID: d.text(mSessionID), Prompt: d.json(mPrompt)}
	case vThinkingDelta:
		return &agentevents.AgentReasoningDelta{BlockID: block, Delta: d.text(mContent), TokenCount: d.tokenCount()}
	case vThinking:
		return &agentevents.AgentReasoned{BlockID: block, Reasoning: d.text(mContent), TokenCount: d.tokenCount()}
	case vTextDelta:
		return &agentevents.TextDelta{BlockID: block, Delta: d.text(mContent)}
	case vText:
		return &agentevents.TextCompleted{BlockID: block, Text: d.text(mContent)}
	case vTool:
		p := &agentevents.ToolReturned{
			CallID: dialect.DerivedID(text, d.lines, partCall), ToolID: d.text(mToolName), Status: agentevents.ToolStatusOK, OneEvent: true,
			Arguments: d.json(mToolInput), Result: d.json(mToolOutput), Duration: d.durationMs(),
		}
		if d.seen.has(mError) {
			p.Status = agentevents.ToolStatusError
			p.Error = agentevents.Some(agentevents.ErrorInfo{Message: d.texts[mError]})
		}
		return p
	case vError:
		return &agentevents.AgentErrored{ErrorType: d.text(mErrorType), Message: d.text(mMessage), Details: d.json(mDetails)}
	case vComplete:
		p := &agentevents.AgentEnded{Result: d.text(mResult), StructuredOutput: d.json(mStructuredOutput), Duration: d.durationMs()}
		if d.seen.has(mUsage) {
			p.Usage = agentevents.Some(d.usage)
		}
		if d.seen.has(mModelUsage) {
			p.ModelUsage = d.models
		}
		if d.seen.has(mTotalCost) {
			p.TotalCostUSD = agentevents.Some(d.cost)
		}
		if d.seen.has(mNumTurns) {
			p.NumTurns = agentevents.Some(d.turns)
		}
		return p
	case vFlowStart:
		return &agentevents.RunStarted{Name: d.text(mFlowName)}
	case vFlowComplete:
		if d.text(mStatus) == statusFailed {
			return &agentevents.RunFailed{}
		}
		return &agentevents.RunCompleted{}
	case vFlowPaused:
		return &agentevents.RunPaused{}
	case vFlowResumed:
		return &agentevents.RunResumed{}
	case vFlowAborted:
		return &agentevents.RunCancelled{}
	case vNodeStart:
		return &agentevents.NodeStarted{}
	case vNodeComplete:
		return &agentevents.NodeCompleted{Outputs: d.json(mOutput)}
	case vNodeError:
		return &agentevents.NodeFailed{Error: agentevents.ErrorInfo{Message: d.text(mError)}}
	case vNodeSkipped:
		return &agentevents.NodeSkipped{Reason: d.text(mReason)}
	case vEdgeFire:
		return &agentevents.EdgeFired{EdgeID: d.text(mEdgeID), From: d.text(mFrom), To: d.text(mTo)}
	case vLoopIterate:
		p := &agentevents.LoopIterated{EdgeID: d.text(mEdgeID)}
		if d.seen.has(mIteration) {
			p.Iteration = d.iteration
		}
		return p
	case vStatePatch:
		p := new(agentevents.StatePatched)
		if d.seen.has(mPatch) {
			*p = d.patch
		}
		return p
	default: // vCommand
		p := new(agentevents.CommandReceived)
		if d.seen.has(mCommand) {
			p.Command = d.command
		}
		if misrouted(&p.Command) {
			p.Rejected = Rejected
		}
		return p
	}
}

// misrouted reports whether a runtime rejects the command (section 5.4).
func misrouted(c *agentevents.Command) bool {
	return c.RunID == "" && (c.Type == agentevents.CommandSend || c.Type == agentevents.CommandReply)
}

func (d *Decoder) tokenCount() agentevents.Opt[int64] {
	if !d.seen.has(mTokenCount) {
		return agentevents.Opt[int64]{}
	}
	return agentevents.Some(d.tokens)
}

func (d *Decoder) durationMs() agentevents.Opt[time.Duration] {
	if !d.seen.has(mDuration) {
		return agentevents.Opt[time.Duration]{}
	}
	return agentevents.Some(d.duration)
}

// read reads a line. With unknown it reads the line as one of an unknown type. Members
// that the variant does not have go to d.unknown.
func (d *Decoder) read(text string, unknown bool) (v int, err error) {
	s := &d.scanner
	s.Reset(text)
	d.unknown.Reset()
	d.seen, d.had, d.kind, d.lacks, d.below = 0, 0, "", "", ""
	if err := s.Object(); err != nil {
		return 0, err
	}
	var (
		known set // the members of the variant; 0 until the type is known
		last  int
	)
	v = vUnknown
	for {
		m, name, err := s.Field(memberNames[:], int(d.after[last]))
		if err != nil {
			return 0, err
		}
		if m < 0 {
			break
		}
		if m > 0 {
			if d.had.has(m) {
				return 0, s.Duplicate(name)
			}
			d.had |= 1 << m
			d.after[last], last = uint8(m-1), m
		}
		if known == 0 {
			if d.kind, err = findType(*s, m == mType); err != nil {
				return 0, err
			}
			known = base | node
			if v = variantOf(d.kind); v >= 0 && unknown {
				v = vUnknown
			} else if v >= 0 {
				known = base | variants[v].members
			}
		}
		if m == 0 || !known.has(m) || v == vUnknown && foreign(*s, m) {
			key := name
			if v != vUnknown && strings.HasPrefix(name, "/") {
				key = "/" + jsonwire.Token(name)
			}
			if err := d.keep(s, name, key); err != nil {
				return 0, err
			}
			continue
		}
		d.seen |= 1 << m
		if err := d.member(s, m); err != nil {
			return 0, err
		}
	}
	end := s.Offset()
	if err := s.End(); err != nil {
		return 0, err
	}
	if d.kind == "" {
		return 0, &jsonwire.SyntaxError{Offset: end - 1, Msg: `the member "type" is missing or empty`}
	}
	if !d.seen.has(mTimestamp) {
		d.time = time.Time{} // nothing to derive a time from; the document's fixtures have none
	}
	return v, nil
}

// foreign reports whether an unknown type uses the name of member m of the envelope for
// something else. s is in front of the member's value.
func foreign(s jsonwire.Scanner, m int) bool {
	switch m {
	case mNodeID, mRunID:
		return s.Kind() != '"'
	case mTimestamp:
		_, err := readTime(&s)
		return err != nil
	}
	return false
}

// findType returns the type of a line. s is in front of a member's value; here says
// that it is that of the type.
func findType(s jsonwire.Scanner, here bool) (string, error) {
	for !here {
		if err := s.Skip(); err != nil {
			return "", err
		}
		name, ok, err := s.Member()
		if err != nil || !ok {
			return "", err
		}
		here = name == "type"
	}
	return s.String()
}

// keep keeps an extra member under a key: its name on the line, or a JSON pointer for a
// member of an inner object and for a name that begins with a slash. The members of an
// unknown type always keep their names.
func (d *Decoder) keep(s *jsonwire.Scanner, name, key string) error {
	at := s.Offset()
	raw, err := s.Raw()
	if err != nil {
		return err
	}
	if !d.unknown.Add(key, raw) {
		return &jsonwire.SyntaxError{Offset: at, Msg: fmt.Sprintf("found duplicate member name %q", name)}
	}
	return nil
}

// keepIn keeps an extra member of the inner object at the JSON pointer in.
func (d *Decoder) keepIn(s *jsonwire.Scanner, in, name string) error {
	return d.keep(s, name, in+"/"+jsonwire.Token(name))
}

// member reads the value of a member of the line's variant.
func (d *Decoder) member(s *jsonwire.Scanner, m int) (err error) {
	switch m {
	case mTimestamp:
		d.time, err = readTime(s)
	case mPrompt:
		if k := s.Kind(); k != '"' && k != '[' {
			return &jsonwire.SyntaxError{Offset: s.Offset(), Msg: "found a prompt that is not a string or a list of messages"}
		}
		d.texts[m], err = s.Raw()
	case mToolInput, mToolOutput, mDetails, mStructuredOutput, mOutput:
		d.texts[m], err = s.Raw()
	case mTokenCount:
		d.tokens, err = whole(s)
	case mNumTurns:
		d.turns, err = wholeInt(s)
	case mIteration:
		d.iteration, err = wholeInt(s)
	case mTotalCost:
		d.cost, err = s.Float()
	case mDuration:
		d.duration, err = s.Millis()
	case mUsage:
		err = d.readUsage(s, "/usage", &d.usage, true)
	case mModelUsage:
		err = d.readModels(s)
	case mPatch:
		err = d.readPatch(s)
	case mCommand:
		err = d.readCommand(s)
	default:
		d.texts[m], err = s.String()
	}
	return err
}

// readTime reads milliseconds since the epoch, which may have fractions.
func readTime(s *jsonwire.Scanner) (time.Time, error) {
	at := s.Offset()
	ms, err := whole(s)
	t := time.UnixMilli(ms)
	if err != nil {
		if k := s.Kind(); k != '0' && k != '-' {
			return t, err
		}
		since, err := s.Millis()
		if err != nil {
			return t, err
		}
		t = time.Unix(0, int64(since))
	}
	if ms < minMillis || ms > maxMillis {
		return t, &jsonwire.SyntaxError{Offset: at, Msg: "found a time outside the years 0 to 9999"}
	}
	return t.UTC(), nil
}

// The years 0 to 9999 in milliseconds since the epoch.
const (
	minMillis = -62167219200000
	maxMillis = 253402300799999
)

// whole reads an integer in any spelling, such as 1.0 or 1e3.
func whole(s *jsonwire.Scanner) (int64, error) {
	n, err := s.Int()
	if err == nil {
		return n, nil
	}
	probe := *s
	f, ferr := probe.Float()
	if ferr != nil || f != math.Trunc(f) || math.Abs(f) > 1<<53 {
		return 0, err
	}
	*s = probe
	return int64(f), nil
}

// wholeInt is like whole, for an int, which may have only 32 bits.
func wholeInt(s *jsonwire.Scanner) (int, error) {
	at := *s
	n, err := whole(s)
	if err == nil && int64(int(n)) != n {
		*s = at
		return s.SmallInt() // returns the error
	}
	return int(n), err
}

// readUsage reads token counts at the pointer in. With cache they include the counts of
// the cache.
func (d *Decoder) readUsage(s *jsonwire.Scanner, in string, u *agentevents.Usage, cache bool) error {
	*u = agentevents.Usage{}
	if err := s.Object(); err != nil {
		return err
	}
	names := usageNames[:]
	if !cache {
		names = names[:2]
	}
	seen, last := 0, 0
	for {
		n, name, err := s.Field(names, last)
		if err != nil {
			return err
		}
		if n < 0 {
			break
		}
		if n == 0 {
			if err := d.keepIn(s, in, name); err != nil {
				return err
			}
			continue
		}
		if seen&(1<<n) != 0 {
			return s.Duplicate(name)
		}
		seen |= 1 << n
		last = n
		count, err := whole(s)
		if err != nil {
			return err
		}
		if count < 0 && d.below == "" {
			d.below = in + "/" + name
		}
		switch n {
		case 1:
			u.InputTokens = count
		case 2:
			u.OutputTokens = count
		case 3:
			u.CacheCreationInputTokens = agentevents.Some(count)
		case 4:
			u.CacheReadInputTokens = agentevents.Some(count)
		}
	}
	for n := range 2 {
		if seen&(2<<n) == 0 {
			d.lack(in + "/" + bare(usageNames[n]))
		}
	}
	return nil
}

// lack notes a required member that an inner object lacks. The first one is reported.
func (d *Decoder) lack(pointer string) {
	if d.lacks == "" {
		d.lacks = pointer
	}
}

// bare returns a member's name without quotes and colon.
func bare(literal string) string { return literal[1 : len(literal)-2] }

func (d *Decoder) readModels(s *jsonwire.Scanner) error {
	if err := s.Object(); err != nil {
		return err
	}
	d.models = map[string]agentevents.Usage{}
	for {
		model, ok, err := s.Member()
		if err != nil || !ok {
			return err
		}
		if _, twice := d.models[model]; twice {
			return s.Duplicate(model)
		}
		var u agentevents.Usage
		if err := d.readUsage(s, "/modelUsage/"+jsonwire.Token(model), &u, false); err != nil {
			return err
		}
		d.models[model] = u
	}
}

func (d *Decoder) readPatch(s *jsonwire.Scanner) error {
	d.patch = agentevents.StatePatched{}
	if err := s.Object(); err != nil {
		return err
	}
	seen, last := 0, 0
	for {
		n, name, err := s.Field(patchNames[:], last)
		if err != nil {
			return err
		}
		if n < 0 {
			break
		}
		if seen&(1<<n) != 0 && n > 0 {
			return s.Duplicate(name)
		}
		seen |= 1 << n
		last = n
		var text string
		switch n {
		case 0:
			last = 0
			err = d.keepIn(s, "/patch", name)
		case 1:
			text, err = s.String()
			d.patch.Op = agentevents.PatchOp(text)
		case 2:
			d.patch.Path, err = s.String()
		case 3:
			text, err = s.Raw()
			d.patch.Value = agentevents.JSON(text)
		}
		if err != nil {
			return err
		}
	}
	for n := range 2 {
		if seen&(2<<n) == 0 {
			d.lack("/patch/" + bare(patchNames[n]))
		}
	}
	return nil
}

func (d *Decoder) readCommand(s *jsonwire.Scanner) error {
	seen, err := readCommand(s, &d.command, func(name string) error { return d.keepIn(s, "/command", name) })
	if err != nil {
		return err
	}
	if n := commandLacks(d.command.Type, seen); n > 0 {
		d.lack("/command/" + bare(commandNames[n-1]))
	}
	return nil
}

// readCommand reads a RuntimeCommand. It calls other for extra members. Bit n of seen is
// set for member n of commandNames, counted from 1.
func readCommand(s *jsonwire.Scanner, c *agentevents.Command, other func(name string) error) (seen int, err error) {
	*c = agentevents.Command{}
	if err := s.Object(); err != nil {
		return 0, err
	}
	last := 0
	for {
		n, name, err := s.Field(commandNames[:], last)
		if err != nil {
			return 0, err
		}
		if n < 0 {
			return seen, nil
		}
		if n > 0 && seen&(1<<n) != 0 {
			return 0, s.Duplicate(name)
		}
		seen |= 1 << n
		last = n
		switch n {
		case 0:
			err = other(name)
		case cmdType:
			var text string
			text, err = s.String()
			c.Type = agentevents.CommandType(text)
		case cmdMessage:
			c.Message, err = s.String()
		case cmdPromptID:
			c.PromptID, err = s.String()
		case cmdContent:
			c.Content, err = s.String()
		case cmdRunID:
			c.RunID, err = s.String()
		case cmdResumable:
			var b bool
			b, err = s.Bool()
			c.Resumable = agentevents.Some(b)
		case cmdReason:
			c.Reason, err = s.String()
		}
		if err != nil {
			return 0, err
		}
	}
}

// Numbers of the members of a command, as in commandNames.
const (
	cmdType = 1 + iota
	cmdMessage
	cmdPromptID
	cmdContent
	cmdRunID
	cmdResumable
	cmdReason
)

// commandLacks returns the number of a required member that is not in seen, or 0. A
// missing runId breaks no rule, because such a line records a rejected command.
func commandLacks(t agentevents.CommandType, seen int) int {
	want := []int{cmdType}
	switch t {
	case agentevents.CommandSend:
		want = []int{cmdType, cmdMessage}
	case agentevents.CommandReply:
		want = []int{cmdType, cmdPromptID, cmdContent}
	}
	for _, n := range want {
		if seen&(1<<n) == 0 {
			return n
		}
	}
	return 0
}

// check checks a line against the rules of the document.
func (d *Decoder) check(v int) error {
	if v == vUnknown {
		return d.checkUnknown()
	}
	if missing := (base | variants[v].members) &^ variants[v].optional &^ d.seen; missing != 0 {
		for m := 1; m <= numMembers; m++ {
			if missing.has(m) && !node.has(m) {
				return d.broken(RuleRequired, "/"+memberName(m), "is missing")
			}
		}
	}
	for _, m := range [...]int{mNodeID, mRunID} {
		if variants[v].members.has(m) && !variants[v].optional.has(m) && d.text(m) == "" {
			return d.broken(RuleNode, "/"+memberName(m), "is missing or empty: "+variants[v].name+" must name its node and the node's execution")
		}
	}
	if d.lacks != "" {
		return d.broken(RuleRequired, d.lacks, "is missing")
	}
	if d.below != "" {
		return d.broken(RuleRange, d.below, "is below 0")
	}
	switch {
	case d.seen.has(mTokenCount) && d.tokens < 0:
		return d.broken(RuleRange, "/tokenCount", "is below 0")
	case d.seen.has(mDuration) && d.duration < 0:
		return d.broken(RuleRange, "/durationMs", "is below 0")
	case d.seen.has(mNumTurns) && d.turns < 0:
		return d.broken(RuleRange, "/numTurns", "is below 0")
	case d.seen.has(mTotalCost) && d.cost < 0:
		return d.broken(RuleRange, "/totalCostUsd", "is below 0")
	case d.seen.has(mIteration) && d.iteration < 1:
		return d.broken(RuleRange, "/iteration", "is below 1")
	}
	switch v {
	case vFlowComplete:
		return d.word("/status", d.texts[mStatus], statusComplete, statusFailed)
	case vStatePatch:
		return d.word("/patch/op", string(d.patch.Op), string(agentevents.PatchSet), string(agentevents.PatchMerge))
	case vCommand:
		return d.word("/command/type", string(d.command.Type), string(agentevents.CommandSend), string(agentevents.CommandReply),
			string(agentevents.CommandAbort), string(agentevents.CommandResume))
	}
	return nil
}

// checkUnknown checks a line of an unknown type against the rules for all lines.
func (d *Decoder) checkUnknown() error {
	if !d.seen.has(mTimestamp) {
		return d.broken(RuleRequired, "/"+memberName(mTimestamp), "is missing, or is not a time in milliseconds")
	}
	for _, m := range [...]int{mNodeID, mRunID} {
		if d.had.has(m) && !d.seen.has(m) {
			return d.broken(RuleNode, "/"+memberName(m), "is not a string")
		}
	}
	return nil
}

func (d *Decoder) word(pointer, word string, known ...string) error {
	for _, k := range known {
		if word == k {
			return nil
		}
	}
	return d.broken(RuleEnum, pointer, fmt.Sprintf("%q is not one of %s", word, strings.Join(known, ", ")))
}

func (d *Decoder) broken(rule agentevents.Rule, pointer, detail string) error {
	return &agentevents.RuleError{Rule: rule, RunID: d.run, Pointer: pointer, Detail: detail}
}
