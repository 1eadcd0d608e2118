-- heartbeat: register a worker process, and say that it still lives and what it carries.
-- $1 worker_id (uuid), $2 host (text), $3 pid (int4), $4 version (text), $5 queues (text[]), $6 slots (int4),
-- $7 running (int4), $8 draining (bool), $9 stopped (bool), $10 drain_reason (text),
-- $11 suspects_only (bool), $12 labels (jsonb), $13 cores of its host (float8), $14 memory of its host in MiB (int4)
INSERT INTO onthedot.workers AS w
       (worker_id, host, pid, version, queues, slots, running, draining, heartbeat_at, stopped_at,
        drain_reason, suspects_only, labels, cpu_cores, memory_mb)
SELECT $1::uuid, $2::text, $3::int4, $4::text, $5::text[], $6::int4, $7::int4, $8::bool, now(),
       CASE WHEN $9::bool THEN now() END, $10::text, $11::bool, $12::jsonb, $13::float8, $14::int4
    ON CONFLICT (worker_id) DO UPDATE
   SET running = excluded.running, draining = w.draining OR excluded.draining,
       heartbeat_at = excluded.heartbeat_at, stopped_at = excluded.stopped_at,
       drain_reason = coalesce(excluded.drain_reason, w.drain_reason)
RETURNING draining
