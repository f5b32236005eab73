-- Purpose: whether a client's clock agrees with the database's.
-- Invariant: no row without a given time.
create or replace function jobq_private.clock_health(client_time timestamptz)
returns setof jobq_private.finding language sql as $$
    select
        'clock', abs(d.seconds) < 5,
        format('the database is %s s %s the client', round(abs(d.seconds), 1),
            case when d.seconds < 0 then 'behind' else 'ahead of' end),
        null
    from (
        select extract(epoch from clock_timestamp() - clock_health.client_time) as seconds
    ) as d
    where d.seconds is not null
$$;
