package browsertest

import (
	"bytes"
	"cmp"
	"flag"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/view"
)

var pictures = flag.String("pictures", "", "write the pictures of the documentation into this folder")

// maxPicture is the number of bytes of a picture.
const maxPicture = 150_000

// TestPictures writes the pictures of docs/page.md: go test -run TestPictures -pictures ../../../docs/page
func TestPictures(t *testing.T) {
	if *pictures == "" {
		t.Skip("needs -pictures: it writes files")
	}
	require.NoError(t, os.MkdirAll(*pictures, 0o755))
	ctx, sessions := browser(t), sessionsOf(t)
	session := func(name string) view.Log {
		events := sessions["../../../capture/testdata/"+name]
		require.NotEmpty(t, events, name)
		return view.Log{Name: filepath.Base(name), Events: seq(events)}
	}
	for name, p := range map[string]struct {
		logs []view.Log
		tab  string
	}{
		"claude-agents": {[]view.Log{session("claude/agents")}, "Transcript"},
		"codex":         {[]view.Log{session("codex/tools")}, "Summary"},
		"parallel":      {[]view.Log{{Name: "parallel", Events: seq(parallel(24))}}, "Timeline"},
		"waits":         {[]view.Log{{Name: "waits", Events: seq(waits())}}, "Summary"},
		"diff":          {[]view.Log{session("claude/tools"), session("claude/fail")}, "Diff"},
	} {
		p, page := p, open(t, ctx, view.Options{}, p.logs...)
		eval[bool](page, fmt.Sprintf(`(app.open(%q), true)`, p.tab))
		shot, err := chromedp.Run(page.ctx, chromedp.CaptureScreenshot())
		require.NoError(t, err)
		small := shrink(t, shot)
		require.Less(t, len(small), maxPicture, name)
		require.NoError(t, os.WriteFile(filepath.Join(*pictures, name+".png"), small, 0o644))
		page.clean()
	}
}

// shrink returns a picture with the 256 colours that most of its pixels have.
func shrink(t *testing.T, shot []byte) []byte {
	t.Helper()
	full, err := png.Decode(bytes.NewReader(shot))
	require.NoError(t, err)
	b, pixels := full.Bounds(), map[color.Color]int{}
	for y := b.Min.Y; y < b.Max.Y; y++ {
		for x := b.Min.X; x < b.Max.X; x++ {
			pixels[full.At(x, y)]++
		}
	}
	colours := slices.Collect(maps.Keys(pixels))
	slices.SortFunc(colours, func(x, y color.Color) int {
		return cmp.Or(pixels[y]-pixels[x], strings.Compare(fmt.Sprint(x), fmt.Sprint(y)))
	})
	few := image.NewPaletted(b, colours[:min(256, len(colours))])
	nearest := map[color.Color]uint8{}
	for c := range pixels {
		nearest[c] = uint8(few.Palette.Index(c))
	}
	for y := b.Min.Y; y < b.Max.Y; y++ {
		for x := b.Min.X; x < b.Max.X; x++ {
			few.SetColorIndex(x, y, nearest[full.At(x, y)])
		}
	}
	var out bytes.Buffer
	require.NoError(t, (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&out, few))
	return out.Bytes()
}

// A script is a list of events of one run.
type script []agentevents.Event

// add adds an event of an agent, a number of milliseconds after the start.
func (s *script) add(ms int, agent, parent string, p agentevents.Payload) {
	at := time.Date(2026, 5, 2, 6, 0, 0, 0, time.UTC).Add(time.Duration(ms) * time.Millisecond)
	*s = append(*s, agentevents.Event{ID: fmt.Sprint("e", len(*s)), RunID: "bakery", Sequence: uint64(len(*s)), Time: at, AgentID: agent, ParentAgentID: parent, SchemaVersion: agentevents.SchemaVersion, Payload: p})
}

// parallel is a workflow of n agents at the same time.
func parallel(n int) []agentevents.Event {
	var s script
	s.add(0, "", "", &agentevents.RunStarted{Name: "review of a release"})
	s.add(10, "lead", "", &agentevents.AgentStarted{Task: "review each package"})
	id := func(i int) string { return fmt.Sprintf("reviewer-%02d", i) }
	for i := range n {
		s.add(50+20*i, id(i), "lead", &agentevents.AgentStarted{Task: fmt.Sprint("package ", i)})
	}
	for i := range n {
		s.add(700+20*i, id(i), "", &agentevents.ToolCalled{CallID: fmt.Sprint("c", i), ToolID: []string{"read", "test", "search"}[i%3]})
	}
	for i := range n {
		status := agentevents.ToolStatusOK
		if i%9 == 4 {
			status = agentevents.ToolStatusError
		}
		s.add(2000+130*i, id(i), "", &agentevents.ToolReturned{CallID: fmt.Sprint("c", i), ToolID: []string{"read", "test", "search"}[i%3], Status: status})
		s.add(2100+130*i, id(i), "", &agentevents.AgentEnded{Outcome: agentevents.OutcomeConverged})
	}
	s.add(5500, "lead", "", &agentevents.AgentEnded{Outcome: agentevents.OutcomeConverged})
	s.add(5600, "", "", &agentevents.RunCompleted{})
	return s
}

// waits is a run that waits for a person.
func waits() []agentevents.Event {
	var s script
	s.add(0, "", "", &agentevents.RunStarted{Name: "order of flour"})
	s.add(10, "buyer", "", &agentevents.AgentStarted{Task: "order 40 kg of flour"})
	s.add(900, "buyer", "", &agentevents.ToolCalled{CallID: "c1", ToolID: "prices"})
	s.add(1700, "buyer", "", &agentevents.ToolReturned{CallID: "c1", ToolID: "prices", Status: agentevents.ToolStatusOK})
	s.add(2000, "buyer", "", &agentevents.ApprovalRequested{ApprovalID: "a1", Action: "pay 52 euros to the mill", Reason: "orders above 50 euros need a person", ToolID: "pay"})
	return s
}
