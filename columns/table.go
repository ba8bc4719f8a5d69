package columns

import (
	"time"

	"github.com/agentevents/agentevents"
)

// A Kind is the type of the values of a column.
type Kind string

// The kinds.
const (
	Text  Kind = "text"  // UTF-8
	Int   Kind = "int"   // 64 bits, with a sign
	Float Kind = "float" // 64 bits
	Bool  Kind = "bool"
	Time  Kind = "time" // an instant, kept to the microsecond
)

// A Column describes one column. Exactly one of the functions is there: the one of its kind. They report
// false where the row has no value.
type Column struct {
	Name   string // as in SQL
	Kind   Kind   // type of the values
	Always bool   // every row has a value
	Doc    string // meaning, unit and source, as a sentence
	Few    bool   // a text of few different values: a name, a word or an id that many rows share

	Text  func(*Row) string            // empty means no value
	Int   func(*Row) (int64, bool)     // of Kind Int
	Float func(*Row) (float64, bool)   // of Kind Float
	Bool  func(*Row) (bool, bool)      // of Kind Bool
	Time  func(*Row) (time.Time, bool) // of Kind Time
}

// Value is the value of a row: a string, int64, float64, bool or [time.Time], or nil without one.
func (c *Column) Value(r *Row) any {
	switch c.Kind {
	case Text:
		if v := c.Text(r); v != "" || c.Always {
			return v
		}
	case Int:
		return optional(c.Int(r))
	case Float:
		return optional(c.Float(r))
	case Bool:
		return optional(c.Bool(r))
	case Time:
		return optional(c.Time(r))
	}
	return nil
}

func optional[T any](v T, ok bool) any {
	if !ok {
		return nil
	}
	return v
}

// PostgreSQL is the type in PostgreSQL, with NOT NULL where every row has a value.
func (c *Column) PostgreSQL() string {
	t := map[Kind]string{
		Text: "text", Int: "bigint", Float: "double precision", Bool: "boolean", Time: "timestamptz",
	}[c.Kind]
	if c.Always {
		t += " NOT NULL"
	}
	return t
}

// ClickHouse is the type in ClickHouse.
func (c *Column) ClickHouse() string {
	t := map[Kind]string{
		Text: "String", Int: "Int64", Float: "Float64", Bool: "Bool", Time: "DateTime64(6, 'UTC')",
	}[c.Kind]
	if !c.Always {
		t = "Nullable(" + t + ")"
	}
	if c.Few {
		t = "LowCardinality(" + t + ")"
	}
	return t
}

// DuckDB is the type in DuckDB, also of the column of a Parquet file.
func (c *Column) DuckDB() string {
	t := map[Kind]string{
		Text: "VARCHAR", Int: "BIGINT", Float: "DOUBLE", Bool: "BOOLEAN", Time: "TIMESTAMP WITH TIME ZONE",
	}[c.Kind]
	if c.Always {
		t += " NOT NULL"
	}
	return t
}

