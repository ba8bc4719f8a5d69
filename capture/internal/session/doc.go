// Package session has the parts that readers of the sessions of agent programs share: the files
// of a session, the recorder of its events, and the account of lines and members that a reader
// did not understand.
//
// A program keeps a session in a file, and often each sub-agent in another one. A [Program] is
// the reader of one program. [Open] finds the sessions below a path, each a [Source]: one run.
// [Source.Read] merges the lines of its files by their times and gives them to the program's
// [Reader], which records events on a [Recorder]. A [Decoder] does the same for one stream.
//
// # A reader
//
// A Reader is a table of kinds of lines with a small function for each. It parses a line with
// [Object]: members that no function asked for, and that [Object.Skip] does not name, are
// the residue, which [Recorder.Unread] counts by program, version, kind of line and pointer. A
// kind without a row goes to [Recorder.Unread] with an empty pointer.
//
// The rules of a reader:
//
//   - Lines wait until the model and the prompt of their agent are known: AgentStarted has both.
//   - The usage of a model call counts once over all files: [Once] tells by the call's id.
//   - A history that was copied from another session is not work: it makes no events.
//   - A call that was interrupted is not one that was refused.
//   - Figures that the program only states go beside the counted ones.
//
// # The recorder
//
// The recorder writes through an emitter that enforces the rules, under [agentevents.LifecycleDerived]:
// statuses, steps and totals follow from what the reader records. The emitter
// redacts texts. The id of an event is made of the run, the thread, the line and the position on it, so that the
// same files give the same ids.
//
// # Files
//
// Files are opened to read, below one folder, and no symbolic link leads out of it (os.Root).
package session
