// Command genhome writes a home folder with many sessions of five agent programs, to measure
// commands that list them:
//
//	go run ./internal/genhome -sessions 2000 -size 1000000000 /tmp/home
//	HOME=/tmp/home agentevents sessions
//
// It prints the sums that a reader should come to: sessions, calls of models, tokens and bytes. The files
// have changed an hour ago.
package main

import (
	"bufio"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/agentevents/agentevents/internal/disk"
)

func main() {
	sessions := flag.Int("sessions", 2000, "number of sessions")
	size := flag.Int("size", 1e9, "bytes of all files, about")
	flag.Parse()
	sums, err := write(flag.Arg(0), *sessions, *size)
	if err == nil {
		err = json.NewEncoder(os.Stdout).Encode(sums)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "genhome:", err)
		os.Exit(1)
	}
}

// Sums are the right answer about a home folder.
type Sums struct {
	Sessions   int
	ModelCalls int
	Input      int // without the tokens of the cache
	CacheRead  int
	Output     int // with the reasoning
	Bytes      int
}

// A call of a model has the same tokens in all sessions. The templates have them as their
// programs count them.
const callInput, callRead, callOutput, callsInTurn = 900, 100, 11, 2

// A format is the form of a program's sessions: the file, and templates for its lines. A word in
// braces is replaced: ID of the session, uuid N of the turn, LAST uuid of the turn before, TURN, time
// T, MS the same in milliseconds, TOTAL input so far, and the TEXT of a tool.
type format struct{ file, begin, turn string }

const claudeTail = `"timestamp":"{T}","cwd":"/home/dev/repo","sessionId":"{ID}","version":"2.1.328"}` + "\n"

const qwenHead = `"sessionId":"{ID}","timestamp":"{T}","cwd":"/home/dev/repo","version":"0.24.4","gitBranch":"main",`

const qwenUsage = `"usageMetadata":{"promptTokenCount":1000,"candidatesTokenCount":11,"thoughtsTokenCount":1,"totalTokenCount":1011,"cachedContentTokenCount":100}}` + "\n"

const claudeUsage = `"usage":{"input_tokens":900,"output_tokens":11,"cache_read_input_tokens":100,"cache_creation_input_tokens":0}},`

const piUsage = `"api":"openai-completions","provider":"demo","model":"demo-model","usage":{"input":900,"output":11,"cacheRead":100,"cacheWrite":0,"totalTokens":1011,"cost":{"input":0.0009,"output":0.00011,"cacheRead":0.00001,"cacheWrite":0,"total":0.00102}},`

const geminiUsage = `"tokens":{"input":1000,"output":10,"cached":100,"thoughts":1,"tool":0,"total":1011},"model":"gemini-2.5-pro"`

const codexUsage = `{"timestamp":"{T}","type":"event_msg","payload":{"type":"token_count","info":{"total_token_usage":{"input_tokens":{TOTAL},"cached_input_tokens":{TOTALREAD},"output_tokens":{TOTALOUT},"reasoning_output_tokens":0,"total_tokens":0},"last_token_usage":{"input_tokens":1000,"cached_input_tokens":100,"output_tokens":11,"reasoning_output_tokens":1,"total_tokens":1011}},"rate_limits":null}}` + "\n"

