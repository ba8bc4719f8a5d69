// Package wire reads and writes the lines of a document by a table. A dialect
// writes the table down: a row for each type of line, a member for each name on
// it, and the field of the event that the member says. From the table follow
// reading, writing, what a line does not say of its event (losses by subtraction),
// the members that are kept because no field has them, and whether an event still
// says what its line said.
//
//	var format = wire.New(wire.Format{
//		Name: dialect.KAHN,
//		Head: []wire.Member{need("ts", "/timestamp", wire.Time{}), need("run_id", "/runId"), need("event", "", wire.Type)},
//		Rows: []wire.Row{
//			{Type: "agent_run_start", Kind: agentevents.KindAgentStarted, Members: []wire.Member{
//				need("agent_id", "/agentId"), need("task", "task"), may("model", "model"),
//			}},
//			…
//
// A field is named as on the native line: task is a field of the payload,
// usage/inputTokens one inside a field, /agentId one of the envelope. How a value
// stands on the line is its [Form]; without one the field's type decides
// ([Value]). A member may say several fields, and a field no member says is lost:
// nobody lists it.
package wire
