-- expire_sessions: delete dashboard sessions that are over.
-- no parameters
-- index: none; they are few
DELETE FROM onthedot.sessions WHERE expires_at < now() RETURNING user_id