var formats = []format{
	{
		file: ".claude/projects/-home-dev-repo/{ID}.jsonl",
		turn: `{"parentUuid":{LAST},"isSidechain":false,"type":"user","message":{"role":"user","content":"Prompt {TURN} of {ID}"},"uuid":"{1}",` + claudeTail +
			`{"parentUuid":"{1}","isSidechain":false,"type":"assistant","message":{"id":"msg_{2}","type":"message","role":"assistant","model":"claude-opus-5-5","content":[{"type":"tool_use","id":"toolu_{2}","name":"Bash","input":{"command":"make"}}],"stop_reason":"tool_use",` + claudeUsage + `"requestId":"req_{2}","uuid":"{2}",` + claudeTail +
			`{"parentUuid":"{2}","isSidechain":false,"type":"user","message":{"role":"user","content":[{"tool_use_id":"toolu_{2}","type":"tool_result","content":"{TEXT}","is_error":false}]},"uuid":"{3}",` + claudeTail +
			`{"parentUuid":"{3}","isSidechain":false,"type":"assistant","message":{"id":"msg_{4}","type":"message","role":"assistant","model":"claude-opus-5-5","content":[{"type":"text","text":"Done {TURN}."}],"stop_reason":"end_turn",` + claudeUsage + `"requestId":"req_{4}","uuid":"{4}",` + claudeTail,
	},
	{
		file:  ".codex/sessions/2026/11/28/rollout-2026-11-28T11-00-00-{ID}.jsonl",
		begin: `{"timestamp":"{T}","type":"session_meta","payload":{"id":"{ID}","timestamp":"{T}","cwd":"/home/dev/repo","originator":"codex_exec","cli_version":"0.169.0","source":"exec","model_provider":"x"}}` + "\n",
		turn: `{"timestamp":"{T}","type":"event_msg","payload":{"type":"task_started","turn_id":"{1}","model_context_window":258400}}` + "\n" +
			`{"timestamp":"{T}","type":"turn_context","payload":{"turn_id":"{1}","cwd":"/home/dev/repo","approval_policy":"never","model":"gpt-5.5-codex","summary":"none"}}` + "\n" +
			`{"timestamp":"{T}","type":"event_msg","payload":{"type":"user_message","message":"Prompt {TURN} of {ID}"}}` + "\n" +
			`{"timestamp":"{T}","type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"Prompt {TURN} of {ID}"}]}}` + "\n" +
			`{"timestamp":"{T}","type":"response_item","payload":{"type":"function_call","name":"exec_command","arguments":"{\"cmd\":\"make\"}","call_id":"call_{2}"}}` + "\n" +
			strings.NewReplacer("{TOTAL}", "{TOTAL1}", "{TOTALREAD}", "{TOTALREAD1}", "{TOTALOUT}", "{TOTALOUT1}").Replace(codexUsage) +
			`{"timestamp":"{T}","type":"response_item","payload":{"type":"function_call_output","call_id":"call_{2}","output":"Wall time: 0.0000 seconds\nProcess exited with code 0\nOutput:\n{TEXT}"}}` + "\n" +
			`{"timestamp":"{T}","type":"response_item","payload":{"type":"message","role":"assistant","content":[{"type":"output_text","text":"Done {TURN}."}]}}` + "\n" +
			strings.NewReplacer("{TOTAL}", "{TOTAL2}", "{TOTALREAD}", "{TOTALREAD2}", "{TOTALOUT}", "{TOTALOUT2}").Replace(codexUsage) +
			`{"timestamp":"{T}","type":"event_msg","payload":{"type":"task_complete","turn_id":"{1}","last_agent_message":"Done {TURN}."}}` + "\n",
	},
	{
		file:  ".gemini/tmp/repo/chats/session-2026-11-28T11-00-{ID}.jsonl",
		begin: `{"sessionId":"{ID}","projectHash":"d68a","startTime":"{T}","lastUpdated":"{T}","kind":"main"}` + "\n",
		turn: `{"id":"{1}","timestamp":"{T}","type":"user","content":[{"text":"Prompt {TURN} of {ID}"}]}` + "\n" +
			`{"id":"{2}","timestamp":"{T}","type":"gemini","content":"",` + geminiUsage + `}` + "\n" +
			`{"id":"{2}","timestamp":"{T}","type":"gemini","content":"",` + geminiUsage + `,"toolCalls":[{"id":"shell__{2}","name":"run_shell_command","args":{"command":"make"},"result":[{"functionResponse":{"id":"shell__{2}","name":"run_shell_command","response":{"output":"{TEXT}"}}}],"status":"success","timestamp":"{T}","resultDisplay":"","description":"make","displayName":"Shell"}]}` + "\n" +
			`{"id":"{3}","timestamp":"{T}","type":"user","content":[{"functionResponse":{"id":"shell__{2}","name":"run_shell_command","response":{"output":"{TEXT}"}}}]}` + "\n" +
			`{"id":"{4}","timestamp":"{T}","type":"gemini","content":"Done {TURN}.",` + geminiUsage + `}` + "\n" +
			`{"$set":{"lastUpdated":"{T}"}}` + "\n",
	},
	{
		file: ".pi/agent/sessions/--home-dev-repo--/2026-11-28T11-00-00-000Z_{ID}.jsonl",
		begin: `{"type":"session","version":3,"id":"{ID}","timestamp":"{T}","cwd":"/home/dev/repo"}` + "\n" +
			`{"type":"model_change","id":"00000001","parentId":null,"timestamp":"{T}","provider":"demo","modelId":"demo-model"}` + "\n",
		turn: `{"type":"message","id":"{1}","parentId":{LAST},"timestamp":"{T}","message":{"role":"user","content":[{"type":"text","text":"Prompt {TURN} of {ID}"}],"timestamp":{MS}}}` + "\n" +
			`{"type":"message","id":"{2}","parentId":"{1}","timestamp":"{T}","message":{"role":"assistant","content":[{"type":"toolCall","id":"call_{2}","name":"bash","arguments":{"command":"make"}}],` + piUsage + `"stopReason":"toolUse","timestamp":{MS},"responseId":"r{2}"}}` + "\n" +
			`{"type":"message","id":"{3}","parentId":"{2}","timestamp":"{T}","message":{"role":"toolResult","toolCallId":"call_{2}","toolName":"bash","content":[{"type":"text","text":"{TEXT}"}],"isError":false,"timestamp":{MS}}}` + "\n" +
			`{"type":"message","id":"{4}","parentId":"{3}","timestamp":"{T}","message":{"role":"assistant","content":[{"type":"text","text":"Done {TURN}."}],` + piUsage + `"stopReason":"stop","timestamp":{MS},"responseId":"r{4}"}}` + "\n",
	},
	{
		file: ".qwen/projects/-home-dev-repo/chats/{ID}.jsonl",
		turn: `{"uuid":"{1}","parentUuid":{LAST},` + qwenHead + `"type":"user","provenance":"real_user","message":{"role":"user","parts":[{"text":"Prompt {TURN} of {ID}"}]}}` + "\n" +
			`{"uuid":"{2}","parentUuid":"{1}",` + qwenHead + `"type":"assistant","provenance":"assistant_output","model":"demo-model","message":{"role":"model","parts":[{"functionCall":{"id":"call_{2}","name":"run_shell_command","args":{"command":"make"}}}]},` + qwenUsage +
			`{"uuid":"{3}","parentUuid":"{2}",` + qwenHead + `"type":"tool_result","provenance":"tool_result","message":{"role":"user","parts":[{"functionResponse":{"id":"call_{2}","name":"run_shell_command","response":{"output":"{TEXT}"}}}]},"toolCallResult":{"callId":"call_{2}","status":"success","executionStatus":"success"}}` + "\n" +
			`{"uuid":"{4}","parentUuid":"{3}",` + qwenHead + `"type":"assistant","provenance":"assistant_output","model":"demo-model","message":{"role":"model","parts":[{"text":"Done {TURN}."}]},` + qwenUsage,
	},
}

