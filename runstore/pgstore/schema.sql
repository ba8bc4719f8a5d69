-- The tables of package pgstore. Migrations may run this as it is, more than once.

-- The runs. Ids sort by their bytes. Whoever deletes a row deletes the run.
CREATE TABLE IF NOT EXISTS agentevents_runs (
	run_id   text COLLATE "C" PRIMARY KEY,
	next     bigint NOT NULL,            -- one more than the sequence of the last event
	terminal text   NOT NULL DEFAULT '', -- the type of the event that ended the run
	begun    timestamptz,
	updated  timestamptz
);

-- The events: line is the truth, and the other columns are made of it. Those that are added below
-- have their documentation in package columns; texts that are longer than 2,000 bytes are cut.
CREATE TABLE IF NOT EXISTS agentevents_events (
	run_id          text COLLATE "C" NOT NULL REFERENCES agentevents_runs ON DELETE CASCADE,
	sequence        bigint NOT NULL,
	event_id        text   NOT NULL,
	type            text   NOT NULL,
	time            timestamptz,
	session_id      text,
	task_id         text,
	workflow_id     text,
	phase           text,
	node_id         text,
	agent_id        text,
	parent_agent_id text,
	trace_id        text,
	span_id         text,
	line            text   NOT NULL,
	PRIMARY KEY (run_id, sequence)
);
CREATE INDEX IF NOT EXISTS agentevents_events_type ON agentevents_events (type, time);
CREATE INDEX IF NOT EXISTS agentevents_events_agent ON agentevents_events (agent_id, time);

-- The latest snapshot of each run: a cache.
CREATE TABLE IF NOT EXISTS agentevents_snapshots (
	run_id   text COLLATE "C" PRIMARY KEY REFERENCES agentevents_runs ON DELETE CASCADE,
	next     bigint NOT NULL,
	snapshot text   NOT NULL
);

-- A line as jsonb, which has no NUL: U+FFFD stands for it. NULL where jsonb cannot say the line
-- at all. It may be indexed.
CREATE OR REPLACE FUNCTION agentevents_json(line text) RETURNS jsonb IMMUTABLE LANGUAGE plpgsql AS $$
BEGIN
	RETURN line::jsonb;
EXCEPTION WHEN others THEN
	BEGIN
		RETURN regexp_replace(line, '(?<!\\)((\\\\)*)\\u0000', '\1\\ufffd', 'g')::jsonb;
	EXCEPTION WHEN others THEN
		RETURN NULL;
	END;
END $$;

-- The sequence before which all events of the run have the columns below.
ALTER TABLE agentevents_runs ADD COLUMN IF NOT EXISTS filled bigint NOT NULL DEFAULT 0;

-- Made of columns.Table: go test . -run TestSchema -update
ALTER TABLE agentevents_events
	ADD COLUMN IF NOT EXISTS node_run_id text,
	ADD COLUMN IF NOT EXISTS step bigint,
	ADD COLUMN IF NOT EXISTS agent_name text,
	ADD COLUMN IF NOT EXISTS agent_was text,
	ADD COLUMN IF NOT EXISTS actor text,
	ADD COLUMN IF NOT EXISTS name text,
	ADD COLUMN IF NOT EXISTS tool text,
	ADD COLUMN IF NOT EXISTS tool_call_id text,
	ADD COLUMN IF NOT EXISTS model text,
	ADD COLUMN IF NOT EXISTS model_call_id text,
	ADD COLUMN IF NOT EXISTS provider text,
	ADD COLUMN IF NOT EXISTS message_id text,
	ADD COLUMN IF NOT EXISTS begins bigint,
	ADD COLUMN IF NOT EXISTS hands_over text,
	ADD COLUMN IF NOT EXISTS run_status text,
	ADD COLUMN IF NOT EXISTS status text,
	ADD COLUMN IF NOT EXISTS failed boolean,
	ADD COLUMN IF NOT EXISTS duration_ms double precision,
	ADD COLUMN IF NOT EXISTS result text,
	ADD COLUMN IF NOT EXISTS error text,
	ADD COLUMN IF NOT EXISTS input_tokens bigint,
	ADD COLUMN IF NOT EXISTS output_tokens bigint,
	ADD COLUMN IF NOT EXISTS cache_read_tokens bigint,
	ADD COLUMN IF NOT EXISTS cache_write_tokens bigint,
	ADD COLUMN IF NOT EXISTS reasoning_tokens bigint,
	ADD COLUMN IF NOT EXISTS total_tokens bigint,
	ADD COLUMN IF NOT EXISTS cost double precision,
	ADD COLUMN IF NOT EXISTS currency text,
	ADD COLUMN IF NOT EXISTS usage_split text,
	ADD COLUMN IF NOT EXISTS tokens_before bigint,
	ADD COLUMN IF NOT EXISTS tokens_after bigint,
	ADD COLUMN IF NOT EXISTS parent_span_id text;

-- The rows of package columns. Events that come again, or that have no columns yet, are not among them.
CREATE OR REPLACE VIEW agentevents_columns AS SELECT
	run_id,
	sequence,
	event_id,
	time,
	type AS kind,
	session_id,
	task_id,
	workflow_id,
	phase,
	node_id,
	node_run_id,
	step,
	agent_id,
	agent_name,
	agent_was,
	parent_agent_id,
	actor,
	name,
	tool,
	tool_call_id,
	model,
	model_call_id,
	provider,
	message_id,
	begins,
	hands_over,
	run_status,
	status,
	failed,
	duration_ms,
	result,
	error,
	input_tokens,
	output_tokens,
	cache_read_tokens,
	cache_write_tokens,
	reasoning_tokens,
	total_tokens,
	cost,
	currency,
	usage_split,
	tokens_before,
	tokens_after,
	trace_id,
	span_id,
	parent_span_id,
	line
FROM agentevents_events WHERE begins IS NOT NULL;
