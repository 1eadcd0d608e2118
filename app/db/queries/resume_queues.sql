-- resume_queues: take the marks of a pause that is over off its queue.
-- no parameters
-- index: none; queues are few
UPDATE onthedot.queues
   SET paused_at = NULL, paused_by = NULL, paused_reason = NULL, paused_until = NULL, version = version + 1,
       updated_at = now()
 WHERE paused_until <= now()
RETURNING queue
