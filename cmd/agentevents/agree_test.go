package main

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents/internal/txtar"
	"github.com/agentevents/agentevents/internal/view"
)

// logsOfTheTree returns the logs that stand in the files of the module, by name.
func logsOfTheTree(t *testing.T) map[string]string {
	logs := map[string]string{}
	root := filepath.Join("..", "..")
	require.NoError(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.Contains(path, "testdata") {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		switch filepath.Ext(path) {
		case ".jsonl":
			logs[path] = string(text)
		case ".txtar":
			for _, f := range txtar.Parse(string(text)).Files {
				if at := strings.Index("\n"+f.Text, "\n{"); at >= 0 {
					logs[path+": "+f.Name] = f.Text[at:]
				}
			}
		}
		return nil
	}))
	return logs
}

// A seen is a run as a view shows it: words and numbers, which are empty where the view has none.
type seen struct{ status, calls, failed, tokens, attempts, open string }

// foldView is the run as its snapshot has it. The counts are calls that began, calls that failed,
// questions that wait, calls that succeeded or failed, and those refused, undecided and open.
func foldView(t *testing.T, line string) (id string, v seen, counts [7]int, ended bool) {
	var s struct {
		RunID         string
		Status        string
		SessionStatus string
		EndMadeUp     bool
		Tools         map[string]struct{ Calls, OK, Failed, Refused, Undecided int }
		Usage         struct {
			Usage   struct{ InputTokens, OutputTokens, TotalTokens, CacheCreationInputTokens, CacheReadInputTokens json.Number }
			Partial bool
		}
		Agents                    map[string]struct{ Attempts int }
		OpenCalls                 []json.RawMessage
		Approvals, Clarifications []struct{ Open bool }
	}
	require.NoError(t, json.Unmarshal([]byte(line), &s))
	for _, tool := range s.Tools {
		counts[0] += tool.Calls
		counts[1] += tool.Failed
		counts[3] += tool.OK + tool.Failed
		counts[4] += tool.Refused
		counts[5] += tool.Undecided
	}
	for _, q := range append(s.Approvals, s.Clarifications...) {
		if q.Open {
			counts[2]++
		}
	}
	counts[6] = len(s.OpenCalls)
	most := 0
	for _, a := range s.Agents {
		most = max(most, a.Attempts)
	}
	number := func(n json.Number) int64 { i, _ := n.Int64(); return i }
	u := s.Usage.Usage
	tokens := max(number(u.TotalTokens), number(u.InputTokens)+number(u.OutputTokens)+number(u.CacheCreationInputTokens)+number(u.CacheReadInputTokens))
	if s.Status == "ended" { // people see the word of the log
		ended, s.Status = true, s.SessionStatus
	}
	v = seen{status: s.Status + view.MadeUp(s.EndMadeUp), calls: some(counts[0]), failed: some(counts[1]), open: some(len(s.OpenCalls))}
	if tokens > 0 {
		v.tokens = atLeast(s.Usage.Partial) + strconv.FormatInt(tokens, 10)
	}
	if most > 1 {
		v.attempts = strconv.Itoa(most)
	}
	return s.RunID, v, counts, ended
}

var (
	drawnTotals  = regexp.MustCompile(`(?m)^\d+ agents? · (\d+) tool calls?(?: \((?:(\d+) failed)?[^)]*\))?`)
	drawnOpen    = regexp.MustCompile(`(?m)^[│ ]*[├└]─ tool\.[^\n]*? (?:! )?open\b`)
	drawnAttempt = regexp.MustCompile(`(?:\(attempt | · )(\d+)(?:\)| turns)`)
	drawnTokens  = regexp.MustCompile(`(?m)^\d+ agents? · [^\n]*?((?:at least )?\d+ tokens?(?: in, \d+ out(?:, \d+ cached)?)?)(?: ·|$)`)
	shownTokens  = regexp.MustCompile(`(?m)^tokens +(.*)$`)
	shownTurns   = regexp.MustCompile(`(?m)^turns +(\d+)$`)
	shownAgents  = regexp.MustCompile(`\nagents\n((?:.+\n)+)`)
	shownTools   = regexp.MustCompile(`\ntools\n((?:.+\n)+)`)
	shownAttempt = regexp.MustCompile(`\(attempt (\d+)\)`)
	digits       = regexp.MustCompile(`\d+`)
)

