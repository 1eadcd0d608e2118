-- running_of_task: what runs of a task.
-- $1 task_id (text)
-- index: executions_lease, which holds no more than what the workers carry
SELECT execution_id FROM onthedot.executions WHERE status = 'RUNNING' AND task_id = $1
