// Package homes knows where agent programs keep their sessions on a machine: the folders by
// operating system and environment, the names of the files in them, and stores that are not files
// of sessions. It reads no session.
package homes

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// A Machine is the environment of a user.
type Machine struct {
	OS  string                   // as runtime.GOOS
	Env func(name string) string // as os.Getenv
}

// ErrNoHome is the error of an environment without a home folder.
var ErrNoHome = errors.New("the environment names no home folder: set HOME, on Windows USERPROFILE")

// A Place is a folder in which a program keeps sessions. It need not be there.
type Place struct {
	Program string // the word for it on a command line
	Path    string
	program *program
}

// A program is a row of the table of programs.
type program struct {
	word  string
	ways  []way
	below []string // the folders with sessions, below the base
	// files are patterns for the names of session files below such a folder. One that begins with
	// **/ matches at any depth.
	files []string
	// project is the name of a file two folders above a session's that has the path of the user's
	// folder as its text. Empty means that sessions tell it.
	project string
	titles  []title // of which the first that a session has counts
}

// A title is the name that a program or a user gives a session: a member of a line with a type, of which
// the last line counts, or a key in a file beside the session.
type title struct{ kind, member, beside string }

// A way leads to the base of a program: a path below the folder that a variable names, or below the
// home folder if the row names none. The first variable that is set decides.
type way struct{ variable, path string }

// programs is the table of programs. All of them use the home folder on Windows and macOS as on
// Linux, and none of them the folders for the data of applications there.
var programs = [...]program{
	{
		word:   "claude",
		ways:   []way{{"CLAUDE_CONFIG_DIR", ""}, {"", ".claude"}},
		below:  []string{"projects"},
		files:  []string{"*/*.jsonl"},
		titles: []title{{kind: "custom-title", member: "customTitle"}, {kind: "ai-title", member: "aiTitle"}},
	},
	{
		word:  "codex",
		ways:  []way{{"CODEX_HOME", ""}, {"", ".codex"}},
		below: []string{"sessions", "archived_sessions"},
		files: []string{"**/rollout-*.jsonl", "**/rollout-*.jsonl.zst", "**/rollout-*.json"},
	},
	{
		word:   "copilot",
		ways:   []way{{"COPILOT_HOME", ""}, {"", ".copilot"}},
		below:  []string{"session-state"},
		files:  []string{"**/events.jsonl"},
		titles: []title{{beside: "workspace.yaml", member: "name"}},
	},
	{
		word: "cline",
		ways: []way{{"CLINE_SESSION_DATA_DIR", ""}, {"CLINE_DATA_DIR", "sessions"},
			{"CLINE_DIR", "data/sessions"}, {"", ".cline/data/sessions"}},
		below: []string{""},
		files: []string{"**/*.messages.json"},
	},
	{
		word:    "gemini",
		ways:    []way{{"GEMINI_CLI_HOME", ".gemini"}, {"", ".gemini"}},
		below:   []string{"tmp"},
		files:   []string{"**/chats/session-*.jsonl", "**/chats/session-*.json"},
		project: ".project_root",
	},
	{
		word:   "pi",
		ways:   []way{{"PI_CODING_AGENT_SESSION_DIR", ""}, {"PI_CODING_AGENT_DIR", "sessions"}, {"", ".pi/agent/sessions"}},
		below:  []string{""},
		files:  []string{"**/*.jsonl"},
		titles: []title{{kind: "session_info", member: "name"}},
	},
	{
		word:  "qwen",
		ways:  []way{{"QWEN_RUNTIME_DIR", ""}, {"QWEN_HOME", ""}, {"", ".qwen"}},
		below: []string{"projects"},
		files: []string{"**/chats/*.jsonl"},
	},
	{ // a database: see Stores
		word: "opencode",
		ways: []way{{"XDG_DATA_HOME", "opencode"}, {"", ".local/share/opencode"}},
	},
}

// Programs returns the words for all programs.
func Programs() (words []string) {
	for i := range programs {
		words = append(words, programs[i].word)
	}
	return words
}

