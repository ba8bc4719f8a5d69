// Package engine reads and writes the lines of a document by a table. The table of a dialect has a
// row for each type of line, and a member for each name on the line, with the field of the event
// that the member holds. Five things follow from the table: reading, writing, the facts of an event
// that its line lacks (losses by subtraction), the members that are kept because no field has them,
// and whether an event still equals its line.
//
//	var format = engine.New(engine.Format{
//		Name: dialect.KAHN,
//		Head: []engine.Member{need("ts", "/timestamp", engine.Time{}), need("run_id", "/runId"), need("event", "", engine.Type)},
//		Rows: []engine.Row{
//			{Type: "agent_run_start", Kind: agentevents.KindAgentStarted, Members: []engine.Member{
//				need("agent_id", "/agentId"), need("task", "task"), may("model", "model"),
//			}},
//			…
//
// A field is named as on the native line: task is a field of the payload, usage/inputTokens one
// inside a field, /agentId one of the envelope. A [Form] is the notation of a value on the line;
// without one the field's type decides ([Value]). A member may hold several fields. A field that no
// member holds is a loss: dialects do not list it.
package engine
