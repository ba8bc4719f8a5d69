// Package logfile keeps a log on disk: acknowledged events do not get lost, and slow work does not
// stop the agent.
//
//	l, err := logfile.Open("runs.jsonl", logfile.Options{Sync: logfile.SyncEvery})
//	…
//	em, err := agentevents.NewEmitter(agentevents.EmitterOptions{Sinks: []agentevents.Sink{l}})
//
// A [Log] appends the events of all runs, one line each, as [agentevents.Writer] does. A Writer
// writes to anything. A Log has the file for itself, and so can do more:
//
//   - It reports when an event is on disk ([Sync]), and emitters that wait share a sync.
//   - It closes segments by size and age, compresses them and removes the oldest.
//   - It repairs the file after a crash, and detects changes by other programs.
//   - It can chain its lines, so that later changes show.
//
// # Possible losses
//
//	                     the process is killed    the machine goes down
//	SyncNone             nothing                  events that the system has not written yet
//	SyncInterval         nothing                  the last second (Options.Interval)
//	SyncEnds             nothing                  events of runs that go on
//	SyncEvery            nothing                  nothing
//
// Nothing means: no event for which Emit returned nil. With Options.Buffer, the content of the
// buffer is lost in either case; SyncEvery has no buffer. A sync that fails may have lost bytes
// that the system had accepted before, and reports that only once. So the log keeps all lines that
// are not synced, at most 16 MiB, and writes them again.
//
// # A disk that fails
//
// A full disk, a read-only one, a write that is cut short, a file that is removed, replaced, cut or
// extended by another program ([ErrChanged]): each is an error of the event that meets it, which an
// emitter returns as a [*agentevents.SinkError] while its other sinks get the event. The line is
// held back, and is written whole, in order and before anything else, with the first event after
// the disk works again. Beyond 16 MiB of held lines, and at the end, lines are lost, and a
// [*LostError] names them. A removed file's lines are gone with it; the error says how many this
// process has written to it, and which is the first and the last. Those that were not synced are
// written to the new file.
//
// # The files
//
//	runs.jsonl               the active segment, which is appended to
//	runs.jsonl.000001.gz     closed segments, oldest first; plain ones have no .gz
//	runs.jsonl.lock          the lock: one process writes the log
//	runs.jsonl.torn.000001   the beginning of a line that a crash has torn
//	runs.jsonl.head          the last hash of the chain
//
// All have the mode 0600, because a log is confidential. The active segment keeps its name, and
// gets a number when it is closed. Numbers never begin again. A lock ends with its process; on
// systems that have none (Solaris, AIX, Plan 9, WebAssembly) nothing keeps a second process out. A
// log is the file that a symbolic link leads to, and Unix locks that file too, which may have hard
// links or be mounted twice.
//
// A log is read and followed across its segments with [NewReader], [Files] and [Follow], and
// "agentevents" reads them as one when it is given the active one.
//
// # A chain
//
// With Options.Chain every line ends in two members that belong to the file, not to the event:
// prev, the hash of the line before in the order of the file, and hash, the SHA-256 of the line
// before this member. Readers take them off. "agentevents check --chain" finds the first line that
// was changed, removed, added or moved. The hash of the last synced line is also in
// runs.jsonl.head, so that it shows if lines are removed at the end; keep copies of it out of reach
// of anybody who can write the log.
//
// A chain has no key: anybody who can write the whole rest of the log and all copies of the head
// can make a chain that holds. It does not show events that were never recorded. Retention removes
// its beginning, which check reports. It ends where events are taken out of the file's order or
// changed: by cat of a run, convert and redact. A redacted copy begins a new one with the last hash
// of the old (Options.ChainFrom), so that it names its origin.
//
// The wiki (the log is append-only and written first) and KAOS (audit, hooks that are isolated)
// require these properties; [agentevents] names the documents under Sources.
package logfile
