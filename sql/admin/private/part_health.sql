-- Purpose: the checks of one part of health(); if the part fails, a row with the reason.
-- Invariant: changes nothing. Catches OTHERS, so that one part does not prevent the
-- others. Names are listed with commas, sentences with semicolons.
create or replace function jobq_private.part_health(
    part text, client_time timestamptz, release text
)
returns table (subject text, is_ok boolean, severity text, finding text, remedy text)
language plpgsql as $$
begin
    return query
    select
        c.subject, coalesce(bool_and(f.is_ok), true), c.severity,
        case
            when count(f.finding) = 0 then c.fine
            else format(
                c.found,
                jobq_private.listed(
                    array_agg(f.finding order by f.n),
                    case c.found when '%s' then '; ' else ', ' end
                ),
                count(f.finding)
            )
        end,
        coalesce(string_agg(f.remedy, '; ' order by f.n), c.remedy)
    from jobq_private.health_check as c
    left join jobq_private.findings(part_health.part, client_time, release)
        with ordinality as f (subject, is_ok, finding, remedy, n) on f.subject = c.subject
    where c.part = part_health.part
    group by c.subject, c.severity, c.fine, c.found, c.remedy
    having c.fine is not null or count(f.finding) > 0;
exception
    when others then
        return query select
            part_health.part, false, 'failure',
            format('could not be checked: %s (%s)%s', sqlerrm, sqlstate, case
                when sqlstate = '55P03'
                then (select '; ' || l.finding from jobq_private.locks_health() as l limit 1)
            end),
            case when sqlstate = '55P03' then 'end the session that holds the lock'
                else 'run jobq deploy, which repairs the schema' end;
end
$$;
