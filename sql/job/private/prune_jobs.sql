-- Purpose: forget finished jobs that their kind keeps for less than the global retention.
-- Invariant: a bounded number at a call, the longest overdue first, found by an index of
-- such jobs alone. One that others need is put off, so that it is not looked at in every call; who
-- does not see all queues may not see who needs it, and leaves it to others. What somebody holds is
-- left to the next call. Idempotency keys stay for their own retention. Returns how many went.
-- Raises: nothing.
create or replace function jobq_private.prune_jobs(max_rows integer)
returns bigint
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
as $$
declare
    _sees_all boolean;
    _gone uuid[];
begin
    _sees_all := jobq_private.worked_queues() is null;
    with due as materialized (
        select
            a.job_id, a.finished_at,
            jobq_private.needed_until(a.job_id, a.batch_id, a.finished_at) as needed_until
        from jobq_private.job_archive as a
        where a.prune_at < now()
        and (
            _sees_all
            or (
                a.batch_id is null
                and not exists (select from jobq_private.edge as e where e.parent = a.job_id)
            )
        )
        order by a.prune_at
        limit prune_jobs.max_rows
        for update skip locked
    ),
    put_off as (
        update jobq_private.job_archive as a
        set prune_at = nullif(greatest(d.needed_until, now() + interval '1 s'), 'infinity')
        from due as d
        where a.job_id = d.job_id and a.finished_at = d.finished_at
        and d.needed_until is not null
    ),
    gone as (
        delete from jobq_private.job_archive as a
        using due as d
        where a.job_id = d.job_id and a.finished_at = d.finished_at
        and d.needed_until is null
        returning a.job_id
    )
    select array_agg(g.job_id) into _gone from gone as g;
    if _gone is not null then
        perform jobq_private.forget_traces(_gone);
    end if;
    return coalesce(cardinality(_gone), 0);
end
$$;

revoke all on function jobq_private.prune_jobs from public;

comment on function jobq_private.prune_jobs is
'Forgets finished jobs that their kind keeps for less than the global retention.';
