-- limit_begun: have executions that have begun come under the keys and the overlap that their jobs and tasks name now, and count
-- against them what runs. In the transaction that has those that wait come under them: whoever claims one of these sees both.
-- $1 execution_ids (uuid[])
-- index: primary key. Locked in the order of their ids, as whoever ends several locks them. Queue, priority and attempts
-- stay what they were; of a workflow's steps all does, as in replan_task.sql.
-- ON CONFLICT: as in count_running.sql
WITH begun AS MATERIALIZED (
    SELECT execution_id
      FROM onthedot.executions
     WHERE execution_id = ANY ($1::uuid[]) AND status IN ('RUNNING', 'RETRYING') AND trigger <> 'workflow'
     ORDER BY shard, execution_id
       FOR NO KEY UPDATE
), told AS (
    UPDATE onthedot.executions AS e
       SET limited = t.limited OR coalesce(u.limited, false) OR q.limited OR j.concurrency_key IS NOT NULL OR j.overlap <> 'allow',
           concurrency_key = CASE WHEN coalesce(j.concurrency_key, t.concurrency_key) IS NOT NULL
                                  THEN onthedot.render_key(coalesce(j.concurrency_key, t.concurrency_key), e.parameters) END,
           concurrency_limit = coalesce(j.concurrency_limit, t.concurrency_limit), overlap = j.overlap
      FROM onthedot.jobs AS j
      JOIN onthedot.tasks AS t ON t.task_id = j.task_id
      LEFT JOIN onthedot.users AS u ON u.user_id = j.user_id
     CROSS JOIN onthedot.queues AS q
     WHERE e.execution_id = ANY (ARRAY(SELECT execution_id FROM begun)) AND e.status IN ('RUNNING', 'RETRYING')
       AND j.shard = e.shard AND j.job_id = e.job_id AND q.queue = e.queue
    RETURNING e.*
)
INSERT INTO onthedot.limit_holders AS h (key, execution_id, shard, lease_epoch, held_since)
SELECT k.key, e.execution_id, e.shard, e.lease_epoch, coalesce(e.claimed_at, now())
  FROM told AS e
 CROSS JOIN LATERAL (VALUES ('key:' || e.concurrency_key, e.status = 'RUNNING'),
                            ('job:' || e.job_id, e.overlap <> 'allow')) AS k (key, counts)
 WHERE k.key IS NOT NULL AND k.counts
    ON CONFLICT (key, execution_id) DO UPDATE
   SET lease_epoch = excluded.lease_epoch, held_since = excluded.held_since
 WHERE h.lease_epoch < excluded.lease_epoch
