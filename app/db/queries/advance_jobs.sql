-- advance_jobs: move the watermark of jobs whose occurrences are materialised, in the same transaction.
-- $1 shard (int2), and one element a job: $2 job_ids (uuid[]), $3 materialized_until (timestamptz[]),
-- $4 materialize_at (timestamptz[]; null: no occurrence is left)
-- index: primary keys. The rows are locked by due_jobs.sql.
-- Returns the jobs whose owner has a quota, and the owner: it says so here, once, before anything of them is created.
WITH advanced AS (
    UPDATE onthedot.jobs AS j
       SET materialized_until = x.materialized_until, materialize_at = x.materialize_at
      FROM unnest($2::uuid[], $3::timestamptz[], $4::timestamptz[]) AS x (job_id, materialized_until, materialize_at)
     WHERE j.shard = $1 AND j.job_id = x.job_id
    RETURNING j.job_id, j.user_id
)
SELECT a.job_id, a.user_id
  FROM advanced AS a
  JOIN onthedot.users AS u ON u.user_id = a.user_id
 WHERE u.max_jobs_per_hour IS NOT NULL
