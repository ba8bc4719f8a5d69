package claude

import (
	"cmp"
	"strings"

	"github.com/agentevents/agentevents"
)

// A stream is the state of an API message that arrives in deltas.
type stream struct {
	message string
	open    int // index of the current block, or -1
	pieces  map[int64]*pieces
}

// pieces is the state of the deltas of one block.
type pieces struct {
	subject, id string
	next        int
}

const maxPieces = 32

// streamEvent processes a part of a streamed API message. Only the deltas of blocks become events,
// because the whole blocks have everything else.
func (d *Decoder) streamEvent(l *line) {
	a := d.agentOf(l)
	event := l.object.object("event")
	if a.ended {
		return
	}
	switch kind := event.str("type"); kind {
	case "message_start":
		message := event.object("message")
		d.start(a, message.str("model"))
		id := message.str("id")
		a.enter(id)
		d.answered(a, id, message.str("model"))
		a.use(id, message.str("model"), &message)
		a.stream = stream{message: strings.Clone(id), open: -1, pieces: map[int64]*pieces{}}
	case "content_block_start":
		d.start(a, "")
		d.blockStart(a, &event)
	case "content_block_delta":
		d.start(a, "")
		d.blockDelta(a, &event)
	case "content_block_stop":
		if i := event.count("index"); i.OK {
			delete(a.stream.pieces, i.V)
		}
		a.stream.open = -1
	case "message_stop":
		a.stream = stream{}
	case "message_delta":
		a.use(a.stream.message, "", &event)
	case "ping":
	default:
		d.emit(d.main, &agentevents.Unknown{Type: agentevents.Kind("claude.stream_event." + cmp.Or(kind, "unknown")),
			Raw: agentevents.JSON(l.text)}, 0)
	}
}

func (d *Decoder) blockStart(a *agent, event *object) {
	index := event.count("index")
	if a.stream.message == "" || !index.OK || index.V > 1<<20 || len(a.stream.pieces) >= maxPieces {
		return
	}
	n := int(index.V)
	a.stream.open = n
	if n < d.blocks.get(a.stream.message) {
		return // the whole block came before
	}
	block := event.object("content_block")
	p := &pieces{}
	switch kind := block.str("type"); {
	case kind == "text" || kind == "thinking":
		p.subject, p.id = kind, blockName(a.stream.message, n)
	case strings.HasSuffix(kind, "tool_use"):
		p.subject, p.id = "call", strings.Clone(block.str("id"))
	default:
		return
	}
	key := p.subject + " " + p.id
	if p.id == "" || d.streamed.get(key) != 0 {
		return
	}
	d.streamed.set(key, 1)
	a.stream.pieces[index.V] = p
}

func (d *Decoder) blockDelta(a *agent, event *object) {
	index := event.count("index")
	p := a.stream.pieces[index.V]
	if p == nil || !index.OK || int(index.V) < d.blocks.get(a.stream.message) {
		return
	}
	delta := event.object("delta")
	at := agentevents.Some(p.next)
	var payload agentevents.Payload
	switch kind := delta.str("type"); {
	case kind == "text_delta" && p.subject == "text":
		if text := delta.str("text"); text != "" {
			payload = &agentevents.TextDelta{BlockID: p.id, Delta: text, Index: at}
		}
	case kind == "thinking_delta" && p.subject == "thinking":
		if text := delta.str("thinking"); text != "" {
			payload = &agentevents.AgentReasoningDelta{BlockID: p.id, Delta: text, Index: at}
		}
	case kind == "input_json_delta" && p.subject == "call":
		if text := delta.str("partial_json"); text != "" {
			payload = &agentevents.ToolArgumentsDelta{CallID: p.id, Delta: text, Index: at}
		}
	}
	if payload != nil {
		p.next++
		d.emit(a, payload, 0)
	}
}
