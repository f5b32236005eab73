-- Purpose: find waiting jobs that no claim would see, from the rows alone, whatever was
-- lost: a row of their key, the news of a raw update or delete; and open their keys.
-- Returns how many.
-- Invariant: 1,000 keys at a call, from where the last call of any session ended. A row
-- too many does no harm: a claim closes the key again.
create or replace function jobq_private.find_waiting_keys()
returns bigint
language plpgsql
set plan_cache_mode = force_generic_plan
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
as $$
declare
    _now constant timestamptz := clock_timestamp();
    _from constant jsonb := (
        select t.resume_at from jobq_private.maintenance_task as t where t.task = 'opened_keys'
    );
    _at record;
    _key record;
    _found bigint := 0;
    _queues text[];
begin
    select
        coalesce(_from ->> 'queue', '') as queue,
        coalesce(_from ->> 'key_id', '00000000-0000-0000-0000-000000000000')::uuid as key_id,
        coalesce(_from ->> 'priority', '-32768')::smallint as priority
    into _at;
    for _n in 1 .. 1000 loop
        select j.queue, j.key_id, j.priority, j.concurrency_key, j.kind, j.run_at, j.job_id into _at
        from jobq_private.job as j
        where j.key_id is not null and j.state in ('queued', 'retrying')
        and (j.queue, j.key_id, j.priority) > (_at.queue, _at.key_id, _at.priority)
        order by j.queue, j.key_id, j.priority, j.run_at, j.job_id
        limit 1;
        exit when not found;
        select
            count(*) > 0 as is_known,
            -- claims open these by themselves
            coalesce(bool_or(
                w.state = 'open' or w.state = 'later' and w.open_at <= _now
                or w.limit_id is not null
            ), false) as is_promised
        into _key
        from jobq_private.waiting_key as w
        where w.key_id = _at.key_id and w.queue = _at.queue and w.priority = _at.priority;
        if not _key.is_promised and (
            not _key.is_known
            or _at.run_at <= _now and not exists (
                select from jobq_private.job as j
                cross join lateral jobq_private.blocking_limits(j, _now, 1)
                where j.job_id = _at.job_id
            )
        ) then
            _found := _found + 1;
            perform jobq_private.open_again(array[row(
                null, _at.key_id, _at.queue,
                jobq_private.key_kind(_at.key_id, _at.queue, _at.concurrency_key, _at.kind),
                _at.concurrency_key, _at.priority, null, null, null
            )::jobq_private.waiting_key]);
        end if;
    end loop;
    update jobq_private.maintenance_task as t
    set resume_at = case when _at.key_id is not null then to_jsonb(_at) end
    where t.task = 'opened_keys';
    perform jobq_private.release_dead_keys(array(
        select g.dead_job_id
        from jobq_private.limit_state as g
        where g.dead_job_id is not null
        order by random()
        limit 500
    ));
    -- The job that did not fit into a budget may be gone.
    with reopened as (
        update jobq_private.limit_state as g
        set full_until = null
        where g.ctid = any(array(
            select o.ctid
            from jobq_private.limit_state as o
            where o.full_until > _now
            for update skip locked
        ))
        returning g.limit_id, g.queue
    )
    select array_agg(distinct coalesce(r.queue, w.queue)) into _queues
    from reopened as r
    left join jobq_private.waiting_key as w on w.limit_id = r.limit_id;
    perform jobq_private.number_running();
    perform jobq_private.wake(coalesce(array_remove(_queues, null), '{}'));
    return _found;
end
$$;
