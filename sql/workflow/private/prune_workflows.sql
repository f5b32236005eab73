-- Purpose: forget the steps and waits of jobs that have gone, and events past retention;
-- release those that waited for what a transaction with one snapshot has emitted.
-- Invariant: a bounded number of rows at a call. An event for which a job waits stays, and
-- so do the steps of a job that can still be redriven, and the signals to it. Who does not see all queues leaves what
-- belongs to none to others. Returns how many rows went.
-- Raises: nothing.
create or replace function jobq_private.prune_workflows(max_rows integer)
returns bigint
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    _all constant uuid := uuid '00000000-0000-0000-0000-000000000000';
    _before constant timestamptz := now() - (select g.retention from jobq_private.setting as g);
    _gone bigint;
    _rows bigint;
    _late jobq_private.late_event;
    _queues constant text[] := jobq_private.worked_queues();
begin
    for _late in
        delete from jobq_private.late_event as l
        where l.late_event_id in (
            select e.late_event_id
            from jobq_private.late_event as e
            where _queues is null
            or exists (select from jobq_private.job as j where j.job_id = e.job_id)
            order by e.late_event_id
            limit prune_workflows.max_rows
            for update skip locked
        )
        returning l.*
    loop
        if exists (
            select from jobq_private.event as e
            where e.event = _late.event and e.job_id in (_late.job_id, _all)
        ) then
            perform jobq_private.release_waiters(_late.event, _late.job_id);
        end if;
    end loop;

    delete from jobq_private.event as e
    where (e.event, e.job_id) in (
        select o.event, o.job_id
        from jobq_private.event as o
        where o.emitted_at < _before
        and not exists (
            select from jobq_private.waiter as w
            where w.event = o.event and o.job_id in (w.job_id, _all)
        )
        and (o.job_id = _all or jobq_private.state_of(o.job_id) is null)
        order by o.emitted_at
        limit prune_workflows.max_rows
    );
    get diagnostics _gone = row_count;

    delete from jobq_private.waiter as w
    where (w.job_id, w.event) in (
        select o.job_id, o.event
        from jobq_private.waiter as o
        where o.since < now() - interval '1 day'
        and not exists (select from jobq_private.job as j where j.job_id = o.job_id)
        order by o.since
        limit prune_workflows.max_rows
    );
    get diagnostics _rows = row_count;
    _gone := _gone + _rows;

    delete from jobq_private.step as s
    where s.job_id in (
        select distinct o.job_id
        from jobq_private.step as o
        where o.job_id < jobq_private.id_floor(_before)
        and not exists (select from jobq_private.job as j where j.job_id = o.job_id)
        and not exists (select from jobq_private.job_archive as a where a.job_id = o.job_id)
        order by o.job_id
        limit prune_workflows.max_rows
    );
    get diagnostics _rows = row_count;
    _gone := _gone + _rows;
    if _queues is null then
        _gone := _gone + jobq_private.prune_edges(_before, prune_workflows.max_rows);
    end if;
    return _gone;
end
$$;

revoke all on function jobq_private.prune_workflows from public;

comment on function jobq_private.prune_workflows is
'Forgets the steps and waits of jobs that have gone, and events past their retention.';
