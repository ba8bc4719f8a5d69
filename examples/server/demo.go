package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"strings"
	"sync"

	ae "github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/tree"
)

// demo is a client of the server: it starts runs, follows each, answers its questions, and prints
// the outcome.
func demo(ctx context.Context, out io.Writer, url string, n int) error {
	defer http.DefaultClient.CloseIdleConnections() // or the server waits for them
	say := log.New(out, "", 0)
	errs := make([]error, n)
	snapshots := make([]*ae.RunSnapshot, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { snapshots[i], errs[i] = visit(ctx, say, url, i) })
	}
	wg.Wait()
	for i, s := range snapshots {
		if errs[i] != nil {
			return errs[i]
		}
		if i == 0 {
			if err := tree.Write(out, s, tree.Options{}); err != nil {
				return err
			}
		}
		say.Printf("run %d: %s, %d events, %d violations, $%.4f",
			i+1, s.Status, s.NextSequence, s.ViolationCount, s.Usage.CostUSD.V)
	}
	return nil
}

// visit starts a run and stays until it is over. Of four runs the first gets its approval, the
// second is refused it, the third has too small a budget, the fourth is cancelled.
func visit(ctx context.Context, say *log.Logger, url string, i int) (*ae.RunSnapshot, error) {
	budget := []float64{1, 1, 0.003, 1}[i%4]
	var started row
	if err := call(ctx, "POST", url+"/runs", inputs{"Release 1.4.0", budget}, &started); err != nil {
		return nil, err
	}
	run := url + "/runs/" + started.RunID
	body, err := send(ctx, "GET", run+"/events?kind=approval.requested", nil)
	if err != nil {
		return nil, err
	}
	defer body.Close()
	for lines := bufio.NewScanner(body); lines.Scan(); {
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		var ev ae.Event
		if !ok || ev.UnmarshalJSON([]byte(data)) != nil {
			continue // a heartbeat, or an event about the stream
		}
		asked, ok := ev.Payload.(*ae.ApprovalRequested)
		switch {
		case !ok:
		case i%4 == 3:
			say.Printf("run %d asks to %s: cancel it", i+1, asked.Action)
			err = call(ctx, "POST", run+"/cancel", nil, nil)
		default:
			say.Printf("run %d asks to %s: granted is %v", i+1, asked.Action, i%4 == 0)
			err = call(ctx, "POST", run+"/approvals/"+asked.ApprovalID, map[string]any{"granted": i%4 == 0, "by": "ada"}, nil)
		}
		if err != nil {
			return nil, err
		}
	}
	var s ae.RunSnapshot
	return &s, call(ctx, "GET", run, nil, &s)
}

// call sends a request and reads the answer into a value, unless it is nil.
func call(ctx context.Context, method, url string, in, into any) error {
	body, err := send(ctx, method, url, in)
	if err != nil {
		return err
	}
	defer body.Close()
	if into == nil {
		return nil
	}
	return json.NewDecoder(body).Decode(into)
}

// send sends a request and returns the body of the answer.
func send(ctx context.Context, method, url string, in any) (io.ReadCloser, error) {
	text, err := json.Marshal(in)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode < 300 {
		return resp.Body, nil
	}
	why, _ := io.ReadAll(resp.Body)
	return nil, errors.Join(fmt.Errorf("%s %s: %s: %s", method, url, resp.Status, bytes.TrimSpace(why)), resp.Body.Close())
}
