package parquetlog

import (
	"reflect"

	"github.com/parquet-go/parquet-go"

	"github.com/agentevents/agentevents/columns"
)

// Schema returns the schema of the files: the columns of [columns.Table] in their order. Texts are
// strings, times are instants in microseconds.
func Schema() *parquet.Schema {
	table := columns.Table()
	fields := make([]parquet.Field, len(table))
	for i := range table {
		node := leaf(&table[i])
		if !table[i].Always {
			node = parquet.Optional(node)
		}
		fields[i] = field{node, table[i].Name}
	}
	return parquet.NewSchema("event", ordered{parquet.Group{}, fields})
}

func leaf(c *columns.Column) parquet.Node {
	switch c.Kind {
	case columns.Int:
		return parquet.Encoded(parquet.Int(64), &parquet.DeltaBinaryPacked)
	case columns.Time:
		return parquet.Encoded(parquet.Timestamp(parquet.Microsecond), &parquet.DeltaBinaryPacked)
	case columns.Float:
		return parquet.Leaf(parquet.DoubleType)
	case columns.Bool:
		return parquet.Leaf(parquet.BooleanType)
	}
	if c.Few {
		return parquet.Encoded(parquet.String(), &parquet.RLEDictionary)
	}
	return parquet.Encoded(parquet.String(), &parquet.DeltaLengthByteArray)
}

// ordered is a group whose fields keep their order: a parquet.Group sorts them by name.
type ordered struct {
	parquet.Group
	fields []parquet.Field
}

func (o ordered) Fields() []parquet.Field { return o.fields }

type field struct {
	parquet.Node
	name string
}

// Name implements [parquet.Field].
func (f field) Name() string { return f.name }

// Value implements [parquet.Field]: rows are written by columns, so nothing asks for it.
func (f field) Value(base reflect.Value) reflect.Value { return base.MapIndex(reflect.ValueOf(f.name)) }
