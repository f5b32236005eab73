-- Purpose: enqueue the jobs that others call, unless they were called before, and return all
-- with their ids; those of attempts that have lost their leases are left out.
-- Invariant: as start_children(). Callers are locked in the order of their ids.
-- Raises: 22004, 22023, JQ005, JQ006, JQ010.
-- Never: BATCH_NOT_FOUND, BATCH_ENDED, DEDUP_CONFLICT, JOB_NOT_FOUND, ILLEGAL_STATE.
create or replace function jobq_private.start_calls(
    job_ids uuid[], attempts integer[], calls jsonb
)
returns jobq_private.child_call[] language plpgsql set plan_cache_mode = force_generic_plan
set jit = off set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off as $$
declare
    _children jobq_private.child_call[] := jobq_private.read_calls(job_ids, attempts, calls);
    _new jsonb;
    _ids uuid[];
    _jobs jobq_private.new_job[];
begin
    perform from jobq_private.job as j
    where j.job_id = any(job_ids) and j.lease_expires_at is not null
    order by j.job_id
    for no key update;
    _children := array(
        select row(
            c.n, c.job_id, c.attempt, c.name, c.document,
            case
                when s.name is null then jobq_private.new_id(g.shard_id)
                else jobq_private.ended_job('job_ended:' || (s.value #>> '{}'))
            end,
            s.name is null
        )::jobq_private.child_call
        from unnest(_children) with ordinality
            as c (n, job_id, attempt, name, document, child_id, is_new, place)
        join jobq_private.job as j
            on j.job_id = c.job_id and j.attempt = c.attempt and j.lease_expires_at is not null
        left join jobq_private.step as s on s.job_id = c.job_id and s.name = c.name
        cross join jobq_private.setting as g
        -- by the index, whatever the statistics say
        where j.job_id = any(job_ids)
        order by c.place
    );
    perform jobq_private.check_argument((
        select format('children: the name %s is taken by a step', to_jsonb(c.name))
        from unnest(_children) as c
        where c.child_id is null
        limit 1
    ));
    select
        jsonb_agg(c.document - '{name,cancel}'::text[] order by c.place),
        array_agg(c.child_id order by c.place)
    into _new, _ids
    from unnest(_children) with ordinality
        as c (n, job_id, attempt, name, document, child_id, is_new, place)
    where c.is_new;
    if _new is null then
        return _children;
    end if;
    _jobs := jobq_private.read_records(
        null::jobq_private.new_job, 'jobs', _new,
        '{kind,payload,queue,run_at,priority,max_attempts,timeout,metadata,concurrency_key,expires_at,cost}'
    );
    for _n in 1 .. cardinality(_jobs) loop
        _jobs[_n].job_id := _ids[_n];
        _jobs[_n].is_awaited := true;
        _jobs[_n].dedup := 'enqueue';
    end loop;
    perform jobq_private.store_jobs(_jobs);
    insert into jobq_private.step (job_id, name, value, attempt)
    select c.job_id, c.name, to_jsonb(c.child_id), c.attempt
    from unnest(_children) as c
    where c.is_new;
    insert into jobq_private.edge (child, parent, after_failure, is_open)
    select
        c.job_id, c.child_id,
        case when c.document @> '{"cancel": false}' then 'detach' else 'call' end, false
    from unnest(_children) as c
    where c.is_new;
    return _children;
end
$$;
