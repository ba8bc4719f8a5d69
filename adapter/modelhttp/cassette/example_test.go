package cassette_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/agentevents/agentevents/adapter/modelhttp/cassette"
)

// A program plays the recording of a test. A test itself calls Open.
func ExampleLoad() {
	tape, err := cassette.Load("testdata/weather.json", cassette.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	client := &http.Client{Transport: tape.Transport(nil)}
	ask := func(city string) {
		body := `{"model": "claude-sonnet", "messages": [{"role": "user", "content": "Is it warm in ` + city + `?"}]}`
		answer, err := client.Post("https://api.anthropic.com/v1/messages", "application/json", strings.NewReader(body))
		if err != nil {
			fmt.Println(err)
			return
		}
		defer answer.Body.Close()
		text, _ := io.ReadAll(answer.Body)
		fmt.Println(string(text))
	}
	ask("Rome")
	ask("Oslo")
	// Output:
	// {"id":"msg_1","content":[{"type":"text","text":"Yes."}]}
	// Post "https://api.anthropic.com/v1/messages": cassette: testdata/weather.json has no answer for POST /v1/messages; the nearest is call 1, which was played before: /messages/0/content differs at character 15: asked "… it warm in Oslo?", recorded "… it warm in Rome?"
}
