package rundiff

import (
	"hash/maphash"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/internal/jsonwire"
	"github.com/agentevents/agentevents/internal/view"
)

// A Change is a member in which two acts differ.
type Change struct {
	At string           `json:"at"`         // JSON pointer into the payload: of A, but of B for members that only B has
	A  agentevents.JSON `json:"a,omitzero"` // absent if only B has the member
	B  agentevents.JSON `json:"b,omitzero"`
}

// varies are the members of the vocabulary that differ between any two runs, are counted, or
// are in the totals.
var varies = setOf(strings.Fields(`callId modelCallId retryOf messageId blockId approvalId interruptId promptId
	handoffId responseId requestId providerSessionId eventId eventIds runId approvedAt resumedAt ts durationMs
	timeToFirstTokenMs usage modelUsage cumulative costUsd totalCostUsd totals statedTokens tokens tokenCount
	totalTokens totalAgents estimatedTokens tokensBefore tokensAfter inputTokens outputTokens stateBytes numTurns
	refused actual observed turn turnIndex iteration round index oneEvent lifecycle`)...)

// typed are the members of the vocabulary with members of the vocabulary. Other members are
// content, and compared unchanged.
var typed = setOf("agent", "from", "to", "message", "error", "command", "toolCalls", "questions", "steps")

// refs are the members that name an agent.
var refs = setOf("agentId", "parentAgentId", "from", "to", "assignedAgent", "sourceAgent", "verifierAgentId")

// subjects are the members that name the subject of an act.
var subjects = setOf("toolId", "checkpointId", "stepId", "edgeId", "path", "op", "subject", "phase", "from",
	"to", "role", "type", "section", "change", "budget", "cap", "itemType", "findingId")

// asks are the members of a call that hold the request.
var asks = setOf("arguments", "argumentsSummary", "request")

func setOf(words ...string) map[string]bool {
	set := map[string]bool{}
	for _, word := range words {
		set[word] = true
	}
	return set
}

// A level is how much two acts have in common.
type level int

const (
	all    level = iota // everything
	asked               // the request of a call
	mostly              // the most telling argument of a call
	topic               // the kind and the subject of the act
	levels
)

// sum returns a hash that is the same for acts that have so much in common. Its seed is new
// for each comparison, so nobody can make acts that look alike.
func (c *comparison) sum(s *side, e *act, of level) uint64 {
	_, known := e.kind.Info()
	sum := c.hash(string(e.kind) + "\x00" + e.phase)
	if of == all {
		return sum + c.value(s, "", e.payload, known)
	}
	for name, raw := range jsonwire.Members(e.payload) {
		switch {
		case !known || c.ignore[name]:
		case subjects[name], asks[name] && of == asked:
			sum += c.member(s, name, raw)
		case name == "arguments" && of == mostly:
			sum += c.hash(view.Argument(agentevents.JSON(raw)))
		case name == "message" || name == "command":
			for inner, raw := range jsonwire.Members(raw) {
				if subjects[inner] {
					sum += c.member(s, inner, raw)
				}
			}
		}
	}
	return sum
}

func (c *comparison) hash(text string) uint64 { return maphash.String(c.seed, text) }

// member returns the hash of a member of the vocabulary.
func (c *comparison) member(s *side, name, raw string) uint64 {
	return jsonwire.Mix(c.hash(name), c.value(s, name, raw, true))
}

// value returns the hash of a member's value; known means that the member belongs to the
// vocabulary.
func (c *comparison) value(s *side, name, raw string, known bool) uint64 {
	var scan jsonwire.Scanner
	scan.Reset(raw)
	return c.next(s, &scan, name, known)
}

