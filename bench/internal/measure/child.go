package measure

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
)

// A Request tells a child process which cells to measure.
type Request struct {
	Cells  []string
	Rounds int
	N      map[string]int // operations of a round, by the name of a cell; others are calibrated
}

// Serve reads a request, measures the cells that it names, and writes their series.
func Serve(cells []*Cell, r io.Reader, w io.Writer) error {
	var req Request
	if err := json.NewDecoder(r).Decode(&req); err != nil {
		return err
	}
	wanted := make([]*Cell, len(req.Cells))
	for i, name := range req.Cells {
		at := slices.IndexFunc(cells, func(c *Cell) bool { return c.Name == name })
		if at < 0 {
			return fmt.Errorf("no cell is named %q", name)
		}
		wanted[i] = cells[at]
	}
	series, err := Cells(wanted, req.Rounds, req.N)
	if err != nil {
		return err
	}
	return json.NewEncoder(w).Encode(series)
}

// keepMemory makes the memory that the garbage collector gives back available again at no
// cost. A cell after another would pay for it otherwise, up to 35 %.
const keepMemory = "madvdontneed=0"

// Child has a program serve a request, and returns the series in the request's order. A
// series that the program left out or gave twice is an error.
func Child(cmd *exec.Cmd, req Request) ([]Series, error) {
	in, err := json.Marshal(req)
	if err != nil {
		return nil, err
	}
	var out, log bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(in), &out, &log
	cmd.Env = append(cmd.Environ(), "GODEBUG="+strings.Trim(os.Getenv("GODEBUG")+","+keepMemory, ","))
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("%w: %s", err, strings.TrimSpace(log.String()))
	}
	var series []Series
	if err := json.Unmarshal(out.Bytes(), &series); err != nil {
		return nil, fmt.Errorf("a child's answer: %w", err)
	}
	names := make([]string, len(series))
	for i, s := range series {
		names[i] = s.Name
	}
	if !slices.Equal(names, req.Cells) {
		return nil, fmt.Errorf("a child measured %q instead of %q", names, req.Cells)
	}
	return series, nil
}

// A Record collects the series of several children, by the name of the cell.
type Record map[string]*Series

// Add appends the rounds of series to those that the record has.
func (r Record) Add(series []Series) {
	for _, s := range series {
		have := r[s.Name]
		if have == nil {
			r[s.Name] = &s
			continue
		}
		have.CPU, have.Wall = append(have.CPU, s.CPU...), append(have.Wall, s.Wall...)
	}
}

// N returns the operations of a round of each cell, for the next request.
func (r Record) N() map[string]int {
	n := map[string]int{}
	for name, s := range r {
		n[name] = s.N
	}
	return n
}
