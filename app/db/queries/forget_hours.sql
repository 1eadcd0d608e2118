-- forget_hours: drop the counters of a user who gets a quota: from an earlier one, they are out of date.
-- $1 user_id (text)
-- index: primary key
DELETE FROM onthedot.hourly_counts WHERE user_id = $1
