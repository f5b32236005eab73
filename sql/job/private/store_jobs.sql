-- Purpose: fill in and check new jobs, take their keys, and store them. Returns their ids, or of
-- the jobs that hold their keys, and whether they are new, by ordinal.
-- Invariant: enqueue() stores a plain job without this function, and must make the same of it;
-- tests/pgtap/job/columns.sql compares them. All or none; ordinals are 1 to n. Idempotency keys
-- are locked first, then dedup keys, each by kind and key, so that batches cannot deadlock. A
-- caller that gets an existing job writes an empty message, so that its commit waits for disk and
-- standby: a failover cannot take back the answer to a repeated call. Jobs of schedules were
-- checked when those were declared.
-- Raises: 22004, 22023, JQ001, JQ002, JQ004, JQ005, JQ006, JQ010.
create or replace function jobq_private.store_jobs(
    jobs jobq_private.new_job[], is_checked boolean default false, out ids uuid[],
    out created boolean[]
)
language plpgsql set plan_cache_mode = force_generic_plan as $$
declare
    _jobs jobq_private.new_job[];
    _problems text[];
    _has_keys boolean;
    _has_features boolean;
begin
    select
        array_agg(row(
            j.ordinal, j.kind, coalesce(j.payload, '{}'), s.queue,
            coalesce(
                j.run_at, case
                    when d.dedup = 'debounce' then now() + least(s.dedup_period, s.dedup_max_wait)
                end, now()
            ),
            coalesce(j.priority, s.priority), coalesce(j.max_attempts, s.max_attempts),
            coalesce(j.timeout, s.timeout), j.idempotency_key, k.dedup_key, d.dedup,
            coalesce(j.metadata, '{}'), j.schedule_id, j.slot_at,
            coalesce(j.concurrency_key, j.payload #>> s.concurrency_key), j.expires_at,
            nullif(j.after, '{}'), j.after_failure, j.batch_id, j.callback_of,
            coalesce(j.is_awaited, false), coalesce(j.job_id, jobq_private.new_id(s.shard_id)),
            s.lease, s.keep, s.delivery_version, s.is_limited, s.dedup_period, s.dedup_max_wait,
            s.max_depth, null, coalesce(j.cost, jobq_private.payload_cost(j.payload, s.cost))
        )::jobq_private.new_job order by j.ordinal),
        array_agg(p.problem) filter (where p.problem is not null),
        bool_or(num_nonnulls(j.idempotency_key, k.dedup_key) > 0),
        bool_or(s.is_limited or num_nonnulls(
            j.concurrency_key, s.concurrency_key, j.after, j.batch_id, j.callback_of
        ) > 0)
    into _jobs, _problems, _has_keys, _has_features
    from unnest(store_jobs.jobs) as j
    cross join lateral jobq_private.settings_for(j.kind, j.queue) as s
    cross join lateral (
        select coalesce(j.dedup_key, case
            when s.dedup_key is not null then jobq_private.payload_key(j.payload, s.dedup_key)
        end)
    ) as k (dedup_key)
    cross join lateral (
        select case when k.dedup_key is not null then coalesce(j.dedup, s.dedup) end
    ) as d (dedup)
    cross join lateral (
        select case when not is_checked then jobq_private.new_job_problem(j, s) end offset 0
    ) as p (problem);

    -- Raised apart, the error does not name the whole statement above.
    if _problems is not null then
        perform jobq_private.raise_error(_problems[1][1], _problems[1][2]);
    elsif _jobs is null and store_jobs.jobs <> '{}' then
        perform jobq_private.raise_error(
            'INVALID_ARGUMENT', 'jobq_private.setting must have its row'
        );
    elsif _has_keys then
        ids := jobq_private.store_keyed_jobs(_jobs);
        created := array(
            select j.job_id = ids[j.ordinal] from unnest(_jobs) as j order by j.ordinal
        );
        if false = any(created) then
            perform pg_logical_emit_message(true, 'jobq', '');
        end if;
        return;
    elsif _has_features then
        ids := jobq_private.on_store(_jobs);
    else
        ids := jobq_private.insert_jobs(_jobs);
    end if;
    created := array_fill(true, array[cardinality(ids)]);
end
$$;
