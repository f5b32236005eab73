-- Purpose: Reports problems with severity and remedy: settings, snapshots, leases,
-- workers, partitions, drift, and a client's clock and release if given.
-- Invariant: reads only, except for the trial, which is undone. Each part waits at most
-- a second for a lock; a part that fails returns a row with the reason. On a standby,
-- reports what can be read there.
-- Argument client_time: the client's clock, to compare; null skips the check.
-- Argument release: the client's release, as at the end of jobq.sql, to compare; null skips the
-- check.
-- Argument part: only this part: server, vacuum, replication, locks, settings, jobs, workers,
-- maintenance, schema, clock, or trial, which stores, claims and finishes a job, and undoes
-- that; the commit of its transaction waits for no standby. null means all but the trial.
-- Raises: 22023.
-- Returns: problems first, failures before warnings.
-- Column subject: the check: snapshot, leases, workers, slots, partitions and more, see
-- [monitoring](monitoring.md).
-- Column is_ok: whether the check passed.
-- Column finding: what was found.
-- Column remedy: what to do.
-- Column severity: severity of the problem: failure (jobs are lost, stop or are unprotected) or
-- warning.
-- Example: select subject, severity, finding, remedy from jobq.health() where not is_ok;
create or replace function jobq.health(
    client_time timestamptz default null, release text default null, part text default null
)
returns table (subject text, is_ok boolean, finding text, remedy text, severity text)
language plpgsql security definer set search_path = pg_catalog, pg_temp set lock_timeout = '1s'
set jit = off as $$
#variable_conflict use_column
declare
    _parts constant text[] :=
        '{server,vacuum,replication,trial,locks,settings,jobs,workers,maintenance,schema,clock}'::text[];
begin
    perform jobq_private.check_argument(case
        when health.part <> all (_parts) then 'part must be one of ' || array_to_string(_parts, ', ')
    end);
    return query
    select h.subject, h.is_ok, h.finding, case when not h.is_ok then h.remedy end, h.severity
    from unnest(_parts) as p (part)
    cross join lateral jobq_private.part_health(p.part, health.client_time, health.release) as h
    where case when health.part is null then p.part <> 'trial' else p.part = health.part end
    order by h.is_ok, h.severity, h.subject;
end
$$;
grant execute on function jobq.health to jobq_operator, jobq_reader;
