package multiagent

import "github.com/agentevents/agentevents/internal/jsonwire"

// appendTrace appends the trace id that is derived from a run: 32 hex digits in quotes.
func appendTrace(dst []byte, run string) []byte {
	h := jsonwire.Hash(run)
	return append(appendID(appendID(append(dst, '"'), jsonwire.Mix(h, 1)), jsonwire.Mix(h, 2)), '"')
}

// appendSpan appends the span id that is derived from a call of an agent, from an
// agent, or from the run itself: 16 hex digits in quotes.
func appendSpan(dst []byte, run, agent, call string) []byte {
	owner, part := jsonwire.Mix(jsonwire.Hash(run), jsonwire.Hash(agent)), uint64(3)
	if call != "" {
		part = jsonwire.Hash(call)
	}
	return append(appendID(append(dst, '"'), jsonwire.Mix(owner, part)), '"')
}

// appendID appends an id of 16 hex digits, which are not all zero.
func appendID(dst []byte, h uint64) []byte { return jsonwire.AppendHex(dst, max(h, 1)) }