// write writes the home folder.
func write(dir string, sessions, size int) (*Sums, error) {
	if dir == "" || sessions < 1 {
		return nil, errors.New("name a folder, and at least one session")
	}
	sums := &Sums{Sessions: sessions}
	for i := range sessions {
		if err := session(dir, i, size/sessions, sums); err != nil {
			return nil, err
		}
	}
	sums.Input, sums.CacheRead, sums.Output = callInput*sums.ModelCalls, callRead*sums.ModelCalls, callOutput*sums.ModelCalls
	return sums, nil
}

// session writes the session of a number, of about so many bytes.
func session(dir string, number, size int, sums *Sums) error {
	f := formats[number%len(formats)]
	id := made("session", number)
	path := filepath.Join(dir, filepath.FromSlash(strings.ReplaceAll(f.file, "{ID}", id)))
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	file, err := disk.Create(path)
	if err != nil {
		return err
	}
	out := bufio.NewWriter(file)
	at := time.Date(2026, 11, 28, 11, 0, 0, 0, time.UTC).Add(time.Duration(number) * time.Minute)
	last, wrote := "null", 0
	for turn := 0; turn == 0 || wrote < size; turn++ {
		at = at.Add(time.Second)
		words := []string{"{ID}", id, "{T}", at.Format("2006-01-02T15:04:05.000Z"), "{MS}", strconv.FormatInt(at.UnixMilli(), 10), "{TURN}", strconv.Itoa(turn), "{LAST}", last, "{TEXT}", output(number + turn)}
		for n := 1; n <= 4; n++ {
			words = append(words, fmt.Sprintf("{%d}", n), made(id, turn, n))
		}
		for call := 1; call <= callsInTurn; call++ {
			so := turn*callsInTurn + call
			words = append(words, fmt.Sprintf("{TOTAL%d}", call), strconv.Itoa(so*(callInput+callRead)), fmt.Sprintf("{TOTALREAD%d}", call), strconv.Itoa(so*callRead), fmt.Sprintf("{TOTALOUT%d}", call), strconv.Itoa(so*callOutput))
		}
		text := f.turn
		if turn == 0 {
			text = f.begin + text
		}
		n, err := strings.NewReplacer(words...).WriteString(out, text)
		if err != nil {
			return errors.Join(err, file.Close())
		}
		last = strconv.Quote(made(id, turn, 4))
		wrote += n
		sums.ModelCalls += callsInTurn
	}
	sums.Bytes += wrote
	if err := errors.Join(out.Flush(), file.Close()); err != nil {
		return err
	}
	before := time.Now().Add(-time.Hour)
	return os.Chtimes(path, before, before)
}

// made returns an id made of its parts, in the form of a UUID.
func made(parts ...any) string {
	sum := sha256.Sum256([]byte(fmt.Sprint(parts...)))
	return fmt.Sprintf("%x-%x-%x-%x-%x", sum[:4], sum[4:6], sum[6:8], sum[8:10], sum[10:16])
}

// output is the text that a tool prints: lines of a build, 1 to 16 kB, as they stand in JSON.
func output(n int) string {
	var b strings.Builder
	for line := range 20 << (n % 5) {
		fmt.Fprintf(&b, `go: building package %d of internal/part%d\n`, line, n)
	}
	return b.String()
}
