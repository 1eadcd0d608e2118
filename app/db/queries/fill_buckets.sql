-- fill_buckets: write what rate limits have left. Their keys are locked (lock_limits.sql).
-- $1 keys (text[]), $2 tokens (float8[]), $3 as of when (timestamptz): the moment that limit_states.sql filled them up to. As
-- of a later one, what has come in since would be lost, with every claim.
INSERT INTO onthedot.rate_buckets (key, tokens, refilled_at)
SELECT key, tokens, $3::timestamptz FROM unnest($1::text[], $2::float8[]) AS b (key, tokens)
    ON CONFLICT (key) DO UPDATE SET tokens = excluded.tokens, refilled_at = excluded.refilled_at
