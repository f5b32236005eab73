-- Purpose: an estimate of the multixact members that the server keeps: they share one
-- bounded space, and PostgreSQL reports neither its size nor its use.
-- Invariant: reads at most 200 multixacts, evenly spread over those that are kept, none
-- older than the last checkpoint or unknown to all databases.
create or replace function jobq_private.multixact_members()
returns bigint language sql stable as $$
    select coalesce(round(avg(s.members) * max(k.kept)), 0)::bigint
    from (
        select
            c.next_multixact_id::text::bigint as next,
            least(mxid_age(c.oldest_multi_xid), (
                select max(mxid_age(d.datminmxid)) from pg_database as d
            )) - mxid_age(c.next_multixact_id) as kept
        from pg_control_checkpoint() as c
    ) as k
    cross join generate_series(1, least(k.kept, 200)) as n
    cross join lateral (
        select count(*) as members
        from pg_get_multixact_members((
            greatest(1, (k.next - n::bigint * k.kept / least(k.kept, 200) + 4294967296)
                % 4294967296)
        )::text::xid)
    ) as s
$$;
