package agentevents

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"unicode/utf16"

	"github.com/agentevents/agentevents/internal/chain"
	"github.com/agentevents/agentevents/internal/jsonwire"
	"github.com/agentevents/agentevents/internal/lines"
	"github.com/agentevents/agentevents/internal/txtar"
	"github.com/stretchr/testify/require"
)

// A flakyWriter fails as it is told.
type flakyWriter struct {
	bytes.Buffer
	writes int
	take   func(p []byte) (int, error) // nil takes all
}

func (w *flakyWriter) Write(p []byte) (int, error) {
	w.writes++
	if w.take == nil {
		return w.Buffer.Write(p)
	}
	n, err := w.take(p)
	w.Buffer.Write(p[:max(0, min(n, len(p)))])
	return n, err
}

func nativeLine(n int) string {
	line, err := new(numbered(n)).AppendJSON(nil)
	if err != nil {
		panic(err)
	}
	return string(line)
}

func nativeLines(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(nativeLine(i) + "\n")
	}
	return b.String()
}

func TestWriterWritesEveryLineAtOnceWithOneWrite(t *testing.T) {
	var out flakyWriter
	w := NewWriter(&out, WriterOptions{})
	for i := range 5 {
		require.NoError(t, w.WriteEvent(t.Context(), numbered(i)))
		require.Equal(t, i+1, out.writes)
		require.Equal(t, nativeLines(i+1), out.String())
	}
	require.NoError(t, w.WriteLine(t.Context(), Event{}, []byte(nativeLine(5))))
	require.Equal(t, 6, out.writes)
	require.NoError(t, w.Flush(t.Context()))
	require.NoError(t, w.Close())
	require.Equal(t, 6, out.writes)
	require.Equal(t, nativeLines(6), out.String())
}

func TestWriterWithABufferWritesWhenItIsFullFlushedOrClosed(t *testing.T) {
	var out flakyWriter
	size := len(nativeLine(0)) + 1
	w := NewWriter(&out, WriterOptions{BufferSize: 3 * size})
	for i := range 2 {
		require.NoError(t, w.WriteEvent(t.Context(), numbered(i)))
	}
	require.Zero(t, out.writes)
	require.NoError(t, w.WriteEvent(t.Context(), numbered(2)))
	require.Equal(t, 1, out.writes, "full")
	require.NoError(t, w.WriteEvent(t.Context(), numbered(3)))
	require.NoError(t, w.Flush(t.Context()))
	require.Equal(t, nativeLines(4), out.String())
	require.NoError(t, w.WriteEvent(t.Context(), numbered(4)))
	require.NoError(t, w.Close())
	require.Equal(t, nativeLines(5), out.String())
	require.Equal(t, 3, out.writes)
}

func TestWriterLosesAndTearsNothingWhenADestinationFailsForAWhile(t *testing.T) {
	broken := errors.New("disk full")
	for name, take := range map[string]func(p []byte) (int, error){
		"nothing":       func(p []byte) (int, error) { return 0, broken },
		"half":          func(p []byte) (int, error) { return len(p) / 2, broken },
		"all but a bit": func(p []byte) (int, error) { return len(p) - 1, broken },
		"all":           func(p []byte) (int, error) { return len(p), broken },
		"short":         func(p []byte) (int, error) { return len(p) / 3, nil },
		"one by one":    func(p []byte) (int, error) { return 1, nil },
	} {
		for _, size := range []int{0, 150, 4096} {
			t.Run(fmt.Sprint(name, " ", size), func(t *testing.T) {
				var out flakyWriter
				w := NewWriter(&out, WriterOptions{BufferSize: size})
				require.NoError(t, w.WriteEvent(t.Context(), numbered(0)))
				out.take = take
				failed := 0
				for i := range 5 {
					if err := w.WriteEvent(t.Context(), numbered(i+1)); err != nil {
						failed++
						if name == "short" || name == "one by one" {
							require.ErrorIs(t, err, io.ErrShortWrite)
						} else {
							require.ErrorIs(t, err, broken)
						}
					}
				}
				if size == 0 {
					require.NotZero(t, failed)
				}
				out.take = nil
				require.NoError(t, w.WriteEvent(t.Context(), numbered(6)))
				require.NoError(t, w.Close())
				require.Equal(t, nativeLines(7), out.String())
			})
		}
	}
}

func TestWriterHoldsBackNoMoreThanItsBoundAndReportsLoss(t *testing.T) {
	broken := errors.New("disk full")
	out := &flakyWriter{take: func([]byte) (int, error) { return 0, broken }}
	w := NewWriter(out, WriterOptions{})
	line := []byte(strings.Repeat("x", 1<<20))
	lost := 0
	for range 40 {
		err := w.WriteLine(t.Context(), Event{}, line)
		require.ErrorIs(t, err, broken)
		if strings.Contains(err.Error(), "the line is lost") {
			lost++
		}
	}
	require.LessOrEqual(t, w.out.Pending(), lines.MaxPending)
	require.Greater(t, lost, 20)
	out.take = nil
	require.NoError(t, w.WriteLine(t.Context(), Event{}, []byte("last")))
	require.Equal(t, 40-lost, strings.Count(out.String(), "x\n"))
	require.True(t, strings.HasSuffix(out.String(), "x\nlast\n"))
}

func TestWriterDoesNotTrustAnImpossibleCount(t *testing.T) {
	for _, n := range []int{-1, 1 << 30} {
		out := &flakyWriter{take: func([]byte) (int, error) { return n, nil }}
		w := NewWriter(out, WriterOptions{})
		require.ErrorContains(t, w.WriteEvent(t.Context(), numbered(0)), "invalid count")
	}
}

func TestWriterContainsPanicsOfTheDestination(t *testing.T) {
	broken := true
	out := &flakyWriter{take: func(p []byte) (int, error) {
		if broken {
			panic("boom")
		}
		return len(p), nil
	}}
	w := NewWriter(out, WriterOptions{})
	var p *PanicError
	require.ErrorAs(t, w.WriteEvent(t.Context(), numbered(0)), &p)
	require.ErrorAs(t, w.WriteLine(t.Context(), Event{}, []byte(nativeLine(1))), &p)
	broken = false
	require.NoError(t, w.Flush(t.Context()))
	require.Equal(t, nativeLines(2), out.String(), "nothing is lost")
}

