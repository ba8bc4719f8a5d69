package opencode

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/agentevents/agentevents/capture/internal/session"
	"github.com/agentevents/agentevents/internal/jsonwire"
)

// tables are the readers of rows by their tables. Those without one tell nothing of the work.
var tables = map[string]func(*store, string, *session.Object){
	"session": (*store).session, "message": (*store).message, "part": (*store).part, "event": (*store).event,
	"event_sequence": nil, "todo": nil, "project": nil, "permission": nil, "migration": nil,
}

// A store has rows by session.
type store struct {
	ids      []string
	sessions map[string]*rows
}

// rows are the rows of one session.
type rows struct {
	id, parent, version string
	session, revert     string // its row, and the latest state of it if a revert was announced
	messages            []row
	parts               map[string][]row // by message
	events              []row
	other               []string // lines that are no rows of these tables
}

type row struct {
	id   string
	at   int64
	text string // of an event the row, of others the data
}

// split returns the sessions of rows.
func split(text string) ([]session.Part, error) {
	s := &store{sessions: map[string]*rows{}}
	trimmed := strings.TrimLeft(text, " \t\r\n")
	switch whole := jsonwire.Valid(trimmed) == nil; {
	case whole && strings.HasPrefix(trimmed, "["):
		s.list("", trimmed)
	case whole && jsonwire.IsObject(trimmed):
		s.object(trimmed)
	case strings.HasPrefix(trimmed, "["), strings.HasPrefix(trimmed, "{") && jsonwire.Valid(firstLine(trimmed)) != nil:
		return nil, fmt.Errorf("the document is cut, or no JSON: export it again: %w", jsonwire.Valid(trimmed))
	default:
		s.lines(text)
	}
	if len(s.ids) == 0 {
		return nil, errors.New("there is no row of a session, message, part or event")
	}
	return s.all(), nil
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return strings.TrimSpace(line)
}

func (s *store) lines(text string) {
	last := ""
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		switch {
		case line == "":
		case jsonwire.Valid(line) == nil:
			id := s.row("", line)
			if o := session.ParseObject(line); tableOf(o) == "" && (id == "" || o.Raw("type") != "") {
				r := s.of(last)
				r.other = append(r.other, `{"type":"`+noRow+`","data":{}}`)
			}
			last = cmp.Or(id, last)
		default: // the reader tells the fault
			r := s.of(last)
			r.other = append(r.other, line)
		}
	}
}

func (s *store) list(table, text string) {
	for elem := range jsonwire.Elements(text) {
		s.row(table, elem)
	}
}

// object reads an object with a list for each table, the output of opencode export, or a row.
func (s *store) object(text string) {
	o := session.ParseObject(text)
	if info := o.Object("info"); info.Str("id") != "" && o.Raw("messages") != "" {
		s.exported(info, o.Raw("messages"))
		return
	}
	if s.row("", text) != "" {
		return
	}
	for table, list := range jsonwire.Members(text) {
		if strings.HasPrefix(list, "[") {
			s.list(table, list)
		}
	}
}

// row reads a row of a table, which its members tell if it is "". It returns its session.
func (s *store) row(table, text string) string {
	o := session.ParseObject(text)
	if table == "" {
		table = tableOf(o)
	}
	read, known := tables[table]
	id := cmp.Or(o.Str("aggregate_id"), o.Str("session_id"))
	if table == "session" {
		id = o.Str("id")
	}
	switch {
	case known && read == nil:
	case known && id != "":
		read(s, id, o)
	case id != "" || table != "":
		r := s.of(id)
		r.other = append(r.other, `{"type":`+jsonwire.Quote("row of "+cmp.Or(table, "another table"))+`,"data":{}}`)
	}
	return id
}

// noRow is the type of a line that stands in the place of another one, which is not a row.
const noRow = "no row"

func tableOf(o *session.Object) string {
	switch {
	case o.Raw("aggregate_id") != "" && o.Raw("type") != "":
		return "event"
	case o.Raw("aggregate_id") != "":
		return "event_sequence"
	case o.Raw("message_id") != "" && o.Raw("data") != "":
		return "part"
	case o.Raw("session_id") != "" && o.Raw("data") != "" && strings.HasPrefix(o.Str("id"), "msg_"):
		return "message"
	case o.Raw("project_id") != "" && o.Raw("slug") != "":
		return "session"
	}
	return ""
}

