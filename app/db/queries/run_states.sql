-- run_states: how the steps of runs stand, a row a run.
-- $1 their shards (int2[]), $2 workflow_run_ids (uuid[])
-- index: primary key
SELECT workflow_run_id, array_agg(step) AS steps, array_agg(status) AS statuses, array_agg(counts_as) AS counts_as,
       array_agg(round) AS rounds, array_agg(instances) AS instances, array_agg(cause) AS causes
  FROM onthedot.workflow_run_steps
 WHERE shard = ANY ($1::int2[]) AND workflow_run_id = ANY ($2::uuid[])
 GROUP BY workflow_run_id