func TestWriterCloseReportsLossAndIsFinal(t *testing.T) {
	broken := errors.New("disk full")
	out := &flakyWriter{take: func([]byte) (int, error) { return 0, broken }}
	w := NewWriter(out, WriterOptions{BufferSize: 4096})
	require.NoError(t, w.WriteEvent(t.Context(), numbered(0)))
	err := w.Close()
	require.ErrorIs(t, err, broken)
	require.ErrorContains(t, err, fmt.Sprint(len(nativeLine(0))+1, " bytes are lost"))
	require.NoError(t, w.Close())
	require.NoError(t, w.Flush(t.Context()), "there is nothing left to write, and nowhere to write it")
	require.ErrorIs(t, w.WriteEvent(t.Context(), numbered(1)), ErrClosed)
	require.ErrorIs(t, w.WriteLine(t.Context(), Event{}, []byte("x")), ErrClosed)
}

func TestWriterCloseLeavesTheCallersWriterOpen(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "x"))
	require.NoError(t, err)
	defer f.Close()
	require.NoError(t, NewWriter(f, WriterOptions{}).Close())
	_, err = f.WriteString("still open")
	require.NoError(t, err)
}

func TestWriterRefusesAnEventThatCannotBeWrittenAndGoesOn(t *testing.T) {
	var out flakyWriter
	w := NewWriter(&out, WriterOptions{})
	require.Error(t, w.WriteEvent(t.Context(), Event{}))
	require.Error(t, w.WriteEvent(t.Context(), Event{Payload: &ToolCalled{Arguments: "{"}}))
	require.Zero(t, out.Len())
	require.NoError(t, w.WriteEvent(t.Context(), numbered(0)))
	require.Equal(t, nativeLines(1), out.String())
}

func TestConcurrentSafeWriter(t *testing.T) {
	var out flakyWriter
	w := NewWriter(&out, WriterOptions{BufferSize: 1000})
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range 100 {
				_ = w.WriteEvent(context.Background(), numbered(g*100+i))
				if i%20 == 0 {
					_ = w.Flush(context.Background())
				}
			}
		})
	}
	wg.Wait()
	require.NoError(t, w.Close())
	seen := map[uint64]bool{}
	for ev, err := range NewReader(&out, ReaderOptions{}).All() {
		require.NoError(t, err)
		seen[ev.Sequence] = true
	}
	require.Len(t, seen, 800)
}

func TestOpenFileAppends(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log.jsonl")
	for i := range 3 {
		w, err := OpenFile(path, WriterOptions{BufferSize: i * 100})
		require.NoError(t, err)
		require.NoError(t, w.WriteEvent(t.Context(), numbered(i)))
		require.NoError(t, w.Close())
		require.NoError(t, w.Close())
	}
	got, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, nativeLines(3), string(got))
}

func TestOpenFileEndsATornTailFirst(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log.jsonl")
	torn := nativeLines(2) + nativeLine(2)[:30]
	require.NoError(t, os.WriteFile(path, []byte(torn), 0o600))
	w, err := OpenFile(path, WriterOptions{})
	require.NoError(t, err)
	require.NoError(t, w.WriteEvent(t.Context(), numbered(2)))
	require.NoError(t, w.Close())
	got, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, torn+"\n"+nativeLine(2)+"\n", string(got))

	var read []int
	bad := 0
	for ev, err := range NewReader(bytes.NewReader(got), ReaderOptions{}).All() {
		if err != nil {
			bad++
			require.NotErrorIs(t, err, io.ErrUnexpectedEOF)
			continue
		}
		read = append(read, int(ev.Sequence))
	}
	require.Equal(t, []int{0, 1, 2}, read)
	require.Equal(t, 1, bad)

	// A whole last line without its newline is not lost.
	require.NoError(t, os.WriteFile(path, []byte(nativeLine(0)), 0o600))
	w, err = OpenFile(path, WriterOptions{BufferSize: 100})
	require.NoError(t, err)
	require.NoError(t, w.WriteEvent(t.Context(), numbered(1)))
	require.NoError(t, w.Close())
	got, err = os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, nativeLines(2), string(got))
}

func TestOpenFileRespectsPermissions(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no permission bits")
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "new")
	w, err := OpenFile(path, WriterOptions{})
	require.NoError(t, err)
	require.NoError(t, w.Close())
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.EqualValues(t, 0o600, info.Mode().Perm(), "nobody else may read it")
	require.Zero(t, info.Size())

	require.NoError(t, os.Chmod(path, 0o640))
	w, err = OpenFile(path, WriterOptions{})
	require.NoError(t, err)
	require.NoError(t, w.WriteEvent(t.Context(), numbered(0)))
	require.NoError(t, w.Close())
	info, err = os.Stat(path)
	require.NoError(t, err)
	require.EqualValues(t, 0o640, info.Mode().Perm(), "an existing file keeps its own")

	_, err = OpenFile(dir, WriterOptions{})
	require.Error(t, err)
	_, err = OpenFile(filepath.Join(dir, "no", "such", "dir"), WriterOptions{})
	require.ErrorIs(t, err, os.ErrNotExist)
	if os.Geteuid() != 0 {
		require.NoError(t, os.Chmod(path, 0o400))
		_, err = OpenFile(path, WriterOptions{})
		require.ErrorIs(t, err, os.ErrPermission)
	}
}

// readAll reads a log and describes each event or error in an entry.
func readAll(r *Reader) []string {
	var out []string
	for ev, err := range r.All() {
		if err != nil {
			out = append(out, "error: "+err.Error())
		} else {
			out = append(out, fmt.Sprintf("line %d: event %d", r.Line(), ev.Sequence))
		}
	}
	return out
}