// Places returns the folders of the programs with these words, or of all programs for none.
func (m Machine) Places(words ...string) (places []Place, err error) {
	for i := range programs {
		p := &programs[i]
		base, err := m.base(p)
		if err != nil {
			return nil, err
		}
		for _, below := range p.below {
			if len(words) == 0 || slices.Contains(words, p.word) {
				places = append(places, Place{p.word, filepath.Join(base, below), p})
			}
		}
	}
	return places, nil
}

// base returns the folder of a program.
func (m Machine) base(p *program) (string, error) {
	home := m.Env("HOME")
	if m.OS == "windows" {
		home = cmp.Or(m.Env("USERPROFILE"), m.Env("HOMEDRIVE")+m.Env("HOMEPATH"))
	}
	for _, w := range p.ways {
		folder := home
		if w.variable != "" {
			if folder = strings.TrimSpace(m.Env(w.variable)); folder == "" {
				continue
			}
			if rest, ok := strings.CutPrefix(filepath.ToSlash(folder), "~/"); ok {
				folder = filepath.Join(home, rest)
			}
		}
		if folder != "" {
			return filepath.Join(folder, w.path), nil
		}
	}
	return "", ErrNoHome
}

// Files returns the names of the files in the place that should be sessions, and calls fault for
// each folder that cannot be read. A place that is not there has none.
func (p Place) Files(fault func(path string, err error)) (names []string) {
	if _, err := os.Stat(p.Path); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	walk := func(below string) {
		_ = fs.WalkDir(os.DirFS(filepath.Join(p.Path, below)), ".", func(name string, d fs.DirEntry, err error) error {
			name = path.Join(below, name)
			full := filepath.Join(p.Path, filepath.FromSlash(name))
			switch {
			case err != nil:
				fault(full, err)
				if d != nil && d.IsDir() {
					return fs.SkipDir
				}
			case d.Type()&^fs.ModeSymlink == 0 && p.program.has(name):
				names = append(names, full)
			}
			return nil
		})
	}
	walk("")
	for _, link := range Linked(p.Path) {
		walk(link)
	}
	return names
}

// Linked returns the names of the symbolic links in a folder that lead to other folders, each of which
// counts once. No loop is possible: a link to a folder that has this one, or is in it, is left out.
func Linked(folder string) (names []string) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil // a reader of the folder tells the fault
	}
	var known []string
	for _, e := range entries {
		if e.Type() != fs.ModeSymlink {
			continue
		}
		if known == nil {
			known = []string{realPath(folder)}
		}
		if known[0] == "" {
			return nil
		}
		to := realPath(filepath.Join(folder, e.Name()))
		info, err := os.Stat(to)
		if err != nil || !info.IsDir() || slices.ContainsFunc(known, func(of string) bool { return in(of, to) || in(to, of) }) {
			continue
		}
		known, names = append(known, to), append(names, e.Name())
	}
	return names
}

// realPath returns the absolute path of a file without symbolic links, or "".
func realPath(path string) string {
	abs, err := filepath.Abs(path)
	if err == nil {
		abs, err = filepath.EvalSymlinks(abs)
	}
	if err != nil {
		return ""
	}
	return abs
}

// in reports whether a path is the folder, or is in it.
func in(folder, path string) bool {
	rest, ok := strings.CutPrefix(path, folder)
	return ok && (rest == "" || os.IsPathSeparator(rest[0]) || os.IsPathSeparator(folder[len(folder)-1]))
}

// has reports whether a file has the name of a session.
func (p *program) has(name string) bool {
	return slices.ContainsFunc(p.files, func(pattern string) bool {
		if tail, deep := strings.CutPrefix(pattern, "**/"); deep {
			parts := strings.Split(name, "/")
			name, pattern = strings.Join(parts[max(0, len(parts)-1-strings.Count(tail, "/")):], "/"), tail
		}
		ok, err := path.Match(pattern, name)
		return ok && err == nil
	})
}

