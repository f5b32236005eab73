-- Purpose: what a client and the database disagree about: the time, and the release.
-- Invariant: reads only; what is null is not compared. release has for each function's
-- name the MD5 sums that its body may have; those of the functions whose constants are the database's
-- own are left out. Raises: nothing.
create or replace function jobq_private.client_health(client_time timestamptz, release jsonb)
returns table (subject text, is_ok boolean, finding text, remedy text)
language sql
stable
parallel restricted
security invoker
set search_path = pg_catalog, pg_temp
as $$
    select
        'clock', abs(d.seconds) < 5,
        format('the database is %s s %s the client', round(abs(d.seconds), 1),
            case when d.seconds < 0 then 'behind' else 'ahead of' end),
        'set both clocks by NTP: what is due, and every lease, go by the database''s'
    from (
        select extract(epoch from clock_timestamp() - client_health.client_time) as seconds
    ) as d
    where d.seconds is not null
    union all
    select
        'schema', count(*) filter (where f.is_other) = 0,
        case when count(*) filter (where f.is_other) = 0
            then format('all %s functions are those of this release', count(*))
            else format('%s functions are not those of this release: %s',
                count(*) filter (where f.is_other),
                left(string_agg(f.function, ', ' order by f.function)
                    filter (where f.is_other), 200))
        end,
        'run jobq deploy of the release that workers and clients use'
    from (
        select
            coalesce(p.function, r.function) as function,
            (r.sums ? p.sum) is not true as is_other
        from (
            select format('%s.%s', n.nspname, s.proname) as function, md5(s.prosrc) as sum
            from pg_proc as s
            join pg_namespace as n on n.oid = s.pronamespace
            where n.nspname in ('jobq', 'jobq_http', 'jobq_private')
            and (n.nspname, s.proname) not in (
                ('jobq_private', 'own_shard'), ('jobq_private', 'defaults'),
                ('jobq_private', 'has_kind_rules'), ('jobq_private', 'has_queue_rules')
            )
        ) as p
        full join jsonb_each(client_health.release) as r (function, sums)
            on r.function = p.function
    ) as f
    where client_health.release is not null
    having client_health.release is not null
$$;

revoke all on function jobq_private.client_health from public;

comment on function jobq_private.client_health is
'What a client and the database disagree about, each with its remedy.';
