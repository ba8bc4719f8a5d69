package cassette

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/agentevents/agentevents/internal/jsonwire"
	"github.com/agentevents/agentevents/internal/textdiff"
)

// A MissError is a request that no recorded call answers. Its quotations are masked.
type MissError struct {
	File        string   // of the cassette
	Request     Request  // the request
	Nearest     int      // the number of the recorded call that is most like it, from 1; 0 if there is none
	Played      bool     // the nearest was played before
	Differences []string // between the nearest call and the request; none if they are the same
}

// Error names the request and the nearest call.
func (e *MissError) Error() string {
	const most = 5
	text := fmt.Sprintf("cassette: %s has no answer for %s", e.File, e.Request.brief())
	switch {
	case e.Nearest == 0:
		return text + ": there are no calls at all"
	case len(e.Differences) == 0:
		return fmt.Sprintf("%s: call %d is the same, and was played before", text, e.Nearest)
	}
	text += fmt.Sprintf("; the nearest is call %d", e.Nearest)
	if e.Played {
		text += ", which was played before"
	}
	text += ": " + strings.Join(e.Differences[:min(most, len(e.Differences))], "; ")
	if more := len(e.Differences) - most; more > 0 {
		text += fmt.Sprintf("; and %d more", more)
	}
	return text
}

func (r Request) brief() string { return r.Method + " " + r.URL }

// play answers a request.
func (c *Cassette) play(r *http.Request, asked Request) (*http.Response, error) {
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	whole, err := c.masked(Call{Request: asked})
	if err != nil {
		return nil, fmt.Errorf("cassette: %s: %w", c.file, err)
	}
	a, err := c.take(whole.Request)
	switch {
	case err != nil:
		return nil, err
	case a.Status == 0 && a.Cut == cutCancelled:
		<-r.Context().Done()
		return nil, r.Context().Err()
	case a.Status == 0:
		return nil, a.end()
	}
	body := &playing{ctx: r.Context(), end: a, pieces: a.pieces()}
	resp := &http.Response{
		Status: strconv.Itoa(a.Status) + " " + http.StatusText(a.Status), StatusCode: a.Status,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{}, Body: body, ContentLength: -1, Request: r,
	}
	for name, value := range a.Header {
		resp.Header.Set(name, value)
	}
	if a.Status >= http.StatusBadRequest {
		resp.Header.Set("Retry-After-Ms", "0") // the SDKs know it
	}
	return resp, nil
}

// end returns the error that follows the recorded part of the response.
func (a Answer) end() error {
	switch {
	case a.Error == io.ErrUnexpectedEOF.Error():
		return io.ErrUnexpectedEOF // of a connection that has broken; clients look for it
	case a.Error != "":
		return errors.New(a.Error)
	case a.Cut == cutClosed:
		return errors.New("cassette: the recorded answer ends here, where its client closed it")
	}
	return io.EOF
}

// pieces returns the parts of the body in the order in which they are read.
func (b Body) pieces() [][]byte {
	switch {
	case b.JSON != nil:
		return [][]byte{compact(b.JSON)}
	case b.Binary != nil:
		return [][]byte{b.Binary}
	}
	var pieces [][]byte
	for _, text := range b.Text {
		pieces = append(pieces, []byte(text))
	}
	for _, frame := range b.Frames {
		piece, _ := frame.append(nil) // it has been tried
		pieces = append(pieces, piece)
	}
	return pieces
}

// playing is the body of an answer that is played. Each Read gets from one piece.
type playing struct {
	ctx    context.Context
	end    Answer
	pieces [][]byte
}

func (b *playing) Read(p []byte) (int, error) {
	for {
		if err := b.ctx.Err(); err != nil {
			return 0, err
		}
		switch {
		case len(b.pieces) == 0 && b.end.Cut == cutCancelled:
			<-b.ctx.Done()
			continue
		case len(b.pieces) == 0:
			return 0, b.end.end()
		case len(b.pieces[0]) == 0:
			b.pieces = b.pieces[1:]
			continue
		}
		n := copy(p, b.pieces[0])
		b.pieces[0] = b.pieces[0][n:]
		return n, nil
	}
}

