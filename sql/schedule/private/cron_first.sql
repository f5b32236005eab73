-- Purpose: the first member of a set of numbers stored as bits.
-- Invariant: pure; no SET and language sql, so that the planner inlines it.
create or replace function jobq_private.cron_first(bits bigint, start integer)
returns integer language sql immutable as $$
    select (
        pg_catalog.ln(nullif((bits >> start) & -(bits >> start), 0)::double precision)
        / 0.693147180559945309
    )::int + start
$$;
