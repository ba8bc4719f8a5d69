package parquetlog

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"
	"github.com/stretchr/testify/require"

	ae "github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/capture/claude"
	"github.com/agentevents/agentevents/columns"
	"github.com/agentevents/agentevents/internal/disk"
	"github.com/agentevents/agentevents/internal/effort"
	"github.com/agentevents/agentevents/runstore"
)

// logs returns the lines of the logs of the repository, by file: native ones, and captures of Claude
// Code as the importer reads them.
func logs(t testing.TB) map[string][]string {
	all := map[string][]string{}
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".jsonl") {
			return err
		}
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		defer f.Close()
		o := ae.ReaderOptions{}
		if strings.HasSuffix(path, ".stream.jsonl") {
			o.Decoder = claude.NewDecoder(claude.Options{})
		}
		for ev, err := range ae.NewReader(f, o).All() {
			if err != nil {
				continue // damaged lines are a test of their own
			}
			line, err := ev.AppendJSON(nil)
			if err != nil {
				return err
			}
			all[path] = append(all[path], string(line))
		}
		return nil
	})
	require.NoError(t, err)
	require.Greater(t, len(all), 10)
	return all
}

func reader(lines []string) *ae.Reader {
	return ae.NewReader(strings.NewReader(strings.Join(lines, "\n")), ae.ReaderOptions{})
}

// write adds lines to a folder, and returns the report and the errors of lines.
func write(t testing.TB, dir string, lines []string) (Report, error) {
	w, err := Open(dir)
	require.NoError(t, err)
	faults := w.Log(reader(lines))
	report, err := w.Close()
	require.NoError(t, err)
	return report, faults
}

// files returns the names of the files of a folder, but the lock.
func files(t testing.TB, dir string) (names []string) {
	require.NoError(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && d.Name() != lockName {
			name, err := filepath.Rel(dir, path)
			names = append(names, filepath.ToSlash(name))
			return err
		}
		return err
	}))
	return names
}

// table returns the rows of a folder as texts, by run and sequence. Each row is there once.
func table(t testing.TB, dir string) map[string]string {
	rows := map[string]string{}
	for _, name := range files(t, dir) {
		require.Equal(t, ".parquet", filepath.Ext(name), "all files are complete")
		f, err := os.Open(filepath.Join(dir, name))
		require.NoError(t, err)
		info, err := f.Stat()
		require.NoError(t, err)
		pf, err := parquet.OpenFile(f, info.Size())
		require.NoError(t, err)
		for _, g := range pf.RowGroups() {
			in := g.Rows()
			for {
				var buf [1]parquet.Row
				n, err := in.ReadRows(buf[:])
				if n == 1 {
					key, text := describe(pf.Schema(), buf[0])
					require.Empty(t, rows[key], key)
					rows[key] = filepath.Dir(name) + " " + text
				}
				if err == io.EOF {
					break
				}
				require.NoError(t, err)
			}
			require.NoError(t, in.Close())
		}
		require.NoError(t, f.Close())
	}
	return rows
}

func describe(s *parquet.Schema, row parquet.Row) (key, text string) {
	all := make([]string, 0, len(row))
	for i, field := range s.Fields() {
		v := row[i]
		if i < 2 {
			key += v.String() + " "
		}
		if !v.IsNull() {
			all = append(all, field.Name()+"="+v.String())
		}
	}
	return key, strings.Join(all, " ")
}

// want returns the rows that a log has, in the form of table, as the tracker makes them, with the ids
// that later rows tell.
func want(t testing.TB, lines []string) map[string]string {
	tracker := columns.NewTracker()
	var rows []columns.Row
	for ev, err := range reader(lines).All() {
		if err != nil {
			continue
		}
		row, err := tracker.Add(&ev, "")
		if err != nil {
			continue
		}
		for i := range rows {
			if r := &rows[i]; row.AgentWas != "" && r.RunID == row.RunID && r.AgentID == row.AgentWas {
				r.AgentID, r.AgentName = row.AgentID, row.AgentName
			}
		}
		rows = append(rows, row)
	}
	out := map[string]string{}
	for i := range rows {
		r := &rows[i]
		all := []string{}
		for _, c := range columns.Table() {
			switch v := c.Value(r).(type) {
			case nil:
			case time.Time:
				all = append(all, fmt.Sprint(c.Name, "=", v.UnixMicro()))
			default:
				all = append(all, fmt.Sprint(c.Name, "=", parquet.ValueOf(v)))
			}
		}
		day := noDay
		if !r.Time.IsZero() {
			day = r.Time.Format("2006-01-02")
		}
		out[fmt.Sprint(r.RunID, " ", r.Sequence, " ")] = "day=" + day + " " + strings.Join(all, " ")
	}
	return out
}

