-- write_runs: write down how locked runs stand.
-- One element a run: $1 workflow_run_ids (uuid[]), $2 statuses (text[]), $3 they wait for another one (bool[]),
-- $4 how they will have ended, being stopped (text[]), $5 causes (text[]; null: stays while it is so);
-- $6 the shards of the runs (int2[])
-- index: primary key
UPDATE onthedot.workflow_runs AS r
   SET status = x.status, is_queued = x.is_queued, ends_as = x.ends_as,
       cause = CASE WHEN x.ends_as IS NULL THEN x.cause ELSE coalesce(x.cause, r.cause) END,
       completed_at = CASE WHEN x.status <> 'RUNNING' THEN now() END
  FROM unnest($1::uuid[], $2::text[], $3::bool[], $4::text[], $5::text[])
       AS x (workflow_run_id, status, is_queued, ends_as, cause)
 WHERE r.shard = ANY ($6::int2[]) AND r.workflow_run_id = x.workflow_run_id
