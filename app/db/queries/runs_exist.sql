-- runs_exist: whether a run of any workflow is under way. Without parameters: planned once, as it is asked each second.
-- index: workflow_runs_under_way (workflow_id)
SELECT EXISTS (SELECT FROM onthedot.workflow_runs WHERE status = 'RUNNING') AS exist
