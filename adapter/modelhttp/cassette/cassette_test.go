package cassette_test

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"

	ae "github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/adapter/modelhttp"
	"github.com/agentevents/agentevents/adapter/modelhttp/cassette"
	"github.com/agentevents/agentevents/adapter/modelhttp/internal/frames"
	"github.com/agentevents/agentevents/eventtest"
)

const key = "sk-ant-api03-0123456789abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-AA"

const stream = "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"msg_1\",\"model\":\"m-1\",\"usage\":{\"input_tokens\":9,\"output_tokens\":1}}}\n\n" +
	"event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"delta\":{\"type\":\"text_delta\",\"text\":\"Hi <b>\"}}\n\n" +
	"event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"output_tokens\":4}}\n\n" +
	"event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"

// provider gives the answers of its table, by the text that the request contains.
func provider(t *testing.T, answers map[string]http.HandlerFunc) *httptest.Server {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		for part, answer := range answers {
			if strings.Contains(r.URL.Path+string(text), part) {
				answer(w, r)
				return
			}
		}
		http.Error(w, "who are you?", http.StatusNotFound)
	}))
	t.Cleanup(s.Close)
	return s
}

func says(contentType, text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", contentType)
		w.Header().Set("Request-Id", "req_1")
		w.Header().Set("Retry-After", "60")
		w.Header().Set("Set-Cookie", "session="+key)
		fmt.Fprint(w, text)
	}
}

// An outcome is the answer that a client sees.
type outcome struct {
	status          int
	contentType, id string
	text            string
	err             string
}

func ask(ctx context.Context, c http.RoundTripper, url, body string) outcome {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		return outcome{err: err.Error()}
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer "+key)
	resp, err := (&http.Client{Transport: c}).Do(r)
	if err != nil {
		return outcome{err: strings.TrimPrefix(err.Error(), fmt.Sprintf("Post %q: ", url))}
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	o := outcome{status: resp.StatusCode, contentType: resp.Header.Get("Content-Type"), id: resp.Header.Get("Request-Id"), text: string(text)}
	if err != nil {
		o.err = err.Error()
	}
	return o
}

// A client sees the same when a cassette is recorded and when it is played.
func TestPlaysTheRecording(t *testing.T) {
	tries := 0
	server := provider(t, map[string]http.HandlerFunc{
		"stream": says("text/event-stream; charset=utf-8", stream),
		"crlf":   says("text/event-stream", strings.ReplaceAll(stream, "\n", "\r\n")),
		"lines":  says("application/x-ndjson", "{\"a\":1}\n{\"a\":2}"),
		"plain":  says("application/json", `{"id":"msg_1","text":"5 < 6"}`),
		"binary": says("audio/mpeg", "\xff\xfb\x90"),
		"empty":  func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) },
		"retry": func(w http.ResponseWriter, r *http.Request) {
			if tries++; tries == 1 {
				w.WriteHeader(http.StatusTooManyRequests)
				return
			}
			says("application/json", `{"tries":2}`)(w, r)
		},
		"broken": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprint(w, stream[:40])
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		},
		"zipped": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Encoding", "gzip") // the client's transport unpacks it
			z := gzip.NewWriter(w)
			fmt.Fprint(z, `{"zipped":true}`)
			z.Close()
		},
	})
	file := filepath.Join(t.TempDir(), "new", "tape.json")
	asked := []string{`{"q":"stream"}`, `{"q":"crlf"}`, `{"q":"lines"}`, `{"q":"plain"}`, `{"q":"binary"}`, `{"q":"empty"}`, `{"q":"retry"}`, `{"q":"retry"}`, `{"q":"broken"}`, `{"q":"zipped"}`, `unknown`, ``}
	tape := cassette.New(cassette.Options{})
	var live []outcome
	for _, body := range asked {
		live = append(live, ask(t.Context(), tape.Transport(nil), server.URL+"/v1/x?b=1", body))
	}
	require.Equal(t, outcome{200, "text/event-stream; charset=utf-8", "req_1", stream, ""}, live[0])
	require.Equal(t, 429, live[6].status)
	require.Equal(t, `{"tries":2}`, live[7].text)
	require.Equal(t, "unexpected EOF", live[8].err)
	require.NoError(t, tape.Save(file))
	server.Close()

	tape, err := cassette.Load(file, cassette.Options{})
	require.NoError(t, err)
	require.Len(t, tape.Unused(), len(asked))
	for i, body := range asked {
		spaced := strings.ReplaceAll(body, ":", " : ")
		require.Equal(t, live[i], ask(t.Context(), tape.Transport(nil), "http://elsewhere.invalid/v1/x?b=1", spaced), body)
	}
	require.Empty(t, tape.Unused())
	require.Empty(t, tape.Misses())

	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.NotContains(t, string(text), key, "headers are not kept")
	require.NotContains(t, string(text), "Retry-After")
	require.Contains(t, string(text), `"text": "5 < 6"`, "the file can be read")
}

