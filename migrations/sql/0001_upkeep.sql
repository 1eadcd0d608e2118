-- By what the maintenance process finds what is its own.

-- Of jobs that are paused with an end; the others cost nothing here.
CREATE INDEX jobs_paused_until ON onthedot.jobs (paused_until) WHERE paused_until IS NOT NULL
