-- is_still_ours: whether an execution is live under this lease, once whoever may be ending it has ended.
-- $1 shard (int2), $2 execution_id (uuid), $3 lease_epoch (int8)
-- index: primary key. FOR KEY SHARE waits for a session whose commit is under way though its client was cut off.
SELECT execution_id
  FROM onthedot.executions
 WHERE shard = $1 AND execution_id = $2 AND lease_epoch = $3
   FOR KEY SHARE