// Credentials in requests and answers are masked in the file, and match nevertheless.
func TestMasks(t *testing.T) {
	server := provider(t, map[string]http.HandlerFunc{
		"deploy": says("application/json", `{"answer":"your key is `+key+`","max_tokens":5}`),
		"tell":   says("text/event-stream", "data: {\"text\":\"token "+key+"\"}\n\ndata: {\"more\":\"hunter22\"}\n\n"),
		"gone":   says("text/event-stream", "data: {}\n\n"),
	})
	secrets := new(ae.Secrets)
	require.NoError(t, secrets.Add("hunter22"))
	o := cassette.Options{Policy: &ae.Policy{Secrets: secrets}, Edit: func(r *cassette.Request) {
		r.JSON = bytes.ReplaceAll(r.JSON, []byte("Monday"), []byte("DAY"))
		r.JSON = bytes.ReplaceAll(r.JSON, []byte("Friday"), []byte("DAY"))
	}}
	file := filepath.Join(t.TempDir(), "tape.json")
	tape := cassette.New(o)
	first := `{"day":"Monday","prompt":"deploy with ` + key + `","max_tokens":64,"password":"hunter22"}`
	url := "/v1/x?key=" + key + "&alt=sse"
	ask(t.Context(), tape.Transport(nil), server.URL+url, first)
	ask(t.Context(), tape.Transport(nil), server.URL+url, `{"prompt":"tell"}`)
	require.NoError(t, tape.Save(file))
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	for _, secret := range []string{key, key[:20], "hunter22", "Monday"} {
		require.NotContains(t, string(text), secret)
	}
	require.Contains(t, string(text), `"max_tokens": 64`)

	tape, err = cassette.Load(file, o)
	require.NoError(t, err)
	got := ask(t.Context(), tape.Transport(nil), "http://elsewhere.invalid"+url, strings.ReplaceAll(first, "Monday", "Friday"))
	require.Equal(t, 200, got.status, got.err)
	require.Contains(t, got.text, "REDACTED")
	require.NotContains(t, ask(t.Context(), tape.Transport(nil), "http://x"+url, `{"prompt":"hunter22"}`).err, "hunter22", "an error is printed")
}