// Folder returns the folder in which the program of a session worked, if the session itself does
// not tell it.
func (p Place) Folder(session string) string {
	if p.program.project == "" {
		return ""
	}
	text, err := os.ReadFile(p.projectOf(session))
	if err != nil || len(text) > maxPath {
		return ""
	}
	return strings.TrimSpace(string(text))
}

func (p Place) projectOf(session string) string {
	return filepath.Join(filepath.Dir(filepath.Dir(session)), p.program.project)
}

// Beside returns the files beside a session that Folder and Title read and that are there.
func (p Place) Beside(session string) (names []string) {
	add := func(name string) {
		if info, err := os.Stat(name); err == nil && info.Mode().IsRegular() {
			names = append(names, name)
		}
	}
	if p.program.project != "" {
		add(p.projectOf(session))
	}
	for _, t := range p.program.titles {
		if t.beside != "" {
			add(filepath.Join(filepath.Dir(session), t.beside))
		}
	}
	return names
}

// maxPath is longer than any path.
const maxPath = 64 << 10

// Title returns the title of a session, or "" if only its prompts tell it.
func (p Place) Title(session string) string {
	titles := p.program.titles
	if len(titles) == 0 {
		return ""
	}
	found := make([]string, len(titles))
	lines(session, func(line []byte) {
		for i, t := range titles {
			if t.kind == "" || !bytes.Contains(line[:min(len(line), head)], []byte(`"type":"`+t.kind+`"`)) {
				continue
			}
			var members map[string]any
			if json.Unmarshal(line, &members) == nil {
				found[i], _ = members[t.member].(string)
			}
		}
	})
	for i, t := range titles {
		if t.beside == "" {
			continue
		}
		lines(filepath.Join(filepath.Dir(session), t.beside), func(line []byte) {
			if value, ok := strings.CutPrefix(string(line), t.member+": "); ok {
				found[i] = strings.Trim(strings.TrimSpace(value), `"'`)
			}
		})
	}
	return cmp.Or(found...)
}

// head is in how many bytes of a line its type stands, and maxLine how long a line with a title is.
const head, maxLine = 64, 64 << 10

// lines calls f with the lines of a file, without those that are too long. A file that cannot be
// read has none: reading the session tells the fault.
func lines(path string, f func(line []byte)) {
	file, err := os.Open(path)
	if err != nil {
		return
	}
	defer file.Close()
	in := bufio.NewReaderSize(file, maxLine)
	for begins := true; ; {
		line, err := in.ReadSlice('\n')
		whole := begins && !errors.Is(err, bufio.ErrBufferFull)
		if whole && len(line) > 0 {
			f(line)
		}
		if begins = !errors.Is(err, bufio.ErrBufferFull); begins && err != nil {
			return
		}
	}
}

// A Store is where a program keeps sessions in a form that only other programs read.
type Store struct {
	Program string
	Path    string
	Files   int    // with sessions
	Advice  string // the way to read it
}

// Stores returns the stores on the machine of the programs with these words, or of all for none.
func (m Machine) Stores(words ...string) ([]Store, error) {
	const word = "opencode"
	if len(words) > 0 && !slices.Contains(words, word) {
		return nil, nil
	}
	i := slices.IndexFunc(programs[:], func(p program) bool { return p.word == word })
	base, err := m.base(&programs[i])
	if err != nil {
		return nil, err
	}
	database := filepath.Join(base, "opencode.db")
	if info, err := os.Stat(database); err == nil && info.Mode().IsRegular() {
		return []Store{{word, database, 1, "a database: 'opencode-rows --list' lists its sessions, " +
			"and 'opencode-rows > rows.jsonl' makes a file that every command reads"}}, nil
	}
	older := filepath.Join(base, "storage", "session")
	n := 0
	_ = fs.WalkDir(os.DirFS(older), ".", func(name string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() && strings.HasSuffix(name, ".json") {
			n++
		}
		return nil
	})
	if n == 0 {
		return nil, nil
	}
	return []Store{{word, older, n, "sessions of older versions: a newer opencode moves them into its database " +
		"when it starts, and 'opencode export' prints one"}}, nil
}
