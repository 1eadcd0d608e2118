-- snapshot: the time, the oldest transaction that may still write, and a number that only later ones get (app/worker/marks.py).
-- Its own number, which it takes last: the end of the snapshot is but the latest number that has ended, and others
-- above it may be writing. Transactions that only read have none: a backup or a report holds nothing up here.
SELECT now() AS taken_at, pg_snapshot_xmin(s)::text::int8 AS oldest, pg_current_xact_id()::text::int8 AS next
  FROM pg_current_snapshot() AS s
