//go:build unix

package pgstore_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents/columns"
	"github.com/agentevents/agentevents/runstore/pgstore"
)

var update = flag.Bool("update", false, "write the columns into schema.sql")

const schemaMark = "-update\n"

// The schema has the columns of package columns.
func TestSchema(t *testing.T) {
	fixed, _, found := strings.Cut(pgstore.Schema, schemaMark)
	require.True(t, found)
	table, _, _ := strings.Cut(fixed[strings.Index(fixed, "agentevents_events ("):], "\n);")
	var added, shown []string
	for _, c := range columns.Table() {
		name := c.Name
		if name == "kind" {
			name = "type AS kind"
		}
		if shown = append(shown, name); name == c.Name && !strings.Contains(table, "\n\t"+name+" ") {
			added = append(added, fmt.Sprintf("\tADD COLUMN IF NOT EXISTS %s %s", name, strings.TrimSuffix(c.PostgreSQL(), " NOT NULL")))
		}
	}
	want := fixed + schemaMark + "ALTER TABLE agentevents_events\n" + strings.Join(added, ",\n") + ";\n" + `
-- The rows of package columns. Events that come again, or that have no columns yet, are not among them.
CREATE OR REPLACE VIEW agentevents_columns AS SELECT
	` + strings.Join(shown, ",\n\t") + `
FROM agentevents_events WHERE begins IS NOT NULL;
`
	if *update {
		require.NoError(t, os.WriteFile("schema.sql", []byte(want), 0o666))
		return
	}
	claims, err := os.ReadFile("claim.sql")
	require.NoError(t, err)
	require.Equal(t, want+string(claims), pgstore.Schema)
}
