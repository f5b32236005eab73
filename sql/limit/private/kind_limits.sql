-- Purpose: a change of a kind's limits holds at once: claims see its limit, and what runs counts.
-- Invariant: fires for a change alone, also by raw SQL; waits for no claim. A limit that a claim has
-- locked stays, without a limit, for prune(). Raises: nothing.
create or replace function jobq_private.follow_kind_limits()
returns trigger
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _kind constant text := coalesce(new.kind, old.kind);
    _was_limited constant boolean
        := num_nonnulls(old.max_running, old.rate_limit, old.budget) > 0;
    _queue text;
begin
    perform jobq_private.note_change(256);
    if num_nonnulls(new.max_running, new.rate_limit, new.budget) > 0 then
        -- A row that is there must not be inserted: that would wait for the claim that has locked it.
        if not _was_limited then
            insert into jobq_private.limit_state as g (limit_id, kind)
            values (jobq_private.limit_id(null, _kind), _kind)
            on conflict on constraint limit_state_pkey do nothing;
        end if;
    else
        delete from jobq_private.limit_state as g
        where g.ctid = any (array(
            select o.ctid
            from jobq_private.limit_state as o
            where o.kind = _kind and o.queue is null
            for update skip locked
        ));
    end if;
    delete from jobq_private.known_limit as k
    where k.limit_id = jobq_private.key_limit_id(_kind, '');
    if num_nonnulls(new.key_max_running, new.key_rate_limit, new.ordered, new.key_budget) > 0 then
        insert into jobq_private.known_limit (limit_id)
        values (jobq_private.key_limit_id(_kind, ''));
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

create or replace trigger kind_limits
after update on jobq_private.kind
for each row
when (
    (
        new.max_running, new.rate_limit, new.rate_period, new.rate_burst,
        new.key_max_running, new.key_rate_limit, new.key_rate_period,
        new.key_rate_burst, new.ordered, new.on_dead, new.budget,
        new.key_budget
    ) is distinct from (
        old.max_running, old.rate_limit, old.rate_period, old.rate_burst,
        old.key_max_running, old.key_rate_limit, old.key_rate_period,
        old.key_rate_burst, old.ordered, old.on_dead, old.budget,
        old.key_budget
    )
)
execute function jobq_private.follow_kind_limits();

create or replace trigger kind_birth_limits
after insert on jobq_private.kind
for each row
when (num_nonnulls(
    new.max_running, new.rate_limit, new.key_max_running, new.key_rate_limit, new.ordered,
    new.budget, new.key_budget
) > 0)
execute function jobq_private.follow_kind_limits();

create or replace trigger kind_end_limits
after delete on jobq_private.kind
for each row
when (num_nonnulls(
    old.max_running, old.rate_limit, old.key_max_running, old.key_rate_limit, old.ordered,
    old.budget, old.key_budget
) > 0)
execute function jobq_private.follow_kind_limits();
