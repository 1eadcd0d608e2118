-- upstream_ends: what has become of the occurrence of a job that belongs to an instant: its own at that instant, or the
-- latest before it. A job that runs once has but one, whenever that is.
-- One element a question: $1 shards (int2[]), $2 job_ids (uuid[]), $3 instants (timestamptz[])
-- is_known: no other occurrence up to the instant can come any more. status null: there is none.
-- index: primary key of jobs; executions_one_per_instant and history_job (job_id, scheduled_time, …); primary key of ledger_ranges
SELECT x.nth::int4 AS nth, found.status, found.execution_id, found.disposition,
       j.job_id IS NULL OR j.schedule_type IN ('IMMEDIATE', 'ONCE') OR j.materialize_at IS NULL
       OR j.materialized_until >= x.instant AS is_known
  FROM unnest($1::int2[], $2::uuid[], $3::timestamptz[]) WITH ORDINALITY AS x (shard, job_id, instant, nth)
  LEFT JOIN onthedot.jobs AS j ON j.shard = x.shard AND j.job_id = x.job_id
  LEFT JOIN LATERAL (
       SELECT * FROM (
           (SELECT e.scheduled_time, e.status, e.execution_id, 'pending' AS disposition
              FROM onthedot.executions AS e
             WHERE e.shard = x.shard AND e.job_id = x.job_id AND e.run_key = ''
               AND (e.scheduled_time <= x.instant OR j.schedule_type IN ('IMMEDIATE', 'ONCE'))
             ORDER BY e.scheduled_time DESC
             LIMIT 1)
            UNION ALL
           (SELECT h.scheduled_time, h.status, h.execution_id, h.disposition
              FROM onthedot.execution_history AS h
             WHERE h.shard = x.shard AND h.job_id = x.job_id AND h.run_key = ''
               AND (h.scheduled_time <= x.instant OR j.schedule_type IN ('IMMEDIATE', 'ONCE'))
             ORDER BY h.scheduled_time DESC, h.execution_id DESC
             LIMIT 1)
            UNION ALL
           (SELECT least(l.last_time, x.instant), 'SKIPPED', NULL::uuid, l.disposition
              FROM onthedot.ledger_ranges AS l
             WHERE l.shard = x.shard AND l.job_id = x.job_id AND l.first_time <= x.instant
             ORDER BY l.first_time DESC
             LIMIT 1)) AS occurrence
        ORDER BY scheduled_time DESC, execution_id IS NULL
        LIMIT 1) AS found ON true