// A credential is masked wherever a request or an answer has it: in a field of a form, on the
// lines after its name, in a part of the path, in the code of a redirect.
func TestMasksEverywhere(t *testing.T) {
	const hidden, pem = "Qx7zkWm7Yt3bN9", "-----BEGIN PRIVATE" + " KEY-----\n"
	form := "--x7\r\nContent-Disposition: form-data; name=\"user\"\r\n\r\nbob\r\n--x7\r\nContent-Disposition: form-data; name=\"api_key\"\r\n\r\n" + hidden + "\r\n--x7--\r\n"
	server := provider(t, map[string]http.HandlerFunc{"v1": func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, "first\n", pem, hidden, "abcdefghijklmnopqrstuvwxyz\n", hidden, "abcdefghijklmnopqrstuvwxyz\n-----END\n")
	}})
	for _, c := range []struct{ url, body, want string }{
		{"/v1/upload", form, `"--x7\r\n",`},
		{"/v1/token/" + hidden + "/info", "", `"url": "/v1/token/[REDACTED:key]/info"`},
		{"/v1/api-keys/" + hidden + "?a=1", "", `"url": "/v1/api-keys/[REDACTED:key]?a=1"`},
		{"/v1/cb?code=" + hidden + "&state=x", "", `"url": "/v1/cb?code=[REDACTED:key]&state=x"`},
		{"/v1/x?deploy_key=prod:happy-cat|" + hidden, "", `"url": "/v1/x?deploy_key=[REDACTED:key]"`},
		{"/v1/x", `{"password":` + hidden, `{\"password\":[REDACTED:key]`},
		{"/v1/tokens/12345678/secrets/latest", "", `"url": "/v1/tokens/12345678/secrets/latest"`},
	} {
		file := filepath.Join(t.TempDir(), "tape.json")
		tape := cassette.New(cassette.Options{})
		require.Equal(t, 200, ask(t.Context(), tape.Transport(nil), server.URL+c.url, c.body).status)
		require.NoError(t, tape.Save(file))
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		require.NotContains(t, string(text), hidden, c.url)
		require.Contains(t, string(text), c.want)
		require.Contains(t, string(text), `"first\n",`, "the lines of the answer")

		tape, err = cassette.Load(file, cassette.Options{})
		require.NoError(t, err)
		require.Equal(t, 200, ask(t.Context(), tape.Transport(nil), "http://elsewhere.invalid"+c.url, c.body).status)
	}
}

// A packed answer that nobody can look into is not recorded: its credentials could not be masked.
func TestPacked(t *testing.T) {
	packed := func(encoding, text string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", encoding)
			_, _ = io.WriteString(w, text)
		}
	}
	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	fmt.Fprint(z, `{"text":"`+key+`"}`)
	require.NoError(t, z.Close())
	server := provider(t, map[string]http.HandlerFunc{"gzip": packed("gzip", zipped.String()), "br": packed("br", "\x0b\x02")})
	for name, want := range map[string]string{"gzip": "", "br": `cassette: FILE: call 1, POST /br: the answer is encoded as "br", which cannot be masked`} {
		file := filepath.Join(t.TempDir(), "tape.json")
		tape := cassette.New(cassette.Options{})
		got := ask(t.Context(), tape.Transport(&http.Transport{DisableCompression: true}), server.URL+"/"+name, "")
		require.Empty(t, got.err)
		err := tape.Save(file)
		if want != "" {
			require.EqualError(t, err, strings.ReplaceAll(want, "FILE", file))
			continue
		}
		require.NoError(t, err)
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		require.Contains(t, string(text), "REDACTED")
	}
}

// A connection that breaks is the same error again: the SDK of AWS looks for it.
func TestConnectionBreaks(t *testing.T) {
	server := provider(t, map[string]http.HandlerFunc{"": func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, "some")
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	}})
	file := filepath.Join(t.TempDir(), "tape.json")
	read := func(tape *cassette.Cassette) error {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL, nil)
		require.NoError(t, err)
		resp, err := tape.Transport(nil).RoundTrip(r)
		require.NoError(t, err)
		defer resp.Body.Close()
		_, err = io.ReadAll(resp.Body)
		return err
	}
	tape := cassette.New(cassette.Options{})
	require.ErrorIs(t, read(tape), io.ErrUnexpectedEOF)
	require.NoError(t, tape.Save(file))
	tape, err := cassette.Load(file, cassette.Options{})
	require.NoError(t, err)
	require.ErrorIs(t, read(tape), io.ErrUnexpectedEOF)
}

