-- expire_rollups: delete counts by the minute that are a day old, and those by the quarter of an hour with the history.
-- $1 days that finished executions are kept (int4)
-- index: primary key, whose first columns are grain and bucket
DELETE FROM onthedot.rollups
 WHERE grain_seconds = 60 AND bucket < now() - interval '1 day'
    OR grain_seconds = 900 AND bucket < now() - make_interval(days => $1::int4)
RETURNING bucket
