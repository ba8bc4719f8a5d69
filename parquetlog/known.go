package parquetlog

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/parquet-go/parquet-go"
)

// known has the sequences of the rows that a folder has, as ranges by run.
type known map[string][]span

// A span is the sequences from begin up to and without end.
type span struct{ begin, end int64 }

// has reports whether the folder has the row.
func (k known) has(runID string, sequence int64) bool {
	_, found := slices.BinarySearchFunc(k[runID], sequence, func(s span, n int64) int {
		switch {
		case s.end <= n:
			return -1
		case s.begin > n:
			return 1
		}
		return 0
	})
	return found
}

// covers reports whether the folder has the run up to a sequence. It has all rows below its highest
// one, as every writing takes whole runs and is published as a whole.
func (k known) covers(runID string, next uint64) bool {
	spans := k[runID]
	return len(spans) > 0 && uint64(spans[len(spans)-1].end) >= next
}

// add adds a row. Rows of a run come mostly in their order.
func (k known) add(runID string, sequence int64) {
	spans := k[runID]
	i, found := slices.BinarySearchFunc(spans, sequence, func(s span, n int64) int {
		switch {
		case s.end < n:
			return -1
		case s.begin > n+1:
			return 1
		}
		return 0
	})
	if !found {
		if spans == nil {
			runID = strings.Clone(runID)
		}
		k[runID] = slices.Insert(spans, i, span{sequence, sequence + 1})
		return
	}
	s := &spans[i]
	s.begin, s.end = min(s.begin, sequence), max(s.end, sequence+1)
	if i+1 < len(spans) && spans[i+1].begin <= s.end {
		s.end = max(s.end, spans[i+1].end)
		k[runID] = slices.Delete(spans, i+1, i+2)
	}
}

// partitions returns the folders of the partitions.
func partitions(dir string) ([]string, error) {
	return filepath.Glob(filepath.Join(escaped(dir), "day=*"))
}

// escaped returns a path as a pattern that only it matches.
func escaped(path string) string {
	return strings.NewReplacer(`*`, `\*`, `?`, `\?`, `[`, `\[`, `\`, `\\`).Replace(path)
}

// load reads which rows a folder has: two columns of each file.
func load(dir string) (known, error) {
	k := known{}
	days, err := partitions(dir)
	if err != nil {
		return nil, err
	}
	for _, day := range days {
		entries, err := os.ReadDir(day)
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			if filepath.Ext(e.Name()) != ".parquet" {
				continue
			}
			path := filepath.Join(day, e.Name())
			if err := k.file(path); err != nil {
				return nil, fmt.Errorf("%s: %w", path, err)
			}
		}
	}
	return k, nil
}

var errColumns = errors.New("the file has no columns run_id and sequence")

// file adds the rows of a file.
func (k known) file(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	pf, err := parquet.OpenFile(f, info.Size(), parquet.SkipPageIndex(true), parquet.SkipBloomFilters(true))
	if err != nil {
		return err
	}
	run, ok1 := pf.Schema().Lookup("run_id")
	sequence, ok2 := pf.Schema().Lookup("sequence")
	if !ok1 || !ok2 {
		return errColumns
	}
	for _, g := range pf.RowGroups() {
		runs, sequences := newValues(g.ColumnChunks()[run.ColumnIndex]), newValues(g.ColumnChunks()[sequence.ColumnIndex])
		err := k.group(runs, sequences)
		if err = errors.Join(err, runs.Close(), sequences.Close()); err != nil {
			return err
		}
	}
	return nil
}

// group adds the rows of a row group.
func (k known) group(runs, sequences *values) error {
	last := ""
	for {
		id, err := runs.next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		n, err := sequences.next()
		if err != nil {
			return err
		}
		if b := id.ByteArray(); string(b) != last {
			last = string(b)
		}
		k.add(last, n.Int64())
	}
}

// values reads the values of a column of a row group.
type values struct {
	pages parquet.Pages
	page  parquet.Page
	from  parquet.ValueReader
	buf   [256]parquet.Value
	at, n int
}

func newValues(c parquet.ColumnChunk) *values { return &values{pages: c.Pages()} }

func (v *values) next() (parquet.Value, error) {
	for v.at == v.n {
		if v.from == nil {
			parquet.Release(v.page)
			page, err := v.pages.ReadPage()
			if err != nil {
				return parquet.Value{}, err
			}
			v.page, v.from = page, page.Values()
		}
		n, err := v.from.ReadValues(v.buf[:])
		if v.at, v.n = 0, n; err == io.EOF {
			v.from = nil
		} else if err != nil {
			return parquet.Value{}, err
		}
	}
	v.at++
	return v.buf[v.at-1], nil
}

// Close implements [io.Closer].
func (v *values) Close() error { return v.pages.Close() }
