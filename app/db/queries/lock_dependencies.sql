-- lock_dependencies: let one transaction at a time change what depends on what: two halves of a circle must not pass.
SELECT pg_advisory_xact_lock(x'6F74642D646570'::bigint)
