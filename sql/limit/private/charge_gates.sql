-- Purpose: these jobs have started: what the rates of their keys and kinds have let pass, and
-- which job is the last of an ordered lane. Where one was tried again before which no other of its
-- lane might start, the lane is opened.
-- Invariant: the caller holds the gates. Raises: nothing.
create or replace function jobq_private.charge_gates(job_ids uuid[])
returns void
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
as $$
declare
    _heads uuid[];
begin
    update jobq_private.gate as g
    set
        passed_until = jobq_private.spent(
            g.passed_until, r.spacing, r.burst, s.jobs, clock_timestamp()
        ),
        head_job_id = case when r.is_ordered then s.last end
    from (
        select
            j.lane_id, j.queue, j.concurrency_key, count(*) as jobs,
            (array_agg(j.job_id order by j.run_at desc, j.job_id desc))[1] as last
        from jobq_private.job as j
        where j.job_id = any (charge_gates.job_ids) and j.concurrency_key is not null
        group by j.lane_id, j.queue, j.concurrency_key
        offset 0
    ) as s
    cross join lateral jobq_private.lane_rule(s.queue, s.concurrency_key) as r
    where g.gate_id = s.lane_id and (r.spacing is not null or r.is_ordered);

    update jobq_private.gate as g
    set passed_until = jobq_private.spent(
        g.passed_until, jobq_private.spacing(k.rate_limit, k.rate_period),
        coalesce(k.rate_burst, 1), s.jobs, clock_timestamp()
    )
    from (
        select j.kind, count(*) as jobs
        from jobq_private.job as j
        where j.job_id = any (charge_gates.job_ids)
        group by j.kind
        offset 0
    ) as s
    join jobq_private.kind as k on k.kind = s.kind
    where g.kind = s.kind and g.queue is null;

    update jobq_private.gate as g
    set
        passed_until = jobq_private.spent(
            g.passed_until, s.spacing, s.burst, s.jobs, clock_timestamp()
        ),
        head_job_id = case when s.is_ordered then s.last end
    from (
        select
            j.kind, j.concurrency_key, r.spacing, r.burst, r.is_ordered, count(*) as jobs,
            (array_agg(j.job_id order by j.run_at desc, j.job_id desc))[1] as last
        from jobq_private.job as j
        cross join lateral jobq_private.key_rule(j.kind) as r
        where j.job_id = any (charge_gates.job_ids) and j.concurrency_key is not null
        group by j.kind, j.concurrency_key, r.spacing, r.burst, r.is_ordered
        offset 0
    ) as s
    where g.gate_id = jobq_private.key_gate_id(s.kind, s.concurrency_key);

    if exists (select from jobq_private.kind as k where k.ordered) then
        _heads := array(
            select j.job_id
            from jobq_private.job as j
            join jobq_private.kind as k on k.kind = j.kind and k.ordered
            where j.job_id = any (charge_gates.job_ids)
            and j.attempt > 1 and j.concurrency_key is not null
        );
        if _heads <> '{}' then
            perform jobq_private.call_left_lanes(_heads, null);
        end if;
    end if;
end
$$;

revoke all on function jobq_private.charge_gates from public;

comment on function jobq_private.charge_gates is
'What the rates of keys and kinds have let pass by the start of these jobs.';
