-- The tables of package pgstore. Migrations may run this as it is, more than once.

-- The runs. Ids sort by their bytes. Whoever deletes a row deletes the run.
CREATE TABLE IF NOT EXISTS agentevents_runs (
	run_id   text COLLATE "C" PRIMARY KEY,
	next     bigint NOT NULL,            -- one more than the sequence of the last event
	terminal text   NOT NULL DEFAULT '', -- the type of the event that ended the run
	begun    timestamptz,
	updated  timestamptz
);

-- The events: line is the truth, and the other columns are what one searches by, cut where they
-- are longer than 2,000 bytes.
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
