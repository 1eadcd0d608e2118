-- release: give back leased executions of one shard that have not begun; they are ready again at once.
-- $1 shard (int2), $2 execution_ids (uuid[]), $3 lease_epochs (int8[])
-- index: primary key. An attempt that was only claimed is taken back, so that prefetch burns no retry.
-- due_at never moves to before now(): the claim's low-water mark may have passed it.
UPDATE onthedot.executions AS e
   SET status = CASE WHEN e.attempt_number - (e.status = 'RUNNING')::int > 0 THEN 'RETRYING' ELSE 'PENDING' END,
       attempt_number = e.attempt_number - (e.status = 'RUNNING')::int,
       due_at = greatest(e.due_at, now()),
       lease_epoch = e.lease_epoch + 1, worker_id = NULL, lease_expires_at = NULL, claimed_at = NULL
  FROM unnest($2::uuid[], $3::int8[]) AS x (execution_id, lease_epoch)
 WHERE e.shard = $1 AND e.execution_id = x.execution_id AND e.lease_epoch = x.lease_epoch
   AND e.status IN ('SCHEDULED', 'RUNNING')
RETURNING e.execution_id, e.due_at, e.queue, e.priority