func TestReaderAcceptsLinesChangedByEditorsAndSystems(t *testing.T) {
	a, b, c := nativeLine(0), nativeLine(1), nativeLine(2)
	for name, tc := range map[string]struct {
		log   string
		lines []int
	}{
		"plain":              {a + "\n" + b + "\n" + c + "\n", []int{1, 2, 3}},
		"no final newline":   {a + "\n" + b + "\n" + c, []int{1, 2, 3}},
		"crlf":               {a + "\r\n" + b + "\r\n" + c + "\r\n", []int{1, 2, 3}},
		"crlf, no final one": {a + "\r\n" + b + "\r\n" + c + "\r", []int{1, 2, 3}},
		"byte order mark":    {"\xef\xbb\xbf" + a + "\n" + b + "\n" + c, []int{1, 2, 3}},
		"blank lines":        {"\n \t\n" + a + "\n\n\r\n" + b + "\n" + c + "\n\n\n", []int{3, 6, 7}},
		"indented":           {"  " + a + "\n\t" + b + " \n" + c, []int{1, 2, 3}},
	} {
		var want []string
		for i, line := range tc.lines {
			want = append(want, fmt.Sprintf("line %d: event %d", line, i))
		}
		require.Equal(t, want, readAll(NewReader(strings.NewReader(tc.log), ReaderOptions{})), name)
		require.Equal(t, want, readAll(NewReader(iotest.OneByteReader(strings.NewReader(tc.log)), ReaderOptions{})), name)
	}
	for _, log := range []string{"", "\n", "\xef\xbb\xbf", "\r\n\n"} {
		require.Empty(t, readAll(NewReader(strings.NewReader(log), ReaderOptions{})))
	}
}

// requireOneBadLine requires events 0 and 1 around one bad line and returns its
// error.
func requireOneBadLine(t *testing.T, bad string, o ReaderOptions) *LineError {
	t.Helper()
	r := NewReader(strings.NewReader(nativeLine(0)+"\n"+bad+"\n"+nativeLine(1)+"\n"), o)
	var got *LineError
	n := 0
	for ev, err := range r.All() {
		if err != nil {
			require.Nil(t, got, "two errors")
			require.ErrorAs(t, err, &got)
			require.Equal(t, 1, n)
			require.Equal(t, 2, r.Line())
			continue
		}
		require.EqualValues(t, n, ev.Sequence)
		n++
	}
	require.Equal(t, 2, n, "good lines before and after are delivered")
	require.NotNil(t, got)
	require.Equal(t, 2, got.Line)
	require.EqualValues(t, len(nativeLine(0))+1, got.Offset)
	require.NotErrorIs(t, got, io.ErrUnexpectedEOF, "only the last line can be torn")
	return got
}

func TestReaderDeliversATornLogUpToWhereItMayBeCut(t *testing.T) {
	whole := nativeLines(3)
	last := nativeLine(3)
	for cut := 1; cut < len(last); cut++ {
		log := whole + last[:cut]
		r := NewReader(strings.NewReader(log), ReaderOptions{})
		n := 0
		var torn *LineError
		for _, err := range r.All() {
			if err == nil {
				n++
				continue
			}
			require.ErrorAs(t, err, &torn)
		}
		require.Equal(t, 3, n)
		require.NotNil(t, torn)
		require.ErrorIs(t, torn, io.ErrUnexpectedEOF)
		require.Equal(t, 4, torn.Line)
		require.Equal(t, whole, log[:torn.Offset])
	}
	// A last line that is whole and wrong is not torn.
	for _, bad := range []string{`{"id":5}`, `{"id":"a","id":"b"}`, `{"id":"a",}`, `{"id":"a"} } ` + "\r"} {
		var got error
		for _, err := range NewReader(strings.NewReader(whole+bad), ReaderOptions{}).All() {
			got = errors.Join(got, err)
		}
		require.Error(t, got, bad)
		require.NotErrorIs(t, got, io.ErrUnexpectedEOF, bad)
	}
}

// paddedLine returns the line of event n with length bytes.
func paddedLine(n, length int) string {
	line := nativeLine(n)
	return strings.Replace(line, `"delta":"`, `"delta":"`+strings.Repeat("x", length-len(line)), 1)
}

func TestReaderTakesLinesUpToMaxLine(t *testing.T) {
	for _, length := range []int{200, 1000, 64<<10 - 2, 64<<10 - 1, 64 << 10, 64<<10 + 1, 70_000, 300_000} {
		for _, end := range []string{"\n", "\r\n"} {
			log := paddedLine(0, length) + end + nativeLine(1) + end
			for _, max := range []int{length, length + 1, 0} {
				r := NewReader(strings.NewReader(log), ReaderOptions{MaxLine: max})
				require.Equal(t, []string{"line 1: event 0", "line 2: event 1"}, readAll(r), "%d of %d", length, max)
			}
			r := NewReader(strings.NewReader(log), ReaderOptions{MaxLine: max(length-1, len(nativeLine(1)))})
			got := readAll(r)
			require.Len(t, got, 2)
			require.Contains(t, got[0], "error: line 1 (byte 0): ")
			require.Contains(t, got[0], fmt.Sprintf("limit is %d (ReaderOptions.MaxLine)", length-1))
			require.Contains(t, got[0], fmt.Sprintf("the line has %d bytes", length))
			require.Equal(t, "line 2: event 1", got[1])
		}
	}
}

func TestReaderNeverCutsALongLineShort(t *testing.T) {
	// A carriage return where the buffer ends is not the end of the line.
	for limit := 64<<10 - 4; limit < 64<<10+4; limit++ {
		long := paddedLine(0, limit) + "\r" + strings.Repeat("y", 1000)
		got := readAll(NewReader(strings.NewReader(long+"\n"+nativeLine(1)), ReaderOptions{MaxLine: limit}))
		require.Len(t, got, 2)
		require.Contains(t, got[0], "it was skipped")
		require.Equal(t, "line 2: event 1", got[1])
	}
}

