-- fill_buckets: write what rate limits have left, as of now. Their keys are locked (lock_limits.sql).
-- $1 keys (text[]), $2 tokens (float8[])
INSERT INTO onthedot.rate_buckets (key, tokens, refilled_at)
SELECT key, tokens, clock_timestamp() FROM unnest($1::text[], $2::float8[]) AS b (key, tokens)
    ON CONFLICT (key) DO UPDATE SET tokens = excluded.tokens, refilled_at = excluded.refilled_at