// framed returns frames of Bedrock.
func framed(t *testing.T, payloads ...string) (out string) {
	for _, payload := range payloads {
		f := frames.Frame{Header: map[string]string{frames.MessageType: "event", frames.EventType: "chunk"}, Payload: []byte(payload)}
		text, err := f.Append(nil)
		require.NoError(t, err)
		out += string(text)
	}
	return out
}

func wrapped(j string) string {
	return `{"bytes":"` + base64.StdEncoding.EncodeToString([]byte(j)) + `","p":"abc"}`
}

// A stream of frames is recorded frame by frame: its credentials are masked, also those in base64,
// and a client reads whole frames again. One that ends within a frame ends so again.
func TestFrames(t *testing.T) {
	whole := framed(t, `{"delta":{"text":"5 < 6"}}`, wrapped(`{"type":"message_stop","n":12345678901234567890}`), `plain`)
	empty, err := frames.Frame{}.Append(nil)
	require.NoError(t, err)
	begun := string(empty[:len(empty)-1])
	secret := framed(t, `{"delta":{"text":"your key is `+key+`"}}`, wrapped(`{"delta":{"text":"`+key+`"},"password":"Qx7zkWm7Yt3bN9"}`))
	for name, c := range map[string]struct {
		body, want, failed string
	}{
		"whole":     {body: whole, want: whole},
		"cut":       {body: whole + framed(t, "plain")[:50], want: whole + begun},
		"begun":     {body: whole[:5], want: begun},
		"secret":    {body: secret},
		"broken":    {body: strings.Replace(whole, "5 < 6", "5 > 6", 1), failed: "a frame of the stream is broken"},
		"binary":    {body: framed(t, "\xff\xfe"), failed: "a frame has a payload that is not a text, and cannot be masked"},
		"something": {body: framed(t, wrapped("api_key="+key)), failed: "the bytes of a frame are not an object of JSON, and cannot be masked"},
	} {
		t.Run(name, func(t *testing.T) {
			server := provider(t, map[string]http.HandlerFunc{"": says(frames.MediaType, c.body)})
			file := filepath.Join(t.TempDir(), "tape.json")
			tape := cassette.New(cassette.Options{})
			live := ask(t.Context(), tape.Transport(nil), server.URL+"/model/m/converse-stream", `{}`)
			require.Equal(t, c.body, live.text, "recording changes nothing")
			err := tape.Save(file)
			if c.failed != "" {
				require.ErrorContains(t, err, c.failed)
				return
			}
			require.NoError(t, err)
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			for _, hidden := range []string{key[:20], base64.StdEncoding.EncodeToString([]byte(key))[:20], "Qx7zkWm7Yt3bN9"} {
				require.NotContains(t, string(text), hidden)
			}
			tape, err = cassette.Load(file, cassette.Options{})
			require.NoError(t, err)
			played := ask(t.Context(), tape.Transport(nil), server.URL+"/model/m/converse-stream", `{}`)
			if c.want != "" {
				require.Equal(t, c.want, played.text)
				live.text = c.want
				require.Equal(t, live, played)
				return
			}
			var r frames.Reader
			var got []string
			require.NoError(t, r.Write([]byte(played.text), func(f frames.Frame) {
				require.Equal(t, "chunk", f.Header[frames.EventType])
				var chunk struct{ Bytes []byte }
				require.NoError(t, json.Unmarshal(f.Payload, &chunk))
				got = append(got, cmp.Or(string(chunk.Bytes), string(f.Payload)))
			}))
			require.Len(t, got, 2)
			for _, payload := range got {
				require.Contains(t, payload, "REDACTED")
				require.NotContains(t, payload, key[:20])
			}
		})
	}
}

