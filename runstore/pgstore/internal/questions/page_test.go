//go:build unix

package questions_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents/columns"
)

const page = "../../../../docs/questions.md"

var update = flag.Bool("update", false, "write the columns into docs/questions.md")

// block is SQL of the page, with the heading above it and the word after its language.
type block struct{ heading, word, sql string }

// blocks returns the SQL of the page, also that which is made of columns.Table.
func blocks(t testing.TB, words ...string) (all []block) {
	t.Helper()
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	heading := ""
	for rest := string(text); rest != ""; {
		line, after, _ := strings.Cut(rest, "\n")
		rest = after
		if h, ok := strings.CutPrefix(strings.TrimLeft(line, "#"), " "); ok && strings.HasPrefix(line, "#") {
			heading = h
		}
		word, ok := strings.CutPrefix(line, "```sql ")
		if !ok {
			continue
		}
		sql, after, ok := strings.Cut(rest, "\n```\n")
		require.True(t, ok, "a block is not closed")
		rest = after
		for _, w := range words {
			if w == word {
				all = append(all, block{heading, word, sql})
			}
		}
	}
	require.NotEmpty(t, all)
	return all
}

// ddl is a definition of the columns.
func ddl(before, after string, of func(*columns.Column) string) string {
	var lines []string
	for _, c := range columns.Table() {
		lines = append(lines, "  "+c.Name+" "+of(&c))
	}
	return before + "\n" + strings.Join(lines, ",\n") + after
}

// The page has the columns of columns.Table.
func TestPageHasTheColumns(t *testing.T) {
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	var list strings.Builder
	list.WriteString("| column | PostgreSQL | ClickHouse | DuckDB | |\n|---|---|---|---|---|\n")
	for _, c := range columns.Table() {
		fmt.Fprintf(&list, "| `%s` | `%s` | `%s` | `%s` | %s |\n", c.Name, c.PostgreSQL(), c.ClickHouse(), c.DuckDB(), c.Doc)
	}
	want := string(text)
	for mark, made := range map[string]string{
		"columns":    list.String(),
		"postgresql": "```sql\n" + ddl("CREATE TABLE agentevents_columns (", ",\n  PRIMARY KEY (run_id, sequence)\n)", (*columns.Column).PostgreSQL) + "\n```\n",
		"clickhouse": "```sql clickhouse\n" + ddl("CREATE TABLE agentevents_rows (", "\n) ENGINE = ReplacingMergeTree ORDER BY (run_id, sequence)", (*columns.Column).ClickHouse) + "\n```\n",
	} {
		before, rest, ok := strings.Cut(want, "<!-- "+mark+" -->\n")
		require.True(t, ok, mark)
		_, after, ok := strings.Cut(rest, "<!-- end -->\n")
		require.True(t, ok, mark)
		want = before + "<!-- " + mark + " -->\n" + made + "<!-- end -->\n" + after
	}
	if *update {
		require.NoError(t, os.WriteFile(page, []byte(want), 0o666))
		return
	}
	require.Equal(t, want, string(text), "go test . -run TestPageHasTheColumns -update")
}