func (b *playing) Close() error { return nil }

// take returns the answer of the first call that is not played and has this request.
func (c *Cassette) take(asked Request) (Answer, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	miss := &MissError{File: c.file, Request: asked}
	best := -1.0
	for i, call := range c.calls {
		differences := asked.differences(call.Request)
		if len(differences) == 0 && !call.played {
			call.played = true
			return call.Answer, nil
		}
		score := textdiff.Alike(asked.text(), call.Request.text())
		if asked.brief() == call.Request.brief() {
			score++ // the path counts more than the body
		}
		if len(differences) == 0 {
			score++
		}
		if score > best {
			best = score
			miss.Nearest, miss.Played, miss.Differences = i+1, call.played, differences
		}
	}
	if !slices.ContainsFunc(c.misses, func(m *MissError) bool { return m.Error() == miss.Error() }) {
		c.misses = append(c.misses, miss) // an SDK tries again
	}
	return Answer{}, miss
}

// text returns a text of the request that tells how alike two of them are.
func (r Request) text() string {
	return r.Method + r.URL + string(bytes.Join(r.pieces(), nil))
}

// differences returns how a request differs from a recorded one.
func (r Request) differences(recorded Request) []string {
	var d differences
	d.compare("method", r.Method, recorded.Method)
	d.compare("url", r.URL, recorded.URL)
	d.compare("", r.value(), recorded.value())
	return d
}

// value returns the body as a JSON value, or a text.
func (b Body) value() any {
	if b.JSON != nil {
		d := json.NewDecoder(bytes.NewReader(b.JSON))
		d.UseNumber() // 2^53 and its neighbour are not the same
		var v any
		if d.Decode(&v) == nil {
			return v
		}
	}
	return string(bytes.Join(b.pieces(), nil))
}

type differences []string

// compare adds how two values at a place differ. A place in a body is a JSON pointer.
func (d *differences) compare(place string, asked, recorded any) {
	add := func(format string, args ...any) {
		if place == "" {
			place = "body"
		}
		*d = append(*d, place+" "+fmt.Sprintf(format, args...))
	}
	switch a := asked.(type) {
	case map[string]any:
		if r, ok := recorded.(map[string]any); ok {
			names := maps.Clone(a)
			maps.Copy(names, r)
			for _, name := range slices.Sorted(maps.Keys(names)) {
				in, inOK := a[name]
				was, wasOK := r[name]
				d.member(place+"/"+jsonwire.Token(name), in, inOK, was, wasOK)
			}
			return
		}
	case []any:
		if r, ok := recorded.([]any); ok {
			for i := range max(len(a), len(r)) {
				var in, was any
				if i < len(a) {
					in = a[i]
				}
				if i < len(r) {
					was = r[i]
				}
				d.member(fmt.Sprint(place, "/", i), in, i < len(a), was, i < len(r))
			}
			return
		}
	case string:
		if r, ok := recorded.(string); ok {
			if a != r {
				at, inAsked, inRecorded := textdiff.Excerpts(a, r)
				add("differs at character %d: asked %s, recorded %s", at, inAsked, inRecorded)
			}
			return
		}
	default:
		if asked == recorded {
			return
		}
	}
	add("differs: asked %s, recorded %s", brief(asked), brief(recorded))
}

// member compares a member or an element that one side may not have.
func (d *differences) member(place string, asked any, isAsked bool, recorded any, isRecorded bool) {
	switch {
	case !isRecorded:
		*d = append(*d, fmt.Sprintf("%s is not recorded: %s", place, brief(asked)))
	case !isAsked:
		*d = append(*d, fmt.Sprintf("%s is not asked, recorded %s", place, brief(recorded)))
	default:
		d.compare(place, asked, recorded)
	}
}

// brief returns the beginning of a value's JSON.
func brief(v any) string {
	const most = 60
	text, _ := json.Marshal(v)
	runes := []rune(string(text))
	if len(runes) > most {
		return string(runes[:most]) + "…"
	}
	return string(text)
}