// summed returns the sum of the numbers in words about tokens, as a list of runs has it.
func summed(text string) string {
	sum := 0
	for _, m := range digits.FindAllString(text, -1) {
		n, _ := strconv.Atoi(m)
		sum += n
	}
	return atLeast(strings.HasPrefix(text, "at least ") || strings.HasPrefix(text, "≥")) + some(sum)
}

// largest returns the largest number that a pattern finds in a text, or nothing below 2.
func largest(pattern *regexp.Regexp, text string) string {
	most := 1
	for _, m := range pattern.FindAllStringSubmatch(text, -1) {
		n, _ := strconv.Atoi(m[1])
		most = max(most, n)
	}
	if most == 1 {
		return ""
	}
	return strconv.Itoa(most)
}

// showView is the run as show tells it, without its status.
func showView(text string) (v seen) {
	if m := shownTokens.FindStringSubmatch(text); m != nil {
		v.tokens = summed(m[1])
	}
	if m := shownTools.FindStringSubmatch(text); m != nil {
		calls, failed := 0, 0
		for _, row := range listed(m[1]) {
			n, _ := strconv.Atoi(row["CALLS"])
			k, _ := strconv.Atoi(row["FAILED"])
			calls, failed = calls+n, failed+k
		}
		v.calls, v.failed = some(calls), some(failed)
	}
	if m := shownAgents.FindStringSubmatch(text); m != nil {
		v.attempts = largest(shownAttempt, m[1])
	}
	return v
}

// treeView is the run as its tree shows it, with the status if it shows that one.
func treeView(text, status string) (v seen) {
	head, _, _ := strings.Cut(text, "\n")
	if regexp.MustCompile(` ` + regexp.QuoteMeta(status) + `(?: \(interrupted\))?(?: ·|:|$)`).MatchString(head) {
		v.status = status
	}
	zero := func(n string) string { return strings.TrimPrefix(n, "0") }
	if m := drawnTotals.FindStringSubmatch(text); m != nil {
		v.calls, v.failed = zero(m[1]), m[2]
	}
	v.open = some(len(drawnOpen.FindAllString(text, -1)))
	if m := drawnTokens.FindStringSubmatch(text); m != nil {
		v.tokens = summed(m[1])
	}
	v.attempts = largest(drawnAttempt, text)
	return v
}

// listed returns the cells of a table's rows by column. Two blanks or more stand between cells.
func listed(table string) (rows []map[string]string) {
	cells := func(line string) []string { return regexp.MustCompile(`  +`).Split(strings.TrimSpace(line), -1) }
	lines := strings.Split(strings.TrimSuffix(table, "\n"), "\n")
	names := cells(lines[0])
	for _, line := range lines[1:] {
		row := map[string]string{}
		for i, cell := range cells(line) {
			if i < len(names) {
				row[names[i]] = strings.TrimPrefix(cell, "-")
			}
		}
		rows = append(rows, row)
	}
	return rows
}