func TestMiss(t *testing.T) {
	file := filepath.Join(t.TempDir(), "tape.json")
	require.NoError(t, os.WriteFile(file, []byte(`{"calls":[
		{"request":{"method":"POST","url":"/v1/messages","json":{"model":"m","temperature":0.2,"messages":[{"role":"user","content":"What is the weather in Paris?"}]}},"answer":{"status":200}},
		{"request":{"method":"POST","url":"/v1/messages","json":{"model":"m","messages":[{"role":"user","content":"Good night"}],"n":9007199254740993}},"answer":{"status":200}},
		{"request":{"method":"POST","url":"/v1/embeddings","text":["plain\n","text"]},"answer":{"status":200}}]}`), 0o666))
	for _, c := range []struct {
		name, url, body string
		after           []string
		want            string
	}{
		{"values", "/v1/messages", `{"model":"m2","messages":[{"role":"user","content":"What is the weather in Rome?"},{"role":"user"}]}`, nil,
			`cassette: FILE has no answer for POST /v1/messages; the nearest is call 1: ` +
				`/messages/0/content differs at character 24: asked "… weather in Rome?", recorded "… weather in Paris?"; ` +
				`/messages/1 is not recorded: {"role":"user"}; ` +
				`/model differs at character 2: asked "m2", recorded "m"; ` +
				`/temperature is not asked, recorded 0.2`},
		{"a big number", "/v1/messages", `{"model":"m","messages":[{"role":"user","content":"Good night"}],"n":9007199254740992}`, nil,
			`cassette: FILE has no answer for POST /v1/messages; the nearest is call 2: /n differs: asked 9007199254740992, recorded 9007199254740993`},
		{"again", "/v1/messages", `{"model":"m","messages":[{"role":"user","content":"Good night"}],"n":9007199254740993}`,
			[]string{`{"model":"m","messages":[{"role":"user","content":"Good night"}],"n":9007199254740993}`},
			`cassette: FILE has no answer for POST /v1/messages: call 2 is the same, and was played before`},
		{"another path", "/v2/embeddings", `plain` + "\n" + `text`, nil,
			`cassette: FILE has no answer for POST /v2/embeddings; the nearest is call 3: url differs at character 3: asked "/v2/embeddings", recorded "/v1/embeddings"`},
		{"another form", "/v1/embeddings", `[1]`, nil,
			`cassette: FILE has no answer for POST /v1/embeddings; the nearest is call 3: body differs: asked [1], recorded "plain\ntext"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			tape, err := cassette.Load(file, cassette.Options{})
			require.NoError(t, err)
			for _, body := range c.after {
				require.Equal(t, 200, ask(t.Context(), tape.Transport(nil), "http://x"+c.url, body).status)
			}
			for range 3 { // as an SDK does
				r := httptest.NewRequest(http.MethodPost, c.url, strings.NewReader(c.body))
				resp, err := tape.Middleware(r, nil)
				require.Nil(t, resp)
				var miss *cassette.MissError
				require.ErrorAs(t, err, &miss)
				require.Equal(t, strings.ReplaceAll(c.want, "FILE", file), err.Error())
			}
			require.Len(t, tape.Misses(), 1)
		})
	}
	require.NoError(t, os.WriteFile(file, []byte(`{"calls":[]}`), 0o666))
	tape, err := cassette.Load(file, cassette.Options{})
	require.NoError(t, err)
	_, err = tape.Middleware(httptest.NewRequest(http.MethodGet, "/v1/models", nil), nil)
	require.EqualError(t, err, "cassette: "+file+" has no answer for GET /v1/models: there are no calls at all")
}

// An answer that the client cuts off is cut off when it is played.
func TestCut(t *testing.T) {
	release := make(chan struct{})
	server := provider(t, map[string]http.HandlerFunc{
		"hang": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, "data: 1\n\n")
			w.(http.Flusher).Flush()
			select {
			case <-release:
			case <-r.Context().Done():
			}
		},
		"never": func(_ http.ResponseWriter, r *http.Request) {
			select {
			case <-release:
			case <-r.Context().Done():
			}
		},
	})
	defer close(release)
	// client reads a piece, cancels or closes, and returns how its next read fails.
	client := func(tape *cassette.Cassette, path string, cancels bool) error {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, server.URL+path, nil)
		require.NoError(t, err)
		if path == "/never" {
			go cancel()
		}
		resp, err := tape.Transport(nil).RoundTrip(r)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		piece := make([]byte, 100)
		n, err := resp.Body.Read(piece)
		require.NoError(t, err)
		require.Equal(t, "data: 1\n\n", string(piece[:n]))
		if !cancels {
			return nil
		}
		go cancel()
		_, err = resp.Body.Read(piece)
		return err
	}
	file := filepath.Join(t.TempDir(), "tape.json")
	tape := cassette.New(cassette.Options{})
	require.ErrorIs(t, client(tape, "/hang", true), context.Canceled)
	require.ErrorIs(t, client(tape, "/never", true), context.Canceled)
	require.NoError(t, client(tape, "/hang", false))
	require.NoError(t, tape.Save(file))

	tape, err := cassette.Load(file, cassette.Options{})
	require.NoError(t, err)
	require.ErrorIs(t, client(tape, "/hang", true), context.Canceled)
	require.ErrorIs(t, client(tape, "/never", true), context.Canceled)
	got := ask(t.Context(), tape.Transport(nil), server.URL+"/hang", "")
	require.Equal(t, "data: 1\n\n", got.text)
	require.Equal(t, "cassette: the recorded answer ends here, where its client closed it", got.err)
}

// The model calls of a played cassette are recorded like the provider's.
func TestModelCalls(t *testing.T) {
	server := provider(t, map[string]http.HandlerFunc{"stream": says("text/event-stream", stream)})
	record := func(t *testing.T, tape *cassette.Cassette) []string {
		em, rec := eventtest.RecordWith(t, ae.EmitterOptions{Lifecycle: ae.LifecycleDerived})
		run, err := em.Run("r")
		require.NoError(t, err)
		a := run.Agent("a")
		require.NoError(t, a.Emit(t.Context(), &ae.AgentStarted{}))
		ctx := ae.ContextWithAgent(t.Context(), a)
		got := ask(ctx, new(modelhttp.Recorder).Transport(tape.Transport(nil)), server.URL+"/v1/messages", `{"model":"m","q":"stream"}`)
		require.Equal(t, stream, got.text)
		var lines []string
		for _, ev := range rec.Events() {
			text, err := ev.MarshalJSON()
			require.NoError(t, err)
			lines = append(lines, string(text))
		}
		return lines
	}
	file := filepath.Join(t.TempDir(), "tape.json")
	var live []string
	t.Run("record", func(t *testing.T) {
		live = record(t, cassette.Open(t, file, cassette.Options{Record: true}))
	})
	server.CloseClientConnections()
	t.Run("play", func(t *testing.T) {
		require.Equal(t, live, record(t, cassette.Open(t, file, cassette.Options{})))
	})
	require.Len(t, live, 3)
	require.Contains(t, live[2], `"inputTokens":9,"outputTokens":4`)
}

func TestConcurrent(t *testing.T) {
	server := provider(t, map[string]http.HandlerFunc{"q": func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, r.URL.Query().Get("n"))
	}})
	file := filepath.Join(t.TempDir(), "tape.json")
	all := func(tape *cassette.Cassette) {
		var wg sync.WaitGroup
		for i := range 32 {
			wg.Go(func() {
				got := ask(t.Context(), tape.Transport(nil), fmt.Sprintf("%s/q?n=%d", server.URL, i), "same")
				if got.text != fmt.Sprint(i) {
					t.Errorf("%d: %+v", i, got)
				}
			})
		}
		wg.Wait()
	}
	tape := cassette.New(cassette.Options{})
	all(tape)
	require.NoError(t, tape.Save(file))
	tape, err := cassette.Load(file, cassette.Options{})
	require.NoError(t, err)
	all(tape)
}

// A request whose body cannot be read is not sent.
func TestBrokenRequest(t *testing.T) {
	broken := errors.New("the disk is gone")
	tape := cassette.New(cassette.Options{})
	r := httptest.NewRequest(http.MethodPost, "/", iotest.ErrReader(broken))
	_, err := tape.Middleware(r, func(*http.Request) (*http.Response, error) {
		t.Error("it is sent")
		return nil, nil
	})
	require.ErrorIs(t, err, broken)
}

func TestLoad(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"no JSON":   {`calls`, "cassette: FILE: invalid character 'c' looking for beginning of value"},
		"unknown":   {`{"calls":[],"tape":1}`, `cassette: FILE: json: unknown field "tape"`},
		"no method": {`{"calls":[{"request":{},"answer":{"status":200}}]}`, "cassette: FILE: call 1 has no method, or neither status, error nor cut"},
		"no answer": {`{"calls":[{"request":{"method":"GET","url":"/"},"answer":{}}]}`, "cassette: FILE: call 1 has no method, or neither status, error nor cut"},
		"bad frame": {`{"calls":[{"request":{"method":"GET","url":"/"},"answer":{"status":200,"frames":[{"header":{"` + strings.Repeat("x", 300) + `":""}}]}}]}`, `cassette: FILE: call 1, frame 1: the header "` + strings.Repeat("x", 40) + `" of a frame is too long`},
		"null":      {`{"calls":[null]}`, "cassette: FILE: call 1 has no method, or neither status, error nor cut"},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "tape.json")
			require.NoError(t, os.WriteFile(file, []byte(c.text), 0o666))
			_, err := cassette.Load(file, cassette.Options{})
			require.EqualError(t, err, strings.ReplaceAll(c.want, "FILE", file))
		})
	}
	_, err := cassette.Load("none.json", cassette.Options{})
	require.ErrorIs(t, err, os.ErrNotExist)
}

// A test is a testing.TB that keeps its messages.
type test struct {
	testing.TB
	failed  bool
	said    []string
	cleanup []func()
}

func (t *test) Helper()          {}
func (t *test) Cleanup(f func()) { t.cleanup = append(t.cleanup, f) }
func (t *test) Failed() bool     { return t.failed }
func (t *test) Error(args ...any) {
	t.failed, t.said = true, append(t.said, fmt.Sprint(args...))
}
func (t *test) Errorf(format string, args ...any) { t.Error(fmt.Sprintf(format, args...)) }
func (t *test) Logf(format string, args ...any) {
	t.said = append(t.said, fmt.Sprintf(format, args...))
}
func (t *test) end() []string {
	for _, f := range t.cleanup {
		f()
	}
	return t.said
}

func TestOpen(t *testing.T) {
	server := provider(t, map[string]http.HandlerFunc{"q": says("text/plain", "yes")})
	file := filepath.Join(t.TempDir(), "tape.json")

	failing := &test{failed: true}
	cassette.Open(failing, file, cassette.Options{Record: true})
	require.Equal(t, []string{"cassette: " + file + " is not written, as the test failed"}, failing.end())
	require.NoFileExists(t, file)

	recording := &test{}
	tape := cassette.Open(recording, file, cassette.Options{Record: true})
	ask(t.Context(), tape.Transport(nil), server.URL+"/q", "1")
	ask(t.Context(), tape.Transport(nil), server.URL+"/q", "2")
	require.Empty(t, recording.end())

	playing := &test{}
	tape = cassette.Open(playing, file, cassette.Options{})
	require.Equal(t, "yes", ask(t.Context(), tape.Transport(nil), server.URL+"/q", "2").text)
	require.Equal(t, []string{"cassette: " + file + ": call 1 was not made: POST /q"}, playing.end())

	missing := &test{}
	tape = cassette.Open(missing, file, cassette.Options{})
	ask(t.Context(), tape.Transport(nil), server.URL+"/q", "3")
	require.Equal(t, []string{"cassette: " + file + ` has no answer for POST /q; the nearest is call 1: body differs: asked 3, recorded 1`}, missing.end())
}