func TestReaderSkipsLinesAboveSixteenMiBByDefault(t *testing.T) {
	le := requireOneBadLine(t, paddedLine(0, 17<<20), ReaderOptions{})
	require.ErrorContains(t, le, "limit is 16777216")
	r := NewReader(strings.NewReader(paddedLine(0, 17<<20)), ReaderOptions{MaxLine: 32 << 20})
	require.Equal(t, []string{"line 1: event 0"}, readAll(r))
}

func TestReaderNamesFilesThatAreNoLogs(t *testing.T) {
	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	_, err := io.WriteString(z, nativeLines(10))
	require.NoError(t, err)
	require.NoError(t, z.Close())
	got := readAll(NewReader(&zipped, ReaderOptions{}))
	require.NotEmpty(t, got)
	require.Contains(t, got[0], "gzip")

	for _, order := range []binary.AppendByteOrder{binary.LittleEndian, binary.BigEndian} {
		wide := order.AppendUint16(nil, 0xfeff)
		for _, u := range utf16.Encode([]rune(nativeLines(2))) {
			wide = order.AppendUint16(wide, u)
		}
		got = readAll(NewReader(bytes.NewReader(wide), ReaderOptions{}))
		require.NotEmpty(t, got)
		require.Contains(t, got[0], "UTF-16")
	}

	noise := make([]byte, 100_000)
	for i := range noise {
		noise[i] = byte(i * i >> 3)
	}
	for _, entry := range readAll(NewReader(bytes.NewReader(noise), ReaderOptions{})) {
		require.Contains(t, entry, "error: ")
	}
}

func TestReaderCountsTheByteOrderMarkInOffsets(t *testing.T) {
	log := "\xef\xbb\xbf" + `{"id":true}` + "\n"
	for _, err := range NewReader(strings.NewReader(log), ReaderOptions{}).All() {
		var le *LineError
		require.ErrorAs(t, err, &le)
		at := int(le.Offset) + le.Column
		require.Equal(t, "true", log[at:at+4])
	}
}

// TestReaderErrorsNameLineByteAndPointer reads the bad logs in testdata/jsonl. Each file is a log
// whose good lines have the sequences 0, 1, 2 …; the .golden file beside it has the reader's
// results, an entry a line. To change the expectation run the test with -update and read the diff.
func TestReaderErrorsNameLineByteAndPointer(t *testing.T) {
	files, err := filepath.Glob("testdata/jsonl/*.jsonl")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			log, err := os.ReadFile(file)
			require.NoError(t, err)
			var got strings.Builder
			good := 0
			r := NewReader(bytes.NewReader(log), ReaderOptions{MaxLine: 4096})
			for ev, err := range r.All() {
				if err == nil {
					fmt.Fprintf(&got, "event %d\n", ev.Sequence)
					require.EqualValues(t, good, ev.Sequence, "no good line is lost")
					good++
					continue
				}
				var le *LineError
				require.ErrorAs(t, err, &le)
				fmt.Fprintf(&got, "error %s\n", err)
				lines := bytes.SplitAfter(log, []byte("\n"))
				want := 0
				for _, line := range lines[:le.Line-1] {
					want += len(line)
				}
				require.EqualValues(t, want, le.Offset)
				require.Equal(t, le.Line, r.Line())
			}
			golden := file + ".golden"
			if *update {
				require.NoError(t, os.WriteFile(golden, []byte(got.String()), 0o644))
			}
			want, err := os.ReadFile(golden)
			require.NoError(t, err)
			require.Equal(t, string(want), got.String())
		})
	}
}

func TestLineTellsWhereTheLastEventCameFrom(t *testing.T) {
	r := NewReader(strings.NewReader("\n"+nativeLine(0)+"\n\nx\n"+nativeLine(1)+"\n"), ReaderOptions{})
	require.Zero(t, r.Line())
	var lines []int
	for range r.All() {
		lines = append(lines, r.Line())
	}
	require.Equal(t, []int{2, 4, 5}, lines)
	require.Equal(t, 5, r.Line(), "also after the end")
}

func TestAllGoesOnAfterABreak(t *testing.T) {
	log := nativeLine(0) + "\nbad\n" + nativeLine(1) + "\n" + nativeLine(2)
	r := NewReader(strings.NewReader(log), ReaderOptions{})
	var got []string
	for range 10 {
		for ev, err := range r.All() {
			got = append(got, fmt.Sprint(ev.Sequence, err != nil))
			break
		}
	}
	require.Equal(t, []string{"0 false", "0 true", "1 false", "2 false"}, got)
}

// A wordDecoder makes an event of every word of a line; a word "?" is an
// error after the events, "+" is kept for the end.
type wordDecoder struct {
	n    int
	kept []Event
	end  error
}

func (d *wordDecoder) Decode(dst []Event, line []byte) ([]Event, error) {
	var err error
	for word := range strings.FieldsSeq(string(line)) {
		ev := Event{ID: word, Sequence: uint64(d.n), Payload: &TextDelta{Delta: word}}
		switch word {
		case "?":
			err = &LineError{Column: bytes.IndexByte(line, '?'), Pointer: "/x", Err: errors.New("a question")}
			continue
		case "!":
			err = errors.New("an exclamation")
			continue
		case "+":
			d.kept = append(d.kept, ev)
		default:
			dst = append(dst, ev)
		}
		d.n++
	}
	return dst, err
}

func (d *wordDecoder) End(dst []Event) ([]Event, error) { return append(dst, d.kept...), d.end }

func describe(r *Reader, stop int) []string {
	var out []string
	for ev, err := range r.All() {
		var le *LineError
		switch {
		case errors.As(err, &le):
			out = append(out, fmt.Sprintf("%d: error %d %d %s %v", r.Line(), le.Line, le.Offset, le.Pointer, le.Err))
		case err != nil:
			out = append(out, "error without a place: "+err.Error())
		default:
			out = append(out, fmt.Sprintf("%d: %s", r.Line(), ev.ID))
		}
		if stop--; stop == 0 {
			break
		}
	}
	return out
}

