package live_test

import (
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	ae "github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/live"
)

// stream returns the stream of a reader that has read up to an id.
func stream(page *live.Feed, last string) string {
	req := httptest.NewRequest("GET", "/runs/r/events", nil)
	if last != "" {
		req.Header.Set("Last-Event-ID", last)
	}
	w := httptest.NewRecorder()
	mux(page).ServeHTTP(w, req)
	return w.Body.String()
}

var ids = regexp.MustCompile(`(?m)^id: (.*)$`)

// idsOf returns the ids of the events of a stream that has ended.
func idsOf(stream string) (list []string) {
	for _, m := range ids.FindAllStringSubmatch(stream, -1) {
		list = append(list, m[1])
	}
	return list
}

// crashed returns the ids of a run of eight events, and the feed of a process that went on with it
// after a crash that lost the events from the third on, and recorded eight others.
func crashed(t *testing.T) (before []string, page *live.Feed) {
	t.Helper()
	first, run, file, em := start(t, live.Options{Linger: -1})
	emit(t, run, &ae.RunStarted{})
	deltas(t, run, 7)
	require.NoError(t, em.Close(t.Context()))
	before = idsOf(stream(first, ""))
	require.Len(t, before, 8)

	page = live.New(live.Options{Linger: -1})
	next, err := ae.NewEmitter(ae.EmitterOptions{Lifecycle: ae.LifecycleRelaxed, Sinks: []ae.Sink{page}})
	require.NoError(t, err)
	run, err = next.Resume(fold(t, strings.Join(linesOf(file)[:3], "\n")+"\n"))
	require.NoError(t, err)
	deltas(t, run, 7)
	emit(t, run, &ae.RunCompleted{})
	require.NoError(t, next.Close(t.Context()))
	return before, page
}

// A reader that has seen events which a crash lost is told so, however many others have their
// numbers since.
func TestAReaderOfLostEventsLoadsTheSnapshot(t *testing.T) {
	before, page := crashed(t)
	good := withoutEpoch(stream(page, before[2]))
	require.NotContains(t, good, "resync", "nothing that it has seen is lost")
	require.Equal(t, []string{"3", "4", "5", "6", "7", "8", "9", "10", "10"}, idsOf(good))
	for _, last := range before[3:] {
		sequence, _, _ := strings.Cut(last, "-")
		text := withoutEpoch(stream(page, last))
		require.Equal(t, []string{"10", "10"}, idsOf(text), last)
		require.Contains(t, text, "event: resync\ndata: {\"from\":"+string(sequence[0]+1)+",\"oldest\":3,\"next\":11}\n")
		require.Contains(t, text, "event: end\n")

		old := withoutEpoch(stream(page, sequence)) // of a client that keeps numbers
		require.NotContains(t, old, "resync")
		require.Len(t, idsOf(old), 10-int(sequence[0]-'0')+1)
	}
	now := idsOf(stream(page, before[2]))
	require.NotEqual(t, before[3], now[0])
	require.NotContains(t, stream(page, now[3]), "resync")
	require.Empty(t, stream(page, now[len(now)-1]), "the reader has all")

	last := strings.Replace(now[len(now)-1], "-", "-x", 1)
	require.Contains(t, stream(page, last), "resync", "as many events of another log are not these")
}

// The lines of an encoder begin with the run for a reader of lost events.
func TestAnEncodedReaderOfLostEventsBeginsAgain(t *testing.T) {
	before, page := crashed(t)
	lines := func(last string) []string {
		req := httptest.NewRequest("GET", "/runs/r/agui", nil)
		req.Header.Set("Last-Event-ID", last)
		w := httptest.NewRecorder()
		aguiHandler(page).ServeHTTP(w, req)
		return data(w.Body.String())
	}
	whole := lines("")
	require.Equal(t, whole, lines(before[6]))
	require.NotEqual(t, whole, lines("6"))
}

// A run that goes on in the same process has another epoch. Ids of the earlier epoch are valid for
// earlier events.
func TestEachResumeHasAnEpoch(t *testing.T) {
	page, run, file, em := start(t, live.Options{Linger: -1})
	emit(t, run, &ae.RunStarted{})
	deltas(t, run, 3)
	require.NoError(t, run.Close())
	before := idsOf(stream(page, ""))
	run, err := em.Resume(fold(t, file.String()))
	require.NoError(t, err)
	deltas(t, run, 3)
	emit(t, run, &ae.RunCompleted{})
	require.NoError(t, em.Close(t.Context()))
	after := idsOf(stream(page, ""))
	require.NotEqual(t, before[0], after[0])
	for i, last := range before {
		require.Equal(t, after[i+1:], idsOf(stream(page, last)), last)
	}
	_, epoch, _ := strings.Cut(before[0], "-")
	require.Contains(t, stream(page, "4-"+epoch), "resync", "the events of another process")
	for _, bad := range []string{"4-", "-" + epoch, "x-1"} {
		require.Contains(t, stream(page, bad), "is not the id of an event", bad)
	}
}
