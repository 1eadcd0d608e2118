-- count_created: count one execution that is about to be created now. quota: null, or the user's that is used up.
-- $1 user_id (text)
-- index: primary keys. Nothing is counted for who has no quota. The counter stays locked until the transaction ends.
SELECT quota, hour, asked_at FROM onthedot.count_created($1::text)
