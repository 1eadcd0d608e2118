-- expire_login_tokens: delete one-time links that work no more.
-- no parameters
-- index: none; they are few
DELETE FROM onthedot.login_tokens WHERE expires_at < now() RETURNING user_id
