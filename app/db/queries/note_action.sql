-- note_action: write the audit row of something done by hand to what has no triggers, in its transaction.
-- $1 action (text), $2 target_type (text), $3 target_id (text), $4 before (text, JSON), $5 after (text, JSON),
-- $6 reason (text). Who does it, and by which request, the transaction has said: the columns' defaults read it.
-- index: none is read
INSERT INTO onthedot.audit_log (action, target_type, target_id, before, after, reason)
VALUES ($1, $2, $3, $4::text::jsonb, $5::text::jsonb, $6)
