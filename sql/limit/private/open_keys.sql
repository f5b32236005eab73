-- Purpose: open the keys of jobs that now wait, and freed keys, which have a free slot
-- or a new first job, and wake their queues. A key needs no new row if it has an open
-- one; for a new job also a full one, or one that opens when the job is due.
-- Invariant: the protocol of close_keys(). A repeatable snapshot is too old to check.
create or replace function jobq_private.open_keys(job_ids uuid[], freed uuid[] default '{}')
returns void language plpgsql set plan_cache_mode = force_generic_plan set jit = off
set enable_seqscan = off set enable_bitmapscan = off as $$
declare
    _closing constant integer := jobq_private.lock_class('closing');
    _locked uuid[] := '{}'::uuid[];
begin
    if current_setting('transaction_isolation') = 'read committed' then
        _locked := array(
            select k.key_id
            from (
                select j.key_id from jobq_private.job as j where j.job_id = any(open_keys.job_ids)
                union
                select unnest(open_keys.freed)
                offset 0
            ) as k
            where k.key_id is not null
            and pg_try_advisory_xact_lock_shared(_closing, jobq_private.lock_slot(k.key_id))
        );
    end if;
    perform jobq_private.open_again(array(
        select row(
            null, n.key_id, n.queue, n.kind, n.concurrency_key, n.priority, null, null, null
        )::jobq_private.waiting_key
        from (
            select
                j.key_id, j.queue,
                jobq_private.key_kind(j.key_id, j.queue, j.concurrency_key, min(j.kind)) as kind,
                j.concurrency_key, j.priority, min(j.run_at) as run_at
            from jobq_private.job as j
            where j.job_id = any(open_keys.job_ids) and j.key_id is not null
            group by j.key_id, j.queue, j.concurrency_key, j.priority
            union all
            select w.key_id, w.queue, w.kind, w.concurrency_key, w.priority, null
            from jobq_private.waiting_key as w
            where w.key_id = any(open_keys.freed)
            and (
                w.state = 'full'
                or w.key_id <> all(_locked)
                or w.state = 'later' and exists (
                    select from jobq_private.limit_state as g
                    where g.limit_id = w.key_id and g.first_job_id is not null
                )
            )
            offset 0
        ) as n
        where n.key_id <> all(_locked)
        or not exists (
            select from jobq_private.waiting_key as w
            where w.key_id = n.key_id and w.queue = n.queue and w.priority = n.priority
            and (w.state = 'open' or w.open_at <= n.run_at)
        )
    ));
end
$$;
