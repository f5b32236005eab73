-- Purpose: Returns dead jobs to their queues, and returns their ids.
-- Invariant: bounded, oldest first. Skips jobs whose idempotency key or dedup key
-- belongs to another job, even a concurrent one, and jobs that another call redrives.
-- Needs a fixed number of statements. Raises: 22004, 22023.
-- Argument since: only jobs that ended since this time.
-- Argument max_jobs: maximum number, 1 to 100000.
-- Argument job_ids: only the dead ones of these jobs; null means all.
-- Returns: the ids of the redriven jobs.
-- Example: select * from jobq.redrive_many(kind => 'send_email', error_code => 'RECIPIENT_REFUSED');
create or replace function jobq.redrive_many(
    queue text default null, kind text default null, since timestamptz default '-infinity',
    error_code text default null, max_jobs integer default 1000, job_ids uuid[] default null,
    dry_run boolean default false, latest boolean default false
)
returns setof uuid language plpgsql security definer set search_path = pg_catalog, pg_temp
set jit = off set enable_seqscan = off as $$
declare
    _chosen uuid[];
    _ended timestamptz[];
begin
    perform jobq_private.check_given(
        'since, dry_run and latest', num_nulls(since, dry_run, latest)
    );
    perform jobq_private.check_count('max_jobs', redrive_many.max_jobs, 1, 100000);
    select array_agg(c.job_id), array_agg(c.finished_at) into _chosen, _ended
    from (
        select a.job_id, a.finished_at
        from jobq_private.job_archive as a
        where a.state = 'dead'
        and a.finished_at >= redrive_many.since
        and (redrive_many.job_ids is null or a.job_id = any(redrive_many.job_ids))
        and (redrive_many.queue is null or a.queue = redrive_many.queue)
        and (redrive_many.kind is null or a.kind = redrive_many.kind)
        and (redrive_many.error_code is null or a.last_error_code = redrive_many.error_code)
        -- as the unique index on the dedup keys of jobs
        and (a.dedup is null or a.dedup = 'debounce' and a.attempt > 0 or not exists (
            select from jobq_private.job as j
            where j.kind = a.kind and j.dedup_key = a.dedup_key
            and not (j.dedup is null or j.dedup = 'debounce' and j.attempt > 0)
        ))
        and (a.idempotency_key is null or not exists (
            select from jobq_private.idempotency_key as k
            where k.kind = a.kind
            and k.idempotency_key = a.idempotency_key
            and k.job_id <> a.job_id
            and not jobq_private.is_key_free(k.kind, k.job_id, k.created_at)
        ))
        order by a.finished_at
        limit redrive_many.max_jobs
        for update of a skip locked
    ) as c;
    if redrive_many.dry_run then
        return query select c.job_id from unnest(_chosen) as c (job_id);
    elsif _chosen is not null then
        return query
        select r.* from jobq_private.redrive_jobs(_chosen, _ended, redrive_many.latest) as r;
    end if;
end
$$;
grant execute on function jobq.redrive_many to jobq_operator;
