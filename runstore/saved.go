package runstore

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"os"
	"time"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/internal/disk"
	"github.com/agentevents/agentevents/logfile"
)

// This file saves the index, so that Open need not read the whole log. A saved index is used only
// if the log still has the events that it is about; otherwise the log is read.

const indexName = "index.json"

// unsavedMost is how much of the log is read at Open before the index is saved.
const unsavedMost = 4 << 20

// savedHead is the first line of the file.
type savedHead struct {
	Segment int    `json:"segment"` // the log was read up to here:
	Offset  int64  `json:"offset"`
	Oldest  int    `json:"oldest"`   // the first segment
	Last    int    `json:"lastSize"` // bytes of the last line
	Hash    string `json:"lastHash"` // of it
	SHA256  string `json:"sha256"`   // of the rest of the file
}

// savedRun is a line of the file.
type savedRun struct {
	RunID    string           `json:"runId"`
	Next     uint64           `json:"next"`
	Terminal agentevents.Kind `json:"terminal,omitzero"`
	Begun    time.Time        `json:"begun"`
	Updated  time.Time        `json:"updated"`
	Parts    []byte           `json:"parts"` // varints: segment, begin, length and first sequence of each
}

func hashOf(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// save writes the index to a file if enough was read since that was done. x.mu is not held.
func (x *index) save(path string) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.unsaved < x.unsavedMost || len(x.last) == 0 {
		return nil
	}
	var body bytes.Buffer
	enc := json.NewEncoder(&body)
	for _, r := range x.runs {
		s := savedRun{r.info.RunID, r.info.Next, r.info.Terminal, r.info.Begun, r.info.Updated, nil}
		for _, p := range r.parts {
			for _, n := range [...]uint64{uint64(p.segment), uint64(p.begin), uint64(p.end - p.begin), p.first} {
				s.Parts = binary.AppendUvarint(s.Parts, n)
			}
		}
		if err := enc.Encode(s); err != nil {
			return err
		}
	}
	head, err := json.Marshal(savedHead{x.segment, x.offset, x.oldest, len(x.last), hashOf(x.last), hashOf(body.Bytes())})
	if err != nil {
		return err
	}
	if err := disk.Replace(path, append(append(head, '\n'), body.Bytes()...)); err != nil {
		return err
	}
	x.unsaved = 0
	return nil
}

// restore loads the saved index, if the log still has its events. Otherwise x does not change: the
// log is the truth, so the reason does not matter.
func (x *index) restore(path string) {
	all, err := os.ReadFile(path)
	if err != nil {
		return
	}
	line, body, _ := bytes.Cut(all, []byte("\n"))
	var head savedHead
	if json.Unmarshal(line, &head) != nil || hashOf(body) != head.SHA256 {
		return
	}
	last, err := x.lastLine(&head)
	if err != nil || hashOf(last) != head.Hash {
		return
	}
	runs := map[string]*indexed{}
	for dec := json.NewDecoder(bytes.NewReader(body)); ; {
		var s savedRun
		if err := dec.Decode(&s); err == io.EOF {
			break
		} else if err != nil {
			return
		}
		r := &indexed{info: RunInfo{s.RunID, s.Next, s.Terminal, s.Begun, s.Updated}}
		for rest := s.Parts; len(rest) > 0; {
			var n [4]uint64
			for i := range n {
				size := 0
				if n[i], size = binary.Uvarint(rest); size <= 0 {
					return
				}
				rest = rest[size:]
			}
			r.parts = append(r.parts, part{int(n[0]), int64(n[1]), int64(n[1] + n[2]), n[3]})
		}
		runs[s.RunID] = r
	}
	x.runs, x.segment, x.offset, x.oldest, x.last = runs, head.Segment, head.Offset, head.Oldest, last
}

// lastLine reads the last line that the index has. No segment before it may be missing.
func (x *index) lastLine(head *savedHead) ([]byte, error) {
	segments, err := logfile.Segments(x.path)
	if err != nil {
		return nil, err
	}
	for i, s := range segments {
		if s.Number != head.Oldest+i {
			return nil, errors.New("a segment is missing")
		}
		if s.Number != head.Segment {
			continue
		}
		f, err := s.Open()
		if err != nil {
			return nil, err
		}
		defer f.Close()
		if err := f.Skip(head.Offset - int64(head.Last)); err != nil {
			return nil, err
		}
		line := make([]byte, head.Last)
		_, err = io.ReadFull(f, line)
		return line, err
	}
	return nil, errors.New("the segment is missing")
}
