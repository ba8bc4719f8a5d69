package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/capture"
	"github.com/agentevents/agentevents/internal/homes"
	"github.com/agentevents/agentevents/internal/index"
	"github.com/agentevents/agentevents/internal/view"
	"github.com/agentevents/agentevents/report"
)

func sessionsCommand() command {
	return command{
		name:    "sessions",
		args:    "[flags]",
		purpose: "list the sessions that agent programs keep on this machine",
		about: `
Lists the sessions of Claude Code, Codex, Copilot CLI, cline, Gemini CLI, pi and Qwen Code in
the order of their starts: the start, the program, the id, the working folder, the title or
else the first prompt, the models, tokens, cost in US dollars, the status and its reason.
Every command that takes a FILE also takes a session id, or its beginning if no other session
shares it. A session that follows another one in the same file has "in" after its id, and the
id of the first one, which names the file.

The folders are below the home folder of the user, also on Windows and macOS, unless an
environment variable of the program names another folder: CLAUDE_CONFIG_DIR, CODEX_HOME,
COPILOT_HOME, CLINE_DIR, CLINE_DATA_DIR, CLINE_SESSION_DATA_DIR, GEMINI_CLI_HOME,
PI_CODING_AGENT_DIR, PI_CODING_AGENT_SESSION_DIR, QWEN_HOME, QWEN_RUNTIME_DIR, and XDG_DATA_HOME
for opencode. The database of opencode is listed with the command that reads it.

The command only reads the files, sends nothing, and masks secrets. It reads a session again
only if its files have changed: see docs/command.md. Standard error and the JSON have the
numbers of files and lines that cannot be read.`,
		examples: []string{
			"agentevents sessions --since 7d --program claude --program codex",
			"agentevents show $(agentevents sessions --json | jq -r '.sessions[-1].id')",
		},
		exit: `Exit status:
  0  all went well, also if files or lines cannot be read
  2  used wrongly, or there is no home folder
`,
		flags: func(fs *flag.FlagSet) action {
			var programs words
			var since moment
			var m memory
			programs.known = homes.Programs()
			fs.Var(&programs, "program", "only sessions of the `PROGRAM`; may be given several times")
			fs.Var(&since, "since", "only sessions with an event since `TIME`: 2026-01-02, RFC 3339, or 36h or 7d ago")
			m.flags(fs)
			asJSON := fs.Bool("json", false, "print JSON; costs are in US dollars")
			return func(in *invocation) error {
				if len(in.args) > 0 {
					return usageError(fmt.Sprintf("unexpected argument %q", in.args[0]))
				}
				l, err := in.listed(programs.words)
				if err != nil {
					return err
				}
				out := l.list(in, &m, since.at)
				if *asJSON {
					return writeJSON(in.stdout, out)
				}
				writeTable(in.stdout, out.Sessions, sessionColumns[:])
				out.report(in)
				return nil
			}
		},
	}
}

// A listing is the output of the command.
type listing struct {
	Sessions []sessionRow `json:"sessions"`
	Unread   []unreadFile `json:"unread"`
}

// A sessionRow is a session.
type sessionRow struct {
	Program string                   `json:"program"`
	ID      string                   `json:"id"`
	In      string                   `json:"in,omitzero"` // id of the first session of its file, if that is another one
	Began   time.Time                `json:"began,omitzero"`
	Ended   time.Time                `json:"ended,omitzero"` // time of the last event
	Folder  string                   `json:"folder,omitzero"`
	Title   string                   `json:"title,omitzero"`
	Models  []string                 `json:"models"`
	Tokens  sessionTokens            `json:"tokens"`
	CostUSD agentevents.Opt[float64] `json:"costUsd"` // null when it is not known
	Status  string                   `json:"status"`
	MadeUp  bool                     `json:"endMadeUp,omitzero"` // no line tells the end
	Reason  string                   `json:"reason,omitzero"`
	Bad     int                      `json:"badLines"` // lines that cannot be read
	File    string                   `json:"file"`
}

// sessionTokens are the tokens of a session, as in the JSON of stats.
type sessionTokens struct {
	Input      int64 `json:"input"`
	Output     int64 `json:"output"`
	CacheWrite int64 `json:"cacheWrite"`
	CacheRead  int64 `json:"cacheRead"`
	Reasoning  int64 `json:"reasoning"`
	Total      int64 `json:"total"`
	Partial    bool  `json:"partial"` // more was used
}