func TestADecoderMayGiveSeveralEventsALineAndEventsWithAnError(t *testing.T) {
	const log = "a b\n\nc ? d\n+ + e\n!\nf g"
	want := []string{"1: a", "1: b", "3: c", "3: d", "3: error 3 5 /x a question", "4: e", "5: error 5 17  an exclamation", "6: f", "6: g", "6: +", "6: +"}
	require.Equal(t, want, describe(NewReader(strings.NewReader(log), ReaderOptions{Decoder: &wordDecoder{}}), -1))

	// However often the loop is left, nothing is lost.
	r := NewReader(strings.NewReader(log), ReaderOptions{Decoder: &wordDecoder{}})
	var got []string
	for range 20 {
		got = append(got, describe(r, 1)...)
	}
	require.Equal(t, want, got)
}

func TestErrorsOfADecodersEndComeLastWithTheirPlace(t *testing.T) {
	for _, end := range []error{errors.New("unfinished"), &LineError{Column: 1, Err: errors.New("unfinished")}} {
		r := NewReader(strings.NewReader("a\n+\n"), ReaderOptions{Decoder: &wordDecoder{end: end}})
		got := describe(r, -1)
		require.Len(t, got, 3)
		require.Contains(t, got[1], "+")
		require.Contains(t, got[2], "unfinished")
		require.NotContains(t, got[2], "error 0 ", "the Reader fills in the line")
		require.NotContains(t, got[2], "without a place")
	}
}

// A joinDecoder has several errors for a line and at the end.
type joinDecoder struct{}

func (joinDecoder) Decode(dst []Event, line []byte) ([]Event, error) {
	return append(dst, Event{ID: "1"}), errors.Join(
		&LineError{Err: errors.New("the line before")},
		errors.Join(&LineError{Column: 2, Pointer: "/b", Err: errors.New("b")}, jsonwire.Valid(string(line))),
		fmt.Errorf("all of %w and %w", errors.New("c"), errors.New("d")),
		&RuleError{Rule: RuleRun, Pointer: "/e", Detail: "e"})
}

func (joinDecoder) End(dst []Event) ([]Event, error) {
	return dst, errors.Join(errors.New("f"), &LineError{Err: errors.New("g")})
}

func TestJoinedErrorsAreYieldedOneByOne(t *testing.T) {
	const log = "\n{\"x\":?}\n"
	want := []string{
		"2: 1",
		"2: error 2 1  the line before",
		"2: error 2 1 /b b",
		"2: error 2 1 /x found \"?\", expected a value",
		"2: error 2 1  all of c and d",
		"2: error 2 1 /e agentevents: /e: e (rule run, sequence 0)",
		"2: error 2 1  f",
		"2: error 2 1  g",
	}
	require.Equal(t, want, describe(NewReader(strings.NewReader(log), ReaderOptions{Decoder: joinDecoder{}}), -1))
	r := NewReader(strings.NewReader(log), ReaderOptions{Decoder: joinDecoder{}})
	var got []string
	for range 20 {
		got = append(got, describe(r, 1)...)
	}
	require.Equal(t, want, got, "however often the loop is left")

	// A fault of the whole line is reported once.
	got = describe(NewReader(strings.NewReader("\x1f\x8b"), ReaderOptions{Decoder: joinDecoder{}}), -1)
	require.Equal(t, 1, strings.Count(strings.Join(got, "\n"), "gzip"))
	got = describe(NewReader(strings.NewReader("{"), ReaderOptions{Decoder: joinDecoder{}}), -1)
	require.Equal(t, 1, strings.Count(strings.Join(got, "\n"), "the last line is torn"))
}

func TestADecodersEndIsCalledAfterALastLineThatIsTooLong(t *testing.T) {
	r := NewReader(strings.NewReader("+ a\n"+strings.Repeat("x", 100)), ReaderOptions{Decoder: &wordDecoder{}, MaxLine: 10})
	got := describe(r, -1)
	require.Len(t, got, 3)
	require.Contains(t, strings.Join(got, "\n"), ": +")
}

func TestReaderReportsAnErrorOfItsInputAndEnds(t *testing.T) {
	broken := errors.New("network")
	in := io.MultiReader(strings.NewReader(nativeLine(0)+"\n"+nativeLine(1)[:10]), iotest.ErrReader(broken))
	r := NewReader(in, ReaderOptions{})
	var got []string
	var le *LineError
	for ev, err := range r.All() {
		if err != nil {
			require.ErrorIs(t, err, broken)
			require.ErrorAs(t, err, &le)
			got = append(got, "error")
		} else {
			got = append(got, ev.ID)
		}
	}
	require.Equal(t, []string{"0", "error"}, got)
	require.Equal(t, 2, le.Line)
	require.EqualValues(t, len(nativeLine(0))+1, le.Offset)
	require.Empty(t, readAll(r))

	// In the middle of a long line too, and events that a decoder kept are delivered.
	in = io.MultiReader(strings.NewReader("+\n"+strings.Repeat("x", 100_000)), iotest.ErrReader(broken))
	require.Contains(t, strings.Join(describe(NewReader(in, ReaderOptions{Decoder: &wordDecoder{}}), -1), "\n"), ": +")
}

func TestVerbatimWritesALineBackAsItWas(t *testing.T) {
	line := `{ "type":"agent.text", "payload":{"text":"\u0041"}, "id":"1","sequence":7,"timestamp":"2026-05-05T09:00:00Z","runId":"r" }`
	for ev, err := range NewReader(strings.NewReader(line+"\n"), ReaderOptions{Verbatim: true}).All() {
		require.NoError(t, err)
		got, err := ev.AppendJSON(nil)
		require.NoError(t, err)
		require.Equal(t, line, string(got))
		ev.Sequence = 8
		got, err = ev.AppendJSON(nil)
		require.NoError(t, err)
		require.Contains(t, string(got), `"sequence":8`, "a changed event is written as it is now")
	}
}

