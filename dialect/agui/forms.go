package agui

import (
	"bytes"
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect/internal/engine"
	"github.com/agentevents/agentevents/internal/jsonwire"
)

// The remarks in the event's extra member: see the documentation of the package.
const (
	remarkStart = "/start"
	remarkTime  = "/timestamp"
)

// made is the member agentevents of a line that stands for no event.
const made = `"made"`

// keep keeps a value that the encoder would not write like that.
func keep(r *engine.Reader, raw, canonical string) {
	if raw != canonical {
		r.KeepAs(raw)
	}
}

// A timeForm is a time in whole milliseconds since the epoch.
type timeForm struct{}

func (timeForm) Append(w *engine.Writer, dst []byte, _ *engine.Member, _ any) ([]byte, bool) {
	if w.Ev.Time.Equal(engine.NoTime) && w.Key(remarkTime, false) != "" {
		return dst, false
	}
	t := w.Time()
	if t.Nanosecond()%1e6 != 0 && w.Whole { // compare exactly
		return t.AppendFormat(dst, time.RFC3339Nano), true
	}
	return jsonwire.AppendInt(dst, t.UnixMilli()), true
}

func (timeForm) Parse(r *engine.Reader, at any) error {
	t, err := r.Millis()
	if *at.(*time.Time) = t; t.Nanosecond()%1e6 != 0 {
		r.Break(RuleValue, "is not a whole number of milliseconds")
	}
	return err
}

// A tagForm names the agent, if it is not the run's.
type tagForm struct{ engine.Value }

func (f tagForm) Append(w *engine.Writer, dst []byte, m *engine.Member, at any) ([]byte, bool) {
	if id := *at.(*string); ofMain(w.Ev, encoderOf(w).s.spans) && (id == "" || id == encoderOf(w).s.main) {
		return dst, false
	}
	return f.Value.Append(w, dst, m, at)
}

// ofMain reports whether an event belongs to the run's agent if the line names no agent. spans is
// true if the line has the span around it.
func ofMain(ev *agentevents.Event, spans bool) bool {
	info, _ := ev.Kind().Info()
	return info.ByAgent && ev.NodeRunID == "" && !(spans && ev.ParentSpanID != "")
}

// A spanForm is a span in a run whose agents are known by spans.
type spanForm struct{ engine.Value }

func (f spanForm) Append(w *engine.Writer, dst []byte, m *engine.Member, at any) ([]byte, bool) {
	if *at.(*string) == "" || encoderOf(w).s.spans {
		return f.Value.Append(w, dst, m, at)
	}
	return dst, false
}

// An idForm is the id of a message or a call, which is unique in the run.
type idForm struct{ engine.Full }

func (idForm) Append(w *engine.Writer, dst []byte, _ *engine.Member, _ any) ([]byte, bool) {
	return jsonwire.AppendString(dst, encoderOf(w).block.id), true
}

// A sideForm is a text that no field has: the decoder notes it.
type sideForm struct {
	to    func(d *Decoder) *string
	write func(e *Encoder) string // nil writes nothing
	words []string                // the allowed ones; none allows all
}

func (f sideForm) Append(w *engine.Writer, dst []byte, _ *engine.Member, _ any) ([]byte, bool) {
	if f.write == nil {
		return dst, false
	}
	return jsonwire.AppendString(dst, f.write(encoderOf(w))), true
}

func (f sideForm) Parse(r *engine.Reader, _ any) error {
	text, err := r.S.String()
	if *f.to(decoderOf(r)) = text; err == nil && r.Strict && f.words != nil && !slices.Contains(f.words, text) {
		r.Break(RuleValue, jsonwire.Word(text)+" is not one of "+strings.Join(f.words, ", "))
	}
	return err
}

// A resultForm is a result. It has no member for null, which the metadata record.
type resultForm struct{ engine.Value }

func (f resultForm) Append(w *engine.Writer, dst []byte, m *engine.Member, at any) ([]byte, bool) {
	if *at.(*agentevents.JSON) == "null" {
		return dst, false
	}
	return f.Value.Append(w, dst, m, at)
}

// A keptForm is a value that no field has: another one than the usual is kept.
type keptForm struct {
	usual func(s *stream, ev *agentevents.Event) string
}

func (f keptForm) Append(w *engine.Writer, dst []byte, m *engine.Member, _ any) ([]byte, bool) {
	value := cmp.Or(w.Use(m.Name), f.usual(&encoderOf(w).s.stream, w.Ev))
	return append(dst, value...), value != ""
}

