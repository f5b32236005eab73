-- Purpose: the checks of one part of health(); if the part fails, a row with the
-- reason.
-- Invariant: changes nothing. Catches OTHERS, so that one part does not prevent the
-- others.
-- Raises: nothing.
create or replace function jobq_private.part_health(
    part text, client_time timestamptz, release text
)
returns table (subject text, is_ok boolean, severity text, finding text, remedy text)
language plpgsql
as $$
#variable_conflict use_column
begin
    if part_health.part = 'clock' then
        return query select h.subject, h.is_ok, h.severity, h.finding, h.remedy
        from jobq_private.clock_health(part_health.client_time) as h;
    elsif part_health.part = 'schema' then
        return query select h.subject, h.is_ok, h.severity, h.finding, h.remedy
        from jobq_private.schema_health(part_health.release) as h;
    else
        return query execute format(
            'select h.subject, h.is_ok, h.severity, h.finding, h.remedy from jobq_private.%I() as h',
            part_health.part || '_health'
        );
    end if;
exception
    when others then
        return query select
            part_health.part, false, 'failure',
            format('could not be checked: %s (%s)%s', sqlerrm, sqlstate, case
                when sqlstate = '55P03'
                then (select '; ' || l.finding from jobq_private.locks_health() as l where not l.is_ok)
            end),
            case when sqlstate = '55P03' then 'end the session that holds the lock'
                else 'run jobq deploy, which repairs the schema' end;
end
$$;
