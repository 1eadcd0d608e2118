-- stale_holders: delete what counts against limits and stands for no lease any more: its worker is gone, or ended between two
-- statements. What such a row keeps waiting waits until then, so it is looked for every second.
-- index: primary key of executions, a look for each row that counts; these are no more than what runs
-- By its epoch: what is claimed anew while this looks counts under another one, and must stay.
-- SKIP LOCKED: nobody that deletes here waits for another (free_holders.sql); what is left is looked at a second later.
WITH stale AS MATERIALIZED (
    SELECT h.key, h.execution_id, h.lease_epoch
      FROM onthedot.limit_holders AS h
     WHERE NOT EXISTS (SELECT FROM onthedot.executions AS e
                        WHERE e.shard = h.shard AND e.execution_id = h.execution_id
                          AND (e.status = 'RUNNING' AND e.lease_epoch = h.lease_epoch
                               OR e.status = 'RETRYING' AND h.key LIKE 'job:%'))
), over AS MATERIALIZED (
    SELECT h.key, h.execution_id
      FROM stale AS s
      JOIN onthedot.limit_holders AS h
        ON h.key = s.key AND h.execution_id = s.execution_id AND h.lease_epoch = s.lease_epoch
       FOR UPDATE OF h SKIP LOCKED
)
DELETE FROM onthedot.limit_holders AS h
 USING over AS o
 WHERE h.key = o.key AND h.execution_id = o.execution_id
RETURNING h.key