func (f keptForm) Parse(r *engine.Reader, _ any) error {
	raw, err := r.S.Raw()
	keep(r, raw, f.usual(&decoderOf(r).s, r.Ev))
	return err
}

// A replyForm is the id of the message with the result of a call. It is kept if it is not the
// usual one, or if another message has that.
type replyForm struct{}

func (replyForm) Append(w *engine.Writer, dst []byte, m *engine.Member, _ any) ([]byte, bool) {
	e := encoderOf(w)
	if raw := w.Use(m.Name); raw != "" {
		e.result = jsonwire.Text(raw)
		return append(dst, raw...), true
	}
	e.result = e.unique(resultID(e.block.id), w.Ev)
	return jsonwire.AppendString(dst, e.result), true
}

func (replyForm) Parse(r *engine.Reader, _ any) error {
	raw, err := r.S.Raw()
	d, usual := decoderOf(r), resultID(r.Ev.Payload.(*agentevents.ToolReturned).CallID)
	if raw != jsonwire.Quote(usual) || d.s.of.used.has(usual) {
		r.KeepAs(raw)
	}
	d.result = jsonwire.Text(raw)
	return err
}

// A usageForm is a list of usage reports of a run. Each report becomes a usage.observed before the
// end of the run, with the JSON as its extra member.
type usageForm struct{}

func (usageForm) Append(w *engine.Writer, dst []byte, _ *engine.Member, _ any) ([]byte, bool) {
	list := encoderOf(w).s.usage
	return append(append(append(dst, '['), bytes.TrimPrefix(list, []byte(","))...), ']'), len(list) > 0
}

func (usageForm) Parse(r *engine.Reader, _ any) error {
	raw, err := r.S.Raw()
	list := slices.Collect(jsonwire.Elements(raw))
	if len(list) == 0 || slices.ContainsFunc(list, func(raw string) bool { return reportOf(raw) == nil }) {
		return cmp.Or(err, engine.ErrMisfit)
	}
	if d, ok := r.Doc.(*Decoder); ok { // it is a line
		d.usage = list
	}
	return err
}

// reportOf returns the event of a usage report, or nil. The protocol counts the tokens of a cache
// as input.
func reportOf(raw string) *agentevents.UsageObserved {
	tokens := map[string]agentevents.Opt[int64]{}
	for name, value := range jsonwire.Members(raw) {
		if n, err := strconv.ParseInt(value, 10, 64); err == nil && n >= 0 {
			tokens[name] = agentevents.Some(n)
		}
	}
	if len(tokens) == 0 {
		return nil
	}
	cached, stored := tokens["cachedInputTokens"], tokens["cacheWriteInputTokens"]
	return &agentevents.UsageObserved{Model: jsonwire.Text(jsonwire.Member(raw, "model")), Usage: agentevents.Usage{
		InputTokens:              max(0, tokens["inputTokens"].V-cached.V-stored.V),
		OutputTokens:             tokens["outputTokens"].V,
		TotalTokens:              tokens["totalTokens"],
		CacheCreationInputTokens: stored,
		CacheReadInputTokens:     cached,
		ReasoningOutputTokens:    tokens["reasoningTokens"],
	}}
}

// A contentForm is the result of a call as a text: its JSON, or the text that it is.
type contentForm struct{}

// contentOf returns the content of a return.
func contentOf(p *agentevents.ToolReturned) string {
	switch {
	case p.Result == "" && p.Error.OK:
		return p.Error.V.Message
	case strings.HasPrefix(string(p.Result), `"`):
		return jsonwire.Text(string(p.Result))
	}
	compact, _ := jsonwire.Compact(string(p.Result))
	return compact
}

// resultOf returns the result in a content.
func resultOf(content string) agentevents.JSON {
	if compact, err := jsonwire.Compact(content); err == nil && compact == content && content[0] != '"' {
		return agentevents.JSON(content)
	}
	return agentevents.JSONString(content)
}

func (contentForm) Append(w *engine.Writer, dst []byte, m *engine.Member, at any) ([]byte, bool) {
	if raw := w.Kept(m.Name); raw != "" && raw == string(*at.(*agentevents.JSON)) { // it is a list of parts
		return append(dst, w.Use(m.Name)...), true
	}
	return jsonwire.AppendString(dst, contentOf(w.Ev.Payload.(*agentevents.ToolReturned))), true
}

