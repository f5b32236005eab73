-- Measures jobq.next_tick: the whole call, expression parsed each time, warm session.
--
--     psql -X -f tests/bench/bench_next_tick.sql DATABASE
--
-- Prints the average in microseconds for each expression and over all of them, and the
-- same for a schedule that keeps the parsed form (jobq_private.cron_next alone). Fails
-- if the average over all is 100 or more.

\set ON_ERROR_STOP 1
\pset footer off

create temporary table expression (cron text, time_zone text);

insert into expression (cron, time_zone) values
    ('* * * * *', 'UTC'),
    ('*/15 * * * *', 'Europe/London'),
    ('*/10 * * * * *', 'America/New_York'),
    ('0 9 * * MON-FRI', 'Asia/Kolkata'),
    ('30 2 * * *', 'America/New_York'),
    ('0 0 1 * *', 'Europe/Berlin'),
    ('0 0 13 * FRI', 'Australia/Sydney'),
    ('15,45 8-18/2 * JAN,APR,JUL,OCT *', 'Europe/Paris'),
    ('0 18 LW * *', 'America/Sao_Paulo'),
    ('0 12 * * MON#2', 'Australia/Lord_Howe'),
    ('0 0 29 2 *', 'UTC'),
    ('0 0 0 25 12 ? 2030', 'UTC'),
    ('@hourly', 'Africa/Casablanca');

create temporary table figure (cron text, time_zone text, call_us float8,
    next_us float8);

do $$
declare
    _calls constant int := 2000;
    _expression record;
    _parsed jobq_private.cron;
    _started timestamptz;
    _call interval;
    _start constant timestamptz := '2026-01-01 00:00:00 UTC';
begin
    for _expression in
        select e.cron, e.time_zone, warm
        from generate_series(1, 2) as warm
        cross join expression as e
        order by warm
    loop
        _started := clock_timestamp();
        for _call_number in 1.._calls loop
            perform jobq.next_tick(
                _expression.cron,
                _expression.time_zone,
                _start + interval '4 hours 23 minutes 11 seconds' * _call_number
            );
        end loop;
        _call := clock_timestamp() - _started;
        _parsed := jobq_private.cron_parse(_expression.cron, _expression.time_zone);
        _started := clock_timestamp();
        for _call_number in 1.._calls loop
            perform jobq_private.cron_next(
                _parsed,
                _start + interval '4 hours 23 minutes 11 seconds' * _call_number
            );
        end loop;
        if _expression.warm = 2 then
            insert into figure (cron, time_zone, call_us, next_us)
            values (
                _expression.cron,
                _expression.time_zone,
                1e6 * extract(epoch from _call) / _calls,
                1e6 * extract(epoch from clock_timestamp() - _started) / _calls
            );
        end if;
    end loop;
end
$$;

select f.cron,
    f.time_zone,
    round(f.call_us::numeric, 1) as "next_tick, us",
    round(f.next_us::numeric, 1) as "parsed before, us"
from figure as f
union all
select 'average', '', round(avg(f.call_us)::numeric, 1), round(avg(f.next_us)::numeric,
    1)
from figure as f;

do $$
begin
    assert (select avg(f.call_us) < 100 from figure as f),
        'next_tick takes 100 us or more';
end
$$;