// names returns the names of logs in order: each tenth with -short, which the gate runs under the race
// detector. Each file of a partition takes a tenth of a second there.
func names(all map[string][]string) []string {
	step := effort.Of(10, 1, 1)
	var out []string
	for i, name := range slices.Sorted(maps.Keys(all)) {
		if i%step == 0 {
			out = append(out, name)
		}
	}
	return out
}

// TestFiles writes each log of the repository, and reads the rows of the tracker, in the partition of
// their day. A second writing adds nothing.
func TestFiles(t *testing.T) {
	all := logs(t)
	for _, path := range names(all) {
		dir := t.TempDir()
		report, err := write(t, dir, all[path])
		require.NoError(t, err, path)
		rows := want(t, all[path])
		require.Equal(t, rows, table(t, dir), path)
		require.EqualValues(t, len(rows), report.Rows)
		again, err := write(t, dir, all[path])
		require.NoError(t, err)
		require.EqualValues(t, len(rows), again.Known, path)
		require.Zero(t, again.Rows, path)
		require.Empty(t, again.Files, path)
	}
}

// anonymous matches what an earlier file may have of an agent whose id came later.
var anonymous = regexp.MustCompile(` agent_(id|name)=\S*`)

// TestLaterWritings writes logs in pieces: a log that has grown is given again from its beginning, and
// the folder has the rows of one writing.
func TestLaterWritings(t *testing.T) {
	rng := rand.New(rand.NewPCG(effort.Seed(t), 45))
	all := logs(t)
	for _, path := range names(all) {
		lines := all[path]
		dir := t.TempDir()
		for range 3 {
			_, err := write(t, dir, lines[:rng.IntN(len(lines)+1)])
			require.NoError(t, err)
		}
		_, err := write(t, dir, lines)
		require.NoError(t, err)
		rows := want(t, lines)
		for key, got := range table(t, dir) {
			require.Equal(t, anonymous.ReplaceAllString(rows[key], ""), anonymous.ReplaceAllString(got, ""), path)
			delete(rows, key)
		}
		require.Empty(t, rows, path)
	}
}

// start are lines of a run of two days, with an agent that has a span and later an id, and one line
// without a time.
var start = []string{
	`{"id":"1","sequence":0,"timestamp":"2026-03-01T23:59:58.000Z","type":"run.started","runId":"r","payload":{}}`,
	`{"id":"2","sequence":1,"timestamp":"2026-03-01T23:59:59.000Z","type":"agent.started","runId":"r","spanId":"s1","payload":{"name":"Ann","model":"m"}}`,
	`{"id":"3","sequence":2,"timestamp":"2026-03-02T00:00:01.000Z","type":"agent.toolCalled","runId":"r","agentId":"a","parentSpanId":"s1","payload":{"callId":"c","toolId":"read"}}`,
	`{"id":"4","sequence":3,"type":"agent.text","runId":"r","agentId":"a","payload":{"text":"no time"}}`,
	`{"id":"5","sequence":4,"timestamp":"2026-03-02T00:00:03.500Z","type":"agent.toolReturned","runId":"r","agentId":"a","payload":{"callId":"c","toolId":"","status":"ok","result":{"lines":7}}}`,
}

func TestRows(t *testing.T) {
	dir := t.TempDir()
	report, err := write(t, dir, start)
	require.NoError(t, err)
	require.Equal(t, []string{"day=2026-03-01/part-000001.parquet", "day=2026-03-02/part-000001.parquet", "day=" + noDay + "/part-000001.parquet"}, report.Files)
	require.Equal(t, report.Files, files(t, dir))
	rows := table(t, dir)
	require.Contains(t, rows["r 1 "], " agent_id=a agent_name=Ann ", "the start has the id that came later")
	require.Contains(t, rows["r 2 "], " agent_was=s1 ")
	require.Contains(t, rows["r 4 "], ` tool=read tool_call_id=c begins=0 status=succeeded failed=false duration_ms=2500 result={"lines":7} `)
	require.NotContains(t, rows["r 3 "], " time=")
}

// TestDamage has lines that nobody can read: the others are there, and the errors tell the lines.
func TestDamage(t *testing.T) {
	lines := slices.Clone(start)
	lines[2] = lines[2][:40]
	lines = append(lines, `{"id":"9","sequence":9223372036854775808,"timestamp":"2026-03-02T00:00:05.000Z","type":"run.completed","runId":"x","payload":{}}`)
	dir := t.TempDir()
	report, err := write(t, dir, lines)
	require.ErrorIs(t, err, ErrNoRow)
	require.ErrorContains(t, err, "line 3")
	require.EqualValues(t, 4, report.Rows)
	require.EqualValues(t, 1, report.NoRow)
	require.Equal(t, want(t, lines), table(t, dir))

	_, err = write(t, dir, start) // the log is mended
	require.NoError(t, err)
	require.Len(t, table(t, dir), len(start))
}