func TestLineErrorsNameThePlace(t *testing.T) {
	cause := errors.New("cause")
	le := &LineError{Line: 3, Offset: 100, Column: 5, Pointer: "/payload/step", Err: cause}
	require.EqualError(t, le, "line 3 (byte 105): /payload/step: cause")
	require.ErrorIs(t, le, cause)
	require.EqualError(t, &LineError{Line: 1, Err: cause}, "line 1 (byte 0): cause")
}

func FuzzReader(f *testing.F) {
	for info := range Kinds() {
		line, err := (&Event{ID: "1", RunID: "r", Time: noon(), Payload: NewPayload(info.Kind)}).AppendJSON(nil)
		require.NoError(f, err)
		f.Add(line)
		line, err = (&Event{ID: "1", RunID: "r", Time: noon(), Step: Some(1), Marks: 31, Payload: filledPayload(f, info.Kind)}).AppendJSON(nil)
		require.NoError(f, err)
		f.Add(line)
		f.Add(append(line[:len(line)/2:len(line)/2], '\n'))
	}
	for _, line := range kindLines(f) {
		f.Add([]byte(line))
	}
	linked, _ := chain.Append(nil, []byte(aLine), chain.Hash{})
	f.Add(append(append(linked, '\n'), bytes.Replace(linked, []byte(`,"prev"`), []byte(`, "prev"`), 1)...))
	files, err := filepath.Glob("testdata/jsonl/*.jsonl")
	require.NoError(f, err)
	for _, file := range files {
		if log, err := os.ReadFile(file); err == nil {
			f.Add(log)
		}
	}
	f.Fuzz(func(t *testing.T, log []byte) {
		plain := NewReader(bytes.NewReader(log), ReaderOptions{MaxLine: 1 << 16})
		verbatim := NewReader(bytes.NewReader(log), ReaderOptions{MaxLine: 1 << 16, Verbatim: true})
		var kept []Event
		for ev, err := range verbatim.All() {
			if err == nil {
				kept = append(kept, ev)
			}
		}
		i := 0
		for ev, err := range plain.All() {
			if err != nil {
				if err.Error() == "" {
					t.Fatal("an error without a text")
				}
				continue
			}
			line, err := ev.AppendJSON(nil)
			if err != nil {
				t.Fatalf("accepted and cannot be written: %v", err)
			}
			var back Event
			if err := back.UnmarshalJSON(line); err != nil {
				t.Fatalf("written and cannot be read: %v\n%s", err, line)
			}
			require.Equal(t, ev, back)
			again, err := back.AppendJSON(nil)
			require.NoError(t, err)
			require.Equal(t, string(line), string(again))

			old := kept[i].origin // without links
			text, err := kept[i].AppendJSON(nil)
			require.NoError(t, err)
			require.Equal(t, old, string(text), "verbatim")
			kept[i].origin = ""
			require.Equal(t, ev, kept[i])
			i++
		}
	})
}

// link chains the lines of a log.
func link(log string) string {
	var out []byte
	var last chain.Hash
	for line := range strings.Lines(log) {
		out, last = chain.Append(out, []byte(strings.TrimSuffix(line, "\n")), last)
		out = append(out, '\n')
	}
	return string(out)
}

// chainLog is a log of every kind, among them kinds with an empty payload, none and with
// members that no field has.
func chainLog(t *testing.T) string {
	var b strings.Builder
	b.WriteString(aLine + "\n")
	for _, e := range sampleEvents() {
		b.WriteString(encodeEvent(t, e) + "\n")
	}
	b.WriteString(`{"id":"e8","sequence":8,"timestamp":"2026-05-05T09:00:00.000Z","type":"vendor.x","runId":"r1"}` + "\n")
	b.WriteString(`{"id":"e9","sequence":9,"timestamp":"2026-05-05T09:00:00.000Z","type":"run.paused","runId":"r1","payload":{},"hash":"x","prev":1}` + "\n")
	return b.String()
}

func readAllOf(t *testing.T, log string, o ReaderOptions) []Event {
	var all []Event
	for ev, err := range NewReader(strings.NewReader(log), o).All() {
		require.NoError(t, err)
		all = append(all, ev)
	}
	return all
}

// The link of a line belongs to the file: no way to read the line shows it.
func TestReadersTakeLinksOff(t *testing.T) {
	log := chainLog(t)
	linked := link(log)
	for _, o := range []ReaderOptions{{}, {Verbatim: true}, {Verbatim: true, Decoder: NewDecoder()}} {
		require.Equal(t, readAllOf(t, log, o), readAllOf(t, linked, o))
	}
	lines := strings.Split(strings.TrimSuffix(log, "\n"), "\n")
	for i, line := range strings.Split(strings.TrimSuffix(linked, "\n"), "\n") {
		kept := []byte(line)
		var ev Event
		require.NoError(t, ev.UnmarshalJSON(kept))
		require.Equal(t, line, string(kept), "the caller's line stays")
		require.Equal(t, decodeLine(t, lines[i]), ev)
		require.Equal(t, lines[i], encodeEvent(t, ev))
	}
}

// An event is the same one in a chain and outside of it: read twice it is counted once.
func TestDuplicatesIgnoreLinks(t *testing.T) {
	log := chainLog(t)
	_, rest, _ := strings.Cut(log, "\n")
	both := link(log) + log + link(rest) // the second chain has other links
	for _, workers := range []int{1, 3} {
		want, err := FoldLog(NewReader(strings.NewReader(log+log+rest), ReaderOptions{}), FoldOptions{Workers: workers})
		require.NoError(t, err)
		l, err := FoldLog(NewReader(strings.NewReader(both), ReaderOptions{}), FoldOptions{Workers: workers})
		require.NoError(t, err)
		for s := range want.Drain() {
			got := l.Snapshot(s.RunID)
			require.NotNil(t, got)
			require.Equal(t, string(s.AppendJSON(nil)), string(got.AppendJSON(nil)))
		}
	}
}