func (contentForm) Parse(r *engine.Reader, at any) error {
	if r.S.Kind() == '[' {
		raw, err := r.S.Raw()
		*at.(*agentevents.JSON) = agentevents.JSON(raw)
		keep(r, raw, "")
		return err
	}
	content, err := r.S.String()
	if err == nil {
		*at.(*agentevents.JSON) = resultOf(content)
	}
	return err
}

// A valueForm is the whole payload.
type valueForm struct{}

func (valueForm) Append(w *engine.Writer, dst []byte, _ *engine.Member, _ any) ([]byte, bool) {
	value, err := appendPayload(dst, w.Ev.Payload)
	if err != nil {
		w.Fail(agentevents.RuleFieldJSON, "/payload", err.Error())
	}
	if len(value) == len(dst) {
		return append(dst, "{}"...), true
	}
	return value, true
}

func (valueForm) Parse(r *engine.Reader, _ any) (err error) {
	decoderOf(r).rest, err = r.S.Raw()
	return err
}

// appendPayload appends a payload as its native line has it.
func appendPayload(dst []byte, p agentevents.Payload) ([]byte, error) {
	whole := agentevents.Event{ID: "-", RunID: "-", Payload: p}
	line, err := whole.AppendJSON(dst)
	_, raw, _ := bytes.Cut(line[len(dst):], []byte(`,"payload":`)) // it is the last member
	return append(dst, bytes.TrimSuffix(raw, []byte("}"))...), err
}

// payloadOf returns a payload as its native line has it. It uses the memory of buf.
func payloadOf(buf *[]byte, p agentevents.Payload) (string, error) {
	raw, err := appendPayload((*buf)[:0], p)
	*buf = raw
	return string(raw), err
}

// A restForm is the metadata of other programs. Its member agentevents has the part of the payload
// that the other members lack.
type restForm struct{}

func (restForm) Append(w *engine.Writer, dst []byte, m *engine.Member, _ any) ([]byte, bool) {
	rest, others := encoderOf(w).rest, w.Use(m.Name)
	if rest == "" || others != "" && !jsonwire.IsObject(others) {
		return append(dst, others...), others != ""
	}
	dst = append(append(append(dst, `{"agentevents":{`...), rest...), '}')
	for name, raw := range jsonwire.Members(others) {
		if name == "agentevents" {
			continue
		}
		dst = append(append(jsonwire.AppendString(append(dst, ','), name), ':'), raw...)
	}
	return append(dst, '}'), true
}

func (restForm) Parse(r *engine.Reader, _ any) error {
	raw, err := r.S.Raw()
	if err != nil {
		return err
	}
	own, others := "", []byte{'{'}
	for name, value := range jsonwire.Members(raw) {
		if name == "agentevents" && (value == made || jsonwire.IsObject(value)) {
			own = value
			continue
		}
		if len(others) > 1 {
			others = append(others, ',')
		}
		others = append(append(jsonwire.AppendString(others, name), ':'), value...)
	}
	switch d := decoderOf(r); {
	case own == "" || d.rest != "": // of a CUSTOM line, the value is the payload
		r.KeepAs(raw)
	default:
		if d.rest = own; len(others) > 1 {
			r.KeepAs(string(append(others, '}')))
		}
	}
	return nil
}

// A patchForm is a JSON Patch.
type patchForm struct{}

func (patchForm) Append(w *engine.Writer, dst []byte, m *engine.Member, _ any) ([]byte, bool) {
	p := w.Ev.Payload.(*agentevents.StatePatched)
	state := encoderOf(w).s.state
	if kept := w.Kept(m.Name); kept != "" {
		if d := state.delta(kept); d.plain && len(d.patches) == 1 && d.patches[0] == *p {
			return append(dst, w.Use(m.Name)...), true
		}
	}
	return append(dst, state.patch(p)...), true
}

func (patchForm) Parse(r *engine.Reader, _ any) error {
	raw, err := r.S.Raw()
	d := decoderOf(r)
	if d.delta = raw; d.patch.fault == "" {
		d.patches = d.patch.patches
	}
	return err
}

// A snapshotForm is the whole state, an object: any other value empties it.
type snapshotForm struct{ engine.Value }

func (f snapshotForm) Append(w *engine.Writer, dst []byte, m *engine.Member, at any) ([]byte, bool) {
	if value := *at.(*agentevents.JSON); !jsonwire.IsObject(strings.TrimLeft(string(value), " \t\r\n")) {
		return append(dst, "{}"...), true
	}
	return f.Value.Append(w, dst, m, at)
}