// next is value for the next value of a scanner. The order of members does not matter.
func (c *comparison) next(s *side, scan *jsonwire.Scanner, name string, known bool) (h uint64) {
	switch scan.Kind() {
	case '{':
		_ = scan.Object()
		known = known && (name == "" || typed[name])
		for {
			name, ok, err := scan.Member()
			switch {
			case !ok || err != nil:
				return jsonwire.Mix(h, '{')
			case known && varies[name] || c.ignore[name]:
				_ = scan.Skip()
			default:
				h += jsonwire.Mix(c.hash(name), c.next(s, scan, name, known))
			}
		}
	case '[':
		_ = scan.Array()
		for {
			if ok, err := scan.Elem(); !ok || err != nil {
				return jsonwire.Mix(h, '[')
			}
			h = jsonwire.Mix(h, c.next(s, scan, name, known))
		}
	case '"':
		text, _ := scan.String()
		if known {
			text = s.plain(name, text)
		}
		return c.hash(`"` + text)
	}
	raw, _ := scan.Raw()
	return c.hash(raw)
}

// minted finds ids that nobody chose: UUIDs.
var minted = regexp.MustCompile(`^(?i:[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})$`)

// plain returns the comparable form of a text of the vocabulary: agents have one name on both
// sides, minted ids none, and steps no number.
func (s *side) plain(name, text string) string {
	const digits = "0123456789"
	switch {
	case refs[name]:
		if other, ok := s.names[text]; ok {
			return other
		}
	case name == "name": // of a span: step.1
		if word := strings.TrimRight(text, digits); strings.HasSuffix(word, ".") {
			return word
		}
	case strings.HasSuffix(name, "Id") && len(text) == jsonwire.LenUUID && minted.MatchString(text):
		return ""
	case name == "stepId":
		return strings.TrimRight(text, digits)
	}
	return text
}

// maxDepth is the depth to which values are taken apart. A difference below is shown as a whole.
const maxDepth = 50

// changes adds the differences between two values of a member, as value takes them.
func (c *comparison) changes(out *[]Change, at, name, a, b string, known bool, depth int) {
	switch {
	case a != "" && b != "" && c.value(c.a, name, a, known) == c.value(c.b, name, b, known):
		return
	case depth < maxDepth && jsonwire.IsObject(a) && jsonwire.IsObject(b):
		known = known && (name == "" || typed[name])
		others := map[string]string{}
		for name, raw := range jsonwire.Members(b) {
			others[name] = raw
		}
		for name, raw := range jsonwire.Members(a) {
			if (!known || !varies[name]) && !c.ignore[name] {
				c.changes(out, at+"/"+jsonwire.Token(name), name, raw, others[name], known, depth+1)
			}
			delete(others, name)
		}
		for name, raw := range jsonwire.Members(b) {
			if others[name] != "" && (!known || !varies[name]) && !c.ignore[name] {
				c.changes(out, at+"/"+jsonwire.Token(name), name, "", raw, known, depth+1)
			}
		}
	case depth < maxDepth && strings.HasPrefix(a, "[") && strings.HasPrefix(b, "["):
		c.elements(out, at, name, slices.Collect(jsonwire.Elements(a)), slices.Collect(jsonwire.Elements(b)), known, depth+1)
	default:
		*out = append(*out, Change{at, agentevents.JSON(a), agentevents.JSON(b)})
	}
}

// elements adds the differences between two lists. An element more or less does not make all later
// ones differ.
func (c *comparison) elements(out *[]Change, at, name string, a, b []string, known bool, depth int) {
	hashes := func(s *side, list []string) (h []uint64) {
		for _, raw := range list {
			h = append(h, c.value(s, name, raw, known))
		}
		return h
	}
	i, j := 0, 0
	upTo := func(x, y int) {
		for ; i < x && j < y; i, j = i+1, j+1 {
			c.changes(out, at+"/"+strconv.Itoa(i), name, a[i], b[j], known, depth)
		}
		for ; i < x; i++ {
			c.changes(out, at+"/"+strconv.Itoa(i), name, a[i], "", known, depth)
		}
		for ; j < y; j++ {
			c.changes(out, at+"/"+strconv.Itoa(j), name, "", b[j], known, depth)
		}
	}
	alignSums(slices.Compare(a, b) > 0, hashes(c.a, a), hashes(c.b, b), func(x, y int) {
		upTo(x, y)
		i, j = x+1, y+1
	})
	upTo(len(a), len(b))
}