// Table returns the columns, in their order. Later versions may append columns.
func Table() []Column {
	text := func(name, doc string, of func(*Row) string) Column {
		return Column{Name: name, Kind: Text, Doc: doc, Text: of}
	}
	few := func(name, doc string, of func(*Row) string) Column {
		return Column{Name: name, Kind: Text, Few: true, Doc: doc, Text: of}
	}
	count := func(name, doc string, of func(*Row) agentevents.Opt[int64]) Column {
		return Column{Name: name, Kind: Int, Doc: doc, Int: func(r *Row) (int64, bool) { v := of(r); return v.V, v.OK }}
	}
	float := func(name, doc string, of func(*Row) agentevents.Opt[float64]) Column {
		return Column{Name: name, Kind: Float, Doc: doc, Float: func(r *Row) (float64, bool) { v := of(r); return v.V, v.OK }}
	}
	always := func(c Column) Column { c.Always = true; return c }
	return []Column{
		always(few("run_id", "The run: with sequence the identity of the row.", func(r *Row) string { return r.RunID })),
		always(Column{Name: "sequence", Kind: Int, Doc: "Number of the event in its run, from 0.", Int: func(r *Row) (int64, bool) { return r.Sequence, true }}),
		always(text("event_id", "Id of the event; an empty text if the line has none.", func(r *Row) string { return r.EventID })),
		{Name: "time", Kind: Time, Doc: "When the event happened, in UTC; NULL if the line has no time that can be read.", Time: func(r *Row) (time.Time, bool) { return r.Time, !r.Time.IsZero() }},
		always(few("kind", "The type of the event, such as agent.toolReturned.", func(r *Row) string { return r.Kind })),
		few("session_id", "The session, by the envelope.", func(r *Row) string { return r.SessionID }),
		few("task_id", "The task, by the envelope.", func(r *Row) string { return r.TaskID }),
		few("workflow_id", "The workflow, by the envelope.", func(r *Row) string { return r.WorkflowID }),
		few("phase", "The phase of the workflow, by the envelope.", func(r *Row) string { return r.Phase }),
		few("node_id", "The node, by the envelope.", func(r *Row) string { return r.NodeID }),
		few("node_run_id", "The execution of the node, by the envelope.", func(r *Row) string { return r.NodeRunID }),
		count("step", "Number of the step of the agent, by the envelope.", func(r *Row) agentevents.Opt[int64] { return r.Step }),

		few("agent_id", "The agent for which the event counts. It is the event's agent, also where a span alone tells it; for a call of a tool the agent in whose span the call is, and for the answer of a person the agent that asked.", func(r *Row) string { return r.AgentID }),
		few("agent_name", "Name of that agent for people, as far as it is known: the name in its start, else its node or its id.", func(r *Row) string { return r.AgentName }),
		few("agent_was", "Id that earlier rows of the run have for the agent: a span, by which alone it was known until this row.", func(r *Row) string { return r.AgentWas }),
		few("parent_agent_id", "The agent above that agent, as far as it is known: the one that spawned it, else the one in whose span it started.", func(r *Row) string { return r.ParentAgentID }),
		few("actor", "Who acts instead of the agent: user, orchestrator, parent.", func(r *Row) string { return r.Actor }),

		few("name", "Name of the work: the tool, the operation of a model call, the turn, the step, the span, the audit, the agent that takes over in a handoff, or the one that a task is assigned to.", func(r *Row) string { return r.Name }),
		few("tool", "The tool of a call and its return.", func(r *Row) string { return r.Tool }),
		text("tool_call_id", "Id of the call of a tool; it is unique for an agent while the call is open.", func(r *Row) string { return r.CallID }),
		few("model", "The model that answers or, of a call, is asked; of an agent's start the one that it names; of other usage the model that it counts for.", func(r *Row) string { return r.Model }),
		text("model_call_id", "Id of the call of a model; it is unique for an agent while the call is open.", func(r *Row) string { return r.ModelCallID }),
		few("provider", "The provider of the model.", func(r *Row) string { return r.Provider }),
		text("message_id", "Id of the message.", func(r *Row) string { return r.MessageID }),

		always(Column{Name: "begins", Kind: Int, Doc: "Number of calls of tools, calls of models and handoffs that are in the run because of the event, 0 or 1: the sum is their number. The return of a call without a start begins it, too.", Int: func(r *Row) (int64, bool) { return r.Begins, true }}),
		few("hands_over", "Id of the agent that hands over in a handoff that begins; name has the one that takes over.", func(r *Row) string { return r.HandsOver }),
		few("run_status", "Status of the run after the event, where the event changes it, as in a snapshot: running, waiting, paused, cancelling, completed, failed, cancelled, ended. The last one of a run is its status.", func(r *Row) string { return r.RunStatus }),
		few("status", "How that which the event ends went, in one word for all documents: succeeded, partial, skipped, failed, refused, cancelled, or unknown for a word that nobody knows. NULL for other events, and for the second return of a call.", func(r *Row) string { return r.Status }),
		{Name: "failed", Kind: Bool, Doc: "True for the status failed and false for succeeded; NULL for others, which are neither.", Bool: func(r *Row) (bool, bool) { return r.Failed.V, r.Failed.OK }},
		float("duration_ms", "How long that took which the event ends, in milliseconds: as the event states it, else the time since it began. NULL if neither is known, and for an approval that nobody answered in time; of a model call and a tool call also if the clock of the log stood still.", func(r *Row) agentevents.Opt[float64] { return r.DurationMS }),
		text("result", "The result of that which the event ends, as JSON.", func(r *Row) string { return r.Result }),
		text("error", "The text of the error, else its code.", func(r *Row) string { return r.Error }),

		count("input_tokens", "Change of the run's tokens that were sent and for which no cache was used. NULL for events that are not about usage.", func(r *Row) agentevents.Opt[int64] { return r.InputTokens }),
		count("output_tokens", "Change of the run's tokens that were generated, reasoning included.", func(r *Row) agentevents.Opt[int64] { return r.OutputTokens }),
		count("cache_read_tokens", "Change of the run's tokens that were read from a cache; no part of input_tokens.", func(r *Row) agentevents.Opt[int64] { return r.CacheReadTokens }),
		count("cache_write_tokens", "Change of the run's tokens that were written to a cache; no part of input_tokens.", func(r *Row) agentevents.Opt[int64] { return r.CacheWriteTokens }),
		count("reasoning_tokens", "Change of the part of the run's generated tokens that is reasoning.", func(r *Row) agentevents.Opt[int64] { return r.ReasoningTokens }),
		count("total_tokens", "Change of the total that the run's events state; it may be all that they state.", func(r *Row) agentevents.Opt[int64] { return r.TotalTokens }),
		float("cost", "Change of the run's cost; NULL where nothing changes.", func(r *Row) agentevents.Opt[float64] { return r.Cost }),
		few("currency", "The currency of the cost: USD.", func(r *Row) string { return r.Currency }),
		text("usage_split", `The changes by agent and by model, if the row is not the whole change for its agent and its model: JSON as {"agents":[{"agent_id":…,"agent_name":…,"input":…,"output":…,"cache_read":…,"cache_write":…,"reasoning":…,"total":…,"cost":…}],"models":[{"model":…,…,"gone":true}]}. An entry with gone takes the model out of the run.`, func(r *Row) string { return r.UsageSplit }),
		count("tokens_before", "Tokens of a context before it was compacted.", func(r *Row) agentevents.Opt[int64] { return r.TokensBefore }),
		count("tokens_after", "Tokens of that context afterwards.", func(r *Row) agentevents.Opt[int64] { return r.TokensAfter }),

		few("trace_id", "The trace, by the envelope.", func(r *Row) string { return r.TraceID }),
		text("span_id", "The span, by the envelope.", func(r *Row) string { return r.SpanID }),
		text("parent_span_id", "The span around it, by the envelope.", func(r *Row) string { return r.ParentSpanID }),

		always(text("line", "The whole event, as a line of a native log.", func(r *Row) string { return r.Line })),
	}
}
