-- Purpose: a change of a kind's limits holds at once: claims see its gate, and what runs counts.
-- Invariant: fires for a change alone, also by raw SQL. Waits for claims of the queues that have
-- jobs of the kind or a worker, in one order. Raises: nothing.
create or replace function jobq_private.follow_kind_limits()
returns trigger
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _kind constant text := coalesce(new.kind, old.kind);
    _queue text;
begin
    if num_nonnulls(new.max_running, new.rate_limit) > 0 then
        insert into jobq_private.gate as g (gate_id, kind)
        values (jobq_private.gate_id(null, _kind), _kind)
        on conflict on constraint gate_pkey do nothing;
    else
        delete from jobq_private.gate as g
        where g.kind = _kind and g.queue is null;
    end if;
    for _queue in
        select q.queue
        from (
            select j.queue from jobq_private.job as j where j.kind = _kind
            union
            select unnest(w.queues) from jobq_private.worker as w
        ) as q
        order by hashtext(q.queue) & 255, q.queue
    loop
        perform jobq_private.limits_changed(_queue);
    end loop;
    return null;
end
$$;

revoke all on function jobq_private.follow_kind_limits from public;

comment on function jobq_private.follow_kind_limits is
'Has claims follow a change of a kind''s limits.';

create or replace trigger kind_limits
after update on jobq_private.kind
for each row
when (
    (
        new.max_running, new.rate_limit, new.rate_period, new.rate_burst
    ) is distinct from (
        old.max_running, old.rate_limit, old.rate_period, old.rate_burst
    )
)
execute function jobq_private.follow_kind_limits();

create or replace trigger kind_birth_limits
after insert on jobq_private.kind
for each row
when (num_nonnulls(new.max_running, new.rate_limit) > 0)
execute function jobq_private.follow_kind_limits();

create or replace trigger kind_end_limits
after delete on jobq_private.kind
for each row
when (num_nonnulls(old.max_running, old.rate_limit) > 0)
execute function jobq_private.follow_kind_limits();
