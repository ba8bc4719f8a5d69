package agui

import (
	"strconv"
	"strings"
	"time"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/internal/jsonwire"
)

// The types of blocks.
type blockType byte

const (
	text      blockType = 't'
	reasoning blockType = 'r'
	call      blockType = 'c'
)

// words returns the first word of the types of a block's lines, the member with the block's id, and
// the type of the lines that add a piece.
func (t blockType) words() (prefix, id, piece string) {
	switch t {
	case reasoning:
		return "REASONING_MESSAGE", "messageId", "CONTENT"
	case call:
		return "TOOL_CALL", "toolCallId", "ARGS"
	}
	return "TEXT_MESSAGE", "messageId", "CONTENT"
}

// ids are the ids of messages, calls and results of a thread, as hashes.
type ids map[uint64]struct{}

func (used ids) has(id string) bool {
	_, has := used[jsonwire.Hash(id)]
	return has
}

func (used ids) add(id string)    { used[jsonwire.Hash(id)] = struct{}{} }
func (used ids) remove(id string) { delete(used, jsonwire.Hash(id)) }

// resultID returns the usual id of the message with the result of a call.
func resultID(call string) string { return call + "-result" }

// isOn reports whether a line of the protocol names the block.
func (b *block) isOn(line string) bool {
	prefix, name, _ := b.typ.words()
	line = dataOf(line)
	return strings.HasPrefix(jsonwire.Text(jsonwire.Member(line, "type")), prefix) &&
		jsonwire.Text(jsonwire.Member(line, name)) == b.id
}

// dataOf returns the object of a line, which may be a frame's.
func dataOf(line string) string { return strings.TrimPrefix(strings.TrimPrefix(line, "data:"), " ") }

// A block is a message or a tool call that lines open, continue and end.
type block struct {
	typ      blockType
	id       string    // on lines
	agent    string    // raw, that its lines name
	role     string    // of a message
	tool     string    // of a call; empty if no line names it
	run      string    // of a call, for an encoder: that it began in
	text     []byte    // since START
	start    string    // the line that opened it; for a decoder, until an event keeps it
	at       int       // for a decoder: the number of the line that opened it
	begun    bool      // an encoder has written START; a decoder has read a delta
	returned bool      // for a decoder: the result of the call has come before its end
	again    bool      // for a decoder: the thread has had the id before
	latest   time.Time // for a decoder: the time of its latest line

	// For an encoder:
	owner string // the agent
	key   blockKey
	sent  sent // the text before START, if the block was cut
	acts  acts // those before the latest delta
}

// blockOf returns the type and id of the block that an event belongs to, and the piece if the event
// is a delta. The id is nil for an event of no block.
func blockOf(p agentevents.Payload) (typ blockType, id, delta *string) {
	switch p := p.(type) {
	case *agentevents.TextDelta:
		return text, &p.BlockID, &p.Delta
	case *agentevents.TextCompleted:
		return text, &p.BlockID, nil
	case *agentevents.MessageCreated:
		return text, &p.Message.MessageID, nil
	case *agentevents.AgentReasoningDelta:
		return reasoning, &p.BlockID, &p.Delta
	case *agentevents.AgentReasoned:
		return reasoning, &p.BlockID, nil
	case *agentevents.ToolArgumentsDelta:
		return call, &p.CallID, &p.Delta
	case *agentevents.ToolCalled:
		return call, &p.CallID, nil
	}
	return 0, nil, nil
}

// ofBlock reports whether an event's own line is one of a block.
func ofBlock(p agentevents.Payload) bool {
	_, id, _ := blockOf(p)
	_, returns := p.(*agentevents.ToolReturned)
	return id != nil || returns
}

// wholeOf returns the text of the block that an event ends.
func wholeOf(p agentevents.Payload) string {
	var arguments agentevents.JSON
	switch p := p.(type) {
	case *agentevents.TextCompleted:
		return p.Text
	case *agentevents.AgentReasoned:
		return p.Reasoning
	case *agentevents.MessageCreated:
		return jsonwire.Text(string(p.Message.Content))
	case *agentevents.ToolCalled:
		arguments = p.Arguments
	case *agentevents.ToolReturned:
		arguments = p.Arguments
	}
	compact, _ := jsonwire.Compact(string(arguments))
	return compact
}

// end sets the fields of the payload of the line that ends the block from the block. at is the time
// of the line.
func (b *block) end(p agentevents.Payload, at time.Time) {
	switch p := p.(type) {
	case *agentevents.TextCompleted:
		p.Text = string(b.text)
	case *agentevents.AgentReasoned:
		p.Reasoning = string(b.text)
	case *agentevents.MessageCreated:
		p.Message.From, p.Message.Role, p.Message.TS = b.role, b.role, at.UnixMilli()
		p.Message.Content = agentevents.JSONString(string(b.text))
	case *agentevents.ToolCalled:
		p.ToolID, p.Arguments = b.tool, ""
		if len(b.text) > 0 {
			p.Arguments = agentevents.JSONOrString(string(b.text))
		}
	}
}

// line returns a line of the block: one of type START, END, or a piece of text.
func (b *block) line(word, at, piece string, made bool) string {
	prefix, name, content := b.typ.words()
	members := `,"` + name + `":` + jsonwire.Quote(b.id)
	switch {
	case word == "":
		word, members = content, members+`,"delta":`+jsonwire.Quote(piece)
	case word == "START" && b.typ == call:
		members += `,"toolCallName":` + jsonwire.Quote(b.tool)
	case word == "START" && b.typ == reasoning:
		members += `,"role":"reasoning"`
	case word == "START":
		members += `,"role":` + jsonwire.Quote(b.role)
	}
	return lineOf(prefix+"_"+word, at, b.agent, members, made)
}

// implied returns the line that ends the block where no line does. It has the time of the latest one.
func (b *block) implied() string {
	at := ""
	if agentevents.TimeKnown(b.latest) {
		at = strconv.FormatInt(b.latest.UnixMilli(), 10)
	}
	return b.line("END", at, "", false)
}

// starts reports whether the line that opened the block is one of its own, for an agent.
func (b *block) starts(agent string) bool {
	prefix, name, _ := b.typ.words()
	member := func(name string) string { return jsonwire.Member(b.start, name) }
	return jsonwire.Text(member("type")) == prefix+"_START" && member("subagentRunId") == agent &&
		jsonwire.Text(member(name)) == b.id
}

// lineOf returns a line that is not written for an event of its own. The time and the
// agent are raw JSON, and may be empty.
func lineOf(typ, at, agent, members string, made bool) string {
	line := `{"type":"` + typ + `"`
	if at != "" {
		line += `,"timestamp":` + at
	}
	if agent != "" {
		line += `,"subagentRunId":` + agent
	}
	line += members
	if made {
		line += `,"metadata":{"agentevents":"made"}`
	}
	return line + "}"
}
