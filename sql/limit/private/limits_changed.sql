-- Purpose: apply a change of the limits of a queue, its keys, or a kind to the next
-- claim: open closed keys, and count running jobs without a slot.
-- Invariant: fires only for real changes, also by raw SQL. Waits for no open claim and
-- blocks none. Jobs that such a claim starts under the old limits count when it
-- commits; maintain() finds a key that it closes.
create or replace function jobq_private.limits_changed()
returns trigger language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
    _scope constant text := coalesce(to_jsonb(new), to_jsonb(old)) ->> tg_argv[0];
    _queue constant text := case when tg_argv[0] = 'queue' then _scope end;
    _kind constant text := case when tg_argv[0] = 'kind' then _scope end;
begin
    if not exists (
        select
        from jsonb_each(to_jsonb(old)) as o
        full join jsonb_each(to_jsonb(new)) as n using (key)
        where key ~ 'max_running|rate_|ordered|on_dead|budget'
        and nullif(o.value, 'null') is distinct from nullif(n.value, 'null')
    ) then
        return null;
    end if;
    -- Waits for nobody: if somebody holds the first row, that is another change, or a repeatable
    -- snapshot that started jobs before this change.
    update jobq_private.limit_change as c
    set changed_at = clock_timestamp()
    where c.ctid = any(array(
        select o.ctid
        from jobq_private.limit_change as o
        where o.change_id = 1
        for update skip locked
    ));
    insert into jobq_private.limit_change (changed_at) values (clock_timestamp());
    perform jobq_private.open_again(array(
        select w
        from jobq_private.waiting_key as w
        where w.state <> 'open'
        and (w.queue = _queue or w.kind = _kind or w.full_kind = _kind)
    ));
    if _queue is not null then
        perform jobq_private.wake(array[_queue]);
    end if;
    return null;
end
$$;

create or replace trigger queue_limits
after insert or update or delete on jobq_private.queue
for each row execute function jobq_private.limits_changed('queue');

create or replace trigger kind_limits
after insert or update or delete on jobq_private.kind
for each row execute function jobq_private.limits_changed('kind');

create or replace trigger key_limits
after insert or update or delete on jobq_private.key_limit
for each row execute function jobq_private.limits_changed('queue');
