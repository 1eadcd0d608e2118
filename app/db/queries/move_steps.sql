-- move_steps: write down how steps of locked runs stand.
-- One element a step: $1 workflow_run_ids (uuid[]), $2 steps (text[]), $3 statuses (text[]), $4 how they count (text[]),
-- $5 rounds (int4[]), $6 instances (int4[]), $7 causes (text[]); $8 the shards of the runs (int2[])
-- index: primary key
UPDATE onthedot.workflow_run_steps AS s
   SET status = x.status, counts_as = x.counts_as, round = x.round, instances = x.instances, cause = x.cause,
       released_at = CASE WHEN x.round > s.round THEN now() ELSE s.released_at END,
       completed_at = CASE WHEN x.counts_as <> 'open' THEN now() END
  FROM unnest($1::uuid[], $2::text[], $3::text[], $4::text[], $5::int4[], $6::int4[], $7::text[])
       AS x (workflow_run_id, step, status, counts_as, round, instances, cause)
 WHERE s.shard = ANY ($8::int2[]) AND s.workflow_run_id = x.workflow_run_id AND s.step = x.step