// of returns the rows of a session. Those without one belong to the latest.
func (s *store) of(id string) *rows {
	if id == "" && len(s.ids) > 0 {
		id = s.ids[len(s.ids)-1]
	}
	r := s.sessions[id]
	if r == nil {
		r = &rows{id: strings.Clone(id), parts: map[string][]row{}}
		s.sessions[r.id] = r
		s.ids = append(s.ids, r.id)
	}
	return r
}

func (s *store) session(id string, o *session.Object) {
	r := s.of(id)
	r.parent, r.version = o.Str("parent_id"), o.Str("version")
	info := object{"id": o.Raw("id"), "parentID": o.Raw("parent_id"), "directory": o.Raw("directory"),
		"title": o.Raw("title"), "version": o.Raw("version"), "agent": o.Raw("agent"), "model": decoded(o.Raw("model"))}
	info["time"] = object{"created": o.Raw("time_created"), "updated": o.Raw("time_created")}.text()
	r.session = info.text()
	if revert := decoded(o.Raw("revert")); revert != "" {
		info["revert"], info["time"] = revert, object{"updated": o.Raw("time_updated")}.text()
		r.revert = info.text()
	}
}

func (s *store) message(id string, o *session.Object) {
	r := s.of(id)
	r.messages = append(r.messages,
		row{o.Str("id"), o.Count("time_created").V, with(decoded(o.Raw("data")), "id", o.Raw("id"))})
}

func (s *store) part(id string, o *session.Object) {
	r := s.of(id)
	message := o.Str("message_id")
	data := with(with(decoded(o.Raw("data")), "messageID", o.Raw("message_id")), "id", o.Raw("id"))
	r.parts[message] = append(r.parts[message], row{o.Str("id"), o.Count("time_updated").V, data})
}

func (s *store) event(id string, o *session.Object) {
	r := s.of(id)
	r.events = append(r.events, row{"", o.Count("seq").V, oneLine(o.Text)})
	if o.Str("type") == "session.created.1" {
		info := session.ParseObject(decoded(o.Raw("data"))).Object("info")
		r.parent, r.version = info.Str("parentID"), info.Str("version")
	}
}

// exported reads the output of opencode export: a session, and its messages with their parts.
func (s *store) exported(info *session.Object, messages string) {
	r := s.of(info.Str("id"))
	r.parent, r.version = info.Str("parentID"), info.Str("version")
	r.session = oneLine(info.Text)
	if info.Raw("revert") != "" {
		r.revert = r.session
	}
	for elem := range jsonwire.Elements(messages) {
		o := session.ParseObject(elem)
		m := o.Object("info")
		id := m.Str("id")
		r.messages = append(r.messages, row{id, m.Object("time").Count("created").V, oneLine(m.Text)})
		for part := range jsonwire.Elements(o.Raw("parts")) {
			r.parts[id] = append(r.parts[id], row{jsonwire.Text(jsonwire.Member(part, "id")), 0, oneLine(part)})
		}
	}
}

// all returns the sessions as parts, each with the lines of a journal.
func (s *store) all() []session.Part {
	var out []session.Part
	for _, id := range s.ids {
		r := s.sessions[id]
		f := session.Facts{Session: s.root(id), Thread: id, Version: r.version}
		lines := r.journal()
		for i := 0; i < len(lines) && f.At.IsZero(); i++ {
			f.At, _ = lineTime(lines[i])
		}
		out = append(out, session.Part{Facts: f, Lines: lines})
	}
	return out
}

// root returns the session that a sub-agent works for.
func (s *store) root(id string) string {
	for range len(s.ids) {
		r := s.sessions[id]
		if r == nil || r.parent == "" {
			break
		}
		id = r.parent
	}
	return id
}

