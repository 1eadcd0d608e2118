-- deferred_until: the last instant of a job that its user's quota had no room for; it is judged a moment before it comes.
-- $1 shard (int2), $2 job_id (uuid), $3 of ranges that begin from here on (timestamptz)
-- index: primary key
SELECT max(last_time) AS last_time
  FROM onthedot.ledger_ranges
 WHERE shard = $1 AND job_id = $2 AND disposition = 'deferred_quota' AND first_time >= $3