// Members of these names in another form are the event's own, and stay so when it is
// written.
func TestMembersThatLookLikeALinkStay(t *testing.T) {
	linked := strings.TrimSuffix(link(aLine+"\n"), "\n")
	for _, line := range []string{
		strings.Replace(linked, `,"prev"`, `, "prev"`, 1),
		strings.Replace(linked, `:"`+strings.Repeat("0", 64), `: "`+strings.Repeat("0", 64), 1),
		linked + " ",
	} {
		ev := decodeLine(t, line)
		require.NotEmpty(t, ev.Extra("prev"), line)
		require.NotEmpty(t, ev.Extra("hash"), line)
		text := encodeEvent(t, ev)
		require.True(t, json.Valid([]byte(text)))
		require.Equal(t, ev, decodeLine(t, text))
		require.Equal(t, text, encodeEvent(t, decodeLine(t, text)))

		again := strings.TrimSuffix(link(text+"\n"), "\n")
		require.Equal(t, ev, decodeLine(t, again), "in a chain too")
	}
	upper := strings.ToUpper(linked[len(linked)-66 : len(linked)-2])
	ev := decodeLine(t, linked[:len(linked)-66]+upper+`"}`)
	require.NotEmpty(t, ev.Extra("prev"))
	require.True(t, bytes.Contains([]byte(encodeEvent(t, ev)), []byte(upper)))
}

// A link does not count for the length of a line.
func TestALinkDoesNotMakeALineTooLong(t *testing.T) {
	linked := link(aLine + "\n")
	require.Len(t, readAllOf(t, linked, ReaderOptions{MaxLine: len(aLine)}), 1)
	for _, err := range NewReader(strings.NewReader(linked), ReaderOptions{MaxLine: len(aLine) - 1}).All() {
		require.ErrorContains(t, err, "MaxLine")
	}
}

// An error names the place in the line as it is in the file.
func TestErrorsInLinkedLines(t *testing.T) {
	bad := strings.Replace(aLine, `"sequence":7`, `"sequence":"x"`, 1)
	for _, linked := range []bool{false, true} {
		text := bad
		if linked {
			text = strings.TrimSuffix(link(bad+"\n"), "\n")
		}
		for _, err := range NewReader(strings.NewReader(text), ReaderOptions{}).All() {
			le, ok := err.(*LineError)
			require.True(t, ok)
			require.Equal(t, "/sequence", le.Pointer)
			require.Equal(t, strings.Index(bad, `"x"`), le.Column)
		}
		_, err := FoldLog(NewReader(strings.NewReader(text), ReaderOptions{}), FoldOptions{})
		require.ErrorContains(t, err, "/sequence")
		require.NotContains(t, err.Error(), "torn")
	}
}

// A torn event in front of a whole one, wherever it is torn, takes the whole one with it in no
// way of reading: it is delivered, and the error of the line stands beside it.
func TestWholeEventAfterATornOne(t *testing.T) {
	const torn = `{"id":"e4","sequence":3,"timestamp":"2026-11-01T09:00:01.200Z","type":"agent.text","runId":"other","agentId":"é","step":0,"payload":{"text":"a \"b\" {\"id\":\"x\"} \u00e9 c","blockId":"b"}}`
	const whole = `{"id":"e5","sequence":0,"timestamp":"2026-11-01T09:00:01.300Z","type":"agent.text","runId":"r1","agentId":"a","schemaVersion":"1.0","payload":{"text":"kept"}}`
	lines := []string{strings.Repeat("\x00", 20) + whole, torn[:50] + torn[:90] + whole}
	for cut := 1; cut < len(torn); cut++ {
		if strings.HasSuffix(torn[:cut], ":") {
			continue // the whole event could be its value
		}
		lines = append(lines, torn[:cut]+whole)
	}
	for _, line := range lines {
		for _, text := range []string{line + "\n", line} {
			var got []Event
			var errs []error
			for ev, err := range NewReader(strings.NewReader(text), ReaderOptions{}).All() {
				if err != nil {
					errs = append(errs, err)
				} else {
					got = append(got, ev)
				}
			}
			require.Len(t, got, 1, text)
			require.Equal(t, "e5", got[0].ID)
			require.Len(t, errs, 1)
			for _, workers := range []int{1, 3} {
				log, err := FoldLog(NewReader(strings.NewReader(text), ReaderOptions{}), FoldOptions{Workers: workers})
				require.NotNil(t, log.Snapshot("r1"), text)
				require.Nil(t, log.Snapshot("other"))
				require.Equal(t, errs[0].Error(), err.Error())
				var le *LineError
				require.True(t, errors.As(err, &le))
			}
		}
	}
}

// An event that a torn line holds as a value is not delivered.
func TestEventInsideATornOneIsNone(t *testing.T) {
	const inner = `{"id":"e5","sequence":0,"timestamp":"2026-11-01T09:00:01.300Z","type":"agent.text","runId":"r1","payload":{"text":"kept"}}`
	for _, line := range []string{
		`{"id":"e4","sequence":3,"payload":{"result":` + inner, `{"id":"e4","payload":[1,` + inner, `{"id":"e4","payload":` + inner + `}}`,
		`{"id":"e4" "payload":` + inner + `}`, `[` + inner + `]`,
	} {
		for ev, err := range NewReader(strings.NewReader(line+"\n"), ReaderOptions{}).All() {
			require.Error(t, err, ev.ID)
		}
	}
}

// foreignFiles returns texts of other programs by the names that they are called by.
func foreignFiles(t *testing.T) []txtar.File {
	t.Helper()
	text, err := os.ReadFile("internal/foreign/testdata/files.txtar")
	require.NoError(t, err)
	files := txtar.Parse(string(text)).Files
	require.Greater(t, len(files), 40)
	for i := range files {
		files[i].Name, _, _ = strings.Cut(files[i].Name, " #")
	}
	return files
}

// A reading is one way of reading a log.
type reading struct {
	name string
	read func(log string) (runs string, events uint64, err error)
}

