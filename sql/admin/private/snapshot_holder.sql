-- Purpose: sessions, replication slots and prepared transactions that hold back vacuum.
-- Invariant: members of pg_read_all_stats see the pid of a session; others only its age.
create or replace view jobq_private.snapshot_holder as
select
    g.holder, age(g.xmin) as age, g.began_at,
    age(g.xmin) < 1000000
    and coalesce(now() - g.began_at < interval '10 min', true) as is_young
from (
    select
        format('pid %s', a.pid) as holder,
        coalesce(a.backend_xmin, a.backend_xid) as xmin, a.xact_start as began_at
    from pg_stat_activity as a
    where num_nonnulls(a.backend_xmin, a.backend_xid) > 0
    and a.pid <> pg_backend_pid()
    union all
    select format('slot %s', r.slot_name), r.xmin, null
    from pg_replication_slots as r
    where r.xmin is not null
    union all
    select format('prepared %s', p.gid), p.transaction, p.prepared
    from pg_prepared_xacts as p
) as g;
