-- work_to_do: for which parts of the maintenance process there is something to do, in one look each second instead of one each.
-- $1 how long before they are due executions are let go that wait for other jobs, in seconds (float8)
-- Each column is named as the loop that it wakes, and true wherever that loop's own look would find something: a loop that is
-- woken in vain looks once, one that is not woken sleeps. `suspects` wakes the workers' look for them.
-- index: jobs_materialize, jobs_paused_until, executions_expiring, executions_blocked, executions_suspects,
-- workflow_runs_under_way, primary keys; the first entry of each
SELECT EXISTS (SELECT FROM onthedot.jobs WHERE materialize_at <= now()) AS materializer,
       EXISTS (SELECT FROM onthedot.executions WHERE expires_at <= now() AND status IN ('BLOCKED', 'PENDING')) AS expirer,
       EXISTS (SELECT FROM onthedot.limit_holders) OR EXISTS (SELECT FROM onthedot.new_limits) AS limits,
       EXISTS (SELECT FROM onthedot.executions
                WHERE status = 'BLOCKED' AND due_at <= now() + make_interval(secs => $1::float8)) AS dependencies,
       EXISTS (SELECT FROM onthedot.workflow_runs WHERE status = 'RUNNING') AS workflows,
       EXISTS (SELECT FROM onthedot.queues WHERE paused_until <= now())
       OR EXISTS (SELECT FROM onthedot.jobs WHERE paused_until <= now()) AS resumer,
       EXISTS (SELECT FROM onthedot.executions
                WHERE worker_deaths >= 2 AND status IN ('PENDING', 'RETRYING') AND NOT held AND due_at <= now()) AS suspects