func readings() []reading {
	fold := func(o FoldOptions) func(string) (string, uint64, error) {
		return func(log string) (runs string, events uint64, err error) {
			l, err := FoldLog(NewReader(strings.NewReader(log), ReaderOptions{}), o)
			for s := range l.Drain() {
				runs += s.RunID + ";"
				events += s.NextSequence
			}
			return runs, events, err
		}
	}
	return []reading{
		{"All", func(log string) (runs string, events uint64, err error) {
			var errs []error
			l := NewFoldSet(FoldOptions{})
			for ev, err := range NewReader(strings.NewReader(log), ReaderOptions{}).All() {
				if err != nil {
					errs = append(errs, err)
					continue
				}
				l.Apply(ev)
			}
			for s := range l.Drain() {
				runs += s.RunID + ";"
				events += s.NextSequence
			}
			return runs, events, errors.Join(errs...)
		}},
		{"FoldLog", fold(FoldOptions{})},
		{"FoldLog with workers", fold(FoldOptions{Workers: 2})},
	}
}

// The file of another program has no run, and the error names the program. Blank lines, the ends
// of lines and a byte order mark do not change that.
func TestFilesOfOtherPrograms(t *testing.T) {
	for _, f := range foreignFiles(t) {
		for spelling, text := range map[string]string{
			"as it is":         f.Text,
			"blank lines":      "\n \n\t\n" + f.Text + "\n\n  \n",
			"CRLF":             strings.ReplaceAll(f.Text, "\n", "\r\n"),
			"a mark":           "\ufeff" + f.Text,
			"a mark and blank": "\ufeff\r\n\r\n" + f.Text,
			"no newline":       strings.TrimRight(f.Text, "\n"),
		} {
			for _, r := range readings() {
				runs, events, err := r.read(text)
				require.Empty(t, runs, "%s, %s: %s", f.Name, spelling, r.name)
				require.Zero(t, events)
				var foreign *ForeignError
				require.ErrorAs(t, err, &foreign, "%s, %s: %s", f.Name, spelling, r.name)
				name, _, _ := strings.Cut(foreign.Name, " as JSON over") // a document of a program whose lines are read
				require.Equal(t, f.Name, name, "%s, %s", spelling, r.name)
				require.NotEmpty(t, foreign.Hint)
				if !foreign.unknown() {
					require.Equal(t, 1, strings.Count(err.Error(), "\n")+1, "%s: once", err)
				}
			}
		}
	}
}

func TestOtherFormsOfFiles(t *testing.T) {
	for text, want := range map[string]string{
		"SQLite format 3\x00\x10\x00\x01\x01\x00\n\x00":   "a SQLite database",
		"7\x7f\x06\x82\x00-\xe2\x18\n":                    "the write-ahead log of a SQLite database",
		"\x1f\x8b\x08\x00\n\x00":                          "gzip data, not lines of JSON",
		"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR":             "binary data",
		"\x7fELF\x02\x01\x01\x00\n{\"a\":1}\n\x00\x00\n":  "binary data",
		"\xff\xfe{\x00\"\x00i\x00d\x00\"\x00:\x00\n\x00x": "UTF-16, not UTF-8",
	} {
		for _, r := range readings() {
			runs, _, err := r.read(text)
			require.Empty(t, runs)
			var foreign *ForeignError
			require.ErrorAs(t, err, &foreign, "%q", text)
			require.Equal(t, want, foreign.Name)
			require.Empty(t, foreign.Program)
			require.NotContains(t, err.Error(), "\n", "once")
		}
	}
}

// Lines of other programs in a log take nothing from it, wherever they stand.
func TestLinesOfOtherProgramsInALog(t *testing.T) {
	var lines []string
	for _, f := range foreignFiles(t) {
		lines = append(lines, strings.Split(strings.TrimSpace(f.Text), "\n")...)
	}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	for range 200 {
		var log bytes.Buffer
		const events = 20
		for i := range events {
			for range random.IntN(4) {
				line := lines[random.IntN(len(lines))]
				if i == 0 && strings.HasPrefix(line, "[") {
					continue // a whole file of that form, of which the rest is not read
				}
				log.WriteString(line + "\n")
			}
			fmt.Fprintf(&log, `{"id":"e%d","sequence":%d,"timestamp":"2026-05-05T09:00:00.000Z","type":"x.custom","runId":"r","payload":{}}`+"\n", i, i)
		}
		var first error
		for i, r := range readings() {
			runs, got, err := r.read(log.String())
			for run := range strings.SplitSeq(strings.TrimSuffix(runs, ";"), ";") {
				require.NotEmpty(t, run, "%s:\n%s", r.name, &log)
			}
			require.True(t, strings.HasPrefix(runs, "r;"), runs)
			require.GreaterOrEqual(t, got, uint64(events), "%s:\n%s", r.name, &log)
			if i == 0 {
				first = err
			} else {
				require.Equal(t, fmt.Sprint(first), fmt.Sprint(err), r.name)
			}
		}
	}
}

// A log may have events of kinds that nobody knows, from its first line. Those that name their run
// and lack other members that an emitter writes count after an event that has them.
func TestUnknownKindsProveALog(t *testing.T) {
	const (
		whole = `{"id":"1","sequence":0,"timestamp":"2026-05-05T09:00:00.000Z","type":"x.custom","runId":"r"}` + "\n"
		part  = `{"id":"2","type":"x.custom","runId":"r"}` + "\n"
		alien = `{"id":"2","type":"x.custom"}` + "\n"
		known = `{"sequence":1,"type":"run.paused","runId":"r"}` + "\n"
		bare  = `{"type":"turn.started"}` + "\n"
	)
	for log, want := range map[string]int{
		whole: 1, known: 1, whole + part: 2, known + part: 2, part + whole: 1, part + known + part: 2,
		part: 0, bare: 0, alien: 0, part + part: 0, whole + bare: 1, whole + alien + whole: 2, known + alien: 1,
	} {
		events := 0
		var err error
		for _, bad := range NewReader(strings.NewReader(log), ReaderOptions{}).All() {
			if bad == nil {
				events++
			} else {
				err = bad
			}
		}
		require.Equal(t, want, events, log)
		require.Equal(t, strings.HasPrefix(log, part) || strings.Contains(log, bare) || strings.Contains(log, alien), err != nil, log)
	}
}