// TestTwice has every event twice in one input, and the whole again.
func TestTwice(t *testing.T) {
	var lines []string
	for _, line := range start {
		lines = append(lines, line, line)
	}
	dir := t.TempDir()
	report, err := write(t, dir, append(lines, start...))
	require.NoError(t, err)
	require.EqualValues(t, len(start), report.Rows)
	require.EqualValues(t, 2*len(start), report.LeftOut)
	require.Equal(t, want(t, start), table(t, dir))
}

// TestManyDays has more days than files that are written at a time, in turn.
func TestManyDays(t *testing.T) {
	var lines []string
	for i := range 40 {
		lines = append(lines, fmt.Sprintf(`{"id":"%d","sequence":%d,"timestamp":"2026-03-%02dT10:00:00.000Z","type":"agent.text","runId":"r","agentId":"a","payload":{"text":"x"}}`, i, i, 1+i%7))
	}
	dir := t.TempDir()
	report, err := write(t, dir, lines)
	require.NoError(t, err)
	require.EqualValues(t, len(lines), report.Rows)
	require.Equal(t, want(t, lines), table(t, dir))
}

// TestRowGroups has texts for several row groups.
func TestRowGroups(t *testing.T) {
	dir := t.TempDir()
	w, err := Open(dir)
	require.NoError(t, err)
	text := strings.Repeat("x", 1<<20)
	for i := range 100 {
		ev := ae.Event{ID: fmt.Sprint(i), RunID: "r", Sequence: uint64(i), AgentID: "a", Time: time.Date(2026, 3, 1, 0, 0, i, 0, time.UTC), Payload: &ae.TextCompleted{Text: text}}
		require.NoError(t, w.Add(ae.Line{Event: &ev}))
	}
	_, err = w.Close()
	require.NoError(t, err)
	require.Len(t, table(t, dir), 100)
	f, err := os.Open(filepath.Join(dir, files(t, dir)[0]))
	require.NoError(t, err)
	defer f.Close()
	info, err := f.Stat()
	require.NoError(t, err)
	pf, err := parquet.OpenFile(f, info.Size())
	require.NoError(t, err)
	require.Len(t, pf.RowGroups(), 2, "a group has at most 64 MiB of texts, about")
}

// TestStore writes the runs of a store, and later what they have more.
func TestStore(t *testing.T) {
	ctx := t.Context()
	store := &counted{Store: &runstore.Memory{}}
	fill := func(lines []string) {
		require.NoError(t, runstore.Copy(ctx, store, reader(lines).All()))
	}
	other := strings.ReplaceAll(strings.Join(start, "\n"), `"runId":"r"`, `"runId":"q"`)
	fill(start[:3])
	fill(strings.Split(other, "\n"))
	dir := t.TempDir()
	written := func() Report {
		w, err := Open(dir)
		require.NoError(t, err)
		require.NoError(t, w.Store(ctx, store))
		report, err := w.Close()
		require.NoError(t, err)
		return report
	}
	require.EqualValues(t, 8, written().Rows)
	fill(start)
	store.loads = 0
	report := written()
	require.EqualValues(t, 2, report.Rows)
	require.EqualValues(t, 3, report.Known)
	require.Equal(t, 1, store.loads, "the run that has not grown is not loaded")
	require.Len(t, table(t, dir), 10)
}

type counted struct {
	runstore.Store
	loads int
}

func (c *counted) Load(ctx context.Context, runID string, from uint64) iter.Seq2[runstore.Entry, error] {
	c.loads++
	return c.Store.Load(ctx, runID, from)
}

func TestLock(t *testing.T) {
	dir := t.TempDir()
	w, err := Open(dir)
	require.NoError(t, err)
	_, err = Open(dir)
	require.ErrorIs(t, err, disk.ErrLocked)
	require.NoError(t, w.Log(reader(start)))
	require.NoError(t, w.Discard())
	require.Empty(t, files(t, dir))
	require.ErrorIs(t, w.Discard(), ae.ErrClosed)
	require.ErrorIs(t, w.Log(reader(start)), ae.ErrClosed)
	_, err = w.Close()
	require.ErrorIs(t, err, ae.ErrClosed)
	w, err = Open(dir)
	require.NoError(t, err)
	require.NoError(t, w.Discard())
}

