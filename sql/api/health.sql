-- Purpose: say what threatens the queue's promise, each with its remedy.
-- Invariant: reads only; what is not in order comes first. Raises: nothing.
create or replace function jobq.health()
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
        select * from jobq_private.queue_health()
    ) as h
    order by h.is_ok, h.subject
$$;

revoke all on function jobq.health() from public;
grant execute on function jobq.health() to jobq_operator, jobq_reader;

comment on function jobq.health() is
'Says what threatens the queue''s promise: settings, snapshots, leases, workers, partitions, each with its remedy.';
