-- depends_on_what: what jobs depend on, and what these depend on, and so on: the edges of the graph from here on.
-- $1 job_ids (uuid[])
-- index: primary key of jobs. Each job is walked through once, however many ways lead to it.
WITH RECURSIVE walk AS (
    SELECT id FROM unnest($1::uuid[]) AS id
     UNION
    SELECT unnest(j.depends_on)
      FROM walk AS w
      JOIN onthedot.jobs AS j ON j.job_id = w.id AND j.depends_on <> '{}'
)
SELECT job_id, depends_on FROM onthedot.jobs WHERE job_id = ANY (ARRAY(SELECT id FROM walk))
