package main

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestModel asks in all four protocols, streamed and whole: the answers have the script's texts and
// the calls of its tools, and requests without tools take none of them.
func TestModel(t *testing.T) {
	for _, c := range []struct{ path, stream, body string }{
		{"/v1/messages", "/v1/messages", `{"model":"m","stream":STREAM,"tools":[{}]}`},
		{"/v1/responses", "/v1/responses", `{"model":"m","stream":STREAM,"tools":[{}]}`},
		{"/v1/chat/completions", "/v1/chat/completions", `{"model":"m","stream":STREAM,"tools":[{}]}`},
		{"/v1beta/models/m:generateContent", "/v1beta/models/m:streamGenerateContent", `{"tools":[{}]}`},
	} {
		m := &model{replies: []reply{{think: "THOUGHT", text: "TEXT", calls: []call{called("TOOL", "command", "ARGUMENT")}}, {text: "LAST"}}, others: map[string]bool{}}
		server := httptest.NewServer(m)
		ask := func(path, body string) string {
			t.Helper()
			resp, err := http.Post(server.URL+path, "application/json", strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			text, err := io.ReadAll(resp.Body)
			if err != nil || resp.StatusCode != http.StatusOK {
				t.Fatal(path, resp.Status, err)
			}
			return string(text)
		}
		body := func(stream string) string { return strings.Replace(c.body, "STREAM", stream, 1) }
		aside := ask(c.path, strings.Replace(body("false"), `{}`, ``, 1))
		if !strings.Contains(aside, "An aside") {
			t.Errorf("%s: %s", c.path, aside)
		}
		streamed := ask(c.stream, body("true"))
		for _, word := range []string{"THOUGHT", "TEXT", "TOOL", "ARGUMENT", "1000", "100", "11"} {
			if c.path == "/v1/messages" && word == "1000" {
				word = "900" // without the cached tokens
			}
			if strings.HasPrefix(c.path, "/v1beta") && word == "11" {
				word = "1011"
			}
			if !strings.Contains(streamed, word) {
				t.Errorf("%s: no %s in %s", c.path, word, streamed)
			}
		}
		for line := range strings.Lines(streamed) {
			if data, ok := strings.CutPrefix(strings.TrimSpace(line), "data: "); ok && data != "[DONE]" && !json.Valid([]byte(data)) {
				t.Errorf("%s: %s", c.path, data)
			}
		}
		if whole := ask(c.path, body("false")); !strings.Contains(whole, "LAST") || !json.Valid([]byte(whole)) {
			t.Errorf("%s: %s", c.path, whole)
		}
		if over := ask(c.path, body("false")); !strings.Contains(over, "The script is over.") {
			t.Errorf("%s: %s", c.path, over)
		}
		if m.answered != 3 || m.asides != 1 {
			t.Errorf("%s: %d answers, %d asides", c.path, m.answered, m.asides)
		}
		ask("/v1/models", "")
		if !m.others["POST /v1/models"] {
			t.Error(m.others)
		}
		server.Close()
	}
}

// TestPrograms has the table name all that a run needs.
func TestPrograms(t *testing.T) {
	for name, p := range programs {
		if len(p.packages("1.2.3")) == 0 || !strings.Contains(p.packages("1.2.3")[0], "@1.2.3") || len(p.entry) == 0 || len(p.stores) == 0 {
			t.Error(name)
		}
		first, again := strings.Join(p.args("PROMPT", false), " "), strings.Join(p.args("PROMPT", true), " ")
		if !strings.Contains(first, "PROMPT") || !strings.Contains(again, "PROMPT") || first == again {
			t.Errorf("%s: %s; %s", name, first, again)
		}
		for _, s := range scenarios {
			if len(s.replies(&p, "/repo")) < len(s.prompts) {
				t.Errorf("%s %s: fewer answers than prompts", name, s.name)
			}
		}
		if _, err := p.command(t.TempDir()); err == nil {
			t.Errorf("%s is found in an empty folder", name)
		}
	}
}
