-- Purpose: say what threatens the queue's promise, each with its remedy.
-- Invariant: reads only; what is not in order comes first. The client's time, and its
-- release are compared where they are given. Raises: nothing.
-- Argument client_time: the client's clock; null means that it is not compared.
-- Argument release: the client's release: for each function an array of the MD5 sums
-- that its body may have; null means that it is not compared.
-- Returns: what is not in order comes first.
-- Column subject: what was looked at: snapshot, leases, workers, slots, partitions and more,
-- see [reliability](reliability.md).
-- Column is_ok: whether it is in order.
-- Column finding: what was found.
-- Column remedy: what to do.
-- Example: select subject, finding, remedy from jobq.health() where not is_ok;
create or replace function jobq.health(
    client_time timestamptz default null, release jsonb default null
)
returns table (subject text, is_ok boolean, finding text, remedy text)
language sql
stable
parallel restricted
security definer
set search_path = pg_catalog, pg_temp
as $$
    select h.subject, h.is_ok, h.finding, case when not h.is_ok then h.remedy end
    from (
        select * from jobq_private.server_health()
        union all
        select * from jobq_private.setting_health()
        union all
        select * from jobq_private.queue_health()
        union all
        select * from jobq_private.client_health(health.client_time, health.release)
    ) as h
    order by h.is_ok, h.subject
$$;

revoke all on function jobq.health from public;
grant execute on function jobq.health to jobq_operator, jobq_reader;

comment on function jobq.health is
'Says what threatens the queue''s promise, each with its remedy: settings, snapshots, leases, workers, partitions; a client''s clock and release too where it gives them.';
