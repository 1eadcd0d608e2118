-- who_started: who started executions by hand, as far as the newest entries of the audit log tell.
-- one element an execution: $1 execution_ids (uuid[]), $2 what was acted on (text[]: job or execution), $3 its id (text[])
-- index: audit_log_target (target_type, target_id, audit_id), the newest 100 of each target
SELECT x.execution_id, a.actor
  FROM unnest($1::uuid[], $2::text[], $3::text[]) AS x (execution_id, target_type, target_id)
 CROSS JOIN LATERAL (
       SELECT newest.actor
         FROM (SELECT l.actor, l.after
                 FROM onthedot.audit_log AS l
                WHERE l.target_type = x.target_type AND l.target_id = x.target_id
                ORDER BY l.audit_id DESC
                LIMIT 100) AS newest
        WHERE newest.after ->> 'execution_id' = x.execution_id::text
        LIMIT 1) AS a
