-- expire_batches: delete up to $2 batches whose jobs were created long ago and have all ended.
-- $1 retention in days (int4), $2 limit (int4)
-- index: primary key; executions_one_per_instant (job_id, …): ids of a batch's jobs lie together
WITH old AS MATERIALIZED (
    SELECT batch_id
      FROM onthedot.batches AS b
     WHERE created_at < now() - make_interval(days => $1::int4)
       AND NOT EXISTS (SELECT FROM onthedot.executions AS e 
                        WHERE e.job_id BETWEEN b.first_job_id AND b.last_job_id AND e.batch_id = b.batch_id)
     LIMIT $2::int4
       FOR UPDATE SKIP LOCKED
)
DELETE FROM onthedot.batches AS b USING old WHERE b.batch_id = old.batch_id
RETURNING b.batch_id
