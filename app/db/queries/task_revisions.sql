-- task_revisions: at which revisions tasks are.
-- $1 task_ids (text[])
-- index: primary key
SELECT task_id, revision FROM onthedot.tasks WHERE task_id = ANY ($1::text[])
