-- Purpose: a change of a kind's limits holds at once: claims see its gate, and what runs counts.
-- Invariant: fires for a change alone, also by raw SQL. Waits for claims of all queues, since jobs of
-- the kind may come into any, and then writes to its gate, so that who starts a job can hold that
-- meanwhile. Raises: nothing.
create or replace function jobq_private.follow_kind_limits()
returns trigger
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _limits constant integer := jobq_private.lock_class('limiting');
    _kind constant text := coalesce(new.kind, old.kind);
    _queue text;
begin
    perform pg_advisory_xact_lock(_limits, n.slot)
    from generate_series(0, 255) as n (slot);
    update jobq_private.limit_change as c set changed_at = clock_timestamp() where c.slot = 256;
    if num_nonnulls(new.max_running, new.rate_limit) > 0 then
        insert into jobq_private.gate as g (gate_id, kind)
        values (jobq_private.gate_id(null, _kind), _kind)
        on conflict on constraint gate_pkey do nothing;
    else
        delete from jobq_private.gate as g
        where g.kind = _kind and g.queue is null;
    end if;
    delete from jobq_private.kind_gate as k
    where k.gate_id = jobq_private.key_gate_id(_kind, '');
    if num_nonnulls(new.key_max_running, new.key_rate_limit, new.ordered) > 0 then
        insert into jobq_private.kind_gate (gate_id)
        values (jobq_private.key_gate_id(_kind, ''));
    end if;
    for _queue in
        select q.queue
        from (
            select j.queue from jobq_private.job as j where j.kind = _kind
            union
            select unnest(w.queues) from jobq_private.worker as w
        ) as q
        order by q.queue
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
        new.max_running, new.rate_limit, new.rate_period, new.rate_burst,
        new.key_max_running, new.key_rate_limit, new.key_rate_period,
        new.key_rate_burst, new.ordered, new.on_dead
    ) is distinct from (
        old.max_running, old.rate_limit, old.rate_period, old.rate_burst,
        old.key_max_running, old.key_rate_limit, old.key_rate_period,
        old.key_rate_burst, old.ordered, old.on_dead
    )
)
execute function jobq_private.follow_kind_limits();

create or replace trigger kind_birth_limits
after insert on jobq_private.kind
for each row
when (num_nonnulls(
    new.max_running, new.rate_limit, new.key_max_running, new.key_rate_limit, new.ordered
) > 0)
execute function jobq_private.follow_kind_limits();

create or replace trigger kind_end_limits
after delete on jobq_private.kind
for each row
when (num_nonnulls(
    old.max_running, old.rate_limit, old.key_max_running, old.key_rate_limit, old.ordered
) > 0)
execute function jobq_private.follow_kind_limits();
