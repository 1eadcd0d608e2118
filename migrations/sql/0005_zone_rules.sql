-- Which version of the rules of time zones planned executions follow. PostgreSQL 15 to 18.

CREATE TABLE onthedot.zone_rules (
    only_row   boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    version    text NOT NULL,
    applied_at timestamptz NOT NULL DEFAULT now()
);
---
COMMENT ON TABLE onthedot.zone_rules IS
    'One row, once maintenance has run: the version of IANA''s rules of time zones by which executions are planned';
---
COMMENT ON COLUMN onthedot.zone_rules.only_row IS 'There is one row';
---
COMMENT ON COLUMN onthedot.zone_rules.version IS 'As IANA names it, such as 2026a; it never goes back';
---
COMMENT ON COLUMN onthedot.zone_rules.applied_at IS 'When all jobs had been planned anew by it';
---
SELECT onthedot.ensure_roles();
