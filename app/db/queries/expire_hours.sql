-- expire_hours: delete counters of hours in which nothing is created any more.
-- No index: the table holds what users with a quota have done within two days.
DELETE FROM onthedot.hourly_counts WHERE hour < now() - interval '2 days' RETURNING hour
