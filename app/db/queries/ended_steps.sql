-- ended_steps: of rounds of steps, those of which nothing is live any more.
-- One element a round: $1 shards (int2[]), $2 what the run_keys of its executions begin with (text[])
-- index: executions_step (run_key). Asked after what ended was committed: of two workers that end the last two executions
-- of a step at the same moment, the later one at least finds nothing left.
SELECT x.prefix
  FROM unnest($1::int2[], $2::text[]) AS x (shard, prefix)
 WHERE NOT EXISTS (SELECT FROM onthedot.executions AS e
                    WHERE e.shard = ANY ($1::int2[]) AND e.shard = x.shard AND e.trigger = 'workflow'
                      AND e.run_key COLLATE "C" > x.prefix AND e.run_key COLLATE "C" < x.prefix || ':')