// An unreadFile is a file, or several that are unread for the same reason.
type unreadFile struct {
	Program string `json:"program"`
	Path    string `json:"path"` // of the first one
	Files   int    `json:"files"`
	Reason  string `json:"reason"`
	store   bool
}

var sessionColumns = [...]column[sessionRow]{
	{"BEGAN", false, func(r sessionRow) string {
		if r.Began.Year() <= 1970 {
			return ""
		}
		return r.Began.UTC().Format("2006-01-02 15:04:05Z")
	}},
	{"PROGRAM", false, func(r sessionRow) string { return r.Program }},
	{"SESSION", false, func(r sessionRow) string {
		if r.In != "" {
			return visible(r.ID + " in " + r.In)
		}
		return visible(r.ID)
	}},
	{"FOLDER", false, func(r sessionRow) string { return brief(r.Folder, 32) }},
	{"TITLE", false, func(r sessionRow) string { return brief(r.Title, 40) }},
	{"MODEL", false, func(r sessionRow) string { return brief(strings.Join(r.Models, ", "), 40) }},
	{"TOKENS", true, func(r sessionRow) string {
		if r.Tokens.Total == 0 {
			return ""
		}
		return atLeast(r.Tokens.Partial) + fmt.Sprint(r.Tokens.Total)
	}},
	{"COST", true, func(r sessionRow) string { return someDollars(r.CostUSD) }},
	{"STATUS", false, func(r sessionRow) string { return visible(r.Status) + view.MadeUp(r.MadeUp) }},
	{"WHY", false, func(r sessionRow) string { return brief(r.Reason, 60) }},
}

