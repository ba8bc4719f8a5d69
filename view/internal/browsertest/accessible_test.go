package browsertest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/chromedp/cdproto/accessibility"
	"github.com/chromedp/cdproto/emulation"
	cdppage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"

	ae "github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/view"
)

// An axNode is a node of the browser's accessibility tree, which screen readers get.
type axNode struct {
	role, name string
	properties map[string]string
}

func (n axNode) String() string { return fmt.Sprintf("%s %.80q %v", n.role, n.name, n.properties) }

// tree returns the nodes of the accessibility tree that are not ignored.
func (p *page) tree() (nodes []axNode) {
	p.t.Helper()
	r, err := chromedp.Call(p.ctx, accessibility.GetFullAXTree, accessibility.GetFullAXTreeParams{})
	require.NoError(p.t, err)
	text := func(v *accessibility.Value) (s string) {
		if v == nil || json.Unmarshal(v.Value, &s) == nil {
			return s
		}
		return string(v.Value)
	}
	for _, n := range r.Nodes {
		if n.Ignored {
			continue
		}
		node := axNode{text(n.Role), text(n.Name), map[string]string{}}
		for _, property := range n.Properties {
			node.properties[string(property.Name)] = text(property.Value)
		}
		nodes = append(nodes, node)
	}
	return nodes
}

// Each thing that takes the focus, and each landmark, table and picture, has a name. The agents are a
// tree with levels. A step of the cursor is told.
func TestScreenReader(t *testing.T) {
	ctx := browser(t)
	named := []string{"region", "navigation", "tree", "treeitem", "tablist", "tab", "tabpanel", "table", "image", "button", "link", "dialog", "status"}
	for name, logs := range map[string][][]ae.Event{
		"agents": {session(t, "../../../capture/testdata/claude/agents")},
		"failed": {audit(t)},
		"diff":   {session(t, "../../../capture/testdata/claude/agents"), release(t, true)},
	} {
		t.Run(name, func(t *testing.T) {
			var all []view.Log
			for i, events := range logs {
				all = append(all, view.Log{Name: fmt.Sprint("log ", i), Events: seq(events)})
			}
			p := open(t, ctx, view.Options{}, all...)
			for _, tab := range []string{"Summary", "Timeline", "Transcript", "Events", "Diff"} {
				eval[bool](p, fmt.Sprintf(`(app.open(%q), app.go(0), true)`, tab))
				p.keys(kb.ArrowRight)
				var levels []string
				live := false
				for _, n := range p.tree() {
					if n.properties["focusable"] == "true" || slices.Contains(named, n.role) {
						require.NotEmpty(t, n.name, "%s: %v", tab, n)
					}
					switch n.role {
					case "treeitem":
						levels = append(levels, n.properties["level"])
					case "status":
						live = live || n.properties["live"] == "polite"
					}
				}
				require.True(t, live, tab)
				require.NotContains(t, eval[string](p, `document.body.innerText`), "undefined", tab)
				require.Equal(t, eval[[]string](p, `app.run.agents.map(a => String(a.depth + 1))`), levels)
				require.Equal(t, eval[string](p, `"event " + app.run.rows[1][SEQ]`), eval[string](p, `document.querySelector("[role=status]").textContent.split(",")[0]`), tab)
			}
			p.clean()
		})
	}
}

// The legend has the colours of the timeline. A page that is printed is dark text on white, also for
// people who like their screen dark.
func TestColours(t *testing.T) {
	p := open(t, browser(t), view.Options{}, view.Log{Name: "agents", Events: seq(session(t, "../../../capture/testdata/claude/agents"))})
	p.keys("2")
	for _, c := range []struct{ media, back, text, tool string }{
		{"screen", "rgb(20, 24, 29)", "rgb(230, 234, 238)", "rgb(83, 155, 245)"},
		{"print", "rgb(255, 255, 255)", "rgb(27, 31, 36)", "rgb(47, 127, 209)"},
	} {
		_, err := chromedp.Call(p.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Media: c.media, Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: "dark"}}})
		require.NoError(t, err)
		colour := func(selector, property string) string {
			return eval[string](p, fmt.Sprintf(`getComputedStyle(document.querySelector(%q))[%q]`, selector, property))
		}
		require.Equal(t, c.back, colour("body", "backgroundColor"), c.media)
		require.Equal(t, c.text, colour("body", "color"), c.media)
		require.Equal(t, c.tool, colour(".legend-tool", "borderTopColor"), c.media)
	}
}

// A pane of many events prints the rows in sight, not the room that all would take.
func TestPrintOfManyEvents(t *testing.T) {
	var events []ae.Event
	for n := range uint64(5000) {
		events = append(events, ae.Event{ID: fmt.Sprint("e", n), RunID: "r", Sequence: n, AgentID: "a", SchemaVersion: ae.SchemaVersion, Payload: &ae.TextCompleted{Text: fmt.Sprint("text ", n)}})
	}
	p := open(t, browser(t), view.Options{}, view.Log{Name: "many", Events: seq(events)})
	for _, key := range "1234" {
		p.keys(string(key))
		r, err := chromedp.Call(p.ctx, cdppage.PrintToPDF, cdppage.PrintToPDFParams{})
		require.NoError(t, err)
		pages := bytes.Count(r.Data, []byte("/Type /Page\n"))
		require.Positive(t, pages)
		require.Less(t, pages, 12, string(key))
	}
}
