-- claim_admitted: begin the leases of executions of one shard that their limits allow, and count them against these.
-- $1 shard (int2), $2 execution_ids (uuid[]), $3 worker_id (uuid), $4 lease in seconds (float8), and one element a limit
-- that one of them counts against: $5 keys (text[]), $6 execution_ids (uuid[]), $7 cores (float8[]), $8 memory in MiB (int4[])
-- The rows are locked by this transaction (candidates_*.sql), their limits, too (lock_limits.sql).
-- ON CONFLICT: what an attempt before has left (an execution that must not overlap counts until its last attempt ends).
WITH claimed AS (
    UPDATE onthedot.executions AS e
       SET status = 'RUNNING', attempt_number = e.attempt_number + 1, lease_epoch = e.lease_epoch + 1,
           worker_id = $3, claimed_at = now(), lease_expires_at = now() + make_interval(secs => $4::float8),
           started_at = NULL
     WHERE e.shard = $1 AND e.execution_id = ANY ($2::uuid[])
    RETURNING e.*
), counted AS (
    INSERT INTO onthedot.limit_holders (key, execution_id, shard, lease_epoch, cpu_cores, memory_mb, held_since)
    SELECT h.key, h.execution_id, $1, c.lease_epoch, h.cpu_cores, h.memory_mb, c.claimed_at
      FROM unnest($5::text[], $6::uuid[], $7::float8[], $8::int4[]) AS h (key, execution_id, cpu_cores, memory_mb)
      JOIN claimed AS c ON c.execution_id = h.execution_id
        ON CONFLICT (key, execution_id) DO UPDATE
       SET lease_epoch = excluded.lease_epoch, held_since = excluded.held_since
)
SELECT c.shard, c.execution_id, c.job_id, c.user_id, c.task_id, t.revision AS task_revision, c.queue, c.priority,
       c.status, c.trigger, c.scheduled_time, c.due_at, c.first_due_at, c.parameters, c.timeout_seconds,
       c.max_attempts, c.attempt_number, c.lease_epoch, c.claimed_at, c.lease_expires_at, c.lateness_ms,
       c.parameters_checked, c.run_key, c.limited
  FROM claimed AS c LEFT JOIN onthedot.tasks AS t ON t.task_id = c.task_id