// TestDamagedFile has a file of which nobody knows the rows.
func TestDamagedFile(t *testing.T) {
	dir := t.TempDir()
	report, err := write(t, dir, start)
	require.NoError(t, err)
	name := filepath.Join(dir, report.Files[0])
	require.NoError(t, os.WriteFile(name, []byte("PAR1"), 0o600))
	_, err = Open(dir)
	require.ErrorContains(t, err, name)
	require.NoError(t, os.Remove(name))
	_, err = write(t, dir, start)
	require.NoError(t, err)
	require.Equal(t, want(t, start), table(t, dir))
}

// TestKilledBetweenRenames stops the publishing after each of its steps: the next Open completes it.
func TestKilledBetweenRenames(t *testing.T) {
	for done := range 4 {
		dir := t.TempDir()
		report, err := write(t, dir, start)
		require.NoError(t, err)
		for _, name := range report.Files[min(done, len(report.Files)):] {
			path := filepath.Join(dir, filepath.FromSlash(name))
			require.NoError(t, os.Rename(path, path+temporary))
		}
		require.NoError(t, os.WriteFile(filepath.Join(dir, listName), []byte(strings.Join(report.Files, "\n")+"\n"), 0o600))
		again, err := write(t, dir, start)
		require.NoError(t, err)
		require.Zero(t, again.Rows)
		require.Equal(t, want(t, start), table(t, dir))
	}
}

// TestForeignList has a list that names a file outside the folder.
func TestForeignList(t *testing.T) {
	for _, name := range []string{"../x.parquet", "/x.parquet", "day=2026-03-01/x"} {
		dir := t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(dir, listName), []byte(name+"\n"), 0o600))
		_, err := Open(dir)
		require.ErrorContains(t, err, "is no file of the folder")
	}
}

// TestKilled kills processes while they write: the next writer completes the folder.
func TestKilled(t *testing.T) {
	if dir := os.Getenv("PARQUETLOG_KILLED"); dir != "" {
		w, err := Open(dir)
		require.NoError(t, err)
		require.NoError(t, w.Log(reader(many(3000))))
		fmt.Println("added")
		_, err = w.Close()
		require.NoError(t, err)
		fmt.Println("closed")
		return
	}
	rng := rand.New(rand.NewPCG(effort.Seed(t), 45))
	lines := many(3000)
	rows := want(t, lines)
	for range 12 {
		dir := t.TempDir()
		cmd := exec.Command(os.Args[0], "-test.run=^TestKilled$")
		cmd.Env = append(os.Environ(), "PARQUETLOG_KILLED="+dir)
		out, err := cmd.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, cmd.Start())
		if rng.IntN(3) > 0 { // else it is killed while it adds
			_, err = out.Read(make([]byte, 5))
			require.NoError(t, err)
		}
		time.Sleep(time.Duration(rng.IntN(40)) * time.Millisecond)
		require.NoError(t, cmd.Process.Kill())
		_ = cmd.Wait() // it was killed, or has ended
		_, err = write(t, dir, lines)
		require.NoError(t, err)
		require.Equal(t, rows, table(t, dir))
	}
}

// many returns lines of several days and runs.
func many(n int) (lines []string) {
	for i := range n {
		lines = append(lines, fmt.Sprintf(`{"id":"%d","sequence":%d,"timestamp":"2026-03-%02dT10:00:00.000Z","type":"agent.text","runId":"r%d","agentId":"a","payload":{"text":"%d"}}`, i, i/10, 1+i*4/n, i%10, i))
	}
	return lines
}

// TestKnown compares the ranges with a set.
func TestKnown(t *testing.T) {
	rng := rand.New(rand.NewPCG(effort.Seed(t), 45))
	for range 200 {
		k, set := known{}, map[int64]bool{}
		for range rng.IntN(60) {
			n := rng.Int64N(40)
			k.add("r", n)
			set[n] = true
		}
		highest := int64(-1)
		for n := range int64(42) {
			require.Equal(t, set[n], k.has("r", n), "%d in %v", n, k)
			if set[n] {
				highest = n
			}
		}
		require.True(t, highest < 0 || k.covers("r", uint64(highest+1)))
		require.False(t, k.covers("r", uint64(highest+2)))
		for i := 1; i < len(k["r"]); i++ {
			require.Less(t, k["r"][i-1].end, k["r"][i].begin, "ranges are joined: %v", k)
		}
	}
}

// TestNoFolder has a file in the place of the folder.
func TestNoFolder(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(path, nil, 0o600))
	_, err := Open(path)
	var pe *fs.PathError
	require.True(t, errors.As(err, &pe), err)
}