// TestViewsAgree runs the views on every log of the module: they show the same status, calls, failed
// calls, tokens, attempts and open things of each run.
func TestViewsAgree(t *testing.T) {
	logs := logsOfTheTree(t)
	require.Greater(t, len(logs), 500)
	compared := 0
	for name, text := range logs {
		path := filepath.Join(t.TempDir(), "log.jsonl")
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		folded := exec("", "fold", "--keep-calls", "100000", path)
		if folded.code > exitProblems || folded.out == "" || strings.Contains(text, "\\u") {
			continue // no log, or one whose ids are escaped in tables
		}
		trees := strings.Split(exec("", "tree", path).out, "\n\n")
		shown := strings.Split("\n"+exec("", "show", "--all", path).out, "\nrun        ")[1:]
		lines := strings.Split(strings.TrimSuffix(folded.out, "\n"), "\n")
		rows := listed(exec("", "ls", path).out)
		require.Len(t, trees, len(lines), name)
		require.Len(t, rows, len(lines), name)
		require.Len(t, shown, len(lines), name)
		byID := map[string]map[string]string{}
		for _, row := range rows {
			byID[row["RUN"]] = row
		}
		statuses, madeUp, sums, calls := map[string]int{}, 0, [7]int{}, 0
		tokens, partial := 0, false
		for i, line := range lines {
			id, want, counts, ended := foldView(t, line)
			compared++
			status, guess := strings.CutSuffix(want.status, "?")
			if ended {
				status = "ended"
			}
			if statuses[status]++; guess {
				madeUp++
			}
			for k, n := range counts {
				sums[k] += n
			}
			if want.tokens != "" {
				n, _ := strconv.Atoi(strings.TrimPrefix(want.tokens, "≥"))
				tokens += n
				partial = partial || strings.HasPrefix(want.tokens, "≥")
			}

			began, _ := strconv.Atoi(want.calls) // "" is none
			calls += began
			drawn := treeView(trees[i], want.status)
			require.Equal(t, want, drawn, "%s: the tree of %s\n%s", name, id, trees[i])

			row := byID[id]
			require.NotNil(t, row, "%s: %s is not listed", name, id)
			number := func(cell string) string { n, _, _ := strings.Cut(cell, " "); return strings.TrimPrefix(n, "0") }
			require.Equal(t, [4]string{want.status, want.calls, want.failed, want.tokens}, [4]string{row["STATUS"], number(row["CALLS"]), row["FAILED"], row["TOKENS"]}, "%s: ls of %s", name, id)

			told := regexp.MustCompile(`(?m)^status +([^:\n]+)`).FindStringSubmatch(shown[i])
			require.Equal(t, want.status, told[1], name)
			waits := regexp.MustCompile(`(?m)^(approval|clarification)\b.* waits(:|$)`).FindAllString(shown[i], -1)
			require.Len(t, waits, counts[2], "%s: show of %s\n%s", name, id, shown[i])
			open := regexp.MustCompile(`(?m)^call\b.* has not returned(:|$)`).FindAllString(shown[i], -1)
			summary := showView(shown[i])
			summary.status, summary.open = told[1], some(len(open))
			turns := largest(shownTurns, shown[i])
			if listed, _ := strconv.Atoi(row["TURNS"]); listed > 1 {
				require.Equal(t, row["TURNS"], turns, "%s: show and ls of %s", name, id)
			} else {
				require.Empty(t, turns, "%s: show and ls of %s", name, id)
			}
			if summary.attempts == "" && want.attempts != "" { // a conversation shows its attempts as turns
				summary.attempts = turns
			}
			require.Equal(t, want, summary, "%s: show of %s\n%s", name, id, shown[i])
		}
		var r struct {
			Runs      int
			Statuses  map[string]int
			MadeUp    int `json:"endsMadeUp"`
			ToolCalls struct{ Calls, Returned, Failed, Open, Refused, Undecided int }
			Tokens    struct {
				Input, Output, CacheWrite, CacheRead, Rest int
				Partial                                    bool
			}
		}
		require.NoError(t, json.Unmarshal([]byte(exec("", "stats", "--json", path).out), &r), name)
		require.Equal(t, statuses, r.Statuses, "%s: stats", name)
		require.Equal(t, madeUp, r.MadeUp, "%s: stats", name)
		require.Equal(t, calls, r.ToolCalls.Calls, "%s: stats", name)
		require.Equal(t, [5]int{sums[1], sums[3], sums[4], sums[5], sums[6]}, [5]int{r.ToolCalls.Failed, r.ToolCalls.Returned, r.ToolCalls.Refused, r.ToolCalls.Undecided, r.ToolCalls.Open}, "%s: stats", name)
		counted := atLeast(r.Tokens.Partial) + some(r.Tokens.Input+r.Tokens.Output+r.Tokens.CacheWrite+r.Tokens.CacheRead+r.Tokens.Rest)
		require.Equal(t, atLeast(partial)+some(tokens), counted, "%s: stats", name)
	}
	t.Logf("%d runs of %d logs", compared, len(logs))
	require.Greater(t, compared, 500)
}
