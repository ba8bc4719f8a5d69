// Package tree draws a run as a tree of text, for people to read:
//
//	session s-1 · run r-1 (release notes) ✓ completed · 12.4s
//	├─ planner ✓ converged · convergence 0.92 · 2.1s · 1 step: plan the work
//	│  └─ turn.1 ✓ completed · 2s: two chapters
//	│     ├─ plan direct · 2 steps: read; write
//	│     └─ citation https://example.com/a ✓ verified
//	├─ writer ✓ converged · 9.8s · 3 steps · 2 tool calls (1 failed) · $0.0123
//	│  ├─ tool.read_file [c1] ✗ error · 12ms: no such file
//	│  ├─ tool.read_file retry 2 of c1 ✓ 9ms
//	│  ├─ tool.Task ✓ 4.2s
//	│  │  └─ helper ✓ converged · 4.1s · 2 steps
//	│  └─ audit:links ✓ pass · 40ms
//	└─ audit:budget ! warn · 3ms
//	3 agents · 3 tool calls (1 failed) · 2 audits (1 passed, 1 warned) · 4 messages
//
// It draws a [github.com/agentevents/agentevents.RunSnapshot], and shows the facts that the fold
// kept. Equal snapshots give the same text. The text may change between versions: programs read the
// snapshot.
package tree
