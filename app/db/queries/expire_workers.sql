-- expire_workers: forget worker processes that stopped, or were last heard of, some days ago.
-- $1 days (int4)
-- index: none; they are few. Leases stand on the executions: freeing them needs no row here.
DELETE FROM onthedot.workers
 WHERE coalesce(stopped_at, heartbeat_at) < now() - make_interval(days => $1::int4)
RETURNING worker_id
