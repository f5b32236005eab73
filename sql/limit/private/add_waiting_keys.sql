-- Purpose: after jobs have come to wait under keys: see to it that claims look there. A
-- key needs no row if one promises that: an open one, a full one, or one that opens
-- when the job is due.
-- Invariant: the protocol of close_keys(). A repeatable snapshot is too old to look.
create or replace function jobq_private.add_waiting_keys(job_ids uuid[])
returns void
language plpgsql
set plan_cache_mode = force_generic_plan
set jit = off
set enable_seqscan = off
as $$
declare
    _closing constant integer := jobq_private.lock_class('closing');
    _locked uuid[];
begin
    if current_setting('transaction_isolation') = 'read committed' then
        _locked := array(
            select k.key_id
            from (
                select distinct j.key_id
                from jobq_private.job as j
                where j.job_id = any(add_waiting_keys.job_ids) and j.key_id is not null
                offset 0
            ) as k
            where pg_try_advisory_xact_lock_shared(_closing, jobq_private.lock_slot(k.key_id))
        );
    end if;
    insert into jobq_private.waiting_key (key_id, queue, kind, concurrency_key, priority)
    select
        n.key_id, n.queue,
        jobq_private.key_kind(n.key_id, n.queue, n.concurrency_key, n.kind),
        n.concurrency_key, n.priority
    from (
        select
            j.key_id, j.queue, j.concurrency_key, j.priority, min(j.kind) as kind,
            min(j.run_at) as run_at
        from jobq_private.job as j
        where j.job_id = any(add_waiting_keys.job_ids) and j.key_id is not null
        group by j.key_id, j.queue, j.concurrency_key, j.priority
        offset 0
    ) as n
    where coalesce(n.key_id <> all(_locked), true)
    or not exists (
        select from jobq_private.waiting_key as w
        where w.key_id = n.key_id and w.queue = n.queue and w.priority = n.priority
        and w.open_at <= n.run_at
    );
end
$$;