// brief returns a text for a cell: the end of a path, and the beginning of another text.
func brief(text string, limit int) string {
	r := []rune(visible(text))
	switch {
	case len(r) <= limit:
		return string(r)
	case strings.ContainsAny(text, `/\`) && !strings.Contains(text, " "):
		return "…" + string(r[len(r)-limit+1:])
	}
	return string(r[:limit-1]) + "…"
}

// report tells on standard error which lines and files the list lacks.
func (l *listing) report(in *invocation) {
	in.stdout.Flush() // keep both outputs in order
	tell := func(format string, args ...any) {
		fmt.Fprintf(in.stderr, "agentevents sessions: "+format+"\n", args...)
	}
	lines, sessions, first := 0, 0, ""
	for _, r := range l.Sessions {
		if r.Bad > 0 {
			lines, sessions, first = lines+r.Bad, sessions+1, cmp.Or(first, r.ID)
		}
	}
	if lines > 0 {
		tell("%s of %s cannot be read, first of %s: 'agentevents check' with its id names them",
			plural(lines, "line"), plural(sessions, "session"), visible(first))
	}
	for _, u := range l.Unread {
		tell("%s: not read: %s: %s", u.Program, visible(u.place()), visible(u.Reason))
	}
}

// place names the files.
func (u *unreadFile) place() string {
	if u.Files > 1 {
		return u.Path + " and " + plural(u.Files-1, "more file")
	}
	return u.Path
}

// The homeSessions are the sessions on this machine, and the files that are not read.
type homeSessions struct {
	missedFiles
	places   []homes.Place
	sessions []*capture.Session
}

// listed finds the sessions of programs, or of all for none.
func (in *invocation) listed(words []string) (*homeSessions, error) {
	machine := homes.Machine{OS: runtime.GOOS, Env: in.env}
	places, err := machine.Places(words...)
	if err != nil {
		return nil, err
	}
	stores, err := machine.Stores(words...)
	if err != nil {
		return nil, err
	}
	h := &homeSessions{places: places}
	known, files := map[string]bool{}, map[string]string{}
	type fault struct {
		homes.Place
		err error
	}
	var faults []fault
	var all []*capture.Session
	for _, p := range places {
		for _, file := range p.Files(func(path string, err error) { h.add(p.Program, path, err) }) {
			files[file] = p.Program
		}
		sessions, err := openLinked(p.Path, capture.Options{})
		if several, ok := err.(interface{ Unwrap() []error }); ok {
			for _, err := range several.Unwrap() {
				faults = append(faults, fault{p, err})
			}
		} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
			h.add(p.Program, p.Path, err)
		}
		all = append(all, sessions...)
	}
	h.sessions = capture.Merge(all)
	for _, s := range h.sessions {
		known[s.Program()+"\x00"+s.ID()] = true
		for _, file := range s.Files() {
			delete(files, file)
		}
	}
	for _, file := range slices.Sorted(maps.Keys(files)) {
		of, err := capture.Open(file, capture.Options{})
		if err == nil && len(of) > 0 && known[of[0].Program()+"\x00"+of[0].ID()] {
			continue // a second file of a session, which the notes of the session tell
		}
		if info, lerr := os.Lstat(file); lerr == nil && info.Mode().Type() == fs.ModeSymlink {
			err = cmp.Or(err, errLink)
		}
		h.add(files[file], file, cmp.Or(err, errUnlisted))
	}
	for _, f := range faults {
		h.add(f.Program, placeOf(f.err, f.Path), f.err)
	}
	for _, s := range stores {
		h.rows = append(h.rows, unreadFile{s.Program, s.Path, s.Files, s.Advice, true})
	}
	return h, nil
}

var (
	errUnlisted = errors.New("it belongs to no session in its folder")
	errLink     = errors.New("it is a symbolic link, which is followed only to a folder")
)

// missedFiles are the files and folders that are not read. Those with the same program and reason are
// one row.
type missedFiles struct {
	rows []unreadFile
	seen map[string]bool // paths
}

func (m *missedFiles) add(program, path string, err error) {
	if m.seen[path] {
		return
	}
	if m.seen == nil {
		m.seen = map[string]bool{}
	}
	m.seen[path] = true
	reason := lost(err)
	if info, serr := os.Stat(path); serr == nil && info.Mode().IsRegular() && info.Size() == 0 {
		reason = emptyFile
	}
	reason = strings.TrimPrefix(reason, path+": ")
	for i := range m.rows {
		if u := &m.rows[i]; u.Program == program && u.Reason == reason {
			u.Files++
			return
		}
	}
	m.rows = append(m.rows, unreadFile{program, path, 1, reason, false})
}

// list reads the sessions with an event since a time.
func (h *homeSessions) list(in *invocation, m *memory, since time.Time) *listing {
	out := &listing{Sessions: []sessionRow{}, Unread: slices.Clone(h.rows)}
	x := index.New(in.index, program())
	for i, s := range h.sessions {
		if h.sessions[i] = nil; !changedSince(s, since) {
			continue
		}
		files := s.Files()
		if p, ok := h.placeOf(files[0]); ok {
			files = append(files, p.Beside(files[0])...)
		}
		q := x.Ask(files, "sessions", s.Program(), s.ID())
		var rows []sessionRow
		if answer := q.Answer(); answer == nil || m.rehash || json.Unmarshal(answer, &rows) != nil {
			var err error
			if rows, err = h.read(s); err != nil {
				h.add(wordOf(s.Program()), s.Files()[0], err)
				continue
			}
			if answer, err := json.Marshal(rows); err == nil {
				_ = q.Keep(answer) // without it the next command reads the session
			}
		}
		for _, row := range rows {
			if !row.Ended.Before(since) {
				out.Sessions = append(out.Sessions, row)
			}
		}
	}
	slices.SortStableFunc(out.Sessions, func(a, b sessionRow) int { return a.Began.Compare(b.Began) })
	out.Unread = append([]unreadFile{}, h.rows...)
	return out
}

// changedSince reports whether a file of the session has changed since a time.
func changedSince(s *capture.Session, since time.Time) bool {
	return since.IsZero() || slices.ContainsFunc(s.Files(), func(name string) bool {
		info, err := os.Stat(name)
		return err != nil || !info.ModTime().Before(since)
	})
}

// A sessionRun is a session while it is read.
type sessionRun struct {
	id      string // of the run
	row     sessionRow
	fold    *agentevents.Fold
	details report.Details
}

// read reads a session, and those that follow it in its file. The error is the one of a file.
func (h *homeSessions) read(s *capture.Session) ([]sessionRow, error) {
	var runs []*sessionRun
	begin := func(id string) *sessionRun {
		r := &sessionRun{
			id:   id,
			row:  sessionRow{Program: wordOf(s.Program()), ID: s.ID(), File: s.Files()[0]},
			fold: agentevents.NewFold(agentevents.FoldOptions{KeepCalls: -1, MaxViolations: -1}),
		}
		if len(runs) > 0 {
			r.row.ID, r.row.In = strings.Clone(id), s.ID()
		}
		runs = append(runs, r)
		return r
	}
	bad := 0 // before the first event
	var r *sessionRun
	for line, err := range s.Lines() {
		var path *fs.PathError
		switch {
		case errors.As(err, &path):
			return nil, err
		case err != nil && r == nil:
			bad++
			continue
		case err != nil:
			r.row.Bad++
			continue
		}
		if id := line.Event.RunID; r == nil || r.id != id {
			if i := slices.IndexFunc(runs, func(r *sessionRun) bool { return r.id == id }); i >= 0 {
				r = runs[i]
			} else {
				r = begin(id)
			}
		}
		r.fold.Apply(*line.Event)
		r.details.Add(line.Event)
		if line.Event.Time.After(r.row.Ended) {
			r.row.Ended = line.Event.Time
		}
	}
	if len(runs) == 0 {
		begin("")
	}
	runs[0].row.Bad += bad
	rows := make([]sessionRow, len(runs))
	for i, r := range runs {
		rows[i] = h.row(r)
	}
	return rows, nil
}

// row is the row of a session that was read.
func (h *homeSessions) row(r *sessionRun) sessionRow {
	row, run := r.row, r.fold.Snapshot()
	row.Began = run.StartedAt
	var inputs struct {
		Cwd, Directory, Title string
		Context               struct{ Cwd string }
	}
	_ = json.Unmarshal([]byte(run.Inputs), &inputs) // a run without inputs has none of them
	row.Folder, row.Title = cmp.Or(inputs.Cwd, inputs.Directory, inputs.Context.Cwd), inputs.Title
	if p, ok := h.placeOf(row.File); ok && row.In == "" {
		row.Folder, row.Title = cmp.Or(row.Folder, masked(p.Folder(row.File))), cmp.Or(row.Title, masked(p.Title(row.File)))
	}
	items := report.Of(run, &r.details)
	for _, i := range items {
		if i.Topic == report.Asked && row.Title == "" {
			row.Title = i.Text
		}
	}
	row.Models = append([]string{}, view.Models(run)...)
	u := run.Usage.Usage
	row.Tokens = sessionTokens{u.InputTokens, u.OutputTokens, u.CacheCreationInputTokens.V,
		u.CacheReadInputTokens.V, u.ReasoningOutputTokens.V, view.Tokens(u), run.Usage.Partial}
	row.CostUSD = run.Usage.CostUSD
	row.MadeUp = run.EndMadeUp
	word, _ := view.Run(run)
	row.Status = strings.TrimSuffix(word, view.MadeUp(row.MadeUp))
	row.Reason = report.Reason(run, items)
	return row
}

// placeOf returns the place of a session's file.
func (h *homeSessions) placeOf(file string) (homes.Place, bool) {
	for _, p := range h.places {
		if rest, ok := strings.CutPrefix(file, p.Path); ok && rest != "" && os.IsPathSeparator(rest[0]) {
			return p, true
		}
	}
	return homes.Place{}, false
}

// masked returns a text as an emitter records it.
func masked(text string) string {
	if text == "" {
		return ""
	}
	raw, err := json.Marshal(text)
	if err != nil {
		return ""
	}
	events := func(yield func(agentevents.Event, error) bool) {
		yield(agentevents.Event{RunID: "r", Payload: &agentevents.RunStarted{Inputs: agentevents.JSON(raw)}}, nil)
	}
	for ev, err := range new(agentevents.Policy).Redact(events) {
		if p, ok := ev.Payload.(*agentevents.RunStarted); err == nil && ok && json.Unmarshal([]byte(p.Inputs), &text) == nil {
			return text
		}
	}
	return ""
}

// wordOf returns the word for a program of package capture.
func wordOf(name string) string {
	for word, of := range sources {
		if of == name {
			return word
		}
	}
	return name
}

// words are the values of a flag that is given for each of several words.
type words struct{ known, words []string }

func (w *words) String() string { return strings.Join(w.words, ",") }

func (w *words) Set(s string) error {
	if !slices.Contains(w.known, s) {
		return fmt.Errorf("want one of %s; give the flag again for each", strings.Join(w.known, ", "))
	}
	w.words = append(w.words, s)
	return nil
}

// A moment is a time, or one as long ago as a duration.
type moment struct {
	text string
	at   time.Time
}

func (m *moment) String() string { return m.text }

func (m *moment) Set(s string) error {
	m.text = s
	for _, layout := range [...]string{time.RFC3339, time.DateOnly} {
		if at, err := time.ParseInLocation(layout, strings.ToUpper(s), time.Local); err == nil {
			m.at = at
			return nil
		}
	}
	hours := s
	if days, ok := strings.CutSuffix(s, "d"); ok {
		hours = days + "h"
	}
	ago, err := time.ParseDuration(hours)
	if err != nil || ago < 0 {
		return errors.New("want a date like 2026-01-02, a time like 2026-01-02T15:04:05Z, or how long ago: 90m, 36h, 7d")
	}
	if hours != s {
		ago *= 24
	}
	m.at = time.Now().Add(-ago)
	return nil
}

// minID is how many characters of an id are needed at least, so that other words are no ids.
const minID = 4

// ids puts, in the place of each argument that is the id of a session or the beginning of one, its
// file. An existing file wins.
func (in *invocation) ids() error {
	var h *homeSessions
	for i, arg := range in.args {
		if !looksLikeID(arg) || isThere(arg) {
			continue
		}
		if h == nil {
			var err error
			if h, err = in.listed(nil); errors.Is(err, homes.ErrNoHome) {
				return nil
			} else if err != nil {
				return err
			}
			in.args = slices.Clone(in.args)
		}
		switch found := h.withID(arg); len(found) {
		case 0:
			return h.unknown(in, arg)
		case 1:
			in.args[i] = found[0].Files()[0]
		default:
			return ambiguous(in, arg, found)
		}
	}
	return nil
}

// refuse reports lines about an argument. The first one has the name of the command before it.
func (in *invocation) refuse(lines ...string) error {
	for i, line := range lines {
		if i == 0 {
			line = "agentevents " + in.name + ": " + line
		}
		fmt.Fprintln(in.stderr, visible(line))
	}
	return errFiles
}

// unknown reports an argument that is neither a file nor the id of a session.
func (h *homeSessions) unknown(in *invocation, id string) error {
	lines := []string{
		fmt.Sprintf("%s: no such file, and none of %s on this machine has an id that begins so; "+
			"'agentevents sessions' lists them", id, plural(len(h.sessions), "session")),
	}
	for _, u := range h.rows {
		if u.store {
			lines = append(lines, fmt.Sprintf("%s: %s: %s", u.Program, u.Path, u.Reason))
		}
	}
	return in.refuse(lines...)
}

// withID returns the sessions with an id, or else those whose ids begin so.
func (h *homeSessions) withID(id string) (found []*capture.Session) {
	for _, s := range h.sessions {
		if s.ID() == id {
			found = append(found, s)
		}
	}
	if len(found) > 0 {
		return found
	}
	for _, s := range h.sessions {
		if strings.HasPrefix(s.ID(), id) {
			found = append(found, s)
		}
	}
	return found
}

// ambiguous reports the beginning of several ids, or an id of several sessions.
func ambiguous(in *invocation, id string, found []*capture.Session) error {
	const most = 10
	lines := []string{
		fmt.Sprintf("%s: this begins the ids of %d sessions: name one with more characters, or its file", id, len(found)),
	}
	for _, s := range found[:min(len(found), most)] {
		lines = append(lines, fmt.Sprintf("  %s  %s  %s", s.ID(), s.Program(), s.Files()[0]))
	}
	if n := len(found) - most; n > 0 {
		lines = append(lines, fmt.Sprintf("  and %d more", n))
	}
	return in.refuse(lines...)
}

// looksLikeID reports whether an argument may be the beginning of a session's id: letters, digits,
// - and _ with a digit among them. The names of files have a dot, and words have no digit.
func looksLikeID(arg string) bool {
	const hex = "0123456789abcdef"
	other := func(r rune) bool {
		return !(r|0x20 >= 'a' && r|0x20 <= 'z' || r >= '0' && r <= '9' || r == '-' || r == '_')
	}
	return len(arg) >= minID && strings.IndexFunc(arg, other) < 0 &&
		(strings.ContainsAny(arg, "0123456789") || strings.Trim(arg, hex) == "")
}

// isThere reports whether an argument names a file, a folder or the segments of a log.
func isThere(arg string) bool {
	if _, err := os.Lstat(arg); err == nil {
		return true
	}
	parts, err := filepath.Glob(arg + ".[0-9]*")
	return err == nil && len(parts) > 0
}
