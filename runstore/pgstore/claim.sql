
-- The claims of workers, also of runs that have not begun. A claim that was released has no row; one
-- whose time until has passed may be taken.
CREATE TABLE IF NOT EXISTS agentevents_claims (
	run_id text COLLATE "C" PRIMARY KEY,
	token  bigint GENERATED ALWAYS AS IDENTITY, -- rises with each claim
	worker text        NOT NULL,
	until  timestamptz NOT NULL
);

-- The token of the run's latest claim, negative once that was released, 0 without one. An append
-- compares it in the row that it updates, so that none comes in after a claim.
ALTER TABLE agentevents_runs ADD COLUMN IF NOT EXISTS claim bigint NOT NULL DEFAULT 0;
