package dialect_test

import (
	"bytes"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect"
	"github.com/agentevents/agentevents/dialect/dialecttest"
	"github.com/agentevents/agentevents/dialect/kahn"
	"github.com/agentevents/agentevents/dialect/kaos"
	"github.com/agentevents/agentevents/dialect/multiagent"
	"github.com/agentevents/agentevents/dialect/openharness"
	"github.com/agentevents/agentevents/dialect/openwop"
)

// A document is one of the five source documents, with the variants it names.
type document struct {
	name     dialect.Name
	column   string // the heading in the vocabulary's table
	variants []string
	member   string                     // the member that names the variant on a line
	decoder  func() agentevents.Decoder // strict
	lenient  func() agentevents.Decoder
	encoder  func() dialect.Encoder
	suite    dialecttest.Dialect // the settings of the suite
}

var epoch = time.Date(2026, 5, 5, 9, 0, 0, 0, time.UTC)

// documents lists the variants that the source documents name. Each has a line in
// testdata/golden.
var documents = []document{
	{
		name: dialect.KAHN, column: "KAHN", member: "event",
		variants: strings.Fields(`agent_run_start agent_transition tool_invocation audit_checkpoint agent_run_end`),
		decoder:  func() agentevents.Decoder { return kahn.NewDecoder(kahn.Options{Strict: true}) },
		lenient:  func() agentevents.Decoder { return kahn.NewDecoder(kahn.Options{}) },
		encoder:  func() dialect.Encoder { return kahn.NewEncoder(kahn.EncoderOptions{}) },
	},
	{
		name: dialect.MultiAgent, column: "wiki", member: "type",
		variants: strings.Fields(`session.started workflow.node.enter agent.message.created agent.task.assigned tool.call.started tool.call.completed
			handoff.requested handoff.accepted blackboard.item.created approval.requested approval.granted verifier.issue.found loop.round.completed
			budget.exceeded session.completed workflow.created workflow.approved workflow.phase.started workflow.phase.completed agent.spawned
			agent.completed claim.verified workflow.checkpoint.saved workflow.checkpoint.resumed workflow.finalized`),
		decoder: func() agentevents.Decoder { return multiagent.NewDecoder(multiagent.Options{Strict: true}) },
		lenient: func() agentevents.Decoder { return multiagent.NewDecoder(multiagent.Options{}) },
		encoder: func() dialect.Encoder { return multiagent.NewEncoder(multiagent.EncoderOptions{}) },
		suite:   dialecttest.Dialect{Ignore: []string{"/multiagent/schemaVersion"}, Maps: []string{"/payload/modelUsage"}},
	},
	{
		name: dialect.OpenWOP, column: "OpenWOP", member: "type",
		variants: strings.Fields(`agent.reasoned agent.reasoning.delta agent.toolCalled agent.toolReturned agent.handoff agent.decided node.started
			node.completed cap.breached runOrchestrator.decided clarification.requested clarification.resolved`),
		// A strict decoder refuses a return whose call it did not read.
		decoder: func() agentevents.Decoder { return openwop.NewDecoder(openwop.Options{}) },
		lenient: func() agentevents.Decoder { return openwop.NewDecoder(openwop.Options{}) },
		encoder: func() dialect.Encoder { return openwop.NewEncoder(openwop.EncoderOptions{}) },
		suite:   dialecttest.Dialect{Ignore: []string{"/openwop/schemaVersion"}},
	},
	{
		name: dialect.KAOS, column: "KAOS", member: "type",
		variants: strings.Fields(`span intent_classified plan_proposed citation_found usage_observed evidence_insufficient turn_summary memory_event
			run_error budget_exceeded text_delta thinking_delta tool_call_args_delta`),
		decoder: func() agentevents.Decoder { return kaos.NewDecoder(kaos.Options{Strict: true, Anchor: epoch}) },
		lenient: func() agentevents.Decoder { return kaos.NewDecoder(kaos.Options{Anchor: epoch}) },
		encoder: func() dialect.Encoder { return kaos.NewEncoder(kaos.EncoderOptions{Anchor: epoch}) },
		suite:   dialecttest.Dialect{Ignore: []string{"/kaos/sequence"}},
	},
	{
		name: dialect.OpenHarness, column: "resume spec", member: "type",
		variants: strings.Fields(`agent:start agent:thinking:delta agent:thinking agent:text:delta agent:text agent:tool agent:error agent:complete
			flow:start flow:complete flow:paused flow:resumed flow:aborted node:start node:complete node:error node:skipped edge:fire loop:iterate
			state:patch command:received`),
		decoder: func() agentevents.Decoder { return openharness.NewDecoder(openharness.Options{Strict: true}) },
		lenient: func() agentevents.Decoder { return openharness.NewDecoder(openharness.Options{RunID: "run"}) },
		encoder: func() dialect.Encoder { return openharness.NewEncoder(openharness.EncoderOptions{}) },
		suite:   dialecttest.Dialect{Maps: []string{"/modelUsage"}},
	},
}

// Its dialect reads and writes every variant. The vocabulary's table has every
// variant beside the kind it becomes.
func TestVariants(t *testing.T) {
	table := vocabularyTable(t)
	for _, d := range documents {
		t.Run(string(d.name), func(t *testing.T) {
			golden := readGolden(t, "variants-"+string(d.name))
			lines := map[string][]byte{}
			for _, line := range bytes.Split(bytes.TrimSpace([]byte(golden.Get(string(d.name)))), []byte("\n")) {
				m := regexp.MustCompile(`"` + d.member + `":"([^"]+)"`).FindSubmatch(line)
				require.NotNil(t, m, "%s", line)
				lines[string(m[1])] = line
			}
			for _, variant := range d.variants {
				line := lines[variant]
				require.NotNil(t, line, "%s has no line of %s", goldenFile("variants-"+string(d.name)), variant)
				require.Equal(t, d.name, dialect.Detect(string(line)), variant)
				dec := d.decoder()
				events, err := dec.Decode(nil, line)
				require.NoError(t, err, variant)
				events, err = dec.End(events)
				require.NoError(t, err, variant)
				require.NotEmpty(t, events, variant)
				for i := range events {
					require.NotContains(t, fmt.Sprintf("%T", events[i].Payload), "Unknown", variant)
				}
				enc := d.encoder()
				var out []byte
				for _, ev := range events {
					out, err = enc.Append(out, ev)
					require.NoError(t, err, variant)
				}
				out, err = enc.End(out)
				require.NoError(t, err, variant)
				require.Equal(t, string(line)+"\n", string(out), variant)

				row := table[string(events[0].Kind())]
				require.Contains(t, row[d.column], variant, "the vocabulary's row of %s", events[0].Kind())
			}
			require.Len(t, lines, len(d.variants), "lines of other variants")
		})
	}
}

// vocabularyTable returns the vocabulary's table of kinds: the cells of a kind by the
// name of their column.
func vocabularyTable(t *testing.T) map[string]map[string]string {
	t.Helper()
	text, err := os.ReadFile("../docs/vocabulary.md")
	require.NoError(t, err)
	var header []string
	table := map[string]map[string]string{}
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		for i := range cells {
			cells[i] = strings.Trim(strings.TrimSpace(cells[i]), "`")
		}
		switch {
		case len(cells) < 7:
		case cells[0] == "Go type":
			header = cells
		case header != nil:
			row := map[string]string{}
			for i, cell := range cells {
				row[header[i]] = cell
			}
			table[row["type"]] = row
		}
	}
	require.Greater(t, len(table), 70)
	return table
}