// journal returns the events of a session: its own, or those that would have led to its rows.
func (r *rows) journal() (lines []string) {
	slices.SortStableFunc(r.events, func(a, b row) int { return cmp.Compare(a.at, b.at) })
	if len(r.events) > 0 && (r.events[0].at == 0 || len(r.messages) == 0) {
		for _, e := range r.events {
			lines = append(lines, e.text)
		}
		return append(lines, r.other...)
	}
	if r.session != "" {
		lines = append(lines, r.change("session.created.1", object{"info": r.session}))
	}
	slices.SortStableFunc(r.messages,
		func(a, b row) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.id, b.id)) })
	for _, m := range r.messages {
		lines = append(lines, r.change("message.updated.1", object{"info": begun(m.text)}))
		parts := r.parts[m.id]
		slices.SortStableFunc(parts, func(a, b row) int { return cmp.Compare(a.id, b.id) })
		var ends []row // of calls that were made at once
		for _, p := range parts {
			end := r.change("message.part.updated.1", object{"part": p.text, "time": partTime(p)})
			if started, at := running(p.text); started != "" {
				lines = append(lines, r.change("message.part.updated.1", object{"part": started, "time": at}))
				ends = append(ends, row{at: session.ParseObject(p.text).Object("state").Object("time").Count("end").V, text: end})
				continue
			}
			lines, ends = append(returned(lines, ends), end), nil
		}
		lines = append(returned(lines, ends), r.change("message.updated.1", object{"info": m.text}))
	}
	if r.revert != "" {
		lines = append(lines, r.change("session.updated.1", object{"info": r.revert}))
	}
	return append(lines, r.other...)
}

// change is a row of the journal.
func (r *rows) change(kind string, data object) string {
	return object{"aggregate_id": jsonwire.Quote(r.id), "type": jsonwire.Quote(kind), "data": data.text()}.text()
}

// running returns a call as it began, and when, or empty texts.
func running(part string) (started, at string) {
	state := session.ParseObject(part).Object("state")
	if at = state.Object("time").Raw("start"); at == "" {
		return "", ""
	}
	text := with(with(state.Text, "status", `"running"`), "time", object{"start": at}.text())
	return with(part, "state", with(with(text, "output", ""), "error", "")), at
}

// returned appends the lines of the ends of calls, in the order of their times.
func returned(lines []string, ends []row) []string {
	slices.SortStableFunc(ends, func(a, b row) int { return cmp.Compare(a.at, b.at) })
	for _, end := range ends {
		lines = append(lines, end.text)
	}
	return lines
}

// begun is a message as it began.
func begun(info string) string {
	o := session.ParseObject(info)
	if o.Str("role") != "assistant" {
		return info
	}
	out := object{}
	for name, raw := range jsonwire.Members(info) {
		switch name {
		case "finish", "error", "tokens", "cost":
		case "time":
			out[name] = object{"created": o.Object("time").Raw("created")}.text()
		default:
			out[name] = raw
		}
	}
	return out.text()
}

// partTime returns the time at which a part was complete.
func partTime(p row) string {
	o := session.ParseObject(p.text)
	end := cmp.Or(o.Object("state").Object("time").Raw("end"), o.Object("time").Raw("end"))
	if end == "" && p.at > 0 {
		end = string(jsonwire.AppendInt(nil, p.at))
	}
	return end
}

// An object is the members of a JSON object, as JSON. Those that are "" are left out.
type object map[string]string

func (o object) text() string {
	var b strings.Builder
	b.WriteByte('{')
	for _, name := range slices.Sorted(maps.Keys(o)) {
		if o[name] == "" {
			continue
		}
		if b.Len() > 1 {
			b.WriteByte(',')
		}
		b.WriteString(jsonwire.Quote(name) + ":" + o[name])
	}
	b.WriteByte('}')
	return b.String()
}

// with returns an object with one more member.
func with(text, name, raw string) string {
	out := object{name: raw}
	for member, value := range jsonwire.Members(text) {
		if member != name {
			out[member] = value
		}
	}
	return out.text()
}

// decoded returns the object in a column, which is JSON or a text with JSON, on one line.
func decoded(raw string) string {
	if strings.HasPrefix(raw, `"`) {
		if raw = jsonwire.Text(raw); jsonwire.Valid(raw) != nil {
			return ""
		}
	}
	if raw = strings.TrimSpace(raw); !jsonwire.IsObject(raw) {
		return ""
	}
	return oneLine(raw)
}

// oneLine returns JSON on one line: newlines are between its values alone.
func oneLine(text string) string { return newlines.Replace(text) }

var newlines = strings.NewReplacer("\n", " ", "\r", " ")
