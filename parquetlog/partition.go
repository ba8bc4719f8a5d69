package parquetlog

import (
	"bufio"
	"errors"
	"fmt"
	"os"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress/zstd"

	"github.com/agentevents/agentevents/columns"
	"github.com/agentevents/agentevents/internal/disk"
)

const (
	batchRows  = 256      // rows that wait for the encoder
	groupRows  = 122_880  // rows of a row group at most
	groupBytes = 64 << 20 // bytes of texts of a row group, about
	pageBytes  = 1 << 20  // of the pages of a column, before compression
	temporary  = ".tmp"   // ends the names of files that are not complete
)

// compression is shared by all parts: it keeps its encoders, which take megabytes each, for use again.
var compression = &zstd.Codec{Level: zstd.SpeedBetterCompression, Concurrency: 1}

// A part is a file of a partition while it is written.
type part struct {
	path  string // with the ending temporary
	file  *os.File
	buf   *bufio.Writer
	w     *parquet.GenericWriter[any]
	table []columns.Column

	values [][]parquet.Value // of the columns, for batchRows rows
	texts  []byte            // has the texts of values
	n      int               // rows in values
	rows   int               // rows of the row group
	bytes  int               // bytes of texts of the row group
	used   uint64            // when a row was added last
}

// newPart makes the temporary file of a part.
func newPart(path string, schema *parquet.Schema, table []columns.Column) (*part, error) {
	f, err := disk.Create(path + temporary)
	if err != nil {
		return nil, err
	}
	p := &part{
		path: path, file: f, buf: bufio.NewWriterSize(f, 256<<10), table: table, values: make([][]parquet.Value, len(table)),
	}
	p.w = parquet.NewGenericWriter[any](p.buf, schema,
		parquet.Compression(compression),
		parquet.PageBufferSize(pageBytes), parquet.MaxRowsPerRowGroup(2*groupRows), parquet.CreatedBy("agentevents", "1", ""),
		parquet.DataPageStatistics(true), parquet.SkipPageBounds("line"))
	for i := range p.values {
		p.values[i] = make([]parquet.Value, batchRows)
	}
	return p, nil
}

// add adds a row. It keeps no part of it.
func (p *part) add(r *columns.Row) error {
	for i := range p.table {
		p.values[i][p.n] = p.value(i, r)
	}
	p.n++
	p.rows++
	if p.n == batchRows {
		if err := p.encode(); err != nil {
			return err
		}
	}
	if p.rows >= groupRows || p.bytes >= groupBytes {
		return p.endGroup()
	}
	return nil
}

// value returns the value of a column, with its definition level. Texts are copied.
func (p *part) value(i int, r *columns.Row) parquet.Value {
	c := &p.table[i]
	var v parquet.Value
	there := true
	switch c.Kind {
	case columns.Text:
		text := c.Text(r)
		if there = text != "" || c.Always; there {
			at := len(p.texts)
			p.texts = append(p.texts, text...)
			v = parquet.ByteArrayValue(p.texts[at:])
			p.bytes += len(text)
		}
	case columns.Int:
		n, ok := c.Int(r)
		v, there = parquet.Int64Value(n), ok
	case columns.Float:
		f, ok := c.Float(r)
		v, there = parquet.DoubleValue(f), ok
	case columns.Bool:
		b, ok := c.Bool(r)
		v, there = parquet.BooleanValue(b), ok
	case columns.Time:
		t, ok := c.Time(r)
		v, there = parquet.Int64Value(t.UnixMicro()), ok
	}
	switch {
	case !there:
		return parquet.NullValue().Level(0, 0, i)
	case c.Always:
		return v.Level(0, 0, i)
	}
	return v.Level(0, 1, i)
}

// encode gives the rows that wait to the encoder.
func (p *part) encode() error {
	for i, c := range p.w.ColumnWriters() {
		if _, err := c.WriteRowValues(p.values[i][:p.n]); err != nil {
			return fmt.Errorf("column %s: %w", p.table[i].Name, err)
		}
	}
	p.n, p.texts = 0, p.texts[:0]
	return nil
}

func (p *part) endGroup() error {
	if err := p.encode(); err != nil {
		return err
	}
	p.rows, p.bytes = 0, 0
	return p.w.Flush()
}

// finish completes the temporary file. It is on the disk then.
func (p *part) finish() error {
	err := p.encode()
	if err == nil {
		err = p.w.Close()
	}
	if err == nil {
		err = p.buf.Flush()
	}
	if err == nil {
		err = p.file.Sync()
	}
	return errors.Join(err, p.file.Close())
}

// drop removes the temporary file.
func (p *part) drop() error {
	_ = p.file.Close() // perhaps it is closed
	return os.Remove(p.path + temporary)
}
