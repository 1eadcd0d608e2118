-- note_action: write the audit row of something done by hand to what has no triggers, in its transaction.
-- $1 actor (text), $2 action (text), $3 target_type (text), $4 target_id (text), $5 before (text, JSON), $6 after (text,
-- JSON), $7 reason (text)
-- index: none is read
INSERT INTO onthedot.audit_log (actor, action, target_type, target_id, before, after, reason)
VALUES ($1, $2, $3, $4, $5::text::jsonb, $6::text::jsonb, $7)
