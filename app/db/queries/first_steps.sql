-- first_steps: which steps of beginning have been taken.
-- index: one row of each is enough
SELECT EXISTS (SELECT FROM onthedot.workers WHERE stopped_at IS NULL AND heartbeat_at > now() - interval '15 s') AS worker,
       EXISTS (SELECT FROM onthedot.tasks) AS task,
       EXISTS (SELECT FROM onthedot.jobs) AS job,
       EXISTS (SELECT FROM onthedot.execution_history WHERE completed_at < now() + interval '1 min') AS run
